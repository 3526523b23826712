"""`python -m readers FILE`: prints a file, or stdin for `-`, as Markdown."""

import argparse
import sys
from pathlib import Path

from errors import SourceError
from readers import read
from readers.as_markdown import to_markdown


def main() -> int:
    """Print the file; return 1, with the reason on stderr, where it cannot be read."""
    parser = argparse.ArgumentParser(prog="readers", description=__doc__)
    parser.add_argument("file", help="path of a file, or - for stdin")
    parser.add_argument(
        "--type", default="", help="its media type, where the name does not say it"
    )
    arguments = parser.parse_args()
    try:
        data = (
            sys.stdin.buffer.read()
            if arguments.file == "-"
            else Path(arguments.file).read_bytes()
        )
        document = read(data, name=arguments.file, content_type=arguments.type)
    except (OSError, SourceError) as error:
        print(f"readers: {error}", file=sys.stderr)
        return 1
    print(to_markdown(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
