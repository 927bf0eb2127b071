"""Write the diagrams that lessons, README and docs show, and the alt texts of those in docs into the pages.

    python scripts/diagrams.py     # or: make figures

Lessons show a stored PNG from grpo_utils/plots/pictures: `diagram("loop")`. A test fails if a file or an alt text is
older than the code in scripts/drawings.
"""

import posixpath
import re
from pathlib import Path

from drawings import DIAGRAMS
from svg import save_svg

from grpo_utils.plots.base import DPI
from grpo_utils.plots.diagrams import PICTURES

ROOT = Path(__file__).parent.parent
#: The diagrams that are files, each with the page that shows it.
PAGES = {
    "loop": "README.md",
    "packages": "docs/install.md",
    "failures": "docs/troubleshooting.md",
}


def write_pictures(folder: Path) -> None:
    """One PNG for each diagram, with its text; equal code writes equal bytes."""
    for name, draw in DIAGRAMS.items():
        figure, alt = draw()
        figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None, "Description": alt})


def write(folder: Path) -> None:
    """One SVG for each diagram of the pages; equal code writes equal bytes."""
    for name in PAGES:
        figure, alt = DIAGRAMS[name]()
        save_svg(figure, folder / f"{name}.svg", alt)


def image(name: str) -> str:
    """The Markdown that shows a diagram on its page."""
    folder = posixpath.relpath("docs/figures", posixpath.dirname(PAGES[name]) or ".")
    return f"![{DIAGRAMS[name]()[1]}]({folder}/{name}.svg)"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    write_pictures(PICTURES)
    write(ROOT / "docs" / "figures")
    for name, page in PAGES.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        found = re.sub(rf"!\[.*\]\([\w/]*figures/{name}\.svg\)", lambda _, name=name: image(name), text)
        (ROOT / page).write_text(found, encoding="utf-8")
    print(f"wrote all into {PICTURES}, {', '.join(PAGES)} into docs/figures, and their alt texts into the pages")


if __name__ == "__main__":
    main()
