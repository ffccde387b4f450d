"""``A[A > 0.5]``: the values where a sparse mask of the same shape is true, by one product of both."""

from __future__ import annotations

import numpy as np

from sparseloom.formats.level import LevelData
from sparseloom.formats.pack import position_counts
from sparseloom.formats.parts import is_tree, where
from sparseloom.formats.storage import Storage, sealed
from sparseloom.tensor.operators import Statement, variables
from sparseloom.tensor.ordered import are_in_order
from sparseloom.tensor.picking import picked_format


def pick_where(storage: Storage, mask: Storage) -> Storage | None:
    """The values where a mask is true, in the order of the modes; None where some of these are not stored, or not in this order."""
    modes = tuple(range(len(storage.shape)))
    usual = all(are_in_order(each.format, modes) and is_tree(each.format) and each.fill == 0 for each in (storage, mask))
    if not usual or storage.shape != mask.shape or storage.device != "cpu" or mask.device != "cpu":
        return None
    true = mask if mask.values.all() else where(mask, mask.values)
    loops, statement = variables(len(modes)), Statement()
    factors = statement.access(storage, loops), statement.access(true, loops)
    both = statement.run(loops, statement.product(factors), storage.shape, storage.format)
    count = position_counts(both)[-1]
    if count != position_counts(true)[-1]:
        return None
    entries = LevelData({"pos": np.array((0, count), both.index_dtype), "crd": np.arange(count, dtype=both.index_dtype)})
    return sealed(Storage(picked_format(storage.format, 1), (count,), (entries,), both.values, storage.fill))
