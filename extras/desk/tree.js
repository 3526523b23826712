// A tree as an icicle: a row for each layer, a box as wide as the leaves below it. A click opens a node: it takes the
// whole width, and its words, what lies below, and a line to ask it stand underneath.

import { formatNumber, t } from "./texts.js";
import { button, h, link, said, siteOf } from "./dom.js";
import { runCall } from "./run.js";

const LEAST_SHARE = 1 / 800; // of the width: a box below a pixel or two cannot be seen, and thousands would be slow
const NAMED_SHARE = 1 / 30; // a name in less is no word
const MOST_HITS = 40;

/** Draw the tree `layout` (resource `…/layout`) with what the passages of `view` stand on lit. */
export function drawTree(layout, view, door) {
  const tree = new Places(layout);
  const state = { open: null, lit: tree.lit(view), hits: new Set() };
  const pictures = h("div", { class: "pictures" });
  const under = h("div", { class: "under" });
  const found = h("div", { class: "hits" });
  const choices = [chooser(t("tree.only"), t("tree.all"), 0), chooser(t("tree.beside"), t("tree.alone"), 1)];
  const redraw = () => {
    const shown = choices.map((choice) => choice.value).filter((value, place) => value !== "" || place === 0);
    pictures.replaceChildren(...shown.map((value) => icicle(tree, state, value === "" ? null : Number(value), open)));
  };
  const open = (place) => {
    state.open = place;
    redraw();
    under.replaceChildren(drawNode(tree, place, door, open, (asked) => {
      state.lit = tree.lit(asked.view);
      redraw();
    }));
    pictures.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
  };
  const search = (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    const hits = wanted ? tree.nodes.flatMap((node, place) => (`${node.name} ${node.text}`.toLowerCase().includes(wanted) ? [place] : [])) : [];
    state.hits = new Set(hits);
    redraw();
    found.replaceChildren(...(wanted ? [h("p", { class: "quiet" }, t("tree.hits", { n: formatNumber(hits.length) }))] : []),
      ...hits.slice(0, MOST_HITS).map((place) => button(said(tree.nodes[place].name), () => open(place), { class: "small" })));
  };
  function chooser(label, none, place) {
    const options = layout.sources.map((source, number) => h("option", { value: number }, source.title || siteOf(source.url)));
    return h("select", { "aria-label": label, onchange: () => redraw(), hidden: layout.sources.length <= place },
      h("option", { value: "" }, none), options);
  }
  redraw();
  under.replaceChildren(drawNode(tree, null, door, open, (asked) => {
    state.lit = tree.lit(asked.view);
    redraw();
  }));
  return h("div", { class: "tree" },
    h("header", {}, h("h2", {}, t("tree.title", { sources: layout.sources.length, leaves: formatNumber(layout.leaves) })),
      h("div", { class: "row" },
        h("input", { type: "search", "aria-label": t("tree.search"), placeholder: t("tree.search"), oninput: search }),
        choices, button(t("tree.whole"), () => open(null), { class: "small" }))),
    found, pictures, h("p", { class: "quiet" }, t("tree.legend")), under);
}

/** The nodes with what follows from them: parents, layers, what a source holds. */
class Places {
  constructor({ nodes, roots, sources, leaves, tree }) {
    Object.assign(this, { nodes, roots, sources, leaves, handle: tree });
    // Colours show the source: its title before every heading would leave no room for what differs.
    for (const node of nodes) {
      const title = node.documents.length === 1 ? `${sources[node.documents[0]].title}: ` : "";
      if (title && node.name.startsWith(title)) node.name = node.name.slice(title.length);
    }
    this.parents = nodes.map(() => []);
    nodes.forEach((node, place) => node.children.forEach((child) => this.parents[child].push(place)));
    this.layers = [];
    nodes.forEach((node, place) => (this.layers[node.layer] ??= []).push(place));
    this.layers = this.layers.map((layer) => layer.sort((one, other) => nodes[one].begin - nodes[other].begin));
  }

  /** How many leaves of a source stand before each place among all leaves [leaves + 1]; of all for null. */
  ranks(source) {
    const ranks = new Array(this.leaves + 1).fill(0);
    for (const place of this.layers[0] ?? []) {
      const node = this.nodes[place];
      ranks[node.begin + 1] = source === null || node.documents.includes(source) ? 1 : 0;
    }
    for (let place = 1; place < ranks.length; place += 1) ranks[place] += ranks[place - 1];
    return ranks;
  }

  /** The nodes on the way from the roots to what passages quote. */
  lit(view) {
    const way = (this.layers[0] ?? []).filter((place) => {
      const { documents, span } = this.nodes[place];
      const { url } = this.sources[documents[0]];
      return view?.passages?.some((one) => one.start < span[1] && one.end > span[0] && view.pages[one.page].url === url);
    });
    const lit = new Set(way);
    while (way.length) {
      for (const parent of this.parents[way.pop()]) if (!lit.has(parent)) { lit.add(parent); way.push(parent); }
    }
    return lit;
  }

