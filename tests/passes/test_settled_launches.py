"""What a settled launch promises is checked by the interpreter: barriers where threads need them, and a unit for every iteration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lower.test_kernels import SCHEDULES, SPMV
from paper.tensors import matrix

import sparseloom as sl
from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import rewrite, walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import run
from sparseloom.loops.printer import show
from sparseloom.loops.racing import RaceFound
from sparseloom.loops.reader import read
from sparseloom.loops.units import over_launches
from sparseloom.loops.verify import verify
from sparseloom.passes.barriers import place_barriers
from sparseloom.passes.failures import skip_after_failures
from sparseloom.passes.fit_units import fit_units
from sparseloom.passes.search_together import search_together
from sparseloom.targets.cuda import translation_unit

HEAD = "def kernel(input x: float64[], output y: float64[], size n)\n"
LAUNCH = "  launch 1 blocks of 64 threads, in groups of 8 and warps of 32, settled\n    for b in 0 : 1  [gpu block]\n"


def kernel(body: str, head: str = HEAD + LAUNCH) -> ir.Function:
    """A kernel whose body is indented by six spaces."""
    made = read(head + "".join(f"      {line}\n" for line in body.strip("\n").split("\n")))
    verify(made)
    return made


def compute(function: ir.Function) -> list[float]:
    """What a kernel makes of 0, 1, 2, ..."""
    made: list[float] = run(function, [np.arange(64.0), np.zeros(64), 64], outputs_initialised=True)[1].tolist()
    return made


# Each of these barriers is needed.
NEEDED = {
    "threads read what others wrote": """
allocate w: float64[64] shared
for t in 0 : 64  [gpu thread 64]
  w[63 - t] = x[t]
barrier
for t in 0 : 64  [gpu thread 64]
  y[t] = w[t]
free w""",
    "lanes read what others wrote": """
for v in 0 : 8  [gpu warp 8]
  allocate w: float64[8] shared
  for t in 0 : 8  [gpu thread 8]
    w[7 - t] = x[8 * v + t]
  barrier
  for t in 0 : 8  [gpu thread 8]
    y[8 * v + t] = w[t]
  free w""",
    "one thread stores for all, and stores again": """
allocate w: float64[1] shared
w[0] = x[1]
barrier
for t in 0 : 64  [gpu thread 64]
  y[t] = w[0]
barrier
w[0] = x[2]
barrier
a: float64 = w[0]
for t in 0 : 64  [gpu thread 64]
  y[t] += a
free w""",
    "each lane fills a part": """
for v in 0 : 8  [gpu warp 8]
  allocate w: float64[8] shared
  w[0 : +8] = x[0]
  barrier
  w[5] = x[v]
  barrier
  for t in 0 : 8  [gpu thread 8]
    y[8 * v + t] = w[t]
  free w""",
    "threads go on": """
allocate w: float64[64] shared
for k in 0 : 3
  for t in 0 : 64  [gpu thread 64]
    w[63 - t] = x[t]
  barrier
  for t in 0 : 64  [gpu thread 64]
    y[t] += w[t]
  barrier
free w""",
}


@pytest.mark.parametrize("name", NEEDED)
def test_a_barrier_that_is_missing_is_reported(name: str) -> None:
    lines = NEEDED[name].split("\n")
    assert sum(compute(kernel("\n".join(lines)))) > 0
    places = [k for k, line in enumerate(lines) if line.strip() == "barrier"]
    for k in places:
        with pytest.raises(RaceFound, match=r"of one (block|warp), with no barrier between"):
            compute(kernel("\n".join(lines[:k] + lines[k + 1 :])))


@pytest.mark.parametrize("name", NEEDED)
def test_the_pass_places_all_barriers_of_lanes_and_of_stores(name: str) -> None:
    """Those between loops over the threads of a block are there before, as lowering places them."""
    if name in ("threads read what others wrote", "threads go on"):
        return
    text = HEAD + LAUNCH.replace(", settled", "") + "".join(f"      {line}\n" for line in NEEDED[name].strip("\n").split("\n"))
    kept = [line for line in text.split("\n") if line.strip() != "barrier" or name.startswith("one thread")]
    placed = place_barriers(read("\n".join(kept)))
    verify(placed)
    assert compute(placed) == compute(kernel(NEEDED[name]))
    assert place_barriers(placed) == placed, "barriers are placed once"


@pytest.mark.parametrize("name", [name for name in SCHEDULES if "staged" in name])
def test_kernels_without_their_barriers_race(name: str, rng: np.random.Generator) -> None:
    """Products go through shared memory, where other threads add them up."""
    A, x = matrix(rng, 37, 29, 0.2), rng.integers(1, 5, 29) * 1.0
    made = sl.program(SPMV, {"A": "csr"}, SCHEDULES[name], target="interpret")
    stages = made.preview().stages
    assert np.array_equal(made(A, x).to_numpy(), A @ x)
    bare = rewrite(stages.lowered.function, lambda n: ir.block() if isinstance(n, ir.Barrier) else None, ir.Stmt)
    assert bare != stages.lowered.function
    broken = made._inspected().following(replace(stages, lowered=replace(stages.lowered, function=bare)))
    storages = {"A": sl.asarray(A, format="csr").storage, "x": sl.asarray(x).storage}
    with pytest.raises(RaceFound, match="with no barrier between"):
        broken.bind(storages, "interpret").run()


def test_every_iteration_has_a_unit_of_its_own() -> None:
    text = "for t in 0 : n + 2  [gpu thread 64]\n  if t < n\n    y[t] = x[t]"
    with pytest.raises(CompilerBug, match="a loop over 64 units has at most as many iterations, not 66"):
        compute(kernel(text))
    fitted = fit_units(kernel(text, HEAD + LAUNCH.replace(", settled", "")))
    verify(fitted)
    assert "while t < t_last" in show(fitted)
    assert compute(place_barriers(fitted)) == list(map(float, range(64)))


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 50])
def test_lanes_that_take_several_entries_shuffle_once(count: int) -> None:
    text = f"""
