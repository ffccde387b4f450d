"""The arguments of a step, from what the user gives: names or variables, numbers, accesses and expressions as nodes or as text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import get_args, get_type_hints

from sparseloom.core.errors import DTypeError, NotationError
from sparseloom.core.trees import Node, field_names, rewrite, walk
from sparseloom.iteration.concretize import Concrete
from sparseloom.iteration.foralls import reads, tensors
from sparseloom.notation.dtyping import as_written
from sparseloom.notation.nodes import Access, Expr, IndexVar, TensorVar
from sparseloom.notation.printer import show
from sparseloom.notation.text import parse
from sparseloom.schedule.primitive import Primitive, spell
from sparseloom.schedule.refusal import Refusal, listed, near

_SET = tuple[IndexVar, ...]


_KINDS: dict[type[Primitive], dict[str, type]] = {}


def kinds(step: type[Primitive]) -> dict[str, type]:
    """The arguments of a primitive and what each must be."""
    if step not in _KINDS:
        hints = get_type_hints(step)
        _KINDS[step] = {name: hints[name] for name in field_names(step)}
    return _KINDS[step]


def takes_many(step: type[Primitive]) -> bool:
    """Whether the arguments are the members of one set, as in ``reorder(i, j, k)``."""
    return list(kinds(step).values()) == [_SET]


def build(step: type[Primitive], given: tuple[object, ...], concrete: Concrete) -> Primitive | Refusal:
    """A step from its arguments, or why it is none."""
    wanted = kinds(step)
    if takes_many(step):
        inside = given[0] if len(given) == 1 else given
        found = read(_SET, inside, concrete, "the order")
        return found if isinstance(found, Refusal) else step(found)  # type: ignore[call-arg]
    needed = len(wanted) - len(_left_out(step))
    if not needed <= len(given) <= len(wanted):
        between = "to" if len(wanted) - needed > 1 else "or"
        number = f"{needed}" if needed == len(wanted) else f"{needed} {between} {len(wanted)}"
        return Refusal("S003", f"{step.word()} takes {number} arguments, not {len(given)}", f"write {usage(step)}")
    values = []
    for place, ((name, kind), value) in enumerate(zip(wanted.items(), given, strict=False)):
        found = read(kind, value, concrete, name)
        if isinstance(found, Refusal):
            return replace(found, argument=place)
        values.append(found)
    return step(*values)


def _left_out(step: type[Primitive]) -> list[str]:
    """The arguments, at the end, that may be left out."""
    return [name for name, kind in kinds(step).items() if type(None) in get_args(kind)]


def usage(step: type[Primitive]) -> str:
    """How a step is written."""
    optional = _left_out(step)
    names = "i, j, ..." if takes_many(step) else ", ".join(name for name in kinds(step) if name not in optional)
    names += "".join(f"[, {name}]" for name in optional)
    return f"{step.word()}({names})"


def read(kind: type, given: object, concrete: Concrete, name: str) -> object:
    """One argument, or the refusal of what was given for it."""
    if type(None) in get_args(kind):
        (kind,) = (inside for inside in get_args(kind) if inside is not type(None))
        if given is None:
            return None
    if kind in _READERS:
        return _READERS[kind](given, name)
    return _expression(given, concrete, name, kind is Access) if kind in (Expr, Access) else _word(kind, given)


def _variable(given: object, name: str) -> IndexVar | Refusal:
    match given:
        case IndexVar():
            return given
        case str() if given.strip().isidentifier():
            return IndexVar(given.strip())
    return Refusal("S004", f"{name} must be an index variable or its name, not {spell(given)}")


def _number(given: object, name: str) -> int | Refusal:
    if isinstance(given, str) and re.fullmatch(r"\s*-?\d{1,18}\s*", given):
        return int(given)
    if isinstance(given, bool | str) or not hasattr(given, "__index__"):
        return Refusal("S004", f"{name} must be a whole number, not {spell(given)}")
    return operator.index(given)


def _name(given: object, name: str) -> str | Refusal:
    match given:
        case TensorVar():
            return given.name
        case str() if given.strip():
            return given.strip()
    return Refusal("S004", f"{name} must be a name, not {spell(given)}")


def _set(given: object, name: str) -> tuple[IndexVar, ...] | Refusal:
    if isinstance(given, str):
        text = given.strip()
        given = [text] if text[:1] != "{" or text[-1:] != "}" else text[1:-1].split(",") if text[1:-1].strip() else []
    items = [given] if isinstance(given, IndexVar) or not isinstance(given, Iterable) else list(given)
    found = [_variable(item.strip() if isinstance(item, str) else item, f"every member of {name}") for item in items]
    refused = next((item for item in found if isinstance(item, Refusal)), None)
    return refused or tuple(item for item in found if isinstance(item, IndexVar))


_READERS: Mapping[type, Callable[[object, str], object]] = {IndexVar: _variable, int: _number, str: _name, _SET: _set}


def _word(kind: type, given: object) -> Enum | Refusal:
    """A member of an enumeration, or its name."""
    members = {member.name: member for member in kind if isinstance(member, Enum)}  # type: ignore[attr-defined]
    if isinstance(given, kind) and isinstance(given, Enum):
        return given
    text = spell(given).strip()
    if text in members:
        return members[text]
    return Refusal("S006", f"there is no {_FAMILIES.get(kind.__name__, kind.__name__)} {text}", near(text, members))


_FAMILIES = {
    "Unit": "parallel unit",
    "Races": "race strategy",
    "Merge": "way to merge",
    "Assembly": "way to assemble",
    "BoundType": "bound type",
}


def known_tensors(concrete: Concrete) -> dict[str, TensorVar]:
    """The statement's tensors by name; an operand that was converted is also known by its own name."""
    known = dict(tensors(concrete.stmt))
    for conversion in concrete.conversions:
        known.setdefault(conversion.source.name, known.get(conversion.target.name, conversion.target))
    return known


