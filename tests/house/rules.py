"""The rules of the house. A rule takes the modules and returns complaints: where, what is wrong, and what to do."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from house.reading import PACKAGE, Import, Module, imports_of

# From the ground up: a floor may import itself and what stands before it. "" is the package's own __init__, what users import.
FLOORS = (
    "core", "loops", "formats", "notation", "targets", "relations", "iteration", "show", "schedule", "scope", "assemble", "lower", "passes",
    "plan", "toolchain", "tracing", "compiler", "programs", "interop", "tensor", "surface", "io", "calls", "explorer", "accelerate", "",
    "cli", "__main__",
)  # fmt: skip
# Only these may import inside functions: there a neighbour is loaded when its data or its file is at hand.
LATE_IMPORTERS = (f"{PACKAGE}.interop", f"{PACKAGE}.io", f"{PACKAGE}.accelerate", f"{PACKAGE}.cli")
# What may be imported at the top of a file, beside the standard library and the package itself.
FOREIGN = {"numpy": PACKAGE, "rich": f"{PACKAGE}.cli"}
VAGUE_NAMES = frozenset("utils util helpers helper common misc base impl manager".split())
LONGEST_FILE = 450
LONGEST_FUNCTION = 50
# Written apart, so that this file keeps the rule that it states.
UNFINISHED = re.compile("|".join([r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bX" + r"XX\b", r"\braise NotImplemented" + "Error"]))

# What macOS or Windows lacks, and the modules that offer it everywhere.
NOT_EVERYWHERE = re.compile(
    r"\bos\.(sched_getaffinity|process_cpu_count|cpu_count|get[eg]?uid|getgid|O_NOFOLLOW|O_NONBLOCK|O_DIRECTORY|O_NOCTTY|O_CLOEXEC|register_at_fork)\b"
    r"|^\s*(import|from) (fcntl|msvcrt|resource|pwd|grp)\b"
)
ASKING_THE_SYSTEM = (f"{PACKAGE}.core.system", f"{PACKAGE}.toolchain.filelocks", f"{PACKAGE}.explorer.limits")

Modules = Sequence[Module]
Rule = Callable[[Modules], list[str]]


def floors(modules: Modules) -> list[str]:
    """A floor imports only itself and the floors below it."""
    complaints = []
    for found in _own_imports(modules):
        above, below = found.module.part, _part(found.target)
        for part in (above, below):
            if part not in FLOORS:
                complaints.append(f"{found.place}: {part} has no floor; give it a place in FLOORS of tests/house/rules.py")
        if above in FLOORS and below in FLOORS and FLOORS.index(below) > FLOORS.index(above):
            complaints.append(
                f"{found.place}: {above or PACKAGE} imports {found.target}, which stands above it; "
                f"move what both need down to {above or PACKAGE} or below"
            )
    return complaints


def relations_are_asked(modules: Modules) -> list[str]:
    """Nobody outside of relations distinguishes relations by class: what differs is asked of them."""
    complaints = []
    for module in modules:
        if module.part == "relations":
            continue
        given = (n for n in ast.walk(module.tree) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith(f"{PACKAGE}.relations."))
        classes = {one.asname or one.name for found in given for one in found.names} - {"Relation"}
        for found in ast.walk(module.tree):
            match found:
                case ast.Call(ast.Name("isinstance" | "issubclass"), [_, asked]):
                    pass
                case ast.MatchClass(asked):
                    pass
                case _:
                    continue
            named = sorted({part.id for part in ast.walk(asked) if isinstance(part, ast.Name)} & classes)
            if named:
                where = f"{module.path}:{found.lineno}"
                complaints.append(f"{where}: {named[0]} is told apart by its class; ask the relation (relations/relation.py)")
    return complaints


def no_cycles(modules: Modules) -> list[str]:
    """No module imports itself by way of others, not even inside one floor or for types only."""
    graph: dict[str, list[str]] = {module.name: [] for module in modules}
    for found in _own_imports(modules):
        if found.target in graph:
            graph[found.module.name].append(found.target)
    cycle = find_cycle(graph)
    if cycle is None:
        return []
    return [f"import cycle {' -> '.join(cycle)}: move what they share into a module that both import"]


def find_cycle(graph: dict[str, list[str]]) -> list[str] | None:
    """One cycle of a directed graph, first node repeated at the end, or None."""
    finished: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str] | None:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in finished:
            for successor in graph[name]:
                if cycle := visit(successor, [*path, name]):
                    return cycle
            finished.add(name)
        return None

    return next((cycle for name in graph if (cycle := visit(name, []))), None)


def imports_at_the_top(modules: Modules) -> list[str]:
    """Imports stand at the top of a file; only interop, io, accelerate and cli may load another library inside a function."""
    return [
        f"{found.place}: {found.target} is imported inside a function; move it to the top, "
        "or move the function to interop, io or cli"
        for found in _all_imports(modules)
        if found.in_function and not found.module.name.startswith(LATE_IMPORTERS)
    ]


def imports_are_absolute(modules: Modules) -> list[str]:
    """Imports say the whole name."""
    return [
        f"{found.place}: {found.target} is a relative import; write it out from {PACKAGE}"
        for found in _all_imports(modules)
        if found.target.startswith(".")
    ]


def foreign_packages(modules: Modules) -> list[str]:
    """At the top of a file only the standard library and NumPy may be imported, in cli also rich; never SciPy."""
    complaints = []
    for found in _all_imports(modules):
        package = found.target.split(".")[0]
        if found.in_function or found.for_types_only or package in (PACKAGE, "") or package in sys.stdlib_module_names:
            continue
        if not (package in FOREIGN and found.module.name.startswith(FOREIGN[package])):
            complaints.append(
                f"{found.place}: {found.target} is imported with the module; "
                "import it inside a function of interop, io or cli"
            )
    return complaints


def module_docstrings(modules: Modules) -> list[str]:
    """Every module says in its first line what it is."""
    return [f"{m.path}: no docstring; say in one sentence what the module is for" for m in modules if not ast.get_docstring(m.tree)]


def public_docstrings(modules: Modules) -> list[str]:
    """Every public function, class and method says what it does; a method may leave that to the class it fulfils."""
    promised = _promises(modules)
    complaints = []
    for module in modules:
        for owner, item in _public_items(module.tree):
            if ast.get_docstring(item) or (owner is not None and item.name in _inherited(owner, promised)):
                continue
            name = item.name if owner is None else f"{owner.name}.{item.name}"
            place = f"{module.path}:{item.lineno}"
            complaints.append(f"{place}: {name} is public and has no docstring; say what it does, or rename it _{item.name}")
    return complaints


def file_length(modules: Modules) -> list[str]:
    """A file can be read in one sitting."""
    return [
        f"{m.path}: {lines} lines, more than {LONGEST_FILE}; split it by idea"
        for m in modules
        if (lines := len(m.text.splitlines())) > LONGEST_FILE
    ]


def function_length(modules: Modules) -> list[str]:
    """A function fits on one page."""
    return [
        f"{m.path}:{found.lineno}: {found.name} has {lines} lines, more than {LONGEST_FUNCTION}; give a part of it a name"
        for m in modules
        for found in ast.walk(m.tree)
        if isinstance(found, ast.FunctionDef) and (lines := (found.end_lineno or 0) - found.lineno + 1) > LONGEST_FUNCTION
    ]


def telling_names(modules: Modules) -> list[str]:
    """A module's name says what is in it."""
    return [
        f"{m.path}: {word!r} says nothing about what is inside; name the module after its idea"
        for m in modules
        for word in m.name.split(".")[-1].strip("_").split("_")
        if word in VAGUE_NAMES
    ]


