"""Names as nasty as users may choose them: those that the compiler makes up, words of C, parameters of our own calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from sparseloom.iteration.foralls import taken_names
from sparseloom.schedule.own_names import rename
from sparseloom.schedule.primitive import Primitive
from sparseloom.schedule.primitives import Precompute
from sparseloom.schedule.schedule import Schedule

NASTY = (
    "i_block", "i_within", "j_block", "j_within", "i_block1", "i_each", "j_each", "w", "ws", "w1", "w2", "t", "t1", "i0", "i1", "iw",
    "jw", "f", "p", "pA1", "pA2", "pA2_end", "pA2_first", "pA2_last", "pA2_run", "A1_pos", "A2_pos", "A2_crd", "A_vals", "A_val",
    "A_here", "iA", "jA", "i_size", "R_acc", "R_seen", "R_rows", "R_initial", "R_vals", "R2_pos", "R2_count", "R_guess", "R_written",
    "A_csr", "A_csc", "t_acc", "w_set", "w_list", "w_vals", "w_count", "row", "place", "later", "slot", "found", "int", "double",
    "static", "register", "void", "long", "auto", "restrict", "inline", "NULL", "EOF", "I", "malloc", "free", "main", "errno",
    "kernel", "entry", "status", "args", "cancel", "n", "k", "x_", "_x", "__x", "semiring", "self", "out", "text", "target", "sizes",
    "format", "dtype", "workspace", "op0", "T0", "result", "operands", "size", "count",
)  # fmt: skip


def nasty_names(found: Iterable[str], random: Random) -> dict[str, str]:
    """Other names for most of these, all different."""
    known = list(found)
    drawn = zip(known, random.sample(NASTY, len(known)), strict=True)
    return {name: new for name, new in drawn if random.random() < 0.7 and new not in known}


def nasty_step(step: Primitive, made: Schedule, random: Random) -> Primitive:
    """The same step with other names for what it makes: any but the user's own."""
    taken = taken_names(made.stmt) - made.concrete.made
    called = dict(zip(step.new_names(), _sample(taken, random, len(step.new_names())), strict=True))
    if isinstance(step, Precompute):
        iw = tuple(rename(var, called) if var.name in step.new_names() else var for var in step.iw)
        return replace(step, iw=iw, w=called[step.w])
    return rename(step, called)


def _sample(taken: Iterable[str], random: Random, count: int) -> list[str]:
    return random.sample([name for name in NASTY if name not in taken], count)
