"""Work on one piece after another, several at a time in threads, with the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from sparseloom.toolchain.teams import get_threads

Made = TypeVar("Made")


def in_order(pieces: Iterable[tuple[Callable[[], Made], bool]], name: str) -> Iterator[Made]:
    """Do every piece of work, those that are marked as long in threads, while others are taken; the results come in order.

    Where no thread is to be had, as at the end of the interpreter, the calling thread does it.
    """
    waiting: deque[Callable[[], Made]] = deque()
    with ThreadPoolExecutor(get_threads(), name) as pool:
        for piece, is_long in pieces:
            waiting.append(_begun(pool, piece) if is_long else piece)
            if len(waiting) > 2 * get_threads():
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()


def _begun(pool: ThreadPoolExecutor, piece: Callable[[], Made]) -> Callable[[], Made]:
    """The work as what waits for its result."""
    try:
        begun = pool.submit(piece)
    except RuntimeError:  # no more threads
        return piece
    return partial(_result, begun, piece)


def _result(begun: Future[Made], piece: Callable[[], Made]) -> Made:
    return piece() if begun.cancel() else begun.result()
