// Pictures: the colours and looks that schedule/svg.py has too, arrays as boxes, and files to take away.

import { button, element, say, shape } from "./dom.js";

export const COLOURS = ["#3b7dd8", "#e08214", "#2a9d6f", "#c0504d", "#8e63b8", "#b8960c", "#1f9eb5", "#d1589a"];
export const colour = (number) => COLOURS[((number % 8) + 8) % 8];
const FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace";
const STYLE = `
.sl-ground{fill:#fff}.sl-text{fill:#1d2733}.sl-faint{fill:#5b6673}.sl-line{stroke:#97a1ad}.sl-box{fill:#f4f6f9;stroke:#97a1ad}.sl-grid{fill:#f7f8fa;stroke:#e1e5ea}
.sl-pale{fill-opacity:.2}.sl-now{stroke:#1d2733;stroke-width:2.5}.sl-race{fill:none;stroke:#c01c28;stroke-width:2.5}
@media (prefers-color-scheme:dark){
.sl-ground{fill:#171c23}.sl-text{fill:#e8edf3}.sl-faint{fill:#9aa6b4}.sl-line{stroke:#66717f}.sl-box{fill:#222a34;stroke:#66717f}.sl-grid{fill:#1c222b;stroke:#2c3540}
.sl-pale{fill-opacity:.3}.sl-now{stroke:#fff}.sl-race{stroke:#ff7b72}}`;

export const text = (x, y, words, look = "sl-text", attributes = {}) =>
  shape("text", { x, y: y + 4, class: look, "font-size": 12, "text-anchor": "middle", ...attributes }, String(words));

export function drawing(width, height, label, parts) {
  const attributes = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, role: "img", "aria-label": label };
  return shape("svg", attributes, parts);
}

/** The server's own SVG as a tree, or null for anything else. Its style is the page's; links and scripts have no business there. */
export function parsed(source) {
  const bare = (source ?? "").replace(/<style>[^<]*<\/style>/g, "");
  const tree = new DOMParser().parseFromString(bare, "image/svg+xml").documentElement;
  if (tree.localName !== "svg" || tree.namespaceURI !== "http://www.w3.org/2000/svg" || tree.querySelector("parsererror, style, script, foreignObject, a")) return null;
  for (const node of tree.querySelectorAll("*")) {
    for (const { name } of [...node.attributes]) if (name.startsWith("on") || name === "style" || name === "href") node.removeAttribute(name);
    if (!node.dataset.name) continue;
    node.setAttribute("data-names", node.dataset.name);
    node.setAttribute("data-pin", "");
  }
  return document.importNode(tree, true);
}

/** A picture as a file of its own: its style inside, nothing of the page. */
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.prepend(shape("style", null, STYLE), shape("rect", { width: "100%", height: "100%", class: "sl-ground" }));
  for (const node of [copy, ...copy.querySelectorAll("*")]) {
    for (const { name } of [...node.attributes]) if (/^(data-|aria-|tabindex|role)/.test(name)) node.removeAttribute(name);
    node.classList.remove("lit", "exact");
  }
  return new XMLSerializer().serializeToString(copy);
}

/** The button that takes a picture away. */
export function exporter(name, find) {
  return button("SVG", () => {
    const svg = find();
    if (!svg) return say("There is no picture to take away yet.", "bad");
    const address = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
    element("a", { href: address, download: `${name}.svg` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    say(`Saved ${name}.svg.`);
  }, { class: "small", "aria-label": `Save ${name} as SVG`, title: "Save as SVG" });
}

/** Rows of boxes with values; `made` gets every box with its index. Returns shapes and the height used. */
export function boxes(name, values, y, width, made = () => {}) {
  const left = 64;
  const size = Math.max(22, 8 + 7.5 * Math.max(1, ...values.map((value) => String(value).length)));
  const inRow = Math.max(1, Math.floor((width - left - 2) / size));
  const parts = [text(left - 8, y + 11, name, "sl-faint", { "text-anchor": "end" })];
  values.forEach((value, k) => {
    const [x, top] = [left + (k % inRow) * size, y + Math.floor(k / inRow) * 24];
    const box = shape("rect", { x, y: top, width: size, height: 22, class: "sl-box" });
    const label = text(x + size / 2, top + 11, value, "sl-text", { "font-size": 11 });
    const both = shape("g", null, box, label);
    made(k, both, box);
    parts.push(both);
  });
  return { parts, height: Math.max(1, Math.ceil(values.length / inRow)) * 24 + 4 };
}

/** A value in few letters. */
export const brief = (value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(3)) : value ?? "");
