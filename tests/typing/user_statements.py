"""Statements and kernels, as a user types them."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import sparseloom as sl


def spmv(x: npt.NDArray[np.float64]) -> sl.Tensor:
    kernel = sl.program("y(i) = A(i,j) * x(j)", formats={"A": "csr"}, schedule="parallelize(i,CPUThread,NoRaces)")
    assert_type(kernel, sl.Kernel)
    assert_type(kernel.source, str)
    y = sl.evaluate("y(i) = A(i,j) * x(j)", A=sl.eye(3), x=x)
    assert_type(sl.get_threads(), int)
    return y
