"""How much memory it takes to read a file, or to refuse it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from sparseloom.core.errors import StorageError
from sparseloom.io import read


def peak_of_refusal(path: Path, expected: str) -> int:
    """The most bytes that reading held; nothing is expected of a file that is valid."""
    tracemalloc.start()
    try:
        if expected:
            with pytest.raises(StorageError) as caught:
                read(path)
            assert expected in str(caught.value)
        else:
            read(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
