"""The switch ``enable_thinking`` reaches every place that renders a prompt, and all of them render the same text."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from grpo_core.training.generating import render_prompt
from preflight_runs import load_tokenizer
from template_projects import ALONE, CONFIGURED, FAST

from grpo_utils.data.filters import drop_long_prompts, prompt_lengths
from grpo_utils.data.sources import load_rows
from grpo_utils.models import model_path
from grpo_utils.project import new_project

pytestmark = pytest.mark.slow

CLOSED = "<think>\n\n</think>\n\n"
#: Started in a template's folder: it trains, and writes down every prompt that a model is asked to continue.
WATCHED = """
import json, runpy, sys
from transformers import AutoTokenizer, GenerationMixin

generate, tokenizer = GenerationMixin.generate, AutoTokenizer.from_pretrained("tiny-model")

def watched(self, *args, **kwargs):
    with open("prompts.jsonl", "a") as file:
        for ids in kwargs["input_ids"][:4]:
            kept = [token for token in ids.tolist() if token != tokenizer.pad_token_id]
            file.write(json.dumps(tokenizer.decode(kept)) + "\\n")
    return generate(self, *args, **kwargs)

GenerationMixin.generate = watched
sys.path.insert(0, ".")
sys.argv[0] = "train.py"
runpy.run_path("train.py", run_name="__main__")
"""


def qwen3_template() -> str:
    """Qwen3's own chat template, of which TRL ships a copy."""
    import trl

    return (Path(trl.__file__).parent / "chat_templates" / "qwen3.jinja").read_text(encoding="utf-8")


@pytest.fixture
def tokenizer():
    tokenizer = load_tokenizer()
    tokenizer.chat_template = qwen3_template()
    return tokenizer


@pytest.fixture
def model(monkeypatch):
    """The tiny model, and the token ids of every prompt that it is asked to continue."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(model_path("tiny-qwen3"))
    asked, generate = [], model.generate

    def watched(**kwargs):
        asked.append(kwargs["input_ids"][0])
        return generate(**kwargs)

    monkeypatch.setattr(model, "generate", watched)
    return model, asked


@pytest.mark.parametrize("thinking", [True, False])
def test_training_evaluation_serving_samples_and_pilot_read_the_same_prompt(thinking, tokenizer, model, tmp_path):
    from grpo_check.health.samples import take_samples
    from grpo_check.pilots import sampling as pilot
    from grpo_check.preflights.planned import plan
    from transformers import pipeline
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils.evaluation.judging import evaluate

    model, asked = model
    rows = load_rows("addition", "train", 8)
    sizes = dict(num_generations=2, per_device_train_batch_size=2, max_completion_length=4, max_steps=1)
    sizes |= dict(use_cpu=True, bf16=False, shuffle_dataset=False, report_to="none")
    config = GRPOConfig(str(tmp_path), chat_template_kwargs={"enable_thinking": thinking}, **sizes)
    rewards = [lambda completions, **kwargs: [float(place) for place in range(len(completions))]]
    GRPOTrainer(model, rewards, config, rows, processing_class=tokenizer).train()
    evaluate(model, tokenizer, rows, max_new_tokens=4, chat_template_kwargs=config.chat_template_kwargs)
    take_samples(model, tokenizer, list(rows), 4, 8, config.chat_template_kwargs)
    pilot.generate(plan(config, tokenizer=tokenizer, train=rows), model, [rows[0]["prompt"]], 4)
    chat = pipeline("text-generation", model=model, tokenizer=tokenizer)
    chat(rows[0]["prompt"], max_new_tokens=4, tokenizer_encode_kwargs=config.chat_template_kwargs)

    texts = [tokenizer.decode(ids[ids != tokenizer.pad_token_id]) for ids in asked]
    rendered = render_prompt(tokenizer, rows[0]["prompt"], chat_template_kwargs=config.chat_template_kwargs)
    assert len(texts) == 6 and set(texts) == {rendered}  # evaluation asks twice: sampled and greedy
    assert rendered.endswith(CLOSED) is not thinking


def test_the_filter_counts_the_tokens_that_the_switch_adds(tokenizer):
    rows, off = load_rows("addition", "train", 8), {"enable_thinking": False}
    longest = max(prompt_lengths(rows, tokenizer))
    assert min(prompt_lengths(rows, tokenizer, off)) > longest
    assert len(drop_long_prompts(rows, tokenizer, longest)) == 8
    with pytest.raises(ValueError, match="No prompt has at most"):
        drop_long_prompts(rows, tokenizer, longest, off)


def test_preflight_counts_the_tokens_that_the_switch_adds(tokenizer):
    from grpo_check.preflights.lengths import known_lengths
    from grpo_check.preflights.planned import plan

    rows, arguments = list(load_rows("addition", "train", 2)), {"chat_template_kwargs": {"enable_thinking": False}}
    rendered = [render_prompt(tokenizer, row["prompt"], **arguments) for row in rows]
    counted = [len(ids) for ids in tokenizer(rendered, add_special_tokens=False)["input_ids"]]
    assert known_lengths(plan(arguments, tokenizer=tokenizer, train=rows)) == counted


def test_a_template_without_the_switch_renders_the_same_text():
    tokenizer, [row] = load_tokenizer(), load_rows("addition", "train", 1)
    texts = {
        render_prompt(tokenizer, row["prompt"], chat_template_kwargs=given)
        for given in (None, {"enable_thinking": True}, {"enable_thinking": False})
    }
    assert len(texts) == 1


def prompts_of(folder: Path, *options: str) -> set[bool]:
    """Whether the prompts of one training step and of its evaluations end with an empty thought."""
    (folder / "prompts.jsonl").unlink(missing_ok=True)
    short = ["--max_steps", "1", "--output_dir", "outputs/run", "--max_prompt_tokens", "400"]
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, *FAST, *short, *options], cwd=folder, env=ALONE, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = (folder / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 12  # before, training and after
    return {json.loads(line).endswith(CLOSED) for line in lines}


def test_a_templates_config_sets_training_and_evaluation_together(tmp_path):
    folder = new_project("basic_grpo", tmp_path / "project")
    (folder / "tiny-model" / "chat_template.jinja").write_text(qwen3_template(), encoding="utf-8")
    assert prompts_of(folder, "--chat_template_kwargs", '{"enable_thinking": false}') == {True}
    report = json.loads((folder / "outputs" / "run" / "report.json").read_text(encoding="utf-8"))
    assert "enable_thinking" in json.dumps(report["config"])


@pytest.mark.parametrize("name", CONFIGURED)
def test_every_template_turns_thinking_off_by_default_on_a_gpu(name):
    import yaml

    root = Path(__file__).parent.parent / "templates" / name
    files = [path for path in (*root.glob("config*.yaml"), *root.glob("configs/*.yaml")) if "cpu" not in path.name]
    settings = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in files]
    assert files and all(each["chat_template_kwargs"] == {"enable_thinking": False} for each in settings)
