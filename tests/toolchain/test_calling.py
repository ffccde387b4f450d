"""Calling entries: packs, statuses, Ctrl-C, and memory that a kernel hands over."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toolchain.kernels import ENDLESS, MAKES_SQUARES, POLLING, SELF_INTERRUPTING, returning

from sparseloom.core.errors import CompilerBug, ShapeError, SparseloomError
from sparseloom.loops.nodes import Status
from sparseloom.programs import calling
from sparseloom.programs.calling import IndexOverflow, Pack, address_of, adopt, bind, run
from sparseloom.toolchain.libraries import load

SOURCE = Path(__file__).parents[2] / "src"

ECHO = """
#include <stdint.h>
#include <string.h>
int32_t entry(void **args) { memcpy(args[1], args, (int64_t)args[2] * sizeof(void *)); return 0; }
"""

# Waits until another thread has written args[1], or gives up after some thirty seconds.
WAITS = """
#include <stdint.h>
#include <unistd.h>
int32_t entry(void **args)
{
    volatile int64_t *flag = args[1];
    for (int n = 0; n < 30000 && !*flag; n++)
        usleep(1000);
    return *flag ? 0 : 3;
}
"""


@contextmanager
def handling(handler: Any) -> Iterator[None]:
    """Answer SIGINT with this handler."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_pack_holds_addresses_integers_and_slots() -> None:
    words, other = np.zeros(8, np.int64), np.arange(3.0)
    frozen = np.arange(4, dtype=np.int8)
    frozen.flags.writeable = False
    (entry,) = load(ECHO)
    pack = Pack([words, 8, other, -5, None, np.int64(2**62), frozen[1:]])
    run(entry, pack)
    assert words[1:].tolist() == [words.ctypes.data, 8, other.ctypes.data, -5, 0, 2**62, frozen.ctypes.data + 1]
    assert words[0] != 0
    assert pack.slot(3) == -5


def test_a_pack_keeps_its_arrays_alive() -> None:
    (entry,) = load(ECHO)
    words = np.zeros(3, np.int64)
    owner = np.arange(1000)
    counts = sys.getrefcount(words), sys.getrefcount(owner)
    call = bind(entry, Pack([words, 3, address_of(owner)], keep=owner))
    gc.collect()
    assert (sys.getrefcount(words), sys.getrefcount(owner)) == (counts[0] + 1, counts[1] + 1)
    call()
    assert words[1] == words.ctypes.data


@pytest.mark.parametrize("values", [np.zeros(0), np.zeros(()), np.zeros((3, 4))[::2, 1:], np.zeros(5, ">i4"), np.rec.array([(1, 2.0)])])
def test_the_address_of_an_array_is_numpys(values: np.ndarray[Any, Any]) -> None:
    assert address_of(values) == values.ctypes.data


def test_without_knowing_numpys_layout_the_address_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling.sys.implementation, "name", "another")
    assert calling._data_field() == 0
    monkeypatch.setattr(calling, "_DATA_FIELD", 0)
    values = np.arange(3)
    assert address_of(values) == values.ctypes.data


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (Status.OUT_OF_MEMORY, MemoryError, "a kernel could not allocate memory for its result or workspace"),
        (Status.INDEX_OVERFLOW, IndexOverflow, "a position does not fit into the index type of the result"),
        (
            Status.BOUND_VIOLATED,
            ShapeError,
            "a bound that the schedule promises does not hold for these operands\n"
            "  help: correct the bound(...) step, or leave it out and the loop takes its limits from the operands",
        ),
        (Status.CANCELLED, KeyboardInterrupt, ""),
    ],
)
def test_a_status_becomes_an_exception(status: Status, error: type[BaseException], text: str) -> None:
    (entry,) = load(returning(status.value))
    for call in (bind(entry, Pack([])), lambda: run(entry, Pack([]))):
        with pytest.raises(error) as raised:
            call()
        assert str(raised.value) == text


def test_ok_is_silent_and_an_unknown_status_is_a_bug() -> None:
    run(load(returning(0))[0], Pack([]))
    with pytest.raises(CompilerBug, match=r"a kernel should return a known status\n  at: status 17"):
        run(load(returning(17))[0], Pack([]))
    assert issubclass(IndexOverflow, SparseloomError)


