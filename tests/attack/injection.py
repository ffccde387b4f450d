"""Hostile words at every door that takes text: statements, names, numbers, formats, schedules, sizes, dtypes, semirings, files.

Each is refused with a SparseloomError, or means what it says: results are compared with NumPy, or C with the interpreter where only our
grammar says what is meant. Nothing of a name reaches the generated C but letters, digits and underscores.
"""

from __future__ import annotations

import contextlib
import keyword
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sparseloom as sl
from sparseloom.core.errors import SparseloomError

NAME = "injection"
COUNT = 500
SHORT = 40

Rng = np.random.Generator
X = np.array([1.0, -2.0, 3.0])

# What C, Python, the shell, format strings or our own grammar might take for something else.
FRAGMENTS = (
    "*/", "/*", "//", "\\", "\n", "\r", "\t", "\0", "\x1b[31m", "\x7f", "\u2028", "\ufeff", "\u202e", "\ud800", '"', "'", "`", ";",
    "#", "#include <stdio.h>", "\n#define double int\n", "}; int main(void) { abort(); } //", "*/ system(\"true\"); /*",
    "asm(\"int3\")", "$(true)", "`true`", "| true", "&& true", "%s%n%n", "{0.__class__}", "{x!r}", "{}", "{{", "%",
    "__import__('os')", "exec('1')", "lambda: 0", "??/", "<%", "0x10", "1_000", "1e999", "-0.0", "1e-400", "٣", "²", "Ⅷ", "１",
    "nan", "inf", "NaN", "1" * 30, "9" * 5000, "0." + "1" * 400, "1j", "1J", "0b1", "(", ")", "[", "]", "{", "}", ",", ",,", "..",
    "...", "->", "=", "==", "+=", "<=", "**", "***", "@", "~", "!", "^", "&", "|", "?", ":", ".", "A(i)", "x(i)", "i", "exp",
    "sum(i, x(i))", "sum", "True", "None", "Größe", "π", "ß", "ﬁ", "K", "é", "e\u0301", "变量", "😀", "a" * 1500, " " * 3000,
)  # fmt: skip
IDENTIFIERS = (
    "self", "text", "target", "sizes", "semiring", "workspace", "out", "format", "dtype", "named", "operands", "schedule",
    "i_block", "i_within", "int", "double", "restrict", "main", "printf", "malloc", "NULL", "errno", "INFINITY", "I", "complex",
    "entry", "kernel", "args", "f", "v0", "a0", "A_values", "x_size", "i_size", "pA1", "A1_pos", "w", "t", "T0", "R1", "_", "__",
    "__file__", "_t", "size_t", "int32_t", "omp_get_thread_num", "exp", "sum", "where", "min", "inf", "nan", "True", "False",
    "minimum_int64", "lower_bound_int32", "CPUThread", "split", "Größe", "π", "ß", "变量", "lambda", "class", "None", "__builtins__",
    "np", "arrays", "tracker", "left", "right", "c0", "u03c0", "vu03c0", *keyword.kwlist,
)  # fmt: skip


