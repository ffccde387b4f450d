"""The explorer as one function from a request to an answer, both of them JSON."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sparseloom.core.errors import CompilerBug, SparseloomError, SparseloomWarning
from sparseloom.explorer.examples import examples
from sparseloom.explorer.look import look, told
from sparseloom.explorer.next_steps import next_steps
from sparseloom.explorer.planning import planned
from sparseloom.explorer.running import compare, run, time_step
from sparseloom.explorer.space import iteration_space
from sparseloom.explorer.state import RequestError, read_state
from sparseloom.explorer.subject import Subject
from sparseloom.tensor.tensor import Tensor

Request = Mapping[str, Any]
Response = dict[str, Any]
_NOTHING: dict[str, Tensor] = {}


def explore(request: Any, operands: Mapping[str, Tensor] | None = None) -> Response:
    """Answer one request about a statement; ``operands`` are those that somebody has, others are random.

    What cannot be answered is told in the answer.

    >>> from sparseloom.explorer import explore
    >>> state = {"statement": "y(i) = A(i,j) * x(j)", "formats": {"A": "csr"}, "steps": [{"text": "split(i,i0,i1,4)"}]}
    >>> seen = explore({"ask": "look", "state": state})
    >>> seen["ok"], seen["steps"][0]["status"], seen["names"]["i1"]["ancestors"]
    (True, 'legal', ['i'])
    >>> explore({"ask": "dance"})["error"]["text"]
    "there is no question 'dance'"
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SparseloomWarning)  # races are told in the answer
            return {"ok": True, **_answer(request, _NOTHING if operands is None else operands)}
    except CompilerBug as fault:
        return _refused(fault, "request")
    except SparseloomError as fault:
        return _refused(fault, getattr(fault, "where", "statement"))
    except (MemoryError, RecursionError) as fault:
        text = "this is more than there is memory for" if isinstance(fault, MemoryError) else "this is nested too deeply"
        return {"ok": False, "error": {"text": text, "help": "make it smaller", "where": "statement"}}


def _refused(fault: SparseloomError, where: str) -> Response:
    return {"ok": False, "error": {**told(fault), "where": where}}


def _answer(request: Any, operands: Mapping[str, Tensor]) -> Response:
    if not isinstance(request, dict):
        raise RequestError("a request is an object that asks something", '{"ask": "look", "state": {...}}')
    asked = request.get("ask")
    if asked == "examples":
        return {"groups": examples()}
    answer = ASKS.get(asked) if isinstance(asked, str) else None
    if answer is None:
        raise RequestError(f"there is no question {str(asked)[:40]!r}", f"there are examples, {', '.join(ASKS)}")
    return answer(Subject(read_state(request.get("state")), operands), request)


ASKS: dict[str, Callable[[Subject, Request], Response]] = {
    "look": lambda subject, _: look(subject),
    "next": lambda subject, _: next_steps(subject),
    "plan": lambda subject, _: planned(subject),
    "space": lambda subject, request: iteration_space(subject, request.get("operand")),
    "run": lambda subject, _: run(subject),
    "time": lambda subject, request: time_step(subject, request.get("step")),
    "compare": lambda subject, request: compare(subject, read_state(request.get("other"))),
}
