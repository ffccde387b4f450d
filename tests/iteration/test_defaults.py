"""The format of a result whose format nobody gives: which of its levels are compressed."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl

RNG = np.random.default_rng(5)
MATRIX, TENSOR = sl.random((9, 11), 0.3, "csr", seed=1), sl.random((5, 6, 7), 0.2, "csf", seed=2)
VECTOR = sl.random((9,), 0.4, "s", seed=3)


def dense(*shape: int) -> np.ndarray:
    return RNG.random(shape)


CASES = [
    # A dense operand that joins two variables over a sum fills what is between them.
    ("R(i,l) = F(i,j) * P(j,k) * F(l,k)", {"F": MATRIX, "P": dense(11, 11)}, "dense(2)"),
    ("R(i,l) = F(i,j) * P(j,k) * G(k,l)", {"F": MATRIX, "P": dense(11, 9), "G": MATRIX.to("dcsr")}, "dense(2)"),
    ("R(i,l) = a(i) * P(i,k) * F(l,k)", {"a": VECTOR, "P": dense(9, 11), "F": MATRIX}, "dense(2)"),
    ("R(i,l) = F(i,j) * F(l,j) + F(i,j) * P(j,k) * F(l,k)", {"F": MATRIX, "P": dense(11, 11)}, "dense(2)"),
    # One that scales does not, nor one beside a sparse operand that leads from one variable to the other.
    ("R(i,l) = F(i,j) * d(j) * F(l,j)", {"F": MATRIX, "d": dense(11)}, "csr"),
    ("R(i,j) = F(i,j) * P(i,k) * Q(k,j)", {"F": MATRIX, "P": dense(9, 4), "Q": dense(4, 11)}, "csr"),
    ("R(i,l) = a(i) * a(l) * P(i,l)", {"a": VECTOR, "P": dense(9, 9)}, "dcsr"),
    # Dense fibres below the variables of sparse operands.
    ("R(i,j,r) = T(i,j,k) * C(k,r)", {"T": TENSOR, "C": dense(7, 3)}, "ssd"),
    ("R(i,r,j) = T(i,j,k) * C(k,r)", {"T": TENSOR, "C": dense(7, 3)}, "ssd:0,2,1"),
    ("R(r,i,j) = F(i,j) * B(j,r)", {"F": MATRIX, "B": dense(11, 2)}, "dsd:1,2,0"),
    ("R(i,j,r) = F(i,j) * B(j,r)", {"F": MATRIX.to("csc"), "B": dense(11, 2)}, "dsd:1,0,2"),
    ("R(i,j,a,b) = T(i,j,k) * C(k,a) * D(j,b)", {"T": TENSOR, "C": dense(7, 3), "D": dense(6, 2)}, "ssdd"),
    # One variable of a sparse operand is not enough: products of matrices and MTTKRP are dense.
    ("R(i,r) = F(i,j) * B(j,r)", {"F": MATRIX.to("dcsr"), "B": dense(11, 3)}, "dense(2)"),
    ("R(i,r) = T(i,j,k) * B(j,r) * C(k,r)", {"T": TENSOR, "B": dense(6, 3), "C": dense(7, 3)}, "dense(2)"),
    ("R(i,a,b) = T(i,j,k) * B(j,a) * C(k,b)", {"T": TENSOR, "B": dense(6, 2), "C": dense(7, 3)}, "dense(3)"),
    ("R(i,j,r) = T(i,j,k) * C(k,r) + d(r)", {"T": TENSOR, "C": dense(7, 3), "d": dense(3)}, "dense(3)"),
]


@pytest.mark.parametrize(("text", "operands", "format"), CASES, ids=[text for text, _, _ in CASES])
def test_the_format_of_a_result_follows_from_what_its_variables_index(text: str, operands: dict[str, object], format: str) -> None:
    made = sl.evaluate(text, **operands)
    assert str(made.format) == format
    plain = {name: value.to("dense") if isinstance(value, sl.Tensor) else value for name, value in operands.items()}
    np.testing.assert_allclose(made.to("dense").to_numpy(), sl.evaluate(text, **plain).to_numpy(), rtol=1e-12)
