"""What a user does with a tensor that was accepted: every use must see the numbers that were given."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from attack.arrays import pick
from levels.random_storage import random_format

import sparseloom as sl

FORMATS = {
    0: ("dense",),
    1: ("d", "s", "u", "u~", "s~", "p", "sd:0,0/2", "b"),
    2: ("dense", "csr", "csc", "coo", "dcsr", "dcsc", "ell", "bcsr(2,2)", "ds~", "du~", "u~q~+", "uq+", "sp", "ps", "pd", "sd", "su",
        "dp:1,0", "ssdd:0,1,0,1/2,3", "dudd:0,1,0,1/2,2", "db", "bs", "bb:1,0", "dia", "do:1,0"),
    3: ("dense", "sss", "uqq", "dss", "dds:2,0,1", "u~q~q~+", "spd", "pps:1,0,2", "dsb", "bdp"),
}  # fmt: skip


def any_format(rng: np.random.Generator, order: int) -> sl.Format:
    """Mostly one of the formats above, so that kernels are met again; now and then any stack of levels."""
    if rng.random() < 0.15 or order not in FORMATS:
        return random_format(rng, order)
    text = pick(rng, FORMATS[order])
    return sl.dense(order) if text == "dense" else sl.zeros((1,) * order, text).format


def same(left: Any, right: Any) -> bool:
    """Equality of arrays in which nan equals nan."""
    left, right = np.asarray(left), np.asarray(right)
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=left.dtype.kind in "fc" and right.dtype.kind in "fc")


def assert_reads(tensor: sl.Tensor, wanted: np.ndarray, how: str = "to_numpy") -> None:
    """The tensor holds these numbers."""
    got = tensor.to_numpy()
    assert same(got, wanted), f"{how}: {got.tolist()} instead of {wanted.tolist()} in {tensor.format} of {tensor.dtype}"


def assert_usable(rng: np.random.Generator, tensor: sl.Tensor, wanted: np.ndarray) -> None:
    """The tensor reads as it should, and so does one thing that is made of it."""
    assert_reads(tensor, wanted)
    order = wanted.ndim
    indices = ",".join("ijk"[:order])
    match rng.integers(9):
        case 0 | 1:
            left = f"R({indices})" if order else "R"
            right = f"A({indices})" if order else "A"
            assert_reads(sl.evaluate(f"{left} = {right}", A=tensor), wanted, "a kernel that copies")
        case 2 if order == 2 and tensor.fill == 0 and tensor.dtype == np.float64 and np.isfinite(wanted).all():
            x = np.arange(1.0, wanted.shape[1] + 1)
            assert_reads(sl.evaluate("y(i) = A(i,j) * x(j)", A=tensor, x=x), wanted @ x, "a product")
        case 3:
            assert_reads(tensor.to(any_format(rng, order)), wanted, "a conversion")
        case 4:
            assert_reads(pickle.loads(pickle.dumps(tensor)), wanted, "a pickle")
        case 5:
            with tempfile.TemporaryDirectory() as folder:
                sl.write(Path(folder, "a.npz"), tensor)
                assert_reads(sl.read(Path(folder, "a.npz")), wanted, "an .npz file")
        case 6:
            assert_reads(tensor.T, wanted.T, "a transpose")
            assert len(repr(tensor)) > 0
        case 7 if tensor.fill == 0 and order:
            made = tensor.to_scipy()
            assert same(made.toarray(), wanted), "to_scipy"
        case _:
            assert_reads(copy.deepcopy(tensor), wanted, "a copy")
