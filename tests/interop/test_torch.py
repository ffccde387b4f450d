"""PyTorch: tensors of every layout in and out over the same memory, and no gradient lost in silence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import sparseloom as sl

A = np.kron(np.array([[1.0, 0, 2], [0, 3, 0]]), np.ones((2, 2)))
LAYOUTS = {"csr": "to_sparse_csr", "csc": "to_sparse_csc", "coo": "to_sparse_coo", "bcsr(2,2)": "to_sparse_bsr"}


def test_every_layout_is_shared_both_ways() -> None:
    for format, method in LAYOUTS.items():
        given = getattr(torch.tensor(A), method)(*[(2, 2)] * (format == "bcsr(2,2)"))
        tensor = sl.asarray(given)
        assert str(tensor.format) == format and tensor.notes == ()
        np.testing.assert_array_equal(tensor.to_numpy(), A)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            back = tensor.to_torch()
        assert back.layout == given.layout
        np.testing.assert_array_equal(back.to_dense().numpy(), A)
        held = back._values() if format == "coo" else back.values()
        assert np.shares_memory(held.numpy(), tensor.arrays["values"])
    dense = torch.tensor(A)
    assert np.shares_memory(sl.asarray(dense).to_numpy(), dense.numpy())
    assert np.shares_memory(sl.asarray(A).to_torch().numpy(), A)
    np.testing.assert_array_equal(sl.asarray(A, format="dcsr").to_torch().to_dense().numpy(), A)


def test_lazy_conjugates_and_signs_are_resolved() -> None:
    given = torch.tensor([1 + 2j, 3 - 1j])
    np.testing.assert_array_equal(sl.asarray(given.conj()).to_numpy(), given.conj().resolve_conj().numpy())
    np.testing.assert_array_equal(sl.asarray(given.conj().imag).to_numpy(), [-2, 1])


GRADIENT = (
    "the PyTorch tensor requires a gradient, but none flows through what is computed here\n"
    "  help: give tensor.detach() if it is not wanted, or compute under torch.no_grad()"
)


def test_a_tensor_that_wants_a_gradient_is_refused_everywhere() -> None:
    x = torch.tensor(A, requires_grad=True)
    T = sl.asarray(A.T.copy(), format="csr")
    uses = {
        "asarray": lambda: sl.asarray(x),
        "evaluate": lambda: sl.evaluate("y(i) = A(i,j)", A=x),
        "computed from one": lambda: sl.asarray(2 * x),
        "sparse": lambda: sl.asarray(x.to_sparse_csr()),
        "on the right": lambda: T @ x,
        "on the left": lambda: x @ T,
        "transformed": lambda: torch.func.grad(lambda v: torch.tensor(sl.asarray(v).to_numpy().sum()))(torch.tensor(A)),
    }
    for name, use in uses.items():
        with pytest.raises(sl.DTypeError) as refusal:
            use()
        assert str(refusal.value) == GRADIENT, name
    with forward_ad.dual_level(), pytest.raises(sl.DTypeError, match="requires a gradient"):
        sl.asarray(forward_ad.make_dual(torch.tensor(A), torch.ones(A.shape, dtype=torch.float64)))


def test_a_kernel_refuses_what_it_took_before_a_gradient_was_wanted() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    kernel = sl.program("y(i) = 2 * x(i)")
    for _ in range(4):
        np.testing.assert_array_equal(kernel(x).to_numpy(), [2, 4, 6])
    x.requires_grad_()
    with pytest.raises(sl.DTypeError, match="requires a gradient"):
        kernel(x)
    with torch.no_grad():
        np.testing.assert_array_equal(kernel(x).to_numpy(), [2, 4, 6])
    np.testing.assert_array_equal(kernel(x.detach()).to_numpy(), [2, 4, 6])
