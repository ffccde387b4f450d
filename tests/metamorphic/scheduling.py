"""Random schedules as users write them: text, step by step. A step that the compiler rejects is left out."""

from __future__ import annotations

from random import Random

from sparseloom import ScheduleError
from sparseloom.iteration.foralls import loops
from sparseloom.schedule.schedule import Schedule

MOST_STEPS = 4
STRATEGIES = ("NoRaces", "Atomics", "Temporary", "ParallelReduction")
STEPS = ("split", "divide", "fuse", "reorder", "pos", "precompute", "unroll", "bound", "assemble", "mergeby")


def draw_schedule(random: Random, plain: Schedule, reads: list[str], result: str) -> str:
    """Up to four steps and a parallel loop, or none where none is legal; ``reads`` are the statement's accesses and products as text."""
    made = plain
    for number in range(random.randint(0, MOST_STEPS)):
        made = _tried(made, _step(random, made, reads, result, number))
    for _ in range(6):
        unit = "CPUThread" if random.random() < 0.85 else "CPUVector"
        following = _tried(made, f"parallelize({random.choice(_names(made))},{unit},{random.choice(STRATEGIES)})") if _names(made) else made
        if following is not made:
            made = following
            break
    if random.random() < 0.2 and made is not plain and _names(made):
        made = _tried(made, f"unroll({_names(made)[-1]},{random.randint(2, 4)})")
    return made.text


def _tried(made: Schedule, step: str) -> Schedule:
    try:
        return made.then_text(step)
    except ScheduleError:
        return made


def _names(made: Schedule) -> list[str]:
    return [str(var) for var in loops(made.stmt)]


def _step(random: Random, made: Schedule, reads: list[str], result: str, number: int) -> str:
    """A step that may or may not be legal."""
    names = _names(made)
    if not names:
        return ""
    i, j = random.choice(names), random.choice(names)
    outer, inner, size = f"h{number}", f"g{number}", random.choice((1, 2, 3, 4, 8))
    match random.choice(STEPS):
        case "split":
            return f"split({i},{outer},{inner},{size})"
        case "divide":
            return f"divide({i},{outer},{inner},{size})"
        case "fuse":
            place = random.randrange(len(names))
            return f"fuse({names[place - 1]},{names[place]},{outer})"
        case "reorder":
            return f"reorder({','.join(random.sample(names, len(names)))})"
        case "pos":
            return f"pos({i},{outer},{random.choice(reads)})"
        case "precompute" if i != j:
            return f"precompute({random.choice(reads)},{{{i},{j}}},{{{outer},{inner}}},v{number})"
        case "precompute":
            return f"precompute({random.choice(reads)},{i},{outer},v{number})"
        case "unroll":
            return f"unroll({i},{size})"
        case "bound":
            return f"bound({i},{outer},0,MinConstraint)"
        case "assemble":
            return f"assemble({result},{random.choice(('Append', 'Insert'))})"
    return f"mergeby({i},{random.choice(('TwoFinger', 'Gallop'))})"
