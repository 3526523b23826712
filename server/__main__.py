"""`python -m server`: serve over stdio; any argument goes to the command line
instead."""

import gc
import sys

gc.disable()  # collections while modules are imported cost a tenth of the start

from cli.command import main  # noqa: E402  as the line above

main(sys.argv[1:] or ["serve"])
