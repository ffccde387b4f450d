"""How tensors show themselves."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import numpy as np
import pytest
import scipy.sparse as sp

from sparseloom.tensor import asarray, deferred, full, indices, picture, random, zeros

ARROW = sp.csr_array(np.eye(16) + np.eye(16)[::-1])


def test_a_sparse_matrix_shows_where_its_entries_are() -> None:
    assert (
        repr(asarray(ARROW, name="X"))
        == """\
<Tensor 'X': 16 x 16, csr, float64, 32 stored (12.5 %), 452 bytes>
  ⠑⢄⠀⠀⠀⠀⡠⠊
  ⠀⠀⠑⢄⡠⠊⠀⠀
  ⠀⠀⡠⠊⠑⢄⠀⠀
  ⡠⠊⠀⠀⠀⠀⠑⢄"""
    )


def test_large_matrices_keep_their_proportions() -> None:
    lines = repr(asarray(sp.eye_array(10_000, format="csr"))).split("\n")
    assert lines[0] == "<Tensor: 10000 x 10000, csr, float64, 10000 stored (0.01 %), 160 KB>"
    assert len(lines) == 1 + 8 and {len(line) for line in lines[1:]} == {2 + 16}
    wide = repr(random((10, 1000), 0.1, "csr", seed=1)).split("\n")
    assert len(wide) == 2 and len(wide[1]) == 2 + 32


def test_thin_matrices_are_pale_and_denser_ones_darker() -> None:
    def dots(density: float) -> int:
        lines = repr(random((2000, 2000), density, "csr", seed=1)).split("\n")[1:]
        return sum((ord(letter) - 0x2800).bit_count() for line in lines for letter in line.strip())

    thin, thick, full_of_it = dots(0.001), dots(0.05), dots(0.9)
    assert 0.3 < thin / 1024 < 0.7 < thick / 1024 < 1 == full_of_it / 1024


def test_dense_tensors_show_their_values() -> None:
    assert repr(asarray([1.0, 2, 3], name="x")) == "<Tensor 'x': 3, dense(1), float64, 24 bytes>\n  [1. 2. 3.]"
    assert repr(asarray(2)) == "<Tensor: scalar, dense(0), int64, 8 bytes>\n  2"
    assert repr(zeros((2, 2), dtype=int)) == "<Tensor: 2 x 2, dense(2), int64, 32 bytes>\n  [[0 0]\n   [0 0]]"


def test_fills_and_empty_tensors() -> None:
    assert repr(full((2, 2), np.inf, "csr")) == "<Tensor: 2 x 2, csr, float64, 0 stored (0 %), fill inf, 12 bytes>\n  ⠀"
    assert repr(zeros((0, 3), "csr")) == "<Tensor: 0 x 3, csr, float64, 0 stored (empty), 4 bytes>"


def test_a_waiting_tensor_shows_its_assignment_and_is_not_computed() -> None:
    (i, j) = indices("i j")
    y = zeros(16, name="y")
    with deferred():
        y[i] = asarray(ARROW, name="A")[i, j] * 2
    assert repr(y) == "<Tensor 'y': 16, dense(1), float64>\n  assigned, not computed yet: y(i) = sum(j, A(i,j) * 2)"
    assert "assigned, not computed yet" in y._repr_html_()
    assert y.assignment is not None


@pytest.mark.parametrize("format", ["csr", "coo", "csc", "dense", "bcsr(4,4)"])
def test_html_is_well_formed_and_self_contained(format: str) -> None:
    text = asarray(ARROW, format=format, name="<b>&")._repr_html_()
    tree = xml.fromstring(text)
    assert "<b>" not in text and "&lt;b&gt;&amp;" in text
    assert ("http" in text) == (format != "dense")
    assert all(not key.endswith(("href", "src")) for element in tree.iter() for key in element.attrib)
    assert len(text) < 40_000


def test_the_grid_counts_every_entry() -> None:
    storage = random((37, 53), 0.3, "csr", seed=4).storage
    grid = picture.density_grid(storage, 10, 10)
    assert grid is not None
    rows, columns = (np.arange(n) * c // n for n, c in zip((37, 53), grid.shape, strict=True))
    room = np.outer(np.bincount(rows), np.bincount(columns))
    assert round(float((grid * room).sum())) == 588


def test_tensors_of_other_orders_have_a_picture() -> None:
    assert len(repr(random((8, 8, 50), 0.5, "csf", seed=1)).split("\n")) == 3
    assert len(repr(random(1000, 0.1, "s", seed=1)).split("\n")) == 2
