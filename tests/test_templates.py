"""The templates as files: self-contained, alike where they should be, and copied without loss."""

import ast
import errno
import json
import os
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from course import ROOT
from datasets import Dataset
from grpo_core.errors import CourseError
from grpo_run import held_out
from share_templates import FOLLOWED, NOT_FOLLOWED, SHARED, followed
from template_projects import OWN_REWARDS, in_folder

from grpo_utils.__main__ import main
from grpo_utils.data.splits import is_held_out
from grpo_utils.profiles import T4
from grpo_utils.project import new_project, template_names


@pytest.mark.parametrize("name", template_names())
def test_nothing_in_it_refers_to_the_courses_internals(name):
    for path in (ROOT / "templates" / name).rglob("*.py"):
        assert not re.search(r"^ *(import|from) grpo_(utils|check)", path.read_text(encoding="utf-8"), re.MULTILINE), (
            path
        )


@pytest.mark.parametrize("name", SHARED)
def test_what_it_shares_with_basic_grpo_is_the_same_letter_by_letter(name):
    first, own = ROOT / "templates" / "basic_grpo", ROOT / "templates" / name
    different = [file for file in SHARED[name] if (own / file).read_text() != (first / file).read_text()]
    assert not different, f"edit {different} in basic_grpo, then: make templates"
    assert name in (*OWN_REWARDS, "minimal") or {"rewards.py", "data.py", "test_rewards.py"} <= set(SHARED[name])


@pytest.mark.parametrize("path", sorted((ROOT / "templates").glob("*/config.yaml")), ids=lambda path: path.parent.name)
def test_its_config_for_a_gpu_has_the_sizes_of_the_t4_profile(path):
    text = path.read_text(encoding="utf-8")
    assert followed(text, path.parent.name) == text, "run: make templates"
    settings = yaml.safe_load(text)
    names = set(FOLLOWED) - set(NOT_FOLLOWED.get(path.parent.name, ())) - ({"max_steps"} - set(settings))
    assert {name: float(settings[name]) for name in names} == {name: float(FOLLOWED[name]) for name in names}
    at_once = settings["per_device_train_batch_size"] * settings["gradient_accumulation_steps"]
    assert at_once * (2 if path.parent.name == "scale_out" else 1) == T4.completions_per_step


def test_no_template_is_forgotten_when_shared_files_are_copied():
    assert template_names() == sorted(SHARED)


@pytest.mark.parametrize("name", template_names())
def test_the_table_has_it(name):
    assert f"[{name}]({name})" in (ROOT / "templates" / "README.md").read_text(encoding="utf-8")


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CourseError, match="not an empty folder; nothing was written"):
        new_project("basic_grpo", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_created_is_one_message(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for folder, why in {"file/x": "Not a directory", "link": "File exists", "x" * 300: "File name too long"}.items():
        with pytest.raises(CourseError, match=rf"cannot be written \({why}\)"):
            new_project("basic_grpo", tmp_path / folder)


def raising(error: BaseException):
    def stand_in(*arguments, **options):
        raise error

    return stand_in


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()])
@pytest.mark.parametrize("existed", [True, False])
def test_an_interrupted_copy_leaves_nothing_that_the_next_one_refuses(tmp_path, monkeypatch, error, existed):
    folder = tmp_path / "project"
    if existed:
        folder.mkdir()
    with monkeypatch.context() as broken:
        broken.setattr("grpo_utils.project.write_wheel", raising(error))
        with pytest.raises((CourseError, KeyboardInterrupt)):
            new_project("basic_grpo", folder)
    assert folder.exists() == existed and (not existed or not any(folder.iterdir()))
    assert new_project("basic_grpo", folder) == folder


