"""What every test may rely on: one temporary kernel cache per run, one seed, and the shared data.

``SPARSELOOM_SEED`` chooses the random data and the examples of property tests; ``SPARSELOOM_CASES`` says how many random
cases the differential tests compare. Both are printed at the head of a run, so that a run can be repeated.
``SPARSELOOM_TEST_CACHE`` names a folder in which compiled kernels are kept from run to run; without it each run compiles its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import zlib
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from fuzz import result_formats, scheduled_tally
from fuzz.tally import summary

ROOT = Path(__file__).resolve().parent.parent
SEED = int(os.environ.get("SPARSELOOM_SEED") or "20240")
CASES = int(os.environ.get("SPARSELOOM_CASES") or "500")

RUN_CACHE = pytest.StashKey[tuple[str, str | None]]()

os.environ.setdefault("SPARSELOOM_VERIFY", "1")  # what every pass of the compiler makes is verified

# No deadline and no "too slow": what passes must not depend on the machine's load. No database: nor on earlier runs.
hypothesis.settings.register_profile(
    "sparseloom",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("sparseloom")


def is_worker(config: pytest.Config) -> bool:
    """Whether this process was started by another pytest to run a share of the tests."""
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix the seed of property tests, and make the run's kernel cache before the workers start: they inherit the variable."""
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(SEED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell: what tests start must be stopped by Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not is_worker(config):
        folder = os.environ.get("SPARSELOOM_TEST_CACHE") or tempfile.mkdtemp(prefix="sparseloom-test-cache-")
        config.stash[RUN_CACHE] = folder, os.environ.get("SPARSELOOM_CACHE_DIR")
        os.environ["SPARSELOOM_CACHE_DIR"] = folder


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's kernel cache and put the variable back."""
    if RUN_CACHE not in config.stash:
        return
    folder, before = config.stash[RUN_CACHE]
    if before is None:
        os.environ.pop("SPARSELOOM_CACHE_DIR", None)
    else:
        os.environ["SPARSELOOM_CACHE_DIR"] = before
    if folder != os.environ.get("SPARSELOOM_TEST_CACHE"):
        shutil.rmtree(folder, ignore_errors=True)


def pytest_report_header() -> list[str]:
    """Say what is needed to repeat this run."""
    return [f"sparseloom seed: {SEED}", f"sparseloom random cases: {CASES}"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tabulate what the differential tests compared and what was refused; their reports come from all workers."""
    reports = [report for group in terminalreporter.stats.values() for report in group if isinstance(report, pytest.TestReport)]
    found = [one for report in reports for one in report.user_properties if report.when == "call"]
    tables = {"random statements": summary, "random schedules": scheduled_tally.summary, "result formats": result_formats.summary}
    for title, lines in ((title, table(found)) for title, table in tables.items()):
        if lines:
            terminalreporter.section(title)
            for line in lines:
                terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def seed() -> int:
    """The seed of this run."""
    return SEED


@pytest.fixture(scope="session")
def case_count() -> int:
    """How many random cases a differential test should compare."""
    return CASES


@pytest.fixture
def rng(request: pytest.FixtureRequest, seed: int) -> np.random.Generator:
    """Random numbers that depend on the seed and the test's name only, not on the order of tests."""
    return np.random.default_rng([seed, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real matrices and tensors beside the checkout."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real matrices are not here: there is no folder ../shared/data beside the checkout")
    return folder
