"""How many of the loops that schedules tag are done as asked: random statements, operands and schedules, with bodies of every shape."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sparseloom as sl

SPARSE = (
    "A(i,j)", "A(i,j) * E(i,j)", "(A(i,j) + E(i,j))", "A(i,j) * s(i)", "A(i,j) * t(j) * s(i)", "(A(i,j) + 2 * E(i,j) + F(i,j))",
    "where(A(i,j) > 2, A(i,j), 0)", "(A(i,j) - E(i,j)) * F(i,j)",
)  # fmt: skip
DENSE = ("B(j,k)", "B(j,k) * d(k)", "(B(j,k) + G(j,k))", "abs(B(j,k))", "where(B(j,k) < 3, B(j,k), d(k))")
ADDED = ("", " + H(i,k)", " + H(i,k) * d(k)")
FORMATS = ("csr", "dcsr", "coo", "dense")
LANES = "parallelize({},CPUVector,NoRaces)"
STEPS = (
    f"reorder(i,k,j) {LANES.format('k')}",
    f"reorder(i,k,j) unroll(k,8) {LANES.format('k')}",
    f"split(k,k0,k1,16) reorder(i,k0,k1,j) parallelize(i,CPUThread,NoRaces) {LANES.format('k1')}",
    "reorder(i,k,j) unroll(k,4)",
    "bound(k,kb,8,MaxExact) reorder(i,kb,j) unroll(kb,8)",
    "split(k,k0,k1,4) reorder(i,k0,k1,j) unroll(k1,4)",
    f"bound(k,kb,8,MaxExact) split(kb,k0,k1,4) reorder(i,k0,k1,j) unroll(k0,2) {LANES.format('k1')}",
)
ON_GPU = (
    "bound(k,kb,8,MaxExact) split(kb,th,v,4) reorder(i,th,v,j) unroll(v,4) parallelize(i,GPUBlock,NoRaces) "
    "parallelize(th,GPUThread,NoRaces)",
    "bound(k,kb,8,MaxExact) split(kb,q,v,2) split(q,th,u,2) reorder(i,th,u,v,j) unroll(u,2) unroll(v,2) parallelize(i,GPUBlock,NoRaces) "
    "parallelize(th,GPUThread,NoRaces)",
)


def operands(text: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    sizes = {"i": 6, "j": 5, "k": 8}
    shapes = {"A": "ij", "E": "ij", "F": "ij", "s": "i", "t": "j", "B": "jk", "G": "jk", "d": "k", "H": "ik"}
    found = {name: modes for name, modes in shapes.items() if re.search(rf"\b{name}\(", text.split("=", 1)[1])}
    return {name: rng.integers(0, 4, [sizes[mode] for mode in modes]) * 1.0 for name, modes in found.items()}


@pytest.mark.parametrize("steps", [*STEPS, *ON_GPU])
def test_every_tagged_loop_is_done_whatever_its_body(steps: str, rng: np.random.Generator, case_count: int) -> None:
    """Unions, intersections, several operands, conditions and further terms: declarations, branches and loops that passes must cross."""
    found: list[str] = []
    for _ in range(max(4, case_count // 20)):
        sparse, dense, added = (str(rng.choice(one)) for one in (SPARSE, DENSE, ADDED))
        text = f"C(i,k) = {sparse} * {dense}{added}"
        given = operands(text, rng)
        formats = {name: str(rng.choice(FORMATS)) for name in ("A", "E", "F") if name in given}
        inside = steps.replace(",j)", ")") if added else steps  # the sum over j is inside a temporary then
        kernel = sl.program(text, formats, inside, target="interpret")
        stages = kernel.preview().stages
        found += [f"{text} {formats}: {outcome}" for outcome in stages.lowered.outcomes if not outcome.done]
        assert stages.lowered.outcomes
        want = sl.program(text, formats, target="interpret")(**given).to_numpy()
        np.testing.assert_array_equal(kernel(**given).to_numpy(), want)
    assert not found, "\n".join(found)


SUMS = "parallelize(j,CPUVector,ParallelReduction)"


ROWS = ("A(i,j) * x(j)", "A(i,j) * x(j) * z(j)", "max(j, A(i,j) * x(j))", "A(i,j) * (x(j) + z(j))")


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("form", ["csr", "dcsr", "dense"])
@pytest.mark.parametrize("more", ["", " unroll(j,16)", " prefetch(A(i,j),j,16)"])
def test_lanes_sum_whatever_is_declared(row: str, form: str, more: str) -> None:
    if (more.startswith(" prefetch") and form == "dense") or ("max" in row and form != "dense"):
        pytest.skip("asks for entries ahead, or visits every coordinate")
    (outcome,) = sl.program(f"y(i) = {row}", {"A": form}, SUMS + more, target="interpret").preview().stages.lowered.outcomes
    assert outcome.done and "each with a sum of its own" in outcome.what
