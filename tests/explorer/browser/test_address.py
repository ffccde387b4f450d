"""What is taken away and comes back: copies, the state in the address, examples; and addresses and servers that are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

import pytest
from explorer.browser.opened import SPMV, Opened, spmv_state
from playwright.sync_api import Browser, expect

from sparseloom.explorer.examples import examples
from sparseloom.explorer.serving import Explorer

SPLIT, THREADS = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)"


def state_in(window: Opened) -> Any:
    """The state that the address holds."""
    return json.loads(unquote(window.page.url.partition("#s=")[2]))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("python", ("import sparseloom as sl", "sl.program(", "split(i, i0, i1, 4)", "y = kernel(A=A, x=x)")),
        ("command", ("sparseloom run 'y(i) = A(i,j) * x(j)' -f A:csr", "-s 'split(i, i0, i1, 4)", "--time")),
        ("text", ("A: csr\n", SPMV, "  split(i, i0, i1, 4)\n")),
        ("link", ("http://127.0.0.1:", "#s=%7B%22statement%22")),
    ],
)
def test_the_schedule_is_copied(open_page: Callable[..., Opened], kind: str, words: tuple[str, ...]) -> None:
    window = open_page(spmv_state(SPLIT, THREADS), permissions=["clipboard-read", "clipboard-write"])
    window.button(f"Copy as {kind}").click()
    expect(window.status).to_have_text(f"Copied as {kind}.")
    copied = window.page.evaluate("navigator.clipboard.readText()")
    assert all(word in copied for word in words), copied


def test_what_the_clipboard_refuses_is_shown_to_be_copied_by_hand(spmv: Opened) -> None:
    spmv.page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    spmv.button("Copy as text").click()
    expect(spmv.trouble).to_contain_text("Copy this by hand")
    expect(spmv.trouble).to_contain_text(SPMV)


def test_the_whole_state_is_in_the_address_and_a_link_reopens_it(spmv: Opened, open_page: Callable[..., Opened]) -> None:
    spmv.page.get_by_label("A", exact=True).fill("csc")
    spmv.add("reorder(j,i)", "unroll(j,3)")
    spmv.page.get_by_label("Step 2 is on").uncheck()
    spmv.page.get_by_role("radio", name="CUDA").check()
    spmv.expect_statuses("legal", "off")
    again = open_page("#" + spmv.page.url.partition("#")[2])
    assert state_in(again) == state_in(spmv)
    again.expect_statuses("legal", "off")
    expect(again.page.get_by_label("A", exact=True)).to_have_value("csc")
    expect(again.page.get_by_role("radio", name="CUDA")).to_be_checked()
    assert again.texts() == ["reorder(j,i)", "unroll(j,3)"]


def test_an_address_that_changes_under_the_page_is_followed(spmv: Opened) -> None:
    spmv.page.evaluate("hash => (location.hash = hash)", f"s={quote(json.dumps(spmv_state(SPLIT)))}")
    spmv.expect_statuses("legal")
    spmv.button("Undo (Ctrl+Z)").click()
    expect(spmv.rows).to_have_count(0)


@pytest.mark.parametrize("group", examples(), ids=lambda group: group["title"])
def test_every_example_opens_without_an_error(spmv: Opened, group: dict[str, Any]) -> None:
    menu = spmv.page.get_by_label("Examples")
    expect(menu.locator("option")).not_to_have_count(1)
    for example in group["examples"]:
        state = example["state"]
        menu.select_option(example["title"])
        expect(spmv.statement).to_have_value(state["statement"])
        assert state_in(spmv) == state
        status = "refused" if "refused" in example["title"] else "legal"
        spmv.expect_statuses(*[status] * len(state["steps"]))
        expect(spmv.code).not_to_have_count(0)
        expect(spmv.page.get_by_role("img", name="Entries of")).to_be_visible()
        expect(spmv.page.locator(".refusal")).to_have_count(1 if status == "refused" else 0)
        expect(spmv.trouble).to_be_hidden()


def test_cuda_is_another_target_of_the_same_schedule(spmv: Opened) -> None:
    spmv.page.get_by_role("radio", name="CUDA").check()
    expect(spmv.page.get_by_role("heading", name="CUDA")).to_be_visible()
    expect(spmv.code.filter(has_text="__global__")).not_to_have_count(0)
    spmv.add("split(i,b,t,128)", "parallelize(b,GPUBlock,NoRaces)", "parallelize(t,GPUThread,NoRaces)")
    spmv.expect_statuses("legal", "legal", "legal")
    expect(spmv.code.filter(has_text="blockIdx.x")).not_to_have_count(0)
    spmv.page.get_by_role("radio", name="C", exact=True).check()
    expect(spmv.page.locator("#code .refusal")).to_contain_text("GPUBlock")


HOSTILE = (
    "#s=garbage", "#s=%E0%A4%A", "#s=", "#s=null", "#s=[]", "#s=%7B%22steps%22%3A%7B%7D%7D",
    '#s={"statement":7,"formats":[],"steps":[7,null,{"text":1}]}',
    '#s={"statement":"' + "y" * 9000 + '"}', '#s={"__proto__":{"on":true},"steps":"split"}', "#other=1",
)  # fmt: skip


@pytest.mark.parametrize("address", HOSTILE, ids=lambda address: address[:24])
def test_a_hostile_address_harms_nothing(open_page: Callable[..., Opened], address: str) -> None:
    window = open_page(address)
    if "garbage" in address or "%E0" in address:
        expect(window.trouble).to_contain_text("The state in the address cannot be read")
    window.statement.fill("z(i) = A(i,j) * x(j)")
    expect(window.code.filter(has_text="z_vals[i] = z_acc;")).to_have_count(1)
    expect(window.trouble).to_be_hidden()


def test_markup_in_what_is_typed_is_shown_as_text(open_page: Callable[..., Opened]) -> None:
    bad = "<img src=x onerror=alert(1)>"
    window = open_page(spmv_state(bad, statement=SPMV, formats={"A": bad}))
    expect(window.page.locator("#edit .refusal").first).to_contain_text(bad)
    window.page.get_by_label("A", exact=True).fill("csr")
    window.expect_statuses("refused")
    expect(window.rows.first.locator(".refusal")).to_contain_text("<img")
    window.statement.fill(f"y(i) = A(i,j) * {bad}")
    expect(window.page.locator("#edit .refusal").first).to_contain_text("<")
    assert window.page.locator("img").count() == 0


def test_a_server_that_is_gone_is_told_with_what_to_do(browser: Browser, open_page: Callable[..., Opened]) -> None:
    with Explorer() as short:
        window = open_page(url=short.url)
    window.forgiven = "ERR_CONNECTION_REFUSED"
    window.add(SPLIT)
    expect(window.trouble).to_contain_text("The server does not answer.")
    expect(window.trouble).to_contain_text("Start `sparseloom explore` again")
    assert state_in(window)["steps"] == [{"text": SPLIT, "on": True}]
    window.button("Try again").click()
    expect(window.trouble).to_be_visible()
    window.button("Run").click()
    expect(window.page.get_by_role("tabpanel", name="Run").locator(".refusal")).to_contain_text("The server does not answer.")


def test_an_answer_that_is_late_or_broken_is_told(spmv: Opened) -> None:
    spmv.forgiven = "500"
    spmv.page.route("**/ask", lambda route: route.fulfill(status=500, body="<h1>no</h1>"))
    spmv.add(SPLIT)
    expect(spmv.trouble).to_contain_text("cannot be read (status 500)")
    spmv.page.unroute("**/ask")
    spmv.button("Try again").click()
    expect(spmv.trouble).to_be_hidden()
    spmv.expect_statuses("legal")


def test_nothing_is_fetched_from_outside(spmv: Opened) -> None:
    """Whatever the page does; every window of every test is watched for it too."""
    for tab in ("Provenance", "Iteration graph", "Storage", "Run", "Compare", "Explanation"):
        spmv.tab(tab)
    spmv.button("Next steps").click()
    expect(spmv.page.locator("#next li")).not_to_have_count(0)
    hosts = {request.url.partition("#")[0].rpartition("/")[0] + "/" for request in spmv.requests if not request.url.startswith("data:")}
    assert hosts == {spmv.url.partition("#")[0]}
    assert len(spmv.requests) > 10


def test_a_late_answer_does_not_replace_a_newer_one(spmv: Opened) -> None:
    held: list[Any] = []
    spmv.page.route("**/ask", lambda route: held.append(route) if '"unroll(j,2)"' in (route.request.post_data or "") else route.continue_())
    spmv.add("unroll(j,2)")
    expect(spmv.page.locator("body")).to_have_attribute("aria-busy", "true")
    spmv.step(1).fill("unroll(j,3)")
    spmv.expect_statuses("legal")
    expect(spmv.code.filter(has_text="unroll 3")).not_to_have_count(0)
    for route in held:
        route.abort()
    expect(spmv.trouble).to_be_hidden()
