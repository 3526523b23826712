"""Probes the installed llama.cpp build in a separate process.

A build with missing libraries, or for another processor, crashes the process that loads
it; the probe reports that as a reason. `python -m models.llama.probe` prints what
`InstalledBuild` holds, as JSON. Not for: which build would be right
(`models/hardware.py`).
"""

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from extra import lacking
from models.llama.placement import Device

PROBE_SECONDS: Final = 60.0
"""Seconds until a build that does not answer is given up: CUDA may compile kernels at
its first start."""
ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class InstalledBuild:
    """An installed build of llama.cpp."""

    version: str = ""
    """Of llama-cpp-python; "" where it is not installed."""
    offloads: bool = False
    """Whether layers can go to a GPU with it."""
    backends: tuple[str, ...] = ()
    """GPU backends that it was built with."""
    devices: tuple[Device, ...] = ()
    processor: str = ""
    """Instructions of the processor that it uses, as llama.cpp names them."""
    fault: str = ""
    """Why it cannot be used; "" where it can."""

    def __str__(self) -> str:
        """One line for a person."""
        if not self.version:
            return "not installed"
        if self.fault:
            return f"{self.version}, which cannot be loaded: {self.fault}"
        if not self.offloads:
            return f"{self.version}, CPU-only build ({self.processor})"
        names = " and ".join(self.backends) or "GPU"
        seen = ", ".join(
            f"{one.number} {one.name} with {one.free / 1e9:.1f} GB free"
            for one in self.devices
        )
        return f"{self.version}, build for {names}: {seen or 'it finds no device'}"


def installed_build() -> InstalledBuild:
    """Return which build is installed; loads it in a process of its own for at most
    `PROBE_SECONDS` seconds, and raises nothing: a failure is its `fault`."""
    if lacking("llama"):
        return InstalledBuild()
    try:
        named = version("llama-cpp-python")
    except PackageNotFoundError:
        named = "of unknown version"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "models.llama.probe"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
        return read_found(done.stdout, named)
    except subprocess.TimeoutExpired:
        return InstalledBuild(
            named, fault=f"it did not answer in {PROBE_SECONDS:.0f} s"
        )
    except ValueError:
        last = (
            done.stderr.strip().splitlines()
            or [f"it ended with code {done.returncode}"]
        )[-1]
        return InstalledBuild(named, fault=last)


def read_found(text: str, named: str) -> InstalledBuild:
    """Return what the last line of `text`, printed by this module, says; raises
    `ValueError` for a text that is not JSON, `KeyError` or `TypeError` for other
    JSON."""
    lines = text.strip().splitlines()
    report: dict[str, Any] = json.loads(lines[-1] if lines else "")
    devices = tuple(Device(**one) for one in report["devices"])
    return InstalledBuild(
        named,
        report["offloads"],
        tuple(report["backends"]),
        devices,
        report["processor"],
    )


def main() -> None:
    """Print what the build says of itself."""
    # Only this process loads llama.cpp.
    from models.llama.native import described_build  # noqa: PLC0415  the process is made for it

    found = described_build()
    print(json.dumps({**found, "devices": [asdict(one) for one in found["devices"]]}))


if __name__ == "__main__":
    main()