def trial(rng: Rng) -> str:
    """One hostile word at one door."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _DOORS[rng.integers(len(_DOORS))](rng)
        except SparseloomError as refusal:
            assert len(str(refusal)) < 20_000, f"a refusal of {len(str(refusal))} characters"
            return "refused"


def _pick(rng: Rng, among: Any) -> Any:
    return among[rng.integers(len(among))]


def _distinct(rng: Rng, count: int) -> list[str]:
    """Some identifiers, each another."""
    chosen: list[str] = rng.choice(np.array(sorted(set(IDENTIFIERS))), count, replace=False).tolist()
    return chosen


def _word(rng: Rng) -> str:
    """A fragment, or some of them in one."""
    return "".join(_pick(rng, FRAGMENTS) for _ in range(rng.integers(1, 4)))


def _expect(got: Any, expected: Any) -> str:
    values = got.to_numpy() if isinstance(got, sl.Tensor) else np.asarray(got)
    assert np.array_equal(values, expected, equal_nan=values.dtype.kind in "fc"), f"{values!r}, not {expected!r}"
    return "right"


def _inspect(source: str, name: str) -> None:
    """Names are spelled in letters, digits and underscores, whatever they are."""
    assert source.isascii(), "characters of a name stand in the C as they are"
    assert all(letter.isprintable() or letter == "\n" for letter in source), "control characters stand in the C"
    if len(name) > 2 and not re.fullmatch(r"\w+", name):
        assert name not in source, "a name stands in the C as it is"


def _named_operand(rng: Rng) -> str:
    """Any identifier may name an operand, however it is passed."""
    name = _pick(rng, IDENTIFIERS)
    kernel = sl.program(f"y_(i) = 2 * {name}[i] + {name}[i]")
    _inspect(kernel.source, name)
    calls: list[Callable[[], Any]] = [
        lambda: kernel(X), lambda: kernel({name: X}), lambda: kernel.bind({name: X})(), lambda: kernel.assemble({name: X}),
        lambda: sl.evaluate(f"y_(i) = 3 * {name}[i]", X), lambda: sl.evaluate(f"y_(i) = 3 * {name}[i]", {name: X}, target="interpret"),
        lambda: kernel(**{name: X}), lambda: sl.evaluate(f"y_(i) = 3 * {name}[i]", **{name: X}),
    ]  # fmt: skip
    return _expect(_pick(rng, calls)(), 3 * X)


def _named_all(rng: Rng) -> str:
    """Identifiers for everything in a product with a sparse matrix."""
    tensor, result, row, column = _distinct(rng, 4)
    matrix = np.diag([1.0, 0.0, 2.0]) + np.eye(3, k=1)
    statement = f"{result}[{row}] = {tensor}[{row},{column}] * x_({column})"
    kernel = sl.program(statement, {tensor: _pick(rng, ("csr", "csc", "coo", "dense(2)"))})
    _inspect(kernel.source, tensor)
    kernel.explain()
    return _expect(kernel({tensor: matrix, "x_": X}), matrix @ X)


def _spliced(rng: Rng, statement: str) -> str:
    """A statement with hostile words put in, or in place of some of its letters."""
    for _ in range(rng.integers(1, 3)):
        at = int(rng.integers(len(statement) + 1))
        statement = statement[:at] + _word(rng) + statement[at + int(rng.integers(3)) :]
    return statement


def _statement(rng: Rng) -> str:
    """What is read all the same means the same to both targets."""
    plain = ("y(i) = A(i,j) * x(j)", "y(i) = x(i) + 2", "s = sum(i, x(i))", "y(i) = where(x(i) > 0, x(i), -1)")
    statement = _spliced(rng, _pick(rng, plain))
    given = {"A": np.eye(3), "x": X}
    parsed = sl.program(statement)
    used = {name: given[name] for name in parsed.operand_names if name in given}
    _inspect(parsed.source, statement)
    results = [sl.evaluate(statement, used, target=target).to_numpy() for target in ("c", "interpret")]
    return _expect(results[0], results[1])


NUMBERS: dict[str, complex] = {
    "0": 0, "7": 7, "1.5": 1.5, "1e3": 1000, "1e308": 1e308, "1e309": np.inf, ".5": 0.5, "5.": 5, "1e-400": 0, "2j": 2j, "007": 7,
    "1e+5": 1e5, "1e5j": 1e5j, "nan": np.nan, "-inf": -np.inf, "+-+-2": 2, "--1": 1, "9" * 19: 1e19, "0." + "3" * 400: 1 / 3,
    "1" + "0" * 400 + ".0": np.inf,
}  # fmt: skip
NO_NUMBERS = ("0x10", "1_0", "²", "1e", "1..2", "9" * 20, "9" * 5000, "1e5e5", "1.2.3", "0b1", "1e9_9", "٣", "１", "1٣")


def _number(rng: Rng) -> str:
    """A number that is read has the value that Python gives it; what only looks like one is refused."""
    if rng.random() < 0.4:
        word = _pick(rng, NO_NUMBERS)
        sl.evaluate(f"y(i) = 0 * x(i) + ({word})", x=np.zeros(3))
        raise AssertionError(f"{word[:30]!r} was taken for a number")
    word, meant = _pick(rng, list(NUMBERS.items()))
    return _expect(sl.evaluate(f"y(i) = 0 * x(i) + ({word})", x=np.zeros(3)), np.full(3, meant))


def _format(rng: Rng) -> str:
    word = _word(rng) if rng.random() < 0.5 else "".join(rng.choice(list("dsuqp~+!:,/0123456789 ()bcsrel"), rng.integers(1, 12)))
    matrix = np.diag([1.0, 0.0, 2.0])
    door = int(rng.integers(3))
    if door == 0:
        return _expect(sl.asarray(matrix).to(word), matrix)
    if door == 1:
        return _expect(sl.program("y(i) = A(i,j) * x(j)", {"A": word})(matrix, X), matrix @ X)
    return _expect(sl.evaluate("C(i,j) = A(i,j)", A=matrix, format=word), matrix)


def _schedule(rng: Rng) -> str:
    steps = (
        "split(i,i0,i1,4)", "reorder(j,i)", "parallelize(i,CPUThread,NoRaces)", "precompute(A(i,j)*x(j),j,jw,w)", "unroll(j,2)",
        "bound(i,ib,3,MaxExact)",
    )  # fmt: skip
    text = _spliced(rng, _pick(rng, steps))
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": _pick(rng, ("csr", "dense(2)"))}, text)
    _inspect(kernel.source, text)
    return _expect(kernel(np.eye(3), X), X)


def _workspace_name(rng: Rng) -> str:
    """Names in a schedule are the user's own as well."""
    names = _distinct(rng, 2)
    text = f"split(i,{names[0]},{names[1]},2)" if rng.random() < 0.5 else f"precompute(A(i,j)*x(j),j,{names[0]},{names[1]})"
    kernel = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}, text)
    _inspect(kernel.source, text)
    return _expect(kernel(np.eye(3), X), X)


