// The iteration space of an operand: entries coloured by tile, thread or variable, in loop order.

import { ask } from "./ask.js";
import { byId, element, put, refusal, shape, sign } from "./dom.js";
import { boxes, brief, colour, drawing, exporter, text } from "./draw.js";
import { onlight } from "./links.js";
import { plain } from "./state.js";

const ui = {};
let data = null; // The server's answer.
let scene = null; // What is drawn: the shapes of every entry.
let time = 0;
let by = "tile"; // What the user chose to colour by, where there is that.
let pointed = null; // A variable under the pointer, by which to colour as long as it is there.
let playing = 0;

const unitOf = (visit, way) => (way === "tile" || way === "thread" ? visit[way] : visit.unit?.[way]) ?? 0;
const way = () => pointed ?? ui.colour.value;

/** Positions of entries: a row, a matrix, or slices side by side. */
function grid() {
  const [slices, rows, columns] = [1, 1, ...data.shape].slice(-3);
  const stride = columns + (slices > 1);
  const cell = Math.max(5, Math.min(22, Math.floor(300 / rows), Math.floor((ui.stage.clientWidth - 80 || 600) / (slices * stride))));
  const [left, top, wide, high] = [64, 22, columns * cell, rows * cell];
  const every = Math.ceil(24 / cell);
  const numbers = (count, draw) => Array.from({ length: Math.ceil(count / every) }, (_, k) => draw(k * every, (k * every + 0.5) * cell));
  const lines = (count, draw) => (cell > 7 ? Array.from({ length: count - 1 }, (_, k) => draw((k + 1) * cell)).join("") : "");
  const slice = (_, s) => {
    const x = left + s * stride * cell;
    const d = `M${x} ${top}h${wide}v${high}h${-wide}z` + lines(rows, (at) => `M${x} ${top + at}h${wide}`) + lines(columns, (at) => `M${x + at} ${top}v${high}`);
    const above = slices > 1 ? text(x + wide / 2, 12, `${data.variables[0]} = ${s}`, "sl-faint", "middle", 10) : numbers(columns, (k, at) => text(x + at, 12, k, "sl-faint", "middle", 10));
    return [shape("path", { d, class: "sl-grid" }), above];
  };
  const parts = [Array.from({ length: slices }, slice), rows > 1 && numbers(rows, (k, at) => text(left - 12, top + at, k, "sl-faint", "middle", 10))];
  const place = (at) => {
    const [s, i, j] = [0, 0, ...at].slice(-3);
    return [left + (s * stride + j) * cell, top + i * cell];
  };
  return { parts, cell, place, height: top + high + 14 };
}

/** Two iterations that meet, and the line between them. */
function raced({ cell, place }) {
  const visits = data.race ? [data.race.first, data.race.second].map((number) => data.visits[number]).filter(Boolean) : [];
  const ends = visits.map(({ entry }) => place(data.entries[entry].at).map((at) => at + cell / 2));
  const line = ends.length > 1 && shape("path", { d: `M${ends.join("L")}`, class: "sl-race", "stroke-dasharray": "4 3" });
  return [line, ...ends.map(([cx, cy]) => shape("circle", { cx, cy, r: cell / 2 + 4, class: "sl-race" }))];
}

/** Draw once; moving through time only restyles entries. */
function drawScene() {
  const width = Math.max(300, ui.stage.clientWidth - 2 || 900);
  const g = grid();
  const dots = data.entries.map(({ at }, k) => {
    const [x, y] = g.place(at);
    return shape("rect", { x: x + 1, y: y + 1, width: g.cell - 2, height: g.cell - 2, rx: Math.min(3, g.cell / 5), "data-entry": k });
  });
  const cells = data.entries.map(() => []);
  const parts = [...g.parts, ...dots, ...raced(g)];
  let y = g.height + 6;
  const array = (name, values, spans) => {
    const made = (k, both, box) => {
      const entries = data.value_entries.slice(...(spans[k] ?? [0, 0])).filter((entry) => entry !== null);
      if (entries.length) both.setAttribute("data-entry", entries.join(" "));
      entries.forEach((entry) => cells[entry].push(box));
    };
    const drawn = boxes(name, values.map(brief), y, width, made);
    parts.push(...drawn.parts);
    y += drawn.height;
  };
  for (const { title, arrays } of data.levels) {
    parts.push(text(64, y + 8, `${title}${arrays.length ? "" : ": no arrays"}`, "sl-faint", "start", 11));
    y += 20;
    arrays.forEach(({ name, values, entries }) => array(name, values, entries));
  }
  array("vals", data.values, data.values.map((_, k) => [k, k + 1]));
  const legend = shape("g");
  const label = `Entries of ${data.operand} in the order of the loops; ${data.remark}`;
  const svg = drawing(width, y + 30, label, [...parts, legend]);
  scene = { svg, dots, cells, legend, legendAt: y + 14 };
  put(ui.stage, svg);
  drawTime();
}

function drawLegend() {
  const values = [...new Set(data.visits.map((visit) => unitOf(visit, way())))].slice(0, 12);
  const parts = [text(56, scene.legendAt, way(), "sl-faint", "end")];
  values.forEach((value, k) => {
    const x = 64 + 44 * k;
    parts.push(shape("rect", { x, y: scene.legendAt - 6, width: 12, height: 12, rx: 2, fill: colour(value) }), text(x + 16, scene.legendAt, value, "sl-text", "start", 11));
  });
  put(scene.legend, parts);
}

