// Tools for the DOM. Text is always a text node, never markup.

const SVG = "http://www.w3.org/2000/svg";

function set(node, name, value) {
  if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
  else if (name.startsWith("aria-") ? value != null : (value ?? false) !== false) node.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
}

function fill(node, given) {
  const attributes = given[0] && Object.getPrototypeOf(given[0]) === Object.prototype ? given.shift() : {};
  for (const [name, value] of Object.entries(attributes)) set(node, name, value);
  node.append(...given.flat(Infinity).filter((child) => child || child === 0));
  return node;
}

/** element("p.faint", { title: "..." }, children): on... are listeners; false or missing attributes are left out, except aria-. */
export function element(kind, ...given) {
  const [tag, ...classes] = kind.split(".");
  const node = fill(document.createElement(tag), given);
  if (classes.length) node.classList.add(...classes);
  return node;
}

/** Fill a node anew. */
export const put = (node, ...given) => (node.replaceChildren(), fill(node, given));

/** The same for shapes. */
export const shape = (tag, ...given) => fill(document.createElementNS(SVG, tag), given);

export const byId = (id) => document.getElementById(id);

export const button = (text, onclick, attributes) => element("button", { type: "button", onclick, ...attributes }, text);

/** A button that shows a sign and is called by words. */
export const sign = (text, words, onclick, attributes) => button(text, onclick, { class: "sign", "aria-label": words, title: words, ...attributes });

export const hidden = (text) => element("span.hidden", text);

/** An error or refusal in full, drawn as it was written. */
export function refusal(error) {
  return element("div.refusal", element("pre", error.text), error.help && element("p", element("b", "help: "), error.help));
}

/** ARIA tabs; `panes` is [[key, title, element], ...]. */
export function tabs(label, panes, onshow = () => {}) {
  const heads = new Map();
  const list = element("div", { role: "tablist", "aria-label": label });
  function show(key, focus = false) {
    for (const [each, , pane] of panes) {
      const on = each === key;
      pane.hidden = !on;
      heads.get(each).setAttribute("aria-selected", on);
      heads.get(each).tabIndex = on ? 0 : -1;
    }
    if (focus) heads.get(key).focus();
    onshow(key);
  }
  function moved(event) {
    const keys = panes.map(([key]) => key);
    const here = keys.findIndex((key) => heads.get(key) === document.activeElement);
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1 + keys.length, Home: 0, End: keys.length - 1 }[event.key];
    if (to === undefined || here < 0) return;
    event.preventDefault();
    show(keys[to % keys.length], true);
  }
  for (const [key, title, pane] of panes) {
    const id = `${label}-${key}`.replace(/\W+/g, "-").toLowerCase();
    const head = button(title, () => show(key), { role: "tab", id: `${id}-tab`, "aria-controls": id });
    Object.entries({ role: "tabpanel", id, "aria-labelledby": `${id}-tab` }).forEach(([name, value]) => pane.setAttribute(name, value));
    heads.set(key, head);
    list.append(head);
  }
  list.addEventListener("keydown", moved);
  show(panes[0][0]);
  return { list, show };
}

/** Say something to the reader, and to a screen reader. */
export function say(text, kind = "") {
  const status = byId("status");
  if (status.textContent !== text) status.textContent = text;
  status.dataset.kind = kind;
}

/** A number with few digits: 12, 3.4e6 as "3.4 M". */
export function short(number) {
  if (number === null || number === undefined) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (Math.abs(number) >= size) return `${Number((number / size).toPrecision(3))} ${unit}`;
  return String(Number(number.toPrecision(3)));
}

export function seconds(number) {
  if (number === null || number === undefined) return "–";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]]) if (number >= size) return `${Number((number / size).toPrecision(3))} ${unit}`;
  return `${Number((number / 1e-9).toPrecision(3))} ns`;
}
