"""Loops over one variable: each form alone visits the coordinates that sets say, in order, and knows which operands have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from lower.conditions import Conditions, Entries, Notes, Row, conditions, drawn, note, valued

from sparseloom.formats.storage import Storage
from sparseloom.iteration.formula import ALWAYS, Flag, Formula, Stored, all_of, any_of
from sparseloom.loops import nodes as ir
from sparseloom.lower.coiterate import Counted, Driven, Loop, Merged, form_of, holds, iterate, lattice_points
from sparseloom.lower.walking import make_walker
from sparseloom.notation.nodes import Access, IndexVar
from sparseloom.scope.ranges import subtract
from sparseloom.scope.scope import Scope
from sparseloom.scope.style import SERIAL, Style

i, at, size = IndexVar("i"), ir.Var("i"), ir.Var("i_size")
GALLOP, UNROLLED, THREADS = Style(gallops=True), Style(ir.LoopKind.UNROLLED, 2), Style(ir.LoopKind.THREADS)
TRIALS = 10


@dataclass(frozen=True)
class Told:
    """A formula that is written with the signs of sets."""

    formula: Formula

    def __and__(self, other: Told) -> Told:
        return Told(all_of([self.formula, other.formula]))

    def __or__(self, other: Told) -> Told:
        return Told(any_of([self.formula, other.formula]))


@dataclass(frozen=True)
class Alone:
    """A loop that is about to be made: its operands are called b, c, d, ... and notes are taken of what each has."""

    given: Conditions
    names: str
    formats: tuple[str, ...]
    loop: Loop

    def access(self, name: str) -> Access:
        return self.given.access(name)

    def formula(self, text: str) -> Formula:
        """A formula such as ``b & c | d`` over what the operands store."""
        made: Told = eval(text, {name: Told(Stored(self.access(name))) for name in self.names})
        return made.formula

    def drawn(self, rng: np.random.Generator, size: int) -> tuple[dict[str, Storage], dict[str, Entries]]:
        """Random operands, and what they hold; coordinates repeat where they may."""
        made = {name: drawn(rng, form, (int(size),), "u" in form) for name, form in zip(self.names, self.formats, strict=True)}
        return {name: storage for name, (storage, _) in made.items()}, {name: held for name, (_, held) in made.items()}

    def notes(self, loops: ir.Stmt) -> Notes:
        """Of the coordinates in the order of the loops, each with what the operands have there."""
        return self.given.notes(loops, 1 + len(self.names))

    @property
    def said(self) -> str:
        """What ``explain`` is told of the loop."""
        return self.given.scope.context.remarks[-1].text


def alone(formats: str, style: Style = SERIAL) -> Alone:
    """A loop over all coordinates of i that walks operands in these formats."""
    kinds = tuple(formats.split())
    names = "bcdefgh"[: len(kinds)]
    told = " ".join(f"{name}:{form}" for name, form in zip(names, kinds, strict=True))
    given = conditions(f"a(i) = {' + '.join(f'{name}(i)' for name in names) or '1'}", told, loops="i")
    walkers = tuple(make_walker(given.access(name), given.scope) for name in names)

    def body(scope: Scope) -> ir.Stmt:
        return note(scope.coordinates[i], *(valued(given.access(name), scope) for name in names))

    return Alone(given, names, kinds, Loop(i, at, at, ir.ZERO, size, walkers, given.scope, body, style=style))


def rows(coordinates: list[int], held: dict[str, Entries]) -> list[Row]:
    """What must be noted at these coordinates."""
    return [(k, *(entries.get((k,)) for entries in held.values())) for k in coordinates]


def having(text: str, held: dict[str, Entries]) -> list[int]:
    """The coordinates at which a formula holds, by Python's sets."""
    found: set[int] = eval(text, {name: {k for (k,) in entries} for name, entries in held.items()})
    return sorted(found)


