"""docs/functions.md is what the table of functions makes it. ``SPARSELOOM_GOLDEN=write`` writes it again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

import sparseloom as sl
from sparseloom.surface import TABLE
from sparseloom.tensor.table import Function

PAGE = Path(__file__).resolve().parents[2] / "docs" / "functions.md"
HEAD = """# Functions on whole tensors

All of them take tensors of any format, arrays, SciPy's matrices and numbers, and broadcast as NumPy does. What is sparse stays
sparse where absent entries stay zero; a result that is something else almost everywhere (`cumsum`, `argsort`, `isclose`) is
dense, and refused where memory does not hold it. `sl.f(x)` is always there, and `np.f(x)` calls it. The methods are those that
NumPy's arrays have. The names of the array API (2025.12) are those of `x.__array_namespace__()`, which is `sl.array_api`; every
one is compared with array-api-strict.

```python
>>> import numpy as np, sparseloom as sl
>>> A = sl.eye(3)
>>> str(np.concatenate([A, 2 * A], axis=1).format), sl.kron(A, A).nnz, int(A.argmax(axis=1).sum())
('csr', 9, 3)
>>> xp = A.__array_namespace__()
>>> xp.sum(xp.flip(A, axis=0), axis=1).to_numpy()
array([1., 1., 1.])
```

Entries are set through a builder, which stores all of them at once:

```python
>>> B = A.builder()
>>> B[0, [1, 2]] = 5.0
>>> B[2, 2] += 1.0
>>> B.cost
'sorts 1 entries that were set into 5 that are stored'
>>> B.build().to_numpy()
array([[1., 5., 5.],
       [0., 1., 0.],
       [0., 0., 2.]])
```
"""


def page() -> str:
    families = list(dict.fromkeys(found.family for found in TABLE.values()))
    return "\n".join([HEAD, *(_section(family) for family in families)])


def _section(family: str) -> str:
    rows = [_row(found) for found in sorted(TABLE.values(), key=lambda found: found.name) if found.family == family]
    return "\n".join([f"## {family.capitalize()}", "", "| `sl.` | `np.` | method | array API | |", "|---|---|---|---|---|", *rows, ""])


def _row(found: Function) -> str:
    numpy = found.numpy or ((found.name,) if isinstance(getattr(np, found.name, None), np.ufunc) else ())
    standard = found.standard or ((found.name,) if found.name in sl.array_api.FUNCTIONS else ())
    cells = (found.name,), numpy, found.methods, standard
    return f"| {' | '.join(' '.join(f'`{name}`' for name in names) for names in cells)} | {found.summary.replace('|', chr(92) + '|')} |"


def test_the_page_is_that_of_the_table() -> None:
    text = page()
    if os.environ.get("SPARSELOOM_GOLDEN") == "write":
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "docs/functions.md is old; write it again with SPARSELOOM_GOLDEN=write"


def test_every_function_is_offered_everywhere_it_says() -> None:
    tensor = sl.eye(2)
    for found in TABLE.values():
        assert getattr(sl, found.name) is found.call
        assert found.summary.endswith("."), found.name
        assert all(hasattr(tensor, name) for name in found.methods), found.name
        assert all(callable(getattr(np, name, None) or getattr(np.linalg, name, None)) for name in found.numpy), found.name
        assert all(hasattr(sl.array_api, name) for name in found.standard), found.name
