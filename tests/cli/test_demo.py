"""The demonstration runs, is right, and says so."""

from __future__ import annotations

import re

import pytest

from sparseloom.calls.evaluation import program
from sparseloom.cli import demo
from sparseloom.cli.folded import folded


def test_the_demonstration_compiles_checks_and_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"SIZE": 300, "DENSITY": 0.02, "SMALL": 50, "RANK": 4, "ROUNDS": 2}.items():
        monkeypatch.setattr(demo, name, value)
    assert demo.main() == 0
    told = capsys.readouterr().out
    assert told.count("compared with SciPy: the same") == 4 and "WRONG" not in told
    assert "y_acc += A_vals[p] * x_vals[j];" in told and "countdown" not in told and "static int32_t" not in told
    assert [line[:3] for line in told.splitlines() if line[:3] in ("1. ", "2. ", "3. ")] == ["1. ", "2. ", "3. "]
    assert told.index("1. A dense product") < told.index("SciPy takes") < told.index("2. ")


@pytest.mark.parametrize(
    ("statement", "formats", "schedule"),
    [
        ("y(i) = A(i,j) * x(j)", {"A": "csr"}, ""),
        ("C(i,k) = A(i,j) * B(j,k)", dict.fromkeys("ABC", "csr"), ""),
        ("C(i,k) = A(i,j) * B(j,k)", dict.fromkeys("ABC", "csr"), "parallelize(i,CPUThread,NoRaces)"),
        ("y(i) = A(i,j) * x(j)", {"A": "csr"}, "divide(i,i0,i1,8) parallelize(i0,CPUThread,NoRaces)"),
    ],
)
def test_folded_c_is_lines_of_the_kernel_without_its_frame(statement: str, formats: dict[str, str], schedule: str) -> None:
    source = program(statement, formats, schedule).source
    shown = folded(source)
    assert not re.search("countdown|cancelled|poll|fail:|static int32_t", shown) and shown.count("{") == shown.count("}")
    assert set(re.findall(r"(next_\w+):;", shown)) == set(re.findall(r"goto (next_\w+);", shown))
    pragmas = {line.split(" firstprivate")[0] for line in source.splitlines() if "#pragma omp parallel" in line}
    remaining = iter(source.splitlines())
    assert all(line in pragmas or line in remaining for line in shown.splitlines())


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert demo.main() == 2
    assert capsys.readouterr().err.startswith("sparseloom: $CC is 'no-such-compiler', but there is no such program\n  help: install one")
