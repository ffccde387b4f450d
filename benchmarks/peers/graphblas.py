"""SuiteSparse:GraphBLAS, as a user of python-graphblas calls it."""

from __future__ import annotations

from functools import cache
from typing import Any

from benchmarks.entrants import Entrant


@cache
def load() -> Any:
    """Import python-graphblas."""
    import graphblas

    graphblas.init("suitesparse")
    return graphblas


def use_threads(count: int) -> None:
    """Let GraphBLAS compute on so many threads."""
    load().ss.config["nthreads"] = count


def spmv(A: Any, x: Any) -> Entrant:
    """A x."""
    left, right = _matrix(A), load().Vector.from_dense(x)
    return _dense(lambda: left.mxv(right).new(), 0)


def min_plus(A: Any, x: Any) -> Entrant:
    """A x where + means min and * means +."""
    left, right = _matrix(A), load().Vector.from_dense(x)
    return _dense(lambda: left.mxv(right, load().semiring.min_plus).new(), float("inf"))


def spmm(A: Any, B: Any) -> Entrant:
    """A B, B dense."""
    left, right = _matrix(A), load().Matrix.from_dense(B)
    return _dense(lambda: left.mxm(right).new(), 0)


def product(A: Any, B: Any) -> Entrant:
    """GraphBLAS leaves rows unsorted until somebody needs them sorted."""
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left.mxm(right).new())


def sorted_product(A: Any, B: Any) -> Entrant:
    """A B, both sparse, and its rows sorted."""
    left, right = _matrix(A), _matrix(B)

    def compute() -> Any:
        made = left.mxm(right).new()
        made.wait()
        return made

    return _making(compute)


def masked(M: Any, A: Any, B: Any) -> Entrant:
    """Only what the mask keeps is computed; then the values of the mask are multiplied in."""
    mask, left, right = map(_matrix, (M, A, B))

    def compute() -> Any:
        return left.mxm(right).new(mask=mask.S).ewise_mult(mask, load().binary.times).new()

    return _making(compute)


def add(A: Any, B: Any) -> Entrant:
    """A + B."""
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left.ewise_add(right, load().monoid.plus).new())


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    """A + B + C, one sum after the other."""
    first, second, third = map(_matrix, (A, B, C))
    plus = load().monoid.plus
    return _making(lambda: first.ewise_add(second, plus).new().ewise_add(third, plus).new())


def _making(compute: Any) -> Entrant:
    return Entrant(compute, lambda: load().io.to_scipy_sparse(compute(), format="csr"))


def _dense(compute: Any, fill: float) -> Entrant:
    return Entrant(compute, lambda: compute().to_dense(fill))


def _matrix(A: Any) -> Any:
    return load().Matrix.from_csr(A.indptr, A.indices, A.data, ncols=A.shape[1])
