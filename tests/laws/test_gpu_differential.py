"""Random schedules for a GPU: the interpreter agrees with the dense oracle, with no race and no missing barrier, and NVRTC compiles all."""

from __future__ import annotations

import warnings
from itertools import islice

import pytest
from fuzz.on_gpu import Choose, OnGpu, Tally, at_random, on_gpu, planned

from sparseloom.core.errors import RaceWarning
from sparseloom.loops.rename import alpha_rename
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.targets.cuda import translation_unit

CHUNKS = 4


@pytest.mark.parametrize("choose", (at_random, planned))
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_schedule_for_a_gpu_never_changes_the_result(chunk: int, choose: Choose, seed: int, case_count: int) -> None:
    share = max(case_count // 10, 80) // CHUNKS
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RaceWarning)
        cases = list(islice(on_gpu(seed, 4000 + chunk, tally, choose), share))
        for case in cases:
            case.check("interpret")
    compile_together(cases)
    assert tally.refused.total() <= share


def compile_together(cases: list[OnGpu]) -> None:
    """Compile the kernels of all cases as one text, which costs much less than one each."""
    functions = [(alpha_rename(case.stages.lowered.function), f"entry{k}") for k, case in enumerate(cases)]
    assert compile_cubin(translation_unit(functions))