def finished_code(modules: Modules) -> list[str]:
    """What is in the tree is finished: no marks for later, no functions that only promise."""
    return [
        f"{m.path}:{number}: {found[0]}; finish it, or take it out and refuse with a coded error"
        for m in modules
        for number, line in enumerate(m.text.splitlines(), 1)
        if (found := UNFINISHED.search(line))
    ]


def system_differences(modules: Modules) -> list[str]:
    """What some systems lack is asked in one module, which knows what to do without it."""
    return [
        f"{m.path}:{number}: {found[0].strip()} does not exist on every system; ask core/system.py or toolchain/filelocks.py"
        for m in modules
        if m.name not in ASKING_THE_SYSTEM
        for number, line in enumerate(m.text.splitlines(), 1)
        if (found := NOT_EVERYWHERE.search(line))
    ]


RULES: tuple[Rule, ...] = (
    floors, relations_are_asked, no_cycles, imports_at_the_top, imports_are_absolute, foreign_packages, module_docstrings,
    public_docstrings, file_length, function_length, telling_names, finished_code, system_differences,
)  # fmt: skip


def _all_imports(modules: Modules) -> Iterator[Import]:
    known = frozenset(module.name for module in modules)
    for module in modules:
        yield from imports_of(module, known)


def _own_imports(modules: Modules) -> Iterator[Import]:
    """The imports of one part of the package by another."""
    return (found for found in _all_imports(modules) if found.target.split(".")[0] == PACKAGE)


def _part(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


Function = ast.FunctionDef | ast.AsyncFunctionDef


def _public_items(tree: ast.Module) -> Iterator[tuple[ast.ClassDef | None, Function | ast.ClassDef]]:
    """The public functions and classes of a module, and the public methods with their class."""
    for item in tree.body:
        match item:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if not name.startswith("_"):
                yield None, item
            case ast.ClassDef(name, body=body) if not name.startswith("_"):
                yield None, item
                yield from ((item, m) for m in body if isinstance(m, Function) and not m.name.startswith("_") and not _is_repeated(m))


def _is_repeated(method: Function) -> bool:
    """Whether a method is an overload or a setter: its first definition carries the docstring."""
    return any(ast.unparse(d).split(".")[-1] in ("overload", "setter", "deleter") for d in method.decorator_list)


def _promises(modules: Modules) -> dict[str, tuple[list[str], set[str]]]:
    """For every class by name: its bases, and the members that it documents or declares with a type."""
    found: dict[str, tuple[list[str], set[str]]] = {}
    for module in modules:
        for item in ast.walk(module.tree):
            if isinstance(item, ast.ClassDef):
                bases = [ast.unparse(b).split("[")[0].split(".")[-1] for b in item.bases]
                documented = {m.name for m in item.body if isinstance(m, Function) and ast.get_docstring(m)}
                declared = {m.target.id for m in item.body if isinstance(m, ast.AnnAssign) and isinstance(m.target, ast.Name)}
                earlier_bases, earlier_members = found.get(item.name, ([], set()))
                found[item.name] = (earlier_bases + bases, earlier_members | documented | declared)
    return found


def _inherited(owner: ast.ClassDef, promised: dict[str, tuple[list[str], set[str]]]) -> set[str]:
    """The members that the classes above ``owner`` explain."""
    members: set[str] = set()
    waiting, seen = list(promised[owner.name][0]), {owner.name}
    while waiting:
        name = waiting.pop()
        if name in promised and name not in seen:
            seen.add(name)
            waiting += promised[name][0]
            members |= promised[name][1]
    return members
