"""The pages of docs/primitives, one per step of the scheduling language, made from the code and from the tested refusals."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import get_args

import numpy as np
from primitives.golden import GOLDEN, read_cases
from primitives.statements import schedule

import sparseloom as sl
from sparseloom.notation.nodes import Access, Expr, IndexVar
from sparseloom.schedule.arguments import kinds, takes_many, usage
from sparseloom.schedule.primitive import PRIMITIVES, Primitive

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "primitives"
SPMV, SPMM = "y(i) = A(i,j) * x(j)", "C(i,k) = A(i,j) * B(j,k)"
MATRIX = [[0, 1, 0, 0, 2], [3, 0, 0, 4, 5], [0, 0, 0, 0, 0], [6, 7, 8, 9, 1]]


@dataclass(frozen=True)
class Example:
    """One use of a step: after ``before``, the step ``step``. ``needs`` is what must hold, in the words of the design."""

    needs: tuple[str, ...]
    step: str
    before: str = ""
    statement: str = SPMV
    formats: tuple[tuple[str, str], ...] = (("A", "csr"),)
    draws: bool = False
    check: str = "A @ x"

    @property
    def steps(self) -> str:
        """The whole schedule."""
        return f"{self.before} {self.step}".strip()


EXAMPLES = {
    "split": Example(
        ("`i` is a loop, and is not tagged yet.", "`size` is at least 1.", "`outer` and `inner` are new names."),
        "split(i, i0, i1, 2)",
        draws=True,
    ),
    "divide": Example(
        (
            "`i` is a loop, and is not tagged yet.",
            "`count` is at least 1.",
            "`outer` and `inner` are new names.",
            "`access`, if it is given, is an operand that stores `i` in order, as a level of its own; then `inner` stays inside `outer`.",
            "`rows`, if it is given, is at most 1024, and an operand is named.",
        ),
        "divide(p, p0, p1, 3)",
        "fuse(i, j, f) pos(f, p, A(i,j))",
        draws=True,
    ),
    "fuse": Example(
        (
            "The loop over `j` stands directly inside that over `i`, and neither is tagged yet.",
            "Both count coordinates, or both count positions of one operand, at the same or at neighbouring levels.",
            "`fused` is a new name.",
        ),
        "fuse(i, j, f)",
        draws=True,
    ),
    "reorder": Example(
        (
            "The loops are directly nested; no temporary stands between them.",
            "A position loop stays inside the loops that tell where its segment is.",
            "An operand whose level comes before its parent can be searched there.",
            "A sparse result that is appended keeps its storage order.",
        ),
        "reorder(j, i)",
        draws=True,
    ),
    "pos": Example(
        (
            "`A(..i..)` is an operand, and is present wherever the loop has something to do: in an intersection, not in a union.",
            "`i`, with its outer digits fixed, runs over an interval of neighbouring levels of `A`, in storage order.",
            "The levels above are known outside the loop.",
            "`p` is a new name.",
        ),
        "pos(f, p, A(i,j)) split(p, p0, p1, 4)",
        "fuse(i, j, f)",
        draws=True,
    ),
    "coord": Example(
        (
            "`p` counts positions; it may be the inner half of a split, but not the outer one.",
            "The operand stores its coordinates in order, each once.",
            "`i` is a new name.",
        ),
        "coord(p1, jc)",
        "pos(j, p, A(i,j)) split(p, p0, p1, 2)",
        draws=True,
    ),
    "precompute": Example(
        (
            "`e` occurs in one assignment, up to the order of its factors or terms.",
            "The variables `i` are loops around it; there are as many new names `iw`, or the same names again.",
            "A reduction that moves into the workspace distributes over what stays outside.",
            "The workspace does not decide which entries a sparse result has.",
        ),
        "precompute(A(i,j) * x(j), j1, jw, w)",
        "split(j, j0, j1, 4)",
    ),
    "parallelize": Example(
        (
            "`i` is a loop that no unit runs yet.",
            "Units nest from the outside in: CPUThread, CPUVector; GPUBlock, GPUWarp, GPUThread.",
            "Under NoRaces, two iterations provably write different places. Atomics cover their loop and every loop outside it, "
            "Temporary and ParallelReduction their own loop. What nothing covers is refused, or with IgnoreRaces a warning.",
        ),
        "parallelize(p0, CPUThread, Atomics)",
        "fuse(i, j, f) pos(f, p, A(i,j)) split(p, p0, p1, 4)",
    ),
    "unroll": Example(
        ("`i` is a loop, not unrolled yet.", "`factor` is at least 1."),
        "unroll(p1, 4)",
        "pos(j, p, A(i,j)) split(p, p0, p1, 4)",
    ),
    "bound": Example(
        (
            "`i` is a loop, and `bounded` a new name.",
            "`value` is at least 0, and contradicts nothing that is known.",
            "The promise is checked when the kernel is called; a broken one is a ShapeError.",
        ),
        "bound(j, jb, 5, MaxExact)",
        formats=(),
    ),
    "prefetch": Example(
        (
            "`i` is a loop that reads `access`, an operand, and each of its iterations reads another part of it.",
            "That part lies together: what the operand is stored along before `i` is known outside the loop.",
            "Where it begins follows from `i`, or from the stored entries that the loop follows; nothing is searched.",
            "The loop is serial, or run by CPUThread.",
            "`distance` is at least 1. An operand is asked for once in a loop.",
        ),
        "prefetch(x(j), j, 4)",
    ),
    "assemble": Example(
        (
            "`tensor` is the result, sparse, with a structure of its own.",
            "Insert runs the loops twice. In another order than the result is stored in, all levels above its last one are full.",
        ),
        "assemble(C, Insert)",
        statement="C(i,k) = A(i,j) * A(k,j)",
        formats=(("A", "csr"), ("C", "csr")),
        check="A @ A.T",
    ),
    "mergeby": Example(
        (
            "`i` counts coordinates, and the loop follows sparse operands that are stored in order.",
            "Gallop needs an intersection.",
        ),
        "mergeby(j, Gallop)",
        formats=(("A", "csr"), ("x", "s")),
    ),
}


def pages() -> dict[str, str]:
    """Every file of the folder, by name."""
    found = {"index.md": index()}
    for word, step in PRIMITIVES.items():
        example = EXAMPLES[word]
        found[f"{word}.md"] = page(word, step, example)
        if example.draws:
            made = schedule(example.statement, formats_text(example), example.steps)
            found[f"{word}.svg"] = made.picture(np.array(MATRIX))._repr_svg_() + "\n"
    return found


def page(word: str, step: type[Primitive], example: Example) -> str:
    """The page of one primitive."""
    title, _, text = (inspect.getmodule(step).__doc__ or "").strip().partition("\n")
    sentence = title.partition(": ")[2]
    parts = [f"# {word}", f"`{usage(step)}`: {sentence}", *_prose(text), "## Arguments", arguments(step), "## What must hold"]
    parts += ["\n".join(f"- {need}" for need in example.needs), "## Example", example_text(example)]
    parts += ["## Refusals", "Every refusal has a code, says why, and where it can, what to do.", *refusals(word)]
    return "\n\n".join(parts) + "\n\n[All steps](index.md)\n"


def _prose(text: str) -> list[str]:
    """A docstring's paragraphs; indented ones are pictures."""
    found = []
    for part in text.strip("\n").split("\n\n"):
        shown = inspect.cleandoc("\n" + part)
        found.append(f"```text\n{shown}\n```" if part.startswith("    ") else _marked(" ".join(shown.split())))
    return found


