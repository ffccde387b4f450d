"""How the text of a target becomes a library, and how what its kernels allocate is freed.

These are facts, and fields of ``Target``. The room ``toolchain`` acts on them: it finds the compiler, runs it and keeps what it makes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpenMP:
    """OpenMP in a language: the words that only a text with parallel loops has, and a small text that starts threads."""

    words: tuple[str, ...]
    probe: str


@dataclass(frozen=True)
class Toolchain:
    """A compiler that is called as ``program arguments flags -o library text libraries``.

    It makes a shared library whose functions can be found by name. A text is compiled again only if the text, one of these facts or the
    compiler itself has changed.

    Args:
        language: what messages call it.
        programs: the compilers, in the order in which they are looked for on the PATH.
        variable: the environment variable that names another compiler, with its arguments.
        flags: what the compiler is asked for. A flag that it does not know is left out.
        essential: those of the flags without which there is no library.
        suffix: how the name of a text ends.
        libraries: what is linked.
        probe: the smallest text that can be compiled. It tells which flags are known.
        openmp: how loops get threads; None if they get none from OpenMP.
        install: what to do where there is no compiler.
        hints: what a complaint of the compiler contains, and what to do about it.
    """

    language: str
    programs: tuple[str, ...]
    variable: str | None
    flags: tuple[str, ...]
    essential: tuple[str, ...]
    suffix: str
    probe: str
    libraries: tuple[str, ...] = ()
    openmp: OpenMP | None = None
    install: str = ""
    hints: tuple[tuple[str, str], ...] = ()

    def has_parallel_loops(self, text: str) -> bool:
        """Whether a text needs OpenMP."""
        return self.openmp is not None and any(word in text for word in self.openmp.words)


@dataclass(frozen=True)
class ShelfSize:
    """The memory of freed results that kernels keep for the next ones: whole pages of so many bytes, in so many places."""

    page: int
    places: int


@dataclass(frozen=True, eq=False)
class Allocator:
    """Who frees what kernels hand out: a function of the library that allocated it, which takes an address.

    It is known by itself, not by its parts. Libraries with a shelf define ``use_shelf`` and ``empty_shelf`` as well, and
    share the shelf of their allocator.
    """

    free: str
    shelf: ShelfSize | None = None
