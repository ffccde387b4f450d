"""Which kind of workspace a row under construction gets.

dense    values at their coordinates, and a list of these: fastest, but as long as the row can be
hash     values in a list, found through a hash table: as long as the longest row that occurs
sort     a list in which coordinates repeat, sorted and combined before it is read
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from sparseloom.core.errors import NotationError
from sparseloom.formats.format import Format
from sparseloom.formats.level import Level
from sparseloom.formats.levels.listed import Listed
from sparseloom.formats.levels.scattered import Scattered

SHORT = 1 << 22  # coordinates; a dense row of so many takes some 50 MB
SPREAD = 16  # how many times as many coordinates as the operands have entries a dense row may have
FEW = 4  # how many times as many entries as a dense row has coordinates make it worth while to set every place before the first row
NARROW = 1 << 15  # coordinates; to set so many takes some 20 us


class RowKind(Enum):
    """A kind of workspace for a row."""

    DENSE = "dense"
    HASH = "hash"
    SORT = "sort"


@dataclass(frozen=True)
class RowChoice:
    """A kind of workspace, and why it was taken. ``long`` are variables with too many values to give each of them a place.

    ``prepared``: before a row begins, every place of a dense one holds what changes no sum. Then nothing depends on whether a coordinate
    was met before, which no processor can foresee, where rows overlap by half; but all places are set once.
    """

    kind: RowKind
    reason: str
    long: frozenset[str] = frozenset()
    prepared: bool = False

    def level(self, ordered: bool) -> Scattered | Listed:
        """The level of a workspace of this kind. A list is sorted in any case."""
        match self.kind:
            case RowKind.DENSE:
                return Scattered(ordered)
            case RowKind.HASH:
                return Scattered(ordered, hashed=True)
            case RowKind.SORT:
                return Listed()


def lists_entries(form: Format) -> bool:
    """Whether a workspace takes entries one after another, and notes which it has."""
    return any(level.collector is not None for level in form.levels)


SHORT_ROWS = RowChoice(RowKind.DENSE, "chosen because rows are short")


def known_workspace(name: str | None) -> RowKind | None:
    """The kind of workspace that was asked for, or a refusal that says which there are."""
    if name is None:
        return None
    names = [kind.value for kind in RowKind]
    if not isinstance(name, str) or name not in names:
        raise NotationError(f"there is no workspace {name!r}; there are {', '.join(names)}")
    return RowKind(name)


def is_long(extent: int, entries: int) -> bool:
    """Whether a row has too many coordinates for so few entries to give each of them a place."""
    return extent > max(SHORT, SPREAD * entries)


def choose_row(extent: int, entries: int, asked: RowKind | None, scattered: bool = True) -> RowChoice:
    """The workspace for rows of ``extent`` coordinates, where sparse operands have so many entries.

    Where these are not ``scattered``, coordinates meet in runs, which a processor does foresee: then the branch took a fifth less.
    """
    prepared = scattered and 0 < FEW * extent <= entries
    if asked is not None:
        return RowChoice(asked, "as asked", prepared=prepared)
    if extent <= SHORT:
        return replace(SHORT_ROWS, prepared=prepared)
    if not is_long(extent, entries):
        return RowChoice(RowKind.DENSE, "chosen because operands have many entries for the length of a row", prepared=prepared)
    return RowChoice(RowKind.HASH, "chosen because rows are long and operands have few entries")


def scheduled_row(extent: int, asked: RowKind | None) -> RowChoice:
    """The workspace for rows of ``extent`` coordinates where the loops have a schedule, whatever the operands hold.

    A hash table stands at the same place in the loops as a dense row, so that whatever is allowed for one is allowed for the other.
    """
    prepared = 0 < extent <= NARROW
    if asked is not None:
        return RowChoice(asked, "as asked", prepared=prepared)
    kind, length = (RowKind.DENSE, "up to") if extent <= SHORT else (RowKind.HASH, "more than")
    return RowChoice(kind, f"under a schedule always so for rows of {length} {SHORT:,} coordinates", prepared=prepared)


def why_listed(levels: tuple[Level, ...], choice: RowChoice) -> str:
    """Why entries are listed and sorted: a single level may have been chosen, several have no other way."""
    if len(levels) == 1 and choice.kind is RowKind.SORT:
        return choice.reason
    several = "several levels" if len(levels) > 1 else "a level"
    return f"chosen because entries of {several} come in another order"
