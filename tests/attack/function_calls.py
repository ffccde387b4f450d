"""Calls of the array functions, as texts: each means the same of arrays in NumPy and of tensors.

In a text ``np`` is NumPy in both cases, ``sl`` and ``api`` are NumPy or the package and its array-API namespace, ``linalg`` is
``np.linalg`` or the package, and ``A``, ``B``, ... are the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from attack.arrays import pick
from attack.function_operands import DTYPES, Rng, draw_numbers, draw_shape, draw_tensor

import sparseloom as sl


@dataclass
class Call:
    """One call: its text, and the operands as arrays and as tensors. ``function`` is what is called, for the table of differences."""

    rng: Rng
    function: str = ""
    text: str = ""
    arrays: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, Any] = field(default_factory=dict)

    def operand(self, name: str, dtypes: str = "any", shape: tuple[int, ...] | None = None, order: int | None = None, tame: bool = False) -> Any:
        """Draw an operand; gives its array."""
        made = draw_shape(self.rng, order) if shape is None else shape
        self.arrays[name], self.tensors[name] = draw_tensor(self.rng, made, pick(self.rng, DTYPES[dtypes]), tame)
        return self.arrays[name]

    def plain(self, name: str, value: Any) -> None:
        """An operand that is no tensor."""
        self.arrays[name], self.tensors[name] = value, value

    def described(self) -> str:
        """The call with its operands, for a report."""
        lines = [self.text]
        for name, array in self.arrays.items():
            tensor = self.tensors[name]
            how = f"{tensor.format}, fill {tensor.fill!r}, {tensor.nnz} stored" if isinstance(tensor, sl.Tensor) else type(tensor).__name__
            lines.append(f"  {name} = {array!r}  # {how}")
        return "\n".join(lines)


UNARY = {
    "any": "sqrt exp log sin cos tan arctan sinh cosh tanh log1p expm1 log2 log10 negative sign conjugate square absolute isnan isinf isfinite "
    "arcsin arccos arcsinh arctanh arccosh rint reciprocal exp2 positive logical_not",
    "real": "floor ceil trunc cbrt signbit fabs deg2rad rad2deg degrees radians",
    "bits": "invert",
}  # fmt: skip
BINARY = {
    "any": "add subtract multiply divide power equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "minimum maximum fmax fmin float_power",
    "real": "arctan2 hypot floor_divide remainder fmod copysign nextafter logaddexp logaddexp2 heaviside",
    "bits": "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift",
}
INFIX = {"any": "+ - * / ** == != < <= > >=", "real": "// %", "bits": "& | ^"}
SCALARS: tuple[Any, ...] = (0, 1, 2, 3, -1, -3, 127, 200, 300, 70000, 2**40, 2**63, -200, True, False, 0.5, -2.0, float("nan"), float("inf"), 1j)


def broadcast_shape(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that mostly broadcasts with another."""
    if rng.random() < 0.04:
        return draw_shape(rng)
    cut = int(rng.integers(len(shape) + 1)) if rng.random() < 0.3 else 0
    return tuple(1 if rng.random() < 0.15 else size for size in shape[cut:])


def draw_second(call: Call, dtypes: str, shape: tuple[int, ...]) -> str:
    """The other operand of a binary function: a tensor, an array, a number of Python's or NumPy's."""
    rng = call.rng
    match rng.integers(6):
        case 0:
            small = [s for s in SCALARS if dtypes != "bits" or isinstance(s, int)]
            return repr(pick(rng, [s for s in small if dtypes == "any" or not isinstance(s, complex)])).replace("nan", "np.nan").replace("inf", "np.inf")
        case 1:
            call.plain("s", draw_numbers(rng, (), pick(rng, DTYPES[dtypes]))[()])
            return "s"
        case 2:
            call.plain("X", np.asarray(draw_numbers(rng, broadcast_shape(rng, shape), pick(rng, DTYPES[dtypes]))))
            return "X"
    call.operand("B", dtypes, broadcast_shape(rng, shape))
    return "B"


def unary(call: Call) -> None:
    """A function of one operand."""
    dtypes = pick(call.rng, ("any", "any", "real", "bits"))
    call.function = pick(call.rng, UNARY[dtypes].split())
    call.operand("A", dtypes if call.rng.random() < 0.97 else "any")
    call.text = f"{pick(call.rng, ('sl', 'np'))}.{call.function}(A)"


