"""A dense result that would fill the memory is refused before anything is computed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sparseloom as sl

HUGE = re.compile(
    r"C would be dense: 10000000 x 10000000 values of float64 take 8e\+05 GB, more than half of the \S+ GB of memory that are free\n"
    r"  help: ask for a sparse result, as in sl.evaluate\(..., format='csr'\), or compute a part of it"
)


@pytest.fixture
def huge() -> sl.Tensor:
    """A matrix of 10 million rows and columns with two entries."""
    return sl.from_coo([[0, 9_999_999], [5, 7]], [1.0, 2.0], shape=(10_000_000, 10_000_000))


def test_a_huge_dense_result_is_refused_and_a_sparse_one_is_not(huge: sl.Tensor) -> None:
    with pytest.raises(sl.FormatError) as refusal:
        sl.evaluate("C(i,j) = A(i,j) + 1", A=huge)
    assert HUGE.fullmatch(str(refusal.value))
    assert sl.evaluate("C(i,j) = A(i,j) + 1", A=huge, format="csr").fill == 1.0


def test_operators_refuse_too(huge: sl.Tensor) -> None:
    with pytest.raises(sl.FormatError, match="would be dense"):
        np.cos(huge)
