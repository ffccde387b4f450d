"""Which of the other libraries are at hand. One that is not is a gap, and that is said with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from benchmarks.entrants import Entrant
from benchmarks.peers import finch, graphblas, mkl, numba, scipy, sparse, torch

PEERS = {
    "SciPy": scipy, "torch": torch, "MKL": mkl, "Numba": numba, "GraphBLAS": graphblas, "PyData/Sparse": sparse, "finch-tensor": finch,
}  # fmt: skip
Peers = Mapping[str, ModuleType]


def find_peers(*names: str) -> tuple[dict[str, ModuleType], dict[str, str]]:
    """Those of these peers that are at hand, by name, and why each of the others is not. Without names: of all."""
    found: dict[str, ModuleType] = {}
    missing: dict[str, str] = {}
    for name in names or PEERS:
        failure = failure_of(PEERS[name].load)
        if failure is None:
            found[name] = PEERS[name]
        else:
            missing[name] = failure
    return found, missing


def peer_entrants(kernel: str, peers: Peers, operands: Iterable[Any]) -> tuple[dict[str, Entrant], dict[str, str]]:
    """Those of the peers that know this kernel, and why others of them cannot take part. Each has run once."""
    given = tuple(operands)
    entrants: dict[str, Entrant] = {}
    failed: dict[str, str] = {}
    for name, peer in peers.items():
        if not hasattr(peer, kernel):
            continue
        made: list[Entrant] = []
        failure = failure_of(lambda peer=peer, made=made: _prepared(getattr(peer, kernel), given, made))  # type: ignore[misc]
        if failure is None:
            entrants[name] = made[0]
        else:
            failed[name] = f"failed: {failure}"
    return entrants, failed


def _prepared(prepare: Callable[..., Entrant], operands: tuple[Any, ...], made: list[Entrant]) -> None:
    entrant = prepare(*operands)
    entrant.run()
    made.append(entrant)


def failure_of(step: Callable[[], object]) -> str | None:
    """What a step of another library says when it fails, in one line."""
    try:
        step()
    except Exception as why:  # noqa: BLE001 - another library may raise anything, and must not end the run
        return (str(why).strip().splitlines() or [type(why).__name__])[0]
    return None
