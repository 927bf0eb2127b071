"""What a reader shares of a run: every figure that matters, nothing personal, and a form and a table that take it."""

import json
import re
import subprocess
import sys
from email.message import Message
from types import SimpleNamespace

import benches
import pytest
import yaml
from course import ROOT, cli, judged
from grpo_core.training import measuring

from grpo_utils.share import block, lines, where_to_paste

FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
FORM = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
BEFORE = judged(["42", "41"], ["42", "41"], ["42"] * 2).summary()
AFTER = judged([FORM, FORM], [FORM, FORM], ["42"] * 2).summary()
T4 = {"name": "Tesla T4", "memory_gib": 14.6, "peak_gib": 5.12}
LESSON = {
    **{"profile": "t4", "family": "qwen", "model": "unsloth/Qwen2.5-1.5B-Instruct", "backend": "unsloth"},
    **{
        "load_in_4bit": True,
        "steps": 100,
        "seed": 0,
        "before": BEFORE,
        "after": AFTER,
        "p_value": 0.5,
        "merged": AFTER,
    },
    **{"train_seconds": 2540.0, "wall_seconds": 3601.2, "processor_seconds": 3500.0},
    "versions": {"unsloth": "2026.10.9", "trl": "1.14.0", "torch": "2.11.0+cu128"},
    "machine": {"python": "3.13.15", "system": "Linux x86_64", "cores": 2, "gpu": T4},
}
#: As templates write it: a config file for a profile, a model type for a family, and no merged model.
TEMPLATE = {
    **{key: value for key, value in LESSON.items() if key != "merged"},
    **{"profile": "config.cpu", "family": "gemma3_text", "model": "./tiny-model", "backend": "transformers"},
    **{"load_in_4bit": False, "machine": {**LESSON["machine"], "gpu": None}, "written": "2026-11-22 12:00:00"},
}
#: Whatever of this may be in a report must not be in the table.
PERSONAL = ("alice", "secret", "hf_", "sk-", "/home", "C:", "laptop")


def test_the_table_of_a_lesson_has_every_figure():
    assert block(LESSON) == "\n".join([
        "| | this run |",
        "|---|---|",
        "| card | Tesla T4, 14.6 GiB |",
        "| system | Linux x86_64, Python 3.13.15 |",
        "| profile | t4 |",
        "| family | qwen |",
        "| model | unsloth/Qwen2.5-1.5B-Instruct |",
        "| backend | unsloth, base in 4 bits |",
        "| steps | 100 |",
        "| seconds per step | 25.40 |",
        "| seconds in all | 3601 |",
        "| peak GPU memory | 5.12 GiB |",
        "| before | format 0.000, accuracy 0.000 (0.000 to 0.658), greedy 0.000, of 2 |",
        "| after | format 1.000, accuracy 1.000 (0.342 to 1.000), greedy 1.000, of 2 |",
        "| paired test | p = 0.5 |",
        "| merged | format 1.000, accuracy 1.000 (0.342 to 1.000), greedy 1.000, of 2 |",
        "| packages | unsloth 2026.10.9, trl 1.14.0, torch 2.11.0+cu128 |",
    ])  # fmt: skip


def test_the_table_of_a_template_on_a_cpu():
    said = lines(TEMPLATE)
    assert (said["card"], said["peak GPU memory"]) == ("CPU, 2 cores", "no GPU used")
    assert (said["profile"], said["family"], said["model"]) == ("config.cpu", "gemma", "tiny-model")
    assert (said["backend"], said["merged"]) == ("transformers, base in 16 or 32 bits", "no")


def test_an_older_report_says_what_was_not_recorded():
    old = {key: value for key, value in LESSON.items() if key != "machine"}
    said = lines(old)
    assert said["card"] == said["peak GPU memory"] == "not recorded"
    assert said["system"] == "not recorded, Python not recorded"
    assert said["seconds per step"] == "25.40"


def test_without_any_value_every_line_says_so():
    said = lines({})
    assert said.pop("merged") == "no" and all("not recorded" in value for value in said.values())


