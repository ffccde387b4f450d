"""Schedules that cut i into digits, and what each digit is worth by the definition."""

from __future__ import annotations

from collections.abc import Callable

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 11, 12)
Derive = Callable[[int, int], tuple[int, ...]]


def share(extent: int, count: int) -> int:
    """How large each of ``count`` blocks is that cover an extent."""
    return max(1, (extent + count - 1) // count)


# The digits of i, as the schedule defines them.
LINES: tuple[tuple[str, str, Derive], ...] = (
    ("split(i,a,b,4)", "a b", lambda i, n: divmod(i, 4)),
    ("split(i,a,b,1)", "a b", lambda i, n: (i, 0)),
    ("divide(i,a,b,3)", "a b", lambda i, n: divmod(i, share(n, 3))),
    ("split(i,a,b,5) split(b,c,d,2)", "a c d", lambda i, n: (i // 5, *divmod(i % 5, 2))),
    ("split(i,a,b,5) divide(a,c,d,2)", "c d b", lambda i, n: (*divmod(i // 5, share((n + 4) // 5, 2)), i % 5)),
    ("divide(i,a,b,2) split(b,c,d,3)", "a c d", lambda i, n: (i // share(n, 2), *divmod(i % share(n, 2), 3))),
    ("bound(i,a,99,MaxConstraint)", "a", lambda i, n: (i,)),
    ("bound(i,e,99,MaxConstraint) split(e,a,b,3)", "a b", lambda i, n: divmod(i, 3)),
    ("bound(i,e,0,MinExact) divide(e,a,b,4)", "a b", lambda i, n: divmod(i, share(n, 4))),
)
