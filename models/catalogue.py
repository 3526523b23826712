"""Models that may be fetched by name, the profiles of machines that they make up, and which profile fits this machine.

Names and sizes come from the publishers' pages and programs that pin these files by size; where a note says
"unconfirmed", no such source was found. None of the large files was run here, so what is said of their quality is the
publishers' word. Not for: fetching (`models/pull.py`) or choosing (`models/choose.py`).
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from typing import Final, Literal

from errors import UsageError

Role = Literal["embedder", "reranker", "generator"]


@dataclass(frozen=True, slots=True)
class Offered:
    """One file of a repository on the hub, and what it is for."""

    role: Role
    repository: str
    file: str
    megabytes: int
    """Size as published; the hub's own figure is shown before anything is fetched."""
    licence: str
    note: str
    writes: bool = True
    """False for a generator that scores only."""

    @property
    def spec(self) -> str:
        """What the setting of the role is set to."""
        return f"llama:{self.repository}/{self.file}"


@dataclass(frozen=True, slots=True)
class Profile:
    """Models for one kind of machine; roles that it leaves out keep what every installation has."""

    name: str
    machine: str
    models: tuple[str, ...]
    """Names in `MODELS`."""
    resident: str
    """Memory with all of them loaded, estimated: weights, and 8 to 16 k tokens of context."""


ROOMY: Final = 15.0
"""GB from which a machine counts as one of 16 GB: the system keeps some for itself."""

_BGE: Final = "gpustack/bge-m3-GGUF"
_RERANKER: Final = "gpustack/bge-reranker-v2-m3-GGUF"
_QWEN: Final = "unsloth/Qwen3-4B-Instruct-2507-GGUF"
_MANY: Final = "more than a hundred languages"
MODELS: Final[dict[str, Offered]] = {
    "bge-m3-q8": Offered("embedder", _BGE, "bge-m3-Q8_0.gguf", 635, "MIT", _MANY),
    "bge-m3-f16": Offered("embedder", _BGE, "bge-m3-FP16.gguf", 1_160, "MIT", _MANY),
    "bge-m3-q4": Offered("embedder", _BGE, "bge-m3-Q4_K_M.gguf", 438, "MIT", _MANY),
    "qwen3-embedding-0.6b-q8": Offered(
        "embedder",
        "Qwen/Qwen3-Embedding-0.6B-GGUF",
        "Qwen3-Embedding-0.6B-Q8_0.gguf",
        639,
        "Apache-2.0",
        "multilingual; its instruction before queries is put there by itself",
    ),
    "bge-reranker-v2-m3-q8": Offered("reranker", _RERANKER, "bge-reranker-v2-m3-Q8_0.gguf", 636, "Apache-2.0", _MANY),
    "bge-reranker-v2-m3-q4": Offered("reranker", _RERANKER, "bge-reranker-v2-m3-Q4_K_M.gguf", 438, "Apache-2.0", _MANY),
    "bge-reranker-v2-m3-f16": Offered(
        "reranker", _RERANKER, "bge-reranker-v2-m3-FP16.gguf", 1_160, "Apache-2.0", _MANY
    ),
    "html-pruner-llama-1b-q8": Offered(
        "generator",
        "mradermacher/HTML-Pruner-Llama-1B-GGUF",
        "HTML-Pruner-Llama-1B.Q8_0.gguf",
        1_320,
        "Apache-2.0 (page), Llama 3.2 below it",
        "HtmlRAG's pruner: scores paths, writes no answers; file name unconfirmed, size that of Llama-3.2-1B at 8 bits",
        writes=False,
    ),
    "qwen3-1.7b-q4": Offered(
        "generator", "unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf", 1_107, "Apache-2.0", "112 KiB a token"
    ),
    "smollm3-3b-q4": Offered(
        "generator", "ggml-org/SmolLM3-3B-GGUF", "SmolLM3-Q4_K_M.gguf", 1_915, "Apache-2.0", "72 KiB a token"
    ),
    "qwen3-4b-2507-q4": Offered(
        "generator", _QWEN, "Qwen3-4B-Instruct-2507-Q4_K_M.gguf", 2_497, "Apache-2.0", "144 KiB a token, no thinking"
    ),
    "qwen3-8b-q8": Offered(
        "generator", "Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q8_0.gguf", 8_710, "Apache-2.0", "144 KiB a token"
    ),
}
"""Name to file. Pure-attention generators only: a hybrid one (Qwen3.5) re-reads its prompt."""

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile("cpu-8gb", "any machine with 8 GB, no graphics card", ("qwen3-1.7b-q4",), "0.2 GB, 1.8 with writer"),
        Profile("mac-8gb", "Apple silicon, 8 GB", ("bge-reranker-v2-m3-q4", "smollm3-3b-q4"), "3 GB or less"),
        Profile(
            "mac-16gb",
            "Apple silicon, 16 GB",
            ("bge-m3-q8", "bge-reranker-v2-m3-q8", "qwen3-4b-2507-q4"),
            "about 6.5 GB",
        ),
        Profile(
            "gpu-8gb",
            "graphics card with 8 GB",
            ("bge-m3-q8", "bge-reranker-v2-m3-q8", "qwen3-4b-2507-q4"),
            "5.5 to 6 GB and buffers",
        ),
        Profile(
            "gpu-24gb",
            "graphics card with 24 GB",
            ("bge-m3-f16", "bge-reranker-v2-m3-f16", "qwen3-8b-q8"),
            "up to 20 GB",
        ),
    )
}
"""On plain processors the carried MiniLM embeds and nothing reranks: a BGE-M3-sized encoder takes 13 to 55 core-seconds
for a page of 10,000 tokens."""


def wanted(names: tuple[str, ...]) -> list[Offered]:
    """Return what names of models or profiles, or OWNER/REPO/FILE.gguf, stand for, each once.

    Raises:
        UsageError: A name is none of them.
    """
    found: dict[str, Offered] = {}
    for name in names:
        for model in PROFILES[name].models if name in PROFILES else (name,):
            offered = MODELS.get(model) or _free(model)
            found[offered.spec] = offered
    return list(found.values())


def _free(name: str) -> Offered:
    owner, _, tail = name.removeprefix("llama:").partition("/")
    repository, _, file = tail.partition("/")
    if not owner or not repository or not file.endswith(".gguf"):
        raise UsageError(
            f"{name!r} is no model that Winnow knows.",
            hint=f"Use a profile ({', '.join(PROFILES)}), a name of `winnow models list`, or OWNER/REPO/FILE.gguf.",
        )
    return Offered("generator", f"{owner}/{repository}", file, 0, "see its page", "")


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has; 0 where a figure is not known."""

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
        told = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603  a program of the system, fixed arguments
    except (OSError, subprocess.TimeoutExpired):
        return 0.0
    figures = [int(line) for line in told.stdout.splitlines() if line.strip().isdecimal()]
    return max(figures, default=0) * 1.048576 / 1_000
