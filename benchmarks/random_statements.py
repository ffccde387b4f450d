"""Random statements, as planned and plain: a plan must never cost much, and should gain where there is work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.outcome import Trial
from benchmarks.stand_ins import generator, numbers
from benchmarks.task import chosen_schedule
from benchmarks.threads import use_threads
from benchmarks.timing import OWN, WALL, race
from sparseloom.calls.evaluation import program
from sparseloom.core.errors import CompilerBug
from sparseloom.tensor.creation import from_coo
from sparseloom.tensor.tensor import Tensor

FORMATS = {2: ("csr", "csc", "dcsr", "coo(2)"), 3: ("csf(3)", "coo(3)", "sss:1,0,2")}
ENTRIES = (20_000, 200_000)
EXTENTS = {2: (200, 20_000), 3: (20, 400)}
LARGEST_RESULT = 2_000_000
Rng = np.random.Generator


@dataclass(frozen=True)
class Statement:
    """A statement, how its sparse operands are stored, and its operands in order."""

    text: str
    formats: dict[str, str]
    operands: dict[str, Any]


def draw(number: int, scale: float = 1.0) -> Statement:
    """The statement of this number: one or two sparse operands, up to two dense factors, any indices kept."""
    rng = generator(f"statement {number}")
    order = int(rng.choice([2, 2, 3]))
    letters = "ijk"[:order]
    low, high = EXTENTS[order]
    sizes = {letter: max(4, int(scale ** (1 / order) * np.exp(rng.uniform(np.log(low), np.log(high))))) for letter in letters}
    form = str(rng.choice(FORMATS[order]))
    operands: dict[str, Any] = {name: _sparse(rng, name, [sizes[letter] for letter in letters], form, scale) for name in _sparse_names(rng)}
    factors = _factors(rng, letters, sizes)
    operands |= {name: numbers(f"{name} {number}", *(sizes[letter] for letter in indices)) for name, indices in factors.items()}
    kept = _kept(rng, letters + ("r" if "r" in sizes else ""), sizes)
    sparse = [f"{name}({','.join(letters)})" for name in operands if name not in factors]
    between = str(rng.choice([" + ", " * "]))
    head = f"({between.join(sparse)})" if len(sparse) > 1 else sparse[0]
    body = " * ".join([head, *(f"{name}({','.join(indices)})" for name, indices in factors.items())])
    formats = {name: form for name in operands if name not in factors}
    return Statement(f"out({','.join(kept)}) = {body}" if kept else f"out = {body}", formats, operands)


def trials(count: int, threads: int, seconds: float, scale: float = 1.0) -> Iterator[Trial]:
    """So many random statements, timed both ways."""
    use_threads(threads)
    for number in range(count):
        drawn = draw(number, scale)
        plain, planned = (program(drawn.text, drawn.formats, schedule) for schedule in ("", None))
        runs = {"plain": plain.bind(*drawn.operands.values()), "planned": planned.bind(*drawn.operands.values())}
        if not np.allclose(runs["plain"]().to_numpy(), runs["planned"]().to_numpy()):
            raise CompilerBug(drawn.text, "a plan should not change the result")
        found = race({name: run.start for name, run in runs.items()}, seconds, OWN if threads == 1 else WALL)
        described = (found.seconds("plain"), found.seconds("planned"), found.ratio("plain", "planned"), chosen_schedule(planned))
        yield Trial(drawn.text, drawn.formats, threads, *described)


def _sparse_names(rng: Rng) -> tuple[str, ...]:
    return ("A", "B") if rng.random() < 0.3 else ("A",)


def _sparse(rng: Rng, name: str, shape: list[int], form: str, scale: float) -> Tensor:
    """Entries that are spread evenly, or mostly over the first coordinates of the first mode."""
    count = int(min(scale * rng.integers(*ENTRIES), 0.2 * np.prod([float(size) for size in shape])))
    skew = float(rng.choice([1.0, 1.0, 3.0]))
    first = (shape[0] * rng.random(count) ** skew).astype(np.int64)
    others = [rng.integers(0, size, count) for size in shape[1:]]
    keys = np.unique(np.ravel_multi_index([first, *others], shape))
    return from_coo(np.unravel_index(keys, shape), rng.random(len(keys)) + 0.5, tuple(shape), format=form)


def _factors(rng: Rng, letters: str, sizes: dict[str, int]) -> dict[str, str]:
    """Dense factors by name, with their indices; one may have a column index of its own."""
    count = int(rng.integers(0, 3))
    wide = rng.random() < 0.5
    if count and wide:
        sizes["r"] = int(rng.choice([8, 16, 32]))
    return {name: str(rng.choice(list(letters))) + ("r" if wide else "") for name in ("C", "D")[:count]}


def _kept(rng: Rng, letters: str, sizes: dict[str, int]) -> str:
    """The indices of the result: some of them, as many as a dense result has room for."""
    kept = "".join(letter for letter in letters if letter == "r" or rng.random() < 0.5)
    while np.prod([float(sizes[letter]) for letter in kept]) > LARGEST_RESULT:
        kept = kept[1:]
    return kept
