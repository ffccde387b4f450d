"""What reports of both machines share: they are kept as JSON, read again, and asked for some of their outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol, TypeVar

from sparseloom.core.errors import StorageError

Found = TypeVar("Found")


class Judged(Protocol):
    """A target and what came of it."""

    @property
    def said(self) -> str:
        """Met, missed, or not measured."""


def said_of(met: bool | None) -> str:
    """What came of a target, in a word or two."""
    return "not measured" if met is None else "met" if met else "missed"


def write_kept(schema: str, report: Any, verdicts: Sequence[Judged], path: Path) -> None:
    """Keep a report, and with it what came of the targets, for readers of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    targets = [{**asdict(verdict), "said": verdict.said} for verdict in verdicts]  # type: ignore[call-overload]
    path.write_text(json.dumps({"schema": schema, **asdict(report), "targets": targets}, indent=1) + "\n")


def read_kept(schema: str, path: Path) -> dict[str, Any]:
    """A report that was kept under this schema; any other file is refused."""
    try:
        found = json.loads(path.read_text())
    except ValueError:
        found = {}
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise StorageError(f"{path} was not written by {schema.rpartition(' ')[0]} --json")
    return found


def among(outcomes: Iterable[Found], **wanted: Any) -> list[Found]:
    """Those with these properties; one that is ``None`` may be anything."""
    return [o for o in outcomes if all(value is None or getattr(o, name) == value for name, value in wanted.items())]


def merge(into: list[Any], more: list[Any], key: Callable[[Any], Any]) -> None:
    """Put items in the places of those with the same key, and others at the end."""
    known = {key(item): place for place, item in enumerate(into)}
    for item in more:
        if key(item) in known:
            into[known[key(item)]] = item
        else:
            into.append(item)
