"""Programs of several statements: every door that a kernel of one statement has."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.plan import contraction
from sparseloom.plan.machine import NestCosts, this_machine

A = sp.random_array((30, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
x = np.arange(30.0)
TWICE = "A: csr\nt(k) = A(k,l) * x(l)\ny(i) = A(i,k) * t(k)"
CUBE = "A: csr\nt: csr\nC: csr\nt(i,k) = A(i,j) * A(j,k)\nC(i,l) = t(i,k) * A(k,l)"


def test_temporaries_live_for_a_call() -> None:
    kernel = sl.program(TWICE)
    assert kernel.operand_names == ("A", "x") and kernel.result_name == "y"
    np.testing.assert_allclose(kernel(A, x).to_numpy(), A @ (A @ x))
    np.testing.assert_allclose(kernel(x=x, A=2 * A).to_numpy(), 4 * (A @ (A @ x)))
    np.testing.assert_allclose(sl.evaluate(TWICE, A=A, x=x).to_numpy(), A @ (A @ x))
    np.testing.assert_allclose(sl.evaluate(TWICE, A=A.toarray(), x=x).to_numpy(), A @ (A @ x))


def test_outputs_and_bound_kernels_see_new_values() -> None:
    kernel, v, out = sl.program(TWICE), x.copy(), sl.zeros(30)
    assert kernel(A, v, out=out) is out
    run = kernel.bind(A, v)
    first = run().to_numpy().copy()
    v[:] = 1
    np.testing.assert_allclose(run().to_numpy(), A @ (A @ v))
    np.testing.assert_allclose(first, A @ (A @ x))
    np.testing.assert_allclose(out.to_numpy(), A @ (A @ x))
    into = np.zeros(30)
    kernel.bind(A, v, out=into)()
    np.testing.assert_allclose(into, A @ (A @ v))
    assert kernel(A, v, out=v).to_numpy() is not None  # it overlaps an operand
    np.testing.assert_allclose(v, A @ (A @ np.ones(30)))


def test_sparse_temporaries_and_results() -> None:
    kernel = sl.program(CUBE)
    want = (A @ A @ A).toarray()
    made = kernel(A)
    assert str(made.format) == "csr"
    np.testing.assert_allclose(made.to_numpy(), want)
    run = kernel.bind(A)
    assert run() is not run()
    np.testing.assert_allclose(run().to_numpy(), want)
    mixed = sl.program("A: csr\nt: csr\nt(i,k) = A(i,j) * A(j,k)\ny(i) = t(i,k) * x(k)")
    bound = mixed.bind(A, x)
    for _ in range(2):
        np.testing.assert_allclose(bound().to_numpy(), A @ (A @ x))


def test_values_alone_are_computed_again() -> None:
    kernel, own = sl.program(CUBE), sl.asarray(A).copy()
    made = kernel.assemble(own)
    own.storage.values[:] = 1
    assert kernel.compute(own, out=made) is made
    ones = (A != 0).astype(float)
    np.testing.assert_allclose(made.to_numpy(), (ones @ ones @ ones).toarray())


def test_the_last_statement_may_add() -> None:
    kernel = sl.program(TWICE.replace("y(i) =", "y(i) +="))
    np.testing.assert_allclose(kernel(A, x, y=np.ones(30)).to_numpy(), A @ (A @ x) + 1)
    out = sl.asarray(np.ones(30))
    kernel(A, x, out=out)
    np.testing.assert_allclose(out.to_numpy(), A @ (A @ x) + 1)


def test_options_are_for_all_statements() -> None:
    small = sp.csr_array(np.full((3, 3), 100, np.int8))
    made = sl.evaluate("t(i) = A(i,j)\ns = t(i)", A=small, dtype="int64")
    assert made.dtype == np.int64 and made.item() == 900
    roads = sp.csr_array((np.array([3.0, 1.0]), (np.array([0, 1]), np.array([1, 2]))), shape=(3, 3))
    text = "e(j) = R(i,j) * d(i)\nf(j) = R(i,j) * e(i)"
    d = np.array([0.0, np.inf, np.inf])
    for options in ({}, {"target": "interpret"}):
        assert sl.evaluate(text, R=roads, d=d, semiring="min_plus", **options).to_numpy().tolist() == [np.inf, np.inf, 4.0]
        assert sl.program(text, {"R": "csr"}, semiring="min_plus", **options)(roads, d).to_numpy().tolist() == [np.inf, np.inf, 4.0]
    assert sl.evaluate("t(i,j) = b(i)\ns = t(i,j)", b=np.ones(3), sizes={"j": 4}).item() == 12
    with pytest.raises(sl.ShapeError, match=r"^sizes names 'z', but the variables are i, j$"):
        sl.evaluate("t(i,j) = b(i)\ns = t(i,j)", b=np.ones(3), sizes={"j": 4, "z": 1})


def test_variables_belong_to_their_statement() -> None:
    tall = np.ones((5, 2))
    made = sl.evaluate("t(i) = B(i,j)\nu(i) = B(j,i)\nR(i,j) = t(i) * u(j)", B=tall)
    np.testing.assert_array_equal(made.to_numpy(), np.full((5, 2), 10.0))
    with pytest.raises(sl.ShapeError, match="i runs to 5 in mode 0 of t, but to 2 in mode 0 of u"):
        sl.evaluate("t(i) = B(i,j)\nu(i) = B(j,i)\nR(i) = t(i) * u(i)", B=tall)


def test_kernels_travel() -> None:
    again = pickle.loads(pickle.dumps(sl.program(TWICE, schedule="")))
    np.testing.assert_allclose(again(A, x).to_numpy(), A @ (A @ x))
    assert again.plan == sl.program(TWICE).plan


def test_all_steps_are_shown_one_after_another() -> None:
    kernel = sl.program(TWICE.replace("\ny", "\n  split(k,k0,k1,8)\ny"))
    assert kernel.show("concrete") == (
        "// step 1 of 2\nforall k0\n  forall k1\n    forall l\n      t(k) += A(k,l) * x(l)\nsuch that\n  k = k0 * 8 + k1\n\n"
        "// step 2 of 2\nforall i\n  forall k\n    y(i) += A(i,k) * t(k)"
    )
    assert kernel.source.count("int32_t kernel(") == 2 and kernel.explain().count("loops\n") == 2
    assert kernel.plan == "A: csr\nt: dense(1)\nt(k) = A(k,l) * x(l)\n  split(k,k0,k1,8)\ny(i) = A(i,k) * t(k)\n  plain"
    with pytest.raises(sl.ScheduleError) as refused:
        kernel.schedule  # noqa: B018
    assert str(refused.value) == "this runs in 2 statements, each with a schedule of its own\n  help: look at .plan"
    assert sl.program("y(i) = b(i)", schedule="unroll(i,2)").schedule == "unroll(i,2)"


def refusal(*args: object, **options: object) -> str:
    with pytest.raises(sl.SparseloomError) as refused:
        sl.program(*args, **options)  # type: ignore[arg-type]
    return str(refused.value)


def test_refusals() -> None:
    assert refusal(TWICE, schedule="unroll(i,2)") == (
        "[S001] cannot read the schedule: the program has 2 statements\n  help: write the steps below the statement that they are for"
    )
    assert refusal("y(i) = b(i)\n  unroll(i,2)", schedule="unroll(i,4)") == (
        "[S001] cannot read the schedule: the program has one already\n  help: leave schedule= away"
    )
    assert refusal(TWICE, formats={"A": "csc"}) == "the format of A is given twice, in the program and by formats="
    assert refusal(TWICE.replace("A: csr", "B: csr")) == "the program gives a format to 'B', but has t, A, x, y"
    assert refusal(TWICE, optimize="greedy") == "optimize is True or False, not 'greedy'"
    assert refusal(TWICE.replace("\ny", "\n  split(z,k0,k1,8)\ny")).endswith("\n  in statement 1 of 2: t(k) = sum(l, A(k,l) * x(l))")
    with pytest.raises(sl.NotationError) as refused:
        sl.einsum("ij,j->i", A, x, optimize="best")
    assert str(refused.value) == (
        "optimize cannot be 'best'\n  help: pass True, False, 'greedy', 'optimal', or a path such as ['einsum_path', (0, 1), (0, 1)]"
    )
    with pytest.raises(sl.NotationError, match=r"^einsum has no argument 'A'\n  help: operands go by position$"):
        sl.plan("ij,j->i", A=A, x=x)


def test_a_plan_is_a_program_that_makes_the_same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = replace(this_machine(), nests=NestCosts(call=0.0, least=0.0))
    monkeypatch.setattr(contraction, "this_machine", lambda: machine)
    text = "y(i) = b(i) + 2 * A(i,j) * A(j,k) * x(k)"
    for planned in (sl.program(text, {"A": "csr"}), sl.program(text, {"A": "csc"}, schedule=""), sl.program(CUBE)):
        operands = {"A": A, "x": x, "b": x}
        given = {name: operands[name] for name in planned.operand_names}
        made = planned(**given)
        again = sl.program(planned.plan)
        np.testing.assert_array_equal(again(**given).to_numpy(), made.to_numpy())
        assert again.source == planned.source and again.plan == planned.plan
    assert sl.plan(text, A=A, x=x, b=x) == (
        "A: csr\nt1: dense(1)\nt1(j) = A(j,k) * x(k)\n  plain\ny(i) = b(i) + 2 * A(i,j) * t1(j)\n  plain"
    )
    assert repr(sl.plan(text, A=A, x=x, b=x, optimize=False)) == "A: csr\ny(i) = b(i) + 2 * A(i,j) * A(j,k) * x(k)\n  plain"
    assert "t1" not in sl.plan("ij,jk,k->i", A, A, x, optimize=False)
    for optimize in (True, "greedy", "optimal", ("greedy", 1e9)):
        assert "t1(j) = op1(j,k) * op2(k)" in sl.plan("ij,jk,k->i", A, A, x, optimize=optimize)
    asked = np.einsum_path("ij,jk,k->i", A.toarray(), A.toarray(), x, optimize=["einsum_path", (0, 1), (0, 1)])[0]
    assert "t1(i,k) = op0(i,j) * op1(j,k)" in sl.plan("ij,jk,k->i", A, A, x, optimize=asked)
