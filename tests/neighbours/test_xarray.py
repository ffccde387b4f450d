"""xarray: a DataArray holds a tensor, computes with it, and is left in charge of its names."""

from __future__ import annotations

import numpy as np
import xarray as xr

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0]])


def held() -> xr.DataArray:
    return sl.asarray(A, format="csr", name="flow").to_xarray(dims=("x", "y"), coords={"y": list("abc")})


def test_a_tensor_is_held_as_it_is() -> None:
    tensor = sl.asarray(A, format="csr")
    array = xr.DataArray(tensor, dims=("x", "y"))
    assert array.data is tensor
    assert held().name == "flow"
    assert "<Tensor: csr, float64, 3 stored (50 %)" in repr(held().to_dataset())
    assert tensor._repr_inline_(12) == "<Tensor: ..."


def test_arithmetic_keeps_tensor_and_names() -> None:
    array = held()
    for made, expected in ((array + array, 2 * A), (array * 2, 2 * A), (np.sin(array), np.sin(A)), (array.T, A.T)):
        assert type(made.data) is sl.Tensor and not made.data.format.is_dense
        np.testing.assert_allclose(made.data.to_numpy(), expected)
    assert array.sel(y="c").data.nnz == 1
    total = array.sum("x", skipna=False)
    assert total.dims == ("y",)
    np.testing.assert_array_equal(total.data.to_numpy(), A.sum(0))
    product = xr.dot(array, array.rename(x="z"), dim="y")
    np.testing.assert_array_equal(product.data.to_numpy(), A @ A.T)


def test_beside_a_tensor_xarray_decides() -> None:
    array, tensor = held(), sl.asarray(A, format="csr")
    for made in (array + tensor, tensor + array):
        assert isinstance(made, xr.DataArray) and made.dims == ("x", "y")
        np.testing.assert_array_equal(made.data.to_numpy(), 2 * A)
    assert isinstance(tensor == array, xr.DataArray)


def test_what_is_held_is_read() -> None:
    assert sl.asarray(held()).format == sl.csr
    assert sl.asarray(held().variable).nnz == 3
    np.testing.assert_array_equal(sl.asarray(xr.DataArray(A)).to_numpy(), A)
