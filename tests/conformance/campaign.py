"""The conformance campaign: ``python tests/conformance/campaign.py``, or ``make conformance``.

The tests of other libraries run, and what they call is computed a second time on tensors (``replay.py``). Printed is the share of calls
that gave the same, and each kind of difference with its number and an example; ``--write`` makes ``docs/conformance.md`` of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "src"))

from conformance.kernels import LITTLE, interpret_small_kernels, target  # noqa: E402 - which stands in tests

PAGE = ROOT / "docs" / "conformance.md"
PARTS = {"numpy_einsum": "numpy", "scipy_arrays": "scipy", "pydata_sparse": "sparse"}
FOREIGN = "refused: values of type"  # long doubles and objects, which no tensor holds
HEAD = """# Conformance

Other libraries' own tests, run on ours: while they run, each call of what is watched is made a second time on tensors, and both answers are
compared: shape, dtype and values, or that both refuse. Of calls that differ in nothing but values three are compared. Where the answers
differ, NumPy is asked too, on dense arrays: where tensors do as NumPy does and the library does not, and where a difference has another
reason, it is meant, and stands in a table of its own. `make conformance` does it, and writes this page with `ARGS=--write`.

```python
>>> import numpy as np, sparseloom as sl
>>> A = sl.eye(3)
>>> np.einsum("ij,jk->ki", A, A).nnz, np.pad(A, 1).shape
(3, (5, 5))
```
"""


class Sample:
    """Tells pytest to run such a share of the tests, the same in every run."""

    def __init__(self, wanted: float) -> None:
        self.wanted = wanted

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Drop the others."""
        items[:] = [item for item in items if zlib.crc32(f"{item.module.__name__} {item.name}".encode()) % 1000 < 1000 * self.wanted]


def run_part(part: str, into: str, sampled: float, seconds: float) -> None:
    """Run the tests of a part in this process, and write what came of their calls as JSON."""
    import pytest

    module = import_module(f"conformance.{part}")
    if (room := getattr(module, "ROOM", None)) is not None:
        resource.setrlimit(resource.RLIMIT_AS, (room, resource.RLIM_INFINITY))
    interpret_small_kernels()
    tallies = module.watched()
    share_of_tests, share_of_calls = (1.0, sampled) if getattr(module, "HAS_FEW_TESTS", False) else (sampled, 1.0)
    for tally in tallies.values():
        tally.share, tally.deadline = share_of_calls, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder, "--no-header", "--tb=no", "-W", "ignore"]
        pytest.main([*options, *getattr(module, "OPTIONS", ()), "--pyargs", *module.MODULES], plugins=[Sample(share_of_tests)])
    told = {
        name: {
            "same": sum(tally.same.values()), "count": tally.count, "others": tally.others, "named": tally.named,
            "examples": tally.examples, "made": sum(tally.seen.values()), "different": len(tally.seen), "tests": share_of_tests,
            "calls": share_of_calls,
        }
        for name, tally in tallies.items()
    }  # fmt: skip
    Path(into).write_text(json.dumps(told), encoding="utf-8")


def outcome(part: str, sampled: float, seconds: float) -> dict[str, Any]:
    """What came of a part, which runs in a process of its own: it changes the library that it watches."""
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "told.json"
        limits = ["--share", str(sampled), "--seconds", str(seconds)]
        subprocess.run([sys.executable, __file__, "--part", part, "--into", str(into), *limits], check=True)
        return dict(json.loads(into.read_text(encoding="utf-8")))


def section(name: str, told: dict[str, Any]) -> str:
    """A part of the page: the shares, what is different, most frequent first, and what is so on purpose."""
    others, named = (_by_frequency(told[kind]) for kind in ("others", "named"))
    tests = "The tests" if told["tests"] == 1 else f"A sample of {100 * told['tests']:.0f} % of the tests"
    made = f"{tests} make {told['made']:,} calls, {told['different']:,} of them different."
    made += f" A sample of {100 * told['calls']:.0f} % was compared." if told["calls"] < 1 else ""
    ours = f"{told['same']:,} of the {told['count']:,} that were compared give the same: {share(told)}."
    foreign = _total(others, FOREIGN) + _total(named, FOREIGN)
    meant = _total(named) - _total(named, FOREIGN)
    known = {**told, "count": told["count"] - foreign}
    more = f" Of those with dtypes that tensors have: {share(known)}." if foreign else ""
    more += f" Without the {meant:,} that differ on purpose: {share({**known, 'count': known['count'] - meant})}." if meant else ""
    lines = [f"## {name}", "", f"{made} {ours}{more}", ""]
    lines += _table("what differs", others, told["examples"])
    lines += ["", *_table("what differs on purpose, and why", named, told["examples"])] if named else []
    return "\n".join([*lines, ""])


Rows = list[tuple[str, dict[str, int]]]


def _by_frequency(counts: dict[str, dict[str, int]]) -> Rows:
    return sorted(counts.items(), key=lambda item: -sum(item[1].values()))


def _total(rows: Rows, prefix: str = "") -> int:
    return sum(sum(counts.values()) for word, counts in rows if word.startswith(prefix))


def _table(title: str, rows: Rows, examples: dict[str, str]) -> list[str]:
    """Kinds of differences, each with its number, the functions that it is met in, and an example."""
    lines = [f"| {title} | calls | of | for example |", "|---|---|---|---|"] if rows else []
    for word, counts in rows:
        functions = sorted(counts, key=lambda function: -counts[function])
        listed = ", ".join(f"`{function}`" for function in functions[:8]) + (" ..." if len(functions) > 8 else "")
        lines.append(f"| {cell(word)} | {sum(counts.values())} | {listed} | `{cell(examples[word][:150])}` |")
    return lines


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def share(told: dict[str, Any]) -> str:
    """The share of calls that gave the same; what is not all of them is never rounded to 100."""
    found = 100 * told["same"] / max(told["count"], 1)
    return f"{found if told['same'] == told['count'] else min(found, 99.9):.1f} %"


def page(parts: list[str], outcomes: list[dict[str, Any]], seconds: float = math.inf) -> str:
    """The page of what came of these parts, where comparing stopped after so many seconds."""
    versions = ", ".join(f"{package} {version(package)}" for package in (PARTS[part] for part in parts))
    limit = f" Comparing stopped after {seconds:.0f} seconds in each part." if seconds < math.inf else ""
    interpreted = f"Kernels that have at most {LITTLE:,} points to visit were interpreted, the others compiled."
    little = interpreted if target() == "interpret" else "All kernels were compiled."
    sections = [section(name, told) for outcome in outcomes for name, told in outcome.items()]
    return "\n".join([HEAD, f"Measured with {versions}.{limit} {little}\n", *sections])


def main() -> None:
    """Run the campaign as the command line says."""
    parser = argparse.ArgumentParser(description="Run other libraries' tests on Sparseloom, and state the share that passes.")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--share", type=float, default=1.0, help="of the tests, or of the calls where there are few tests, such as 0.1")
    parser.add_argument("--seconds", type=float, default=math.inf, help="compare for so long in each part")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parts that run at a time")
    options = parser.parse_args()
    if options.into:
        run_part(options.part[0], options.into, options.share, options.seconds)
        return
    parts = options.part or list(PARTS)
    with ThreadPoolExecutor(options.jobs) as pool:  # each waits for a process
        outcomes = list(pool.map(lambda part: outcome(part, options.share, options.seconds), parts))
    text = page(parts, outcomes, options.seconds)
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
