"""The schedule as a list of steps: typed, dragged, moved by keys, deleted, switched off, refused, taken back."""

from __future__ import annotations

from collections.abc import Callable

from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import expect

SPLIT, THREADS, RACE = "split(i,i0,i1,4)", "parallelize(i0,CPUThread,NoRaces)", "parallelize(j,CPUThread,NoRaces)"


def test_the_first_page_shows_spmv_in_all_columns(spmv: Opened) -> None:
    expect(spmv.statement).to_have_value("y(i) = A(i,j) * x(j)")
    expect(spmv.status).to_have_text("Legal: no schedule.")
    expect(spmv.loops.filter(has_text="for i in 0 : i_size")).to_have_count(1)
    expect(spmv.code.filter(has_text="y_acc += A_vals[pA2] * x_vals[j];")).to_have_count(1)
    expect(spmv.page.get_by_label("A", exact=True)).to_have_value("csr")
    expect(spmv.detail).to_contain_text("Point at a name")


def test_a_typed_step_appears_in_every_column(spmv: Opened) -> None:
    spmv.add(SPLIT)
    spmv.expect_statuses("legal")
    expect(spmv.status).to_have_text("Legal: 1 step.")
    expect(spmv.loops.filter(has_text="for i0 in")).to_have_count(1)
    expect(spmv.code.filter(has_text="int64_t i0 = 0")).to_have_count(1)
    expect(spmv.page.get_by_role("button", name="i1 ← i")).to_be_visible()


def test_the_add_button_does_what_enter_does(spmv: Opened) -> None:
    spmv.page.get_by_label("New step").fill(SPLIT)
    spmv.button("Add").click()
    spmv.expect_statuses("legal")


def test_a_pasted_schedule_becomes_steps(spmv: Opened) -> None:
    spmv.add(f"{SPLIT}  {THREADS}; unroll(j, 2)  # a comment")
    spmv.expect_statuses("legal", "legal", "legal")
    assert spmv.texts() == [SPLIT, THREADS, "unroll(j, 2)"]


def test_every_keystroke_is_looked_at(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT))
    window.step(1).focus()
    window.page.keyboard.press("End")
    window.page.keyboard.press("ArrowLeft")
    window.page.keyboard.type("0")
    expect(window.loops.filter(has_text="40")).not_to_have_count(0)
    window.page.keyboard.press("Backspace")
    window.page.keyboard.press("Backspace")
    window.expect_statuses("refused")
    window.page.keyboard.type("8")
    window.expect_statuses("legal")


def test_a_refusal_stands_at_its_step_and_later_ones_wait(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, RACE, "unroll(i1,2)"))
    window.expect_statuses("legal", "refused", "waiting")
    refused = window.rows.nth(1)
    expect(refused).to_contain_text("both add to y(0)")
    expect(refused).to_contain_text("help:")
    expect(refused).to_contain_text("Atomics")
    expect(window.rows.nth(2)).to_contain_text("waits for the refused step above")
    expect(window.step(2)).to_have_attribute("aria-invalid", "true")
    expect(window.status).to_contain_text("Step 2 is refused")
    colours = [window.step(n).evaluate("node => getComputedStyle(node).color") for n in (1, 3)]
    assert colours[0] != colours[1]
    window.step(2).fill("parallelize(j,CPUThread,Atomics)")
    window.expect_statuses("legal", "legal", "legal")


def test_a_step_is_deleted_and_the_focus_goes_to_the_next(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, THREADS))
    window.button("Delete step 1").click()
    window.expect_statuses("refused")
    expect(window.step(1)).to_be_focused()
    window.button("Delete step 1").click()
    expect(window.rows).to_have_count(0)
    expect(window.page.get_by_label("New step")).to_be_focused()
    expect(window.page.get_by_text("No steps:")).to_be_visible()


def test_a_step_that_is_emptied_goes_away_when_one_leaves_it(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, "unroll(j,2)"))
    window.step(1).fill("")
    window.expect_statuses("legal", "legal")
    window.statement.focus()
    window.expect_statuses("legal")
    assert window.texts() == ["unroll(j,2)"]


def test_a_step_is_switched_off_and_on(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, "unroll(j,2)"))
    window.page.get_by_label("Step 1 is on").uncheck()
    window.expect_statuses("off", "legal")
    expect(window.loops.filter(has_text="for i0 in")).to_have_count(0)
    assert window.step(1).evaluate("node => getComputedStyle(node).textDecorationLine") == "line-through"
    window.page.get_by_label("Step 1 is on").check()
    window.expect_statuses("legal", "legal")
    expect(window.loops.filter(has_text="for i0 in")).to_have_count(1)


