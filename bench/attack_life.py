"""The part of the attack set that harms the process: signals, odd environments, caches
and model files that are damaged or held.

Not for: full disks, which need a mount; a limit on the size of files represents them
here."""

import json
import os
import pickle
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from bench.loopback import Answer, serving
from cache.folder import LOCK_WAIT
from cache.store import Store, open_stores
from tests.support import LIBRARY, ROOT
from tests.support.life import environment, started
from tests.support.processes import HELLO, READY, answer_to, call, line, say

_QUESTION: Final = "What does the Nightbird minibus cost?"
_PAGE: Final = str(LIBRARY / "ferry-winter-cuts.html")
_ENDS: Final = 60.0
"""Seconds in which a server has ended, on a machine that others use; it takes one."""
_SIGNALS: Final = ("TERM", "INT", "HUP")
_UNANSWERED: Final = 3
"""Calls that a server has still to answer when it is killed."""


def _asks(process: subprocess.Popen[bytes], number: int) -> bool:
    """Ask for the sample page; return whether its answer came."""
    say(process, call(number, "extract_relevant", question=_QUESTION, sources=[_PAGE]))
    return "9 crowns" in json.dumps(answer_to(process, number))


def _begun(process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    say(process, HELLO, READY)
    answer_to(process, 1)
    return process


def _by_signal(cache: Path, name: str) -> str:
    with started(cache) as process:
        say(_begun(process), call(2, "research", question=_QUESTION))
        process.send_signal(getattr(signal, f"SIG{name}"))
        process.wait(_ENDS)
    return _again(cache)


def _eof(cache: Path) -> str:
    with started(cache) as process:
        say(_begun(process), call(2, "research", question=_QUESTION))
        assert process.stdin is not None
        process.stdin.close()
        process.wait(_ENDS)
    return _again(cache)


def _pipe(cache: Path) -> str:
    with started(cache) as process:
        _begun(process)
        assert process.stdout is not None
        process.stdout.close()
        with suppress(BrokenPipeError):
            say(process, call(2, "research", question=_QUESTION))
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(_ENDS)
    return _again(cache)


def _killed(cache: Path, answers: int) -> str:
    """Kill a server that has `_UNANSWERED` calls still to answer, after so many
    answers."""
    with started(cache) as process:
        numbers = range(2, 2 + answers + _UNANSWERED)
        say(
            _begun(process),
            *(call(n, "research", question=f"{_QUESTION} {n}") for n in numbers),
        )
        for _ in range(answers):
            line(process)
        process.kill()
        process.wait(_ENDS)
    return _again(cache)


def _two(cache: Path) -> str:
    with started(cache) as one, started(cache) as other:
        _begun(one), _begun(other)
        both = [_asks(process, number) for number in (2, 3) for process in (one, other)]
    return "" if all(both) else "two servers on one cache do not answer"


def _cancelled(cache: Path) -> str:
    with started(cache) as process:
        _begun(process)
        for number in range(2, 42):
            say(process, call(number, "research", question=f"{_QUESTION} {number}"))
            params = {"requestId": number}
            say(
                process,
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": params,
                },
            )
        return "" if _asks(process, 99) else "no answer after forty cancelled calls"


def _many(cache: Path) -> str:
    """Sixty calls at once: each is answered, or has a time to come again, as on a
    machine that others use."""
    with started(cache) as process:
        _begun(process)
        for number in range(2, 62):
            say(
                process,
                call(number, "extract_relevant", question=_QUESTION, sources=[_PAGE]),
            )
        reported = {
            answer["id"]: json.dumps(answer)
            for answer in (line(process) for _ in range(60))
        }
        silent = [
            number
            for number in range(2, 62)
            if not re.search(r"9 crowns|Retry in \d+ s", reported.get(number, ""))
        ]
        if silent:
            return f"no answer to {silent} of sixty calls"
        return "" if _asks(process, 99) else "no answer after sixty calls"


