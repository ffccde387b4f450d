"""Sparse results of every format: from operands in other formats, and added to what the result held before."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.formats.format import Format
from sparseloom.formats.pack import pattern
from sparseloom.formats.storage import Storage
from sparseloom.formats.validate import check

TARGETS = ("interpret", "c")
RESULTS = (
    "csr", "csc", "dcsr", "coo", "bcsr(2,2)", "bcsr(3,2)", "ssdd:1,0,0,1/2,3", "ell", "dp:1,0", "sp", "ds~", "u~q~", "db", "bs", "dia",
)  # fmt: skip
OPERANDS = ("csr", "csc", "dcsr", "coo", "bcsr(2,2)", "bcsr(1,3)", "ell", "db", "dia", "dense(2)")

# Every format in the interpreter; of the operands' formats, two in C, which takes longer.
PAIRS = [(form, "interpret") for form in OPERANDS] + [("csr", "c"), ("bcsr(1,3)", "c")]


def sparse(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers, a third of them stored, with an empty first row."""
    values = rng.integers(1, 9, shape) * (rng.random(shape) < 0.35)
    values[0] = 0
    return values.astype(float)


def same_arrays(left: Storage, right: Storage) -> None:
    """Both storages hold the same numbers in the same places."""
    for mine, other in zip(left.levels, right.levels, strict=True):
        assert mine.scalars == other.scalars
        for part, array in mine.arrays.items():
            np.testing.assert_array_equal(array, other.arrays[part])
    np.testing.assert_array_equal(left.values, right.values)


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize(("operand", "target"), [pair for pair in PAIRS if pair[0] != "dense(2)"])
def test_a_copy_is_stored_as_a_conversion_is(operand: str, result: str, target: str, rng: np.random.Generator) -> None:
    """Also where the block sizes do not divide the shape."""
    A = sl.asarray(sparse(rng, 7, 5)).to("csr").to(operand)
    copy = sl.evaluate("R(i,j) = A(i,j)", A=A, format=result, target=target)
    check(copy.storage, "R")
    same_arrays(copy.storage, A.to(result).storage)


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize(("operand", "target"), PAIRS)
def test_sums_and_products_of_all_formats(operand: str, result: str, target: str, rng: np.random.Generator) -> None:
    a, b = sparse(rng, 6, 6), sparse(rng, 6, 6)
    A, B = sl.asarray(a).to(operand), sl.asarray(b).to("csr")
    for text, want in (("R(i,j) = A(i,j) + B(i,j)", a + b), ("R(i,j) = A(i,k) * B(k,j)", a @ b), ("R(i,j) = A(j,i) * B(i,j)", a.T * b)):
        made = sl.evaluate(text, A=A, B=B, format=result, target=target)
        check(made.storage, "R")
        np.testing.assert_array_equal(made.to_numpy(), want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", ("uqd", "uqs", "ddp", "spd", "dssddd:0,1,2,0,1,2/2,1,2"))
def test_results_of_three_modes(form: str, target: str, rng: np.random.Generator) -> None:
    X = sl.asarray(sparse(rng, 3, 4, 5)).to("csf")
    copy = sl.evaluate("R(i,j,k) = X(i,j,k)", X=X, format=form, target=target)
    check(copy.storage, "R")
    same_arrays(copy.storage, X.to(form).storage)


def test_what_nothing_writes_in_a_block_holds_the_fill() -> None:
    """Also in the part of a block that lies outside the tensor."""
    A = sl.asarray(np.diag([3.0, 4.0, 5.0])).to("csr")
    made = sl.evaluate("R(i,j) = A(i,j) + 1", A=A, format="bcsr(2,2)")
    assert made.fill == 1
    np.testing.assert_array_equal(made.storage.values, [4, 1, 1, 5, 6, 1, 1, 1])
    np.testing.assert_array_equal(made.to_numpy(), np.diag([3.0, 4.0, 5.0]) + 1)


@pytest.mark.parametrize("target", TARGETS)
def test_a_sum_over_everything_is_made_once_and_not_once_per_row_of_blocks(target: str, rng: np.random.Generator) -> None:
    a, x = sparse(rng, 5, 5), np.arange(3.0)
    kernel = sl.program("R(i,j) = A(i,j) * sum(k, x(k))", formats={"A": "csr", "R": "bcsr(2,2)"}, target=target)
    assert kernel.show("concrete").split("\nwhere\n")[1].startswith("  forall k\n    t += x(k)\n")
    np.testing.assert_array_equal(kernel(a, x).to_numpy(), a * 3)


SCHEDULED = (
    ("R(i) = 2 * x(i)", "sd:0,0/2", "fuse(i_block,i_within,f)"),
    ("R(i) = 2 * x(i)", "sd:0,0/2", "bound(i_block,b,0,MinExact) fuse(b,i_within,f) precompute(2 * x(i),f,fw,w)"),
    ("R(i,j) = A(i,j) + B(i,j)", "bcsr(2,2)", "split(i_block,a,b,2) split(j_each,c,d,3)"),
    ("R(i,j) = A(i,k) * B(k,j)", "bcsr(2,3)", "pos(k,p,A(i,k)) unroll(j_within,2)"),
    ("R(i,j) = A(i,k) * B(k,j)", "ell", "split(i,i0,i1,4)"),
    ("R(i,j) += A(i,k) * B(k,j)", "csr", "split(i,i0,i1,4) pos(k,p,A(i,k))"),
    ("R(i,j) += A(i,j)", "dcsr", "split(j,j0,j1,2)"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("text", "form", "schedule"), SCHEDULED, ids=[schedule for _, _, schedule in SCHEDULED])
def test_schedules_of_sparse_results(text: str, form: str, schedule: str, target: str, rng: np.random.Generator) -> None:
    given = {"A": sparse(rng, 6, 6), "B": sparse(rng, 6, 6), "R": sparse(rng, 6, 6), "x": np.arange(5.0)}
    operands = {name: array for name, array in given.items() if f" {name}(" in text or (name == "R" and "+=" in text)}
    formats = {"R": form, **{name: "csr" for name in operands if name in "AB"}}
    plain = sl.program(text, formats=formats, target="interpret")(**operands)
    made = sl.program(text, formats=formats, schedule=schedule, target=target)(**operands)
    check(made.storage, "R")
    same_arrays(made.storage, plain.storage)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("form", RESULTS)
def test_adding_keeps_the_entries_that_were_there(form: str, target: str, rng: np.random.Generator) -> None:
    a, b, r = sparse(rng, 6, 6), sparse(rng, 6, 6), sparse(rng, 6, 6)
    r[2, 3] = -(a @ b)[2, 3] or 1.0  # an entry that becomes zero stays stored
    kernel = sl.program("R(i,j) += A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "R": form}, target=target)
    R = sl.asarray(r).to(form)
    before = R.storage
    made = kernel(a, b, R=R)
    check(made.storage, "R")
    np.testing.assert_array_equal(made.to_numpy(), r + a @ b)
    assert pattern(made.storage)[r != 0].all()
    assert R.storage is before
    np.testing.assert_array_equal(R.to_numpy(), r)


@pytest.mark.parametrize("target", TARGETS)
def test_adding_to_a_tree_of_three_modes(target: str, rng: np.random.Generator) -> None:
    x, r, m = sparse(rng, 3, 4, 5), sparse(rng, 3, 4, 2), sparse(rng, 5, 2)
    kernel = sl.program("R(i,j,l) += X(i,j,k) * M(k,l)", formats={"X": "csf", "M": "csr", "R": "csf"}, target=target)
    np.testing.assert_array_equal(kernel(x, m, R=r).to_numpy(), r + x @ m)


def test_adding_in_a_semiring(rng: np.random.Generator) -> None:
    """The shortest ways so far, and those over one more edge."""
    a, r = sparse(rng, 5, 5), sparse(rng, 5, 5)
    far = np.where(r, r, np.inf)
    edges = np.where(a, a, np.inf)
    want = np.minimum(far, (edges[:, :, None] + edges[None, :, :]).min(axis=1))
    for target in TARGETS:
        A, R = (sl.asarray(sp.csr_array(m)) for m in (a, r))
        made = sl.evaluate("R(i,j) += A(i,k) * A(k,j)", A=A, R=R, semiring="min_plus", format="csr", target=target)
        np.testing.assert_array_equal(made.to_numpy(), want)
        assert made.fill == np.inf


def test_adding_in_python_notation(rng: np.random.Generator) -> None:
    a, r = sparse(rng, 5, 5), sparse(rng, 5, 5)
    i, j, k, i0, i1 = sl.indices("i j k i0 i1")
    A, R = sl.asarray(a, name="A").to("csr"), sl.asarray(r, name="R").to("csr")
    R[i, j] += A[i, k] * A[k, j]
    kernel = R.schedule().split(i, i0, i1, 2).compile()
    kernel()
    np.testing.assert_array_equal(R.to_numpy(), r + a @ a)
    R[i, j] += R[i, j]
    np.testing.assert_array_equal(R.to_numpy(), 2 * (r + a @ a))


def test_the_format_of_a_result_that_is_added_to(rng: np.random.Generator) -> None:
    """What it held before counts as a term: a dense one makes it dense."""
    a, r = sparse(rng, 4, 4), sparse(rng, 4, 4)
    text, A = "R(i,j) += A(i,j)", sp.csr_array(a)
    assert str(sl.evaluate(text, A=A, R=sp.csr_array(r)).format) == "csr"
    assert sl.evaluate(text, A=A, R=r).format.is_dense
    np.testing.assert_array_equal(sl.evaluate(text, A=A, R=r).to_numpy(), a + r)


def test_a_sparse_out_takes_over_the_new_arrays(rng: np.random.Generator) -> None:
    a, r = sparse(rng, 5, 5), sparse(rng, 5, 5)
    kernel = sl.program("R(i,j) += A(i,j)", formats={"A": "csr", "R": "csr"})
    R = sl.asarray(r).to("csr")
    for times in (1, 2):
        assert kernel(a, out=R) is R
        np.testing.assert_array_equal(R.to_numpy(), r + times * a)


def refused(error: type[Exception], text: str, **operands: object) -> str:
    """What the refusal of a statement says."""
    with pytest.raises(error) as caught:
        sl.evaluate(text, **operands)  # type: ignore[arg-type]
    return str(caught.value)


def test_what_cannot_be_done_says_what_can() -> None:
    A = sp.csr_array(np.eye(3))
    assert refused(sl.StorageError, "R(i,j) += A(i,j)", A=A, out=A.copy()) == (
        "out cannot be csr_array: R is sparse, and gets new arrays with every call\n"
        "  help: pass an sl.Tensor, which takes them over, or leave out= away"
    )
    assert refused(sl.NotationError, "R(i,i) += A(i,j)", A=A, R=A, format="csr") == (
        "cannot add to a part of R alone: a variable stands twice in R(i,i), and R is sparse.\n"
        "  in R(i,i) += sum(j, A(i,j))\n"
        "  help: compute what is added with =, and add it to R in a second statement, with a variable for each mode"
    )
    single = Format(sl.csf(2).levels + sl.coo(3).levels[-1:], (0, 1, 2))
    assert "cannot be appended to" in refused(sl.NotationError, "R(i,j,k) = X(i,j,k)", X=np.ones((2, 2, 2)), format=single)


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("result", ["bcsr(2,3)", "bcsr(3,2)", "dsdd:1,0,0,1/2,2"])
def test_a_diagonal_runs_through_blocks(result: str, target: str, rng: np.random.Generator) -> None:
    A, B = ((rng.random(shape) < 0.5) * rng.integers(1, 9, shape) for shape in ((7, 5), (5, 7)))
    made = sl.evaluate("R(i,i) = A(i,j) * B(j,i)", A=sp.csr_array(A), B=sp.csr_array(B), format=result, target=target)
    check(made.storage)
    np.testing.assert_array_equal(made.to_numpy(), np.diag(np.diag(A @ B)))


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("size", [0, 2])
def test_fills_that_cancel_out_still_make_entries(size: int, target: str) -> None:
    """Either sum has a value where nothing is stored, so their difference is there too."""
    A = sl.from_coo(np.zeros((2, 0), int), np.zeros(0), (3, size), fill=1.0, format="csr")
    B = sl.from_coo(np.zeros((1, 0), int), np.zeros(0), (size,), fill=1.0, format="s")
    made = sl.evaluate("R(j) = A(j,i) - B(i)", A=A, B=B, format="s", target=target)
    assert made.nnz == 3 and not made.to_numpy().any()


def test_nothing_is_added_where_a_constant_decides() -> None:
    A, R = (sl.asarray(np.eye(2, dtype=bool), format="csr") for _ in range(2))
    with pytest.raises(sl.NotationError, match="cannot add to R: where nothing is stored, what is added is True"):
        sl.evaluate("R(i,j) += A(i,j) + True", A=A, R=R, format="csr", semiring="or_and")


@pytest.mark.parametrize("result", ["bcsr(2,3)", "dddd:0,1,0,1/2,3", "ddss:0,1,0,1/2,2"])
def test_a_diagonal_in_blocks_is_bound_and_computed_again(result: str) -> None:
    x = sl.asarray(np.array([1.0, 2, 0, 3, 4, 0, 6]), format="s")
    kernel = sl.program("R(i,i) = x(i)", {"x": "s", "R": result})
    bound, made = kernel.bind(x), kernel.assemble(x)
    first, filled = bound(), sl.asarray(np.zeros((7, 7)), format=result)
    kernel(x, out=filled)
    np.testing.assert_array_equal(filled.to_numpy(), first.to_numpy())
    x.storage.values[:] = [0, 2, 0, 2, 0]
    np.testing.assert_array_equal(np.diag(bound().to_numpy()), x.to_numpy())
    kernel.compute(x, out=made)
    np.testing.assert_array_equal(np.diag(made.to_numpy()), x.to_numpy())
    with pytest.raises(sl.FormatError, match=r"out is csr, but R is"):
        kernel(x, out=sl.asarray(np.ones((7, 7)), format="csr"))
