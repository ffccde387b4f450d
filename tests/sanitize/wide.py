"""Random statements on tensors with modes of real extents from 2^31 to 2^62, of whose coordinates few are stored."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np

from sparseloom.formats.format import Format
from sparseloom.formats.levels import Dense
from sparseloom.formats.pack import pack
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse
from sparseloom.plan.problem import declared
from sparseloom.programs.execution import Specialization, specialize

EXTENTS = (2**31 - 1, 2**31, 2**31 + 7, 2**32, 2**33, 2**40, 2**53, 2**62)
SMALL = (1, 2, 3, 5)
STATEMENTS = (
    "C(i,j) = A(i,j)", "C(i,j) = A(j,i)", "C(i,j) = A(i,j) + B(i,j)", "C(i,j) = A(i,j) - B(j,i)", "C(i,j) = A(i,j) * B(i,j)",
    "C(i,j) = A(i,k) * B(k,j)", "C(i,j) = A(k,i) * B(k,j)", "C(i,j) = A(i,k) * B(j,k)", "C(i,j) = a(i) * b(j)", "y(i) = A(i,j) * x(j)",
    "y(j) = A(i,j) * x(i)", "y(i) = A(i,j)", "y(i) = x(i) + z(i)", "y(i) = max(x(i), z(i))", "s = A(i,j) * B(i,j)", "s = x(i) * z(i)",
    "C(i,j) = A(i,j) * x(j)", "C(i,j) = A(i,j) * x(i) + B(i,j)", "T(i,j,k) = A(i,j) * x(k)", "T(i,j,k) = S(k,i,j)",
    "C(i,j) = S(i,j,k) * x(k)", "C(k,i) = S(i,j,k)", "y(i) = A(i,i)", "C(i,i) = x(i)", "T(i,j,k) = S(i,j,k) + U(i,j,k)",
    "C(i,j) = A(i,j) * B(i,k) * x(k)",
)  # fmt: skip
FORMATS = {
    0: ("",),
    1: ("s", "u", "u~", "s~"),
    2: ("ss", "ss:1,0", "uq", "uq:1,0", "u~q~+", "uq+", "su", "us", "ds", "ds:1,0", "sd", "sd:1,0", "dp", "sp", "ss~", "ud",
        "ssdd:0,1,0,1/2,3", "usdd:0,1,0,1/3,1"),
    3: ("sss", "uqq", "sss:2,0,1", "u~q~q~+", "dss", "sds:1,0,2", "ssd", "uqd", "uqq:1,2,0"),
}  # fmt: skip

# Results whose blocks hang below a level that may repeat are built over whole modes, for which these are too long.
SPREAD = "usdd:0,1,0,1/3,1"


def draw_wide(seed: int, number: int) -> tuple[str, Callable[[], Specialization], dict[str, Storage]]:
    """A statement in words, what prepares it, and its operands."""
    random = Random(f"wide/{seed}/{number}")
    text = random.choice(STATEMENTS)
    assign = parse(text).assign
    tensors = {t.name: t.order for t in tensors_of(assign)}
    result = assign.lhs.tensor.name
    forms = {name: as_format(random.choice(FORMATS[order]), order) for name, order in tensors.items()}
    if str(forms[result]) == SPREAD:
        forms[result] = as_format("ss", 2)
    indices = _indices(text)
    small = {v for name, form in forms.items() for mode, v in enumerate(indices[name]) if mode in _dense_modes(form)}
    variables = dict.fromkeys(v for names in indices.values() for v in names)
    sizes = {v: random.choice(SMALL if v in small or random.random() < 0.2 else EXTENTS) for v in variables}
    counts = {name: random.choice((0, 1, 3, 6, 6, 30, 30, 600)) for name in forms if name != result}
    if random.random() < 0.12:
        counts[random.choice(list(counts))] = 20000  # so many do not fit into the cache while they are sorted
    storages = {name: _stored(random, forms[name], tuple(sizes[v] for v in indices[name]), count) for name, count in counts.items()}
    described = [f"  {name}: {forms[name]} {tuple(sizes[v] for v in indices[name])}" for name in forms]
    closed = close_over(declare(assign, {name: declared(name, storage) for name, storage in storages.items()}), None)
    return "\n".join([text, *described]), lambda: specialize(closed, storages, forms[result], None, {}), storages


def _indices(text: str) -> dict[str, tuple[str, ...]]:
    """The variables of every tensor of a statement."""
    found: dict[str, tuple[str, ...]] = {}
    for word in text.replace("max(", "").replace(", ", " ").split():
        name, _, rest = word.partition("(")
        if name.isalpha():
            found[name] = tuple(v for v in rest.replace(")", "").split(",") if v)
    return found


def _dense_modes(form: Format) -> set[int]:
    """The modes that have an element for every coordinate; inside blocks they have few."""
    outer = zip(form.levels[: form.order], form.modes[: form.order], strict=True)
    return {mode for level, mode in outer if isinstance(level, Dense)}


def _stored(random: Random, form: Format, shape: tuple[int, ...], count: int) -> Storage:
    """A few entries, at both ends and around 2^31, so that those of several operands meet; or so many that they are sorted by digits."""
    anywhere = count > 30
    columns = [[random.randrange(size) if anywhere else random.choice(_likely(size)) for _ in range(count)] for size in shape]
    coordinates = np.array(columns, np.int64).reshape(len(shape), count)
    values = np.array([random.randint(1, 9) for _ in range(count)], random.choice(("float64", "int32", "float32")))
    return pack(form, shape, coordinates, values, duplicates="sum" if form.is_unique else "keep")


def _likely(size: int) -> list[int]:
    places = (0, 1, 2, 2**31 - 2, 2**31 - 1, 2**31, 2**32, size // 2, size - 2, size - 1)
    return [place for place in places if 0 <= place < size]
