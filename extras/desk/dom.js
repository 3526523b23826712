// Making elements. Words of pages become text nodes and nothing else: there is no way here to make markup of a string.

import { t } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "htmlFor", "selected"]);

/** Make an element; `props` are attributes, properties, `on…` listeners and a `style` of custom values. */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function button(label, onclick, props = {}) {
  return h("button", { type: "button", onclick, ...props }, label);
}

/** Text of a page: in its own direction, which ends where it ends. */
export function said(text, tag = "bdi", props = {}) {
  return h(tag, { dir: "auto", ...props }, text);
}

/** Where a browser opens an address from here; nothing for a file without a way to it. */
export function opensAt(door, url) {
  return /^https?:\/\//i.test(url) ? url : door.fileAt?.(url);
}

/** A link to a page of the web or a file; the place of one that does not open from here as text. */
export function link(door, url, text, props = {}) {
  const href = opensAt(door, url);
  if (!href) return said(text, "span", { ...props, title: placeOf(url) });
  const open = door.open && ((event) => { event.preventDefault(); door.open(url); });
  return said(text, "a", { ...props, href, target: "_blank", rel: "noopener noreferrer nofollow", onclick: open });
}

/** What a person calls the place of a page: the host, or a file's name. */
export function siteOf(url) {
  try {
    const { protocol, hostname, pathname } = new URL(url);
    return protocol === "file:" ? decodeURIComponent(pathname.split("/").pop()) : hostname.replace(/^www\./, "");
  } catch {
    return url;
  }
}

function placeOf(url) {
  try {
    return decodeURIComponent(url.replace(/^file:\/\//, "").replace(/#:~:.*/, ""));
  } catch {
    return url;
  }
}

export function meter(label, value, most) {
  const share = Math.max(0, Math.min(1, value / most));
  return h("div", { class: "meter", role: "img", "aria-label": label }, h("i", { style: { "--share": `${100 * share}%` } }));
}

/** One of five steps for a score of 0 to 1. */
export function step(score) {
  return Math.max(0, Math.min(4, Math.floor(score * 5)));
}

export function details(summary, content, props = {}) {
  return h("details", props, h("summary", {}, summary), content);
}

let serial = 0;

/** A beginning for the ids of one drawing, since several may stand on the page. */
export function freshId() {
  serial += 1;
  return `d${serial}`;
}

const liveRegion = h("div", { class: "unseen", role: "status" });
const SEEN_MS = 5000;
let gone;

/** Tell a screen reader; with `seen`, everyone, for some seconds at the lower edge. */
export function announce(text, seen = false) {
  if (!liveRegion.isConnected) document.body.append(liveRegion);
  liveRegion.className = seen ? "toast" : "unseen";
  liveRegion.textContent = text;
  clearTimeout(gone);
  if (seen) gone = setTimeout(() => { liveRegion.className = "unseen"; }, SEEN_MS);
}

/** Copy a text, by the older way where a frame has no clipboard. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a frame without the permission
    const area = h("textarea", { class: "unseen", "aria-hidden": "true", value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  announce(t("copied"), true);
}

/** Let a person save a text as a file. */
export function save(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
