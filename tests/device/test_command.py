"""``sparseloom run --target cuda`` copies its operands to the device and its result back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from device.stand_in import StandIn

from sparseloom.cli.main import main


def test_operands_go_to_the_device_and_the_result_comes_back(
    device: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    matrix = sp.random_array((6, 5), density=0.4, format="csr", rng=np.random.default_rng(1))
    scipy.io.mmwrite("a.mtx", matrix)
    np.save("x.npy", np.arange(5.0))
    command = ["run", "y(i) = A(i,j) * x(j)", "-i", "A=a.mtx", "-i", "x=x.npy", "-o", "y=y.npy", "--target", "cuda"]
    command += ["--time", "--repeat", "2"]
    assert main(command) == 0, capsys.readouterr().err
    np.testing.assert_allclose(np.load("y.npy"), matrix @ np.arange(5.0))
