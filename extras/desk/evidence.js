// The evidence of an answer: verdict, passages as cards by page, what was left out, how to go on.

import { formatNumber, t } from "./texts.js";
import { announce, button, copy, details, freshId, h, link, meter, opensAt, said, siteOf, step, svg } from "./dom.js";

const FORMS = { markdown: "md", html: "html", json: "json", bibtex: "bib", ris: "ris" };

/**
 * Draw an answer with passages.
 * `answer`: {tool, args, view, data, text}; `door`: see door.js; `go(tool, args)`: calls on from here.
 */
export function drawEvidence(answer, door, go) {
  const { view, data } = answer;
  const own = freshId();
  const picks = new Map();
  const bar = h("div", { class: "picks", hidden: true, role: "region", "aria-label": `${t("picked.region")}: ${view.question}` });
  const pick = (passage, page, wanted) => {
    if (wanted) picks.set(passage, page);
    else picks.delete(passage);
    drawPicks(bar, picks, view.question, door);
  };
  const pages = view.pages.map((page, number) =>
    drawPage(page, number, view.passages.filter((passage) => passage.page === number), own, answer, door, go, pick));
  return h("div", { class: "answer" },
    h("header", { class: "asked" },
      said(view.question, "h2"),
      data.verdict && drawVerdict(data)),
    h("div", { class: "columns" },
      h("div", { class: "passages" },
        pages.length ? pages : drawNothing(answer),
        bar),
      drawAside(answer, door, go)));
}

function drawVerdict(data) {
  return h("p", { class: `verdict ${data.verdict}` },
    h("strong", {}, t(`verdict.${data.verdict}`)), " ", h("span", { class: "quiet" }, said(data.reason ?? "")));
}

/** Go to a passage without touching the address, which says which view is shown. */
function jump(event) {
  event.preventDefault();
  const target = document.getElementById(event.currentTarget.hash.slice(1));
  target?.scrollIntoView({ block: "center" });
  target?.focus();
}

function drawNothing(answer) {
  return h("div", { class: "empty" }, h("h3", {}, t("nothing")), h("p", {}, t("nothing.hint")),
    h("pre", { class: "plain" }, said(answer.text)));
}

function drawPage(page, number, passages, own, answer, door, go, pick) {
  const about = [siteOf(page.url), page.author, page.published].filter(Boolean);
  const id = `${own}-page-${number}`;
  const read = () => go("fetch_and_prune_html", { sources: [page.handle || page.url], question: answer.view.question });
  return h("section", { class: "page", "aria-labelledby": id },
    h("div", { class: "page-head" },
      h("span", { class: "number", "aria-hidden": "true" }, number + 1),
      h("div", {},
        h("h3", { id }, link(door, page.url, page.title || siteOf(page.url))),
        h("p", { class: "quiet" }, about.map((one, place) => [place > 0 && " · ", said(one)]))),
      (page.handle || page.url) && button(t("read.whole"), read, { class: "small" })),
    page.strip?.length > 0 && drawStrip(page),
    passages.map((passage) => drawCard(passage, page, own, door, (wanted) => pick(passage, page, wanted))));
}

/** Where on its page what was kept lies, over how near every stretch of it is to the question. */
function drawStrip(page) {
  const places = page.kept.map(([begin]) => `${formatNumber(100 * begin)} %`).join(", ");
  const width = page.strip.length;
  return svg("svg", { class: "strip", viewBox: `0 0 ${width} 10`, preserveAspectRatio: "none", role: "img", "aria-label": t("strip", { places }) },
    page.strip.map((score, cell) => score > 0 && svg("rect", { class: `heat s${step(score)}`, x: cell, y: 3, width: 1, height: 4 })),
    page.kept.map(([begin, end]) =>
      svg("rect", { class: "kept", x: begin * width, y: 0, width: Math.max(0.5, (end - begin) * width), height: 10 })));
}

function drawCard(passage, page, own, door, pick) {
  const text = h("blockquote", {}, passage.before && around(passage.before, "before"), drawWords(passage),
    passage.after && around(passage.after, "after"));
  const fold = button(t("around"), () => {
    const open = text.classList.toggle("open");
    fold.setAttribute("aria-expanded", open);
  }, { class: "small", "aria-expanded": "false" });
  const name = t("passage", { label: passage.label });
  return h("article", { class: "card", id: `${own}-${passage.label}`, tabindex: "-1", "aria-label": name },
    h("header", {},
      h("label", { class: "pick" },
        h("input", { type: "checkbox", onchange: (event) => pick(event.target.checked) }),
        h("span", { class: "label" }, h("span", { class: "unseen" }, `${t("pick")} `), passage.label)),
      said(passage.headings.join(" › "), "span", { class: "path" }),
      passage.summary && h("span", { class: "flag" }, t("summary", { n: passage.sources.length })),
      passage.trust !== "visible" && h("span", { class: "flag" }, t(`trust.${passage.trust}`)),
      passage.injection && h("span", { class: "flag warn" }, t("injection"))),
    text,
    h("footer", {},
      passage.by && h("span", { class: "score", title: t(`by.${passage.by}`) },
        meter(t("score", { n: formatNumber(passage.score, 2) }), passage.score, 1), formatNumber(passage.score, 2)),
      opensAt(door, passage.citation) && link(door, passage.citation, t("open.words"), { class: "small" }),
      (passage.before || passage.after) && fold,
      button(t("copy"), () => copy(cited(passage, page)), { class: "small" }),
      passage.also?.length > 0 && details(t("also", { n: passage.also.length }),
        h("ul", {}, passage.also.map((url) => h("li", {}, link(door, url, siteOf(url))))))));
}

