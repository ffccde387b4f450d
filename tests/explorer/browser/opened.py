"""A window with the explorer's page in it: what one does there, in the words of somebody who uses it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, expect

from sparseloom.explorer.opening import fragment

SPMV = "y(i) = A(i,j) * x(j)"


def spmv_state(*steps: str, **others: Any) -> dict[str, Any]:
    """SpMV under some steps, small enough to be quick."""
    sizes = {"i": 64, "j": 64}
    return {"statement": SPMV, "formats": {"A": "csr"}, "steps": [{"text": text, "on": True} for text in steps], "sizes": sizes, **others}


class Opened:
    """A page, all it asked for, and its complaints: errors in the console, exceptions, requests to anybody but its own server."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.complaints: list[str] = []
        self.requests: list[Request] = []
        self.forgiven = ""  # what a console message may hold: a test whose server is gone expects one
        self._listeners = {"console": self._logged, "pageerror": self._thrown, "request": self._requested}
        for event, listener in self._listeners.items():
            page.on(event, listener)

    def leave(self) -> None:
        """Listen to the page no longer."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _thrown(self, error: Error) -> None:
        self.complaints.append(f"exception: {error}")

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not (self.forgiven and self.forgiven in message.text):
            self.complaints.append(f"{message.type}: {message.text}")

    def _requested(self, request: Request) -> None:
        self.requests.append(request)
        if not request.url.startswith((self.url.partition("#")[0], "data:", "blob:")):
            self.complaints.append(f"asked elsewhere: {urlsplit(request.url).netloc}")

    def open(self, state: dict[str, Any] | str | None) -> None:
        """Load the page with a state, or with any text behind its address, and wait for the first answer."""
        self.page.goto(self.url + (state if isinstance(state, str) else fragment(state)))
        expect(self.status).not_to_be_empty()
        expect(self.page.locator("body")).not_to_have_attribute("aria-busy", "true")

    @property
    def status(self) -> Locator:
        """What the foot of the page says."""
        return self.page.locator("#status")

    @property
    def detail(self) -> Locator:
        """What the foot of the page says of what is pointed at."""
        return self.page.locator("#detail")

    @property
    def trouble(self) -> Locator:
        """What is wrong with the server or the address."""
        return self.page.locator("#trouble")

    @property
    def statement(self) -> Locator:
        """The field with the statement."""
        return self.page.get_by_label("Statement", exact=True)

    @property
    def rows(self) -> Locator:
        """The steps of the schedule."""
        return self.page.locator("li.step")

    @property
    def loops(self) -> Locator:
        """The lines of the second column."""
        return self.page.get_by_role("listbox", name="Loops").get_by_role("option")

    @property
    def code(self) -> Locator:
        """The lines of the third column."""
        return self.page.get_by_role("listbox", name="Generated").get_by_role("option")

    @property
    def entries(self) -> Locator:
        """The entries of the operand in the picture of the iteration space."""
        return self.page.locator("svg .sl-entry")

    def button(self, name: str) -> Locator:
        """A button by what it is called."""
        return self.page.get_by_role("button", name=name, exact=True)

    def step(self, number: int) -> Locator:
        """The field of a step, from 1."""
        return self.page.get_by_label(f"Step {number}", exact=True)

    def add(self, *texts: str) -> None:
        """Type steps at the end of the schedule."""
        for text in texts:
            self.page.get_by_label("New step").fill(text)
            self.page.keyboard.press("Enter")

    def texts(self) -> list[str]:
        """The steps as they stand."""
        return [field.input_value() for field in self.rows.locator("input[type=text]").all()]

    def tab(self, name: str) -> None:
        """Show a picture."""
        self.page.get_by_role("tab", name=name, exact=True).click()

    def expect_statuses(self, *statuses: str) -> None:
        """Wait until every step is what it should be."""
        expect(self.rows).to_have_count(len(statuses))
        for number, status in enumerate(statuses):
            expect(self.rows.nth(number)).to_have_attribute("data-status", status)
