"""Every schedule of the paper's appendix is right, free of races, and makes the code in ``tests/golden/paper``."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from paper.tensors import SHAPES, Operands, operands
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases

import sparseloom as sl
from sparseloom.explorer.paper import PAPER, PaperSchedule
from sparseloom.programs.cuda.nvrtc import compile_cubin

FOLDER = GOLDEN / "paper"
ON_CPU = [paper for paper in PAPER if "_gpu" not in paper.name]
named = pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper.name)


def kernel(paper: PaperSchedule, target: str) -> sl.Kernel:
    """The kernel of a schedule. A race that nothing covers would be a warning, and is an error here."""
    formats = dict(item.split(":", 1) for item in paper.formats.split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sl.program(paper.statement, formats, paper.steps, target=target)


def check(paper: PaperSchedule, target: str, rng: np.random.Generator) -> None:
    made = kernel(paper, target)
    for shape in SHAPES:
        given, wanted = operands(paper.name.split("_")[0], rng, *shape)
        assert np.array_equal(made(**given).to_numpy(), wanted), f"{paper.name} is wrong on {shape}"


@named
def test_a_schedule_is_right_and_no_two_iterations_meet(paper: PaperSchedule, rng: np.random.Generator) -> None:
    check(paper, "interpret", rng)


@pytest.mark.parametrize("paper", ON_CPU, ids=lambda paper: paper.name)
def test_a_schedule_for_the_cpu_is_right_in_c(paper: PaperSchedule, rng: np.random.Generator) -> None:
    check(paper, "c", rng)


@pytest.mark.parametrize("paper", [paper for paper in PAPER if paper not in ON_CPU], ids=lambda paper: paper.name)
def test_a_schedule_for_the_gpu_says_that_c_cannot_run_it(paper: PaperSchedule, rng: np.random.Generator) -> None:
    given, _ = operands(paper.name.split("_")[0], rng, 5, 7, 0.3)
    with pytest.raises(sl.DeviceError, match="the schedule runs a loop on GPU"):
        kernel(paper, "c")(**given)


@pytest.mark.parametrize("paper", [paper for paper in PAPER if paper not in ON_CPU], ids=lambda paper: paper.name)
def test_a_schedule_for_the_gpu_is_compiled(paper: PaperSchedule) -> None:
    assert compile_cubin(kernel(paper, "cuda").source)


BOUNDED = [paper for paper in PAPER if "MaxExact" in paper.steps]


def widened(given: Operands) -> Operands:
    """Dense matrices of 128 columns instead of 32."""
    return {name: np.hstack([value] * 4) if value.ndim == 2 and value.shape[1] == 32 else value for name, value in given.items()}


@pytest.mark.parametrize("paper", BOUNDED, ids=lambda paper: paper.name)
def test_a_broken_bound_raises(paper: PaperSchedule, rng: np.random.Generator) -> None:
    given, _ = operands(paper.name.split("_")[0], rng, 5, 7, 0.3)
    with pytest.raises(sl.ShapeError, match="bound"):
        kernel(paper, "interpret")(**widened(given))


@pytest.mark.parametrize("paper", BOUNDED, ids=lambda paper: paper.name)
def test_four_times_the_columns_need_four_times_the_bound(paper: PaperSchedule, rng: np.random.Generator) -> None:
    given, wanted = operands(paper.name.split("_")[0], rng, 5, 7, 0.3)
    wide = paper._replace(steps=paper.steps.replace("dense_val,1,MaxExact", "dense_val,4,MaxExact"))
    assert np.array_equal(kernel(wide, "interpret")(**widened(given)).to_numpy(), np.hstack([wanted] * 4))


@named
def test_a_schedule_makes_this_code(paper: PaperSchedule) -> None:
    target = "c" if paper in ON_CPU else "cuda"
    made = kernel(paper, target)
    stages = ("concrete", "loops", target)
    steps = "\n".join(line.strip() for line in paper.steps.strip().splitlines())
    found = {"schedule": f"{paper.statement}\n{paper.formats}\n{steps}".rstrip()}
    found |= {stage: made.show(stage).strip("\n") for stage in stages}
    file = FOLDER / f"{paper.name}.txt"
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)
