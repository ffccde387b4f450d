"""What is asked of sparse results: products, sums and conversions, who else computes them, and how much quicker we must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import sparseloom as sl
from benchmarks.entrants import Entrant
from benchmarks.peers.registry import Peers
from benchmarks.peers.registry import peer_entrants as prepared_entrants
from benchmarks.stand_ins import another
from benchmarks.studies import ROWS
from benchmarks.task import OURS, SORTED, Field, csr_bytes, stored_bytes

PRODUCT, SUM, THREE = "C(i,k) = A(i,j) * B(j,k)", "C(i,j) = A(i,j) + B(i,j)", "D(i,j) = A(i,j) + B(i,j) + C(i,j)"
UNORDERED, KNOWN = f"{OURS}, unordered", f"{OURS}, compute()"
SCIPY, MKL, GRAPHBLAS = "SciPy", "MKL", "GraphBLAS"
Ours = tuple[dict[str, Entrant], dict[str, str]]  # our entrants, and why others of ours are absent


@dataclass(frozen=True)
class Way:
    """One of our ways to answer a question. ``targets`` say how many times our time a peer must take, on so many threads.

    ``beside`` names others of our ways that this one is compared with, as if they were peers.
    """

    name: str
    targets: Mapping[tuple[str, int], float] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Question:
    """Something to compute on every operand of a set, on each number of threads."""

    name: str
    what: str
    operands: str  # "squares", "matrices" or "tensors"
    ways: tuple[Way, ...]
    field: Callable[[sl.Tensor, Peers, int], Field]
    threads: tuple[int, ...] = (1, 2)


def product(matrix: sl.Tensor, peers: Peers, threads: int) -> Field:
    """The product of a matrix with itself."""
    A = matrix.to_scipy()
    entrants, absent = _ours(PRODUCT, {OURS: "csr", UNORDERED: "ds~"}, threads, matrix, matrix)
    unsorted, ordered = (peer_entrants(kernel, peers, A, A) for kernel in ("product", "sorted_product"))
    entrants |= unsorted | {SORTED.format(name): entrant for name, entrant in ordered.items()}
    return Field(entrants, lambda: A @ A, stored_bytes(matrix) + csr_bytes(A @ A), absent)


def add(matrix: sl.Tensor, peers: Peers, threads: int) -> Field:
    """The sum of two matrices."""
    return _sum(SUM, "add", (matrix, another(matrix)), peers, threads)


def add_three(matrix: sl.Tensor, peers: Peers, threads: int) -> Field:
    """The sum of three matrices."""
    return _sum(THREE, "add_three", (matrix, another(matrix), another(matrix, "a third")), peers, threads)


def _sum(statement: str, kernel: str, tensors: tuple[sl.Tensor, ...], peers: Peers, threads: int) -> Field:
    given = [tensor.to_scipy() for tensor in tensors]
    total = sum(given[1:], given[0])
    entrants, absent = _ours(statement, {OURS: "csr"}, threads, *tensors)
    bytes_moved = sum(map(stored_bytes, tensors)) + csr_bytes(total)
    return Field(entrants | peer_entrants(kernel, peers, *given), lambda: total, bytes_moved, absent)


class _Absent(Exception):
    """Something of ours that there is not yet."""


def _ours(statement: str, results: Mapping[str, str], threads: int, *operands: sl.Tensor) -> Ours:
    """The statement with its result in each of these formats, and in csr with the structure known; on several threads by rows."""
    compute = partial(_computing, statement, threads, operands)
    prepared = {**{name: partial(_calling, statement, form, threads, operands) for name, form in results.items()}, KNOWN: compute}
    entrants, absent = {}, {}
    for name, prepare in prepared.items():
        try:
            run = prepare()
            run()
        except sl.SparseloomError as refusal:
            absent[name] = f"refused: {str(refusal).splitlines()[0].rstrip('.')}"
        except _Absent as missing:
            absent[name] = f"absent: {missing}"
        else:
            entrants[name] = _making(run)
    return entrants, absent


def _calling(statement: str, form: str, threads: int, operands: tuple[sl.Tensor, ...]) -> Callable[[], sl.Tensor]:
    """The whole call: the structure of the result is found, and its values."""
    return partial(_kernel(statement, form, threads), *operands)


def _computing(statement: str, threads: int, operands: tuple[sl.Tensor, ...]) -> Callable[[], sl.Tensor]:
    """The values alone: the structure was found before."""
    kernel: Any = _kernel(statement, "csr", threads)
    if not hasattr(kernel, "assemble"):
        raise _Absent("kernels have no assemble() and compute()")
    return partial(kernel.compute, *operands, out=kernel.assemble(*operands))


def _kernel(statement: str, form: str, threads: int) -> sl.Kernel:
    plain = sl.program(statement)
    formats = {**dict.fromkeys(plain.operand_names, "csr"), plain.result_name: form}
    return sl.program(statement, formats, ROWS if threads > 1 else "")


def _making(run: Callable[[], sl.Tensor]) -> Entrant:
    return Entrant(run, lambda: run().to_scipy())


def _conversion(source: str, target: str) -> Callable[[sl.Tensor, Peers, int], Field]:
    """A matrix that is stored in one format, stored in another."""

    def made(matrix: sl.Tensor, peers: Peers, threads: int) -> Field:
        given = matrix.to(source)
        A = given.to_scipy()
        entrants = {OURS: _making(lambda: given.to(target)), **peer_entrants(f"{source}_to_{target}", peers, A)}
        return Field(entrants, lambda: A, stored_bytes(given) + stored_bytes(given.to(target)))

    return made


def coo_to_csf(tensor: sl.Tensor, peers: Peers, threads: int) -> Field:
    """A tensor's coordinates converted to CSF."""
    given = tensor.to("coo(3)")
    ours = Entrant(lambda: given.to("csf(3)"), lambda: _arrays(given.to("csf(3)")))
    return Field({OURS: ours}, lambda: _arrays(tensor), stored_bytes(given) + stored_bytes(tensor))


