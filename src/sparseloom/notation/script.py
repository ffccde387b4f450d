"""Programs as text: one statement or several, each with the schedule of its loops below it.

    A: csr, t1: dense               # formats, on lines of their own
    t1(k) = A(k,l) * x(l)
      split(k,k0,k1,64)             # steps of the schedule of the statement above
      parallelize(k0,CPUThread,NoRaces)
    y(i) = A(i,k) * t1(k)
      plain                         # the loops as they are

The last statement makes the result; what the others make are temporaries. A statement goes on in the next line where a bracket is open
or an operator stands before or behind the end of the line. Variables belong to their statement.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from sparseloom.core.errors import NotationError
from sparseloom.core.trees import walk
from sparseloom.notation.caret import refuse
from sparseloom.notation.nodes import Access, Assign
from sparseloom.notation.terms import tensors_of
from sparseloom.notation.text import ParsedStatement, parse

PLAIN = "plain"  # spells a schedule without steps

_COMMENT = re.compile(r"#[^\n]*")
_NAME = r"[^\W\d]\w*"
_DECLARES = re.compile(rf"\s*{_NAME}\s*:")
_DECLARATION = re.compile(rf"\s*({_NAME})\s*:\s*(.*?)\s*")
_BETWEEN = re.compile(rf",(?=\s*{_NAME}\s*:)")
_ASSIGNS = re.compile(r"(?<![<>=!])=(?!=)")
_GOES_ON = re.compile(r"([-+*/%<>=!,(\[{]|\b(and|or|not))$")
_CONTINUES = re.compile(r"[-+*/%<>=!,)\]}]|(and|or)\b(?!\s*([(\[][^=]*[)\]])?\s*\+?=(?!=))")  # a result may be called and


class _Kind(Enum):
    """What a line says."""

    STATEMENT = "statement"
    SCHEDULE = "schedule"
    FORMATS = "formats"


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of a program, the line in which it begins, and the schedule below it; None if there is none."""

    parsed: ParsedStatement
    line: int = 1
    schedule: str | None = None

    @property
    def assign(self) -> Assign:
        """Its tree, with placeholders for the tensors."""
        return self.parsed.assign


@dataclass(frozen=True)
class Script:
    """A program as it was read: its statements in order, and the formats that it declares."""

    steps: tuple[ScriptStatement, ...]
    formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def last(self) -> ScriptStatement:
        """The statement that makes the result."""
        return self.steps[-1]

    @property
    def orders(self) -> dict[str, int]:
        """How many modes each tensor has, in order of appearance."""
        return {tensor.name: tensor.order for step in self.steps for tensor in tensors_of(step.assign)}

    @property
    def operands(self) -> tuple[str, ...]:
        """The tensors that no statement makes, in order of first appearance."""
        made = {step.parsed.result for step in self.steps}
        return tuple(dict.fromkeys(name for step in self.steps for name in step.parsed.operands if name not in made))


def read_script(text: str, tensors: Collection[str] = ()) -> Script:
    """Read a program. ``tensors`` are names known to be tensors, even if there are functions of the same name.

    >>> script = read_script("t(k) = B(k,l) * x(l)\\ny(i) = A(i,k) * t(k)")
    >>> script.operands, script.last.parsed.text
    (('B', 'x', 'A'), 'y(i) = A(i,k) * t(k)')
    """
    if not isinstance(text, str) or "\n" not in text.strip():
        bare = text if not isinstance(text, str) or "#" not in text else _without_comments(text).strip()
        return Script((ScriptStatement(parse(bare, tensors)),))
    steps: list[ScriptStatement] = []
    formats: dict[str, str] = {}
    pieces = list(_pieces(_without_comments(text)))
    several = sum(kind is _Kind.STATEMENT for kind, _, _ in pieces) > 1
    known = set(tensors)
    for kind, line, found in pieces:
        match kind:
            case _Kind.FORMATS:
                _declare(formats, found, line)
            case _Kind.STATEMENT:
                steps.append(ScriptStatement(_parse(found, known, line, several), line))
                known.add(steps[-1].parsed.result)
            case _Kind.SCHEDULE:
                steps[-1] = ScriptStatement(steps[-1].parsed, steps[-1].line, _schedule(found, line))
    if not steps:
        raise NotationError("the program has no statement\n  help: write one such as y(i) = A(i,j) * x(j)")
    script = Script(tuple(steps), formats)
    _check(script)
    return script


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda comment: " " * len(comment[0]), text)


def _pieces(text: str) -> Iterator[tuple[_Kind, int, str]]:
    """The parts of a program: what each is, the line in which it begins, and its text."""
    current: tuple[_Kind, int, list[str]] | None = None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        kind = _kind(line, None if current is None else (current[0], "\n".join(current[2])))
        if kind is not None:
            if current is not None:
                yield current[0], current[1], "\n".join(current[2])
            current = kind, number, []
        if current is not None:
            current[2].append(line.rstrip())
    if current is not None:
        yield current[0], current[1], "\n".join(current[2])


