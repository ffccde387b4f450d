"""The text that looks at index arrays again (``runtime/guard.h``), for indices of both widths."""

from __future__ import annotations

from sparseloom.targets.runtime_files import parts, spelled

_WIDTHS = (
    {"INDEX": "int32", "FLOATING": "float", "LANES": "8", "LANE": "ps", "LARGEST": "INT32_MAX"},
    {"INDEX": "int64", "FLOATING": "double", "LANES": "4", "LANE": "pd", "LARGEST": "INT64_MAX"},
)


def guard_source() -> str:
    """The text of a library with the entry ``holds``."""
    guard = parts("guard.h")
    widths = (spelled(guard["width"], words) for words in _WIDTHS)
    return "\n\n".join(["#include <stdint.h>\n#include <string.h>", *parts("team.h").values(), *widths, guard["entry"]]) + "\n"