def _options(rng: Rng) -> str:
    """Hostile values for every option of a call."""
    strange = (
        _word(rng), 3, -1, 2.5, None, [], {}, (), b"bytes", object(), np.eye(2), float("nan"), 10**30, X, sl.IndexVar("i"),
        {"i": _word(rng)}, True,
    )  # fmt: skip
    option = _pick(rng, ("format", "dtype", "semiring", "sizes", "target", "workspace", "out"))
    value: Any = _pick(rng, strange)
    if option == "sizes" and rng.random() < 0.6:
        value = {_pick(rng, ("i", "k", _word(rng), 3, None)): _pick(rng, (3, 2**70, -1, _word(rng), 2.5, None, [3], np.int64(3), True))}
    got = sl.evaluate("y(i) = x(i)", x=X, **{option: value})
    return _expect(got, X.astype(got.dtype))


def _dtype(rng: Rng) -> str:
    words = (
        "f8", "float64", "i4,i4", "O", "S3", "M8", "f2", "f16", "V8", ">f8", "(2,)f8", "f8;", "double", "int", "?", "c8", "()",
        "(", "i", "{", "\0", "f8\n",
    )  # fmt: skip
    word: Any = _word(rng) if rng.random() < 0.3 else _pick(rng, words)
    whole = np.array([1, 0, 2])
    got = sl.asarray(whole, dtype=word) if rng.random() < 0.5 else sl.evaluate("y(i) = x(i)", x=whole, dtype=word)
    return _expect(got, whole.astype(np.dtype(word)))


def _semiring(rng: Rng) -> str:
    word = _pick(rng, (_word(rng), "min_plus", "min_plus\n", "MIN_PLUS", "plus_times ", "or_and"))
    if rng.random() < 0.4:
        word = sl.Semiring(_pick(rng, ("min", "max", "add", _word(rng))), _pick(rng, ("plus", "times", _word(rng))))
    sl.evaluate("y(i) = A(i,j) * x(j)", A=np.eye(3), x=X, semiring=word)
    return "right"


def _einsum(rng: Rng) -> str:
    text = _spliced(rng, _pick(rng, ("ij,j->i", "i,i", "...j,j->...", "ij->ji")))
    operands = [np.eye(3), X] if "," in text else [np.eye(3)]
    if rng.random() < 0.3:
        labels = [_pick(rng, (0, 1, -1, 51, 52, 2.5, "i", None, Ellipsis, True)) for _ in range(2)]
        return _expect(sl.einsum(np.eye(3), labels), np.einsum(np.eye(3), labels))
    got = sl.einsum(text, *operands)
    return _expect(got, np.einsum(text, *operands))


def _tensor_name(rng: Rng) -> str:
    """Tensors carry names of their own into expressions, schedules and C."""
    name: Any = _pick(rng, IDENTIFIERS) if rng.random() < 0.5 else _pick(rng, (_word(rng), "", 3, b"x", None, ("a",), "A(i)", "y"))
    (i,) = sl.indices("i")
    x, y = sl.asarray(X, name=name), sl.zeros(3, name=_pick(rng, ("y", name)))
    repr(x)
    y[i] = 2 * x[i] + x[i]
    kernel = y.schedule().compile()
    if isinstance(name, str):
        _inspect(kernel.source, name)
    repr(y)
    return _expect(y, 3 * X)


def _variable(rng: Rng) -> str:
    word = _pick(rng, IDENTIFIERS) if rng.random() < 0.5 else _word(rng)
    found = sl.indices(word) if rng.random() < 0.5 else (sl.IndexVar(word),)
    x, y = sl.asarray(X, name="x"), sl.zeros(3, name="y")
    y[found[0]] = 2 * x[found[0]]
    return _expect(y, 2 * X)


def _file(rng: Rng) -> str:
    """A file name is a file name: nothing is run, nothing is written elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{_word(rng).replace('/', '_')}{_pick(rng, ('.mtx', '.tns', '.npz', '.npy', '.mtx.gz', ''))}"
        with contextlib.suppress(OSError):  # too long a name, or one that this file system has not
            sl.write(path, np.diag([1.0, 0.0, 2.0]))
            assert [str(found) for found in Path(folder).iterdir()] == [path], "something else was written"
            return _expect(sl.read(path), np.diag([1.0, 0.0, 2.0]))
        with contextlib.suppress(OSError):
            sl.read(path)
        return "refused"


_DOORS: tuple[Callable[[Rng], str], ...] = (
    _named_operand, _named_all, _statement, _statement, _number, _format, _schedule, _workspace_name, _options, _options, _dtype, _semiring,
    _einsum, _tensor_name, _variable, _file,
)  # fmt: skip
