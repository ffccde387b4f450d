"""The columns are linked: what one points at lights up wherever it came from and whatever came from it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import Locator, expect

SPLIT, THREADS = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)"
LIT, EXACT = "lit", "exact"


@pytest.fixture
def window(open_page: Callable[..., Opened]) -> Opened:
    """SpMV in blocks of four rows; every test waits until its picture is there."""
    opened = open_page(spmv_state(SPLIT, THREADS, "unroll(j,2)"))
    expect(opened.entries).not_to_have_count(0)
    return opened


def expect_class(locator: Locator, name: str, there: bool = True) -> None:
    (expect(locator).to_contain_class if there else expect(locator).not_to_contain_class)(name)


def piece(window: Opened, name: str) -> Locator:
    """A name in the statement."""
    return window.page.locator("#edit .pieces").first.get_by_role("button", name=name, exact=True).first


def line(lines: Locator, text: str) -> Locator:
    return lines.filter(has_text=text).first


def test_a_variable_lights_its_steps_loops_and_code(window: Opened) -> None:
    piece(window, "i").hover()
    for number, there in enumerate((True, True, False)):
        expect_class(window.rows.nth(number), LIT, there)
    for lines in (window.loops, window.code):
        expect_class(line(lines, "i0"), LIT)
    expect_class(line(window.code, "for (int64_t pA2"), LIT, False)
    expect(window.detail).to_contain_text("i: ")


def test_a_made_variable_lights_what_it_came_from(window: Opened) -> None:
    window.page.get_by_role("button", name="i1 ← i").hover()
    expect_class(piece(window, "i"), LIT)
    expect_class(window.rows.nth(0), EXACT)
    expect_class(window.rows.nth(1), LIT, False)
    expect(window.detail).to_contain_text("i1: from i")


def test_a_loop_lights_its_code_and_its_step(window: Opened) -> None:
    line(window.loops, "for i0 in").hover(position={"x": 12, "y": 5})
    expect_class(line(window.code, "int64_t i0 = 0"), EXACT)
    expect_class(window.rows.nth(1), EXACT)
    expect_class(window.rows.nth(2), LIT, False)


def test_a_line_of_code_lights_the_loops_and_the_statement(window: Opened) -> None:
    line(window.code, "y_acc += ").hover(position={"x": 12, "y": 5})
    for name in ("y", "A", "x"):
        expect_class(piece(window, name), EXACT)
    expect_class(line(window.loops, "y_acc = y_acc +"), EXACT)


def test_a_tensor_lights_its_arrays_everywhere(window: Opened) -> None:
    window.page.locator(".format label", has_text="A").hover()
    expect_class(line(window.code, "A_vals[pA2]"), EXACT)
    expect_class(window.code.locator(".name", has_text="A2_pos").first, EXACT)
    expect_class(window.code.locator(".name", has_text="x_vals").first, LIT, False)


def test_a_step_lights_what_it_made(window: Opened) -> None:
    window.step(3).hover()
    expect_class(line(window.loops, "for pA2 in"), EXACT)
    expect_class(piece(window, "j"), EXACT)
    expect_class(line(window.loops, "for i1 in"), LIT, False)


def test_a_click_keeps_the_light_and_escape_lets_go(window: Opened) -> None:
    piece(window, "j").click()
    expect(piece(window, "j")).to_have_attribute("aria-pressed", "true")
    window.page.locator("h1").hover()
    expect_class(window.rows.nth(2), EXACT)
    line(window.loops, "for i0 in").hover(position={"x": 12, "y": 5})
    expect_class(window.rows.nth(1), LIT, False)
    window.page.keyboard.press("Escape")
    expect_class(window.rows.nth(2), LIT, False)
    expect(piece(window, "j")).to_have_attribute("aria-pressed", "false")


def test_a_kept_light_survives_an_edit_and_a_second_click_ends_it(window: Opened) -> None:
    piece(window, "i").click()
    window.step(1).fill("split(i,i0,i1,8)")
    expect(line(window.code, "i0 * 8")).to_be_visible()
    expect_class(line(window.code, "int64_t i0 = 0"), LIT)
    expect(piece(window, "i")).to_have_attribute("aria-pressed", "true")
    piece(window, "i").click()
    window.page.locator("h1").hover()
    expect_class(line(window.code, "int64_t i0 = 0"), LIT, False)


def test_the_lines_are_walked_and_kept_by_keys(window: Opened) -> None:
    window.loops.first.focus()
    for _ in range(2):
        window.page.keyboard.press("ArrowDown")
    expect(window.loops.nth(2)).to_be_focused()
    window.page.keyboard.press("End")
    expect(window.loops.last).to_be_focused()
    window.page.keyboard.press("Home")
    window.page.keyboard.press("ArrowDown")
    window.page.keyboard.press("Enter")
    expect(window.loops.nth(1)).to_have_attribute("aria-selected", "true")
    window.page.keyboard.press("Tab")
    expect_class(window.rows.nth(1), EXACT)
    window.page.keyboard.press("Escape")
    expect_class(window.rows.nth(1), LIT, False)


def test_names_light_up_in_the_pictures_and_from_them(window: Opened) -> None:
    window.tab("Provenance")
    node = window.page.get_by_role("tabpanel", name="Provenance").locator("text[data-names=i0]")
    piece(window, "i").hover()
    expect_class(node, LIT)
    window.page.locator("h1").hover()
    expect_class(node, LIT, False)
    node.hover()
    expect_class(window.rows.nth(0), EXACT)
    expect_class(line(window.code, "int64_t i0 = 0"), EXACT)
    node.click()
    window.page.locator("h1").hover()
    expect_class(window.rows.nth(0), EXACT)


def test_the_iteration_space_takes_the_colours_of_a_variable_that_is_pointed_at(window: Opened) -> None:
    legend = window.page.locator("svg > g").last
    expect(legend).to_contain_text("tile")
    piece(window, "j").hover()
    expect(legend).to_contain_text("j")
    expect(legend).not_to_contain_text("tile")
    window.page.locator("h1").hover()
    expect(legend).to_contain_text("tile")


def test_concrete_notation_is_a_tab_away(window: Opened) -> None:
    window.tab("Concrete notation")
    lines = window.page.get_by_role("listbox", name="Concrete notation").get_by_role("option")
    expect(line(lines, "y(i) += A(i,j) * x(j)")).to_be_visible()
    expect(line(lines, "i = i0 * 4 + i1")).to_be_visible()
    piece(window, "i").hover()
    expect_class(line(lines, "forall i0"), LIT)
