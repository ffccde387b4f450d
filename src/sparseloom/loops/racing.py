"""Parallel loops as the loop interpreter watches them: which iterations touched which location, and whether there was a barrier in between.

All threads run the code of a block or a warp outside the loops over its threads: all of them read, one of them stores for all, and each
fills a part. So there must be a barrier before the others read what one has stored, and another one before it stores there again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.loops.memory import Cells
from sparseloom.loops.nodes import Array, LoopKind, MemorySpace


class RaceFound(SparseloomError):
    """Two iterations of one parallel loop touched one location, and at least one of them wrote it without an atomic."""


class Settled(NamedTuple):
    """A launch whose units have at most one iteration each: the threads of a block, and of how many lanes the warps are."""

    threads: int
    lanes: int  # of what stands for a warp
    warp: int  # of a warp of the processor


_Who = tuple[str, int]  # the name of what runs, and its number
_MANY = ("several iterations", 0)
_ONE_OF_ALL = ("the code around its threads", 0)
_ALL, _FIRST, _FILLING = ("all threads", 0), ("the thread that stores for all", 0), ("the threads that fill", 0)
_UNNUMBERED = (_MANY, _ONE_OF_ALL, _ALL, _FIRST, _FILLING)


class _Watch:
    """One running parallel loop: the current iteration, and for every location touched so far the iteration that did, or ``_MANY``."""

    def __init__(self, label: str, place: str = "one parallel loop") -> None:
        self.label, self.place = label, place
        self.who = _ONE_OF_ALL
        self.seen: dict[tuple[int, int], dict[str, _Who]] = {}

    def begin(self, iteration: int) -> None:
        """Start an iteration."""
        self.who = (self.label, iteration)

    def touch(self, cells: WatchedCells, place: int, how: str) -> None:
        """Note an access: ``reader``, ``writer`` or ``atomic``. Only reads, or only atomics, may be shared."""
        self._note(cells, place, how, self.who)

    def _note(self, cells: WatchedCells, place: int, how: str, by: _Who) -> None:
        touched = self.seen.setdefault((id(cells), place), {})
        for other in ("reader", "writer", "atomic"):
            who = touched.get(other, by)
            if who != by and not how == other != "writer":
                both = f"{_called(who)} ({other}) and by {_called(by)} ({how})"
                raise RaceFound(f"{cells.name}[{place}] is touched by {both} of {self.place}")
        if touched.setdefault(how, by) != by:
            touched[how] = _MANY


class _Threads(_Watch):
    """The threads or warps of one block, or the lanes of one warp, since their last barrier.

    They do not wait for each other at the end of their loops. Iterations of several loops are the same thread if they have the same number,
    counted from where their loop begins. ``several`` says whether there is more than one thread, once that is settled.
    """

    def __init__(self, label: str, around: str, several: bool) -> None:
        super().__init__(label, f"one {around}, with no barrier between")
        self.around, self.several, self.first = around, several, 0

    def begin(self, iteration: int) -> None:
        super().begin(iteration - self.first)

    def touch(self, cells: WatchedCells, place: int, how: str) -> None:
        by = self.who
        if by is _ONE_OF_ALL and self.several:
            if cells.is_private:
                return
            by = _FILLING if cells.is_filling else _ALL if how == "reader" else _FIRST
        self._note(cells, place, how, by)


class _BlockWatch(_Watch):
    """The running blocks of a kernel, and the threads of the current one."""

    def __init__(self, label: str, several: bool) -> None:
        super().__init__(label)
        self.threads = _Threads("thread", "block", several)

    def begin(self, iteration: int) -> None:
        super().begin(iteration)
        self.threads.seen.clear()


class _WarpWatch:
    """The running warps of a block, and the lanes of the current one."""

    def __init__(self, warps: _Watch, several: bool) -> None:
        self.warps, self.lanes = warps, _Threads("lane", "warp", several)

    def begin(self, iteration: int) -> None:
        """Start a warp."""
        self.warps.begin(iteration)
        self.lanes.seen.clear()


def _called(who: _Who) -> str:
    return who[0] if who in _UNNUMBERED else f"iteration {who[0]} = {who[1]}"


class Tracker:
    """The parallel loops that are running, outermost first. What threads touch is kept from barrier to barrier."""

    def __init__(self) -> None:
        self.loops: list[_Watch] = []
        self.settled: Settled | None = None

    @property
    def depth(self) -> int:
        """How many loops are running."""
        return len(self.loops) - self._among_threads

    @property
    def _among_threads(self) -> bool:
        """Whether none of the innermost iterations that are watched runs."""
        return bool(self.loops) and self.loops[-1].who is _ONE_OF_ALL

    def _around(self) -> _Threads | None:
        """The threads of the block or the warp whose code around them runs."""
        last = self.loops[-1] if self._among_threads else None
        return last if isinstance(last, _Threads) else None

    def enter(self, variable: str, kind: LoopKind, run: range) -> _Watch | _WarpWatch:
        """Begin a parallel loop with these iterations."""
        threads = self._around()
        self._require_units(variable, kind, len(run), threads)
        if kind is LoopKind.GPU_BLOCK:
            blocks = _BlockWatch(variable, self.settled is not None and self.settled.threads > 1)
            self.loops += [blocks, blocks.threads]
            return blocks
        if threads is None:
            self.loops.append(_Watch(variable))
        else:
            threads.label, threads.first = "warp" if kind is LoopKind.GPU_WARP else "thread", run.start
            self._meet(threads)
        if kind is not LoopKind.GPU_WARP:
            return self.loops[-1]
        warps = _WarpWatch(self.loops[-1], self.settled is not None and self.settled.lanes > 1)
        self.loops.append(warps.lanes)
        return warps

    def leave(self, watch: _Watch | _WarpWatch) -> None:
        """End the innermost parallel loop."""
        match watch:
            case _BlockWatch():
                del self.loops[-2:]
            case _WarpWatch(warps=warps):
                self.loops.pop()
                self.leave(warps)
            case _Threads():
                watch.who = _ONE_OF_ALL
                self._meet(watch)
            case _:
                self.loops.pop()

    def _meet(self, threads: _Threads) -> None:
        """The lanes of a warp meet where their loops begin and end, until it is settled where they wait for each other."""
        if threads.around == "warp" and self.settled is None:
            threads.seen.clear()

    def _require_units(self, variable: str, kind: LoopKind, count: int, threads: _Threads | None) -> None:
        """In a settled launch each iteration has a unit of its own."""
        if self.settled is None or kind not in (LoopKind.GPU_WARP, LoopKind.GPU_THREAD):
            return
        block, lanes, _ = self.settled
        in_warp = threads is not None and threads.around == "warp"
        units = block // lanes if kind is LoopKind.GPU_WARP else lanes if in_warp else block
        if count > units:
            raise CompilerBug(variable, f"a loop over {units} units has at most as many iterations, not {count}")

    def barrier(self) -> None:
        """Let the threads of a block, or the lanes of a warp, wait for each other."""
        if not self._among_threads:
            raise CompilerBug("barrier", "a barrier is reached by all threads of a block, not by some of them")
        self.loops[-1].seen.clear()

    def find(self, count: int) -> None:
        """Let so many warps of a block find something at the same time. They wait for each other."""
        threads = self._around()
        if self.settled is None or threads is None or threads.around != "block" or count * self.settled.warp > self.settled.threads:
            raise CompilerBug("find", f"{count} warps of a block find something together, so that there are as many, and all come")
        self.barrier()

    def reached(self, lanes: int, found: int) -> int:
        """What so many lanes have found together, all of which must have come."""
        if self.settled is not None:
            threads = self._around()
            together = 1 if threads is None else self.settled.lanes if threads.around == "warp" else self.settled.warp
            if lanes != together:
                raise CompilerBug("search", f"a search is reached by all {lanes} lanes that search together, not by {together} of them")
        return found


class WatchedCells(Cells):
    """Cells of a kernel with parallel loops. An array is private to the loops inside which it was allocated."""

    def __init__(self, array: Array, tracker: Tracker, *given: Any) -> None:
        super().__init__(array, *given)
        self.tracker, self.depth = tracker, 0
        self.is_private = array.space is MemorySpace.LOCAL  # each thread has one for itself, wherever it is made
        self.is_filling = False

    def allocate(self, size: int) -> None:
        super().allocate(size)
        self.depth = self.tracker.depth

    def _touch(self, place: int, how: str) -> None:
        for loop in self.tracker.loops[self.depth :]:
            loop.touch(self, place, how)

    def load(self, place: int) -> Any:
        """The element at ``place``."""
        self._touch(place, "reader")
        return self.peek(place)

    def load_number(self, place: int) -> Any:
        """The element at ``place`` as a Python number."""
        self._touch(place, "reader")
        return self.peek_number(place)

    def store(self, place: int, value: Any) -> None:
        self._touch(place, "writer")
        super().store(place, value)

    def store_atomic(self, place: int, value: Any) -> None:
        """Set the element at ``place`` as part of an atomic update."""
        self._touch(place, "atomic")
        super().store(place, value)

    def fill(self, begin: int, count: int, value: Any) -> None:
        self.is_filling = True
        super().fill(begin, count, value)
        self.is_filling = False
