"""Pictures of a report on a GPU as SVG: bars for every kernel, as in figures 16, 18 and 20 of the paper, and lines for the study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.gpu.outcome import Outcome, Report
from benchmarks.gpu.tables import GROUPS, everybody, groups
from benchmarks.gpu.tasks import CONTESTS
from benchmarks.pictures import BAR, FAINT, GAP, HIGH, LEFT, LINE, SMALL, TEXT, draw_legend, file_of, lines, look
from benchmarks.report import duration
from sparseloom.show.svg import Drawing, text_width

BELOW = 60


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write one picture for each kernel and study; say which files they are."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {file_of(name, width): bars(report, name, width) for name, width in report.kernels}
    drawn |= {f"{study.name}.svg": lines(study) for study in report.studies if study.lines}
    for name, picture in drawn.items():
        (folder / name).write_text(picture + "\n")
    return [folder / name for name in drawn]


def bars(report: Report, kernel: str, width: int) -> str:
    """A kernel: a panel for each dtype and set, a group for each operand, a bar for everybody; the best has height 1."""
    panels = groups(report.of(kernel, width))
    names = _shown(panels)
    per_line = 7
    legends = [names[at : at + per_line] for at in range(0, len(names), per_line)]
    most = max(len(panel) for panel in panels)
    longest = max(text_width(o.case, SMALL) for panel in panels for o in panel)
    group = max(len(names) * BAR + GAP, longest + 8)
    title = f"{CONTESTS[kernel].named(width)}: speed, the best is 1; below, its time and what memory needs"
    legend_width = max((sum(text_width(name, SMALL) + 34 for name in line) for line in legends), default=0.0)
    top = 60 + 20 * len(legends)
    drawing = Drawing(LEFT + max(group * most, legend_width, text_width(title)) + 20, top + len(panels) * (HIGH + BELOW))
    drawing.text(16, 20, title, TEXT, anchor="start")
    _legends(drawing, legends)
    for number, panel in enumerate(panels):
        _panel(drawing, panel, names, top + number * (HIGH + BELOW), group, LEFT + group * most)
    return str(drawing)


def _shown(panels: Sequence[Sequence[Outcome]]) -> list[str]:
    every = [o for panel in panels for o in panel]
    return [name for name in everybody(every) if any(name in o.seconds for o in every)]


def _legends(drawing: Drawing, legends: Sequence[Sequence[str]]) -> None:
    first = 0
    for number, names in enumerate(legends):
        draw_legend(drawing, names, 44 + 20 * number, first)
        first += len(names)


def _panel(drawing: Drawing, outcomes: Sequence[Outcome], names: Sequence[str], top: float, group: float, right: float) -> None:
    bottom = top + HIGH
    drawing.text(16, top - 8, f"{outcomes[0].dtype}, {GROUPS[outcomes[0].group]}", FAINT, SMALL, "start")
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (HIGH - 10)
        drawing.path(f"M{LEFT} {y:g}H{right:g}", LINE + (' stroke-width=".5"' if share else ""))
        drawing.text(LEFT - 8, y, f"{share:g}", FAINT, SMALL, "end")
    for place, outcome in enumerate(outcomes):
        if outcome.seconds:
            _operand(drawing, outcome, names, LEFT + place * group + GAP / 2, bottom, group - GAP)


def _operand(drawing: Drawing, outcome: Outcome, names: Sequence[str], start: float, bottom: float, width: float) -> None:
    best = min(outcome.seconds.values())
    for number, name in enumerate(names):
        if name in outcome.seconds:
            height = best / outcome.seconds[name] * (HIGH - 10)
            drawing.rectangle(start + number * BAR, bottom - height, BAR - 2, height, look(number))
    drawing.text(start + width / 2, bottom + 12, outcome.case, TEXT, SMALL)
    drawing.text(start + width / 2, bottom + 26, f"{duration(best)}, floor {duration(outcome.floor)}", FAINT, SMALL)
