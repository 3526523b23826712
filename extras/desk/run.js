// One call from its beginning to its end in one region of the page: running, drawn, failed, cancelled.

import { t } from "./texts.js";
import { announce, button, h, said } from "./dom.js";
import { drawEvidence } from "./evidence.js";
import { drawReading } from "./reading.js";

/** Take a result apart; `data` and `view` are what the server adds to the text, `view` for this page alone. */
export function answerOf(tool, args, result) {
  const text = (result.content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n");
  return { tool, args, text, data: result._meta?.["winnow/result"] ?? {}, view: result._meta?.["winnow/view"], error: result.isError === true };
}

/** Return the function that calls on from what `tool` has drawn in `region`, in the view of the next tool or with a way back. */
export function callOn(region, door, tool, done) {
  return (next, args) => {
    const place = (next !== tool && door.regionFor?.(next)) || region;
    const before = place === region && next !== tool ? [...region.childNodes] : null;
    return runCall(place, door, next, args, done, before && (() => region.replaceChildren(...before)));
  };
}

/**
 * Call a tool and draw what becomes of it into `region`; `done(answer)` is called with an answer, `back()` brings back
 * what another tool had drawn there.
 */
export async function runCall(region, door, tool, args, done = () => {}, back = null) {
  const again = callOn(region, door, tool, done);
  const control = new AbortController();
  const lines = h("ol", { class: "progress", "aria-live": "polite" });
  let session = args.session;
  const stop = button(t(session ? "pause" : "cancel"), () => control.abort(new DOMException("", "AbortError")));
  const onProgress = ({ message, progress, total }) => {
    if (!message) return;
    if (message.startsWith("winnow://session/")) {
      // What is read from here on is kept, so that stopping is no more than a pause.
      session = message;
      stop.textContent = t("pause");
    } else lines.append(h("li", {}, said(message), total ? h("span", { class: "quiet" }, ` ${Math.round((100 * progress) / total)} %`) : ""));
  };
  region.setAttribute("aria-busy", "true");
  region.replaceChildren(h("div", { class: "state running" },
    h("h2", {}, h("span", { class: "spinner", "aria-hidden": "true" }), t("running"), " ", said(args.question || (args.sources ?? []).join(", "))),
    stop, lines));
  try {
    const answer = answerOf(tool, args, await door.call(tool, args, { signal: control.signal, onProgress }));
    drawAnswer(region, door, answer, again);
    if (back) region.prepend(button(`← ${t("back")}`, back, { class: "small" }));
    if (!answer.error) done(answer);
  } catch (error) {
    if (control.signal.aborted) drawCancelled(region, "", () => again(tool, session ? { ...args, session } : args), session);
    else drawFailed(region, error.message, () => again(tool, args));
  } finally {
    region.removeAttribute("aria-busy");
  }
}

/** Draw an answer of any tool; `go(tool, args)` calls on. */
export function drawAnswer(region, door, answer, go) {
  const { view, text, error } = answer;
  if (error) return drawFailed(region, text, answer.tool && (() => go(answer.tool, answer.args)));
  const draw = { evidence: drawEvidence, reading: drawReading }[view?.kind] ?? drawPlain;
  region.replaceChildren(draw(answer, door, go));
  announce(t("ready"));
}

function drawPlain(answer) {
  return h("pre", { class: "plain" }, said(answer.text));
}

export function drawFailed(region, message, again) {
  region.replaceChildren(h("div", { class: "state failed", role: "alert" },
    h("h2", {}, t("failed")), h("p", {}, said(message)), again && button(t("again"), again)));
}

/** Draw that a call was stopped; with a session it goes on from where it was. */
export function drawCancelled(region, reason, again, session = "") {
  const hint = session ? t("paused.hint") : t("cancelled.hint");
  region.replaceChildren(h("div", { class: "state cancelled", role: "alert" }, h("h2", {}, t(session ? "paused" : "cancelled")),
    h("p", {}, reason ? said(reason) : hint), again && button(t(session ? "go.on" : "again"), again)));
}
