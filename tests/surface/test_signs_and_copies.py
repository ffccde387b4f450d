"""What tensors show of themselves on streams of any encoding, and what becomes of public objects that are copied and pickled."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import sparseloom as sl


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
def test_what_is_shown_can_be_printed_anywhere(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    i, j = sl.indices("ι j")
    A, x = sl.asarray(np.eye(4), format="csr", name="λ"), sl.ones(4, name="x")
    y = sl.zeros(4, name="ψ")
    y[i] = A[i, j] * x[j]
    kernel = sl.program("ψ(i) = λ(i,j) * B(i,j)", {"λ": "csr", "B": "csr"})
    bound = sl.program("ψ(i) = 2 * x(i)").bind(np.ones(3))
    stages = [kernel.show(stage) for stage in ("notation", "concrete", "passes", "loops", "c")]
    for shown in (A, A[i, j] * x[j], y, y.schedule(), kernel, kernel.explain(), kernel.source, *stages, bound, sl.NotationError("λ × …")):
        print(shown)
        print(repr(shown) if not isinstance(shown, str | Exception) else shown)
    stream.flush()


def test_signs_are_spelled_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert str(sl.NotationError("a × b … λ")) == "a x b ... \\u03bb"
    assert str(sl.asarray(np.eye(4), format="csr")).endswith("\n  ::")


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda it: pickle.loads(pickle.dumps(it)),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_bound_kernel_is_copied_with_its_operands(way: str) -> None:
    x = np.arange(3.0)
    for given in ({}, {"out": sl.zeros(3)}):
        bound = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}).bind(2 * np.eye(3), x, **given)
        first = bound()
        made = COPIES[way](bound)
        x += 1
        assert made().to_numpy().tolist() == (2 * (x if way == "copy" else x - 1)).tolist()
        assert made() is not first and bound().to_numpy().tolist() == (2 * x).tolist()


@pytest.mark.parametrize("way", COPIES)
def test_errors_and_functions_are_copied(way: str) -> None:
    for error in (sl.CompilerBug("here", "it should hold"), sl.StorageError("wrong")):
        made = COPIES[way](error)
        assert type(made) is type(error) and str(made) == str(error)
    assert COPIES[way](sl.fmax) is sl.fmax and COPIES[way](sl.add) is sl.add
