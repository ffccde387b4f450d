"""The pictures: iteration space with its arrays, a race, graphs, storage, and files to take away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import Locator, expect

SPLIT, THREADS = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def window(open_page: Callable[..., Opened]) -> Opened:
    """SpMV in blocks of four rows, with its picture."""
    opened = open_page(spmv_state(SPLIT, THREADS))
    expect(opened.entries).not_to_have_count(0)
    return opened


def fills(shapes: Locator) -> list[str]:
    """The colours of shapes."""
    found: list[str] = shapes.evaluate_all("nodes => nodes.map((node) => node.getAttribute('fill'))")
    return found


def visit(window: Opened) -> Locator:
    """What is said of the visit that the slider is at."""
    return window.page.locator("output")


def test_the_entries_of_the_operand_are_drawn_in_the_colours_of_their_tiles(window: Opened) -> None:
    expect(window.page.get_by_label("coloured by")).to_have_value("tile")
    count = window.entries.count()
    assert count >= 20 and len(set(fills(window.entries))) == 4  # four blocks of four rows in a window of sixteen
    expect(visit(window)).to_contain_text(f"visit {count} of {count}")
    expect(window.page.get_by_role("img", name="Entries of A")).to_be_visible()


def test_the_arrays_have_the_colours_of_the_entries(window: Opened) -> None:
    for k in (0, 7, window.entries.count() - 1):
        cells = window.page.locator(f"svg g[data-entry='{k}'] rect.sl-cell")
        expect(cells).to_have_count(2)  # crd and vals
        assert set(fills(cells)) == {fills(window.entries)[k]}
    words = window.page.locator(".stage svg").first.locator("text").all_text_contents()
    assert {"pos", "crd", "vals"} <= set(words)


def test_entries_are_coloured_by_what_one_chooses(window: Opened) -> None:
    by_tile = fills(window.entries)
    window.page.get_by_label("coloured by").select_option("j")
    by_column = fills(window.entries)
    assert by_tile != by_column and len(set(by_column)) == 8
    assert window.page.get_by_label("coloured by").locator("option").all_text_contents() == ["tile", "thread", "i0", "i1", "i", "j"]
    window.page.get_by_label("coloured by").select_option("thread")
    assert fills(window.entries) == by_tile  # every block is a thread's


def test_a_slider_runs_through_time(window: Opened) -> None:
    slider = window.page.get_by_label("Time", exact=True)
    slider.focus()
    window.page.keyboard.press("Home")
    expect(visit(window)).to_have_text("before the first visit")
    assert window.page.locator("svg .sl-entry.done").count() == 0
    for _ in range(3):
        window.page.keyboard.press("ArrowRight")
    expect(visit(window)).to_contain_text("visit 3 of")
    expect(visit(window)).to_contain_text("i0 = 0")
    assert window.page.locator("svg .sl-entry.done").count() == 3
    expect(window.page.locator("svg .sl-entry.sl-now")).to_have_count(1)
    assert "visit 3" in (slider.get_attribute("aria-valuetext") or "")


def test_visits_are_stepped_through_one_by_one(window: Opened) -> None:
    count = window.entries.count()
    window.button("One visit back").click()
    expect(visit(window)).to_contain_text(f"visit {count - 1} of {count}")
    window.button("One visit on").click()
    window.button("One visit on").click()
    expect(visit(window)).to_contain_text(f"visit {count} of {count}")


def test_time_is_played_and_paused(window: Opened) -> None:
    window.page.clock.install()  # the page's time goes on when it is told to
    window.button("Play").click()
    expect(window.button("Pause")).to_be_visible()
    window.page.clock.run_for(400)
    expect(visit(window)).not_to_contain_text("visit 0 of")
    window.button("Pause").click()
    expect(window.button("Play")).to_be_visible()
    assert 0 < window.page.locator("svg .sl-entry.done").count() < window.entries.count()


def test_another_operand_can_be_looked_at(window: Opened) -> None:
    before = window.entries.count()
    window.page.get_by_label("of", exact=True).select_option("x")
    expect(visit(window)).to_contain_text("x(")
    assert window.entries.count() != before
    expect(window.page.get_by_role("img", name="Entries of x")).to_be_visible()


def test_an_entry_lights_its_places_in_the_arrays_and_says_when_it_is_visited(window: Opened) -> None:
    window.entries.nth(4).hover()
    expect(window.page.locator("svg g.near")).not_to_have_count(0)
    expect(window.detail).to_contain_text("visited at 5")
    window.page.locator("svg g[data-entry='2']").last.hover()
    expect(window.entries.nth(2)).to_contain_class("near")
    expect(window.detail).to_contain_text("visited at 3")
    window.page.locator("h1").hover()
    expect(window.page.locator("svg .near")).to_have_count(0)


def test_a_race_is_shown_as_two_iterations(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("parallelize(j,CPUThread,NoRaces)"))
    window.expect_statuses("refused")
    expect(window.page.locator("svg circle.sl-race")).to_have_count(2)
    expect(window.page.locator("svg path.sl-race")).to_have_count(1)
    expect(window.page.locator("p.race")).to_contain_text("both add to y(0)")
    window.step(1).fill("parallelize(j,CPUThread,Atomics)")
    window.expect_statuses("legal")
    expect(window.page.locator("svg .sl-race")).to_have_count(0)
    expect(window.page.locator("p.race")).to_be_hidden()


def test_provenance_shows_what_came_from_what(window: Opened) -> None:
    window.tab("Provenance")
    picture = window.page.get_by_role("img", name="How the variables come from each other")
    expect(picture).to_be_visible()
    assert {"i", "j", "i0", "i1"} <= set(picture.locator("text").all_text_contents())


def test_the_iteration_graph_shows_the_loops(window: Opened) -> None:
    window.tab("Iteration graph")
    picture = window.page.get_by_role("img", name="The loops and what each runs over")
    expect(picture).to_be_visible()
    assert {"i0", "i1", "j"} <= set(picture.locator("text").all_text_contents())


def test_storage_shows_the_levels_of_every_operand(window: Opened) -> None:
    window.tab("Storage")
    picture = window.page.get_by_role("img", name="Storage of A as csr")
    expect(picture).to_be_visible()
    words = picture.locator("text").all_text_contents()
    assert {"pos", "crd", "vals"} <= set(words)
    expect(window.page.get_by_role("img", name="Storage of x as dense")).to_be_visible()
    window.page.get_by_label("A", exact=True).fill("coo")
    expect(window.page.get_by_role("img", name="Storage of A as coo")).to_be_visible()


def test_the_explanation_says_who_drives_each_loop(window: Opened) -> None:
    window.tab("Explanation")
    text = window.page.get_by_label("Explanation", exact=True).last
    expect(text).to_contain_text("j: driven by A")


@pytest.mark.parametrize(
    ("tab", "name"),
    [
        ("Iteration space", "iteration-space"), ("Provenance", "provenance"),
        ("Iteration graph", "iteration-graph"), ("Storage", "storage-A"),
    ],
)
def test_a_picture_is_saved_as_svg(window: Opened, tab: str, name: str, tmp_path: Path) -> None:
    window.tab(tab)
    with window.page.expect_download() as saved:
        window.button(f"Save {name} as SVG").click()
    assert saved.value.suggested_filename == f"{name}.svg"
    saved.value.save_as(tmp_path / "saved.svg")
    root = ElementTree.parse(tmp_path / "saved.svg").getroot()
    assert root.tag == f"{SVG}svg" and float(root.attrib["width"]) > 100
    shapes = [shape for kind in ("rect", "path") for shape in root.iter(f"{SVG}{kind}")]
    assert len(shapes) > 3 and all("fill" in shape.attrib for shape in shapes)
    assert not list(root.iter(f"{SVG}style")) and "var(" not in (tmp_path / "saved.svg").read_text()
    expect(window.status).to_have_text(f"Saved {name}.svg.")


def test_padding_is_in_no_colour(open_page: Callable[..., Opened]) -> None:
    """Every value that stands for an entry has its colour, wherever it stands among the padding."""
    window = open_page(spmv_state(SPLIT, formats={"A": "ell"}))
    expect(window.entries).not_to_have_count(0)
    cells = window.page.locator("svg g[data-entry] rect.sl-cell")
    assert cells.count() >= window.entries.count()
    for k in (0, window.entries.count() - 1):
        boxes = window.page.locator(f"svg g[data-entry='{k}'] rect.sl-cell")
        assert set(fills(boxes)) == {fills(window.entries)[k]}
    assert window.page.locator("svg g:not([data-entry]) > rect.sl-box").count() > 0


def test_the_slices_of_a_tensor_stand_beside_each_other(open_page: Callable[..., Opened]) -> None:
    state = {"statement": "M(i,r) = X(i,j,k) * B(j,r) * C(k,r)", "formats": {"X": "csf"}, "sizes": {"i": 6, "j": 6, "k": 6, "r": 4}}
    window = open_page(state)
    expect(window.page.locator("svg path.sl-grid")).to_have_count(6)
    places = window.entries.evaluate_all("nodes => nodes.map((node) => `${node.getAttribute('x')} ${node.getAttribute('y')}`)")
    assert len(set(places)) == len(places) > 20
    expect(window.page.get_by_text("i = 5", exact=True)).to_be_visible()
