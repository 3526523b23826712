"""`winnow desk`: a page in the browser to ask, and to view evidence."""

import argparse
from typing import Final

from cli.subcommand import Subcommand, port
from seams import later


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=port, default=0, help="port on 127.0.0.1; default: a free one"
    )
    parser.add_argument(
        "--no-browser", action="store_true", help="only print the address"
    )


COMMAND: Final = Subcommand(
    "desk",
    help=(
        "open the desk: a local web page to ask questions and to view "
        "evidence, pages, trees and sessions"
    ),
    arguments=_arguments,
    run=later("extras.desk.serve", "serve_desk"),
    place=70,
)
