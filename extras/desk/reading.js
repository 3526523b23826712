// A page cleaned: kept blocks are highlighted, pruned ones dimmed, beside the block tree; scores where one looks.

import { formatNumber, t } from "./texts.js";
import { freshId, h, link, said, siteOf, step } from "./dom.js";
import { drawNext } from "./evidence.js";

/** Draw pages as blocks; `answer` as in evidence.js. */
export function drawReading(answer, door, go) {
  const { view } = answer;
  return h("div", { class: "answer" },
    h("header", { class: "asked" }, said(view.question || t("read.title"), "h2"),
      h("p", { class: "quiet" }, t("read.legend"))),
    answer.data.failures?.length > 0 && h("ul", { class: "partial" }, answer.data.failures.map((one) => h("li", {}, said(one)))),
    view.pages.map((page) => drawPageBlocks(page, view.by, door)),
    drawNext(answer, go));
}

function drawPageBlocks(page, by, door) {
  const shown = h("output", { class: "shown quiet" }, t("read.hover"));
  const show = (place) => {
    const block = page.blocks[place];
    const score = block.score === null ? t("unscored") : t("scored", { n: formatNumber(block.score, 2), by: t(`by.${by}`) });
    shown.replaceChildren(h("code", {}, block.path), ` · ${t(block.kept ? "kept" : "pruned")} · ${score}`);
  };
  const blocks = page.blocks.map(drawBlock);
  const id = freshId();
  const find = (event) => event.target.closest?.("[data-block]")?.dataset.block;
  const onlook = (event) => find(event) !== undefined && show(Number(find(event)));
  const go = (place) => {
    const block = blocks[place];
    block.scrollIntoView({ block: "center" });
    block.focus({ preventScroll: true });
    show(place);
  };
  const kept = page.blocks.filter((block) => block.kept).length;
  const first = blocks[page.blocks.findIndex((block) => block.kept)];
  const text = h("div", { class: "blocks", role: "region", "aria-label": t("read.text"), tabindex: "0", onpointerover: onlook, onfocusin: onlook },
    blocks, page.more > 0 && h("p", { class: "quiet" }, t("read.more", { n: page.more })));
  // Menus come before what was kept; once it is laid out, the text begins there.
  requestAnimationFrame(() => { if (first) text.scrollTop = first.offsetTop - text.offsetTop - 60; });
  const about = [siteOf(page.url), page.author, page.published].filter(Boolean);
  return h("section", { class: "reading", "aria-labelledby": id },
    h("h3", { id }, link(door, page.url, page.title || siteOf(page.url))),
    h("p", { class: "quiet" }, about.map((one) => [said(one), " · "]), t("read.kept", { n: kept, all: page.blocks.length + page.more })),
    shown,
    h("div", { class: "split" },
      h("nav", { class: "outline", "aria-label": t("blocks"), tabindex: "0" }, drawOutline(page.blocks, go)),
      text));
}

function drawBlock(block, place) {
  const kind = { heading: "h4", code: "pre" }[block.kind] ?? "p";
  const score = block.score === null ? "" : ` s${step(block.score)}`;
  const state = `${block.kept ? "kept" : "pruned"}${block.main ? "" : " aside"} ${block.kind}${score}`;
  return said(block.text, kind, { class: `block ${state}`, "data-block": place, tabindex: "-1" });
}

/** The block tree: names of elements with how many of their blocks are kept; branches are drawn when they open. */
function drawOutline(blocks, go) {
  const root = { name: "", children: new Map(), places: [] };
  blocks.forEach((block, place) => {
    let node = root;
    for (const name of block.path.split("/")) {
      if (!node.children.has(name)) node.children.set(name, { name, children: new Map(), places: [] });
      node = node.children.get(name);
      node.places.push(place);
    }
    node.leaf = place;
  });
  return drawBranches(root, blocks, go, 0);
}

function drawBranches(node, blocks, go, depth) {
  return h("ul", {}, [...node.children.values()].map((child) => {
    // A chain of elements that hold one element each is one line.
    let name = child.name;
    while (child.children.size === 1 && child.leaf === undefined) {
      [child] = child.children.values();
      name += `/${child.name}`;
    }
    if (child.children.size === 0) {
      const block = blocks[child.leaf];
      return h("li", { class: "leaf" }, h("button", { type: "button", class: block.kept ? "kept" : "pruned", onclick: () => go(child.leaf) },
        h("code", {}, name), " ", said(block.text.slice(0, 60))));
    }
    const kept = child.places.filter((place) => blocks[place].kept).length;
    // At the click, by which a key opens too: `toggle` comes a task later, and the tree would grow under the pointer.
    const grow = () => branch.children.length === 1 && branch.append(drawBranches(child, blocks, go, depth + 1));
    const branch = h("details", { open: depth < 2 && kept > 0 },
      h("summary", { class: kept ? "kept" : "pruned", onclick: grow },
        h("code", {}, name), h("span", { class: "quiet" }, ` ${kept}/${child.places.length}`)));
    if (branch.open) grow();
    return h("li", {}, branch);
  }));
}
