"""Whole kernels in C: the same answers as the interpreter, every failure clean, and text that reads well."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from targets.c_harness import both_ways, build, call, compile_all
from targets.loop_kernels import elementwise, histogram, positives, spmv, wide

from sparseloom.core.dtypes import BOOL, FLOAT64, INT32, INT64, VALUE_DTYPES
from sparseloom.core.errors import CompilerBug
from sparseloom.loops.interpret import KernelStatus, run
from sparseloom.loops.nodes import (
    ONE,
    ZERO,
    Allocate,
    Array,
    Assign,
    Cast,
    Declare,
    Fail,
    Fill,
    For,
    Free,
    Function,
    If,
    Literal,
    Load,
    LoopKind,
    MemorySpace,
    Op,
    Param,
    Poll,
    Reduction,
    Role,
    Search,
    Select,
    Status,
    Store,
    Var,
    While,
    add,
    block,
    compare,
    constant,
    multiply,
)
from sparseloom.loops.rename import alpha_rename
from sparseloom.loops.routines import grow
from sparseloom.loops.verify import verify
from sparseloom.targets.c import emit, prelude, translation_unit
from sparseloom.toolchain.loading import TAKES_ADDRESS

i, j, k, n, m = (Var(name) for name in "ijknm")
x, y = Array("x", FLOAT64), Array("y", FLOAT64)


def function(body, *params):
    """A kernel whose parameters are (target, role) pairs."""
    return Function("kernel", tuple(Param(target, role) for target, role in params), body)


def random_csr(rows, columns, density=0.3):
    matrix = sp.random_array((rows, columns), density=density, format="csr", rng=np.random.default_rng(3))
    return matrix, [matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data]


def test_spmv_agrees_with_scipy_and_the_interpreter(tmp_path):
    matrix, arrays = random_csr(20, 30)
    vector = np.random.default_rng(4).random(30)
    compiled, interpreted = both_ways(spmv(), [*arrays, vector, 20, np.full(20, np.nan)], tmp_path)
    np.testing.assert_allclose(compiled[-1], matrix @ vector)
    np.testing.assert_allclose(interpreted[-1], matrix @ vector)


def test_spmv_reads_as_if_written_by_hand():
    assert emit(spmv(), static=True) == (
        """\
static int32_t spmv(const int32_t *restrict A2_pos, const int32_t *restrict A2_crd,
                    const double *restrict A_vals, const double *restrict x_vals, int64_t n,
                    double *restrict y_vals, void *caller) {
  int32_t status = OK;
  struct poll_state poll = {1, 0, 0};
  int64_t countdown = 1;
  for (int64_t i = 0; i < n; i++) {
    if (--countdown == 0 && !(countdown = next_countdown(&poll, caller))) { status = CANCELLED; goto fail; }
    double sum = 0.0;
    for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
      int64_t j = A2_crd[p];  // coordinate
      sum += A_vals[p] * x_vals[j];
    }
    y_vals[i] = sum;
  }
  return OK;

fail:
  return status;
}

int32_t entry(void **args) {
  return spmv(args[1], args[2], args[3], args[4], (int64_t)args[5], args[6], args[0]);
}
"""
    )


def test_a_growing_result_is_handed_out_and_cleaned_up_in_one_place():
    assert emit(positives(), static=True).split("\n\nint32_t entry")[0] == (
        """\
