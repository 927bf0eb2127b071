"""Update the package list of Colab's or Kaggle's image, for the test that resolves the install cells with it.

    python scripts/refresh_image.py colab pip-freeze.gpu.txt --python 3.13 --source "2026-08-19, commit a724079"

Google publishes the file in the repository googlecolab/backend-info. Kaggle publishes no such list. Its image is built
on the Colab image named in the first lines of Dockerfile.tmpl in Kaggle/docker-python, so use the file of that date.
The list has the installed packages, and the requirements of those that our install affects, from the package index.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "tests" / "images"


def frozen(text: str) -> dict[str, str]:
    """The names and versions in the lines ``name==version``; other lines have no version.

    >>> frozen("# how it was made\\nPyYAML==6.0.3\\ntorch==2.11.0+cu128\\nspacy @ https://example.org/spacy.whl")
    {'pyyaml': '6.0.3', 'torch': '2.11.0+cu128'}
    """
    lines = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


def wanted() -> list[str]:
    """The packages that lesson 03's install cell asks pip for, without Unsloth: those of grpo-check and the course."""
    checks, course = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for folder in ("grpo_check", "")
    )
    own = [line for line in course["dependencies"] if not line.startswith(checks["name"])]
    return (
        checks["dependencies"]
        + own
        + course["optional-dependencies"]["colab"]
        + course["optional-dependencies"]["unsloth"]
    )


def reached(packages: dict[str, str], python: str) -> list[str]:
    """The packages of the image that our install affects."""
    torch = f"torch=={packages['torch'].split('+')[0]}"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-annotate", "--python-version", python, "-"]
    text = "\n".join([*wanted(), torch])
    resolved = frozen(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout)
    return sorted(set(resolved) & set(packages))


def needs(name: str, version: str, python: str) -> list[str]:
    """The requirements of one package without extras; this downloads only metadata and installs nothing."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    command += ["--report", "-", "--target", "none", "--only-binary", ":all:", "--python-version", python]
    command += [word for tag in ("_2_28", "_2_17", "2014") for word in ("--platform", f"manylinux{tag}_x86_64")]
    done = subprocess.run([*command, f"{name}=={version.split('+')[0]}"], capture_output=True, text=True)
    if done.returncode:
        print(f"{name} {version}: the index has no wheel, so its requirements are unknown")
        return []
    asked = json.loads(done.stdout)["install"][0]["metadata"].get("requires_dist", [])
    return [need for need in asked if "extra ==" not in need and not from_cuda(name, need)]


def from_cuda(name: str, need: str) -> bool:
    """Whether this is one of torch's CUDA packages; the image has its own build of torch for another CUDA."""
    return name == "torch" and need.startswith(("nvidia-", "cuda-"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", choices=["colab", "kaggle"])
    parser.add_argument("freeze", type=Path, help="the output of pip freeze in the image")
    parser.add_argument("--python", required=True, help="the image's Python version, for example 3.13")
    parser.add_argument("--source", required=True, help="date and commit of that file")
    given = parser.parse_args()
    packages = frozen(given.freeze.read_text(encoding="utf-8"))
    asked = {name: needs(name, packages[name], given.python) for name in reached(packages, given.python)}
    image = {"source": given.source, "python": given.python, "packages": packages, "needs": asked}
    path = IMAGES / f"{given.image}.json"
    path.write_text(json.dumps(image, indent=1) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(packages)} packages, {len(asked)} with requirements")


if __name__ == "__main__":
    main()
