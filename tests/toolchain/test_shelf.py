"""Memory of results that are gone is kept for the next ones, up to a limit, and given back when it is needed."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import sparseloom as sl
from sparseloom.core.settings import kept_memory, settings
from sparseloom.programs.calling import address_of
from sparseloom.targets.c import C
from sparseloom.targets.c_prelude import PLACES
from sparseloom.toolchain.shelf import shelf_of
from sparseloom.toolchain.teams import threads

MEGABYTE = 1 << 20
shelf = shelf_of(C.allocator)
SUM = "C(i,j) = A(i,j) + B(i,j)"


@pytest.fixture
def limited() -> Iterator[Callable[[int], None]]:
    """Sets how much is kept, and empties the shelf before and after."""

    def limit(size: int) -> None:
        shelf.empty()
        settings.kept_memory = size
        shelf.renew_limit()

    before = settings.kept_memory
    yield limit
    settings.kept_memory = before
    shelf.empty()
    shelf.renew_limit()


def matrix(rows: int, each: int) -> sl.Tensor:
    """Rows of ``each`` entries, so that a sum has a known size."""
    columns = np.arange(rows * each, dtype=np.int32) % (4 * each)
    columns.reshape(rows, each).sort()
    pos = np.arange(rows + 1, dtype=np.int32) * each
    return sl.from_arrays("csr", (rows, 4 * each), {"pos1": pos, "crd1": columns, "values": np.ones(rows * each)})


def add(a: sl.Tensor, schedule: str = "bound(i, ib, 0, MinExact)") -> sl.Tensor:
    """A sum, on one thread unless the schedule says otherwise."""
    return sl.program(SUM, {"A": "csr", "B": "csr", "C": "csr"}, schedule)(a, a)


def test_a_large_result_gets_the_memory_of_the_one_before(limited: Callable[[int], None]) -> None:
    limited(64 * MEGABYTE)
    a = matrix(1000, 1000)
    first = add(a)
    address = address_of(first.storage.values)
    assert shelf.kept == 0
    del first
    assert shelf.kept > 16 * MEGABYTE
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    second = add(a)
    assert address_of(second.storage.values) == address
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults < 100  # huge or not, no page is touched for the first time
    assert second.storage.values[-1] == 2.0 and shelf.kept == 0


def test_nothing_is_kept_beyond_the_limit(limited: Callable[[int], None]) -> None:
    a = matrix(1000, 1000)
    limited(0)
    add(a)
    assert shelf.kept == 0
    limited(20 * MEGABYTE)
    results = [add(a) for _ in range(3)]
    results.clear()
    assert 0 < shelf.kept <= 20 * MEGABYTE


def test_a_shelf_that_is_full_keeps_the_newest(limited: Callable[[int], None]) -> None:
    limited(1 << 30)
    a = matrix(300, 1000)
    results = [add(a) for _ in range(PLACES)]
    results.clear()
    assert 0 < shelf.kept <= PLACES * 8 * MEGABYTE


def test_threads_share_the_shelf(limited: Callable[[int], None]) -> None:
    limited(256 * MEGABYTE)
    a = matrix(500, 1000)
    kernel = sl.program(SUM, {"A": "csr", "B": "csr", "C": "csr"})
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            made = kernel(a, a)
            if not (len(made.storage.values) == 500_000 and (made.storage.values == 2.0).all()):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and shelf.kept <= 256 * MEGABYTE


def test_a_part_shrinks_below_what_is_mapped(limited: Callable[[int], None]) -> None:
    """Threads have room for all entries there may be, which is mapped; joined, the result is so small that it would not be."""
    limited(64 * MEGABYTE)
    a = matrix(600, 1000)
    for _ in range(3):
        made = add(a, "parallelize(i, CPUThread, NoRaces)")
        np.testing.assert_array_equal(made.storage.values, np.full(600_000, 2.0))
        np.testing.assert_array_equal(made.storage.levels[1].arrays["crd"], a.storage.levels[1].arrays["crd"])


def test_the_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "kept_memory", None)
    monkeypatch.setenv("SPARSELOOM_KEEP_MEMORY", "3M")
    assert kept_memory() == 3 * MEGABYTE
    monkeypatch.setenv("SPARSELOOM_KEEP_MEMORY", "much")
    with pytest.raises(sl.ToolchainError, match="SPARSELOOM_KEEP_MEMORY is 'much', which is not a size"):
        kept_memory()
    monkeypatch.delenv("SPARSELOOM_KEEP_MEMORY")
    assert 0 < kept_memory() <= 1 << 30


def test_what_is_kept_can_be_released(limited: Callable[[int], None]) -> None:
    limited(64 * MEGABYTE)
    add(matrix(1000, 1000))
    assert sl.release_memory() > 16 * MEGABYTE
    assert shelf.kept == sl.release_memory() == 0


def test_what_one_result_grew_through_serves_the_next(limited: Callable[[int], None]) -> None:
    """Blocks that hold an entry each need sixteen times the room that is guessed; what is kept does not pile up."""
    limited(1 << 30)
    scattered = sl.random((10_000, 10_000), density=1e-3, format="csr", seed=5)
    with threads(1):  # several take what is kept in any order
        kept = [_kept_after(scattered) for _ in range(8)]
        assert kept[-1] == kept[-2] == kept[-3] < 256 * MEGABYTE
    assert max(_kept_after(scattered) for _ in range(8)) < 256 * MEGABYTE


def _kept_after(matrix: sl.Tensor) -> int:
    """How much memory is kept when a matrix has been put into blocks."""
    assert matrix.to("bcsr(4)").nnz > 0
    return shelf.kept


def test_results_that_nobody_asks_for_are_given_back(limited: Callable[[int], None]) -> None:
    limited(256 * MEGABYTE)
    a = matrix(1000, 1000)
    bound = sl.program(SUM, {"A": "csr", "B": "csr", "C": "csr"}, "bound(i, ib, 0, MinExact)").bind(a, a)
    bound.start()
    bound.start()
    for _ in range(10):
        bound.start()
        assert shelf.kept < 64 * MEGABYTE


def test_a_result_has_room_for_as_many_entries_as_the_last_one() -> None:
    """But no more than that, however many are read."""
    kernel = sl.program("C(i,k) = A(i,j) * B(j,k)", {"A": "csr", "B": "csr", "C": "csr"})
    full, thin = (sl.random((60, 60), density, format="csr", seed=3) for density in (0.5, 0.02))
    for given in (full, thin, full, full):
        np.testing.assert_allclose(kernel(given, given).to_numpy(), given.to_numpy() @ given.to_numpy())
