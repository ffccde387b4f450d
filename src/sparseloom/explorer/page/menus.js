// Next steps with their cost, and the planner's schedule step by step.

import { ask } from "./ask.js";
import { button, element, put, refusal, say, seconds, short } from "./dom.js";
import { take } from "./editor.js";
import { change, newStep, plain, problem, state } from "./state.js";

const next = { open: false, steps: [], measured: new Map() };
const plan = { problem: null, waiting: false, steps: [], done: 0, told: "" };

async function measure(step, place) {
  put(place, "…");
  const asked = plain();
  const answer = await ask({ ask: "time", state: asked, step: step.text }, `time ${step.text}`);
  if (!answer || JSON.stringify(asked) !== JSON.stringify(plain())) return;
  const gain = answer.ok && answer.plain_seconds ? `, ${Number((answer.plain_seconds / answer.seconds).toPrecision(2))} × as fast as without it` : "";
  const words = answer.ok ? seconds(answer.seconds) + gain : answer.error.text;
  if (answer.ok) next.measured.set(step.text, words);
  put(place, answer.ok ? element("b", words) : refusal(answer.error));
  say(`${step.text}: ${words}`, answer.ok ? "" : "bad");
}

function candidate(step) {
  const known = next.measured.get(step.text);
  const time = element("span");
  time.append(known ? element("b", known) : button("measure", () => measure(step, time), { class: "small", "aria-label": `measure ${step.text}` }));
  const { trips, bytes, balance } = step;
  const facts = [[trips, " trips"], [bytes, "B"]].map(([value, unit]) => Number.isFinite(value) && element("span", short(value) + unit));
  const even = Number.isFinite(balance) && element("span", "balance ", element("meter", { min: 0, max: 1, value: balance, "aria-label": "balance" }), ` ${short(balance)}`);
  const taken = () => (say(`Took ${step.text}.`), take([step.text]));
  return element("li", button(step.text, taken, { class: "mono take", title: "Take this step" }), element("span.faint", step.what),
    element("div.costs", step.planned && element("b.good", "the planner’s next step"), facts, even, time));
}

function drawNext() {
  const word = next.filter.value.trim().toLowerCase();
  const found = next.steps.filter((step) => `${step.text} ${step.word} ${step.what}`.toLowerCase().includes(word));
  const none = next.steps.length ? `No step has “${next.filter.value}” in it.` : "No step is legal here.";
  put(next.list, found.length ? element("ul", found.map(candidate)) : element("p.faint", none));
}

async function loadNext() {
  next.list.setAttribute("aria-busy", true);
  const answer = await ask({ ask: "next", state: plain() });
  if (!answer) return;
  next.list.removeAttribute("aria-busy");
  next.steps = answer.ok ? answer.steps : [];
  next.measured.clear();
  answer.ok ? drawNext() : put(next.list, refusal(answer.error));
}

function toggleNext() {
  next.open = !next.open;
  next.panel.hidden = !next.open;
  next.button.setAttribute("aria-expanded", next.open);
  if (next.open) loadNext();
}

/** After a valid edit other steps may be legal. */
export const refresh = () => next.open && loadNext();

function drawPlan() {
  const item = ({ text, what, why, instead }, k) => {
    const facts = Object.entries({ what, why, instead }).filter(([, words]) => words);
    return element("li", { class: k < plan.done ? "" : "ahead", "aria-current": k === plan.done - 1 ? "step" : null },
      element("code", text), element("dl", facts.map(([word, words]) => [element("dt", word), element("dd", words)])));
  };
  const apart = plan.done === null;
  put(plan.list, plan.steps.slice(0, (plan.done ?? 0) + 1).map(item));
  put(plan.remark, plan.told);
  const taken = apart ? "The schedule has other steps now. “Plan” starts again from the loops without one." : `${plan.done} of ${plan.steps.length} steps taken`;
  plan.text.textContent = plan.steps.length ? taken : "The planner leaves the loops as they are.";
  plan.next.disabled = plan.all.disabled = apart || plan.done >= plan.steps.length;
}

function closePlan() {
  plan.panel.hidden = true;
  plan.problem = null;
}

/** After every change: a plan belongs to one problem and continues its own beginning. */
export function follow() {
  if (plan.panel.hidden || plan.waiting) return;
  if (problem() !== plan.problem) return closePlan();
  const steps = plain().steps;
  plan.done = steps.every(({ text, on }, k) => on && text === plan.steps[k]?.text) ? steps.length : null;
  drawPlan();
}

function upTo(count) {
  change({ steps: plan.steps.slice(0, count).map((step) => newStep(step.text)) });
}

/** Ask for the planner's schedule, and start from the loops without one. */
export async function openPlan() {
  say("The planner is asked …");
  plan.panel.hidden = false;
  plan.text.textContent = "…";
  plan.next.disabled = plan.all.disabled = true;
  plan.problem = problem();
  plan.steps = [];
  plan.waiting = true;
  const answer = await ask({ ask: "plan", state: plain({ ...state(), steps: [] }) });
  plan.waiting = false;
  if (!answer) return;
  if (plan.problem !== problem()) return closePlan();
  if (!answer.ok) {
    put(plan.list, refusal(answer.error));
    plan.text.textContent = "";
    plan.problem = null;
    return say(answer.error.text, "bad");
  }
  plan.steps = answer.steps;
  plan.told = answer.text;
  say(`The planner's schedule has ${plan.steps.length} step${plan.steps.length === 1 ? "" : "s"}.`);
  upTo(0);
  (plan.steps.length ? plan.next : plan.close).focus();
}

export function build() {
  next.filter = element("input", { type: "search", id: "filter", placeholder: "filter, e.g. split", oninput: drawNext });
  next.list = element("div.nexts");
  next.panel = element("div.panel", { id: "next", hidden: true }, element("label", { for: "filter", class: "hidden" }, "Filter next steps"), next.filter, next.list);
  next.button = button("Next steps", toggleNext, { "aria-expanded": false, "aria-controls": "next", class: "wide" });
  plan.list = element("ol.plan");
  plan.text = element("p.faint");
  plan.remark = element("pre");
  plan.next = button("Next", () => upTo(plan.done + 1), { class: "strong", "aria-label": "Next step of the plan" });
  plan.all = button("All", () => upTo(plan.steps.length), { "aria-label": "All steps of the plan" });
  plan.close = button("Close", closePlan, { "aria-label": "Close the plan" });
  const bar = element("div.bar", plan.text, plan.next, plan.all, plan.close);
  plan.panel = element("div.panel", { role: "region", "aria-label": "Plan", hidden: true }, element("h3", "The planner’s schedule"), bar, plan.remark, plan.list);
  return [plan.panel, next.button, next.panel];
}
