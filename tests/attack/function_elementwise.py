"""Calls of element-wise functions, operators, and the options of ufuncs."""

from __future__ import annotations

import numpy as np
from attack.arrays import pick
from attack.function_call import Call, draw_axis, draw_second
from attack.function_operands import DTYPES, draw_shape

UNARY = {
    "any": "sqrt exp log sin cos tan arctan sinh cosh tanh log1p expm1 log2 log10 negative sign conjugate square absolute isnan "
    "isinf isfinite "
    "arcsin arccos arcsinh arctanh arccosh rint reciprocal exp2 positive logical_not",
    "real": "floor ceil trunc cbrt signbit fabs deg2rad rad2deg degrees radians spacing",
    "bits": "invert",
}
STANDARD = {
    "any": "acos acosh asin asinh atan atanh",
    "bits": "bitwise_invert",
    "real": "ceil",
}
STANDARD_PAIRS = {"any": "pow equal", "real": "atan2", "bits": "bitwise_left_shift bitwise_right_shift"}
BINARY = {
    "any": "add subtract multiply divide power equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "minimum maximum fmax fmin float_power",
    "real": "arctan2 hypot floor_divide remainder fmod copysign nextafter logaddexp logaddexp2 heaviside",
    "bits": "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift",
}
INFIX = {"any": "+ - * / ** == != < <= > >=", "real": "// %", "bits": "& | ^"}


def unary(call: Call) -> None:
    """A function of one operand."""
    dtypes = pick(call.rng, ("any", "any", "real", "bits"))
    call.function = pick(call.rng, UNARY[dtypes].split())
    call.operand("A", dtypes if call.rng.random() < 0.97 else "any")
    call.text = f"{pick(call.rng, ('sl', 'np'))}.{call.function}(A)"
    if call.rng.random() < 0.05:
        call.text = f"api.{pick(call.rng, STANDARD[dtypes].split())}(A)"


def binary(call: Call) -> None:
    """A function or an operator of two operands."""
    rng = call.rng
    dtypes = pick(rng, ("any", "any", "real", "bits"))
    shape = draw_shape(rng)
    call.operand("A", dtypes if rng.random() < 0.97 else "any", shape)
    other = draw_second(call, dtypes, shape)
    pair = ("A", other) if rng.random() < 0.7 else (other, "A")
    if rng.random() < 0.04:
        call.function = pick(rng, STANDARD_PAIRS[dtypes].split())
        call.text = f"api.{call.function}({pair[0]}, {pair[1]})"
    elif rng.random() < 0.5:
        call.function = pick(rng, BINARY[dtypes].split())
        call.text = f"{pick(rng, ('sl', 'np'))}.{call.function}({pair[0]}, {pair[1]})"
    else:
        call.function = pick(rng, INFIX[dtypes].split())
        call.text = f"{pair[0]} {call.function} {pair[1]}"


def with_options(call: Call) -> None:
    """A ufunc with ``out=``, ``where=`` or ``dtype=``, or one of its methods."""
    rng = call.rng
    shape = draw_shape(rng)
    array = call.operand("A", "any", shape)
    name = pick(rng, ("add", "multiply", "maximum", "subtract", "minimum", "logical_or"))
    match rng.integers(5):
        case 0 | 1:
            other = draw_second(call, "any", shape)
            wanted = np.result_type(array, call.arrays.get(other, array))
            call.plain("out", np.full(shape, 7).astype(pick(rng, (wanted, wanted, "float64", "int64", "complex128"))))
            mask = rng.random(shape) < 0.5
            call.plain("mask", mask)
            call.text = f"np.{name}(A, {other}, out=out.copy(){pick(rng, ('', ', where=mask'))})"
        case 2:
            call.text = f"np.{name}(A, A, dtype={pick(rng, DTYPES['any'])!r})"
        case 3:
            call.text = f"np.{name}.reduce(A{draw_axis(call, array.ndim)})"
        case _:
            call.operand("B", "any", order=int(rng.integers(3)))
            call.text = f"np.{name}.outer(A, B)"
    call.function = name


def others(call: Call) -> None:
    """Choices, limits, rounding, closeness, differences, and functions with two results."""
    rng = call.rng
    array = call.operand("A", pick(rng, ("any", "real")))
    other = draw_second(call, "real", array.shape)
    space = pick(rng, ("sl", "np"))
    low, high = pick(rng, (0, -1, 1, "None", 0.5, 300)), pick(rng, (2, 3, 0, "None", -300, 300))
    axis = draw_axis(call, array.ndim, several=False, none=False)
    along = draw_axis(call, array.ndim, several=False)
    texts = {
        "where": f"{space}.where(A, {other}, {pick(rng, ('A', '0', '1', '2.5'))})",
        "clip": f"{pick(rng, (space + '.clip(A, ', 'A.clip('))}{low}, {high})",
        "round": pick(rng, (f"{space}.round(A, {pick(rng, (0, 1, -1))})", "A.round()")),
        "fix": f"{space}.fix(A)",
        "nan_to_num": f"{space}.nan_to_num(A)",
        "isclose": f"{space}.isclose(A, {other}{pick(rng, ('', ', equal_nan=True'))})",
        "allclose": f"{space}.allclose(A, {other})",
        "array_equal": f"{space}.array_equal(A, {other}{pick(rng, ('', ', equal_nan=True'))})",
        "isin": f"{space}.isin(A, {pick(rng, ('[0, 1]', '[2.5]', '[]', other))}{pick(rng, ('', ', invert=True'))})",
        "diff": f"{space}.diff(A{axis}{pick(rng, ('', ', n=2', ', n=0'))}{pick(rng, ('', '', ', append=1', ', prepend=0'))})",
        "angle": f"{space}.angle(A)",
        "modf": f"{space}.modf(A)",
        "frexp": f"{space}.frexp(A)",
        "divmod": pick(rng, (f"divmod(A, {other})", f"{space}.divmod(A, {other})")),
        "ldexp": f"{space}.ldexp(A, {pick(rng, (0, 2, -1))})",
        "shift": f"A {pick(rng, ('<<', '>>'))} {pick(rng, (0, 1, 3))}",
        "take": f"{space}.take(A, {pick(rng, ('[0, 0]', '0', '[-1]', '[]', '[[0], [0]]', '7'))}{along})",
        "like": f"{space}.{pick(rng, ('zeros_like', 'ones_like'))}(A{pick(rng, ('', ', dtype=' + repr('int8')))})",
        "full_like": f"{space}.full_like(A, {pick(rng, (0, 1, 3, 2.5, -1, 300))})",
        "number": f"{pick(rng, ('bool', 'int', 'float', 'complex', 'len'))}(A)",
        "sign": pick(rng, ("-A", "+A", "~A", "abs(A)")),
        "part": pick(rng, ("A.real", "A.imag", "A.conj()", "np.real(A)", "np.imag(A)", "A.size", "A.ndim", "A.item()", "np.copy(A)")),
    }
    call.function = pick(rng, tuple(texts))
    call.text = texts[call.function]
