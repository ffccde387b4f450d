"""The pipeline: with SPARSELOOM_VERIFY, what each pass makes is verified before the next one sees it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import sparseloom as sl
from sparseloom import compiler
from sparseloom.core.errors import CompilerBug
from sparseloom.core.settings import settings
from sparseloom.loops.nodes import Assign, Var, block
from sparseloom.lower.kernel import Lowered
from sparseloom.tracing import Pass


def _forgets_to_declare(lowered: Lowered) -> Lowered:
    function = lowered.function
    return replace(lowered, function=replace(function, body=block(Assign(Var("nobody"), Var("nobody")), function.body)))


def test_a_pass_that_breaks_the_loops_is_found_where_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = compiler.loop_passes
    monkeypatch.setattr(compiler, "loop_passes", lambda *given: (Pass("forget", _forgets_to_declare), *passes(*given)))
    with pytest.raises(CompilerBug, match="nobody is declared where it is used"):
        sl.program("verified(i) = b(i) * c(i)").show("loops")
    monkeypatch.setattr(settings, "verify", False)
    # Unverified, a later pass hides it: an assignment of a scalar to itself does nothing.
    assert "nobody" not in sl.program("unverified(i) = b(i) * c(i)").show("loops")
