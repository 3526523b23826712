"""`winnow stop`: the end of the process that stdio clients share."""

from typing import Final

from cli.subcommand import Subcommand
from seams import later

COMMAND: Final = Subcommand(
    "stop",
    help="end the process that stdio clients share",
    run=later("cli.daemon", "stop_daemons"),
    place=24,
)
