"""`python -m bench.eval`: the generator beside the rules, as a person runs it; small real weights,
and a server on loopback."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, Response

from tests.support import ROOT
from tests.support.commands import run_command
from tests.support.model_server import Remote

pytestmark = pytest.mark.slow

PAGES = {
    "herons.html": (
        "Herons",
        "The heron of Quoxholm rests by the pond. It eats eels. It sleeps at noon.",
    ),
    "taxes.html": (
        "Taxes",
        "The tax of Brindle is nine crowns. It is paid in March. The office is closed in May.",
    ),
    "boats.html": (
        "Boats",
        "The boat Curlew sails at dawn. It carries forty goats. Its captain is Ann Wren.",
    ),
}
QUESTIONS = [
    {
        "question": "When does the boat Curlew sail?",
        "answers": [["at dawn"]],
        "pages": ["boats.html"],
    },
    {
        "question": "How much is the tax of Brindle?",
        "answers": [["nine crowns"]],
        "pages": ["taxes.html"],
    },
    {"question": "Who painted the ceiling of the opera?", "answers": [], "pages": []},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three pages and three questions, one of them without an answer."""
    return write_set(tmp_path / "data")


def write_set(folder: Path) -> Path:
    (folder / "library").mkdir(parents=True)
    for name, (title, text) in PAGES.items():
        html = (
            f"<html lang=en><title>{title}</title><main><h1>{title}</h1><p>{text}</p></main></html>"
        )
        (folder / "library" / name).write_text(html, encoding="utf-8")
    lines = "".join(json.dumps(question) + "\n" for question in QUESTIONS)
    (folder / "questions.jsonl").write_text(lines, encoding="utf-8")
    return folder


def measured(
    cache: Path, *arguments: str, generator: str = "", command: Sequence[str] = ("bench.eval",)
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "WINNOW_CACHE": str(cache),
        "PYTHONPATH": str(ROOT),
        "WINNOW_GENERATOR": generator,
    }
    if command[0] == "server":
        return run_command(*command[1:], *arguments, environment=environment, seconds=100)
    return subprocess.run(
        [sys.executable, "-m", *command, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def rows(run: subprocess.CompletedProcess[str]) -> dict[str, dict[str, object]]:
    assert run.returncode == 0, run.stderr
    reported = json.loads(run.stdout)
    return {f"{row['step']}: {row['what']}": row for row in reported["rows"]}


def test_without_a_generator_it_says_how_to_set_one(tmp_path: Path) -> None:
    run = measured(tmp_path)
    assert run.returncode == 2
    assert "WINNOW_GENERATOR" in run.stderr
    assert "llama:FILE.gguf" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--steps", "prune,dance"], "dance"),
        (["--limit", "0"], "--limit"),
        (["nowhere"], "examples/"),
    ],
    ids=["step", "limit", "folder"],
)
def test_wrong_usage_is_reported_with_what_would_be_right(
    tmp_path: Path, remote: Remote, arguments: list[str], reported: str
) -> None:
    run = measured(tmp_path, *arguments, generator=f"openai:{remote.url}#m")
    assert run.returncode == 2
    assert reported in run.stderr
    assert remote.asked == []


def test_a_question_out_of_form_is_named_by_its_line(
    tmp_path: Path, data: Path, remote: Remote
) -> None:
    with (data / "questions.jsonl").open("a", encoding="utf-8") as questions:
        questions.write('{"question": "Which?", "answers": ["a"], "pages": ["gone.html"]}\n')
    run = measured(tmp_path, str(data), generator=f"openai:{remote.url}#m")
    assert run.returncode == 2
    assert "Line 4" in run.stderr
    assert "gone.html" in run.stderr


