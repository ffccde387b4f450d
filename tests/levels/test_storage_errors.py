"""What the errors about storage and entries say, word for word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparseloom.core.errors import FormatError, ShapeError, SparseloomError, StorageError
from sparseloom.formats.level import LevelData
from sparseloom.formats.named import bcsr, coo, csc, csr, dense, dia, ell
from sparseloom.formats.pack import convert, pack, stored_count, to_dense
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import parse_format
from sparseloom.formats.validate import check

COORDINATES, VALUES = np.array([[0, 0, 2, 2], [1, 4, 0, 2]]), np.arange(1.0, 5.0)


def broken(format, k, name, array) -> Storage:
    """A 3 x 5 matrix in which one array of level k is replaced."""
    storage = pack(format, (3, 5), COORDINATES, VALUES)
    data = storage.levels[k]
    arrays = {**data.arrays, name: np.array(array, np.int32) if isinstance(array, list) else array}
    return replace(storage, levels=(*storage.levels[:k], LevelData(arrays, data.scalars), *storage.levels[k + 1 :]))


int32 = np.int32
FAULTS = [
    (csr, 1, "pos", [0, 2, 1, 4], "level 1 (compressed, mode j): pos[2] = 1 is less than pos[1] = 2; positions must not decrease"),
    (csr, 1, "pos", [1, 2, 2, 4], "level 1 (compressed, mode j): pos[0] = 1; the first segment starts at 0"),
    (csr, 1, "pos", [0, 2, 4], "level 1 (compressed, mode j): pos has 3 elements; 3 positions above need 4"),
    (csr, 1, "pos", [0, 2, 2, 9], "level 1 (compressed, mode j): pos[3] = 9 is beyond the end of crd, which has 4 elements"),
    (csr, 1, "crd", [1, 5, 0, 2], "level 1 (compressed, mode j): crd[1] = 5 is outside the level's size 5"),
    (csr, 1, "crd", [1, 4, -1, 2], "level 1 (compressed, mode j): crd[2] = -1 is outside the level's size 5"),
    (csr, 1, "crd", [4, 1, 0, 2], "level 1 (compressed, mode j): crd[1] = 1 is less than crd[0] = 4 below the same parent; "
                                  "coordinates must ascend"),
    (csr, 1, "crd", [1, 4, 2, 2], "level 1 (compressed, mode j): crd[3] = 2 repeats crd[2] below the same parent; "
                                  "coordinates must be unique"),
    (csr, 1, "crd", np.zeros(4), "level 1 (compressed, mode j): crd has dtype float64; indices are int32 or int64 in native byte order"),
    (csr, 1, "crd", np.zeros(4, ">i4"), "level 1 (compressed, mode j): crd has dtype >i4; indices are int32 or int64 in native byte order"),
    (csr, 1, "crd", np.zeros((2, 2), int32), "level 1 (compressed, mode j): crd has 2 dimensions; index arrays have one"),
    (csr, 1, "crd", np.arange(8, dtype=int32)[::2], "level 1 (compressed, mode j): crd is not contiguous and aligned; "
                                                    "copy it with np.ascontiguousarray"),
    (csr, 1, "crd", None, "level 1 (compressed, mode j): crd is missing: a NumPy array of int32 or int64 belongs here, not NoneType"),
    (csr, 0, "pos", [0, 1], "level 0 (dense, mode i): pos does not belong to this level"),
    (csc, 1, "crd", [2, 0, 3, 0], "level 1 (compressed, mode i): crd[2] = 3 is outside the level's size 3"),
    (coo(), 0, "crd", [0, 2, 0, 2], "level 0 (compressed, mode i): crd[2] = 0 is less than crd[1] = 2 below the same parent; "
                                    "coordinates must ascend"),
    (coo(), 1, "crd", [1, 4, 2, 0], "level 1 (singleton, mode j): crd[3] = 0 is less than crd[2] = 2 below the same parent; "
                                    "coordinates must ascend"),
    (coo(), 1, "crd", [1, 1, 0, 2], "level 1 (singleton, mode j): crd[1] = 1 repeats crd[0] below the same parent; "
                                    "coordinates must be unique"),
    (coo(), 1, "crd", [1, 4, 2], "level 1 (singleton, mode j): crd has 3 elements; the positions above need 4"),
    (parse_format("u~q~"), 0, "crd", [2, 0, 0, 2], None),
    (parse_format("ds~"), 1, "crd", [4, 1, 2, 0], None),
    (parse_format("ss~:1,0"), 0, "crd", [0, 1, 2, 2], "level 0 (compressed, mode j): crd[3] = 2 repeats crd[2] below the same parent; "
                                                      "coordinates must be unique"),
    (ell, 1, "len", [2, 3, 2], "level 1 (padded, mode j): len[1] = 3 is outside the width 2"),
    (ell, 1, "len", [2, 0], "level 1 (padded, mode j): len has 2 elements; there are 3 positions above"),
    (ell, 1, "crd", [1, 4, 0, 3, 0, 2], "level 1 (padded, mode j): crd[3] = 3 stands at an unused place; unused places hold 0"),
    (ell, 1, "crd", [4, 1, 0, 0, 0, 2], "level 1 (padded, mode j): crd[1] = 1 is less than crd[0] = 4 below the same parent; "
                                        "coordinates must ascend"),
    (parse_format("db"), 1, "present", np.zeros(14, bool), "level 1 (bitmap, mode j): present has 14 elements; the positions above have "
                                                           "15 coordinates"),
    (parse_format("db"), 1, "present", np.zeros(15, int32), "level 1 (bitmap, mode j): present has dtype int32 and 1 dimensions; "
                                                            "it must be bool and have one"),
    (parse_format("db"), 1, "present", np.full(15, 3, np.uint8).view(bool), "level 1 (bitmap, mode j): present[0] is the byte 3; "
                                                                            "a truth value is 0 or 1"),
    (parse_format("db"), 1, "present", np.zeros(30, bool)[::2], "level 1 (bitmap, mode j): present is not contiguous; "
                                                                "copy it with np.ascontiguousarray"),
    (parse_format("db"), 1, "present", None, "level 1 (bitmap, mode j): present is missing: a NumPy array of bool belongs here, "
                                             "not NoneType"),
    (dia, 1, "offsets", [-2, 0, 1, 1], "level 1 (offset, mode j): offsets[3] = 1 repeats offsets[2]; diagonals must differ"),
    (dia, 1, "offsets", [-2, 0, 4, 1], "level 1 (offset, mode j): offsets[3] = 1 is less than offsets[2] = 4; diagonals must ascend"),
    (dia, 1, "offsets", [-2, 0, 1], "level 1 (offset, mode j): offsets has 3 elements; there are 4 diagonals"),
    (dia, 1, "offsets", np.array([-2, 0, 1, 2**62 + 1]), "level 1 (offset, mode j): offsets[3] = 4611686018427387905 is further than "
                                                         "2**62 away"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "k", "name", "array", "text"), FAULTS)
def test_faults_name_the_array_and_the_place(format, k, name, array, text):
    storage = broken(format, k, name, array)
    if text is None:
        check(storage, "A")
        return
    with pytest.raises(StorageError) as caught:
        check(storage, "A")
    assert str(caught.value) == f"A: {text}"


def test_repeats_that_do_not_stand_side_by_side_are_found():
    storage = pack(parse_format("u~q~"), (3, 5), COORDINATES, VALUES)
    rows, columns = np.array([0, 2, 0, 1], "i4"), np.array([3, 3, 3, 3], "i4")
    levels = (LevelData({**storage.levels[0].arrays, "crd": rows}), LevelData({"crd": columns}))
    with pytest.raises(StorageError) as caught:
        check(replace(storage, levels=levels), "A")
    assert str(caught.value) == (
        "A: level 1 (singleton, mode j): crd[2] = 3 repeats crd[0] below the same parent; coordinates must be unique"
    )


def test_values_must_fit():
    storage = pack(csr, (3, 5), COORDINATES, VALUES)
    for text, values in {
        "A: values has 3 elements; the format csr needs 4": VALUES[:3],
        "A: values have 2 dimensions; they are stored in one": VALUES[None],
        "A: values are not contiguous and aligned; copy them with np.ascontiguousarray": np.arange(8.0)[::2],
        "A: values must be a NumPy array, not list": [1.0],
    }.items():
        with pytest.raises(StorageError) as caught:
            check(replace(storage, values=values), "A")
        assert str(caught.value) == text
    with pytest.raises(StorageError, match="values have dtype <U3; there are bool"):
        check(replace(storage, values=VALUES.astype("U3")), "A")
    check(replace(storage, values=VALUES.astype(np.float16)), "A")
    with pytest.raises(StorageError, match="in native byte order"):
        check(replace(storage, values=VALUES.astype(np.dtype(np.float16).newbyteorder())), "A")
    check(replace(storage, values=np.append(VALUES, 0)), "A")
    with pytest.raises(StorageError, match="values has 16 elements; the format dense"):
        check(replace(pack(dense(2), (3, 5), COORDINATES, VALUES), values=np.zeros(16)), "A")


def test_spare_room_behind_the_coordinates_is_accepted_and_ignored():
    crd = np.array([1, 4, 0, 2, -99, 99], np.int32)
    storage = replace(broken(csr, 1, "crd", crd), values=np.append(VALUES, [8.0, 9.0]))
    check(storage)
    exact = pack(csr, (3, 5), COORDINATES, VALUES)
    assert stored_count(storage) == 4
    for format in (dense(2), coo(), csc, ell, dia):
        np.testing.assert_array_equal(to_dense(convert(storage, format)), to_dense(exact))


REFUSED_ENTRIES: list[tuple[type[SparseloomError], str, dict[str, object]]] = [
    (StorageError, "coordinates[1, 2] = 7 is outside the size 5 of mode 1", {"coordinates": [[0, 0, 1], [1, 2, 7]], "values": np.ones(3)}),
    (StorageError, "coordinates[0, 0] = -1 is outside the size 3 of mode 0", {"coordinates": [[-1], [1]], "values": np.ones(1)}),
    (StorageError, "coordinates must be integers, not float64", {"coordinates": np.ones((2, 1)), "values": np.ones(1)}),
    (StorageError, "coordinates must have one row per mode and one column per value: (2, n) beside (n,), not (2, 1) beside (2,)",
     {"coordinates": [[0], [1]], "values": np.ones(2)}),
    (StorageError, "the coordinates (2, 0) are given more than once; sum or drop the repeated entries",
     {"format": csc, "coordinates": [[2, 1, 2], [0, 1, 0]], "values": np.ones(3), "duplicates": "refuse"}),
    (FormatError, "the shape (3,) has 1 modes; the format csr is for 2", {"shape": (3,)}),
    (ShapeError, "the shape (3, -5) has a negative size", {"shape": (3, -5)}),
    (FormatError, "indices are int32 or int64, not int16", {"index_dtype": np.dtype(np.int16)}),
    (FormatError, "the format sq stores exactly one coordinate in level 1 below each coordinate of level 0, but this tensor has "
     "several; let level 0 repeat, as in coo, or use a compressed level", {"format": parse_format("sq")}),
    (FormatError, "a singleton level stores exactly one coordinate below each position above it; here 3 of 3 positions have none or "
     "several, the first is 0; use a compressed level (s) instead of q", {"format": parse_format("dq")}),
    (FormatError, "a dense level of size 9223372036854775807 below 2 positions is too large; use a compressed level",
     {"format": dense(2), "shape": (2, 2**63 - 1), "coordinates": [[], []], "values": []}),
    *((FormatError, f"{form} has a place for every coordinate of some modes, and those of {count} take {taken} GB, more than any memory has"
       "\n  help: use a format that stores entries only, such as coo or dcsr",
       {"format": form, "shape": (2**62, 2), "coordinates": np.zeros((2, 0), np.int64), "values": []})
      for form, count, taken in ((csr, 2**62, "7.38e+10"), (ell, 2**62, "7.38e+10"), (bcsr(2), 2**61, "3.69e+10"))),
    (FormatError, "dense(2) has a place for every coordinate of some modes, and those of 576460752303423488 x 2 take 9.22e+09 GB, "
     "more than any memory has\n  help: use a format that stores entries only, such as coo or dcsr",
     {"format": dense(2), "shape": (2**59, 2), "coordinates": np.zeros((2, 0), np.int64), "values": []}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text", "changes"), REFUSED_ENTRIES)
def test_entries_that_cannot_be_packed(error, text, changes):
    arguments = {"format": csr, "shape": (3, 5), "coordinates": COORDINATES, "values": VALUES} | changes
    with pytest.raises(error) as caught:
        pack(**arguments)
    assert str(caught.value) == text


def test_conversion_to_another_order_is_refused():
    with pytest.raises(FormatError) as caught:
        convert(pack(csr, (3, 5), COORDINATES, VALUES), coo(3))
    assert str(caught.value) == "a tensor of order 2 cannot be stored as coo(3), which is for order 3"
