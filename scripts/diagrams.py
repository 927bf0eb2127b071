"""Write the diagrams that README and docs show into docs/figures, and their alt texts into the pages.

    python scripts/diagrams.py     # or: make figures

Lessons draw theirs in a cell: `diagram("loop")`. A test fails if a file or an alt text is older than that
code.
"""

import re
from pathlib import Path

import matplotlib

from grpo_utils.plots.diagrams import draw_diagram

DOCS = Path(__file__).parent.parent / "docs"
#: The diagrams that are files, each with the page that shows it.
PAGES = {"loop": None, "path": "instructor-guide.md", "packages": "compatibility.md", "failures": "troubleshooting.md"}


def write(folder: Path) -> None:
    """One SVG for each diagram; equal code writes equal bytes."""
    for name in PAGES:
        figure, alt = draw_diagram(name)
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None, "Description": alt})


def image(name: str) -> str:
    """The Markdown that shows a diagram on a page of docs."""
    return f"![{draw_diagram(name)[1]}](figures/{name}.svg)"


def main() -> None:
    write(DOCS / "figures")
    for name, page in PAGES.items():
        if page:
            text = (DOCS / page).read_text(encoding="utf-8")
            found = re.sub(rf"!\[.*\]\(figures/{name}\.svg\)", lambda _, name=name: image(name), text)
            (DOCS / page).write_text(found, encoding="utf-8")
    print(f"wrote {', '.join(PAGES)} into {DOCS / 'figures'}, and their alt texts into the pages")


if __name__ == "__main__":
    main()
