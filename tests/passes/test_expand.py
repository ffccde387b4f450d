"""Loops that go into the loops of their body: random bodies, whose results stay the same, and what is said where that cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparseloom.core.names import Names
from sparseloom.core.trees import walk
from sparseloom.loops import nodes as ir
from sparseloom.loops.facts import loops_in
from sparseloom.loops.interpret import run
from sparseloom.loops.outcomes import Outcome, settled
from sparseloom.loops.printer import show
from sparseloom.loops.reader import read
from sparseloom.loops.verify import verify
from sparseloom.passes.expand import Axis, Declined, Expansion, lane_last
from sparseloom.passes.unroll_and_jam import unroll_and_jam
from sparseloom.passes.vectorize import vectorize

HEAD = "def f(input A: float64[], input B: float64[], input crd: int64[], size n, size m, output y: float64[], output z: float64[])"
Improve = Callable[[ir.Function], tuple[ir.Function, tuple[Outcome, ...]]]
IN_LANES: Improve = lambda function: vectorize(function, 32)  # noqa: E731


@st.composite
def bodies(draw: st.DrawFn) -> list[str]:
    """A body that sums along p for each q: with scalars, branches, private arrays and nested loops in any order."""
    before, inside, after = list[str](), list[str](), list[str]()
    names = iter(f"s{k}" for k in range(99))
    index, value = ["q"], ["A[q]", "B[m]", "2.0"]
    for _ in range(draw(st.integers(0, 4))):
        name = next(names)
        if draw(st.booleans()):
            before.append(f"{name}: int64 = {draw(st.sampled_from(index))}{draw(st.sampled_from([' + 1', ' * 2', ' + m', '']))}")
            index.append(f"min({name}, 31)")
        else:
            before.append(f"{name}: float64 = {draw(st.sampled_from(value))} + A[{draw(st.sampled_from(index))}]")
            value.append(name)
    sums = [f"t{k}" for k in range(draw(st.integers(1, 2)))]
    before += [f"{name}: float64 = {draw(st.sampled_from(['0.0', 'A[q]']))}" for name in sums]
    has_row = draw(st.booleans())
    if has_row:
        before += ["allocate w: float64[3] local", "w[0 : +3] = 0.0" if draw(st.booleans()) else "w[0] = 1.0\nw[1] = 2.0\nw[2] = A[q]"]
    if draw(st.booleans()):
        inside.append("j: int64 = crd[p]")
    j = "j" if inside else "p"
    if draw(st.booleans()):
        inside.append(f"a: float64 = A[p] * B[{j} + {draw(st.sampled_from(index))}]")
    term = "a" if inside and inside[-1].startswith("a:") else f"A[{j}]"
    for name in sums:
        added = f"{name} = {name} + {term} * B[p * 4 + {draw(st.sampled_from(index))}] + {draw(st.sampled_from(value))}"
        branch = draw(st.sampled_from(["", "if p < 2", "if A[q] < 3.0", "for l in 0 : 2"]))
        inside += [f"{branch}\n  {added}"] if branch else [added]
    if has_row:
        inside.append(f"w[min(p, 2)] += {sums[0]}")
        after += [f"z[q * 3 + {k}] = w[{k}]" for k in range(3)] + ["free w"]
    after += [f"y[q * 2 + {k}] = {name}" for k, name in enumerate(sums)]
    return [*before, "for p in 0 : m", *(f"  {line}" for part in inside for line in part.split("\n")), *after]


def kernel(tag: str, body: list[str], extent: str = "n") -> ir.Function:
    lines = [f"    {line}" for part in body for line in part.split("\n")]
    function = read("\n".join([HEAD, "  y[0 : +64] = 0.0", "  z[0 : +96] = 0.0", f"  for q in 0 : {extent}  [{tag}]", *lines]) + "\n")
    verify(function)
    return function


def results(function: ir.Function, n: int, m: int) -> Iterator[bytes]:
    A, B = np.arange(64.0) % 5, np.arange(128.0) % 7
    y, z = np.zeros(64), np.zeros(96)
    run(function, [A, B, np.arange(16)[::-1].copy(), n, m, y, z])
    return iter((y.tobytes(), z.tobytes()))


@pytest.mark.parametrize(("tag", "improve"), [("vector", IN_LANES), ("unrolled 4", unroll_and_jam)])
@settings(deadline=None)
@given(body=bodies(), n=st.integers(0, 21), m=st.integers(0, 9))
def test_results_stay_the_same_and_every_body_is_done(tag: str, improve: Improve, body: list[str], n: int, m: int) -> None:
    """Declarations, branches that are the same for all, loops inside, private arrays: nothing of it makes a loop fall back."""
    function = kernel(tag, body)
    made, (outcome,) = improve(function)
    verify(made)
    assert outcome.done, outcome
    assert [*results(made, n, m)] == [*results(function, n, m)]
    around = next(n for n in walk(made) if isinstance(n, ir.For) and n.kind is ir.LoopKind.SERIAL)
    assert not any(isinstance(n, ir.For) and n.var.name == "q" for n in walk(around))  # what is left over is not inside the blocks


SUM = ["t: float64 = 0.0", "for p in 0 : m", "  t = t + A[p + q]", "y[q] = t"]


@pytest.mark.parametrize(
    ("tag", "body", "words"),
    [
        ("vector", ["t: float64 = 0.0", "for p in 0 : crd[q]", "  t = t + A[p]", "y[q] = t"],
         "q: vector loop kept scalar: lanes take different ways at the loop over p"),
        ("vector", ["t: float64 = A[q]", "while t < 9.0", "  t = t + 3.0", "y[q] = t"],
         "q: vector loop kept scalar: lanes take different ways at a loop"),
        ("vector", ["if A[q] < 2.0", "  for p in 0 : m", "    y[q] += A[p]"], "q: vector loop kept scalar: lanes take different branches"),
        ("vector", ["for p in 0 : m", "  y[0] += A[p + q]"], "q: vector loop kept scalar: lanes write one place of y"),
        ("vector", ["allocate w: float64[m]", "w[0] = A[q]", "for p in 0 : m", "  y[q] += w[0]", "free w"],
         "q: vector loop kept scalar: lanes need an array w each, whose size is not known"),
        ("unrolled 4", ["for p in 0 : m", "  y[q + p] = y[q] + A[p]"],
         "q: unrolled by 4, one iteration after another: they read y, which they write"),
        ("unrolled 4", ["for p in 0 : crd[q]", "  y[q] += A[p]"],
         "q: unrolled by 4, one iteration after another: iterations take different ways at the loop over p"),
        ("unrolled 4", ["for p in 0 : m", "  y[q * 4 + min(p, 3)] = A[p]"],
         "q: unrolled by 4, one iteration after another: they keep nothing from one step to the next"),
        ("unrolled 40", SUM, "q: unrolled by 40, one iteration after another: 40 are not done at once"),
    ],
)  # fmt: skip
def test_a_loop_that_cannot_go_inside_stays_and_says_why(tag: str, body: list[str], words: str) -> None:
    function = kernel(tag, body)
    made, (outcome,) = (IN_LANES if tag == "vector" else unroll_and_jam)(function)
    assert made is function and str(outcome) == words and not outcome.done
    (asked,) = settled([outcome, outcome])
    assert asked == outcome


def test_a_known_number_of_iterations_needs_no_rest() -> None:
    made, (outcome,) = unroll_and_jam(kernel("unrolled 4", SUM, "4"))
    assert str(outcome) == "q: unrolled by 4, side by side in the loop over p"
    assert show(made).count("for p in") == 1 and "y[q] = t_of[q]" in show(made)


def test_what_is_left_of_a_split_is_not_jammed() -> None:
    made, _ = unroll_and_jam(kernel("unrolled 4", SUM, "min(m * 4 + 4, n) - m * 4"))
    assert "if min(m * 4 + 4, n) - m * 4 == 4" in show(made)


def test_several_sums_have_lanes_each() -> None:
    """A sum in lanes may stand beside another, and have loops inside."""
    text = f"""{HEAD}
  y[0 : +64] = 0.0
  z[0 : +96] = 0.0
  s: float64 = 0.0
  t: float64 = 1.0
  for q in 0 : n  [vector, + s, * t]
    a: float64 = 0.0
    for p in 0 : m
      a = a + B[p * 4 + q]
    s = s + a
    t = t * 2.0
  y[0] = s
  y[1] = t
