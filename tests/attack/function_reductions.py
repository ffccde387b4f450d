"""Calls of reductions, of what goes by order, and of linear algebra."""

from __future__ import annotations

from inspect import signature

import numpy as np
from attack.arrays import pick
from attack.function_call import Call, draw_axis
from attack.function_operands import DTYPES, draw_shape

import sparseloom as sl

REDUCTIONS = {
    "any": "sum prod any all mean var std count_nonzero nansum nanprod nanmean nanvar nanstd",
    "ordered": "min max argmin argmax ptp nanmin nanmax nanargmin nanargmax",
    "running": "cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod",
}
METHODS = "sum prod min max any all mean var std argmin argmax cumsum cumprod".split()
FILLING = [name for names in REDUCTIONS.values() for name in names.split() if "out" in signature(getattr(np, name)).parameters]
OF_DTYPE = "sum prod mean nansum nanprod cumsum cumprod cumulative_sum cumulative_prod".split()


def shape_of(array: np.ndarray, name: str, options: str) -> tuple[int, ...]:
    """The shape of a reduction, or what comes near where there is none."""
    try:
        return np.shape(eval(f"np.{name}(A{options})", {"np": np, "A": np.ones(array.shape)}))
    except (ValueError, TypeError, IndexError):
        return ()


def reduction(call: Call) -> None:
    """A reduction over modes."""
    rng = call.rng
    family = pick(rng, tuple(REDUCTIONS))
    name = call.function = pick(rng, REDUCTIONS[family].split())
    array = call.operand("A", "any", tame=name in ("var", "std", "nanvar", "nanstd") and rng.random() < 0.8)
    options = draw_axis(call, array.ndim, several=family != "running" and "arg" not in name)
    if family != "running" and rng.random() < 0.3:
        options += ", keepdims=True"
    if name in OF_DTYPE and rng.random() < 0.2:
        options += f", dtype={pick(rng, DTYPES['any'])!r}"
    if name in ("var", "std", "nanvar", "nanstd") and rng.random() < 0.3:
        options += ", ddof=1"
    if name.startswith("cumulative") and rng.random() < 0.3:
        options += ", include_initial=True"
    if name in FILLING and rng.random() < 0.1:
        call.plain(
            "out", np.zeros(shape_of(array, name, options), pick(rng, (np.result_type(array), "int64", "float64", "uint64", "complex128")))
        )
        ways = [f"np.{name}(A, ", f"sl.{name}(A, ", *([f"A.{name}("] if name in METHODS else [])]
        call.text = f"(lambda out: [{pick(rng, tuple(ways))}out=out{options}), out][1])(out.copy())"
    elif name in METHODS and rng.random() < 0.4:
        call.text = f"A.{name}({options.removeprefix(', ')})"
    elif hasattr(sl.array_api, name) and hasattr(np, name) and rng.random() < 0.2 and "ddof" not in options:
        call.text = f"api.{name}(A{options})"
    else:
        call.text = f"{pick(rng, ('sl', 'np'))}.{name}(A{options})"


def ordered(call: Call) -> None:
    """Sorting, and what goes by order."""
    rng = call.rng
    name = call.function = pick(
        rng, "sort argsort unique unique_values unique_counts unique_inverse unique_all nonzero argwhere flatnonzero".split()
    )
    array = call.operand("A", "any")
    space = pick(rng, ("sl", "np"))
    if name in ("sort", "argsort"):
        options = draw_axis(call, array.ndim, several=False) + (", stable=True" if name == "argsort" else "")
    elif name == "unique":
        options = "".join(f", {word}=True" for word in ("return_index", "return_inverse", "return_counts") if rng.random() < 0.4)
        options += pick(rng, ("", ", equal_nan=False"))
    else:
        options = ""
        space = "np" if name == "nonzero" and space == "np" else "sl"
    call.text = f"{space}.{name}(A{options})"


def linear(call: Call) -> None:
    """Products, diagonals and triangles."""
    rng = call.rng
    inner = int(pick(rng, (0, 1, 2, 3)))
    left = (*draw_shape(rng, int(pick(rng, (0, 1, 1, 2)))), inner)
    right = (*draw_shape(rng, int(pick(rng, (0, 0, 1)))), inner, *draw_shape(rng, int(rng.integers(2))))
    call.operand("A", "any", left if rng.random() < 0.95 else draw_shape(rng))
    call.operand("B", "any", right if rng.random() < 0.95 else draw_shape(rng), tame=True)
    k = pick(rng, (0, 1, -1, 4))
    space = pick(rng, ("sl", "np"))
    texts = {
        "matmul": pick(rng, ("A @ B", f"{space}.matmul(A, B)")),
        "dot": pick(rng, ("A.dot(B)", f"{space}.dot(A, B)")),
        "tensordot": f"{space}.tensordot(A, B, {pick(rng, (0, 1, 2, (-1, 0), ([-1], [0])))})",
        "outer": f"{space}.outer(A, B)",
        "inner": f"{space}.inner(A, B)",
        "vdot": f"{space}.vdot(A, B)",
        "vecdot": f"{space}.vecdot(A, B)",
        "kron": f"{space}.kron(A, B)",
        "diagonal": pick(rng, (f"{space}.diagonal(A, {k})", f"A.diagonal({k})")),
        "trace": pick(rng, (f"{space}.trace(A, {k})", "A.trace()")),
        "diag": f"{space}.diag(A, {k})",
        "tril": f"{space}.tril(A, {k})",
        "triu": f"{space}.triu(A, {k})",
        "norm": f"linalg.norm(A{pick(rng, ('', ', 1', ', 2', ', np.inf', ', -np.inf', ', 0', ', 3'))}{draw_axis(call, len(left))})",
        "matrix_power": f"linalg.matrix_power(A, {pick(rng, (0, 1, 2, 3))})",
    }
    call.function = pick(rng, tuple(texts))
    call.text = texts[call.function]
