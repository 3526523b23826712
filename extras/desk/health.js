// Models by role, the cache, clients, every setting, and every part tried once on request. What can be changed from here
// is what `winnow cache clear` and `winnow install` change, and only after it was shown.

import { formatNumber, t } from "./texts.js";
import { announce, button, details, h, meter, said, sure } from "./dom.js";
import { drawFailed } from "./run.js";

/** Draw the state of this installation into `region`. */
export async function showHealth(region, door) {
  region.replaceChildren(h("p", { class: "state" }, t("loading")));
  try {
    const [health, status] = await Promise.all([door.health(), door.read("winnow://status")]);
    const roles = health.models.map((one) => one.role);
    const lines = status.split("\n").map(parted).filter(([name]) => !roles.includes(name) && !name.startsWith("cache "));
    region.replaceChildren(h("div", { class: "health" }, h("h2", {}, t("health.title")),
      drawExamined(door, lines),
      part("models", drawRows(health.models.map(({ role, line }) => [role, line])), h("p", { class: "quiet" }, t("models.hint"))),
      drawCache(health.cache, door),
      part("clients", h("p", { class: "quiet" }, t("clients.hint")), drawClients(health.clients, door)),
      drawSettings(health.settings)));
  } catch (error) {
    drawFailed(region, error.message, () => showHealth(region, door));
  }
}

function part(name, ...content) {
  return h("section", { "aria-label": t(name) }, h("h3", {}, t(name)), content);
}

function parted(line) {
  const end = line.indexOf(": ");
  return end < 0 ? ["", line] : [line.slice(0, end), line.slice(end + 2)];
}

function drawRows(rows) {
  return h("dl", {}, rows.map(([name, line]) => h("div", {}, h("dt", {}, name), h("dd", {}, said(line)))));
}

/** What the server says of itself, in whose place the doctor's report comes. */
function drawExamined(door, lines) {
  const found = h("div", { "aria-live": "polite" }, drawRows(lines));
  const examine = async () => {
    found.replaceChildren(h("p", { class: "state" }, t("examining")));
    try {
      const { checks } = await door.doctor();
      const healthy = checks.every((check) => check.healthy);
      const rows = checks.map((check) => [`${check.healthy ? "✓" : "✗"} ${check.name}`, check.line]);
      found.replaceChildren(h("p", { class: healthy ? "healthy" : "unhealthy" }, t(healthy ? "healthy" : "unhealthy")), drawRows(rows));
    } catch (error) {
      drawFailed(found, error.message, examine);
    }
  };
  return h("section", { "aria-label": t("parts") }, h("div", { class: "row" }, h("h3", {}, t("parts")), button(t("examine"), examine)), found);
}

function drawCache(cache, door) {
  const section = part("cache");
  const draw = ({ place, limit, kinds }) => {
    const used = kinds.reduce((sum, one) => sum + one.bytes, 0);
    const most = t("cache.used", { n: megabytes(used), most: megabytes(limit) });
    const clear = async (kind) => {
      try {
        const { cleared } = await door.clearCache(kind);
        announce(t("cache.cleared", { n: formatNumber(cleared) }), true);
        draw((await door.health()).cache);
      } catch (error) {
        drawFailed(section, error.message, async () => draw((await door.health()).cache));
      }
    };
    section.replaceChildren(h("h3", {}, t("cache")), h("p", { class: "quiet" }, said(place)), meter(most, used, limit), h("p", {}, most),
      h("ul", { class: "stores" }, kinds.map((one) => h("li", {},
        h("div", { class: "grow" }, h("strong", {}, t(`cache.${one.kind}`)), " ",
          h("span", { class: "quiet" }, t("cache.holds", { n: formatNumber(one.entries), size: megabytes(one.bytes) })),
          one.trouble && h("p", { class: "trouble" }, said(one.trouble))),
        one.entries > 0 && sure(t("cache.clear"), t("cache.sure"), () => clear(one.kind), { "aria-label": `${t("cache.clear")}: ${t(`cache.${one.kind}`)}` })))),
      h("p", {}, sure(t("cache.all"), t("cache.sure"), () => clear(""))));
  };
  draw(cache);
  return section;
}

function megabytes(bytes) {
  return `${formatNumber(bytes / 1e6, 1)} MB`;
}

/** Those that have Winnow, and the others folded away. */
function drawClients(clients, door) {
  const list = (some) => h("ul", { class: "clients" }, some.map((one) => drawClient(one, door)));
  const [having, others] = [clients.filter((one) => one.state), clients.filter((one) => !one.state)];
  return [having.length > 0 && list(having), details(t("clients.others", { n: others.length }), list(others))];
}

/** A client with what putting Winnow in, or taking it out, would change; that is written once a person has seen it. */
function drawClient(client, door) {
  const row = h("li", {});
  const draw = (state, note = "") => {
    const look = async (undo) => {
      const shown = h("div", { class: "change" });
      row.querySelector(".change")?.remove();
      row.append(shown);
      try {
        const { shown: change } = await door.changeClient({ client: client.client, undo });
        const write = async () => {
          try {
            const { done, after, shown: other } = await door.changeClient({ client: client.client, undo, shown: change });
            if (done) draw(undo ? "" : "ready", undo ? t("client.out") : after);
            else drawFailed(shown, other ? t("client.changed") : t("client.same"), () => look(undo));
          } catch (error) {
            drawFailed(shown, error.message);
          }
        };
        if (!change) shown.replaceChildren(h("p", { class: "quiet" }, t("client.same")));
        else {
          shown.replaceChildren(h("pre", { class: "plain", tabindex: "0", "aria-label": t("client.change") }, said(change)),
            h("div", { class: "row" }, button(t("client.write"), write, { class: "main" }), button(t("cancel"), () => shown.remove())));
        }
      } catch (error) {
        drawFailed(shown, error.message);
      }
    };
    row.replaceChildren(
      h("div", { class: "grow" }, h("strong", {}, client.client), " ", state && h("span", { class: "flag" }, said(state)),
        h("p", { class: "quiet" }, said(note || client.path))),
      button(t("client.in"), () => look(false), { class: "small", "aria-label": `${t("client.in")}: ${client.client}` }),
      state && button(t("client.undo"), () => look(true), { class: "small", "aria-label": `${t("client.undo")}: ${client.client}` }));
  };
  draw(client.state);
  return row;
}

/** Those that differ from their defaults, and the others folded away; they are read where Winnow is started. */
function drawSettings(settings) {
  const row = ({ name, value, help }) => h("div", {},
    h("dt", {}, h("code", {}, name)), h("dd", {}, said(value || "–"), h("p", { class: "quiet" }, help)));
  const own = settings.filter((one) => !one.usual);
  const usual = settings.filter((one) => one.usual);
  return part("settings", h("p", { class: "quiet" }, t("settings.hint")), own.length > 0 && h("dl", {}, own.map(row)),
    details(t("settings.usual", { n: usual.length }), h("dl", {}, usual.map(row))));
}
