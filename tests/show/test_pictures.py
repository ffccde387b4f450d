"""What one can see of a schedule: its two graphs and its iteration space, as text (``tests/golden/pictures``) and as SVG."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from random import Random
from xml.etree import ElementTree

import numpy as np
import pytest
from primitives.golden import GOLDEN, WRITES, read_cases, write_cases
from primitives.statements import schedule

import sparseloom as sl
from sparseloom.explorer.paper import PAPER
from sparseloom.loops.memory import Cells
from sparseloom.schedule.primitive import PRIMITIVES

SPMV = "y(i) = A(i,j) * x(j)"
STORED = np.array([[0, 1, 0, 0, 1], [1, 0, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1.0]])

# The paper's figures: formats and steps.
SPACES = {
    "original": ("", ""),
    "reorder": ("", "reorder(j,i)"),
    "fuse": ("", "fuse(i,j,f)"),
    "split": ("", "split(j,j0,j1,2)"),
    "tiled": ("", "split(i,i0,i1,3) split(j,j0,j1,2) reorder(i0,j0,i1,j1)"),
    "dense positions": ("", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,8)"),
    "stored entries": ("A:csr", ""),
    "coordinate cut": ("A:csr", "split(i,i0,i1,2)"),
    "column cut": ("A:csr", "split(j,j0,j1,2) reorder(j0,i,j1)"),
    "position cut": ("A:csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)"),
    "position cut into three": ("A:csr", "fuse(i,j,f) pos(f,p,A(i,j)) divide(p,p0,p1,3)"),
    "row cut": ("A:dcsr", "pos(i,ip,A(i,j)) split(ip,i0,i1,2) parallelize(i0,CPUThread,NoRaces)"),
    "positions in a row": ("A:csr", "pos(j,p,A(i,j)) split(p,p0,p1,2)"),
    "coordinates again": ("A:csr", "pos(j,p,A(i,j)) split(p,p0,p1,2) coord(p1,jc)"),
    "columns": ("A:csc", "fuse(j,i,f) pos(f,p,A(i,j)) split(p,p0,p1,4)"),
    "positions in blocks": ("A:csr", "split(j,j0,j1,3) pos(j1,p,A(i,j))"),
}
GRAPHS = {paper.name: (paper.statement, paper.formats, paper.steps) for paper in PAPER} | {
    "intersection": ("a(i) = B(i,j) * c(j)", "B:csr c:s", ""),
    "union": ("A(i,j) = B(i,j) + C(i,j)", "B:csr C:csr", ""),
    "union and intersection": ("A(i,j) = (B(i,j) + C(i,j)) * D(i,j)", "B:csr C:csr D:csr", ""),
    "coord": (SPMV, "A:csr", "pos(j,p,A(i,j)) divide(p,p0,p1,4) coord(p1,jc)"),
}


def check(name: str, found: dict[str, str]) -> None:
    """Compare with a golden file, or write it."""
    file = GOLDEN / "pictures" / f"{name}.txt"
    if WRITES:
        write_cases(file, found)
    assert found == read_cases(file)


def test_provenance_graphs_as_text() -> None:
    check("provenance", {name: str(schedule(*case).provenance) for name, case in GRAPHS.items()})


def test_iteration_graphs_as_text() -> None:
    check("iteration", {name: str(schedule(*case).iteration_graph) for name, case in GRAPHS.items()})


def test_iteration_spaces_as_text() -> None:
    check("spaces", {name: str(schedule(SPMV, *case).picture(STORED)) for name, case in SPACES.items()})


def check_order(form: str, steps: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter reads the entries of A in the order that the picture shows."""
    read: list[int] = []
    load = Cells.load_number

    def recorded(cells: Cells, place: int) -> object:
        if cells.name in ("A_vals", "T0_vals"):  # a statement without a schedule runs under names of its own
            read.append(place)
        return load(cells, place)

    monkeypatch.setattr(Cells, "load_number", recorded)
    sl.program(SPMV, {"A": form}, steps, target="interpret")(STORED, np.ones(5))
    places = np.argwhere(STORED if form != "dense" else np.ones_like(STORED))
    if form in ("csc", "dcsc"):
        places = places[np.lexsort((places[:, 0], places[:, 1]))]
    space = schedule(SPMV, f"A:{form}", steps).picture(STORED)
    assert [tuple(places[k]) for k in read] == [tuple(space.points[k]) for k in space.order], steps


