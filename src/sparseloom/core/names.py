"""Names: which are legal, and how fresh ones are made."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Hands out names that are not taken yet: ``fresh("p")`` gives ``p``, then ``p1``, ``p2``, ...

    Behind a digit the number stands apart, for ``pA1`` and ``pA11`` would be read as levels 1 and 11.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def fresh(self, wish: str) -> str:
        """Return ``wish`` if it is free, else ``wish`` with the first free number behind it."""
        name, count = wish, 0
        while name in self._taken:
            count += 1
            name = f"{wish}_{count}" if wish[-1:].isdigit() else f"{wish}{count}"
        self._taken.add(name)
        return name

    def copy(self) -> Names:
        """The same names, of which others may be taken from now on."""
        return Names(self._taken)

    def take(self, name: str) -> str:
        """Mark a name as taken."""
        self._taken.add(name)
        return name
