"""Ordering the loops of a nest: storage orders decide, and operands that stand in the way are converted.

C(i,j) = A(i,k) * B(k,j)        A:csr, B:csr     i, k, j          both are walked as they are stored
C(i,j) = A(i,k) * B(j,k)        B is stored by rows j, and k comes first: B is converted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparseloom.core.dtypes import DType, widest
from sparseloom.core.errors import CompilerBug
from sparseloom.core.names import Names
from sparseloom.core.trees import rewrite
from sparseloom.formats.format import Format
from sparseloom.formats.named import name_of
from sparseloom.iteration.assembly import (
    Order,
)
from sparseloom.iteration.in_order import BlocksInTheWay, needs_workspace, not_in_order, unmatched_blocks
from sparseloom.iteration.layout import (
    block_sizes,
    can_append,
    follows_blocks,
    has_rows_in_blocks,
    modes_in_order,
    plain,
    reordered,
    streams,
    walks_blocks,
)
from sparseloom.iteration.nests import Nest, depth_of, visible_edges
from sparseloom.iteration.nests import accesses as accesses_of
from sparseloom.iteration.ordering import (
    Blocks,
    Edge,
    Edges,
    level_variables,
    loop_order,
    soft_edges,
    sparse_variables,
)
from sparseloom.notation.contents import accesses_in
from sparseloom.notation.nodes import (
    Access,
    Assign,
    Fixed,
    Forall,
    IndexVar,
    Stmt,
    TensorVar,
    Where,
)


@dataclass(frozen=True)
class Conversion:
    """An operand that is stored another way before the loops run."""

    source: TensorVar
    target: TensorVar
    reason: str

    def __str__(self) -> str:
        return f"{self.source.name} is converted from {name_of(self.source.format)} to {name_of(self.target.format)}: {self.reason}"


class Converter:
    """Replaces operands by converted ones and remembers it. ``in_order`` asks for entries that come in order, even to copy them."""

    def __init__(self, names: Names, costs: Mapping[str, float], in_order: bool, width: DType | None, long: frozenset[str]) -> None:
        self._in_order = in_order
        self.long = long  # variables that get no place for each of their values
        self._width = width  # of the statement's indices: blocks that are taken apart may need more than they had
        self._names = names
        self._costs = costs
        self.conversions: list[Conversion] = []

    def again(self, names: Names) -> Converter:
        """The same conversions so far, to go on from with other names."""
        other = Converter(names, self._costs, self._in_order, self._width, self.long)
        other.conversions = list(self.conversions)
        return other

    def cost(self, access: Access) -> float:
        """How many entries an operand has, as far as that is known."""
        return self._costs.get(access.tensor.name, 0.0)

    def convert(self, access: Access, form: Format, reason: str) -> Access:
        """The same access to the same tensor in another format."""
        tensor = access.tensor
        for known in self.conversions:
            if known.source == tensor and known.target.format == form:
                return Access(known.target, access.indices)
        name = self._names.fresh(f"{tensor.name}_{_identifier(name_of(form))}")
        target = TensorVar(name, tensor.order, form, tensor.stored_dtype, widest((tensor.index_dtype, self._width)), tensor.fill)
        self.conversions.append(Conversion(tensor, target, reason))
        return Access(target, access.indices)

    def prepare(self, assign: Assign, keep_blocks: bool) -> Assign:
        """Convert what no loop order could walk: unordered levels beside others, blocks that do not match."""
        while True:
            sizes = walked_blocks(accesses_in(assign), assign) if keep_blocks else {}
            found = {n: self._prepared(n, assign, sizes) for n in accesses_in(assign.rhs)}
            if not any(found.values()):
                break
            assign = Assign(assign.lhs, rewrite(assign.rhs, found.get), assign.op)
        lhs = assign.lhs
        if lhs.tensor.format.blocks and (not walks_blocks(lhs, sizes) or has_rows_in_blocks(lhs.tensor.format)):
            raise unmatched_blocks(assign, keep_blocks)
        return assign

    def _prepared(self, access: Access, assign: Assign, sizes: dict[IndexVar, int]) -> Access | None:
        form = access.tensor.format
        if form.blocks and not walks_blocks(access, sizes):
            return self.convert(access, plain(form), "its blocks do not match the other operands'")
        loose = self._in_order and not (form.is_unique and all(level.ordered for level in form.levels))
        if loose or not streams(access, assign):
            return self.convert(access, plain(form), "its entries must be in order and unique to be merged")
        return None


class Orderer:
    """Orders the loops of a nest, converting operands that stand in the way."""

    def __init__(self, converter: Converter, assign: Assign, blocks: Blocks, shared: bool, kind: Order) -> None:
        self._converter = converter
        self._assign = assign
        self._blocks = blocks
        self._shared = shared
        self._kind = kind
        self.replaced: dict[Access, Access] = {}
        self._operands = {*accesses_in(assign.rhs)}

    def order(self, nest: Nest) -> Stmt:
        """The statement of a nest with its loops in a legal order."""
        return self._emit(nest, ())

    def _emit(self, nest: Nest, outer: tuple[IndexVar, ...]) -> Stmt:
        accesses = accesses_of(nest)
        own = self._with_blocks(tuple(v for v in nest.variables if v not in outer), accesses)
        order = self._loop_order(nest, own, outer, accesses)
        self._check_result(nest, outer + order)
        depths = [(depth_of(producer, order, self._blocks), producer) for producer in nest.producers]
        body: Stmt = self._substitute(nest.assign)
        for depth in range(len(order), -1, -1):
            for wanted, producer in depths:
                if wanted == depth:
                    body = Where(body, self._emit(producer, outer + order[:depth]))
            if depth:
                body = Forall(order[depth - 1], body)
        return body

    def _with_blocks(self, variables: tuple[IndexVar, ...], accesses: list[Access]) -> tuple[IndexVar, ...]:
        if not self._blocks:
            return variables
        blocked = walked_blocks(accesses, self._assign)
        expanded: list[IndexVar] = []
        for var in variables:
            expanded += self._blocks[var].children if var in blocked else (var,)
        return tuple(expanded)

    def _loop_order(
        self, nest: Nest, own: tuple[IndexVar, ...], outer: tuple[IndexVar, ...], accesses: list[Access]
    ) -> tuple[IndexVar, ...]:
        lhs, current = nest.assign.lhs, list(accesses)
        stored = visible_edges(nest, accesses, self._blocks)
        converted: list[Access] = []
        while True:
            edges = self._edges(nest, current, stored)
            late = {a for a in current if a != lhs and _is_late(stored[a], own, outer)}
            found = loop_order(own, edges)
            if isinstance(found, tuple) and not late:
                for access in converted:
                    # One that has variables of deeper loops is converted there, where they are in order too.
                    if access.tensor.format.blocks or all(var in outer or var in found or isinstance(var, Fixed) for var in access.indices):
                        self._reorder(access, outer + found)
                return found
            stuck = late or {
                a for a in current if a != lhs and any(isinstance(found, set) and x in found and y in found for x, y in stored[a])
            }
            stuck = {a for a in stuck if a in self._operands}  # what the loops make themselves cannot be converted
            if not stuck:
                raise not_in_order(self._assign, "its storage order conflicts with itself")
            # What keeps a sparse result out of order goes first: whether it can be assembled must not depend on the data.
            out_of_order = {a for a in stuck if any((y, x) in edges.firm for x, y in stored[a])}
            among = [a for a in current if a in (out_of_order or stuck)]
            cheapest = min(among, key=lambda a: (self._converter.cost(a), -current.index(a)))
            converted.append(cheapest)
            current.remove(cheapest)

    def _edges(self, nest: Nest, accesses: list[Access], stored: Mapping[Access, set[Edge]]) -> Edges:
        lhs = nest.assign.lhs
        operands = [a for a in accesses if a != lhs]
        sparse = sparse_variables(operands, self._blocks)
        edges = Edges()
        is_result = not lhs.tensor.format.is_dense and not self._shared and lhs == self._assign.lhs
        for access in accesses:
            if access == lhs and (lhs != self._assign.lhs or self._kind is Order.FREE):
                continue  # what takes entries in any order
            edges.hard |= stored[access]
            edges.soft |= soft_edges(access, sparse, self._blocks)
        if is_result:
            results = self._with_blocks(level_variables(lhs, self._blocks), accesses)
            if self._kind is not Order.FREE:
                edges.hard |= {(a, b) for n, a in enumerate(results) for b in results[n + 1 :] if a != b}
            edges.firm |= {(a, b) for a in results for b in nest.variables if b not in lhs.indices}
            if self._kind in (Order.STRICT, Order.FREE):
                edges.hard |= edges.firm
        if self._kind is Order.SUMS_FIRST and lhs != self._assign.lhs:
            edges.hard |= {(a, b) for a in nest.variables if a not in lhs.indices for b in lhs.indices}
        return edges

    def _reorder(self, access: Access, order: tuple[IndexVar, ...]) -> None:
        if access.tensor.format.blocks:
            raise BlocksInTheWay
        modes = modes_in_order(access, order)
        long = [mode for mode, var in enumerate(access.indices) if var.name in self._converter.long]
        target = reordered(plain(access.tensor.format), modes, long)
        shown = ", ".join(str(access.indices[m]) for m in modes)
        self.replaced[access] = self._converter.convert(access, target, f"the loops need its modes in the order {shown}")

    def _substitute(self, assign: Assign) -> Assign:
        return rewrite(assign, lambda n: self.replaced.get(n) if isinstance(n, Access) else None)

    def _check_result(self, nest: Nest, path: tuple[IndexVar, ...]) -> None:
        lhs = nest.assign.lhs
        if lhs.tensor.format.is_dense or self._shared or lhs != self._assign.lhs or self._kind is Order.FREE:
            return
        if self._assign.op is not None:
            raise CompilerBug(self._assign, "what a sparse result held before should be an operand")
        if not can_append(lhs.tensor.format):
            raise needs_workspace(self._assign, f"entries cannot be appended to {name_of(lhs.tensor.format)}")
        last = max(k for k, level in enumerate(lhs.tensor.format.levels) if not level.full)
        stored = level_variables(lhs, self._blocks)
        wanted = self._with_blocks(stored, accesses_of(nest))
        ends = path.index(self._with_blocks(stored[: last + 1], accesses_of(nest))[-1])
        early = [v for v in path[:ends] if v not in wanted]
        if early:
            why = f"the loop over {early[0]} reduces outside the loop over {stored[last]}, so entries come out of order"
            raise not_in_order(self._assign, why)


def _is_late(edges: set[Edge], own: tuple[IndexVar, ...], outer: tuple[IndexVar, ...]) -> bool:
    """Whether loops that are open already stand against the storage order of an operand."""
    place = {var: n for n, var in enumerate((*outer, *own))}
    return any(y in outer and x in place and (x in own or place[x] > place[y]) for x, y in edges)


def walked_blocks(accesses: Iterable[Access], assign: Assign) -> dict[IndexVar, int]:
    """The block size of every variable that is walked in blocks."""
    accesses = list(accesses)
    if not any(access.tensor.format.blocks for access in accesses):
        return {}
    follows = follows_blocks(assign)
    # What a copy goes through on its way follows the operand's blocks, as its result does.
    return block_sizes([access for access in accesses if access.tensor.format.blocks or not follows])


def _identifier(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text).strip("_")
