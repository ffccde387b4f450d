"""Laws that hold for random statements."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from notation.random_statements import RandomStatements

from sparseloom.core.dtypes import DType
from sparseloom.core.errors import DTypeError, NotationError
from sparseloom.core.trees import walk
from sparseloom.formats.named import csf, dense
from sparseloom.notation.dtyping import dtype_of, fill_of
from sparseloom.notation.interpret import Operand, evaluate
from sparseloom.notation.nodes import Assign, IndexVar, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse

DTYPES: list[DType] = [np.dtype(name) for name in "? i1 i4 u2 f4 f8 c16".split()]


def typed(assign: Assign, random: Random, fills: tuple[int, ...]) -> tuple[Assign, DType] | None:
    """The statement with random dtypes and all of its operands sparse, or ``None`` if its operators do not fit them."""
    declarations = {}
    for tensor in tensors_of(assign.rhs):
        format = csf(tensor.order) if tensor.order else dense(0)
        declarations[tensor.name] = TensorVar(tensor.name, tensor.order, format, random.choice(DTYPES), fill=random.choice(fills))
    try:
        closed = close_over(declare(assign, declarations))
        return closed, dtype_of(closed.rhs)
    except DTypeError:
        return None


def operands_of(assign: Assign, size: int, density: float, rng: np.random.Generator) -> dict[str, Operand]:
    """Random operands of small integers, so that stored values often equal the fill."""
    made = {}
    for tensor in tensors_of(assign.rhs):
        shape = (size,) * tensor.order
        present = rng.random(shape) < density if tensor.order else np.ones(shape, bool)
        made[tensor.name] = Operand(rng.integers(0, 3, shape).astype(tensor.dtype), np.asarray(present), tensor.fill)
    return made


def sizes_of(assign: Assign, size: int) -> dict[str, int]:
    return {found.name: size for found in walk(assign) if isinstance(found, IndexVar)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")  # random casts lose information
@pytest.mark.parametrize("batch", range(4))
def test_the_oracle_agrees_with_the_dtype_and_the_fill(batch: int, seed: int, rng: np.random.Generator) -> None:
    statements, random = RandomStatements(seed + batch), Random(seed + batch)
    compared = 0
    for _ in range(150):
        found = typed(statements.assign(depth=3), random, (0, 0, 1))
        if found is None:
            continue
        assign, dtype = found
        sizes, fill = sizes_of(assign, 2), fill_of(assign.rhs)
        result = evaluate(assign, operands_of(assign, 2, 0.5, rng), sizes, dtype)
        assert result.values.dtype == dtype
        absent = result.values[~result.present]
        np.testing.assert_array_equal(absent, np.full_like(absent, result.fill), show(assign))
        if fill is not None and assign.op is None:
            nothing = evaluate(assign, operands_of(assign, 2, 0.0, rng), sizes, dtype)
            np.testing.assert_array_equal(nothing.values, np.full_like(nothing.values, fill), show(assign))
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("batch", range(4))
def test_any_text_is_read_or_refused(batch: int, seed: int) -> None:
    statements, random = RandomStatements(seed + batch), Random(seed + batch)
    alphabet = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        "=",
        "+=",
        "+",
        "-",
        "*",
        "/",
        "**",
        "<",
        "==",
        " ",
        "i",
        "x",
        "2",
        "1e",
        ".",
        "max",
        "$",
        "é",
    ]
    refused = 0
    for _ in range(250):
        text = show(statements.assign(depth=3))
        at = random.randrange(len(text) + 1)
        mutated = text[:at] + random.choice(alphabet) + text[at + random.randint(0, 2) :]
        try:
            parse(mutated)
        except NotationError as error:
            refused += 1
            assert str(error).count("\n") >= 1
    assert refused > 50
