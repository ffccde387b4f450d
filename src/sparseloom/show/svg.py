"""Drawings as self-contained SVG: shapes, a few colours, and nothing that must be loaded.

A drawing brings its own ground, light or dark as the reader's screen is, so that it can be read wherever it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

# Eight colours that colour-blind readers can tell apart, on a light and on a dark ground.
COLOURS = ("#3b7dd8", "#e08214", "#2a9d6f", "#c0504d", "#8e63b8", "#b8960c", "#1f9eb5", "#d1589a")

_STYLE = """
.sl-ground{fill:#ffffff;stroke:#d9dde3}
.sl-text{fill:#1d2733}.sl-faint{fill:#66717f}.sl-line{stroke:#97a1ad}.sl-box{fill:#f4f6f9;stroke:#97a1ad}.sl-grid{fill:#f7f8fa;stroke:#e1e5ea}
.sl-pale{fill-opacity:.16}.sl-hollow{fill:#ffffff}
@media (prefers-color-scheme:dark){
.sl-ground{fill:#171c23;stroke:#303844}
.sl-text{fill:#e8edf3}.sl-faint{fill:#9aa6b4}.sl-line{stroke:#66717f}.sl-box{fill:#222a34;stroke:#66717f}.sl-grid{fill:#1c222b;stroke:#2c3540}
.sl-pale{fill-opacity:.30}.sl-hollow{fill:#171c23}}
"""
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"


@dataclass
class Drawing:
    """Shapes, drawn in the order in which they were added."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def rectangle(self, x: float, y: float, width: float, height: float, look: str, radius: float = 0) -> None:
        """A box; ``look`` holds its attributes, as in ``class="sl-box"``."""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" {look}/>')

    def circle(self, x: float, y: float, radius: float, look: str) -> None:
        """A dot."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {look}/>')

    def path(self, steps: str, look: str) -> None:
        """A line or curve through the steps of SVG's ``d``."""
        self.parts.append(f'<path d="{steps}" fill="none" {look}/>')

    def arrow(self, steps: str, tip: tuple[float, float], direction: tuple[float, float], look: str, colour: str | None = None) -> None:
        """A line or curve with a head at ``tip`` that points in ``direction``, a vector of length 1."""
        self.path(steps, look)
        (x, y), (dx, dy) = tip, direction
        left, right = (x - 7 * dx - 3.5 * dy, y - 7 * dy + 3.5 * dx), (x - 7 * dx + 3.5 * dy, y - 7 * dy - 3.5 * dx)
        fill = 'class="sl-faint"' if colour is None else f'fill="{colour}"'
        self.parts.append(f'<path d="M{x:g} {y:g}L{left[0]:g} {left[1]:g}L{right[0]:g} {right[1]:g}Z" {fill}/>')

    def text(self, x: float, y: float, words: str, look: str = 'class="sl-text"', size: float = 13, anchor: str = "middle") -> None:
        """Words whose middle (or start, or end) stands at a place; ``y`` is the middle of their height."""
        place = f'x="{x:g}" y="{y + 0.35 * size:g}" font-size="{size:g}" text-anchor="{anchor}"'
        self.parts.append(f"<text {place} {look}>{escape(words)}</text>")

    def __str__(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        ground = f'<rect x=".5" y=".5" width="{self.width - 1:g}" height="{self.height - 1:g}" rx="8" class="sl-ground"/>'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}"><style>{_STYLE}</style>'
        return "\n".join([head, ground, *self.parts, "</svg>"])


def named(*things: object) -> str:
    """The attribute by which a shape can be found again: the names of the variables or tensors that it stands for."""
    return f'data-name="{escape(" ".join(map(str, things)))}"'


def colour(number: int) -> str:
    """The colour of the nth thing; they repeat after eight."""
    return COLOURS[number % len(COLOURS)]


def text_width(words: str, size: float = 13) -> float:
    """How much room words take, in a monospaced font."""
    return 0.62 * size * len(words)
