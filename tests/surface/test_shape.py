"""Functions that move entries and change no value, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from surface.against_numpy import check

import sparseloom as sl
from sparseloom.core.errors import FormatError, ShapeError

SHAPES = {"A": (6, 5), "B": (6, 5), "T": (3, 4, 5), "V": (7,), "W": (1, 4, 1), "N": (), "E": (0, 5)}
CASES = [
    "xp.reshape(A, (5, 6))", "xp.reshape(A, -1)", "A.reshape(3, -1)", "A.reshape((2, 3, 5), order='F')", "xp.reshape(T, (12, 5))",
    "T.reshape(60)", "xp.reshape(N, (1, 1))", "xp.reshape(E, (5, 0))", "xp.reshape(V, (7, 1, 1))", "xp.ravel(T)", "A.ravel()",
    "A.flatten('F')", "xp.ravel(A, order='F')", "xp.expand_dims(A, 1)", "xp.expand_dims(A, (0, -1))", "xp.expand_dims(V, 0)",
    "xp.squeeze(W)", "W.squeeze(0)", "xp.squeeze(W, axis=(0, 2))", "xp.broadcast_to(V, (3, 7))", "xp.broadcast_to(W, (2, 4, 3))",
    "xp.broadcast_to(A, (2, 6, 5))", "xp.broadcast_to(N, (2, 2))", "xp.broadcast_arrays(V, xp.reshape(V, (7, 1)))",
    "xp.permute_dims(T, (2, 0, 1))", "xp.transpose(A)", "xp.transpose(T, (1, 0, 2))", "T.transpose(np.array([2, 0, 1]))",
    "xp.matrix_transpose(T)", "xp.swapaxes(T, 0, -1)",
    "A.swapaxes(0, 1)", "xp.moveaxis(T, 0, -1)", "xp.moveaxis(T, (0, 1), (-1, 0))", "xp.flip(A)", "xp.flip(T, 1)",
    "xp.flip(T, axis=(0, -1))", "xp.fliplr(A)", "xp.flipud(A)", "xp.roll(A, 3)", "xp.roll(A, -2, axis=1)",
    "xp.roll(T, (1, 2), axis=(0, 2))", "xp.roll(V, 9, 0)", "xp.roll(E, 2)", "xp.concatenate([A, B])", "xp.concatenate((A, B), axis=1)",
    "xp.concatenate([T, T], axis=-1)", "xp.concatenate([A, B], axis=None)", "xp.concat([V, V])", "xp.concatenate([A, E])",
    "xp.stack([A, B])", "xp.stack((A, B), axis=-1)", "xp.stack([V, V, V], axis=1)", "xp.vstack([V, V])", "xp.vstack([A, B])",
    "xp.hstack([V, V])", "xp.hstack([A, B])", "xp.block([[A, B], [B, A]])", "xp.block([V, V])", "xp.repeat(A, 2)",
    "xp.repeat(A, 3, axis=1)", "V.repeat(2)", "xp.repeat(A, np.arange(6), axis=0)", "xp.tile(A, 2)", "xp.tile(V, (2, 3))",
    "xp.tile(T, (2, 1))", "xp.unstack(T, axis=1)", "xp.unstack(V)",
    "xp.pad(A, 2)", "xp.pad(V, (1, 0))", "xp.pad(T, ((0, 1), (2, 0), (1, 1)))", "xp.pad(A, {0: 1, -1: (0, 2)})",
    "xp.pad(A, 1, constant_values=1)",
]  # fmt: skip


def test_shapes_as_in_numpy(rng: np.random.Generator) -> None:
    check(rng, CASES, SHAPES)


def test_what_is_sparse_stays_sparse() -> None:
    a = sl.random((6, 5), 0.3, "csr", seed=1)
    joined = sl.concatenate([a, np.eye(5)]), sl.stack([a, a])
    for made in (*joined, a.reshape(5, 6), a.ravel(), sl.broadcast_to(a, (2, 6, 5)), sl.roll(a, 3)):
        assert not made.format.is_dense
    assert str(sl.vstack([a.T, a.T]).format) == "csc" and str(sl.flip(a.to("coo")).format) == "coo"
    far = sl.from_coo([[0, 10**12 - 1], [5, 7]], [1.0, 2.0], shape=(10**12, 10), format="coo")
    assert far.to("dcsr").reshape(10**9, 10**4).nnz == 2
    assert str(sl.reshape(sl.from_coo([[3]], [1.0], (10**10,)), (10**9, 10)).format) == "dcsr"


def test_fills_move_with_entries() -> None:
    a = sl.full((2, 3), 7.0, "csr")
    assert (a.reshape(6).fill, sl.concatenate([a, a]).fill) == (7, 7)
    with pytest.raises(FormatError, match=r"^concatenate of tensors whose absent entries differ: 7.0, 0"):
        sl.concatenate([a, sl.zeros((2, 3), "csr")])


def test_shapes_that_are_refused() -> None:
    a = sl.random((6, 5), 0.3, "csr", seed=1)
    for call, text in (
        (lambda: a.reshape(7, 5), r"^30 values cannot have the shape \(7, 5\)"),
        (lambda: sl.squeeze(a, 0), "cannot be squeezed: its size is not 1"),
        (lambda: sl.broadcast_to(a, (5, 6)), "sizes must agree or be 1"),
        (lambda: sl.concatenate([a, a.T]), "only mode 0 may differ"),
        (lambda: sl.stack([a, a.T]), "stack needs tensors of one shape"),
        (lambda: sl.flip(a, 2), "axis 2 is outside the 2 modes"),
        (lambda: sl.block([[a], a]), "nested equally deep"),
    ):
        with pytest.raises(ShapeError, match=text):
            call()
