"""A schedule from Python: one method per primitive, arguments as variables or names, nothing changes in place."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from primitives.statements import SPMV, concrete, schedule

from sparseloom.core.errors import ScheduleError
from sparseloom.iteration.foralls import operands, reads
from sparseloom.notation.nodes import Access, Apply, IndexVar, Merge, Races, Unit
from sparseloom.relations.bound import BoundType
from sparseloom.schedule.arguments import kinds
from sparseloom.schedule.primitive import PRIMITIVES
from sparseloom.schedule.schedule import Schedule

i, j, f, p, p0, p1 = (IndexVar(name) for name in ("i", "j", "f", "p", "p0", "p1"))


def test_every_primitive_has_a_method_of_its_name_with_its_arguments() -> None:
    for word, step in PRIMITIVES.items():
        method = getattr(Schedule, word)
        assert list(inspect.signature(method).parameters)[1:] == list(kinds(step))
        assert method.__doc__


def test_variables_and_names_are_the_same() -> None:
    start = Schedule(concrete(*SPMV))
    access = operands(start.stmt)[0]
    by_node = start.fuse(i, j, f).pos(f, p, access).split(p, p0, p1, np.int64(8)).parallelize(p0, Unit.CPUThread, Races.Atomics)
    by_name = start.fuse("i", "j", "f").pos("f", "p", "A(i,j)").split("p", "p0", "p1", 8).parallelize("p0", "CPUThread", "Atomics")
    assert by_node.trace == by_name.trace
    assert by_node.stmt == by_name.stmt


def test_all_methods_take_nodes() -> None:
    start = Schedule(concrete("y(i) = A(i,j) * x(j)", "A:dcsr x:s"))
    a, x = operands(start.stmt)
    assert isinstance(a, Access)
    made = start.mergeby(j, Merge.Gallop).bound(i, IndexVar("ib"), 0, BoundType.MinExact).unroll(IndexVar("ib"), 2)
    assert made.precompute(Apply("multiply", (x, a)), j, (IndexVar("jw"),), "w").text.endswith("precompute(x(j) * A(i,j), j, jw, w)")
    assert start.reorder([j, i]).stmt == start.reorder(j, i).stmt == start.reorder("j", "i").stmt
    assert start.divide(i, p0, p1, 3).pos(j, p, a).coord(p, f).text == "divide(i, p0, p1, 3)\npos(j, p, A(i,j))\ncoord(p, f)"


def test_a_schedule_is_never_changed() -> None:
    start = Schedule(concrete(*SPMV))
    before = start.stmt
    longer = start.split("i", "i0", "i1", 4)
    assert start.stmt is before and start.trace == ()
    assert longer.concrete.assign == start.concrete.assign
    with pytest.raises(ScheduleError):
        longer.split("i", "a", "b", 2)
    assert longer.text == "split(i, i0, i1, 4)"


def test_an_operand_that_was_converted_is_known_by_its_own_name() -> None:
    made = schedule("C(i,j) = A(i,j) * B(i,j)", "A:csr B:csc", "pos(j, p, A(i,j))")
    (conversion,) = made.concrete.conversions
    converted = conversion.source.name
    again = schedule("C(i,j) = A(i,j) * B(i,j)", "A:csr B:csc", f"pos(j, p, {converted}(i,j))")
    assert again.trace[0].arguments()[-1] == Access(conversion.target, (i, j))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((2.5,), "[S004] cannot split(i, i0, i1, 2.5): size must be a whole number, not 2.5"),
        ((True,), "[S004] cannot split(i, i0, i1, True): size must be a whole number, not True"),
        ((4, 5), "[S003] cannot split(i, i0, i1, 4, 5): split takes 4 arguments, not 5"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_in_place(given: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule(concrete(*SPMV))._do(PRIMITIVES["split"], "i", "i0", "i1", *given)
    assert str(caught.value).splitlines()[:2] == [complaint, "  at step 1 of the schedule, in"]


def test_a_workspace_has_the_dtype_and_the_fill_of_what_it_holds() -> None:
    narrow = concrete(*SPMV, np.dtype(np.float32))
    made = Schedule(narrow).precompute("x(j)", "j", "jw", "w")
    (workspace,) = {access.tensor for access in reads_of(made) if access.tensor.name == "w"}
    assert (workspace.dtype, workspace.order, workspace.format.is_dense) == (np.float32, 1, True)
    least = schedule("y(i) = min(j, A(i,j) + x(j))", "", "precompute(A(i,j) + x(j), i, iw, w)")
    (workspace,) = {access.tensor for access in reads_of(least) if access.tensor.name == "w"}
    assert workspace.fill == np.inf


def reads_of(made: Schedule) -> tuple[Access, ...]:
    """What the statement of a schedule reads, temporaries included."""
    return reads(made.stmt)
