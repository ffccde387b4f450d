"""Laws of the scheduling language, on random schedules and by counting points one by one."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import product

import pytest
from conftest import SEED
from hypothesis import given
from hypothesis import strategies as st
from primitives.statements import MANY, concrete

from sparseloom.core.errors import ScheduleError
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import accesses, loops, paths, provenance, statements
from sparseloom.iteration.provenance import Provenance
from sparseloom.notation.nodes import Access, Forall, IndexVar, Stmt
from sparseloom.notation.verify import verify
from sparseloom.relations.bound import BoundRelation
from sparseloom.relations.coord import CoordRelation
from sparseloom.relations.divide import DivideRelation
from sparseloom.relations.fuse import FuseRelation
from sparseloom.relations.pos import PosRelation
from sparseloom.relations.rename import RenameRelation
from sparseloom.relations.split import SplitRelation
from sparseloom.schedule.primitive import PRIMITIVES
from sparseloom.schedule.schedule import Schedule, candidates

STARTS = tuple(concrete(*case) for case in MANY)
CHAINS = 2000


def random_schedule(start: Concrete, rng: random.Random, length: int, refused: Counter[str]) -> Schedule:
    """A chain of steps drawn from the candidates of random primitives; refusals are counted by their code."""
    made = Schedule(start)
    for _ in range(length):
        word = rng.choice(sorted(PRIMITIVES))
        step = next(iter(PRIMITIVES[word].candidates(made.stmt, rng)), None)
        if step is None:
            continue
        try:
            made = made.then(step)
        except ScheduleError as refusal:
            code = re.match(r"\[(S\d+)\] cannot ", str(refusal))
            assert code, f"a refusal without a code: {refusal}"
            refused[code[1]] += 1
    return made


def test_candidates_are_taken_or_refused_with_a_code() -> None:
    rng, refused, taken = random.Random(SEED), Counter[str](), 0
    for n in range(CHAINS):
        made = random_schedule(rng.choice(STARTS), rng, rng.randint(1, 8), refused)
        taken += len(made.trace)
        check_statement(made.stmt)
        if n % 10 == 0:
            verify(made.stmt)
            assert str(made)
    assert taken >= 2 * sum(refused.values()), refused


def check_statement(stmt: Stmt) -> None:
    """Every variable that an assignment uses is known where it stands, and no variable has two makers."""
    graph = provenance(stmt)
    for path in paths(stmt):
        known = graph.known(path.variables)
        for access in (path.assign.lhs, *accesses(path.assign.rhs)):
            assert known.issuperset(access.indices), (path.variables, access)


def test_a_trace_replays_and_reads_back() -> None:
    rng, refused = random.Random(SEED), Counter[str]()
    for _ in range(150):
        start = rng.choice(STARTS)
        made = random_schedule(start, rng, 6, refused)
        assert Schedule.from_text(start, made.text).stmt == made.stmt
        assert Schedule.from_json(start, made.to_json()).stmt == made.stmt


def test_candidates_are_drawn_from_every_primitive() -> None:
    rng = random.Random(SEED)
    drawn = {step.word() for start in STARTS for step in candidates(start.stmt, rng)}
    positions = Schedule(STARTS[0]).pos("j", "p", "A(i,j)")
    drawn |= {step.word() for step in candidates(positions.stmt, rng)}
    assert drawn == set(PRIMITIVES)


class Space:
    """The points of a statement's original variables, every entry stored, and the value of each derived variable there."""

    def __init__(self, graph: Provenance, extents: dict[IndexVar, int]) -> None:
        self.graph = graph
        self.extents = extents

    def points(self) -> list[dict[IndexVar, int]]:
        ranges = product(*(range(n) for n in self.extents.values()))
        return [dict(zip(self.extents, point, strict=True)) for point in ranges]

    def extent(self, var: IndexVar) -> int:
        match self.graph.made_by(var):
            case None:
                return self.extents[var]
            case SplitRelation(parent, outer, _, size):
                return -(-self.extent(parent) // size) if var == outer else size
            case DivideRelation(parent, outer, _, count):
                return count if var == outer else max(1, -(-self.extent(parent) // count))
            case FuseRelation(outer, inner, _):
                return self.extent(outer) * self.extent(inner)
            case PosRelation(parent) | CoordRelation(parent) | BoundRelation(parent) | RenameRelation(parent):
                return self.extent(parent)
        raise AssertionError(var)

    def value(self, var: IndexVar, point: dict[IndexVar, int]) -> int:
        match self.graph.made_by(var):
            case None:
                return point[var]
            case SplitRelation(parent, outer, inner, _) | DivideRelation(parent, outer, inner, _):
                return divmod(self.value(parent, point), self.extent(inner))[0 if var == outer else 1]
            case FuseRelation(outer, inner, _):
                return self.value(outer, point) * self.extent(inner) + self.value(inner, point)
            case PosRelation(parent) | CoordRelation(parent) | BoundRelation(parent) | RenameRelation(parent):
                return self.value(parent, point)
        raise AssertionError(var)


STEPS = """
    split(i,i0,i1,2); split(j,j0,j1,3); divide(j,j2,j3,2); fuse(i,j,f); fuse(i1,j,g); fuse(i,j0,h); pos(f,p,A(i,j)); pos(j,q,A(i,j));
    split(f,f0,f1,2); split(p,p0,p1,2); coord(p1,c); bound(i,ib,0,MinExact); reorder(j,i); reorder(j1,j0); precompute(A(i,j)*x(j),j1,jw,w)
    """.split(";")


@given(st.lists(st.sampled_from(STEPS), max_size=5), st.integers(1, 4), st.integers(1, 5), st.sampled_from(["y(i)", "y(j)", "y(i,j)", "y"]))
def test_what_is_free_of_races_never_meets(steps: list[str], rows: int, columns: int, left: str) -> None:
    """NoRaces is accepted only where no two iterations, alike in the loops outside, write one place."""
    start = concrete(f"{left} = A(i,j) * x(j)", "A:csr")
    text = ""
    for step in steps:
        try:
            text = Schedule.from_text(start, f"{text} {step}").text
        except ScheduleError:
            continue
    made = Schedule.from_text(start, text)
    for var in loops(made.stmt):
        try:
            parallel = made.parallelize(var, "CPUThread", "NoRaces")
        except ScheduleError as refusal:
            assert "[S851]" in str(refusal)
            continue
        space = Space(provenance(parallel.stmt), {IndexVar("i"): rows, IndexVar("j"): columns})
        assert not meetings(parallel.stmt, space, var)


def meetings(stmt: Stmt, space: Space, var: IndexVar) -> list[Access]:
    """Places that two iterations of ``var`` write, alike in the loops outside it; temporaries declared inside are private."""
    found = []
    for path in paths(stmt):
        depth = path.variables.index(var) if var in path.variables else -1
        if depth < path.temporaries.get(path.assign.lhs.tensor.name, 0):
            continue
        writers: dict[tuple[int, ...], set[int]] = {}
        for point in space.points():
            place = tuple(space.value(v, point) for v in (*path.variables[:depth], *path.assign.lhs.indices))
            writers.setdefault(place, set()).add(space.value(var, point))
        found += [path.assign.lhs for iterations in writers.values() if len(iterations) > 1]
    return found


@given(st.lists(st.sampled_from(STEPS), max_size=6), st.integers(1, 4), st.integers(1, 5))
def test_the_loops_visit_every_point_once(steps: list[str], rows: int, columns: int) -> None:
    """The values of the loop variables tell the points of the original space apart, and stay within their extents."""
    made = Schedule(concrete("y(i) = A(i,j) * x(j)", "A:csr"))
    for step in steps:
        try:
            made = Schedule(made.concrete).then(*Schedule.from_text(made.concrete, step).trace)
        except ScheduleError:
            continue
    space = Space(provenance(made.stmt), {IndexVar("i"): rows, IndexVar("j"): columns})
    for path in paths(made.stmt):
        seen = [tuple(space.value(v, point) for v in path.variables) for point in space.points()]
        assert len(set(seen)) == len(seen)
        assert all(value < space.extent(v) for values in seen for v, value in zip(path.variables, values, strict=True))


@pytest.mark.parametrize(
    ("steps", "var", "extent"),
    [
        ("split(i,i0,i1,10) split(i1,a,b,4)", "a", 3),
        ("split(i,i0,i1,10) divide(i1,a,b,4)", "b", 3),
        ("split(i,i0,i1,10) split(j,j0,j1,3) reorder(i0,j0,i1,j1) fuse(i1,j1,f)", "f", 30),
        ("bound(i,ib,7,MaxExact) split(ib,a,b,2)", "a", 4),
        ("bound(i,ib,7,MaxConstraint) split(ib,a,b,2)", "a", None),
        ("pos(j,p,A(i,j)) split(p,p0,p1,5)", "p1", 5),
        ("pos(j,p,A(i,j)) split(p,p0,p1,5)", "p0", None),
        ("pos(j,p,A(i,j)) coord(p,c)", "c", None),
        ("split(j,j0,j1,4) precompute(x(j),j1,jw,w)", "jw", 4),
    ],
)
def test_constant_extents_are_known(steps: str, var: str, extent: int | None) -> None:
    made = Schedule.from_text(STARTS[0], steps)
    assert provenance(made.stmt).extent(IndexVar(var)) == extent
    assert any(isinstance(found, Forall) and found.var.name == var for found in statements(made.stmt))
