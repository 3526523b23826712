// Models, providers, folders and cache as the server has them, and every part tried once on request. Nothing is changed.

import { t } from "./texts.js";
import { button, h, said } from "./dom.js";
import { drawFailed } from "./run.js";

/** Draw the state of this installation into `region`. */
export async function showHealth(region, door) {
  region.replaceChildren(h("p", { class: "state" }, t("loading")));
  try {
    const lines = (await door.read("winnow://status")).split("\n").map(parted);
    const found = h("div", { "aria-live": "polite" });
    const examine = async () => {
      found.replaceChildren(h("p", { class: "state" }, t("examining")));
      try {
        const { report, healthy } = await door.doctor();
        const rows = Object.entries(report).map(([name, line]) => [name, String(line)]);
        found.replaceChildren(h("h3", {}, t(healthy ? "healthy" : "unhealthy")), drawRows(rows));
      } catch (error) {
        drawFailed(found, error.message, examine);
      }
    };
    region.replaceChildren(h("div", { class: "health" }, h("h2", {}, t("health.title")), drawRows(lines),
      button(t("examine"), examine), found));
  } catch (error) {
    drawFailed(region, error.message, () => showHealth(region, door));
  }
}

function parted(line) {
  const end = line.indexOf(": ");
  return end < 0 ? ["", line] : [line.slice(0, end), line.slice(end + 2)];
}

function drawRows(rows) {
  return h("dl", {}, rows.map(([name, line]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(line)))));
}
