"""Every function of the array API that is offered, compared with array-api-strict on random tensors."""

from __future__ import annotations

from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
from surface.against_numpy import numbers

import sparseloom as sl
from sparseloom.core.errors import DeviceError, DTypeError

xp = sl.array_api
SHAPES = {"x": (6, 5), "y": (6, 5), "t": (3, 4, 5), "v": (5,), "s": (4, 4), "c": (6, 1)}
FORMATS = {1: ("s",), 2: ("csr", "coo", "csc"), 3: ("csf", "coo")}

# Compiled, so each runs on one dtype; those of whole numbers and truth values stand below.
COMPILED = {
    name: f"xp.{name}(x)"
    for name in (
        "abs acos asin atan ceil conj cos cosh exp expm1 floor isfinite isinf isnan log log1p log2 log10 negative sign sin sinh sqrt "
        "square tan tanh trunc"
    ).split()
} | {
    name: f"xp.{name}(x, y)"
    for name in (
        "add atan2 equal greater greater_equal hypot less less_equal maximum minimum multiply not_equal subtract"
    ).split()
} | {
    "pow": "xp.pow(x, 2.0)", "where": "xp.where(x > 0.0, x, y)", "clip": "xp.clip(x, -1.0, 1.0)", "diff": "xp.diff(x, axis=0)",
    "divide": "xp.divide(x, xp.asarray([1.0, 2.0, 4.0, 5.0, 8.0]))",
}  # fmt: skip
REDUCED = {
    name: f"xp.{name}(x, axis=1)" for name in "sum prod min max mean any all count_nonzero".split()
} | {"matmul": "xp.matmul(x, v)", "tensordot": "xp.tensordot(x, y, axes=((0,), (0,)))", "vecdot": "xp.vecdot(x, v)"}  # fmt: skip
TRUTHS = {name: f"xp.{name}(x, y)" for name in "logical_and logical_or logical_xor".split()} | {"logical_not": "xp.logical_not(x)"}
COMPLEX = {"real": "xp.real(x)", "imag": "xp.imag(x)"}
MAPPED = {name: f"xp.{name}(x)" for name in "acosh asinh atanh signbit reciprocal round positive".split()} | {
    name: f"xp.{name}(x, y)" for name in "copysign nextafter logaddexp".split()
}  # fmt: skip
WHOLE = {name: f"xp.{name}(x, y)" for name in "bitwise_and bitwise_or bitwise_xor".split()} | {
    "isin": "xp.isin(x, xp.asarray([1, 2], dtype=x.dtype))",
    "floor_divide": "xp.floor_divide(x, 2)", "remainder": "xp.remainder(x, 3)", "bitwise_left_shift": "xp.bitwise_left_shift(x, 2)",
    "bitwise_right_shift": "xp.bitwise_right_shift(x, 1)", "bitwise_invert": "xp.bitwise_invert(x)",
}  # fmt: skip
MOVED = {
    "reshape": "xp.reshape(x, (5, 6))", "expand_dims": "xp.expand_dims(x, axis=1)", "squeeze": "xp.squeeze(c, axis=1)",
    "broadcast_to": "xp.broadcast_to(v, (3, 5))", "broadcast_arrays": "xp.broadcast_arrays(c, v)",
    "permute_dims": "xp.permute_dims(t, (2, 0, 1))",
    "matrix_transpose": "xp.matrix_transpose(t)", "moveaxis": "xp.moveaxis(t, 0, 2)", "flip": "xp.flip(t, axis=1)",
    "roll": "xp.roll(t, (1, -2), axis=(0, 2))", "concat": "xp.concat([x, y], axis=1)", "stack": "xp.stack([x, y], axis=-1)",
    "repeat": "xp.repeat(x, 2, axis=0)", "tile": "xp.tile(x, (2, 1, 3))", "unstack": "xp.unstack(t, axis=1)", "tril": "xp.tril(t, k=1)",
    "triu": "xp.triu(x, k=-1)", "take": "xp.take(x, xp.asarray([2, 0, 2]), axis=1)", "nonzero": "xp.nonzero(x)",
    "meshgrid": "xp.meshgrid(v, v)",
    "take_along_axis": "xp.take_along_axis(x, xp.asarray([[1, 0, 5, 2, 3]]), axis=0)", "astype": "xp.astype(x, xp.complex64)",
    "unique_counts": "xp.unique_counts(x)", "unique_inverse": "xp.unique_inverse(x)", "unique_all": "xp.unique_all(t)",
    "zeros_like": "xp.zeros_like(x)", "empty_like": "xp.empty_like(x).shape", "ones_like": "xp.ones_like(x)",
    "full_like": "xp.full_like(x, 1)",
}  # fmt: skip
ORDERED = {
    "unique_values": "xp.sort(xp.unique_values(x))",
    "argmax": "xp.argmax(t, axis=1)", "argmin": "xp.argmin(x)", "sort": "xp.sort(t, axis=1, descending=True)",
    "argsort": "xp.argsort(x, axis=0)", "cumulative_sum": "xp.cumulative_sum(x, axis=1, include_initial=True)",
    "cumulative_prod": "xp.cumulative_prod(v)",
}  # fmt: skip
SPREAD = {"var": "xp.var(t, axis=(0, 2), correction=1.0)", "std": "xp.std(x, axis=0, keepdims=True)"}
CREATED = {
    "asarray": "xp.asarray([[1.0, 0.0], [2.0, 3.0]])", "zeros": "xp.zeros((2, 3))", "empty": "xp.empty((2, 3)).shape",
    "ones": "xp.ones(4, dtype=xp.int8)", "full": "xp.full((2, 2), 7)", "eye": "xp.eye(3, 4, k=1)", "arange": "xp.arange(2, 11, 3)",
    "linspace": "xp.linspace(0, 1, 5)", "from_dlpack": "xp.from_dlpack(np.arange(3.0))",
    "broadcast_shapes": "xp.broadcast_shapes((2, 1), (3,))",
    "result_type": "str(xp.result_type(xp.int8, xp.uint8)).split('.')[-1]", "can_cast": "xp.can_cast(xp.int8, xp.int16)",
    "finfo": "float(xp.finfo(xp.float32).eps)", "iinfo": "xp.iinfo(xp.int8).max", "isdtype": "xp.isdtype(xp.int8, 'integral')",
    "searchsorted": "xp.searchsorted(xp.asarray([1.0, 2.0, 4.0]), xp.asarray([0.0, 2.0, 9.0]))",
}  # fmt: skip
GROUPS: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (COMPILED, ("float64",)), (REDUCED, ("float64",)), (TRUTHS, ("bool",)), (COMPLEX, ("complex64",)), (MAPPED, ("float64", "float32")),
    (WHOLE, ("int64", "int8", "uint16")), (MOVED, ("float64", "int16", "bool", "complex128", "uint8")),
    (ORDERED, ("float64", "int8", "uint32")),
    (SPREAD, ("float64", "float32")), (CREATED, ("float64",)),
]  # fmt: skip


