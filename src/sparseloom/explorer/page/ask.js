// The only module that talks to the server.

const LIMITS = { run: 90, time: 90, compare: 150, plan: 30 };
const lanes = new Map();

const failure = (text, help) => ({ ok: false, error: { text, help, where: "server" } });

async function answered(response) {
  try {
    const answer = await response.json();
    if (typeof answer?.ok === "boolean") return answer;
  } catch (error) {
    if (error.name === "AbortError" || error.name === "TimeoutError") throw error;
  }
  return failure(`The server's answer cannot be read (status ${response.status}).`, "Reload the page; if this stays, start `sparseloom explore` again.");
}

/** The answer, maybe an error; null if a newer request of the same lane replaced this one. */
export async function ask(request, lane = request.ask) {
  lanes.get(lane)?.abort();
  const control = new AbortController();
  lanes.set(lane, control);
  const limit = LIMITS[request.ask] ?? 20;
  try {
    const signal = AbortSignal.any([control.signal, AbortSignal.timeout(1000 * limit)]);
    const headers = { "Content-Type": "application/json" };
    const answer = await answered(await fetch("ask", { method: "POST", headers, body: JSON.stringify(request), signal }));
    return control.signal.aborted ? null : answer;
  } catch (error) {
    if (control.signal.aborted) return null;
    if (error.name === "TimeoutError") return failure(`No answer within ${limit} seconds.`, "Make the problem smaller, or try again.");
    return failure("The server does not answer.", "Start `sparseloom explore` again and open its address; the state of this page is kept in this page's address.");
  } finally {
    if (lanes.get(lane) === control) lanes.delete(lane);
  }
}
