"""`python -m server`: serve over stdio; any argument goes to the command line
instead."""

import sys

from cli.command import main

main(sys.argv[1:] or ["serve"])
