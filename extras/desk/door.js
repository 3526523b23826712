// The two ways to the server: our own routes on loopback, or the client that shows this page as an MCP App
// (JSON-RPC over postMessage, specification of 2026-01-26). Both carry the same messages of MCP.

import { t } from "./texts.js";
import { save } from "./dom.js";

const PROTOCOL = "2026-01-26";

/** What went wrong, in the server's words. */
export class Failed extends Error {}

/** The desk that `winnow desk` serves. */
export class LocalDoor {
  local = true;

  async call(tool, args, { signal, onProgress } = {}) {
    return this.#events("message", { method: "tools/call", params: { name: tool, arguments: args } }, { signal, onProgress });
  }

  async read(uri) {
    const result = await this.#events("message", { method: "resources/read", params: { uri } });
    return result.contents[0].text;
  }

  async save(name, text) {
    save(name, text);
  }

  /** Where our server shows a file of the person's folders, at the page or words of its address. */
  fileAt(url) {
    const [file, place] = url.split(/#(.*)/s);
    return /^file:/i.test(file) ? `file?url=${encodeURIComponent(file)}${place ? `#${place}` : ""}` : undefined;
  }

  #post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    return this.#fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  }

  async #fetch(path, options = {}) {
    try {
      return await fetch(path, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Failed(t("gone"));
    }
  }

  /** Post, and read server-sent events until the one that ends them. */
  async #events(path, body, { signal, onProgress } = {}) {
    const answer = await this.#post(path, body, signal);
    if (!answer.ok) throw new Failed(await answer.text());
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        if (signal?.aborted) throw error;
        throw new Failed(t("gone"));
      });
      if (done) throw new Failed(t("gone"));
      waiting += value;
      const events = waiting.split("\n\n");
      waiting = events.pop();
      for (const event of events) {
        const [kind, data] = event.split("\n").map((line) => line.slice(line.indexOf(" ") + 1));
        if (kind === "result") return JSON.parse(data);
        if (kind === "error") throw new Failed(JSON.parse(data).message);
        onProgress?.(JSON.parse(data));
      }
    }
  }
}

/** The client around this frame. */
export class HostDoor {
  local = false;
  context = {};
  #next = 1;
  #waiting = new Map();
  #listeners;

  /** `listeners` has a function for each notification that matters, by the last part of its name. */
  constructor(listeners) {
    this.#listeners = listeners;
    window.addEventListener("message", (event) => {
      if (event.source === window.parent && event.data?.jsonrpc === "2.0") this.#take(event.data);
    });
  }

  /** Shake hands; afterwards the host sends what the tool was called with, and its result. */
  async connect() {
    const appInfo = { name: "winnow-desk", title: "Winnow", version: "1" };
    const appCapabilities = { availableDisplayModes: ["inline", "fullscreen"] };
    const answer = await this.#ask("ui/initialize", { protocolVersion: PROTOCOL, appInfo, appCapabilities });
    this.context = answer.hostContext ?? {};
    this.can = answer.hostCapabilities ?? {};
    this.#listeners.context(this.context);
    this.#notify("ui/notifications/initialized", {});
    const resized = () => this.#notify("ui/notifications/size-changed", {
      width: Math.ceil(document.documentElement.getBoundingClientRect().width),
      height: Math.ceil(document.body.getBoundingClientRect().height),
    });
    new ResizeObserver(resized).observe(document.body);
  }

  call(tool, args, { signal, onProgress } = {}) {
    return this.#ask("tools/call", { name: tool, arguments: args, _meta: { "winnow/view": true } }, { signal, onProgress });
  }

  async read(uri) {
    return (await this.#ask("resources/read", { uri })).contents[0].text;
  }

  open(url) {
    this.#ask("ui/open-link", { url }).catch(() => {});
  }

  /** Let a person save a text as a file, where the host can: a frame may not download by itself. */
  get save() {
    return this.can?.downloadFile && (async (name, text) => {
      const resource = { uri: `file:///${name}`, mimeType: "text/plain", text };
      const { isError } = await this.#ask("ui/download-file", { contents: [{ type: "resource", resource }] });
      if (isError) throw new Failed(t("unsaved"));
    });
  }

  /** Put a text before the model, in the place of what was put there before. */
  get tellModel() {
    return this.can?.updateModelContext && ((text) => this.#ask("ui/update-model-context", { content: [{ type: "text", text }] }));
  }

  #ask(method, params, { signal, onProgress } = {}) {
    const id = this.#next++;
    if (onProgress) params = { ...params, _meta: { ...params._meta, progressToken: id } };
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, onProgress });
      signal?.addEventListener("abort", () => {
        this.#notify("notifications/cancelled", { requestId: id });
        this.#waiting.delete(id);
        reject(signal.reason);
      });
      this.#send({ id, method, params });
    });
  }

  #notify(method, params) {
    this.#send({ method, params });
  }

  #send(message) {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  #take({ id, method, params, result, error }) {
    if (method === undefined) {
      const call = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) call?.reject(new Failed(error.message));
      else call?.resolve(result);
    } else if (id !== undefined) {
      this.#send(method === "ping" || method === "ui/resource-teardown"
        ? { id, result: {} }
        : { id, error: { code: -32601, message: "Unknown method" } });
    } else if (method === "notifications/progress") {
      this.#waiting.get(params.progressToken)?.onProgress?.(params);
    } else if (method === "ui/notifications/host-context-changed") {
      Object.assign(this.context, params);
      this.#listeners.context(params);
    } else {
      this.#listeners[method.split("/").pop()]?.(params);
    }
  }
}