  /** From a root down to a node, by first parents. */
  path(place) {
    const path = [];
    for (let at = place; at !== undefined && at !== null; [at] = this.parents[at]) path.unshift(at);
    return path;
  }
}

/** One picture; `source` null for all. Arrow keys go from box to box, Enter opens. */
function icicle(tree, state, source, open) {
  const ranks = tree.ranks(source);
  const node = state.open === null ? { begin: 0, end: tree.leaves } : tree.nodes[state.open];
  let [low, high] = [ranks[node.begin], ranks[node.end]];
  if (high === low) [low, high] = [0, ranks[tree.leaves]];
  const boxes = new Map();
  const rows = tree.layers.map((layer) => {
    const row = h("div", { class: "layer" });
    for (const place of layer) {
      const { begin, end } = tree.nodes[place];
      const left = Math.max(0, (ranks[begin] - low) / (high - low));
      const right = Math.min(1, (ranks[end] - low) / (high - low));
      if (right - left < LEAST_SHARE) continue;
      boxes.set(place, drawBox(tree, state, place, left, right - left, open));
      row.append(boxes.get(place));
    }
    return row;
  }).reverse();
  const first = boxes.get(state.open) ?? boxes.values().next().value;
  const picture = h("div", { class: "icicle", role: "group", "aria-label": source === null ? t("tree.picture") : tree.sources[source].title,
    onkeydown: (event) => walk(event, tree, boxes) }, rows);
  // One stop for the tab key, which the arrows move.
  first?.setAttribute("tabindex", "0");
  return picture;
}

function drawBox(tree, state, place, left, width, open) {
  const { name, documents } = tree.nodes[place];
  const hue = documents.length === 1 ? Math.round((documents[0] * 137.508) % 360) : "";
  const marks = [["lit", state.lit.has(place)], ["hit", state.hits.has(place)], ["open", state.open === place], ["mixed", hue === ""]];
  return h("button", {
    type: "button", tabindex: "-1", "data-place": place, title: name, "aria-label": name, onclick: () => open(place),
    class: marks.flatMap(([mark, on]) => (on ? [mark] : [])).join(" "),
    style: { "inset-inline-start": `${100 * left}%`, width: `${100 * width}%`, "--hue": hue },
  }, width > NAMED_SHARE && said(name));
}

function walk(event, tree, boxes) {
  const place = Number(event.target.dataset.place);
  const node = tree.nodes[place];
  const row = [...event.target.parentElement.children];
  const at = row.indexOf(event.target);
  const onward = getComputedStyle(event.target).direction === "rtl" ? -1 : 1;
  const box = {
    ArrowLeft: () => row[at - onward],
    ArrowRight: () => row[at + onward],
    ArrowUp: () => boxes.get(tree.parents[place].find((parent) => boxes.has(parent))),
    ArrowDown: () => boxes.get(node.children.find((child) => boxes.has(child))),
  }[event.key]?.();
  if (!box) return;
  event.preventDefault();
  event.target.setAttribute("tabindex", "-1");
  box.setAttribute("tabindex", "0");
  box.focus();
}

/** What a node says, the way to it, what lies below it, and a line to ask it; of the whole tree for null. */
function drawNode(tree, place, door, open, done) {
  const node = place === null ? null : tree.nodes[place];
  const answer = h("div", {});
  const input = h("input", { required: true, "aria-label": t("tree.ask"), placeholder: t("tree.ask") });
  const ask = (event) => {
    event.preventDefault();
    const source = node ? `${tree.handle}#${node.id}` : tree.handle;
    runCall(answer, door, "raptor_query", { question: input.value, sources: [source] }, done);
  };
  const below = node ? node.children : tree.roots;
  return h("section", { "aria-label": node ? node.name : t("tree.whole") },
    node && h("nav", { class: "crumbs", "aria-label": t("tree.path") }, tree.path(place).map((one) =>
      one === place ? said(node.name, "strong") : [button(said(tree.nodes[one].name), () => open(one), { class: "small" }), " › "])),
    node && said(node.text, "p", { class: "words" }),
    node && h("p", { class: "quiet" }, t(node.layer ? "tree.layer" : "tree.leaf", { n: node.layer, leaves: node.end - node.begin }),
      node.documents.slice(0, 5).map((one) => [" · ", link(door, tree.sources[one].url, tree.sources[one].title || siteOf(tree.sources[one].url))])),
    below.length > 0 && h("ul", { class: "below" }, below.map((child) =>
      h("li", {}, button(said(tree.nodes[child].name), () => open(child), { class: "small" })))),
    h("form", { class: "row", onsubmit: ask }, input, h("button", { class: "main" }, t(node ? "tree.ask.below" : "ask"))), answer);
}
