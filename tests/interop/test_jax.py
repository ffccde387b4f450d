"""JAX: arrays, BCOO and BCSR in and out; tracers are refused, and so is a dtype that JAX would narrow in silence."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import sparseloom as sl

A = np.array([[1.0, 0, 2], [0, 3, 0]], np.float32)


def test_arrays_are_read() -> None:
    np.testing.assert_array_equal(sl.asarray(jnp.array(A)).to_numpy(), A)
    padded = sl.asarray(sparse.BCOO.fromdense(jnp.array(A), nse=6))
    assert padded.nnz == 3 and padded.notes == ("copied from JAX's BCOO, which stores the coordinates of an entry side by side",)
    np.testing.assert_array_equal(padded.to_numpy(), A)
    rows = sl.asarray(sparse.BCSR.fromdense(jnp.array(A)))
    assert rows.format == sl.csr
    np.testing.assert_array_equal(rows.to_numpy(), A)
    with pytest.raises(sl.StorageError, match="the BCOO has 1 batch and 0 dense modes"):
        sl.asarray(sparse.BCOO.fromdense(jnp.array(A), n_batch=1))


def test_tensors_are_given_out() -> None:
    kinds = {"csr": sparse.BCSR, "csc": sparse.BCOO, "coo": sparse.BCOO, "dense": jax.Array}
    for format, kind in kinds.items():
        given = sl.asarray(A, format=format).to_jax()
        assert isinstance(given, kind)
        np.testing.assert_array_equal(given if format == "dense" else given.todense(), A)
    source = A.copy()
    given = sl.asarray(source).to_jax()
    source[:] = 0
    np.testing.assert_array_equal(given, A)  # JAX takes its arrays for constant
    with pytest.raises(sl.DTypeError) as refusal:
        sl.asarray(A.astype(np.float64)).to_jax()
    assert str(refusal.value) == (
        "JAX is set to make float32 of float64\n"
        '  help: call jax.config.update("jax_enable_x64", True) first, or convert with astype("float32")'
    )


def test_tracers_are_refused() -> None:
    T = sl.asarray(A, format="csr")
    uses = {
        "jit": lambda: jax.jit(lambda x: sl.asarray(x).to_numpy())(A),
        "grad": lambda: jax.grad(lambda x: sl.evaluate("a = A(i,j)", A=x))(A),
        "vmap": lambda: jax.vmap(lambda x: sl.einsum("i->", x))(A),
        "a sparse one": lambda: jax.jit(lambda x: sl.asarray(x).to_numpy())(sparse.BCOO.fromdense(jnp.array(A))),
        "on the right": lambda: jax.jit(lambda x: T @ x)(A.T),
        "on the left": lambda: jax.jit(lambda x: x @ T)(A.T),
    }
    for name, use in uses.items():
        with pytest.raises(sl.DTypeError) as refusal:
            use()
        assert str(refusal.value).startswith("a JAX tracer has no values: this is inside jax.jit, grad or vmap"), name