for v in 0 : 1  [gpu warp 1]
  a: float64 = 0.0
  for t in 2 : 2 + {count} * n // 64  [gpu thread 8]
    own: float64 = x[t]
    a += shuffle own
  y[0] = a"""
    fitted = place_barriers(fit_units(kernel(text, HEAD + LAUNCH.replace(", settled", ""))))
    verify(fitted)
    assert compute(fitted)[0] == sum(range(2, 2 + count))
    assert show(fitted).count("shuffle") == 1 and ("while" in show(fitted)) == (count > 0)
    assert "across_float64" in translation_unit([(fitted, "entry")])


def test_searches_are_reached_by_all_lanes_that_search_together() -> None:
    head = "def kernel(input x: int64[], output y: int64[], size n)\n" + LAUNCH

    def found(function: ir.Function) -> list[int]:
        made: list[int] = run(function, [np.arange(64), np.zeros(64, np.int64), 64], outputs_initialised=True)[1].tolist()
        return made

    text = "a: int64 = search(x, 0, n, 5)\nc: int64 = search(x, 0, n, 9)\nfor t in 0 : 64  [gpu thread 64]\n  y[t] = a + c"
    together = place_barriers(search_together(kernel(text, head.replace(", settled", ""))))
    verify(together)
    assert "find together\n        a: int64 = search(x, 0, n, 5, 32)\n        c: int64 = search(x, 0, n, 9, 32)\n" in show(together)
    assert found(together) == [14] * 64
    with pytest.raises(CompilerBug, match="a search is reached by all 32 lanes that search together, not by 1 of them"):
        found(kernel("for t in 0 : 64  [gpu thread 64]\n  y[t] = search(x, 0, n, t, 32)", head))
    many = "find together\n" + "".join(f"  a{k}: int64 = search(x, 0, n, {k}, 32)\n" for k in range(3)) + "y[0] = a2"
    with pytest.raises(CompilerBug, match="3 warps of a block find something together, so that there are as many, and all come"):
        found(kernel(many, head))
    with pytest.raises(CompilerBug, match="what is found together does not depend on each other"):
        kernel("find together\n  a: int64 = search(x, 0, n, 5, 32)\n  c: int64 = search(x, 0, n, a, 32)\ny[0] = c", head)


def test_what_stands_behind_a_failure_is_its_other_branch() -> None:
    text = """
for t in 0 : 64  [gpu thread 64]
  a: float64 = x[t]
  if a > 100.0
    fail BOUND_VIOLATED
  y[t] = a
  if a < 0.0
    fail BOUND_VIOLATED
  y[t] += a"""
    skipped = skip_after_failures(kernel(text))
    verify(skipped)
    (loop,) = (n for n in walk(skipped) if isinstance(n, ir.For) and n.kind is ir.LoopKind.GPU_THREAD)
    _, check = ir.stmts_of(loop.body)
    assert isinstance(check, ir.If) and isinstance(ir.stmts_of(check.other)[1], ir.If)
    assert compute(skipped) == compute(kernel(text)) == [2.0 * k for k in range(64)]


def test_a_launch_that_is_not_settled_has_no_text() -> None:
    open_launch = kernel("y[0] = x[0]", HEAD + LAUNCH.replace(", settled", ""))
    with pytest.raises(CompilerBug, match="a launch is settled before its text is made: its barriers are placed"):
        translation_unit([(open_launch, "entry")])


def test_a_rule_knows_the_units_that_run_a_statement() -> None:
    counts: list[int] = []

    def rule(stmt: ir.Stmt, units: object) -> ir.Stmt:
        if isinstance(stmt, ir.Store):
            counts.append(units.count)  # type: ignore[attr-defined]
        return stmt

    text = "y[0] = x[0]\nfor v in 0 : 8  [gpu warp 8]\n  y[1] = x[0]\n  for t in 0 : 8  [gpu thread 8]\n    y[2] = x[0]"
    function = kernel(text)
    assert over_launches(function, lambda launch: rule, settled=True) is function
    assert counts == [64, 8, 1]