"""
    function = read(text)
    made, (outcome,) = vectorize(function, 32)
    verify(made)
    assert str(outcome) == "q: vector loop, 4 lanes at a time, each with a sum of its own"
    for n in (0, 3, 4, 11):
        assert [*results(made, n, 5)] == [*results(function, n, 5)]


def test_the_lane_becomes_the_last_term() -> None:
    lane, base, size = (ir.Var(name) for name in ("lane", "base", "n"))
    index = ir.Op("add", (ir.Op("add", (ir.add(base, lane), ir.index(3))), size))
    assert lane_last(index, lane) == ir.add(ir.add(ir.add(base, ir.index(3)), size), lane)
    assert lane_last(ir.add(base, size), lane) is None


def test_an_expansion_says_which_loops_it_went_into() -> None:
    loop = next(n for n in walk(kernel("unrolled 4", SUM)) if isinstance(n, ir.For))
    found = Expansion(Axis(loop, ir.Var("turn"), 4, ir.Var("base")), Names({"t", "p", "q"}))
    assert found.crossed == ["p"] and found.keeps_something and len(loops_in(found.body)) == 4
    going_on = read(f"{HEAD}\n  t: float64 = 0.0\n  for q in 0 : n  [unrolled 4]\n    for p in 0 : m\n      t = t + A[q]\n  y[0] = t\n")
    loop = next(n for n in walk(going_on) if isinstance(n, ir.For))
    with pytest.raises(Declined, match="each iteration goes on with t where the one before it left it"):
        Expansion(Axis(loop, ir.Var("turn"), 4, ir.Var("base")), Names({"t", "p", "q"}))
