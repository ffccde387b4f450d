"""A short form of the metamorphic campaign, and its parts against known answers: it must see a fault that is planted."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from metamorphic import pool, running
from metamorphic.campaign import table
from metamorphic.dense import computed
from metamorphic.generation import draw_program, largest
from metamorphic.grammar import Access, Operand, Program, Statement, Term, Total, accesses
from metamorphic.pool import Settings, run
from metamorphic.relations import RELATIONS, draw_changes
from metamorphic.running import draw_trial, run_batch
from metamorphic.storing import draw_format, store

import sparseloom as sl

SHORT = 12
ENDS_AT_THREE = """
import os, signal, sys
sys.path[:0] = {path!r}
from metamorphic import worker

batches = worker.run_batch

def ending(seed, numbers, begin, *rest):
    def begun(number):
        begin(number)
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
    return batches(seed, numbers, begun, *rest)

worker.run_batch = ending
worker.main({seed}, {compiled}, {variants}, {pipe})
"""


def test_programs_give_what_their_variants_give(seed: int) -> None:
    report = run(range(SHORT), Settings(seed, compiled=0.1, variants=2))
    assert not report.faults, "\n\n".join(f"{fault.kind}: {fault.number}\n{fault.text}" for fault in report.faults)
    assert report.programs == SHORT
    assert report.compared > SHORT
    assert table(report)[0].startswith(f"{SHORT} programs")


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_leaves_the_meaning_as_it_is(name: str, seed: int) -> None:
    """By NumPy alone: the relations themselves are right, whatever the compiler does."""
    relation, _ = RELATIONS[name]
    random, done = Random(f"{name} {seed}"), 0
    for _ in range(300):
        program = draw_program(random)
        changed = relation(random, program)
        if changed is None:
            continue
        done += 1
        made = computed(changed.program)
        assert np.array_equal(made.transpose(changed.axes), computed(program)), f"{program}\n\n{changed.program}"
        if done == 40:
            return
    assert done > 5


def test_several_relations_one_after_another_restore_the_result(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        program = draw_program(random)
        changed, names = draw_changes(random, program)
        assert np.array_equal(computed(changed.program).transpose(changed.axes), computed(program)), f"{names}\n{program}"


def test_what_a_program_means() -> None:
    matrix = Operand((2, 2), np.array([[0, 0, 1, 1], [0, 1, 0, 1]]), np.array([1, 2, 3, 4]), "ds")
    vector = Operand((2,), np.array([[0, 1]]), np.array([5, 6]), "d")
    operands, extents = {"A": matrix, "x": vector}, {"i": 2, "j": 2}

    def meaning(result: Access, *terms: Term, adds: bool = False) -> list[object]:
        found = Program((Statement(result, terms, adds),), operands | {"y": vector}, {}, extents)
        return list(computed(found).tolist())

    product = Term((Access("A", ("i", "j")), Access("x", ("j",))))
    assert meaning(Access("y", ("i",)), product) == [17, 39]
    assert meaning(Access("y", ("i",)), product, adds=True) == [22, 45]
    assert meaning(Access("y", ("i",)), product, Term((Access("x", ("i",)), 2), negative=True)) == [7, 27]
    assert meaning(Access("D", ("i", "i")), Term((Access("x", ("i",)),))) == [[5, 0], [0, 6]]
    assert meaning(Access("y", ("j",)), Term((Access("A", (1, "j")),))) == [3, 4]
    both = Total((Term((Access("A", ("i", "j")),)), Term((Access("x", ("i",)),))))
    assert meaning(Access("y", ("i",)), Term((both, Access("x", ("i",))))) == [65, 114]  # (1+5 + 2+5)*5, (3+6 + 4+6)*6


def test_all_levels_relations_and_ways_are_drawn() -> None:
    letters: set[str] = set()
    entries: set[str] = set()
    orders: set[int] = set()
    for number in range(400):
        trial = draw_trial(5, number)
        letters |= {letter for operand in trial.program.operands.values() for letter in operand.format}
        entries |= {variant.way.entry for variant in trial.variants}
        orders |= {len(operand.shape) for operand in trial.program.operands.values()}
    assert {*"dsuqpbo~:/"} <= letters
    assert entries == {"program", "evaluate", "einsum", "python", "operators"}
    assert orders == {0, 1, 2, 3, 4, 5}


def test_no_value_is_larger_than_its_dtype_holds() -> None:
    random = Random(3)
    for _ in range(200):
        program = draw_program(random)
        bound = largest(program.statements, program.extents, dict.fromkeys(program.operands, 6))
        assert np.abs(computed(program)).max(initial=0) <= bound


def test_an_operand_is_stored_as_it_was_drawn() -> None:
    random = Random(4)
    for _ in range(150):
        for operand in draw_program(random).operands.values():
            made = store(operand)
            assert np.array_equal(made.to_numpy(), operand.dense)
            assert made.dtype == operand.values.dtype


def test_formats_are_valid() -> None:
    random = Random(6)
    assert all(sl.zeros((2,) * order, draw_format(random, order)).ndim == order for order in range(1, 6) for _ in range(60))


def test_a_wrong_kernel_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operands hold other values than the program says: the campaign sees it."""

    def damaged(operand: Operand) -> sl.Tensor:
        return sl.asarray(store(operand).to_numpy() + 1)

    monkeypatch.setattr(running, "store", damaged)
    kinds = {kind for trial in run_batch(1, range(2), lambda number: None, 0.0, 1) for kind, _ in trial.faults}
    assert kinds == {"wrong"}


def test_what_ends_a_process_is_a_fault(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(pool, "START", ENDS_AT_THREE)
    report = run(range(2, 5), Settings(seed, compiled=0.0, variants=1))
    assert [(fault.number, fault.kind) for fault in report.faults] == [(3, "signal")]
    assert "SIGKILL" in report.faults[0].text
    assert report.programs == 3


def test_every_operand_is_read(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        program = draw_program(random)
        read = {access.name for one in program.statements for access in accesses(one.terms)}
        assert {*program.operands} <= read | {program.result.name}
