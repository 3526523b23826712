"""Detects hardware for models, and the llama.cpp build that fits it.

Sources: kernel device files, drivers and vendor programs (`nvidia-smi`,
    `system_profiler`, `sysctl`, PowerShell), all through `Host`, which tests replace.
    What the installed llama.cpp offers: `models/llama/probe.py`. Not for: where a model
    is placed (`models/llama/placement.py`).
"""

import glob
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

Vendor = Literal["NVIDIA", "AMD", "Intel", "Apple"]
PCI: Final[Mapping[str, Vendor]] = {
    "0x10de": "NVIDIA",
    "0x1002": "AMD",
    "0x8086": "Intel",
}
"""GPU vendors by PCI id."""
PROGRAM_SECONDS: Final = 10.0
"""Timeout in seconds of a system program; `system_profiler` needs two or three."""
MEBIBYTE: Final = 1.048576e-3
"""GB."""
PACKAGE: Final = "llama-cpp-python"
RANGE: Final = ">=0.3.35,<0.4"
"""Versions that the extra `llama` allows; a test compares them."""


class Host(Protocol):
    """Queries about a machine; each returns an empty value if there is no answer."""

    system: str
    """`Linux`, `Darwin`, `Windows`."""
    processor: str
    """`x86_64`, `arm64`, …"""

    @property
    def memory(self) -> float:
        """GB of main memory; 0 if unknown."""
        ...

    def paths(self, pattern: str) -> list[str]:
        """Return the files and folders that a pattern matches, sorted."""
        ...

    def text(self, path: str) -> str:
        """Return the stripped content of a small text file."""
        ...

    def run(self, *command: str) -> str:
        """Return the output of a program."""
        ...


