"""Tensors and their methods."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import sparseloom as sl


def methods(t: sl.Tensor) -> npt.NDArray[Any]:
    assert_type(t.reshape((3, 3)), sl.Tensor)
    assert_type(t.reshape(3, 3), sl.Tensor)
    assert_type(t.round(2).cumsum(0).squeeze(), sl.Tensor)
    assert_type(t.T, sl.Tensor)
    assert_type(t + 1, sl.Tensor)
    assert_type(t @ np.ones(3), sl.Tensor)
    assert_type(t.to("csr").astype("float32"), sl.Tensor)
    assert_type(t.shape, tuple[int, ...])
    assert_type(t.nnz, int)
    values, places = t.topk(3)
    assert_type(values, sl.Tensor)
    assert_type(places, sl.Tensor)
    assert_type(t.name, str | None)
    return t.sort(descending=True).to_numpy()
