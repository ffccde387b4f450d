"""Rows of numbers as text, made in C: letter by letter what Python makes of them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparseloom as sl
from sparseloom.io import written
from sparseloom.io.printer import print_rows


def printed(values):
    return bytes(print_rows(np.empty((0, len(values)), np.int64), values)).decode().split("\n")[:-1]


EDGES = {
    "any bits": np.random.default_rng(1).integers(0, 2**64, 200_000, dtype=np.uint64).view(np.float64),
    "between 0 and 1": np.random.default_rng(2).random(100_000),
    "few digits": np.round(np.random.default_rng(3).random(100_000) * 1000, 3),
    "powers of two": 2.0 ** np.arange(-1074, 1024),
    "below powers of two": np.nextafter(2.0 ** np.arange(-1074, 1024), 0),
    "powers of ten": -(10.0 ** np.arange(-323, 309)),
    "above powers of ten": np.nextafter(10.0 ** np.arange(-323, 308), np.inf),
    "integers": np.random.default_rng(4).integers(-(2**62), 2**62, 100_000).astype(np.float64),
    "denormal": np.arange(1, 50_000, dtype=np.uint64).view(np.float64),
    "special": np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e15, 1e16, 1e17, 1e22, 1e23, 9.999e-5, 1e-4, 1.7976931348623157e308]),
}


@pytest.mark.parametrize("name", EDGES)
def test_doubles_are_spelled_as_repr_spells_them(name):
    assert printed(EDGES[name]) == list(map(repr, EDGES[name].tolist()))


@given(st.lists(st.floats(), min_size=1))
def test_every_double_is_spelled_as_repr_spells_it(values):
    assert printed(np.array(values)) == list(map(repr, values))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_integers_are_spelled_in_digits(signed, unsigned):
    assert printed(np.array(signed, np.int64)) == list(map(str, signed))
    assert printed(np.array(unsigned, np.uint64)) == list(map(str, unsigned))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_long_tables_are_written_as_short_ones(dtype, order, monkeypatch):
    rng = np.random.default_rng(7)
    coordinates = rng.integers(0, 2**40, (order, 2_500))
    values = (rng.integers(0, 2, 2_500) if dtype == "bool" else rng.integers(0, 100, 2_500) / 7).astype(dtype)
    in_python, in_c = io.BytesIO(), io.BytesIO()
    written.write_rows(in_python, coordinates, values)
    monkeypatch.setattr(written, "WORTH", 1)
    monkeypatch.setattr(written, "_AT_ONCE", 300)
    written.write_rows(in_c, coordinates, values)
    assert in_c.getvalue() == in_python.getvalue()


def test_long_files_read_back_exactly(tmp_path):
    entries = sl.random((500, 400), density=0.05, format="csc", seed=3)
    for name in ("a.mtx", "a.tns", "a.mtx.gz"):
        sl.write(tmp_path / name, entries)
        assert np.array_equal(sl.read(tmp_path / name).to_numpy(), entries.to_numpy())


def test_without_a_compiler_python_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(written, "print_rows", lambda coordinates, values: None)
    entries = sl.random((500, 400), density=0.05, format="csr", seed=3)
    sl.write(tmp_path / "a.mtx", entries)
    assert np.array_equal(sl.read(tmp_path / "a.mtx").to_numpy(), entries.to_numpy())
