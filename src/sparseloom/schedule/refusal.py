"""A refusal: why a step of a schedule cannot be done, as a value. ``Schedule`` raises it, once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from sparseloom.core.errors import ScheduleError
from sparseloom.notation.nodes import IndexVar


@dataclass(frozen=True)
class Refusal:
    """What stands in the way.

    ``at`` is the loop to point at. ``argument`` counts to the argument that cannot be read, ``column`` to the place in it.
    """

    code: str
    why: str
    help: str = ""
    at: IndexVar | None = None
    argument: int | None = None
    column: int = 0

    def error(self, what: str, *shown: str) -> ScheduleError:
        """The error for what was asked: why not, lines that show where, and what to do."""
        lines = [f"[{self.code}] cannot {what}: {self.why}", *(f"  {line}" for line in shown)]
        return ScheduleError("\n".join([*lines, f"  help: {self.help}"] if self.help else lines))


def near(word: str, known: Iterable[str]) -> str:
    """What there is instead of an unknown word, and what may have been meant."""
    there = list(known)
    plain = {_plain(name): name for name in there}
    meant = [plain[found] for found in get_close_matches(_plain(word), plain, 1)]
    return f"{f'did you mean {meant[0]}? There are' if meant else 'there are'} {listed(there)}"


def _plain(name: str) -> str:
    """A name as it is compared with others: in small letters, and in one word."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def listed(items: Iterable[object]) -> str:
    """Things with commas between them, for a sentence such as "there are i, j"."""
    return ", ".join(map(str, items)) or "none"
