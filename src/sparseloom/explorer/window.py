"""Which part of the operands is drawn: a window around many entries of the user's own tensor, or small random operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sparseloom.explorer.state import RequestError
from sparseloom.explorer.subject import Subject
from sparseloom.formats.pack import pack, unpack
from sparseloom.formats.storage import Storage
from sparseloom.iteration.foralls import operands
from sparseloom.notation.nodes import Access

WIDEST, NARROW = 32, 6  # coordinates of a window: of the operand that is shown, and of variables that it does not have
_SAMPLE, _FULL = 16, 0.25  # of random operands: how many coordinates are drawn, and how full they are at least


def is_drawable(access: Access) -> bool:
    """Whether a picture can show an operand."""
    return len(access.indices) in (1, 2, 3) and len(set(access.indices)) == len(access.indices)


def shown_operand(subject: Subject, wanted: Any) -> Access:
    """The operand to show: the one that is named, else the first that is sparse, else the first with two modes."""
    found = _drawable(subject)
    if isinstance(wanted, str) and wanted:
        named = next((access for access in found if access.tensor.name == wanted), None)
        if named is None:
            there = ", ".join(access.tensor.name for access in found)
            raise RequestError(f"there is no operand {wanted[:40]!r} to draw", f"there are {there}")
        return named
    found.sort(key=lambda access: (access.tensor.format.is_dense, len(access.indices) < 2))
    if not found:
        raise RequestError("the statement reads nothing that can be drawn", "pictures show an operand with one to three variables")
    return found[0]


def _drawable(subject: Subject) -> list[Access]:
    return [access for access in operands(subject.schedule.stmt) if access.tensor.name in subject.operands and is_drawable(access)]


def smaller(subject: Subject, shown: Access | None = None) -> Subject:
    """The same on operands that can be seen: random ones are made anew, small and full. Others stay, and a window of them is shown."""
    if subject.given or not _drawable(subject):
        return subject
    access = shown or shown_operand(subject, None)
    mine = {var.name for var in access.indices}
    wide = _SAMPLE if len(mine) < 3 else _SAMPLE // 2
    most = {var: wide if any(other in mine for other in group) else NARROW for group in _tied(subject) for var in group}
    sizes = {var: min(size, most[var]) for var, size in subject.sizes.items()}
    return Subject(replace(subject.state, sizes=sizes, density=max(subject.state.density, _FULL)), {})


def windowed(subject: Subject, shown: Access | None = None) -> dict[str, Storage]:
    """The operands inside a window around entries of the one that is shown."""
    if not _drawable(subject):
        return subject.operands
    window = window_of(subject, shown or shown_operand(subject, None))
    return {name: _cut(storage, subject, name, window) for name, storage in subject.operands.items()}


def _tied(subject: Subject) -> list[set[str]]:
    """The variables, those together that run through one mode of a tensor which is read twice."""
    groups = [{var} for var in subject.sizes]
    for name in dict(subject.wanted.accesses):
        for together in zip(*(indices for other, indices in subject.wanted.accesses if other == name), strict=True):
            touched = [group for group in groups if group.intersection(together)]
            groups = [group for group in groups if group not in touched] + [set().union(*touched)]
    return groups


def window_of(subject: Subject, access: Access) -> dict[str, tuple[int, int]]:
    """Which coordinates of every variable are shown: of the operand those of the tile with the most entries, of others the first ones."""
    storage = subject.operands[access.tensor.name]
    width = WIDEST if len(access.indices) < 3 else WIDEST // 4
    coordinates, _ = unpack(storage)
    first = [0] * len(access.indices)
    if coordinates.shape[1] and max(storage.shape) > width:
        tiles, counts = np.unique(coordinates // width, axis=1, return_counts=True)
        first = [int(tile) * width for tile in tiles[:, int(np.argmax(counts))]]
    mine = dict(zip((var.name for var in access.indices), first, strict=True))
    found = {}
    for group in _tied(subject):
        begin, most = next(((mine[name], width) for name in mine if name in group), (0, NARROW))
        numbers = [int(name) for name in group if name.isdecimal()]  # constants as indices stay where they are
        begin, most = (0, max(most, *numbers) + 1) if numbers else (begin, most)
        for name in group:
            size = subject.sizes[name]
            start = min(begin, max(0, size - most))
            found[name] = start, min(size, start + most)
    return found


def _cut(storage: Storage, subject: Subject, name: str, window: Mapping[str, tuple[int, int]]) -> Storage:
    """An operand inside the window."""
    indices = dict(subject.wanted.accesses)[name]
    coordinates, values = unpack(storage)
    kept = np.ones(len(values), bool)
    for mode, var in enumerate(indices):
        begin, end = window[var]
        kept &= (coordinates[mode] >= begin) & (coordinates[mode] < end)
    moved = coordinates[:, kept] - np.array([[window[var][0]] for var in indices], np.int64).reshape(len(indices), 1)
    shape = tuple(window[var][1] - window[var][0] for var in indices)
    return pack(storage.format, shape, moved, values[kept], storage.fill, storage.index_dtype)


def remark(access: Access, subject: Subject) -> str:
    """Which part of the operands is shown."""
    window = window_of(subject, access)
    cut = [f"{var} from {begin} to {end - 1}" for var, (begin, end) in window.items() if end - begin < subject.sizes[var]]
    if not subject.given:
        return f"a small random {access.tensor.name} of {' by '.join(map(str, subject.operands[access.tensor.name].shape))}"
    return f"a window of {access.tensor.name}: {', '.join(cut)}" if cut else f"all of {access.tensor.name}"
