"""Student copies hold everything but the solutions, and nobody's work is overwritten."""

import re
import symtable

import nbformat
import pytest
import workshop
from address import BADGES, STEPS, Place, current, lesson_text
from build_notebooks import SOURCES, convert
from course import ROOT

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def books(request):
    book = nbformat.read(request.param, as_version=4)
    unfilled = convert(SOURCES / f"{request.param.stem}.py", current())
    return book, workshop.student_copy(book, request.param.stem, unfilled)


def tagged(book, tag: str) -> list:
    return [cell for cell in book.cells if tag in cell.metadata.get("tags", [])]


def small(*cells) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=list(cells))


def solution(source: str = "answer = 42"):
    return nbformat.v4.new_code_cell(source, metadata={"tags": ["solution"]})


def folded(text: str = "It is 42."):
    return nbformat.v4.new_markdown_cell(f"<details><summary>Solution</summary>\n\n{text}\n</details>")


def test_no_solution_is_left(books):
    lesson, copy = books
    text = "\n".join(cell.source for cell in copy.cells)
    assert tagged(lesson, "solution") and not tagged(copy, "solution")
    assert not workshop.FOLDED.search(text) and "_solution" not in text and ", solution" not in text


def test_everything_else_is_kept_in_order(books):
    lesson, copy = books
    kept = [c for c in lesson.cells if c not in tagged(lesson, "solution") and not workshop.is_folded_solution(c)]
    assert [(c.id, c.cell_type) for c in kept] == [(c.id, c.cell_type) for c in copy.cells]
    code = [re.sub(r', lesson="\w+"', "", c.source) for c in copy.cells if c.cell_type == "code"]
    assert code == [c.source for c in kept if c.cell_type == "code"]
    texts = [cell for cell in lesson.cells if cell.source.startswith("<details><summary>Solution")]
    assert len(lesson.cells) - len(copy.cells) == len(tagged(lesson, "solution")) + len(texts)
    assert len(tagged(copy, "parameters")) == 1 and copy.cells[0].source.startswith("# ")


def test_each_solution_leaves_a_check_behind_which_records_its_result(books):
    lesson, copy = books
    checks = [cell for cell in copy.cells if cell.cell_type == "code" and "check_exercise(" in cell.source]
    assert len(checks) == len(tagged(lesson, "solution"))
    assert all(re.search(r', lesson="\d\d_\w+"\)\)?$', cell.source, flags=re.MULTILINE) for cell in checks)


def test_a_copy_says_nothing_about_solutions_that_it_does_not_have(books):
    assert not [cell.source for cell in books[1].cells if "unfold" in cell.source]


def test_it_is_a_valid_notebook_without_outputs(books):
    _, copy = books
    nbformat.validate(copy)
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def tables(source: str) -> list[symtable.SymbolTable]:
    """The names of a cell: of its top level, and of every function and comprehension in it."""
    found = [symtable.symtable(re.sub(r"^\s*%.*", "    pass", source, flags=re.MULTILINE), "cell", "exec")]
    for table in found:
        found.extend(table.get_children())
    return found


def bound(cells: list) -> set[str]:
    tops = [tables(cell.source)[0] for cell in cells]
    return {s.get_name() for top in tops for s in top.get_symbols() if s.is_assigned() or s.is_imported()}


def needed(cells: list) -> set[str]:
    symbols = [s for cell in cells for table in tables(cell.source) for s in table.get_symbols()]
    return {s.get_name() for s in symbols if s.is_referenced() and s.is_global()}


def test_no_kept_cell_needs_a_name_from_a_solution(books):
    lesson, copy = books
    kept = [cell for cell in copy.cells if cell.cell_type == "code"]
    lost = bound(tagged(lesson, "solution")) - bound(kept)
    assert not lost & needed(kept)


def test_the_line_with_the_badges_goes_because_it_opens_the_solutions(books):
    lesson, copy = books
    for line in (BADGES, STEPS):
        [place] = [number for number, cell in enumerate(lesson.cells) if line.search(cell.source)]
        assert not line.search("\n".join(cell.source for cell in copy.cells))
        before, after = lesson.cells[place].source, copy.cells[place].source
        folds = after.count("<details>") - before.count("<details>")
        assert after.count("\n\n") - folds == before.count("\n\n") - 1


def test_the_first_cell_of_a_copy_does_not_give_away_what_the_class_guesses(books):
    lesson, copy = books
    shown = re.sub(r"<details>.+?</details>", "", copy.cells[0].source, flags=re.DOTALL)
    values = lesson.cells[0].metadata.get("values", [])
    assert "**Guess first:**" in shown and (not values or workshop.AT_THE_END in copy.cells[0].source)


def test_a_copy_of_a_lesson_with_an_address_links_to_the_folder_that_is_handed_out(books, request):
    lesson, copy = books
    for cell in lesson.cells:
        if cell.cell_type == "markdown":
            cell.source = lesson_text(cell.source, "03_grpo_lora", Place("somebody/other-course", "main"))
    unfilled = convert(SOURCES / f"{request.node.callspec.id}.py", current())
    assert workshop.student_copy(lesson, request.node.callspec.id, unfilled) == copy


