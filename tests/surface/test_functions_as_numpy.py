"""Functions of whole tensors where they once differed from NumPy: unsigned integers, fills, tensors of order 0, NaN, and rejections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.errors import DTypeError, NotationError, ShapeError


def filled(array: Any, fill: Any, form: str) -> sl.Tensor:
    """A tensor that does not store the values which equal the fill."""
    whole = np.asarray(array)
    stored = ~((whole == fill) | ((whole != whole) & (fill != fill)))
    return sl.from_coo(np.stack(np.nonzero(stored)), whole[stored], whole.shape, format=form, fill=whole.dtype.type(fill))


def same(found: Any, expected: Any) -> None:
    """Values, dtype and shape."""
    values = found.to_numpy() if isinstance(found, sl.Tensor) else np.asarray(found)
    assert values.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int64"])
@pytest.mark.parametrize("op", ["sum", "prod"])
def test_sums_and_products_of_fills_are_exact(dtype: str, op: str) -> None:
    limits = np.iinfo(dtype)
    for fill in (limits.max, limits.max - 1, limits.min, 3):
        whole = np.full((3, 5), fill, dtype)
        whole[0, 1], whole[2, 3] = 7, 211 % limits.max
        tensor = filled(whole, fill, "csr")
        for axis in (None, 0, 1):
            same(getattr(tensor, op)(axis=axis), getattr(whole, op)(axis=axis))
            same(getattr(tensor, op)(axis=axis, dtype="uint64"), getattr(whole, op)(axis=axis, dtype="uint64"))


def test_long_products_of_short_integers_are_exact() -> None:
    odd = np.array([[200, 201, 203, 205, 207, 209, 211, 213]], np.uint8)
    same(sl.asarray(odd).to("csr").prod(), odd.prod())
    same(sl.full(4, 2**64 - 1, format="s", dtype="uint64").sum(), np.full(4, 2**64 - 1, np.uint64).sum())


@pytest.mark.parametrize("op", ["bitwise_and", "lcm", "gcd", "bitwise_or", "left_shift"])
def test_bits_where_one_fill_is_not_zero(op: str) -> None:
    a, b = np.array([[0, 6, 6, 4]], np.uint8), np.array([[3, 3, 5, 3]], np.uint8)
    for left, right in ((a, b), (b, a)):
        for form, other in (("csr", "coo"), ("csr", "dense"), ("ell", "dcsr")):
            tensors = [
                filled(x, 3 if x is b else 0, form) if form != "dense" else sl.asarray(x) for x, form in ((left, form), (right, other))
            ]
            same(getattr(sl, op)(*tensors), getattr(np, op)(left, right))


def test_complex_numbers_with_nan_are_sorted_as_in_numpy() -> None:
    nan = np.nan
    values = np.array([complex(1, nan), 2 + 1j, complex(nan, 0), 0j, complex(nan, nan), 1 - 1j, complex(0, nan), 0j, complex(nan, -1)])
    for fill in (0j, complex(0, nan), complex(nan, 0), 1 - 1j):
        ordered = sl.sort(sl.from_coo([np.arange(9)], values, (12,), format="s", fill=fill)).to_numpy()
        expected = np.sort(np.append(values, [fill] * 3))
        np.testing.assert_array_equal(ordered.real, expected.real)
        np.testing.assert_array_equal(ordered.imag, expected.imag)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_integers_to_negative_powers_are_rejected(form: str) -> None:
    whole = sl.asarray(np.array([[1, 2], [0, 3]])).to(form)
    floats = whole.astype("float64")
    powers: tuple[Callable[[], Any], ...] = (
        lambda: whole**-1, lambda: 2 ** (-whole), lambda: np.power(whole, np.array([[1, -2], [0, 1]])), lambda: whole ** np.int8(-3),
        lambda: sl.evaluate("R(i,j) = A(i,j) ** -2", A=whole), lambda: whole ** filled(np.full((2, 2), -1), -1, "csr"),
    )  # fmt: skip
    for power in powers:
        with pytest.raises(NotationError, match="Integers to negative integer powers are not allowed"):
            power()
    same(2.0 ** (-whole), 2.0 ** -whole.to_numpy())
    same(sl.zeros((0, 2), dtype=int) ** -np.ones(2, int), np.zeros((0, 2), int))
    with np.errstate(all="ignore"):
        same(floats**-1, floats.to_numpy() ** -1.0)
    same(sl.evaluate("y(i) = 2**-1 * x(i)", x=np.array([1, 3])), np.array([0.5, 1.5]))


def test_integers_that_do_not_fit_widen() -> None:
    short = np.array([200, 3], np.uint8)
    wide = short.astype(np.uint16)
    for form in ("dense", "s"):
        tensor = sl.asarray(short).to(form)
        for found, expected in (
            (tensor & 300, wide & 300), (tensor | -1, short.astype(np.int16) | -1), (300 ^ tensor, 300 ^ wide),
            (tensor // 300, wide // 300), (tensor % 300, wide % 300), (tensor << 300, np.zeros(2, np.uint16)),
            (tensor + 300, wide + 300), (sl.gcd(tensor, 300), np.gcd(wide, 300)),
        ):  # fmt: skip
            same(found, expected)
        same(tensor.clip(-1, 300), np.clip(short, -1, 300))
    with pytest.raises(DTypeError, match="bitwise_and is not defined on these dtypes"):
        sl.asarray(np.array([1], np.uint64)) & -1


def test_tensors_of_order_0_take_an_axis() -> None:
    for value in (np.array(3), np.array(2.5), np.array(1 + 2j), np.array(True)):
        tensor = sl.asarray(value)
        for axis in (0, -1):
            for name in ("sum", "prod", "max", "min", "any", "all", "cumsum", "argmax", "count_nonzero", "nanmax", "nansum", "nanargmin"):
                same(getattr(sl, name)(tensor, axis=axis), getattr(np, name)(value, axis=axis))
            same(sl.take(tensor, [0, 0], axis=axis), np.take(value, [0, 0], axis=axis))
            same(sl.repeat(tensor, 2, axis=axis), np.repeat(value, 2, axis=axis))
            same(sl.argsort(tensor, axis=axis), np.argsort(value, axis=axis))
            same(tensor.mean(axis=axis), value.mean())
        same(tensor[()], value[()])
        same(np.pad(tensor, 1), np.pad(value, 1))
        with pytest.raises(ShapeError, match="outside the 0 modes"):
            tensor.sum(axis=1)
    with pytest.raises(ShapeError, match="order 0 has no coordinates"):
        sl.asarray(3).nonzero()


def test_what_goes_before_and_behind_differences() -> None:
    for array in (np.array([[1, 5, 2], [7, 7, 7]]), np.array([[True, False, True]])):
        for form in ("dense", "csr"):
            for axis in (0, 1):
                tensor = filled(array, array.flat[-1], "csr") if form == "csr" else sl.asarray(array)
                same(np.diff(tensor, axis=axis, append=1), np.diff(array, axis=axis, append=1))
                same(sl.diff(tensor, axis=axis, prepend=0, append=np.array(2)), np.diff(array, axis=axis, prepend=0, append=2))
                same(sl.diff(tensor, 0, axis=axis, append=1), array)
    with pytest.raises(ShapeError, match="n must be at least 0"):
        sl.diff([1, 2], -1)


def test_fills_that_are_not_zero() -> None:
    array = np.array([[4, 4, 1], [4, 2, 4], [4, 4, 4]], np.int32)
    tensor = filled(array, 4, "csr")
    for k in (-1, 0, 1):
        same(sl.tril(tensor, k), np.tril(array, k))
        same(sl.triu(tensor, k), np.triu(array, k))
        same(sl.tril(tensor[0], k), np.tril(array[0], k))
        same(sl.diag(filled(array[0], 4, "s"), k), np.diag(array[0], k))
    same(sl.kron(tensor, sl.eye(2, dtype=np.int32)), np.kron(array, np.eye(2, dtype=np.int32)))


def test_options_of_ufuncs_are_those_of_numpy() -> None:
    short = np.array([200, 100], np.uint8)
    tensor = sl.asarray(short).to("s")
    same(np.add(tensor, short, dtype=np.int64), np.add(short, short, dtype=np.int64))
    same(np.multiply(tensor, 3, dtype=np.float64), np.multiply(short, 3, dtype=np.float64))
    same(np.less(tensor, 3, dtype=bool), np.less(short, 3, dtype=bool))
    with pytest.raises(DTypeError, match="cannot cast uint8 to bool by the rule 'same_kind'"):
        np.minimum(tensor, tensor, dtype=bool)
    with pytest.raises(DTypeError, match=r"np\.logical_or has no result of int32"):
        np.logical_or(tensor, tensor, dtype=np.int32)


def test_one_result_or_none() -> None:
    stacked = np.array([[[1, 2], [3, 4]], [[0, 1], [1, 0]]])
    for n in (0, 1, 2, 3):
        same(sl.matrix_power(sl.asarray(stacked), n), np.linalg.matrix_power(stacked, n))
    same(np.where(sl.asarray([True, False]), np.float32(1), 0), np.where([True, False], np.float32(1), 0))
    same(sl.ldexp(sl.asarray(np.array([1, 2], np.uint64)), -1), np.ldexp(np.array([1, 2], np.uint64), -1))
    with np.errstate(all="ignore"):
        same(sl.nanvar(sl.asarray([np.inf, 1.0, np.nan])), np.nanvar([np.inf, 1.0, np.nan]))
    with pytest.raises(ShapeError, match="truth of a tensor with no entries is ambiguous"):
        bool(sl.zeros(0))
    with pytest.raises(DTypeError, match="widths of pad are whole numbers"):
        np.pad(sl.asarray([1, 2]), 1.5)
    with pytest.raises(ShapeError, match="widths of pad are whole numbers"):
        np.pad(sl.asarray([1, 2]), -1)


@pytest.mark.parametrize("form", ["pud:1,0,2", "uds"])
def test_operators_on_formats_that_nothing_is_appended_to(form: str) -> None:
    array = np.zeros((2, 3, 2))
    array[0, 1, 1], array[1, 2, 0] = 3.0, 4.0
    tensor = filled(array, 0, form)
    for made, wanted in (
        (tensor * 2, array * 2),
        (tensor != 0, array != 0),
        (sl.sqrt(tensor), np.sqrt(array)),
        (tensor + tensor, array + array),
    ):
        same(made, wanted)


@pytest.mark.parametrize("name", ["argmax", "argmin", "var", "std", "cumsum", "cumprod", "nansum", "nanmax", "sum", "mean"])
def test_numpy_functions_fill_out(name: str) -> None:
    array = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    wanted = getattr(np, name)(array, axis=0)
    out = np.full_like(wanted, 7)
    assert getattr(np, name)(sl.asarray(array).to("csr"), axis=0, out=out) is out
    np.testing.assert_allclose(out, wanted)


@pytest.mark.parametrize("name", "argmax argmin var std cumsum cumprod ptp nansum nanmax sum mean cumulative_sum take concatenate".split())
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_functions_and_methods_fill_out(name: str, form: str) -> None:
    array = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]])
    given: Any = {"take": (array, [1]), "concatenate": ([array, array],)}.get(name, (array,))
    wanted = getattr(np, name)(*given, axis=0)
    tensor = sl.asarray(array).to(form)
    ours: Any = {"take": (tensor, [1]), "concatenate": ([tensor, tensor],)}.get(name, (tensor,))
    calls = [lambda out: getattr(sl, name)(*ours, axis=0, out=out)]
    if hasattr(sl.Tensor, name):
        calls.append(lambda out: getattr(tensor, name)(*ours[1:], axis=0, out=out))
    for call in calls:
        for out in (np.full_like(wanted, 7), np.full((*wanted.shape, 2), 7, wanted.dtype)[..., 0], sl.asarray(np.full_like(wanted, 7))):
            assert call(out) is out
            np.testing.assert_allclose(np.asarray(out), wanted)
        with pytest.raises(sl.ShapeError, match="out= has shape"):
            call(np.zeros((1, *wanted.shape), wanted.dtype))


def test_outputs_by_position_and_of_fewer_modes_than_the_result() -> None:
    out = np.zeros(2)
    assert sl.cumsum(sl.asarray([1.0, 2.0]), 0, None, out) is out
    assert out.tolist() == [1.0, 3.0]
    with pytest.raises(sl.ShapeError, match="out= has shape"):
        np.add(sl.asarray([[1.0, 2.0]]), 1, out=out)
    assert out.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("fill", [complex(np.inf, 0), complex(1, -np.inf), complex(0, np.nan)])
def test_infinite_complex_fills_are_added_up_part_by_part(dtype: str, fill: complex) -> None:
    array = np.full((3, 4), fill, dtype)
    tensor = sl.full((3, 4), fill, format="csr", dtype=dtype)
    np.testing.assert_array_equal(tensor.sum(), array.sum())
    np.testing.assert_array_equal(tensor.sum(axis=1).to_numpy(), array.sum(axis=1))
    assert sl.full((2**40, 2**40), fill, format="coo", dtype=dtype).sum().real == fill.real * 2.0**80


def test_mistakes_in_norms_ranges_and_repeats() -> None:
    matrix = sl.asarray(np.ones((2, 3)))
    for options in ({"axis": ()}, {"axis": (0, 1, 1)}, {"ord": "fro", "axis": 0}):
        with pytest.raises(sl.SparseloomError):
            sl.norm(matrix, **options)
    with pytest.raises(sl.DTypeError):
        sl.ptp(sl.asarray([True, False]))
    assert sl.repeat(sl.zeros((0, 1)).to("csr"), [], axis=0).shape == (0, 1)


def test_joins_have_room_for_bfloat16_beside_integers() -> None:
    halves, whole = sl.ones((1, 2), dtype="bfloat16"), sl.asarray(np.array([[2**40, 3]], np.uint64))
    for form in ("dense", "csr"):
        made = sl.concatenate([halves.to(form), whole.to(form)])
        assert made.dtype == np.float64
        assert made.to_numpy().tolist() == [[1, 1], [2**40, 3]]
        made = sl.kron(halves.to(form), whole.to(form))
        assert made.dtype == np.float64
        assert made.to_numpy().tolist() == [[2**40, 3, 2**40, 3]]
