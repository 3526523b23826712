"""Machines with and without graphics: what is seen of them, which build of llama.cpp they need, and
what `winnow models` and `winnow doctor` say."""

import argparse
import fnmatch
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from cli.models import Machine, look, machine_checks, run_models
from models.catalogue import fitting_profile
from models.hardware import PACKAGE, RANGE, Build, Card, hardware_of, right_build
from models.llama.placement import Device
from models.llama.probe import InstalledBuild, read_found
from server.settings import read_settings
from tests.support import ROOT

GIGABYTE = 1_000_000_000


@dataclass
class Pretended:
    """A machine that a test describes: its files with what they hold, and what programs print."""

    system: str = "Linux"
    processor: str = "x86_64"
    memory: float = 16.4
    files: Mapping[str, str] = field(default_factory=dict)
    prints: Mapping[str, str] = field(default_factory=dict)

    def paths(self, pattern: str) -> list[str]:
        """Return the files that a pattern matches."""
        return sorted(fnmatch.filter(self.files, pattern))

    def text(self, path: str) -> str:
        """Return what a file holds."""
        return self.files.get(path, "")

    def run(self, *command: str) -> str:
        """Return what a program prints, whatever it is asked."""
        return self.prints.get(" ".join(command[:2]), self.prints.get(command[0], ""))


def on_bus(vendor: str, *, driver: str, number: int = 0, **more: str) -> dict[str, str]:
    """Return the files of a card as Linux shows them."""
    device = f"/sys/class/drm/card{number}/device"
    files = {f"{device}/vendor": vendor, f"{device}/uevent": f"DRIVER={driver}\nPCI_ID=1:2"}
    return files | {f"{device}/{name}": text for name, text in more.items()}


