"""NumPy's tests of einsum: every call again, on dense operands and on random sparse formats."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np
from conformance.kernels import target
from conformance.replay import Call, Tally, described

import sparseloom as sl
from sparseloom.calls import evaluation
from sparseloom.surface.linear import einsum_for_numpy

HAS_FEW_TESTS = True  # which make thousands of calls
MODULES = ("numpy._core.tests.test_einsum",)
FORMATS = {1: ("s", "dense"), 2: ("csr", "csc", "coo", "dcsr"), 3: ("csf", "coo", "dss")}


def watched() -> dict[str, Tally]:
    """Put ``np.einsum`` under watch; there is a tally for each kind of operands."""
    dense, sparse = (Tally(_array, reasons=(cast_to_out,)) for _ in range(2))
    original = np.einsum
    evaluation.einsum = functools.partial(sl.einsum, target=target())

    @functools.wraps(original)
    def einsum(*operands: Any, **options: Any) -> Any:
        told = described(operands) + "".join(f", {key}={described([value])}" for key, value in options.items())

        def ours(is_sparse: bool) -> Any:
            given, out = _given(operands, options.get("out"), told if is_sparse else None)
            return einsum_for_numpy(*given, **{**options, **({} if out is None else {"out": out})})

        def theirs() -> Any:
            return original(*operands, **options)

        return dense.compare("einsum", told, lambda: sparse.compare("einsum", told, theirs, lambda: ours(True)), lambda: ours(False))

    np.einsum = einsum
    return {"NumPy's einsum, dense operands": dense, "NumPy's einsum, random sparse formats": sparse}


def cast_to_out(call: Call) -> str | None:
    """An output that the rule for casts does not let hold the result. NumPy forgets the rule where it optimizes."""
    is_refused = call.refusal is not None and str(call.refusal).startswith("out holds") and call.expected is not None
    return "casting='safe' holds for out= however it is computed; NumPy forgets it with optimize=" if is_refused else None


def _given(operands: tuple[Any, ...], out: Any, salt: str | None) -> tuple[list[Any], Any]:
    """The operands as tensors, and an array like ``out``, which is an operand itself where it was."""
    place = None if out is None else _like(out)
    made: list[Any] = []
    for number, operand in enumerate(operands):
        if number % 2 and not isinstance(operands[0], str):  # labels
            made.append(operand)
        elif isinstance(operand, np.ndarray) and operand is out and salt is None:
            made.append(place)
        elif isinstance(operand, np.ndarray) and salt is not None and operand.ndim:
            forms = FORMATS.get(operand.ndim, ("s" * operand.ndim, "d" + "s" * (operand.ndim - 1)))
            made.append(sl.asarray(operand, format=forms[zlib.crc32(f"{salt} {number}".encode()) % len(forms)]))
        else:
            made.append(operand)
    return made, place


def _like(out: Any) -> Any:
    """A copy of an array; with gaps if that has some."""
    if not isinstance(out, np.ndarray) or not out.ndim or out.flags.forc:
        return out.copy(order="K") if isinstance(out, np.ndarray) else out
    room = np.zeros((*out.shape[:-1], 2 * out.shape[-1]), out.dtype)
    room[..., ::2] = out
    return room[..., ::2]


def _array(value: Any) -> Any:
    return value.to_numpy() if isinstance(value, sl.Tensor) else np.asarray(value)
