"""Measure products of sparse matrices beside SciPy, small ones above all, and from where on `sl.accelerate.scipy()` gains.

    make bench-products                              all of it, in less than three minutes
    make bench-products ARGS="--only products"       or accelerate
    make bench-products ARGS="--seconds 1"           longer, so quieter

Whoever computes the same thing runs in turn, warm, and allocates its result anew. A time is the least of many rounds, a ratio SciPy's time
over ours: above 1 we are faster. On one thread the clock is that of the process, which counts only its own work. Every answer is checked.
It needs NumPy, SciPy and a C compiler; real matrices are taken from ../shared/data where that is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

import sparseloom as sl
from benchmarks.real_data import REAL_DATA
from benchmarks.report import Table, duration, plural, times
from benchmarks.stand_ins import Make, banded, power_law, real, uniform
from benchmarks.threads import wait_quietly
from benchmarks.timing import WALL, Clock, geometric_mean, race, sample

Run = Callable[[], Any]
WORK = 1e-3  # seconds of SciPy's from which on no product should be slower than SciPy's
STATEMENT = "C(i,k) = A(i,j) * B(j,k)"
REAL = ("wiki-Vote", "memplus", "cage10", "4elt", "astro-ph", "lp_maros-r7", "wordnet_lemma_synset", "bcsstk13", "sherman3", "copter2")
OWN: Clock = time.process_time
SIZES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 3_000_000)
LONG = 50e-3  # seconds


def generated() -> dict[str, Make]:
    """Products of half a millisecond to a fifth of a second, on one core."""
    return {
        "uniform 1,500, 7 a row": lambda: uniform(1_500, 1_500, 10_500),
        "uniform 3,000, 10 a row": lambda: uniform(3_000, 3_000, 30_000),
        "uniform 10,000, 5 a row": lambda: uniform(10_000, 10_000, 50_000),
        "uniform 10,000, 20 a row": lambda: uniform(10_000, 10_000, 200_000),
        "uniform 1,000, 100 a row": lambda: uniform(1_000, 1_000, 100_000),
        "uniform 100,000, 8 a row": lambda: uniform(100_000, 100_000, 800_000),
        "power law 5,000": lambda: power_law(5_000, 20_000),
        "power law 20,000": lambda: power_law(20_000, 100_000),
        "band 20,000, 5 wide": lambda: banded(20_000, 5),
        "band 20,000, 27 wide": lambda: banded(20_000, 27),
    }


def matrices() -> Iterator[tuple[str, Any]]:
    """All matrices, as SciPy has them. Zeros that are stored are left out: SciPy's products drop them, ours do not."""
    files = real(REAL_DATA, [f"{name}.mtx.gz" for name in REAL])
    for name, make in {**generated(), **files}.items():
        matrix = sp.csr_array(make().to("csr").to_scipy()).astype(np.float64)
        matrix.eliminate_zeros()
        yield name, matrix


def products(A: Any) -> dict[str, tuple[Run, Run]]:
    """What is multiplied, by SciPy and by us. All but A.T @ A are A times its transpose."""
    B = A.T.tocsr()
    C = B.tocsc()
    a, b, c = sl.asarray(A), sl.asarray(B), sl.asarray(C)
    return {
        "A @ A.T": (lambda: A @ A.T, lambda: a @ a.T),
        "A.T @ A": (lambda: A.T @ A, lambda: a.T @ a),
        "csr @ csr": (lambda: A @ B, lambda: a @ b),
        "csr @ csc": (lambda: A @ C, lambda: a @ c),
        "evaluate": (lambda: A @ B, lambda: sl.evaluate(STATEMENT, A=a, B=b)),
    }


def check_product(what: str, left: Any, right: Any, theirs: Any, ours: Any) -> None:
    """Stop if a product is wrong: it has an entry wherever terms meet, also where they cancel, which SciPy's drops as its rounding falls.

    Values differ by what the order of a sum explains: 4 n eps of the sum of all magnitudes.
    """
    present = sp.csr_array(_of_ones(left) @ _of_ones(right))
    present.sort_indices()
    found = sp.csr_array(ours.to_scipy())
    if not (np.array_equal(found.indptr, present.indptr) and np.array_equal(found.indices, present.indices)):
        sys.exit(f"{what}: the structure is wrong")
    bound = 4 * left.shape[1] * np.finfo(np.float64).eps
    if (abs(found - sp.csr_array(theirs)) - bound * sp.csr_array(abs(left) @ abs(right))).max() > 0:
        sys.exit(f"{what}: values are wrong")


def _of_ones(matrix: Any) -> Any:
    """The same entries, all of them 1, so that none cancel."""
    made = matrix.copy()
    made.data = np.ones_like(made.data)
    return made


def check(what: str, theirs: Any, ours: Any) -> None:
    """Stop if SciPy gives something else with us behind it, on matrices in which nothing cancels."""
    if sp.issparse(theirs):
        both: list[Any] = [theirs, ours]
        theirs, ours = (one.sorted_indices() for one in both)
        if not (np.array_equal(ours.indptr, theirs.indptr) and np.array_equal(ours.indices, theirs.indices)):
            sys.exit(f"{what}: the structure is wrong")
        theirs, ours = theirs.data, ours.data
    if not np.allclose(ours, theirs, rtol=1e-12, atol=0):
        sys.exit(f"{what}: values are wrong")


