"""From operands to the kernel that was called on their like before, by one look into one cache.

Operators, reductions, ``einsum`` and kernels are *doors*: each makes a statement of its operands, and what it makes follows from their
formats, dtypes, sizes and fills, and roughly from how many entries they have. So the second time neither notation is built, nor a problem
posed, nor a plan made::

    "@" on a csr matrix of 100 x 100 float64 and an array of 100 float64   ->   the way into the compiled kernel

Where a call needs more than its kernel (an operand is converted, say), no way is known, but its specialization is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import DType
from sparseloom.core.settings import settings
from sparseloom.core.trees import walk
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.iteration.foralls import relations_of
from sparseloom.notation.nodes import Assign, TensorVar
from sparseloom.plan.statistics import Statistics
from sparseloom.programs.calling import IndexOverflow, address_of
from sparseloom.programs.chain import Chain, has_nan, temporary
from sparseloom.programs.execution import Specialization, specialize
from sparseloom.programs.laying import LAYS, NUMBERS, TEMPORARY, Kind, Laid, lay, spelled
from sparseloom.programs.ways import Destination, Filled, Way, way_to
from sparseloom.targets.target import Calling

MOST_WAYS = 1024
MOST_SPECIALIZED = 1024


@dataclass(frozen=True, slots=True)
class Known:
    """A way that was gone before. ``numbers`` are the operands that become arrays of one value, and the dtypes of these."""

    way: Way
    special: Specialization
    numbers: tuple[tuple[int, DType], ...] = ()

    def make(self, operands: Sequence[Any], laid: list[Laid]) -> Storage | None:
        """The result of the same kernel on these operands, which lie before it as ``laid``; None where it takes the long way after all."""
        try:
            return self.way.make(operands, laid) if not self.numbers else self._with_numbers(operands, laid)
        except (IndexOverflow, MemoryError):
            return None

    def _with_numbers(self, operands: Sequence[Any], laid: list[Laid]) -> Storage | None:
        for k, dtype in self.numbers:
            number = np.asarray(operands[k], dtype)
            laid[k] = (*laid[k][:3], (address_of(number),), number)
        return self.way.make(operands, laid)


@dataclass(frozen=True, slots=True)
class KnownChain:
    """The ways of statements that run one after another: what one makes stands behind the operands for those that follow.

    ``temporaries`` are what all but the last make.
    """

    ways: tuple[Known, ...]
    special: Chain
    temporaries: tuple[TensorVar, ...]

    def make(self, operands: Sequence[Any], laid: list[Laid]) -> Storage | None:
        """The result of the same kernels on these operands; None where it takes the long way after all."""
        at_hand, before = list(operands), list(laid)
        try:
            result = self._make(at_hand, before)
        except MemoryError:
            return None
        return None if result is None or (self.special.whole is not None and has_nan(result.values)) else result

    def _make(self, at_hand: list[Any], before: list[Laid]) -> Storage | None:
        """What the last statement makes, after those before it."""
        for known, tensor in zip(self.ways, self.temporaries, strict=False):
            if type(known.way) is Filled:
                made: Any = known.way.values(before)
                if made is None:
                    return None
                before.append((TEMPORARY, 0, len(made), (address_of(made),), None))
            else:
                made = known.make(at_hand, before)
                if made is None or made.fill != tensor.fill or made.index_dtype != tensor.index_dtype:
                    return None
                before.append(lay(made))  # type: ignore[arg-type]
            at_hand.append(made)
        return self.ways[-1].make(at_hand, before)


class Other(Enum):
    """What may be known of a call besides its way."""

    NO_WAY = "more is to be done than calling a kernel"
    BY_VALUE = "it depends on the numbers among the operands"


class Doors:
    """The ways that are known, by door and operands. It holds nothing of what a caller passed, and is emptied when it is full."""

    def __init__(self, most: int = MOST_WAYS) -> None:
        self._most = most
        self._known: dict[Hashable, Known | KnownChain | Other] = {}

    def through(self, door: Hashable, *operands: Any) -> Storage | None:
        """The result, if the way is known. Operands are tensors, storages, which are valid, arrays, numbers, and matrices of SciPy."""
        found = self.enter(door, operands)
        return None if found is None else found[0].make(operands, found[1])

    def enter(self, door: Hashable, operands: Sequence[Any]) -> tuple[Known | KnownChain, list[Laid]] | None:
        """The way of a call and how its operands are laid, if it is known."""
        laid = []
        for operand in operands:
            how = LAYS.get(type(operand), lay)
            each = how(operand)
            if each is None:
                return None
            laid.append(each)
        key = _key(door, operands, laid)
        known = self._known.get(key)
        if known is Other.BY_VALUE:
            known = self._known.get((key, *_values(operands)))
        return (known, laid) if isinstance(known, Known | KnownChain) else None

    def values(self, door: Hashable, left: Any, right: Any) -> NDArray[Any] | None:
        """The values of a dense result of two operands, if the way is known: the shortest way there is, for those who call all the time."""
        first, second = lay(left), lay(right)
        if first is None or second is None:
            return None
        known = self._known.get(_key(door, (left, right), (first, second)))
        return known.way.values((first, second)) if type(known) is Known and type(known.way) is Filled and not known.numbers else None

    def learn(
        self,
        door: Hashable,
        operands: Sequence[Any],
        special: Specialization | Chain,
        places: Mapping[str, int],
        numbers: Mapping[int, DType] | None = None,
        by_value: bool = False,
        by_name: bool = False,
    ) -> None:
        """Keep in mind the way of a call that was just made on these operands.

        ``places`` says where among them those of the statement are, ``numbers`` what numbers became that are not part of it. Where operands
        go ``by_name``, one that comes several times is several to the statement.
        """
        laid: list[Any] = [lay(operand) for operand in operands]
        if None in laid or (not by_name and len({*map(id, operands)}) < len(operands) > 2):
            return
        key: Hashable = _key(door, operands, laid)
        if by_value:
            self._keep(key, Other.BY_VALUE)
            key = (key, *_values(operands))
        found = self._known.get(key)
        if found is not Other.NO_WAY and not (isinstance(found, Known) and found.special is special.current):
            current = special.current
            kinds = [each[0] for each in laid]
            way = _known_chain(current, places, kinds) if isinstance(current, Chain) else _known(current, places, kinds, numbers or {})
            self._keep(key, way or Other.NO_WAY)

    def forget(self) -> None:
        """Know nothing again."""
        self._known.clear()

    def _keep(self, key: Hashable, known: Known | KnownChain | Other) -> None:
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[key] = known


doors = Doors()
"""Those of tensors and of ``einsum``; every kernel has its own beside them, which go when it goes."""


def _key(door: Hashable, operands: Sequence[Any], laid: Sequence[Laid]) -> Hashable:
    """By what a call is known: kinds, with what is known of each operand, and what ``Statistics`` say of all of them.

    One operand in two places makes another statement than two of a kind.
    """
    if len(laid) == 1:
        return (door, settings.int32_limit, laid[0][0], laid[0][1].bit_length())
    if len(laid) == 2:
        (one, entries, size, *_), (other, more, most, *_) = laid
        return (door, settings.int32_limit, operands[0] is operands[1], one, other, (entries + more).bit_length(), size <= most)
    cheapest = sorted(range(len(laid)), key=[each[2] for each in laid].__getitem__)
    entries = sum([each[1] for each in laid])
    return (door, settings.int32_limit, *[each[0] for each in laid], entries.bit_length(), *cheapest)


def _values(operands: Sequence[Any]) -> list[Hashable]:
    """The numbers among operands."""
    return [spelled(operand) for operand in operands if isinstance(operand, NUMBERS)]  # type: ignore[arg-type]


def _known(special: Specialization, places: Mapping[str, int], kinds: Sequence[Kind], numbers: Mapping[int, DType]) -> Known | None:
    """The way into the kernel of a specialization, if calling that is all there is to do."""
    own, special = special, special.executable
    stages, plan, problem = special.stages, special.plan, special.problem
    entry = stages.loaded_entry
    if entry is None or problem.target.calling is not Calling.COMPILED or problem.is_empty:
        return None
    if plan.blocked is not None or plan.initial is not None or stages.concrete.conversions:
        return None
    initial = None if plan.assign.op is None else places[own.problem.assign.lhs.tensor.name]
    if initial is not None and not _begins_as(plan.assign.lhs.tensor, kinds[initial]):
        return None
    if problem.schedule and any(relation.promises for relation in relations_of(stages.concrete.stmt)):
        return None  # whoever says it must hear that it does not hold
    experience, formats = special.experience, {n.name: n.format for n in walk(plan.assign.rhs) if isinstance(n, TensorVar)}
    learnt = (experience.expect, experience.learn)
    extents = {var.name: size for var, size in zip(stages.lowered.result.indices, problem.shape, strict=True)}
    there = Destination(entry, stages.lowered, {**extents, **problem.sizes}, problem.shape, stages.sparse_reads, *learnt, initial)
    way = way_to(there, formats, {name: places[source] for name, source in own.sources(formats).items()})
    return None if way is None else Known(way, own, tuple(numbers.items()))


def _begins_as(result: TensorVar, kind: Kind) -> bool:
    """Whether the values of a dense result are at first those of an operand."""
    format, _, dtype, *_ = kind.what if isinstance(kind.what, tuple) else (None, None, None)
    return bool(result.format.is_dense and format == result.format and dtype == result.stored_dtype)


def _known_chain(chain: Chain, places: Mapping[str, int], kinds: Sequence[Kind]) -> KnownChain | None:
    """The ways into the kernels of a chain, if calling these is all there is to do."""
    where, found = dict(places), []
    for link in chain.links:
        known = _known(link, where, kinds, {})
        if known is None:
            return None
        found.append(known)
        where[link.problem.assign.lhs.tensor.name] = len(where)
    made = [temporary(link.problem) for link in chain.links[:-1]]
    as_expected = all(type(known.way) is not Filled or known.way.fill == tensor.fill for known, tensor in zip(found, made, strict=False))
    return KnownChain(tuple(found), chain, tuple(made)) if as_expected else None


_specialized: dict[Hashable, Specialization] = {}


def specialized(assign: Assign, operands: Mapping[str, Storage], format: Format | None, sizes: Mapping[str, int]) -> Specialization:
    """As ``execution.specialize``, for statements that come again and again."""
    shapes = tuple(storage.shape for storage in operands.values())
    key = (assign, shapes, format, tuple(sizes.items()), Statistics.of(operands), settings.int32_limit)
    found = _specialized.get(key)
    if found is None:
        if len(_specialized) >= MOST_SPECIALIZED:
            _specialized.clear()
        found = _specialized[key] = specialize(assign, operands, format, sizes=sizes)
    return found
