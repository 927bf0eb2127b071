"""basic_grpo: a new answer form needs two files, and demonstrations teach a task that the model cannot do yet."""

import itertools
import json
import random
import re
from collections import Counter

import pytest
import yaml
from course import ROOT
from grpo_run import start
from template_projects import ALONE, in_folder

from grpo_utils.project import new_project

README = (ROOT / "templates" / "basic_grpo" / "README.md").read_text(encoding="utf-8")
SPLITS = {"train": 9, "test": 3}
PLAIN = ["--config", "config.cpu.yaml", "--use_unsloth", "false", "--load_in_4bit", "false"]

#: Edits of rewards.py for answers like "So: 42.": the tags, and the rewards for them, are gone.
NEW_FORM = {
    'FORM = "<reasoning>{thinking}</reasoning><answer>{result}</answer>"': 'FORM = "So: {result}."',
    "match = FORMAT.fullmatch(text)\n    return match[2]": (
        'match = re.fullmatch(r"So: (\\S.*)\\.\\s*", text)\n    return match[1]'
    ),
    "[tagged_answer(completion_text": "[answer_in(completion_text",
    "def format_reward": "def form_reward",
    "def tag_reward": "def unused_credit",
    "REWARDS = {correctness_reward: 2.0, format_reward: 0.5, tag_reward: 0.5}": (
        "REWARDS = {correctness_reward: 2.0, form_reward: 1.0}"
    ),
}


@pytest.fixture
def project(tmp_path):
    return new_project("basic_grpo", tmp_path / "project")


