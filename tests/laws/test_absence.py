"""When a value is absent: random reductions, products, quotients and extremes against plain NumPy with a mask of presence."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from fuzz.masked import AXES, Drawing, Masked, Term, same

import sparseloom as sl
from sparseloom.formats.pack import pack, pattern
from sparseloom.formats.storage import Storage
from sparseloom.formats.text import as_format

CHUNKS = 6
FORMATS = {1: ("s", "u", "s~", "b"), 2: ("ds", "ss", "uq", "ss:1,0", "ds:1,0", "ell", "db", "bs")}
RESULTS = {0: ("",), 1: ("d", "s"), 2: ("dd", "ds", "ss"), 3: ("ddd", "sss"), 4: ("dddd", "ssss")}


def draw(random: Random) -> tuple[Drawing, Term]:
    """An expression over small extents, sometimes over nothing."""
    sizes = {name: random.choice((0, 1, 2, 2, 3, 3)) for name in AXES}
    drawing = Drawing(random, sizes)
    term = drawing.term(random.choice((2, 3, 3)))
    while not drawing.tensors:
        term = drawing.term(2)
    return drawing, term


def operand(random: Random, indices: str, values: np.ndarray, stored: np.ndarray, fill: float | None) -> sl.Tensor:
    if fill is None:
        return sl.asarray(np.array(values))
    form = as_format(random.choice(FORMATS[len(indices)]), len(indices))
    return sl.Tensor(pack(form, values.shape, np.argwhere(stored).T, values[stored], fill))


def wanted(made: Masked, indices: list[str], sizes: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    shape = [sizes[name] if name in indices else 1 for name in AXES]
    return tuple(  # type: ignore[return-value]
        np.broadcast_to(array, shape).reshape([sizes[name] for name in indices]) for array in (made.values, made.present)
    )


def check(random: Random) -> None:
    drawing, term = draw(random)
    indices = sorted(term.free, key=AXES.index)
    text = f"R({','.join(indices)}) = {term.text}" if indices else f"R = {term.text}"
    read = {name: operand(random, *tensor) for name, tensor in drawing.tensors.items() if name in term.text}
    values, present = wanted(term.made, indices, drawing.sizes)
    for form in RESULTS[len(indices)]:
        for target in ("interpret", "c") if random.random() < 0.25 else ("interpret",):
            made = sl.evaluate(text, format=form, target=target, sizes=unfixed(indices, drawing, read), **read)
            where = f"{text}\n{drawing.sizes} {form} {target}\n{ {k: (str(t.format), t.to_numpy(), t.fill) for k, t in read.items()} }"
            got = made.to_numpy()
            close = same(got, values) | np.isclose(got.astype(float), values.astype(float), rtol=1e-9, atol=0)
            assert close.all(), f"{where}\ngot {got}\nwant {values}"
            if indices and "s" in form and not term.made.constant:
                check_pattern(made.storage, values, present, term.made, where)


def unfixed(indices: list[str], drawing: Drawing, read: dict[str, sl.Tensor]) -> dict[str, int]:
    fixed = {name for tensor in read for name in drawing.tensors[tensor][0]}
    return {name: drawing.sizes[name] for name in indices if name not in fixed}


def check_pattern(made: Storage, values: np.ndarray, present: np.ndarray, want: Masked, where: str) -> None:
    if want.fill is not None:
        assert same(made.fill, want.fill), f"{where}\nthe fill is {made.fill}, not {want.fill}"
    stored = present | ~same(values, made.fill)
    assert np.array_equal(pattern(made), stored), f"{where}\nstored {pattern(made)}\nwant {stored}"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_absence_follows_the_operators(chunk: int, seed: int, case_count: int) -> None:
    for number in range(-(-case_count // (20 * CHUNKS))):
        check(Random(f"{seed}/{chunk}/{number}"))


def sparse(values: object, form: str) -> sl.Tensor:
    return sl.asarray(np.array(values, float)).to(form)


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("form", ["s", "u"])
def test_a_product_with_an_absent_factor_above_the_line(form: str, target: str) -> None:
    given = {"A": np.array(3.0), "B": sparse([1, 0, 2], form), "C": sparse([0, 1, 0], form)}
    assert sl.evaluate("R = 2 + prod(m, A*B(m)) / max(C(i), C(i))", target=target, **given).item() == 2


@pytest.mark.parametrize("target", ["interpret", "c"])
def test_a_truth_of_all_with_an_absent_one_above_the_line(target: str) -> None:
    cube, eye = sparse(np.eye(2)[:, :, None] * np.ones(2), "sss"), sparse(np.eye(2), "ds")
    made = sl.evaluate("R(i) = all({m,n}, A(n,j,m)*B(j,i)) / C(i,j)", A=cube, B=eye, C=eye, target=target)
    assert made.to_numpy().tolist() == [0, 0]


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("form", ["ds", "ds:1,0", "ss", "uq"])
def test_an_infinite_quotient_times_the_least_of_absent_entries(form: str, target: str) -> None:
    made = sl.evaluate(
        "R(j) = sum(i, A(j,i)/B(i,j)) * min(m, 3*C(m,j))", A=sparse(np.ones((2, 2)), form), B=sparse(np.eye(2), form),
        C=sparse([[0, 1], [0, 2]], form), target=target,
    )  # fmt: skip
    assert made.to_numpy().tolist() == [0, np.inf]


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("form", ["ds", "ds:1,0", "dd"])
def test_one_absent_factor_decides_a_product_beside_nan(form: str, target: str) -> None:
    """Whichever way the loops run; a dense operand has no absent factors."""
    made = sl.evaluate("y(j) = prod(i, A(i,j))", A=sparse([[np.nan, 2], [0, 3]], form), target=target)
    assert same(made.to_numpy(), np.array([np.nan if form == "dd" else 0, 6])).all()


STEPS = (
    "", "split(j,j0,j1,2)", "precompute(A(i,j), j, jw, w)", "parallelize(j,CPUThread,Temporary)",
    "parallelize(j,CPUThread,ParallelReduction)", "parallelize(j,CPUThread,Atomics)",
)  # fmt: skip


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("op", ["min", "prod", "max", "all"])
@pytest.mark.parametrize("target", ["interpret", "c"])
def test_a_schedule_keeps_what_is_absent(op: str, steps: str, target: str) -> None:
    kernel = sl.program(f"y(i) = {op}(j, A(i,j)) / x(i)", {"A": "csr", "y": "s"}, steps, target=target)
    made = kernel(sparse([[1, 2, 3], [0, 0, 0], [4, 0, 5]], "csr"), np.zeros(3))
    decides = op in ("prod", "all")
    assert made.nnz == (1 if decides else 2)
    third = 0 if decides else np.inf if op == "max" else np.nan
    assert same(made.to_numpy(), np.array([np.inf, 0, third])).all()


@pytest.mark.parametrize("op", ["min", "prod", "max", "all"])
@pytest.mark.parametrize("races", ["Temporary", "ParallelReduction", "Atomics"])
def test_the_threads_of_a_gpu_keep_what_is_absent(races: str, op: str) -> None:
    steps = f"parallelize(i,GPUBlock,NoRaces) bound(j,b,3,MaxExact) precompute(A(i,j), b, bw, w) parallelize(b,GPUThread,{races})"
    kernel = sl.program(f"y(i) = {op}(j, A(i,j)) / x(i)", {"A": "csr"}, steps, target="interpret")
    made = kernel(sparse([[1, 2, 3], [0, 0, 0], [4, 0, 5]], "csr"), np.zeros(3))
    third = 0 if op in ("prod", "all") else np.inf if op == "max" else np.nan
    assert same(made.to_numpy(), np.array([np.inf, 0, third])).all()


def test_over_nothing_a_reduction_is_its_identity_and_present() -> None:
    nothing = sl.asarray(np.zeros((2, 0))).to("csr")
    made = sl.evaluate("y(i) = max(j, A(i,j))", A=nothing, format="s")
    assert (made.nnz, made.fill) == (2, 0)
    assert made.to_numpy().tolist() == [-np.inf, -np.inf]
    assert sl.evaluate("y(i) = sum(j, A(i,j)) / x(i)", A=nothing, x=np.zeros(2)).to_numpy().tolist() == [0, 0]
