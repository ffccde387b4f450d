"""What ``import sparseloom`` offers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import sparseloom

ROOT = Path(__file__).resolve().parents[2]
# The public names that must keep their meaning, as far as they exist now.
PROMISED = """
    indices IndexVar Tensor asarray zeros Format dense csr csc dcsr dcsc coo csf bcsr ell dia evaluate program einsum Kernel Semiring
    SparseloomError NotationError FormatError StorageError ShapeError ScheduleError DTypeError DeviceError ToolchainError
    SparseloomWarning ConversionWarning RaceWarning equal not_equal read write
""".split()


def test_every_promised_name_is_offered() -> None:
    assert set(PROMISED) <= set(sparseloom.__all__)


def test_the_list_of_names_is_sorted_and_true() -> None:
    names = sparseloom.__all__
    assert names == sorted(set(names))
    assert all(hasattr(sparseloom, name) for name in names)


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sparseloom.__version__ == project["version"]