MERGES = (
    ("b & c", "s s", SERIAL, "intersects b, c"),
    ("b & c", "s b", SERIAL, "intersects b, c"),
    ("b & c", "u s", UNROLLED, "intersects b, c"),
    ("b & c & d", "s u b", SERIAL, "intersects b, c, d"),
    ("b & c", "s s s u", SERIAL, "intersects b, c; d, e followed by a cursor"),
    ("b & c", "s s s~", SERIAL, "intersects b, c; d followed by a cursor"),
    ("b & c", "s s", GALLOP, "intersects b, c"),
    ("b & c", "s b", GALLOP, "intersects b, c"),
    ("b & c", "u u", GALLOP, "intersects b, c"),
    ("b & c & d", "s u s b s~", GALLOP, "intersects b, c, d; e, f followed by a cursor"),
    ("b | c", "s s", SERIAL, "merges b, c"),
    ("b | c", "s u", SERIAL, "merges b, c"),
    ("b | c", "u b", UNROLLED, "merges b, c"),
    ("b | c", "s s", GALLOP, "merges b, c"),
    ("b | c", "s s b u", SERIAL, "merges b, c; d, e followed by a cursor"),
    ("b | c", "s s s u", GALLOP, "merges b, c; d, e followed by a cursor"),
    ("b & c | d", "s s s", SERIAL, "merges b, c, d in one loop with flags"),
    ("b & c | d", "s u u", GALLOP, "merges b, c, d in one loop with flags"),
    ("(b | c) & d", "u s s s", SERIAL, "merges b, c, d; e followed by a cursor"),
    ("b | c | d", "s s s", SERIAL, "merges b, c, d"),
    ("b | c | d", "s b s s~", SERIAL, "merges b, c, d; e followed by a cursor"),
    ("b | c | d", "s u s", SERIAL, "merges b, c, d in one loop with flags"),
    ("b | c | d | e", "s s b u", SERIAL, "merges b, c, d, e in one loop with flags"),
    ("(b | c) & (d | e)", "s s u s", SERIAL, "merges b, c, d, e in one loop with flags"),
    ("b & c | d & e", "s b s s u s~", SERIAL, "merges b, c, d, e in one loop with flags; f, g followed by a cursor"),
    ("b | c | d | e | f | g | h", "s s s u s s s", UNROLLED, "merges b, c, d, e, f, g, h in one loop with flags"),
)


@pytest.mark.parametrize(("formula", "formats", "style", "said"), MERGES)
def test_a_merge_visits_where_its_formula_holds(formula: str, formats: str, style: Style, said: str, rng: np.random.Generator) -> None:
    made = alone(formats, style)
    notes = made.notes(Merged(made.formula(formula)).make(made.loop))
    assert made.said == f"i: {said}"
    for n in (0, 1, *rng.integers(2, 9, TRIALS)):
        operands, held = made.drawn(rng, n)
        assert notes.on(operands, i=n) == rows(having(formula, held), held)


@pytest.mark.parametrize("formats", ["s s s", "s b s"])
def test_a_merge_inside_many_copies_is_one_loop(formats: str, rng: np.random.Generator) -> None:
    made = alone(formats)
    often = replace(made.loop, scope=replace(made.loop.scope, copies=60))
    notes = made.notes(Merged(made.formula("b | c | d")).make(often))
    assert made.said == "i: merges b, c, d in one loop with flags"
    operands, held = made.drawn(rng, 8)
    assert notes.on(operands, i=8) == rows(having("b | c | d", held), held)


DRIVEN = (
    ("s", SERIAL),
    ("u", SERIAL),
    ("b", SERIAL),
    ("s~", SERIAL),
    ("u~", SERIAL),
    ("s s u b", SERIAL),
    ("u s s~ b", SERIAL),
    ("b b s", SERIAL),
    ("s s u b", GALLOP),
    ("s~ s~ s~", SERIAL),
    ("s s", UNROLLED),
    ("u u", UNROLLED),
)


@pytest.mark.parametrize(("formats", "style"), DRIVEN)
def test_one_operand_drives_and_others_follow(formats: str, style: Style, rng: np.random.Generator) -> None:
    made = alone(formats, style)
    notes = made.notes(Driven(made.access("b")).make(made.loop))
    for n in (0, 1, *rng.integers(2, 9, TRIALS)):
        operands, held = made.drawn(rng, n)
        runs = [(k, value) for (k,), value in sorted(held["b"].items())] if formats[0] == "b" else _runs(operands["b"])
        expected = [(k, value, *(entries.get((k,)) for name, entries in held.items() if name != "b")) for k, value in runs]
        assert notes.on(operands, i=n) == expected


