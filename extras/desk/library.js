// What the desk opens with: who is searched, the documents of each folder, and questions to try.

import { formatNumber, t } from "./texts.js";
import { button, details, h, said } from "./dom.js";

/** Draw it into `region` where nothing else is there; `ask(question)` asks. */
export async function showLibrary(region, door, ask) {
  const library = await door.library().catch(() => null); // the views say what is wrong with the server
  if (!library || region.childNodes.length) return;
  const { web, folders, warnings, questions } = library;
  const places = [...(web.length ? [t("library.web", { names: web.join(", ") })] : []), ...folders.map((one) => one.path)];
  const all = questions.length ? questions.map(question) : folders.length || !web.length ? [] : [1, 2, 3].map((n) => t(`library.try.${n}`));
  region.replaceChildren(h("div", { class: "library" },
    h("h2", {}, t("library.searched")),
    places.length ? h("ul", {}, places.map((one) => h("li", {}, said(one)))) : h("p", {}, t("library.none")),
    warnings.map((one) => h("p", { class: "trouble" }, said(one))),
    all.length > 0 && [h("h2", {}, t("library.try")),
      h("ul", { class: "try" }, all.map((one) => h("li", {}, button(said(one), () => ask(one)))))],
    folders.map(drawFolder)));
}

function question({ title, heading, asks }) {
  return asks ? heading : t("library.about", { title, heading });
}

function drawFolder({ path, count, documents }) {
  const rows = documents.map(({ name, title }) => h("li", {}, said(title), " ", h("span", { class: "quiet" }, said(name))));
  const more = count > documents.length && h("p", { class: "quiet" }, t("library.more", { n: formatNumber(count - documents.length) }));
  return details(h("span", {}, t("library.documents", { n: formatNumber(count) }), " ", h("span", { class: "quiet" }, said(path))), [h("ul", {}, rows), more]);
}