def _expression(given: object, concrete: Concrete, name: str, only_access: bool) -> Expr | Refusal:
    known = known_tensors(concrete)
    match given:
        case str():
            found = _parsed(given, known)
        case Expr() as found:
            pass
        case object(node=Expr() as found):  # of index notation in Python: a[i, j] * x[j]
            pass
        case _:
            return Refusal("S004", f"{name} must be an expression or its text, not {spell(given)}")
    if isinstance(found, Refusal):
        return found
    if only_access and not isinstance(found, Access):
        return Refusal("S004", f"{name} must be an access such as A(i,j), not {show(found)}")
    return _declared(found, known, concrete)


def _declared(expr: Expr, known: Mapping[str, TensorVar], concrete: Concrete) -> Expr | Refusal:
    """The expression with the statement's own tensors in it, and its own numbers in the place of variables."""
    for found in walk(expr):
        match found:
            case Access(tensor, _) if tensor.name not in known:
                return Refusal("S005", f"the statement has no tensor {tensor}", f"there are {listed(known)}")
            case Access(tensor, indices) if known[tensor.name].order != len(indices):
                return _miscounted(found, known[tensor.name], concrete)

    read = {(access.tensor, *map(str, access.indices)): access for access in reads(concrete.stmt)}

    def rule(found: Node) -> Node | None:
        match found:
            case Access(tensor, indices):
                own = known[tensor.name]
                return read.get((own, *map(str, indices)), Access(own, indices))
        return None

    try:
        return as_written(rewrite(expr, rule))
    except DTypeError as fault:
        return Refusal("S007", str(fault))


def _miscounted(given: Access, tensor: TensorVar, concrete: Concrete) -> Refusal:
    """The refusal of an access with too few or too many variables, or with none at all."""
    number = "1 mode" if tensor.order == 1 else f"{tensor.order} modes"
    written = list(dict.fromkeys(show(access) for access in reads(concrete.stmt) if access.tensor == tensor))
    help = f"write {' or '.join(written)}" if written else ""
    if not given.indices:
        return Refusal("S005", f"{given.tensor} stands without its variables, one for each of its {number}", help)
    return Refusal("S005", f"{given.tensor} has {number}, but {show(given)} gives it {len(given.indices)}", help)


def _parsed(text: str, known: Mapping[str, TensorVar]) -> Expr | Refusal:
    """Read an expression as the right side of a statement; a fault's column is counted from the expression's start."""
    left = next(name for name in (f"e{'_' * k}" for k in range(len(text) + 2)) if name not in text)
    prefix = f"{left} = "
    try:
        return parse(prefix + text, known).assign.rhs
    except NotationError as fault:
        what, *shown = str(fault).splitlines()
    why = what.removeprefix("cannot read the statement: ")
    column = next((line.index("^") - 2 - len(prefix) for line in shown if line.strip() == "^"), 0)
    advice = next((line.removeprefix("help: ") for line in shown if line.startswith("help: ")), "")
    return Refusal("S007", why, advice, column=max(0, column))