class ThisHost:
    """The machine that this process runs on."""

    system = platform.system()
    processor = platform.machine()

    @property
    def memory(self) -> float:
        """See `Host.memory`."""
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        except (AttributeError, ValueError, OSError):
            return 0.0  # Windows has no sysconf

    def paths(self, pattern: str) -> list[str]:
        """See `Host.paths`."""
        return sorted(glob.glob(pattern))

    def text(self, path: str) -> str:
        """See `Host.text`."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def run(self, *command: str) -> str:
        """See `Host.run`."""
        program = shutil.which(command[0])
        if program is None:
            return ""
        try:
            done = subprocess.run(  # noqa: S603  a program of the system, fixed arguments
                [program, *command[1:]],
                capture_output=True,
                text=True,
                timeout=PROGRAM_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU."""

    vendor: Vendor
    name: str
    memory: float
    """GB of its own memory; 0 if unknown or shared with the processor."""
    integrated: bool = False
    fault: str = ""
    """Why it is unusable; "" if it has a driver."""

    def __str__(self) -> str:
        """The facts as a person reads them."""
        size = f", {self.memory:.0f} GB" if self.memory else ""
        kind = ", shares the processor's memory" if self.integrated else ""
        return f"{self.name}{size}{kind}" + (f" ({self.fault})" if self.fault else "")


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a machine has."""

    system: str
    processor: str
    memory: float
    """GB."""
    cards: tuple[Card, ...]
    toolkits: frozenset[str] = frozenset()
    """Installed toolkits for builds from source: `CUDA`, `ROCm`, `Vulkan`."""
    translated: bool = False
    """Whether this is an Intel Python on Apple silicon, which cannot use Metal."""

    @property
    def best(self) -> Card | None:
        """The preferred GPU: with memory of its own first, then the largest; None
        without a GPU. One with a fault is taken only if all have one."""
        usable = [card for card in self.cards if not card.fault] or list(self.cards)
        return max(
            usable, key=lambda card: (not card.integrated, card.memory), default=None
        )

    def __str__(self) -> str:
        """The facts as a person reads them."""
        cards = "; ".join(map(str, self.cards)) or "no GPU that models can use"
        return f"{self.system} {self.processor}, {self.memory:.0f} GB; {cards}"


def hardware_of(host: Host) -> Hardware:
    """Return what `host` has for models."""
    if host.system == "Darwin":
        cards, translated = _apple(host)
        return Hardware(
            host.system, host.processor, host.memory, cards, translated=translated
        )
    listed = _nvidia(host)
    others = _windows(host) if host.system == "Windows" else _drm(host)
    # Cards listed by the vendor's program are on the bus, too.
    cards = (
        *listed,
        *(card for card in others if not (listed and card.vendor == "NVIDIA")),
    )
    toolkits = {
        "CUDA": host.run("nvcc", "--version")
        or host.paths("/usr/local/cuda*/bin/nvcc"),
        "ROCm": host.paths("/opt/rocm*/bin/hipcc") or host.run("hipcc", "--version"),
        "Vulkan": host.run("glslc", "--version"),
    }
    there = frozenset(name for name, found in toolkits.items() if found)
    return Hardware(host.system, host.processor, host.memory, cards, there)


def _nvidia(host: Host) -> list[Card]:
    listed = host.run(
        "nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"
    )
    cards = []
    for line in listed.splitlines():
        name, _, memory = line.rpartition(",")
        size = (
            float(memory) * MEBIBYTE
            if re.fullmatch(r"\s*\d+(\.\d+)?\s*", memory)
            else 0.0
        )
        if name.strip():
            # Jetson's graphics have the processor's memory and list none of their own.
            cards.append(Card("NVIDIA", name.strip(), size, integrated=not size))
    return cards


def _drm(host: Host) -> list[Card]:
    """Return the cards that Linux lists on the bus.

    Cards of other vendors than AMD, Intel and NVIDIA are left out; a size that the
    driver does not give is 0.
    """
    cards = []
    for path in host.paths("/sys/class/drm/card[0-9]*/device/vendor"):
        device = path.rpartition("/")[0]
        if "-" in device.rpartition("/device")[0].rpartition("/")[2]:
            continue  # a plug of the card, such as card0-HDMI-A-1
        vendor = PCI.get(host.text(path).lower())
        if vendor is None:
            continue
        name = host.text(f"{device}/product_name") or f"{vendor} graphics"
        own = host.text(f"{device}/mem_info_vram_total") or host.text(
            f"{device.rpartition('/')[0]}/lmem_total_bytes"
        )
        size = int(own) / 1e9 if own.isdecimal() else 0.0
        driver = re.search(
            r"^DRIVER=(\S+)", host.text(f"{device}/uevent"), re.MULTILINE
        )
        cards.append(
            Card(
                vendor,
                name,
                size,
                integrated=vendor != "NVIDIA" and not _own_memory(host, device, size),
                fault=_fault(vendor, driver[1] if driver else "", host),
            )
        )
    return cards


def _own_memory(host: Host, device: str, size: float) -> bool:
    """Return whether an AMD card has its own memory: amdgpu reports its chip vendor,
    and integrated GPUs get at most 4 GB."""
    return size > 4.5 or host.text(f"{device}/mem_info_vram_vendor") not in (
        "",
        "unknown",
    )


def _fault(vendor: Vendor, driver: str, host: Host) -> str:
    """Return why a card is unusable; "" if its driver is installed."""
    if vendor == "NVIDIA":
        own = host.paths("/proc/driver/nvidia/version") or driver == "nvidia"
        return "" if own else "NVIDIA's driver is missing: there is no nvidia-smi"
    if not driver:
        return "its driver in the kernel is missing"
    icds = [
        host.paths(f"{root}/vulkan/icd.d/*{word}*.json")
        for root in ("/usr/share", "/etc", "/usr/local/share")
        for word in ({"AMD": "radeon", "Intel": "intel"}[vendor], "amd")
    ]
    rocm = vendor == "AMD" and host.paths("/dev/kfd") and host.paths("/opt/rocm*")
    return (
        ""
        if rocm or any(icds)
        else "its Vulkan driver is missing: install Mesa's (mesa-vulkan-drivers)"
    )


def _windows(host: Host) -> list[Card]:
    """Return the AMD and Intel cards that Windows lists, with 0 as memory: it gives no
    size above 4 GB. Without an answer there are none."""
    asked = (
        "Get-CimInstance Win32_VideoController | Select-Object Name | ConvertTo-Json"
    )
    try:
        listed = json.loads(
            host.run("powershell", "-NoProfile", "-Command", asked) or "[]"
        )
    except ValueError:
        return []
    rows = listed if isinstance(listed, list) else [listed]
    names = [str(row.get("Name", "")) for row in rows if isinstance(row, dict)]
    cards = []
    for name in names:
        vendor = next(
            (one for one in ("AMD", "Intel") if one.lower() in name.lower()),
            "AMD" if "radeon" in name.lower() else None,
        )
        if vendor == "AMD":
            cards.append(
                Card("AMD", name, 0.0, integrated=bool(re.search(r"\bGraphics$", name)))
            )
        elif vendor == "Intel":
            cards.append(Card("Intel", name, 0.0, integrated="Arc" not in name))
    return cards


def _apple(host: Host) -> tuple[tuple[Card, ...], bool]:
    """Return a Mac's graphics, and whether Python is not of its processor.

    On a Mac with an Intel processor only AMD cards count.
    """
    silicon = host.run("sysctl", "-n", "hw.optional.arm64").strip() == "1"
    translated = silicon and host.processor != "arm64"
    try:
        report: Any = json.loads(
            host.run("system_profiler", "SPDisplaysDataType", "-json") or "{}"
        )
    except ValueError:
        report = {}
    rows = report.get("SPDisplaysDataType", []) if isinstance(report, dict) else []
    names = [str(row.get("sppci_model") or row.get("_name") or "") for row in rows]
    if silicon or host.processor == "arm64":
        chip = host.run("sysctl", "-n", "machdep.cpu.brand_string").strip()
        name = next(filter(None, [chip, *names]), "Apple silicon")
        fault = "this Python is built for Intel processors" if translated else ""
        return (Card("Apple", name, 0.0, integrated=True, fault=fault),), translated
    cards = [
        Card("AMD", name, 0.0, integrated=False)
        for name in names
        if re.search(r"AMD|Radeon", name)
    ]
    return tuple(cards), False


@dataclass(frozen=True, slots=True)
class Build:
    """A llama.cpp build, and how to install it."""

    backend: str
    """CUDA, ROCm, Vulkan, Metal; CPU for none of them."""
    why: str
    command: str = ""
    """Install command; "" if the default installation is right."""
    wheels: str = ""
    """Available prebuilt wheels, in words."""
    needs: str = ""
    """What must be installed first; "" if nothing."""


_FLAGS: Final = {
    "CUDA": "-DGGML_CUDA=on",
    "ROCm": "-DGGML_HIP=on",
    "Vulkan": "-DGGML_VULKAN=on",
    "Metal": "-DGGML_METAL=on",
}
_NEEDS: Final = {
    "CUDA": "the CUDA toolkit (nvcc)",
    "ROCm": "ROCm (hipcc)",
    "Vulkan": "the Vulkan SDK (glslc, and the headers of Vulkan and SPIR-V)",
}
_WHEELS: Final = {
    "CUDA": "cu118 to cu132, by the driver's CUDA version",
    "ROCm": "rocm72 for Linux, hip-radeon for Windows",
    "Vulkan": "vulkan for Linux and Windows",
    "Metal": "metal",
    "CPU": "cpu",
}
"""Folders of prebuilt wheels on the extra index of llama-cpp-python's maintainer."""
OFFLOADS: Final = frozenset(_FLAGS)
"""Builds that compute on a GPU."""


