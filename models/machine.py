"""What machine this is, as far as the choice of models goes: memory, graphics card, and the profile that fits it.

Not for: placing one model on a device (`models/llama/placement.py`).
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final

from models.catalogue import PROFILES, Profile

ASK_SECONDS: Final = 5.0
ROOMY: Final = 15.0
"""GB from which a machine counts as one of 16 GB: the system keeps some for itself."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts; 0 where one is not known."""

    system: str
    """`Linux`, `Darwin`, `Windows`, with the processor's kind."""
    memory: float
    """GB of main memory."""
    graphics: float
    """GB of the largest NVIDIA card."""

    def __str__(self) -> str:
        """The facts as a person reads them."""
        card = f", graphics card with {self.graphics:.0f} GB" if self.graphics else ""
        return f"{self.system}, {self.memory:.0f} GB{card}"


def this_machine() -> Machine:
    """Return what this machine is; asks `nvidia-smi` where it is there."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, ValueError, OSError):
        memory = 0.0  # Windows has no sysconf
    return Machine(f"{platform.system()} {platform.machine()}", memory, _graphics())


def fitting_profile(machine: Machine) -> Profile:
    """Return the profile for a machine."""
    if machine.graphics >= ROOMY:
        return PROFILES["gpu-24gb" if machine.graphics >= 22 else "gpu-8gb"]
    if machine.graphics >= 7:
        return PROFILES["gpu-8gb"]
    if machine.system.startswith("Darwin arm"):
        return PROFILES["mac-16gb" if machine.memory >= ROOMY else "mac-8gb"]
    return PROFILES["cpu-8gb"]


def _graphics() -> float:
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0.0
    command = [program, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False)  # noqa: S603  a program of the system, fixed arguments
    except (OSError, subprocess.TimeoutExpired):
        return 0.0
    figures = [int(line) for line in told.stdout.splitlines() if line.strip().isdecimal()]
    return max(figures, default=0) * 1.048576 / 1_000