def test_an_interrupt_ends_a_kernel_and_the_next_runs_again() -> None:
    (entry,) = load(SELF_INTERRUPTING)
    with handling(signal.default_int_handler):
        for _ in range(3):
            pack = Pack([100, None])
            with pytest.raises(KeyboardInterrupt):
                run(entry, pack)
            assert pack.slot(1) < 100
    with handling(signal.SIG_IGN):
        pack = Pack([5, None])
        run(entry, pack)
        assert pack.slot(1) == 5


def test_what_a_handler_raises_comes_out_of_the_call() -> None:
    class Enough(BaseException):
        pass

    def handler(*_: object) -> None:
        raise Enough("of that")

    (entry,) = load(SELF_INTERRUPTING)
    with handling(handler), pytest.raises(Enough, match="of that"):
        run(entry, Pack([100, None]))


def test_a_handler_that_returns_lets_the_kernel_finish() -> None:
    seen: list[int] = []
    (entry,) = load(SELF_INTERRUPTING)
    pack = Pack([20, None])
    with handling(lambda number, _: seen.append(number)):
        run(entry, pack)
    assert seen == [signal.SIGINT]
    assert pack.slot(1) == 20


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_a_handler_may_run_kernels_itself(depth: int) -> None:
    """Each handler interrupts the kernel that it runs, so that handlers and kernels stand inside one another."""
    inner, outer, finished = load(POLLING)[0], load(SELF_INTERRUPTING)[0], list[int]()

    active: list[int] = []

    def handler(*_: object) -> None:
        pack, entry = Pack([30, None]), inner if len(active) == depth - 1 else outer
        active.append(1)
        run(entry, pack)
        finished.append(pack.slot(1))

    with handling(handler):
        pack = Pack([30, None])
        run(outer, pack)
    assert pack.slot(1) == 30 and finished == [30] * depth


