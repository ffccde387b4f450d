"""The answer to every edit: which steps are legal, what the statement becomes at every stage, and what came from what."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from sparseloom.core.algebra import SEMIRINGS
from sparseloom.core.errors import SparseloomError
from sparseloom.explorer.subject import Subject, Taken
from sparseloom.explorer.take import take_away
from sparseloom.formats.named import name_of
from sparseloom.formats.pack import passed_counts
from sparseloom.iteration.foralls import provenance, statements
from sparseloom.notation.nodes import Forall, IndexVar
from sparseloom.programs.explain import explain
from sparseloom.schedule.picture import remark
from sparseloom.schedule.races import Conflict

_WORD = re.compile(r"[^\W\d]\w*")
_DECLARED = re.compile(r"(?:int64_t (\w+) =|^\s*(\w+): int64 =)")
_HEAD = re.compile(r"""(PLAINLY )?static int32_t kernel\(|extern "C" __global__""")


def look(subject: Subject) -> dict[str, Any]:
    """All columns, the steps with their refusals, and the links between them."""
    names = _names(subject)
    columns = {stage: _lines(subject, stage, names) for stage in ("concrete", "loops")}
    return {
        "state": subject.state.as_json(),
        "tensors": [_tensor(subject, name) for name in subject.wanted.script.orders],
        "sizes": {var: subject.sizes[var] for var in subject.wanted.variables if var in subject.sizes},
        "statement": list(_pieces(subject)),
        "steps": [_row(row) for row in subject.rows],
        "names": names,
        "columns": {**columns, "code": code(subject, names)},
        "races": [_race(conflict) for conflict in subject.schedule.conflicts],
        "explain": _explained(subject),
        "semirings": list(SEMIRINGS),
        "take": take_away(subject),
        "pictures": {
            "provenance": subject.schedule.provenance._repr_svg_(),
            "iteration": subject.schedule.iteration_graph._repr_svg_(),
        },
    }


def told(fault: SparseloomError) -> dict[str, str]:
    """An error as text and help."""
    text, _, help = str(fault).partition("\n  help: ")
    return {"text": text, "help": help}


def _tensor(subject: Subject, name: str) -> dict[str, Any]:
    is_result = name == subject.wanted.result
    shape = subject.special.problem.shape if is_result else subject.operands[name].shape
    count = None if name not in subject.operands else len(subject.operands[name].values)
    return {
        "name": name,
        "order": len(shape),
        "format": name_of(subject.formats[name]),
        "role": "result" if is_result else "operand",
        "given": name in subject.given and name in subject.operands,
        "shape": list(shape),
        "stored": count,
    }


def _pieces(subject: Subject) -> Iterator[dict[str, Any]]:
    """The statement word by word; the names of tensors and variables are those that light up."""
    known, text, at = {*subject.wanted.script.orders, *subject.wanted.variables}, subject.state.statement, 0
    for word in _WORD.finditer(text):
        if word[0] in known:
            if word.start() > at:
                yield {"text": text[at : word.start()], "names": []}
            yield {"text": word[0], "names": [word[0]]}
            at = word.end()
    if at < len(text):
        yield {"text": text[at:], "names": []}


def _row(row: Taken) -> dict[str, Any]:
    error = None if row.error is None else told(row.error)
    return {
        "text": row.text,
        "on": row.status != "off",
        "status": row.status,
        "error": error,
        "names": list(row.names),
        "makes": list(row.makes),
    }


def _names(subject: Subject) -> dict[str, Any]:
    """Every variable and tensor: what it came from, what came from it, the steps that speak of it, and what it is."""
    stmt = subject.schedule.stmt
    graph = provenance(stmt)
    loops = {found.var: found for found in statements(stmt) if isinstance(found, Forall)}
    made = [var for relation in graph.relations for var in (*relation.parents, *relation.children)]
    variables = list(dict.fromkeys((*(IndexVar(name) for name in subject.wanted.variables), *made, *loops)))
    above = {var: [v.name for v in variables if v != var and v in graph.ancestors(var)] for var in variables}
    found: dict[str, Any] = {}
    for var in variables:
        below = [v.name for v in variables if v != var and var.name in above[v]]
        relation = graph.made_by(var)
        what = remark(loops[var], graph) if var in loops else "a variable of the statement" if relation is None else str(relation)
        found[var.name] = {
            "kind": "variable",
            "original": relation is None,
            "ancestors": above[var],
            "descendants": below,
            "steps": _steps_of(var.name, subject.rows),
            "what": what,
        }
    for name in _tensors(subject):
        steps = _steps_of(name, subject.rows)
        about = {"kind": "tensor", "original": name in subject.formats, "ancestors": [], "descendants": [], "steps": steps}
        what = name_of(subject.formats[name]) if name in subject.formats else "a workspace"
        found.setdefault(name, {**about, "what": what})
    return found


def _tensors(subject: Subject) -> Iterable[str]:
    """The tensors of the statement, and those that steps made."""
    return dict.fromkeys((*subject.wanted.script.orders, *(name for row in subject.rows for name in row.makes)))


def _steps_of(name: str, rows: tuple[Taken, ...]) -> list[int]:
    return [k for k, row in enumerate(rows) if name in row.names]


def _lines(subject: Subject, stage: str, known: Collection[str]) -> list[dict[str, Any]]:
    """The lines of a stage. Each names what it stems from, the tensors whose arrays it touches, and what it declares."""
    lowered = subject.stages.lowered
    arrays = {param.target.name: slot.tensor for param, slot in zip(lowered.function.params, lowered.slots, strict=True) if slot.tensor}
    found = []
    for line in subject.stages.lines(stage):
        words = _WORD.findall(line.text) if stage == "concrete" else [word for pair in _DECLARED.findall(line.text) for word in pair]
        touched = (arrays.get(word) for word in _WORD.findall(line.text))
        named = dict.fromkeys(name for name in (line.origin, *words, *touched) if name in known)
        found.append({"text": line.text, "names": list(named)})
    return found


def code(subject: Subject, known: Collection[str]) -> Any:
    """The kernel in C or CUDA, without what it includes and how it is entered; or why the target cannot run it."""
    if subject.lack is not None:
        return {"error": told(subject.lack)}
    lines = _lines(subject, subject.target.name, known)
    first = next((k for k, line in enumerate(lines) if _HEAD.match(line["text"])), 0)
    last = next((k for k, line in enumerate(lines) if line["text"].startswith("int32_t entry(")), len(lines))
    while last > first and not lines[last - 1]["text"]:
        last -= 1
    return lines[first:last]


def _race(conflict: Conflict) -> dict[str, Any]:
    resolved = None if conflict.resolved is None else f"{conflict.resolved[1].name} on {conflict.resolved[0]}"
    return {"text": str(conflict), "resolved": resolved, "variable": conflict.var.name}


def _explained(subject: Subject) -> str:
    stored = {name: passed_counts(storage) for name, storage in subject.operands.items() if not storage.format.is_dense}
    return explain(subject.stages, subject.sizes, stored)
