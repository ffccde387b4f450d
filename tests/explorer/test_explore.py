"""The explorer's answers: what they say is what the compiler does."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseloom as sl
from sparseloom.cli.main import main
from sparseloom.core.trees import field_names
from sparseloom.explorer import explore
from sparseloom.explorer.examples import example_state, steps_of
from sparseloom.explorer.paper import PAPER
from sparseloom.explorer.predict import balance
from sparseloom.explorer.state import State, Step
from sparseloom.explorer.subject import Subject
from sparseloom.explorer.wording import worded
from sparseloom.schedule import primitives
from sparseloom.show.iteration_space import draw

SPMV = {"statement": "y(i) = A(i,j) * x(j)", "formats": {"A": "csr"}}
EXAMPLES = [one for group in explore({"ask": "examples"})["groups"] for one in group["examples"]]
SMALL = {"i": 12, "j": 12}


def asked(ask: str, steps: str = "", operands: Any = None, **rest: Any) -> dict[str, Any]:
    """The answer to a question about SpMV under some steps; it is JSON."""
    state = {**SPMV, "steps": [{"text": step} for step in steps_of(steps)], **rest.pop("state", {})}
    found = explore({"ask": ask, "state": state, **rest}, operands)
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["title"])
def test_an_example_can_be_looked_at(example: dict[str, Any]) -> None:
    seen = explore({"ask": "look", "state": example["state"]})
    assert seen["ok"], seen["error"]
    wanted = "refused" if "refused" in example["title"] else "legal"
    assert all(step["status"] == wanted for step in seen["steps"])
    assert seen["state"] == example["state"]
    assert isinstance(seen["columns"]["code"], list)
    assert "".join(piece["text"] for piece in seen["statement"]) == example["state"]["statement"]
    names = set(seen["names"])
    for line in (line for column in seen["columns"].values() for line in column):
        assert set(line["names"]) <= names
    visited = explore({"ask": "space", "state": example["state"]})
    assert visited["ok"], visited["error"]
    assert visited["visits"]


def test_links_lead_from_a_line_to_its_step_and_back() -> None:
    seen = asked("look", "split(i,i0,i1,4) parallelize(i0,CPUThread,NoRaces) unroll(j,2)")
    names = seen["names"]
    assert names["i0"]["ancestors"] == ["i"]
    assert set(names["i"]["descendants"]) == {"i0", "i1"}
    assert (names["i0"]["steps"], names["i1"]["steps"], names["j"]["steps"]) == ([0, 1], [0], [2])
    code = seen["columns"]["code"]
    heads = {word: line["names"] for line in code for word in ("i0", "i1") if f"int64_t {word} = 0" in line["text"]}
    assert heads["i0"][0] == "i0" and heads["i1"][0] == "i1"
    assert any(set(line["names"]) >= {"y", "A", "x"} for line in seen["columns"]["concrete"])


def test_a_refusal_stands_at_its_step_and_what_is_behind_it_waits() -> None:
    seen = asked("look", "split(i,i0,i1,4) parallelize(j,CPUThread,NoRaces) unroll(i1,2)")
    assert [step["status"] for step in seen["steps"]] == ["legal", "refused", "waiting"]
    assert "both add to y(0)" in seen["steps"][1]["error"]["text"]
    assert "Atomics" in seen["steps"][1]["error"]["help"]
    assert any("i1" in line["names"] for line in seen["columns"]["loops"])


def test_a_step_that_is_off_is_left_out() -> None:
    steps = [{"text": "split(i,i0,i1,4)", "on": False}, {"text": "unroll(i,2)"}]
    assert [step["status"] for step in asked("look", state={"steps": steps})["steps"]] == ["off", "legal"]


def test_a_race_is_shown_as_two_visits_that_meet() -> None:
    found = asked("space", "parallelize(j,CPUThread,NoRaces)", state={"sizes": SMALL})
    first, second = (found["visits"][found["race"][which]]["unit"] for which in ("first", "second"))
    assert first["i"] == second["i"] and first["j"] != second["j"]
    assert "both add to" in found["race"]["text"]


STEPS = (
    "",
    "split(i,i0,i1,3) parallelize(i0,CPUThread,NoRaces)",
    "reorder(j,i)",
    "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,5) parallelize(p0,CPUThread,Atomics)",
    "pos(j,p,A(i,j)) split(p,p0,p1,2) unroll(p1,2)",
    "divide(i,i0,i1,3,A(i,j),1)",
    "split(i,i0,i1,4) split(j,j0,j1,4) reorder(i0,j0,i1,j1)",
)


@pytest.mark.parametrize("steps", STEPS)
def test_the_trace_is_in_the_order_that_the_relations_tell(steps: str, rng: np.random.Generator) -> None:
    matrix = sp.random_array((11, 12), density=0.3, rng=rng, format="csr")
    A, x = sl.asarray(matrix), sl.asarray(np.ones(12))
    found = asked("space", steps, {"A": A, "x": x})
    subject = Subject(State(SPMV["statement"], SPMV["formats"], tuple(map(Step, steps_of(steps)))), {"A": A, "x": x})
    assert all(row.status == "legal" for row in subject.rows)
    space = draw(subject.schedule.stmt, matrix)
    assert [found["entries"][visit["entry"]]["at"] for visit in found["visits"]] == space.points[space.order].tolist()
    assert [visit["tile"] for visit in found["visits"]] == space.tiles[space.order].tolist()


def test_a_window_of_a_large_operand_is_shown(rng: np.random.Generator) -> None:
    A = sl.asarray(sp.random_array((500, 700), density=0.02, rng=rng, format="csr"))
    found = asked("space", "", {"A": A, "x": sl.asarray(np.ones(700))})
    assert found["of"] == [500, 700] and max(found["shape"]) <= 32
    assert found["entries"] and "a window of A" in found["remark"]
    dense = A.to_numpy()
    assert {float(entry["value"]) for entry in found["entries"]} <= {float(f"{value:.4g}") for value in dense[dense != 0]}


@pytest.mark.parametrize("form", ("csr", "csc", "coo", "dcsr", "ell", "bcsr(2,2)"))
def test_the_arrays_of_every_format_are_shown(form: str) -> None:
    found = asked("space", state={"formats": {"A": form}, "sizes": SMALL})
    assert found["ok"], found["error"]
    shown = [array for level in found["levels"] for array in level["arrays"]]
    for array in shown:
        assert all(0 <= begin <= end <= len(found["values"]) for begin, end in array["entries"])
    owners = found["value_entries"]
    assert [found["entries"][entry]["value"] for entry in owners if entry is not None] == [
        value for value, entry in zip(found["values"], owners, strict=True) if entry is not None
    ]
    assert {entry for entry in owners if entry is not None} == set(range(len(found["entries"])))
    assert (None in owners) == (form == "ell")
    if form == "csr":
        assert [array["name"] for array in shown] == ["pos", "crd"]
        assert shown[1]["entries"] == [[k, k + 1] for k in range(len(found["values"]))]


def test_next_steps_are_legal_and_told_about() -> None:
    found = asked("next", "split(i,i0,i1,4)", state={"sizes": {"i": 300, "j": 300}})
    words = {step["word"] for step in found["steps"]}
    assert {"split", "parallelize", "pos", "fuse", "unroll"} <= words
    for step in found["steps"]:
        taken = asked("look", f"split(i,i0,i1,4) {step['text']}", state={"sizes": {"i": 300, "j": 300}})
        assert [row["status"] for row in taken["steps"]] == ["legal", "legal"], step["text"]
        assert step["bytes"] > 0 and step["trips"] > 0
    assert any(step["balance"] is not None for step in found["steps"] if step["word"] == "parallelize")


def test_the_most_useful_step_comes_first_and_says_what_it_does() -> None:
    state = {"sizes": {"i": 3000, "j": 3000}}
    plan = [step["text"] for step in asked("plan", state=state)["steps"]]
    for taken in range(len(plan)):
        first = asked("next", " ".join(plan[:taken]), state=state)["steps"][0]
        assert first["planned"] and first["text"].replace(" ", "") == plan[taken]
    found = asked("next", "unroll(j,2)", state=state)["steps"]
    gains = [step["gain"] for step in found]
    assert gains == sorted(gains, reverse=True) and gains[0] > 1 > gains[-1] and not any(step["planned"] for step in found)
    assert found[0]["text"] == "parallelize(i, CPUThread, NoRaces)"
    assert not any("(i, CPUThread, Temporary)" in step["text"] for step in found)  # there is no race to resolve


SENTENCES = {
    "split(i,i0,i1,16)": "i is cut into blocks of 16: i0 counts the blocks, i1 the places in one.",
    "divide(i,i0,i1,8)": "i is cut into 8 blocks: i0 counts them, i1 the places in one.",
    "divide(i,i0,i1,8,A(i,j),2)": (
        "i is cut into 8 blocks: i0 counts them, i1 the places in one. Each holds equally many entries of A(i,j). "
        "Beside them every i weighs as much as 2 entries."
    ),
    "reorder(j,i)": "The loops stand in the order j, i, from the outermost in; their tags go with them.",
    "fuse(i,j,f)": "f takes the place of i and j and runs over their pairs.",
    "parallelize(j,CPUThread,Atomics)": (
        "The iterations of j run at the same time, each in a thread; what two of them add to one place is added atomically."
    ),
    "precompute(A(i,j)*x(j),{i,j},{iw,jw},w)": "w holds A(i,j) * x(j) for the values of i, j, which are called iw, jw where it is filled.",
    "bound(i,ib,64,MaxExact)": "ib takes the place of i, with the promise MaxExact 64.",
    "unroll(j,4)": "The body of j stands 4 times in the code.",
}


@pytest.mark.parametrize("step", SENTENCES)
def test_a_step_is_told_in_its_own_names(step: str) -> None:
    (found,) = Subject(State(SPMV["statement"], SPMV["formats"], (Step(step),)), {}).schedule.trace
    assert worded(found) == SENTENCES[step]


def test_every_primitive_is_told_in_whole_sentences() -> None:
    for primitive in (getattr(primitives, name) for name in primitives.__all__):
        told = " ".join((primitive.__doc__ or "").split())
        assert told.endswith(".") and set(re.findall("``(\\w+)``", told)) <= set(field_names(primitive)), primitive


def test_uneven_rows_are_predicted_to_be_out_of_balance(rng: np.random.Generator) -> None:
    matrix = sp.random_array((64, 400), density=0.01, rng=rng, format="lil")
    matrix[3] = 1.0
    given = {"A": sl.asarray(matrix.tocsr()), "x": sl.asarray(np.ones(400))}
    found = {}
    for steps in ("parallelize(i,CPUThread,NoRaces)", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,16) parallelize(p0,CPUThread,Atomics)"):
        subject = Subject(State(SPMV["statement"], SPMV["formats"], tuple(map(Step, steps_of(steps)))), given)
        found[steps] = balance(subject.schedule.stmt, subject.operands)
    rows, entries = found.values()
    assert rows is not None and entries is not None
    assert entries > 0.9 and rows <= entries


def test_the_planner_is_replayed_step_by_step() -> None:
    state = {"sizes": {"i": 3000, "j": 3000}}
    found = asked("plan", state=state)
    assert found["steps"] and all(step["what"] and step["why"] for step in found["steps"])
    seen = asked("look", " ".join(step["text"] for step in found["steps"]), state=state)
    assert all(step["status"] == "legal" for step in seen["steps"])
    assert "Plain loops" in asked("plan", state={"sizes": SMALL})["text"]
    chain = explore({"ask": "plan", "state": {"statement": "y(i) = A(i,j) * B(j,k) * x(k)", "sizes": {"i": 300, "j": 300, "k": 300}}})
    assert "2 statements" in chain["text"]


def test_a_run_tells_times_results_and_who_agrees() -> None:
    found = asked("run", "split(i,i0,i1,16) parallelize(i0,CPUThread,NoRaces)", state={"sizes": {"i": 200, "j": 200}})
    assert found["ok"], found["error"]
    assert found["seconds"] > 0 and found["interpreter"]["same"] and found["scipy"]["same"]
    assert found["scipy"]["what"] == "A @ x in SciPy"
    assert "200" in found["result"]["preview"] and found["roofline"]["bytes"] > 0
    assert found["timeline"] and all(0 <= one["begin"] <= one["end"] for one in found["timeline"])
    assert sum(one["count"] for one in found["timeline"]) == 13  # blocks of 16 rows of 200


STATEMENTS = (
    "y(j) = A(3,j) * x(j)", "y(i) = A(i,i) * x(i)", "a = A(i,j)", "y(i) += A(i,j) * x(j)", "y(i) = 3.0", "C(i,j) = A(i,k) * A(k,j)",
    "y(i) = max(j, A(i,j))", "C(i,j) = A(i,j) * (B(i,j) > 0.5)",
)  # fmt: skip


@pytest.mark.parametrize("statement", STATEMENTS)
def test_any_statement_can_be_explored(statement: str) -> None:
    formats = {"A": "csr"} if "A" in statement else {}
    state = {"statement": statement, "formats": formats, "sizes": {"i": 40, "j": 40, "k": 40}}
    for ask in ("look", "space", "next", "plan", "run"):
        found = explore({"ask": ask, "state": state})
        json.dumps(found, allow_nan=False)
        assert found["ok"] or (ask == "space" and "nothing that can be drawn" in found["error"]["text"])
        if ask == "run":
            assert found["interpreter"]["same"] and (found["scipy"] is None or found["scipy"]["same"])


def test_two_schedules_are_compared() -> None:
    other = {**SPMV, "steps": [{"text": "unroll(j,4)"}], "sizes": {"i": 100, "j": 100}}
    found = asked("compare", state={"sizes": {"i": 100, "j": 100}}, other=other)
    assert "the results are equal" in found["text"] and len(found["seconds"]) == 2
    assert {line["mark"] for line in found["code"]} == {" ", "+"} and any("unroll" in line["text"] for line in found["code"])
    timed = asked("time", state={"sizes": {"i": 100, "j": 100}}, step="unroll(j,4)")
    assert timed["seconds"] > 0 and timed["plain_seconds"] > 0
    assert not asked("time", step="unroll(k,4)")["ok"]


def test_what_is_taken_away_does_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    steps = "split(i,i0,i1,4) parallelize(i0,CPUThread,NoRaces)"
    taken = asked("look", steps, state={"sizes": SMALL})["take"]
    A, x = sp.eye_array(5, format="csr"), np.arange(5.0)
    there: dict[str, Any] = {"A": A, "x": x}
    exec(taken["python"], there)
    assert np.array_equal(there["y"].to_numpy(), x)
    again = sl.program(taken["text"])
    assert np.array_equal(again(A=A, x=x).to_numpy(), x) and "split(i, i0, i1, 4)" in again.plan
    program, *words = shlex.split(taken["command"])
    assert program == "sparseloom" and main([*words, "--repeat", "1"]) == 0
    assert "y" in capsys.readouterr().out


@pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper.name)
def test_a_schedule_of_the_paper_is_a_state(paper: Any) -> None:
    state = example_state(paper)
    assert State(**{**state.as_json(), "steps": tuple(Step(**step) for step in state.as_json()["steps"])}) == state


WRONG = (
    (None, "a request is an object"),
    ({"ask": "look"}, "a state has a statement"),
    ({"ask": "sing", "state": SPMV}, "no question 'sing'"),
    ({"ask": ["look"], "state": SPMV}, "no question"),
    ({"ask": "look", "state": {**SPMV, "colour": 1}}, "no 'colour'"),
    ({"ask": "look", "state": {**SPMV, "statement": "y(i) = A(i,j * x(j)"}}, "expected"),
    ({"ask": "look", "state": {**SPMV, "statement": "y" * 9999}}, "letters"),
    ({"ask": "look", "state": {**SPMV, "formats": {"A": "crs"}}}, "crs"),
    ({"ask": "look", "state": {**SPMV, "formats": {"A": "csf(3)"}}}, "order 3"),
    ({"ask": "look", "state": {**SPMV, "formats": {"B": "csr"}}}, "'B'"),
    ({"ask": "look", "state": {**SPMV, "formats": 7}}, "formats is an object"),
    ({"ask": "look", "state": {**SPMV, "steps": [7]}}, "a step is an object"),
    ({"ask": "look", "state": {**SPMV, "target": "metal"}}, "no target 'metal'"),
    ({"ask": "look", "state": {**SPMV, "sizes": {"i": 10**9}}}, "whole numbers"),
    ({"ask": "look", "state": {**SPMV, "formats": {}, "sizes": {"i": 10**7, "j": 10**7}}}, "is the limit"),
    ({"ask": "look", "state": {**SPMV, "sizes": {"i": 20_000, "j": 20_000}}}, "A would hold 4,000,000 values, and 2,000,000 is the limit"),
    ({"ask": "look", "state": {**SPMV, "density": "much"}}, "from 0 to 1"),
    ({"ask": "look", "state": {"statement": "t(i) = A(i,j) * x(j)\ny(i) = 2 * t(i)"}}, "one statement"),
    ({"ask": "space", "state": SPMV, "operand": "Q"}, "no operand 'Q'"),
    ({"ask": "run", "state": {**SPMV, "target": "cuda"}}, "not run"),
    ({"ask": "compare", "state": SPMV, "other": 3}, "a state has a statement"),
)


@pytest.mark.parametrize(("request_", "words"), WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_answered_is_told(request_: Any, words: str) -> None:
    found = explore(request_)
    assert not found["ok"] and words in found["error"]["text"] and found["error"]["where"]


def test_what_a_target_cannot_run_is_shown_all_the_same() -> None:
    state = {"statement": "C(i,j) = A(i,k) * B(k,j)", "formats": {"A": "csr", "B": "csr", "C": "csr"}, "target": "cuda"}
    seen = explore({"ask": "look", "state": {**state, "steps": [{"text": "split(i,i0,i1,4)"}]}})
    assert seen["ok"] and seen["steps"][0]["status"] == "legal"
    assert seen["columns"]["code"]["error"]["text"] == "a sparse result cannot be made on a GPU yet"
    assert any("i0" in line["names"] for line in seen["columns"]["loops"])
    assert explore({"ask": "space", "state": state})["visits"]


def test_a_semiring_is_shown_run_and_taken_away() -> None:
    paths = {"semiring": "min_plus", "sizes": SMALL, "density": 0.3}
    seen = asked("look", "split(i,i0,i1,4)", state=paths)
    assert seen["ok"] and seen["state"]["semiring"] == "min_plus"
    assert any("fmin" in line["text"] or "min" in line["text"] for line in seen["columns"]["code"])
    assert "semiring='min_plus'," in seen["take"]["python"] and "--semiring min_plus" in seen["take"]["command"]
    ran = asked("run", "split(i,i0,i1,4)", state=paths)
    assert ran["interpreter"]["same"] and ran["scipy"] is None
    A = sl.random((12, 12), 0.3, "csr", 0)
    x = np.arange(12.0)
    given = asked("run", "", {"A": A, "x": sl.asarray(x)}, state=paths)
    dense = np.where(A.to_numpy() != 0, A.to_numpy(), np.inf)
    assert str(sl.asarray((dense + x).min(axis=1), name="y")) == given["result"]["preview"]
    assert asked("look", state={"semiring": "minus_plus"})["error"]["text"] == "there is no semiring 'minus_plus' here"