def _marked(text: str) -> str:
    """Code as Markdown marks it."""
    return text.replace("``", "`")


def arguments(step: type[Primitive]) -> str:
    """A table of a step's arguments, and the class's own sentence."""
    rows = ["| argument | is |", "|---|---|"]
    if takes_many(step):
        rows.append("| `i, j, ...` | loops, from the outermost in |")
    else:
        rows += [f"| `{name}` | {_kind(kind)} |" for name, kind in kinds(step).items()]
    return "\n".join(rows) + "\n\n" + _marked(inspect.getdoc(step) or "")


def _kind(kind: type) -> str:
    if type(None) in get_args(kind):
        (inside,) = (found for found in get_args(kind) if found is not type(None))
        return f"{_kind(inside)}; it may be left out"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(member.name for member in kind)
    known: dict[object, str] = {
        IndexVar: "a variable, or its name",
        int: "a whole number",
        str: "a name",
        Access: "an access such as `A(i,j)`, or its text",
        Expr: "an expression, or its text",
    }
    return known.get(kind, "a variable, or a set of them in braces")


def formats_text(example: Example) -> str:
    """The formats as ``A:csr x:s``."""
    return " ".join(f"{name}:{form}" for name, form in example.formats)


def example_text(example: Example) -> str:
    """Nest and loops before and after the step, and the call with its check."""
    formats = formats_text(example)
    before, after = schedule(example.statement, formats, example.before), schedule(example.statement, formats, example.steps)
    parts = [f"`{example.statement}`" + (f" with {', '.join(f'{n} in {f}' for n, f in example.formats)}" if formats else "")]
    parts[0] += f", after `{example.before}`:" if example.before else ":"
    parts += [f"```text\n{before}\n```", f"`{example.step}` makes of it", f"```text\n{after}\n```"]
    if example.draws:
        words = f"The order in which the entries of a small matrix are visited{', and the tiles' if after.picture(MATRIX).cuts else ''}:"
        parts += [words, f"![iteration space]({example.step.partition('(')[0]}.svg)", f"```text\n{after.picture(MATRIX)}\n```"]
    kernel = sl.program(example.statement, dict(example.formats), example.steps)
    unscheduled = sl.program(example.statement, dict(example.formats), example.before)
    parts += ["The loops before and after:", _loops(unscheduled), _loops(kernel), "It computes the same:", _call(example)]
    return "\n\n".join(parts)


