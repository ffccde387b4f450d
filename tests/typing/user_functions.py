"""Functions on whole tensors and in index notation."""

from typing import assert_type

import sparseloom as sl

t = sl.random((4, 5), density=0.5, format="csr")
i, j = sl.indices("i j")[0], sl.indices("j")[0]
assert_type(i, sl.IndexVar)
assert_type(t, sl.Tensor)
assert_type(sl.sin(t), sl.Tensor)
assert_type(sl.sin(t[i, j]), sl.Expression)
assert_type(sl.maximum(t, 0.0), sl.Tensor)
assert_type(sl.maximum(t[i, j], 0.0), sl.Expression)
assert_type(sl.equal(i, j), sl.Expression)
assert_type(sl.floor_divide(t, 2), sl.Tensor)
assert_type(sl.concatenate([t, t], axis=1), sl.Tensor)
assert_type(sl.sum(t, axis=0), sl.Tensor)
assert_type(sl.sum(j, t[i, j]), sl.Expression)
assert_type(sl.max(t, axis=(0, 1), keepdims=True), sl.Tensor)
assert_type(sl.any(t, axis=0), sl.Tensor)
assert_type(sl.allclose(t, t), bool)
assert_type(sl.modf(t), tuple[sl.Tensor, sl.Tensor])
