"""Workspaces of every kind for the rows of sparse results: dense with a list, hash table, sorted list. All give the same result."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp
from fuzz.result_formats import cases
from fuzz.runner import compare_all
from numpy.typing import NDArray
from together import compile_together

import sparseloom as sl
from sparseloom.assemble import hashed
from sparseloom.cli.main import main
from sparseloom.compiler import build
from sparseloom.core.errors import NotationError
from sparseloom.formats.pack import unpack
from sparseloom.formats.validate import check
from sparseloom.iteration.rows import SHORT, RowChoice, RowKind, choose_row
from sparseloom.loops.hashing import HASH_FACTOR

KINDS = ["dense", "hash", "sort"]
TARGETS = ["interpret", "c"]
ROWS = "parallelize(i, CPUThread, NoRaces)"
PRODUCT = "C(i,k) = A(i,j) * B(j,k)"
STATEMENTS = {
    PRODUCT: lambda A, B, D: A @ B,
    "C(i,k) = A(i,j) * B(j,k) + D(i,k)": lambda A, B, D: A @ B + D,
    "C(i,k) = A(i,j) * B(j,l) * D(l,k)": lambda A, B, D: A @ B @ D,
    "C(i,k) = D(i,k) * sum(j, A(i,j) * B(j,k))": lambda A, B, D: D * (A @ B),
    "C(i,k) = A(j,i) * B(j,k)": lambda A, B, D: A.T @ B,
}


@pytest.fixture
def few_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let hash tables begin with two places: everything collides, and tables grow all the time."""
    monkeypatch.setattr(hashed, "FIRST_BITS", 1)
    build.cache_clear()
    yield
    build.cache_clear()


