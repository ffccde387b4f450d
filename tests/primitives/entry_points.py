"""Every entry point of the house, for a primitive that a test file brings along: what each trial asks in the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

import numpy as np
import pytest
from fuzz.scheduled_runner import compare
from fuzz.schedules import WEIGHTS, schedulable
from primitives.statements import concrete
from together import compile_together

import sparseloom as sl
from sparseloom.iteration.foralls import loops, places, replace_loops
from sparseloom.notation.nodes import Forall, IndexVar, Stmt
from sparseloom.relations.relation import Relation
from sparseloom.schedule.primitives.reorder import directly_nested
from sparseloom.schedule.refusal import Refusal
from sparseloom.schedule.schedule import Schedule

Statement = tuple[str, dict[str, str]]

STATEMENTS: list[Statement] = [
    ("y(i) = A(i,j) * x(j)", {"A": "csr"}),
    ("y(i) = A(i,j) * x(j)", {"A": "csc"}),
    ("y(i) = A(i,j) * x(j)", {"A": "coo"}),
    ("y(i) = A(i,j) * x(j)", {}),
    ("y(i) = max(j, A(i,j) * x(j))", {"A": "csr"}),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "csr"}),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "dcsr", "B": "csr", "C": "csr"}),
    ("C(i,j) = A(i,j) + B(i,j)", {"A": "csc", "B": "csc", "C": "csc"}),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": "csr", "B": "coo", "C": "coo"}),
    ("C(i,j) = A(i,j) * B(i,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("C(i,j) = 2 * A(i,j)", {"A": "bcsr(2,2)"}),
    ("C(i,j) = 2 * A(i,j)", {"A": "csr", "C": "csr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {"A": "csr", "B": "csr", "C": "csr"}),
    ("C(i,j) = A(i,k) * B(k,j)", {}),
]
SHAPES = {"A": (7, 7), "B": (7, 7), "T": (4, 3, 7), "U": (4, 3, 7), "x": (7,)}


def apart(code: str, stmt: Stmt, *nest: IndexVar) -> Refusal | None:
    """The refusal of loops that are not directly nested in this order, wherever they stand."""
    for var in nest:
        if not all(directly_nested(loop)[0][: len(nest)] == nest for _, loop in places(stmt, nest[0])) or var not in loops(stmt):
            return Refusal(code, f"{' and '.join(map(str, nest))} are not directly nested", "reorder the loops first", at=var)
    return None


def replace_nest(stmt: Stmt, nest: Sequence[IndexVar], made: Sequence[IndexVar], relation: Relation) -> Stmt:
    """Loops over ``made`` in the place of the directly nested ones over ``nest``."""

    def make(loop: Forall) -> Stmt:
        body: Stmt = loop
        for _ in nest:
            assert isinstance(body, Forall)
            body = body.body
        for var in reversed(made):
            body = Forall(var, body)
        return body

    return replace_loops(stmt, nest[0], make, relation)


def nests(stmt: Stmt, rng: Random, count: int) -> Iterator[tuple[IndexVar, ...]]:
    """Loops that are directly nested, in random order."""
    found = [directly_nested(loop)[0][:count] for var in loops(stmt) for _, loop in places(stmt, var)]
    yield from rng.sample(wide := [nest for nest in found if len(nest) == count], len(wide))


def scheduled(text: str, statement: str = "y(i) = A(i,j) * x(j)", formats: str = "A:csr") -> Schedule:
    """A statement under a schedule."""
    return Schedule.from_text(concrete(statement, formats), text)


def survives_json(made: Schedule, statement: str = "y(i) = A(i,j) * x(j)", formats: str = "A:csr") -> bool:
    """Whether a schedule is the same after a way through JSON."""
    return Schedule.from_json(concrete(statement, formats), made.to_json()).stmt == made.stmt


def draws(made: Schedule) -> bool:
    """Whether every graph and picture of a schedule can be drawn."""
    drawn = made.provenance._repr_svg_(), made.iteration_graph._repr_svg_(), made.picture(np.eye(4))._repr_svg_()
    return all("svg" in text for text in drawn)


def agree(schedules: Sequence[str], statements: Sequence[Statement] = STATEMENTS, target: str = "interpret") -> int:
    """Compare scheduled statements with the dense oracle; how many there were. What is rejected has a reason."""
    rng = np.random.default_rng(3)
    data = {name: np.round(rng.random(shape) * (rng.random(shape) < 0.5), 2) for name, shape in SHAPES.items()}
    calls = []
    for (text, formats), schedule in product(statements, schedules):
        given = {name: array for name, array in data.items() if re.search(rf"\b{name}\(", text)}
        try:
            calls.append((sl.program(text, formats=formats, schedule=schedule, target=target), given, text))
        except sl.ScheduleError as rejected:
            assert str(rejected).startswith("[S"), rejected
    compile_together((kernel, list(given.values())) for kernel, given, _ in calls)
    for kernel, given, text in calls:
        wanted = sl.evaluate(text, **given, target="interpret").to_numpy()
        np.testing.assert_allclose(kernel(**given).to_numpy(), wanted, err_msg=f"{text}\n{kernel.schedule}\n{kernel.source}")
        assert kernel.explain()
    return len(calls)


def emits_cuda(statement: str, formats: dict[str, str], schedule: str) -> str:
    """The CUDA text of a scheduled statement."""
    return sl.program(statement, formats=formats, schedule=schedule, target="cuda").source


def fuzzed(name: str, seed: int, monkeypatch: pytest.MonkeyPatch, count: int = 25) -> None:
    """Random schedules with a primitive in them agree with the oracle."""
    monkeypatch.setitem(WEIGHTS, name, 12)
    tally = compare(schedulable(seed, 9900 + len(name)), count)
    assert not tally.failures, "\n\n".join(f"{scheduled}\n{problem}" for scheduled, problem in tally.failures)