def right_build(hardware: Hardware) -> Build:
    """Return the llama.cpp build that fits a machine."""
    card = hardware.best
    if hardware.translated:
        return Build(
            "Metal",
            "Apple silicon",
            needs="it needs Python for arm64 (this one is for x86_64)",
        )
    if card is None:
        return Build("CPU", "this machine has no GPU that models can use")
    backend = {"NVIDIA": "CUDA", "Intel": "Vulkan", "Apple": "Metal", "AMD": "Vulkan"}[
        card.vendor
    ]
    if card.vendor == "AMD":
        backend = (
            "ROCm" if "ROCm" in hardware.toolkits and not card.integrated else "Vulkan"
        )
    if hardware.system == "Darwin":
        backend = "Metal"
    lacking = card.fault or (
        f"it needs {_NEEDS[backend]}, or a prebuilt wheel"
        if backend in _NEEDS and backend not in hardware.toolkits
        else ""
    )
    command = command_for(backend, hardware.system)
    return Build(backend, str(card), command, wheels_for(backend), lacking)


def command_for(backend: str, system: str) -> str:
    """Return the pip command that builds llama.cpp for a backend, in PowerShell's form
    on Windows; for an unknown backend a build without flags."""
    install = f"pip install --force-reinstall --no-cache-dir --no-binary {PACKAGE} '{PACKAGE}{RANGE}'"
    flag = _FLAGS.get(backend)
    if flag is None:
        return install
    if system == "Windows":
        return f'$env:CMAKE_ARGS="{flag}"; {install}'
    return f'CMAKE_ARGS="{flag}" {install}'


def wheels_for(backend: str) -> str:
    """Return how to install a prebuilt wheel instead, as text."""
    return (
        f"or, to install a prebuilt wheel without a compiler: pip install --only-binary {PACKAGE} "
        f"{PACKAGE}, and --extra-index-url with the address that the README of {PACKAGE} gives for "
        f"{_WHEELS[backend]}"
    )
