"""A resolver tries each install against its system: the images of Colab and Kaggle, and a fresh environment elsewhere.

Nothing is installed: only the metadata of packages is downloaded. Where no package index answers, they are skipped.
Only a pin or someone's release breaks them; `test_install_pins.py` checks the pins themselves on every commit.
"""

import functools
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from course import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from refresh_image import frozen, wanted
from refresh_image import needs as needs_of
from requirement_lists import extras, left_out, needs, pinned, read, requirements

pytestmark = [pytest.mark.slow, pytest.mark.upgrade]

#: What must stay as the image has it: a running session has them loaded, and torch fits the image's CUDA.
KEPT = {"torch", "torchvision", "numpy", "pillow", "pandas"}
#: What docs/install.md says the install changes there; a release of tomorrow may change one more.
IN_BOTH = {"datasets", "pyarrow", "torchao"}
CHANGED = {"colab": IN_BOTH, "kaggle": IN_BOTH | {"transformers", "tokenizers", "safetensors"}}
#: Packages that both images have and the install does not touch, but which need what it may change. A resolver does not
#: see their needs; pip does, and prints an error in red.
NEIGHBORS = ("bigframes", "cudf-cu12", "diffusers", "omegaconf", "sentence-transformers", "torchtune")
LINUX = "x86_64-manylinux_2_28"
LOCAL = {
    "Linux, NVIDIA GPU, 3.11": (LINUX, "3.11", ["requirements.txt", "requirements-gpu.txt"]),
    "Linux, NVIDIA GPU, 3.13": (LINUX, "3.13", ["requirements.txt", "requirements-gpu.txt"]),
    "Linux, CPU, 3.12": (LINUX, "3.12", ["requirements.txt"]),
    "Windows, NVIDIA GPU, 3.12": ("x86_64-pc-windows-msvc", "3.12", ["requirements.txt", "requirements-gpu.txt"]),
    "macOS 14, Apple Silicon, 3.13": ("aarch64-apple-darwin", "3.13", ["requirements.txt"]),
}


def uv(*arguments: str, text: str = "") -> subprocess.CompletedProcess:
    quiet = {"UV_PYTHON_DOWNLOADS": "never", "MACOSX_DEPLOYMENT_TARGET": "14.0", "UV_HTTP_RETRIES": "1"}
    command = [sys.executable, "-m", "uv", "--color", "never", "pip", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT, env=os.environ | quiet)


@pytest.fixture(scope="module")
def index():
    """A package index that answers."""
    metadata.version("uv")  # without it nothing would be resolved, and nothing said
    tried = uv("compile", "--no-cache", "--no-deps", "-", text="tqdm")
    if tried.returncode:
        pytest.skip(f"no package index answers, so nothing can be resolved: {tried.stderr.strip().splitlines()[-1]}")


# The images


def fake_site(image: dict, folder: Path) -> Path:
    """A folder that looks to a resolver as if the image's packages were installed there."""
    for name, version in image["packages"].items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        asked = [f"Requires-Dist: {need}" for need in image["needs"].get(name, [])]
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *asked]
        (info / "METADATA").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for file in ("RECORD", "INSTALLER"):
            (info / file).touch()
    return folder


def after(image: dict, folder: Path, *what: str) -> dict[str, str]:
    """The image's packages after an install into it."""
    where = ["--target", str(fake_site(image, folder)), "--python-version", image["python"]]
    done = uv("install", "--dry-run", *where, "--python-platform", "x86_64-manylinux_2_35", *what)
    assert done.returncode == 0, done.stderr
    return image["packages"] | dict(re.findall(r"^ \+ ([\w.-]+)==(\S+)$", done.stderr, re.MULTILINE))


def read_image(name: str) -> dict:
    return json.loads((ROOT / "tests" / "images" / f"{name}.json").read_text(encoding="utf-8"))


def changed(image: dict, packages: dict[str, str]) -> set[str]:
    return {name for name, version in image["packages"].items() if packages[name] != version}


