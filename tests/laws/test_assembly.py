"""Assembling sparse results: by several threads, in no order, and again with new values."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest
from fuzz.drawing import cases
from fuzz.runner import Tally, int32_limit, prepare_whole
from together import compile_together

import sparseloom as sl
from sparseloom.core.errors import StorageError
from sparseloom.formats.pack import unpack
from sparseloom.formats.validate import check
from sparseloom.programs.calling import IndexOverflow

ROWS = "parallelize(i, CPUThread, NoRaces)"
STATEMENTS = [
    ("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), (7, 6)),
    ("C(i,k) = A(i,j) * B(j,k) + D(i,k)", ("A", "B", "D"), (6, 6)),
    ("C(i,k) = A(i,k) + B(i,k)", ("A", "B"), (9, 7)),
    ("C(i,k) = A(i,k) * B(i,k)", ("A", "B"), (9, 7)),
    ("C(i,k) = A(i,j) * B(j,l) * D(l,k)", ("A", "B", "D"), (5, 5)),
]
MATRICES = ["csr", "dcsr", "coo", "ds~", "ss~"]
TENSORS = ["dss", "sss", "sds", "ssd", "dsd", "uqq", "dds"]


def random_tensor(shape: tuple[int, ...], format: str, seed: int, density: float = 0.3) -> sl.Tensor:
    random = np.random.default_rng(seed)
    return sl.asarray(random.integers(-5, 6, shape) * (random.random(shape) < density) * 1.0).to(format)


def operands(names: tuple[str, ...], shape: tuple[int, int], format: str = "csr") -> list[sl.Tensor]:
    sizes = shape if len(names) == 2 and names != ("A", "B") else (max(shape), max(shape))
    return [random_tensor(sizes, format, seed) for seed in range(len(names))]


def made_by(
    statement: str, names: tuple[str, ...], result: str, target: str, schedule: str | None = None, workspace: str | None = None
) -> sl.Kernel:
    formats = {**dict.fromkeys(names, "csr"), "C": result}
    return sl.program(statement, formats=formats, schedule=schedule, target=target, workspace=workspace)


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("result", MATRICES)
def test_rows_of_a_matrix_are_assembled_in_parallel(result: str, target: str) -> None:
    for statement, names, shape in STATEMENTS if target == "interpret" else STATEMENTS[:3]:
        given = operands(names, shape)
        wanted = made_by(statement, names, "dd", "interpret")(*given).to_numpy()
        blocks = "split(i, i0, i1, 2) parallelize(i0, CPUThread, NoRaces)"
        counted = [f"assemble(C, Insert) {how}" for how in ("", ROWS, blocks)]
        schedules = (ROWS, blocks, f"assemble(C, Append) {ROWS}", *counted)
        kernels = [made_by(statement, names, result, target, schedule) for schedule in schedules]
        compile_together((kernel, given) for kernel in kernels)
        for kernel in kernels:
            made = kernel(*given)
            check(made.storage)
            np.testing.assert_allclose(made.to_numpy(), wanted)


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("result", TENSORS)
def test_slices_of_a_tensor_are_assembled_in_parallel(result: str, target: str) -> None:
    shape = (5, 4, 6)
    given = [random_tensor(shape, "csf", seed, 0.2) for seed in (1, 2)]
    formats = {"A": "csf", "B": "csf", "C": result}
    schedules = (ROWS, "assemble(C, Insert)", f"assemble(C, Insert) {ROWS}")
    kernels = [sl.program("C(i,j,k) = A(i,j,k) + B(i,j,k)", formats, schedule, target=target) for schedule in schedules]
    compile_together((kernel, given) for kernel in kernels)
    for kernel in kernels:
        made = kernel(*given)
        check(made.storage)
        np.testing.assert_array_equal(made.to_numpy(), sum(one.to_numpy() for one in given))


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("schedule", ["", "parallelize(i_block, CPUThread, NoRaces)"])
def test_rows_of_blocks_are_counted_first(schedule: str, target: str) -> None:
    """Blocks that end in the middle of a part, and rows of blocks without any."""
    given = [random_tensor((23, 11), "csr", seed, 0.05) for seed in (3, 4)]
    for statement, wanted in (
        ("C(i,j) = A(i,j) + B(i,j)", given[0].to_numpy() + given[1].to_numpy()),
        ("C(i,j) = A(i,k) * B(j,k)", given[0].to_numpy() @ given[1].to_numpy().T),
    ):
        for result in ("bcsr(2,3)", "bcsr(4)"):
            made = made_by(statement, ("A", "B"), result, target, f"assemble(C, Insert) {schedule}")(*given)
            check(made.storage)
            np.testing.assert_array_equal(made.to_numpy(), wanted)
            appended = made_by(statement, ("A", "B"), result, target)(*given)
            assert made.storage.values.tobytes() == appended.storage.values.tobytes()


@pytest.mark.parametrize("target", ["interpret", "c"])
def test_the_rows_that_loops_pass_over_are_counted_too(target: str) -> None:
    """Along positions, empty rows of a full level are never visited; each part ends its own."""
    tensor = random_tensor((17, 5, 6), "sds", 5, 0.05)
    along = "assemble(C, Insert) pos(i, p, A(i,j,k)) parallelize(p, CPUThread, NoRaces)"
    made = sl.program("C(i,j,k) = 2 * A(i,j,k) * B(k)", {"A": "sds", "C": "sds", "B": "s"}, along, target=target)(tensor, np.arange(6.0))
    check(made.storage)
    np.testing.assert_array_equal(made.to_numpy(), 2 * tensor.to_numpy() * np.arange(6.0))


def test_one_loop_counts_the_rows_of_a_transpose() -> None:
    kernel = sl.program("C(i,j) = 2 * A(i,j)", {"A": "csr", "C": "csc"})
    tensor = random_tensor((9, 30), "csr", 8)
    made = kernel(tensor)
    check(made.storage)
    np.testing.assert_array_equal(made.to_numpy(), 2 * tensor.to_numpy())
    assert "one loop over all entries counts those of each row, then these fill them in" in kernel.explain()


def test_large_work_is_parallel_without_being_asked() -> None:
    size = 400
    kernel = made_by("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), "csr", "c")
    small = [random_tensor((9, 9), "csr", seed) for seed in (1, 2)]
    kernel(*small)
    assert "#pragma omp parallel" not in kernel.source
    large = [random_tensor((size, size), "csr", seed, 0.5) for seed in (1, 2)]
    made = kernel(*large)
    assert "#pragma omp parallel" in kernel.source
    assert "in 64 parts, each appended by one thread, then joined" in kernel.explain()
    check(made.storage)
    np.testing.assert_array_equal(made.to_numpy(), large[0].to_numpy() @ large[1].to_numpy())


def test_sums_are_parallel_where_there_is_more_to_do() -> None:
    kernel = made_by("C(i,k) = A(i,k) + B(i,k)", ("A", "B"), "csr", "c")
    for size, wanted in ((90, False), (900, True)):
        given = [random_tensor((size, size), "csr", seed, 0.5) for seed in (1, 2)]
        made = kernel(*given)
        assert ("#pragma omp parallel" in kernel.source) == wanted
        check(made.storage)
        np.testing.assert_array_equal(made.to_numpy(), given[0].to_numpy() + given[1].to_numpy())


def test_parts_do_not_change_a_bit() -> None:
    random = np.random.default_rng(3)
    dense = random.random((700, 700)) * (random.random((700, 700)) < 0.1)
    matrix = sl.asarray(dense).to("csr")
    statement, names, _ = STATEMENTS[0]
    alone, together = (made_by(statement, names, "csr", "c", how)(matrix, matrix) for how in ("bound(i, ib, 0, MinExact)", ROWS))
    assert alone.storage.values.tobytes() == together.storage.values.tobytes()
    assert all(np.array_equal(a, together.storage.levels[1].arrays[part]) for part, a in alone.storage.levels[1].arrays.items())


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize(("result", "schedule"), [*product(["csr", "coo", "dcsr"], ["", ROWS, f"assemble(C, Insert) {ROWS}"])])
def test_positions_beyond_int32_are_widened(result: str, schedule: str, target: str) -> None:
    """With the limit at 20, a result with more entries is computed again with int64 positions."""
    given = operands(("A", "B"), (8, 8))
    with int32_limit(20):
        made = made_by("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), result, target, schedule)(*given)
    assert len(made.storage.values) > 20
    assert {array.dtype for level in made.storage.levels for array in level.arrays.values()} == {np.dtype(np.int64)}
    np.testing.assert_array_equal(made.to_numpy(), given[0].to_numpy() @ given[1].to_numpy())


def test_a_part_that_finds_no_memory_ends_the_kernel() -> None:
    """A dense workspace over 2**55 columns cannot be had; what was taken before is given back, and the kernel stays usable."""
    rows = sl.asarray(np.eye(3)).to("csr")
    wide, narrow = (sl.from_coo(np.array([[0, 1], [5, size - 1]]), [1.0, 2.0], (3, size), format="csr") for size in (2**55, 9))
    kernel = made_by("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), "csr", "c", ROWS, "dense")
    for _ in range(3):
        with pytest.raises(MemoryError):
            kernel(rows, wide)
    np.testing.assert_array_equal(kernel(rows, narrow).to_numpy(), narrow.to_numpy())


@pytest.mark.parametrize("result", ["ds~", "ss~"])
def test_an_unordered_result_has_the_same_entries(result: str) -> None:
    given = operands(("A", "B"), (30, 30))
    kernel = made_by("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), result, "c")
    made = kernel(*given)
    check(made.storage)
    assert "sort" not in kernel.source
    assert "in no order" in kernel.explain()
    np.testing.assert_array_equal(made.to("csr").to_numpy(), given[0].to_numpy() @ given[1].to_numpy())


@pytest.mark.parametrize("target", ["interpret", "c"])
@pytest.mark.parametrize("schedule", ["", ROWS])
@pytest.mark.parametrize("result", [*MATRICES, "dd"])
def test_values_are_computed_again_in_a_known_structure(result: str, schedule: str, target: str) -> None:
    for statement, names, shape in STATEMENTS if target == "interpret" else STATEMENTS[:3]:
        given = operands(names, shape)
        kernel = made_by(statement, names, result, target, schedule)
        made = kernel.assemble(*given)
        arrays = [array.copy() for level in made.storage.levels for array in level.arrays.values()]
        for number, one in enumerate(given):
            one.storage.values[:] = np.arange(len(one.storage.values)) - number
        assert kernel.compute(*given, out=made) is made
        wanted = kernel(*given)
        assert all(map(np.array_equal, arrays, (array for level in made.storage.levels for array in level.arrays.values())))
        np.testing.assert_allclose(made.storage.values, wanted.storage.values)


def test_values_of_random_statements_are_computed_again(seed: int) -> None:
    """Sparse results of the fuzzer: the structure of one run, refilled, gives the same values."""
    refilled = 0
    for case in islice(cases(seed, 7000), 200):
        job = prepare_whole(case, Tally())
        if job is None or job.assign.lhs.tensor.format.is_dense or job.assign.op is not None:
            continue
        try:
            made = job.prepared.run(job.storages, "interpret")
        except IndexOverflow:
            continue
        again = replace(made, values=np.zeros_like(made.values))
        job.prepared.compute(job.storages, again, "interpret")
        (_, found), (_, wanted) = unpack(again), unpack(made)
        np.testing.assert_array_equal(found, wanted, err_msg=str(case))
        refilled += 1
    assert refilled > 50


def test_what_was_not_assembled_is_not_computed() -> None:
    given = operands(("A", "B"), (6, 6))
    kernel = made_by("C(i,k) = A(i,j) * B(j,k)", ("A", "B"), "csr", "c")
    with pytest.raises(StorageError) as refused:
        kernel.compute(*given, out=kernel(*given))
    assert str(refused.value) == "out was not assembled by this kernel\n  help: make it with C = kernel.assemble(...)"
    made = kernel.assemble(*given)
    with pytest.raises(StorageError) as refused:
        kernel.compute(given[0], random_tensor((6, 6), "csr", 9), out=made)
    assert str(refused.value) == (
        "B is not stored as it was when C was assembled, and only values may change\n  help: assemble again: C = kernel.assemble(...)"
    )
    same = sl.asarray(given[1].to_numpy()).to("csr")  # other arrays, the same structure
    np.testing.assert_array_equal(kernel.compute(given[0], same, out=made).to_numpy(), kernel(*given).to_numpy())
