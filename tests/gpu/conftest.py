"""Tests that need a GPU are marked ``gpu``; where there is none they are skipped, and the reason is the driver's own."""

from __future__ import annotations

from typing import Any

import pytest

from sparseloom.core.errors import DeviceError
from sparseloom.programs.cuda.device import device


@pytest.fixture(autouse=True)
def gpu() -> Any:
    """The first device."""
    try:
        return device(0)
    except DeviceError as none:
        pytest.skip(str(none).split("\n")[0])
