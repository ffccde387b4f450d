"""The demonstration runs, is right, and says so."""

from __future__ import annotations

import pytest

from sparseloom.cli import demo


def test_the_demonstration_compiles_checks_and_times(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {"SIZE": 300, "DENSITY": 0.02, "SMALL": 50, "RANK": 4, "ROUNDS": 2}.items():
        monkeypatch.setattr(demo, name, value)
    assert demo.main() == 0
    told = capsys.readouterr().out
    assert told.count("compared with SciPy: the same") == 3 and "WRONG" not in told
    assert "y_acc += A_vals[pA2] * x_vals[j];" in told


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert demo.main() == 2
    assert capsys.readouterr().err.startswith("sparseloom: $CC is 'no-such-compiler', but there is no such program\n  help: install one")
