// An element with `data-names` highlights all with these names, their ancestors or descendants.

import { byId } from "./dom.js";

const HINT = "Point at a name, a loop or a line: what belongs together lights up. A click keeps it, Escape lets go.";

let known = {};
let pinned = null;
let shown = "";
const listeners = [];

const namesOf = (node) => (node.dataset.names ?? "").split(" ").filter(Boolean);
const thing = (target) => (target instanceof Element ? target.closest("[data-names]:not([data-names=''])") : null);

/** Called with the names under the pointer, [] when nothing is. */
export const onlight = (listener) => listeners.push(listener);

/** Names, and all that they came from or that came from them. */
function family(names) {
  return new Set(names.flatMap((name) => [name, ...(known[name]?.ancestors ?? []), ...(known[name]?.descendants ?? [])]));
}

/** One name in words: where it comes from and what it is. */
function described(name) {
  const { kind, original, ancestors = [], what } = known[name] ?? {};
  const from = kind === "variable" && !original && ancestors.length ? `from ${ancestors.join(", ")}` : "";
  return [name, [from, what].filter(Boolean).join("; ")].filter(Boolean).join(": ");
}

function light(names) {
  const wide = family(names);
  const exact = new Set(names);
  for (const node of document.querySelectorAll("[data-names]")) {
    const own = namesOf(node);
    node.classList.toggle("lit", own.some((name) => wide.has(name)));
    node.classList.toggle("exact", own.some((name) => exact.has(name)));
  }
  const text = names.map(described).join("  ·  ") || HINT;
  if (text !== shown) byId("detail").textContent = shown = text;
  listeners.forEach((listener) => listener(names));
}

const rest = () => light(pinned ?? []);

/** New names after an edit, before `relight`. */
export function setNames(names) {
  known = names;
  if (pinned && !pinned.some(isKnown)) pinned = null;
}

/** Highlight again after redrawing. */
export function relight() {
  press();
  const focused = thing(document.activeElement);
  light(pinned ?? (focused ? namesOf(focused) : []));
}

export const isKnown = (name) => Object.hasOwn(known, name);
export const kindOf = (name) => (isKnown(name) ? known[name].kind : null);
export const allNames = () => known;

/** Say which names are held. */
function press() {
  for (const each of document.querySelectorAll("[aria-pressed]")) each.setAttribute("aria-pressed", each.dataset.names === pinned?.join(" "));
}

/** Hold the names of a thing, or none. */
function pin(node) {
  pinned = node ? namesOf(node) : null;
  press();
  for (const each of document.querySelectorAll(".line")) each.setAttribute("aria-selected", each === node);
  light(pinned ?? []);
}

const toggle = (node) => pin(pinned?.join(" ") === node.dataset.names ? null : node);

function clicked(event) {
  const node = thing(event.target);
  if (node?.closest("[data-pin]")) toggle(node);
}

function key(event) {
  if (event.key === "Escape") pin(null);
  const node = event.target;
  if ((event.key === "Enter" || event.key === " ") && node instanceof Element && node.matches("[role=option][data-pin]")) {
    event.preventDefault();
    toggle(node);
  }
}

export function listen() {
  document.addEventListener("pointerover", (event) => {
    if (pinned) return;
    const node = thing(event.target);
    node ? light(namesOf(node)) : rest();
  });
  document.addEventListener("focusin", (event) => {
    const node = thing(event.target);
    if (node && !pinned) light(namesOf(node));
  });
  document.addEventListener("focusout", () => pinned || rest());
  document.documentElement.addEventListener("pointerleave", rest);
  document.addEventListener("click", clicked);
  document.addEventListener("keydown", key);
}
