"""Next steps, the planner's schedule, a run, and two schedules beside each other."""

from __future__ import annotations

from collections.abc import Callable

from explorer.browser.opened import Opened, spmv_state
from playwright.sync_api import Route, expect

SPLIT, THREADS = "split(i,i0,i1,16)", "parallelize(i0,CPUThread,NoRaces)"
LARGE = {"i": 3000, "j": 3000}


def test_next_steps_are_offered_with_what_they_would_cost(spmv: Opened) -> None:
    spmv.button("Next steps").click()
    first = spmv.page.locator("#next li").first
    expect(first).to_contain_text("the planner’s next step")
    expect(first).to_contain_text("trips")
    expect(first).to_contain_text("kB")
    threads = spmv.page.locator("#next li", has_text="parallelize(i, CPUThread, NoRaces)")
    expect(threads).to_contain_text("The iterations of i run at the same time, each in a thread; no two of them write one place.")
    expect(threads.get_by_label("balance")).to_be_visible()
    expect(spmv.button("Next steps")).to_have_attribute("aria-expanded", "true")
    spmv.button("Next steps").click()
    expect(first).to_be_hidden()


def test_next_steps_are_filtered_and_one_click_takes_one(spmv: Opened) -> None:
    spmv.button("Next steps").click()
    spmv.page.get_by_label("Filter next steps").fill("split")
    items = spmv.page.locator("#next li")
    expect(items.filter(has_not_text="split")).to_have_count(0)
    spmv.button("split(i, i0, i1, 16)").click()
    spmv.expect_statuses("legal")
    assert spmv.texts() == ["split(i, i0, i1, 16)"]
    expect(items.filter(has_text="split(i0, ")).not_to_have_count(0)  # they follow the schedule
    spmv.page.get_by_label("Filter next steps").fill("nonsense")
    expect(spmv.page.locator("#next")).to_contain_text("No step has “nonsense” in it.")


def test_a_next_step_is_measured_on_request(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state())
    window.button("Next steps").click()
    window.button("measure unroll(j, 4)").click()
    item = window.page.locator("#next li", has_text="unroll(j, 4)")
    expect(item.locator("b")).to_contain_text("× as fast as without it")
    expect(window.status).to_contain_text("unroll(j, 4): ")
    assert window.texts() == []


def test_the_plan_is_built_step_by_step_with_its_reasons(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("unroll(j,2)", sizes=LARGE))
    window.button("Plan").click()
    panel = window.page.get_by_role("region", name="Plan")
    expect(panel).to_contain_text("0 of 3 steps taken")
    expect(window.rows).to_have_count(0)
    expect(panel.locator("li")).to_have_count(1)  # the one that comes next, and why
    expect(panel).to_contain_text("why")
    expect(window.button("Next step of the plan")).to_be_focused()
    window.page.keyboard.press("Enter")
    window.expect_statuses("legal")
    expect(panel).to_contain_text("1 of 3 steps taken")
    window.button("All steps of the plan").click()
    window.expect_statuses("legal", "legal", "legal")
    expect(window.button("Next step of the plan")).to_be_disabled()
    window.button("Close the plan").click()
    expect(panel).to_be_hidden()


def test_a_plan_without_steps_says_why(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state())
    window.button("Plan").click()
    panel = window.page.get_by_role("region", name="Plan")
    expect(panel).to_contain_text("The planner leaves the loops as they are.")
    expect(panel).to_contain_text("threads and vectors would not pay")


def test_a_run_tells_its_time_its_result_and_who_agrees(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT, THREADS))
    window.button("Run").click()
    pane = window.page.get_by_role("tabpanel", name="Run")
    expect(pane.locator("dl")).to_contain_text("SciPy")
    assert pane.locator("dl b").all_inner_texts()[1:] == ["same", "same"]
    expect(pane.get_by_role("img", name="Roofline: this schedule")).to_be_visible()
    expect(pane.get_by_role("img", name="What each of")).to_be_visible()
    expect(pane.get_by_label("Result y")).to_contain_text("[")
    expect(window.status).to_contain_text("Ran in ")


def test_a_run_that_cannot_be_says_why(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(target="cuda"))
    window.button("Run").click()
    expect(window.page.get_by_role("tabpanel", name="Run").locator(".refusal")).to_contain_text("run")


def test_what_cannot_run_is_compared_by_its_code(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("unroll(j,4)", target="cuda"))
    window.button("Compare").click()
    pane = window.page.get_by_role("tabpanel", name="Compare")
    expect(pane.locator("td.gone", has_text="unroll")).to_have_count(1)
    expect(pane).to_contain_text("not run")


def test_a_schedule_is_compared_with_none(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("unroll(j,4)"))
    window.button("Compare").click()
    pane = window.page.get_by_role("tabpanel", name="Compare")
    expect(pane.get_by_role("img", name="Times: this schedule")).to_be_visible()
    expect(pane.locator("td.gone", has_text="unroll")).to_have_count(1)
    expect(pane).to_contain_text("the results are equal")


