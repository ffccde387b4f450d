"""From a statement to a problem, its plan, and the statements that it is cut into."""

from __future__ import annotations

import numpy as np
import pytest
from primitives.statements import concrete

import sparseloom as sl
from sparseloom.core.errors import NotationError, ShapeError
from sparseloom.formats.named import csr
from sparseloom.notation.nodes import IndexVar, Reduce
from sparseloom.notation.terms import free_variables
from sparseloom.plan.contraction import contract, density, follow, products, variable_order
from sparseloom.plan.inner import decides, temporary
from sparseloom.plan.machine import Machine
from sparseloom.plan.plan import plan, plan_variants, plan_with, problem_text
from sparseloom.plan.problem import find_extents, known_sizes, pose, pose_without_data
from sparseloom.plan.statistics import Statistics

rng = np.random.default_rng(3)
A = sl.asarray(rng.integers(1, 5, (30, 40)) * (rng.random((30, 40)) < 0.1), format="csr", dtype="float64").storage
x = sl.asarray(rng.random(40)).storage
SPMV = concrete("y(i) = A(i,j) * x(j)", "A:csr").assign


def test_a_problem_has_the_extents_of_its_operands() -> None:
    problem = pose(SPMV, {"A": A, "x": x}, 2**31 - 1)
    assert problem.sizes == {"i": 30, "j": 40} and problem.shape == (30,) and not problem.is_empty
    assert problem.narrowest == np.int32 and problem.widened(np.dtype(np.int64)).narrowest == np.int64
    assert pose(SPMV, {"A": A, "x": x}, 35).narrowest == np.int64, "40 does not fit where 35 is the limit"
    assert not pose_without_data(SPMV, 2**31 - 1, None, None, None, None).is_stored


def test_operands_that_disagree_are_rejected() -> None:
    with pytest.raises(ShapeError, match="j runs to 40 in mode 1 of A, but to 30 in mode 0 of x"):
        find_extents(SPMV, {"A": A, "x": sl.ones(30).storage}, {})
    with pytest.raises(ShapeError, match="nothing says how far j runs"):
        find_extents(SPMV, {}, {"i": 3})
    assert known_sizes({"i": np.int32(4)}) == {"i": 4} and known_sizes(None) == {}


def test_a_plan_is_plain_where_there_is_little_work_and_equal_for_equal_problems() -> None:
    problem, statistics = pose(SPMV, {"A": A, "x": x}, 2**31 - 1), Statistics.of({"A": A, "x": x})
    made = plan(problem, statistics, Machine())
    assert made.schedule == "" and made == plan(problem, statistics, Machine()) and made.plain.steps == ()
    eager = plan(problem, statistics, Machine().eager)
    assert "parallelize" in eager.schedule
    assert len(plan_variants(problem, statistics, Machine().eager)) > 1
    again = plan_with(problem, statistics, eager.schedule)
    assert again is not None and again.steps == eager.steps
    assert plan_with(problem, statistics, "split(z,a,b,3)") is None
    assert "y(i)" in problem_text(problem, statistics)


def test_a_product_is_cut_where_another_order_takes_less() -> None:
    big = sl.asarray(rng.random((60, 60))).storage
    chain = concrete("Y(i,l) = A(i,j) * B(j,k) * C(k,l)").assign
    operands = {"A": big, "B": big, "C": big}
    cut = contract(pose(chain, operands, 2**31 - 1), Statistics.of(operands))
    assert len(cut.steps) == 2 and cut.work < cut.one_nest
    (product,) = products(chain.rhs)
    assert len(product.factors) == 3 and product.identity == 0 and not product.scalars
    assert variable_order(product.factors) == tuple(map(IndexVar, "ijkl"))
    assert density(product.factors[0], {"i": 60, "j": 60}, {"A": 36}) == 1.0, "what is dense has an entry everywhere"


def test_a_path_names_operands_by_their_places() -> None:
    assert follow(((0, 1), (0, 1)), 3) == (2, (0, 1)) or follow(((0, 1), (0, 1)), 3) == ((0, 1), 2)
    with pytest.raises(NotationError, match=r"the path takes \(0, 5\), but the operands are then numbered from 0 to 2"):
        follow(((0, 5),), 3)


def test_a_sum_inside_gets_a_result_that_keeps_what_has_no_entry() -> None:
    assign = concrete("y(i) = b(i) * sum(j, A(i,j))", "A:csr b:s").assign
    (inner,) = {n for n in _reductions(assign.rhs) if free_variables(n) == (IndexVar("i"),)}
    made = temporary(inner, "t", is_exact=False)
    assert made.indices == (IndexVar("i"),) and made.tensor.format != csr
    assert decides(assign.rhs, inner), "a product has an entry only where the sum has one"


def _reductions(expr: object) -> list[Reduce]:
    from_here = [expr] if isinstance(expr, Reduce) else []
    return [*from_here, *(found for arg in getattr(expr, "args", ()) for found in _reductions(arg))]
