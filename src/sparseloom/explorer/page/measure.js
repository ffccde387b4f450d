// Run: time, result, agreement, memory limit. Compare: two schedules.

import { ask } from "./ask.js";
import { button, element, put, refusal, say, seconds, shape } from "./dom.js";
import { colour, drawing, exporter, text } from "./draw.js";
import { plain, problem, state } from "./state.js";

const ui = {};
const HINT = "“Run” compiles this, times it, and compares its result with the interpreter and SciPy.";
let kept = null;
let shownFor = null; // The problem that times and results were asked for.

/** After every change: times, results and a kept schedule belong to one problem. */
export function follow() {
  if (shownFor !== null && shownFor !== problem()) {
    shownFor = null;
    put(ui.run, element("p.faint", HINT));
    put(ui.difference);
  }
  ui.keptOption.disabled = !kept || problem(kept) !== problem();
  if (ui.keptOption.disabled && ui.with.value === "kept") ui.with.value = "none";
}

const fact = (name, ...words) => [element("dt", name), element("dd", words)];
const verdict = (same) => same !== null && element("b", { class: same ? "good" : "bad" }, same ? "same" : "different");

/** Times beneath each other as bars. */
function bars(label, rows) {
  const most = Math.max(...rows.map(([, value]) => value));
  const long = (value) => Math.max(2, (420 * value) / most);
  const parts = rows.flatMap(([name, value, k], at) => [
    text(150, 16 + 26 * at, name, "sl-text", "end"),
    shape("rect", { x: 160, y: 6 + 26 * at, width: long(value), height: 20, rx: 3, fill: colour(k ?? at) }),
    text(168 + long(value), 16 + 26 * at, seconds(value), "sl-text", "start"),
  ]);
  return drawing(680, 26 * rows.length + 10, `${label}: ${rows.map(([name, value]) => `${name} ${seconds(value)}`).join(", ")}`, parts);
}

/** What each thread did, from the start of the run to its end. */
function timeline(spans) {
  const end = Math.max(...spans.map((span) => span.end));
  const threads = [...new Set(spans.map((span) => span.thread))].sort((a, b) => a - b);
  const x = (at) => 90 + (500 * at) / end;
  const parts = threads.map((thread, k) => text(80, 16 + 24 * k, `thread ${thread}`, "sl-text", "end"));
  for (const { thread, begin, end: to } of spans) {
    const y = 6 + 24 * threads.indexOf(thread);
    parts.push(shape("rect", { x: x(begin), y, width: Math.max(1.5, x(to) - x(begin)), height: 18, rx: 2, fill: colour(thread) }));
  }
  const foot = 20 + 24 * threads.length;
  parts.push(shape("path", { d: `M90 ${foot - 8}h500`, class: "sl-line", fill: "none" }), text(90, foot + 4, "0", "sl-faint"), text(590, foot + 4, seconds(end), "sl-faint"));
  return drawing(680, foot + 18, `What each of ${threads.length} threads did within ${seconds(end)}`, parts);
}

/** A picture under its title, with its button. */
const figure = (title, name, svg) => element("figure", element("figcaption", title, exporter(name, () => svg)), svg);

function shown({ seconds: time, runs, result, interpreter, scipy, roofline, timeline: spans, threads }) {
  const facts = [
    fact("time", element("b", seconds(time)), ` (${runs} runs, ${threads} thread${threads === 1 ? "" : "s"})`),
    fact("interpreter", interpreter.same !== null && verdict(interpreter.same), ` ${interpreter.text}`),
    scipy ? fact("SciPy", `${seconds(scipy.seconds)} for ${scipy.what}, `, verdict(scipy.same)) : fact("SciPy", "has no single function for this"),
    fact("memory", roofline.text),
  ];
  const rows = [["this schedule", time, 0], scipy && ["SciPy", scipy.seconds, 1], ["memory’s limit", roofline.floor_seconds, 2]].filter(Boolean);
  return [
    element("dl", facts),
    figure("Roofline: the time beside what moving the bytes alone takes", "roofline", bars("Roofline", rows)),
    spans.length > 0 && figure("Threads", "timeline", timeline(spans)),
    element("figure", element("figcaption", `Result ${result.name}: ${result.format}, ${result.shape.join(" × ")}`), element("pre", { tabindex: 0, "aria-label": `Result ${result.name}` }, result.preview)),
  ];
}

