"""JAX: arrays share their memory; BCOO and BCSR are read and made. A tracer stands for no values, and is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseloom.core.dtypes import INT32
from sparseloom.core.errors import DTypeError, StorageError
from sparseloom.formats.named import csr
from sparseloom.formats.storage import Storage
from sparseloom.interop.entry import Intake, converted
from sparseloom.interop.numpy import to_numpy
from sparseloom.interop.pydata_sparse import listed
from sparseloom.interop.scipy import from_compressed, from_coordinates
from sparseloom.programs.cuda.storages import to_host


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read; plain arrays are left to DLPack, which they speak."""
    names = [parent.__name__ for parent in kind.__mro__ if parent.__module__.partition(".")[0] == "jax"]
    return next((_READERS[name] for name in names if name in _READERS), None)


def _is_tracer(value: Any) -> bool:
    return any(parent.__name__ == "Tracer" for parent in type(value).__mro__)


def _refuse_tracer(tracer: Any) -> Intake:
    raise DTypeError(
        "a JAX tracer has no values: this is inside jax.jit, grad or vmap, which cannot look into what is computed here\n"
        "  help: call it outside of them, or through jax.pure_callback, which gives arrays (and no gradient)"
    )


def _array(value: Any) -> NDArray[Any]:
    """An array that a sparse matrix of JAX's holds."""
    if _is_tracer(value):
        _refuse_tracer(value)
    return np.asarray(value)


def _from_bcoo(matrix: Any) -> Intake:
    """The entries of a BCOO array; those outside the shape only fill it up."""
    shape, data, indices = _shape(matrix), _array(matrix.data), _array(matrix.indices)
    _require_plain(matrix)
    inside = (indices < np.array(shape, indices.dtype)).all(axis=1)
    if not inside.all():
        data, indices = data[inside], indices[inside]
    note = "copied from JAX's BCOO, which stores the coordinates of an entry side by side"
    return converted(from_coordinates(shape, tuple(np.ascontiguousarray(indices.T)), data), note)


def _from_bcsr(matrix: Any) -> Intake:
    arrays = _array(matrix.indptr), _array(matrix.indices), _array(matrix.data)
    _require_plain(matrix)
    return from_compressed(csr, _shape(matrix), *arrays)


def _require_plain(matrix: Any) -> None:
    if matrix.n_batch or matrix.n_dense:
        name = type(matrix).__name__
        raise StorageError(
            f"the {name} has {matrix.n_batch} batch and {matrix.n_dense} dense modes; only sparse ones have a counterpart here\n"
            f"  help: give jax.experimental.sparse.bcoo_update_layout(matrix, n_batch=0, n_dense=0)"
        )


def _shape(matrix: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in matrix.shape)


_READERS: dict[str, Callable[[Any], Intake]] = {"Tracer": _refuse_tracer, "BCOO": _from_bcoo, "BCSR": _from_bcsr}


def give(tensor: Any) -> Any:
    """A JAX array for a dense tensor, BCSR for csr, else BCOO. JAX takes arrays for constant, so that all are copied."""
    import jax
    from jax.experimental import sparse

    storage = to_host(tensor.storage)
    _require_kept(jax, storage)
    if storage.format.is_dense:
        return jax.numpy.array(to_numpy(storage))
    if storage.fill != 0:
        raise StorageError(f"JAX's sparse arrays can only leave out zeros, and absent entries are {storage.fill}; use to_numpy()")
    facts = {"shape": storage.shape, "indices_sorted": True, "unique_indices": True}
    if storage.format == csr:
        pos, crd = (_narrow(jax, storage.levels[1].arrays[name]) for name in ("pos", "crd"))
        return sparse.BCSR((jax.numpy.array(storage.values), crd, pos), **facts)
    coordinates, values = listed(storage)
    return sparse.BCOO((jax.numpy.array(values), _narrow(jax, coordinates.T)), **facts)


def _require_kept(jax: Any, storage: Storage) -> None:
    """Refuse values that JAX would cut to 32 bits in silence."""
    kept = jax.dtypes.canonicalize_dtype(storage.dtype)
    if kept != storage.dtype:
        raise DTypeError(
            f"JAX is set to make {kept} of {storage.dtype}\n"
            f'  help: call jax.config.update("jax_enable_x64", True) first, or convert with astype("{kept}")'
        )


def _narrow(jax: Any, indices: NDArray[Any]) -> Any:
    """Indices as JAX has them: of 32 bits where it knows no others."""
    kept = jax.dtypes.canonicalize_dtype(indices.dtype)
    if kept == INT32 and indices.size and indices.max() > np.iinfo(np.int32).max:
        raise DTypeError('coordinates need 64 bits\n  help: call jax.config.update("jax_enable_x64", True) first')
    return jax.numpy.array(indices.astype(kept, copy=False))
