"""A kernel with its arrays, prepared once and called often."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sparseloom.core.signs import printable
from sparseloom.formats.storage import Storage
from sparseloom.programs.binding import Call
from sparseloom.tensor.tensor import Tensor
from sparseloom.toolchain.teams import threads

Origin = tuple[Callable[..., "BoundKernel"], Mapping[str, Storage]]
"""A kernel's ``bind``, and the operands that it was called on."""


class BoundKernel:
    """A kernel with its arrays: calling it computes, in under a microsecond of overhead.

    Several threads may call it if its result is sparse, and new every time. A dense result is one tensor: bind one for each thread.
    It is copied and pickled with its kernel and its operands; what a copy fills is a new tensor.

    >>> x = np.ones(2)
    >>> run = sl.program("y(i) = A(i,j) * x(j)", {"A": "csr"}).bind(np.eye(2), x)
    >>> x[0] = 5.0
    >>> isinstance(run, sl.BoundKernel), run().to_numpy()
    (True, array([5., 1.]))
    """

    __slots__ = ("_call", "_fills", "_name", "_origin", "_tensor", "_threads", "start")

    def __init__(self, call: Call, name: str, fills: bool, threads: int | None, origin: Origin) -> None:
        self._call = call
        self._origin = origin
        self._name = name
        self._fills = fills
        self._tensor: Tensor | None = None
        self.start = call.start if threads is None else self._start_on_threads
        self._threads = threads

    def __reduce__(self) -> tuple[Any, ...]:
        """The kernel and its operands, to be bound again; the result of a copy is a new one."""
        bind, operands = self._origin
        return _bound_again, (bind, {name: Tensor(storage, name) for name, storage in operands.items()})

    def __repr__(self) -> str:
        return printable(f"<sparseloom bound kernel: computes {self._name}>")

    def _start_on_threads(self) -> None:
        with threads(self._threads):
            self._call.start()

    def __call__(self) -> Tensor:
        """Compute and return the result; a dense one is the same tensor every time, with new values."""
        if self._tensor is not None:
            self.start()
            return self._tensor
        with threads(self._threads):
            made = Tensor(self._call.run(), self._name)
        if self._fills:
            made.pinned()  # later calls write there
            self._tensor = made
        return made


def _bound_again(bind: Callable[..., BoundKernel], operands: Mapping[str, Tensor]) -> BoundKernel:
    return bind(**operands)
