"""The attack set, made again: how many tries of each kind, and how many came through.

    python -m bench.attack             every group in full: an hour
    python -m bench.attack --check     the quick form, some minutes of processor time; exit code 1 where anything
                                       came through, with the bars that fall short
    python -m bench.attack --group NAME [--seed N]
    python -m bench.attack --docs      the table of docs/security.md from a whole run

Groups are those of `docs/security.md`, with at least as many tries as the set that was
tried from outside. Tries are drawn by `--seed` and their number, so that a fault comes
again. Nothing leaves loopback, and nothing needs root: what does is listed as skipped
with its reason. Not for: orders in pages about the question, nor
what a test says about one case (`tests/test_attacks.py`, `tests/test_outside.py`)."""

import argparse
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from bench.attack_doors import desk, garbled, http, messages
from bench.attack_faults import FAULTS, TIMES, faults
from bench.attack_files import bombs, folders, mutated, paths
from bench.attack_hidden import ORDINARY, READS, alarms, hidden, keys, races
from bench.attack_http import try_shares, try_tokens
from bench.attack_life import caches, environments, lives, models, starts
from bench.attack_web import led, personal, rebinding, rendered, searched, urls
from bench.attack_words import outside
from extra import lacking

SKIPPED: Final = {
    "full disks": "need mounts, which are root's; a limit on files replaces them",
    "clock jumps, other users": "need root",
    "name servers that flip": "a resolver that flips is passed in instead (group rebinding)",
}
BROWSED: Final = "scripts in a browser"
"""The group that needs the extra `browser`."""


class Group(NamedTuple):
    """One kind of try."""

    least: int
    """Tries in full; those that are a list of forms end with the list."""
    quick: int
    """Tries in the quick form."""
    attack: Callable[[random.Random, int], Iterator[str]]
    """Takes the dice and a number of tries; yields for each what came through, empty
    for none."""
    tried: str
    """What is tried, for the table of the documents."""


GROUPS: Final = {
    "addresses": Group(
        303,
        303,
        urls,
        "addresses inside, in decimal, octal, hexadecimal, wide digits, IPv6 forms, with users and ports",
    ),
    "pages that lead inside": Group(
        116,
        116,
        led,
        "redirects, refreshes, frames, robots.txt, captions and twins of a public page, to a network that is open",
    ),
    "rebinding": Group(
        26, 26, rebinding, "a public page's own site, whose name leads inside later"
    ),
    BROWSED: Group(
        58,
        2,
        rendered,
        "requests, sockets, frames, navigation and windows of a rendered page, to what is inside",
    ),
    "search results": Group(
        64,
        16,
        searched,
        "hits that lead inside, to files or nowhere, answers that are none",
    ),
    "proxies, passwords, cookies": Group(
        48,
        24,
        personal,
        "what the environment or a cookie file holds, given to another server",
    ),
    "requests over HTTP": Group(
        116,
        60,
        http,
        "no valid token, foreign hosts and pages, odd paths and methods, requests in requests, sizes",
    ),
    "sessions, streams, guesses": Group(
        131, 20, try_shares, "a caller that opens all it gets, bearers that are guessed"
    ),
    "access tokens": Group(
        65, 65, try_tokens, "forged, old, foreign, unsigned, changed"
    ),
    "the desk": Group(
        66,
        66,
        desk,
        "requests without its token or from other pages, malformed messages with it",
    ),
    "messages over stdio": Group(
        300, 40, messages, "lines that are no messages, calls with arguments at random"
    ),
    "damaged messages over stdio": Group(
        2_000,
        100,
        garbled,
        "messages with values, fields and bytes changed, a fifth through a daemon: each that asks is answered",
    ),
    "faults": Group(
        TIMES * len(FAULTS),
        2 * len(FAULTS),
        faults,
        "what a call leans on breaks: readers, models, search, sites, cache, disk, processes, the caller",
    ),
    "paths and links": Group(
        263,
        263,
        paths,
        "links, dots, encodings, devices, hidden names, keys by their ending",
    ),
    "keys under other names": Group(
        0,
        24,
        keys,
        "keys of every form, in five encodings, by name, by search and by listing",
    ),
    "folders exchanged": Group(
        READS, 1_000, races, "reads of a folder that is exchanged with a link meanwhile"
    ),
    "hostile folders": Group(
        16,
        8,
        folders,
        "pipes, holes of 50 GB, loops, devices, odd names, secrets, depth, in a folder that is asked",
    ),
    "bombs": Group(113, 12, bombs, "files that unpack, nest or repeat without end"),
    "mutated files": Group(
        20_996,
        200,
        mutated,
        "pages and documents of 20 formats with bytes changed, cut, doubled",
    ),
    "hidden text": Group(
        0,
        0,
        hidden,
        "pages, style sheets, Markdown and files of eight formats with text that no reader sees",
    ),
    "words outside the frame": Group(
        812,
        200,
        outside,
        "sentences as types, addresses, links to words, answers of servers, under 11 signs between words",
    ),
    "ends of a server": Group(
        24,
        2,
        lives,
        "signals, closed pipes, kill -9, two servers, storms of calls; the next one answers from the cache",
    ),
    "odd environments": Group(
        21,
        3,
        environments,
        "homes, languages, limits, masks and descriptors that are missing or odd",
    ),
    "damaged caches": Group(
        60,
        20,
        caches,
        "databases zeroed, cut, changed, replaced, pickled, held by another process",
    ),
    "model files": Group(3, 1, models, "files that are cut, empty or text"),
    "starts": Group(
        8,
        1,
        starts,
        "a start, the list of tools and the state, by setting: requests that go out",
    ),
    "ordinary files taken for keys": Group(
        ORDINARY,
        ORDINARY,
        alarms,
        "false alarms: files of the data, of this checkout, of packages",
    ),
}


