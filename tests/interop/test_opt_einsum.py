"""opt_einsum: contract works on tensors, and our optimizer knows how full they are."""

from __future__ import annotations

import numpy as np
import opt_einsum
import pytest

import sparseloom as sl


def test_tensors_are_contracted() -> None:
    A = np.arange(12.0).reshape(3, 4) * (np.arange(12).reshape(3, 4) % 2)
    x = np.arange(4.0)
    T = sl.asarray(A, format="csr")
    for made, expected in (
        (opt_einsum.contract("ij,j->i", T, x), A @ x),
        (opt_einsum.contract("ij,kj,k->i", T, T, np.ones(3), optimize=sl.SparsePath(T, T, 1.0)), A @ A.T @ np.ones(3)),
    ):
        assert type(made) is sl.Tensor
        np.testing.assert_array_equal(made.to_numpy(), expected)


def test_the_order_follows_from_what_is_stored() -> None:
    shapes = [(1000, 10), (10, 1000), (1000, 10)]
    thin = sl.random(shapes[0], 1e-4, "csr", seed=1)
    for densities, first in (((1.0, 1.0, 1.0), (1, 2)), ((thin, 1.0, 1.0), (0, 1, 2))):
        path, _ = opt_einsum.contract_path("ab,bc,cd->ad", *shapes, shapes=True, optimize=sl.SparsePath(*densities))
        assert path[0] == first


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_paths_are_whole(count: int) -> None:
    labels = [f"{chr(97 + k)}{chr(98 + k)}" for k in range(count)]
    statement = f"{','.join(labels)}->a{chr(97 + count)}"
    operands = [np.arange(9.0).reshape(3, 3) % (k + 2) for k in range(count)]
    found = opt_einsum.contract(statement, *operands, optimize=sl.SparsePath(*[0.1] * count))
    np.testing.assert_array_equal(found, opt_einsum.contract(statement, *operands))
