"""Pickles and archives of tensors whose arrays were changed by somebody else on the way."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from attack.arrays import damaged, is_plain, pick, relaid, retyped
from attack.entering import judge, random_storage, storage_tensor, strange_values
from attack.entering import storage_meaning as meaning_of
from attack.uses import any_format

import sparseloom as sl


def _with_one_array_changed(rng: np.random.Generator, arrays: dict[str, Any]) -> dict[str, Any]:
    """Index arrays by name, one of them strange or wrong."""
    indices = [name for name in arrays if name != "values" and np.ndim(arrays[name])]
    if indices and rng.random() < 0.8:
        chosen = pick(rng, indices)
        arrays = {**arrays, chosen: pick(rng, (damaged, damaged, relaid, retyped))(rng, arrays[chosen])}
    return arrays


def through_pickle(rng: np.random.Generator) -> str:
    """A pickle whose arrays were exchanged: what it is rebuilt from is checked like everything else."""
    storage = random_storage(rng, any_format(rng, int(rng.integers(1, 4))))
    rebuild, (kind, form, shape, arrays, fill, name, notes) = storage_tensor(storage).__reduce__()
    arrays = _with_one_array_changed(rng, arrays)
    arrays["values"], meant, plainly = strange_values(rng, storage.values)
    meaning, must_take = meaning_of(storage, arrays, meant)

    def enter() -> sl.Tensor:
        return pickle.loads(pickle.dumps(rebuild(kind, form, shape, arrays, fill, name, notes)))  # type: ignore[no-any-return]

    return judge(rng, meaning, must_take and plainly, arrays, enter)


def through_npz(rng: np.random.Generator) -> str:
    """An archive in our own layout whose arrays were exchanged."""
    storage = random_storage(rng, any_format(rng, int(rng.integers(1, 4))))
    arrays = _with_one_array_changed(rng, storage_tensor(storage).arrays)
    if not all(isinstance(array, np.ndarray) and not array.dtype.hasobject for array in arrays.values()):
        return "right"  # such arrays cannot stand in an archive
    arrays = {name: np.array(np.ma.getdata(array)) for name, array in arrays.items()}
    meaning, must_take = meaning_of(storage, arrays, storage.values)
    head = {"sparseloom_format": np.array(storage.format.text), "shape": np.array(storage.shape), "fill": np.array(0, storage.dtype)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tensor.npz")
        np.savez(path, **head, **arrays)
        return judge(rng, meaning, must_take and all(map(is_plain, _indices(arrays))), arrays, lambda: sl.read(path))


def _indices(arrays: dict[str, Any]) -> list[Any]:
    return [array for name, array in arrays.items() if name != "values" and np.ndim(array)]
