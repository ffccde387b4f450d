"""Names, expressions and vectors as C, and statements of a kernel as CUDA: what the text is, piece by piece."""

from __future__ import annotations

import pytest

from sparseloom.core.dtypes import BOOL, FLOAT32, FLOAT64, INT64, UINT8
from sparseloom.core.errors import CompilerBug
from sparseloom.loops import nodes as ir
from sparseloom.loops.reader import read
from sparseloom.targets.c_expr import Expressions, c_type, literal
from sparseloom.targets.c_names import CNames, legal
from sparseloom.targets.c_vectors import LaneExpressions, vector_helpers
from sparseloom.targets.cuda_stmt import KernelStatements

i, n, a = ir.Var("i"), ir.Var("n"), ir.Var("a", FLOAT64)
x, flags = ir.Array("x", FLOAT64), ir.Array("flags", BOOL)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [("rows", "rows"), ("int", "int_"), ("size_t", "size_t_"), ("_x", "v_x"), ("größe", "gru00f6u00dfe"), ("3", "v3"), ("", "v")],
)
def test_a_name_is_spelled_as_c_allows_it(name: str, spelled: str) -> None:
    assert legal(name) == spelled


def test_arrays_and_scalars_of_one_name_are_told_apart() -> None:
    names = CNames(["taken"])
    assert names.scalar("taken") != "taken"
    assert names.scalar("x") == names.scalar("x") == "x" and names.array(ir.Array("x", FLOAT64)) != "x"
    assert names.array(ir.Array("w", FLOAT64)) != names.array(ir.Array("w", FLOAT32)), "disjoint scopes may differ"


def expressions(**known: bool) -> Expressions:
    return Expressions(CNames([]), frozenset({"i", "n"}), frozenset({"i", "n"} if known.get("positive") else ()))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("x[i + 1] * 2.0", "x[i + 1] * 2.0"),
        ("(a + 1.0) * a - a / 2.0", "(a + 1.0) * a - a / 2.0"),
        ("min(x[i], a)", "minimum_float64(x[i], a)"),
        ("x[i // 2]", "x[floor_quotient(i, 2)]"),
        ("a if i < n else 0.0", "i < n ? a : 0.0"),
    ],
)
def test_an_expression_has_the_parentheses_that_it_needs(written: str, text: str) -> None:
    made = read(f"def kernel(output x: float64[], size i, size n)\n  a: float64 = 1.0\n  a = {written}\n")
    *_, assign = ir.stmts_of(made.body)
    assert isinstance(assign, ir.Assign)
    assert expressions().value(assign.value) == text


def test_indices_that_are_never_negative_are_divided_by_the_language() -> None:
    half = ir.Op("floor_divide", (i, ir.index(2)))
    assert expressions(positive=True).index(half) == "i / 2" and expressions().index(half) == "floor_quotient(i, 2)"


def test_literals_read_back_as_what_they_are() -> None:
    assert literal(0.1, FLOAT64).text == "0.1" and literal(float("inf"), FLOAT32).text == "INFINITY"
    assert literal(True, BOOL).text == "true" and c_type(UINT8) == "uint8_t"
    assert "INT64_MIN" in literal(-(2**63), INT64).text


def test_lanes_that_are_neighbours_are_one_vector() -> None:
    lane = ir.Var("lane")
    lanes = LaneExpressions(expressions(), lane, FLOAT64, short=False)
    assert lanes.value(ir.Load(x, ir.add(i, lane))) == "*(vector_float64 *)(x + i + lane)"
    assert lanes.broadcast(a) == "(vector_float64){} + a"
    gathered = ir.Load(x, ir.Cast(ir.Load(ir.Array("crd", INT64), ir.add(i, lane)), INT64))
    assert lanes.value(gathered).startswith("gather_float64_int64(x, crd + i + lane")
    names = [name for name, _ in vector_helpers(FLOAT32)]
    assert "vector_float32" in names and "gather_float32_int64" in names and not list(vector_helpers(BOOL))


HEAD = """\
def kernel(input x: float64[], output y: float64[], size n)
  launch n blocks of {0} threads, in groups of {1} and warps of 32, settled
"""


def cuda(body: str, threads: int = 64, lanes: int = 8) -> list[str]:
    function = read(HEAD.format(threads, lanes) + "    for b in 0 : n  [gpu block]\n" + body)
    launch = function.body
    assert isinstance(launch, ir.Launch)
    statements = KernelStatements(Expressions(CNames([]), frozenset(), frozenset({"b", "n", "t", "w"})), launch)
    statements.emit(launch.body)
    return [line.text.strip() for line in statements.lines]


def test_one_thread_stores_for_a_block_and_one_lane_for_a_warp() -> None:
    assert cuda("      y[b] = 1.0\n")[1:4] == ["if (threadIdx.x == 0) {", "y[b] = 1.0;", "}"]
    warp = cuda("      for w in 0 : 8  [gpu warp 8]\n        barrier\n        y[w] = 1.0\n")
    assert "__syncwarp(0xffu << (threadIdx.x % 32 / 8 * 8));" in warp and "if (threadIdx.x % 8 == 0) {" in warp
    assert cuda("      y[b] = 1.0\n", threads=1, lanes=1)[1:] == ["y[b] = 1.0;"]


def test_a_loop_over_threads_is_a_branch_unless_all_have_an_iteration() -> None:
    assert "const int64_t t = threadIdx.x;" in cuda("      for t in 0 : 64  [gpu thread 64]\n        y[t] = x[t]\n")
    assert "if (const int64_t t = threadIdx.x; t < n) {" in cuda("      for t in 0 : n  [gpu thread 64]\n        y[t] = x[t]\n")


def test_barriers_are_printed_where_they_stand_and_nowhere_else() -> None:
    text = cuda("      y[b] = 1.0\n      barrier\n      for t in 0 : 64  [gpu thread 64]\n        y[t] = y[b]\n")
    assert text.count("__syncthreads();") == 1


def test_what_a_cpu_runs_has_no_text_for_a_gpu() -> None:
    with pytest.raises(CompilerBug, match="a threads loop runs on a CPU, not in a kernel of a GPU"):
        cuda("      for k in 0 : n  [threads]\n        y[k] = 1.0\n")
    with pytest.raises(CompilerBug, match="a kernel of a GPU is not cancelled"):
        cuda("      poll\n")
