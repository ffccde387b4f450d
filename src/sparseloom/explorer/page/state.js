// The user's statement, formats and steps: changed here only, kept in the address, undoable.

const FIRST = { statement: "y(i) = A(i,j) * x(j)", formats: { A: "csr" }, steps: [], target: "c", sizes: {} };
const TOGETHER = 1200; // Milliseconds in which changes of one field are taken back together.

let count = 0;
let current = read(FIRST);
let past = [];
let future = [];
let last = { key: null, at: 0 };
const listeners = [];

/** A state from outside, reduced to what the page can show. */
function read(given) {
  const text = (value, otherwise) => (typeof value === "string" ? value : otherwise);
  const object = (value) => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
  const steps = (Array.isArray(given.steps) ? given.steps : []).map((step) => (typeof step === "string" ? { text: step } : object(step)));
  const state = {
    statement: text(given.statement, FIRST.statement),
    formats: Object.fromEntries(Object.entries(object(given.formats)).filter(([, format]) => typeof format === "string")),
    steps: steps.filter((step) => typeof step.text === "string").map((step) => ({ id: ++count, text: step.text, on: step.on !== false })),
    target: given.target === "cuda" ? "cuda" : "c",
    sizes: Object.fromEntries(Object.entries(object(given.sizes)).filter(([, size]) => Number.isInteger(size))),
  };
  for (const name of ["density", "seed"]) if (Number.isFinite(given[name])) state[name] = given[name];
  if (typeof given.semiring === "string") state.semiring = given.semiring;
  return state;
}

export const state = () => current;
export const newStep = (text) => ({ id: ++count, text, on: true });
export const onchange = (listener) => listeners.push(listener);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;

/** The state without empty steps and without formats of tensors that are gone. */
export function plain(of = current) {
  const words = new Set(of.statement.match(/[A-Za-z_]\w*/g));
  const formats = Object.fromEntries(Object.entries(of.formats).filter(([name, format]) => words.has(name) && format.trim()));
  const steps = of.steps.filter((step) => step.text.trim()).map(({ text, on }) => ({ text, on }));
  return { ...of, formats, steps };
}

/** The problem: everything but the steps. */
export const problem = (of = current) => JSON.stringify(plain({ ...of, steps: [] }));

function told(why) {
  const address = `#s=${encodeURIComponent(JSON.stringify(plain()))}`;
  if (location.hash !== address) history.replaceState(null, "", address);
  listeners.forEach((listener) => listener(why));
}

/** Change some of the state. Quick changes with one `key` are one undo step. */
export function change(part, key = null) {
  const now = Date.now();
  if (!(key && key === last.key && now - last.at < TOGETHER)) past.push(current);
  last = { key, at: now };
  future = [];
  current = { ...current, ...part };
  told(key ?? "change");
}

export function replaceAll(given) {
  past.push(current);
  future = [];
  last = { key: null, at: 0 };
  current = read(given);
  told("all");
}

export function undo() {
  if (!past.length) return;
  future.push(current);
  current = past.pop();
  last = { key: null, at: 0 };
  told("all");
}

export function redo() {
  if (!future.length) return;
  past.push(current);
  current = future.pop();
  told("all");
}

/** The state in the address, or a text that says what is wrong with it. */
function fromAddress() {
  if (!location.hash.startsWith("#s=")) return null;
  try {
    return read(JSON.parse(decodeURIComponent(location.hash.slice(3))));
  } catch {
    return "The state in the address cannot be read: it is cut off or was changed. The page shows what it had before.";
  }
}

/** Take over the address, at the start (no undo) or when it changed. */
export function restore(first = false) {
  const found = fromAddress();
  if (typeof found === "string") return found;
  if (found && JSON.stringify(plain(found)) !== JSON.stringify(plain())) {
    if (!first) past.push(current);
    current = found;
    if (!first) told("all");
  }
  return null;
}
