"""``out=`` of the wrong dtype, shape, format, layout or kind: it holds the result, or it is refused and untouched."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from attack.arrays import VALUE_DTYPES, backwards, pick, read_only, strided, swapped, unaligned, unmasked
from attack.uses import same

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]])
STATEMENTS = {
    "y(i) = A(i,j) * x(j)": lambda A, x: A @ x,
    "C(i,j) = A(i,j) * x(j)": lambda A, x: A * x,
    "C(i,j) = A(j,i) + x(i)": lambda A, x: A.T + x[:, None],
    "s = A(i,j) * x(j)": lambda A, x: (A @ x).sum(),
}


def outputs(rng: np.random.Generator, shape: tuple[int, ...], x: np.ndarray) -> Any:
    """Something that a user might write behind ``out=``."""
    good = np.full(shape, 7.0)
    match rng.integers(12):
        case 0:
            return good.astype(pick(rng, VALUE_DTYPES))
        case 1:
            return np.full(pick(rng, ((), (0,), (2,), (3,), (4,), (3, 3), (3, 4), (1, 3), (3, 1), (3, 3, 1))), 7.0)
        case 2:
            return pick(rng, (strided, backwards, unaligned, swapped, unmasked))(good)
        case 3:
            return read_only(good)
        case 4:
            lists = (good.tolist(), tuple(good.ravel().tolist()), memoryview(good.copy()))
            return pick(rng, (*lists, 5.0, "y", b"y" * 8, object(), {}, np.float64(3)))
        case 5:
            return x if shape == x.shape else np.broadcast_to(np.zeros(()), shape)
        case 6:
            return sl.asarray(good)
        case 7:
            kind = pick(rng, ("csr", "csc", "coo", "ell", "bcsr(2,2)", "db", "dia"))
            return sl.zeros(shape, kind) if len(shape) == 2 else sl.zeros((3,), "s")
        case 8:
            return sp.csr_array(good if len(shape) == 2 else np.eye(3))
        case 9:
            return np.asfortranarray(good)
        case 10:
            return np.ma.masked_array(good, True)
    return good


def bad_output(rng: np.random.Generator) -> str:
    """One statement into one output."""
    text = pick(rng, STATEMENTS)
    x = np.array([1.0, 2.0, 4.0])
    wanted = np.asarray(STATEMENTS[text](A, x))
    out = outputs(rng, wanted.shape, x)
    before = out.copy() if isinstance(out, np.ndarray) else None
    operand = pick(rng, (A, sp.csr_array(A), sl.asarray(A, format="ell")))
    form = pick(rng, (None, "csr")) if wanted.ndim == 2 else None
    try:
        result = sl.evaluate(text, A=operand, x=x, out=out, format=form)
    except sl.CompilerBug:
        raise
    except sl.SparseloomError:
        assert before is None or same(np.asarray(before), np.asarray(out)), f"out was changed and then refused: {out}"
        return "refused"
    held = out.to_numpy() if isinstance(out, sl.Tensor) else out.toarray() if sp.issparse(out) else np.asarray(out)
    assert held.dtype.kind in "biufc" and same(held, wanted), f"out={out!r} was taken for {text} and holds {held}, not {wanted}"
    assert same(result.to_numpy(), wanted), f"the result for out={out!r} is {result.to_numpy()}, not {wanted}"
    return "right"
