"""The same cases with modes far above 2^31: the dense oracle sees small coordinates, the kernels see them far apart.

    coordinate of the oracle    0  1        2     3
    coordinate of the kernels   0  2^31-1   2^40  2^61        ascending, so that order and equality stay what they are

Every operand and the result are stored without full levels. Statements whose loops visit every coordinate of a long mode are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from random import Random

import numpy as np
from fuzz.drawing import Case, accesses, draw, numbers_of, tied_variables
from fuzz.runner import Disagreement, Job, Tally, contents, examine, guarded, loaded, prepare_unscheduled

from sparseloom.core.errors import NotationError
from sparseloom.formats.format import Format
from sparseloom.formats.level import LevelData
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.formats.validate import check
from sparseloom.programs.execution import specialize

FORMATS: dict[int, tuple[str, ...]] = {
    0: ("",),
    1: ("s", "s", "u", "s~", "p"),
    2: ("ss", "ss", "uq", "ss:1,0", "uq:1,0", "u~q~", "uq+", "su", "uu", "sp", "sp:1,0"),
    3: ("sss", "sss", "uqq", "suq", "sss:2,0,1", "uqq:2,1,0", "sss:1,2,0", "ssp"),
    4: ("ssss", "uqqq", "ssss:3,1,0,2", "ssuq"),
}
CORNERS = (2**31 - 2, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**33, 2**53 + 1, 2**61, 2**62 - 1)
LONGEST = 1 << 20  # how many coordinates a loop may visit one by one
Places = dict[str, np.ndarray]


def stretched_cases(seed: int, stream: int) -> Iterator[Case]:
    """An endless stream of cases without full levels."""
    number = stream << 32
    while True:
        case, random = draw(seed, number), Random(f"{seed}/{number}/far")
        specs = {}
        for name, spec in case.specs.items():
            form = random.choice(FORMATS[len(case.shape(name))])
            repeats = spec.repeats and not as_format(form, len(case.shape(name))).is_unique
            specs[name] = replace(spec, format=form, slack=False, repeats=repeats, index="int64" if random.random() < 0.8 else spec.index)
        form = random.choice(FORMATS[len(case.assign.lhs.indices)])
        if not numbers_of(case.assign):  # which would stay where they are
            yield replace(case, specs=specs, format=form)
        number += 1


def compare_stretched(cases: Iterator[Case], wanted: int) -> Tally:
    """Draw and compare until so many were compared."""
    tally = Tally()
    while tally.compared < wanted and len(tally.failures) < 5:
        batch = list(islice(cases, min(50, 2 * (wanted - tally.compared))))
        prepared = ((case, guarded(tally, case, prepare_unscheduled, case, tally)) for case in batch)
        jobs = [far for case, job in prepared if job is not None and (far := guarded(tally, case, stretch, job)) is not None]
        for job in loaded([job for job, _ in jobs], tally):
            places = next(places for other, places in jobs if other is job)
            if guarded(tally, job.case, run_far, job, places):
                tally.compared += 1
    return tally


def stretch(job: Job) -> tuple[Job, Places] | None:
    """The job with its coordinates far apart; None if its loops would take forever."""
    case = job.case
    places = draw_places(case)
    storages = {name: moved(storage, [places[v] for v in variables(case, name)]) for name, storage in job.storages.items()}
    for name, storage in storages.items():
        check(storage, name)
    sizes = {name: int(places[name][-1]) for name in case.given_sizes}
    dtype = None if case.dtype is None else np.dtype(case.dtype)
    form = as_format(case.format or "", len(case.assign.lhs.indices))
    try:
        prepared = specialize(case.closed(), storages, form, dtype, sizes)
        told = prepared.explain()
    except NotationError:
        return None
    visited = re.findall(r"every coordinate \((?:at most )?([\d,]+) times\)", told)
    if any(int(count.replace(",", "")) > LONGEST for count in visited) or "every coordinate" in told.replace("every coordinate (", ""):
        return None
    if prepared.stages.concrete.closes:  # what is not stored is worth more where there are more coordinates
        return None
    return replace(job, storages=storages, before=contents(storages), prepared=prepared), places


def variables(case: Case, name: str) -> tuple[str, ...]:
    """The variables of a tensor's modes."""
    access = next(a for a in accesses(case.assign) if a.tensor.name == name)
    return tuple(v.name for v in access.indices)


def draw_places(case: Case) -> Places:
    """Where the coordinates of each variable go, and behind the last of them the extent. Variables that share a mode share the places.

    Operands with int32 indices have coordinates that fit, in modes that are as long.
    """
    random = Random(f"{case.seed}/places")
    narrow = any(spec.index == "int32" for spec in case.specs.values())
    drawn: Places = {}
    for name, root in tied_variables(case.assign).items():
        if root not in drawn:
            count = case.sizes[root]
            end = 2**31 if narrow else 2**62
            pool = {c for c in CORNERS if c < end} | {random.randrange(1, end) for _ in range(count)}
            inside = [0, *sorted(random.sample(sorted(pool), max(count - 1, 0)))][:count]
            extent = random.choice((2**31 + 1, 2**40, 2**62)) if narrow else 2**62
            drawn[root] = np.array([*inside, extent if count else 0])
        drawn[name] = drawn[root]
    return drawn


def moved(storage: Storage, places: list[np.ndarray]) -> Storage:
    """The storage with the coordinates of each mode at other places. Unused ones of padded rows are 0, which stays."""
    return _renumbered(storage, tuple(int(place[-1]) for place in places), lambda mode, crd: places[mode][:-1][crd])


def moved_back(storage: Storage, places: list[np.ndarray]) -> Storage:
    """The storage as the oracle numbers it."""

    def back(mode: int, crd: np.ndarray) -> np.ndarray:
        here = places[mode][:-1]
        found = np.searchsorted(here, crd)
        known = found < len(here)
        if not known.all() or not np.array_equal(here[found], crd):
            strange = sorted(set(crd.tolist()) - set(here.tolist()))
            raise Disagreement(f"mode {mode} of the result has coordinates that no operand has: {strange}")
        return found

    return _renumbered(storage, tuple(len(place) - 1 for place in places), back)


def _renumbered(storage: Storage, shape: tuple[int, ...], number: object) -> Storage:
    form: Format = storage.format
    levels = []
    for data, mode in zip(storage.levels, form.modes, strict=True):
        arrays = dict(data.arrays)
        if "crd" in arrays:
            arrays["crd"] = number(mode, arrays["crd"]).astype(arrays["crd"].dtype)  # type: ignore[operator]
        levels.append(LevelData(arrays, data.scalars))
    return replace(storage, shape=shape, levels=tuple(levels))


def run_far(job: Job, places: Places) -> bool:
    """Run the loops in Python and in C, and compare both with the oracle."""
    name = job.case.assign.lhs.tensor.name
    mine = [places[v] for v in variables(job.case, name)]
    for target in ("interpret", "c"):
        result = job.prepared.bind(job.storages, target).run()
        check(result, name)
        if not result.format.is_dense:
            result = moved_back(result, mine)
        examine(job, target, result)
    if contents(job.storages) != job.before:
        raise Disagreement("an operand was modified")
    return True