def test_what_a_run_showed_is_folded_until_it_was_run(books):
    lesson, copy = books
    by_id = {cell.id: cell for cell in copy.cells}
    told = [cell for cell in lesson.cells[1:] if cell.metadata.get("values") and cell.id in by_id]
    assert told
    for cell in told:
        open_text = re.sub(r"<details>.*?</details>", "", by_id[cell.id].source, flags=re.DOTALL)
        folded_text = by_id[cell.id].source.count("<details>")
        assert folded_text and len(open_text) < len(by_id[cell.id].source)
    assert all(cell.source.count("<details>") == cell.source.count("</details>") for cell in copy.cells)


def test_the_lesson_itself_is_not_changed():
    book = small(folded(), solution())
    workshop.student_copy(book, "a")
    assert len(book.cells) == 2 and "tags" not in book.cells[0].metadata


def test_a_class_is_not_sent_to_a_gpu():
    book = small(folded(), solution())
    book.metadata |= {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    assert not {"accelerator", "colab"} & set(workshop.student_copy(book, "a").metadata)


def test_one_folded_text_goes_with_all_solutions_that_follow_it():
    both = nbformat.v4.new_markdown_cell("<details><summary>Solutions</summary>\n\nIt is 42.\n</details>")
    kept = nbformat.v4.new_code_cell("x = 1")
    assert workshop.student_copy(small(kept, both, solution(), solution()), "a").cells == [kept]


@pytest.mark.parametrize(
    "before",
    [
        nbformat.v4.new_markdown_cell("Read this before you go on."),
        nbformat.v4.new_code_cell("x = 1"),
        nbformat.v4.new_markdown_cell(folded().source + "\n\nRead this before you go on."),
    ],
)
def test_a_solution_whose_text_cannot_be_told_is_refused(before):
    with pytest.raises(SystemExit, match="not only its folded text"):
        workshop.student_copy(small(before, solution()), "a")


def test_a_learners_work_is_put_aside_and_never_lost(tmp_path):
    path = tmp_path / "a.ipynb"
    assert workshop.put(path, "fresh") == "a.ipynb: written"
    assert workshop.put(path, "fresh") == "a.ipynb: unchanged"
    for work in ("my answers", "more answers"):  # within one second, so the time alone would not do
        path.write_text(work)
        assert "is kept as a-20" in workshop.put(path, "fresh")
    assert sorted(p.read_text() for p in tmp_path.iterdir()) == ["fresh", "more answers", "my answers"]


def relative_links_of(path) -> list[str]:
    """Every relative link in the text of a lesson or document, to folders as well; code may look like one."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.reads(text, 4).cells if cell.cell_type == "markdown")
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text)


def test_the_folder_stands_alone(tmp_path, capsys):
    workshop.main(tmp_path)
    files = [*tmp_path.glob("*.ipynb"), *tmp_path.glob("docs/*.md"), *tmp_path.glob("grpo_check/docs/*.md")]
    dead = [
        (path.name, link) for path in files for link in relative_links_of(path) if not (path.parent / link).exists()
    ]
    assert not dead
    page = tmp_path / "docs" / "pay-a-model.html"
    links = re.findall(r'href="([^"#:]+)["#]', page.read_text(encoding="utf-8"))
    assert links and all((page.parent / link).exists() for link in links)
    assert len(list(tmp_path.glob("*.ipynb"))) == len(LESSONS)
    assert not (tmp_path / "docs" / "instructor-guide.md").exists()


@pytest.mark.parametrize(
    ("link", "without_address", "with_address"),
    [
        ("[04](04_reading_a_run.ipynb#a)", None, None),
        ("![loop](../docs/figures/loop.svg)", "![loop](docs/figures/loop.svg)", "![loop](docs/figures/loop.svg)"),
        ("[tools](../templates/tool_agent)", "tools", "[tools](https://github.com/a/b/blob/main/templates/tool_agent)"),
        ("[guide](../docs/instructor-guide.md#draw)", "guide", "guide"),
        ("[TRL](https://huggingface.co/docs/trl), [above](#top) and `[A-Z](?:[)`", None, None),
    ],
)
def test_a_link_works_or_becomes_text(link, without_address, with_address):
    unset, other = Place("", "main"), Place("a/b", "main")
    assert workshop.with_working_links(link, "notebooks", unset) == (without_address or link)
    assert workshop.with_working_links(link, "notebooks", other) == (with_address or link)


def test_a_document_links_to_the_lessons_above_it():
    text = (
        "[Lesson 04](../notebooks/04_reading_a_run.ipynb), [settings](settings.md#beta) and ![loop](figures/loop.svg)"
    )
    copy = workshop.with_working_links(text, "docs", Place("", "main"))
    assert copy == text.replace("notebooks/", "")
