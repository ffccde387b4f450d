"""What is known of the data: roughly how much there is, and how the entries of large operands are spread.

Numbers are rounded to powers of two, so that problems that are alike are planned alike. What takes a look into index arrays is kept with
the storage, and asked only of operands that are large enough for it to matter.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from math import frexp
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sparseloom.formats.level import Level, LevelData
from sparseloom.formats.pack import passed_counts
from sparseloom.formats.storage import Storage

LARGE = 1 << 14  # entries; with fewer, how they are spread does not matter
PIECES = 16  # as many as many machines have cores
SMALL_PIECES = 1024
WINDOWS, WINDOW = 64, 32
STEADY = 0.9  # the share of rows that are as long as the ones before them
NEAR = 16  # coordinates; what is this near comes without being asked for
EVEN = 1.15  # how much more than its share the largest of equal pieces may have
HEAVY = 1 / 16  # the share of all entries that makes one row too large for one thread

Index = NDArray[np.signedinteger[Any]]


class Evenness(Enum):
    """How the entries of an operand are spread over the coordinates of its first level."""

    EVEN = "even"  # pieces of equally many coordinates have equally many entries
    UNEVEN = "uneven"
    HEAVY = "heavy"  # one coordinate has more entries than a thread should get

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class OperandFacts:
    """What is known of a sparse operand. ``fans`` says for every level how many positions there are below one of the level above.

    ``imbalance`` is how much more than its share the largest of sixteen equal pieces has, and ``heaviest`` the share of all entries that
    the largest coordinate of the first level has, where that was asked; both rounded. ``longest`` is how many
    entries the largest coordinate of the first level has, rounded too, where that was asked. ``scattered``: most entries stand far from the
    ones before them. ``steady``: most rows are as long as the ones before them.
    """

    fans: tuple[float, ...]
    spread: Evenness = Evenness.EVEN
    imbalance: float = 1.0
    heaviest: float | None = None
    scattered: bool = False
    longest: float = 0.0
    steady: bool = False


@dataclass(frozen=True)
class Statistics:
    """``entries`` is how many entries sparse operands have together, rounded down to a power of two. ``cheapest`` has the operands, from
    the one with fewest values on. ``stored`` has the entries of each sparse operand, rounded too, and ``operands`` what is known of those
    that are large. What more is added here belongs also to the kinds by which ``doors`` knows a call."""

    entries: int = 0
    cheapest: tuple[str, ...] = ()
    stored: tuple[tuple[str, int], ...] = ()
    operands: tuple[tuple[str, OperandFacts], ...] = ()

    @staticmethod
    def of(operands: Mapping[str, Storage], lengths: bool = False) -> Statistics:
        """What the operands tell; how long their rows are only where ``lengths`` matter."""
        counts = {name: len(storage.values) for name, storage in operands.items()}
        sparse = [name for name, storage in operands.items() if not storage.format.is_dense]
        large = tuple((name, known_of(operands[name], lengths)) for name in sparse if counts[name] >= LARGE)
        found = Statistics.counted(counts, sparse)
        return replace(found, operands=large) if large else found

    @staticmethod
    def counted(counts: Mapping[str, int], sparse: Collection[str]) -> Statistics:
        """What the numbers of values tell, some of which are those of sparse operands."""
        cheapest = sorted(counts, key=counts.__getitem__)
        stored = tuple((name, _rounded_down(counts[name])) for name in sparse)
        return Statistics(_rounded_down(sum(counts[name] for name in sparse)), tuple(cheapest), stored)

    def known(self, name: str) -> OperandFacts | None:
        """What is known of an operand."""
        return next((known for other, known in self.operands if other == name), None)


def _rounded_down(count: int) -> int:
    return 1 << count.bit_length() >> 1


NOTHING_KNOWN = Statistics()
_KNOWN: WeakKeyDictionary[Storage, OperandFacts] = WeakKeyDictionary()
_LONGEST: WeakKeyDictionary[Storage, float] = WeakKeyDictionary()
_IN_LEVELS: WeakKeyDictionary[LevelData, tuple[Hashable, OperandFacts]] = WeakKeyDictionary()
"""What was found in the last level of a storage, and in which levels of which sizes: the transpose of a matrix has the same."""


def forget() -> None:
    """Know nothing of any storage, so that each is looked at again."""
    _KNOWN.clear()
    _IN_LEVELS.clear()
    _LONGEST.clear()


def known_of(storage: Storage, lengths: bool = False) -> OperandFacts:
    """What is known of a storage. It is found out once: whoever changes index arrays later changes how fast things are, not what."""
    known = _KNOWN.get(storage)
    if known is None:
        known = _KNOWN[storage] = _look_once(storage)
    if not lengths:
        return known
    if storage not in _LONGEST:
        _LONGEST[storage] = _longest(storage)
    return replace(known, longest=_LONGEST[storage])


def _longest(storage: Storage) -> float:
    """The largest number of entries below one coordinate of the first level; 0 if positions do not say."""
    sizes, counts = storage.format.level_sizes(storage.shape), passed_counts(storage)
    if not storage.format.levels[0].unique:
        return 0.0
    starts = np.arange(counts[1] + 1) if len(counts) > 2 else np.arange(1)
    for level, data, size in list(zip(storage.format.levels, storage.levels, sizes, strict=True))[1:]:
        pos = data.arrays.get("pos")
        if not level.branchless and not level.full and pos is None:
            return 0.0
        if pos is not None:
            starts = (pos if isinstance(pos, np.ndarray) else pos.to_host())[starts].astype(np.int64)
        elif not level.branchless:
            starts = starts * size
    return rounded(float(np.diff(starts).max())) if len(starts) > 1 else 0.0


def known_alike(storage: Storage, like: Storage) -> None:
    """Know of a storage what is known of another one, which holds the same elsewhere."""
    if not like.format.is_dense and len(like.values) >= LARGE:
        _KNOWN[storage] = known_of(like)


def _look_once(storage: Storage) -> OperandFacts:
    """What is known of a storage, or of another one with the same levels."""
    levels = storage.format.levels, storage.format.level_sizes(storage.shape), len(storage.values), storage.device
    same, known = _IN_LEVELS.get(storage.levels[-1], (None, None)) if storage.levels else (None, None)
    if known is None or same != levels:
        known = _look(storage)
        if storage.levels:
            _IN_LEVELS[storage.levels[-1]] = levels, known
    return known


def _look(storage: Storage) -> OperandFacts:
    counts = passed_counts(storage)
    fans = tuple(rounded(below / max(above, 1)) for above, below in pairwise(counts))
    if storage.device != "cpu":
        return OperandFacts(fans)  # its arrays are not at hand
    found = OperandFacts(fans, scattered=_is_scattered(storage, counts[-1]), steady=_is_steady(storage, counts[-1]))
    if counts[-1] < LARGE or not storage.format.levels[0].ordered:
        return found
    size = storage.format.level_sizes(storage.shape)[0]
    shares = _shares(storage, _edges(size, PIECES))
    if shares is None or (imbalance := float(shares.max()) * PIECES) <= EVEN:
        return found
    heaviest = _heaviest(storage, size)
    spread = Evenness.HEAVY if heaviest > HEAVY else Evenness.UNEVEN
    return replace(found, spread=spread, imbalance=rounded(imbalance), heaviest=rounded(heaviest))


def _is_scattered(storage: Storage, count: int) -> bool:
    """Whether most entries of some windows are far from the entries before them."""
    crd = storage.levels[-1].arrays.get("crd")
    if crd is None or count < LARGE:
        return False
    seen = crd[_edges(count - WINDOW, WINDOWS - 1)[:, None] + np.arange(WINDOW)].astype(np.int64)
    far = np.abs(seen[:, 1:] - seen[:, :-1]) > NEAR
    return bool(2 * np.count_nonzero(far) >= far.size)


def _is_steady(storage: Storage, count: int) -> bool:
    """Whether nine tenths of the rows in some windows are as long as the rows before them."""
    pos = storage.levels[-1].arrays.get("pos")
    if pos is None or count < LARGE or len(pos) <= WINDOW:
        return False
    seen = np.diff(pos[_edges(len(pos) - WINDOW - 1, WINDOWS - 1)[:, None] + np.arange(WINDOW + 1)])
    return bool(np.mean(seen[:, 1:] == seen[:, :-1]) >= STEADY)


def _edges(size: int, pieces: int) -> Index:
    """Where equal pieces begin, and where the last one ends."""
    return np.arange(pieces + 1) * size // pieces


def _heaviest(storage: Storage, size: int) -> float:
    """The share of all entries that the largest coordinate of the first level has, if that is much; else a bound.

    Only what is in a small piece with many entries can have many, so that few coordinates are looked at.
    """
    edges = _edges(size, min(size, SMALL_PIECES))
    shares = _shares(storage, edges)
    if shares is None or shares.max() <= HEAVY:
        return 0.0 if shares is None else float(shares.max())
    large = np.flatnonzero(shares > HEAVY)
    return max(_largest(storage, edges[k], edges[k + 1]) for k in large)


def _largest(storage: Storage, first: int, end: int) -> float:
    """The largest share of one coordinate of the first level, of those from ``first`` on."""
    crd = storage.levels[0].arrays.get("crd")
    coordinates = np.arange(first, end + 1)
    if crd is not None:
        begin, stop = _first_at(crd, np.array((first, end)))
        if stop - begin < end - first:
            coordinates = np.append(np.unique(crd[begin:stop]), end)
    shares = _shares(storage, coordinates)
    return 0.0 if shares is None or not len(shares) else float(shares.max())


def _shares(storage: Storage, coordinates: Index) -> NDArray[np.float64] | None:
    """The share of all entries between each two of these coordinates of the first level; None where a level does not tell."""
    sizes = storage.format.level_sizes(storage.shape)
    crd = storage.levels[0].arrays.get("crd")
    found: Index | None = coordinates if crd is None else _first_at(crd, coordinates)
    for level, data, size in list(zip(storage.format.levels, storage.levels, sizes, strict=True))[1:]:
        found = None if found is None else _below(level, data, size, found)
    return None if found is None else np.diff(found) / max(len(storage.values), 1)


def _first_at(crd: NDArray[Any], coordinates: Index) -> Index:
    """Where these coordinates would stand. NumPy makes a copy of the whole array if what is searched for is of another dtype."""
    fits = not len(coordinates) or coordinates.max() <= np.iinfo(crd.dtype).max
    return np.searchsorted(crd, coordinates.astype(crd.dtype) if fits else coordinates)


def _below(level: Level, data: LevelData, size: int, places: Index) -> Index | None:
    """Where the positions below these of the level above begin."""
    if level.branchless:
        return places
    if level.full:
        return places * size
    starts = data.arrays.get("pos")
    return None if starts is None else starts[places].astype(np.int64)


def rounded(number: float) -> float:
    """The nearest power of two, or 0: what is planned should not follow every entry."""
    if number <= 0:
        return 0.0
    fraction, exponent = frexp(number)
    return 2.0 ** (exponent if fraction > 0.75 else exponent - 1)
