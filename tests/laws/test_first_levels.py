"""Results that take over the first levels of an operand: sums over its last ones, with dense levels below."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparseloom as sl

SIZES = (7, 6, 5)

# Statement, format of the result, what it is in NumPy.
STATEMENTS = (
    ("A(i,j) = B(i,j,k) * c(k)", "ss", "ijk,k->ij"),
    ("A(i,j) = B(i,j,k) * c(k)", "sd", "ijk,k->ij"),
    ("A(i,j,r) = B(i,j,k) * D(k,r)", "ssd", "ijk,kr->ijr"),
    ("A(i,j,r) = B(i,j,k) * D(k,r)", "sdd", "ijk,kr->ijr"),
    ("A(i,r) = B(i,j,k) * D(k,r)", "sd", "ijk,kr->ir"),
    ("A(i,j,k,r) = B(i,j,k) * D(k,r)", "sssd", "ijk,kr->ijkr"),
    ("A(i) = B(i,j,k)", "s", "ijk->i"),
    ("A(i,r,q) = B(i,j,k) * D(k,r) * D(j,q)", "sdd", "ijk,kr,jq->irq"),
)

SCHEDULES = {
    "ss": (
        "",
        "parallelize(i, CPUThread, NoRaces)",
        "divide(i, i0, i1, 3, B(i,j,k)); parallelize(i0, CPUThread, NoRaces)",
        "fuse(i, j, f); pos(f, p, B(i,j,k)); split(p, p0, p1, 4); parallelize(p0, CPUThread, NoRaces)",
        "fuse(i, j, f); fuse(f, k, g); pos(g, p, B(i,j,k)); divide(p, p0, p1, 5); parallelize(p0, CPUThread, Temporary)",
        "fuse(i, j, f); fuse(f, k, g); pos(g, p, B(i,j,k)); divide(p, p0, p1, 5); parallelize(p0, CPUThread, Atomics)",
        "parallelize(k, CPUVector, ParallelReduction)",
        "split(k, k0, k1, 2); reorder(i, k0, j, k1)",
    ),
    "ssd": (
        "",
        "reorder(r, i, j, k)",
        "reorder(i, j, r, k)",
        "bound(r, rb, 3, MaxExact); reorder(i, j, rb, k); parallelize(rb, CPUVector, NoRaces)",
        "fuse(i, j, f); fuse(f, k, g); pos(g, p, B(i,j,k)); divide(p, p0, p1, 5); parallelize(p0, CPUThread, Temporary)",
        "fuse(i, j, f); fuse(f, k, g); pos(g, p, B(i,j,k)); divide(p, p0, p1, 5); parallelize(p0, CPUThread, Atomics)",
        "precompute(B(i,j,k) * D(k,r), {r}, {rw}, w)",
        "parallelize(k, CPUThread, Temporary)",
    ),
}


def _operands(seed: int) -> tuple[sl.Tensor, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random(SIZES) < 0.3, rng.integers(1, 9, SIZES), 0).astype(float)
    dense[2] = 0
    rest = {"c": rng.integers(1, 9, SIZES[2]).astype(float), "D": rng.integers(1, 9, (6, 3)).astype(float)}
    return sl.asarray(dense, format="csf"), dense, rest


def _given(text: str, tensor: Any, rest: dict[str, Any], sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    given = {"B": tensor, **{name: array for name, array in rest.items() if f"{name}(" in text}}
    if "D(" in text and "D(j" not in text:
        given["D"] = given["D"][: sizes[2]]
    return given


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(("text", "form", "meaning"), STATEMENTS)
def test_first_levels_are_taken_over(text: str, form: str, meaning: str, target: str) -> None:
    tensor, dense, rest = _operands(1)
    if "D(j" in text:
        tensor, dense = sl.asarray(np.ascontiguousarray(dense[:, :, [0, 1, 2, 3, 4, 4]]), format="csf"), dense[:, :, [0, 1, 2, 3, 4, 4]]
    given = _given(text, tensor, rest)
    arrays = [dense, *(given[name] for name in ("c", "D") if name in given for _ in range(text.count(f"{name}(")))]
    for schedule in (None, ""):
        kernel = sl.program(text, {"B": "csf", "A": form}, schedule=schedule, target=target)
        made = kernel(**given)
        np.testing.assert_array_equal(made.to_numpy(), np.einsum(meaning, *arrays))
        assert "of B: only values are computed" in kernel.explain()


@pytest.mark.parametrize("target", ["c", "interpret"])
@pytest.mark.parametrize(("form", "schedule"), [(form, schedule) for form, found in SCHEDULES.items() for schedule in found])
def test_under_schedules(form: str, schedule: str, target: str) -> None:
    text, _, meaning = next(one for one in STATEMENTS if one[1] == form)
    tensor, dense, rest = _operands(2)
    given = _given(text, tensor, rest)
    made = sl.program(text, {"B": "csf", "A": form}, schedule=schedule, target=target)(**given)
    np.testing.assert_array_equal(made.to_numpy(), np.einsum(meaning, dense, *(given[n] for n in ("c", "D") if n in given)))
    assert made.nnz == (dense.sum(2) != 0).sum() * (1 if form == "ss" else 3)


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("A(i,j) = B(i,j,j)", {"B": "csf", "A": "ss"}),  # not every row has an entry on the diagonal
        ("A(i,j) = B(i,j,k) * E(i,k)", {"B": "csf", "E": "csr", "A": "ss"}),  # nor one that E has too
        ("A(i,j) = max(k, B(i,j,k))", {"B": "csf", "A": "ss"}),  # absent entries count
        ("A(i,j) = B(i,j,k)", {"B": "coo(3)", "A": "ss"}),  # rows repeat
        ("A(j,i) = B(i,j,k)", {"B": "csf", "A": "ss"}),  # in another order
    ],
)
def test_other_patterns_are_not(text: str, formats: dict[str, str]) -> None:
    size = 5
    rng = np.random.default_rng(3)
    dense = {"B": (rng.random((size,) * 3) < 0.3) * rng.integers(1, 9, (size,) * 3).astype(float), "E": np.eye(size)}
    given = {name: sl.asarray(dense[name], format=form) for name, form in formats.items() if name != "A"}
    kernel = sl.program(text, formats)
    meant = {"B(i,j,j)": "ijj->ij", "E(": "ijk,ik->ij", "A(j,i)": "ijk->ji"}
    made, operands = kernel(**given), [dense[name] for name in given]
    wanted = dense["B"].max(2) if "max" in text else np.einsum(next((m for part, m in meant.items() if part in text), "ijk->ij"), *operands)
    np.testing.assert_array_equal(made.to_numpy(), wanted)
    assert "only values are computed" not in kernel.explain()


def test_the_result_outlives_arrays_that_a_caller_changes() -> None:
    """Only the levels that are taken over are copied from arrays which are a caller's."""
    tensor, dense, _ = _operands(4)
    levels = [{f"{part}{k}": array.copy() for part, array in level.arrays.items()} for k, level in enumerate(tensor.storage.levels)]
    arrays = {name: array for level in levels for name, array in level.items()}
    given = sl.from_arrays("csf", SIZES, {**arrays, "values": tensor.storage.values.copy()})
    made = sl.program("A(i,j) = B(i,j,k)", {"B": "csf", "A": "ss"})(given)
    for array in arrays.values():
        array[:] = 0
    np.testing.assert_array_equal(made.to_numpy(), dense.sum(2))


