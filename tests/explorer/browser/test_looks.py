"""The main states look as they did: screenshots, compared so loosely that other fonts and other browsers pass.

``SPARSELOOM_GOLDEN=write`` writes what is seen into ``tests/golden/explorer``; look at the pictures then. They are an eighth as wide as the
page, and compared in squares of its pixels, by the browser itself.
"""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import Browser, expect

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "explorer"
WRITES = os.environ.get("SPARSELOOM_GOLDEN") == "write"
SHRUNK = 8
SQUARE = 32  # pixels of the page
MEAN, FAR, MOST_FAR = 5.0, 24.0, 0.0125  # of 255: the mean difference; that of a square which looks different; the share of those
SPLIT, THREADS, RACE = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)", "parallelize(j,CPUThread,NoRaces)"

# Draws a picture into a small canvas; the browser averages the pixels.
SHRINK = """async ([source, factor]) => {
  const picture = new Image();
  picture.src = `data:image/png;base64,${source}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [picture.width / factor, picture.height / factor].map(Math.round);
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
  return [canvas.toDataURL("image/png").split(",")[1], canvas.width, [...pen.getImageData(0, 0, canvas.width, canvas.height).data]];
}"""


def show_next(window: Opened) -> None:
    window.button("Next steps").click()
    expect(window.page.locator("#next li")).not_to_have_count(0)


def show_plan(window: Opened) -> None:
    window.button("Plan").click()
    window.button("All steps of the plan").click()
    window.expect_statuses("legal", "legal", "legal")


STATES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Opened], None]]] = {
    "first": (spmv_state(), {}, lambda window: None),
    "race": (spmv_state(SPLIT, RACE, "unroll(i1,2)"), {}, lambda window: None),
    "dark": (spmv_state(SPLIT, THREADS), {"color_scheme": "dark"}, lambda window: None),
    "narrow": (spmv_state(SPLIT, THREADS), {"width": 400, "height": 1600}, lambda window: None),
    "next": (spmv_state(SPLIT), {}, show_next),
    "plan": (spmv_state(sizes={"i": 3000, "j": 3000}), {}, show_plan),
    "storage": (spmv_state(SPLIT, THREADS), {}, lambda window: window.tab("Storage")),
    "provenance": (spmv_state(SPLIT, THREADS), {}, lambda window: window.tab("Provenance")),
}


def differences(browser: Browser, seen: str, wanted: str, scale: int) -> list[float]:
    """How far the squares of a picture are from those of another, in the mean of their colours.

    With another font things stand a little higher or lower, so the nearest of three squares above each other counts.
    """
    page = browser.new_page()
    (_, wide, left), (_, other, right) = (page.evaluate(SHRINK, [source, factor]) for source, factor in ((seen, SQUARE), (wanted, scale)))
    page.close()
    assert (wide, len(left)) == (other, len(right))
    near = [[at for at in (k - 4 * wide, k, k + 4 * wide) if 0 <= at < len(right)] for k in range(0, len(left), 4)]
    return [min(sum(abs(left[4 * k + c] - right[at + c]) for c in range(3)) / 3 for at in places) for k, places in enumerate(near)]


@pytest.mark.parametrize("name", STATES)
def test_a_state_looks_as_it_did(open_page: Callable[..., Opened], browser: Browser, name: str) -> None:
    state, options, act = STATES[name]
    window = open_page(state, **options)
    expect(window.entries).not_to_have_count(0)
    act(window)
    expect(window.page.locator("#pictures svg:visible")).not_to_have_count(0)
    window.page.mouse.move(0, 0)
    seen = b64encode(window.page.screenshot(animations="disabled", caret="hide")).decode()
    file = GOLDEN / f"{name}.png"
    if WRITES:
        file.parent.mkdir(parents=True, exist_ok=True)
        page = browser.new_page()
        file.write_bytes(b64decode(page.evaluate(SHRINK, [seen, SHRUNK])[0]))
        page.close()
    found = differences(browser, seen, b64encode(file.read_bytes()).decode(), SQUARE // SHRUNK)
    far = sum(difference > FAR for difference in found) / len(found)
    mean = sum(found) / len(found)
    help = f"{name}: look at what changed, and write it with SPARSELOOM_GOLDEN=write ({mean:.1f} in the mean, {far:.1%} far off)"
    assert mean <= MEAN and far <= MOST_FAR, help
