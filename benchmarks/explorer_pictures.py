"""Take the pictures of docs/explorer.md again: ``.venv/bin/python benchmarks/explorer_pictures.py``, with Debian's chromium at hand.

Times in them are those of the machine at hand. A picture that is larger than ``LARGEST`` is refused, for it is kept in the repository.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

from sparseloom.explorer.opening import fragment
from sparseloom.explorer.serving import Explorer

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "explorer"
LARGEST = 150_000  # bytes
PATIENCE = 60_000  # milliseconds
SCALE = 0.8  # as large as a page shows them
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars", "--force-color-profile=srgb")
BLOCKS = ("split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)")
RACE = ("parallelize(j,CPUThread,NoRaces)", "unroll(i,2)")


def overview(page: Page) -> Locator:
    """Everything that came from i is lit."""
    page.locator("#edit .pieces button", has_text="i").first.click()
    return page.locator("body")


def race(page: Page) -> Locator:
    """A step is refused, and the two iterations that meet are shown."""
    expect(page.locator("svg circle.sl-race")).to_have_count(2)
    return page.locator("body")


def next_steps(page: Page) -> Locator:
    """What may come next."""
    page.get_by_role("button", name="Next steps").click()
    expect(page.locator("#next li")).not_to_have_count(0)
    return page.locator("#edit")


def plan(page: Page) -> Locator:
    """The planner's schedule, all but the last step."""
    page.get_by_role("button", name="Plan", exact=True).click()
    for _ in range(2):
        page.get_by_role("button", name="Next step of the plan").click()
    expect(page.get_by_role("region", name="Plan")).to_contain_text("2 of 3 steps taken")
    return page.locator("#edit")


def run(page: Page) -> Locator:
    """The time beside SciPy's, what each thread did, and the result."""
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_label("Result y").wait_for()
    return page.locator("#pictures")


def compare(page: Page) -> Locator:
    """The code of two schedules beside each other."""
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("img", name="Times").wait_for()
    return page.locator("#pictures")


def narrow(page: Page) -> Locator:
    """On a telephone, in the dark."""
    return page.locator("body")


Shot = tuple[Callable[[Page], Locator], tuple[str, ...], dict[str, int], int, int, str]
LARGE = {"i": 3000, "j": 3000}
SHOTS: tuple[Shot, ...] = (
    (overview, BLOCKS, LARGE, 1200, 1000, "light"),
    (race, RACE, LARGE, 1200, 1060, "light"),
    (next_steps, (), LARGE, 1280, 900, "light"),
    (plan, (), LARGE, 1280, 900, "light"),
    (run, ("split(i,i0,i1,64)", BLOCKS[1]), {"i": 8000, "j": 8000}, 1000, 1000, "light"),
    (compare, ("unroll(j,4)",), LARGE, 1200, 1000, "light"),
    (narrow, BLOCKS, LARGE, 400, 860, "dark"),
)


def take(browser: Browser, explorer: Explorer, shot: Shot) -> Path:
    """One picture."""
    act, steps, sizes, width, height, scheme = shot
    look = {"viewport": {"width": width, "height": height}, "color_scheme": scheme, "device_scale_factor": SCALE}
    page = browser.new_page(**look)  # type: ignore[arg-type]
    state = {"statement": "y(i) = A(i,j) * x(j)", "formats": {"A": "csr"}, "steps": [{"text": text} for text in steps], "sizes": sizes}
    page.goto(explorer.url + fragment(state))
    expect(page.locator("svg .sl-entry")).not_to_have_count(0)
    shown, file = act(page), PICTURES / f"{act.__name__.replace('_', '-')}.png"
    if shown.evaluate("node => node === document.body"):
        page.screenshot(path=file)
    else:
        page.set_viewport_size({"width": width, "height": 2000})  # nothing is beneath the foot of the page
        shown.screenshot(path=file)
    page.close()
    return file


def main() -> None:
    """Take all pictures."""
    path = subprocess.run([ROOT / ".ci" / "browser"], check=True, capture_output=True, text=True).stdout.strip()
    PICTURES.mkdir(exist_ok=True)
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as player, Explorer() as explorer:
        browser = player.chromium.launch(executable_path=path, args=FLAGS)
        for file in (take(browser, explorer, shot) for shot in SHOTS):
            size = file.stat().st_size
            print(f"{file.relative_to(ROOT)}: {size // 1000} kB")
            if size > LARGEST:
                raise SystemExit(f"{file.name} has {size:,} bytes, and {LARGEST:,} is the limit: show less of the page")
        browser.close()


if __name__ == "__main__":
    main()
