"""Random schedules of random statements: drawn step by step from the primitives' own candidates, and refusals counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random

from fuzz.drawing import Case, cases
from fuzz.runner import Job, prepare
from fuzz.runner import Tally as Statements

from sparseloom.compiler import GPU_UNITS
from sparseloom.core.errors import ScheduleError
from sparseloom.core.trees import walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.notation.nodes import Forall
from sparseloom.schedule.primitive import PRIMITIVES, Primitive
from sparseloom.schedule.schedule import Schedule

MOST_STEPS = 8
TRIES = 5
SPACE_STEPS = ("pos", "fuse", "precompute")  # those that change what a loop runs over, or what it computes
# How often each step is drawn. What is often refused is tried with several candidates, so that it is taken all the same.
WEIGHTS = {
    "split": 3, "divide": 2, "fuse": 4, "pos": 5, "coord": 3, "reorder": 2, "precompute": 4, "bound": 2, "unroll": 1, "mergeby": 1,
    "parallelize": 5,
}  # fmt: skip


@dataclass
class Drawn:
    """Which steps were drawn, and what became of them."""

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


def scheduled_cases(seed: int, stream: int) -> Iterator[Case]:
    """Statements to schedule. A schedule reorders sums, so data have no infinities whose order would matter."""
    for case in cases(seed, stream):
        yield replace(case, specs={name: replace(spec, specials=False) for name, spec in case.specs.items()})


def draw_steps(case: Case, concrete: Concrete, drawn: Drawn) -> tuple[Primitive, ...]:
    """A schedule of one to eight steps; they follow from the case alone."""
    random = Random(f"schedule {case.seed}")
    made = Schedule(concrete)
    for _ in range(random.randint(1, MOST_STEPS)):
        made = _with_a_step(made, random, drawn)
    return made.trace


def _with_a_step(made: Schedule, random: Random, drawn: Drawn) -> Schedule:
    """The schedule with one step more, if a legal one is found in a few tries."""
    (word,) = random.choices(list(WEIGHTS), list(WEIGHTS.values()))
    candidates = PRIMITIVES[word].candidates(made.stmt, random)
    for _, step in zip(range(TRIES), candidates, strict=False):
        try:
            following = made.then(step)
        except ScheduleError as refusal:
            drawn.refused[f"{code_of(refusal)} {word}"] += 1
        else:
            drawn.taken[word] += 1
            return following
    return made


def code_of(refusal: ScheduleError) -> str:
    """The code at the head of a refusal."""
    return str(refusal)[1:].split("]")[0]


def prepared_job(case: Case, statements: Statements) -> Job | None:
    """The operands and the unscheduled loops of a case."""
    return prepare(case, statements)


def uses_gpu(job: Job) -> bool:
    """Whether a loop runs on a GPU, which C has none of."""
    stmt = job.prepared.stages.concrete.stmt
    return any(isinstance(found, Forall) and found.tag.unit in GPU_UNITS for found in walk(stmt))