def matrices(size: int, count: int = 3, dtype: str = "float64") -> list[np.ndarray]:
    """Small whole numbers in a third of the places; a row and a column without any."""
    random = np.random.default_rng(5)
    made = [(random.integers(-4, 5, (size, size)) * (random.random((size, size)) < 0.3)).astype(dtype) for _ in range(count)]
    for matrix in made:
        matrix[size // 2] = matrix[:, size // 3] = 0
    return made


def kernel(statement: str, result: str, workspace: str | None, target: str = "c", schedule: str = "", **options: object) -> sl.Kernel:
    names = [name for name in "ABD" if f"{name}(" in statement]
    formats = {**dict.fromkeys(names, "csr"), "C": result}
    return sl.program(statement, formats, schedule, target=target, workspace=workspace, **options)  # type: ignore[arg-type]


def told(made: sl.Kernel) -> str:
    """What ``explain`` says of the one workspace."""
    (line,) = (line.strip() for line in made.explain().splitlines() if line.strip().startswith("w: "))
    return line.removeprefix("w: ")


def wide(extent: int, format: str = "csr", rows: int = 3) -> sl.Tensor:
    return sl.from_coo(np.array([[0, 1, 1], [5, extent - 1, 7]]), [1.0, 2.0, 3.0], (rows, extent), format=format)


@pytest.mark.parametrize("kind", [RowKind.HASH, RowKind.SORT])
@pytest.mark.parametrize("statement", ["SpGEMM", "chained", "TTV", "TTM", "MTTKRP", "contraction"])
def test_results_of_every_format_are_right(
    statement: str, kind: RowKind, seed: int, few_places: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dense oracle, interpreter and C agree on values and pattern, whatever rows are built in; dense workspaces have a test already."""
    monkeypatch.setattr(sys.modules["sparseloom.plan.plan"], "choose_row", lambda *given: RowChoice(kind, "as asked"))
    drawn = list(cases(seed, statement))
    tally = compare_all(drawn)
    assert not tally.failures, "\n\n".join(f"{case}\n{problem}" for case, problem in tally.failures)
    assert tally.compared == len(drawn)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("workspace", ["hash", "sort"])
@pytest.mark.parametrize("result", ["csr", "dcsr", "coo", "ds~", "csc"])
def test_rows_alone_and_in_parallel(result: str, workspace: str, target: str, few_places: None) -> None:
    given, kernels = matrices(9), []
    for (statement, wanted), schedule in product(STATEMENTS.items(), ["", ROWS]):
        if schedule and (result == "csc" or "A(j,i)" in statement):
            continue  # the rows of a column-major result, or operand, are not in the outermost loop
        made = kernel(statement, result, workspace, target, schedule)
        kernels.append((made, dict(zip("ABD", given[: len(made.operand_names)], strict=False)), wanted))
    compile_together((made, [named]) for made, named, _ in kernels)
    for made, named, wanted in kernels:
        found = made(named)
        check(found.storage)
        np.testing.assert_array_equal(found.to_numpy(), wanted(*given))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("workspace", KINDS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_values_of_any_width_move_with_their_coordinates(dtype: str, workspace: str, target: str, few_places: None) -> None:
    A, B = matrices(12, 2, dtype)
    found = kernel(PRODUCT, "csr", workspace, target)(A, B)
    check(found.storage)
    np.testing.assert_array_equal(found.to_numpy(), A @ B)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("workspace", KINDS)
def test_shortest_paths(workspace: str, target: str, few_places: None) -> None:
    A, B = (np.where(matrix, matrix, np.inf) for matrix in matrices(9, 2))
    stored = [sl.asarray(np.where(np.isinf(matrix), 0, matrix)).to("csr") for matrix in (A, B)]
    found = kernel(PRODUCT, "csr", workspace, target, semiring="min_plus")(*stored)
    np.testing.assert_array_equal(found.to_numpy(), (A[:, :, None] + B[None]).min(1))


@pytest.mark.parametrize("workspace", KINDS)
@pytest.mark.parametrize("result", ["csr", "dcsr", "ds~"])
@pytest.mark.parametrize("schedule", ["", ROWS])
def test_values_are_computed_again(schedule: str, result: str, workspace: str) -> None:
    given = [sl.asarray(matrix).to("csr") for matrix in matrices(9, 2)]
    made = kernel(PRODUCT, result, workspace, "c", schedule)
    found = made.assemble(*given)
    for one in given:
        one.storage.values[:] = np.arange(len(one.storage.values))
    made.compute(*given, out=found)
    np.testing.assert_array_equal(found.to_numpy(), given[0].to_numpy() @ given[1].to_numpy())


@pytest.mark.parametrize("schedule", ["", ROWS])
def test_long_rows_beside_empty_and_short_ones(schedule: str) -> None:
    """Row 1 makes the table grow many times; what it left there must not show in the rows behind it."""
    random = np.random.default_rng(2)
    A, B = np.zeros((5, 60)), (random.random((60, 9000)) < 0.05) * random.random((60, 9000))
    A[1], A[2, 3], A[4, ::7] = 1, 2, 3
    found = kernel(PRODUCT, "csr", "hash", "c", schedule)(A, B)
    check(found.storage)
    assert np.diff(found.storage.levels[1].arrays["pos"])[1] > 5000
    np.testing.assert_allclose(found.to_numpy(), A @ B)


@pytest.mark.parametrize("target", TARGETS)
def test_keys_with_the_same_hash(target: str) -> None:
    """Coordinates whose hashes share their leading bits stand one behind the other, also across the end of the table."""
    keys = [key for key in range(100_000) if key * HASH_FACTOR % 2**64 >> 54 == 1023][:40]
    assert len(keys) == 40
    matrix = sl.from_coo(np.array([np.zeros(40, int), keys]), np.arange(1.0, 41), (2, 100_000), format="csr")
    found = kernel(PRODUCT, "csr", "hash", target)(np.array([[1.0, 0.0], [2.0, 0.0]]), matrix)
    check(found.storage)
    np.testing.assert_array_equal(found.storage.levels[1].arrays["crd"], keys * 2)
    np.testing.assert_array_equal(found.storage.values, [*range(1, 41), *range(2, 82, 2)])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("extent", [10**12, 2**55])
@pytest.mark.parametrize(("result", "schedule"), [*product(["csr", "dcsr", "coo", "ds~"], ["", ROWS])])
def test_rows_of_any_length(result: str, schedule: str, extent: int, target: str) -> None:
    """Memory follows the entries: a dense workspace for so many columns cannot be had."""
    A, B = np.array([[1.0, 0, 0], [0, 0, 0], [2, 3, 0]]), wide(extent)
    made = kernel(PRODUCT, result, None, target, schedule)
    found = made(A, B)
    check(found.storage)
    coordinates, values = unpack(found.storage)
    entries = {(0, 5): 1.0, (2, 5): 2.0, (2, 7): 9.0, (2, extent - 1): 6.0}
    assert dict(zip(map(tuple, coordinates.T.tolist()), values.tolist(), strict=True)) == entries
    assert told(made).startswith("a row in a hash table")
    for workspace in ("hash", "sort"):
        again = kernel(PRODUCT, result, workspace, target, schedule)(A, B)
        assert sorted(again.storage.values) == sorted(entries.values())
    with pytest.raises(MemoryError):
        kernel(PRODUCT, result, "dense", target, schedule)(A, B)


def test_hypersparse_matrices() -> None:
    size = 10**12
    places = np.array([[0, 7, 7, size - 1], [7, 0, size - 1, 7]])
    matrix = sl.from_coo(places, [1.0, 2.0, 3.0, 4.0], (size, size), format="dcsr")
    found = sl.evaluate(PRODUCT, A=matrix, B=matrix, format="dcsr")
    check(found.storage)
    np.testing.assert_array_equal(found.storage.levels[0].arrays["crd"], [0, 7, size - 1])
    np.testing.assert_array_equal(found.storage.levels[1].arrays["crd"], [0, size - 1, 7, 0, size - 1])
    np.testing.assert_array_equal(found.storage.values, [2.0, 3.0, 14.0, 8.0, 12.0])


def test_the_kind_follows_from_extent_and_entries() -> None:
    for extent, entries in ((0, 0), (SHORT, 0), (SHORT + 1, SHORT), (16 * SHORT, SHORT)):
        assert choose_row(extent, entries, None).kind is RowKind.DENSE
    for extent, entries in ((SHORT + 1, 0), (16 * SHORT + 1, SHORT), (10**12, 1000)):
        assert choose_row(extent, entries, None).kind is RowKind.HASH
    for kind in RowKind:
        assert choose_row(10**12, 0, kind) == choose_row(10, 10, kind) == RowChoice(kind, "as asked")


def test_a_kernel_chooses_anew_for_more_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparseloom.iteration.rows.SHORT", 100)
    made = kernel(PRODUCT, "csr", None)
    few, many = wide(200), sl.asarray(np.ones((3, 200))).to("csr")
    reasons = ("rows are long and operands have few entries", "operands have many entries for the length of a row")
    for operand, text in zip((few, many), reasons, strict=True):
        np.testing.assert_array_equal(made(np.eye(3), operand).to_numpy(), operand.to_numpy())
        assert told(made).endswith(f"chosen because {text}")


@pytest.mark.parametrize("semiring", [None, "min_plus", "max_plus", "max_times"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "complex128"])
def test_a_prepared_row_has_the_same_bits(dtype: str, semiring: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is met once stays what it is, -0.0 and what is no number included; what is met again is combined in the same order."""
    if dtype == "complex128" and semiring is not None:
        return
    rng, made = np.random.default_rng(5), []
    special = np.array([-0.0, 0.0, 5e-324, -1.5, 3e300] if dtype != "int32" else [0, -1, 7, 2**31 - 1, -(2**31)])
    with np.errstate(over="ignore", invalid="ignore"):
        A, B = (sl.from_coo(_pairs(rng, 30), rng.choice(special, 60).astype(dtype), (30, 30), format="csr") for _ in range(2))
    for few in (10**9, 1):
        monkeypatch.setattr("sparseloom.iteration.rows.FEW", few)
        product = sl.program(PRODUCT, {"A": "csr", "B": "csr", "C": "csr"}, semiring=semiring)
        made.append(product(A, B).storage)
        assert ("set before the first row" in told(product)) == (few == 1)
    plain, prepared = made
    np.testing.assert_array_equal(plain.levels[1].arrays["crd"], prepared.levels[1].arrays["crd"])
    assert plain.values.tobytes() == prepared.values.tobytes()


def _pairs(rng: np.random.Generator, size: int) -> NDArray[np.int64]:
    """Two entries in each row."""
    return np.array([(row, column) for row in range(size) for column in rng.choice(size, 2, replace=False)]).T


def test_a_row_is_prepared_where_operands_have_many_entries() -> None:
    assert choose_row(1000, 4000, None).prepared and not choose_row(1000, 3999, None).prepared
    assert not choose_row(1000, 4000, None, scattered=False).prepared
    band = sl.asarray(sp.diags_array([np.ones(4000)] * 27, offsets=range(-13, 14), shape=(4000, 4000), format="csr"))
    told_of_band = sl.program(PRODUCT, {"A": "csr", "B": "csr", "C": "csr"})
    told_of_band(band, band)
    assert told(told_of_band).startswith("a row in a dense workspace with a list of coordinates")
    A = sl.asarray(np.ones((8, 8))).to("csr")
    explained = sl.program(PRODUCT, {"A": "csr", "B": "csr", "C": "csr"})
    explained(A, A)
    assert told(explained).startswith("a row in a dense workspace, set before the first row, with a list of coordinates, sorted")


def test_explain_tells_the_kind_and_why() -> None:
    lists = "a row in a dense workspace with a list of coordinates"
    assert told(kernel(PRODUCT, "csr", None)) == f"{lists}, sorted before it is read, chosen because rows are short"
    assert told(kernel(PRODUCT, "csr", "dense")) == f"{lists}, sorted before it is read, as asked"
    assert told(kernel(PRODUCT, "ds~", "dense")) == f"{lists}, in no order, as asked"
    assert told(kernel(PRODUCT, "csr", "hash")) == "a row in a hash table, sorted before it is read, as asked"
    assert told(kernel(PRODUCT, "ds~", "hash")) == "a row in a hash table, in no order, as asked"
    assert told(kernel(PRODUCT, "csr", "sort")) == "a list of coordinates and values, sorted and combined before it is read, as asked"
    made = kernel(PRODUCT, "csr", None)
    made(np.eye(3), wide(10**9))
    assert told(made) == "a row in a hash table, sorted before it is read, chosen because rows are long and operands have few entries"
    several = sl.program("Z(j,k,l,m) = X(i,j,k) * Y(i,l,m)", formats={"X": "csf", "Y": "csf", "Z": "csf(4)"}, workspace="hash")
    assert told(several).endswith("before it is read, chosen because entries of several levels come in another order")
    blocks = sl.program(PRODUCT, formats={"A": "csr", "B": "csr", "C": "bcsr(2,2)"}, workspace="hash")
    assert "sorted before it is read, the only kind for blocks" in blocks.explain()


def test_asking_changes_nothing_where_no_workspace_is_needed() -> None:
    for statement, result in (("C(i,j) = A(i,j) + B(i,j)", "csr"), ("C(i,k) = A(i,j) * B(j,k)", "dd"), ("C(i,j) = A(i,j)", "csr")):
        plain, *asked = (kernel(statement, result, workspace).source for workspace in (None, *KINDS))
        assert all(plain == one for one in asked)


def test_what_was_asked_is_kept_and_heeded(capsys: pytest.CaptureFixture[str]) -> None:
    made = kernel(PRODUCT, "csr", "hash")
    assert told(pickle.loads(pickle.dumps(made))) == told(made)
    A, B = matrices(6, 2)
    for workspace in (None, *KINDS):
        np.testing.assert_array_equal(sl.evaluate(PRODUCT, A=A, B=B, format="csr", workspace=workspace).to_numpy(), A @ B)
    command = [PRODUCT, "-f", "A:csr", "-f", "B:csr", "-f", "C:csr", "--workspace", "hash"]
    assert main(["compile", *command, "--explain"]) == 0
    assert "a row in a hash table, sorted before it is read, as asked" in capsys.readouterr().out
    assert main(["run", *command, "-d", "i:5", "-d", "j:5", "-d", "k:5"]) == 0


def test_an_unknown_kind_is_refused() -> None:
    refused = "there is no workspace 'tree'; there are dense, hash, sort"
    with pytest.raises(NotationError) as error:
        kernel(PRODUCT, "csr", "tree")
    assert str(error.value) == refused
    with pytest.raises(NotationError) as error:
        sl.evaluate(PRODUCT, A=np.eye(2), B=np.eye(2), workspace="tree")
    assert str(error.value) == refused


def test_a_row_ascends_whatever_it_is_built_in() -> None:
    A, B = matrices(40, 2)
    for workspace in KINDS:
        level = kernel(PRODUCT, "csr", workspace)(A, B).storage.levels[1]
        for begin, end in pairwise(level.arrays["pos"]):
            assert (np.diff(level.arrays["crd"][begin:end]) > 0).all()
