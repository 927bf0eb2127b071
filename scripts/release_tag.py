"""Check a tag against the version it names, and print how the files of that distribution begin.

    python scripts/release_tag.py grpo-check-v0.1.0    grpo_check-0.1.0

The release workflow runs this before it publishes `outputs/dist/<that>*`, which `make dist` wrote.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
#: The distributions that tags name, and their folders.
FOLDERS = {"grpo-check": ROOT / "grpo_check", "grpo-utils": ROOT}


def files_of(tag: str) -> str:
    name, _, version = tag.rpartition("-v")
    if name not in FOLDERS:
        sys.exit(f"Error: the tag {tag!r} should be {' or '.join(f'{one}-vVERSION' for one in FOLDERS)}.")
    project = tomllib.loads((FOLDERS[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if version != project["version"]:
        sys.exit(f"Error: the tag {tag!r} says {version}, but {name}'s pyproject.toml says {project['version']}.")
    return f"{re.sub(r'[-.]', '_', name)}-{version}"


if __name__ == "__main__":
    print(files_of(*sys.argv[1:]))
