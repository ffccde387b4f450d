"""Calls with something wrong in them: the class and the whole text of the error, and no operand is ever modified."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl

SPMV = "y(i) = A(i,j) * x(j)"
A = np.arange(6.0).reshape(2, 3)
x = np.array([1.0, 2.0, 4.0])
WANTED = A @ x
DTYPES = "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64, complex64, complex128"


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def with_indices(indices: np.ndarray) -> sp.csr_array:
    matrix = sp.csr_array(np.eye(2))
    matrix.indices = indices
    return matrix


REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "ragged coordinates": (
        lambda: sl.from_coo([[0, 1], [0]], [1.0, 2.0]),
        sl.ShapeError,
        "the lists do not form an array: setting an array element with a sequence. The requested array has an inhomogeneous shape after "
        "1 dimensions. The detected shape was (2,) + inhomogeneous part.",
    ),
    "truths for indices": (
        lambda: sl.asarray(with_indices(np.array([False, True]))),
        sl.StorageError,
        "index arrays must hold integers, not int32, bool",
    ),
    "one number for indices": (
        lambda: sl.asarray(with_indices(np.array(1))),
        sl.StorageError,
        "indptr and indices have 1 and 0 dimensions; they must have one",
    ),
    "words for coordinates": (
        lambda: sl.from_coo([["a", "b"], ["c", "d"]], [1.0, 2.0]),
        sl.StorageError,
        "coordinates must be integers, not <U1",
    ),
    "a coordinate that no size is beyond": (
        lambda: sl.from_coo([[2**63 - 1]], [1.0]),
        sl.ShapeError,
        "the shape (9223372036854775808,) has a size that does not fit in 64 bits",
    ),
    "a seed that is none": (
        lambda: sl.random((2, 2), seed="x"),
        sl.ShapeError,
        "the seed is an integer of at least 0, or None for a new one each time, not 'x'",
    ),
    "more positions than memory": (
        lambda: sl.zeros((2**62, 3), "csr"),
        sl.FormatError,
        "csr has a place for every coordinate of some modes, and those of 4611686018427387904 take 7.38e+10 GB, more than any memory has\n"
        "  help: use a format that stores entries only, such as coo or dcsr",
    ),
    "sizes that disagree": (
        lambda: sl.evaluate(SPMV, A=A, x=np.ones(4)),
        sl.ShapeError,
        "j runs to 3 in mode 1 of A, but to 4 in mode 0 of x\n  in y(i) = sum(j, A(i,j) * x(j))",
    ),
    "sizes that disagree, sparse": (
        lambda: sl.evaluate(SPMV, A=sp.csr_array(A), x=np.ones(4)),
        sl.ShapeError,
        "j runs to 3 in mode 1 of A, but to 4 in mode 0 of x\n  in y(i) = sum(j, A(i,j) * x(j))",
    ),
    "a variable without extent": (
        lambda: sl.evaluate("y(i,k) = A(i,j) * x(j)", A=A, x=x),
        sl.ShapeError,
        "nothing says how far k runs\n  in y(i,k) = sum(j, A(i,j) * x(j))\n  help: give it with sizes={'k': n}",
    ),
    "sizes= against an operand": (
        lambda: sl.evaluate(SPMV, A=A, x=x, sizes={"j": 7}),
        sl.ShapeError,
        "j runs to 7 in sizes, but to 3 in mode 1 of A\n  in y(i) = sum(j, A(i,j) * x(j))",
    ),
    "sizes= of an unknown variable": (
        lambda: sl.evaluate("y(i) = x(i)", x=x, sizes={"q": 3}),
        sl.ShapeError,
        "sizes names 'q', but the variables are i\n  in y(i) = x(i)",
    ),
    "a negative size": (
        lambda: sl.evaluate("y(i,k) = x(i)", x=x, sizes={"k": -1}),
        sl.ShapeError,
        "sizes says that k runs to -1; a size is a whole number, at least 0\n  in y(i,k) = x(i)",
    ),
    "a broken size": (
        lambda: sl.evaluate("y(i,k) = x(i)", x=x, sizes={"k": 2.5}),  # type: ignore[dict-item]
        sl.ShapeError,
        "sizes says that k runs to 2.5; a size is a whole number, at least 0\n  in y(i,k) = x(i)",
    ),
    "the wrong order": (
        lambda: sl.evaluate(SPMV, A=x, x=x),
        sl.ShapeError,
        "A has 2 modes in y(i) = A(i,j) * x(j), but the operand has shape (3,)",
    ),
    "a missing operand": (
        lambda: sl.evaluate(SPMV, A=A),
        sl.NotationError,
        "y(i) = A(i,j) * x(j) needs x, and nothing was given for it\n  help: pass x=...",
    ),
    "an operand too many": (
        lambda: sl.evaluate(SPMV, A=A, x=x, z=x),
        sl.NotationError,
        "there is no operand 'z' in y(i) = A(i,j) * x(j); there are A, x",
    ),
    "a position too many": (
        lambda: sl.program(SPMV)(A, x, x),
        sl.NotationError,
        "3 operands were given, but y(i) = A(i,j) * x(j) has 2: A, x",
    ),
    "an operand twice": (lambda: sl.program(SPMV)(A, x, A=A), sl.NotationError, "A was given twice, by position and by name"),
    "the result as an operand": (
        lambda: sl.evaluate(SPMV, A=A, x=x, y=WANTED),
        sl.NotationError,
        "there is no operand 'y' in y(i) = A(i,j) * x(j); there are A, x",
    ),
    "nothing to add to": (
        lambda: sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x),
        sl.NotationError,
        "y(i) += A(i,j) * x(j) adds to y, so it needs the initial value\n  help: pass y=..., or out=",
    ),
    "an initial value of another size": (
        lambda: sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x, y=np.zeros(5)),
        sl.ShapeError,
        "i runs to 5 in mode 0 of y, but to 2 in mode 0 of A\n  in y(i) += sum(j, A(i,j) * x(j))",
    ),
    "out of another shape": (
        lambda: sl.evaluate(SPMV, A=A, x=x, out=np.zeros(3)),
        sl.ShapeError,
        "out has shape (3,), but y has shape (2,)",
    ),
    "out of another dtype": (
        lambda: sl.evaluate(SPMV, A=A, x=x, out=np.zeros(2, np.float32)),
        sl.DTypeError,
        "out holds float32, but y is float64\n  help: pass dtype='float32'",
    ),
    "out of another format": (
        lambda: sl.evaluate("B(i,j) = A(i,j)", A=A, out=sl.asarray(sp.csr_array(A))),
        sl.FormatError,
        "out is csr, but B is dense(2)",
    ),
    "a read-only out": (lambda: sl.evaluate(SPMV, A=A, x=x, out=read_only(np.zeros(2))), sl.StorageError, "out is read-only"),
    "objects": (
        lambda: sl.evaluate(SPMV, A=A.astype(object), x=x),
        sl.DTypeError,
        f"values of type object are not supported; there are {DTYPES}",
    ),
    "longer precision": (
        lambda: sl.evaluate(SPMV, A=A.astype(np.longdouble), x=x),
        sl.DTypeError,
        f"values of type {np.dtype(np.longdouble)} are not supported; there are {DTYPES}",
    ),
    "a result in longer precision": (
        lambda: sl.evaluate(SPMV, A=A, x=x, dtype="longdouble"),
        sl.DTypeError,
        f"values of type {np.dtype(np.longdouble)} are not supported; there are {DTYPES}",
    ),
    "no array at all": (
        lambda: sl.evaluate(SPMV, A=A, x="abc"),
        sl.DTypeError,
        "a builtins.str cannot become a tensor; sl.asarray takes NumPy and SciPy arrays, numbers, lists of numbers, and tensors with "
        "__dlpack__ or __cuda_array_interface__",
    ),
    "a format of another order": (
        lambda: sl.evaluate(SPMV, A=A, x=x, format="csr"),
        sl.FormatError,
        "the format 'csr' is for tensors of order 2, but this tensor has order 1",
    ),
    "a format for no tensor": (
        lambda: sl.program(SPMV, formats={"Q": "csr"}),
        sl.NotationError,
        "formats names 'Q', but y(i) = A(i,j) * x(j) has y, A, x",
    ),
    "a logical accumulation into numbers": (
        lambda: sl.evaluate("y(i) += x(i)", x=x, y=x, semiring="or_and", dtype="float64"),
        sl.DTypeError,
        "logical_or accumulates truth values, so the result cannot be float64\n  help: leave dtype= away",
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_wrong_calls_say_what_is_wrong(what: str) -> None:
    call, kind, text = REFUSALS[what]
    before = A.tobytes(), x.tobytes()
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text
    assert (A.tobytes(), x.tobytes()) == before


@pytest.mark.parametrize("target", ["c", "interpret"])
def test_a_refused_out_keeps_its_values(target: str) -> None:
    out = np.array([7.0, 8.0, 9.0])
    with pytest.raises(sl.ShapeError):
        sl.evaluate(SPMV, A=A, x=x, out=out, target=target)
    np.testing.assert_array_equal(out, [7, 8, 9])


STRANGE_LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "read-only": read_only,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "negative strides": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "with gaps": lambda a: np.repeat(a, 2, axis=0)[::2],
    "Fortran order": np.asfortranarray,
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
}


@pytest.mark.parametrize("layout", STRANGE_LAYOUTS)
def test_strange_layouts_are_read_and_left_alone(layout: str) -> None:
    matrix, vector = (STRANGE_LAYOUTS[layout](array) for array in (A, x))
    flags = [str(array.flags) for array in (matrix, vector)]
    before = matrix.tobytes(), vector.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.ConversionWarning)
        np.testing.assert_array_equal(sl.evaluate(SPMV, A=matrix, x=vector).to_numpy(), WANTED)
    assert (matrix.tobytes(), vector.tobytes()) == before
    assert [str(array.flags) for array in (matrix, vector)] == flags


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_read_only_sparse_operands_are_read_and_left_alone(kind: Any) -> None:
    matrix = kind(A)
    for name in ("data", "indices", "indptr", "row", "col"):
        if hasattr(matrix, name):
            getattr(matrix, name).flags.writeable = False
    np.testing.assert_array_equal(sl.evaluate(SPMV, A=matrix, x=x).to_numpy(), WANTED)


def test_an_out_that_is_an_operand_is_filled_as_if_it_were_not() -> None:
    vector = np.arange(4.0)
    sl.evaluate("y(i) = M(i,j) * v(j)", M=np.ones((4, 4)), v=vector, out=vector)
    np.testing.assert_array_equal(vector, [6, 6, 6, 6])
    matrix = np.arange(9.0).reshape(3, 3)
    wanted = matrix.T.copy()
    sl.evaluate("C(i,j) = B(j,i)", B=matrix, out=matrix)
    np.testing.assert_array_equal(matrix, wanted)


def test_an_out_that_overlaps_a_part_of_an_operand() -> None:
    memory = np.arange(6.0)
    wanted = memory[:4] + memory[2:].sum()
    sl.evaluate("y(i) = a(i) + b(j)", a=memory[:4].copy(), b=memory[2:], out=memory[:4])
    np.testing.assert_array_equal(memory[:4], wanted)


def test_the_initial_value_is_changed_only_where_it_is_out() -> None:
    start = np.array([10.0, 20.0])
    result = sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x, y=start)
    np.testing.assert_array_equal(start, [10, 20])
    np.testing.assert_array_equal(result.to_numpy(), start + WANTED)
    sl.evaluate("y(i) += A(i,j) * x(j)", A=A, x=x, out=start)
    np.testing.assert_array_equal(start, np.array([10, 20]) + WANTED)
