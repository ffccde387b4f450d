"""Under a schedule the loops follow from the statement, formats and dtypes alone; without one, from the operands of the call alone."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.promised import check_promise
from fuzz.schedules import schedulable

import sparseloom as sl

FEW = sp.random_array((6, 6), density=0.1, format="csr", rng=np.random.default_rng(1))
MANY = sp.random_array((6, 6), density=0.7, format="csr", rng=np.random.default_rng(2))
ROWS = "parallelize(i, CPUThread, NoRaces)"


@pytest.mark.parametrize("target", ("interpret", "c"))
@pytest.mark.parametrize(("left", "right"), [(FEW, MANY), (MANY, FEW), (sp.csr_array((6, 6)), MANY), (FEW, sp.csr_array((6, 6)))])
def test_what_is_converted_under_a_schedule_does_not_depend_on_how_many_entries_there_are(left: object, right: object, target: str) -> None:
    k = sl.program("R(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csc", "R": "csr"}, ROWS, target=target)
    shown = k.show("concrete")
    np.testing.assert_array_equal(k(left, right).to_numpy(), (left + right).toarray())  # type: ignore[operator]
    assert k.show("concrete") == shown


def test_what_is_converted_does_not_depend_on_earlier_calls() -> None:
    def conversions(*pairs: tuple[object, object]) -> str:
        k = sl.program("R(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csc", "R": "csr"})
        for pair in pairs:
            k(*pair)
        return k.explain().split("conversions")[1]

    assert conversions((FEW, MANY)) == conversions((MANY, FEW), (FEW, MANY))
    assert conversions((MANY, FEW)) == conversions((FEW, MANY), (MANY, FEW))
    assert conversions((MANY, FEW)) != conversions((FEW, MANY))


def test_a_schedule_of_a_tensor_starts_from_the_same_loops() -> None:
    i, j = sl.indices("i j")
    for left, right in ((FEW, MANY), (MANY, FEW)):
        result = sl.zeros((6, 6), format="csr", name="R")
        a, b = sl.asarray(left, name="A"), sl.asarray(right, name="B").to("csc")
        result[i, j] = a[i, j] + sl.Tensor(b.storage, "B")[i, j]
        result.schedule().parallelize("i", "CPUThread", "NoRaces").compile()()
        np.testing.assert_array_equal(result.to_numpy(), (left + right).toarray())


@pytest.mark.parametrize("target", ("interpret", "c"))
def test_a_shared_structure_has_no_entries_where_there_is_nothing_to_sum(target: str) -> None:
    """The schedule was accepted for a result with the structure of A; with no k there are no entries at all."""
    k = sl.program("C(i,j) = A(i,j) * D(i,k) * E(k,j)", {"A": "csr", "C": "csr"}, ROWS, target=target)
    for size in (0, 2, 0):
        operands = MANY, np.ones((6, size)), np.ones((size, 6))
        made = k(*operands)
        assert made.nnz == (MANY.nnz if size else 0)
        np.testing.assert_allclose(made.to_numpy(), size * MANY.toarray())
        again = k.assemble(*operands)
        assert k.compute(*operands, out=again).nnz == made.nnz


def test_rows_under_a_schedule_are_built_the_same_way_for_few_and_for_many_entries() -> None:
    k = sl.program("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}, ROWS)
    before = k.explain().split("result")[0]
    k(FEW, MANY)
    told = [line for line in k.explain().splitlines() if line.strip().startswith("w:")]
    assert told == [line for line in before.splitlines() if line.strip().startswith("w:")]
    assert "under a schedule always so for rows of up to 4,194,304 coordinates" in told[0]


@pytest.mark.parametrize("fills", [(0.0, -0.0), (-0.0, 0.0)])
def test_the_sign_of_a_zero_where_nothing_is_stored_is_that_of_the_call(fills: tuple[float, float]) -> None:
    k = sl.program("y(i) = 1 / A(i)", {"A": "s"})
    for fill in fills:
        arrays = {"pos0": np.array([0, 1]), "crd0": np.array([0]), "values": np.array([1.0])}
        A = sl.from_arrays("s", (3,), arrays, fill=fill)
        np.testing.assert_array_equal(k(A).to_numpy(), [1, np.copysign(np.inf, fill), np.copysign(np.inf, fill)])


@pytest.mark.parametrize("chunk", range(6))
def test_what_program_accepts_is_not_refused_at_the_call(chunk: int, seed: int, case_count: int) -> None:
    share = -(-max(case_count // 50, 60) // 6)
    found = [check_promise(case) for case in islice(schedulable(seed, 4000 + chunk), share)]
    assert not any(found), "\n\n".join(problem for problem in found if problem is not None)


def test_a_refusal_that_only_the_call_could_know_says_what_the_operands_are() -> None:
    """A fill other than 0 makes a union of what was an intersection; the program cannot know."""
    k = sl.program("y(i) = A(i) * B(i)", {"A": "s", "B": "s"}, "pos(i, p, A(i))")
    arrays = {"pos0": np.array([0, 1]), "crd0": np.array([0]), "values": np.array([1.0])}
    with pytest.raises(sl.ScheduleError, match="S412") as late:
        k(sl.from_arrays("s", (3,), arrays, fill=2.0), sl.from_arrays("s", (3,), arrays))
    assert str(late.value).endswith("on these operands: A is float64 with 2.0 where nothing is stored, B is float64")