def _cut_short(cache: Path) -> str:
    """What SQLite maps is cut short, which ends the server: the next one answers."""
    with started(cache) as process:
        _asks(_begun(process), 2)
        for path in cache.rglob("*-shm"):
            os.truncate(path, 0)
        with suppress(AssertionError, OSError):
            _asks(process, 3)
    return _again(cache)


def _again(cache: Path) -> str:
    """Return what is wrong with a server that is started on the cache that another
    left."""
    with started(cache) as process:
        return (
            ""
            if _asks(_begun(process), 2)
            else "no answer from the cache that was left"
        )


_LIVES: Final[tuple[tuple[Callable[..., str], str | int | None], ...]] = (
    (_killed, 1),
    (_eof, None),
    (_cancelled, None),
    *((_by_signal, name) for name in _SIGNALS),
    (_pipe, None),
    (_two, None),
    (_many, None),
    (_cut_short, None),
    *((_killed, answers) for answers in range(7)),
    *((_by_signal, name) for name in _SIGNALS),
    (_eof, None),
    (_pipe, None),
    (_two, None),
    (_cancelled, None),
)


def lives(_rng: random.Random, count: int) -> Iterator[str]:
    """Ends of a server in the middle of its work: signals, closed pipes, kill -9; the
    next one answers from the cache that was left."""
    for tried, given in _LIVES[:count]:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            cache = Path(place, "cache")
            try:
                yield tried(cache) if given is None else tried(cache, given)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                yield f"{tried.__name__} {given or ''}: {str(error)[:120]}"