/** Visited entries are strong, the last is marked, the rest pale. */
function drawTime() {
  const latest = data.entries.map(() => -1);
  const first = data.entries.map(() => -1);
  data.visits.forEach(({ entry }, v) => {
    if (first[entry] < 0) first[entry] = v;
    if (v < time) latest[entry] = v;
  });
  const now = time > 0 && time < data.visits.length ? data.visits[time - 1].entry : -1;
  data.entries.forEach((_, k) => {
    const visit = data.visits[latest[k] >= 0 ? latest[k] : first[k]];
    const state = `${latest[k] >= 0 ? "done" : "ahead"} ${k === now ? "sl-now" : ""}`;
    for (const node of [scene.dots[k], ...scene.cells[k]]) {
      node.setAttribute("class", `${node === scene.dots[k] ? "sl-entry" : "sl-cell"} ${state}`);
      node.setAttribute("fill", visit ? colour(unitOf(visit, way())) : "none");
    }
  });
  drawLegend();
  ui.slider.value = time;
  ui.slider.setAttribute("aria-valuetext", told());
  ui.where.textContent = told();
}

function told() {
  if (time === 0) return "before the first visit";
  const { entry, unit, thread } = data.visits[time - 1];
  const at = `${data.operand}(${data.entries[entry].at.join(",")})`;
  const units = Object.entries(unit).map(([name, value]) => `${name} = ${value}`);
  return `visit ${time} of ${data.visits.length}: ${at}, ${[...units, `thread ${thread}`].join(", ")}`;
}

function go(to) {
  if (!data?.ok) return;
  time = Math.max(0, Math.min(data.visits.length, to));
  drawTime();
}

function pause() {
  clearInterval(playing);
  playing = 0;
  ui.play.textContent = "▶";
  ui.play.setAttribute("aria-label", "Play");
}

function play() {
  if (playing) return pause();
  if (!data?.ok) return;
  if (time >= data.visits.length) go(0);
  const stride = Math.max(1, Math.round(data.visits.length / 400));
  ui.play.textContent = "❚❚";
  ui.play.setAttribute("aria-label", "Pause");
  playing = setInterval(() => (go(time + stride), time >= data.visits.length && pause()), Math.max(20, Math.min(200, 6000 / data.visits.length)));
}

/** Highlight an entry or box; the footer describes it. */
function point(event) {
  const here = event.type !== "pointerleave" && event.target.closest?.("[data-entry]")?.dataset.entry.split(" ");
  ui.stage.querySelectorAll(".near").forEach((node) => node.classList.remove("near"));
  if (!here || !data?.ok) return;
  for (const k of here) ui.stage.querySelectorAll(`[data-entry~="${k}"]`).forEach((node) => node.classList.add("near"));
  const { at, value } = data.entries[here[0]];
  const times = data.visits.map((visit, v) => visit.entry === Number(here[0]) && v + 1).filter(Boolean);
  const when = times.length ? `visited at ${times.slice(0, 6).join(", ")}${times.length > 6 ? " …" : ""}` : "never visited";
  byId("detail").textContent = `${data.operand}(${at.join(",")}) = ${brief(value)}, ${when}`;
}

export function build() {
  ui.operand = element("select", { id: "operand", onchange: () => load() });
  ui.colour = element("select", { id: "colour", onchange: () => ((by = ui.colour.value), data?.ok && drawTime()) });
  ui.slider = element("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Time", oninput: () => (pause(), go(ui.slider.valueAsNumber)) });
  ui.play = sign("▶", "Play", play);
  ui.where = element("output.mono.faint");
  ui.remark = element("p.faint");
  ui.race = element("p.race", { hidden: true });
  ui.stage = element("div.stage", { onpointerover: point, onpointerleave: point });
  const step = (by) => () => (pause(), go(time + by));
  const bar = element("div.bar",
    element("label", { for: "operand" }, "of"), ui.operand, element("label", { for: "colour" }, "coloured by"), ui.colour,
    sign("‹", "One visit back", step(-1)), ui.play, sign("›", "One visit on", step(1)), ui.slider, exporter("iteration-space", () => scene?.svg));
  onlight((names) => {
    const found = names.find((name) => data?.ok && data.colours.includes(name)) ?? null;
    if (!data?.ok || !scene || found === pointed) return;
    pointed = found;
    drawTime();
  });
  return element("div", bar, ui.where, ui.race, ui.stage, ui.remark);
}

const options = (select, values, wanted) => {
  put(select, values.map((value) => element("option", { value }, value)));
  select.value = values.includes(wanted) ? wanted : values[0] ?? "";
};

/** The operands that one can look at; a sparse one first. */
export function setTensors(tensors) {
  const names = tensors.filter(({ role, order }) => role === "operand" && order > 0);
  const dense = ({ format }) => /^(d+|dense.*)$/.test(format ?? "dense");
  const sorted = [...names.filter((tensor) => !dense(tensor)), ...names.filter(dense)].map(({ name }) => name);
  if (sorted.join() !== [...ui.operand.options].map(({ value }) => value).join()) options(ui.operand, sorted, ui.operand.value);
}

function failed(error) {
  scene = null;
  put(ui.stage, refusal(error));
  ui.where.textContent = ui.remark.textContent = "";
  ui.race.hidden = true;
}

export async function load() {
  pause();
  if (!ui.operand.value) return failed({ text: "There is no operand with entries to show." });
  const answer = await ask({ ask: "space", state: plain(), operand: ui.operand.value });
  if (!answer) return;
  data = answer;
  pointed = null;
  if (!answer.ok) return failed(answer.error);
  options(ui.colour, data.colours, by);
  ui.slider.max = time = data.visits.length;
  ui.remark.textContent = data.remark;
  ui.race.hidden = !data.race;
  ui.race.textContent = data.race?.text ?? "";
  drawScene();
}