def test_a_step_is_dragged_to_another_place(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, "unroll(j,2)", "unroll(i1,2)"))
    handle, target = (window.page.get_by_label(f"Drag step {n}, or move it with the arrow keys").bounding_box() for n in (1, 3))
    assert handle is not None and target is not None
    mouse = window.page.mouse
    mouse.move(handle["x"] + 5, handle["y"] + 8)
    mouse.down()
    mouse.move(target["x"] + 5, target["y"] + 2, steps=4)
    mouse.move(target["x"] + 5, target["y"] + target["height"], steps=4)
    expect(window.page.locator(".dragged")).to_have_count(1)
    mouse.up()
    expect(window.page.locator(".dragged")).to_have_count(0)
    assert window.texts() == ["unroll(j,2)", "unroll(i1,2)", SPLIT]
    window.expect_statuses("legal", "refused", "waiting")


def test_a_step_is_moved_by_keys_and_by_buttons(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, "unroll(j,2)"))
    window.page.get_by_label("Drag step 1, or move it with the arrow keys").focus()
    window.page.keyboard.press("ArrowDown")
    assert window.texts() == ["unroll(j,2)", SPLIT]
    expect(window.page.get_by_label("Drag step 2, or move it with the arrow keys")).to_be_focused()
    window.step(2).focus()
    window.page.keyboard.press("Alt+ArrowUp")
    assert window.texts() == [SPLIT, "unroll(j,2)"]
    window.button("Move step 2 up").click()
    assert window.texts() == ["unroll(j,2)", SPLIT]
    window.button("Move step 1 down").click()
    window.button("Move step 2 down").click()
    assert window.texts() == [SPLIT, "unroll(j,2)"]
    window.expect_statuses("legal", "legal")


def test_changes_are_taken_back_and_made_again(spmv: Opened) -> None:
    expect(spmv.button("Undo (Ctrl+Z)")).to_be_disabled()
    spmv.add(SPLIT, THREADS)
    spmv.button("Delete step 2").click()
    for _ in range(2):
        spmv.button("Undo (Ctrl+Z)").click()
    assert spmv.texts() == [SPLIT]
    spmv.page.locator("h1").click()
    spmv.page.keyboard.press("Control+Shift+Z")
    assert spmv.texts() == [SPLIT, THREADS]
    spmv.page.keyboard.press("Control+Z")
    spmv.page.keyboard.press("Control+Z")
    assert spmv.texts() == []
    spmv.page.keyboard.press("Control+Y")
    spmv.expect_statuses("legal")
    expect(spmv.button("Undo (Ctrl+Z)")).to_be_enabled()


def test_a_faulty_statement_is_told_and_the_last_answer_stays_dimmed(spmv: Opened) -> None:
    spmv.statement.fill("y(i) = A(i,j * x(j)")
    expect(spmv.page.locator("#edit .refusal")).to_contain_text("expected")
    expect(spmv.page.locator("body")).to_have_class("stale")
    expect(spmv.loops).not_to_have_count(0)
    spmv.statement.fill("z(i) = A(i,j) * x(j)")
    expect(spmv.page.locator("#edit .refusal")).to_have_count(0)
    expect(spmv.code.filter(has_text="z_vals[i] = z_acc;")).to_have_count(1)


def test_formats_change_the_loops_and_wrong_ones_say_why(spmv: Opened) -> None:
    form = spmv.page.get_by_label("A", exact=True)
    form.fill("coo")
    expect(spmv.loops.filter(has_text="A1_crd")).not_to_have_count(0)
    form.fill("crs")
    expect(spmv.page.locator("#edit .refusal")).to_contain_text("crs")
    form.fill("csc")
    expect(spmv.page.locator("#edit .refusal")).to_have_count(0)
    expect(spmv.loops.filter(has_text="for j in 0 : j_size")).to_have_count(1)


def test_a_semiring_changes_what_the_operators_mean(spmv: Opened) -> None:
    spmv.page.get_by_text("Sizes and data").click()
    spmv.page.get_by_label("semiring").select_option("min_plus")
    expect(spmv.loops.filter(has_text="min(")).not_to_have_count(0)
    assert "min_plus" in spmv.page.url


def test_sizes_density_and_seed_change_the_data(spmv: Opened) -> None:
    spmv.page.get_by_text("Sizes and data").click()
    spmv.page.get_by_label("i", exact=True).fill("50")
    spmv.page.keyboard.press("Enter")
    expect(spmv.page.locator(".format").nth(1)).to_contain_text("50 × 1000")
    spmv.page.get_by_label("density").fill("0.5")
    spmv.page.keyboard.press("Tab")
    expect(spmv.page.locator(".format").nth(1)).to_contain_text("25 k stored")