_READ_ONLY: Final = (
    "mkdir -p $WINNOW_CACHE; unshare -rm true && exec unshare -rm /bin/sh -c '"
    "mount --bind $WINNOW_CACHE $WINNOW_CACHE; mount -o remount,bind,ro $WINNOW_CACHE; "
    'touch $WINNOW_CACHE/x && exit 9; exec "$0" -m server extract "$2" "$1"\' "$0" "$1" "$2"'
)
"""A cache's folder that no process may write in, also not one of root, where the system gives a process mounts of
its own."""
_ENVIRONMENTS: Final[tuple[tuple[str, dict[str, str], tuple[str, ...]], ...]] = (
    ("", {}, ("HOME",)),
    ("", {"HOME": "/nonexistent"}, ()),
    ("", {"HOME": "/dev/null"}, ()),
    ("", {"TMPDIR": "/nonexistent"}, ()),
    ("", {"LANG": "xx_YY.nothing", "LC_ALL": "C"}, ()),
    ("", {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, ("LANG",)),
    ("", {"PYTHONIOENCODING": "latin-1"}, ()),
    ("", {"TERM": "", "COLUMNS": "0"}, ()),
    ("", {"PATH": ""}, ()),
    ("", {"TZ": "Nowhere/City"}, ()),
    ("", {"WINNOW_CACHE": "/proc/self/nothing"}, ()),
    ("", {"WINNOW_CACHE": "/dev/full"}, ()),
    ("ulimit -f 8; trap '' XFSZ", {}, ()),
    ("ulimit -n 64", {}, ()),
    ("ulimit -c 0; ulimit -s 2048", {}, ()),
    ("umask 777", {}, ()),
    ("umask 000", {}, ()),
    ("cd $(mktemp -d) && rmdir $PWD", {}, ()),
    ("exec 2>&-", {}, ()),
    ("exec 0<&-", {}, ()),
    (_READ_ONLY, {}, ()),
)


def environments(rng: random.Random, count: int) -> Iterator[str]:
    """Homes, folders, languages, limits and descriptors that are missing or odd: an
    answer, or a sentence."""
    for words, given, lost in rng.sample(_ENVIRONMENTS, min(count, len(_ENVIRONMENTS))):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            whole = environment(Path(place, "cache"), **given)
            command = f'{words or ":"}; exec "$0" -m server extract "$2" "$1"'
            run = subprocess.run(  # noqa: S603  our own command
                ["/bin/sh", "-c", command, sys.executable, _PAGE, _QUESTION],
                cwd=ROOT,
                env={name: value for name, value in whole.items() if name not in lost},
                capture_output=True,
                timeout=120,
                check=False,
            )
        said = (run.stdout + run.stderr).decode("utf-8", "replace")
        fine = run.returncode in {0, 1} and "Traceback" not in said
        spoken = "9 crowns" in said if run.returncode == 0 else said.strip()
        yield (
            ""
            if fine and spoken
            else f"{words} {given} {lost}: {run.returncode} {said[-200:]}"
        )


class _Harm:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def _damage(rng: random.Random, path: Path, mark: Path) -> str:
    """Damage a database; return how."""
    body = path.read_bytes()
    how = rng.choice(
        (
            "zeroed",
            "cut",
            "random",
            "empty",
            "text",
            "a folder",
            "header",
            "pages",
            "schema",
            "rows",
            "pickled",
            "a pipe",
            "a loop",
            "a link",
            "grown",
            "beside it",
        )
    )
    match how:
        case "zeroed":
            path.write_bytes(bytes(len(body)))
        case "cut":
            path.write_bytes(body[: rng.randrange(len(body))])
        case "random":
            path.write_bytes(rng.randbytes(len(body)))
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("This is no database.\n" * 200)
        case "a folder" | "a pipe" | "a loop" | "a link":
            path.unlink()
            _put_in_place(path, how)
        case "header":
            path.write_bytes(body[:18] + rng.randbytes(10) + body[28:])
        case "pages":
            at = rng.randrange(100, len(body) - 400)
            path.write_bytes(body[:at] + rng.randbytes(300) + body[at + 300 :])
        case "grown":
            path.write_bytes(body + rng.randbytes(5_000))
        case "beside it":
            for ending in ("-wal", "-shm", "-journal"):
                path.with_name(path.name + ending).write_bytes(rng.randbytes(9_000))
        case _:
            _change(path, how, mark)
    return how


def _put_in_place(path: Path, how: str) -> None:
    match how:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "a loop":
            path.symlink_to(path.name)
        case _:
            path.symlink_to("/dev/null")


def _change(path: Path, how: str, mark: Path) -> None:
    """Write what a newer program, or a stranger, could have written into the rows."""
    with sqlite3.connect(path) as database:
        tables = [
            row[0]
            for row in database.execute(
                "SELECT name FROM sqlite_master WHERE type='table'"
            )
        ]
        for table in tables:
            columns = [
                row[1] for row in database.execute(f"PRAGMA table_info('{table}')")
            ]
            with suppress(sqlite3.Error):
                if how == "schema":
                    database.execute(
                        f'ALTER TABLE "{table}" RENAME COLUMN "{columns[-1]}" TO newer'
                    )
                for column in columns if how != "schema" else ():
                    harm = (
                        pickle.dumps(_Harm(mark))
                        if how == "pickled"
                        else b"\xff\x00[" * 9
                    )
                    with suppress(sqlite3.Error):
                        update = f'UPDATE "{table}" SET "{column}" = ?'  # noqa: S608  own tables
                        database.execute(update, (harm,))
    database.close()


def caches(rng: random.Random, count: int) -> Iterator[str]:
    """Databases that are damaged, changed or held by another process: a store gives
    what was kept or nothing, in time, and runs nothing."""
    for _ in range(count):
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
            ExitStack() as stack,
        ):
            folder, mark = Path(place, "cache"), Path(place, "ran")
            _kept(folder)
            databases = sorted(folder.rglob("cache.db"))
            held = rng.random() < 0.15
            if held:
                for path in databases:
                    other = sqlite3.connect(path, isolation_level=None, timeout=0)
                    stack.callback(other.close)
                    other.execute("BEGIN EXCLUSIVE")
            how = (
                "held"
                if held
                else "/".join({_damage(rng, path, mark) for path in databases})
            )
            began, wrong = time.monotonic(), list[str]()
            ended = threading.Event()
            threading.Thread(
                target=_used, args=(folder, wrong, ended), daemon=True
            ).start()
            if not ended.wait(30 * LOCK_WAIT):
                wrong.append(f"{time.monotonic() - began:.0f} s")
            if mark.exists():
                wrong.append("a pickle was run")
            yield f"{how}: {wrong}" if wrong else ""


