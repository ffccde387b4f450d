"""xarray: its arrays hold tensors as they hold NumPy's; what they hold is read, and names of dimensions are left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparseloom.core.errors import DTypeError
from sparseloom.interop.entry import Intake
from sparseloom.interop.intake import enter_held


def reader_for(kind: type) -> Callable[[Any], Intake] | None:
    """How objects of this class are read, if it is one of xarray's."""
    names = [parent.__name__ for parent in kind.__mro__ if parent.__module__.partition(".")[0] == "xarray"]
    return next((_READERS[name] for name in names if name in _READERS), None)


def _from_array(array: Any) -> Intake:
    return enter_held(array.data)


def _refuse_dataset(dataset: Any) -> Intake:
    raise DTypeError(f"a Dataset holds several arrays; give one of them, as in dataset[{next(iter(dataset.data_vars), 'name')!r}]")


_READERS: dict[str, Callable[[Any], Intake]] = {"DataArray": _from_array, "Variable": _from_array, "Dataset": _refuse_dataset}


def give(tensor: Any, **options: Any) -> Any:
    """A DataArray that holds the tensor itself; the options are its ``dims``, ``coords``, ``name`` and ``attrs``."""
    import xarray

    return xarray.DataArray(tensor, **{"name": tensor.name, **options})
