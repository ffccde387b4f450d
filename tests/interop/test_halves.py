"""float16 and bfloat16 of PyTorch, JAX and ml_dtypes: over the same memory where that is possible, and refused by name elsewhere."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
import torch

import sparseloom as sl

A = np.kron(np.array([[1.5, 0, 2], [0, -3, 0]]), np.ones((2, 2)))
DTYPES = {torch.float16: np.dtype(np.float16), torch.bfloat16: np.dtype(ml_dtypes.bfloat16)}
LAYOUTS = {"csr": "to_sparse_csr", "csc": "to_sparse_csc", "coo": "to_sparse_coo", "bcsr(2,2)": "to_sparse_bsr"}

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta", "ignore:Sparse BSR tensor support")


@pytest.mark.parametrize("theirs", DTYPES, ids=str)
def test_torch_shares_dense_tensors_both_ways(theirs: torch.dtype) -> None:
    given = torch.tensor(A, dtype=theirs)
    tensor = sl.asarray(given)
    assert tensor.dtype == DTYPES[theirs] and tensor.notes == ()
    given[0, 0] = 7
    assert float(tensor.to_numpy()[0, 0]) == 7
    back = tensor.to_torch()
    assert back.dtype == theirs and back.data_ptr() == given.data_ptr()
    assert torch.equal(torch.from_dlpack(sl.asarray(A, dtype=DTYPES[theirs])), torch.tensor(A, dtype=theirs))
    turned = sl.asarray(given.T)
    assert turned.shape == (6, 4) and turned.notes == ()
    np.testing.assert_array_equal(turned.to_numpy().astype(float), given.T.float().numpy())


@pytest.mark.parametrize("format", LAYOUTS)
@pytest.mark.parametrize("theirs", DTYPES, ids=str)
def test_torch_shares_every_layout(theirs: torch.dtype, format: str) -> None:
    given = getattr(torch.tensor(A, dtype=theirs), LAYOUTS[format])(*[(2, 2)] * (format == "bcsr(2,2)"))
    tensor = sl.asarray(given)
    assert str(tensor.format) == format and tensor.dtype == DTYPES[theirs] and tensor.notes == ()
    back = tensor.to_torch()
    assert back.layout == given.layout and back.dtype == theirs
    held = back._values() if format == "coo" else back.values()
    assert held.data_ptr() == tensor.arrays["values"].ctypes.data
    np.testing.assert_array_equal(back.to_dense().float().numpy(), A)


@pytest.mark.parametrize("theirs", DTYPES, ids=str)
def test_torch_tensors_are_operands(theirs: torch.dtype) -> None:
    matrix, x = torch.tensor(A, dtype=theirs).to_sparse_csr(), torch.ones(6, dtype=theirs)
    y = sl.evaluate("y(i) = A(i,j) * x(j)", A=matrix, x=x)
    assert y.dtype == DTYPES[theirs]
    assert y.to_torch().tolist() == A.sum(axis=1).tolist()


@pytest.mark.parametrize("name", ("float16", "bfloat16"))
def test_jax(name: str) -> None:
    given = jnp.array(A, dtype=name)
    tensor = sl.asarray(given)
    assert str(tensor.dtype) == name
    np.testing.assert_array_equal(tensor.to_numpy().astype(float), A)
    for format in ("dense", "csr", "coo"):
        back = tensor.to(format).to_jax()
        assert back.dtype == given.dtype
        whole = back if format == "dense" else back.todense()
        np.testing.assert_array_equal(np.asarray(whole).astype(float), A)
        assert str(sl.asarray(back).dtype) == name
    assert str(sl.evaluate("y(i) = A(i,j) * x(j)", A=tensor.to("csr"), x=jnp.ones(6, name)).dtype) == name


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_those_who_hold_no_halves_are_named(dtype: np.dtype) -> None:
    tensor = sl.asarray(A, dtype=dtype).to("csr")
    help = "\n  help: convert with astype('float32'), which loses nothing, or use to_numpy() or to_torch()"
    for give, holder in (
        (tensor.to_scipy, "SciPy's sparse arrays"),
        (tensor.to_graphblas, "GraphBLAS's matrices and vectors"),
        (tensor.to_sparse, "the arrays of PyData/Sparse, which numba computes,"),
    ):
        with pytest.raises(sl.DTypeError) as caught:
            give()
        assert str(caught.value) == f"{holder} do not hold {dtype}{help}"
    assert (tensor.astype("float32").to_scipy() != sp.csr_array(A)).nnz == 0
    if dtype == np.float16:
        assert tensor.to_pandas().shape == A.shape
    else:
        with pytest.raises(sl.DTypeError, match="pandas' sparse columns do not hold bfloat16"):
            tensor.to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (sl.asarray(A, dtype=dtype) @ np.ones(6, dtype)).dtype == dtype
