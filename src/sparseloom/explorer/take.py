"""What one takes away: the same as Python, as a command, and as the text of a program."""

from __future__ import annotations

import shlex

from sparseloom.explorer.state import USUAL
from sparseloom.explorer.subject import Subject


def take_away(subject: Subject) -> dict[str, str]:
    """The statement, its formats and the legal steps, in three languages."""
    return {"python": _python(subject), "command": _command(subject), "text": _text(subject)}


def _steps(subject: Subject) -> list[str]:
    return [str(step) for step in subject.schedule.trace]


def _python(subject: Subject) -> str:
    state, steps = subject.state, _steps(subject)
    lines = ["import sparseloom as sl", "", "kernel = sl.program(", f"    {state.statement!r},"]
    if state.formats:
        lines.append(f"    formats={dict(state.formats)!r},")
    if steps:
        body = "\n".join(f"        {step}" for step in steps)
        lines.append(f'    schedule="""\n{body}\n    """,')
    if state.semiring != USUAL:
        lines.append(f"    semiring={state.semiring!r},")
    if state.target != "c":
        lines.append(f"    target={state.target!r},")
    names = ", ".join(f"{name}={name}" for name in subject.wanted.operands)
    return "\n".join([*lines, ")", f"{subject.wanted.result} = kernel({names})"])


def _command(subject: Subject) -> str:
    state, steps = subject.state, _steps(subject)
    words = ["sparseloom", "run", state.statement]
    words += [word for name, form in state.formats.items() for word in ("-f", f"{name}:{form}")]
    words += [word for var, size in state.sizes.items() for word in ("-d", f"{var}:{size}")]
    words += ["-s", " ".join(steps)] if steps else []
    words += ["--semiring", state.semiring] if state.semiring != USUAL else []
    words += ["--target", state.target] if state.target != "c" else []
    return shlex.join([*words, "--time"])


def _text(subject: Subject) -> str:
    lines = [f"# semiring: {subject.state.semiring}"] if subject.state.semiring != USUAL else []
    lines += [f"{name}: {form}" for name, form in subject.state.formats.items()]
    return "\n".join([*lines, subject.state.statement, *(f"  {step}" for step in _steps(subject) or ["plain"])])
