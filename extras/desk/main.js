// The page: its views, and the door by which it reaches the server.

import { chooseLanguage, listLanguages, t } from "./texts.js";
import { button, h, said } from "./dom.js";
import { HostDoor, LocalDoor } from "./door.js";
import { answerOf, callOn, drawAnswer, drawCancelled, drawFailed, runCall } from "./run.js";

const VIEWS = ["ask", "read", "tree"];
const TOOLS = { ask: ["research", "extract_relevant"], read: ["fetch_and_prune_html"], tree: ["raptor_query"] };

/** The desk with all its views, as a page of its own. */
function openDesk() {
  const door = new LocalDoor();
  const regions = Object.fromEntries(VIEWS.map((name) => [name, h("div", { class: "region" })]));
  const forms = Object.fromEntries(Object.keys(TOOLS).map((name) => [name, drawForm(name, regions[name], door)]));
  const sections = VIEWS.map((name) =>
    h("section", { id: name, "aria-label": t(`view.${name}`), hidden: true }, forms[name], regions[name]));
  const tabs = VIEWS.map((name) => h("a", { href: `#${name}` }, t(`view.${name}`)));
  door.regionFor = (tool) => {
    const name = Object.keys(TOOLS).find((one) => TOOLS[one].includes(tool));
    if (name) location.hash = name;
    return regions[name];
  };
  const show = () => {
    const name = VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "ask";
    sections.forEach((section) => { section.hidden = section.id !== name; });
    tabs.forEach((tab) => (tab.hash === `#${name}` ? tab.setAttribute("aria-current", "page") : tab.removeAttribute("aria-current")));
    document.title = `${t(`view.${name}`)} · Winnow`;
  };
  document.body.replaceChildren(
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, t("skip")),
    h("header", { class: "top" }, h("h1", {}, "Winnow"), h("nav", { "aria-label": t("views") }, tabs), drawChoices()));
  const main = h("main", { id: "main", tabindex: "-1" }, sections);
  document.body.append(main);
  window.addEventListener("hashchange", show);
  show();
}

function drawChoices() {
  const language = h("select", { "aria-label": t("language.label"), onchange: () => { keep("language", language.value); location.reload(); } },
    listLanguages().map(([code, name]) => h("option", { value: code, selected: code === document.documentElement.lang, lang: code }, name)));
  const theme = button("◐", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark") && isDark();
    keep("theme", dark ? "light" : "dark");
    setTheme(dark ? "light" : "dark");
  }, { "aria-label": t("theme"), class: "small" });
  return h("div", { class: "choices" }, language, theme);
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
}

/** What a person chose stays in this browser; a frame of a host may have no place for it. */
function keep(name, value) {
  try {
    localStorage.setItem(`winnow.${name}`, value);
  } catch { /* then it holds until the page is closed */ }
}

function kept(name) {
  try {
    return localStorage.getItem(`winnow.${name}`);
  } catch {
    return null;
  }
}

/** The line to ask with; in the first view sources are optional and choose the tool. */
function drawForm(view, region, door) {
  const question = h("textarea", { rows: 2, maxlength: 2000, required: view !== "read", "aria-label": t(`${view}.question`), placeholder: t(`${view}.question`) });
  const sources = h("textarea", { rows: 1, required: view !== "ask", "aria-label": t("sources"), placeholder: t(`${view}.sources`) });
  const tokens = h("input", { type: "number", min: 200, max: 20000, step: 100, "aria-label": t("max_tokens"), placeholder: t("max_tokens") });
  const submit = (event) => {
    event.preventDefault();
    const named = sources.value.split("\n").map((line) => line.trim()).filter(Boolean);
    const tool = TOOLS[view][named.length && view === "ask" ? 1 : 0];
    const args = { question: question.value.trim(), ...(named.length && { sources: named }), ...(tokens.value && { max_tokens: Number(tokens.value) }) };
    runCall(region, door, tool, args);
  };
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  const form = h("form", { class: "ask", onsubmit: submit }, question,
    h("div", { class: "row" }, sources, tokens, h("button", { class: "main" }, t(`${view}.do`))));
  return form;
}

/** The same page inside a client: it draws the answer that the client has, and calls on through the client. */
async function openApp() {
  const region = h("div", {}, h("p", { class: "state" }, t("waiting")));
  document.body.replaceChildren(h("main", { class: "app" }, h("h1", { class: "unseen" }, "Winnow"), region));
  let args = {};
  let called = "";
  const tool = () => door.context.toolInfo?.tool?.name || called;
  const again = (next, nextArgs) => callOn(region, door, tool())(next, nextArgs);
  const door = new HostDoor({
    context({ theme, locale, styles }) {
      if (theme) setTheme(theme);
      if (locale) document.documentElement.lang = chooseLanguage([locale]);
      for (const [name, value] of Object.entries(styles?.variables ?? {})) document.documentElement.style.setProperty(name, value);
    },
    "tool-input": (params) => {
      args = params.arguments ?? {};
      region.replaceChildren(h("div", { class: "state running" },
        h("h2", {}, h("span", { class: "spinner", "aria-hidden": "true" }), t("running"), " ", said(args.question ?? ""))));
    },
    async "tool-result"(result) {
      const named = result._meta?.["winnow/tool"];
      called = named ?? called;
      const draw = (one) => drawAnswer(region, door, answerOf(tool(), args, one), again);
      draw(result);
      // A host that shows apps without having said so was sent the text alone; the same call comes from the cache.
      if (!named || result._meta["winnow/view"] || !door.can.serverTools) return;
      const drawn = await door.call(named, args).catch(() => null);
      if (drawn?._meta?.["winnow/view"]) draw(drawn);
    },
    "tool-cancelled": ({ reason }) => drawCancelled(region, reason ?? "", tool() && (() => again(tool(), args))),
  });
  try {
    await door.connect();
  } catch (error) {
    drawFailed(region, error.message);
  }
}

document.documentElement.lang = chooseLanguage([kept("language"), ...navigator.languages].filter(Boolean));
if (kept("theme")) setTheme(kept("theme"));
if (window.parent === window) openDesk();
else openApp();
