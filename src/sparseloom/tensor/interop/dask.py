"""Dask: its arrays hold tensors as chunks, which it learns when the first of its arrays is met here. Reading one computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from sparseloom.tensor.blocks import joined, tensordot
from sparseloom.tensor.entry import Intake, converted
from sparseloom.tensor.intake import enter_held
from sparseloom.tensor.tensor import Tensor


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is Dask's array."""
    names = [(parent.__module__.partition(".")[0], parent.__name__) for parent in kind.__mro__]
    if ("dask", "Array") not in names:
        return None
    register()
    return _computed


def _computed(array: Any) -> Intake:
    return converted(enter_held(array.compute()), f"computed by Dask from {array.npartitions} chunks")


@cache
def register() -> None:
    """Tell Dask that tensors may be chunks of its arrays, and how chunks are joined and multiplied."""
    from dask.array import register_chunk_type
    from dask.array.core import concatenate_lookup, tensordot_lookup

    register_chunk_type(Tensor)
    concatenate_lookup.register(Tensor, _joined)
    tensordot_lookup.register(Tensor, _tensordot)


def _joined(chunks: Sequence[Any], axis: int = 0) -> Tensor:
    return Tensor(joined([enter_held(chunk).storage for chunk in chunks], axis))


def _tensordot(left: Any, right: Any, axes: Any = 2) -> Tensor:
    return Tensor(tensordot(enter_held(left).storage, enter_held(right).storage, axes))


def give(tensor: Any, **options: Any) -> Any:
    """A Dask array of chunks of the tensor; the options are those of ``dask.array.from_array``, ``chunks`` above all."""
    import dask.array

    register()
    return dask.array.from_array(tensor, **{"chunks": "auto", "asarray": False, **options})
