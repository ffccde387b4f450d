"""The package keeps the rules of the house."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from house.reading import Module, modules_in
from house.rules import RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
# Loading any of these costs more than loading all of Sparseloom.
NEIGHBOURS = frozenset(
    "scipy rich torch jax jaxlib cupy sparse numba pandas networkx xarray dask opt_einsum graphblas h5py".split()
)
# What only files and the command line need, and parts of the standard library that take long to load.
LATER = frozenset(
    "sparseloom.cli sparseloom.io.mtx sparseloom.io.npy sparseloom.io.npz sparseloom.io.table "
    "sparseloom.io.tns zipfile argparse asyncio concurrent.futures ctypes.util email http "
    "logging multiprocessing numpy.testing numpy.f2py socket sqlite3 ssl unittest xml".split()
)


@pytest.fixture(scope="module")
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    return modules_in(ROOT / "src")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house_keeps_the_rule(rule: Rule, modules: tuple[Module, ...]) -> None:
    if complaints := rule(modules):
        pytest.fail("\n  ".join([f"the rule: {rule.__doc__}", *complaints]), pytrace=False)


# The compiler, and all that waits for the first tensor or statement.
UNUSED = frozenset("numpy sparseloom.compiler sparseloom.tensor sparseloom.notation sparseloom.lower".split())


def loaded_by(program: str) -> set[str]:
    """The modules that are there after a program."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    look = f"import sys; {program}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_sparseloom_leaves_its_neighbours_alone() -> None:
    for program, forbidden in (
        ("import sparseloom", NEIGHBOURS | LATER | UNUSED),
        ("import sparseloom as sl; sl.Tensor, sl.evaluate, sl.array_api, sl.accelerate", NEIGHBOURS | LATER),
    ):
        loaded = forbidden & loaded_by(program)
        assert not loaded, f"{program} also imports {', '.join(sorted(loaded))}: import it where it is used"