def test_an_interrupt_of_a_handlers_kernel_ends_both() -> None:
    (entry,), seen = load(SELF_INTERRUPTING), list[int]()

    def handler(number: int, _: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt
        run(entry, Pack([100, None]))

    with handling(handler):
        pack = Pack([100, None])
        with pytest.raises(KeyboardInterrupt):
            run(entry, pack)
        assert pack.slot(1) < 100 and len(seen) == 2
        seen[:] = [0, 0]
    with handling(signal.SIG_IGN):
        pack = Pack([20, None])
        run(entry, pack)
        assert pack.slot(1) == 20


def test_a_handler_that_catches_an_interrupt_lets_the_kernel_go_on() -> None:
    (entry,), seen = load(SELF_INTERRUPTING), list[int]()

    def handler(number: int, _: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            run(entry, Pack([100, None]))

    with handling(handler):
        pack = Pack([40, None])
        run(entry, pack)
        assert pack.slot(1) == 40 and len(seen) == 2


def test_a_second_interrupt_while_the_first_is_raised_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come before the first is cleared away; the next kernel must not hear of either."""

    def interrupted() -> BaseException:
        raise KeyboardInterrupt

    (entry,), (polling,) = load(SELF_INTERRUPTING), load(POLLING)
    pack = Pack([20, None])
    call = bind(polling, pack)
    with handling(signal.default_int_handler), monkeypatch.context() as during:
        during.setattr(calling, "_stopped", interrupted)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                run(entry, Pack([100, None]))
    call()
    assert pack.slot(1) == 20


def test_a_kernel_in_another_thread_is_not_interrupted() -> None:
    seen: list[int] = []
    (entry,) = load(SELF_INTERRUPTING)
    packs = [Pack([20, None]) for _ in range(4)]  # made here, used there
    with handling(lambda number, _: seen.append(number)):
        threads = [threading.Thread(target=run, args=(entry, pack)) for pack in packs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [pack.slot(1) for pack in packs] == [20] * 4
    assert seen


def test_ctrl_c_ends_an_endless_kernel() -> None:
    program = (
        "import sys, threading; import numpy as np\n"
        "from sparseloom.programs.calling import Pack, run\n"
        "from sparseloom.toolchain.libraries import load\n"
        "(entry,), started = load(sys.argv[1]), np.zeros(1, np.int64)\n"
        "def report():\n"
        "    while not started[0]: pass\n"
        "    print('running', flush=True)\n"
        "threading.Thread(target=report).start()\n"
        "run(entry, Pack([started]))\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program, ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    try:
        assert worker.stdout is not None and worker.stdout.readline() == "running\n"
        worker.send_signal(signal.SIGINT)
        _, errors = worker.communicate(timeout=60)
    finally:
        worker.kill()
    assert errors.endswith("KeyboardInterrupt\n") and "ignored" not in errors
    assert worker.returncode == -signal.SIGINT


def test_other_threads_run_during_a_call() -> None:
    flag = np.zeros(1, np.int64)
    (entry,) = load(WAITS)
    thread = threading.Thread(target=flag.fill, args=(1,))
    timer = threading.Timer(0.01, thread.start)
    timer.start()
    run(entry, Pack([flag]))
    timer.join()
    thread.join()


def squares(count: int) -> np.ndarray[Any, Any]:
    (entry,) = load(MAKES_SQUARES)
    pack = Pack([count, None, None])
    run(entry, pack)
    return adopt(pack.slot(1), pack.slot(2), np.dtype(np.float64), entry.give_back)


def test_memory_of_a_kernel_becomes_an_array() -> None:
    values = squares(5)
    assert values.tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]
    assert values.flags.writeable and values.dtype == np.float64
    values[0] = 7
    assert squares(0).tolist() == []


def test_memory_is_freed_once_when_the_last_view_goes() -> None:
    freed: list[int] = []
    (entry,) = load(MAKES_SQUARES)

    def free(address: int) -> None:
        freed.append(address)
        entry.give_back(address)

    def made(count: int) -> np.ndarray[Any, Any]:
        pack = Pack([count, None, None])
        run(entry, pack)
        return adopt(pack.slot(1), pack.slot(2), np.dtype(np.float64), free)

    values = made(1000)
    address = values.ctypes.data
    tail = values[990:].reshape(2, 5)
    copy = values.copy()
    del values
    gc.collect()
    assert freed == [] and tail[-1, -1] == 999.0**2
    del tail
    assert freed == [address]
    assert copy[3] == 9
    assert made(0).tolist() == [] and len(freed) == 2  # what holds nothing is freed at once
    adopt(0, 0, np.dtype(np.int32), free)
    assert len(freed) == 2


def test_an_array_is_freed_by_the_library_that_made_it() -> None:
    """Allocators that do not know each other's memory: each has a header of its own, and notes what it frees."""
    text = MAKES_SQUARES.replace("void give_back", "static int64_t freed;\nvoid give_back").replace("    free(", "    freed++;\n    free(")
    text += "int32_t count_freed(void **args) { (void)args; return (int32_t)freed; }\n"
    sources = [text.replace(" 64", f" {header}").replace("(64", f"({header}") for header in (64, 128, 256)]
    loaded = [load(source, ("entry", "count_freed")) for source in sources]

    def made(entry: Any) -> np.ndarray[Any, Any]:
        pack = Pack([5, None, None])
        run(entry, pack)
        return adopt(pack.slot(1), pack.slot(2), np.dtype(np.float64), entry.give_back)

    arrays = [made(entry) for _ in range(4) for entry, _ in loaded]
    counters = [count for _, count in loaded]
    del loaded
    for k in (7, 0, 11, 3):
        thread = threading.Thread(target=arrays.__setitem__, args=(k, None))
        thread.start()
        thread.join()
    assert [count(0) for count in counters] == [2, 1, 1]
    arrays.reverse()
    arrays.clear()
    assert [count(0) for count in counters] == [4, 4, 4]


def test_a_library_that_cannot_free_what_it_hands_out_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="a library that allocates should define what frees it"):
        adopt(64, 3, np.dtype(np.float64), None)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex64", "complex128"])
def test_every_dtype_can_be_adopted(dtype: str) -> None:
    bytes_of = squares(4)
    (entry,) = load(MAKES_SQUARES)
    pack = Pack([4, None, None])
    run(entry, pack)
    wanted = np.dtype(dtype)
    adopted = adopt(pack.slot(1), 32 // wanted.itemsize, wanted, entry.give_back)
    assert adopted.dtype == wanted
    assert adopted.tobytes() == bytes_of.tobytes()


def test_a_count_without_memory_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="a kernel should hand out the array it counts"):
        adopt(0, 3, np.dtype(np.float64), None)