def _runs(storage: Storage) -> list[tuple[int, int]]:
    """The coordinates of a vector in the order in which they are stored, each run of equal ones once, with the sum of its values."""
    runs: list[tuple[int, int]] = []
    for k, value in zip(storage.levels[0].arrays["crd"].tolist(), storage.values.astype(int).tolist(), strict=True):
        runs[-1:] = [(k, runs[-1][1] + value)] if runs and runs[-1][0] == k else [*runs[-1:], (k, value)]
    return runs


COUNTED = (("", SERIAL), ("s", SERIAL), ("u b s", SERIAL), ("s~", SERIAL), ("s b u", GALLOP), ("s s", UNROLLED))


@pytest.mark.parametrize(("formats", "style"), COUNTED)
def test_every_coordinate_is_counted_and_all_operands_follow(formats: str, style: Style, rng: np.random.Generator) -> None:
    made = alone(formats, style)
    notes = made.notes(Counted().make(made.loop))
    for n in (0, 1, *rng.integers(2, 9, TRIALS)):
        operands, held = made.drawn(rng, n)
        assert notes.on(operands, i=n) == rows(list(range(n)), held)


@pytest.mark.parametrize(("formats", "style"), COUNTED)
def test_a_counted_loop_recovers_and_guards_its_coordinate(formats: str, style: Style, rng: np.random.Generator) -> None:
    """Every third coordinate from the second on: cursors catch up with what was passed over."""
    made, counter = alone(formats, style), ir.Var("k")
    recovered = (ir.Declare(at, ir.add(ir.multiply(counter, ir.index(3)), ir.ONE)),)
    guarded = replace(made.loop, counter=counter, recover=recovered, guard=ir.compare("less", at, size))
    notes = made.notes(Counted().make(guarded))
    for n in (0, 1, *rng.integers(2, 12, TRIALS)):
        operands, held = made.drawn(rng, n)
        assert notes.on(operands, i=n) == rows(list(range(1, n, 3)), held)


FILTERED = (("b", "s u"), ("b", "s~ s~"), ("b & c", "s s u"), ("b | c", "s u s"), ("b | c | d", "s s s"))


@pytest.mark.parametrize(("formula", "formats"), FILTERED)
def test_what_operands_find_is_filtered(formula: str, formats: str, rng: np.random.Generator) -> None:
    made = alone(formats)
    even = ir.compare("equal", ir.Op("remainder", (at, ir.index(2))), ir.ZERO)
    notes = made.notes(iterate(replace(made.loop, filter=even), made.formula(formula)))
    for _ in range(TRIALS):
        operands, held = made.drawn(rng, 8)
        expected = [k for k in having(formula, held) if k % 2 == 0]
        assert sorted(notes.on(operands, i=8), key=str) == rows(expected, held)


@pytest.mark.parametrize("formats", ["s", "u b", "s~ s"])
def test_threads_look_their_entries_up(formats: str, rng: np.random.Generator) -> None:
    """Iterations in no order have no cursors; each notes what it finds at a place of its own."""
    made = alone(formats, THREADS)
    found = ir.Array("found", np.dtype(np.float64))
    width = len(made.names)

    def body(scope: Scope) -> ir.Stmt:
        places = (ir.add(ir.multiply(at, ir.index(width)), ir.index(k)) for k in range(width))
        return ir.block(*(ir.Store(found, place, valued(made.access(name), scope)) for place, name in zip(places, made.names, strict=True)))

    room, k = ir.multiply(size, ir.index(width)), ir.Var("k")
    read = ir.For(k, ir.ZERO, room, note(ir.Load(found, k)))
    loops = ir.block(ir.Allocate(found, room), Counted().make(replace(made.loop, body=body)), read, ir.Free(found))
    notes = made.given.notes(loops, 1)
    for n in rng.integers(0, 9, TRIALS):
        operands, held = made.drawn(rng, n)
        expected = [value for row in rows(list(range(n)), held) for value in row[1:]]
        assert [value for (value,) in notes.on(operands, i=n)] == expected


