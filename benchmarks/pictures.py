"""Pictures of a report as SVG: bars for every kernel, as in figures 15, 17 and 19 of the paper, and lines for the studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contests import CONTESTS
from benchmarks.outcome import Outcome, Report, Study
from benchmarks.report import duration, plural
from benchmarks.task import HAND, OURS, PLAIN, SAME, TUNED
from sparseloom.show.svg import Drawing, colour, text_width

BAR, GAP, HIGH, LEFT, TOP, SMALL = 11, 22, 150, 60, 70, 11
ALWAYS = (OURS, PLAIN, TUNED, HAND, SAME)  # in the colours of every picture; peers follow
FAINT, LINE, TEXT = 'class="sl-faint"', 'class="sl-line"', 'class="sl-text"'


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write one picture for each kernel and study; say which files they are."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {file_of(name, width): bars(report, name, width) for name, width in kernels_of(report)}
    drawn |= {f"{study.name}.svg": lines(study) for study in report.studies}
    for name, picture in drawn.items():
        (folder / name).write_text(picture + "\n")
    return [folder / name for name in drawn]


def kernels_of(report: Report) -> list[tuple[str, int]]:
    """Every kernel and width that was measured, in order."""
    return list(dict.fromkeys((o.kernel, o.width) for o in report.outcomes))


def file_of(kernel: str, width: int) -> str:
    """The name of a kernel's picture."""
    return f"{kernel}_{width}.svg" if width else f"{kernel}.svg"


def bars(report: Report, kernel: str, width: int) -> str:
    """A kernel: a panel for each number of threads, a group for each operand, a bar for everybody; the best has height 1."""
    outcomes = report.of(kernel, width, dtype="float64") or report.of(kernel, width)
    panels = [[o for o in outcomes if o.threads == threads] for threads in sorted({o.threads for o in outcomes})]
    names = _everybody(outcomes)
    cases = list(dict.fromkeys(o.case for o in outcomes))
    group = max(len(names) * BAR + GAP, max(text_width(case, SMALL) for case in cases) + 8)
    legend = sum(text_width(name, SMALL) + 34 for name in names)
    title = f"{CONTESTS[kernel].named(width)}, {outcomes[0].dtype}: speed, the best is 1"
    size = (LEFT + max(group * len(cases), legend, text_width(title)) + 20, TOP + 20 + len(panels) * (HIGH + 60))
    drawing = Drawing(*size)
    drawing.text(16, 20, title, TEXT, anchor="start")
    draw_legend(drawing, names, 44)
    for number, panel in enumerate(panels):
        _panel(drawing, panel, names, TOP + 20 + number * (HIGH + 60), group, size[0] - 20)
    return str(drawing)


def _everybody(outcomes: Sequence[Outcome]) -> list[str]:
    seen = dict.fromkeys(name for o in outcomes for name in o.seconds)
    return [*(name for name in ALWAYS if name in seen), *(name for name in seen if name not in ALWAYS)]


def draw_legend(drawing: Drawing, names: Sequence[str], y: float, first: int = 0) -> None:
    """A square and a name for everybody; ``first`` is how many stand before them."""
    x = float(LEFT)
    for number, name in enumerate(names, first):
        drawing.rectangle(x, y - 5, 10, 10, look(number))
        drawing.text(x + 15, y, name, FAINT, SMALL, "start")
        x += text_width(name, SMALL) + 34


def look(number: int) -> str:
    """A colour; from the ninth on they come again, paler."""
    return f'fill="{colour(number)}"' + ("" if number < 8 else ' fill-opacity=".45"')


def _panel(drawing: Drawing, outcomes: Sequence[Outcome], names: Sequence[str], top: float, group: float, right: float) -> None:
    bottom = top + HIGH
    drawing.text(16, top - 8, plural(outcomes[0].threads, "thread"), FAINT, SMALL, "start")
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (HIGH - 10)
        drawing.path(f"M{LEFT} {y:g}H{right:g}", LINE + (' stroke-width=".5"' if share else ""))
        drawing.text(LEFT - 8, y, f"{share:g}", FAINT, SMALL, "end")
    for place, outcome in enumerate(outcomes):
        start, best = LEFT + place * group + GAP / 2, min(outcome.seconds.values())
        for number, name in enumerate(names):
            if name in outcome.seconds:
                height = best / outcome.seconds[name] * (HIGH - 10)
                drawing.rectangle(start + number * BAR, bottom - height, BAR - 2, height, look(number))
        middle = start + (group - GAP) / 2
        drawing.text(middle, bottom + 12, outcome.case, TEXT, SMALL)
        drawing.text(middle, bottom + 26, duration(best), FAINT, SMALL)


def lines(study: Study) -> str:
    """A study: a line for each schedule, over a logarithmic scale of times."""
    size = (760.0, 360.0)
    drawing = Drawing(*size)
    drawing.text(16, 20, study.heading, TEXT, anchor="start")
    draw_legend(drawing, [line.name for line in study.lines], 44)
    everything = [math.log10(second) for line in study.lines for second in line.seconds]
    low, high = min(everything) - 0.05, max(everything) + 0.05
    width, height, top = size[0] - LEFT - 60, size[1] - TOP - 60, float(TOP)

    def place(number: int, second: float) -> tuple[float, float]:
        across = number / max(1, len(study.places) - 1)
        return LEFT + 20 + across * width, top + (high - math.log10(second)) / (high - low) * height

    for number, at in enumerate(study.places):
        drawing.text(place(number, 10**low)[0], top + height + 18, f"{at:g}", FAINT, SMALL)
    for mark in (low + 0.05, (low + high) / 2, high - 0.05):
        y = place(0, 10**mark)[1]
        drawing.path(f"M{LEFT} {y:g}H{size[0] - 20:g}", LINE + ' stroke-width=".5"')
        drawing.text(LEFT - 4, y, duration(10**mark), FAINT, SMALL, "end")
    drawing.text(LEFT + width / 2, size[1] - 18, study.along, FAINT, SMALL)
    for number, line in enumerate(study.lines):
        points = [place(spot, second) for spot, second in enumerate(line.seconds)]
        drawing.path("M" + "L".join(f"{x:g} {y:g}" for x, y in points), f'stroke="{colour(number)}" stroke-width="2"')
        for x, y in points:
            drawing.circle(x, y, 3, f'fill="{colour(number)}"')
    return str(drawing)
