"""Sparseloom: a compiler for sparse and dense tensor algebra.

>>> import numpy as np, scipy.sparse as sp, sparseloom as sl
>>> A = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
>>> sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=np.array([10.0, 100.0])).to_numpy()
array([ 10., 320.])
"""

from __future__ import annotations

from sparseloom.core.algebra import Semiring
from sparseloom.core.errors import (
    CompilerBug,
    ConversionWarning,
    DeviceError,
    DTypeError,
    FormatError,
    NotationError,
    RaceWarning,
    ScheduleError,
    ShapeError,
    SparseloomError,
    SparseloomWarning,
    StorageError,
    ToolchainError,
)
from sparseloom.formats.format import Format
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, ell
from sparseloom.notation.nodes import IndexVar
from sparseloom.program import Bound, Kernel, einsum, evaluate, program
from sparseloom.tensor import Expression, Tensor, asarray, from_arrays, from_coo, full, indices, random, read, write, zeros
from sparseloom.tensor.functions import *  # noqa: F403