@pytest.mark.parametrize(("text", "form", "meaning"), [one for one in STATEMENTS if "D(j" not in one[0]])
def test_what_has_no_entries_below_it_has_none_in_the_result(text: str, form: str, meaning: str) -> None:
    """Arrays of a caller's may have empty rows, which is no entry of a sum over them (decision 4)."""
    arrays = {
        "pos0": [0, 3], "crd0": [1, 4, 6], "pos1": [0, 2, 3, 5], "crd1": [0, 3, 2, 1, 5], "pos2": [0, 2, 2, 2, 2, 3], "crd2": [1, 3, 4],
        "values": [1.0, 2.0, 3.0],
    }  # fmt: skip
    given = sl.from_arrays("csf", SIZES, {name: np.array(one) for name, one in arrays.items()})
    _, _, rest = _operands(5)
    operands = _given(text, given, rest)
    wanted = np.einsum(meaning, given.to_numpy(), *(operands[name] for name in ("c", "D") if name in operands))
    kernel = sl.program(text, {"B": "csf", "A": form})
    for copied in (given, given.copy()):
        for _ in range(3):
            made = kernel(**{**operands, "B": copied})
            np.testing.assert_array_equal(made.to_numpy(), wanted)
            assert np.array_equal(made.nnz, _stored(wanted, form))
    bound = kernel.bind(**operands)
    assert bound().nnz == _stored(wanted, form)


def _stored(wanted: Any, form: str) -> int:
    """How many entries there are where the sums of whole rows are not 0, with everything below the last compressed level."""
    depth = form.rindex("s") + 1
    rows = wanted.reshape(*wanted.shape[:depth], -1).any(axis=-1)
    return int(rows.sum()) * int(np.prod(wanted.shape[depth:]))


def test_no_entries() -> None:
    for sizes in ((0, 3, 2), (3, 0, 2), (3, 2, 0), (3, 2, 2)):
        made = sl.program("A(i,j,r) = B(i,j,k) * D(k,r)", {"B": "csf", "A": "ssd"})(sl.zeros(sizes, format="csf"), np.ones((sizes[2], 4)))
        assert made.shape == (*sizes[:2], 4) and made.nnz == 0
