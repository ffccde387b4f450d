"""What the planner chooses for a GPU: by how long rows are, how many there are, and what the innermost loop does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.programs.cuda.nvrtc import compile_cubin
from sparseloom.programs.execution import Specialization

rng = np.random.default_rng(7)


def rows(count: int, each: int, columns: int = 4000, longest: int = 0) -> sp.csr_array:
    """A matrix whose rows have equally many entries, but for one."""
    lengths = np.full(count, each)
    lengths[count // 2] = max(longest, each)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return sp.csr_array((np.ones(starts[-1], np.float32), inside.astype(np.int32), starts), shape=(count, columns))


def planned(text: str, deterministic: bool = False, **operands: object) -> Specialization:
    """A statement as it would run on a GPU, on operands that are not taken there."""
    storages = {name: sl.asarray(value).storage for name, value in operands.items()}
    formats = {name: storage.format for name, storage in storages.items()}
    special = sl.program(text, formats, target="cuda", deterministic=deterministic).specialized(storages)
    assert isinstance(special, Specialization)
    assert compile_cubin(special.source)
    return special


SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
x = np.ones(4000, np.float32)


@pytest.mark.parametrize(
    ("A", "what"),
    [
        (rows(30_000, 3), "a thread for every i"),
        (rows(30_000, 16), "8 lanes for every row"),
        (rows(30_000, 100), "32 lanes for every row"),
        (rows(50, 3000), "a block for every row"),
        (rows(30_000, 8, longest=4000), "blocks take 2048 entries each, through shared memory, and 2 lanes add up a row"),
    ],
)
def test_sums_over_rows(A: sp.csr_array, what: str) -> None:
    assert planned(SPMV, A=A, x=x).plan.decisions[0].what == what


@pytest.mark.parametrize(
    ("A", "columns", "what"),
    [
        (rows(30_000, 16), 32, "8 lanes for every row of results"),
        (rows(30_000, 16), 128, "a warp for every row of results"),
        (rows(3_000, 100), 32, "a warp for every row of results"),
        (rows(300, 1000), 32, "a warp for every 64 entries"),
        (rows(20_000, 100, longest=3000), 64, "a warp for every 128 entries"),
        (rows(30_000, 8, longest=100), 40, "a warp for every row of results"),
        (rows(30_000, 8, longest=4000), 40, "a warp for every 64 entries"),
    ],
)
def test_rows_of_results(A: sp.csr_array, columns: int, what: str) -> None:
    assert planned(SPMM, A=A, B=np.ones((4000, columns), np.float32)).plan.decisions[0].what == what


@pytest.mark.parametrize(
    ("text", "operands", "what"),
    [
        ("C(i,j) = a(i,j) + b(i,j)", {"a": np.ones((30, 40)), "b": np.ones((30, 40))}, "a thread for every place"),
        ("s = a(i,j) * a(i,j)", {"a": np.ones((30, 40))}, "threads take entries wherever they stand"),
        ("y(j) = A(i,j) * u(i)", {"A": rows(2000, 20), "u": np.ones(2000, np.float32)}, "threads take entries wherever they stand"),
        ("y(i) = a(i,j) * u(j)", {"a": np.ones((30, 64)), "u": np.ones(64)}, "16 lanes for 8 places"),
    ],
)
def test_other_statements(text: str, operands: dict[str, object], what: str) -> None:
    assert planned(text, **operands).plan.decisions[0].what == what


def test_a_fixed_order_has_no_atomics() -> None:
    A = rows(30_000, 8, longest=4000)
    assert "Atomics" in planned(SPMV, A=A, x=x).plan.schedule
    ordered = planned(SPMV, deterministic=True, A=A, x=x)
    assert "Atomics" not in ordered.plan.schedule and "Temporary" in ordered.plan.schedule
    assert ordered.plan.decisions[0].what == "blocks take 3840 entries each, through shared memory"
    assert "each block carries what its first and last run share" in ordered.explain()
    total = planned("s = a(i,j) * a(i,j)", deterministic=True, a=np.ones((30, 40)))
    assert total.plan.decisions[0].what == "threads take entries wherever they stand"
    assert "Atomics" not in planned("y(j) = A(i,j) * u(i)", deterministic=True, A=rows(2000, 20), u=np.ones(2000)).plan.schedule


def test_what_is_chosen_is_text_that_can_be_given_back() -> None:
    special = planned(SPMV, A=rows(30_000, 16), x=x)
    again = sl.program(SPMV, {"A": "csr"}, special.plan.schedule, target="cuda").preview({"A": "float32", "x": "float32"})
    assert again.source == special.source
    assert "8 lanes for every row: about 16 entries of A in a row" in special.explain()