static int32_t positives(const double *restrict x, int64_t n, double **kept_out, int64_t *count_out,
                         void *caller) {
  double *kept = NULL;
  int64_t count = 0;
  int32_t status = OK;
  int64_t capacity = 0;
  kept = allocate(capacity, sizeof(double));
  if (!kept) { status = OUT_OF_MEMORY; goto fail; }
  for (int64_t i = 0; i < n; i++) {
    if (x[i] > 0.0) {
      if (capacity < count + 1) {
        capacity = larger_capacity(capacity, count + 1);
        void *larger = reallocate(kept, capacity, sizeof(double));
        if (!larger) { status = OUT_OF_MEMORY; goto fail; }
        kept = larger;
      }
      kept[count] = x[i];
      count++;
    }
  }
  *kept_out = kept;
  *count_out = count;
  return OK;

fail:
  release(kept);
  return status;
}"""
    )


@pytest.mark.parametrize("dtype", [d for d in VALUE_DTYPES if d.kind in "iuf"], ids=str)
def test_a_growing_result_of_every_dtype(tmp_path, dtype):
    values = np.random.default_rng(5).integers(-3 if dtype.kind != "u" else 0, 4, 100).astype(dtype)
    compiled, interpreted = both_ways(positives(dtype), [values, 100, None, None], tmp_path)
    expected = values[values > 0]
    assert compiled[3] == interpreted[3] == len(expected)
    np.testing.assert_array_equal(compiled[2], expected)
    np.testing.assert_array_equal(interpreted[2][: len(expected)], expected)


def test_an_empty_growing_result_is_not_a_failure(tmp_path):
    compiled, interpreted = both_ways(positives(), [np.empty(0), 0, None, None], tmp_path)
    assert compiled[3] == interpreted[3] == 0


COUNTED = """
#define _GNU_SOURCE
#include <stdlib.h>
static long live = 0;
long living(void) { return live; }
static void *counted_malloc(size_t size) { void *made = malloc(size); live += made != NULL; return made; }
static void *counted_realloc(void *old, size_t size) { void *made = realloc(old, size); live += made && !old; return made; }
static void counted_free(void *old) { live -= old != NULL; free(old); }
#ifdef __linux__
#include <sys/mman.h>
static void *counted_mmap(void *at, size_t size, int protection, int flags, int file, off_t from) {
  void *made = mmap(at, size, protection, flags, file, from);
  live += made == MAP_FAILED ? 0 : (long)size;
  return made;
}
static int counted_munmap(void *old, size_t size) { live -= (long)size; return munmap(old, size); }
static void *counted_mremap(void *old, size_t before, size_t after, int flags, void *to) {
  live -= (long)before;
  return mremap(old, before, after, flags, to);
}
#define mmap counted_mmap
#define munmap counted_munmap
#define mremap counted_mremap
#endif
#define malloc counted_malloc
#define realloc counted_realloc
#define free counted_free
"""


def failing_kernels():
    kept, work, capacity = Array("kept", FLOAT64), Array("work", FLOAT64), Var("capacity")
    begin = block(Declare(capacity, n), Allocate(kept, capacity), Allocate(work, n), Store(kept, ZERO, constant(1, FLOAT64)))
    huge = Literal(2**59)
    ways = {
        "a huge allocation": (Allocate(Array("more", FLOAT64), huge), Status.OUT_OF_MEMORY),
        "a negative allocation": (Allocate(Array("more", FLOAT64), Literal(-1)), Status.OUT_OF_MEMORY),
        "an overflowing product": (Allocate(Array("more", FLOAT64), multiply(m, m)), Status.OUT_OF_MEMORY),
        "a huge growth": (grow(kept, capacity, huge), Status.OUT_OF_MEMORY),
        "an index overflow": (Fail(Status.INDEX_OVERFLOW), Status.INDEX_OVERFLOW),
        "a violated bound": (If(compare("greater", n, ONE), Fail(Status.BOUND_VIOLATED)), Status.BOUND_VIOLATED),
    }
    for name, (stmt, status) in ways.items():
        params = ((n, Role.SIZE), (m, Role.SIZE), (kept, Role.GROWN), (Var("count"), Role.COUNT))
        yield pytest.param(function(block(begin, stmt, Free(work)), *params), status, id=name)


@pytest.mark.parametrize(("kernel", "status"), list(failing_kernels()))
def test_a_failure_frees_everything_and_hands_out_nothing(tmp_path, kernel, status):
    verify(kernel)
    library = build(COUNTED + translation_unit([(kernel, "entry")]), tmp_path)
    for _ in range(3):
        with pytest.raises(KernelStatus) as failed:
            call(library.entry, kernel, [10, 2**40, None, None])
        assert failed.value.status is status
    assert library.living() == 0
    with pytest.raises(KernelStatus) as failed:
        run(kernel, [10, 2**40, None, None])
    assert failed.value.status is status


@pytest.mark.parametrize("steps", [1, 6, 40])
def test_arrays_keep_their_contents_as_they_grow_from_the_heap_onto_pages(tmp_path, steps):
    """A row of growths, each twice as large: from malloc to mappings, and from one mapping to a larger one."""
    kept, capacity, count, k = Array("kept", FLOAT64), Var("capacity"), Var("count"), Var("k")
    needed = multiply(add(k, ONE), Literal(60_000))
    grown = For(k, ZERO, n, block(grow(kept, capacity, needed), Store(kept, multiply(k, Literal(60_000)), Cast(k, FLOAT64))))
    body = block(Declare(capacity, ONE), Allocate(kept, capacity), grown, Assign(count, multiply(n, Literal(60_000))))
    kernel = function(body, (n, Role.SIZE), (kept, Role.GROWN), (count, Role.COUNT))
    library = build(COUNTED + translation_unit([(kernel, "entry")]), tmp_path)
    library.entry.give_back = TAKES_ADDRESS(("give_back", library))
    answer = call(library.entry, kernel, [steps, None, None])
    assert answer[1][:: 60_000].tolist() == list(range(steps))


def test_names_that_c_reserves(tmp_path):
    """Keywords, library names, our own identifiers, names with other characters, and names that then collide."""
    names = ("restrict", "exp", "λ", "u03bb", "index", "NULL", "j1", "j1_", "status", "OK")
    matrix, arrays = random_csr(6, 7)
    vector = np.arange(7.0)
    kernel = spmv(names)
    compiled, _ = both_ways(kernel, [*arrays, vector, 6, np.empty(6)], tmp_path)
    np.testing.assert_allclose(compiled[-1], matrix @ vector)
    more = ("minimum_float64", "args", "entry", "spmv", "next_countdown", "_Bool", "int8_t", "2fast", "fail", "a b")
    compiled, _ = both_ways(spmv(more), [*arrays, vector, 6, np.empty(6)], tmp_path)
    np.testing.assert_allclose(compiled[-1], matrix @ vector)
    assert emit(kernel) == emit(kernel)


def test_kernels_with_reserved_or_equal_names_share_a_file(tmp_path):
    kernels = [Function(name, f.params, f.body) for name in ("main", "sin", "twice", "twice") for f in [spmv()]]
    library = build(translation_unit([(f, f"e{k}") for k, f in enumerate(kernels)]), tmp_path)
    matrix, arrays = random_csr(5, 5)
    for number, kernel in enumerate(kernels):
        answer = call(getattr(library, f"e{number}"), kernel, [*arrays, np.ones(5), 5, np.empty(5)])
        np.testing.assert_allclose(answer[-1], matrix.sum(axis=1))


def test_the_prelude_holds_what_is_used_and_no_more(tmp_path):
    plain = prelude([elementwise("add", (FLOAT64, FLOAT64), FLOAT64)])
    assert plain == (
        "#include <stdbool.h>\n#include <stdint.h>\n\nenum { OK, OUT_OF_MEMORY, INDEX_OVERFLOW, BOUND_VIOLATED, CANCELLED };\n"
    )
    lowest = elementwise("minimum", (FLOAT64, FLOAT64), FLOAT64)
    assert "minimum_float64" in prelude([lowest])
    assert "maximum_float64" not in prelude([lowest])
    build(prelude([lowest]) + emit(lowest), tmp_path)


def literal_cases():
    for dtype in VALUE_DTYPES:
        match dtype.kind:
            case "b":
                yield dtype, [True, False]
            case "i" | "u":
                yield dtype, [0, 1, int(np.iinfo(dtype).max), int(np.iinfo(dtype).min)]
            case "f":
                yield dtype, [0.0, -0.0, 0.1, 1 / 3, 1e30, np.inf, -np.inf, np.nan, float(np.finfo(dtype).tiny), 1]
            case _:
                yield dtype, [0, complex(0.0, -0.0), complex(-0.0, np.inf), complex(np.nan, 1), 0.1 - 3j]


def test_constants_are_exact(tmp_path):
    kernels, wanted = [], []
    for dtype, values in literal_cases():
        out = Array("out", dtype)
        stores = [Store(out, Literal(place), Literal(value, dtype)) for place, value in enumerate(values)]
        kernels.append(function(block(*stores), (out, Role.OUTPUT)))
        wanted.append(np.array(values, dtype))
    for kernel, entry, expected in zip(kernels, compile_all(kernels, tmp_path), wanted, strict=True):
        compiled = call(entry, kernel, [np.empty_like(expected)])[0]
        interpreted = run(kernel, [np.empty_like(expected)])[0]
        assert [c.tobytes() for c in compiled if c == c] == [e.tobytes() for e in expected if e == e]
        np.testing.assert_array_equal(compiled, expected, strict=True)
        np.testing.assert_array_equal(interpreted, expected, strict=True)


def random_truth(generator, depth):
    """A random condition on index scalars and truth values."""
    if depth == 0:
        return Load(Array("t", BOOL), Literal(int(generator.integers(6))))
    match generator.integers(6):
        case 0:
            return Op("logical_not", (random_truth(generator, depth - 1),), BOOL)
        case 1:
            name = str(generator.choice(["less", "less_equal", "equal", "not_equal", "greater"]))
            return Op(name, (random_truth(generator, depth - 1), random_truth(generator, depth - 1)), BOOL)
        case 2:
            return compare("less", random_index(generator, depth - 1), random_index(generator, depth - 1))
        case 3:
            return Select(*(random_truth(generator, depth - 1) for _ in range(3)))
        case _:
            name = str(generator.choice(["logical_and", "logical_or", "logical_xor", "add", "multiply", "minimum", "maximum"]))
            return Op(name, tuple(random_truth(generator, depth - 1) for _ in range(generator.integers(2, 4))), BOOL)


def random_index(generator, depth):
    """A random index expression on i, j and int32 elements."""
    if depth <= 0:
        leaves = [i, j, Literal(int(generator.integers(-4, 5))), wide(Array("c", INT32), Literal(int(generator.integers(4))))]
        return leaves[generator.integers(4)]
    match generator.integers(4):
        case 0:
            left, right = random_index(generator, depth - 1), Literal(int(generator.choice([-3, -1, 2, 5])))
            return Op(str(generator.choice(["floor_divide", "remainder"])), (left, right))
        case 1:
            return Select(random_truth(generator, depth - 1), random_index(generator, depth - 1), random_index(generator, depth - 1))
        case 2:
            return Op("negative", (random_index(generator, depth - 1),))
        case _:
            name = str(generator.choice(["add", "subtract", "multiply", "minimum", "maximum"]))
            return Op(name, (random_index(generator, depth - 1), random_index(generator, depth - 1)))


def test_precedence_of_random_index_and_truth_expressions(tmp_path):
    """The parentheses that are left out change nothing; index expressions also stand where they are printed plainly."""
    generator = np.random.default_rng(9)
    truths, coordinates, out, at = Array("t", BOOL), Array("c", INT32), Array("out", INT64), Var("at")
    kernels = []
    for _ in range(60):
        number, condition = random_index(generator, 4), random_truth(generator, 4)
        body = block(
            Declare(at, number),
            Store(out, Op("remainder", (at, Literal(3))), at),
            Store(out, Literal(3), number),
            Store(out, Literal(4), Cast(condition, INT64)),
            If(condition, Store(out, Literal(5), ONE), Store(out, Literal(5), ZERO)),
        )
        loops = For(i, Literal(2), Literal(3), For(j, Literal(-7), Literal(-6), body))
        kernels.append(function(loops, (truths, Role.INPUT), (coordinates, Role.INPUT), (out, Role.OUTPUT)))
    entries = compile_all(kernels, tmp_path, "-O1", "-Wno-tautological-compare")
    for kernel, entry in zip(kernels, entries, strict=True):
        inputs = [generator.random(6) < 0.5, generator.integers(-9, 9, 4).astype(np.int32)]
        compiled = call(entry, kernel, [*inputs, np.zeros(6, np.int64)])[-1]
        interpreted = run(kernel, [*inputs, np.zeros(6, np.int64)])[-1]
        np.testing.assert_array_equal(compiled, interpreted)


@pytest.mark.parametrize("dtype", [INT32, INT64], ids=str)
def test_search_is_numpys_searchsorted(tmp_path, dtype):
    generator = np.random.default_rng(2)
    crd, keys, out = Array("crd", dtype), Array("keys", INT64), Array("out", INT64)
    begin, end = Var("begin"), Var("end")
    kernel = function(
        For(i, ZERO, n, Store(out, i, Search(crd, begin, end, Load(keys, i)))),
        (crd, Role.INPUT),
        (keys, Role.INPUT),
        (n, Role.SIZE),
        (begin, Role.SIZE),
        (end, Role.SIZE),
        (out, Role.OUTPUT),
    )
    (entry,) = compile_all([kernel], tmp_path)
    for length in (0, 1, 2, 3, 7, 8, 33):
        stored = np.sort(generator.integers(0, 40, length)).astype(dtype)
        wanted = np.array([-1, *range(42), 2**40], np.int64)
        for first, last in ((0, length), (length // 3, length), (length // 2, length // 2)):
            expected = first + np.searchsorted(stored[first:last], wanted)
            arguments = [stored, wanted, len(wanted), first, last, np.empty(len(wanted), np.int64)]
            np.testing.assert_array_equal(call(entry, kernel, arguments)[-1], expected)
            np.testing.assert_array_equal(run(kernel, arguments)[-1], expected)


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, np.nan, 1.5])
def test_fill(tmp_path, value):
    kernel = function(
        block(Fill(y, ZERO, n, constant(value, FLOAT64)), Fill(y, ONE, Op("subtract", (n, Literal(2))), Load(y, ZERO))),
        (n, Role.SIZE),
        (y, Role.OUTPUT),
    )
    compiled, interpreted = both_ways(kernel, [5, np.full(5, 7.0)], tmp_path)
    assert compiled[1].tobytes() == interpreted[1].tobytes() == np.full(5, value).tobytes()


def test_a_loops_bounds_are_read_once(tmp_path):
    """The body changes what the bound was computed from; the loop does not notice."""
    stop, ends = Var("stop"), Array("ends", INT64)
    kernel = function(
        block(
            Declare(stop, Literal(3)),
            Store(ends, ZERO, Literal(4)),
            For(i, ZERO, stop, block(Assign(stop, ONE), Store(ends, ONE, i))),
            For(i, ZERO, Load(ends, ZERO), block(Store(ends, ZERO, ZERO), Store(ends, Literal(2), i))),
        ),
        (ends, Role.OUTPUT),
    )
    compiled, interpreted = both_ways(kernel, [np.zeros(3, np.int64)], tmp_path)
    assert compiled[0].tolist() == interpreted[0].tolist() == [0, 2, 3]


def test_while_branches_and_stack_arrays(tmp_path):
    """A merge of two sorted arrays, through a small private array."""
    a, b, out = (Array(name, INT32) for name in ("a", "b", "out"))
    last, count = Array("last", INT64, MemorySpace.LOCAL), Var("count")
    left, right = wide(a, i), wide(b, j)

    def put(value):
        return block(Store(out, count, Cast(value, INT32)), Assign(count, add(count, ONE)))

    body = block(
        Allocate(last, Literal(2)),
        Fill(last, ZERO, Literal(2), ZERO),
        Declare(i, ZERO),
        Declare(j, ZERO),
        While(
            Op("logical_and", (compare("less", i, n), compare("less", j, m)), BOOL),
            If(
                compare("equal", left, right),
                block(put(left), Assign(i, add(i, ONE)), Assign(j, add(j, ONE)), Store(last, ZERO, ONE, "add")),
                If(compare("less", left, right), Assign(i, add(i, ONE)), Assign(j, add(j, ONE))),
            ),
        ),
        If(compare("not_equal", Load(last, ZERO), count), Fail(Status.BOUND_VIOLATED)),
        Free(last),
    )
    kernel = function(body, (a, Role.INPUT), (n, Role.SIZE), (b, Role.INPUT), (m, Role.SIZE), (out, Role.OUTPUT), (count, Role.COUNT))
    first, second = np.array([1, 3, 5, 7, 9], np.int32), np.array([0, 3, 4, 9], np.int32)
    compiled, interpreted = both_ways(kernel, [first, 5, second, 4, np.zeros(5, np.int32), None], tmp_path)
    assert compiled[-1] == interpreted[-1] == 2
    assert compiled[4].tolist() == interpreted[4].tolist() == [3, 9, 0, 0, 0]
    assert "} else if (a[i] < b[j]) {" in emit(kernel)
    assert "malloc" not in prelude([kernel])


def total(dtype, op, kind, factor=0):
    """Reduce x to one number in a loop of some kind."""
    values, out, sum_ = Array("x", dtype), Array("out", dtype), Var("total", dtype)
    loop = For(i, ZERO, n, Assign(sum_, Op(op, (sum_, Load(values, i)), dtype)), kind, factor, (Reduction(sum_, op),))
    return function(
        block(Declare(sum_, Load(values, ZERO)), loop, Store(out, ZERO, sum_)), (values, Role.INPUT), (n, Role.SIZE), (out, Role.OUTPUT)
    )


def test_vector_unrolled_and_threads_loops_reduce(tmp_path):
    ways = [(LoopKind.VECTOR, 4), (LoopKind.VECTOR, 0), (LoopKind.UNROLLED, 4), (LoopKind.THREADS, 0)]
    dtypes = [np.dtype(name) for name in ("float64", "int32", "uint8", "complex128", "bool")]
    cases = [
        (total(dtype, op, kind, factor), dtype)
        for kind, factor in ways
        for dtype in dtypes
        for op in ("add", "multiply", "minimum", "maximum")
        if dtype.kind != "c" or op in ("add", "multiply")
    ]
    entries = compile_all([kernel for kernel, _ in cases], tmp_path)
    generator = np.random.default_rng(1)
    for (kernel, dtype), entry in zip(cases, entries, strict=True):
        values = generator.integers(0, 3, 37).astype(dtype)
        compiled = call(entry, kernel, [values, 37, np.empty(1, dtype)])[-1]
        np.testing.assert_array_equal(compiled, run(kernel, [values, 37, np.empty(1, dtype)])[-1])
    kernel = total(FLOAT64, "minimum", LoopKind.VECTOR)
    compiled, _ = both_ways(kernel, [np.array([1.0, np.nan, 0.0, 2.0]), 4, np.empty(1)], tmp_path)
    assert np.isnan(compiled[-1][0])


@pytest.mark.parametrize("op", ["add", "multiply", "minimum", "maximum"])
def test_atomic_updates(tmp_path, op):
    generator = np.random.default_rng(6)
    dtypes = [d for d in VALUE_DTYPES if d.kind != "c" or op in ("add", "multiply")]
    kernels = [histogram(dtype, op, atomic=True) for dtype in dtypes]
    for kernel, entry, dtype in zip(kernels, compile_all(kernels, tmp_path), dtypes, strict=True):
        keys, values = generator.integers(0, 5, 300), generator.integers(1, 3, 300).astype(dtype)
        start = np.ones(5, dtype)
        compiled = call(entry, kernel, [keys, values, 300, start.copy()])[-1]
        interpreted = run(kernel, [keys, values, 300, start.copy()], outputs_initialised=True)[-1]
        np.testing.assert_array_equal(compiled, interpreted, strict=True)


def test_threads_with_their_own_memory_fail_cleanly(tmp_path):
    """Each iteration allocates; a size that cannot be had ends the kernel and leaves nothing behind."""
    sizes, work = Array("sizes", INT64), Array("work", FLOAT64)
    body = block(
        Poll(),
        Allocate(work, Load(sizes, i)),
        Fill(work, ZERO, Literal(1), constant(2, FLOAT64)),
        Store(y, i, Load(work, ZERO)),
        Free(work),
    )
    kernel = function(For(i, ZERO, n, body, LoopKind.THREADS), (sizes, Role.INPUT), (n, Role.SIZE), (y, Role.OUTPUT))
    verify(kernel)
    counted = COUNTED.replace("live += made != NULL", "__atomic_add_fetch(&live, made != NULL, 5)").replace(
        "live -= old != NULL", "__atomic_sub_fetch(&live, old != NULL, 5)"
    )
    library = build(counted + translation_unit([(kernel, "entry")]), tmp_path)
    lengths = np.full(40, 3)
    assert call(library.entry, kernel, [lengths, 40, np.empty(40)])[-1].tolist() == [2.0] * 40
    assert run(kernel, [lengths, 40, np.empty(40)])[-1].tolist() == [2.0] * 40
    lengths[17] = 2**59
    with pytest.raises(KernelStatus) as failed:
        call(library.entry, kernel, [lengths, 40, np.empty(40)])
    assert failed.value.status is Status.OUT_OF_MEMORY
    assert library.living() == 0


def test_a_long_kernel_can_be_cancelled(tmp_path):
    """A kernel that would run for ever ends soon after it is told to."""
    kernel = function(
        block(Declare(i, ZERO), While(compare("less", i, n), block(Poll(), Store(y, ZERO, constant(1, FLOAT64))))),
        (n, Role.SIZE),
        (y, Role.OUTPUT),
    )
    (entry,) = compile_all([kernel], tmp_path)
    asked = threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int32)
    def cancelled():
        again = asked.is_set()
        asked.set()
        return int(again)

    with pytest.raises(KernelStatus) as stopped:
        call(entry, kernel, [1, np.empty(1)], cancelled)
    assert stopped.value.status is Status.CANCELLED


def test_remarks_cannot_escape(tmp_path):
    first, second = Declare(Var("one"), ZERO, "one \\"), Declare(Var("two"), ZERO, "a\nb */ #define y\n\\")
    remarked = [first, second, Declare(Var("\u03c0"), ZERO, "\u03c0\u2028")]
    kernel = function(block(*remarked, Store(y, ZERO, constant(1, FLOAT64))), (y, Role.OUTPUT))
    assert emit(kernel).isascii()
    compiled, _ = both_ways(kernel, [np.zeros(1)], tmp_path)
    assert compiled[0][0] == 1


def test_device_loops_are_refused():
    kernel = function(For(i, ZERO, n, Store(y, i, constant(1, FLOAT64)), LoopKind.GPU_BLOCK), (n, Role.SIZE), (y, Role.OUTPUT))
    with pytest.raises(CompilerBug, match="runs on a device, not in C"):
        emit(kernel)


def test_renamed_kernels_give_one_text():
    other = spmv(("restrict", "exp", "λ", "u03bb", "index", "NULL", "j1", "j1_", "status", "OK"))
    assert emit(alpha_rename(spmv())) == emit(alpha_rename(other))


def test_values_wrap_and_indices_stay_readable():
    """int64 values are added as unsigned; a position, which cannot overflow, is not."""
    values, out, sum_ = Array("v", INT64), Array("out", INT64), Var("sum")
    loop = For(i, ZERO, n, block(Assign(sum_, Op("add", (sum_, Load(values, add(multiply(i, Literal(2)), ONE)))))))
    text = emit(
        function(block(Declare(sum_, ZERO), loop, Store(out, ZERO, sum_)), (values, Role.INPUT), (n, Role.SIZE), (out, Role.OUTPUT))
    )
    assert "sum = (int64_t)((uint64_t)sum + (uint64_t)v[i * 2 + 1]);" in text
