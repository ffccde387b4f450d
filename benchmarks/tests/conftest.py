"""Peers that compile before they compute take minutes of a test run, and none of what is tested here is theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.peers import numba, sparse


@pytest.fixture(scope="session", autouse=True)
def without_compiling_peers() -> Iterator[None]:
    """Let them be missing, as they are where nobody installed them."""

    def missing() -> None:
        raise ImportError("left out of the tests")

    with pytest.MonkeyPatch.context() as patch:
        for peer in (numba, sparse):
            patch.setattr(peer, "load", missing)
        yield
