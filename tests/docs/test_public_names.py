"""What ``import sparseloom`` offers."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import sparseloom
from sparseloom.surface import TABLE

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


def test_the_functions_on_whole_tensors_are_those_of_the_table() -> None:
    assert set(TABLE) <= set(sparseloom.__all__), "name them in __all__ of sparseloom/__init__.py"
    assert all(getattr(sparseloom, name) is TABLE[name].call for name in TABLE)


def test_names_come_from_where_type_checkers_think() -> None:
    tree = ast.parse(Path(sparseloom.__file__ or "").read_text(encoding="utf-8"))
    block = next(item for item in tree.body if isinstance(item, ast.If))
    imported = {alias.name: item.module for item in block.body if isinstance(item, ast.ImportFrom) for alias in item.names}
    del imported["accelerate"]
    homes = {name: home for name, home in sparseloom._HOME.items() if ":" not in home}
    assert {name: imported[name] for name in homes} == homes
    functions = {name: home for name, home in imported.items() if name in TABLE and name not in homes}
    assert functions == {name: inspect.unwrap(TABLE[name].call).__module__ for name in functions}


def test_a_module_never_takes_the_place_of_a_function() -> None:
    look = "import sparseloom.compiler, sparseloom.calls.evaluation, sparseloom as sl; print(callable(sl.plan), callable(sl.program))"
    done = subprocess.run([sys.executable, "-c", look], env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stderr
