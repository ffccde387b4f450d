// Second and third column: loops or notation, and generated code.

import { byId, element, put, refusal, tabs } from "./dom.js";
import { isKnown, kindOf } from "./links.js";

const words = (text) => new Set(text.split(" "));
const KEYWORDS = {
  code: words("if else for while return goto continue break static const struct restrict extern __restrict__ __global__ __shared__ __syncthreads"),
  loops: words("def for in if else while output input size poll call return break and or not"),
  concrete: words("forall such that where with and"),
};
const TYPES = /^(u?int\d*_t|double|float|bool|void|char|int|long|float\d+|u?int\d+|bool_?|complex\d+)$/;
const TOKEN = {
  code: /(?<comment>\/\/.*|\/\*.*?\*\/)|(?<note>^\s*#.*)|(?<string>"(?:\\.|[^"\\])*")|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g,
  loops: /(?<comment>\s#\s.*)|(?<note>\s\[[^\]]*\]$)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g,
  concrete: /(?<comment>#.*)|(?<note>\s\[[^\]]*\]$)|(?<number>\b\d[\w.]*)|(?<word>[A-Za-z_]\w*)/g,
};

/** The name behind an identifier: itself, or the tensor of an array (A2_pos). */
function nameIn(word) {
  if (isKnown(word)) return word;
  const stem = /^p?([A-Za-z_]\w*?)\d*(?:_[a-z]+\d*)?$/.exec(word)?.[1];
  return stem && kindOf(stem) === "tensor" ? stem : null;
}

function piece(kind, text, language) {
  if (kind !== "word") return element("span", { class: `t-${kind}` }, text);
  if (KEYWORDS[language].has(text)) return element("span.t-keyword", text);
  if (TYPES.test(text)) return element("span.t-type", text);
  const name = nameIn(text);
  return name ? element("span", { "data-names": name, class: "name" }, text) : text;
}

/** A line as coloured comments, numbers, keywords and names. */
function coloured(text, language) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKEN[language])) {
    const [kind, value] = Object.entries(found.groups).find(([, group]) => group !== undefined);
    parts.push(text.slice(end, found.index), piece(kind, value, language));
    end = found.index + value.length;
  }
  return [...parts, text.slice(end)].filter((part) => part !== "");
}

function line({ text, names }, number, language) {
  const attributes = {
    role: "option", "aria-selected": false, "aria-label": text.trim() ? null : "empty line", "data-pin": true, "data-names": names.join(" "), class: "line", tabindex: -1,
  };
  return element("div", attributes, element("span.number", { "aria-hidden": true }, number + 1), element("code", coloured(text, language)));
}

/** Arrows move between lines; Tab passes the column. */
function walked(event) {
  const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[event.key];
  if (!step || event.altKey) return;
  const lines = [...event.currentTarget.children];
  const here = lines.indexOf(document.activeElement);
  const to = lines[Math.max(0, Math.min(lines.length - 1, here + step))];
  event.preventDefault();
  lines.forEach((each) => (each.tabIndex = each === to ? 0 : -1));
  to.focus();
}

/** One column of lines. */
function listing(pane, lines, language, title) {
  const scroll = pane.scrollTop;
  if (!Array.isArray(lines)) return put(pane, refusal(lines.error));
  const nodes = lines.map((each, k) => line(each, k, language));
  nodes[0]?.setAttribute("tabindex", 0);
  const box = element("div", { role: "listbox", "aria-label": title, onkeydown: walked }, nodes);
  put(pane, box);
  pane.scrollTop = scroll;
}

const panes = { loops: null, concrete: null, code: null };
let heading = null;

export function build() {
  for (const key of Object.keys(panes)) panes[key] = element("div.listing");
  const middle = tabs("Middle column", [["loops", "Loops", panes.loops], ["concrete", "Concrete notation", panes.concrete]]);
  byId("middle").append(element("div.head", middle.list), element("div.body", panes.loops, panes.concrete));
  heading = element("h2", "C");
  byId("code").append(element("div.head", heading), element("div.body", panes.code));
}

export function show(answer) {
  listing(panes.loops, answer.columns.loops, "loops", "Loops");
  listing(panes.concrete, answer.columns.concrete, "concrete", "Concrete notation");
  const title = answer.state.target === "cuda" ? "CUDA" : "C";
  heading.textContent = title;
  listing(panes.code, answer.columns.code, "code", `Generated ${title}`);
}
