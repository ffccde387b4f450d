"""Laws of packing: what goes in comes out, in every format, and conversion never changes a tensor."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.operands import closure
from levels.random_storage import MATRIX_FORMATS, cases, named_formats, random_entries, random_shape, summed

from sparseloom.core.errors import FormatError
from sparseloom.formats.format import Format
from sparseloom.formats.named import coo, csr, dense
from sparseloom.formats.pack import convert, from_dense, pack, pattern, stored_count, to_dense, unpack
from sparseloom.formats.validate import check


def assert_holds(storage, shape, coordinates, values, fill=0.0):
    """The storage is valid and holds exactly these entries (repeated ones summed)."""
    check(storage)
    wanted = summed(shape, coordinates, values, fill)
    np.testing.assert_array_equal(to_dense(storage), wanted)
    there = np.zeros(shape, bool)
    there[tuple(coordinates)] = True
    kept = pattern(storage)
    assert kept.shape == shape
    assert kept[there].all()
    assert (wanted[~kept] == fill).all()
    found, stored = unpack(storage)
    assert found.dtype == np.int64 and found.shape == (len(shape), len(stored))
    assert stored_count(storage) == len(stored) >= kept.sum()
    assert (storage.format.is_unique and len(stored) == kept.sum()) or not storage.format.is_unique


@pytest.mark.parametrize("seed", range(4))
def test_random_stacks_hold_what_was_packed(seed):
    for rng, format, shape in cases(seed, 150):
        coordinates, values = random_entries(rng, shape)
        fill = float(rng.choice([0, 0, 2]))
        duplicates = str(rng.choice(["sum", "keep"]))
        assert_holds(pack(format, shape, coordinates, values, fill, duplicates=duplicates), shape, coordinates, values, fill)


@pytest.mark.parametrize("order", range(5))
def test_named_formats_hold_what_was_packed(order):
    for k in range(40):
        rng = np.random.default_rng([order, k])
        shape = random_shape(rng, order)
        coordinates, values = random_entries(rng, shape)
        for format in named_formats(order):
            assert_holds(pack(format, shape, coordinates, values), shape, coordinates, values)


@pytest.mark.parametrize("seed", range(2))
def test_packing_what_was_unpacked_gives_the_same_arrays(seed):
    for rng, format, shape in cases(100 + seed, 100):
        coordinates, values = random_entries(rng, shape)
        once = pack(format, shape, coordinates, values)
        again = pack(format, shape, *unpack(once))
        np.testing.assert_array_equal(once.values, again.values)
        for a, b in zip(once.levels, again.levels, strict=True):
            assert a.scalars == b.scalars
            for name in a.arrays:
                np.testing.assert_array_equal(a.arrays[name], b.arrays[name])
                kind = np.bool_ if name == "present" else np.int32
                assert a.arrays[name].dtype == b.arrays[name].dtype == kind


def stores_only_entries(format: Format) -> bool:
    """Whether no coordinate is stored beside the entries, unless a whole diagonal is."""
    return not any(level.full for level in format.levels[1:]) and not format.is_dense


@pytest.mark.parametrize("source", MATRIX_FORMATS, ids=str)
@pytest.mark.parametrize("target", MATRIX_FORMATS, ids=str)
def test_conversion_between_named_formats_keeps_the_tensor(source, target):
    for k in range(6):
        rng = np.random.default_rng(k)
        shape = random_shape(rng, 2)
        coordinates, values = random_entries(rng, shape)
        fill = float(k % 2)
        before = pack(source, shape, coordinates, values, fill)
        after = convert(before, target)
        check(after)
        assert after.format == target
        assert after.fill == fill
        np.testing.assert_array_equal(to_dense(after), to_dense(before))
        if stores_only_entries(target):
            kept = to_dense(before) != fill if source.is_dense else pattern(before)
            np.testing.assert_array_equal(pattern(after), closure(target, kept))


@pytest.mark.parametrize("seed", range(2))
def test_conversion_between_random_stacks_keeps_the_tensor(seed):
    for rng, source, shape in cases(200 + seed, 120):
        target = next(f for _, f, _ in cases(int(rng.integers(10**6)), 10**6) if f.order == len(shape))
        coordinates, values = random_entries(rng, shape)
        before = pack(source, shape, coordinates, values, float(rng.integers(0, 2)), duplicates="keep")
        after = convert(before, target)
        check(after)
        np.testing.assert_array_equal(to_dense(after), to_dense(before))


@pytest.mark.parametrize("fill", [0, 1, np.nan, np.inf])
def test_a_dense_array_keeps_what_is_not_the_fill(fill):
    array = np.array([[0.0, 1.0, np.nan], [np.inf, -0.0, 2.0]])
    for format in MATRIX_FORMATS:
        storage = from_dense(array, format, fill)
        check(storage)
        np.testing.assert_array_equal(to_dense(storage), array)
    kept = from_dense(array, csr, fill)
    assert stored_count(kept) == sum(not (x == fill or (x != x and fill != fill)) for x in array.ravel())


@pytest.mark.parametrize("limit", [3, 4, 6, 7, 127])
def test_index_dtype_follows_the_limit(limit):
    coordinates, values = np.array([[0, 1, 3, 3], [5, 0, 1, 2]]), np.arange(4.0)
    for format in (csr, coo()):
        storage = pack(format, (4, 6), coordinates, values, int32_limit=limit)
        wanted = np.int32 if limit >= 6 else np.int64
        assert {a.dtype for data in storage.levels for a in data.arrays.values()} == {np.dtype(wanted)}


def test_index_dtype_survives_conversion_and_can_be_chosen():
    wide = pack(csr, (3, 3), np.array([[0, 2], [1, 1]]), np.ones(2), index_dtype=np.dtype(np.int64))
    assert convert(wide, coo()).levels[0].arrays["crd"].dtype == np.int64
    with pytest.raises(FormatError, match="int32 indices cannot hold 3000000000"):
        pack(csr, (3, 3 * 10**9), np.zeros((2, 1), int), np.ones(1), index_dtype=np.dtype(np.int32))


@pytest.mark.parametrize("dtype", "bool int8 uint8 int64 uint64 float32 complex64 complex128".split())
def test_values_keep_their_dtype(dtype):
    values = np.array([1, 1, 1, 0], dtype)
    for format in MATRIX_FORMATS:
        storage = pack(format, (2, 2), np.array([[0, 0, 1, 1], [1, 1, 0, 1]]), values)
        assert storage.values.dtype == dtype
        assert to_dense(storage)[0, 1] == (True if dtype == "bool" else 2)
        assert convert(storage, dense(2)).values.dtype == dtype


def test_coordinates_beyond_64_bit_keys_are_sorted():
    shape = (2**40, 2**40)
    coordinates = np.array([[2**39, 0, 2**39, 7], [1, 2**40 - 1, 0, 5]])
    found, values = unpack(pack(coo(), shape, coordinates, np.arange(4.0)))
    np.testing.assert_array_equal(found, [[0, 7, 2**39, 2**39], [2**40 - 1, 5, 0, 1]])
    np.testing.assert_array_equal(values, [1, 3, 2, 0])
