"""What the planner knows of a machine: its processor, what work costs there, and from which sizes on a form of loops is the faster one.

A target says what can be done; a machine says what pays. Every number was measured on the kernels that its line names, or on those of
``make bench`` and ``benchmarks/gpu`` where it names none; a processor of another kind gets numbers of its own by ``dataclasses.replace``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from sparseloom.core.processor import far_cache, gathers_quickly, has_masks
from sparseloom.notation.nodes import Unit
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Parallelize
from sparseloom.targets.c import C
from sparseloom.targets.target import Target

CONSTANT = 256  # the largest extent that is worth a kernel of its own


@dataclass(frozen=True)
class LoopCosts:
    """What loops cost on one thread, in nanoseconds."""

    per_entry: float = 1.0  # one step of an innermost loop over entries
    per_value: float = 0.3  # one step of an innermost loop over neighbouring values
    per_insertion: float = 8.0  # an entry that is put into a row under construction, and sorted there
    per_merge: float = 2.0  # an entry that is merged with others
    per_copied: float = 0.6  # one place of a private copy of a result
    usual_fan: float = 8.0  # entries below one position where nothing is known


@dataclass(frozen=True)
class Worth:
    """From how many seconds of work on something is done at all."""

    threads: float = 50e-6  # a team takes some 10 us to start
    vectors: float = 20e-6  # for a kernel of its own
    parts: float = 300e-6  # threads that make parts of a result, whose entries are copied once more
    sums: float = 1e-6  # vectors that no compiler makes of plain loops


@dataclass(frozen=True)
class ThreadLimits:
    """How a loop is cut into pieces for threads. The numbers do not depend on how many threads there are, so that results do not."""

    pieces: int = 64
    many_pieces: int = 256  # rows can be cut further where there is more to do
    much: float = 1e-3  # seconds of work
    very_heavy: float = 1 / 4  # the share of all entries in one row from which on entries are cut, and not rows
    short_row: float = 16.0  # entries; rows of fewer take much of the time themselves
    per_row: int = 2  # entries: an empty row took as long as 1 to 2 of them (SpMV, SpMM), one of irregular length as 5 to 8
    placed: tuple[int, ...] = (32, 16, 8, 4)  # how many pieces may have places of their own in every row
    places_per_entry: int = 1  # with more, setting them to zero and adding them up takes as long as scattering the entries
    copies: int = 16  # private results; they are filled and added up
    share_of_copies: float = 1 / 4  # of the time


@dataclass(frozen=True)
class VectorLimits:
    """Innermost loops in vectors."""

    shortest: int = 4  # values; fewer do not fill a vector
    shortest_sum: int = 16  # values; fewer take as long as adding up the lanes
    long_row: float = 32.0  # entries; gathers into vectors pay from here on
    masked_row: float = 8.0  # entries; the same with masks, where much is read
    steady_row: float = 128.0  # entries, of rows that are all as long, where gathers are slow
    vector: int = 64  # bytes; with masks, rows that fill a vector pay wherever they are
    sums: int = 4  # vectors of sums of a long loop, none of which waits for another
    large: int = 1 << 20  # bytes of entries, as much as a core has close by
    streamed: int = 1 << 25  # bytes of entries, more than all cores have close by; asking ahead for them pays from here on
    stream: int = 256  # entries ahead, where rows are long
    stream_of_short: int = 128  # entries ahead, where rows are short
    far: int = 1 << 18  # bytes of rows that are found anywhere; asking ahead for them pays from here on
    ahead: int = 4  # entries
    panels: tuple[int, ...] = (256, 128)  # columns, the larger ones first
    most_panels: int = 4  # how often entries may be walked again
    reused: int = 8  # how often a row of an operand is read, at least, for a panel to be worth it
    close: int = 1 << 14  # bytes that are still in the nearest cache when they are read again
    few: int = 16  # how often they may be read again
    together: int = 4  # entries in a turn where there are no lanes


@dataclass(frozen=True)
class BlockLimits:
    """Blocks of results in registers."""

    rows: int = 6  # with two registers for each, twelve of sixteen hold sums
    lane_bytes: int = 64  # of a row
    wide_bytes: int = 128  # of a row where processors have 32 registers of 64 bytes
    many: int = 8  # wide vectors in a row, so that what is left over matters little
    near: int = 1 << 18  # bytes of an operand, half of what a core has close by; from here on a panel of it is laid out first
    panels: int = 4  # fewer are not worth laying out, nor sharing
    row_bytes: tuple[int, ...] = (64, 128, 256)  # rows of a sum inside, one block of lanes; with 512, one nest took up to 1.5 times as long
    gain: float = 1.5  # how many times as much plain loops must do for a sum inside


@dataclass(frozen=True)
class NestCosts:
    """What it costs to cut a product into several nests, in runs of an innermost loop."""

    call: float = 3_000.0  # one more nest: some microseconds
    factor: float = 0.3  # what one more factor adds to a run of the innermost loop
    start: float = 2.0  # a loop over entries that begins: its bounds are read, and its end is not foreseen
    merge: float = 2.0  # an entry that is compared with those of another operand
    convert: float = 8.0  # an entry that is stored in another order first
    sparse_write: float = 4.0  # writing an entry of a sparse temporary, where a dense value costs 1
    full: float = 0.5  # a temporary of which more than this is stored is dense
    cache: int = 1 << 20  # bytes; a temporary that fits in there may be dense in any case
    largest: int = 1 << 30  # bytes of a temporary
    gain: float = 1.5  # how many times as much as the steps one nest must do
    least: float = 4_000.0  # runs that must be saved: some 4 microseconds


@dataclass(frozen=True)
class GpuLimits:
    """Loops on a GPU, measured on an H200."""

    warps: int = 8  # of a block
    threads: int = 256  # of a block
    few_rows: int = 2_500  # so many warps, or so, keep a GPU busy
    many: float = 512.0  # entries of a row that keep a block busy
    skew: float = 4  # the longest row may have so many times the entries of the mean one,
    slack: float = 16  # and so many more
    short: float = 6.0  # entries of rows: below, a thread has one for itself
    middle: float = 64.0  # entries of rows: below, few lanes have one together
    few_lanes: int = 8
    tiled: int = 2048  # entries of a block whose products go through shared memory
    of_a_row: tuple[tuple[float, int], ...] = ((64.0, 2), (256.0, 8))  # entries of a row there: below, so many lanes add it up
    most_of_a_row: int = 16  # lanes otherwise
    # The same in a fixed order, for values of 4 and of 8 bytes: entries of a block, and of each of its threads, an odd number, so that
    # threads read different banks.
    ordered_tiles: tuple[tuple[int, int], ...] = ((3840, 15), (1792, 7))
    run: int = 128  # entries that a warp takes, of many
    short_run: int = 64  # and of few
    busy: int = 1 << 13  # warps that run at once
    long: float = 192  # entries of a row that take a warp longer than runs take to be found
    tile: int = 4096  # entries that a block adds up
    word: int = 16  # bytes that a lane moves at once
    groups: tuple[int, ...] = (2, 4, 8, 16)  # lanes that are less than a warp
    places: int = 32  # that some lanes add up one after another, of many
    few_places: int = 8  # and of few
    together: int = 4  # turns of a sum that are written out


@dataclass(frozen=True)
class Machine:
    """A processor, its units and what pays there. ``has_threads`` is asked only if there is work for threads."""

    masks: bool = True  # parts of vectors can be read
    cache: int = 1 << 25  # bytes of the largest one
    gathers: bool = True  # reading vectors from anywhere is quicker than reading their elements one by one
    units: frozenset[Unit] = frozenset(one.unit for one in C.units)
    lanes: int = C.lanes  # of a warp
    has_threads: Callable[[], bool] = field(default=lambda: True, compare=False)
    worth: Worth = Worth()
    costs: LoopCosts = LoopCosts()
    threads: ThreadLimits = ThreadLimits()
    vectors: VectorLimits = VectorLimits()
    blocks: BlockLimits = BlockLimits()
    nests: NestCosts = NestCosts()
    gpu: GpuLimits = GpuLimits()

    def running(self, target: Target) -> Machine:
        """The machine as a target uses it."""
        return replace(self, units=frozenset(one.unit for one in target.units), lanes=target.lanes)

    @property
    def eager(self) -> Machine:
        """The same machine, on which even what is small is planned, as tests do."""
        return replace(self, worth=replace(self.worth, threads=0, vectors=0, parts=0))

    def has(self, unit: Unit) -> bool:
        """Whether loops can run on a unit."""
        return unit in self.units and (unit is not Unit.CPUThread or self.has_threads())

    def runs(self, step: Primitive) -> bool:
        """Whether it has what a step asks for."""
        return not isinstance(step, Parallelize) or self.has(step.unit)

    def shares(self, seconds: float) -> bool:
        """Whether so much work is shared by threads."""
        return seconds >= self.worth.threads and self.has(Unit.CPUThread)

    def joins(self, seconds: float) -> bool:
        """Whether threads make parts of a result of so much work, which are then joined."""
        return seconds >= self.worth.parts and self.has(Unit.CPUThread)


@cache
def this_machine() -> Machine:
    """The machine that the process runs on."""
    return Machine(has_masks(), far_cache(), gathers_quickly())
