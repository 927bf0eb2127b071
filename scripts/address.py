"""Set the public address of this repository wherever it appears: pyproject.toml, README, lessons and two more files.

    python3 scripts/address.py owner/name                  # or: make badges REPO=owner/name
    python3 scripts/address.py owner/name --branch trunk   # the default branch, for badges and links
    python3 scripts/address.py owner/name --if-unset       # keep an address that is already set
    python3 scripts/address.py --unset                     # no address, as before the first push

It needs no installed package. You can run it again at any time, for example after a rename or after a merge that
changed the address.
"""

import argparse
import json
import posixpath
import re
import sys
from typing import NamedTuple

from install_cell import HOST, ROOT, with_address

COLAB = "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
KAGGLE = "[![Open in Kaggle](https://kaggle.com/static/images/open-in-kaggle.svg)]"
START = "To run this lesson in Colab"
BY_HAND = (
    f"{START}, choose **File > Open notebook** (GitHub or Upload); in Kaggle, **Create > New Notebook**, then "
    "**File > Import Notebook**. Links work on GitHub and in JupyterLab; elsewhere, look for the linked file "
    "in `docs/` or `notebooks/`."
)
#: What is left of a line that an address does not need, or that needs an address: a comment that no page shows.
NO_BADGES, NO_STEPS = "<!-- badges -->", "<!-- steps -->"
#: The line of the badges, and the one on opening a lesson by hand: in the source, with an address, and without.
BADGES = re.compile(rf"^(?:\{{\{{badges\}}\}}|{NO_BADGES}|{re.escape(COLAB)}).*$", re.MULTILINE)
STEPS = re.compile(rf"^(?:\{{\{{steps\}}\}}|{NO_STEPS}|{START}).*$", re.MULTILINE)
#: A link from a lesson to a file of the course: in the source, and to any copy of the course on GitHub.
RELATIVE = re.compile(r"\]\((?!\w+:)([\w./-]+\.\w+)(#[\w-]+)?\)")
ABSOLUTE = re.compile(
    rf"\]\({HOST}[\w.-]+/[\w.-]+/blob/[\w.-]+/((?:notebooks|docs|grpo_check|templates)/[\w./-]+)(#[\w-]+)?\)"
)
#: The text before the values in pyproject.toml.
PROJECT = (f'Repository = "{HOST}', 'branch = "')
#: The text before the address in a line, and the next line.
CI_BADGE = ("[![CI]({url}/actions/workflows/ci.yml/badge.svg)]({url}/actions/workflows/ci.yml)", "[![License")
CITATION = ('repository-code: "{url}"', "version: ")
CONTRIBUTING = ("git clone {url} && cd {folder}", "make test-fast ")


class Place(NamedTuple):
    """A GitHub repository and its default branch; without a repository, no address is set."""

    repo: str
    branch: str

    @property
    def url(self) -> str:
        """The public address, or "" while none is set."""
        return f"{HOST}{self.repo}" if self.repo else ""


