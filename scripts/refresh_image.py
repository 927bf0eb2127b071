"""Refresh what is known of Colab's or Kaggle's image, for the test that resolves the install cells against it.

    python scripts/refresh_image.py colab pip-freeze.gpu.txt --python 3.13 --source "2026-08-19, commit a724079"

Google publishes the file in the repository googlecolab/backend-info. Kaggle publishes no such list: its image is built
on the image of Colab that the first lines of Dockerfile.tmpl in Kaggle/docker-python name, so take the file of that
date. The list says what is installed, and what the packages that our install reaches ask for, by the package index.
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
    """Names and versions of the lines ``name==version``; a package from an address has no version there.

    >>> frozen("# how it was made\\nPyYAML==6.0.3\\ntorch==2.11.0+cu128\\nspacy @ https://example.org/spacy.whl")
    {'pyyaml': '6.0.3', 'torch': '2.11.0+cu128'}
    """
    lines = re.findall(r"^([\w.-]+)==(\S+)$", text, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


def wanted() -> list[str]:
    """What the install cell of lesson 03 gives to pip, without Unsloth itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return project["dependencies"] + extras["colab"] + extras["unsloth"]


def reached(packages: dict[str, str], python: str) -> list[str]:
    """The packages of the image that our install reaches."""
    torch = f"torch=={packages['torch'].split('+')[0]}"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--no-annotate", "--python-version", python, "-"]
    text = "\n".join([*wanted(), torch])
    resolved = frozen(subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout)
    return sorted(set(resolved) & set(packages))


def needs(name: str, version: str, python: str) -> list[str]:
    """What one package asks for, without its extras; nothing is installed, and only its metadata downloaded."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    command += ["--report", "-", "--target", "none", "--only-binary", ":all:", "--python-version", python]
    command += [word for tag in ("_2_28", "_2_17", "2014") for word in ("--platform", f"manylinux{tag}_x86_64")]
    done = subprocess.run([*command, f"{name}=={version.split('+')[0]}"], capture_output=True, text=True)
    if done.returncode:
        print(f"{name} {version}: the index has no wheel, so what it asks for stays unknown")
        return []
    asked = json.loads(done.stdout)["install"][0]["metadata"].get("requires_dist", [])
    return [need for need in asked if "extra ==" not in need and not from_cuda(name, need)]


def from_cuda(name: str, need: str) -> bool:
    """Whether it is a package of CUDA's that torch asks for: the image has its own build of torch, for another CUDA."""
    return name == "torch" and need.startswith(("nvidia-", "cuda-"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", choices=["colab", "kaggle"])
    parser.add_argument("freeze", type=Path, help="the output of pip freeze in the image")
    parser.add_argument("--python", required=True, help="the image's Python, as 3.13")
    parser.add_argument("--source", required=True, help="date and commit of that file")
    given = parser.parse_args()
    packages = frozen(given.freeze.read_text(encoding="utf-8"))
    asked = {name: needs(name, packages[name], given.python) for name in reached(packages, given.python)}
    image = {"source": given.source, "python": given.python, "packages": packages, "needs": asked}
    path = IMAGES / f"{given.image}.json"
    path.write_text(json.dumps(image, indent=1) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(packages)} packages, {len(asked)} with what they ask for")


if __name__ == "__main__":
    main()
