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
    product = xr.dot(array, array.rename(x="z"), dim="y")
    np.testing.assert_array_equal(product.data.to_numpy(), A @ A.T)


def test_what_xarray_does_with_arrays_it_does_with_tensors() -> None:
    B = np.array([[1.0, 0, 2], [0, np.nan, 0]])
    array = sl.asarray(B, format="csr").to_xarray(dims=("x", "y"), coords={"y": list("abc")})
    like = xr.DataArray(B, dims=("x", "y"), coords={"y": list("abc")})
    reductions = "sum mean max std count cumsum argmax argmin".split()
    uses = [(lambda a, name=name: getattr(a, name)("x")) for name in reductions]
    uses += [
        lambda a: a.sum("x", skipna=False), lambda a: a.sum(), lambda a: a.mean(), lambda a: a.max(),
        lambda a: xr.concat([a, a], "x"), lambda a: xr.concat([a, a], "new"), lambda a: xr.concat([a, a], "y"),
        lambda a: a.isnull(), lambda a: a.fillna(0), lambda a: a.where(a > 1, 0), lambda a: a.where(a > 1), lambda a: a.clip(0, 1),
        lambda a: a.shift(x=1, fill_value=0), lambda a: a.shift(x=1), lambda a: a.roll(x=1), lambda a: a.pad(x=1, constant_values=0),
        lambda a: a.isel(y=[0, 2]), lambda a: a.sortby("y", ascending=False), lambda a: a.stack(w=("x", "y")), lambda a: a.diff("y"),
        lambda a: a.expand_dims("t"), lambda a: a.groupby("y").sum(), lambda a: a @ a,
    ]  # fmt: skip
    for number, use in enumerate(uses):
        made, expected = use(array), use(like)
        found = made.data.to_numpy() if isinstance(made.data, sl.Tensor) else made.data
        assert made.dims == expected.dims, number
        np.testing.assert_allclose(found, expected.data, err_msg=str(number))
    sparse = (xr.concat([array, array], "x"), array.shift(x=1, fill_value=0), array.pad(x=1, constant_values=0), array.isnull())
    assert not any(made.data.format.is_dense for made in sparse)


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
