"""The functions of the table as methods of tensors."""

from __future__ import annotations

from sparseloom.interop import registry
from sparseloom.surface import elementwise, joining, linear, making, mapped, order, pickling, shape, statistics, without_nan
from sparseloom.tensor import table
from sparseloom.tensor.tensor import Tensor

FAMILIES = (shape, joining, elementwise, mapped, statistics, without_nan, linear, order, making)
"""All families; that they are imported fills the table."""

for _name, _call in (*table.methods(), ("__reduce__", pickling.pickled)):
    setattr(Tensor, _name, _call)
    del _name, _call

registry.introduce(Tensor, {name: found.call for name, found in table.TABLE.items()})
