"""A format: a stack of levels, and which mode of the tensor each of them stores.

csr                     bcsr((2, 3))
level 0: dense       i  level 0: dense       i / 2
level 1: compressed  j  level 1: compressed  j / 3
                        level 2: dense       i % 2
                        level 3: dense       j % 3
"""

from __future__ import annotations

import re
from itertools import pairwise
from operator import attrgetter

from sparseloom.core.errors import FormatError
from sparseloom.core.trees import Node, node
from sparseloom.formats.level import Level

_FULL = attrgetter("full")


@node
class Format(Node):
    """Levels from the root down; ``modes[k]`` is the tensor's mode that level k stores.

    In a blocked format every mode stands twice, first for the block and then for the place within it, and ``blocks``
    holds the block size of each mode.

    >>> sl.csr.text, sl.csc.text, sl.dcsr.text, sl.dcsc.text, sl.ell.text, sl.dia.text
    ('ds', 'ds:1,0', 'ss', 'ss:1,0', 'dp', 'do')
    >>> sl.Format(sl.csr.levels, (1, 0)) == sl.csc
    True
    """

    levels: tuple[Level, ...]
    modes: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        given: object = self.levels
        if isinstance(given, str):
            raise FormatError(
                f"a Format is made of levels, not of the text {given!r}\n"
                f"  help: every format= and formats= takes text, and A.to({given!r}); named ones are values, as sl.csr is"
            )
        times = 2 if self.blocks else 1
        if len(self.levels) != len(self.modes):
            raise FormatError(f"{len(self.levels)} levels need as many modes, not {len(self.modes)}: {self.modes}")
        if sorted(self.modes) != sorted([*range(self.order)] * times):
            often = "twice, for the block and the place in it" if self.blocks else "once"
            raise FormatError(f"the mode order {self.modes} must name each mode from 0 to {max(self.order - 1, 0)} {often}")
        if self.blocks and (len(self.blocks) != self.order or any(b < 1 for b in self.blocks)):
            raise FormatError(f"block sizes must be one positive number per mode, not {self.blocks}")
        for k, level in enumerate(self.levels):
            if level.shares_values and k + 1 < len(self.levels):
                raise FormatError(f"a level of which several entries share a value must be the last; {level.letter} is level {k}")
            if (why := level.misplaced(self.levels, k)) is not None:
                raise FormatError(why)

    def __str__(self) -> str:
        """The familiar name where there is one, else the letters; ``parse_format`` reads both."""
        return _familiar(self.text, self.blocks)

    __repr__ = __str__

    @property
    def order(self) -> int:
        """How many modes a tensor of this format has."""
        return len(self.modes) // 2 if self.blocks else len(self.modes)

    @property
    def is_dense(self) -> bool:
        """Whether every coordinate is stored."""
        return all(map(_FULL, self.levels))

    @property
    def holds_padding(self) -> bool:
        """Whether values are stored that no entry asked for: in full levels below others, in blocks, and along diagonals."""
        first = next((k for k, level in enumerate(self.levels) if not level.full), len(self.levels))
        return any(level.full for level in self.levels[first:]) or any(level.padded for level in self.levels)

    @property
    def shares_values(self) -> bool:
        """Whether entries may have one value in common, so that the arrays follow from coordinates and values."""
        return any(level.shares_values for level in self.levels)

    @property
    def is_unique(self) -> bool:
        """Whether no entry can be stored twice: the coordinates of every chain of levels are unique."""
        return all(self.levels[end].unique for _, end in self.chains)

    @property
    def chains(self) -> tuple[tuple[int, int], ...]:
        """The first and last level of every chain: a level and the branchless levels right below it."""
        heads = [k for k, level in enumerate(self.levels) if not level.branchless]
        return tuple((head, after - 1) for head, after in pairwise([*heads, len(self.levels)]))

    def promising(self, ordered: bool | None = None, unique: bool | None = None) -> Format:
        """The same levels with these promises, as far as they can be chosen; those that are left out stay as they are."""

        def changed(level: Level) -> Level:
            return level.promising(level.ordered if ordered is None else ordered, level.unique if unique is None else unique)

        return Format(tuple(map(changed, self.levels)), self.modes, self.blocks)

    def level_sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The extent of every level for a tensor of this shape."""
        if not self.blocks:
            return tuple(shape[mode] for mode in self.modes)
        sizes = []
        for mode, is_within in zip(self.modes, self.within_blocks, strict=True):
            block = self.blocks[mode]
            sizes.append(block if is_within else -(-shape[mode] // block))
        return tuple(sizes)

    @property
    def within_blocks(self) -> tuple[bool, ...]:
        """For every level of a blocked format, whether it stores the place within a block: the second time that its mode stands."""
        return tuple(mode in self.modes[:k] for k, mode in enumerate(self.modes))

    @property
    def text(self) -> str:
        """The letters of the levels, then the mode order unless it is the natural one, then the block sizes.

        Behind a letter, ``~`` means unordered. The last q is unique and the others are not; where that does not hold,
        ``!`` says unique and ``+`` says that tuples may repeat.
        """
        last = max((k for k, level in enumerate(self.levels) if level.branchless), default=-1)
        letters = "".join(_spell(level, k == last) for k, level in enumerate(self.levels))
        natural = self.modes == tuple(range(len(self.modes)))
        modes = "" if natural else ":" + ",".join(map(str, self.modes))
        blocks = "/" + ",".join(map(str, self.blocks)) if self.blocks else ""
        return letters + modes + blocks


def _spell(level: Level, is_last_singleton: bool) -> str:
    """One level's letter with its marks."""
    marks = "" if level.ordered else "~"
    if level.branchless and level.unique != is_last_singleton:
        marks += "!" if level.unique else "+"
    return level.letter + marks


_FAMILIAR = {"ds": "csr", "ds:1,0": "csc", "ss": "dcsr", "ss:1,0": "dcsc", "uq": "coo", "sss": "csf", "dp": "ell", "do": "dia"}


def _familiar(text: str, blocks: tuple[int, ...]) -> str:
    """The name by which people know the format of this text, if they do."""
    if text in _FAMILIAR:
        return _FAMILIAR[text]
    if re.fullmatch("d*", text):
        return f"dense({len(text)})"
    if re.fullmatch("s{4,}", text):
        return f"csf({len(text)})"
    if re.fullmatch("uq{2,}", text):
        return f"coo({len(text)})"
    if text.startswith("dsdd:0,1,0,1/"):
        return f"bcsr({blocks[0]},{blocks[1]})"
    return text
