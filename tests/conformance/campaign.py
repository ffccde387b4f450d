"""The conformance campaign: ``python tests/conformance/campaign.py``, or ``make conformance``.

The tests of other libraries run, and what they call is computed a second time on tensors (``replay.py``). Printed is the share of calls
that gave the same, and each kind of difference with its number and an example; ``--write`` makes ``docs/conformance.md`` of it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import zlib
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "src"))

PAGE = ROOT / "docs" / "conformance.md"
PARTS = {"numpy_einsum": "numpy", "scipy_arrays": "scipy", "pydata_sparse": "sparse"}
FOREIGN = "refused: values of type"  # long doubles and objects, which no tensor holds
HEAD = """# Conformance

Other libraries' own tests, run on ours: while they run, each call of what is watched is made a second time on tensors, and both answers are
compared: shape, dtype and values, or that both refuse. Of calls that differ in nothing but values three are compared, and of all calls
a sample where there are too many. `make conformance` does it, and writes this page with `ARGS=--write`.

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


def run_part(part: str, target: str, sampled: float, seconds: float) -> None:
    """Run the tests of a part in this process, and write what came of their calls as JSON."""
    import pytest

    module = import_module(f"conformance.{part}")
    tallies = module.watched()
    share_of_tests = min(getattr(module, "TESTS", 1.0) * sampled, 1.0)
    for tally in tallies.values():
        tally.share, tally.deadline = min(getattr(module, "CALLS", 1.0) * sampled, 1.0), time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", folder, "--no-header", "--tb=no", "-W", "ignore"]
        pytest.main([*options, *getattr(module, "OPTIONS", ()), "--pyargs", *module.MODULES], plugins=[Sample(share_of_tests)])
    told = {
        name: {
            "same": sum(tally.same.values()), "count": tally.count, "others": tally.others, "examples": tally.examples,
            "made": sum(tally.seen.values()), "different": len(tally.seen), "tests": share_of_tests,
        }
        for name, tally in tallies.items()
    }  # fmt: skip
    Path(target).write_text(json.dumps(told), encoding="utf-8")


def outcome(part: str, sampled: float, seconds: float) -> dict[str, Any]:
    """What came of a part, which runs in a process of its own: it changes the library that it watches."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "told.json"
        limits = ["--share", str(sampled), "--seconds", str(seconds)]
        subprocess.run([sys.executable, __file__, "--part", part, "--into", str(target), *limits], check=True)
        return dict(json.loads(target.read_text(encoding="utf-8")))


def section(name: str, told: dict[str, Any]) -> str:
    """A part of the page: the share, and what is different, most frequent first."""
    rows = sorted(told["others"].items(), key=lambda item: -sum(item[1].values()))
    tests = "The tests" if told["tests"] == 1 else f"A sample of {100 * told['tests']:.0f} % of the tests"
    made = f"{tests} make {told['made']:,} calls, {told['different']:,} of them different."
    ours = f"{told['same']:,} of the {told['count']:,} that were compared give the same: {share(told)}."
    foreign = sum(sum(counts.values()) for word, counts in rows if word.startswith(FOREIGN))
    without = f" Of those with dtypes that tensors have: {share({**told, 'count': told['count'] - foreign})}." if foreign else ""
    lines = [f"## {name}", "", f"{made} {ours}{without}", ""]
    if rows:
        lines += ["| what differs | calls | of | for example |", "|---|---|---|---|"]
    for word, counts in rows:
        functions = sorted(counts, key=lambda function: -counts[function])
        listed = ", ".join(f"`{function}`" for function in functions[:8]) + (" ..." if len(functions) > 8 else "")
        lines.append(f"| {cell(word)} | {sum(counts.values())} | {listed} | `{cell(told['examples'][word][:150])}` |")
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


def share(told: dict[str, Any]) -> str:
    """The share of calls that gave the same."""
    return f"{100 * told['same'] / max(told['count'], 1):.1f} %"


def main() -> None:
    """Run the campaign as the command line says."""
    parser = argparse.ArgumentParser(description="Run other libraries' tests on Sparseloom, and state the share that passes.")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write docs/conformance.md")
    parser.add_argument("--share", type=float, default=1.0, help="times the part's own share of tests or calls, such as 100 for all")
    parser.add_argument("--seconds", type=float, default=math.inf, help="compare for so long in each part")
    options = parser.parse_args()
    if options.into:
        run_part(options.part[0], options.into, options.share, options.seconds)
        return
    parts = options.part or list(PARTS)
    sections = [section(name, told) for part in parts for name, told in outcome(part, options.share, options.seconds).items()]
    versions = ", ".join(f"{package} {version(package)}" for package in (PARTS[part] for part in parts))
    limit = f" Comparing stopped after {options.seconds:.0f} seconds in each part." if options.seconds < math.inf else ""
    target = os.environ.get("SPARSELOOM_CONFORMANCE_TARGET", "interpret")
    loops = f" The kernels of einsum ran on the target {target!r}, the others compiled."
    text = "\n".join([HEAD, f"Measured with {versions}.{limit}{loops}\n", *sections])
    print(text)
    if options.write:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
