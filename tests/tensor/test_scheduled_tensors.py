"""Schedules of assignments: they take what they print, show their loops, and compile to kernels."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as xml

import numpy as np
import pytest

import sparseloom as sl

i, j, p, i0, i1 = sl.indices("i j p i0 i1")
A = np.array([[1.0, 0, 2], [0, 0, 0], [3, 4, 0]])


def spmv(*names: str | None) -> tuple[sl.Tensor, sl.Tensor, sl.Tensor]:
    """A product of tensors of these names, which was assigned."""
    a, x, y = sl.asarray(A, name=names[0]).to("csr"), sl.asarray(np.arange(3.0), name=names[1]), sl.zeros(3, name=names[2])
    y[i] = a[i, j] * x[j]
    return a, x, y


@pytest.mark.parametrize("names", [("a", "x", "y"), (None, None, None)])
def test_steps_take_expressions_of_tensors(names: tuple[str | None, ...]) -> None:
    a, x, y = spmv(*names)
    assert y.schedule().pos(j, p, a[i, j]).text == f"pos(j, p, {names[0] or 'T0'}(i,j))"
    made = y.schedule().precompute(a[i, j] * x[j], j, "jw", "w")
    assert "w(jw) = " in str(made)
    made.compile()()
    assert y.to_numpy().tolist() == (A @ np.arange(3.0)).tolist()


def test_a_compiled_schedule_is_a_kernel() -> None:
    _, _, y = spmv("a", "x", "y")
    kernel = y.schedule().split(i, i0, i1, 2).compile()
    assert isinstance(kernel, sl.Kernel)
    assert kernel() is y and str(y.assignment) == "y(i) = sum(j, a(i,j) * x(j))"
    assert y.to_numpy().tolist() == (A @ np.arange(3.0)).tolist()
    other = pickle.loads(pickle.dumps(kernel))
    for run in (kernel, other):
        assert run(np.eye(4), x=np.ones(4)).to_numpy().tolist() == [1, 1, 1, 1]
    assert repr(kernel) == repr(other) == "<sparseloom kernel: y(i) = a(i,j) * x(j)\n  split(i, i0, i1, 2)>"


def test_a_kernel_that_adds_starts_from_what_the_tensor_held() -> None:
    x, y = sl.asarray(np.ones(3), name="x"), sl.asarray(np.arange(3.0), name="y")
    y[i] += x[i]
    assert y.schedule().compile()().to_numpy().tolist() == [1, 2, 3]


def test_programs_take_schedules() -> None:
    _, _, y = spmv("a", "x", "y")
    schedule = y.schedule().split(i, i0, i1, 2)
    kernel = sl.program("y(i) = a(i,j) * x(j)", {"a": "csr"}, schedule)
    assert kernel.schedule == schedule.text == "split(i, i0, i1, 2)"
    with pytest.raises(sl.ScheduleError, match="must be text or a Schedule, not int"):
        sl.program("y(i) = x(i)", schedule=3)  # type: ignore[arg-type]


def test_what_is_made_shows_itself() -> None:
    _, _, y = spmv("a", "x", "y")
    schedule = y.schedule().split(i, i0, i1, 2)
    assert repr(schedule) == str(schedule)
    assert repr(schedule).startswith("forall i0      coordinates in [0, ceil(|i| / 2))\n  forall i1")
    assert [repr(form) for form in (sl.csr, sl.bcsr((2, 3)), sl.coo(3))] == ["csr", "bcsr(2,3)", "coo(3)"]
    kernel = sl.program("y(i) = a(i,j) * x(j)", {"a": "csr"})
    assert repr(kernel) == "<sparseloom kernel: y(i) = a(i,j) * x(j)>"
    for shown in (schedule, kernel, sl.program("t(i) = a(i,j) * x(j)\ny(i) = t(i) + x(i)")):
        picture = xml.fromstring(f"<div>{shown._repr_html_()}</div>")
        assert picture.find("pre") is not None and picture.find("{http://www.w3.org/2000/svg}svg") is not None


def test_steps_of_others_are_named_as_ours() -> None:
    _, _, y = spmv("a", "x", "y")
    with pytest.raises(AttributeError) as missing:
        y.schedule().vectorize(j)
    assert str(missing.value) == "a schedule has no 'vectorize'\n  help: it is parallelize(i, CPUVector, NoRaces) here"