def binary(call: Call) -> None:
    """A function or an operator of two operands."""
    rng = call.rng
    dtypes = pick(rng, ("any", "any", "real", "bits"))
    shape = draw_shape(rng)
    call.operand("A", dtypes if rng.random() < 0.97 else "any", shape)
    other = draw_second(call, dtypes, shape)
    pair = ("A", other) if rng.random() < 0.7 else (other, "A")
    if rng.random() < 0.5:
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


def draw_axis(call: Call, order: int, several: bool = True, none: bool = True) -> str:
    """``, axis=...``, or nothing; now and then one that does not exist."""
    rng = call.rng
    if none and rng.random() < 0.25:
        return pick(rng, ("", ", axis=None"))
    if not order or rng.random() < 0.03:
        return f", axis={pick(rng, (-1, 0, 1, 3, -4))}"
    if several and rng.random() < 0.3:
        chosen = rng.permutation(order)[: int(rng.integers(order + 1))]
        return f", axis={tuple(int(mode) - order * int(rng.integers(2)) for mode in chosen)}"
    return f", axis={int(rng.integers(-order, order))}"


REDUCTIONS = {
    "any": "sum prod any all mean var std count_nonzero nansum nanprod nanmean nanvar nanstd",
    "ordered": "min max argmin argmax ptp nanmin nanmax nanargmin nanargmax",
    "running": "cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod",
}
METHODS = "sum prod min max any all mean var std argmin argmax cumsum cumprod".split()
OF_DTYPE = "sum prod mean nansum nanprod cumsum cumprod cumulative_sum cumulative_prod".split()


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
    if name in METHODS and rng.random() < 0.4:
        call.text = f"A.{name}({options.removeprefix(', ')})"
    elif hasattr(sl.array_api, name) and hasattr(np, name) and rng.random() < 0.2 and "ddof" not in options:
        call.text = f"api.{name}(A{options})"
    else:
        call.text = f"{pick(rng, ('sl', 'np'))}.{name}(A{options})"


def ordered(call: Call) -> None:
    """Sorting, and what goes by order."""
    rng = call.rng
    name = call.function = pick(rng, "sort argsort unique unique_values unique_counts unique_inverse unique_all nonzero argwhere flatnonzero".split())
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


def draw_widths(rng: Rng, order: int) -> Any:
    """The second argument of ``pad``."""
    return pick(rng, (0, 1, (1, 2), ((0, 1),) * max(order, 1), tuple((int(rng.integers(3)), int(rng.integers(3))) for _ in range(order)), -1, 1.5, {0: 1}))


def shaped(call: Call) -> None:
    """Functions that move values."""
    rng = call.rng
    array = call.operand("A")
    order, size = array.ndim, array.size
    space = pick(rng, ("sl", "np"))
    modes = tuple(int(mode) for mode in rng.permutation(order))
    one = draw_axis(call, order, several=False, none=False)
    some = draw_axis(call, order)
    shape = pick(rng, ((-1,), array.shape[::-1], (size,), (1, size), (size, 1, 1), (2, -1), (-1, 3), (0, -1), ()))
    shift = pick(rng, (0, 1, -1, 2, 7))
    counts = [int(rng.integers(3)) for _ in range(array.shape[0])] if order else [2]
    texts = {
        "reshape": f"{space}.reshape(A, {shape}{pick(rng, ('', ', order=' + repr('F')))})", "A.reshape": f"A.reshape({shape})",
        "ravel": pick(rng, ("A.ravel()", f"{space}.ravel(A, order='F')", "A.flatten()")),
        "expand_dims": f"{space}.expand_dims(A{pick(rng, (', axis=0', ', axis=-1', ', axis=(0, 2)', one))})",
        "squeeze": pick(rng, (f"{space}.squeeze(A{some})", "A.squeeze()")),
        "broadcast_to": f"{space}.broadcast_to(A, {pick(rng, ((2, *array.shape), array.shape, (3,) * order, (2,)))})",
        "transpose": f"{space}.transpose(A, {pick(rng, (modes, None, modes[:1]))})", "A.transpose": pick(rng, ("A.transpose()", "A.T", f"A.transpose({modes})")),
        "permute_dims": f"{space}.permute_dims(A, {modes})", "matrix_transpose": pick(rng, (f"{space}.matrix_transpose(A)", "A.mT")),
        "swapaxes": f"{space}.swapaxes(A, {pick(rng, (0, -1, 1))}, {pick(rng, (0, -1, 1))})",
        "moveaxis": f"{space}.moveaxis(A, {pick(rng, (0, -1, 1))}, {pick(rng, (0, -1, 1))})",
        "flip": f"{space}.flip(A{some})", "fliplr": f"{space}.fliplr(A)", "flipud": f"{space}.flipud(A)",
        "roll": f"{space}.roll(A, {pick(rng, (shift, shift, (1, 2)))}{draw_axis(call, order)})",
        "repeat": f"{space}.repeat(A, {pick(rng, (0, 1, 2, 3, counts, -1))}{draw_axis(call, order, several=False)})",
        "tile": f"{space}.tile(A, {pick(rng, (2, (1, 2), (2, 1, 2), 0, (), ()))})",
        "pad": f"{space}.pad(A, {draw_widths(rng, order)!r}{pick(rng, ('', ', constant_values=3', ', constant_values=-1'))})",
        "unstack": f"{space}.unstack(A{one})", "astype": f"{pick(rng, ('A.astype(', 'sl.astype(A, '))}{pick(rng, DTYPES['any'])!r})",
    }  # fmt: skip
    call.function = pick(rng, tuple(texts))
    call.text = texts[call.function]