def reply(body: dict[str, object]) -> Response:
    """Parse well, answer one question with words of its evidence and one with a figure that no one
    wrote."""
    messages = body["messages"]
    assert isinstance(messages, list)
    prompt = str(messages[-1]["content"])
    if "You prepare web searches" in prompt:
        request = prompt.rpartition("instructions): ")[2]
        parsed = {
            "entities": [],
            "parts": [],
            "freshness": "any",
            "search": True,
            "queries": [{"text": request[:100], "language": "en"}],
        }
        text = json.dumps(parsed)
    elif "boat Curlew" in prompt.partition("Question: ")[2].splitlines()[0]:
        label = re.search(r"\[(\d+[a-z]+)\][^\[]*at dawn", prompt)
        cited = {
            "passages": [label.group(1) if label else "9z"],
            "sentence": "The boat Curlew sails at dawn.",
        }
        text = json.dumps({"sentences": [cited]})
    elif "tax" in prompt.partition("Question: ")[2].splitlines()[0]:
        text = json.dumps(
            {"sentences": [{"passages": ["1a"], "sentence": "The tax is 87 crowns."}]}
        )
    else:
        text = json.dumps({"sentences": []})
    return JSONResponse(
        {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    )


def test_figures_of_a_known_model_come_out_as_counted_by_hand(
    tmp_path: Path, data: Path, remote: Remote
) -> None:
    remote.will("/chat/completions", reply)
    generator = f"openai:{remote.url}#m"
    # Named from where one is, as people do.
    named = os.path.relpath(data, ROOT)
    run = measured(tmp_path, named, "--steps", "parse,answer,prune", "--json", generator=generator)
    found = rows(run)
    assert found["parse: pages that answer among the first 5"]["model"] == 1.0
    assert found["parse: requests that the model parsed, not the rules for it"]["model"] == 1.0
    facts = found["answer: all facts in the evidence (rules), in the answer (model)"]
    assert (facts["n"], facts["rules"], facts["model"]) == (2, 1.0, 0.5)
    support = found["answer: sentences that the passages they cite bear out"]
    assert (support["n"], support["model"]) == (2, 0.5)
    assert found["answer: None where nothing answers"]["model"] == 1.0
    # A server scores no paths, and the row says so instead of a figure.
    assert found["prune: answers kept at 256 tokens"]["model"] is None
    assert "scores no paths" in str(found["prune: answers kept at 256 tokens"]["note"])
    assert [line for line in run.stderr.splitlines() if "measuring" in line] == [
        "winnow: measuring parse",
        "winnow: measuring answer",
        "winnow: measuring prune",
    ]


def test_a_generator_is_asked_once_a_question_in_the_way_that_is_set(
    tmp_path: Path, data: Path, remote: Remote
) -> None:
    said = {"message": {"role": "assistant", "content": '{"lines": []}'}, "finish_reason": "stop"}
    remote.will("/chat/completions", lambda _body: JSONResponse({"choices": [said]}))
    arguments = (str(data), "--steps", "extract", "--json", "--set", "papers=extractor=lines")
    found = rows(measured(tmp_path, *arguments, generator=f"openai:{remote.url}#m"))
    assert {name.split()[1] for name in found} == {"lines:"}
    # A model that always finds nothing is right where nothing answers, and takes no sure answer
    # away.
    assert found["extract: lines: None where nothing answers"]["model"] == 1.0
    assert found["extract: lines: answers in the best 256 tokens"]["model"] == 1.0
    asked = [path for path, _, _ in remote.asked if path.endswith("/chat/completions")]
    assert 0 < len(asked) <= len(QUESTIONS)


def test_a_failing_model_is_counted_with_its_reason_and_is_no_figure(
    tmp_path: Path, data: Path, remote: Remote
) -> None:
    remote.will(
        "/chat/completions",
        lambda _body: JSONResponse({"error": {"message": "no memory"}}, status_code=400),
    )
    found = rows(
        measured(
            tmp_path, str(data), "--steps", "parse", "--json", generator=f"openai:{remote.url}#m"
        )
    )
    first = found["parse: pages that answer among the first 5"]
    assert first["failed"] == 2
    assert "no memory" in str(first["note"])
    assert found["parse: requests that the model parsed, not the rules for it"]["model"] == 0.0


def untimed(run: subprocess.CompletedProcess[str]) -> object:
    assert run.returncode == 0, run.stderr
    reported = json.loads(run.stdout)
    return reported | {"rows": [{**row, "seconds": 0} for row in reported["rows"]]}


@pytest.mark.nightly
def test_a_run_that_is_killed_goes_on_and_ends_with_the_same_table(
    tmp_path: Path, data: Path
) -> None:
    keep = tmp_path / "kept.jsonl"
    arguments = ["bench.eval", str(data), "--mimic", "small", "--steps", "parse,answer", "--json"]
    whole = measured(tmp_path / "a", command=arguments)
    command = [sys.executable, "-m", *arguments, "--keep", str(keep)]
    environment = {**os.environ, "WINNOW_CACHE": str(tmp_path / "b"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        while running.poll() is None and (
            not keep.is_file() or len(keep.read_text("utf-8").splitlines()) < 3
        ):
            pass
        running.kill()
    kept = keep.read_text("utf-8").splitlines()
    assert len(kept) >= 3
    with keep.open("a", encoding="utf-8") as file:
        file.write('{"key": "half a li')
    again = measured(tmp_path / "b", "--keep", str(keep), command=arguments)
    assert "going on after" in again.stderr
    assert untimed(again) == untimed(whole)
    # The run was ended: the next one begins again.
    refresh = measured(tmp_path / "b", "--keep", str(keep), command=arguments)
    assert "going on after" not in refresh.stderr
    assert untimed(refresh) == untimed(whole)


@pytest.mark.parametrize(("worth", "facts"), [("oracle", 1.0), ("noise", 0.0)])
def test_an_oracle_answers_and_noise_does_not(
    tmp_path: Path, data: Path, worth: str, facts: float
) -> None:
    found = rows(
        measured(
            tmp_path,
            *(str(data), "--mimic", worth, "--json", "--set", "papers=extractor=lines"),
            command=("bench.eval",),
        )
    )
    answer = found["answer: all facts in the evidence (rules), in the answer (model)"]
    assert (answer["rules"], answer["model"]) == (1.0, facts)
    assert answer["loss"] == 1.0 - facts
    assert found["extract: lines: answers in the best 256 tokens"]["loss"] == 0.0
