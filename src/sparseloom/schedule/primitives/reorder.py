"""reorder(a, b, ...): put directly nested loops into this order.

    forall i                      forall j
      forall j             ==>      forall i
        y(i) += A(i,j) * x(j)         y(i) += A(i,j) * x(j)

An operand whose level comes before its parent is searched there. Loops stay within their own temporary: an operation is
never moved out of a reduction that it does not distribute over.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from sparseloom.core.errors import CompilerBug
from sparseloom.core.trees import Node, rewrite
from sparseloom.iteration.foralls import body_of, loops, paths, places, related, relations_of
from sparseloom.iteration.region import written
from sparseloom.notation.nodes import Forall, IndexVar, Stmt, Where
from sparseloom.schedule.primitive import Primitive, no_loop, primitive
from sparseloom.schedule.refusal import Refusal, listed


@primitive
class Reorder(Primitive):
    """The loops stand in the order ``order``, from the outermost in; their tags go with them."""

    order: tuple[IndexVar, ...]

    def check(self, stmt: Stmt) -> Refusal | None:
        if not self.order:
            return Refusal("S601", "it names no loops", f"there are loops over {listed(loops(stmt))}")
        if missing := no_loop("S602", stmt, *self.order):
            return missing
        if len(set(self.order)) < len(self.order):
            repeated = next(v for v in self.order if self.order.count(v) > 1)
            return Refusal("S603", f"{repeated} is named twice", "name each loop once", at=repeated)
        return self._apart(stmt)

    def _apart(self, stmt: Stmt) -> Refusal | None:
        """Loops that do not follow each other directly, somewhere."""
        wanted = set(self.order)
        for var in self.order:
            for outer, loop in places(stmt, var):
                if not wanted.isdisjoint(outer):
                    continue
                chain, after = directly_nested(loop)
                if set(chain[: len(wanted)]) != wanted:
                    return self._between(stmt, chain, after)
        return None

    def _between(self, stmt: Stmt, chain: tuple[IndexVar, ...], after: Stmt) -> Refusal:
        """What stands between loops that should be permuted."""
        apart, near = [var for var in self.order if var not in chain], listed(var for var in self.order if var in chain)
        inner = {var for path in paths(after) for var in path.variables}
        if isinstance(after, Where) and set(apart) & inner:
            why = f"the temporary {written(after.producer).tensor} stands between the loops over {near} and {listed(apart)}"
            return Refusal("S605", why, "an operation cannot leave a reduction that it does not distribute over", at=apart[0])
        if apart:
            return Refusal("S604", f"{listed(apart)} is not directly nested with {near}", at=apart[0])
        others = [v for v in chain[: max(map(chain.index, self.order))] if v not in self.order]
        return Refusal("S604", f"the loop over {listed(others)} stands between them", f"name {listed(others)} too", at=others[0])

    def apply(self, stmt: Stmt) -> Stmt:
        wanted = set(self.order)

        def rule(found: Node) -> Node | None:
            if not isinstance(found, Forall) or found.var not in wanted:
                return None
            chain, _ = directly_nested(found)
            return self._permuted(found) if set(chain[: len(wanted)]) == wanted else None

        return related(rewrite(body_of(stmt), rule, Stmt), relations_of(stmt))

    def _permuted(self, outermost: Stmt) -> Stmt:
        tags, body = {}, outermost
        for _ in self.order:
            if not isinstance(body, Forall):
                raise CompilerBug(outermost, "the loops must be directly nested")
            tags[body.var] = body.tag
            body = body.body
        for var in reversed(self.order):
            body = Forall(var, body, tags[var])
        return body

    @classmethod
    def candidates(cls, stmt: Stmt, rng: Random) -> Iterator[Reorder]:
        chains = [chain for var in loops(stmt) for _, loop in places(stmt, var) if len(chain := directly_nested(loop)[0]) > 1]
        for chain in rng.sample(chains, len(chains)):
            part = list(chain[: rng.randint(2, len(chain))])
            rng.shuffle(part)
            yield cls(tuple(part))


def directly_nested(loop: Forall) -> tuple[tuple[IndexVar, ...], Stmt]:
    """The variables of a loop and of those directly inside it, and what stands in the innermost."""
    chain, body = [loop.var], loop.body
    while isinstance(body, Forall):
        chain.append(body.var)
        body = body.body
    return tuple(chain), body
