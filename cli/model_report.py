"""What stands behind each role: backend, model, device, memory, whether it works, the reason, and what would be better.

Shown by `winnow doctor` and `winnow models show`, with speeds by `winnow models bench`. Not for: fetching models
(`cli/models.py`).
"""

import importlib.util
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import httpx2

from errors import WinnowError
from models.catalogue import MODELS, Profile, fitting_profile, this_machine
from models.choose import Chosen, Resources, choose_embedder, choose_generator, choose_reranker
from models.flag import FlagEmbedder, FlagReranker
from models.llama.model import LlamaEmbedder, LlamaGenerator, LlamaReranker
from models.onnx import OnnxEmbedder
from models.protocols import Embedder, Generator, Reranker, abilities_of
from models.pull import Hub
from models.remote.openai import OpenAIEmbedder
from models.remote.server import RemoteModel
from models.worker import MemoryBudget
from pipeline.text.tokens import count_tokens
from server.settings import Settings

PROBE: Final = "A ferry leaves the harbour at noon."
BENCH_TEXTS: Final = tuple(
    f"{PROBE} It carries {n} cars, and the crossing takes two hours in fair weather. " * 4 for n in range(32)
)
BENCH_PROMPT: Final = "Write a story about a ferry."
BENCH_TOKENS: Final = 64

Role = Literal["embedder", "reranker", "generator"]
Any3 = Embedder | Reranker | Generator
"""A model of any role."""


