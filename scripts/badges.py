"""Write the public address of this repository wherever it stands: pyproject.toml, README, notebooks.

python scripts/badges.py owner/name
"""

import re
import sys

import nbformat
from build_notebooks import ROOT, SOURCES, convert, repository

FILES = ("pyproject.toml", "README.md", "CITATION.cff", "CONTRIBUTING.md")


def main() -> None:
    if len(sys.argv) != 2 or not re.fullmatch(r"[\w.-]+/[\w.-]+", sys.argv[1]):
        sys.exit("Error: give the repository as owner/name: make badges REPO=owner/name")
    old, new = repository(), f"https://github.com/{sys.argv[1]}"
    old_repo, new_repo = (address.removeprefix("https://github.com/") for address in (old, new))
    for path in (ROOT / name for name in FILES):
        path.write_text(path.read_text(encoding="utf-8").replace(old_repo, new_repo), encoding="utf-8")
    for source in SOURCES.glob("*.py"):
        rewrite(source, new)
    print(f"{old} is now {new}")


def rewrite(source, address: str) -> None:
    """Give a built notebook the cells of its source with the new address; its outputs stay."""
    path = ROOT / "notebooks" / f"{source.stem}.ipynb"
    book = nbformat.read(path, as_version=4)
    for cell, fresh in zip(book.cells, convert(source, address).cells, strict=True):
        cell["source"] = fresh["source"]
    nbformat.write(book, path)


if __name__ == "__main__":
    main()
