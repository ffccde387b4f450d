"""Every kind of sparse result from every kind of statement: the cases, and the table of how many were compared."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import cycle, islice

from fuzz.drawing import Case, accesses
from fuzz.operands import Spec

from sparseloom.notation.text import parse

PROPERTY = "result formats"
RESULTS = {
    2: ("ds", "ds:1,0", "ss", "ss:1,0", "uq", "uq:1,0", "bcsr(2,3)", "ell", "db", "dia"),
    3: ("sss", "sss:2,0,1", "dss", "dds:1,2,0", "uqq", "uqq:2,1,0"),
    4: ("ssss", "ssss:3,1,0,2", "ddds:1,0,3,2", "uqqq", "uqqq:1,3,0,2"),
}
OPERANDS = {
    1: ("s", "d", "b"),
    2: ("ds", "ds:1,0", "ss", "uq", "ss:1,0", "uq:1,0", "u~q~+", "bcsr(2,3)", "db", "dia", "bs"),
    3: ("sss", "uqq", "dss", "sss:2,0,1", "u~q~q~+", "dsb"),
    4: ("ssss", "uqqq", "ddss"),
}
STATEMENTS = {
    "copy": ("C(i,j) = A(i,j)", "C(i,j,k) = A(i,j,k)", "C(i,j,k,l) = A(i,j,k,l)"),
    "transpose": ("C(i,j) = A(j,i)", "C(i,j,k) = A(k,i,j)", "C(i,j,k,l) = A(l,j,k,i)"),
    "A+B": ("C(i,j) = A(i,j) + B(i,j)", "C(i,j) = A(i,j) + B(j,i)", "C(i,j,k) = A(i,j,k) + B(j,i,k)"),
    "SpGEMM": ("C(i,j) = A(i,k) * B(k,j)", "C(i,j) = A(k,i) * B(k,j)", "C(i,j) = A(i,k) * B(j,k)"),
    "chained": ("C(i,j) = A(i,k) * B(k,l) * D(l,j)", "C(i,j) = A(i,k) * B(k,j) + D(i,j)"),
    "TTV": ("C(i,j) = A(i,j,k) * b(k)", "C(j,k) = A(i,j,k) * b(i)"),
    "TTM": ("C(i,j,l) = A(i,j,k) * B(k,l)", "C(i,l,k) = A(i,j,k) * B(j,l)"),
    "MTTKRP": ("C(i,r) = A(i,j,k) * B(j,r) * D(k,r)", "C(k,r) = A(i,j,k) * B(j,r) * D(i,r)"),
    "Kronecker": ("C(i,j,k,l) = A(i,j) * B(k,l)", "C(i,k,j,l) = A(i,j) * B(k,l)"),
    "diagonal": ("C(i,i) = A(i,j) * B(j,i)", "C(i,j,i) = A(i,k) * B(k,j)", "C(i,j,i,k) = A(k,i,j)"),
    "contraction": ("C(j,k,l,m) = A(i,j,k) * B(i,l,m)", "C(j,m) = A(i,j,k) * B(k,i,m)"),
}
_SIZES = dict(zip("ijklmr", (5, 4, 6, 3, 4, 3), strict=True))


def cases(seed: int, kind: str, share: int = 1) -> Iterator[Case]:
    """``share`` choices of operand formats for every statement of a kind and every result format, in turn from where the seed says."""
    turns = {order: islice(cycle(forms), seed % 7, None) for order, forms in OPERANDS.items()}
    number = 0
    for text in STATEMENTS[kind]:
        assign = parse(text).assign
        for form in RESULTS[len(assign.lhs.indices)]:
            for _ in range(share):
                number += 1
                specs = {
                    a.tensor.name: _spec(next(turns[len(a.indices)]), seed + 100 * number + k)
                    for k, a in enumerate(accesses(assign)[1:])
                }
                next(islice(turns[2], number % 2, None))  # so that operands do not keep step with results
                sizes = {v.name: _SIZES[v.name] for a in accesses(assign) for v in a.indices}
                yield Case((seed, number), assign, sizes, specs, form)


def _spec(form: str, seed: int) -> Spec:
    return Spec(form, "float64", seed, density=0.35, repeats=form.endswith("+"))


def packed(kind: str, compared: Counter[str]) -> str:
    """What one test compared, as text that travels in its report."""
    return json.dumps([kind, compared])


def summary(reports: Iterable[tuple[str, str]]) -> list[str]:
    """One line per kind of statement: how many results of each format were compared with the dense oracle."""
    found = [json.loads(value) for name, value in reports if name == PROPERTY]
    return [f"{kind:12} " + "  ".join(f"{form} {count}" for form, count in counts.items()) for kind, counts in found]
