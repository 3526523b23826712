"""The desk inside a client, as an MCP App: drawn from a result, calling on through the host, text
as fallback."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.apps import APP_MIME_TYPE

from server.app import build_server
from server.settings import read_settings
from tests.support import LIBRARY, Connect, Site, data_of, text_of
from tests.support.desk import APPS, NODE, SANDBOX_PAGE, browsing, hosted, violations
from tools.common.view import VIEW_URI

QUESTION = {"question": "How deep is Lake Orvane?", "sources": [str(LIBRARY / "lake-orvane.html")]}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as chromium:
        yield chromium


@pytest.mark.anyio
async def test_every_tool_names_the_desk_and_who_cannot_show_it_gets_the_same_text(
    connect: Connect, cache_folder: Path
) -> None:
    # An answer that runs out of time has read less, and has other scores.
    settings = read_settings(
        {"folders": str(LIBRARY), "cache": str(cache_folder), "seconds": "3600"}, {}
    )
    async with (
        connect(seconds="3600") as plain,
        Client(build_server(settings), extensions=[APPS]) as showing,
    ):
        tools = (await plain.list_tools()).tools
        assert all(tool.meta == {"ui": {"resourceUri": VIEW_URI}} for tool in tools)
        resource = (await plain.read_resource(VIEW_URI)).contents[0]
        assert resource.mime_type == APP_MIME_TYPE
        wanted: Any = {"winnow/view": True}
        bare = await plain.call_tool("extract_relevant", QUESTION)
        drawn = await showing.call_tool("extract_relevant", QUESTION)
        asked = await plain.call_tool("extract_relevant", QUESTION, meta=wanted)
    assert bare.meta is not None
    assert bare.meta["winnow/tool"] == "extract_relevant"
    assert "winnow/view" not in bare.meta
    assert drawn.meta is not None
    assert asked.meta is not None
    assert asked.meta["winnow/view"]["passages"]
    passages = drawn.meta["winnow/view"]["passages"]
    assert all(passage["text"].splitlines()[0] in text_of(bare) for passage in passages)
    assert data_of(bare) == data_of(drawn)


@pytest.mark.slow
def test_a_client_shows_an_answer_and_its_buttons_call_on(browser: Any, cache_folder: Path) -> None:
    with hosted(browser, cache_folder, tool="extract_relevant") as host:
        host.app.get_by_text("Waiting for the answer").wait_for()
        host.report("ui/notifications/tool-input", {"arguments": QUESTION})
        host.app.locator(".running", has_text="How deep").wait_for()
        host.report("ui/notifications/tool-result", host.call("extract_relevant", QUESTION))
        host.app.locator(".card").first.wait_for()
        frame = host.page.frames[1]
        assert frame.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
        assert violations(frame) == []
        # A passage goes before the model, and a further call through the host
        host.app.locator(".card input").first.check()
        host.app.locator(".picks button.main").click()
        host.page.wait_for_function("log.some(m => m.method === 'ui/update-model-context')")
        (given,) = host.sent("ui/update-model-context")
        assert "How deep is Lake Orvane?" in given["params"]["content"][0]["text"]
        host.app.get_by_text("Read the page").first.click()
        host.app.locator(".block.kept").first.wait_for()
        assert host.sent("tools/call")[-1]["params"]["name"] == "fetch_and_prune_html"
        host.app.get_by_role("button", name="Back").click()
        host.app.locator(".card").first.wait_for()
        assert host.sent("ui/notifications/size-changed")


def poisoned(value: Any, attack: str) -> Any:
    """Return a value of JSON with `attack` in every text but those that say which drawing is
    meant."""
    if isinstance(value, dict):
        return {key: one if key == "kind" else poisoned(one, attack) for key, one in value.items()}
    if isinstance(value, list):
        return [poisoned(one, attack) for one in value]
    return f"{attack} {value}" if isinstance(value, str) else value


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["extract_relevant", "fetch_and_prune_html"])
def test_words_of_strangers_are_words_in_every_field_of_an_answer(
    browser: Any, cache_folder: Path, tool: str
) -> None:
    attack = (
        f"javascript:taken=1//<img src=x "
        f"onerror=taken=1></script><script>taken=1</script>\u202e{'wide' * 500}"
    )
    with hosted(browser, cache_folder, tool=tool) as host:
        elsewhere: list[str] = []
        host.page.on("request", lambda request: elsewhere.append(request.url))
        host.report("ui/notifications/tool-input", {"arguments": QUESTION})
        host.report("ui/notifications/tool-result", poisoned(host.call(tool, QUESTION), attack))
        host.app.locator(".card, .block").first.wait_for()
        assert host.app.locator("img, main script, a[href^=javascript]").count() == 0
        frame = host.page.frames[1]
        assert frame.evaluate("window.taken") is None
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert elsewhere == []
        assert violations(frame) == []


@pytest.mark.slow
def test_a_host_that_names_neither_tool_nor_apps_is_drawn_the_same_cards(
    browser: Any, cache_folder: Path
) -> None:
    with hosted(browser, cache_folder, tool="", declared=False) as host:
        host.report("ui/notifications/tool-input", {"arguments": QUESTION})
        host.report("ui/notifications/tool-result", host.call("extract_relevant", QUESTION))
        host.app.locator(".card").first.wait_for()
        (asked,) = host.sent("tools/call")
        assert asked["params"]["name"] == "extract_relevant"
        host.app.get_by_text("Read the page").first.click()
        host.app.locator(".block.kept").first.wait_for()


@pytest.mark.slow
def test_a_cancelled_and_a_failed_call_say_so_and_can_be_repeated(
    browser: Any, cache_folder: Path
) -> None:
    with hosted(browser, cache_folder, tool="extract_relevant") as host:
        host.report("ui/notifications/tool-input", {"arguments": QUESTION})
        host.report("ui/notifications/tool-cancelled", {"reason": "by <b>you</b>"})
        host.app.locator(".cancelled", has_text="by <b>you</b>").wait_for()
        host.app.locator(".cancelled button").click()
        host.app.locator(".card").first.wait_for()
        host.report(
            "ui/notifications/tool-result",
            {"isError": True, "content": [{"type": "text", "text": "no <i>"}]},
        )
        host.app.locator(".failed", has_text="no <i>").wait_for()
        assert violations(host.page.frames[1]) == []


@pytest.mark.slow
def test_the_official_host_side_talks_with_it_through_the_frames_of_a_web_host(
    browser: Any, cache_folder: Path, tmp_path: Path, site: Site
) -> None:
    esbuild = NODE / ".bin" / "esbuild"
    if not (NODE / "@modelcontextprotocol" / "ext-apps").is_dir() or not esbuild.exists():
        pytest.skip("@modelcontextprotocol/ext-apps is not installed (make desk)")
    entry = NODE.parent / "official_host.js"
    entry.write_text(OFFICIAL, encoding="utf-8")
    command = [
        str(esbuild),
        str(entry),
        "--bundle",
        "--format=iife",
        "--platform=browser",
        f"--outfile={tmp_path / 'host.js'}",
    ]
    subprocess.run(command, check=True, capture_output=True)
    script = (tmp_path / "host.js").read_text(encoding="utf-8").replace("</script", "<\\/script")
    frame = (
        '<iframe title="host" sandbox="allow-scripts allow-same-origin" width="900" '
        'height="700"></iframe>'
    )
    site.put("/host", f"<!doctype html>{frame}<script>{script}</script>")
    site.put("/sandbox", SANDBOX_PAGE)
    site.pages["/sandbox"][1]["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
    )
    # One machine, two origins
    at = site.url("/host").replace("127.0.0.1", "localhost")
    asked = {"question": QUESTION["question"]}
    with hosted(browser, cache_folder, tool="research", at=at) as host:
        host.page.evaluate(
            "([input, result]) => bridge.sendToolInput(input).then(() => "
            "bridge.sendToolResult(result))",
            [{"arguments": asked}, host.call("research", asked)],
        )
        host.app.locator(".card").first.wait_for()
        # What a frame may not save the host does
        host.app.locator("aside select").select_option("bibtex")
        host.app.locator("aside").get_by_role("button", name="Save").click()
        host.page.wait_for_function("log.some(m => m.method === 'ui/download-file')")
        (saved,) = host.sent("ui/download-file")
        (content,) = saved["params"]["contents"]
        assert content["resource"]["text"].startswith("@misc{")
        assert content["resource"]["uri"].endswith(".bib")
        host.app.get_by_text("Read the page").first.click()
        host.app.locator(".block.kept").first.wait_for()
        host.page.evaluate("bridge.sendToolCancelled({ reason: 'stopped' })")
        host.app.locator(".cancelled", has_text="stopped").wait_for()


OFFICIAL = """
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.log = [];
window.begin = async (html, tool) => {
  const frame = document.querySelector("iframe");
  const ready = new Promise((done) => addEventListener("message", ({ data }) =>
    data.method === "ui/notifications/sandbox-proxy-ready" && done()));
  frame.src = `http://127.0.0.1:${location.port}/sandbox`;
  await ready;
  const bridge = new AppBridge(null, { name: "official", version: "1" },
    { openLinks: {}, serverTools: {}, serverResources: {}, downloadFile: {} },
    { hostContext: { theme: "light", toolInfo: { tool: { name: tool, inputSchema: { type: "object" } } } } });
  bridge.oncalltool = (params) => relay("tools/call", params);
  bridge.onreadresource = (params) => relay("resources/read", params);
  bridge.ondownloadfile = async (params) => { log.push({ method: "ui/download-file", params }); return {}; };
  bridge.oninitialized = () => log.push({ method: "ui/notifications/initialized" });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  window.bridge = bridge;
  await bridge.sendSandboxResourceReady({ html });
};
"""
