"""The functions of the table as methods of tensors."""

from __future__ import annotations

from sparseloom.tensor.surface import elementwise, joining, linear, making, mapped, order, shape, statistics, table, without_nan
from sparseloom.tensor.tensor import Tensor

FAMILIES = (shape, joining, elementwise, mapped, statistics, without_nan, linear, order, making)
"""All families; that they are imported fills the table."""

for _name, _call in table.methods():
    setattr(Tensor, _name, _call)
    del _name, _call