@pytest.mark.parametrize("key", ["profile", "family", "backend"])
def test_an_empty_name_was_not_recorded(key):
    """The fault: it was called another one."""
    assert lines({key: ""})[key] == lines({})[key]


SECRETS = [
    "/home/alice/secret",
    "C:\\Users\\alice\\secret",
    "alice/secret",
    "./secret",
    "hf_alicesecret",
    "sk-alice-laptop",
    "1 | /home/alice |\n| x",
]


def poisoned(value: object, secret: str) -> object:
    """A report with a secret for every text in it."""
    if isinstance(value, dict):
        return {key: poisoned(each, secret) for key, each in value.items()}
    return secret if isinstance(value, str) else value


@pytest.mark.parametrize("secret", SECRETS)
def test_no_text_of_a_hostile_report_gets_out(secret):
    config = {"hub_token": secret, "output_dir": secret, "env": {"HF_TOKEN": secret}, "run_name": secret}
    hostile = poisoned(LESSON, secret) | {"config": config, "changes": [secret], "engine": secret, secret: secret}
    hostile["versions"] = {**hostile["versions"], secret: "1.0"}
    said = block(hostile)
    assert not [word for word in PERSONAL if word in said], said
    assert len(said.splitlines()) == len(block(LESSON).splitlines())


@pytest.mark.parametrize("key", ["steps", "train_seconds", "wall_seconds", "p_value", "load_in_4bit"])
def test_a_text_in_place_of_a_number_stays_out(key):
    assert "alice" not in block(LESSON | {key: "alice"}) and "not recorded" in block(LESSON | {key: "alice"})


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("/home/alice/secret", "a local folder"),
        ("~/models/secret/", "a local folder"),
        ("alice/secret", "another model"),
        ("/home/alice/.cache/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de2", "Qwen/Qwen3-0.6B"),
        ("/home/alice/.cache/hub/models--alice--secret/snapshots/c1899de2", "another model"),
        ("/home/alice/course/grpo_utils/tiny/tiny-gemma3", "tiny-gemma3"),
        ("/home/alice/.cache/grpo_utils/smollm2-135m-instruct", "smollm2-135m-instruct"),
    ],
)
def test_a_model_is_named_only_if_everyone_knows_it(model, said):
    assert lines({"model": model})["model"] == said


def test_the_command_prints_the_table_and_where_it_goes(tmp_path):
    measuring.write_report(tmp_path, LESSON)
    run = cli("report", "--share", str(tmp_path))
    table, _, rest = run.stdout.partition("\n\n")
    said = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert run.returncode == 0 and table == block(said)
    assert "Nothing was sent." in rest and str(tmp_path) not in run.stdout


def test_an_unfinished_folder_is_one_sentence(tmp_path):
    run = cli("report", str(tmp_path), "--share")
    assert run.returncode == 1 and run.stderr.startswith("Error: There is no report.json") and not run.stdout


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://github.com/somebody/course", "https://github.com/somebody/course/issues/new?template=run-report.yml"),
        ("https://github.com/", 'your repository\'s issue form "Share a run".'),
    ],
)
def test_where_to_paste_follows_the_public_address(monkeypatch, url, said):
    package = Message()
    package["Project-URL"] = f"Repository, {url}"
    monkeypatch.setattr("grpo_utils.share.metadata.metadata", lambda name: package)
    assert where_to_paste() == said


