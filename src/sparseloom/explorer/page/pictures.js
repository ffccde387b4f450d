// The lower half: pictures of schedule and data in tabs.

import { ask } from "./ask.js";
import { byId, element, put, refusal, tabs } from "./dom.js";
import { boxes, brief, colour, drawing, exporter, parsed, text } from "./draw.js";
import { relight } from "./links.js";
import * as measure from "./measure.js";
import * as space from "./space.js";
import { plain } from "./state.js";

const ui = {};
let shownTab = "space";
let answer = null;

/** A picture that the server drew, with its button. */
function graph(name) {
  const stage = element("div.stage");
  const pane = element("div", element("div.bar", exporter(name, () => stage.querySelector("svg"))), stage);
  const show = (source, label) => {
    const svg = parsed(source);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    put(stage, svg);
  };
  return { pane, show };
}

/** The levels of a tensor from the root, with arrays; one colour below each parent. */
function levels({ levels: all, values, of }, { name, format }, width) {
  const parts = [];
  let y = 8;
  for (const { title, arrays } of all) {
    parts.push(text(64, y + 6, title, "sl-text", "start"));
    y += 20;
    if (!arrays.length) y += 2;
    const pos = arrays.find((array) => array.name.startsWith("pos"))?.values;
    const parent = (k) => pos?.findLastIndex((begin) => begin <= k) ?? 0;
    for (const { name, values } of arrays) {
      const begins = name.startsWith("pos");
      const drawn = boxes(name, values.map(brief), y, width, (k, _, box) => {
        if (!pos || (begins && k === values.length - 1)) return;
        box.setAttribute("class", "sl-box sl-pale");
        box.setAttribute("fill", colour(begins ? k : parent(k)));
      });
      parts.push(...drawn.parts);
      y += drawn.height;
    }
  }
  const drawn = values?.length ? boxes("vals", values.map(brief), y, width) : { parts: [], height: 0 };
  return drawing(width, y + drawn.height + 6, `Storage of ${name} as ${format}, ${of?.join(" × ") ?? ""}`, [...parts, ...drawn.parts]);
}

async function stored(tensor) {
  const found = await ask({ ask: "space", state: plain(), operand: tensor.name }, `storage ${tensor.name}`);
  if (!found) return null;
  const { name, format } = tensor;
  const title = element("figcaption", element("b.mono.name", { "data-names": name }, name), ` ${format}${found.remark ? `; ${found.remark}` : ""}`);
  if (!found.ok) return element("figure", title, refusal(found.error));
  const svg = levels(found, tensor, Math.max(300, ui.storage.clientWidth - 4));
  title.append(exporter(`storage-${name}`, () => svg));
  return element("figure", title, element("div.stage", svg));
}

async function loadStorage() {
  const wanted = answer;
  const figures = [];
  for (const tensor of answer.tensors.filter(({ role, order }) => role === "operand" && order > 0)) {
    const figure = await stored(tensor);
    if (!figure || wanted !== answer) return;
    figures.push(figure);
    put(ui.storage, figures);
  }
  relight();
}

/** Only what is in view is asked for. */
function fresh() {
  if (!answer) return;
  if (shownTab === "space") space.load();
  if (shownTab === "storage") loadStorage();
}

export function build() {
  ui.provenance = graph("provenance");
  ui.iteration = graph("iteration-graph");
  ui.storage = element("div");
  ui.explain = element("pre", { tabindex: 0, "aria-label": "Explanation" });
  const measured = measure.build();
  const panes = [
    ["space", "Iteration space", space.build()], ["provenance", "Provenance", ui.provenance.pane], ["iteration", "Iteration graph", ui.iteration.pane],
    ["storage", "Storage", ui.storage], ["run", "Run", measured.run], ["compare", "Compare", measured.compare], ["explain", "Explanation", element("div", ui.explain)],
  ];
  ui.tabs = tabs("Pictures", panes, (key) => ((shownTab = key), fresh()));
  byId("pictures").append(element("div.head", ui.tabs.list), element("div.body", panes.map(([, , pane]) => pane)));
}

export function open(key) {
  ui.tabs.show(key);
  byId("pictures").scrollIntoView({ block: "nearest" });
}

export function show(found) {
  answer = found;
  space.setTensors(found.tensors);
  ui.provenance.show(found.pictures.provenance, "How the variables come from each other");
  ui.iteration.show(found.pictures.iteration, "The loops and what each runs over");
  const races = found.races.map(({ text, resolved }) => `${text}${resolved ? `\n  resolved: ${resolved}` : ""}`);
  ui.explain.textContent = [found.explain, ...(races.length ? ["races found", ...races] : [])].join("\n");
  fresh();
}
