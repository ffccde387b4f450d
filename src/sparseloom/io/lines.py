"""Text files as blocks of whole lines, so that a file of any length takes the memory of one block.

A block knows the number of its first line. Comments are left out but keep their line breaks, so that numbers stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from sparseloom.core.errors import StorageError
from sparseloom.io.source import PIECE, fault, pieces

_LONGEST = 1 << 20  # bytes of a line
_BLANKS = rb"[\x00-\x09\x0b-\x20]*"


@dataclass(frozen=True)
class Block:
    """Some lines of a file, of which the first has the number ``first_line``."""

    path: Path
    body: bytes
    first_line: int

    def fault(self, row: int, what: str) -> StorageError:
        """The error for a row of numbers, which names its line."""
        number, text = self.line_of(row)
        return fault(self.path, what, number, text)

    def line_of(self, row: int) -> tuple[int, bytes]:
        """The line number and text of a row of numbers; blank lines do not count as rows."""
        filled = ((self.first_line + offset, text) for offset, text in enumerate(self.body.split(b"\n")) if text.strip())
        return next(line for skipped, line in enumerate(filled) if skipped == row)

    @property
    def last_line(self) -> int | None:
        """The number of the last line that holds anything."""
        held = self.body.rstrip()
        return self.first_line + held.count(b"\n") if held else None


class Lines:
    """The lines of an open file, each given once: the first ones singly, the others in blocks.

    A comment runs from ``mark`` to the end of its line. If it must be ``alone``, only blanks may stand before it.
    """

    def __init__(self, path: Path, file: IO[bytes], mark: bytes, alone: bool) -> None:
        """Read up to the end of the first line."""
        self.path = path
        self.number = 1  # of the line that comes next
        self._mark = mark
        self._comment = re.compile((rb"(?m)^" + _BLANKS if alone else b"") + mark + rb"[^\n]*")
        self._source = self._whole_lines(pieces(path, file))
        raw = next(self._source, b"")
        self.first = raw.partition(b"\n")[0]  # as it stands, be it a comment or not
        self._body = self._without_comments(raw)
        self._again: list[tuple[int, bytes]] = []

    def next(self) -> tuple[int, bytes] | None:
        """The next line that holds anything, and its number."""
        while not (rest := self._body.lstrip()):
            if not self._advance():
                return None
        self.number += self._body.count(b"\n", 0, len(self._body) - len(rest))
        line, _, self._body = rest.partition(b"\n")
        self.number += 1
        return self.number - 1, line

    def put_back(self, *lines: tuple[int, bytes] | None) -> None:
        """Let lines that were taken come again, in front of the blocks."""
        self._again.extend(line for line in lines if line is not None)

    def peek(self) -> tuple[int, bytes] | None:
        """The line that comes next, which will come again."""
        if not self._again:
            self.put_back(self.next())
        return self._again[0] if self._again else None

    def blocks(self) -> Iterator[Block]:
        """All that is left."""
        for number, line in self._again:
            yield Block(self.path, line, number)
        yield Block(self.path, self._body, self.number)
        while self._advance():
            yield Block(self.path, self._body, self.number)

    def _advance(self) -> bool:
        """Go on to the next lines, if there are any."""
        self.number += _breaks(self._body)
        raw = next(self._source, None)
        self._body = b"" if raw is None else self._without_comments(raw)
        return raw is not None

    def _whole_lines(self, source: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces, cut at the ends of lines."""
        parts: list[bytes] = []
        size = 0
        for piece in source:
            parts.append(piece)
            size += len(piece)
            if size < PIECE:
                continue  # many small pieces make one block
            text = b"".join(parts)
            end = text.rfind(b"\n") + 1
            if end:
                yield text[:end]
            elif len(text) > _LONGEST:
                raise fault(self.path, f"a line is longer than {_LONGEST >> 20} MiB", self.number, text)
            parts, size = [text[end:]], 0
        if any(parts):
            yield b"".join(parts)

    def _without_comments(self, body: bytes) -> bytes:
        """The body without its comments. Most files have them in front, so what follows the last one stays as it is."""
        last = body.rfind(self._mark)
        if last < 0:
            return body
        end = body.find(b"\n", last)
        end = len(body) if end < 0 else end
        return self._comment.sub(b"", body[:end]) + body[end:]


def _breaks(body: bytes) -> int:
    """How many line breaks there are; ``bytes.count`` takes five times as long where lines are short."""
    return int(np.count_nonzero(np.frombuffer(body, np.uint8) == ord("\n")))
