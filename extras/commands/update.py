"""`winnow update`: the number of the newest release, asked for by this command alone."""

from typing import Final

from cli.subcommand import Subcommand
from seams import later

COMMAND: Final = Subcommand(
    "update",
    help="say whether a newer release is there",
    run=later("extras.install.update", "update"),
    place=90,
)
