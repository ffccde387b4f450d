"""Kernels built by hand, for the tests of the loop IR and its targets."""

from __future__ import annotations

from sparseloom.core.dtypes import FLOAT64, INT32, INT64, DType
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Assign,
    Cast,
    Declare,
    Expr,
    For,
    Function,
    If,
    Load,
    LoopKind,
    Op,
    Param,
    Poll,
    Role,
    Store,
    Var,
    add,
    block,
    compare,
    constant,
)
from sparseloom.loops.routines import grow

i, p, j, n = Var("i"), Var("p"), Var("j"), Var("n")


def wide(array: Array, index: Expr) -> Expr:
    """An index array's element as int64."""
    return Cast(Load(array, index), INT64)


def spmv(names: tuple[str, ...] = ("A2_pos", "A2_crd", "A_vals", "x_vals", "y_vals", "n", "i", "p", "j", "sum")) -> Function:
    """Sparse matrix times vector; the names can be anything."""
    pos, crd = Array(names[0], INT32), Array(names[1], INT32)
    values, x, y = (Array(name, FLOAT64) for name in names[2:5])
    size, row, place, column = map(Var, names[5:9])
    total = Var(names[9], FLOAT64)
    product = Op("multiply", (Load(values, place), Load(x, column)), FLOAT64)
    return Function(
        "spmv",
        (*(Param(a, Role.INPUT) for a in (pos, crd, values, x)), Param(size, Role.SIZE), Param(y, Role.OUTPUT)),
        For(
            row,
            ZERO,
            size,
            block(
                Poll(),
                Declare(total, constant(0, FLOAT64)),
                For(
                    place,
                    wide(pos, row),
                    wide(pos, add(row, ONE)),
                    block(Declare(column, wide(crd, place), "coordinate"), Assign(total, Op("add", (total, product), FLOAT64))),
                ),
                Store(y, row, total),
            ),
        ),
    )


def positives(dtype: DType = FLOAT64) -> Function:
    """Append every positive element of x to an array that grows; say how many there are."""
    x, kept = Array("x", dtype), Array("kept", dtype)
    count, capacity = Var("count"), Var("capacity")
    return Function(
        "positives",
        (Param(x, Role.INPUT), Param(n, Role.SIZE), Param(kept, Role.GROWN), Param(count, Role.COUNT)),
        block(
            Declare(capacity, ZERO),
            Allocate(kept, capacity),
            For(
                i,
                ZERO,
                n,
                If(
                    compare("greater", Load(x, i), constant(0, dtype)),
                    block(
                        grow(kept, capacity, add(count, ONE)),
                        Store(kept, count, Load(x, i)),
                        Assign(count, add(count, ONE)),
                    ),
                ),
            ),
        ),
    )


def elementwise(name: str, arguments: tuple[DType, ...], result: DType) -> Function:
    """``y[i] = name(x0[i], x1[i], ...)``."""
    arrays = [Array(f"x{k}", dtype) for k, dtype in enumerate(arguments)]
    y = Array("y", result)
    return Function(
        f"{name}_of_{arguments[0]}",
        (*(Param(a, Role.INPUT) for a in arrays), Param(n, Role.SIZE), Param(y, Role.OUTPUT)),
        For(i, ZERO, n, Store(y, i, Op(name, tuple(Load(a, i) for a in arrays), result))),
    )


def histogram(dtype: DType, op: str, atomic: bool, kind: LoopKind = LoopKind.THREADS) -> Function:
    """``y[key[i]] = y[key[i]] op x[i]`` in parallel."""
    key, x, y = Array("key", INT64), Array("x", dtype), Array("y", dtype)
    return Function(
        "histogram",
        (Param(key, Role.INPUT), Param(x, Role.INPUT), Param(n, Role.SIZE), Param(y, Role.OUTPUT)),
        For(i, ZERO, n, Store(y, Load(key, i), Load(x, i), op, atomic), kind),
    )
