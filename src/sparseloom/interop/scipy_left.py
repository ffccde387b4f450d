"""SciPy's sparse arrays on the left of an operator: ``A @ T`` is ours to compute, as ``T @ A`` is.

SciPy asks an operand that it does not know for an array. If it gets one object instead, it leaves the operator to the operand, and Python
goes on to ``T.__rmatmul__``. Anyone else who asks a sparse tensor for an array is refused, so it matters who asks.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ASKING = frozenset("_matmul_dispatch multiply _multiply_2d_with_broadcasting _comparison _divide".split())
_OPERATORS = frozenset(f"__{name}__" for name in "matmul mul truediv eq ne lt le gt ge".split())


def is_operand_of_scipy() -> bool:
    """Whether the caller's caller, who asks for an array, is one of SciPy's operators."""
    asking: FrameType | None = sys._getframe(2)
    if asking is None or asking.f_code.co_name not in _ASKING:
        return False
    while asking is not None and asking.f_globals.get("__name__", "").startswith("scipy.sparse."):
        if asking.f_code.co_name in _OPERATORS:
            return True
        asking = asking.f_back
    return False


def object_of(value: Any) -> NDArray[Any]:
    """An array that holds one object, which is what NumPy makes of an object that is no array."""
    holder = np.empty((), object)
    holder[()] = value
    return holder


def multiplies_as_matrix(kind: type) -> bool:
    """Whether ``*`` of a class of SciPy's is the product of matrices, as that of its matrices is and that of its arrays is not."""
    return any(parent.__name__ == "spmatrix" and parent.__module__.startswith("scipy.sparse.") for parent in kind.__mro__)
