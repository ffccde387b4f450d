"""Sparseloom: a compiler for sparse and dense tensor algebra.

>>> import numpy as np, scipy.sparse as sp, sparseloom as sl
>>> A = sp.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
>>> sl.evaluate("y(i) = A(i,j) * x(j)", A=A, x=np.array([10.0, 100.0])).to_numpy()
array([ 10., 320.])

Importing the package loads next to nothing. A name is loaded with its module when it is first asked for.
"""

# ruff: noqa: F401 - what is imported for type checkers is offered by __all__

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import sparseloom.core.starting  # first of all: loading the rest takes time in which the command may be interrupted
import sparseloom.plan

if TYPE_CHECKING:  # isort: off
    from sparseloom import accelerate
    from sparseloom.core.algebra import Semiring
    from sparseloom.core.errors import (
        CompilerBug, ConversionWarning, DeviceError, DTypeError, FormatError, NotationError, RaceWarning, ScheduleError, ShapeError,
        SparseloomError, SparseloomWarning, StorageError, ToolchainError,
    )  # fmt: skip
    from sparseloom.calls.evaluation import einsum, evaluate, plan, program
    from sparseloom.formats.format import Format
    from sparseloom.formats.named import bcsr, coo, csc, csf, csr, dcsc, dcsr, dense, dia, ell
    from sparseloom.calls.kernel import Kernel
    from sparseloom.notation.nodes import Assembly, IndexVar, Merge, Races, Unit
    from sparseloom.relations.bound import BoundType
    from sparseloom.toolchain.shelf import release_memory
    from sparseloom.toolchain.teams import get_threads, set_threads, threads
    from sparseloom.schedule.schedule import Schedule
    from sparseloom.io import read, write
    from sparseloom.surface import array_api
    from sparseloom.tensor import (
        Builder, Expression, Tensor, asarray, deferred, from_arrays, from_coo, full, indices, random, zeros,
    )  # fmt: skip
    from sparseloom.tensor.bound_kernel import BoundKernel
    from sparseloom.tensor.neighbours import SparsePath, from_networkx
    from sparseloom.surface.elementwise import (
        allclose, angle, array_equal, astype, clip, diff, divmod, fix, frexp, isclose, isin, modf, nan_to_num, positive, round, where,
    )  # fmt: skip
    from sparseloom.surface.joining import block, concat, concatenate, hstack, pad, repeat, stack, tile, unstack, vstack
    from sparseloom.surface.linear import (
        diag, diagonal, dot, inner, kron, matmul, matrix_power, outer, tensordot, trace, tril, triu, vdot, vecdot,
    )  # fmt: skip
    from sparseloom.surface.making import (
        arange, builder, eliminate_zeros, empty, empty_like, eye, full_like, linspace, meshgrid, ones, ones_like, sum_duplicates,
        zeros_like,
    )  # fmt: skip
    from sparseloom.surface.order import (
        argsort, argwhere, flatnonzero, nonzero, searchsorted, sort, take, take_along_axis, topk, unique, unique_all, unique_counts,
        unique_inverse, unique_values,
    )  # fmt: skip
    from sparseloom.surface.shape import (
        broadcast_arrays, broadcast_to, expand_dims, flatten, flip, fliplr, flipud, matrix_transpose, moveaxis, permute_dims, ravel,
        reshape, roll, squeeze, swapaxes, transpose,
    )  # fmt: skip
    from sparseloom.surface.statistics import (
        argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod, cumulative_sum, mean, norm, ptp, std, var,
    )  # fmt: skip
    from sparseloom.surface.without_nan import (
        nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
    )  # fmt: skip
    from sparseloom.tensor.signatures import Binary, BinaryOfTensors, Extreme, Total, Truth, Unary, UnaryOfTensors

    CPUThread, CPUVector = Unit.CPUThread, Unit.CPUVector
    GPUBlock, GPUWarp, GPUThread = Unit.GPUBlock, Unit.GPUWarp, Unit.GPUThread
    NoRaces, IgnoreRaces, Atomics = Races.NoRaces, Races.IgnoreRaces, Races.Atomics
    Temporary, ParallelReduction = Races.Temporary, Races.ParallelReduction
    MinExact, MinConstraint = BoundType.MinExact, BoundType.MinConstraint
    MaxExact, MaxConstraint = BoundType.MaxExact, BoundType.MaxConstraint
    TwoFinger, Gallop = Merge.TwoFinger, Merge.Gallop
    Append, Insert = Assembly.Append, Assembly.Insert

    # Functions that are made and not written.
    absolute: Unary
    arccos: Unary
    arcsin: Unary
    arctan: Unary
    cbrt: Unary
    ceil: Unary
    conjugate: Unary
    cos: Unary
    cosh: Unary
    exp: Unary
    expm1: Unary
    floor: Unary
    imag: Unary
    isfinite: Unary
    isinf: Unary
    isnan: Unary
    log: Unary
    log10: Unary
    log1p: Unary
    log2: Unary
    logical_not: Unary
    negative: Unary
    real: Unary
    sign: Unary
    sin: Unary
    sinh: Unary
    sqrt: Unary
    square: Unary
    tan: Unary
    tanh: Unary
    trunc: Unary
    add: Binary
    arctan2: Binary
    divide: Binary
    equal: Binary
    greater: Binary
    greater_equal: Binary
    hypot: Binary
    less: Binary
    less_equal: Binary
    logical_and: Binary
    logical_or: Binary
    logical_xor: Binary
    maximum: Binary
    minimum: Binary
    multiply: Binary
    not_equal: Binary
    power: Binary
    subtract: Binary
    all: Truth
    any: Truth
    arccosh: UnaryOfTensors
    arcsinh: UnaryOfTensors
    arctanh: UnaryOfTensors
    deg2rad: UnaryOfTensors
    degrees: UnaryOfTensors
    exp2: UnaryOfTensors
    fabs: UnaryOfTensors
    invert: UnaryOfTensors
    rad2deg: UnaryOfTensors
    radians: UnaryOfTensors
    reciprocal: UnaryOfTensors
    rint: UnaryOfTensors
    signbit: UnaryOfTensors
    spacing: UnaryOfTensors
    bitwise_and: BinaryOfTensors
    bitwise_or: BinaryOfTensors
    bitwise_xor: BinaryOfTensors
    copysign: BinaryOfTensors
    float_power: BinaryOfTensors
    floor_divide: BinaryOfTensors
    fmax: BinaryOfTensors
    fmin: BinaryOfTensors
    fmod: BinaryOfTensors
    gcd: BinaryOfTensors
    heaviside: BinaryOfTensors
    lcm: BinaryOfTensors
    ldexp: BinaryOfTensors
    left_shift: BinaryOfTensors
    logaddexp: BinaryOfTensors
    logaddexp2: BinaryOfTensors
    nextafter: BinaryOfTensors
    remainder: BinaryOfTensors
    right_shift: BinaryOfTensors
    max: Extreme
    min: Extreme
    prod: Total
    sum: Total

