"""What shares memory: every operation in every format, with arrays that were asked for before it and after it.

The table is docs/copies-and-views.md: a tensor shares memory that anybody can see with the caller's arrays it was made over and with arrays that it
gave away, and with no other tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attack import aliases
from attack.aliases import FORMATS, OPERATIONS, VIEWS, apply, arrays_through, made_in, of_a_caller, worth, write
from conformance.kernels import interpret_small_kernels

import sparseloom as sl
from sparseloom.execution import Specialization


@pytest.fixture(autouse=True)
def interpreted() -> Iterator[None]:
    """Small kernels are interpreted: what they compute is tested elsewhere, and here there are thousands."""
    entry = Specialization._entry
    interpret_small_kernels()
    yield
    Specialization._entry = entry  # type: ignore[method-assign]


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind in "fc"))


def test_every_function_of_the_table_is_tried(rng: np.random.Generator) -> None:
    """A function that is new is tried too, or says here how it is called."""
    for name in aliases.TABLE:
        made = [OPERATIONS[f"sl.{name}"](made_in(form, rng)) for form in ("dense", "csr")]
        assert len(made) == 2


@pytest.mark.parametrize("name", OPERATIONS)
def test_nobody_changes_one_tensor_through_another(name: str, rng: np.random.Generator) -> None:
    for form in FORMATS:
        for complex_values in (False, True) if form in ("dense", "csr", "coo") else (False,):
            ways = [way for way, _ in arrays_through(made_in(form, rng, complex_values))]
            _opened_after(name, form, str(rng.choice(ways)), complex_values, rng)
            _opened_before(name, form, str(rng.choice(ways)), complex_values, rng)


def _taken(x: Any, way: str) -> Any:
    return dict(arrays_through(x))[way]()


def _opened_after(name: str, form: str, way: str, complex_values: bool, rng: np.random.Generator) -> None:
    x = made_in(form, rng, complex_values)
    before, made = worth(x), apply(OPERATIONS[name], x)
    values = [worth(each) for each in made]
    for k, each in enumerate(made):
        if each is not x and rng.random() < 0.5:  # first through the result
            ways = list(arrays_through(each)) if isinstance(each, sl.Tensor) else [("array", lambda each=each: [each])]
            write(ways[rng.integers(len(ways))][1](), indices=False)
            values[k] = worth(each)
            assert same(worth(x), before), f"{form}: the operand changed through the result of {name}"
    write(_taken(x, way))
    for each, value in zip(made, values, strict=True):
        assert each is x or same(worth(each), value), f"{form}: the result of {name} changed through {way} of its operand"


def _opened_before(name: str, form: str, way: str, complex_values: bool, rng: np.random.Generator) -> None:
    x = made_in(form, rng, complex_values)
    held = _taken(x, way)
    before, made = worth(x), apply(OPERATIONS[name], x)
    values = [worth(each) for each in made]
    for each in made:
        if each is not x and not isinstance(each, np.ndarray):
            write(_taken(each, "arrays"), indices=False)
            assert same(worth(x), before), f"{form}: the operand changed through the result of {name} after {way}"
    values = [worth(each) for each in made]
    write(held)
    for each, value in zip(made, values, strict=True):
        assert each is x or same(worth(each), value), f"{form}: the result of {name} changed through {way}, which was called before"


@pytest.mark.parametrize("name", OPERATIONS)
def test_results_share_nothing_with_a_callers_arrays(name: str, rng: np.random.Generator) -> None:
    for form in FORMATS:
        x, arrays = of_a_caller(form, rng)
        made = apply(OPERATIONS[name], x)
        values = [worth(each) for each in made]
        write(arrays, indices=name not in VIEWS)
        for each, value in zip(made, values, strict=True):
            if each is x or (name in VIEWS and isinstance(each, sl.Tensor)):
                assert not same(worth(each), value), f"{form}: {name} is a view of a caller's arrays"
            else:
                assert same(worth(each), value), f"{form}: the result of {name} changed with the caller's arrays"
