"""What README, guide and lessons say of minutes and memory is what `make bench` measured."""

import re

import nbformat
import pytest
from conftest import ROOT

RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "instructor-guide.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def measured(name: str) -> tuple[str, str]:
    """Minutes and memory as they are told: of the slower, and of the larger of both families, rounded."""
    rows = re.findall(rf"^\| `{name}` \| \w+ \| (\d+) s \| ([\d.]+) GB \|", RESULTS, flags=re.MULTILINE)
    assert len(rows) == 2, f"docs/results.md has not both families of {name}: make bench"
    minutes = max(1, round(max(int(seconds) for seconds, _ in rows) / 60))
    return f"{minutes} minute{'s' * (minutes > 1)}", f"{max(float(peak) for _, peak in rows):.1f} GB"


def row_of(page: str, name: str) -> str:
    return re.search(rf"^\| \[\d\d .*{name}\.ipynb.*$", page, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_page_tells_what_was_measured(path):
    minutes, memory = measured(path.stem)
    opening = nbformat.read(path, as_version=4).cells[0].source
    assert re.search(rf"time for Run All \| about {minutes} \(\[measured\]", opening)
    assert re.search(rf"memory \| {memory} \(\[measured\]", opening)
    assert f"| {minutes}, {memory} (measured) |" in row_of(README, path.stem)
    assert f"| {minutes} (measured) |" in row_of(GUIDE, path.stem)
