"""The page is for everybody: without a mouse, in the dark, on a telephone, and for those who hear it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import expect

import sparseloom.explorer

SPLIT, THREADS, RACE = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)", "parallelize(j,CPUThread,NoRaces)"
PAGE = Path(sparseloom.explorer.__file__).parent / "page"
LARGEST = 80_000  # bytes, of all files together
TABS = ("Iteration space", "Provenance", "Iteration graph", "Storage", "Run", "Compare", "Explanation")


def test_the_page_is_small() -> None:
    assert sum(file.stat().st_size for file in PAGE.iterdir()) < LARGEST


NAME = "node => node.getAttribute('aria-label') ?? node.labels?.[0]?.textContent ?? node.textContent"
PLACE = """() => {
  const here = document.activeElement;
  const [box, foot] = [here, document.querySelector("footer")].map((node) => node.getBoundingClientRect());
  return [box.top, box.bottom, foot.top, getComputedStyle(here).outlineStyle, here.outerHTML];
}"""


def press(window: Opened, *keys: str) -> None:
    for key in keys:
        window.page.keyboard.press(key)


def tab_to(window: Opened, name: str, most: int = 150) -> None:
    """Press Tab until something of this name has the focus."""
    for _ in range(most):
        press(window, "Tab")
        if window.page.evaluate(f"({NAME})(document.activeElement)") == name:
            return
    pytest.fail(f"Tab does not lead to {name!r}")


def test_everything_is_done_without_a_mouse(spmv: Opened) -> None:
    tab_to(spmv, "New step")
    spmv.page.keyboard.type(SPLIT)
    press(spmv, "Enter")
    spmv.page.keyboard.type("unroll(j,2)")
    press(spmv, "Enter")
    spmv.expect_statuses("legal", "legal")
    press(spmv, "Shift+Tab", "Shift+Tab", "Shift+Tab")
    expect(spmv.button("Move step 2 up")).to_be_focused()
    press(spmv, "Enter")
    assert spmv.texts() == ["unroll(j,2)", SPLIT]
    tab_to(spmv, "Next steps")
    press(spmv, "Enter")
    expect(spmv.page.locator("#next li")).not_to_have_count(0)
    press(spmv, "Tab", "Tab", "Enter")
    expect(spmv.rows).to_have_count(3)
    tab_to(spmv, "Loops")
    press(spmv, "ArrowRight")
    expect(spmv.page.get_by_role("tab", name="Concrete notation")).to_be_focused()
    expect(spmv.page.get_by_role("listbox", name="Concrete notation")).to_be_visible()
    tab_to(spmv, "Iteration space")
    press(spmv, "End")
    expect(spmv.page.get_by_role("tabpanel", name="Explanation")).to_be_visible()
    press(spmv, "ArrowRight")
    expect(spmv.page.get_by_role("tab", name="Iteration space")).to_be_focused()


def test_the_focus_is_seen_and_not_hidden_by_the_foot(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, THREADS), width=1280, height=500)
    window.button("Next steps").click()
    expect(window.page.locator("#next li")).not_to_have_count(0)
    for _ in range(45):
        press(window, "Tab")
        top, bottom, foot, outline, what = window.page.evaluate(PLACE)
        if bottom - top < foot:  # what is larger than the window cannot be seen whole
            assert top >= -1 and bottom <= foot + 1, what
        assert outline != "none" or 'type="radio"' in what, what


STATES = {
    "first": ((), 1280, "light"),
    "refused, dark": ((SPLIT, RACE, "unroll(i1,2)"), 1280, "dark"),
    "narrow": ((SPLIT, THREADS), 400, "light"),
    "narrow, dark": ((SPLIT, RACE), 400, "dark"),
}


def faults(window: Opened, part: str = "html") -> list[str]:
    """What axe-core finds to be serious or critical in a part of the page."""
    found = Axe().run(window.page, context=part, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:4]
    ]


@pytest.mark.parametrize("name", STATES)
def test_axe_finds_nothing_serious(open_page: Callable[..., Opened], name: str) -> None:
    steps, width, scheme = STATES[name]
    window = open_page(spmv_state(*steps), width=width, color_scheme=scheme)
    expect(window.entries).not_to_have_count(0)
    window.button("Next steps").click()
    expect(window.page.locator("#next li")).not_to_have_count(0)
    assert "\n".join(faults(window)) == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_tab(open_page: Callable[..., Opened], scheme: str) -> None:
    window = open_page(spmv_state(SPLIT, THREADS), color_scheme=scheme)
    window.button("Plan").click()
    expect(window.page.get_by_role("region", name="Plan")).to_contain_text("Plain loops")
    window.button("Compare").click()
    expect(window.page.get_by_role("img", name="Times")).to_be_visible()
    window.button("Run").click()
    expect(window.page.get_by_label("Result y")).to_be_visible()
    window.page.locator("#middle .line").nth(2).click()
    assert "\n".join(faults(window)) == ""
    for tab in TABS[1:]:
        window.tab(tab)
        assert "\n".join(faults(window, "#pictures")) == "", tab


def luminance(window: Opened) -> float:
    """How light the ground of the page is, from 0 to 255."""
    numbers = window.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3).map(Number)")
    return sum(numbers) / 3


def test_light_and_dark_follow_the_system(open_page: Callable[..., Opened]) -> None:
    light, dark = (open_page(color_scheme=scheme) for scheme in ("light", "dark"))
    assert luminance(light) > 200 and luminance(dark) < 60
    dark.page.emulate_media(color_scheme="light")
    assert luminance(dark) > 200


@pytest.mark.parametrize("width", [1280, 400, 320])
def test_no_width_makes_one_scroll_sideways(open_page: Callable[..., Opened], width: int) -> None:
    window = open_page(spmv_state(SPLIT, RACE, "precompute(A(i,j) * x(j), {i0,i1,j}, {i0w,i1w,jw}, workspace)"), width=width, height=900)
    expect(window.entries).not_to_have_count(0)
    window.button("Next steps").click()
    expect(window.page.locator("#next li")).not_to_have_count(0)
    wide = "[document.documentElement.scrollWidth, document.body.scrollWidth]"
    assert max(window.page.evaluate(wide)) <= width
    window.button("Plan").click()
    window.button("Run").click()
    expect(window.page.get_by_role("tabpanel", name="Run").locator(".refusal, dl")).not_to_have_count(0)
    for tab in TABS:
        window.tab(tab)
        assert max(window.page.evaluate(wide)) <= width, tab


def test_everything_can_be_reached_on_a_telephone(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT), width=400, height=800, has_touch=True, is_mobile=True)
    for name in ("Plan", "Run", "Compare", "Copy as link", "Undo (Ctrl+Z)", "Delete step 1", "Next steps", "Play"):
        target = window.button(name)
        target.scroll_into_view_if_needed()
        box = target.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 400 and min(box["width"], box["height"]) >= 24, name
    for tab in TABS:
        window.page.get_by_role("tab", name=tab, exact=True).tap()
        expect(window.page.get_by_role("tab", name=tab, exact=True)).to_have_attribute("aria-selected", "true")
    window.page.get_by_label("Step 1 is on").tap()
    window.expect_statuses("off")
