"""The page docs/lists.md: semirings, formats, levels, functions of index notation and variables, as the code has them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import sparseloom as sl
from sparseloom.core.algebra import OPERATORS, SEMIRINGS, operator
from sparseloom.core.settings import VARIABLES
from sparseloom.formats.level import Level
from sparseloom.formats.levels import LEVELS

HEAD = """# Lists

What has a name, in one place. This page is made from the code. [Functions on whole tensors](functions.md), [the steps of a
schedule](primitives/index.md) and [errors](errors.md) have pages of their own.

```python
>>> import numpy as np, sparseloom as sl
>>> roads = sl.from_coo([[0, 1], [1, 2]], [5.0, 2.0], shape=(3, 3))
>>> sl.evaluate("d(j) = roads(i,j) * start(i)", roads=roads, start=np.array([0.0, np.inf, np.inf]), semiring="min_plus").to_numpy()
array([inf,  5., inf])
>>> str(roads.to("ds:1,0").format)
'csc'
```
"""
MEANT_FOR = {
    "plus_times": "arithmetic, where none is named",
    "min_plus": "shortest paths",
    "max_plus": "longest paths, schedules, alignments",
    "min_times": "least likely paths, on positive numbers",
    "max_times": "most likely paths (Viterbi), on positive numbers",
    "max_min": "widest paths: the bottleneck is as wide as can be",
    "min_max": "minimax paths: the worst step is as good as can be",
    "or_and": "reachability, breadth-first search",
    "xor_and": "arithmetic modulo 2",
}
FORMATS = (sl.dense(2), sl.csr, sl.csc, sl.dcsr, sl.dcsc, sl.coo(), sl.coo(3), sl.csf(3), sl.bcsr((2, 3)), sl.ell, sl.dia)


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterable[str]:
    float64 = np.dtype(float)
    rings = ((f"`{name}`", ring.add, ring.multiply, ring.zero_of(float64), MEANT_FOR[name]) for name, ring in SEMIRINGS.items())
    yield _table("Semirings", ("name", "adds by", "multiplies by", "zero of float64", "used for"), rings)
    formats = ((f"`{format}`", f"`{format.text}`", " ".join(f"`{name}`" for name in _arrays(format))) for format in FORMATS)
    yield _table("Formats", ("name", "text", "arrays"), formats)
    levels = ((f"`{letter}`", type(level).__name__.lower(), _first(level)) for letter, level in LEVELS.items())
    yield _table("Levels", ("letter", "level", ""), levels)
    operators = sorted(found.name for found in OPERATORS.values() if not found.name.startswith("as_"))
    rows = ((f"`{name}`", operator(name).arity, f"`{operator(name).symbol}`" if operator(name).symbol else "") for name in operators)
    yield _table("Functions in index notation", ("name", "arguments", "sign"), rows)
    yield _table("Environment variables", ("variable", ""), ((f"`{name}`", told) for name, told in VARIABLES.items()))


def _arrays(format: sl.Format) -> tuple[str, ...]:
    return tuple(sl.zeros((2, 3, 2)[: format.order], format=format).arrays)


def _first(level: Level) -> str:
    return (type(level).__doc__ or "").split("\n")[0] + ("" if level.unique else " They may repeat.")


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join([f"## {title}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines, ""])
