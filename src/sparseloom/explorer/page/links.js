// What came from what: a thing with `data-names` lights every thing whose names meet its own, their ancestors or their descendants.

import { byId } from "./dom.js";

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
export function described(name) {
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
  const text = names.map(described).join("  ·  ");
  if (text !== shown) byId("detail").textContent = shown = text;
  listeners.forEach((listener) => listener(names));
}

const rest = () => light(pinned ?? []);

/** New names after an edit; `relight` follows when everything is drawn. */
export function setNames(names) {
  known = names;
  if (pinned && !pinned.some(isKnown)) pinned = null;
}

/** What was lit before a column or picture was drawn again is lit again. */
export function relight() {
  const focused = thing(document.activeElement);
  light(pinned ?? (focused ? namesOf(focused) : []));
}

export const isKnown = (name) => Object.hasOwn(known, name);
export const kindOf = (name) => (isKnown(name) ? known[name].kind : null);
export const allNames = () => known;

function pin(node) {
  const names = namesOf(node);
  const again = pinned && pinned.join(" ") === names.join(" ");
  pinned = again ? null : names;
  for (const each of document.querySelectorAll("[aria-pressed][data-pin], [aria-selected][data-pin]")) {
    const attribute = each.hasAttribute("aria-pressed") ? "aria-pressed" : "aria-selected";
    each.setAttribute(attribute, pinned !== null && each === node);
  }
  light(pinned ?? names);
}

export function clearPin() {
  pinned = null;
  document.querySelectorAll("[data-pin][aria-pressed=true]").forEach((node) => node.setAttribute("aria-pressed", false));
  document.querySelectorAll("[data-pin][aria-selected=true]").forEach((node) => node.setAttribute("aria-selected", false));
  light([]);
}

function clicked(event) {
  const node = thing(event.target);
  if (node?.closest("[data-pin]")) pin(node);
}

function key(event) {
  if (event.key === "Escape") clearPin();
  const node = event.target;
  if ((event.key === "Enter" || event.key === " ") && node instanceof Element && node.matches("[role=option][data-pin]")) {
    event.preventDefault();
    pin(node);
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
