"""Random schedules for a GPU: random steps, and then loops are given to blocks, warps and threads wherever that is legal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from fuzz.drawing import Case
from fuzz.planned import made_up, step_by_step
from fuzz.runner import Job, examine, prepare
from fuzz.runner import Tally as Statements
from fuzz.schedules import Drawn, Scheduled, schedulable, with_a_step

from sparseloom.compiler import Stages, lower_concrete
from sparseloom.core.errors import DeviceError, ScheduleError, ShapeError
from sparseloom.core.trees import walk
from sparseloom.iteration.foralls import loops, tag_of
from sparseloom.loops.verify import verify
from sparseloom.notation.nodes import SERIAL, Access, Forall, Races
from sparseloom.notation.printer import show
from sparseloom.plan.choose import choices
from sparseloom.plan.machine import this_machine
from sparseloom.plan.space import Space
from sparseloom.programs.cuda.storages import to_host
from sparseloom.schedule.primitives import Parallelize
from sparseloom.schedule.schedule import Schedule
from sparseloom.schedule.units import GPU_UNITS
from sparseloom.targets.cuda import CUDA
from sparseloom.targets.target import Target

MOST_STEPS = 5
COVERING = tuple(races for races in Races if races is not Races.IgnoreRaces)
SHARING = (Races.Temporary.name, Races.Temporary.name, Races.ParallelReduction.name, Races.Atomics.name)
NOT_YET = ("sparse", "turns out only while", "has no atomic")  # what a GPU is refused, for now


Choose = Callable[[Case, Job, Target], Schedule | None]


@dataclass
class Tally:
    """What became of the cases."""

    compared: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class OnGpu:
    """A statement with a schedule for a GPU, lowered."""

    scheduled: Scheduled
    job: Job
    stages: Stages

    def check(self, target: str) -> None:
        """Run it; the result must be the dense oracle's, or a bound of the schedule is wrong."""
        self.job.prepared.__dict__["stages"] = self.stages  # where cached_property keeps it
        try:
            made = self.job.prepared.bind(self.job.storages, target).run()
        except (ShapeError, DeviceError) as wrong:
            if "bound" not in str(wrong) and "cannot be converted there" not in str(wrong):
                raise
        else:
            examine(self.job, target, to_host(made))


def on_gpu(seed: int, stream: int, tally: Tally, choose: Choose | None = None, target: Target = CUDA) -> Iterator[OnGpu]:
    """Lowered cases; those that a GPU is refused for a good reason are counted. Schedules are random where nobody else chooses them."""
    for case in schedulable(seed, stream):
        job = prepare(case, Statements())
        if job is None or (made := (choose or at_random)(case, job, target)) is None:
            continue
        try:
            stages = lower_concrete(job.assign, made.concrete, case.int32_limit, target=target)
            stages.require_target()
        except DeviceError as refusal:
            if not any(reason in str(refusal) for reason in NOT_YET):
                raise
            tally.refused[str(refusal).split("\n")[0]] += 1
            continue
        verify(stages.lowered.function)
        if stages.concrete.shared is not None and job.prepared.problem.is_empty:
            continue  # a sum over nothing runs without its schedule, for it has no operand's structure
        yield OnGpu(Scheduled(case, made.trace), job, stages)


def planned(case: Case, job: Job, target: Target) -> Schedule | None:
    """One of the schedules that the planner may choose, under statistics that are made up; None if there is none but plain loops."""
    loops = job.prepared.unscheduled()
    found: list[Schedule] = []
    random = Random(f"planned {case.seed}")
    space = Space(loops.stmt, job.prepared.problem.sizes, made_up(job), this_machine().running(target))
    for choice in choices(loops, space, ordered=random.random() < 0.5):
        made = step_by_step(loops, choice, target)
        found += [made] if isinstance(made, Schedule) else []
    return random.choice(found[:-1]) if len(found) > 1 else None


def at_random(case: Case, job: Job, target: Target) -> Schedule | None:
    """A random schedule whose loops are given to a GPU; None if none can be."""
    random = Random(f"gpu {case.seed}")
    if random.random() < 0.4 and (sharing := next(_by_positions(job, random, target), None)) is not None:
        return sharing
    made = Schedule(job.prepared.unscheduled(), target=target)
    for _ in range(random.randint(0, MOST_STEPS)):
        made = with_a_step(made, random, Drawn())
    blocks, _, threads = GPU_UNITS
    for unit in random.choice([GPU_UNITS, GPU_UNITS, (blocks, threads), (blocks, threads), (threads,)]):
        made = next(_with_unit(made, unit, random), made)
    for _ in range(random.choice((0, 0, 1, 2, 4))):  # of loops that units run already: what they fill, their bounds, their copies
        made = with_a_step(made, random, Drawn())
    tags = [tag for n in walk(made.stmt) if isinstance(n, Forall) and (tag := n.tag).unit is not None]
    fits = all(tag.unit in GPU_UNITS and tag.races is not Races.IgnoreRaces for tag in tags)
    return made if tags and fits else None


def _by_positions(job: Job, random: Random, target: Target) -> Iterator[Schedule]:
    """Units that take equally many positions of an operand each, and so share runs of equal coordinates."""
    for access in [n for n in walk(job.assign.rhs) if isinstance(n, Access) and not n.tensor.format.is_dense]:
        first, *others = [str(access.indices[mode]) for mode in access.tensor.format.modes]
        steps = [f"fuse({fused},{var},{fused}z)" for var, fused in zip(others, accumulate("z" * len(others), initial=first), strict=False)]
        steps.append(f"pos({first}{'z' * len(others)},pz,{show(access)})")
        each, units, races = random.choice((1, 2, 5, target.lanes)), random.choice((1, 3, 8)), random.choice(SHARING)
        steps.append(f"split(pz,bz,qz,{each * units})")
        if random.random() < 0.5:
            steps += [f"split(qz,wz,tz,{each})", "parallelize(bz,GPUBlock,Atomics) parallelize(wz,GPUWarp,Atomics)"]
            steps.append("parallelize(tz,GPUThread,ParallelReduction)")
        else:
            steps += [f"split(qz,tz,rz,{each})", f"parallelize(bz,GPUBlock,{races})"]
            steps.append(f"parallelize(tz,{random.choice(('GPUWarp', 'GPUThread'))},{races})")
        try:
            yield Schedule.from_text(job.prepared.unscheduled(), " ".join(steps), target)
        except ScheduleError:
            continue


def _with_unit(made: Schedule, unit: object, random: Random) -> Iterator[Schedule]:
    """The schedule with one more loop run by a unit, outer loops first."""
    for var in loops(made.stmt):
        if tag_of(made.stmt, var) != SERIAL:
            continue
        for races in random.sample(COVERING, len(COVERING)):
            try:
                yield made.then(Parallelize(var, unit, races))  # type: ignore[arg-type]
            except ScheduleError:
                continue
