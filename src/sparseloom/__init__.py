"""Sparseloom: a compiler for sparse and dense tensor algebra.

>>> import numpy as np, scipy.sparse as sp, sparseloom as sl
>>> A = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
>>> sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=np.array([10.0, 100.0])).to_numpy()
array([ 10., 320.])
"""

from __future__ import annotations

from typing import Any

import sparseloom.core.starting

# isort: split
import sparseloom.assigned  # noqa: F401 - it tells schedules how kernels are made
from sparseloom import accelerate
from sparseloom.core.algebra import Semiring
from sparseloom.formats.format import Format
from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell
from sparseloom.kernel import Kernel
from sparseloom.notation.nodes import Assembly, IndexVar, Merge, Races, Unit
from sparseloom.program import einsum, evaluate, plan, program
from sparseloom.relations.bound import BoundType
from sparseloom.runtime.shelf import release_memory
from sparseloom.runtime.teams import get_threads, set_threads
from sparseloom.schedule.schedule import Schedule
from sparseloom.tensor import (
    Builder,
    Expression,
    Tensor,
    array_api,
    asarray,
    from_arrays,
    from_coo,
    full,
    indices,
    random,
    read,
    write,
    zeros,
)
from sparseloom.tensor.bound_kernel import BoundKernel
from sparseloom.tensor.neighbours import SparsePath, from_networkx
from sparseloom.tensor.surface.table import TABLE

from sparseloom.core.errors import (  # isort: skip
    CompilerBug, ConversionWarning, DeviceError, DTypeError, FormatError, NotationError, RaceWarning, ScheduleError, ShapeError,
    SparseloomError, SparseloomWarning, StorageError, ToolchainError,
)
__version__ = "0.1.0"

CPUThread, CPUVector = Unit.CPUThread, Unit.CPUVector
GPUBlock, GPUWarp, GPUThread = Unit.GPUBlock, Unit.GPUWarp, Unit.GPUThread
NoRaces, IgnoreRaces, Atomics = Races.NoRaces, Races.IgnoreRaces, Races.Atomics
Temporary, ParallelReduction = Races.Temporary, Races.ParallelReduction
MinExact, MinConstraint = BoundType.MinExact, BoundType.MinConstraint
MaxExact, MaxConstraint = BoundType.MaxExact, BoundType.MaxConstraint
TwoFinger, Gallop = Merge.TwoFinger, Merge.Gallop
Append, Insert = Assembly.Append, Assembly.Insert

__all__ = [
    "Append", "Atomics", "BoundKernel", "Builder", "CPUThread", "CPUVector", "CompilerBug", "ConversionWarning", "DTypeError",
    "DeviceError", "Expression", "Format", "FormatError", "GPUBlock", "GPUThread", "GPUWarp", "Gallop", "IgnoreRaces", "IndexVar",
    "Insert", "Kernel", "MaxConstraint", "MaxExact", "MinConstraint", "MinExact", "NoRaces", "NotationError", "ParallelReduction",
    "RaceWarning", "Schedule", "ScheduleError", "Semiring", "ShapeError", "SparsePath", "SparseloomError", "SparseloomWarning",
    "StorageError", "Temporary", "Tensor", "ToolchainError", "TwoFinger", "__version__", "accelerate", "array_api", "asarray", "bcsr",
    "coo", "csc", "csf", "csr", "dcsc", "dcsr", "dense", "dia", "einsum", "ell", "evaluate", "from_arrays", "from_coo",
    "from_networkx", "full", "get_threads", "indices", "plan", "program", "random", "read", "release_memory", "set_threads", "write",
    "zeros",
]  # fmt: skip
__all__ += [name for name in TABLE if name not in __all__]  # functions on whole tensors stand in one table
__all__.sort()


def __getattr__(name: str) -> Any:
    """A function on whole tensors, out of the table of all of them."""
    if name not in TABLE:
        raise AttributeError(f"module 'sparseloom' has no attribute {name!r}")
    found = globals()[name] = TABLE[name].call
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *TABLE})