export async function run() {
  put(ui.run, element("p.faint", "Running …"));
  say("Running …");
  const asked = (shownFor = problem());
  const answer = await ask({ ask: "run", state: plain() });
  if (!answer || asked !== problem()) return;
  put(ui.run, answer.ok ? shown(answer) : refusal(answer.error));
  const agreed = answer.interpreter?.same === false ? "; the interpreter disagrees" : "";
  say(answer.ok ? `Ran in ${seconds(answer.seconds)}${agreed}.` : answer.error.text, answer.ok && !agreed ? "" : "bad");
}

/** The rows of two texts: common ones and those of one. */
function sides(code) {
  const rows = [];
  const open = [];
  for (const { mark, text } of code) {
    if (mark === "+" && open.length) open.shift()[1] = text;
    else if (mark === "-") rows.push([text, null]) && open.push(rows.at(-1));
    else {
      if (mark === " ") open.length = 0;
      rows.push([mark === "+" ? null : text, text]);
    }
  }
  return rows;
}

function cell(line, other, kind) {
  const mark = line === null ? "none" : line === other ? "" : kind;
  return element("td", { class: mark }, element("code", line ?? ""));
}

function difference({ code, seconds: [mine, others], text: words }, name) {
  const head = element("tr", element("th", { scope: "col" }, "this schedule"), element("th", { scope: "col" }, name));
  const body = sides(code).map(([left, right]) => element("tr", cell(left, right, "gone"), cell(right, left, "come")));
  return [
    element("p", words),
    mine && figure("Times", "comparison", bars("Times", [["this schedule", mine], [name, others]])),
    element("div.diff", { tabindex: 0, role: "region", "aria-label": "Difference of the code" }, element("table", element("thead", head), element("tbody", body))),
  ];
}

async function other() {
  if (ui.with.value === "kept" && kept) return kept;
  if (ui.with.value === "none") return plain({ ...state(), steps: [] });
  const answer = await ask({ ask: "plan", state: plain({ ...state(), steps: [] }) }, "plan to compare");
  return answer?.ok ? { ...plain(), steps: answer.steps.map(({ text }) => ({ text, on: true })) } : answer;
}

export async function compare() {
  const name = ui.with.selectedOptions[0].textContent;
  put(ui.difference, element("p.faint", "Both are compiled and run …"));
  say("Comparing …");
  const asked = (shownFor = problem());
  const second = await other();
  const answer = second && second.ok !== false ? await ask({ ask: "compare", state: plain(), other: second }) : second;
  if (!answer || asked !== problem()) return;
  put(ui.difference, answer.ok ? difference(answer, name) : refusal(answer.error));
  say(answer.ok ? answer.text : answer.error.text, answer.ok ? "" : "bad");
}

/** Keep the schedule, to compare another with it. */
function keep() {
  kept = plain();
  const words = kept.steps.filter((step) => step.on).map((step) => step.text).join(" ") || "no steps";
  ui.keptOption.textContent = `kept: ${words.length > 60 ? `${words.slice(0, 60)}…` : words}`;
  ui.keptOption.disabled = false;
  ui.with.value = "kept";
  say(`Kept: ${words}`);
}

export function build() {
  ui.run = element("div", element("p.faint", HINT));
  ui.keptOption = element("option", { value: "kept", disabled: true }, "kept: nothing yet");
  ui.with = element("select", { id: "with" }, element("option", { value: "none" }, "no schedule"), element("option", { value: "plan" }, "the planner’s schedule"), ui.keptOption);
  ui.difference = element("div");
  const bar = element("div.bar", element("label", { for: "with" }, "this schedule beside"), ui.with,
    button("Compare now", compare), button("Keep this one", keep, { title: "Keep this schedule, to compare a later one with it" }));
  return { run: ui.run, compare: element("div", bar, ui.difference) };
}
