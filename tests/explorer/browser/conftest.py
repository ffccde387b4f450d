"""A browser and an explorer for all tests of the page, a window for each; none may log an error or ask anybody else.

Windows are used again, empty: a new process for each takes most of the time that all tests take.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from explorer.browser.opened import Opened
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sparseloom.explorer.serving import Explorer

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
    "--disable-default-apps", "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip
PATIENCE = 60_000  # milliseconds, for machines under load; nothing waits that long where all is well

expect.set_options(timeout=PATIENCE)


def browser_path() -> str:
    """The same browser that ``.ci/browser`` finds. Without one the tests fail."""
    names = (os.environ.get("CHROMIUM") or "chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.fail("the explorer is tested in a browser: run 'apt install chromium', or name one in CHROMIUM", pytrace=False)
    return found


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with sync_playwright() as player:
        made = player.chromium.launch(executable_path=browser_path(), args=FLAGS)
        yield made
        made.close()


@pytest.fixture(scope="package")
def explorer() -> Iterator[Explorer]:
    with Explorer(seconds=(60.0, 120.0)) as made:
        yield made


class Windows:
    """Empty windows, by what they can do."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._empty: dict[str, list[Page]] = {}

    def take(self, options: dict[str, Any]) -> Page:
        """An empty window, a new one where there is none."""
        empty = self._empty.setdefault(repr(options), [])
        if empty:
            return empty.pop()
        context = self._browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE)
        return context.new_page()

    def give_back(self, page: Page, options: dict[str, Any]) -> None:
        """Empty a window and keep it, but for one whose clock was stopped: it would stay so."""
        if page.evaluate("'__pwClock' in globalThis"):
            return page.context.close()
        page.unroute_all(behavior="ignoreErrors")
        page.goto("about:blank")
        page.mouse.move(0, 0)
        self._empty[repr(options)].append(page)


@pytest.fixture(scope="package")
def windows(browser: Browser) -> Windows:
    return Windows(browser)


@pytest.fixture
def open_page(windows: Windows, explorer: Explorer) -> Iterator[Callable[..., Opened]]:
    """Opens windows with a state, and looks after the test whether any had something to complain about."""
    used: list[tuple[Opened, dict[str, Any]]] = []

    def opened(
        state: dict[str, Any] | str | None = None,
        width: int = 1280,
        height: int = 1000,
        url: str = "",
        color_scheme: Literal["light", "dark"] = "light",
        **options: Any,
    ) -> Opened:
        page = windows.take(options)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        window = Opened(page, url or explorer.url)
        used.append((window, options))
        window.open(state)
        return window

    yield opened
    for window, options in used:
        window.leave()
        windows.give_back(window.page, options)
    assert [found for window, _ in used for found in window.complaints] == []


@pytest.fixture
def spmv(open_page: Callable[..., Opened]) -> Opened:
    """The page as it opens: SpMV without a schedule."""
    return open_page()