def test_a_schedule_is_compared_with_the_planners(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(sizes=LARGE))
    window.tab("Compare")
    window.page.get_by_label("this schedule beside").select_option("the planner’s schedule")
    window.button("Compare now").click()
    pane = window.page.get_by_role("tabpanel", name="Compare")
    expect(pane.locator("td.come", has_text="#pragma omp parallel")).not_to_have_count(0)
    expect(pane.get_by_role("columnheader", name="the planner’s schedule")).to_be_visible()


def test_a_schedule_is_kept_and_compared_with_a_later_one(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("unroll(j,4)"))
    window.tab("Compare")
    window.button("Keep this one").click()
    expect(window.status).to_have_text("Kept: unroll(j,4)")
    window.step(1).fill("unroll(j,8)")
    window.expect_statuses("legal")
    window.button("Compare now").click()
    pane = window.page.get_by_role("tabpanel", name="Compare")
    expect(pane.locator("td.gone", has_text="unroll 8")).to_have_count(1)
    expect(pane.locator("td.come", has_text="unroll 4")).to_have_count(1)
    expect(pane.get_by_role("columnheader", name="kept: unroll(j,4)")).to_be_visible()


def test_one_can_edit_while_something_runs(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(sizes=LARGE))
    window.button("Run").click()
    window.add("unroll(j,2)")
    window.expect_statuses("legal")
    expect(window.page.get_by_role("tabpanel", name="Run").get_by_label("Result y")).to_be_visible()


def choose_example(window: Opened, title: str) -> None:
    """Another example, when the examples are there."""
    expect(window.page.get_by_label("Examples").locator("option", has_text=title)).not_to_have_count(0)
    window.page.get_by_label("Examples").select_option(label=title)


def other_example(window: Opened) -> str:
    """The title of an example that has steps and another statement."""
    titles = window.page.get_by_label("Examples").locator("optgroup option").all_text_contents()
    return next(title for title in titles if "SDDMM" in title)


def test_a_plan_ends_with_its_problem(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(sizes=LARGE))
    window.button("Plan").click()
    panel = window.page.get_by_role("region", name="Plan")
    expect(panel).to_contain_text("0 of 3 steps taken")
    window.button("Next step of the plan").click()
    expect(window.rows).to_have_count(1)
    expect(window.page.get_by_label("Examples").locator("optgroup option")).not_to_have_count(0)
    choose_example(window, other_example(window))
    expect(window.statement).not_to_have_value("y(i) = A(i,j) * x(j)")
    expect(panel).to_be_hidden()
    steps = window.texts()
    window.button("Plan").click()
    expect(panel).to_contain_text("0 of ")
    assert window.texts() == [] != steps


def test_a_plan_continues_only_a_schedule_that_begins_as_it_does(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(sizes=LARGE))
    window.button("Plan").click()
    panel = window.page.get_by_role("region", name="Plan")
    window.button("All steps of the plan").click()
    expect(panel).to_contain_text("3 of 3 steps taken")
    window.button("Undo (Ctrl+Z)").click()
    expect(panel).to_contain_text("0 of 3 steps taken")
    window.button("Next step of the plan").click()
    expect(panel).to_contain_text("1 of 3 steps taken")
    window.button("Delete step 1").click()
    expect(panel).to_contain_text("0 of 3 steps taken")
    window.add("unroll(j,2)")
    expect(panel).to_contain_text("The schedule has other steps now.")
    expect(window.button("Next step of the plan")).to_be_disabled()
    expect(window.button("All steps of the plan")).to_be_disabled()


def test_a_plan_that_arrives_late_does_not_touch_another_example(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state("unroll(j,2)", sizes=LARGE))
    expect(window.page.get_by_label("Examples").locator("optgroup option")).not_to_have_count(0)
    held = []

    def hold(route: Route) -> None:
        if '"ask":"plan"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    window.page.route("**/ask", hold)
    window.button("Plan").click()
    choose_example(window, other_example(window))
    window.expect_statuses(*["legal"] * len(window.texts()))
    steps = window.texts()
    [late] = held
    late.continue_()
    expect(window.page.get_by_role("region", name="Plan")).to_be_hidden()
    assert window.texts() == steps != []


def test_what_was_measured_and_kept_is_for_its_own_problem(open_page: Callable[..., Opened]) -> None:
    window = open_page(spmv_state(SPLIT))
    window.button("Compare").click()
    window.button("Keep this one").click()
    window.button("Run").click()
    expect(window.page.get_by_label("Result y")).to_be_visible()
    window.statement.fill("y(i) = 2 * A(i,j) * x(j)")
    expect(window.page.get_by_label("Result y")).to_have_count(0)
    expect(window.page.locator("#with")).to_have_value("none")
    expect(window.page.locator("#with option[value=kept]")).to_be_disabled()
