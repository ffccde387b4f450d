// A change of the state is drawn at once; then every column shows the server's answer.

import { ask } from "./ask.js";
import { button, byId, element, put, say, sign } from "./dom.js";
import * as columns from "./columns.js";
import * as editor from "./editor.js";
import { listen, relight, setNames } from "./links.js";
import * as measure from "./measure.js";
import * as menus from "./menus.js";
import * as pictures from "./pictures.js";
import { canRedo, canUndo, change, onchange, plain, redo, replaceAll, restore, state, undo } from "./state.js";

const ui = {};
let answer = null;
let waiting = 0;
let notice = null; // What is wrong with the address, until something is changed.

/** What went wrong with the server itself, in full, with a way on. */
function trouble(error) {
  byId("trouble").hidden = !error;
  put(byId("trouble"), error && [element("b", error.text), element("pre", error.help ?? ""), button("Try again", look)]);
}

function summary(found) {
  const refused = found.steps.findIndex((step) => step.status === "refused");
  if (refused >= 0) return [`Step ${refused + 1} is refused: ${found.steps[refused].error.text.split("\n")[0]}`, "bad"];
  if (!Array.isArray(found.columns.code)) return [found.columns.code.error.text.split("\n")[0], "bad"];
  const count = found.steps.filter((step) => step.status === "legal").length;
  return [count ? `Legal: ${count} step${count === 1 ? "" : "s"}.` : "Legal: no schedule.", "good"];
}

function show(found) {
  answer = found;
  setNames(found.names);
  editor.show(found);
  columns.show(found);
  pictures.show(found);
  menus.refresh();
  relight();
  say(...summary(found));
}

/** Ask what the state means. If nothing, the last answer stays, dimmed. */
async function look() {
  document.body.setAttribute("aria-busy", true);
  const found = await ask({ ask: "look", state: plain() });
  if (!found) return;
  document.body.removeAttribute("aria-busy");
  const broken = !found.ok && !["statement", "formats"].includes(found.error.where);
  trouble(broken ? found.error : notice);
  document.body.classList.toggle("stale", !found.ok);
  if (found.ok) return show(found);
  if (!broken) editor.show(found);
  say(found.error.text.split("\n")[0], "bad");
}

function changed(why) {
  if (why !== "first") notice = null;
  editor.draw();
  menus.follow();
  measure.follow();
  ui.undo.disabled = !canUndo();
  ui.redo.disabled = !canRedo();
  for (const [target, radio] of Object.entries(ui.targets)) radio.checked = state().target === target;
  clearTimeout(waiting);
  waiting = setTimeout(look); // Once for all that is changed at once.
}

async function copy(kind) {
  const text = kind === "link" ? location.href : answer?.take[kind];
  if (!text) return say("There is nothing to copy yet.", "bad");
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied as ${kind}.`);
  } catch {
    trouble({ text: "The browser keeps its clipboard to itself. Copy this by hand:", help: text });
  }
}

async function loadExamples() {
  const found = await ask({ ask: "examples" });
  if (!found?.ok) return;
  const states = [];
  const option = ({ title, state }) => element("option", { value: states.push(state) }, title);
  ui.examples.append(...found.groups.map(({ title, examples }) => element("optgroup", { label: title }, examples.map(option))));
  ui.examples.addEventListener("change", () => {
    if (ui.examples.value) replaceAll(states[ui.examples.value - 1]);
    ui.examples.value = "";
  });
}

function targetChoice() {
  ui.targets = {};
  const choice = (target, words) => {
    ui.targets[target] = element("input", { type: "radio", name: "target", value: target, onchange: () => change({ target }) });
    return element("label", ui.targets[target], element("span", words));
  };
  return element("fieldset.choice", element("legend.hidden", "Target"), choice("c", "C"), choice("cuda", "CUDA"));
}

function buildToolbar() {
  ui.examples = element("select", { "aria-label": "Examples" }, element("option", { value: "" }, "Examples …"));
  ui.undo = sign("↶", "Undo (Ctrl+Z)", undo);
  ui.redo = sign("↷", "Redo (Ctrl+Shift+Z)", redo);
  const copies = ["Python", "Command", "Text", "Link"].map((kind) => button(kind, () => copy(kind.toLowerCase()), { "aria-label": `Copy as ${kind.toLowerCase()}` }));
  byId("toolbar").append(
    ui.examples, targetChoice(),
    element("span.group", button("Plan", menus.openPlan, { title: "The planner’s schedule, step by step" }),
      button("Run", () => (pictures.open("run"), measure.run()), { class: "strong", title: "Compile, run and check" }),
      button("Compare", () => (pictures.open("compare"), measure.compare()), { title: "Two schedules beside each other" })),
    element("span.group", element("span.faint", "Copy"), copies),
    element("span.group", ui.undo, ui.redo),
  );
}

function keys(event) {
  const typing = event.target.matches?.("input:not([type=checkbox], [type=radio], [type=range]), textarea, select");
  if (typing || !(event.ctrlKey || event.metaKey)) return;
  const way = { y: redo, z: event.shiftKey ? redo : undo }[event.key.toLowerCase()];
  if (!way) return;
  event.preventDefault();
  way();
}

function readAddress(first) {
  const wrong = restore(first);
  notice = wrong && { text: wrong };
  if (wrong) trouble(notice);
}

buildToolbar();
editor.build(menus.build());
columns.build();
pictures.build();
listen();
onchange(changed);
document.addEventListener("keydown", keys);
addEventListener("hashchange", () => readAddress(false));
readAddress(true);
changed("first");
loadExamples();
