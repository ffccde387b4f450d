"""How a result is made: one value, chosen with the loops. Schedules change it, lowering follows it, and ``explain`` prints it.

Dense        every place exists
Shared       the entries are those of an operand, or its first levels are; only values are written
Filled       every entry has its place, and is put there in whatever order the loops come
Appended     entries come in order, one behind the other
Counted      the loops run twice: to count the entries of all levels, and to fill them in
Inserted     rows are counted, then filled in whatever order the loops come
Refilled     the structure is known; only the values are computed again
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sparseloom.formats.format import Format
from sparseloom.iteration.layout import is_filled
from sparseloom.notation.nodes import Access, IndexVar, Stmt


@dataclass(frozen=True)
class Making:
    """How a result is made."""

    words: ClassVar[str] = "appended in order"

    @property
    def story(self) -> str:
        """What becomes of entries, said behind the name of the format."""
        return self.words


@dataclass(frozen=True)
class Dense(Making):
    """Every place exists, which the format says."""

    words = ""


@dataclass(frozen=True)
class Shared(Making):
    """The entries are those of an operand; or the first ``depth`` levels are, with full levels below them."""

    operand: Access
    depth: int

    @property
    def story(self) -> str:
        """Whose structure it is."""
        whole = self.depth == len(self.operand.tensor.format.levels)
        what = "the structure" if whole else "the first level" if self.depth == 1 else f"the first {self.depth} levels"
        return f"with {what} of {self.operand.tensor}: only values are computed"


@dataclass(frozen=True)
class Filled(Making):
    """Every entry has its place before the loops run."""

    words = "filled in any order"


@dataclass(frozen=True)
class Appended(Making):
    """Entries come in order; threads append parts that are joined.

    One that ``takes_leaves`` has the last coordinates and the values of its only operand, which is in the same order.
    """

    takes_leaves: bool = False


@dataclass(frozen=True)
class Refilled(Making):
    """Only values are computed, beside a structure that is known."""


@dataclass(frozen=True)
class Counted(Making):
    """The entries of all levels are counted, in order; threads count and fill parts. ``counting`` is the statement that counts them."""

    words = "counted and then filled"
    counting: Stmt | None = None


@dataclass(frozen=True)
class Inserted(Making):
    """What rows need to know of their entries is found first; the loops come in the ``order`` of these variables, whatever the levels' is.

    ``driver`` is the operand whose entries come one after another, if they tell their rows. One that ``takes_leaves`` has the last
    coordinates and the values of its only operand, which is in the same order, so that rows are only counted.
    """

    words = "counted and then filled"
    counting: Stmt | None = None
    order: tuple[IndexVar, ...] = ()
    driver: Access | None = None
    takes_leaves: bool = False


CountedFirst = Counted | Inserted


def choose_making(form: Format, shared: Shared | None = None, inserted: tuple[IndexVar, ...] = ()) -> Making:
    """How a result of this format is made, of which it is known whose structure it has, and in which order entries come if in none."""
    if form.is_dense:
        return Dense()
    if shared is not None:
        return shared
    if is_filled(form):
        return Filled()
    if inserted:
        return Inserted(order=inserted)
    return Appended()
