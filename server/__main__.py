"""`python -m server`, or `python FOLDER/server` from anywhere: serve over stdio; any
argument goes to the command line instead."""

import gc
import sys
from pathlib import Path

gc.disable()  # collections while modules are imported cost a tenth of the start
sys.path[0] = str(Path(__file__).resolve().parents[1])

arguments = sys.argv[1:] or ["serve"]
if sys.platform != "win32":
    from server.daemon.proxy import join  # as the lines above

    join(arguments)

from cli.command import main  # noqa: E402  as the lines above

main(arguments)
