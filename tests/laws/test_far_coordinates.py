"""Coordinates above 2^31: real extents, up to 2^62, which a lower limit of int32 cannot stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attack import modes
from attack.far import assert_same, meaning

import sparseloom as sl
from sparseloom.core.errors import CompilerBug, SparseloomError
from sparseloom.core.settings import settings
from sparseloom.formats.text import as_format
from sparseloom.programs.conversion import convert

PROGRAMS = 40
CHUNKS = 8
FAR = 10**12


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_programs_with_modes_up_to_two_to_the_62(chunk: int, seed: int) -> None:
    right = 0
    for number in range(PROGRAMS // CHUNKS):
        try:
            right += modes.trial(np.random.default_rng([seed, chunk, number])) == "right"
        except CompilerBug:
            raise
        except SparseloomError:
            continue
    assert right >= PROGRAMS // CHUNKS // 2


def test_many_entries_are_sorted_by_all_bits_of_their_coordinates() -> None:
    """The columns of a list took 32 bits of each coordinate, and what was read back stood outside of every array."""
    i = np.random.default_rng(0).integers(0, 2**33, 20_000)
    made = sl.from_coo([i, i], np.ones(20_000), (2**33, 2**33), format="coo")
    places, counts = np.unique(i, return_counts=True)
    assert meaning(made) == {(place, place): count for place, count in zip(places.tolist(), counts.tolist(), strict=True)}


@pytest.mark.parametrize("form", ["ss", "ss:1,0", "uq", "s~s~", "u~q~", "sp", "pp", "ssdd:0,1,0,1/2,3"])
@pytest.mark.parametrize("given", ["ss", "uq:1,0", "u~q~", "ssdd:0,1,0,1/2,2"])
def test_kernels_convert_far_coordinates(given: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "small_conversion", 0)
    i, j = np.array([5, 2**61, 2**31, 2**32 + 1]), np.array([2**62 - 1, 0, 2**31 - 1, 2**40])
    tensor = sl.from_coo([i, j], [1, 2, 3, 4], (2**62, 2**62), format=given)
    entries = dict(zip(zip(i.tolist(), j.tolist(), strict=True), (1, 2, 3, 4), strict=True))
    assert_same(sl.Tensor(convert(tensor.storage, as_format(form, 2))), entries, f"{given} to {form}")


def test_blocks_in_32_bits_are_taken_apart_in_64() -> None:
    """The numbers of blocks fitted into int32, the coordinates in them did not."""
    blocks = sl.from_arrays(
        "ssdd:0,1,0,1/2,2",
        (8, 2**32),
        {
            "pos0": np.array([0, 1], np.int32), "crd0": np.array([1], np.int32), "pos1": np.array([0, 1], np.int32),
            "crd1": np.array([2**31 - 1], np.int32), "values": np.array([1.0, 2, 3, 4]),
        },
    )  # fmt: skip
    other = sl.from_coo([[2, 7], [2**32 - 1, 5]], [10.0, 20.0], (8, 2**32), format="ss")
    made = sl.evaluate("R(i,j) = A(i,j) + B(i,j)", A=blocks, B=other, format="ss")
    last = 2**32
    assert meaning(made) == {(2, last - 2): 1, (2, last - 1): 12, (3, last - 2): 3, (3, last - 1): 4, (7, 5): 20}


def test_reductions_count_absent_entries_beyond_64_bits() -> None:
    A = sl.from_coo([[0, FAR - 1], [7, FAR - 1], [3, 2]], [5.0, -2.0], (FAR, FAR, 10), format="uqq")
    assert (A.sum(), A.max(), A.min(), A.any(), A.all(), A.prod()) == (3, 5, -2, True, False, 0)
    assert A.mean() == pytest.approx(3 / (10 * FAR**2))
    assert sl.asarray(A, fill=1.0).sum() == pytest.approx(10 * FAR**2 + 3 - 2)
    assert sl.asarray(A.astype(np.int64), fill=1).sum() == (10 * FAR**2 + 3 - 2 + 2**63) % 2**64 - 2**63
    assert sl.asarray(A.astype(np.int64), fill=3).prod() == (-10 * pow(3, 10 * FAR**2 - 2, 2**64) + 2**63) % 2**64 - 2**63
    negative = sl.full((2**62, 3), -1.0, format="ss")
    assert (negative.prod(), sl.full((2**62 - 1, 3), -1.0, format="ss").prod()) == (1, -1)


@pytest.mark.parametrize("form", ["csr", "csc", "ell", "bcsr(2,2)", "sd", "dense"])
def test_formats_that_have_a_place_for_every_coordinate_are_refused(form: str) -> None:
    A = sl.from_coo([[0, FAR - 1], [7, FAR - 1]], [5.0, 2.0], (FAR, FAR), format="coo")
    with pytest.raises(sl.FormatError, match=r"use a (format that stores entries only|compressed level)"):
        A.to(form)
    with pytest.raises(sl.FormatError, match="help: "):
        sl.evaluate("R(i,j) = A(i,j) + B(j,i)", A=A, B=A, format=form)
    with pytest.raises(sl.FormatError, match="there is no array of the shape 1000000000000 x 1000000000000"):
        A.to_numpy()


@pytest.mark.parametrize("shape", [(2**63,), (2**63 + 5,), (2**64,)])
def test_modes_that_64_bits_do_not_count_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(sl.ShapeError, match="does not fit in 64 bits"):
        sl.from_coo([[1]], [1.0], shape, format="s")
    with pytest.raises(sl.ShapeError, match="does not fit in 64 bits"):
        sl.from_coo([[2**63 - 1]], [1.0], format="s")
    with pytest.raises(sl.ShapeError, match="does not fit in 64 bits"):
        sl.from_coo([[1]], [1.0], (2**63 - 1,), format="sd:0,0/3")


@pytest.mark.parametrize("kind", [".tns", ".mtx", ".npz", ".tns.gz", ".mtx.gz"])
def test_files_are_read_straight_into_the_format_that_is_asked_for(kind: str, tmp_path: Path) -> None:
    """They went through csr, which asked for 8 TB."""
    A = sl.from_coo([[0, FAR - 1, 2**31], [7, FAR - 1, 2**32]], [5.0, 2.0, 1.5], (FAR, FAR), format="coo")
    path = tmp_path / f"far{kind}"
    sl.write(path, A)
    for form in ("coo", "dcsr", "ss:1,0", as_format("uq", 2)):
        read = sl.read(path, format=form)
        assert (read.shape, meaning(read)) == ((FAR, FAR), meaning(A))


@pytest.mark.parametrize(
    ("schedule", "shape"),
    [
        ("split(i,i0,i1,4) fuse(i1,j,f)", (40, 10**12)),
        ("divide(i,i0,i1,1000000) fuse(i1,j,f)", (10**12, 10**12)),
        ("split(j,j0,j1,1000000000) fuse(i,j0,f)", (10**12, 10**12)),
        ("divide(i,i0,i1,3) fuse(i0,i1,f)", (2**61, 5)),
        ("divide(i,i0,i1,7)", (2**62, 2**62)),
        ("divide(j,j0,j1,7)", (2**62, 2**62)),
    ],
)
def test_a_fused_loop_is_as_long_as_what_it_fuses(schedule: str, shape: tuple[int, int]) -> None:
    """The extents of all that the variables came from were multiplied, digits of them or not."""
    i, j = np.array([0, 3, shape[0] - 1]), np.array([shape[1] - 1, 0, shape[1] // 2])
    A = sl.from_coo([i, j], [1.0, 2.0, 4.0], shape, format="dcsr")
    assert sl.program("s = A(i,j)", formats={"A": "dcsr"}, schedule=schedule)(A).item() == 7


def test_a_fused_loop_that_is_too_long_says_how_long_it_is() -> None:
    A = sl.zeros((10**12, 10**12), format="dcsr")
    with pytest.raises(sl.ShapeError) as caught:
        sl.program("s = A(i,j)", formats={"A": "dcsr"}, schedule="split(i,i0,i1,10000000) fuse(i1,j,f)")(A)
    assert str(caught.value) == (
        "the schedule runs f over 10000000000000000000 coordinates, more than 64 bits count\n"
        "  help: turn a fused loop over coordinates into one over positions with pos(...), or leave the step out"
    )


def test_statements_of_very_many_variables_are_refused() -> None:
    """Sixty nested loops took a C compiler more than a minute."""
    order = 60
    A = sl.from_coo(np.array([[0, 1]] * order), [1.0, 2.0], (2,) * order, format="s" * order)
    names = ",".join(f"i{k}" for k in range(order))
    with pytest.raises(sl.NotationError) as caught:
        sl.evaluate(f"s = A({names})", A=A)
    assert str(caught.value) == (
        "a statement has at most 24 variables, and this one has 60\n"
        "  help: join modes that always stand together into one, or compute it in steps that have fewer"
    )
    assert A.to("u" + "q" * (order - 1)).nnz == 2


def test_kernels_of_many_nested_loops_are_left_as_they_are_written() -> None:
    order = 16
    A = sl.from_coo(np.array([[0, 1]] * order), [1.0, 2.0], (2,) * order, format="s" * order)
    names = ",".join(f"i{k}" for k in range(order))
    formats = {"A": A.format, "B": "u" + "q" * (order - 1), "R": A.format}
    kernel = sl.program(f"R({names}) = A({names}) + B({names})", formats)
    assert meaning(kernel(A, A)) == {(0,) * order: 2, (1,) * order: 4}
    assert "PLAINLY static int32_t" in kernel.source
    assert "PLAINLY" not in sl.program("R(i,j) = A(i,j) + B(i,j)", {"A": "csr", "B": "coo", "R": "csr"}).source


def test_operands_whose_modes_are_reordered_get_no_place_for_every_value_of_a_long_mode() -> None:
    """A few rows of 10^12 columns were converted to csc, which has a place for every column."""
    A = sl.from_coo([[0, 1], [7, FAR - 1]], [5.0, 2.0], (2, FAR), format="csr")
    B = sl.from_coo([[0, 1], [7, 3]], [1.0, 2.0], (2, FAR), format="ss:1,0")
    made = sl.evaluate("R(i,j) = A(i,j) + B(i,j)", A=A, B=B, format="ss:1,0")
    assert meaning(made) == {(0, 7): 6, (1, FAR - 1): 2, (1, 3): 2}