@pytest.mark.parametrize("name", ["colab", "kaggle"])
def test_the_install_cells_resolve_in_the_image_and_change_little(name, index, tmp_path):
    image = read_image(name)
    lesson_03 = after(image, tmp_path / "03", *wanted())
    assert CHANGED[name] <= changed(image, lesson_03) and not KEPT & changed(image, lesson_03)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert not [package for package in CHANGED[name] if package not in page]
    assert lesson_03["trl"] == "1.14.0" and "xformers" in lesson_03
    there = dict(sys_platform="linux", platform_machine="x86_64", python_version=image["python"])
    asked = [n for n in needs() if not n.marker or n.marker.evaluate(there)]
    wrong = [str(n) for n in asked if not is_met(n, lesson_03)]
    assert not wrong, "what Unsloth asks for is not there after its second line, --no-deps"


def is_met(need: Requirement, packages: dict[str, str]) -> bool:
    """Whether the image has it; what is left out, and Unsloth itself, need not be there."""
    name = need.name.replace("_", "-").lower()
    return name in left_out() or name == "unsloth-zoo" or need.specifier.contains(packages.get(name, "0"))


asked_by = functools.cache(needs_of)


def broken(image: dict, packages: dict[str, str]) -> list[str]:
    """What the neighbors need and these packages no longer give, although the image gives it."""
    moved = {name: packages[name] for name in changed(image, packages)}
    faults = []
    for neighbor in NEIGHBORS:
        for need in map(Requirement, asked_by(neighbor, image["packages"][neighbor], image["python"])):
            version = moved.get(canonicalize_name(need.name))
            if version and not need.specifier.contains(version):
                faults.append(f"{neighbor}: {need}, but {version}")
    return faults


@pytest.mark.parametrize("name", ["colab", "kaggle"])
def test_the_install_breaks_no_neighbor_and_one_that_does_would_be_seen(name, index, tmp_path):
    image = read_image(name)
    assert not broken(image, after(image, tmp_path / "ours", *wanted()))
    [said] = broken(image, after(image, tmp_path / "other", "math-verify[antlr4_13_2]==0.9.0"))
    assert said.startswith("omegaconf: antlr4-python3-runtime==4.9")


@pytest.mark.parametrize("name", ["colab", "kaggle"])
def test_a_lesson_on_the_cpu_brings_nothing_of_unsloths(name, index, tmp_path):
    image = read_image(name)
    second = {str(r) for r in extras()["unsloth"]}
    packages = after(image, tmp_path, *(line for line in wanted() if line not in second))
    assert not KEPT & changed(image, packages)
    assert not {"unsloth", "unsloth-zoo", "xformers"} & set(packages)


def test_a_change_of_torch_would_be_seen(index, tmp_path):
    image = read_image("colab")
    assert KEPT & changed(image, after(image, tmp_path, "torch==2.13.0", "pillow>=12"))


@pytest.mark.parametrize("file", ["requirements-unsloth.txt", "requirements-reasoning-gym.txt"])
def test_what_is_installed_without_dependencies_is_there(index, file):
    done = uv("compile", "--no-deps", "--only-binary", ":all:", "--python-version", "3.13", file)
    assert done.returncode == 0, done.stderr


# Our own environment


@pytest.mark.parametrize("system", LOCAL)
def test_the_pinned_environment_resolves_from_wheels_alone(system, index):
    platform, python, files = LOCAL[system]
    where = ["--python-platform", platform, "--python-version", python]
    done = uv("compile", "--no-annotate", "--only-binary", ":all:", *where, *files)
    assert done.returncode == 0, done.stderr
    packages = frozen(done.stdout)
    assert packages["torch"] == metadata.version("torch").split("+")[0]
    assert len(files) == 1 or {"triton", "triton-windows"} & set(packages), "Unsloth's kernels need one of them"
    simulated = pinned(requirements(read("requirements-gpu-path.txt")))["triton"]
    assert packages.get("triton", simulated) == simulated, "the GPU path runs another Triton than torch brings"
