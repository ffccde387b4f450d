"""On which stream work is put: the current one of the library whose arrays it is about, else the default stream.

A library is asked only if it is loaded already. What is made of its arrays follows it from then on.
"""

from __future__ import annotations

import sys
from typing import Any

OWN, CUPY, TORCH = "", "cupy", "torch"
DEFAULT_STREAM = 0
LEGACY_STREAM = 1  # what protocols call the default stream


def current_stream(source: str, ordinal: int = 0) -> int:
    """The handle of the current stream, for arrays that come from a library."""
    if source == OWN:
        return DEFAULT_STREAM
    library: Any = sys.modules.get(source)
    if library is None:
        return DEFAULT_STREAM
    if source == CUPY:
        return int(library.cuda.get_current_stream().ptr)
    raw = getattr(library._C, "_cuda_getCurrentRawStream", None)
    return DEFAULT_STREAM if raw is None else int(raw(ordinal))  # a build without CUDA has none


def common_source(sources: tuple[str, ...]) -> str:
    """Whose stream to follow for arrays from several libraries: the first one that is not our own."""
    return next((source for source in sources if source != OWN), OWN)
