"""Tables of measurements as the terminal shows them."""

from __future__ import annotations

import rich.box
import rich.table

from benchmarks.report import Table


def for_terminal(table: Table) -> rich.table.Table:
    """The table as rich draws it."""
    made = rich.table.Table(title=table.title, caption=table.note, box=rich.box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
    for place, name in enumerate(table.head):
        made.add_column(name, justify="right" if place else "left")
    for place, row in enumerate(table.rows):
        made.add_row(*row, end_section=place == len(table.rows) - table.summary - 1)
    return made
