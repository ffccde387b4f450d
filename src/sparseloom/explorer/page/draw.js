// Pictures: colours as in svg.py, arrays as boxes, files.

import { button, element, say, shape } from "./dom.js";

const COLOURS = ["#3b7dd8", "#e08214", "#2a9d6f", "#c0504d", "#8e63b8", "#b8960c", "#1f9eb5", "#d1589a"];
export const colour = (number) => COLOURS[((number % 8) + 8) % 8];
const FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace";
const LOOKS = ["fill", "fill-opacity", "stroke", "stroke-width"];

export const text = (x, y, words, look = "sl-text", anchor = "middle", size = 12) =>
  shape("text", { x, y: y + 4, class: look, "font-size": size, "text-anchor": anchor }, String(words));

export function drawing(width, height, label, parts) {
  const attributes = { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, role: "img", "aria-label": label };
  return shape("svg", attributes, parts);
}

/** The server's SVG as a tree; the page's policy lets no script run. */
export function parsed(source) {
  const tree = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
  tree.querySelectorAll("style, script, foreignObject, a").forEach((node) => node.remove());
  for (const node of tree.querySelectorAll("[data-name]")) {
    node.dataset.names = node.dataset.name;
    node.dataset.pin = "";
  }
  return document.importNode(tree, true);
}

/** A picture as a file that needs no stylesheet. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [svg, ...svg.querySelectorAll("*")].forEach((node, k) => {
    const look = getComputedStyle(node);
    if (node !== svg && node.localName !== "g") for (const name of LOOKS) copies[k].setAttribute(name, look.getPropertyValue(name));
  });
  const paper = getComputedStyle(svg.closest("section")).backgroundColor;
  copy.prepend(shape("rect", { width: "100%", height: "100%", fill: paper }));
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

/** Rows of boxes; `made` gets each with its index. Returns shapes and height. */
export function boxes(name, values, y, width, made = () => {}) {
  const left = 64;
  const size = Math.max(22, 8 + 7.5 * Math.max(1, ...values.map((value) => String(value).length)));
  const inRow = Math.max(1, Math.floor((width - left - 2) / size));
  const parts = [text(left - 8, y + 11, name, "sl-faint", "end")];
  values.forEach((value, k) => {
    const [x, top] = [left + (k % inRow) * size, y + Math.floor(k / inRow) * 24];
    const box = shape("rect", { x, y: top, width: size, height: 22, class: "sl-box" });
    const label = text(x + size / 2, top + 11, value, "sl-text", "middle", 11);
    const both = shape("g", box, label);
    made(k, both, box);
    parts.push(both);
  });
  return { parts, height: Math.max(1, Math.ceil(values.length / inRow)) * 24 + 4 };
}

/** A value in few letters. */
export const brief = (value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(3)) : value ?? "");
