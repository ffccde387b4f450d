"""precompute(e, i, iw, w): compute a part of the expression ahead, into a workspace w.

    forall i                          forall i
      forall j                 ==>      forall j
        y(i) += A(i,j) * x(j)             y(i) += w(j)
                                      where
                                        forall jw              jw stands for j
                                          w(jw) = A(i,j) * x(j)

i and iw are variables or sets of them in braces. The workspace is filled just outside the outermost loop of the set. What is
reduced in e alone is reduced there, if the rest distributes over it; a reduction that e spells out is always reduced there.
With empty sets, {}, the workspace is one number, filled inside the loops that both e and the rest use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from sparseloom.core import algebra
from sparseloom.core.algebra import Scalar
from sparseloom.core.trees import Node, rewrite, walk
from sparseloom.formats.named import dense
from sparseloom.iteration.foralls import Path, accesses, body_of, fresh_variables, loops, paths, provenance, reads, related, relations_of
from sparseloom.iteration.formula import ALWAYS, Formula, Stored
from sparseloom.iteration.layout import repeats_loosely
from sparseloom.iteration.provenance import Provenance
from sparseloom.iteration.region import is_skippable, present, written
from sparseloom.iteration.unstored import close_expression, where_stored
from sparseloom.notation.dtyping import Absence, absence_of, constant_of, dtype_of, fill_of, reduced_dtype
from sparseloom.notation.nodes import Access, Apply, Assign, Expr, Forall, IndexVar, Reduce, Stmt, TensorVar, Where
from sparseloom.notation.printer import show
from sparseloom.relations.rename import RenameRelation
from sparseloom.schedule.matching import Match, distributes, key, take_out
from sparseloom.schedule.primitive import Primitive, no_loop, not_fresh, primitive
from sparseloom.schedule.reduced import with_reductions, with_temporaries
from sparseloom.schedule.refusal import Refusal, listed


@dataclass(frozen=True)
class _Plan:
    """Where the expression stands, and which loops around it go where."""

    path: Path
    match: Match
    stand_in: Access
    depth: int
    carried: tuple[Where, ...] = ()  # temporaries that the expression alone reads, outer ones first
    moved: frozenset[IndexVar] = frozenset()

    @property
    def inner(self) -> tuple[Forall, ...]:
        """The loops from the outermost of the set in."""
        return self.path.loops[self.depth :]


@primitive
class Precompute(Primitive):
    """``w`` holds ``e`` for the values of ``i``, which are called ``iw`` where it is filled."""

    e: Expr
    i: tuple[IndexVar, ...]
    iw: tuple[IndexVar, ...]
    w: str

    def check(self, stmt: Stmt) -> Refusal | None:
        found = self._names(stmt) or self._plan(stmt)
        return found if isinstance(found, Refusal) else None

    def _names(self, stmt: Stmt) -> Refusal | None:
        if len(self.i) != len(self.iw):
            why = f"there must be as many variables as there are names for them, not {len(self.i)} and {len(self.iw)}"
            return Refusal("S701", why, "write precompute(e, {i, j}, {iw, jw}, w)")
        if len(set(self.i)) < len(self.i):
            return Refusal("S701", f"{next(v for v in self.i if self.i.count(v) > 1)} is named twice", "name each variable once")
        if missing := no_loop("S702", stmt, *self.i):
            return missing
        renamed = [new.name for old, new in zip(self.i, self.iw, strict=True) if new != old]
        clash = not_fresh("S703", stmt, *renamed) or not_fresh("S704", stmt, self.w)
        if clash is None and self.w in renamed:
            return Refusal("S704", f"{self.w} is named twice", "pick two names")
        return clash

    def _plan(self, stmt: Stmt) -> _Plan | Refusal:
        """Find the one assignment that holds the expression, and sort the loops around it."""
        if not any(accesses(self.e)):
            return Refusal("S711", f"{show(self.e)} reads no tensor", "a number needs no workspace")
        wanted = with_temporaries(stmt, close_expression(self.e))
        if any(isinstance(n, Reduce) for n in walk(wanted)):
            wanted = with_temporaries(stmt, self.e)
        reduction = wanted if isinstance(wanted, Reduce) else None
        found = self._holding(stmt, wanted if reduction is None else reduction.body, reduction)
        if isinstance(found, Refusal):
            return found
        path, match = found
        outside = [var for var in self.i if var not in path.variables]
        if outside:
            return Refusal("S707", f"the loop over {listed(outside)} does not stand around {show(path.assign)}", at=outside[0])
        depth = min((path.variables.index(var) for var in self.i), default=_depth_of_one(provenance(stmt), path, match, self.w))
        if depth == len(path.loops):
            return self._nothing_alone()
        plan = _Plan(path, match, self._stand_in, depth, _carried(path, match, depth))
        left = {access.tensor for access in reads(self._consumer(plan, self._stand_in.tensor))}
        carried = sorted((written(where.producer).tensor for where in plan.carried), key=str)
        arrays, late = [tensor for tensor in carried if tensor.order], [tensor for tensor in carried if tensor in left]
        if arrays or late:
            outermost, how = path.variables[depth], " and read elsewhere too" if late else ""
            why = f"{show(self.e)} reads {listed(late or arrays)}, which is filled inside the loop over {outermost}{how}"
            return Refusal("S710", why, "choose variables of loops further in", at=outermost)
        made = self._sorted(stmt, plan)
        if not self.i and isinstance(made, _Plan) and not made.moved:
            return self._nothing_alone()
        return made if reduction is None or isinstance(made, Refusal) else self._whole(stmt, made, reduction)

    def _nothing_alone(self) -> Refusal:
        why = f"nothing is reduced in {show(self.e)} alone, so that one number would save nothing"
        return Refusal("S714", why, "name the variables for whose values it is to be held")

    @property
    def _stand_in(self) -> Access:
        return Access(TensorVar(self.w, len(self.i), dense(len(self.i))), self.i)

    def _holding(self, stmt: Stmt, part: Expr, reduction: Reduce | None) -> tuple[Path, Match] | Refusal:
        """The one assignment in which the expression occurs; a ``reduction`` of it is what its loops do, if it is there at all."""
        if reduction is not None:
            reduced = [path.assign.rhs for path in paths(stmt) if path.assign.op == reduction.op]
            part = next((rhs for rhs in reduced if key(where_stored(rhs)) == key(part)), part)
        is_there = not any(isinstance(n, Reduce) for n in walk(part))
        if is_there and _is_annihilated(part) and _present(part) != ALWAYS:
            why = f"a constant decides {show(self.e)}, so that what is absent in it would no longer count"
            return Refusal("S712", why, "leave the constant out of it")
        stand_in = self._stand_in
        holding = [(path, match) for path in paths(stmt) if is_there and (match := take_out(path.assign.rhs, part, stand_in))]
        if reduction is not None:
            holding = [(path, match) for path, match in holding if path.assign.op == reduction.op and match.rest == stand_in]
        if not holding:
            sides = listed(dict.fromkeys(show(path.assign.rhs) for path in paths(stmt)))
            return Refusal("S705", f"{show(self.e)} does not occur in the statement", f"the right side is {sides}")
        if len(holding) > 1:
            return Refusal("S706", f"{show(self.e)} occurs in {len(holding)} assignments", "name a part that only one of them has")
        return holding[0]

    def _whole(self, stmt: Stmt, plan: _Plan, reduction: Reduce) -> _Plan | Refusal:
        """The plan, if all loops of the reduction move with it, and no others do."""
        graph, over = provenance(stmt), {*reduction.variables}
        strays = sorted(over.symmetric_difference(x for var in plan.moved for x in graph.originals(var)), key=str)
        if not strays:
            return plan
        why = f"{show(self.e)} reduces over {listed(reduction.variables)}, and the loops over {listed(strays)} would not go with it alone"
        return Refusal("S713", why, "the set holds what the reduction leaves, and nothing that it reduces over")

    def _sorted(self, stmt: Stmt, plan: _Plan) -> _Plan | Refusal:
        """Decide for every inner loop outside the set: it stays, or moves with the expression, or stands in the way."""
        graph, moved = provenance(stmt), []
        inside = {*_indices(plan.match.found), *(var for where in plan.carried for var in _needed(graph, where.producer, plan.inner))}
        beside = {*plan.path.assign.lhs.indices, *_indices(plan.match.rest, but=self.w)}
        for loop in plan.inner:
            var, line = loop.var, graph.ancestors(loop.var)
            if var in self.i or not line & inside:
                continue
            if line & beside or _innermost(loop) is not plan.path.assign:
                why = f"{var} is used in {show(self.e)} and outside it, so {self.w} would need it as an index"
                return Refusal("S708", why, f"add {var} to the set, or reorder its loop outside", at=var)
            moved.append(var)
        if moved and _tells_absent(assign := plan.path.assign):
            why = f"{show(assign.lhs)} tells absent terms from present ones, and {self.w}, reduced over {listed(moved)}, would not"
            return Refusal("S709", why, f"add {listed(moved)} to the set", at=moved[0])
        if moved and not self._may_move(plan):
            why = f"{show(plan.match.rest)} does not distribute over the reduction over {listed(moved)}, so that cannot move into {self.w}"
            return Refusal("S709", why, f"add {listed(moved)} to the set", at=moved[0])
        return replace(plan, moved=frozenset(moved))

    def _may_move(self, plan: _Plan) -> bool:
        """Whether a reduction over variables of the expression alone may be done in the workspace."""
        op, dtype = plan.path.assign.op, dtype_of(plan.path.assign.rhs)
        return op is not None and plan.match.count == 1 and distributes(plan.match.rest, plan.stand_in, op, dtype)

    def apply(self, stmt: Stmt) -> Stmt:
        plan = self._plan(stmt)
        if isinstance(plan, Refusal):
            return stmt
        workspace = self._workspace(plan)
        consumer, producer = self._consumer(plan, workspace), self._producer(plan, workspace)
        outermost = plan.inner[0]
        body = rewrite(body_of(stmt), lambda found: Where(consumer, producer) if found is outermost else None, Stmt)
        return related(body, relations_of(stmt) + self.relations)

    def _workspace(self, plan: _Plan) -> TensorVar:
        """Dense, of the expression's dtype, and holding its fill where nothing is written.

        A sum that moves into it keeps the precision of the sum that it leaves, and is as absent where it runs over nothing.
        """
        whole, found, op = plan.path.assign, plan.match.found, plan.path.assign.op
        if plan.moved and op is not None:
            dtype = reduced_dtype(op, whole.rhs)
            fill: Scalar | None = algebra.identity(op, dtype)
            partial = is_skippable(found, op) or (is_skippable(whole.rhs, op) and whole.lhs.tensor.may_be_absent)
        else:
            dtype, fill, partial = dtype_of(found), fill_of(found), _present(found) != ALWAYS
        return TensorVar(self.w, len(self.i), dense(len(self.i)), dtype, fill=0 if fill is None else fill, partial=partial)

    def _consumer(self, plan: _Plan, workspace: TensorVar) -> Stmt:
        """The loops from the outermost of the set in, without those that moved, reading the workspace."""
        reading = Access(workspace, self.i)
        rest = rewrite(plan.match.rest, lambda found: reading if found == plan.stand_in else None)
        assign = Assign(plan.path.assign.lhs, rest, plan.path.assign.op)

        def rule(found: Node) -> Node | None:
            if found is plan.path.assign:
                return assign
            if isinstance(found, Forall) and found.var in plan.moved and _innermost(found) is assign:
                return found.body
            if isinstance(found, Where) and any(found.producer is where.producer for where in plan.carried):
                return found.consumer
            return None

        return rewrite(plan.inner[0], rule, Stmt)

    def _producer(self, plan: _Plan, workspace: TensorVar) -> Stmt:
        """Loops over the renamed variables and over those that moved, nested as they were, writing the workspace.

        What meets a coordinate more than once is reduced there too: a sum that moved, or entries that repeat in no order.
        """
        renamed = dict(zip(self.i, self.iw, strict=True))
        adds = plan.moved or any(repeats_loosely(access.tensor.format) for access in accesses(plan.match.found))
        made: Stmt = Assign(Access(workspace, self.iw), plan.match.found, plan.path.assign.op if adds else None)
        for depth, loop in reversed(list(enumerate(plan.inner, plan.depth + 1))):
            for where in reversed(plan.carried):
                if plan.path.temporaries[written(where.producer).tensor.name] == depth:
                    made = Where(made, where.producer)
            if loop.var in renamed:
                made = Forall(renamed[loop.var], made)
            elif loop.var in plan.moved:
                made = Forall(loop.var, made, loop.tag)
        return made

    def new_names(self) -> tuple[str, ...]:
        """The renamed variables, and the workspace."""
        return (*(var.name for var in self.iw if var not in self.i), self.w)

    @property
    def relations(self) -> tuple[RenameRelation, ...]:
        """``iw`` stands for ``i`` where the workspace is filled."""
        return tuple(RenameRelation(old, new) for old, new in zip(self.i, self.iw, strict=True) if old != new)

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Precompute]:
        found = [(path, expr) for path in paths(stmt) if path.loops for expr in _parts(path.assign.rhs)]
        for path, expr in rng.sample(found, len(found)):
            first = rng.randrange(len(path.loops))
            chosen = path.variables[first : first + rng.randint(1, len(path.loops) - first)]
            *names, workspace = fresh_variables(stmt, *(f"{var}w" for var in chosen), "w")
            renamed = tuple(names) if rng.random() < 0.8 else chosen
            whole = with_reductions(stmt, expr)
            has_text = not any(isinstance(n, Apply) and n.op in algebra.INTERNAL for n in walk(whole))
            part = whole if rng.random() < 0.5 and has_text else expr
            is_one = rng.random() < 0.25 and _reduces_alone(path, expr)
            yield cls(part, () if is_one else chosen, () if is_one else renamed, workspace.name)


def _reduces_alone(path: Path, part: Expr) -> bool:
    """Whether a part of a right side has a loop that the rest and the result do not use."""
    own = {*accesses(part)}
    beside = {var for access in (path.assign.lhs, *accesses(path.assign.rhs)) if access not in own for var in access.indices}
    return not {*_indices(part)} <= beside


def _depth_of_one(graph: Provenance, path: Path, match: Match, workspace: str) -> int:
    """How many loops stand outside one number that holds an expression: all up to the last that the rest uses, too.

    Temporaries that it reads are filled further out.
    """
    inside, beside = {*_indices(match.found)}, {*path.assign.lhs.indices, *_indices(match.rest, but=workspace)}
    lines = [graph.ancestors(var) for var in path.variables]
    shared = [depth for depth, line in enumerate(lines, 1) if line & inside and line & beside]
    filled = [path.temporaries[access.tensor.name] for access in accesses(match.found) if access.tensor.name in path.temporaries]
    return max((*shared, *filled), default=0)


def _carried(path: Path, match: Match, depth: int) -> tuple[Where, ...]:
    """The temporaries that a part of an expression reads, itself or through others, and that are filled inside the loops that it leaves."""
    around = {name for name, loops_outside in path.temporaries.items() if loops_outside > depth}
    inside = [n for n in walk(path.loops[depth]) if isinstance(n, Where) and written(n.producer).tensor.name in around]
    read, count = {access.tensor for access in accesses(match.found)}, -1
    found: list[Where] = []
    while len(found) != count:
        count = len(found)
        found = [where for where in inside if written(where.producer).tensor in read]
        read |= {access.tensor for where in found for access in reads(where.producer)}
    return tuple(found)


def _needed(graph: Provenance, producer: Stmt, around: Sequence[Forall]) -> Iterator[IndexVar]:
    """The variables that a producer uses and has no loops over; of one that was split, those of the loops around that it has not itself."""
    own = {x for var in loops(producer) for x in graph.ancestors(var)}
    written_to = (path.assign.lhs for path in paths(producer))
    used = {var for access in (*reads(producer), *written_to) for var in access.indices}
    yield from used - own
    yield from (loop.var for loop in around if loop.var not in own and graph.ancestors(loop.var) & used)


def _indices(expr: Expr, but: str = "") -> Iterator[IndexVar]:
    for access in accesses(expr):
        if access.tensor.name != but:
            yield from access.indices


def _tells_absent(assign: Assign) -> bool:
    """Whether a reduction depends on which of its terms are absent, although these take part in it."""
    absence = None if assign.op is None else absence_of(assign.op, assign.rhs)
    return assign.lhs.tensor.may_be_absent and absence in (Absence.ALL_ABSENT, Absence.ONE_DECIDES)


def _innermost(stmt: Stmt) -> Stmt:
    while isinstance(stmt, Forall):
        stmt = stmt.body
    return stmt


def _present(rhs: Expr) -> Formula:
    return present(rhs, lambda access: Stored(access) if access.tensor.may_be_absent else ALWAYS)


def _is_annihilated(expr: Expr) -> bool:
    """Whether a constant decides what an expression is worth, as in ``0 * B``."""
    match expr:
        case Apply(op, args, zero):
            constants = [(k, constant_of(arg)) for k, arg in enumerate(args)]
            return any(value is not None and algebra.annihilates(op, k, value, zero) for k, value in constants)
    return False


def _parts(expr: Expr) -> Iterator[Expr]:
    """An expression, the operations and accesses in it, and neighbouring factors; what the compiler alone writes is left out."""
    for found in walk(expr):
        match found:
            case Apply(op) if op in algebra.INTERNAL:
                continue
            case Access():
                yield found
            case Apply(op, args):
                if any(accesses(found)):
                    yield found
                if len(args) > 2 and algebra.operator(op).associative:
                    yield Apply(op, (args[0], args[-1]), found.zero)