def _kept(folder: Path) -> None:
    stores = open_stores(folder, size_limit=50_000_000)
    for store in (stores.pages, stores.searches, stores.scores):
        for number in range(40):
            store.set_json(f"k{number}", {"n": number})
            store.set_bytes(f"b{number}", b"x" * 3_000)
    stores.close()


def _used(folder: Path, wrong: list[str], ended: threading.Event) -> None:
    """Use the stores; note what is neither what was kept nor nothing."""
    try:
        stores = open_stores(folder, size_limit=50_000_000)
        for store in (stores.pages, stores.searches, stores.scores):
            for number in range(0, 40, 9):
                _look(store, number, wrong)
        stores.close()
    except Exception as error:  # noqa: BLE001  what is looked for
        wrong.append(f"{type(error).__name__}: {error}")
    ended.set()


def _look(store: Store, number: int, wrong: list[str]) -> None:
    if (found := store.get_json(f"k{number}")) not in (None, {"n": number}):
        wrong.append(f"k{number} is {found!r}")
    store.get_bytes(f"b{number}")
    store.set_json(f"new{number}", number)
    if store.get_json(f"new{number}") not in (None, number):
        wrong.append(f"new{number} is not what was written")


_MODELS: Final[dict[str, bytes]] = {
    "cut": b"GGUF\x03\x00\x00\x00" + b"\x05" * 60,
    "empty": b"",
    "text": b"This is no model.\n" * 90,
}


def models(_rng: random.Random, count: int) -> Iterator[str]:
    """Model files that are cut, empty or text: said in words, or done without."""
    for name, body in list(_MODELS.items())[:count]:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "model.gguf")
            path.write_bytes(body)
            given = environment(Path(place, "cache"), WINNOW_EMBEDDER=f"llama:{path}")
            run = subprocess.run(  # noqa: S603  our own command
                [sys.executable, "-m", "server", "extract", _QUESTION, _PAGE],
                cwd=ROOT,
                env=given,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        fine = (
            run.returncode in {0, 1, 2} and "Traceback" not in run.stdout + run.stderr
        )
        yield (
            ""
            if fine and run.stdout + run.stderr
            else f"{name}: {run.returncode} {run.stderr[-200:]}"
        )


# A model server that a person names is asked what it is; it is none of these.
_STARTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"WINNOW_SEARCH": "auto"},
    {"WINNOW_FOLDERS": "", "WINNOW_SEARCH": "keyless"},
    {"WINNOW_SEARXNG": "http://search.example.org"},
    {"WINNOW_KEYS": "brave=x", "WINNOW_SEARCH": "brave"},
    {"WINNOW_EMBEDDER": "auto"},
    {"WINNOW_BROWSER": shutil.which("chromium") or "none"},
    {"WINNOW_KEYS": "contact=ann@example.org", "WINNOW_SEARCH": "academic"},
)


def starts(_rng: random.Random, count: int) -> Iterator[str]:
    """Starts by setting, with the list of tools and the state: no request goes out."""
    taken: list[str] = []

    def middle(path: str) -> Answer:
        taken.append(path)
        return Answer(b"")

    with serving(middle) as port:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxies = dict.fromkeys(names, f"http://127.0.0.1:{port}")
        for given in _STARTS[:count]:
            taken.clear()
            with (
                tempfile.TemporaryDirectory() as place,
                started(Path(place), **proxies, **given) as process,
            ):
                _begun(process)
                say(process, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
                answer_to(process, 2)
                read = {"uri": "winnow://status"}
                say(
                    process,
                    {
                        "jsonrpc": "2.0",
                        "id": 3,
                        "method": "resources/read",
                        "params": read,
                    },
                )
                answer_to(process, 3)
            yield f"{given}: {taken}" if taken else ""