def least(theirs: Run, ours: Run, seconds: float, clock: Clock) -> tuple[float, float]:
    """The least times of both."""
    samples = race({"theirs": theirs, "ours": ours}, seconds, clock).samples
    return min(samples["theirs"]), min(samples["ours"])


def measure_products(seconds: float) -> list[Table]:
    """The tables of products, for the usual number of threads and for one."""
    threads = sl.get_threads()
    tables: dict[tuple[int, bool], list[list[str]]] = {(threads, True): [], (1, False): []}
    ratios: dict[tuple[int, bool], list[float]] = {way: [] for way in tables}
    for name, A in matrices():
        asked = products(A)
        for what, (theirs, ours) in asked.items():
            left, right = (A.T, A) if what == "A.T @ A" else (A, A.T)
            check_product(f"{what} of {name}", left, right, theirs(), ours())
        for count, is_wall in tables:
            sl.set_threads(count)
            row = [name, f"{A.nnz:,}"]
            for theirs, ours in asked.values():
                time_of_theirs, time_of_ours = least(theirs, ours, seconds, WALL if is_wall else OWN)
                ratio = time_of_theirs / time_of_ours
                row.append(f"{duration(time_of_theirs)} {times(ratio)}")
                ratios[count, is_wall] += [ratio] if time_of_theirs >= WORK else []
            tables[count, is_wall].append(row)
            sl.set_threads(threads)
            print(f"{'threads' if is_wall else 'one thread'}: {', '.join(row)}", file=sys.stderr, flush=True)
    heads = ["", "stored", "A @ A.T", "A.T @ A", "csr @ csr", "csr @ csc", "evaluate"]
    return [_products_table(count, is_wall, heads, rows, ratios[count, is_wall]) for (count, is_wall), rows in tables.items()]


def _products_table(count: int, is_wall: bool, heads: list[str], rows: list[list[str]], ratios: list[float]) -> Table:
    title = f"Products, {count} threads" if is_wall else "Products, one thread, time of the process"
    short = sum(ratio < 1 for ratio in ratios)
    note = (
        f"SciPy's time, and that over ours. Of the {len(ratios)} that take SciPy {duration(WORK)} or more, {short} are slower with us; "
        f"the geometric mean is {times(geometric_mean(ratios))}, the least {times(min(ratios))}."
    )
    return Table(title, note, heads, rows)


def accelerated(entries: int) -> Mapping[str, Run]:
    """What SciPy computes on matrices with so many entries, twenty to a row (a product has five), whoever is behind it."""
    size, rows = entries // 20, entries // 5
    A, few = uniform(size, size, entries).to_scipy(), uniform(rows, rows, entries).to_scipy()
    B, x, X = A.T.tocsr(), np.ones(size), np.ones((size, 8))
    return {
        "A @ x": lambda: A @ x,
        "A @ X, 8 wide": lambda: A @ X,
        "A @ B": lambda: few @ few,
        "A + B": lambda: A + B,
        "A - B": lambda: A - B,
    }


def measure_accelerated(seconds: float) -> list[Table]:
    """On one thread, on two, and on all; what takes SciPy long is not asked of larger matrices."""
    tables, usual = [], sl.get_threads()
    for threads in sorted({1, min(2, usual), usual}):
        sl.set_threads(threads)
        rows: dict[str, list[str]] = {}
        for entries in SIZES:
            for what, run in accelerated(entries).items():
                row = rows.setdefault(what, [what])
                if row[-1] == "":
                    row.append("")
                    continue
                theirs, ours = _beside_itself(run, what, seconds, OWN if threads == 1 else WALL)
                row.append(f"{duration(theirs)} {times(theirs / ours)}" if theirs < LONG else "")
        note = "SciPy's time, and that over ours under sl.accelerate.scipy(least=0), by the entries of a matrix."
        title = f"Accelerated, {plural(threads, 'thread')}"
        tables.append(Table(title, note, ["", *(f"{size:,}" for size in SIZES)], list(rows.values())))
    sl.set_threads(usual)
    return tables


def _beside_itself(run: Run, what: str, seconds: float, clock: Clock) -> tuple[float, float]:
    """The least time of a call without and with us behind it, in turn."""
    times_of: dict[bool, list[float]] = {False: [], True: []}
    wanted, end = run(), time.perf_counter() + seconds
    while time.perf_counter() < end or len(times_of[True]) < 5:
        for with_us in (False, True):
            faster = sl.accelerate.scipy(least=0) if with_us else None
            made = run()  # the first one finds its own data in no cache
            if with_us and not times_of[True]:
                check(what, wanted, made)
            times_of[with_us].append(sample(run, 3, clock))
            if faster is not None:
                faster.undo()
    return min(times_of[False]), min(times_of[True])


MEASURES: dict[str, Callable[[float], list[Table]]] = {"products": measure_products, "accelerate": measure_accelerated}


def main() -> int:
    """Measure what was asked for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=list(MEASURES), help="one of the two")
    parser.add_argument("--seconds", type=float, default=0.25, help="for each product on each matrix (default 0.25)")
    asked = parser.parse_args()
    wait_quietly()
    for name in [asked.only] if asked.only else MEASURES:
        for table in MEASURES[name](asked.seconds if name == "products" else asked.seconds / 2):
            print(table.for_markdown() + "\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
