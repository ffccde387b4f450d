"""One kernel, called by several threads at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.settings import settings

PRODUCT = ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"})


@pytest.fixture
def narrow() -> Iterator[None]:
    """Positions above 127 do not fit."""
    before, settings.int32_limit = settings.int32_limit, 127
    yield
    settings.int32_limit = before


def at_once(work: Callable[[], Any], threads: int = 8, times: int = 60) -> list[Any]:
    with ThreadPoolExecutor(threads) as pool:
        return [done.result() for done in [pool.submit(lambda: [work() for _ in range(times)]) for _ in range(threads)]]


def test_a_bound_kernel_makes_a_result_for_each_call() -> None:
    a = sl.random((60, 60), 0.1, seed=1)
    bound = sl.program(*PRODUCT).bind(a, a)
    want = a.to_numpy() @ a.to_numpy()
    for made in at_once(bound):
        assert len({id(one.storage.values) for one in made}) == len(made)
        np.testing.assert_allclose(made[-1].to_numpy(), want)
        np.testing.assert_allclose(made[0].to_numpy(), want)


def test_a_bound_kernel_that_converts_sees_whole_operands() -> None:
    a, b = sl.random((60, 60), 0.1, seed=1), sl.random((60, 60), 0.1, seed=2, format="csc")
    bound = sl.program("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csc", "C": "csr"}).bind(a, b)
    want = a.to_numpy() + b.to_numpy()
    for made in at_once(bound):
        for one in made:
            np.testing.assert_array_equal(one.to_numpy(), want)


@pytest.mark.usefixtures("narrow")
def test_threads_widen_a_result_together() -> None:
    a = sl.random((40, 40), 0.15, seed=1)
    want = a.to_numpy() @ a.to_numpy()
    for _ in range(5):
        kernel = sl.program(*PRODUCT)
        for made in at_once(lambda kernel=kernel: kernel(a, a), times=3):  # type: ignore[misc]
            for one in made:
                np.testing.assert_allclose(one.to_numpy(), want)
        assert kernel(a, a).storage.index_dtype == np.int64
        assert "int64_t **C2_crd" in kernel.source


def test_calls_that_are_recalled_share_nothing() -> None:
    a, x = sl.random((60, 60), 0.1, seed=1).to_scipy(), np.arange(60.0)
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"})
    want = a @ x
    for made in at_once(lambda: kernel(a, x)):
        for one in made:
            np.testing.assert_allclose(one.to_numpy(), want)
