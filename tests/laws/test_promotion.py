"""Dtypes promote as written: random expressions of mixed dtypes against plain NumPy, which evaluates the same text.

NumPy's own ``eval`` is the oracle, so nothing of ours decides what is right. Operands are dense.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.compiler import load_together
from sparseloom.core.dtypes import VALUE_DTYPES
from sparseloom.core.errors import DTypeError
from sparseloom.core.trees import walk
from sparseloom.notation.dtyping import dtype_of
from sparseloom.notation.nodes import Apply, Assign
from sparseloom.notation.terms import close_over, tensors_of
from sparseloom.notation.text import declare, parse
from sparseloom.plan.problem import declared
from sparseloom.programs.execution import Specialization, specialize

CHUNKS, EACH, LENGTH = 8, 30, 7
LITERALS = ("0", "1", "2", "3", "-2", "100", "300", "1099511627776", "0.5", "2.0", "-1.5", "True", "False", "2j")
CASTS_TO_NOTHING = (TypeError, OverflowError, ZeroDivisionError)  # how NumPy and Python refuse


@dataclass(frozen=True)
class Case:
    """An expression in which ``a``, ``b``, ... are vectors; Python's syntax and ours are the same."""

    text: str
    operands: dict[str, np.ndarray]

    @property
    def statement(self) -> str:
        return "R(i) = " + re.sub(r"\b[a-e]\b", r"\g<0>(i)", self.text)

    def by_numpy(self) -> Any:
        functions = {"minimum": np.minimum, "maximum": np.maximum, "where": np.where, "abs": np.absolute}
        with np.errstate(all="ignore"):
            return eval(self.text, {}, {**functions, **self.operands})

    def __str__(self) -> str:
        return f"{self.text}\n  " + "\n  ".join(f"{name} = {values!r}" for name, values in self.operands.items())