def joined(call: Call) -> None:
    """Functions of several tensors."""
    rng = call.rng
    array = call.operand("A")
    others = array.shape if rng.random() < 0.7 else draw_shape(rng, array.ndim) if rng.random() < 0.8 else draw_shape(rng)
    call.operand("B", shape=others)
    name = call.function = pick(rng, "concatenate stack vstack hstack block broadcast_arrays meshgrid".split())
    axis = draw_axis(call, array.ndim, several=False)
    space = pick(rng, ("sl", "np"))
    texts = {
        "concatenate": f"{space}.concatenate([A, B]{axis})", "stack": f"{space}.stack([A, B]{axis.replace(', axis=None', '')})", "vstack": f"{space}.vstack([A, B])",
        "hstack": f"{space}.hstack([A, B])", "block": f"{space}.block([[A, B], [A, B]])", "broadcast_arrays": f"{space}.broadcast_arrays(A, B)",
        "meshgrid": f"{space}.meshgrid(A, B, indexing={pick(rng, ('xy', 'ij'))!r})",
    }  # fmt: skip
    call.text = texts[name]


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
        "matmul": pick(rng, ("A @ B", f"{space}.matmul(A, B)")), "dot": pick(rng, ("A.dot(B)", f"{space}.dot(A, B)")),
        "tensordot": f"{space}.tensordot(A, B, {pick(rng, (0, 1, 2, (-1, 0), ([-1], [0])))})", "outer": f"{space}.outer(A, B)",
        "inner": f"{space}.inner(A, B)", "vdot": f"{space}.vdot(A, B)", "vecdot": f"{space}.vecdot(A, B)", "kron": f"{space}.kron(A, B)",
        "diagonal": pick(rng, (f"{space}.diagonal(A, {k})", f"A.diagonal({k})")), "trace": pick(rng, (f"{space}.trace(A, {k})", "A.trace()")),
        "diag": f"{space}.diag(A, {k})", "tril": f"{space}.tril(A, {k})", "triu": f"{space}.triu(A, {k})",
        "norm": f"linalg.norm(A{pick(rng, ('', ', 1', ', 2', ', np.inf', ', -np.inf', ', 0', ', 3'))}{draw_axis(call, len(left))})",
        "matrix_power": f"linalg.matrix_power(A, {pick(rng, (0, 1, 2, 3))})",
    }  # fmt: skip
    call.function = pick(rng, tuple(texts))
    call.text = texts[call.function]


