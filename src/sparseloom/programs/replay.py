"""A plan as text: statements, formats and schedules, which ``program`` reads again and makes the same code of."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import import_module
from typing import Any

from sparseloom.core.algebra import Semiring
from sparseloom.core.errors import CompilerBug, ScheduleError
from sparseloom.core.signs import printable
from sparseloom.formats.named import name_of
from sparseloom.notation.nodes import TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.script import PLAIN
from sparseloom.notation.terms import reopen, tensors_of
from sparseloom.programs.chain import Chain
from sparseloom.programs.execution import Specialization
from sparseloom.show.iteration_graph import IterationGraph


class PlanText(str):
    """The text of a plan; it is shown as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return printable(str(self))


class Shown:
    """A kernel as it shows itself: its statement and its schedule; in notebooks also a picture of its loops."""

    _text: str
    _schedule: str | None
    _last: Specialization | Chain | None

    def _inspected(self) -> Specialization | Chain:
        raise CompilerBug(self, "a kernel must say what it runs")

    @property
    def source(self) -> str:
        """The C of the kernel, in the user's names: what ran last, or what would run on float64 operands."""
        return printable(self._inspected().source)

    def show(self, stage: str) -> str:
        """The kernel at one stage.

        Args:
            stage: "notation", "concrete", "passes" (what every pass changed, with times), "loops", or the name of the target: "c".
        """
        return printable(self._inspected().show(stage))

    def explain(self, timing: bool = False) -> str:
        """Who drives each loop, which races there are, what is converted, and where the result goes.

        Args:
            timing: also report how long each pass of the compiler took.
        """
        return printable(self._inspected().explain(timing))

    def __repr__(self) -> str:
        known = self._last.plan.schedule if isinstance(self._last, Specialization) else self._schedule or ""
        steps = "".join(f"\n  {step.strip()}" for step in known.split("\n") if step.strip())
        return printable(f"<sparseloom kernel: {self._text}{steps}>")

    def explore(self, /, *args: Any, port: int = 0, browser: bool = True, **named: Any) -> Any:
        """Open a page on which its loops and its schedule can be seen, changed and measured, on these operands if there are any.

        What is returned has the address of the page, ``url``, and is ended by ``close()``. Operands are passed as in a call. The
        page is for the user of this machine alone; ``port`` is where it is served, any free one if it is 0.
        """
        return import_module("sparseloom.explorer.serving").explore_kernel(self, args, named, port, browser)

    def _repr_html_(self) -> str:
        made = self._inspected()
        links = made.links if isinstance(made, Chain) else (made,) if isinstance(made, Specialization) else ()
        pictures = (IterationGraph(link.stages.concrete.stmt)._repr_svg_() for link in links)
        return f"<pre>{escape(repr(self))}</pre>{''.join(pictures)}"


def plan_text(made: Specialization | Chain, ring: Semiring | None = None) -> PlanText:
    """How something runs, in the language that ``program`` reads. Options such as a semiring or a dtype are not part of it."""
    links = made.links if isinstance(made, Chain) else (made,)
    lines = [f"{name}: {form}" for name, form in _formats(links)]
    for link in links:
        lines.append(show(reopen(link.problem.statement, ring)))
        lines += [f"  {step.strip()}" for step in schedule_of(link).split("\n") if step.strip()]
    return PlanText("\n".join(lines))


def the_schedule(made: Specialization | Chain) -> str:
    """The schedule of the only statement."""
    if isinstance(made, Chain):
        raise ScheduleError(f"this runs in {len(made.links)} statements, each with a schedule of its own\n  help: look at .plan")
    return made.plan.schedule


def schedule_of(link: Specialization) -> str:
    """The schedule of one statement as lines of a program."""
    return link.plan.schedule or PLAIN


def _formats(links: tuple[Specialization, ...]) -> Iterator[tuple[str, str]]:
    """The formats to declare: of temporaries, and of whatever else is not dense."""
    made = [link.problem.assign.lhs.tensor for link in links]
    names = {tensor.name for tensor in made}
    operands: dict[str, TensorVar] = {t.name: t for link in links for t in tensors_of(link.problem.statement.rhs) if t.name not in names}
    for tensor in operands.values():
        if not tensor.format.is_dense:
            yield tensor.name, name_of(tensor.format)
    for tensor in made[:-1]:
        yield tensor.name, name_of(tensor.format)
    if not made[-1].format.is_dense:
        yield made[-1].name, name_of(made[-1].format)
