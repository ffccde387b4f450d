"""The tools that look for a pass: the trace, the pass that changes a result, and what a fuzzer leaves of a failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzz import reproducer
from fuzz.schedules import Drawn, Scheduled, draw_steps, schedulable

import sparseloom as sl
from sparseloom import compiler
from sparseloom.cli.main import main
from sparseloom.core.errors import ToolchainError
from sparseloom.core.trees import rewrite
from sparseloom.formats.storage import Storage
from sparseloom.loops import nodes as ir
from sparseloom.loops.simplify import simplify
from sparseloom.lower.kernel import Lowered
from sparseloom.programs.bisection import Verdict, bisect
from sparseloom.programs.execution import Specialization
from sparseloom.tracing import Pass

SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
IN_VECTORS = "reorder(i,k,j) parallelize(k,CPUVector,NoRaces)"


def problem(statement: str, schedule: str | None, target: str = "c") -> tuple[Specialization, dict[str, Storage]]:
    given = {"A": sl.random((7, 6), 0.5, "csr"), "B": sl.random((6, 9), 1.0), "x": sl.random(6, 1.0)}
    operands = {name: tensor.storage for name, tensor in given.items() if f"{name}(" in statement}
    made = sl.program(statement, {"A": "csr"}, schedule, target=target).specialized(operands)
    assert isinstance(made, Specialization)
    return made, operands


def wrong_after(name: str) -> Callable[..., tuple[Pass[Lowered], ...]]:
    """The passes, of which the one of this name also turns every sum into a difference."""
    usual = compiler.loop_passes

    def subtracting(n: object) -> ir.Op | None:
        return replace(n, name="subtract") if isinstance(n, ir.Op) and n.name == "add" and n.dtype.kind == "f" else None

    def broken(one: Pass[Lowered]) -> Pass[Lowered]:
        def run(lowered: Lowered) -> Lowered:
            made = one.run(lowered)
            return replace(made, function=rewrite(made.function, subtracting))

        return replace(one, run=run)

    return lambda *given: tuple(broken(one) if one.name == name else one for one in usual(*given))


@pytest.mark.parametrize(("statement", "steps", "target"), [(SPMV, "", "c"), (SPMM, IN_VECTORS, "c"), (SPMM, None, "cuda")])
def test_right_passes_are_all_right(statement: str, steps: str | None, target: str) -> None:
    verdicts = list(bisect(*problem(statement, steps, target)))
    assert [verdict.fault for verdict in verdicts] == [None] * len(verdicts)
    assert verdicts[0].name == "lower"
    assert (verdicts[-1].name == "emit and compile") == (target == "c")


@pytest.mark.parametrize(("name", "steps"), [("add_polls", ""), ("use_promised", ""), ("vectorize", IN_VECTORS)])
def test_the_wrong_pass_is_named(name: str, steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "loop_passes", wrong_after(name))
    *right, last = bisect(*problem(SPMM if steps else SPMV, steps + " " * len(name)))
    assert all(verdict.fault is None for verdict in right)
    assert last.name == name
    assert str(last).startswith(f"{name}: wrong, ")
    assert " values differ, first at [" in str(last)


def test_what_the_interpreter_rejects_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = compiler.loop_passes

    def reads_too_far(lowered: Lowered) -> Lowered:
        rule = lambda n: replace(n, index=ir.add(n.index, ir.index(1000))) if isinstance(n, ir.Load) else None  # noqa: E731
        return replace(lowered, function=simplify(rewrite(lowered.function, rule)))

    monkeypatch.setattr(compiler, "loop_passes", lambda *given: (Pass("shift", reads_too_far), *usual(*given)))
    *_, last = bisect(*problem(SPMV, "split(i,i0,i1,2)"))
    assert last.name == "shift"
    assert last.fault is not None
    assert "the interpreter stopped" in last.fault


def test_a_fuzzer_leaves_a_small_case_and_the_pass_to_blame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(compiler, "loop_passes", wrong_after("add_polls"))
    monkeypatch.setattr(reproducer, "FOLDER", tmp_path)
    for case in schedulable(5, 1):
        if "+" in case.text and all(spec.dtype.startswith("float") for spec in case.specs.values()):
            job = reproducer.prepare_whole(case, reproducer.Statements())
            if job is not None and (steps := draw_steps(case, job.prepared.unscheduled(), Drawn())):
                failed = Scheduled(case, steps)
                if reproducer.attempt_scheduled(failed) is not None:
                    break
    text = reproducer.report([(failed, "it was wrong")])
    assert "add_polls: wrong" in text
    assert "== lower:" in text
    (file,) = tmp_path.iterdir()
    assert "add_polls: wrong" in file.read_text()


def test_passes_are_shown_with_what_they_change() -> None:
    text = sl.program(SPMM, {"A": "csr"}, IN_VECTORS).show("passes")
    assert text.startswith("== concrete\nforall i\n")
    assert "== cut_into_slots: " in text
    assert "ms, unchanged\n" in text
    after = text[text.index("== vectorize:") :]
    assert "\n-" in after
    assert "\n+" in after


def test_explain_says_how_long_each_pass_took() -> None:
    kernel = sl.program(SPMV, {"A": "csr"}, "split(i,i0,i1,8)")
    kernel(sl.random((4, 5), 0.5, "csr"), np.ones(5))
    assert "compile time" not in kernel.explain()
    lines = kernel.explain(timing=True).split("\n")
    names = [line.split()[0] for line in lines[lines.index("compile time") + 1 :]]
    assert names[:5] == ["put_inside", "cut_into_slots", "cut_into_parts", "count_first", "lower"]
    assert names[-1] == "all"


def test_a_trace_has_a_folder_for_each_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARSELOOM_TRACE", str(tmp_path / "trace"))
    sl.program("traced(i) = A(i,j) * x(j)", {"A": "csr"}).show("loops")
    (folder,) = (tmp_path / "trace").iterdir()
    assert folder.name.endswith("-traced")
    names = sorted(file.name for file in folder.iterdir())
    assert names[0] == "00-concrete.txt"
    assert names[-1] == "passes.txt"
    assert any(name.endswith("-lower.txt") for name in names)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPARSELOOM_TRACE", str(tmp_path / "file"))
    with pytest.raises(ToolchainError, match="cannot write to SPARSELOOM_TRACE="):
        sl.program("untraced(i) = A(i,j) * x(j)", {"A": "csr"}).show("loops")


def test_the_command_says_which_pass_is_wrong(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", SPMV, "-f", "A:csr", "--density", "0.5"]) == 0
    assert capsys.readouterr().out.endswith("emit and compile: right\nno pass changes the result\n")
    monkeypatch.setattr(compiler, "loop_passes", wrong_after("add_polls"))
    assert main(["bisect", "bisected(i) = A(i,j) * x(j)", "-f", "A:csr", "--density", "0.9"]) == 1
    assert "add_polls is the first after which the result is wrong" in capsys.readouterr().out
    assert main(["bisect", "t(i) = A(i,j) * x(j)\ny(i) = 2 * t(i)", "-f", "A:csr"]) == 2
    assert "bisect takes one statement, not 2" in capsys.readouterr().err


def test_a_verdict_reads_as_a_sentence() -> None:
    assert str(Verdict("lower")) == "lower: right"