def test_a_report_has_the_machine_and_the_peak_of_a_gpu(tmp_path, monkeypatch):
    card = SimpleNamespace(name="Tesla T4", total_memory=15_637_086_208)
    cuda = SimpleNamespace(
        max_memory_reserved=lambda: 5 << 30, current_device=lambda: 0, get_device_properties=lambda index: card
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    report = json.loads(measuring.write_report(tmp_path, {"steps": 1}).read_text(encoding="utf-8"))
    assert report["machine"]["gpu"] == {"name": "Tesla T4", "memory_gib": 14.6, "peak_gib": 5.0}
    said = lines(report)
    assert said["card"] == "Tesla T4, 14.6 GiB" and said["peak GPU memory"] == "5.00 GiB"


@pytest.mark.slow
def test_a_torch_that_used_no_gpu_reports_none():
    code = "import torch; from grpo_core.training.measuring import machine; print(machine()['gpu'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "None\n", run.stderr


#: GitHub's documented schema of issue forms: keys of a form, and attributes of each type of element.
TOP = {"name", "description", "body", "assignees", "labels", "title", "type", "projects"}
ATTRIBUTES = {
    "markdown": {"value"},
    "textarea": {"label", "description", "placeholder", "value", "render"},
    "input": {"label", "description", "placeholder", "value"},
    "dropdown": {"label", "description", "multiple", "options", "default"},
    "checkboxes": {"label", "description", "options"},
}


def faults(form: dict) -> list[str]:
    """What GitHub would refuse in an issue form."""
    fields = [element for element in form["body"] if element["type"] != "markdown"]
    ids, labels = [each["id"] for each in fields], [each["attributes"]["label"] for each in fields]
    texts = [form.get("name"), form.get("description"), *labels, *ids]
    found = ["unknown key"] * bool(form.keys() - TOP) + ["no field"] * (not fields)
    found += ["not a text"] * (not all(isinstance(text, str) and text.strip() for text in texts))
    found += ["not unique"] * (len(set(ids)) < len(ids) or len(set(labels)) < len(labels))
    found += ["wrong id"] * (not all(re.fullmatch(r"[\w-]+", each) for each in ids))
    for element in form["body"]:
        found += element_faults(element)
    return found


def element_faults(element: dict) -> list[str]:
    kind, options = element["type"], element["attributes"].get("options", [])
    allowed = {"type", "attributes"} | (set() if kind == "markdown" else {"id", "validations"})
    found = ["unknown key"] * bool(element.keys() - allowed)
    found += ["unknown attribute"] * bool(element["attributes"].keys() - ATTRIBUTES[kind])
    found += ["required is not true or false"] * (
        element.get("validations", {}).get("required", True) not in (True, False)
    )
    if kind == "dropdown":
        distinct = all(isinstance(option, str) for option in options) and len(set(options)) == len(options) > 0
        found += ["options"] * (not distinct or "none" in [str(option).lower() for option in options])
    return found


def read_form(path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_github_takes_the_form(path):
    assert faults(read_form(path)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("id: surprise", "id: block", "not unique"),
        ("name: Share a run", "name: true", "not a text"),
        ("      render: markdown", "      language: markdown", "unknown attribute"),
        ("        - CPU", "        - none", "options"),
    ],
)
def test_what_github_refuses_is_found(old, new, fault):
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "run-report.yml").read_text(encoding="utf-8")
    assert old in text and faults(yaml.safe_load(text.replace(old, new))) == [fault]


def test_the_form_asks_for_place_table_and_surprise():
    form = read_form(ROOT / ".github" / "ISSUE_TEMPLATE" / "run-report.yml")
    fields = {element["id"]: element for element in form["body"] if "id" in element}
    assert list(fields) == ["place", "block", "surprise"] and fields["block"]["attributes"]["render"] == "markdown"
    assert fields["block"]["attributes"]["placeholder"].splitlines() == block(LESSON).splitlines()[:3]


def test_the_table_of_readers_has_the_lines_as_columns_and_says_while_it_is_empty():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    section = page.partition("\n## Run by readers\n")[2]
    columns, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert columns == f"| {' | '.join([*lines({}), 'issue'])} |"
    assert bool(rows) != ("No reader has shared a run yet" in section)


def test_writing_a_section_of_the_results_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(benches, "RESULTS", tmp_path / "results.md")
    page = "# Results\n\n## Costs\n{}\n## Run by readers\n\n| a reader's row |\n"
    benches.RESULTS.write_text(page.format("\nold figures\n"), encoding="utf-8")
    for text in ("\nnew figures\n", "\nnewer figures\n"):
        benches.put("Costs", text)
        assert benches.RESULTS.read_text(encoding="utf-8") == page.format(text)
    with pytest.raises(SystemExit, match="no section 'Cost'"):
        benches.put("Cost", "")