def others(call: Call) -> None:
    """Choices, limits, rounding, closeness, differences, and functions with two results."""
    rng = call.rng
    array = call.operand("A", pick(rng, ("any", "real")))
    other = draw_second(call, "real", array.shape)
    space = pick(rng, ("sl", "np"))
    low, high = pick(rng, (0, -1, 1, "None", 0.5, 300)), pick(rng, (2, 3, 0, "None", -300, 300))
    axis = draw_axis(call, array.ndim, several=False, none=False)
    texts = {
        "where": f"{space}.where(A, {other}, {pick(rng, ('A', '0', '1', '2.5'))})", "clip": f"{pick(rng, (space + '.clip(A, ', 'A.clip('))}{low}, {high})",
        "round": pick(rng, (f"{space}.round(A, {pick(rng, (0, 1, -1))})", "A.round()")), "fix": f"{space}.fix(A)", "nan_to_num": f"{space}.nan_to_num(A)",
        "isclose": f"{space}.isclose(A, {other}{pick(rng, ('', ', equal_nan=True'))})", "allclose": f"{space}.allclose(A, {other})",
        "array_equal": f"{space}.array_equal(A, {other}{pick(rng, ('', ', equal_nan=True'))})",
        "isin": f"{space}.isin(A, {pick(rng, ('[0, 1]', '[2.5]', '[]', other))}{pick(rng, ('', ', invert=True'))})",
        "diff": f"{space}.diff(A{axis}{pick(rng, ('', ', n=2', ', n=0'))}{pick(rng, ('', '', ', append=1', ', prepend=0'))})", "angle": f"{space}.angle(A)",
        "modf": f"{space}.modf(A)", "frexp": f"{space}.frexp(A)", "divmod": pick(rng, (f"divmod(A, {other})", f"{space}.divmod(A, {other})")),
        "ldexp": f"{space}.ldexp(A, {pick(rng, (0, 2, -1))})", "shift": f"A {pick(rng, ('<<', '>>'))} {pick(rng, (0, 1, 3))}",
        "take": f"{space}.take(A, {pick(rng, ('[0, 0]', '0', '[-1]', '[]', '[[0], [0]]', '7'))}{draw_axis(call, array.ndim, several=False)})",
        "like": f"{space}.{pick(rng, ('zeros_like', 'ones_like'))}(A{pick(rng, ('', ', dtype=' + repr('int8')))})",
        "full_like": f"{space}.full_like(A, {pick(rng, (0, 1, 3, 2.5, -1, 300))})",
        "number": f"{pick(rng, ('bool', 'int', 'float', 'complex', 'len'))}(A)", "sign": pick(rng, ("-A", "+A", "~A", "abs(A)")),
        "part": pick(rng, ("A.real", "A.imag", "A.conj()", "np.real(A)", "np.imag(A)", "A.size", "A.ndim", "A.item()", "np.copy(A)")),
    }  # fmt: skip
    call.function = pick(rng, tuple(texts))
    call.text = texts[call.function]


def draw_key(rng: Rng, size: int, arrays: bool) -> str:
    """What stands for one mode between brackets."""
    position = int(rng.integers(-size, size)) if size and rng.random() < 0.98 else size
    pieces = [
        str(position), ":", "::-1", f"{rng.integers(-6, 7)}:{rng.integers(-6, 7)}", f"::{pick(rng, (2, -2, 3, -7))}", f"{rng.integers(-3, 3)}:",
    ]  # fmt: skip
    if arrays and size:
        pieces.append(str([int(n) for n in rng.integers(-size, size, 2)]))
        pieces.append(f"np.array({[bool(b) for b in rng.random(size) < 0.5]})")
    return str(pick(rng, pieces))


def parts(call: Call) -> None:
    """Indexing."""
    rng = call.rng
    array = call.operand("A")
    call.function = "[]"
    arrays = rng.random() < 0.4
    keys = [draw_key(rng, size, arrays) for size in array.shape][: int(rng.integers(array.ndim + 1))]
    if rng.random() < 0.3:
        keys.insert(int(rng.integers(len(keys) + 1)), pick(rng, ("...", "None")))
    call.text = f"A[{', '.join(keys)}{',' if len(keys) == 1 and rng.random() < 0.3 else ''}]" if keys else pick(rng, ("A[()]", "A[...]", "A[None]"))


FAMILIES: tuple[Callable[[Call], None], ...] = (
    unary, unary, binary, binary, binary, with_options, reduction, reduction, reduction, ordered, shaped, shaped, joined, linear, linear, others, others, parts,
)  # fmt: skip


def draw_call(rng: Rng) -> Call:
    """Any of them."""
    call = Call(rng)
    pick(rng, FAMILIES)(call)
    return call
