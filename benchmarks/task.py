"""One thing to compute, everybody who computes it, and whether their answers are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.entrants import Entrant, filling
from benchmarks.peers.registry import Peers, peer_entrants
from sparseloom.calls.evaluation import einsum, program
from sparseloom.calls.kernel import Kernel
from sparseloom.core.errors import SparseloomError
from sparseloom.tensor.tensor import Tensor

OURS = "Sparseloom"
PLAIN, TUNED = f"{OURS}, plain", f"{OURS}, tuned"
HAND, SAME = "hand C", "same loop in C"
SORTED = "{} + sort"
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}  # of the largest number in the answer
MOST_MULTIPLICATIONS = 1e9
TUNING = 0.5  # seconds
WORTH_TUNING = 1 << 18  # bytes
Array = NDArray[Any]


@dataclass(frozen=True)
class Field:
    """Everybody who computes one thing on one operand, and the bytes that must pass between memory and core: everything once.

    ``absent`` says why somebody cannot take part, one word first: "refused: ...".
    """

    entrants: dict[str, Entrant]
    reference: Callable[[], Any]
    bytes_moved: int
    absent: Mapping[str, str] = field(default_factory=dict)
    schedule: str = ""  # what our planner chose


@dataclass(frozen=True)
class Task:
    """A statement on operands: ``result`` is the array that it fills, or the format of a sparse result.

    ``given`` are the operands as peers take them, and ``call`` the name of their function. With ``subscripts`` our planned way
    is ``einsum``, and not a bound kernel: it may choose an order.
    """

    statement: str
    operands: Mapping[str, Any]  # tensors, and arrays
    result: Array | str
    call: str
    given: Sequence[Any]
    reference: Callable[[], Any]
    by_hand: Mapping[str, Callable[[], Entrant]] = field(default_factory=dict)
    subscripts: str = ""
    semiring: str | None = None
    multiplications: float = 0  # of one nest of loops, where it may be far too many

    @property
    def formats(self) -> dict[str, Any]:
        """How every tensor is stored, the result too."""
        stored = {name: given.format for name, given in self.operands.items() if isinstance(given, Tensor)}
        result = self.statement.partition("=")[0].partition("(")[0].strip()
        return {**stored, **({result: self.result} if isinstance(self.result, str) else {})}


def everybody(task: Task, peers: Peers) -> Field:
    """All who can do a task: we in our ways, the loops by hand, and the peers."""
    entrants, absent, schedule = _ours(task)
    entrants |= {name: make() for name, make in task.by_hand.items()}
    theirs, failed = peer_entrants(task.call, peers, task.given)
    if task.call == "product":
        ordered, _ = peer_entrants("sorted_product", peers, task.given)
        theirs |= {SORTED.format(name): entrant for name, entrant in ordered.items()}
    return Field(entrants | theirs, task.reference, _bytes(task), absent | failed, schedule)


def _ours(task: Task) -> tuple[dict[str, Entrant], dict[str, str], str]:
    planned, plain = (program(task.statement, task.formats, schedule, semiring=task.semiring) for schedule in (None, ""))
    prepare: dict[str, Callable[[], Entrant]] = {
        OURS: lambda: _through_einsum(task) if task.subscripts else bound(planned, task),
        PLAIN: lambda: _one_nest(plain, task),
        TUNED: lambda: tuned(planned, task),
    }
    entrants, absent = {}, {}
    for name, make in prepare.items():
        try:
            entrants[name] = make()
            entrants[name].run()
        except SparseloomError as refusal:
            entrants.pop(name, None)
            absent[name] = f"refused: {str(refusal).splitlines()[0].rstrip('.')}"
        except Missing as missing:
            absent[name] = f"missing: {missing}"
    return entrants, absent, f"einsum {task.subscripts}" if task.subscripts else chosen_schedule(planned)


class Missing(Exception):
    """Something of ours that there is not yet."""


def bound(kernel: Kernel, task: Task) -> Entrant:
    """A kernel bound to the operands of a task."""
    operands = list(task.operands.values())
    if isinstance(task.result, np.ndarray):
        return filling(kernel.bind(*operands, out=task.result).start, task.result)
    run = kernel.bind(*operands)
    return Entrant(run, lambda: _comparable(run()))


def _one_nest(kernel: Kernel, task: Task) -> Entrant:
    if task.multiplications > MOST_MULTIPLICATIONS:
        raise Missing(f"one nest of loops would take {task.multiplications:.0e} multiplications")
    return bound(kernel, task)


def tuned(kernel: Kernel, task: Task) -> Entrant:
    """A kernel that was tuned on the operands of a task."""
    if _bytes(task) < WORTH_TUNING:
        raise Missing("there is too little to do to measure several schedules")
    found = kernel.tune(*task.operands.values(), seconds=TUNING, keep=False)
    if len(found) > 1:
        raise Missing("a product that is cut into statements is tuned one by one")
    return bound(program(task.statement, task.formats, found[0].best, semiring=task.semiring), task)


def _through_einsum(task: Task) -> Entrant:
    operands = list(task.operands.values())
    return Entrant(lambda: einsum(task.subscripts, *operands), lambda: _comparable(einsum(task.subscripts, *operands)))


def chosen_schedule(kernel: Kernel) -> str:
    """What the planner chose for the operands that a kernel was last bound to."""
    return str(kernel.plan)


def _comparable(tensor: Tensor) -> Any:
    """Dense results as arrays, matrices as SciPy has them, others as their values, entry by entry."""
    if tensor.format.is_dense:
        return tensor.to_numpy()
    return tensor.to_scipy() if str(tensor.format) == "csr" else tensor.storage.values


def _bytes(task: Task) -> int:
    operands = {id(given): given for given in task.operands.values()}
    read = sum(stored_bytes(given) if isinstance(given, Tensor) else given.nbytes for given in operands.values())
    if isinstance(task.result, np.ndarray):
        return read + task.result.nbytes
    made = task.reference()
    return read + (made.nbytes if isinstance(made, np.ndarray) else csr_bytes(made))


def stored_bytes(tensor: Tensor) -> int:
    """The bytes of a tensor's arrays."""
    storage = tensor.storage
    return storage.values.nbytes + sum(array.nbytes for level in storage.levels for array in level.arrays.values())


