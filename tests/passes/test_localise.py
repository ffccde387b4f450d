"""Places that a loop adds to: kept by the thread while they stay the same, and added to once in the end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sparseloom.loops import nodes as ir
from sparseloom.loops.interpret import run
from sparseloom.loops.printer import show
from sparseloom.loops.reader import read
from sparseloom.loops.verify import verify
from sparseloom.passes.localise import keep_in_registers

HEAD = "def f(input A: float64[], size n, size m, output y: float64[], output z: float64[])"


def kernel(body: Sequence[str]) -> ir.Function:
    lines = ["y[0 : +64] = 1.0", "z[0 : +64] = 2.0", "for t in 0 : 4  [gpu thread 4]", *(f"  {line}" for line in body)]
    function = read("\n".join([HEAD, *(f"  {line}" for line in lines)]) + "\n")
    verify(function)
    return function


def results(function: ir.Function, n: int) -> list[bytes]:
    y, z = np.zeros(64), np.zeros(64)
    run(function, [np.arange(64.0) % 7, n, 3, y, z])
    return [y.tobytes(), z.tobytes()]


ADD = ["for p in 0 : n", "  for q in 0 : 4  [unrolled 4]", "    y[t * 4 + q] += A[p + q]"]


@pytest.mark.parametrize(
    ("body", "arrays"),
    [
        (ADD, ["y_kept"]),
        (["for p in 0 : n", "  j: int64 = p * 2", "  for q in 0 : 4  [unrolled 4]", "    k: int64 = t * 4 + q", "    y[k] += A[j]"],
         ["y_kept"]),
        ([*ADD, "    z[t * 4 + q] += A[p]"], ["y_kept", "z_kept"]),  # two arrays in one loop
        ([*ADD, "  for r in 0 : 2  [unrolled 2]", "    y[t * 4 + r + 32] += A[p]"], ["y_kept", "y_kept1"]),  # two rows of one array
        (["for p in 0 : n", "  for q in 0 : 2  [unrolled 2]", "    for r in 0 : 2  [unrolled 2]", "      y[t * 4 + q * 2 + r] += A[p]"],
         ["y_kept"]),
        (["for p in 0 : n", "  if p < m", "    for q in 0 : 4  [unrolled 4]", "      y[t * 4 + q] += A[p]"], ["y_kept"]),
        (["for p in 0 : n", "  for q in 0 : 4  [unrolled 4]", "    if t < m", "      atomic y[t * 4 + q] += A[p]", "    else",
          "      y[t * 4 + q] += A[p]"], ["y_kept"]),
        (["for p in 0 : n", "  for q in 0 : 4  [unrolled 4]", "    y[t * 4 + q] += A[p]", "    y[t * 4 + q] -= A[p]"], []),  # two operators
        (["for p in 0 : n", "  for q in 0 : 4  [unrolled 4]", "    y[t * 4 + q] += y[t]"], []),  # it is read
        (["for p in 0 : min(n, 4)", "  for q in 0 : 4  [unrolled 4]", "    y[t * 16 + q + p * 4] += A[p]"], []),  # places change
        (["for p in 0 : n", "  if t < m", "    for q in 0 : 4  [unrolled 4]", "      y[t * 4 + q] += A[p]"], []),  # is there a place?
        (["for p in 0 : n", "  y[t] += A[p]"], []),  # no row
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [0, 1, 5])
def test_what_is_added_to_is_kept(body: list[str], arrays: list[str], n: int) -> None:
    function = kernel(body)
    made = keep_in_registers(function)
    verify(made)
    assert [line.split()[1].rstrip(":") for line in show(made).splitlines() if "allocate" in line] == arrays
    if not any("y[t]" in line and "+= y" in line for line in body):
        assert results(made, n) == results(function, n)
