"""`winnow logs`: what the process that stdio clients share has logged."""

from typing import Final

from cli.subcommand import Subcommand
from seams import later

COMMAND: Final = Subcommand(
    "logs",
    help="print the log of the process that stdio clients share",
    run=later("cli.daemon", "print_logs"),
    place=25,
)