def current() -> Place:
    """The address in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return Place(*(re.search(rf'^{start}(.*)"$', text, re.MULTILINE)[1] for start in PROJECT))


def project(text: str, place: Place) -> str:
    """pyproject.toml with this address and branch."""
    for start, value in zip(PROJECT, place, strict=True):
        text = re.sub(rf'^{start}.*"$', f'{start}{value}"', text, flags=re.MULTILINE)
    return text


def badges(name: str, place: Place) -> str:
    """Markdown that opens a lesson in Colab or Kaggle; "" without an address."""
    page = f"{place.repo}/blob/{place.branch}/notebooks/{name}.ipynb"
    colab = f"https://colab.research.google.com/github/{page}"
    return f"{COLAB}({colab}) {KAGGLE}(https://kaggle.com/kernels/welcome?src={HOST}{page})" if place.repo else ""


def with_line(text: str, line: str, following: str, place: Place) -> str:
    """The text with a line for the address before the line that starts with ``following``, or without it if unset."""
    text = re.sub(rf"^{re.escape(line.partition('{')[0])}.*\n", "", text, flags=re.MULTILINE)
    head, found, tail = text.partition(f"\n{following}")
    if not found:
        sys.exit(f"Error: no line starts with {following!r}, before which the address belongs; see scripts/address.py.")
    new = line.format(url=place.url, folder=place.repo.rpartition("/")[2])
    return f"{head}\n{new}{found}{tail}" if place.repo else text


def lesson_text(text: str, name: str, place: Place) -> str:
    """A Markdown cell of a lesson, with badges or the steps to open it by hand, and links that work everywhere.

    Colab and Kaggle have only the notebook, so relative links do not work there.
    """
    text = STEPS.sub(NO_STEPS if place.repo else BY_HAND, BADGES.sub(lambda _: badges(name, place) or NO_BADGES, text))
    text = relative_links(text)
    return RELATIVE.sub(lambda link: absolute_link(link, place), text) if place.repo else text


def absolute_link(link: re.Match, place: Place) -> str:
    path = posixpath.normpath(posixpath.join("notebooks", link[1]))
    return f"]({place.url}/blob/{place.branch}/{path}{link[2] or ''})"


def relative_links(text: str) -> str:
    """The text of a lesson with relative links to files of this repository; other links do not change."""

    def relative(link: re.Match) -> str:
        here = (ROOT / link[1]).exists()
        return f"]({posixpath.relpath(link[1], 'notebooks')}{link[2] or ''})" if here else link[0]

    return ABSOLUTE.sub(relative, text)


def notebook(text: str, name: str, place: Place) -> str:
    """A built lesson with this address and no other change."""
    book = json.loads(text)
    for cell in book["cells"]:
        source = "".join(cell["source"])
        code = cell["cell_type"] == "code"
        new = with_address(source, place.url) if code else lesson_text(source, name, place)
        cell["source"] = new.splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def write(name: str, change, *values) -> int:
    """Write a file; return 1 if its text changed."""
    path = ROOT / name
    old = path.read_text(encoding="utf-8")
    new = change(old, *values)
    if new != old:
        path.write_bytes(new.encode())  # on Windows too, keep the line ends of git
    return int(new != old)


def write_all(place: Place) -> int:
    """Write the address everywhere; return the number of changed files.

    pyproject.toml comes last, so that after an error the address is still unset and the next push tries again.
    """
    lessons = sorted((ROOT / "notebooks").glob("*.ipynb"))
    changed = sum(write(f"notebooks/{path.name}", notebook, path.stem, place) for path in lessons)
    changed += write("README.md", with_line, *CI_BADGE, place)
    changed += write("CITATION.cff", with_line, *CITATION, place)
    changed += write("CONTRIBUTING.md", with_line, *CONTRIBUTING, place)
    return changed + write("pyproject.toml", project, place)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(usage="make badges REPO=owner/name, or address.py owner/name [--branch BRANCH]")
    parser.add_argument("repo", nargs="?", default="", help="owner/name, as in the address on GitHub")
    parser.add_argument("--branch", default=current().branch, help="the default branch, now %(default)s")
    parser.add_argument("--if-unset", action="store_true", help="keep an address that is already set")
    parser.add_argument("--unset", action="store_true", help="remove the address")
    given = parser.parse_args()
    if not given.unset and not re.fullmatch(r"[\w.-]+/[\w.-]+", given.repo):
        parser.error(f"{given.repo!r} must look like owner/name: make badges REPO=owner/name")
    if not re.fullmatch(r"[\w.-]+", given.branch):
        parser.error(f"--branch {given.branch!r} cannot be part of a link: use only letters, digits, '.', '_' and '-'")
    return given


def main() -> None:
    given, old = arguments(), current()
    if given.if_unset and old.repo:
        print(f"kept {old.url}, because an address is already set")
    else:
        place = Place("" if given.unset else given.repo, given.branch)
        print(f"address: {place.url or 'not set'}, branch {place.branch}; {write_all(place)} files changed")


if __name__ == "__main__":
    main()
