"""The properties of loops, and a check that the text of a kernel has all of them.

A loop that loses a reduction, the memory that each of its threads has for itself, or an atomic update still compiles: it computes something
else, now and then. So the emitter notes each property that it prints, and a kernel is complete only when every property was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.outside import walk_outside
from sparseloom.loops.routines import allocated_in

THREADS = "its threads"
FACTOR = "its factor"
COUNTDOWN = "a countdown of each thread"
ATOMIC = "its atomic update"
TOTAL = "its total over units"
_IN_ORDER = (ir.LoopKind.SERIAL, ir.LoopKind.UNROLLED)  # one iteration after another has no copies to combine
_SPREAD = (*ir.GPU_KINDS, ir.LoopKind.WIDE)  # the launch says how many units there are, and a wide loop moves all that it runs over


def reduction(one: ir.Reduction) -> str:
    """The property that copies of a scalar are combined."""
    return f"the reduction {one.op} of {one.var.name}"


def private(array: ir.Array) -> str:
    """The property that a thread has an array for itself."""
    return f"a {array.name} of each thread"


def private_arrays(stmt: ir.Stmt) -> list[ir.Array]:
    """The arrays that a thread which runs a statement makes for itself; pieces are handed over to all."""
    made = allocated_in(walk_outside(stmt, (ir.LoopKind.THREADS,)))
    return [array for array in made if array.space is not ir.MemorySpace.PIECES]


def properties(root: Node) -> Iterator[tuple[Node, str]]:
    """Everything that the text of a kernel must say of its loops and stores, each with the node that says it."""
    regions = {id(n.loop) for n in walk(root) if isinstance(n, ir.Team)}
    for n in walk(root):
        match n:
            case ir.Team(first):
                yield from ((n, private(array)) for array in private_arrays(first))
                yield n, THREADS
                if _polls(n):
                    yield n, COUNTDOWN
            case ir.For():
                yield from ((n, said) for said in _of_loop(n, id(n) in regions))
            case ir.While(factor=factor) if factor:
                yield n, FACTOR
            case ir.Store(atomic=True):
                yield n, ATOMIC
            case ir.Shuffle():
                yield n, TOTAL


def _of_loop(loop: ir.For, in_team: bool) -> Iterator[str]:
    if loop.kind not in _IN_ORDER:
        yield from map(reduction, loop.reduces)
    if loop.factor and loop.kind not in _SPREAD:
        yield FACTOR
    if loop.kind is ir.LoopKind.THREADS:
        yield from map(private, private_arrays(loop.body))
        yield THREADS
        if not in_team and _polls(loop):
            yield COUNTDOWN


def _polls(region: ir.Stmt) -> bool:
    """Whether the threads of a region count down to when they look whether to go on."""
    return any(isinstance(n, ir.Poll) for n in walk(region))


class WrittenProperties:
    """The properties printed so far. Nodes are compared by identity, because two equal loops need their own text each."""

    def __init__(self) -> None:
        self._found: set[tuple[int, str]] = set()

    def note(self, n: Node, *said: str) -> None:
        """The text now says this of a node."""
        self._found.update((id(n), one) for one in said)

    def check(self, root: Node) -> None:
        """Raise ``CompilerBug`` at the first property that no text was written for."""
        for n, said in properties(root):
            if (id(n), said) not in self._found:
                raise CompilerBug(n, f"the text of a kernel says {said}")