class Writer:
    """Draws one expression as text, with parentheses where they matter and where they do not."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.used: set[str] = set()

    def expression(self, depth: int) -> str:
        draw = self.random.random()
        if depth == 0 or draw < 0.08:
            return self.leaf()
        if draw < 0.55:
            return "(" + self.chain(("+", "-") if draw < 0.35 else ("*", "*", "/", "//", "%"), depth) + ")"
        if draw < 0.68:
            return f"({self.expression(depth - 1)} {self.random.choice(('<', '<=', '>', '>=', '==', '!='))} {self.expression(depth - 1)})"
        if draw < 0.8:
            return f"{self.random.choice(('minimum', 'maximum'))}({self.vector()}, {self.expression(depth - 1)})"
        if draw < 0.88:
            # A number alone would be wrapped to the other's dtype by np.where, which no operator does.
            return f"where({self.expression(depth - 1)}, {self.vector()} + {self.expression(depth - 1)}, {self.vector()})"
        return f"(-{self.expression(depth - 1)})" if draw < 0.94 else f"abs({self.vector()})"

    def chain(self, symbols: tuple[str, ...], depth: int) -> str:
        """Up to five terms with no parentheses between them: they bind from the left."""
        parts = [self.expression(self.random.randint(0, depth - 1)) for _ in range(self.random.choice((2, 3, 3, 4, 5)))]
        chosen = [self.random.choice(symbols[:1] if self.random.random() < 0.7 else symbols) for _ in parts[1:]]
        return parts[0] + "".join(f" {symbol} {part}" for symbol, part in zip(chosen, parts[1:], strict=True))

    def leaf(self) -> str:
        return self.random.choice(LITERALS) if self.random.random() < 0.25 else self.vector()

    def vector(self) -> str:
        name = self.random.choice("abcde")
        self.used.add(name)
        return name


def draw(seed: str) -> Case:
    """One case; small dtypes and values near their ends are frequent."""
    random = Random(seed)
    writer = Writer(random)
    text = writer.expression(random.choice((1, 2, 2, 3)))
    if not writer.used:
        text = f"({text} + {writer.vector()})"
    rng = np.random.default_rng(random.getrandbits(32))
    return Case(text, {name: values(rng, random.choice(VALUE_DTYPES)) for name in sorted(writer.used)})


def values(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    small = rng.integers(0 if dtype.kind in "bu" else -3, 4, LENGTH)
    if dtype.kind not in "iu":
        return (small + 1j * rng.integers(-2, 3, LENGTH)).astype(dtype) if dtype.kind == "c" else small.astype(dtype)
    ends = np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, np.iinfo(dtype).max // 2 + 1], dtype)
    return np.where(rng.random(LENGTH) < 0.4, rng.choice(ends, LENGTH), small.astype(dtype))


def closed(case: Case) -> Assign:
    """The statement as our text means it."""
    assign = parse(case.statement).assign
    storages = {name: sl.asarray(array).storage for name, array in case.operands.items()}
    return close_over(declare(assign, {t.name: declared(t.name, storages[t.name]) for t in tensors_of(assign.rhs)}))


def orders_complex(case: Case) -> bool:
    """Whether complex numbers may be compared by size: NumPy does that, we refuse."""
    is_complex = "2j" in case.text or any(array.dtype.kind == "c" for array in case.operands.values())
    return is_complex and any(symbol in case.text for symbol in ("<", ">", "minimum", "maximum"))


def prepare(case: Case) -> tuple[Specialization, dict[str, Any], Any] | None:
    """What is to be compared; None where NumPy refuses, and then we do too unless a number was too wide for NumPy."""
    try:
        expected = np.broadcast_to(case.by_numpy(), (LENGTH,))
    except CASTS_TO_NOTHING as fault:
        if isinstance(fault, TypeError):
            with pytest.raises(DTypeError):
                dtype_of(closed(case).rhs)
        return None
    if expected.dtype not in VALUE_DTYPES:
        return None
    try:
        assign = closed(case)
        storages = {name: sl.asarray(array).storage for name, array in case.operands.items()}
        return specialize(assign, storages, None, None, {"i": LENGTH}), storages, expected
    except DTypeError:
        assert orders_complex(case), str(case)
        return None


def rounds(assign: Assign) -> bool:
    """Whether something is computed in floating point, which C may round once where NumPy rounds twice."""
    return any(dtype_of(n).kind in "fc" for n in walk(assign.rhs) if isinstance(n, Apply))


def check(case: Case, got: np.ndarray, expected: np.ndarray, target: str) -> None:
    assert got.dtype == expected.dtype, f"{target} gives {got.dtype}, NumPy {expected.dtype}: {case}"
    same = (got == expected) | ((got != got) & (expected != expected))
    if any(array.dtype.kind == "c" for array in case.operands.values()) or "2j" in case.text:
        # NumPy rounds complex products of long arrays and of single numbers differently.
        same |= np.isclose(got, expected, rtol=1e-3, atol=1e-3) | ~np.isfinite(expected)
    assert same.all(), f"{target} gives\n{got!r}\nNumPy\n{expected!r}\n{case}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_text_promotes_as_numpy_evaluates_it(chunk: int, seed: int) -> None:
    cases = [draw(f"{seed}/{chunk}/{number}") for number in range(EACH)]
    jobs = [(case, job) for case in cases if (job := prepare(case))]
    assert len(jobs) > EACH // 2
    load_together([job[0].stages for _, job in jobs])
    for case, (prepared, storages, expected) in jobs:
        check(case, prepared.run(storages, "interpret").values, expected, "the interpreter")
        compiled = prepared.run(storages).values
        assert compiled.dtype == expected.dtype
        if not rounds(prepared.stages.assign):
            check(case, compiled, expected, "C")


def test_index_variables_in_python_mean_the_same_as_text(seed: int) -> None:
    (i,) = sl.indices("i")
    for number in range(200):
        case = draw(f"{seed}/python/{number}")
        tensors = {name: sl.asarray(array, name=name)[i] for name, array in case.operands.items()}
        functions = {"minimum": sl.minimum, "maximum": sl.maximum, "where": sl.where, "abs": sl.absolute}
        try:
            written = eval(case.text, {}, {**functions, **tensors})
            said = closed(case)
            expected = dtype_of(said.rhs)
        except (DTypeError, ZeroDivisionError, OverflowError):
            continue
        if not isinstance(written, int | float | complex):
            assert dtype_of(close_over(Assign(said.lhs, written.node)).rhs) == expected, str(case)


def test_operators_on_tensors_mean_the_same_as_numpy(seed: int) -> None:
    for number in range(15):
        case = draw(f"{seed}/operators/{number}")
        tensors = {name: sl.asarray(array) for name, array in case.operands.items()}
        functions = {"minimum": sl.minimum, "maximum": sl.maximum, "where": sl.where, "abs": sl.absolute}
        try:
            expected = np.asarray(case.by_numpy())
            got = eval(case.text, {}, {**functions, **tensors})
        except (*CASTS_TO_NOTHING, DTypeError):
            continue
        assert got.dtype == expected.dtype, str(case)
        if not any(kind in "fc" for kind in (expected.dtype.kind, *(a.dtype.kind for a in case.operands.values()))):
            check(case, got.to_numpy(), expected, "the operators")


@pytest.mark.parametrize(
    ("text", "operands", "expected"),
    [
        ("(a + b) + 1", {"a": np.array([True]), "b": np.array([True])}, [2]),
        ("a + b + c", {"a": np.array([100], "i1"), "b": np.array([100], "i1"), "c": np.array([0])}, [-56]),
        ("a + (b + c)", {"a": np.array([100], "i1"), "b": np.array([100], "i1"), "c": np.array([0])}, [200]),
        ("a == b", {"a": np.array([2**63 - 1]), "b": np.array([2**63], "u8")}, [False]),
        ("a > b", {"a": np.array([2**63], "u8"), "b": np.array([2**63 - 1])}, [True]),
        ("a < 9223372036854775808", {"a": np.array([2**63 - 1])}, [True]),
        ("a * 0.5 * b", {"a": np.array([3], "i1"), "b": np.array([0.1], "f4")}, [1.5 * np.float32(0.1).astype("f8")]),
        ("True + True + a", {"a": np.array([1], "i1")}, [3]),
        ("2 ** -1 * a", {"a": np.array([3])}, [1.5]),
    ],
)
@pytest.mark.parametrize("target", ["c", "interpret"])
def test_known_cases(text: str, operands: dict[str, np.ndarray], expected: list[Any], target: str) -> None:
    case = Case(text, operands)
    got = sl.evaluate(case.statement, **operands, target=target).to_numpy()
    check(case, got, np.asarray(case.by_numpy()), target)
    assert got.tolist() == expected


@pytest.mark.parametrize("wanted", [None, "int64", "float64"])
def test_einsum_converts_its_operands_first(wanted: str | None) -> None:
    narrow, wide = np.array([100], np.int8), np.array([1])
    got = sl.einsum("i,i,i->i", narrow, narrow, wide, dtype=wanted).to_numpy()
    expected = np.einsum("i,i,i->i", narrow, narrow, wide, dtype=wanted)
    assert (got.dtype, got.tolist()) == (expected.dtype, expected.tolist())


def test_a_given_dtype_makes_room_for_partial_results() -> None:
    narrow, wide = np.array([100], np.int8), np.array([0])
    assert sl.evaluate("y(i) = a(i) + a(i) + z(i)", a=narrow, z=wide, dtype="int64").to_numpy().tolist() == [200]
    (i,) = sl.indices("i")
    y = sl.zeros(1, dtype=int)
    y[i] = sl.asarray(narrow)[i] + sl.asarray(narrow)[i] + sl.asarray(wide)[i]
    assert y.to_numpy().tolist() == [200]


@pytest.mark.parametrize("text", ["a(i) + b(i)", "a(i) + b(i) + c(i)"])
@pytest.mark.parametrize("target", ["c", "interpret"])
def test_what_is_computed_ahead_has_the_dtype_it_had(text: str, target: str) -> None:
    operands = {"a": np.array([100, 1], np.int8), "b": np.array([100, 2], np.int8), "c": np.array([0, 5])}
    kernel = sl.program("y(i) = a(i) + b(i) + c(i)", schedule=f"precompute({text}, i, iw, ws)", target=target)
    np.testing.assert_array_equal(kernel(**operands).to_numpy(), [-56, 8])


def test_an_expression_to_compute_ahead_whose_dtypes_do_not_fit_is_refused() -> None:
    kernel = sl.program("y(i) = a(i) + b(i) + c(i)", schedule="precompute(a(i) + b(i), i, iw, ws)")
    truths = np.array([True, False])
    np.testing.assert_array_equal(kernel(truths, truths, np.array([1, 2])).to_numpy(), [2, 2])


@pytest.mark.parametrize("text", ["2 ** 70", "9223372036854775808 * 4", "(-9223372036854775808 - 1)", "2 ** 9999999999 * x(i)"])
def test_numbers_beyond_64_bits_are_refused(text: str) -> None:
    with pytest.raises(DTypeError, match="does not fit in 64 bits"):
        sl.evaluate(f"y(i) = x(i) + {text}", x=np.ones(2))