def _arrays(tensor: sl.Tensor) -> Any:
    levels = [array for level in tensor.storage.levels for array in level.arrays.values()]
    return np.concatenate([*levels, tensor.storage.values])


def peer_entrants(kernel: str, peers: Peers, *operands: Any) -> dict[str, Entrant]:
    """The entrants of other libraries for a kernel."""
    return prepared_entrants(kernel, peers, operands)[0]


def _sorted_targets() -> dict[tuple[str, int], float]:
    """A sorted result against the quickest peer on one thread and on two, unsorted and sorted, and against GraphBLAS, sorted."""
    quickest = {1: SCIPY, 2: MKL}
    unsorted = {(peer, threads): 0.7 for threads, peer in quickest.items()}
    ordered = {(SORTED.format(peer), threads): 1.2 for threads, peer in quickest.items()}
    return unsorted | ordered | {(SORTED.format(GRAPHBLAS), threads): 1.5 for threads in quickest}


REUSE = Way(KNOWN, beside=(OURS,))
QUESTIONS = {
    "product": Question(
        "A·A",
        PRODUCT,
        "squares",
        (Way(OURS, _sorted_targets()), Way(UNORDERED, {(SCIPY, 1): 1.0, (MKL, 2): 0.95}), REUSE),
        product,
    ),
    "add": Question("A + B", SUM, "matrices", (Way(OURS, {(SCIPY, 1): 1.0, (SCIPY, 2): 1.4}), REUSE), add),
    "add-three": Question("A + B + C", THREE, "matrices", (Way(OURS, {(SCIPY, 1): 1.1, (SCIPY, 2): 2.0}), REUSE), add_three),
    **{
        f"{source}-{target}": Question(
            f"{source} to {target}",
            f'A.to("{target}")',
            "matrices",
            (Way(OURS, {(SCIPY, 1): 1.0}),),
            _conversion(source, target),
            (1,),
        )
        for source, target in (("csr", "csc"), ("csr", "coo"), ("coo", "csr"))
    },
    "coo-csf": Question("coo to csf, order 3", 'A.to("csf(3)")', "tensors", (Way(OURS),), coo_to_csf, (1,)),
}