@dataclass(frozen=True, slots=True)
class Said:
    """A chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class RoleReport:
    """One role as a person reads it; "" where nothing is to be said."""

    role: Role
    backend: str
    model: str
    device: str
    memory: str
    works: str
    """"works, 31 ms with loading", or what failed; "" where nothing was tried."""
    healthy: bool
    reason: str
    better: str

    def line(self) -> str:
        """Return everything on one line."""
        parts = [self.backend, self.model, self.device, self.memory, self.works, self.reason]
        better = f" Better: {self.better}" if self.better else ""
        return "; ".join(part for part in parts if part) + "." + better


@asynccontextmanager
async def chosen_models(
    settings: Settings,
) -> AsyncIterator[dict[Role, Chosen[Embedder] | Chosen[Reranker] | Chosen[Generator]]]:
    """Choose the model of each role, as the server does, and let them go afterwards.

    Raises:
        UsageError, MissingExtra, ModelError: As `models/choose.py`.
    """
    async with httpx2.AsyncClient(timeout=settings.seconds) as http:
        resources = Resources(http, settings.model_key, Hub(settings.hub or None, settings.models), MemoryBudget())
        found: dict[Role, Chosen[Embedder] | Chosen[Reranker] | Chosen[Generator]] = {
            "embedder": choose_embedder(settings.embedder, resources),
            "reranker": choose_reranker(settings.reranker, resources),
            "generator": choose_generator(settings.generator, resources),
        }
        try:
            for chosen in found.values():
                await chosen.prepare()
            yield found
        finally:
            for chosen in found.values():
                await chosen.aclose()


async def report_roles(settings: Settings, *, tried: bool) -> list[RoleReport]:
    """Return a report for each role; with `tried`, each model answers something small first.

    Raises:
        UsageError, MissingExtra: A spec cannot be understood, or its package is missing.
    """
    profile = fitting_profile(this_machine())
    async with chosen_models(settings) as models:
        return [await _report(role, chosen, profile, tried=tried) for role, chosen in models.items()]


async def _report(
    role: Role, chosen: Chosen[Embedder] | Chosen[Reranker] | Chosen[Generator], profile: Profile, *, tried: bool
) -> RoleReport:
    model: Any3 | None = chosen.model
    better = _better(role, chosen.reason, profile)
    if model is None:
        return RoleReport(role, "none", "", "", "", "", True, chosen.reason, better)
    works, healthy, name = "", True, ""
    try:
        name = model.name
        if tried:
            started = time.perf_counter()
            await _try(role, model)
            works = f"works, {1_000 * (time.perf_counter() - started):.0f} ms with loading"
            name = model.name
    except WinnowError as error:
        works, healthy = str(error), False
    return RoleReport(
        role,
        backend_of(model),
        name,
        _device(model),
        _memory(model),
        works,
        healthy,
        _reason(model, chosen.reason),
        better,
    )


async def _try(role: Role, model: Any3) -> None:
    if role == "embedder":
        await model.embed([PROBE], kind="passage")  # type: ignore[union-attr]  # the role says which it is
    elif role == "reranker":
        await model.score(PROBE, [PROBE])  # type: ignore[union-attr]  # as above
    else:
        await model.generate([Said("user", "Say yes.")], max_tokens=4)  # type: ignore[union-attr]  # as above


async def bench_roles(settings: Settings) -> list[dict[str, object]]:
    """Return for each model that is set: tokens a second by our counter, and memory once loaded.

    Raises:
        WinnowError: A model failed.
    """
    rows: list[dict[str, object]] = []
    async with chosen_models(settings) as models:
        for role, chosen in models.items():
            model: Any3 | None = chosen.model
            if model is None:
                rows.append({"role": role, "model": "none", "reason": chosen.reason})
                continue
            await _try(role, model)
            started = time.perf_counter()
            tokens = await _work(role, model)
            seconds = time.perf_counter() - started
            rate = round(tokens / max(seconds, 1e-6))
            rows.append(
                {
                    "role": role,
                    "model": model.name,
                    "tokens_per_second": rate,
                    "tokens": tokens,
                    "memory": _memory(model),
                }
            )
    return rows


async def _work(role: Role, model: Any3) -> int:
    if role == "generator":
        return count_tokens(await model.generate([Said("user", BENCH_PROMPT)], max_tokens=BENCH_TOKENS))  # type: ignore[union-attr]  # the role says which it is
    if role == "embedder":
        await model.embed(BENCH_TEXTS, kind="passage")  # type: ignore[union-attr]  # as above
    else:
        await model.score(PROBE, BENCH_TEXTS)  # type: ignore[union-attr]  # as above
    return sum(map(count_tokens, BENCH_TEXTS))


def backend_of(model: Any3) -> str:
    """Return the name of what computes."""
    match model:
        case OnnxEmbedder():
            return "onnxruntime"
        case LlamaEmbedder() | LlamaReranker() | LlamaGenerator():
            return "llama.cpp"
        case FlagEmbedder() | FlagReranker():
            return "FlagEmbedding"
        case RemoteModel():
            return model.server or "OpenAI-compatible server"
    return type(model).__name__


def _device(model: Any3) -> str:
    if isinstance(model, LlamaEmbedder | LlamaReranker | LlamaGenerator):
        return f"device {model.placement['device']}" if "device" in model.placement else "device chosen at first use"
    if isinstance(model, RemoteModel):
        return "device of the server"
    if isinstance(model, FlagEmbedder | FlagReranker):
        return "graphics card where torch finds CUDA, else processor"
    return "processor"


def _memory(model: Any3) -> str:
    if isinstance(model, RemoteModel):
        return "memory of the server"
    if isinstance(model, LlamaEmbedder | LlamaReranker | LlamaGenerator):
        megabytes = _resident(model.pid) if model.pid is not None else 0.0
        return f"{megabytes:.0f} MB in its process" if megabytes else "no memory before its first use"
    megabytes = _resident(os.getpid())
    return f"{megabytes:.0f} MB with everything in this process" if megabytes else ""


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MB; 0 where the system does not tell it."""
    if not sys.platform.startswith("linux"):
        return 0.0
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    _, _, rest = status.partition("VmRSS:")
    return int(rest.split()[0]) * 1_024 / 1e6 if rest else 0.0


def _reason(model: Any3, reason: str) -> str:
    if isinstance(model, LlamaEmbedder | LlamaReranker | LlamaGenerator) and "reason" in model.placement:
        return f"{reason}; {model.placement['reason']}"
    if isinstance(model, OpenAIEmbedder) and model.dimension:
        return f"{reason}; {model.dimension} dimensions"
    if (found := abilities_of(model)) and {"choose", "score_tree"} - found and "generate" in found:
        return f"{reason}; can do: {', '.join(sorted(found))}"
    return reason


def _better(role: Role, reason: str, profile: Profile) -> str:
    """Return which model the machine's profile has for the role and how to get it, "" where it is what runs."""
    if not reason.startswith("auto: ") or "was pulled" in reason:
        return ""
    name = next((model for model in profile.models if MODELS[model].role == role), None)
    if name is None:
        return ""
    offered = MODELS[name]
    first = "" if importlib.util.find_spec("llama_cpp") else "pip install 'winnow-mcp[llama]', then "
    return (
        f"{offered.file} ({offered.megabytes} MB, {offered.note}) of the profile {profile.name}: "
        f"{first}winnow models pull {name}"
    )