def test_a_full_disk_is_named_though_many_files_failed(tmp_path, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("shutil.copystat", raising(full))
    with pytest.raises(CourseError, match="cannot be written .*No space left on device"):
        new_project("basic_grpo", tmp_path / "project")


def test_an_unknown_template_is_named_with_the_nearest(tmp_path):
    with pytest.raises(CourseError, match="Did you mean 'basic_grpo'"):
        new_project("basic_gpro", tmp_path / "new")


def test_the_command_prints_what_to_type_next(tmp_path):
    run = in_folder(tmp_path, "-m", "grpo_utils", "new", "basic_grpo", "mine")
    steps = [line.strip() for line in run.stdout.splitlines() if line.startswith("    ")]
    assert steps[:1] + steps[-2:] == ["cd mine", "pytest", "python train.py --config config.cpu.yaml"], run.stderr
    assert len(steps) == 3 or steps[1].endswith("/bin/activate")
    assert (tmp_path / "mine" / "tiny-model" / "config.json").exists()


def test_pytest_takes_no_settings_of_a_folder_above_a_project(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "--no-such-option"\n', encoding="utf-8"
    )
    project = new_project("basic_grpo", tmp_path / "mine")
    run = in_folder(project, "-m", "pytest", "--collect-only", "-q")
    assert run.returncode == 0 and "test_rewards.py" in run.stdout, run.stderr


def test_ctrl_c_ends_a_command_as_a_shell_expects(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grpo_utils.__main__.new_project", raising(KeyboardInterrupt()))
    monkeypatch.setattr("sys.argv", ["grpo_utils", "new", "basic_grpo", str(tmp_path / "mine")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130 and "Nothing was written" in capsys.readouterr().err


def test_the_held_out_people_are_those_that_the_tiny_model_never_saw():
    code = "import json, sys; from data import people; print(json.dumps([people(s) for s in ('train', 'test')]))"
    train, test = json.loads(in_folder(ROOT / "templates" / "structured_output", "-c", code).stdout)
    names = [[(row := json.loads(answer))["name"] + f" {row['age']}" for _, answer in side] for side in (train, test)]
    assert not any(map(is_held_out, names[0])) and all(map(is_held_out, names[1])) and names[1]


ASKED = """
import json, sys
from data import load_rows
from rewards import REWARDS
row = load_rows(sys.argv[1], "train", 1, 0)[0]
columns = {name: [value] for name, value in row.items() if name != "prompt"}
for shape in json.loads(sys.argv[2]):
    print([reward([shape], **columns)[0] for reward in REWARDS])
"""
SILENT = [
    None,
    [],
    [{"role": "assistant"}],
    [{"role": "assistant", "content": None}],
    [{"role": "assistant", "content": [{"type": "image"}, "text", None]}],
    ["text", 42],
    [{"role": "user", "content": "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"}],
]
DATASETS = {"structured_output": "people", "own_data": "expert_answers.csv", "code_reward": "lambdas"}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_REWARDS)
def test_a_completion_in_which_the_model_says_nothing_earns_nothing(name):
    dataset = DATASETS.get(name, "arithmetic" if name == "tool_agent" else "addition")
    run = in_folder(ROOT / "templates" / name, "-c", ASKED, dataset, json.dumps(SILENT))
    scores = [ast.literal_eval(line) for line in run.stdout.splitlines()]
    assert len(scores) == len(SILENT) and not any(any(line) for line in scores), run.stderr + run.stdout


def test_trl_gets_each_reward_with_its_weight_and_a_reward_model_last(monkeypatch):
    """Also a single LoRA target, of which TRL makes a text: it was cut into letters."""
    monkeypatch.syspath_prepend(ROOT / "templates" / "basic_grpo")
    from grpo_run import loading, training

    trainer = SimpleNamespace(model=SimpleNamespace(parameters=list), remove_callback=lambda callback: None)
    given = {}
    monkeypatch.setattr(training, "GRPOTrainer", lambda **arguments: given.update(arguments) or trainer)
    run = SimpleNamespace(
        reward_model="owner/judge", reward_model_weight=0.1, use_unsloth=True, max_prompt_tokens=9, max_minutes=0
    )
    config = SimpleNamespace(reward_weights=None, deepspeed_plugin=None, seed=0, bf16=False, fp16=False)
    model = SimpleNamespace(use_peft=True)

    def first_reward(completions, **columns):
        return [1.0 for _ in completions]

    settings = SimpleNamespace(run=run, training=config, model=model)
    training.build_trainer(None, None, [], {first_reward: 2.0, len: 0.5}, settings)
    assert (
        given["args"].reward_weights == [2.0, 0.5, 0.1]
        and config.reward_weights is None
        and given["reward_funcs"][2] == "owner/judge"
    )
    assert [function.__name__ for function in given["reward_funcs"][:2]] == ["first_reward", "len"]
    asked = dict(model_name_or_path="m", lora_r=4, lora_alpha=8, lora_dropout=0.0, load_in_4bit=False, use_peft=True)
    config.max_completion_length, config.gradient_checkpointing = 9, False
    config.device = SimpleNamespace(type="cuda")
    monkeypatch.setattr(loading, "load_or_exit", lambda name, load, **how: (how["lora"]["target_modules"], None))
    loaded, _ = loading.load_policy(run, config, SimpleNamespace(**asked, lora_target_modules="all-linear"))
    assert loaded == "all-linear"


@pytest.fixture
def reports(monkeypatch):
    """The modules that write and read the result of a run."""
    monkeypatch.syspath_prepend(ROOT / "templates" / "basic_grpo")
    from grpo_core.training import measuring
    from grpo_run import finishing, held_out, report

    return SimpleNamespace(finishing=finishing, held_out=held_out, measuring=measuring, report=report)


TRAINING = {"learning_rate": 2e-4, "num_generations": 8, "max_completion_length": 99, "temperature": 1.0, "beta": 0.0}
TRAINING |= {"loss_type": "dapo", "seed": 0, "max_tool_calling_iterations": None}
TRAINING |= {"chat_template_kwargs": {"enable_thinking": False}}
ENTRIES = {"model": "owner/Base-1B", "backend": "unsloth", "load_in_4bit": True, "steps": 7, "stopped": ""}
ENTRIES |= {"rewards": {"right_reward": 2.5}, "changes": []}
ENTRIES["config"] = {"run": {"dataset_name": "/home/me/mine.jsonl", "train_rows": 5}, "training": TRAINING}


def run_with(reports, folder, golds: list[str]) -> None:
    """A finished run in which no answer was right before, and every answer but the first is right after.

    Its model is an adapter for a base on the Hub, as far as files go.
    """
    rows = Dataset.from_list(
        [{"prompt": [{"role": "user", "content": f"Which is {n}?"}], "answer": gold} for n, gold in enumerate(golds)]
    )

    def is_right(text: str, row: dict) -> bool:
        return text == row["answer"]

    before, after = (
        reports.measuring.result_of(said, said, rows, is_right, bool)
        for said in (["nothing"] * len(golds), ["a\nb", *golds[1:]])
    )
    (folder / "model").mkdir(parents=True)
    rename_base(folder, "owner/Base-1B")
    (folder / "model" / "adapter_model.safetensors").write_bytes(b"weights")
    reports.finishing.finish(folder, rows, before, after, **ENTRIES)


def rename_base(run, base: str) -> None:
    (run / "model" / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))


@pytest.mark.parametrize(("name", "saved"), [("./base", "{here}/base"), ("owner/Base-1B", "owner/Base-1B")])
def test_an_adapter_names_a_base_that_is_found_from_any_folder_and_can_be_merged_into(
    reports, tmp_path, monkeypatch, name, saved
):
    """It named ./tiny-model, which no other folder has; and Unsloth loads a 4-bit copy under another name."""
    from grpo_run import loading

    monkeypatch.chdir(tmp_path)
    (tmp_path / "base").mkdir()
    config = SimpleNamespace(base_model_name_or_path="unsloth/base-1b-unsloth-bnb-4bit")
    policy, tokenizer = (
        SimpleNamespace(peft_config={"default": config}),
        SimpleNamespace(chat_template="", pad_token=""),
    )
    tokenizer.eos_token, asked = "", []
    loading.load_or_exit(name, lambda name, lora: asked.append(name) or (policy, tokenizer), lora={"r": 8})
    assert asked == [config.base_model_name_or_path] == [saved.format(here=tmp_path)]


def test_the_table_of_a_finished_run_is_printed_again(reports, tmp_path, capsys):
    run_with(reports, tmp_path, [str(n) for n in range(20)])
    table = capsys.readouterr().out.partition("written:")[0]
    reports.report.main([str(tmp_path)])
    assert capsys.readouterr().out == table and "Strict accuracy rose by 0.950" in table and "label" not in table


def test_the_answers_to_held_out_rows_are_kept_and_the_wrong_ones_are_shown(reports, tmp_path, capsys):
    run_with(reports, tmp_path, [str(n) for n in range(20)])
    lines = [json.loads(line) for line in (tmp_path / "held_out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 20 and lines[0] == {
        "prompt": [{"role": "user", "content": "Which is 0?"}],
        "gold": {"answer": "0"},
        "before": "nothing",
        "after": "a\nb",
        "right_before": False,
        "right_after": False,
    }
    capsys.readouterr()
    reports.report.main([str(tmp_path), "--wrong", "5"])
    said = capsys.readouterr().out
    assert "Which is 0?" in said and "Which is 1?" not in said  # it is right
    assert re.search(r"gold: +0\n +before \(wrong\): +nothing\n +after \(wrong\): +a\n +b\n", said), said


def test_of_many_wrong_answers_as_many_are_shown_as_were_asked_for(reports):
    wrong = {"gold": {"a": "x", "b": 1}, "before": "", "after": "w" * 900, "right_before": True, "right_after": False}
    rows = [wrong | {"prompt": [{"role": "user", "content": f"Question {n}"}]} for n in range(9)]
    said = reports.held_out.wrong_answers(rows, 3)
    assert said.count("Question") == said.count("a x; b 1") == 3 and "9 of 9" in said and "w" * 601 not in said
    assert "0 of 1" in reports.held_out.wrong_answers([rows[0] | {"right_after": True}], 3)


def test_gold_answers_that_are_labels_have_a_table_with_the_majority(reports, tmp_path, capsys):
    run_with(reports, tmp_path, ["billing", "login", "billing", "other", "billing", "login"] * 2)
    table = capsys.readouterr().out
    assert re.search(r"^billing +6 +0 +5$", table, re.MULTILINE) and "'billing' would be right for 6 of 12" in table
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["labels"]["login"] == {"n": 4, "right_before": 0, "right_after": 4}
    reports.report.main([str(tmp_path)])
    assert set(capsys.readouterr().out.splitlines()) <= set(table.splitlines()) and "'billing'" in table


@pytest.mark.parametrize("golds", [["a"] * 9, list("abcdefghi"), list("abcdefgg"), [*map(str, range(21))] * 4])
def test_gold_answers_that_are_not_labels_have_no_table(reports, golds):
    answers = [{"gold": {"answer": gold}, "right_before": True, "right_after": True} for gold in golds]
    assert reports.held_out.labels_of(answers) == {}


@pytest.fixture
def adapter(reports, tmp_path):
    """The folder of a finished run."""
    run_with(reports, tmp_path / "run", [str(n) for n in range(20)])
    return tmp_path / "run"


def test_a_card_says_what_the_report_says_and_shows_no_question_and_no_path(adapter):
    from huggingface_hub import ModelCard

    text = (adapter / "model" / "README.md").read_text(encoding="utf-8")
    data = ModelCard(text).data.to_dict()
    assert (data["base_model"], data["base_model_relation"], data["library_name"]) == (
        "owner/Base-1B",
        "adapter",
        "peft",
    )
    assert "datasets" not in data and "/home/me" not in text and "`mine.jsonl`" in text
    assert "| `right_reward` | 2.5 |" in text and "7 steps" in text and "Strict accuracy rose by 0.950" in text
    assert "after     20    1.000      0.950 (0.764 to 0.991)" in text
    code = text.split("```python\n")[1].split("```")[0]
    assert "Which is YOUR QUESTION" in code and "Which is 1" not in text  # what all questions have in common
    compile(code, "card", "exec")
    assert "max_new_tokens=99" in code and "tokenizer_encode_kwargs={'enable_thinking': False}" in code


def test_a_push_is_dry_by_default_and_uploads_the_same_files_with_yes(reports, adapter, monkeypatch, capsys):
    from grpo_core.training import publishing
    from grpo_run import push

    uploads = []
    monkeypatch.setattr(publishing, "_upload", lambda *given: uploads.append(given))
    push.main([str(adapter), "me/my-model"])
    assert "adapter_model.safetensors" in capsys.readouterr().out and not uploads
    push.main([str(adapter), "me/my-model", "--yes"])
    [(folder, repository, names, private)] = uploads
    assert (folder, repository, private) == (adapter / "model", "me/my-model", True)
    assert names == ["README.md", "adapter_config.json", "adapter_model.safetensors"]
    with pytest.raises(SystemExit, match="Error: repo_id='my-model' is not of the form"):
        push.main([str(adapter), "my-model"])


def test_an_adapter_whose_base_nobody_else_has_is_not_pushed(adapter, tmp_path):
    from grpo_run import push

    (tmp_path / "base").mkdir()
    rename_base(adapter, str(tmp_path / "base"))
    with pytest.raises(SystemExit, match="is an adapter for .*base, .* python -m grpo_run.merge"):
        push.main([str(adapter), "me/my-model"])


def test_an_adapter_whose_base_is_gone_and_a_folder_without_a_model_are_named(adapter, tmp_path):
    from grpo_run import merge, trained

    (empty := tmp_path / "empty").mkdir()
    rename_base(adapter, str(tmp_path / "gone"))
    with pytest.raises(SystemExit, match="base model in .*gone, and that folder is gone.* into .*adapter_config.json"):
        merge.main([str(adapter)])
    with pytest.raises(SystemExit, match="there is no model in .*empty; name the output_dir of a finished run"):
        trained.model_in(empty)


def test_a_run_that_is_named_from_another_folder_is_missed_with_the_folder_in_which_it_was_looked_for(
    tmp_path, monkeypatch
):
    """`python my-project/ask.py outputs/basic "…"` did not say where it had looked."""
    from grpo_run import trained

    monkeypatch.chdir(tmp_path)
    said = f"there is no folder outputs/basic in {tmp_path}. Start the command in the folder of your project, or name"
    with pytest.raises(SystemExit, match=re.escape(said)):
        trained.model_in(Path("outputs/basic"))


def test_a_merge_overwrites_nothing_and_needs_an_adapter_and_a_base_that_is_not_quantized(adapter, tmp_path):
    from grpo_run import merge

    base, mine = tmp_path / "base", tmp_path / "mine"
    base.mkdir()
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    rename_base(adapter, str(base))
    with pytest.raises(SystemExit, match="mine is not an empty folder"):
        merge.main([str(adapter), str(mine)])
    quantized = {"model_type": "qwen3", "quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
    (base / "config.json").write_text(json.dumps(quantized))
    with pytest.raises(SystemExit, match="base is quantized, and a merge into it would round the adapter away"):
        merge.main([str(adapter)])
    with pytest.raises(SystemExit, match="base is a whole model already"):
        merge.main([str(base)])


def test_a_reward_that_was_always_0_is_named_at_the_end(reports, capsys):
    """A reward that read the list of messages as a text earned 0 in every step without a word."""
    from grpo_run import training

    scores = {
        "dead": (0.0, 0.0),
        "alive": (0.0, 0.1),
        "constant": (1.0, 0.0),
        "silent": (None, None),
        "free": (0.0, 0.0),
    }
    entry = {
        f"rewards/{name}/{key}": value for name, pair in scores.items() for key, value in zip(("mean", "std"), pair)
    }
    state = SimpleNamespace(log_history=[entry, entry, {"train_loss": 0.1}])
    arguments = SimpleNamespace(reward_weights=[1.0, 1.0, 1.0, 1.0, 0.0])
    training.note_dead_rewards(SimpleNamespace(state=state, args=arguments, reward_func_names=list(scores)))
    assert re.findall(r"Note: (\w+) was 0", capsys.readouterr().out) == ["dead"]


def test_the_output_layer_gets_contiguous_hidden_states_and_gives_the_same_logits():
    import torch
    from grpo_core.training.policy import keep_output_layer_uncopied
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = dict(vocab_size=40, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2)
    torch.manual_seed(0)
    policy, ids = LlamaForCausalLM(LlamaConfig(**sizes)).eval(), torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    before = policy(input_ids=ids, logits_to_keep=2).logits
    keep_output_layer_uncopied(policy)
    got = []
    policy.lm_head.register_forward_pre_hook(lambda _, hidden: got.append(hidden[0].is_contiguous()))
    assert torch.equal(policy(input_ids=ids, logits_to_keep=2).logits, before) and got == [True]


def test_held_out_answers_are_read_as_they_were_written(tmp_path):
    """Some characters end a line for Python, and not in JSON."""
    rows = [dict(prompt=[dict(role="user", content="a\u2028b")], gold={}, before="\x85", after="1\r\n2\u2029")] * 2
    held_out.write_answers(tmp_path, rows)
    assert held_out.read_answers(tmp_path) == rows
