"""Calls of functions that move values: shapes, joins, parts and places; and of those that make tensors of nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from attack.arrays import pick
from attack.function_call import Call, draw_axis
from attack.function_operands import DTYPES, Rng, draw_shape

import sparseloom as sl


def draw_widths(rng: Rng, order: int) -> Any:
    """The second argument of ``pad``."""
    return pick(
        rng,
        (
            0,
            1,
            (1, 2),
            ((0, 1),) * max(order, 1),
            tuple((int(rng.integers(3)), int(rng.integers(3))) for _ in range(order)),
            -1,
            1.5,
            {0: 1},
        ),
    )


def shaped(call: Call) -> None:
    """Functions that move values."""
    rng = call.rng
    array = call.operand("A")
    order, size = array.ndim, array.size
    space = pick(rng, ("sl", "np"))
    modes = tuple(int(mode) for mode in rng.permutation(order))
    one = draw_axis(call, order, several=False, none=False)
    some = draw_axis(call, order)
    twice = 2 * (array.shape[-1] if order else 1)
    shape = pick(rng, ((-1,), array.shape[::-1], (size,), (1, size), (size, 1, 1), (2, -1), (-1, 3), (-1, twice), (0, -1), ()))
    shift = pick(rng, (0, 1, -1, 2, 7))
    counts = [int(rng.integers(3)) for _ in range(array.shape[0])] if order else [2]
    texts = {
        "reshape": f"{space}.reshape(A, {shape}{pick(rng, ('', ', order=' + repr('F')))})",
        "A.reshape": f"A.reshape({shape})",
        "ravel": pick(rng, ("A.ravel()", f"{space}.ravel(A, order='F')", "A.flatten()")),
        "expand_dims": f"{space}.expand_dims(A{pick(rng, (', axis=0', ', axis=-1', ', axis=(0, 2)', one))})",
        "squeeze": pick(rng, (f"{space}.squeeze(A{some})", "A.squeeze()")),
        "broadcast_to": f"{space}.broadcast_to(A, {pick(rng, ((2, *array.shape), array.shape, (3,) * order, (2,)))})",
        "transpose": f"{space}.transpose(A, {pick(rng, (modes, None, modes[:1]))})",
        "A.transpose": pick(rng, ("A.transpose()", "A.T", f"A.transpose({modes})")),
        "permute_dims": f"{space}.permute_dims(A, {modes})",
        "matrix_transpose": pick(rng, (f"{space}.matrix_transpose(A)", "A.mT")),
        "swapaxes": f"{space}.swapaxes(A, {pick(rng, (0, -1, 1))}, {pick(rng, (0, -1, 1))})",
        "moveaxis": f"{space}.moveaxis(A, {pick(rng, (0, -1, 1))}, {pick(rng, (0, -1, 1))})",
        "flip": f"{space}.flip(A{some})",
        "fliplr": f"{space}.fliplr(A)",
        "flipud": f"{space}.flipud(A)",
        "roll": f"{space}.roll(A, {pick(rng, (shift, shift, (1, 2)))}{draw_axis(call, order)})",
        "repeat": f"{space}.repeat(A, {pick(rng, (0, 1, 2, 3, counts, -1))}{draw_axis(call, order, several=False)})",
        "tile": f"{space}.tile(A, {pick(rng, (2, (1, 2), (2, 1, 2), 0, (), ()))})",
        "pad": f"{space}.pad(A, {draw_widths(rng, order)!r}{pick(rng, ('', ', constant_values=3', ', constant_values=-1'))})",
        "unstack": f"{space}.unstack(A{one})",
        "astype": f"{pick(rng, ('A.astype(', 'sl.astype(A, '))}{pick(rng, DTYPES['any'])!r})",
    }
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
        "concatenate": f"{space}.concatenate([A, B]{axis})",
        "stack": f"{space}.stack([A, B]{axis.replace(', axis=None', '')})",
        "vstack": f"{space}.vstack([A, B])",
        "hstack": f"{space}.hstack([A, B])",
        "block": f"{space}.block([[A, B], [A, B]])",
        "broadcast_arrays": f"{space}.broadcast_arrays(A, B)",
        "meshgrid": f"{space}.meshgrid(A, B, indexing={pick(rng, ('xy', 'ij'))!r})",
    }
    call.text = texts[name]


def placed(call: Call) -> None:
    """What goes by places, and tensors that are made of nothing."""
    rng = call.rng
    name = call.function = pick(
        rng, "searchsorted take_along_axis topk eye ones zeros empty_like arange linspace concat eliminate_zeros sum_duplicates".split()
    )
    dtype = pick(rng, DTYPES["any"])
    array = call.operand("A", "real")
    if name == "searchsorted":
        call.arrays["A"] = np.sort(array.ravel())
        call.tensors["A"] = sl.asarray(call.arrays["A"])
        call.operand("B", "real")
    axis = draw_axis(call, array.ndim, several=False, none=False)
    texts = {
        "searchsorted": f"sl.searchsorted(A, B{pick(rng, ('', ', side=' + repr('right')))})",
        "topk": f"topk(A, {pick(rng, (0, 1, 2))}{axis}).values",
        "take_along_axis": f"sl.take_along_axis(A, np.argsort(np.zeros({array.shape}){axis}){axis})",
        "empty_like": "sl.empty_like(A).shape",
        "eye": f"sl.eye({pick(rng, (0, 1, 3))}, {pick(rng, (None, 2, 4))}, k={pick(rng, (0, 1, -1, 5))}, dtype={dtype!r})",
        "ones": f"sl.ones({draw_shape(rng)}, dtype={dtype!r})",
        "zeros": f"api.zeros({draw_shape(rng)}, dtype={dtype!r})",
        "arange": f"sl.arange({pick(rng, ('3', '1, 7', '5, 1, -2', '0.5, 3', '4, 4'))})",
        "linspace": f"sl.linspace(0, {pick(rng, (1, 2.5))}, {pick(rng, (0, 1, 5))})",
        "concat": f"{pick(rng, ('api', 'np'))}.concat([A, A]{axis})",
        "eliminate_zeros": "as_it_is(A, 'eliminate_zeros')",
        "sum_duplicates": "as_it_is(A, 'sum_duplicates')",
    }
    call.text = texts[name]


def draw_key(rng: Rng, size: int, arrays: bool) -> str:
    """What stands for one mode between brackets."""
    position = int(rng.integers(-size, size)) if size and rng.random() < 0.98 else size
    pieces = [
        str(position),
        ":",
        "::-1",
        f"{rng.integers(-6, 7)}:{rng.integers(-6, 7)}",
        f"::{pick(rng, (2, -2, 3, -7))}",
        f"{rng.integers(-3, 3)}:",
    ]
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
    call.text = (
        f"A[{', '.join(keys)}{',' if len(keys) == 1 and rng.random() < 0.3 else ''}]" if keys else pick(rng, ("A[()]", "A[...]", "A[None]"))
    )
    if array.ndim and rng.random() < 0.1:
        call.text = f"A[A {pick(rng, ('!= 0', '== 1', '!= A'))}]"
