"""The one door through which tensors have things computed."""

from __future__ import annotations

from collections.abc import Mapping

from sparseloom.core.dtypes import DType
from sparseloom.execution import execute
from sparseloom.formats.format import Format
from sparseloom.formats.storage import Storage
from sparseloom.notation.nodes import Assign


def evaluate(
    assign: Assign,
    operands: Mapping[str, Storage],
    format: Format | None = None,
    dtype: DType | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Storage:
    """Compile and run a statement whose reductions are explicit.

    ``operands`` holds the storages of the right side's tensors by name, and for ``+=`` the initial value under the result's
    name. ``format`` and ``dtype`` are the result's; left out, the compiler derives them. ``sizes`` gives extents that no
    operand fixes, by the name of the variable.
    """
    return execute(assign, operands, format, dtype, sizes)
