"""The parameters of a kernel: which array or size of which tensor stands where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseloom.core.dtypes import FLOAT32, is_half, widest
from sparseloom.core.names import Names
from sparseloom.formats.level import LevelView, array_dtype
from sparseloom.loops import nodes as ir
from sparseloom.notation.nodes import Access, Fixed, IndexVar, TensorVar


@dataclass(frozen=True)
class TensorView:
    """The names under which generated code knows one tensor.

    A workspace may have a ``mask`` of the elements that were written, and modes whose ranges begin elsewhere than at 0.
    """

    tensor: TensorVar
    levels: tuple[LevelView, ...]
    values: ir.Array
    mask: ir.Array | None = None
    starts: tuple[ir.Expr, ...] | None = None

    def size_below(self, depth: int) -> ir.Expr:
        """How many values stand below one position of the first levels, where full ones follow."""
        count: ir.Expr = ir.ONE
        for level in self.levels[depth:]:
            count = ir.multiply(count, level.size)
        return count

    def renamed(self, names: Mapping[ir.Array, ir.Array]) -> TensorView:
        """The same tensor with other arrays in place of some."""
        levels = [replace(level, arrays={part: names.get(a, a) for part, a in level.arrays.items()}) for level in self.levels]
        return replace(self, levels=tuple(levels), values=names.get(self.values, self.values))


@dataclass(frozen=True)
class Slot:
    """What one parameter of the kernel is, for whoever calls it.

    ``tensor`` names the tensor, or is None for the size of a variable. ``level`` and ``part`` tell which array: ("pos", level 1), or
    ("values", None), or a scalar of a level.
    """

    tensor: str | None
    part: str
    level: int | None = None


class Sizes:
    """The extents of variables: parameters for the original ones, arithmetic for those derived from them."""

    def __init__(self, variables: Iterable[IndexVar], names: Names) -> None:
        self.params = {var: ir.Var(names.fresh(f"{_stem(var)}_size")) for var in variables}
        self._derived: dict[IndexVar, ir.Expr] = {}

    def derive(self, var: IndexVar, extent: ir.Expr) -> None:
        """Say what the extent of a derived variable is."""
        self._derived[var] = extent

    def of(self, var: IndexVar) -> ir.Expr:
        """The extent of a variable."""
        return self._derived[var] if var in self._derived else self.params[var]


def _stem(var: IndexVar) -> str:
    """What the name of an extent begins with: of a mode at a number, what tells it from others."""
    return var.name.replace(":", "_") if isinstance(var, Fixed) else var.name


def view_tensor(access: Access, variables: Sequence[IndexVar], sizes: Sizes, names: Names) -> TensorView:
    """Name the arrays of a tensor: ``A2_pos``, ``A2_crd``, ``A_vals``; levels count from one, as people do.

    The levels' sizes are those of ``variables``, with which the tensor is accessed; all accesses agree on them.
    """
    tensor = access.tensor
    levels = []
    for k, (level, var) in enumerate(zip(tensor.format.levels, variables, strict=True)):
        stem = f"{tensor.name}{k + 1}"
        width = widest((tensor.index_dtype,))
        arrays = {part: ir.Array(names.fresh(f"{stem}_{part}"), array_dtype(level, part, width)) for part in level.array_names}
        scalars = {part: ir.Var(names.fresh(f"{stem}_{part}")) for part in level.scalar_names}
        levels.append(LevelView(sizes.of(var), arrays, scalars))
    return TensorView(tensor, tuple(levels), ir.Array(names.fresh(f"{tensor.name}_vals"), tensor.stored_dtype))


def input_parameters(view: TensorView) -> list[tuple[ir.Param, Slot]]:
    """The parameters through which a tensor is read."""
    found = []
    for k, level in enumerate(view.levels):
        found += [(ir.Param(a, ir.Role.INPUT), Slot(view.tensor.name, part, k)) for part, a in level.arrays.items()]
        found += [(ir.Param(v, ir.Role.SIZE), Slot(view.tensor.name, part, k)) for part, v in level.scalars.items()]
    return [*found, (ir.Param(view.values, ir.Role.INPUT), Slot(view.tensor.name, "values"))]


def value_at(array: ir.Array, index: ir.Expr) -> ir.Expr:
    """A value of an array as it is computed: what is stored in a half is a float32."""
    loaded = ir.Load(array, index)
    return ir.Cast(loaded, FLOAT32) if is_half(array.dtype) else loaded
