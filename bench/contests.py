"""The kernels that are measured: who takes part on one matrix or tensor, and what the fastest possible would move."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import sparseloom as sl
from data import another, numbers, room
from entrants import Entrant, filling
from hand import TUNED_RANK, TUNED_WIDTH, hand

OURS = "Sparseloom"
HAND, TUNED = "same loop in C", "tuned C"
Peers = Mapping[str, ModuleType]


@dataclass(frozen=True)
class Field:
    """Everybody who computes one thing on one operand, and the bytes that must pass between memory and core: everything once.

    ``absent`` says why somebody cannot take part, one word first: "refused: ...".
    """

    entrants: dict[str, Entrant]
    reference: Callable[[], Any]
    bytes_moved: int
    absent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Contest:
    """One kernel. ``target`` is the most that our time may be, as a multiple of the same loop in C."""

    name: str
    statement: str
    on_tensors: bool
    field: Callable[[sl.Tensor, Peers], Field]
    target: float | None = None


def spmv(matrix: sl.Tensor, peers: Peers) -> Field:
    A, x, y = matrix.to_scipy(), numbers("x", matrix.shape[1]), room(matrix.shape[0])
    kernel = sl.program(SPMV.statement, formats={"A": "csr"})
    entrants = {
        OURS: filling(kernel.bind(matrix, x, out=y).start, y),
        HAND: hand("spmv", y, matrix, x, len(y)),
        **peer_entrants("spmv", peers, A, x),
    }
    return Field(entrants, lambda: A @ x, stored_bytes(matrix) + x.nbytes + y.nbytes)


def spmm(matrix: sl.Tensor, peers: Peers) -> Field:
    A, B, C = matrix.to_scipy(), numbers("B", matrix.shape[1], TUNED_WIDTH), room(matrix.shape[0], TUNED_WIDTH)
    kernel = sl.program(SPMM.statement, formats={"A": "csr"})
    entrants = {
        OURS: filling(kernel.bind(matrix, B, out=C).start, C),
        HAND: hand("spmm", C, matrix, B, *C.shape),
        TUNED: hand("tuned_spmm", C, matrix, B, len(C)),
        **peer_entrants("spmm", peers, A, B),
    }
    return Field(entrants, lambda: A @ B, stored_bytes(matrix) + B.nbytes + C.nbytes)


def mttkrp(tensor: sl.Tensor, peers: Peers) -> Field:
    C, D = (numbers(name, size, TUNED_RANK) for name, size in zip("CD", tensor.shape[1:], strict=True))
    A = room(tensor.shape[0], TUNED_RANK)
    kernel = sl.program(MTTKRP.statement, formats={"B": "csf(3)"})
    entrants = {
        OURS: filling(kernel.bind(tensor, C, D, out=A).start, A),
        HAND: hand("mttkrp", A, tensor, C, D, *A.shape),
        TUNED: hand("tuned_mttkrp", A, tensor, C, D, len(A)),
    }
    if "Numba" in peers:
        levels = [array for level in tensor.storage.levels for array in level.arrays.values()]
        entrants["Numba"] = peers["Numba"].mttkrp(levels, tensor.storage.values, C, D, len(A))

    def reference() -> Any:
        i, k, l = tensor.to("coo(3)").storage.levels  # noqa: E741
        expected = np.zeros_like(A)
        terms = tensor.storage.values[:, None] * C[k.arrays["crd"]] * D[l.arrays["crd"]]
        np.add.at(expected, i.arrays["crd"], terms)
        return expected

    return Field(entrants, reference, stored_bytes(tensor) + A.nbytes + C.nbytes + D.nbytes)


def add(matrix: sl.Tensor, peers: Peers) -> Field:
    other = another(matrix)
    A, B = matrix.to_scipy(), other.to_scipy()
    kernel = sl.program(ADD.statement, formats=dict.fromkeys("ABC", "csr"))
    run = kernel.bind(matrix, other)
    total = run()
    ours = Entrant(run, lambda: run().to_scipy())
    return Field({OURS: ours, **peer_entrants("add", peers, A, B)}, lambda: A + B, sum(map(stored_bytes, (matrix, other, total))))


def fused(matrix: sl.Tensor, peers: Peers) -> Field:
    other, x, y = another(matrix), numbers("x", matrix.shape[1]), room(matrix.shape[0])
    A, B = matrix.to_scipy(), other.to_scipy()
    kernel = sl.program(FUSED.statement, formats=dict.fromkeys("AB", "csr"))
    entrants = {OURS: filling(kernel.bind(matrix, other, x, out=y).start, y), **peer_entrants("fused", peers, A, B, x)}
    return Field(entrants, lambda: (A + B) @ x, stored_bytes(matrix) + stored_bytes(other) + x.nbytes + y.nbytes)


def sddmm(matrix: sl.Tensor, peers: Peers) -> Field:
    S = matrix.to_scipy()
    C, D = (numbers(name, size, TUNED_WIDTH) for name, size in zip("CD", matrix.shape, strict=True))
    kernel = sl.program(SDDMM.statement, formats={"S": "csr", "Y": "csr"})
    run = kernel.bind(matrix, C, D)
    ours = Entrant(run, lambda: run().to_scipy().data)
    entrants = {OURS: ours, **peer_entrants("sddmm", peers, S, C, D)}
    bytes_moved = stored_bytes(matrix) + matrix.storage.values.nbytes + C.nbytes + D.nbytes
    rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
    return Field(entrants, lambda: S.data * (C[rows] * D[S.indices]).sum(axis=1), bytes_moved)


def check(what: str, case: str, field: Field) -> None:
    """Stop if any answer is wrong: a fast wrong answer is worth nothing."""
    expected = field.reference()
    for name, entrant in field.entrants.items():
        answer = entrant.answer()
        error = abs(answer - expected).max() / max(abs(expected).max(), 1e-300)
        if not error < 1e-10:
            sys.exit(f"{name} computes {what} on {case} wrongly: the relative error is {error:.1e}")


def peer_entrants(kernel: str, peers: Peers, *operands: Any) -> dict[str, Entrant]:
    """The peers that know this kernel."""
    return {name: getattr(peer, kernel)(*operands) for name, peer in peers.items() if hasattr(peer, kernel)}


def stored_bytes(tensor: sl.Tensor) -> int:
    """The bytes of a tensor's arrays."""
    storage = tensor.storage
    return storage.values.nbytes + sum(array.nbytes for level in storage.levels for array in level.arrays.values())


SPMV = Contest("SpMV", "y(i) = A(i,j) * x(j)", False, spmv, 1.05)
SPMM = Contest("SpMM, 32 columns", "C(i,k) = A(i,j) * B(j,k)", False, spmm, 1.05)
MTTKRP = Contest("MTTKRP, rank 16", "A(i,r) = B(i,k,l) * C(k,r) * D(l,r)", True, mttkrp, 1.05)
ADD = Contest("A + B", "C(i,j) = A(i,j) + B(i,j)", False, add)
FUSED = Contest("(A + B) x, fused", "y(i) = (A(i,j) + B(i,j)) * x(j)", False, fused)
SDDMM = Contest("SDDMM, 32 columns", "Y(i,j) = S(i,j) * C(i,k) * D(j,k)", False, sddmm)
CONTESTS = {"spmv": SPMV, "spmm": SPMM, "mttkrp": MTTKRP, "add": ADD, "fused": FUSED, "sddmm": SDDMM}
