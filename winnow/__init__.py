"""Start Winnow from an installed wheel, which carries the top folders in `winnow/_app/`."""

import gc
import sys
from pathlib import Path


def find_folders() -> None:
    """Let the top folders be imported by their own names."""
    here = Path(__file__).parent
    bundled = here / "_app"
    sys.path.insert(0, str(bundled if bundled.is_dir() else here.parent))


def main() -> None:
    """Run the command line; without arguments serve, or show the help at a terminal."""
    find_folders()
    at_terminal = sys.stdin and sys.stdin.isatty()
    arguments = sys.argv[1:] or ["--help" if at_terminal else "serve"]
    gc.disable()  # collections while modules are imported cost a tenth of the start
    if sys.platform != "win32":
        from server.daemon.proxy import join  # noqa: PLC0415  the path must be set first

        join(arguments)
    from cli.command import main as run  # noqa: PLC0415  the path above must be set first

    run(arguments)
