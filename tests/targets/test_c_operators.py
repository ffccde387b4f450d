"""Every operator on every dtype and on edge values: NumPy, the interpreter and C agree."""

from __future__ import annotations

import numpy as np
import pytest
from targets.c_harness import call, compile_all
from targets.loop_kernels import elementwise

from sparseloom.core.algebra import OPERATORS, compute, compute_dtype, result_dtype
from sparseloom.core.dtypes import BOOL, VALUE_DTYPES
from sparseloom.core.errors import DTypeError
from sparseloom.loops.interpret import run
from sparseloom.loops.nodes import ZERO, Array, Cast, For, Function, Literal, Load, Op, Param, Role, Store, Var
from sparseloom.loops.simplify import simplify

# Correctly rounded, or no rounding at all. The others come from two mathematical libraries.
EXACT = set(
    "add subtract multiply minimum maximum negative sign floor ceil trunc conjugate square real imag logical_or logical_and logical_xor "
    "logical_not isnan isinf isfinite equal not_equal less less_equal greater greater_equal where".split()
)


def edge_values(dtype, count=24, tame=False):
    """Values at which arithmetic goes wrong; ``tame`` leaves out what C's complex functions need not agree on."""
    generator = np.random.default_rng(7)
    match dtype.kind:
        case "b":
            edges = [True, False]
        case "i" | "u":
            info = np.iinfo(dtype)
            edges = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
        case "f":
            info = np.finfo(dtype)
            edges = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, info.max, info.tiny, info.eps]
        case _:
            edges = [0, 1, -1, 1j, 0.5 - 2j] if tame else [0, 1, -1j, complex(np.nan, 1), complex(-0.0, 2), complex(1, np.inf)]
    some = generator.choice(np.array(edges, dtype), count)
    if dtype.kind in "fc" and tame:
        some = (generator.normal(size=count) + (1j * generator.normal(size=count) if dtype.kind == "c" else 0)).astype(dtype)
    some[: len(edges)] = np.array(edges, dtype)[:count]
    return some


def operator_cases():
    for name, op in OPERATORS.items():
        for dtype in VALUE_DTYPES:
            arguments = (BOOL, dtype, dtype) if op.rule == "select" else (dtype,) * op.arity
            try:
                fits = compute_dtype(name, arguments) == dtype
            except DTypeError:
                continue
            if fits:
                yield name, arguments, dtype, result_dtype(name, arguments)


def arguments_of(name, dtypes):
    tame = dtypes[0].kind == "c" and name not in EXACT and name != "divide"
    columns = [edge_values(d, tame=tame) for d in dtypes]
    if len(columns) == 2:  # every pair, within reason
        return [np.repeat(columns[0][:14], 14), np.tile(columns[1][:14], 14)]
    return columns


def agree(name, ours, expected):
    if name in EXACT:
        np.testing.assert_array_equal(ours, expected, strict=True)
        return
    eps = np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(ours, expected, rtol=32 * eps, atol=32 * eps if expected.dtype.kind == "c" else 0)


def test_every_operator_on_every_dtype(tmp_path):
    cases = list(operator_cases())
    functions = [elementwise(name, arguments, result) for name, arguments, _, result in cases]
    entries = compile_all(functions, tmp_path)
    for (name, dtypes, dtype, result), function, entry in zip(cases, functions, entries, strict=True):
        inputs = arguments_of(name, dtypes)
        expected = np.asarray(compute(name, inputs, dtype)).astype(result)
        count = len(inputs[0])
        interpreted = run(function, [*inputs, count, np.empty(count, result)])[-1]
        compiled = call(entry, function, [*inputs, count, np.empty(count, result)])[-1]
        try:
            agree(name if name != "power" or dtype.kind in "fc" else "add", interpreted, expected)
            agree(name, compiled, interpreted)
        except AssertionError as wrong:
            raise AssertionError(f"{name} on {dtype}: {wrong}") from None
    assert len(cases) > 350


def test_every_conversion(tmp_path):
    x, y, n, i = "x", "y", Var("n"), Var("i")
    functions = []
    for source in VALUE_DTYPES:
        for target in VALUE_DTYPES:
            a, b = Array(x, source), Array(y, target)
            params = (Param(a, Role.INPUT), Param(n, Role.SIZE), Param(b, Role.OUTPUT))
            functions.append(Function("convert", params, For(i, ZERO, n, Store(b, i, Cast(Load(a, i), target)))))
    entries = compile_all(functions, tmp_path)
    for function, entry in zip(functions, entries, strict=True):
        source, target = function.params[0].target.dtype, function.params[2].target.dtype
        values = edge_values(source)
        if source.kind in "fc" and target.kind in "iu":  # what does not fit is undefined in C
            values = np.array([0, 1, 2.75, 100.5], source)
        with np.errstate(over="ignore"):
            expected = (values.real if source.kind == "c" and target.kind in "fiu" else values).astype(target)
        interpreted = run(function, [values, len(values), np.empty(len(values), target)])[-1]
        compiled = call(entry, function, [values, len(values), np.empty(len(values), target)])[-1]
        np.testing.assert_array_equal(interpreted, expected, err_msg=f"{source} to {target}", strict=True)
        np.testing.assert_array_equal(compiled, expected, err_msg=f"{source} to {target}", strict=True)


@pytest.mark.parametrize("rewritten", [False, True], ids=["as built", "simplified"])
def test_random_integer_expressions_wrap_alike(tmp_path, rewritten):
    """Deep trees of every integer dtype: intermediate results are cut to their dtype at the right places."""
    generator = np.random.default_rng(11)
    n, i = Var("n"), Var("i")
    functions = []
    for dtype in (d for d in VALUE_DTYPES if d.kind in "iu"):
        for _ in range(4):
            x, y = Array("x", dtype), Array("y", dtype)

            def tree(depth, x=x, dtype=dtype):
                if depth == 0:
                    if generator.random() < 0.3:
                        return constant_of(generator, dtype)
                    return Load(x, i)
                name = generator.choice(["add", "subtract", "multiply", "negative", "minimum", "square", "absolute", "sign"])
                arity = OPERATORS[name].arity
                return Op(str(name), tuple(tree(depth - 1) for _ in range(arity)), dtype)

            body = For(i, ZERO, n, Store(y, i, tree(4), "add"))
            functions.append(Function("deep", (Param(x, Role.INPUT), Param(n, Role.SIZE), Param(y, Role.OUTPUT)), body))
    if rewritten:
        functions = [simplify(f) for f in functions]
    entries = compile_all(functions, tmp_path)
    for function, entry in zip(functions, entries, strict=True):
        values = edge_values(function.params[0].target.dtype)
        start = values[::-1].copy()
        interpreted = run(function, [values, len(values), start.copy()], outputs_initialised=True)[-1]
        compiled = call(entry, function, [values, len(values), start.copy()])[-1]
        np.testing.assert_array_equal(compiled, interpreted, strict=True)


def constant_of(generator, dtype):
    info = np.iinfo(dtype)
    return Literal(int(generator.choice([0, 1, 5, info.max, info.min])), dtype)