@pytest.mark.slow
def test_a_new_answer_form_fails_only_the_tests_of_the_old_one(project):
    """test_rewards.py could not be collected: it imported a reward that was gone."""
    text = (project / "rewards.py").read_text(encoding="utf-8")
    for old, new in NEW_FORM.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (project / "rewards.py").write_text(text, encoding="utf-8")
    run = in_folder(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    failed = re.findall(r"^FAILED \S+::(\w+)", run.stdout, re.MULTILINE)
    assert run.returncode == 1 and failed and all("tag" in name for name in failed), run.stdout
    passed = int(re.search(r"(\d+) passed", run.stdout)[1])
    assert passed >= 20 and "error" not in run.stdout.splitlines()[-1]


@pytest.mark.slow
def test_labels_are_two_lines_and_a_row_with_another_label_is_named(project):
    """The README's second task. Its 60 messages were refused as "not a number", and the prompt named no label."""
    lines = dict(re.findall(r"^(LABELS|dataset_name)(?: =|:) (.*?) +# in", README, re.MULTILINE))
    text = (project / "rewards.py").read_text(encoding="utf-8")
    (project / "rewards.py").write_text(text.replace("LABELS: tuple[str, ...] = ()", f"LABELS = {lines['LABELS']}"))
    own = in_folder(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert own.returncode == 0 and int(re.search(r"(\d+) skipped", own.stdout)[1]) >= 5, own.stdout
    labels = [*PLAIN, "--dataset_name", lines["dataset_name"], "--check"]
    assert in_folder(project, "train.py", *labels).returncode == 0
    file = project / lines["dataset_name"]
    file.write_text(file.read_text().replace('"answer": "login"', '"answer": "lgin"', 1))
    refused = in_folder(project, "train.py", *labels)
    assert "line 3: the answer 'lgin' is not in LABELS in rewards.py: billing, delivery" in refused.stderr


def test_without_labels_words_are_refused_and_the_error_says_where_they_are_allowed(project):
    code = "from data import load_rows; load_rows('examples/messages.jsonl', 'train', 9, 0)"
    said = in_folder(project, "-c", code).stderr
    assert "no completion could be correct for the answer 'billing'" in said and "LABELS and same_answer" in said, said
    text = (
        (project / "rewards.py")
        .read_text(encoding="utf-8")
        .replace("same_text if LABELS else same_number", "same_text")
    )
    (project / "rewards.py").write_text(text)
    assert in_folder(project, "-c", code).returncode == 0


@pytest.mark.parametrize(
    "labels, said",
    [
        ('("billing")', "LABELS in rewards.py is 'billing'; write each label once, and a comma"),
        ('("billing", "delivery", "login", "refund", "Login")', "write each label once"),
        ('("billing", "delivery", "login", "refund", "other")', "Note: no row has the label other"),
    ],
)
def test_labels_without_a_comma_twice_or_without_rows_are_named(project, labels, said):
    text = (project / "rewards.py").read_text(encoding="utf-8")
    (project / "rewards.py").write_text(text.replace("LABELS: tuple[str, ...] = ()", f"LABELS = {labels}"))
    run = in_folder(project, "-c", "from data import load_rows; load_rows('examples/messages.jsonl', 'train', 9, 0)")
    assert said in run.stdout + run.stderr


def test_the_messages_of_the_example_hold_out_three_of_each_label():
    rows = [json.loads(line) for line in (ROOT / "templates/basic_grpo/examples/messages.jsonl").open(encoding="utf-8")]
    assert Counter((row["answer"], row["split"]) for row in rows) == {
        (label, split): count for label in ("billing", "delivery", "login", "refund") for split, count in SPLITS.items()
    }


def test_trls_own_command_names_no_reward_that_a_new_form_removes():
    config = yaml.safe_load((ROOT / "templates/basic_grpo/configs/trl.yaml").read_text(encoding="utf-8"))
    assert config["reward_funcs"] == ["for_trl.weighted_sum"] and "reward_weights" not in config


SUMS = """
from for_trl import weighted_sum
from rewards import FORM
texts = [FORM.format(thinking="15 + 27", result=result) for result in (42, 41)]
print(weighted_sum([*texts, "42"], answer=["42"] * 3))
"""


def test_trls_own_command_gets_the_weighted_sum_and_the_rows_in_a_new_folder(project):
    assert in_folder(project, "-c", SUMS).stdout == "[3.0, 1.0, 0.0]\n"
    assert in_folder(project, "for_trl.py", "addition", "rows").returncode == 0
    row = json.loads((project / "rows" / "train.jsonl").read_text().splitlines()[0])
    assert row.keys() == {"prompt", "answer"} and (project / "rows" / "test.jsonl").exists()
    again = in_folder(project, "for_trl.py", "addition", "rows")
    assert again.returncode == 1 and "name a dataset and a new folder" in again.stderr


def larger(project) -> None:
    """A task that the tiny model cannot do: rows in mine.jsonl, and demonstrations of 100 of them."""
    pairs = random.Random(0).sample(list(itertools.combinations(range(100, 1000), 2)), 1400)
    pairs = [pair[::-1] if place % 2 else pair for place, pair in enumerate(pairs)]
    asked = [f"Which is larger, {a} or {b}?" for a, b in pairs]
    rows = [{"question": q, "answer": str(max(pair))} for q, pair in zip(asked, pairs)]
    texts = [f"<reasoning>{max(p)} > {min(p)}</reasoning><answer>{max(p)}</answer>" for p in pairs]
    shown = [{"question": q, "completion": text} for q, text in zip(asked, texts)]
    (project / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (project / "demonstrations.jsonl").write_text("\n".join(map(json.dumps, shown[:100])))
    (project / "bad.jsonl").write_text("\n".join(map(json.dumps, [*shown[:1], shown[1] | {"completion": "It is 7."}])))


@pytest.mark.slow
def test_demonstrations_teach_a_new_task_and_training_starts_from_their_adapter(project):
    """The adapter keeps its own rank, and a step at a rate of zero leaves it as it was."""
    from safetensors.torch import load_file

    larger(project)
    settings = [*PLAIN, "--dataset_name", "mine.jsonl", "--eval_rows", "60"]
    sft = in_folder(project, "sft.py", "demonstrations.jsonl", *settings, "--num_train_epochs", "6", "--lora_r", "8")
    assert sft.returncode == 0, sft.stderr[-3000:]
    used, left_out = map(int, re.match(r"(\d+) demonstrations; (\d+) are left out", sft.stdout).groups())
    assert used + left_out == 100 and left_out > 0  # a tenth is held out, and 60 of those are evaluated
    begun = ["--model_name_or_path", "outputs/basic-sft", "--output_dir", "outputs/after-sft"]
    begun += ["--learning_rate", "0", "--max_steps", "1"]
    run = in_folder(project, "train.py", *settings, *begun)
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads((project / "outputs/after-sft/report.json").read_text(encoding="utf-8"))
    assert report["model"] == "outputs/basic-sft" and report["before"]["accuracy_ci95"][0] > 0.1  # the base: 0
    folders = (project / "outputs/basic-sft", project / "outputs/after-sft/model")
    first, last = (load_file(folder / "adapter_model.safetensors") for folder in folders)
    assert first.keys() == last.keys() and all(first[name].equal(last[name]) for name in first)
    again = in_folder(project, "sft.py", "demonstrations.jsonl", *settings)
    assert "outputs/basic-sft already has a model" in again.stderr


@pytest.mark.parametrize(
    "command, said",
    [("--help", "python sft.py demonstrations.jsonl"), ("none.jsonl", "there is no file none.jsonl")],
)
def test_a_command_of_sft_says_what_is_missing(project, command, said):
    run = in_folder(project, "sft.py", *command.split())
    assert said in (run.stdout if command == "--help" else run.stderr) and "Traceback" not in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "rows, epochs, said",
    [(100, "0", "num_train_epochs is 0.0; it must be above 0"), (0, "3", "demonstrations.jsonl has no rows")],
)
def test_sft_refuses_to_train_on_nothing_and_takes_the_folder_of_an_interrupted_run(project, rows, epochs, said):
    larger(project)
    (project / "outputs/basic-sft").mkdir(parents=True)  # without a model
    lines = (project / "demonstrations.jsonl").read_text().splitlines()
    (project / "demonstrations.jsonl").write_text("\n".join(lines[:rows]))
    run = in_folder(project, "sft.py", "demonstrations.jsonl", *PLAIN, "--num_train_epochs", epochs)
    assert said in run.stderr and "Traceback" not in run.stderr, run.stderr[-3000:]


@pytest.mark.slow
def test_a_demonstration_in_another_form_is_named(project):
    larger(project)
    run = in_folder(project, "sft.py", "bad.jsonl", *PLAIN)
    assert run.returncode and "bad rows in bad.jsonl: 1\n  line 2: " in run.stderr and "It is 7." in run.stderr, (
        run.stderr[-3000:]
    )
    assert not (project / "outputs").exists()


def test_an_adapter_is_not_trained_without_use_peft(project, monkeypatch):
    monkeypatch.chdir(project)
    monkeypatch.setattr("os.environ", dict(ALONE))
    (project / "adapter").mkdir()
    (project / "adapter" / "adapter_config.json").write_text("{}")
    settings = [*PLAIN, "--model_name_or_path", "adapter"]
    assert start.parse(settings).model.model_name_or_path == "adapter"
    with pytest.raises(SystemExit, match="adapter is an adapter, so use_peft must be true"):
        start.parse([*settings, "--use_peft", "false"])


@pytest.mark.parametrize("config", [{"use_rslora": True}, {"rank_pattern": {"q_proj": 4}}, {"peft_type": "LOHA"}])
def test_an_adapter_that_would_be_continued_as_another_is_refused(project, monkeypatch, config):
    """Only rank, scale and layers were kept: a rank-stabilized adapter became another model without an error."""
    monkeypatch.chdir(project)
    monkeypatch.setattr("os.environ", dict(ALONE))
    (project / "adapter").mkdir()
    (project / "adapter" / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA"} | config))
    [name] = config
    with pytest.raises(SystemExit, match=f"adapter is an adapter with {name}=.* Merge it into its base model"):
        start.parse([*PLAIN, "--model_name_or_path", "adapter"])
