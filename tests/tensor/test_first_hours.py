"""What people try in their first hours with the package, and what they are told where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.surface.ranks import ranked

SPARSE = np.array([[[0.0, 2.0, 0.0], [0.0, 0.0, np.nan]], [[1.0, 0.0, 0.0], [4.0, 0.0, np.nan]]])


def values(made):
    return made.to_numpy() if isinstance(made, sl.Tensor) else np.asarray(made)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("ddof", [0, 1, 2])
@pytest.mark.parametrize("shape", [(2, 2, 3), (2, 0, 3), (1, 1, 3)])
def test_reductions_that_leave_out_nan_are_nan_where_there_is_nothing(dtype, name, axis, ddof, shape):
    array = SPARSE.astype(dtype)[tuple(map(slice, shape))]
    options = {} if name == "nanmean" else {"ddof": ddof}
    found, wanted = (getattr(library, name)(x, axis=axis, **options) for library, x in ((sl, sl.asarray(array).to("sss")), (np, array)))
    assert values(found).dtype == wanted.dtype
    assert np.allclose(values(found), wanted, rtol=1e-5, equal_nan=True)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,), (2, 0, 3)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_nothing_are_zero_as_in_numpy(shape, keepdims):
    array = np.zeros(shape)
    tensor = sl.asarray(array).to("s" * len(shape))
    axes = [0] if len(shape) == 1 else [0, -1, (0, 1)]
    for axis in axes:
        for order in (1, np.inf):
            found = sl.norm(tensor, order, axis, keepdims)
            assert np.array_equal(values(found), np.linalg.norm(array, order, axis, keepdims))


def test_ufuncs_accumulate():
    array = np.array([[0.0, 2.0], [3.0, 0.0]])
    tensor = sl.asarray(array).to("csr")
    assert np.array_equal(values(np.add.accumulate(tensor, axis=1)), np.add.accumulate(array, axis=1))
    assert np.array_equal(values(np.multiply.accumulate(tensor)), np.multiply.accumulate(array))


def test_a_builder_takes_no_places_at_all():
    builder = sl.zeros((3, 4), format="csr").builder()
    builder[[]] = 1.0
    assert builder.build().nnz == 0


def test_a_builder_says_what_it_will_merge():
    builder = sl.eye(3).builder()
    builder[0, 1] = 5.0
    builder[1:, 0] = 2.0
    assert repr(builder) == "<Builder: 3 x 3, csr, float64; build() sorts 3 entries that were set into 3 that are stored>"
    assert builder.build().nnz == 6
    assert repr(builder) == "<Builder: 3 x 3, csr, float64; build() has nothing to do>"


def test_a_name_that_is_not_there_can_be_looked_for():
    with pytest.raises(AttributeError) as told:
        sl.einsm  # noqa: B018
    assert told.value.name == "einsm"
    assert told.value.obj is sl


def test_an_option_of_program_is_not_taken_for_an_operand():
    with pytest.raises(sl.NotationError) as told:
        sl.evaluate("y(i) = x(i)", x=np.ones(2), schedule="")
    assert str(told.value) == "there is no operand 'schedule' in y(i) = x(i); there are x\n  help: sl.program takes schedule= and formats="


def test_a_format_is_not_made_of_text():
    with pytest.raises(sl.FormatError) as told:
        sl.Format("csr")
    assert str(told.value) == (
        "a Format is made of levels, not of the text 'csr'\n"
        "  help: every format= and formats= takes text, and A.to('csr'); named ones are values, as sl.csr is"
    )


def test_a_function_that_is_nearly_one_without_a_place_in_statements():
    with pytest.raises(sl.NotationError) as told:
        sl.evaluate("y(i) = rond(x(i))", x=np.ones(2))
    assert "there is no round either; statements have floor, ceil and trunc" in str(told.value)


def test_powers_of_truths_are_not_said_to_be_refused_by_numpy():
    truths = sl.asarray(np.array([True, False]))
    with pytest.raises(sl.DTypeError) as told:
        sl.power(truths, truths)
    assert str(told.value) == "power is not defined on truth values; convert one of them with astype"


def test_bound_kernels_and_paths_tell_what_they_are():
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"})
    assert repr(kernel.bind(np.eye(2), np.ones(2))) == "<sparseloom bound kernel: computes y>"
    pytest.importorskip("opt_einsum")
    assert repr(sl.SparsePath(0.1, 1.0)) == "SparsePath(0.1, 1)"


def test_complex_numbers_descend_by_their_real_parts_first():
    numbers = np.array([1 + 2j, 3 - 1j, 1 + 5j, 3 - 1j, np.nan + 1j])
    assert ranked(numbers, np.array([0]), descending=True).tolist() == [4, 1, 3, 2, 0]
    assert ranked(numbers, np.array([0])).tolist() == np.argsort(numbers, kind="stable").tolist()