def _kind(line: str, before: tuple[_Kind, str] | None) -> _Kind | None:
    """What a line begins; None if it goes on with what stands before it."""
    bare = line.strip()
    if before is not None and _depth(before[1]) > 0:
        return None
    if before is not None and before[0] is _Kind.STATEMENT and (_GOES_ON.search(before[1]) or _CONTINUES.match(bare)):
        return None
    if _DECLARES.match(bare):
        return _Kind.FORMATS
    if before is None or before[0] is _Kind.FORMATS or _ASSIGNS.search(_outside_brackets(bare)):
        return _Kind.STATEMENT
    return None if before[0] is _Kind.SCHEDULE else _Kind.SCHEDULE


def _depth(text: str) -> int:
    """How many brackets are open at the end."""
    return sum((letter in "([{") - (letter in ")]}") for letter in text)


def _outside_brackets(text: str) -> str:
    """What stands in no bracket."""
    depth, kept = 0, []
    for letter in text:
        depth += letter in "([{"
        kept.append(letter if depth == 0 else " ")
        depth -= letter in ")]}"
    return "".join(kept)


def _parse(text: str, tensors: Collection[str], line: int, several: bool) -> ParsedStatement:
    try:
        return parse(text.strip(), tensors)
    except NotationError as fault:
        raise (NotationError(f"{fault}\nin line {line} of the program") if several else fault) from None


def _schedule(text: str, line: int) -> str:
    """The text of a schedule, of which ``plain`` says that it has no steps."""
    words = [word.strip() for word in text.split("\n")]
    if PLAIN not in words:
        return text
    if len(words) > 1:
        help = f"leave {PLAIN} away, or the steps"
        raise NotationError(f"cannot read the program: {PLAIN} stands for no steps, but there are some\n  in line {line}\nhelp: {help}")
    return ""


def _declare(formats: dict[str, str], text: str, line: int) -> None:
    """Read ``A: csr, t1: ds:1,0``."""
    for part in _BETWEEN.split(text):
        found = _DECLARATION.fullmatch(part)
        name, form = (found[1], found[2]) if found else (part, "")
        where = f"in line {line}: {text.strip()}"
        if not form:
            raise NotationError(f"cannot read the program: no format is given for {name.strip(' :')}\n  {where}\nhelp: write A: csr")
        if name in formats:
            raise NotationError(f"cannot read the program: the format of {name} is given twice\n  {where}")
        formats[name] = form


def _check(script: Script) -> None:
    """Refuse a program that reads what is not made yet, makes a name twice, or makes what nothing reads."""
    made = {step.parsed.result: step for step in reversed(script.steps)}
    orders: dict[str, tuple[int, int]] = {}
    for step in script.steps:
        _check_made(step, made, script.last)
        for name in step.parsed.operands:
            maker = made.get(name)
            if maker is not None and maker.line >= step.line:
                where = "the result" if maker is script.last else "a temporary"
                help = f"move line {maker.line} before line {step.line}, or give {where} another name"
                raise _refuse(f"'{name}' is read in line {step.line}, but made in line {maker.line}", step, name, help)
        for access in (n for n in walk(step.assign) if isinstance(n, Access)):
            name, order = access.tensor.name, len(access.indices)
            before, line = orders.setdefault(name, (order, step.line))
            if before != order:
                raise _refuse(f"'{name}' has {_modes(before)} in line {line}, but {order} in line {step.line}", step, name)
    read = {name for step in script.steps for name in step.parsed.operands}
    for step in script.steps[:-1]:
        if (name := step.parsed.result) not in read:
            help = f"the result is {script.last.parsed.result}, which the last statement makes; leave line {step.line} away"
            raise _refuse(f"'{name}' is made in line {step.line}, but nothing reads it", step, name, help)


def _check_made(step: ScriptStatement, made: Mapping[str, ScriptStatement], last: ScriptStatement) -> None:
    """Refuse a name that is made again, and a temporary that would be added to."""
    name = step.parsed.result
    if (first := made[name]) is not step:
        help = "give each a name of its own"
        raise _refuse(f"'{name}' is made twice, in line {first.line} and in line {step.line}", step, name, help)
    if step is not last and step.assign.op is not None:
        help = "write = instead"
        raise _refuse(f"'{name}' is a temporary, which holds nothing that could be added to", step, name, help)


def _refuse(what: str, step: ScriptStatement, name: str, help: str = "") -> NotationError:
    text = step.parsed.text
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    return refuse(f"cannot read the program: {what}", text, found.start() if found else 0, help)


def _modes(order: int) -> str:
    return "1 mode" if order == 1 else f"{order} modes"