def main() -> int:
    """Try the groups; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="the quick form; exit code 1 where something came through",
    )
    parser.add_argument(
        "--docs", action="store_true", help="print the table of the documents"
    )
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--seed", type=int, default=44)
    args = parser.parse_args()
    short: list[str] = []
    began_all = _spent()
    logging.disable(logging.CRITICAL)  # what is done without, which is what is tried
    print(_row(args.docs, "group", "tried", "through", "CPU s", "what is tried"))
    if args.docs:
        print("|---|---|---|---|")
    for name, group in GROUPS.items():
        if args.group not in {None, name}:
            continue
        began, clock = _spent(), time.monotonic()
        count = group.quick if args.check else group.least
        found = list(group.attack(random.Random(f"{args.seed} {name}"), count))
        through = [what for what in found if what]
        if through:
            short.append(f"{name}: {len(through)} of {len(found)} came through")
        if len(found) < count and not (name == BROWSED and lacking("browser")):
            short.append(f"{name}: {len(found)} of {count} were tried")
        spent = f"{_spent() - began:.1f}/{time.monotonic() - clock:.0f}"
        print(
            _row(args.docs, name, len(found), len(through), spent, group.tried),
            flush=True,
        )
        for what in dict.fromkeys(through[:8]):
            print(f"  through: {what[:200]}", file=sys.stderr)
    skipped = {BROWSED: "the extra is missing"} if lacking("browser") else {}
    for name, why in (SKIPPED | skipped).items():
        print(f"{name}: skipped; {why}", file=sys.stderr)
    bars = "; ".join(short) if short else "every bar holds"
    print(f"{_spent() - began_all:.0f} s of processors: {bars}", file=sys.stderr)
    return 1 if short else 0


def _spent() -> float:
    """Return processor seconds of this process and of those that it started and that
    ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _row(
    in_docs: bool, name: str, tried: object, through: object, spent: str, what: str
) -> str:
    if in_docs:
        return (
            f"| {name} | {tried:,} | {through} | {what} |"
            if isinstance(tried, int)
            else f"| {name} | {tried} | {through} | {what} |"
        )
    return f"{name:<32}{tried:>8}{through:>9}{spent:>12}"


if __name__ == "__main__":
    sys.exit(main())
