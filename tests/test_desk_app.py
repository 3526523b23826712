"""The desk inside a client, as an MCP App: drawn from a result, calling on through the host, text as fallback."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.server.apps import APP_MIME_TYPE

from server.app import DESK, build_server
from server.settings import read_settings
from tests.support import LIBRARY, Connect, text_of
from tests.support.desk import APPS, NODE, browsing, hosted, violations

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
    settings = read_settings({"folders": str(LIBRARY), "cache": str(cache_folder), "seconds": "3600"}, {})
    async with connect(seconds="3600") as plain, Client(build_server(settings), extensions=[APPS]) as showing:
        tools = (await plain.list_tools()).tools
        assert all(tool.meta == {"ui": {"resourceUri": DESK}} for tool in tools)
        resource = (await plain.read_resource(DESK)).contents[0]
        assert resource.mime_type == APP_MIME_TYPE
        bare = await plain.call_tool("extract_relevant", QUESTION)
        drawn = await showing.call_tool("extract_relevant", QUESTION)
    assert bare.meta is None or "winnow/view" not in bare.meta
    assert drawn.meta is not None
    passages = drawn.meta["winnow/view"]["passages"]
    assert all(passage["text"].splitlines()[0] in text_of(bare) for passage in passages)
    assert bare.structured_content == drawn.structured_content


@pytest.mark.slow
def test_a_client_shows_an_answer_and_its_buttons_call_on(browser: Any, cache_folder: Path) -> None:
    with hosted(browser, cache_folder, tool="extract_relevant") as host:
        host.app.get_by_text("Waiting for the answer").wait_for()
        host.tell("ui/notifications/tool-input", {"arguments": QUESTION})
        host.app.locator(".running", has_text="How deep").wait_for()
        host.tell("ui/notifications/tool-result", host.call("extract_relevant", QUESTION))
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


@pytest.mark.slow
def test_a_cancelled_and_a_failed_call_say_so_and_can_be_repeated(browser: Any, cache_folder: Path) -> None:
    with hosted(browser, cache_folder, tool="extract_relevant") as host:
        host.tell("ui/notifications/tool-input", {"arguments": QUESTION})
        host.tell("ui/notifications/tool-cancelled", {"reason": "by <b>you</b>"})
        host.app.locator(".cancelled", has_text="by <b>you</b>").wait_for()
        host.app.locator(".cancelled button").click()
        host.app.locator(".card").first.wait_for()
        host.tell("ui/notifications/tool-result", {"isError": True, "content": [{"type": "text", "text": "no <i>"}]})
        host.app.locator(".failed", has_text="no <i>").wait_for()
        assert violations(host.page.frames[1]) == []


@pytest.mark.slow
def test_the_official_host_side_speaks_with_it(browser: Any, cache_folder: Path, tmp_path: Path) -> None:
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
    page = f'<!doctype html><iframe title="desk" sandbox="allow-scripts"></iframe><script>{script}</script>'
    with hosted(browser, cache_folder, tool="extract_relevant", page_html=page) as host:
        host.page.evaluate(
            "([input, result]) => bridge.sendToolInput(input).then(() => bridge.sendToolResult(result))",
            [{"arguments": QUESTION}, host.call("extract_relevant", QUESTION)],
        )
        host.app.locator(".card").first.wait_for()
        host.app.get_by_text("Read the page").first.click()
        host.app.locator(".block.kept").first.wait_for()
        host.page.evaluate("bridge.sendToolCancelled({ reason: 'stopped' })")
        host.app.locator(".cancelled", has_text="stopped").wait_for()


OFFICIAL = """
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.log = [];
window.begin = async (html, tool) => {
  const frame = document.querySelector("iframe");
  const bridge = new AppBridge(null, { name: "official", version: "1" },
    { openLinks: {}, serverTools: {}, serverResources: {}, updateModelContext: { text: {} } },
    { hostContext: { theme: "light", toolInfo: { tool: { name: tool, inputSchema: { type: "object" } } } } });
  bridge.oncalltool = (params) => relay("tools/call", params);
  bridge.onreadresource = (params) => relay("resources/read", params);
  bridge.oninitialized = () => log.push({ method: "ui/notifications/initialized" });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  window.bridge = bridge;
  frame.srcdoc = html;
};
"""