def csr_bytes(matrix: Any) -> int:
    """The bytes of a SciPy matrix."""
    return int(sum(array.nbytes for array in (matrix.indptr, matrix.indices, matrix.data)))


def faults(field: Field, tolerance: float) -> dict[str, str]:
    """Whose answers are wrong, and by how much: a fast wrong answer is worth nothing."""
    expected = field.reference()
    found = {name: _fault(entrant, expected, tolerance) for name, entrant in field.entrants.items()}
    return {name: fault for name, fault in found.items() if fault}


def _fault(entrant: Entrant, expected: Any, tolerance: float) -> str:
    """What is wrong with an answer, if anything is."""
    try:
        error = _error(entrant.answer(), expected)
    except Exception as why:  # noqa: BLE001 - another library may raise anything, and must not end the run
        return f"failed: {(str(why).splitlines() or [type(why).__name__])[0]}"
    return "" if error < tolerance else f"wrong: the relative error is {error:.1e}"


def _error(answer: Any, expected: Any) -> float:
    if isinstance(expected, np.ndarray):
        found = answer.data if hasattr(answer, "indptr") else np.asarray(answer)
        if found.size != expected.size:
            return np.inf
        finite = np.isfinite(expected.ravel())
        if not np.array_equal(np.isfinite(found.ravel()), finite):
            return np.inf
        answer, expected = found.ravel()[finite], expected.ravel()[finite]
        return float(abs(answer - expected).max(initial=0.0) / max(abs(expected).max(initial=0.0), 1e-300))
    if isinstance(answer, np.ndarray):
        answer = type(expected)(answer)
    return float(abs(answer - expected).max() / max(abs(expected).max(), 1e-300))
