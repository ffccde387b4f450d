"""Binsparse, version 0.1, in files: a description in JSON, and plain arrays beside it, in HDF5 (.h5) or NumPy's archives (.bsp.npz)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from sparseloom.core.errors import SparseloomError
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.interop.binsparse import KEY, described, from_described
from sparseloom.io.hdf5 import read_described
from sparseloom.io.room import in_format
from sparseloom.io.source import fault, open_plain, replacing


def read_h5(path: Path, format: Format | str | None = None) -> Storage:
    """Read the tensor that an HDF5 file describes at its top."""
    with open_plain(path) as file:
        about, arrays = read_described(path, file, KEY)
    try:
        storage = from_described(about, arrays)
    except SparseloomError as problem:
        raise fault(path, str(problem)) from None
    return in_format(path, storage, format)


def write_h5(path: Path, storage: Storage) -> None:
    """Write a tensor as an HDF5 file."""
    import h5py

    about, arrays = described(storage)
    with replacing(path) as file, h5py.File(file, "w") as held:
        held.attrs[KEY] = json.dumps(about)
        for name, array in arrays.items():
            held.create_dataset(name, data=array)


def write_bsp_npz(path: Path, storage: Storage) -> None:
    """Write a tensor as an archive with its description."""
    about, arrays = described(storage)
    held: dict[str, Any] = {KEY: np.array(json.dumps(about).encode()), **arrays}
    with replacing(path) as file:
        np.savez_compressed(file, **held)