Wanted = Callable[[bool, set[int], set[int], set[int]], set[int]]
FLAGGED: tuple[tuple[str, Wanted], ...] = (
    ("F", lambda few, b, c, every: every if few else set()),
    ("F | b", lambda few, b, c, every: every if few else b),
    ("F & b", lambda few, b, c, every: b if few else set()),
    ("F & b | c", lambda few, b, c, every: b | c if few else c),
    ("(F | b) & c", lambda few, b, c, every: c if few else b & c),
    ("F & (b | c)", lambda few, b, c, every: b | c if few else set()),
)


@pytest.mark.parametrize(("formula", "wanted"), FLAGGED)
def test_a_flag_decides_when_the_loops_run(formula: str, wanted: Wanted, rng: np.random.Generator) -> None:
    """The flag F is set where there are at most four coordinates."""
    made = alone("s s")
    flag = Flag(ir.compare("less_equal", size, ir.index(4)))
    told: Told = eval(formula, {"F": Told(flag), **{name: Told(Stored(made.access(name))) for name in made.names}})
    notes = made.notes(iterate(made.loop, told.formula))
    for n in rng.integers(0, 9, TRIALS):
        operands, held = made.drawn(rng, n)
        b, c = ({k for (k,) in held[name]} for name in "bc")
        assert notes.on(operands, i=n) == rows(sorted(wanted(n <= 4, b, c, set(range(n)))), held)


def test_what_never_holds_makes_no_loop() -> None:
    made = alone("s")
    assert iterate(made.loop, any_of([])) == ir.block()


def test_a_formula_has_a_form() -> None:
    made = alone("s s")
    b, c = Stored(made.access("b")), Stored(made.access("c"))
    assert form_of(ALWAYS) == Counted()
    assert form_of(b) == Driven(made.access("b"))
    assert form_of(all_of([b, c])) == Merged(all_of([b, c]))
    assert form_of(any_of([b, c])) == Merged(any_of([b, c]))


LATTICES = (
    ("b & c", "bc: bc"),
    ("b | c", "bc: bc b c, b: b, c: c"),
    ("(b | c) & d", "bcd: bcd bd cd, bd: bd, cd: cd"),
    ("b & c & d", "bcd: bcd"),
    ("b & (c | d | e)", None),
    ("b & c | d", None),
    ("b | c | d", None),
)


@pytest.mark.parametrize(("formula", "points"), LATTICES)
def test_the_merge_lattice_has_these_points(formula: str, points: str | None) -> None:
    """For each set of operands that are left, the sets that may be present; None where there are too many."""
    made = alone("s s s s")
    used = [name for name in made.names if name in formula]
    found = lattice_points(made.formula(formula), [made.access(name) for name in used])
    assert (None if found is None else ", ".join(f"{_named(live)}: {' '.join(map(_named, cases))}" for live, cases in found)) == points


def _named(accesses: tuple[Access, ...]) -> str:
    return "".join(access.tensor.name for access in accesses)


@pytest.mark.parametrize("formula", ["b", "b & c", "b | c", "b & c | d", "(b | c) & (d | e)"])
def test_a_formula_holds_where_its_operands_are(formula: str) -> None:
    made = alone("s s s s")
    for code in range(16):
        present = [name for k, name in enumerate(made.names) if code >> k & 1]
        expected = bool(eval(formula, {name: name in present for name in made.names}))
        assert holds(made.formula(formula), [made.access(name) for name in present]) == expected


def test_a_part_of_the_range_is_counted() -> None:
    made = alone("s")
    notes = made.notes(Counted().make(replace(made.loop, begin=ir.ONE, end=subtract(size, ir.ONE))))
    operands, held = made.drawn(np.random.default_rng(1), 6)
    assert notes.on(operands, i=6) == rows([1, 2, 3, 4], held)