function around(text, place) {
  return said(text, "span", { class: place });
}

/** The words of a passage; each sentence that was scored by itself is underlined as strongly as it scored. */
function drawWords(passage) {
  const words = h("span", { class: "words", dir: "auto" });
  let done = 0;
  for (const [unit, score] of passage.units ?? []) {
    const begin = passage.text.indexOf(unit, done);
    if (begin < 0) continue;
    words.append(passage.text.slice(done, begin),
      h("span", { class: `unit s${step(score)}`, title: t("score", { n: formatNumber(score, 2) }) }, unit));
    done = begin + unit.length;
  }
  words.append(passage.text.slice(done));
  return words;
}

export function cited(passage, page) {
  const about = [page.author, page.title, page.published].filter(Boolean).join(", ");
  return `“${passage.text}”\n— ${about || siteOf(page.url)}. ${passage.citation || page.url}`;
}

function drawPicks(bar, picks, question, door) {
  const text = () => [...picks].map(([passage, page]) => cited(passage, page)).join("\n\n");
  const give = () => attempt(() => door.tellModel(`${question}\n\n${text()}`), t("given"));
  bar.hidden = picks.size === 0;
  bar.replaceChildren(h("span", {}, t("picked", { n: picks.size })),
    button(t("copy"), () => copy(text())),
    door.save ? button(t("save"), () => attempt(() => door.save("winnow.txt", text()))) : "",
    door.tellModel ? button(t("give"), give, { class: "main" }) : "");
}

/** Do what a press asks for, and say how it went: nothing else on the page shows it. */
async function attempt(act, done = "") {
  try {
    await act();
    if (done) announce(done, true);
  } catch (error) {
    announce(`${t("failed")}: ${error.message}`, true);
  }
}

function drawAside(answer, door, go) {
  const { view, data } = answer;
  const used = data.tokens ?? 0;
  const most = Math.max(view.max_tokens || 0, used);
  return h("aside", { "aria-label": `${t("about")}: ${view.question}` },
    used > 0 && h("section", {},
      h("h3", {}, t("budget")),
      view.max_tokens > 0 && meter(t("tokens", { n: formatNumber(used), most: formatNumber(most) }), used, most),
      h("p", { class: "quiet" }, t(view.max_tokens ? "tokens" : "tokens.open", { n: formatNumber(used), most: formatNumber(most) }))),
    drawNext(answer, go),
    data.failures?.length > 0 && details(t("failures", { n: data.failures.length }),
      h("ul", {}, data.failures.map((one) => h("li", {}, said(one.replace(/file:\S*\//g, ""))))),
      { class: "partial", open: data.failures.length < 4 }),
    view.rest?.length > 0 && details(t("rest", { n: formatNumber(view.left_out) }),
      h("ol", { class: "rest" }, view.rest.map((one) =>
        h("li", {}, said(one.text), " ", h("span", { class: "quiet" }, `${formatNumber(one.score, 2)} · `, said(siteOf(one.url))))))),
    data.queries?.length > 0 && details(t("queries", { n: data.queries.length }),
      h("ul", {}, data.queries.map((one) => h("li", {}, said(one))), (data.providers ?? []).map((one) => h("li", { class: "quiet" }, said(one))))),
    data.session && [drawExport(data.session, door), drawFurther(data.session, go)],
    details(t("model"), h("pre", { class: "plain" }, said(answer.text))));
}

export function drawNext(answer, go) {
  // A line of its own asks the tree again.
  const calls = (answer.data.next ?? []).filter(({ arguments: { sources } }) => !String(sources?.[0]).startsWith("winnow://tree/"));
  if (!calls.length) return null;
  return h("section", {}, h("h3", {}, t("next")), h("div", { class: "next" }, calls.map((call) =>
    button(nextLabel(call, answer), () => go(call.tool, { ...fitting(call, answer), ...call.arguments })))));
}

/** Of a call's arguments those stay that the next tool has as well. */
function fitting(call, answer) {
  if (call.tool === answer.tool) return answer.args;
  const { question, sources } = answer.args;
  return { ...(question && { question }), ...(call.tool !== "research" && sources && { sources }) };
}

function nextLabel(call, answer) {
  const { max_tokens: tokens, cursor, session, sources, max_pages: pages } = call.arguments;
  if (tokens) return t("next.tokens", { n: formatNumber(tokens) });
  if (cursor) return t("next.cursor");
  if (pages) return t("next.pages", { n: pages });
  if (call.tool !== answer.tool) return t(`tool.${call.tool}`);
  if (sources) return t("next.rest");
  return t(session ? "next.session" : "next.again");
}

export function drawExport(session, door) {
  const write = (form, use) =>
    attempt(async () => use(await door.read(form === "markdown" ? session : `${session}/${form}`)));
  const choice = h("select", { "aria-label": t("export.form") }, Object.keys(FORMS).map((form) => h("option", { value: form }, form)));
  const name = () => `winnow-${session.split("/").pop()}.${FORMS[choice.value]}`;
  return h("section", {}, h("h3", {}, t("export")), h("div", { class: "row" }, choice,
    door.save && button(t("save"), () => write(choice.value, (text) => door.save(name(), text))),
    button(t("copy"), () => write(choice.value, copy))));
}

/** A line to ask further within a session. */
function drawFurther(session, go) {
  const input = h("input", { required: true, "aria-label": t("further"), placeholder: t("further") });
  const ask = (event) => {
    event.preventDefault();
    go("research", { question: input.value, session });
  };
  return h("form", { class: "row further", onsubmit: ask }, input, h("button", { class: "main" }, t("ask")));
}
