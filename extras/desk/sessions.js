// Lines of research that last: a list to go on from, and one with all that it asked and found.

import { formatNumber, formatTime, t } from "./texts.js";
import { announce, button, h, said, sure } from "./dom.js";
import { drawEvidence, drawExport } from "./evidence.js";
import { drawFailed, runCall } from "./run.js";

const BATCH = 200; // rows that are drawn at once: some screens full

/** Draw the list into `region`; its content stays until the list has come. */
export async function showSessions(region, door) {
  if (!region.querySelector(".sessions")) region.replaceChildren(h("p", { class: "state" }, t("loading")));
  try {
    const sessions = await door.sessions();
    region.replaceChildren(sessions.length ? drawList(region, door, sessions)
      : h("div", { class: "empty" }, h("h2", {}, t("sessions.none")), h("p", {}, t("sessions.hint"))));
  } catch (error) {
    drawFailed(region, error.message, () => showSessions(region, door));
  }
}

function drawList(region, door, sessions) {
  const list = h("ul", { class: "sessions" });
  const count = h("p", { class: "quiet", role: "status" });
  let found = sessions;
  const forget = (session) => {
    sessions = sessions.filter((one) => one !== session);
    found = found.filter((one) => one !== session);
    showCount();
  };
  const draw = (from) => {
    list.append(...found.slice(from, from + BATCH).map((session) => drawRow(region, door, session, forget)));
    showCount();
  };
  const showCount = () => {
    more.hidden = list.children.length >= found.length;
    count.textContent = t("sessions.count", { n: formatNumber(found.length), all: formatNumber(sessions.length) });
  };
  const more = button(t("sessions.more"), () => {
    const last = list.lastElementChild;
    draw(list.children.length);
    last.nextElementSibling.querySelector("button").focus();
  });
  const filter = (event) => {
    const wanted = event.target.value.toLowerCase();
    found = sessions.filter((one) => `${one.name} ${one.question}`.toLowerCase().includes(wanted));
    list.replaceChildren();
    draw(0);
  };
  draw(0);
  return h("div", {}, h("h2", {}, t("sessions.title")),
    h("input", { type: "search", "aria-label": t("filter"), placeholder: t("filter"), oninput: filter }), count, list, more);
}

function drawRow(region, door, session, forget) {
  const title = session.name || session.question;
  const name = h("button", { type: "button", class: "title", onclick: () => openSession(region, door, session.session) }, said(title));
  const change = async (what) => {
    try {
      await door.changeSession({ session: session.session, ...what });
      if (what.remove) {
        row.remove();
        forget(session);
      } else session.name = what.name.trim();
    } catch (error) {
      announce(`${t("failed")}: ${error.message}`, true);
    }
    if (row.isConnected) row.replaceWith(drawRow(region, door, session, forget));
  };
  const rename = () => {
    const input = h("input", { value: title, "aria-label": t("rename"), maxlength: 120 });
    const form = h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); change({ name: input.value }); } },
      input, h("button", {}, t("save")));
    name.replaceWith(form);
    input.select();
  };
  const remove = sure(t("delete"), t("delete.sure"), () => change({ remove: true }));
  const row = h("li", {}, h("div", { class: "grow" }, name,
    h("p", { class: "quiet" }, formatTime(session.asked), " · ",
      t("session.counts", { questions: session.questions, pages: session.pages, passages: session.passages }),
      session.open && h("span", { class: "flag" }, t("session.open")))),
  button(t("rename"), rename, { class: "small" }), remove);
  return row;
}

/** Draw one session: what it asked, what came of it, and a line to ask further. */
async function openSession(region, door, handle) {
  try {
    const session = JSON.parse(await door.read(`${handle}/json`));
    const turns = session.turns.map((turn) => drawTurn(turn, handle, door, region));
    const further = h("div", {});
    const input = h("input", { name: "question", required: true, "aria-label": t("further"), placeholder: t("further") });
    const ask = (event) => {
      event.preventDefault();
      runCall(further, door, "research", { question: input.value, session: handle });
    };
    region.replaceChildren(h("div", { class: "session" },
      button(`← ${t("sessions.title")}`, () => showSessions(region, door), { class: "small" }),
      said(session.name || session.turns[0].question, "h2", { class: "name" }), drawExport(handle, door), turns, further,
      h("form", { class: "row further", onsubmit: ask }, input, h("button", { class: "main" }, t("ask")))));
  } catch (error) {
    drawFailed(region, error.message, () => showSessions(region, door));
  }
}

/** A turn as an answer of evidence: what a session keeps has no scores of single sentences. */
function drawTurn(turn, handle, door, region) {
  const args = { question: turn.question, session: handle };
  const again = (tool, next) => runCall(region, door, tool, next, undefined, () => openSession(region, door, handle));
  if (!turn.parts.length) {
    return h("section", { class: "state" }, said(turn.question, "h3"), h("p", {}, t("session.unanswered")),
      button(t("go.on"), () => again("research", args)));
  }
  const urls = [...new Set(turn.passages.map((one) => one.url))];
  const pages = urls.map((url) => turn.passages.find((one) => one.url === url));
  const passages = turn.passages.map((one) => {
    const page = urls.indexOf(one.url);
    const before = turn.passages.slice(0, turn.passages.indexOf(one)).filter((other) => other.url === one.url).length;
    const label = `${page + 1}${String.fromCharCode(97 + (before % 26))}`;
    return { ...one, label, page, headings: one.heading_path, score: one.score.value, by: one.score.made_by, summary: one.is_summary };
  });
  const order = ["none", "unsure", "answered"];
  const verdict = order[Math.min(...turn.parts.map((part) => order.indexOf(part.verdict)))];
  const parts = turn.parts.length > 1 ? turn.parts : [];
  const next = turn.open.length ? [{ tool: "research", arguments: args }] : [];
  const data = { verdict, reason: turn.parts[0].reason, parts, queries: turn.queries, failures: turn.open, next };
  const view = { question: turn.question, passages, pages: pages.map((page) => ({ ...page, kept: [] })), max_tokens: 0 };
  return drawEvidence({ tool: "research", args, view, data, text: "" }, door, again);
}
