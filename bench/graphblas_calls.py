"""SuiteSparse:GraphBLAS, as a user of python-graphblas calls it."""

from __future__ import annotations

from typing import Any

import graphblas as gb

from entrants import Entrant


def use_threads(count: int) -> None:
    gb.ss.config["nthreads"] = count


def product(A: Any, B: Any) -> Entrant:
    """GraphBLAS leaves rows unsorted until somebody needs them sorted."""
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left.mxm(right).new())


def sorted_product(A: Any, B: Any) -> Entrant:
    left, right = _matrix(A), _matrix(B)

    def compute() -> Any:
        made = left.mxm(right).new()
        made.wait()
        return made

    return _making(compute)


def add(A: Any, B: Any) -> Entrant:
    left, right = _matrix(A), _matrix(B)
    return _making(lambda: left.ewise_add(right, gb.monoid.plus).new())


def add_three(A: Any, B: Any, C: Any) -> Entrant:
    first, second, third = map(_matrix, (A, B, C))
    return _making(lambda: first.ewise_add(second, gb.monoid.plus).new().ewise_add(third, gb.monoid.plus).new())


def _making(compute: Any) -> Entrant:
    return Entrant(compute, lambda: gb.io.to_scipy_sparse(compute(), format="csr"))


def _matrix(A: Any) -> Any:
    return gb.Matrix.from_csr(A.indptr, A.indices, A.data, ncols=A.shape[1])