RADEON = on_bus(
    "0x1002",
    driver="amdgpu",
    product_name="Radeon RX 7900 XTX",
    mem_info_vram_total=str(24 * GIGABYTE),
    mem_info_vram_vendor="samsung",
)
VULKAN = {
    "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json": "{}",
    "/usr/share/vulkan/icd.d/intel_icd.x86_64.json": "{}",
}
GEFORCE = {"nvidia-smi": "NVIDIA GeForce RTX 4090, 24564\nNVIDIA GeForce GTX 1650, 4096\n"}
MAC = {
    "sysctl -n": "1",
    "system_profiler": json.dumps({"SPDisplaysDataType": [{"sppci_model": "Apple M2"}]}),
}
MACHINES = {
    "nvidia": Pretended(
        files=on_bus("0x10de", driver="nvidia"), prints={**GEFORCE, "nvcc": "release 12.4"}
    ),
    "nvidia without a driver": Pretended(files=on_bus("0x10de", driver="nouveau")),
    "nvidia on Windows": Pretended(
        system="Windows",
        processor="AMD64",
        prints={**GEFORCE, "powershell": '{"Name": "NVIDIA GeForce RTX 4090"}'},
    ),
    "amd with ROCm": Pretended(
        files={**RADEON, "/dev/kfd": "", "/opt/rocm-6.4": "", "/opt/rocm-6.4/bin/hipcc": ""}
    ),
    "amd": Pretended(files={**RADEON, **VULKAN}, prints={"glslc": "shaderc"}),
    "intel inside": Pretended(files={**on_bus("0x8086", driver="i915"), **VULKAN}),
    "intel without Vulkan": Pretended(files=on_bus("0x8086", driver="i915")),
    "apple": Pretended(system="Darwin", processor="arm64", prints=MAC),
    "apple by a Python for Intel": Pretended(system="Darwin", processor="x86_64", prints=MAC),
    "nothing": Pretended(),
}
EXPECTED = {
    "nvidia": ("CUDA", 'CMAKE_ARGS="-DGGML_CUDA=on" pip install', ""),
    "nvidia without a driver": ("CUDA", "DGGML_CUDA", "driver is missing"),
    "nvidia on Windows": ("CUDA", '$env:CMAKE_ARGS="-DGGML_CUDA=on"; pip install', "nvcc"),
    "amd with ROCm": ("ROCm", 'CMAKE_ARGS="-DGGML_HIP=on" pip install', ""),
    "amd": ("Vulkan", 'CMAKE_ARGS="-DGGML_VULKAN=on" pip install', ""),
    "intel inside": ("Vulkan", "-DGGML_VULKAN=on", "glslc"),
    "intel without Vulkan": ("Vulkan", "-DGGML_VULKAN=on", "mesa-vulkan-drivers"),
    "apple": ("Metal", 'CMAKE_ARGS="-DGGML_METAL=on" pip install', ""),
    "apple by a Python for Intel": ("Metal", "", "Python for arm64"),
    "nothing": ("CPU", "", ""),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_gets_the_command_that_builds_llama_for_its_graphics(name: str) -> None:
    build = right_build(hardware_of(MACHINES[name]))
    backend, command, needs = EXPECTED[name]
    assert build.backend == backend
    assert command in build.command
    assert bool(build.command) == bool(command)
    assert needs in build.needs
    assert bool(build.needs) == bool(needs)


def test_cards_are_seen_with_their_memory_and_each_once() -> None:
    two = hardware_of(MACHINES["nvidia"])
    assert [card.name for card in two.cards] == [
        "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce GTX 1650",
    ]
    assert two.best is not None
    assert two.best.memory == pytest.approx(25.8, abs=0.1)
    amd = hardware_of(MACHINES["amd"])
    assert amd.cards == (Card("AMD", "Radeon RX 7900 XTX", 24.0),)
    both = Pretended(files={**on_bus("0x8086", driver="i915"), **_moved(RADEON, 1), **VULKAN})
    best = hardware_of(both).best
    assert best is not None
    assert best.vendor == "AMD"


def _moved(files: Mapping[str, str], number: int) -> dict[str, str]:
    return {name.replace("card0", f"card{number}"): text for name, text in files.items()}


def test_a_plug_of_a_card_is_no_card() -> None:
    plug = {"/sys/class/drm/card0-HDMI-A-1/device/vendor": "0x1002"}
    assert len(hardware_of(Pretended(files={**RADEON, **VULKAN, **plug})).cards) == 1


@pytest.mark.parametrize(
    ("name", "memory", "profile"),
    [
        ("nvidia", 32.0, "gpu-24gb"),
        ("amd", 32.0, "gpu-24gb"),
        ("intel inside", 32.0, "cpu-8gb"),
        ("apple", 17.0, "mac-16gb"),
        ("apple", 8.5, "mac-8gb"),
        ("nothing", 64.0, "cpu-8gb"),
    ],
)
def test_the_profile_follows_from_the_graphics_of_any_maker(
    name: str, memory: float, profile: str
) -> None:
    host = MACHINES[name]
    host.memory = memory
    assert fitting_profile(hardware_of(host)).name == profile


PLAIN = InstalledBuild("0.3.36", processor="AVX2, FMA")
ON_CUDA = InstalledBuild(
    "0.3.36", True, ("CUDA",), (Device("CUDA", "RTX 4090", 23 * GIGABYTE, number="CUDA0"),)
)


def reported(name: str, build: InstalledBuild) -> tuple[str, bool]:
    graphics, llama = machine_checks(look(MACHINES[name], build))
    assert graphics.name == "graphics"
    return llama.line, llama.healthy


def test_a_processor_build_on_a_machine_with_graphics_is_a_problem_with_its_command() -> None:
    line, healthy = reported("nvidia", PLAIN)
    assert not healthy
    assert line.startswith("0.3.36, CPU-only build (AVX2, FMA); ")
    assert 'CMAKE_ARGS="-DGGML_CUDA=on" pip install --force-reinstall' in line
    assert "--extra-index-url" in line
    assert "gives for cu118 to cu132" in line
    assert "RTX 4090" in line


def test_the_right_build_is_one_line_and_nothing_to_do() -> None:
    assert reported("nvidia", ON_CUDA) == (
        "0.3.36, build for CUDA: CUDA0 RTX 4090 with 23.0 GB free",
        True,
    )
    assert reported("nothing", PLAIN) == ("0.3.36, CPU-only build (AVX2, FMA)", True)


def test_a_build_that_finds_no_device_or_cannot_be_loaded_is_a_problem() -> None:
    line, healthy = reported("nvidia", InstalledBuild("0.3.36", True, ("CUDA",)))
    assert not healthy
    assert "it finds no device" in line
    line, healthy = reported(
        "nothing", InstalledBuild("0.3.36", fault="libcudart.so.12: not found")
    )
    assert not healthy
    assert "libcudart.so.12" in line


def test_without_the_extra_nothing_is_wrong_and_the_command_is_there() -> None:
    line, healthy = reported("amd", InstalledBuild())
    assert healthy
    assert line.startswith("not installed; only GGUF models need it; ")
    assert "-DGGML_VULKAN=on" in line
    assert reported("nothing", InstalledBuild()) == (
        "not installed; only GGUF models need it",
        True,
    )


def test_what_a_build_prints_of_itself_is_read_from_its_last_line() -> None:
    device = {"backend": "Vulkan", "name": "llvmpipe", "free": 7, "integrated": False}
    printed = {
        "offloads": True,
        "backends": ["Vulkan"],
        "devices": [{**device, "number": "Vulkan0"}],
        "processor": "AVX2",
    }
    found = read_found(f"a line of the library\n{json.dumps(printed)}\n", "0.3.36")
    assert found.devices == (Device("Vulkan", "llvmpipe", 7, number="Vulkan0"),)
    with pytest.raises(ValueError, match="Expecting value"):
        read_found("", "0.3.36")


def test_models_list_names_graphics_build_and_profile(
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = argparse.Namespace(action="list", names=[], json=False, dry_run=False, quiet=True)
    machine = look(MACHINES["amd with ROCm"], PLAIN)
    assert run_models(args, read_settings({}, {}), machine=lambda: machine) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "Radeon RX 7900 XTX, 24 GB" in first
    assert "profile gpu-24gb" in first
    assert second.startswith("llama.cpp: 0.3.36, CPU-only build")
    assert "-DGGML_HIP=on" in second


def test_no_command_names_a_host() -> None:
    for host in MACHINES.values():
        build: Build = right_build(hardware_of(host))
        assert "://" not in f"{build.command} {build.wheels} {build.needs}"
    assert isinstance(look(MACHINES["nothing"], PLAIN), Machine)


def test_the_command_installs_a_version_that_the_extra_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [one for one in project["optional-dependencies"]["llama"] if one.startswith(PACKAGE)]
    assert wanted == [f"{PACKAGE}{RANGE}"]
    assert f"'{PACKAGE}{RANGE}'" in right_build(hardware_of(MACHINES["nvidia"])).command
