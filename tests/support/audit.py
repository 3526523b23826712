"""Known faults of the packages that are installed, by pip-audit: `make audit`.

    python -m tests.support.audit build/audit/bin/pip-audit

Exit code 1 where a package has a known fault. Where no database of advisories can be reached a
sentence says so, and the exit code is 0: that is nothing that a change of ours could mend.
"""

import json
import subprocess
import sys
import sysconfig
from typing import NamedTuple

SECONDS = 300


class Verdict(NamedTuple):
    """What an audit came to."""

    line: str
    faulty: bool = False


def judged(said: str) -> Verdict:
    """Return what pip-audit's JSON means, an empty text where it gave none."""
    try:
        rows = json.loads(said)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Verdict(
            "Not audited: pip-audit could not run, or reached no database of advisories."
        )
    faults = [
        f"{row['name']} {row['version']}: {fault['id']}, mended in {', '.join(fault['fix_versions']) or 'no version'}"
        for row in rows
        for fault in row.get("vulns", ())
    ]
    looked_up = sum("vulns" in row for row in rows)
    if faults:
        return Verdict("\n".join(faults), faulty=True)
    if not looked_up:
        return Verdict(f"Not audited: no database of advisories knew any of {len(rows)} packages.")
    return Verdict(f"No known faults in {looked_up} of {len(rows)} packages.")


def main() -> int:
    """Audit this environment; return the exit code."""
    place = sysconfig.get_paths()["purelib"]
    command = [sys.argv[1], "--format", "json", "--progress-spinner", "off", "--path", place]
    said = ""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        said = run.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"pip-audit: {type(error).__name__}", file=sys.stderr)
    verdict = judged(said)
    print(verdict.line)
    return int(verdict.faulty)


if __name__ == "__main__":
    sys.exit(main())
