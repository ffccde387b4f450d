"""Rows, columns and orders of many entries, which compiled routines make: as NumPy has them, with and without the routines."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.settings import settings
from sparseloom.surface import ranks
from sparseloom.tensor import runs
from sparseloom.tensor.ordered import ordered_entries

FORMATS = ["csr", "csc", "coo", "dcsr", "ell", "dia", "do:1,0", "db", sl.bcsr((2, 3))]


@pytest.fixture(params=[0, 10**9], ids=["compiled", "numpy"])
def worth(request, monkeypatch):
    """From how much on routines are compiled."""
    monkeypatch.setattr(runs, "WORTH", request.param)
    monkeypatch.setattr(ranks, "WORTH", request.param)


@pytest.fixture
def array(rng):
    made = rng.integers(-4, 5, (60, 48)) * (rng.random((60, 48)) < 0.3)
    made[7] = 0
    made[:, 5] = 0
    return made.astype(float)


KEYS = {
    "rows in any order, some twice": [3, 59, 3, 0, -1, 7],
    "no rows": [],
    "a mask": np.arange(60) % 3 == 0,
    "rows backwards": np.s_[::-1],
    "every third row": np.s_[50:2:-3],
    "rows and columns": np.s_[::2, 3:20:4],
    "columns backwards": np.s_[:, ::-1],
    "some columns": (slice(None), [4, 4, 0, 47]),
    "columns in order": (slice(None), np.array([0, 5, 6, 47])),
    "columns in order of rows backwards": (slice(None, None, -2), np.array([1, 30])),
    "no columns": (slice(None), np.empty(0, int)),
    "a column": np.s_[:, 9],
    "an empty column": np.s_[:, 5],
    "columns of some rows": ([8, 2, 2], slice(1, 40)),
    "nothing": np.s_[5:5, 2:9],
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("form", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex128"])
def test_parts_are_those_of_arrays(array, name, form, dtype, worth):
    given = array.astype(dtype)
    part = sl.asarray(given).to(form)[KEYS[name]]
    assert part.dtype == dtype
    assert np.array_equal(part.to_numpy(), given[KEYS[name]])
    assert np.array_equal((part + part).to_numpy(), 2 * given[KEYS[name]])


@pytest.mark.parametrize("form", FORMATS, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_joined_matrices_are_those_of_arrays(array, form, axis, worth):
    tensor = sl.asarray(array).to(form)
    made = sl.concatenate([tensor, tensor.astype("float32"), tensor[:0] if axis == 0 else tensor[:, :0]], axis=axis)
    assert made.dtype == np.float64
    assert np.array_equal(made.to_numpy(), np.concatenate([array, array], axis=axis))


@pytest.mark.parametrize("values", ["floats", "integers", "truths", "large", "complex"])
@pytest.mark.parametrize("axis", [0, 1])
def test_orders_are_those_of_arrays(array, values, axis, worth):
    made = {
        "floats": np.where(array == 4, np.nan, np.where(array == 3, np.inf, np.where(array == -3, -np.inf, array * 0.1))),
        "integers": array.astype(np.int16),
        "truths": array > 0,
        "large": array.astype(np.int64).view(np.uint64),
        "complex": array + 1j * (array % 2),
    }[values]
    tensor = sl.asarray(made).to("csr")
    assert np.array_equal(sl.sort(tensor, axis=axis).to_numpy(), np.sort(made, axis=axis), equal_nan=values in ("floats", "complex"))
    if values == "complex":
        return
    for largest in (True, False):
        found, places = sl.topk(tensor, 6, axis=axis, largest=largest)
        ordered = np.flip(np.sort(made, axis=axis), axis) if largest else np.sort(made, axis=axis)
        assert np.array_equal(found.to_numpy(), ordered[:6] if axis == 0 else ordered[:, :6], equal_nan=values == "floats")
        taken = np.take_along_axis(made, places.to_numpy(), axis)
        assert np.array_equal(taken, found.to_numpy(), equal_nan=values == "floats")


def test_of_equal_values_the_first_are_the_largest(worth):
    tensor = sl.asarray(np.array([[0.0, 5.0, 0.0, 5.0, -0.0, 5.0]])).to("csr")
    assert sl.topk(tensor, 5).indices.to_numpy().tolist() == [[1, 3, 5, 0, 2]]


@pytest.mark.parametrize("form", FORMATS, ids=str)
@pytest.mark.parametrize("modes", [(0, 1), (1, 0)])
def test_entries_come_in_the_order_of_modes(array, form, modes):
    coordinates, values = ordered_entries(sl.asarray(array).to(form).storage, modes)
    keys = coordinates[modes[0]] * 100 + coordinates[modes[1]]
    assert (np.diff(keys) > 0).all()
    assert np.array_equal(values, array[tuple(coordinates)])


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)])
@pytest.mark.parametrize("fill", [0.0, 2.5, np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32"])
def test_variances_are_those_of_arrays(array, axis, fill, dtype):
    if fill and dtype == "int32":
        return
    with np.errstate(all="ignore"):
        given = np.where(array == 0, fill, array).astype(dtype)
        tensor = sl.asarray(given, fill=fill).to("csr") if fill else sl.asarray(given).to("csr")
        for options in ({}, {"ddof": 1}, {"keepdims": True}):
            found = sl.var(tensor, axis=axis, **options)
            wanted = np.var(given, axis=axis, **options)
            found = found.to_numpy() if isinstance(found, sl.Tensor) else found
            assert found.dtype == wanted.dtype
            assert np.allclose(found, wanted, rtol=1e-5, equal_nan=True)


def test_the_sum_of_positions_is_not_bounded_by_narrow_indices(array, monkeypatch):
    tensor = sl.asarray(array).to("csr")
    monkeypatch.setattr(settings, "int32_limit", tensor.nnz)
    picked = tensor[np.repeat(np.arange(60), 3)]
    assert picked.arrays["pos1"].dtype == np.int64
    assert np.array_equal(picked.to_numpy(), np.repeat(array, 3, axis=0))
