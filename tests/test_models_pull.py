"""Getting models through the command line, from a hub on loopback: asked for, resumed, checked,
listed, removed."""

import hashlib
import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.hub_server import HubServer, hub_server

pytestmark = [pytest.mark.slow, pytest.mark.needs("models")]

NAME = "someone/tiny-gguf/tiny-q8_0.gguf"


@pytest.fixture
def hub() -> Iterator[HubServer]:
    """A hub with one file of 25 MB: the client writes 10 MB at a time."""
    with hub_server() as served:
        served.files[NAME] = b"GGUF" + random.Random(7).randbytes(25_000_000)
        yield served


def winnow(hub: HubServer, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `winnow models` against the hub, with downloads in `folder`."""
    settings = [
        "--set",
        f"cache={folder / 'cache'}",
    ]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("WINNOW_", "HF_"))
    }
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "HF_ENDPOINT": hub.address,
        "HF_HUB_CACHE": str(folder),
        "HF_HOME": str(folder / "home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return run_command("models", *arguments, *settings, environment=environment)


def test_a_pulled_file_is_named_first_shown_coming_and_checked(
    hub: HubServer, tmp_path: Path
) -> None:
    run = winnow(hub, tmp_path, "pull", NAME)
    assert run.returncode == 0, run.stderr
    reported, kept, _ = run.stdout.splitlines()
    assert reported.startswith(f"{NAME}: 25.0 MB")
    assert hashlib.sha256(hub.files[NAME]).hexdigest() in reported
    assert Path(kept.split("stored at ")[1]).read_bytes() == hub.files[NAME]
    assert "here llama:" + NAME in winnow(hub, tmp_path, "list").stdout


def test_a_dry_run_fetches_nothing(hub: HubServer, tmp_path: Path) -> None:
    run = winnow(hub, tmp_path, "pull", NAME, "--dry-run")
    assert run.returncode == 0, run.stderr
    assert "25.0 MB" in run.stdout
    assert {method for method, _ in hub.asked} == {"HEAD"}
    assert not list(tmp_path.rglob("*.gguf"))


def test_a_download_that_was_cut_is_an_error_and_comes_whole_the_next_time(
    hub: HubServer, tmp_path: Path
) -> None:
    hub.cut_after = 15_000_000
    cut = winnow(hub, tmp_path, "pull", NAME, "--quiet")
    assert cut.returncode == 1
    assert "could not be fetched" in cut.stderr
    assert "Traceback" not in cut.stderr
    hub.cut_after, hub.away = None, False
    again = winnow(hub, tmp_path, "pull", NAME, "--quiet")
    assert again.returncode == 0, again.stderr
    assert again.stderr == ""
    assert Path(again.stdout.splitlines()[1].split("stored at ")[1]).read_bytes() == hub.files[NAME]


def test_a_damaged_file_is_thrown_away(hub: HubServer, tmp_path: Path) -> None:
    hub.hashes[NAME] = "0" * 64
    run = winnow(hub, tmp_path, "pull", NAME, "--quiet")
    assert run.returncode == 1
    assert "was damaged in transfer" in run.stderr
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size > 1_000_000
    ]


def test_a_pulled_file_can_be_removed_and_only_once(hub: HubServer, tmp_path: Path) -> None:
    winnow(hub, tmp_path, "pull", NAME, "--quiet")
    assert "25 MB" in winnow(hub, tmp_path, "remove", NAME).stdout
    assert not [path for path in tmp_path.rglob("*.gguf") if path.exists()]
    again = winnow(hub, tmp_path, "remove", NAME)
    assert again.returncode == 2
    assert "not among the downloads" in again.stderr


def test_what_the_hub_does_not_have_is_said(hub: HubServer, tmp_path: Path) -> None:
    run = winnow(hub, tmp_path, "pull", "someone/other/none.gguf")
    assert run.returncode == 1
    assert "The hub has no someone/other/none.gguf" in run.stderr
    wrong = winnow(hub, tmp_path, "pull", "best-model")
    assert wrong.returncode == 2
    assert "winnow models list" in wrong.stderr


def test_a_hub_that_is_away_is_an_error_with_its_reason(hub: HubServer, tmp_path: Path) -> None:
    hub.address = "http://127.0.0.1:9"
    run = winnow(hub, tmp_path, "pull", NAME)
    assert run.returncode == 1
    assert "could not be fetched" in run.stderr
    assert "Traceback" not in run.stderr


def test_models_are_listed_with_role_size_and_licence(hub: HubServer, tmp_path: Path) -> None:
    data = json.loads(winnow(hub, tmp_path, "list", "--json").stdout)
    for model in data["models"].values():
        assert model["role"] in {"embedder", "reranker", "generator"}
        assert model["megabytes"] > 0
        assert model["licence"]
    assert hub.asked == []


def test_each_role_is_shown_with_its_model_and_reason(hub: HubServer, tmp_path: Path) -> None:
    roles = json.loads(winnow(hub, tmp_path, "show", "--json").stdout)
    assert roles["embedder"].startswith("all-MiniLM-L6-v2")
    assert "onnxruntime on the processor" in roles["embedder"]
    assert (
        roles["generator"] == "none; auto: no generator is built in; steps use rules and extracts."
    )
    assert hub.asked == []
