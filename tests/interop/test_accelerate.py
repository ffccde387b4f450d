"""SciPy's own products and sums through our kernels: what comes out is what SciPy gives, and it can be undone."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.accelerate import scipy_products
from sparseloom.toolchain.teams import teams


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What our side computed, from now on."""
    seen: list[str] = []

    def counting(name: str, own: Any) -> Any:
        def ours(one: Any, other: Any) -> Any:
            made = own(one, other)
            seen.extend([name] * (made is not None))
            return made

        return ours

    for name in ("_vector", "_vectors", "_sparse", "_plus", "_minus"):
        monkeypatch.setattr(scipy_products, name, counting(name, getattr(scipy_products, name)))
    return seen


def test_results_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    seen = counted(monkeypatch)
    dense = [np.where(rng.random((30, 30)) < 0.2, rng.integers(-3, 4, (30, 30)), 0).astype(float) for _ in range(2)]
    x, X = rng.integers(-3, 4, 30).astype(float), rng.integers(-3, 4, (30, 5)).astype(float)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix):
        A, B = map(kind, dense)
        pairs = [*((operator.matmul, other) for other in (x, X, B)), (operator.add, B), (operator.sub, B), (operator.sub, A)]
        usual = [apply(A, other) for apply, other in pairs]
        seen.clear()
        with sl.accelerate.scipy(least=0):
            found = [apply(A, other) for apply, other in pairs]
        assert seen == ["_vector", "_vectors", "_sparse", "_plus", "_minus", "_minus"]
        for ours, theirs in zip(found, usual, strict=True):
            assert type(ours) is type(theirs) and ours.dtype == theirs.dtype and ours.shape == theirs.shape
            if sp.issparse(ours):
                assert ours.has_canonical_format and (ours.nnz == theirs.nnz or ours is found[2])
                ours, theirs = ours.toarray(), theirs.toarray()
            np.testing.assert_array_equal(ours, theirs)
        assert found[-1].nnz == 0  # SciPy's sums store no zeros


def test_what_is_not_ours_is_left_to_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = counted(monkeypatch)
    A = sp.csr_array(np.eye(4))
    repeated = sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 2))
    with sl.accelerate.scipy(least=0):
        assert (repeated @ np.ones(2)).tolist() == [2, 0]
        assert (A @ np.ones(4, np.float16)).tolist() == [1, 1, 1, 1]
        assert (sp.csr_array(np.eye(4, dtype=bool)) @ A).nnz == 4
        assert (sp.bsr_array(np.eye(4)) + sp.bsr_array(np.eye(4))).nnz
        with pytest.raises(ValueError, match="mismatch"):
            A @ np.ones(3)
    with sl.accelerate.scipy():  # these are too small
        A @ np.ones(4)
    assert not seen


def test_each_operation_has_a_size_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread gains nothing on A - B, and on A @ x only on what is large."""
    usual, asked = sl.accelerate.scipy(), sl.accelerate.scipy(least=7)
    usual.undo()
    asked.undo()
    sizes = (10_000, 50_000, 350_000, 500_000, 4_000_000)
    from_one = {"_matmul_vector": 4, "_matmul_multivector": 1, "_matmul_sparse": 1, "_add_sparse": 2, "_sub_sparse": 5}
    from_two = {**from_one, "_matmul_vector": 2, "_sub_sparse": 3}
    for threads, first in ((1, from_one), (2, from_two)):
        monkeypatch.setattr(teams, "_size", threads)
        for method, place in first.items():
            assert [usual.takes(method, size) for size in sizes] == [k >= place for k in range(len(sizes))], (method, threads)
            assert [asked.takes(method, size) for size in (6, 7)] == [False, True]


def test_it_can_be_undone_and_nested() -> None:
    owner = scipy_products._owner()
    own = {name: vars(owner)[name] for name in scipy_products._METHODS}
    whole = sl.accelerate.scipy()
    with sl.accelerate.scipy(least=0):
        assert vars(owner)["_matmul_vector"] is not own["_matmul_vector"]
    assert vars(owner)["_matmul_vector"] is not own["_matmul_vector"]
    whole.undo()
    whole.undo()
    assert {name: vars(owner)[name] for name in own} == own
    with pytest.raises(ZeroDivisionError), sl.accelerate.scipy():
        raise ZeroDivisionError
    assert {name: vars(owner)[name] for name in own} == own
