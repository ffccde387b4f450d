"""A function of the library is one declaration: a toy one, declared here, is verified, shown, renamed, run, and printed as C."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from targets.c_harness import call, compile_all

from sparseloom.core.dtypes import INT64
from sparseloom.core.errors import CompilerBug
from sparseloom.loops import routines
from sparseloom.loops.interpret import run
from sparseloom.loops.memory import Cells
from sparseloom.loops.nodes import Array, Declare, Function, Param, Role, Store, Var, block, index
from sparseloom.loops.printer import show
from sparseloom.loops.reader import read
from sparseloom.loops.rename import alpha_rename
from sparseloom.loops.routines import Call, Routine, Use
from sparseloom.loops.verify import verify
from sparseloom.targets.c import emit
from sparseloom.targets.c_calls import C_CALLS


def _halve(arrays: list[Cells], args: list[int]) -> int:
    """Move the elements at even places to the front, and say how many are left."""
    for place in range(0, args[0], 2):
        arrays[0].store(place // 2, arrays[0].load_number(place))
    return (args[0] + 1) // 2


HALVE = Routine(
    "halve",
    (Use.WRITES,),
    _halve,
    lambda arrays, args: iter([(arrays[0].dtype == INT64, "only int64 are halved")]),
    assigns=True,
)
HALVE_C = "for (int64_t k = 0; k < {1}; k += 2) {0}[k / 2] = {0}[k];\n{1} = ({1} + 1) / 2;"
kept, n, left = Array("kept", INT64), Var("n"), Var("left")
PARAMS = (Param(kept, Role.OUTPUT), Param(n, Role.SIZE))


def halving(array: Array = kept, count: Var = left) -> Function:
    """A kernel that halves its output and notes what is left at its end."""
    return Function("halving", PARAMS, block(Declare(left, n), Call(HALVE, (array,), (count,)), Store(kept, index(9), left)))


def test_a_toy_function_passes_every_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(C_CALLS, HALVE.name, lambda s: HALVE_C.format(*s.arrays, *s.args))
    function = halving()
    verify(function)
    assert "  halve(kept, left)\n" in show(function)
    assert read(show(function), {HALVE.name: HALVE}) == function
    assert Call(HALVE, (Array("a0", INT64),), (Var("v1"),)) in alpha_rename(function).body.stmts
    wanted = [0, 2, 4, 6, 8, 5, 6, 7, 8, 5]
    given = np.arange(10)
    run(function, [given, 9], outputs_initialised=True)
    assert given.tolist() == wanted
    (entry,) = compile_all([function], tmp_path)
    given = np.arange(10)
    call(entry, function, [given, 9])
    assert given.tolist() == wanted


def test_a_declaration_is_held() -> None:
    with pytest.raises(CompilerBug, match="n is not a size or a loop variable, which are never assigned"):
        verify(halving(count=n))
    with pytest.raises(CompilerBug, match="only int64 are halved"):
        small = Array("small", np.dtype("int32"))
        verify(Function("halving", (Param(small, Role.OUTPUT), *PARAMS), block(Declare(left, n), Call(HALVE, (small,), (left,)))))
    with pytest.raises(CompilerBug, match="the input kept is never written"):
        verify(Function("halving", (Param(kept, Role.INPUT), PARAMS[1]), block(Declare(left, n), Call(HALVE, (kept,), (left,)))))


def test_a_function_without_text_is_an_internal_error() -> None:
    with pytest.raises(CompilerBug, match="there is text for a call of halve"):
        emit(halving())
    assert {one.name for one in routines.ROUTINES.values()} <= set(C_CALLS)


def test_a_call_is_equal_to_its_pickle() -> None:
    grown = routines.grow(kept, left, n)
    assert pickle.loads(pickle.dumps(grown)) == grown