@pytest.mark.parametrize(("cases", "dtypes"), GROUPS, ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_the_standard(cases: dict[str, str], dtypes: tuple[str, ...], rng: np.random.Generator) -> None:
    for number, dtype in enumerate(dtypes):
        arrays = {name: numbers(rng, shape, dtype) for name, shape in SHAPES.items()}
        theirs = {name: strict.asarray(array) for name, array in arrays.items()}
        mine = {name: sl.asarray(array, format=FORMATS[array.ndim][number % len(FORMATS[array.ndim])]) for name, array in arrays.items()}
        for case in cases.values():
            expected = eval(case, {"xp": strict, "np": np, **theirs})
            same(eval(case, {"xp": xp, "np": np, **mine}), expected, f"{case} on {dtype}")


def same(found: Any, expected: Any, context: str) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), context
        for one, other in zip(found, expected, strict=True):
            same(one, other, context)
        return
    if not hasattr(expected, "__array_namespace__"):
        assert found == expected, context
        return
    assert isinstance(found, sl.Tensor), context
    wanted = np.asarray(expected)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), f"{context}: {found.shape}, {found.dtype}"
    tolerance = 1e-5 if wanted.dtype.itemsize < 8 else 1e-12
    np.testing.assert_allclose(found.to_numpy(), wanted, tolerance, tolerance, err_msg=context)


def test_every_function_is_compared() -> None:
    compared = {name for cases, _ in GROUPS for name in cases}
    assert compared == set(xp.FUNCTIONS)
    offered = {name for name in strict.__all__ if callable(getattr(strict, name)) and name.islower() and "flags" not in name}
    assert offered - {"__array_namespace_info__"} <= set(xp.FUNCTIONS)


def test_the_namespace_is_told() -> None:
    a = sl.random((3, 4, 5), 0.3, "csf", seed=1)
    assert a.__array_namespace__() is a.__array_namespace__(api_version="2025.12") is xp
    info, theirs = xp.__array_namespace_info__(), strict.__array_namespace_info__()
    assert info.capabilities() == theirs.capabilities()
    for kind in ("integral", "numeric", ("bool", "real floating"), None):
        assert info.dtypes(kind=kind).keys() == theirs.dtypes(kind=kind).keys()
    assert {name: str(dtype) for name, dtype in info.default_dtypes().items()} == {
        name: str(dtype).split(".")[-1] for name, dtype in theirs.default_dtypes().items()
    }
    assert (a.device, info.devices(), info.default_device()) == ("cpu", ["cpu"], "cpu")
    assert (xp.pi, xp.e, xp.newaxis, a.mT.shape, a.to_device("cpu") is a) == (np.pi, np.e, None, (3, 5, 4), True)
    assert [10, 20, 30][xp.asarray(1)] == 20
    with pytest.raises(DTypeError, match="the version '2019' of the array API is not offered"):
        a.__array_namespace__(api_version="2019")
    with pytest.raises(DeviceError, match="tensors are created on the device 'cpu'"):
        xp.zeros(3, device="cuda")
