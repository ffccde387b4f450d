"""Words for people: what goes to the terminal beside the results, and how numbers are told."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from sparseloom.core.errors import SparseloomWarning
from sparseloom.io.source import WATCHER
from sparseloom.tensor.repr import with_unit
from sparseloom.tensor.tensor import Tensor

PATIENCE = 1.0  # seconds that may pass without a word


def say(text: str) -> None:
    """One line or paragraph beside the results, on the error stream; in one write, so that an interrupt does not tear it."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def complain(text: str) -> None:
    """Say what went wrong, as one paragraph."""
    say(f"sparseloom: {text}")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal what is being done, once it takes a second, and how much of a file is read; say nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    began, share = time.monotonic(), [""]
    status = Console(stderr=True).status(f"{what} ...")
    ended = threading.Event()

    def show() -> None:
        if ended.wait(PATIENCE):
            return
        status.start()
        while not ended.wait(0.2):
            status.update(f"{what} ...{share[0]} {time.monotonic() - began:.0f} s")

    def hear(done: int, size: int) -> None:
        share[0] = f" {100 * done / size:.0f} %," if size else ""

    shown, before = threading.Thread(target=show, daemon=True), WATCHER.set(hear)
    shown.start()
    try:
        yield
    finally:
        WATCHER.reset(before)
        ended.set()
        shown.join()
        status.stop()


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Tell Sparseloom's warnings without the place in the source, which means nothing on the command line."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
        ) -> None:
            if issubclass(category, SparseloomWarning):
                complain(f"note: {message}")
            else:
                usual(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def facts(tensor: Tensor) -> str:
    """A tensor in a few words: ``1000 x 1000, csr, float64, 10000 stored``."""
    shape = " x ".join(map(str, tensor.shape)) or "scalar"
    stored = [] if tensor.format.is_dense else [f"{tensor.nnz} stored"]
    return ", ".join([shape, str(tensor.format), str(tensor.dtype), *stored])


def seconds(value: float) -> str:
    """A duration with a fitting unit: ``1.25 ms``."""
    unit, size = next(((unit, size) for unit, size in (("s", 1.0), ("ms", 1e-3)) if value >= size), ("µs", 1e-6))
    return f"{value / size:.3g} {unit}"


def memory(count: int) -> str:
    """A number of bytes with a fitting unit, in powers of 1024 as ``SPARSELOOM_CACHE_LIMIT`` is read."""
    return with_unit(count, 1024, ("bytes", "KiB", "MiB", "GiB"))


def plural(count: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")