@pytest.mark.parametrize("name", [name for name in SPACES if name != "row cut"])
def test_the_picture_shows_the_order_in_which_the_loops_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    formats, steps = SPACES[name]
    check_order(formats.partition(":")[2] or "dense", steps, monkeypatch)


@pytest.mark.parametrize("form", ["csr", "csc", "dcsr", "dcsc", "coo", "dense"])
def test_pictures_of_random_schedules_show_the_order_too(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(25):
        check_order(form, drawn(form, Random(f"{form} {number}")), monkeypatch)


def drawn(form: str, random: Random) -> str:
    """The text of a random schedule that runs serially and has one assignment."""
    made = schedule(SPMV, f"A:{form}")
    for _ in range(random.randint(1, 5)):
        word = random.choice(("split", "divide", "fuse", "reorder", "pos", "coord", "bound"))
        for step in islice(PRIMITIVES[word].candidates(made.stmt, random), 2):
            with suppress(sl.ScheduleError):
                made = made.then(step)
                break
    return made.text


def drawings() -> dict[str, str]:
    """Every picture of this file as SVG."""
    found = {f"space {name}": schedule(SPMV, *case).picture(STORED)._repr_svg_() for name, case in SPACES.items()}
    for name, case in GRAPHS.items():
        made = schedule(*case)
        found |= {f"provenance {name}": made.provenance._repr_svg_(), f"iteration {name}": made.iteration_graph._repr_svg_()}
    return found


def test_drawings_are_whole_and_need_nothing_else() -> None:
    for name, text in drawings().items():
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg", name
        assert "prefers-color-scheme:dark" in text, name
        assert not re.search(r"href|url\(|@import|<script|<image", text), name
        assert not re.search(r"\b(nan|inf)\b", text), name


def test_everything_in_a_drawing_lies_inside_it() -> None:
    for name, text in drawings().items():
        root = ElementTree.fromstring(text)
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        for box in root.iter("{http://www.w3.org/2000/svg}rect"):
            x, y = float(box.attrib["x"]), float(box.attrib["y"])
            assert x >= 0 and x + float(box.attrib["width"]) <= width, name
            assert y >= 0 and y + float(box.attrib["height"]) <= height, name


def test_a_drawing_names_every_variable() -> None:
    text = schedule(SPMV, "A:csr", "fuse(i,j,f) pos(f,p,A(i,j)) split(p,p0,p1,4)").provenance._repr_svg_()
    words = [found.text for found in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]
    assert {"i", "j", "f", "p", "p0", "p1", "fuse", "pos(A)", "split(4)", "recover_track"} <= set(words)


def test_a_statement_without_loops_is_drawn() -> None:
    made = schedule("n = 0.5 * b")
    for text in (made.provenance._repr_svg_(), made.iteration_graph._repr_svg_()):
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_matrix_may_be_a_tensor_or_of_scipy() -> None:
    made = schedule(SPMV, "A:csr")
    tensor = sl.asarray(STORED).to("csr")
    assert str(made.picture(tensor)) == str(made.picture(tensor.to_scipy())) == str(made.picture(STORED))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(sl.ScheduleError) as large:
        schedule(SPMV, "A:csr").picture(np.ones((17, 3)))
    assert str(large.value) == "a picture shows 1 to 16 rows and columns, not shape (17, 3)\n  help: draw a part of the matrix"
    with pytest.raises(sl.ScheduleError) as vector:
        schedule("y(i) = x(i)").picture(STORED)
    assert str(vector.value) == "there is no matrix to draw: the statement reads x(i)\n  help: pictures show an operand with two variables"
