"""A browser and an explorer for all tests of the page, a fresh window for each; none may log an error or ask anybody else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from explorer.browser.opened import Opened
from playwright.sync_api import Browser, expect, sync_playwright

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


@pytest.fixture
def open_page(browser: Browser, explorer: Explorer) -> Iterator[Callable[..., Opened]]:
    """Opens windows with a state, and looks after the test whether any had something to complain about."""
    windows: list[Opened] = []

    def opened(state: dict[str, Any] | str | None = None, width: int = 1280, height: int = 1000, url: str = "", **options: Any) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE)
        window = Opened(context.new_page(), url or explorer.url)
        windows.append(window)
        window.open(state)
        return window

    yield opened
    for window in windows:
        window.page.context.close()
    assert [found for window in windows for found in window.complaints] == []


@pytest.fixture
def spmv(open_page: Callable[..., Opened]) -> Opened:
    """The page as it opens: SpMV without a schedule."""
    return open_page()
