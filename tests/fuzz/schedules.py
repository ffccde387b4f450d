"""Random schedules of random statements: drawn step by step from the primitives' own candidates, and refusals counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from random import Random

from fuzz.drawing import Case, cases
from fuzz.naming import nasty_step

from sparseloom.core.errors import ScheduleError
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import loops, operands, places, provenance, reads, tag_of
from sparseloom.notation.nodes import SERIAL, IndexVar, Races, Stmt, Unit
from sparseloom.schedule.primitive import PRIMITIVES, Primitive
from sparseloom.schedule.primitives import Divide, Fuse, Parallelize, Pos, Precompute, Split
from sparseloom.schedule.schedule import Schedule
from sparseloom.schedule.units import CPU_UNITS

MOST_STEPS = 8
MOST_THREADED_STEPS = 4
TRIES = 3
KEEPING = 0.3  # the share of schedules whose threads are also asked to keep a workspace, and reduce
SPACE_STEPS = ("pos", "fuse", "precompute")  # those that change what a loop runs over, or what it computes
COMBINING = (Races.Atomics, Races.Temporary, Races.ParallelReduction)
SAFE = (Races.NoRaces, *COMBINING)
# How often each step is drawn.
WEIGHTS = {
    "split": 4, "divide": 3, "fuse": 4, "pos": 4, "coord": 3, "reorder": 3, "precompute": 5, "bound": 2, "unroll": 2, "mergeby": 1,
    "parallelize": 4, "assemble": 2, "prefetch": 2,
}  # fmt: skip
COUNTING = {**WEIGHTS, "fuse": 8, "pos": 10, "divide": 4, "bound": 3, "mergeby": 0, "assemble": 0}  # levels are fused and counted


@dataclass
class Drawn:
    """Which steps were drawn, and what became of them: refusals by code and step."""

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)

    @property
    def accepted(self) -> float:
        """The share of drawn steps that were taken."""
        taken, refused = self.taken.total(), self.refused.total()
        return taken / max(taken + refused, 1)


@dataclass(frozen=True)
class Scheduled:
    """A case and the steps of its schedule."""

    case: Case
    steps: tuple[Primitive, ...]

    def __str__(self) -> str:
        return f"{self.case}\n  schedule {' '.join(map(str, self.steps))}"

    @property
    def changes_space(self) -> bool:
        """Whether the schedule uses pos, fuse or precompute."""
        return any(step.word() in SPACE_STEPS for step in self.steps)


def schedulable(seed: int, stream: int) -> Iterator[Case]:
    """Statements to schedule. A schedule reorders sums, so their data have no infinities whose order would matter."""
    return (finite(case) for case in cases(seed, stream))


def finite(case: Case) -> Case:
    """A case without nan and infinities among its entries."""
    return replace(case, specs={name: replace(spec, specials=False) for name, spec in case.specs.items()})


def draw_steps(case: Case, concrete: Concrete, drawn: Drawn, weights: Mapping[str, int] = WEIGHTS) -> tuple[Primitive, ...]:
    """A schedule of one to eight steps; they follow from the case alone."""
    random = Random(f"schedule {case.seed}")
    made = Schedule(concrete)
    for _ in range(random.randint(1, MOST_STEPS)):
        made = with_a_step(made, random, drawn, weights)
    if random.random() < KEEPING:
        made = with_kept_workspace(made, random, drawn)
    return made.trace


def threaded_steps(case: Case, concrete: Concrete, drawn: Drawn) -> tuple[Primitive, ...]:
    """A schedule in which threads run a loop; none if no loop of the case may."""
    random = Random(f"threads {case.seed}")
    made = Schedule(concrete)
    for _ in range(random.randint(0, MOST_THREADED_STEPS)):
        made = with_a_step(made, random, drawn)
    if not _threads(made.stmt):
        made = with_threads(made, random, drawn)
    if random.random() < KEEPING:
        made = with_kept_workspace(made, random, drawn)
    return made.trace if _threads(made.stmt) else ()


def with_threads(made: Schedule, random: Random, drawn: Drawn) -> Schedule:
    """The schedule with a loop that threads run, if one may be run so; all strategies for races are drawn."""
    found = [Parallelize(var, Unit.CPUThread, races) for var in loops(made.stmt) for races in SAFE]
    likely = (step for step in random.sample(found, len(found)) if is_likely(made.stmt, step))
    return _with_the_first(made, likely, drawn, len(found))


def with_kept_workspace(made: Schedule, random: Random, drawn: Drawn) -> Schedule:
    """The schedule with threads whose iterations meet, and a workspace inside of their loop, which each of them keeps."""
    if not _threads(made.stmt):
        tags = (
            Parallelize(var, Unit.CPUThread, random.choice(COMBINING)) for var in random.sample(loops(made.stmt), len(loops(made.stmt)))
        )
        made = _with_the_first(made, (step for step in tags if is_likely(made.stmt, step)), drawn)
    inside = {var for loop in _threads(made.stmt) for _, place in places(made.stmt, loop) for var in loops(place.body)}
    kept = (step for step in PRIMITIVES["precompute"].candidates(made.stmt, random) if isinstance(step, Precompute) and {*step.i} <= inside)
    return _with_the_first(made, kept, drawn)


def _threads(stmt: Stmt) -> list[IndexVar]:
    """The loops that threads run."""
    return [loop for loop in loops(stmt) if tag_of(stmt, loop).unit is Unit.CPUThread]


def _with_the_first(made: Schedule, steps: Iterator[Primitive], drawn: Drawn, tries: int = TRIES) -> Schedule:
    """The schedule with the first of a few steps that is legal."""
    for step in islice(steps, tries):
        try:
            following = made.then(step)
        except ScheduleError as refusal:
            drawn.refused[f"{code_of(refusal)} {step.word()}"] += 1
        else:
            drawn.taken[step.word()] += 1
            return following
    return made


def with_a_step(made: Schedule, random: Random, drawn: Drawn, weights: Mapping[str, int] = WEIGHTS) -> Schedule:
    """The schedule with one step more, if a few tries find a legal one."""
    (word,) = random.choices(list(weights), list(weights.values()))
    likely = (step for step in PRIMITIVES[word].candidates(made.stmt, random) if is_likely(made.stmt, step))
    return _with_the_first(made, (nasty_step(step, made, random) if random.random() < 0.15 else step for step in likely), drawn)


def is_likely(stmt: Stmt, step: Primitive) -> bool:
    """Whether a step is worth a try: most of those that are plainly out of place are left out, so that most drawn steps are taken."""
    graph = provenance(stmt)
    match step:
        case Pos(var, _, access):
            read = all(access in reads(loop.body) for _, loop in places(stmt, var))
            sparse = not access.tensor.format.is_dense or len(operands(stmt)) == 1
            return read and sparse and graph.position(var) is None and graph.span(var) is not None
        case Split(var) | Divide(var):
            return tag_of(stmt, var) == SERIAL
        case Fuse(outer, inner, _):
            return tag_of(stmt, outer) == SERIAL == tag_of(stmt, inner)
        case Parallelize(var, unit, _):
            others = {tag_of(stmt, loop).unit for loop in loops(stmt)} - {None}
            mixed = any((other in CPU_UNITS) != (unit in CPU_UNITS) for other in others)
            fixed = unit is not Unit.GPUThread or graph.extent(var) is not None
            outermost = unit is not Unit.GPUBlock or var == loops(stmt)[0]
            return unit not in others and not mixed and fixed and outermost
    return True


def code_of(refusal: ScheduleError) -> str:
    """The code at the head of a refusal."""
    return str(refusal)[1:].split("]")[0]
