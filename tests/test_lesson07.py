"""Lesson 07 as readers run it: the committed notebook, and the same with other parameters."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from course import ROOT
from lessons import NO_EFFECT, alt_texts, report_in, run_other_family

from grpo_utils.__main__ import read_parameters
from grpo_utils.arguments import training_arguments
from grpo_utils.data.prompts import SYSTEM_PROMPT
from grpo_utils.profiles import CPU, PROFILES

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "07_export.ipynb"


EXACT = "largest difference of a reward: 0.0\nlargest difference of a weight: 0.0"


def texts_in(folder: Path) -> dict[str, str]:
    """The texts of what a reader may release: not of the checkpoints that were killed and resumed."""
    kinds = {".json", ".md", ".jinja", ".txt", ""}
    files = [file for file in folder.rglob("*") if file.is_file() and folder / "resume" not in file.parents]
    return {str(file): file.read_text() for file in files if file.suffix in kinds}


def test_a_killed_run_is_resumed_to_the_last_bit(printed):
    assert "killed: True\nleft: checkpoint-2 checkpoint-4" in printed
    assert "resumes from: checkpoint-2" in printed
    assert f"steps: 8\n{EXACT}" in printed


def test_a_checkpoint_has_all_that_a_run_needs_to_continue(printed):
    needed = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")
    assert all(re.search(rf"^{re.escape(name)} +\d+ kB", printed, re.MULTILINE) for name in needed)


def test_a_resumed_run_keeps_the_rate_of_its_checkpoint(printed):
    [rates] = re.findall(r"^learning rates: (.+)$", printed, re.MULTILINE)
    assert rates.split() == ["0.002"] * 8


def test_what_the_lesson_leaves_names_no_path_of_this_machine_and_no_token(committed):
    texts = texts_in(committed)
    assert len(texts) > 10
    places = (str(ROOT), str(committed.resolve()), str(Path.home()) + "/", "hf_")
    found = [(file, place) for file, text in texts.items() for place in places if place in text]
    assert not found


def test_the_report_keeps_the_contract(committed):
    report = report_in(committed)
    assert {"profile", "family", "model", "steps", "seed", "p_value", "backend", "load_in_4bit"} <= report.keys()
    assert report["before"].keys() == report["after"].keys() == report["merged"].keys()
    assert report["after"]["accuracy"] > report["before"]["accuracy"] + 0.4
    assert report["merged"]["greedy_accuracy"] >= 0.95 and report["merge_difference"] < 1e-4
    assert report["merged_p_value"] < 0.05


def test_the_arguments_written_out_in_the_lesson_are_those_of_the_profile(committed):
    config = report_in(committed)["config"]
    own = dict(reward_weights=[2.0, 0.5, 0.5], output_dir="outputs/export/checkpoints", max_steps=30)
    arguments, wanted = config["training_arguments"], training_arguments(CPU, **own)
    assert {name for name, value in wanted.items() if arguments[name] != value} <= NO_EFFECT
    adapter = json.loads((committed / "adapter" / "adapter_config.json").read_text())
    assert (adapter["r"], adapter["lora_alpha"]) == (config["lora"]["r"], config["lora"]["lora_alpha"])
    assert {name.split(".")[-1] for name in adapter["target_modules"]} == set(config["lora"]["target_modules"])


def test_the_card_says_what_the_report_says(committed):
    from huggingface_hub import ModelCard

    report, card = report_in(committed), ModelCard.load(committed / "merged" / "README.md")
    low, high = report["merged"]["accuracy_ci95"]
    assert f"{report['merged']['accuracy']:.3f} ({low:.3f} to {high:.3f})" in card.text
    assert card.data.library_name == "transformers" and SYSTEM_PROMPT in card.text


@pytest.fixture(scope="module")
def value(printed) -> Callable[[str], str]:
    """Call it with a label: what the stored notebook prints after it, the last time."""
    return lambda label: re.findall(rf"^ *{re.escape(label)}:? +(.+)$", printed, re.MULTILINE)[-1]


def test_training_helps_and_no_merge_shows_a_loss(value, printed):
    before, after = (
        int(re.search(r"(\d+) of 200", value(f"strict accuracy {when}"))[1]) for when in ("before", "after")
    )
    assert after > before + 80
    changed = [int(number) for number in re.findall(r"answers unlike the policy's: (\d+)", printed)]
    p_values = [float(number) for number in re.findall(r"McNemar's test: p = (\S+)", printed)]
    assert len(changed) == len(p_values) == 2 and min(changed) > 0 and min(p_values) > 0.05


def test_a_merge_in_fp32_is_exact_and_one_into_4_bits_is_rounded(value, printed):
    weight, change, rounding = (
        float(value(f"mean size of {what}")) for what in ("a weight", "a change", "the rounding")
    )
    assert change < weight and 0.5 * change < rounding < change
    assert float(value("difference of a weight")) == 0 and float(value("difference of a logit")) < 1e-4
    reloaded, saved = map(float, re.findall(r"largest difference of a logit: (\S+)", printed))
    assert reloaded == 0 and saved < 1e-4


def test_a_merge_into_4_bits_moves_the_logits_more(book):
    found = re.search(r"adapter: (\S+); .*policy: (\S+); .*policy: (\S+)\.$", alt_texts(book)[-1])
    exact, fp32, four_bits = map(float, found.groups())
    assert exact < 1e-4 < fp32 < four_bits / 2


def test_only_padding_on_the_left_gives_answers(printed):
    right, left = map(int, re.findall(r"padding on the \w+: (\d+) of 20 correct", printed))
    assert right < 5 and left >= 18


def test_the_server_gives_the_answer_of_the_pipeline(value):
    assert value("server") == value("pipeline")


def test_the_rank_for_vllm_is_the_one_of_the_gpu_profiles(book):
    ranks = {profile.lora_rank for name, profile in PROFILES.items() if name != "cpu"}
    [written] = re.findall(r"--max-lora-rank (\d+)", "\n".join(cell.source for cell in book.cells))
    assert ranks == {int(written)}


def test_the_lesson_uploads_nothing(book):
    code = "".join(cell.source for cell in book.cells if cell.cell_type == "code")
    assert not re.search("push_to_hub|dry_run", code)


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("other")
    return folder / "mine", run_other_family(LESSON, folder, STEPS=3, OUTPUT_DIR="mine")


def test_every_override_arrives(other_family):
    report = report_in(other_family[0])
    assert (report["profile"], report["family"], report["model"]) == ("cpu", "gemma", "tiny-gemma3")
    assert (report["steps"], report["seed"], report["config"]["evaluation"]["seed"]) == (3, 5, 5)


def test_the_report_is_looked_for_where_the_lesson_leaves_it():
    """The fault: `grpo_utils run` looked into outputs/run, whatever folder the lesson names."""
    assert read_parameters(LESSON, []) == {"OUTPUT_DIR": "outputs/export"}
    assert read_parameters(LESSON, [("OUTPUT_DIR", "mine"), ("STEPS", "3")]) == {"OUTPUT_DIR": "mine", "STEPS": 3}


def test_the_other_family_is_resumed_to_the_last_bit_too(other_family):
    assert EXACT in other_family[1]


def test_three_steps_do_not_claim_success(other_family):
    report = report_in(other_family[0])
    assert report["after"]["accuracy"] < report["before"]["accuracy"] + 0.3


def test_gemmas_modelfile_has_gemmas_turns(other_family):
    assert "<start_of_turn>user\n{{ .System }}\n{{ else }}" in other_family[1]
    assert 'stop "<end_of_turn>"' in other_family[1]
