"""Write the diagrams that lessons, README and docs show, and the alt texts of those in docs into the pages.

    python scripts/diagrams.py     # or: make figures

Lessons show a stored PNG from grpo_utils/plots/pictures: `diagram("loop")`. A test fails if a file or an alt text is
older than the code in scripts/drawings.
"""

import re
from pathlib import Path

from drawings import DIAGRAMS
from svg import save_svg

from grpo_utils.plots.base import DPI
from grpo_utils.plots.diagrams import PICTURES

DOCS = Path(__file__).parent.parent / "docs"
#: The diagrams that are files, each with the page that shows it.
PAGES = {"loop": None, "path": "instructor-guide.md", "packages": "compatibility.md", "failures": "troubleshooting.md"}


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
    """The Markdown that shows a diagram on a page of docs."""
    return f"![{DIAGRAMS[name]()[1]}](figures/{name}.svg)"


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    write_pictures(PICTURES)
    write(DOCS / "figures")
    for name, page in PAGES.items():
        if page:
            text = (DOCS / page).read_text(encoding="utf-8")
            found = re.sub(rf"!\[.*\]\(figures/{name}\.svg\)", lambda _, name=name: image(name), text)
            (DOCS / page).write_text(found, encoding="utf-8")
    print(f"wrote all into {PICTURES}, {', '.join(PAGES)} into {DOCS / 'figures'}, and their alt texts into the pages")


if __name__ == "__main__":
    main()
