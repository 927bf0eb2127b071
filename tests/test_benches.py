"""What the benches share: they continue where they stopped, refuse unknown arguments, and only tests import them."""

import ast
import sys

import bench_estimate
import bench_merge
import bench_rewards
import benches
import pytest
from course import ROOT

EXPERIMENTS = {"experiments", "free", *(path.stem for path in (ROOT / "experiments").glob("*.py"))}


def test_a_bench_continues_where_it_stopped(tmp_path):
    path, trained = tmp_path / "rows.json", []
    wanted = [dict(variant=name, seed=seed) for seed in (0, 1) for name in "ab"]

    def train(variant: str, seed: int) -> dict:
        if len(trained) == 2:
            trained.append("interrupted")
            raise KeyboardInterrupt
        trained.append((variant, seed))
        return dict(accuracy=0.5)

    with pytest.raises(KeyboardInterrupt):
        benches.train_missing(path, wanted, train)
    stored = benches.train_missing(path, wanted, train)
    assert trained == [("a", 0), ("b", 0), "interrupted", ("a", 1), ("b", 1)]
    assert stored["rows"] == benches.read_stored(path)["rows"] == [run | dict(accuracy=0.5) for run in wanted]


@pytest.mark.parametrize("bench", [bench_estimate, bench_merge, bench_rewards], ids=lambda bench: bench.__name__)
def test_a_bench_that_stores_nothing_refuses_to_write_without_measuring(bench, monkeypatch):
    """The fault: it measured for minutes although it was told only to write, or stopped with a traceback."""
    monkeypatch.setattr(sys, "argv", [f"{bench.__name__}.py", "--write"])
    with pytest.raises(SystemExit, match="unknown argument '--write': this bench stores nothing"):
        bench.main()


@pytest.mark.parametrize("page", ["# Page\n\nwritten by hand\n", "<!-- end -->\n\n# Page\n\n<!-- begin -->\nold\n"])
def test_a_page_that_lost_a_mark_is_refused_and_stays_as_it_is(page, tmp_path):
    """The fault: what follows was deleted from the page, or a second copy came to its end, and nothing said so."""
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(SystemExit, match="page.md does not have the mark '<!-- below -->'"):
        benches.write_below(path, "<!-- below -->", "<!-- below -->\nnew\n")
    with pytest.raises(SystemExit, match="page.md does not have the mark '<!-- (begin|end) -->'"):
        benches.write_between(path, "<!-- begin -->", "<!-- end -->", "<!-- begin -->\nnew\n<!-- end -->")
    assert path.read_text(encoding="utf-8") == page


def test_writing_between_two_marks_keeps_the_rest_of_the_page(tmp_path):
    path = tmp_path / "page.md"
    page = "above\n<!-- a table -->\n<!-- end -->\nmiddle\n<!-- begin -->\n{}\n<!-- end -->\nbelow\n"
    path.write_text(page.format("old"), encoding="utf-8")
    benches.write_between(path, "<!-- begin -->", "<!-- end -->", "<!-- begin -->\nnew\n<!-- end -->")
    assert path.read_text(encoding="utf-8") == page.format("new")


def test_a_page_is_filled_with_exactly_its_values(tmp_path, monkeypatch):
    monkeypatch.setattr(benches, "PAGES", tmp_path)
    (tmp_path / "page.md").write_text("{{rows:,}} rows of {{{name}}} at {{rate:.0%}}\n", encoding="utf-8")
    assert benches.filled("page", rows=2000, name="a", rate=0.5) == "2,000 rows of {a} at 50%\n"
    for values in dict(rows=1, name="a"), dict(rows=1, name="a", rate=1, others=2):
        with pytest.raises(ValueError, match="page.md and its bench do not have the same values: (rate|others)$"):
            benches.filled("page", **values)


def imported_by(text: str) -> set[str]:
    """The first part of the name of every module that a file imports."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def test_nothing_outside_experiments_imports_them():
    folders = [ROOT / name for name in ("scripts", "grpo_utils", "grpo_check/src", "notebooks", "templates")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    found = {str(path): imported_by(path.read_text(encoding="utf-8")) & EXPERIMENTS for path in files}
    assert len(found) > 100 and {path: names for path, names in found.items() if names} == {}
