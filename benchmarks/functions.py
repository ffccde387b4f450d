"""Measure the functions of one tensor, its parts and narrow products, each beside the library that people use for it.

    make bench-functions                               all of it, in about three minutes
    make bench-functions ARGS="--only maps parts"      some families
    make bench-functions ARGS="--entries 1000000"      one size

Both sides run in turn on one thread, warm, each on objects of its own, and allocate their results anew. A time is the median of the
process's own clock, a ratio the other's time over ours: above 1 we are faster. Every answer is checked. The peer is SciPy, or PyData/Sparse
for tensors of order 3, or NumPy in a few lines where no library has the function; of products it is the best of SciPy and torch. One table,
worst first.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg as sla

import sparseloom as sl
from benchmarks.report import Table, duration, times
from benchmarks.timing import Clock, geometric_mean, race

Run = Callable[[], Any]
sp: Any = scipy.sparse
OWN: Clock = time.process_time
SIZES = (100, 1_000_000)
TARGET = 0.8


@dataclass(frozen=True)
class Contest:
    """One function: what it is called, ours, and those of others."""

    family: str
    name: str
    ours: Run
    theirs: dict[str, Run]


@dataclass(frozen=True)
class Outcome:
    """The median times of one function at one size."""

    contest: Contest
    entries: int
    ours: float
    theirs: float
    peer: str

    @property
    def ratio(self) -> float:
        """How many times as long the best peer takes."""
        return self.theirs / self.ours


def matrix_of(entries: int) -> Any:
    """A square matrix with ten entries in a row, anywhere."""
    rng, size = np.random.default_rng(7), max(entries // 10, 4)
    made = sp.csr_array(sp.random_array((size, size), density=min(entries / size**2, 1.0), rng=rng, format="csr"))
    made.data -= 0.3
    made.sort_indices()
    return made


def maps(entries: int) -> Iterator[Contest]:
    """Functions of every value, and reductions of all of them."""
    A = matrix_of(entries)
    a, P = sl.asarray(A), abs(A)
    p = sl.asarray(P)
    same: dict[str, tuple[Run, Run]] = {
        "2.5 * A": (lambda: 2.5 * a, lambda: 2.5 * A),
        "A / 3": (lambda: a / 3, lambda: A / 3),
        "-A": (lambda: -a, lambda: -A),
        "abs": (lambda: abs(a), lambda: abs(A)),
        "A ** 2": (lambda: a**2, lambda: A**2),
        "sign": (lambda: np.sign(a), lambda: A.sign()),
        "floor": (lambda: np.floor(a), lambda: A.floor()),
        "sqrt": (lambda: np.sqrt(p), lambda: P.sqrt()),
        "log1p": (lambda: np.log1p(p), lambda: P.log1p()),
        "expm1": (lambda: np.expm1(a), lambda: A.expm1()),
        "sin": (lambda: np.sin(a), lambda: A.sin()),
        "tanh": (lambda: np.tanh(a), lambda: A.tanh()),
        "arctan": (lambda: np.arctan(a), lambda: A.arctan()),
        "A > 0.2": (lambda: a > 0.2, lambda: A > 0.2),
        "A != 0": (lambda: a != 0, lambda: A != 0),
        "astype float32": (lambda: a.astype("float32"), lambda: A.astype("float32")),
        "maximum(A, 0)": (lambda: np.maximum(a, 0), lambda: A.maximum(0)),
        "copy": (lambda: a.copy(), lambda: A.copy()),
    }
    for name, (ours, theirs) in same.items():
        yield Contest("maps", name, ours, {"SciPy": theirs})
    yield Contest("maps", "evaluate 2.5 * A", lambda: sl.evaluate("C(i,j) = 2.5 * A(i,j)", A=a), {"SciPy": lambda: 2.5 * A})
    yield Contest("maps", "evaluate log1p(A)", lambda: sl.evaluate("C(i,j) = log1p(A(i,j))", A=p), {"SciPy": lambda: P.log1p()})
    yield Contest("maps", "A * A", lambda: a * a, {"SciPy": lambda: A * A})
    whole: dict[str, tuple[Run, Run]] = {
        "sum": (lambda: a.sum(), lambda: A.sum()),
        "norm": (lambda: np.linalg.norm(a), lambda: sla.norm(A)),
        "max": (lambda: a.max(), lambda: A.max()),
        "count_nonzero": (lambda: a.count_nonzero(), lambda: A.count_nonzero()),
        "sum of squares": (lambda: sl.einsum("ij,ij->", a, a), lambda: (A * A).sum()),
        "trace": (lambda: sl.trace(a), lambda: A.trace()),
        "sum(axis=1)": (lambda: a.sum(axis=1), lambda: A.sum(axis=1)),
        "sum(axis=0)": (lambda: a.sum(axis=0), lambda: A.sum(axis=0)),
        "max(axis=1)": (lambda: a.max(axis=1), lambda: A.max(axis=1)),
        "argmax(axis=1)": (lambda: a.argmax(axis=1), lambda: A.argmax(axis=1)),
        "argmin(axis=0)": (lambda: a.argmin(axis=0), lambda: A.argmin(axis=0)),
        "argmax": (lambda: a.argmax(), lambda: A.argmax()),
    }
    for name, (ours, theirs) in whole.items():
        yield Contest("reductions", name, ours, {"SciPy": theirs})


def parts(entries: int) -> Iterator[Contest]:
    """Parts of a matrix."""
    A = matrix_of(entries)
    a, n = sl.asarray(A), A.shape[0]
    rng = np.random.default_rng(3)
    rows, ascending, mask = rng.integers(0, n, n // 2), np.arange(0, n, 3), rng.random(n) < 0.5
    C = A.tocsc()
    c = sl.asarray(C)
    same: dict[str, tuple[Run, Run]] = {
        "A[:, lo:hi]": (lambda: a[:, n // 4 : n // 2], lambda: A[:, n // 4 : n // 2]),
        "A[lo:hi]": (lambda: a[n // 4 : n // 2], lambda: A[n // 4 : n // 2]),
        "A[lo:hi, lo:hi]": (lambda: a[n // 4 : n // 2, n // 4 : n // 2], lambda: A[n // 4 : n // 2, n // 4 : n // 2]),
        "A[::2]": (lambda: a[::2], lambda: A[::2]),
        "A[:, ::2]": (lambda: a[:, ::2], lambda: A[:, ::2]),
        "A[rows]": (lambda: a[rows], lambda: A[rows]),
        "A[mask]": (lambda: a[mask], lambda: A[mask]),
        "A[:, columns]": (lambda: a[:, ascending], lambda: A[:, ascending]),
        "A[:, permuted]": (lambda: a[:, rows], lambda: A[:, rows]),
        "A[i]": (lambda: a[n // 2], lambda: A[[n // 2]]),
        "A[:, j]": (lambda: a[:, n // 2], lambda: A[:, [n // 2]]),
        "A[A > 0.2]": (lambda: a[a > 0.2], lambda: A[A > 0.2]),
        "csc[:, lo:hi]": (lambda: c[:, n // 4 : n // 2], lambda: C[:, n // 4 : n // 2]),
        "csc[lo:hi]": (lambda: c[n // 4 : n // 2], lambda: C[n // 4 : n // 2]),
        "tril": (lambda: sl.tril(a), lambda: sp.tril(A, format="csr")),
        "triu, k=1": (lambda: sl.triu(a, 1), lambda: sp.triu(A, 1, format="csr")),
        "diagonal": (lambda: a.diagonal(), lambda: A.diagonal()),
        "nonzero": (lambda: a.nonzero(), lambda: A.nonzero()),
        "topk(3)": (lambda: sl.topk(a, 3).values, lambda: largest_of_rows(A, 3)),
    }
    for name, (ours, theirs) in same.items():
        yield Contest("parts", name, ours, {"SciPy": theirs})


def largest_of_rows(A: Any, k: int) -> Any:
    """The largest values of every row, unstored zeros among them, without a loop over rows."""
    pos, values = A.indptr, A.data
    numbers = np.repeat(np.arange(A.shape[0]), np.diff(pos))
    order = np.lexsort((-values, numbers))
    positive = values[order] > 0
    ranks = np.arange(len(values)) - pos[numbers]
    made = np.zeros((A.shape[0], k))
    chosen = positive & (ranks < k)
    made[numbers[chosen], ranks[chosen]] = values[order][chosen]
    return made


def shapes(entries: int) -> Iterator[Contest]:
    """Other shapes and formats of a matrix."""
    A = matrix_of(entries)
    a, n = sl.asarray(A), A.shape[0]
    B = A.tocoo()
    same: dict[str, tuple[Run, Run]] = {
        "kron(A, eye(3))": (lambda: sl.kron(a, sl.eye(3)), lambda: sp.kron(A, sp.eye_array(3), format="csr")),
        "kron(eye(3), A)": (lambda: sl.kron(sl.eye(3), a), lambda: sp.kron(sp.eye_array(3), A, format="csr")),
        "reshape": (lambda: a.reshape((n // 2, n * 2)), lambda: A.reshape((n // 2, n * 2)).tocsr()),
        "vstack": (lambda: sl.vstack([a, a]), lambda: sp.vstack([A, A], format="csr")),
        "hstack": (lambda: sl.hstack([a, a]), lambda: sp.hstack([A, A], format="csr")),
        "block": (lambda: sl.block([[a, a], [a, a]]), lambda: sp.block_array([[A, A], [A, A]], format="csr")),
        "to coo": (lambda: a.to("coo"), lambda: A.tocoo(copy=True)),
        "to csc": (lambda: a.to("csc"), lambda: A.tocsc()),
        "A.T to csr": (lambda: a.T.to("csr"), lambda: A.T.tocsr()),
        "coo to csr": (lambda: sl.from_coo(B.coords, B.data, B.shape), lambda: sp.csr_array((B.data, B.coords), B.shape)),
        "to dense": (lambda: a[: min(n, 200)].to_numpy(), lambda: A[: min(n, 200)].toarray()),
        "A + A.T": (lambda: a + a.T, lambda: A + A.T),
        "roll rows": (lambda: sl.roll(a, 3, 0), lambda: A[np.roll(np.arange(n), 3)]),
        "roll columns": (lambda: sl.roll(a, 3, 1), lambda: A[:, np.roll(np.arange(n), 3)]),
        "flip rows": (lambda: sl.flip(a, 0), lambda: A[::-1]),
        "flip columns": (lambda: sl.flip(a, 1), lambda: A[:, ::-1]),
        "drop zeros": (lambda: a.to("csr", drop_zeros=True), lambda: without_zeros(A)),
    }
    for name, (ours, theirs) in same.items():
        yield Contest("shapes", name, ours, {"SciPy": theirs})


def without_zeros(A: Any) -> Any:
    """A copy without stored zeros."""
    made = A.copy()
    made.eliminate_zeros()
    return made


def tensors(entries: int) -> Iterator[Contest]:
    """Parts of a tensor of order 3, beside PyData/Sparse."""
    import sparse

    side = max(int((entries * 20) ** (1 / 3)), 4)
    s = sparse.random((side, side, side), density=min(entries / side**3, 1.0), random_state=5)
    t = sl.from_coo(s.coords, s.data, s.shape)
    lo, hi = side // 4, side // 2 + 1
    same: dict[str, tuple[Run, Run]] = {
        "t[i]": (lambda: t[lo], lambda: s[lo]),
        "t[:, j]": (lambda: t[:, lo], lambda: s[:, lo]),
        "t[:, :, k]": (lambda: t[:, :, lo], lambda: s[:, :, lo]),
        "t[i, j]": (lambda: t[lo, lo], lambda: s[lo, lo]),
        "t[lo:hi]": (lambda: t[lo:hi], lambda: s[lo:hi]),
        "t[lo:hi, :, lo:hi]": (lambda: t[lo:hi, :, lo:hi], lambda: s[lo:hi, :, lo:hi]),
        "t[t > 0.5]": (lambda: t[t > 0.5], lambda: (s * (s > 0.5)).data),
        "t.sum(axis=0)": (lambda: t.sum(axis=0), lambda: s.sum(axis=0)),
        "2.5 * t": (lambda: 2.5 * t, lambda: 2.5 * s),
        "t.reshape": (lambda: t.reshape((side * side, side)), lambda: s.reshape((side * side, side))),
        "concatenate": (lambda: sl.concatenate([t, t]), lambda: sparse.concatenate([s, s])),
        "stack": (lambda: sl.stack([t, t]), lambda: sparse.stack([s, s])),
        "roll": (lambda: sl.roll(t, 3, 1), lambda: sparse.roll(s, 3, 1)),
        "tril": (lambda: sl.tril(t), lambda: sparse.tril(s)),
    }
    for name, (ours, theirs) in same.items():
        yield Contest("tensors", name, ours, {"PyData/Sparse": theirs})


def products(entries: int) -> Iterator[Contest]:
    """Products with few columns, from the left, and of formats with diagonals and blocks."""
    import torch

    warnings.filterwarnings("ignore", "Sparse")
    torch.set_num_threads(1)
    A = matrix_of(entries)
    a, n = sl.asarray(A), A.shape[0]
    T = torch.sparse_csr_tensor(*map(torch.from_numpy, (A.indptr, A.indices, A.data)), A.shape)
    rng = np.random.default_rng(11)
    for k in (1, 2, 3, 4, 8):
        X = rng.random((n, k))
        Y = torch.from_numpy(X)
        yield Contest("products", f"A @ X, {k} wide", lambda X=X: a @ X, {"SciPy": lambda X=X: A @ X, "torch": lambda Y=Y: T @ Y})  # type: ignore[misc]
    for k in (1, 2, 4, 16):
        X = rng.random((k, n))
        yield Contest("products", f"X @ A, {k} high", lambda X=X: X @ a, {"SciPy": lambda X=X: X @ A})  # type: ignore[misc]
    Z = rng.random((n, 16))
    yield Contest("products", "Z.T @ A, 16 high", lambda: Z.T @ a, {"SciPy": lambda: Z.T @ A})
    x = rng.random(n)
    z = torch.from_numpy(x)
    yield Contest("products", "A @ x", lambda: a @ x, {"SciPy": lambda: A @ x, "torch": lambda: T @ z})
    yield Contest("products", "A.T @ x", lambda: a.T @ x, {"SciPy": lambda: A.T @ x})
    yield Contest("products", "x @ A", lambda: x @ a, {"SciPy": lambda: x @ A})
    size = max(entries // 9, 9)
    D = sp.dia_array(sp.diags_array([rng.random(size) for _ in range(9)], offsets=range(-4, 5), shape=(size, size)))
    d, v = sl.asarray(D), rng.random(size)
    yield Contest("products", "DIA @ x", lambda: d @ v, {"SciPy": lambda: D @ v})
    side = max(entries // 90, 3)
    for block in (2, 3, 4):
        few = sp.random_array((side, side), density=min(9 / side, 1.0), rng=rng, format="csr")
        R = sp.bsr_array(sp.kron(few, np.ones((block, block)), format="bsr"))
        r, w = sl.asarray(R), rng.random(R.shape[1])
        yield Contest("products", f"BSR {block}x{block} @ x", lambda r=r, w=w: r @ w, {"SciPy": lambda R=R, w=w: R @ w})  # type: ignore[misc]


FAMILIES: dict[str, Callable[[int], Iterator[Contest]]] = {
    "maps": maps, "parts": parts, "shapes": shapes, "tensors": tensors, "products": products,
}  # fmt: skip


def plain(value: Any) -> Any:
    """An answer as an array, or a sparse one as SciPy's matrix or the coordinates and values of a tensor, to compare it."""
    if isinstance(value, sl.Tensor):
        value = value.to_scipy() if value.ndim in (1, 2) and not value.format.is_dense else value.to_numpy()
    if isinstance(value, tuple):
        return np.stack(value)
    if hasattr(value, "todense") and not sp.issparse(value):
        return value.todense()
    return value.numpy() if type(value).__module__ == "torch" else value


