"""Lesson 07 as readers run it: the committed notebook, and the same with other parameters."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said
from safetensors.numpy import load_file

from grpo_utils import SYSTEM_PROMPT
from grpo_utils.__main__ import read_parameters
from grpo_utils.profiles import PROFILES
from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "07_export.ipynb"
TRUE = (
    "named as asked for",
    "a merge without loss",
    "chat template beside it",
    "right padding breaks it",
    "answers like the folder itself",
)
NUMBER = r"(\d\.\de[+-]\d\d)"


@pytest.fixture(scope="module")
def committed() -> str:
    return said(nbformat.read(LESSON, as_version=4))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The folder in which nbval ran the committed notebook, from the first cell to the last."""
    folder = tmp_path_factory.mktemp("nbval")
    result = run_with_nbval(LESSON, folder, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]
    return folder / "outputs" / "export"


def texts_in(folder: Path) -> dict[str, str]:
    kinds = {".json", ".md", ".jinja", ".txt", ""}
    return {str(file): file.read_text() for file in folder.rglob("*") if file.is_file() and file.suffix in kinds}


def test_what_the_lesson_leaves_names_no_path_of_this_machine_and_no_token(run):
    texts = texts_in(run)
    assert len(texts) > 12
    places = (str(ROOT), str(run.resolve()), str(Path.home()) + "/", "hf_")
    found = [(file, place) for file, text in texts.items() for place in places if place in text]
    assert not found


def test_the_report_keeps_the_contract(run):
    report = json.loads((run / "report.json").read_text())
    assert {"profile", "family", "model", "steps", "seed", "p_value", "backend", "load_in_4bit"} <= report.keys()
    assert report["before"].keys() == report["after"].keys() == report["merged"].keys()
    assert report["after"]["accuracy"] > report["before"]["accuracy"] + 0.4
    assert report["merged"]["greedy_accuracy"] >= 0.95 and report["merge_difference"] < 1e-4


def test_the_card_says_what_the_report_says(run):
    from huggingface_hub import ModelCard

    report, card = json.loads((run / "report.json").read_text()), ModelCard.load(run / "merged" / "README.md")
    low, high = report["merged"]["accuracy_ci95"]
    assert f"{report['merged']['accuracy']:.3f} ({low:.3f} to {high:.3f})" in card.text
    assert card.data.library_name == "transformers" and SYSTEM_PROMPT in card.text
    assert ModelCard.load(run / "adapter" / "README.md").data.library_name == "peft"


