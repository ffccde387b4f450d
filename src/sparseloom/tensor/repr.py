"""How a tensor shows itself: shape, format, dtype, entries, density and memory, then its values or a picture of where they are."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from sparseloom.formats.pack import stored_count
from sparseloom.formats.storage import Storage
from sparseloom.interop.arrays import arrays_of
from sparseloom.interop.numpy import to_numpy
from sparseloom.tensor.assignment import Assignment
from sparseloom.tensor.picture import braille, svg


def text_of(storage: Storage, name: str | None, assignment: Assignment | None) -> str:
    """The text form. A tensor whose assignment is postponed shows that, and is not computed for it."""
    facts = ", ".join(_facts(storage, assignment))
    head = f"<Tensor{f' {name!r}' if name else ''}: {facts}>"
    if assignment is not None:
        return f"{head}\n  assigned, not computed yet: {assignment}"
    if storage.device != "cpu":
        return head
    body = _values_text(storage).split("\n") if storage.format.is_dense else braille(storage)
    return "\n".join([head, *(f"  {line}" for line in body)])


def html_of(storage: Storage, name: str | None, assignment: Assignment | None) -> str:
    """The HTML form: one table and one inline image, nothing from elsewhere."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(label)}</th><td style='text-align:left'>{html.escape(value)}</td></tr>"
        for label, value in _labelled(storage, name, assignment)
    )
    picture = ""
    if assignment is None and storage.device == "cpu":
        picture = f"<pre>{html.escape(_values_text(storage))}</pre>" if storage.format.is_dense else svg(storage)
    return f"<div style='display:flex;gap:1em;align-items:center'><table>{rows}</table>{picture}</div>"


def inline_of(storage: Storage, width: int) -> str:
    """One line of at most so many characters, for tables such as xarray's."""
    line = f"<Tensor: {', '.join(_facts(storage, None)[1:])}>"
    return line if len(line) <= width else f"{line[: max(width - 3, 0)]}..."


def _values_text(storage: Storage) -> str:
    return np.array2string(to_numpy(storage), threshold=60, edgeitems=3, max_line_width=100)


def _facts(storage: Storage, assignment: Assignment | None) -> list[str]:
    facts = [_shape(storage.shape), str(storage.format), str(storage.dtype)]
    if assignment is not None:
        return facts
    if not storage.format.is_dense:
        facts += [f"{stored_count(storage)} stored ({_density(storage)})"] if _is_counted(storage) else []
        if storage.fill != 0:
            facts.append(f"fill {storage.fill}")
    return [*facts, _memory(storage)] if storage.device == "cpu" else [*facts, _memory(storage), f"on {storage.device}"]


def _labelled(storage: Storage, name: str | None, assignment: Assignment | None) -> list[tuple[str, str]]:
    labelled = [("name", name)] if name else []
    labelled += [("shape", _shape(storage.shape)), ("format", str(storage.format)), ("dtype", str(storage.dtype))]
    if assignment is not None:
        return [*labelled, ("assigned, not computed yet", str(assignment))]
    if _is_counted(storage):
        labelled += [("stored", str(stored_count(storage))), ("density", _density(storage))]
    labelled += [("memory", _memory(storage))]
    labelled += [("device", storage.device)] if storage.device != "cpu" else []
    return [*labelled, ("fill", str(storage.fill))] if storage.fill != 0 else labelled


def _is_counted(storage: Storage) -> bool:
    """Whether the number of entries is known without a look at arrays that are on a device."""
    is_even = not any(size % block for size, block in zip(storage.shape, storage.format.blocks, strict=False))
    return storage.device == "cpu" or (is_even and all(level.compact for level in storage.format.levels))


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) if shape else "scalar"


def _density(storage: Storage) -> str:
    size = math.prod(storage.shape)
    return f"{100 * stored_count(storage) / size:.3g} %" if size else "empty"


def _memory(storage: Storage) -> str:
    return with_unit(sum(array.nbytes for array in arrays_of(storage).values()), 1000, ("bytes", "KB", "MB", "GB"))


def with_unit(count: float, step: int, units: Sequence[str]) -> str:
    """A number of bytes in the unit that fits best; each unit is ``step`` times the one before."""
    size = 0
    while count >= step and size + 1 < len(units):
        count, size = count / step, size + 1
    return f"{count:.3g} {units[size]}" if size else f"{count} {units[0]}"
