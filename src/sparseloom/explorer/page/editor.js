// The first column: statement, formats, data, and the schedule as a list of steps.

import { button, byId, element, hidden, put, refusal, short, sign } from "./dom.js";
import { allNames } from "./links.js";
import { change, newStep, state } from "./state.js";

const FORMATS = {
  1: ["dense", "s", "u"],
  2: ["csr", "csc", "dcsr", "dcsc", "coo", "dense", "bcsr(2,2)", "ell", "dia"],
  3: ["csf", "coo", "dense", "dss", "dds"],
};
const MARKS = { legal: "✓", refused: "✗", waiting: "…", off: "○" };

const parts = {};
const rows = new Map();

const field = (attributes) => element("input", { type: "text", spellcheck: "false", autocomplete: "off", autocapitalize: "off", ...attributes });

/** The steps (calls) of a pasted text. */
function stepsOf(text) {
  const found = [];
  let depth = 0;
  let step = "";
  for (const letter of text.replace(/#.*/g, "")) {
    if (depth === 0 && /[\s;]/.test(letter)) continue;
    step += letter;
    depth += letter === "(" ? 1 : letter === ")" ? -1 : 0;
    if (depth === 0 && letter === ")") step = void found.push(step) ?? "";
  }
  return step ? [...found, step] : found;
}

/** Take steps at the end of the schedule. */
export const take = (texts, key = null) => change({ steps: [...state().steps, ...texts.map(newStep)] }, key);

const indexOf = (id) => state().steps.findIndex((step) => step.id === id);
const withStep = (id, part) => state().steps.map((step) => (step.id === id ? { ...step, ...part } : step));
const remove = (id) => change({ steps: state().steps.filter((step) => step.id !== id) });

function move(id, to) {
  const steps = [...state().steps];
  const from = indexOf(id);
  const place = Math.max(0, Math.min(steps.length - 1, to));
  if (from < 0 || from === place) return;
  steps.splice(place, 0, ...steps.splice(from, 1));
  change({ steps }, `move ${id}`);
}

/** Delete a step and leave the focus where the next one is. */
function removed(id) {
  const at = indexOf(id);
  remove(id);
  const next = state().steps[Math.min(at, state().steps.length - 1)];
  (next ? rows.get(next.id).text : parts.add).focus();
}

function keys(event, id) {
  const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (way && (event.altKey || event.target.matches(".handle"))) {
    event.preventDefault();
    const { target } = event;
    move(id, indexOf(id) + way);
    target.focus();
  }
}

/** Drag: the step goes where its middle is. */
function drag(event, id) {
  if (event.button !== 0) return;
  const handle = event.currentTarget;
  const { node } = rows.get(id);
  const over = (now) => {
    const others = state().steps.filter((step) => step.id !== id).map((step) => rows.get(step.id).node.getBoundingClientRect());
    move(id, others.filter((box) => box.top + Math.min(box.height, 40) / 2 < now.clientY).length);
  };
  const end = () => {
    node.classList.remove("dragged");
    document.removeEventListener("pointermove", over);
    handle.focus();
  };
  event.preventDefault();
  node.classList.add("dragged");
  document.addEventListener("pointermove", over);
  document.addEventListener("pointerup", end, { once: true });
  document.addEventListener("pointercancel", end, { once: true });
}

function row({ id }) {
  const text = field({ class: "mono", oninput: () => change({ steps: withStep(id, { text: text.value }) }, `step ${id}`) });
  text.addEventListener("keydown", (event) => event.key === "Enter" && (text.value.trim() ? parts.add : (remove(id), parts.add)).focus());
  text.addEventListener("blur", () => !text.value.trim() && indexOf(id) >= 0 && remove(id));
  const on = element("input", { type: "checkbox", onchange: () => change({ steps: withStep(id, { on: on.checked }) }) });
  const mark = element("span.mark");
  const handle = sign("⠿", "", () => {}, { class: "sign handle", onpointerdown: (event) => drag(event, id) });
  const up = sign("↑", "", () => (move(id, indexOf(id) - 1), up.focus()));
  const down = sign("↓", "", () => (move(id, indexOf(id) + 1), down.focus()));
  const drop = sign("×", "", () => removed(id));
  const below = element("div.below");
  const line = element("div.row", handle, on, text, mark, up, down, drop);
  const node = element("li.step", { onkeydown: (event) => keys(event, id) }, line, below);
  return { node, text, on, mark, handle, up, down, drop, below };
}

/** Names of a step's parts for screen readers. */
const CALLED = {
  text: "Step #", on: "Step # is on", handle: "Drag step #, or move it with the arrow keys", up: "Move step # up", down: "Move step # down", drop: "Delete step #",
};

function drawSteps() {
  const { steps } = state();
  const focused = document.activeElement;
  for (const id of [...rows.keys()]) if (!steps.some((step) => step.id === id)) rows.delete(id);
  const nodes = steps.map((step, k) => {
    if (!rows.has(step.id)) rows.set(step.id, row(step));
    const each = rows.get(step.id);
    if (each.text.value !== step.text) each.text.value = step.text;
    each.on.checked = step.on;
    for (const [part, words] of Object.entries(CALLED)) each[part].setAttribute("aria-label", words.replace("#", k + 1));
    return each.node;
  });
  const { list } = parts;
  if (nodes.length !== list.children.length || nodes.some((node, k) => node !== list.children[k])) {
    put(list, nodes);
    if (focused && focused !== document.activeElement && list.contains(focused)) focused.focus();
  }
  parts.empty.hidden = steps.length > 0;
}

/** What the server found of each step. */
function showSteps(answer) {
  const asked = state().steps.filter((step) => step.text.trim());
  asked.forEach((step, k) => {
    const found = answer.steps[k];
    const each = rows.get(step.id);
    if (!found || !each) return;
    each.node.dataset.status = found.status;
    each.node.dataset.names = found.names.join(" ");
    put(each.mark, element("span", { "aria-hidden": true }, MARKS[found.status]), hidden(found.status));
    each.mark.title = found.status;
    const wait = found.status === "waiting" ? element("p.faint", "waits for the refused step above") : null;
    put(each.below, found.error ? refusal(found.error) : wait);
    each.text.setAttribute("aria-invalid", found.status === "refused");
  });
}

function showPieces(answer) {
  const piece = ({ text, names }) =>
    names.length ? button(text, () => {}, { class: "piece", "data-pin": true, "aria-pressed": false, "data-names": names.join(" ") }) : element("span", text);
  const focused = [...parts.pieces.children].indexOf(document.activeElement);
  put(parts.pieces, answer.statement.map(piece));
  if (focused >= 0) parts.pieces.children[focused]?.focus();
}

/** Of all ancestors, those that are no other's. */
const parents = (all) => all.filter((name) => !all.some((other) => allNames()[other]?.ancestors.includes(name)));

/** The schedule's variables with their origins. */
function showNames() {
  const made = Object.entries(allNames()).filter(([, { kind, original }]) => kind === "variable" && !original);
  const chip = ([name, { ancestors }]) =>
    button(element("span", name, element("small", ` ← ${parents(ancestors).join(" ")}`)), () => {}, {
      class: "piece chip", "data-pin": true, "aria-pressed": false, "data-names": name,
    });
  put(parts.names, made.length > 0 && [element("span.faint", "made: "), ...made.map(chip)]);
}

function formatRow({ name, order, format, role, given, shape, stored }) {
  const own = state().formats[name];
  const id = `format-${name}`;
  const input = field({ id, class: "mono", list: `formats-${Math.min(order, 3)}`, placeholder: format ?? "dense" });
  input.value = own ?? "";
  input.addEventListener("input", () => change({ formats: { ...state().formats, [name]: input.value } }, id));
  const remark = [role === "result" && role, given && "given", shape?.join(" × "), stored && order > 1 && `${short(stored)} stored`].filter(Boolean).join(", ");
  const title = element("label", { for: id, class: "mono name", "data-names": name }, name);
  return element("div.format", title, input, element("span.faint", remark));
}

/** A line per tensor, redrawn only if the tensors changed. */
function showFormats(answer) {
  const what = JSON.stringify([answer.tensors.map(({ format, ...rest }) => rest), Object.keys(state().formats)]);
  if (parts.formats.dataset.what !== what && !parts.formats.contains(document.activeElement)) {
    parts.formats.dataset.what = what;
    put(parts.formats, answer.tensors.map(formatRow));
  }
  for (const { name, format } of answer.tensors) {
    const input = byId(`format-${name}`);
    if (!input || input === document.activeElement) continue;
    input.placeholder = format ?? "dense";
    input.value = state().formats[name] ?? "";
  }
}

function number(words, value, set, attributes) {
  const input = element("input", { type: "number", ...attributes });
  input.value = value;
  input.addEventListener("change", () => input.value !== "" && Number.isFinite(input.valueAsNumber) && set(input.valueAsNumber));
  return element("label", element("span.mono", words), input);
}

function showData(answer) {
  if (parts.data.contains(document.activeElement)) return;
  const { sizes, density, seed, semiring } = answer.state;
  const ring = element("select", { onchange: () => change({ semiring: ring.value }) }, answer.semirings.map((name) => element("option", name)));
  ring.value = semiring;
  const size = ([name, long]) => number(name, sizes[name] ?? "", (value) => change({ sizes: { ...state().sizes, [name]: Math.round(value) } }), { min: 1, placeholder: long });
  put(parts.data,
    ...Object.entries(answer.sizes).map(size),
    number("density", density, (value) => change({ density: value }), { min: 0, max: 1, step: "any" }),
    number("seed", seed, (value) => change({ seed: Math.round(value) }), { min: 0 }),
    element("label", "semiring", ring),
  );
}

/** Errors of the statement or formats, below them. */
function showErrors(error) {
  put(parts.statementError, error?.where === "statement" && refusal(error));
  put(parts.formatsError, error?.where === "formats" && refusal(error));
  parts.statement.setAttribute("aria-invalid", error?.where === "statement");
}

function addField() {
  const input = field({ id: "add", class: "mono", placeholder: "split(i,i0,i1,16)" });
  const add = () => {
    const texts = stepsOf(input.value);
    if (!texts.length) return;
    take(texts);
    input.value = "";
    input.focus();
  };
  input.addEventListener("keydown", (event) => event.key === "Enter" && add());
  parts.add = input;
  return element("div.adder", element("label", { for: "add", class: "hidden" }, "New step"), input, button("Add", add));
}

export function build(menus) {
  parts.statement = field({ id: "statement", class: "mono wide", oninput: (event) => change({ statement: event.target.value }, "statement") });
  parts.pieces = element("div.pieces.mono");
  parts.statementError = element("div");
  parts.formats = element("div.formats");
  parts.formatsError = element("div");
  parts.data = element("div.data");
  parts.list = element("ol.steps", { "aria-label": "Schedule" });
  parts.empty = element("p.faint", "No steps: the loops run as the formats say.");
  parts.names = element("div.pieces.mono");
  const lists = Object.entries(FORMATS).map(([order, names]) => element("datalist", { id: `formats-${order}` }, names.map((name) => element("option", { value: name }))));
  byId("edit").append(
    element("h2", element("label", { for: "statement" }, "Statement")), parts.statement, parts.pieces, parts.statementError,
    element("h2", "Formats"), parts.formats, parts.formatsError,
    element("details", element("summary", "Sizes and data"), parts.data),
    element("h2", "Schedule"), parts.empty, parts.list, addField(), parts.names, ...menus, ...lists,
  );
}

/** The user's part, at once. */
export function draw() {
  if (parts.statement.value !== state().statement) parts.statement.value = state().statement;
  drawSteps();
}

/** The server's part, when it has answered. */
export function show(answer) {
  if (!answer.ok) {
    if (!parts.formats.firstChild) put(parts.formats, Object.keys(state().formats).map((name) => formatRow({ name, order: 2 })));
    return showErrors(answer.error);
  }
  showErrors(null);
  showPieces(answer);
  showFormats(answer);
  showData(answer);
  showSteps(answer);
  showNames();
}
