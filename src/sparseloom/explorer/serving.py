"""The explorer as it is opened from a shell or from Python: a server, two processes that answer, and the address of a state.

Edits and measurements have a process each, so that one can go on editing while something runs.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sparseloom.calls.kernel import Kernel
from sparseloom.explorer.limits import Limits, failure
from sparseloom.explorer.opening import State, fragment, kernel_state
from sparseloom.explorer.server import Server
from sparseloom.explorer.worker import EXPLORE, Work, Worker
from sparseloom.tensor.tensor import Tensor

EDITS = ("look", "next", "plan", "space", "examples")
MEASUREMENTS = ("run", "time", "compare")
EDIT_SECONDS, MEASUREMENT_SECONDS = 10.0, 60.0


class Explorer:
    """An open explorer: ``url`` is where its page is; it ends with ``close``, with a ``with`` block, or with the program."""

    def __init__(
        self,
        state: State | None = None,
        operands: Mapping[str, Any] | None = None,
        port: int = 0,
        *,
        limits: Limits | None = None,
        explore: str = EXPLORE,
        seconds: tuple[float, float] = (EDIT_SECONDS, MEASUREMENT_SECONDS),
        log: bool = False,
    ) -> None:
        self._server = Server(self.answer, port, log)
        self._folder = Path(mkdtemp(prefix="sparseloom-explorer-"))
        work = Work(self._folder, operands or {}, limits or Limits(), explore, log)
        edits, self._measurements = (Worker(work, allowed) for allowed in seconds)
        self._workers = {**dict.fromkeys(EDITS, edits), **dict.fromkeys(MEASUREMENTS, self._measurements)}
        self.url = self._server.url + fragment(state)
        self._owner = os.getpid()
        atexit.register(self.close)
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()
        edits.start()

    def answer(self, request: Mapping[str, Any], is_wanted: Callable[[], bool] = lambda: True) -> bytes:
        """The answer to a request of the page, as JSON."""
        asked = request.get("ask")
        worker = self._workers.get(asked) if isinstance(asked, str) else None
        if worker is None:
            return json.dumps(failure("the request asks for nothing that is known", f"ask is one of {', '.join(self._workers)}")).encode()
        answer = worker.ask(request, is_wanted)
        self._measurements.start()  # not before the first answer, which it would make later
        return answer

    def open_browser(self) -> None:
        """Show the page in the user's browser, whenever that has started."""
        threading.Thread(target=webbrowser.open, args=(self.url,), daemon=True).start()

    def close(self) -> None:
        """End the server and what it started, and remove the kernels that were compiled. The page does not answer any more."""
        atexit.unregister(self.close)
        if os.getpid() != self._owner:  # a process that was forked from it leaves it alone
            return
        self._server.shutdown()
        self._server.server_close()
        for worker in set(self._workers.values()):
            worker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<sparseloom explorer: {self.url}>"

    def _repr_html_(self) -> str:
        """A link, for notebooks. The page may stand in no frame, where another page could have it clicked."""
        return f'<a href="{escape(self.url)}" target="_blank" rel="noreferrer noopener">Open the explorer</a>'


def explore_kernel(kernel: Kernel, args: Sequence[Any], named: Mapping[str, Any], port: int, browser: bool) -> Explorer:
    """Open the explorer on a kernel and, if there are any, on operands as it would be called on them."""
    storages = kernel._operands(args, named, None) if args or named else {}
    operands = {name: Tensor(storage, name) for name, storage in storages.items()}
    opened = Explorer(kernel_state(kernel, operands), operands, port)
    if browser:
        opened.open_browser()
    return opened
