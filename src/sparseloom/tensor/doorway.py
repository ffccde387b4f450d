"""The door of one kernel: operands are passed as they are, if it was called on their like before.

Objects that come again and again are left to the long way once, which then recalls them (``tensor.recall``): whoever knows them need not
look at all of them each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sparseloom.formats.storage import Storage
from sparseloom.interop.scipy import MATRICES, lay_matrix
from sparseloom.programs.chain import Chain
from sparseloom.programs.dispatch import Doors, Known
from sparseloom.programs.execution import Specialization
from sparseloom.programs.laying import lay
from sparseloom.programs.ways import Filled, Sharing
from sparseloom.tensor.tensor import Tensor

_OFTEN = 1  # after so many times, objects are worth being recalled


class Doorway(Doors):
    """The ways of one kernel, and how often it met what seemed to be the same objects. It holds none of them."""

    def __init__(self, names: Sequence[str], most: int) -> None:
        super().__init__(most)
        self._names = names
        self._met: dict[Hashable, int] = {}

    def enter(self, args: Sequence[Any], named: Mapping[str, Any], key: Hashable) -> tuple[Storage, Specialization | Chain] | None:
        """The result and what made it, if the way is known; ``key`` stands for these very objects."""
        given = self._in_order(args, named) if named else args
        if len(given) != len(self._names):
            return None
        operands = [value.storage if type(value) is Tensor else value for value in given]
        laid: list[Any] = [lay_matrix(each) if type(each) in MATRICES else lay(each) for each in operands]
        known = None if None in laid else self.find(None, operands, laid)
        if known is None or (type(known) is Known and type(known.way) is Filled and self._is_due(key)):
            return None
        if type(known) is Known and type(known.way) is Sharing and type(operands[known.way.lender]) is not Storage:
            return None
        made = known.make(operands, laid)
        return None if made is None else (made, known.special)

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """The operands as the statement has them; nothing if some are missing or strange, which the long way tells."""
        rest = self._names[len(args) :]
        return (*args, *map(named.__getitem__, rest)) if named.keys() == set(rest) else ()

    def _is_due(self, key: Hashable) -> bool:
        """Whether to try and recall objects now, which is done once: new ones may stand where others were."""
        times = self._met.get(key, 0)
        if times > _OFTEN:
            return False
        if len(self._met) >= self._most:
            self._met.clear()
        self._met[key] = times + 1
        return times == _OFTEN
