"""A stand-in for a device, and a target that runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from device.stand_in import StandIn, recording
from device.toy_target import TOY_CUDA

from sparseloom.programs.cuda import device as devices
from sparseloom.programs.cuda import launching
from sparseloom.targets.registry import TARGETS


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A stand-in as device 0, which runs ``target="cuda"``; the text of kernels stands for their machine code."""
    made = StandIn(tmp_path)
    monkeypatch.setattr(devices, "_devices", {0: made})
    monkeypatch.setattr(launching, "compile_cubin", lambda source, architecture: source.encode())
    monkeypatch.setitem(TARGETS, "cuda", recording(TARGETS.get("cuda", TOY_CUDA), made))
    yield made
    launching._modules.clear()