def _loops(kernel: sl.Kernel) -> str:
    """The loops without the line of parameters, and without the places where a kernel asks whether it was cancelled."""
    lines = [line.removeprefix("  ") for line in kernel.show("loops").rstrip().splitlines()[1:]]
    return "\n".join(["```text", *(line for line in lines if line.strip() != "poll"), "```"])


def _call(example: Example) -> str:
    rows = f",\n...{' ' * 15}".join(map(str, MATRIX))
    formats = ", ".join(f'"{name}": "{form}"' for name, form in example.formats)
    given = {"A": np.array(MATRIX), "x": np.array([1, 0, 3, 4, 5])}
    names = [name for name in given if f"{name}(" in example.statement]
    made = sl.evaluate(example.statement, **{name: given[name] for name in names}).to_numpy()
    return "\n".join(
        [
            "```python",
            ">>> import numpy as np, sparseloom as sl",
            f">>> A = np.array([{rows}])",
            *([">>> x = np.array([1, 0, 3, 4, 5])"] if "x" in names else []),
            f'>>> k = sl.program("{example.statement}", {{{formats}}},',
            f'...                "{example.steps}")',
            f">>> k({', '.join(names)}).to_numpy()",
            f"{made!r}",
            f">>> bool((k({', '.join(names)}).to_numpy() == {example.check}).all())",
            "True",
            "```",
        ]
    )


def refusals(word: str) -> list[str]:
    """Each code once, with the whole text of a tested case."""
    shown: dict[str, str] = {}
    for heading, text in read_cases(GOLDEN / "refusals" / f"{word}.txt").items():
        code = text[1 : text.index("]")]
        statement, formats, *_ = (part.strip() for part in heading.split("|"))
        stored = f", {formats}" if formats else ""
        shown.setdefault(code, f"### {code}\n\n`{statement}`{stored}\n\n```text\n{text}\n```")
    return [shown[code] for code in sorted(shown, key=lambda code: int(code[1:]))]


def index() -> str:
    """The list of steps, and how a schedule is written."""
    rows = ["| step | what it does |", "|---|---|"]
    for word, step in sorted(PRIMITIVES.items()):
        sentence = (inspect.getmodule(step).__doc__ or "").strip().partition("\n")[0].partition(": ")[2]
        rows.append(f"| [`{usage(step)}`]({word}.md) | {sentence} |")
    return INDEX.replace("TABLE", "\n".join(rows)).replace("REFUSALS", "\n\n".join(refusals("text")))


INDEX = """# The steps of a schedule

A schedule says how the loops of a statement run. It never changes the result: a step either keeps it or is refused with a reason.

TABLE

As text, steps follow each other; in Python, each is a method that gives a new schedule.

```python
>>> import numpy as np, sparseloom as sl
>>> A = sl.asarray(np.eye(4), name="A").to("csr")
>>> x, y = sl.asarray(np.arange(4.0), name="x"), sl.zeros(4, name="y")
>>> i, j, i0, i1 = sl.indices("i j i0 i1")
>>> y[i] = A[i, j] * x[j]
>>> s = y.schedule().split(i, i0, i1, 2).parallelize(i0, "CPUThread", "NoRaces")
>>> print(s)
forall i0      coordinates in [0, ceil(|i| / 2)), CPUThread with NoRaces
  forall i1    coordinates in [0, 2)
    forall j   coordinates in [0, |j|)
      y(i) += A(i,j) * x(j)
such that
  i = i0 * 2 + i1
>>> print(s.text)
split(i, i0, i1, 2)
parallelize(i0, CPUThread, NoRaces)
>>> kernel = s.compile()
>>> kernel
<sparseloom kernel: y(i) = A(i,j) * x(j)
  split(i, i0, i1, 2)
  parallelize(i0, CPUThread, NoRaces)>
>>> kernel() is y
True
>>> y.to_numpy()
array([0., 1., 2., 3.])
```

Operands are named as the statement has them: `s.pos(j, p, A[i, j])`, or `"A(i,j)"`. A schedule also goes into
`sl.program(..., schedule=s)`, which takes its steps. In a notebook schedules and kernels show their loops with a picture.

`s.provenance` shows how the variables come from each other, `s.iteration_graph` which operand each loop walks, and `s.picture(matrix)`
in which order the entries of a small matrix are visited. All three print as text and show themselves as SVG in a notebook.

```python
>>> print(s.provenance)
j
i --split(2)--> i0, i1
recover_original   i = i0 * 2 + i1
recover_derived    i0 = i / 2, i1 = i % 2
>>> print(s.iteration_graph)
forall i0
  forall i1    y dense, A dense
    forall j   A compressed, x dense
      y(i) += A(i,j) * x(j)
>>> print(s.picture(A))
a1   .   .   .
 .  a2   .   .
 .   .  b3   .
 .   .   .  b4
```

The lesson on [SpMV](../lessons/spmv.md) uses them one after another.

## Refusals of the text

What a step refuses stands on its page. These refusals are about how a schedule is written.

REFUSALS
"""