def are_equal(ours: Any, theirs: Any) -> bool:
    """Whether two answers are the same, up to rounding."""
    one, other = plain(ours), plain(theirs)
    if not (sp.issparse(one) and sp.issparse(other)) or one.ndim != other.ndim:
        one, other = (np.ravel(each.toarray() if sp.issparse(each) else each) for each in (one, other))
        return np.allclose(one, other, rtol=1e-10, atol=1e-12)
    if one.shape != other.shape or one.dtype.kind == "b":
        return bool(one.shape == other.shape and (one != other).nnz == 0)
    return bool(abs(one - other).max() <= 1e-6)


def measured(contest: Contest, entries: int, seconds: float) -> Outcome:
    """The medians of both sides, after their answers were compared."""
    ours = contest.ours()
    for name, theirs in contest.theirs.items():
        if not are_equal(ours, theirs()):
            sys.exit(f"{contest.name}, {entries:,} entries: the answer differs from that of {name}")
    found = race({"ours": contest.ours, **contest.theirs}, seconds, OWN)
    best = min(contest.theirs, key=found.seconds)
    return Outcome(contest, entries, found.seconds("ours"), found.seconds(best), best)


def table_of(outcomes: list[Outcome]) -> Table:
    """All of them, worst first."""
    ordered = sorted(outcomes, key=lambda outcome: outcome.ratio)
    rows = [
        [f"{o.contest.family}: {o.contest.name}", f"{o.entries:,}", duration(o.ours), f"{duration(o.theirs)} ({o.peer})", times(o.ratio)]
        for o in ordered
    ]
    below = sum(outcome.ratio < TARGET for outcome in outcomes)
    note = f"{len(outcomes)} cases, {below} below {TARGET}x; geometric mean {times(geometric_mean(o.ratio for o in outcomes))}."
    return Table("Functions, one thread, time of the process", note, ["", "entries", "ours", "best peer", "theirs over ours"], rows)


def main() -> int:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(FAMILIES), help="some families")
    parser.add_argument("--entries", nargs="+", type=int, default=list(SIZES), help="stored entries of the operands")
    parser.add_argument("--match", default="", help="only functions whose names contain this")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each function (default 0.3)")
    asked = parser.parse_args()
    sl.set_threads(1)
    contests = [(c, n) for name in asked.only or FAMILIES for n in asked.entries for c in FAMILIES[name](n) if asked.match in c.name]
    outcomes = [measured(contest, entries, asked.seconds) for contest, entries in contests]
    print(table_of(outcomes).for_markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
