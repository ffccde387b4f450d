"""Parts of the benchmarks by themselves: races under a clock of our own, wrong answers, failing peers, stand-ins, random statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import sparseloom as sl
from benchmarks import kernels, planning, stand_ins
from benchmarks.contests import CONTESTS, toy_sets
from benchmarks.entrants import Entrant, returning
from benchmarks.outcome import Outcome, Report, Trial
from benchmarks.peers import numba, torch
from benchmarks.peers.registry import PEERS, find_peers, peer_entrants
from benchmarks.random_statements import draw
from benchmarks.tables import losses, why
from benchmarks.targets import TARGETS, Target, verdicts
from benchmarks.task import OURS, Field, everybody, faults
from benchmarks.timing import FEWEST, race


class Clock:
    """Time that passes only where a runner says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def taking(self, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self.now += seconds

        return run


def test_a_race_takes_medians_of_rounds_and_nobody_always_comes_first() -> None:
    clock, order = Clock(), []
    runners = {name: _noted(order, name, clock.taking(seconds)) for name, seconds in (("a", 0.01), ("b", 0.02), ("c", 0.04))}
    found = race(runners, 0.0, clock)
    assert {name: round(found.seconds(name), 9) for name in runners} == {"a": 0.01, "b": 0.02, "c": 0.04}
    assert found.ratio("c", "a") == pytest.approx(4.0)
    rounds = [tuple(order[at : at + 3]) for at in range(len(order) - 3 * FEWEST, len(order), 3)]
    assert len({first for first, *_ in rounds}) > 1 and all(set(names) == set(runners) for names in rounds)


def test_planning_is_measured_for_every_statement() -> None:
    found = list(planning.measure(2, 2000, 3000))
    assert [wait.what for wait in found] == [
        *(f"planning {name} of 2,000 rows" for name in planning.STATEMENTS), "planning SpMV of 3,000 rows"
    ]  # fmt: skip
    assert all(len(wait.samples) == 2 and wait.seconds > 0 for wait in found)


def test_whoever_is_far_too_slow_runs_twice() -> None:
    clock, order = Clock(), []
    found = race({"slow": _noted(order, "slow", clock.taking(30.0)), "quick": clock.taking(0.01)}, 0.0, clock)
    assert order == ["slow", "slow"] and found.ratio("slow", "quick") == pytest.approx(3000.0)


def _noted(order: list[str], name: str, run: Callable[[], None]) -> Callable[[], None]:
    def noted() -> None:
        order.append(name)
        run()

    return noted


def test_a_wrong_answer_is_found_in_every_kind_of_result() -> None:
    matrix = stand_ins.uniform(30, 20, 60).to_scipy()
    vector = np.arange(4.0)
    for right, wrong in ((vector, vector + 1e-6), (matrix, matrix * 2), (np.array([1.0, np.inf]), np.array([1.0, 2.0]))):
        field = Field({"right": returning(lambda r=right: r), "wrong": returning(lambda w=wrong: w)}, lambda r=right: r, 1)
        assert list(faults(field, 1e-10)) == ["wrong"]
    field = Field({"raises": returning(lambda: vector.nothing)}, lambda: vector, 1)
    assert faults(field, 1e-10)["raises"].startswith("failed: ")


def test_a_peer_that_fails_is_named_and_ends_nothing() -> None:
    def broken(*operands: object) -> Entrant:
        raise ValueError("it cannot do this\nat all")

    peer, other = ModuleType("peer"), ModuleType("other")
    peer.spmv, other.spmv = broken, lambda A, x: returning(lambda: A @ x)  # type: ignore[attr-defined]
    found, failed = peer_entrants("spmv", {"P": peer, "O": other}, (np.eye(2), np.ones(2)))
    assert list(found) == ["O"] and failed == {"P": "failed: it cannot do this"}


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("no such library")

    monkeypatch.setattr(torch, "load", missing)
    found, gaps = find_peers("SciPy", "torch")
    assert list(found) == ["SciPy"] and gaps == {"torch": "no such library"}
    assert all(hasattr(peer, "load") for peer in PEERS.values())


def test_natural_loops_are_right_where_python_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba compiles plain Python: without it, the same loops run slowly and must give the same answers."""
    idle = SimpleNamespace(njit=lambda parallel: lambda loop: loop)
    monkeypatch.setattr(numba, "load", lambda: idle)
    numba._compiled.cache_clear()
    seen = set()
    for contest in CONTESTS.values():
        make = next(iter(toy_sets()[contest.operands].values()))
        task = contest.task(make(), 16 if contest.widths[0] else 0)
        found, failed = peer_entrants(task.call, {"Numba": numba}, task.given)
        assert not failed and not faults(Field(found, task.reference, 1), 1e-10), contest.name
        seen |= {task.call} if found else set()
    numba._compiled.cache_clear()
    assert seen >= set("spmv spmm sddmm mttkrp ttv ttm inner add fused attention mttkrp4 min_plus hadamard".split())


def test_a_loop_by_hand_has_only_some_widths() -> None:
    tensor = stand_ins.toy_tensors()["toy_fibres"]()
    assert set(everybody(kernels.mttkrp(tensor, 16), {}).entrants) >= {"hand C", "same loop in C"}
    assert "hand C" not in everybody(kernels.mttkrp(tensor, 5), {}).entrants


def test_stand_ins_are_the_same_in_every_run_and_as_described() -> None:
    once, again = stand_ins.web(2_000, 20_000), stand_ins.web(2_000, 20_000)
    assert np.array_equal(once.storage.values, again.storage.values) and 15_000 < once.nnz < 25_000
    blocks = stand_ins.in_blocks(20, 4, 3)
    assert blocks.nnz == 16 * blocks.to("bcsr(4,4)").storage.levels[1].arrays["crd"].size
    even, skewed = (np.diff(stand_ins.skewed(500, 20_000, base).to_scipy().indptr) for base in (1.0, 1.02))
    assert even.max() < 60 < 200 < skewed.max()
    below = stand_ins.lower(stand_ins.uniform(30, 30, 200)).to_scipy().tocoo()
    assert (below.row > below.col).all()


@pytest.mark.parametrize("number", range(12))
def test_random_statements_can_be_planned(number: int) -> None:
    drawn = draw(number, 0.001)
    assert drawn.text == draw(number, 0.001).text
    plain, planned = (sl.program(drawn.text, drawn.formats, schedule)(*drawn.operands.values()) for schedule in ("", None))
    np.testing.assert_allclose(planned.to_numpy(), plain.to_numpy())


def outcome(**changed: object) -> Outcome:
    """A measurement in which SciPy takes twice our time and the loop by hand half of it."""
    seconds, ratios = {OURS: 0.002, "SciPy": 0.004, "hand C": 0.001}, {OURS: 1.0, "SciPy": 2.0, "hand C": 0.5}
    made = Outcome("spmv", 0, "a", (3, 3), 5, "float64", 2, seconds, ratios, {}, 0.0009, "")
    return replace(made, **changed)  # type: ignore[arg-type]


def test_a_target_is_for_the_best_peer_and_the_number_of_threads() -> None:
    target = Target("spmm", ("SciPy", "torch"), {1: 1.4, 2: 1.6, 16: 4.0})
    assert [target.at(threads) for threads in (1, 2, 8, 16, 64)] == [1.4, 1.6, 1.6, 4.0, 4.0]
    assert outcome().gain(("SciPy", "hand C", "torch")) == 0.5 and outcome().gain(("torch",)) is None
    found = {(v.what, v.threads): v.said for v in verdicts(_report(outcome()))}
    assert found[TARGETS[0].named, 2] == "met"
    assert found["SpMV, against hand C", 2] == "missed"
    assert found["SDDMM, against Numba", 2] == "not measured"


def test_random_statements_have_two_targets() -> None:
    trials = [Trial("a", {}, 2, 0.002, 0.001, 2.0, ""), Trial("b", {}, 2, 1e-5, 1.4e-5, 0.7, "")]
    least, average = [v for v in verdicts(replace(_report(), trials=trials)) if "random" in v.what]
    assert (least.found, least.said) == ("0.70x", "missed") and (average.found, average.said) == ("2.00x", "met")


def test_where_we_lose_is_listed_with_reasons() -> None:
    assert why(outcome()) == "our plan has no threads; they run at the speed of memory"
    assert why(outcome(width=32)) == "our plan has no threads; our plan has no vectors; they run at the speed of memory"
    nested = outcome(schedule="einsum ij,j->i", floor=0.0, ratios={OURS: 1.0, "Sparseloom, plain": 1.1, "hand C": 0.5})
    assert why(nested) == "einsum takes as long as one nest of loops"
    assert why(outcome(kernel="sampled_product", threads=1, floor=0.0)) == CONTESTS["sampled_product"].why
    assert why(outcome(kernel="sampled_product", threads=1, floor=0.0, schedule="precompute(...)")) == "not known"
    unsorted = outcome(threads=1, seconds={OURS: 2e-5, "SciPy": 1e-5, "SciPy + sort": 3e-5})
    assert why(unsorted) == "their rows are left unsorted; there is little to do"
    rows = losses(_report(outcome(), outcome(case="b", seconds={OURS: 0.001, "SciPy": 0.004}))).rows
    assert [row[:3] for row in rows] == [["SpMV, a, f64, 2 threads", "hand C", "2.00x"]]


def _report(*outcomes: Outcome) -> Report:
    return Report({}, {}, {}, {}, [], list(outcomes))