__version__ = "0.1.0"
globals().pop("plan", None)

# Where each name stands: in a module, or in a class of one.
_HOMES = {
    "sparseloom.core.algebra": "Semiring",
    "sparseloom.core.errors": """
        CompilerBug ConversionWarning DeviceError DTypeError FormatError NotationError RaceWarning ScheduleError ShapeError
        SparseloomError SparseloomWarning StorageError ToolchainError
    """,
    "sparseloom.calls.evaluation": "einsum evaluate plan program",
    "sparseloom.formats.format": "Format",
    "sparseloom.formats.named": "bcsr coo csc csf csr dcsc dcsr dense dia ell",
    "sparseloom.calls.kernel": "Kernel",
    "sparseloom.notation.nodes": "Assembly IndexVar Merge Races Unit",
    "sparseloom.notation.nodes:Assembly": "Append Insert",
    "sparseloom.notation.nodes:Merge": "TwoFinger Gallop",
    "sparseloom.notation.nodes:Races": "NoRaces IgnoreRaces Atomics Temporary ParallelReduction",
    "sparseloom.notation.nodes:Unit": "CPUThread CPUVector GPUBlock GPUWarp GPUThread",
    "sparseloom.relations.bound": "BoundType",
    "sparseloom.relations.bound:BoundType": "MinExact MinConstraint MaxExact MaxConstraint",
    "sparseloom.toolchain.shelf": "release_memory",
    "sparseloom.toolchain.teams": "get_threads set_threads threads",
    "sparseloom.schedule.schedule": "Schedule",
    "sparseloom.io": "read write",
    "sparseloom.surface": "array_api",
    "sparseloom.tensor": "Builder Expression Tensor asarray deferred from_arrays from_coo full indices random zeros",
    "sparseloom.tensor.bound_kernel": "BoundKernel",
    "sparseloom.tensor.neighbours": "SparsePath from_networkx",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = [
    "Append", "Atomics", "BoundKernel", "Builder", "CPUThread", "CPUVector", "CompilerBug", "ConversionWarning", "DTypeError",
    "DeviceError", "Expression", "Format", "FormatError", "GPUBlock", "GPUThread", "GPUWarp", "Gallop", "IgnoreRaces", "IndexVar",
    "Insert", "Kernel", "MaxConstraint", "MaxExact", "MinConstraint", "MinExact", "NoRaces", "NotationError", "ParallelReduction",
    "RaceWarning", "Schedule", "ScheduleError", "Semiring", "ShapeError", "SparsePath", "SparseloomError", "SparseloomWarning",
    "StorageError", "Temporary", "Tensor", "ToolchainError", "TwoFinger", "__version__", "accelerate", "array_api", "asarray", "bcsr",
    "coo", "csc", "csf", "csr", "dcsc", "dcsr", "deferred", "dense", "dia", "einsum", "ell", "evaluate", "from_arrays", "from_coo",
    "from_networkx", "full", "get_threads", "indices", "plan", "program", "random", "read", "release_memory", "set_threads", "threads",
    "write", "zeros",
]  # fmt: skip
# Functions on whole tensors, out of the table of all of them (tensor/table.py). Type checkers read this list too.
__all__ += [
    "absolute", "add", "all", "allclose", "angle", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argsort", "argwhere", "array_equal", "astype", "bitwise_and", "bitwise_or", "bitwise_xor", "block",
    "broadcast_arrays", "broadcast_to", "builder", "cbrt", "ceil", "clip", "concat", "concatenate", "conjugate", "copysign", "cos",
    "cosh", "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad", "degrees", "diag", "diagonal", "diff",
    "divide", "divmod", "dot", "eliminate_zeros", "empty", "empty_like", "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "fabs",
    "fix", "flatnonzero", "flatten", "flip", "fliplr", "flipud", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "frexp", "full_like", "gcd", "greater", "greater_equal", "heaviside", "hstack", "hypot", "imag", "inner", "invert", "isclose",
    "isfinite", "isin", "isinf", "isnan", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "linspace", "log", "log10",
    "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul", "matrix_power",
    "matrix_transpose", "max", "maximum", "mean", "meshgrid", "min", "minimum", "modf", "moveaxis", "multiply", "nan_to_num",
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar",
    "negative", "nextafter", "nonzero", "norm", "not_equal", "ones", "ones_like", "outer", "pad", "permute_dims", "positive", "power",
    "prod", "ptp", "rad2deg", "radians", "ravel", "real", "reciprocal", "remainder", "repeat", "reshape", "right_shift", "rint", "roll",
    "round", "searchsorted", "sign", "signbit", "sin", "sinh", "sort", "spacing", "sqrt", "square", "squeeze", "stack", "std",
    "subtract", "sum", "sum_duplicates", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "topk", "trace",
    "transpose", "tril", "triu", "trunc", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "var",
    "vdot", "vecdot", "vstack", "where", "zeros_like",
]  # fmt: skip
__all__.sort()
_FUNCTIONS = frozenset(__all__) - _HOME.keys() - {"__version__", "accelerate"}


if not TYPE_CHECKING:  # a checker that saw it would take every name for one of ours

    def __getattr__(name: str) -> Any:
        """A public name, found and kept when it is first asked for."""
        if name == "accelerate":
            return import_module("sparseloom.accelerate")
        if name not in _HOME and name not in _FUNCTIONS:
            raise AttributeError(f"module 'sparseloom' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        found = globals()[name] = _at_home(name) if name in _HOME else _load("sparseloom.surface").TABLE[name].call
        return found


def _load(module: str) -> Any:
    """A module; with tensors comes what makes kernels of their assignments."""
    if module.startswith(("sparseloom.tensor", "sparseloom.surface", "sparseloom.io")):
        import_module("sparseloom.calls.assigned")
    return import_module(module)


def _at_home(name: str) -> Any:
    module, _, owner = _HOME[name].partition(":")
    found = _load(module)
    return getattr(getattr(found, owner) if owner else found, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
