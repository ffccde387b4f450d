"""What shares memory: every operation in every format, with arrays that were asked for before it and after it.

The table is docs/copies-and-views.md: a tensor shares memory, as far as anybody can see, with the caller's arrays it was made over and
with arrays that it gave away, and with no other tensor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attack import aliases
from attack.aliases import FORMATS, OPERATIONS, VIEWS, apply, arrays_through, made_in, of_a_caller, worth, write
from conformance.kernels import interpret_small_kernels

import sparseloom as sl
from sparseloom.programs.execution import Specialization


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


def _squares() -> tuple[Any, Any]:
    A = sl.asarray(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 0]])).to("csr")
    return sl.program("C(i,j) = A(i,k) * B(k,j)", formats={"A": "csr", "B": "csr", "C": "csr"}), A


@pytest.mark.parametrize("way", ["eliminate_zeros", "sum_duplicates", "data"])
def test_a_result_is_computed_again_after_scipy_moved_its_entries(way: str) -> None:
    kernel, A = _squares()
    for again in (kernel.compute, kernel):
        C = kernel.assemble(A, A)
        matrix = C.to_scipy()
        if way == "eliminate_zeros":
            matrix.data[0] = 0
            matrix.eliminate_zeros()
        elif way == "sum_duplicates":
            matrix.indices[:] = 0
            matrix.has_canonical_format = False
            matrix.sum_duplicates()
        else:
            matrix.data[:] = 5
        for _ in range(2):
            again(A, A, out=C)
            np.testing.assert_array_equal(C.to_numpy(), A.to_numpy() @ A.to_numpy())


def test_what_an_operand_was_assembled_with_is_not_changed_by_its_arrays() -> None:
    kernel, A = _squares()
    C = kernel.assemble(A, A)
    matrix = A.to_scipy()
    matrix.data[0] = 0
    matrix.eliminate_zeros()
    with pytest.raises(sl.StorageError, match="not stored as it was when C was assembled"):
        kernel.compute(A, A, out=C)


def test_a_conversion_that_is_kept_follows_the_arrays_of_its_operand() -> None:
    _, A = _squares()
    kernel = sl.program("C(i,j) = A(j,i) + B(i,j)", formats={"A": "csr", "B": "csr", "C": "csr"})
    B = A.copy()
    np.testing.assert_array_equal(kernel(B, A).to_numpy(), B.to_numpy().T + A.to_numpy())
    B.arrays["crd1"][:] = [0, 1, 1, 2]
    np.testing.assert_array_equal(kernel(B, A).to_numpy(), B.to_numpy().T + A.to_numpy())


@pytest.mark.parametrize("share", [lambda y: +y, lambda y: y.T, lambda y: y[:], lambda y: y.reshape(3)])
def test_an_output_that_is_recalled_is_copied_once_another_tensor_has_it(share: Any) -> None:
    kernel, x, y = sl.program("y(i) = 2 * x(i)"), np.ones(3), sl.zeros(3)
    for _ in range(4):  # from the third call on it is recalled
        kernel(x, out=y)
    other = share(y)
    x[:] = 5
    kernel(x, out=y)
    np.testing.assert_array_equal(other.to_numpy(), [2, 2, 2])
    np.testing.assert_array_equal(y.to_numpy(), [10, 10, 10])


def test_a_bound_kernel_reads_and_writes_the_arrays_of_its_tensors_alone() -> None:
    kernel, x = sl.program("y(i) = 2 * x(i)"), sl.asarray(np.ones(3), copy=True)
    twin = +x
    bound = kernel.bind(x)
    result = bound()
    kept = +result
    x.arrays["values"][:] = 5
    np.testing.assert_array_equal(bound().to_numpy(), [10, 10, 10])
    np.testing.assert_array_equal(kept.to_numpy(), [2, 2, 2])
    np.testing.assert_array_equal(twin.to_numpy(), [1, 1, 1])


def test_the_only_owner_gives_its_own_memory() -> None:
    y = sl.asarray(np.arange(6.0), copy=True)
    assert np.shares_memory(y.to_numpy(), y.storage.values)
    z = sl.asarray(np.arange(6.0), copy=True).reshape(2, 3)  # the tensor that had the memory before is gone
    values = z.storage.values
    assert np.shares_memory(z.to_numpy(), values)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_tensor_out_of_a_wrapper_is_a_tensor_of_its_own(form: str, rng: np.random.Generator) -> None:
    x = made_in(form, rng)
    unwrapped, before = sl.asarray(x.to_xarray()), worth(x)
    x.arrays["values"][:] = 17
    assert same(worth(unwrapped), before)


def test_two_threads_may_share_and_write_at_once() -> None:
    for _ in range(100):
        x, shared, start = sl.asarray(np.ones(50), copy=True), [], threading.Barrier(2)

        def share(x: Any = x, shared: list[Any] = shared, start: Any = start) -> None:
            start.wait()
            shared.append(+x)

        thread = threading.Thread(target=share)
        thread.start()
        start.wait()
        x.arrays["values"][:] = 2
        thread.join()
        before = worth(shared[0])
        x.arrays["values"][:] = 3
        assert same(worth(shared[0]), before)
