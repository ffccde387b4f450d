"""Reading the source as trees: which modules there are and what each of them imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "sparseloom"


@dataclass(frozen=True)
class Module:
    """One source file: its path from the repository's root, its dotted name and its text."""

    path: str
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return ast.parse(self.text, self.path)

    @property
    def part(self) -> str:
        """The part of the house it belongs to: ``formats`` for ``sparseloom.formats.levels.dense``, "" for the package itself."""
        return self.name.split(".")[1] if "." in self.name else ""


@dataclass(frozen=True)
class Import:
    """One name that a module imports, where it does so, and whether that runs."""

    module: Module
    line: int
    target: str
    in_function: bool
    for_types_only: bool

    @property
    def place(self) -> str:
        """Where the import stands, as editors understand it."""
        return f"{self.module.path}:{self.line}"


def modules_in(source: Path) -> tuple[Module, ...]:
    """Every module of the package below a ``src`` folder."""
    found = []
    for file in sorted((source / PACKAGE).rglob("*.py")):
        inside = file.relative_to(source)
        names = inside.with_suffix("").parts
        name = ".".join(names[:-1] if names[-1] == "__init__" else names)
        found.append(Module(f"{source.name}/{inside.as_posix()}", name, file.read_text(encoding="utf-8")))
    return tuple(found)


def imports_of(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import of a module; ``from package import member`` names the member where it is one of the ``known`` modules."""
    yield from _imports_below(module, module.tree.body, known, False, False)


def _imports_below(
    module: Module, body: Sequence[ast.AST], known: frozenset[str], in_function: bool, for_types_only: bool
) -> Iterator[Import]:
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                for target in _targets(statement, known):
                    yield Import(module, statement.lineno, target, in_function, for_types_only)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _imports_below(module, statement.body, known, True, for_types_only)
            case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                yield from _imports_below(module, statement.body, known, in_function, True)
                yield from _imports_below(module, statement.orelse, known, in_function, for_types_only)
            case _:
                yield from _imports_below(module, tuple(ast.iter_child_nodes(statement)), known, in_function, for_types_only)


def _targets(statement: ast.Import | ast.ImportFrom, known: frozenset[str]) -> list[str]:
    """The modules that one import statement loads."""
    match statement:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(origin, names):
            start = "." * statement.level + (origin or "")
            return list(dict.fromkeys(full if (full := f"{start}.{alias.name}") in known else start for alias in names))
