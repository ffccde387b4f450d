"""Nodes of the loop IR for what threads make apart: a loop with memory of each thread's own, and the pieces that are joined."""

from __future__ import annotations

from sparseloom.core.dtypes import INT64, DType
from sparseloom.core.trees import Node, node
from sparseloom.loops.nodes import Array, Expr, For, Stmt


@node
class Team(Stmt):
    """A threads loop whose threads each run ``first`` before their first iteration and ``last`` after their last.

    What ``first`` declares and allocates is the thread's own, and ``last`` frees it or keeps it.
    """

    first: Stmt
    loop: For
    last: Stmt


@node
class Thread(Expr):
    """Which thread of its team runs this, counted from 0."""

    dtype: DType = INT64


@node
class Pieces(Node):
    """Arrays that the threads of a team make, one each, to be joined."""

    name: str
    dtype: DType


@node
class MakePieces(Stmt):
    """Room for the pieces of a team whose loop has ``count`` iterations."""

    pieces: Pieces
    count: Expr


@node
class Keep(Stmt):
    """Hand an allocated array over to the thread's place among the pieces. Its name is then free again."""

    pieces: Pieces
    array: Array


@node
class Parts(Node):
    """Where the parts of a result stand: part p is ``[begins[p], begins[p] + n)`` of what thread ``owners[p]`` made, and goes to
    ``[starts[p], starts[p + 1])`` of the whole, n being the distance of those."""

    owners: Array
    begins: Array
    starts: Array
    count: Expr


@node
class Join(Stmt):
    """Make ``array`` of all parts, ``each`` elements to a position, one behind the other.

    With ``below`` they are positions of those parts, which move along with them; a 0 that belongs to no part stands before them.
    """

    array: Array
    pieces: Pieces
    parts: Parts
    each: Expr
    below: Parts | None = None
