"""Dask: its arrays hold tensors as chunks, which it learns when the first of its arrays is met here. Reading one computes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sparseloom.interop.entry import Intake, converted
from sparseloom.interop.intake import enter_held
from sparseloom.interop.registry import introduced


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

    tensors = introduced()
    register_chunk_type(tensors.kind)
    concatenate_lookup.register(tensors.kind, tensors.functions["concatenate"])
    tensordot_lookup.register(tensors.kind, tensors.functions["tensordot"])


def give(tensor: Any, **options: Any) -> Any:
    """A Dask array of chunks of the tensor; the options are those of ``dask.array.from_array``, ``chunks`` above all."""
    import dask.array

    register()
    return dask.array.from_array(tensor, **{"chunks": "auto", "asarray": False, **options})