def test_the_merged_model_loads_and_answers_without_the_course(run):
    code = """
import sys
from transformers import pipeline
chat = pipeline("text-generation", model="merged")
messages = [{"role": "system", "content": sys.argv[1]}, {"role": "user", "content": "What is 15 + 27?"}]
print(chat(messages, max_new_tokens=32, do_sample=False)[0]["generated_text"][-1]["content"])
assert not {"unsloth", "peft", "grpo_utils"} & set(sys.modules), "not plain"
"""
    command = [sys.executable, "-c", code, SYSTEM_PROMPT]
    asked = subprocess.run(command, cwd=run, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    assert is_strictly_right(asked.stdout.strip(), "42"), asked.stdout


@pytest.mark.parametrize("line", TRUE)
def test_the_committed_lesson_computes_its_verdicts(committed, line):
    assert f"{line}: True" in committed


def test_only_the_exact_merge_is_exact(committed):
    names = (
        "adapter beside base, and its fp32 merge",
        "merge in fp32, and in bf16",
        "4-bit policy, and the merge",
        "4-bit policy, and merged into 4 bits",
    )
    exact, *others = (float(re.search(rf"^{name} +{NUMBER}", committed, re.MULTILINE)[1]) for name in names)
    assert exact < 1e-4 and min(others) > 1000 * exact and min(others) > 0.01


def test_the_checklist_is_ticked(committed, other_family):
    for text in (committed, other_family[1]):
        assert text.count("[x]") == 8 and "[ ]" not in text


def test_the_merged_model_is_compared_itself(run, committed):
    """The fault: report and card proved the policy, and were handed on with the merged model."""
    report = json.loads((run / "report.json").read_text())
    assert report["merged_p_value"] < 0.05 and "merged, bf16, against the policy" in committed
    assert 'compares "before" with "merged"' in (run / "merged/README.md").read_text()


def test_the_lines_for_your_own_run_merge_it(run, tmp_path, monkeypatch):
    (cell,) = [c.source for c in nbformat.read(LESSON, as_version=4).cells if "## 12. Your own run" in c.source]
    shutil.copytree(run / "adapter", tmp_path / "outputs/run/adapter")
    monkeypatch.chdir(tmp_path)
    exec(cell.split("```python\n")[1].split("```")[0], {})
    mine, theirs = (load_file(f / "model.safetensors") for f in (tmp_path / "outputs/merged", run / "merged"))
    assert mine.keys() == theirs.keys() and all((mine[name] == theirs[name]).all() for name in mine)


def test_the_rank_for_vllm_is_the_one_of_the_gpu_profiles():
    text = "".join(cell.source for cell in nbformat.read(LESSON, as_version=4).cells)
    ranks = {profile.lora_rank for name, profile in PROFILES.items() if name != "cpu"}
    assert f"--max-lora-rank {max(ranks)}" in text and ranks == {32}


WRONG = """
def pad_left(rows, pad):
    longest = max(len(row) for row in rows)
    filled = [[pad] * (longest - len(row)) + row for row in rows]
    return [filled, [[int(token != pad) for token in row] for row in filled]]
"""


def test_exercise_3_finds_the_mask_that_is_made_from_tokens():
    """The fault: no case of the check had the filling token as a real token."""
    cells = [c.source for c in nbformat.read(LESSON, as_version=4).cells if "ROWS" in c.source]
    names = {}
    exec("from grpo_utils import check_exercise\n" + WRONG + cells[0], names)
    assert "not yet" in names["check_exercise"]("Exercise 3", names["pad_left"], names["ROWS"])


def test_what_was_never_run_is_told(committed):
    assert committed.count("ever run") >= 2 and "vllm serve" in committed and "convert_hf_to_gguf.py" in committed


def test_it_imports_no_unsloth():
    book = nbformat.read(LESSON, as_version=4)
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "unsloth" in cell.source]


CONVERTER = """
import sys
open(sys.argv[sys.argv.index("--outfile") + 1], "wb").write(b"GGUF made by a stand-in")
"""


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> tuple[Path, str]:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    (folder / "llama.cpp").mkdir()
    (folder / "llama.cpp" / "convert_hf_to_gguf.py").write_text(CONVERTER)
    parameters = {"PROFILE": "cpu", "FAMILY": "gemma", "STEPS": 3, "SEED": 5, "LLAMA_CPP": "llama.cpp"}
    pairs = [part for name, value in parameters.items() for part in ("-p", name, str(value))]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs, "-p", "OUTPUT_DIR", "mine"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder / "mine", result.stdout


def test_every_override_arrives(other_family):
    folder, text = other_family
    report = json.loads((folder / "report.json").read_text())
    assert (report["profile"], report["family"], report["model"]) == ("cpu", "gemma", "tiny-gemma3")
    assert (report["steps"], report["seed"], report["config"]["evaluation"]["seed"]) == (3, 5, 5)
    assert (folder / "merged/model.gguf").read_bytes() == b"GGUF made by a stand-in"
    assert "LLAMA_CPP is not set" not in text


def test_the_report_is_looked_for_where_the_lesson_leaves_it():
    """The fault: `grpo_utils run` looked into outputs/run, whatever folder the lesson names."""
    assert read_parameters(LESSON, []) == {"OUTPUT_DIR": "outputs/export"}
    assert read_parameters(LESSON, [("OUTPUT_DIR", "mine"), ("STEPS", "3")]) == {"OUTPUT_DIR": "mine", "STEPS": 3}


def test_three_steps_are_no_triumph(other_family):
    report = json.loads((other_family[0] / "report.json").read_text())
    assert report["after"]["accuracy"] < report["before"]["accuracy"] + 0.3


def test_gemmas_modelfile_has_gemmas_turns(other_family):
    text = (other_family[0] / "merged/Modelfile").read_text()
    assert "<start_of_turn>user\n{{ .System }}\n{{ else }}" in text and 'stop "<end_of_turn>"' in text


@pytest.mark.upgrade
def test_a_folder_that_is_not_llama_cpp_is_an_error(tmp_path):
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), "-p", "LLAMA_CPP", "nowhere", "-p", "STEPS", "1"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and "nowhere/convert_hf_to_gguf.py': [Errno 2]" in result.stderr
