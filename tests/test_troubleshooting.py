"""What docs/troubleshooting.md calls tried is tried here: each error is provoked, and its text compared."""

import re

import pytest
from conftest import ROOT

from grpo_check.health import CODES, diagnose_error
from grpo_utils import load_policy, load_rows, math_rewards, training_arguments
from grpo_utils.profiles import CPU

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
VERDICTS, ERRORS = PAGE.split("## Verdicts")[1].split("## Error texts")


def headings(text: str) -> dict[str, str]:
    """Each ``###`` heading without its backticks, and what stands below it."""
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    return {name.strip("`"): body for name, body in zip(parts[::2], parts[1::2])}


def test_every_verdict_links_to_an_entry_and_every_entry_is_a_verdict():
    assert set(headings(VERDICTS)) == set(CODES) - {"healthy", "too_short"}


@pytest.mark.parametrize("name", headings(PAGE))
def test_every_entry_says_whether_it_was_tried(name):
    assert re.search(r"\*(Not tried|Tried|Measured|not tried|tried)[^*]*\*", headings(PAGE)[name]), name


def test_every_link_of_the_page_leads_somewhere():
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        file, _, anchor = target.partition("#")
        assert not file or (ROOT / "docs" / file).exists(), target
        assert not anchor or file or anchor in headings(PAGE), target


def no_kwargs(completions):
    return [0.0] * len(completions)


def needs_a_column(completions, solution, **kwargs):
    return [0.0] * len(completions)


def as_text(completions, **kwargs):
    return [float(c.strip() == "") for c in completions]


def as_pattern(completions, **kwargs):
    return [float(bool(re.search("x", c))) for c in completions]


def as_chat(completions, **kwargs):
    return [float(c[0]["content"] == "") for c in completions]


def too_few(completions, **kwargs):
    return [0.0]


def config(**changes):
    from trl import GRPOConfig

    return GRPOConfig(**{**training_arguments(CPU, output_dir="outputs/never", max_steps=1), **changes})


def trainer(rewards=None, rows=None, tokenizer_change=None, model_change=None, **changes):
    from trl import GRPOTrainer

    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=False)
    if tokenizer_change:
        tokenizer_change(tokenizer)
    if model_change:
        model_change(policy)
    return GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=config(**changes),
        train_dataset=rows or load_rows("addition", "train", 64),
        reward_funcs=rewards or math_rewards().rewards,
    )


def strings():
    from datasets import Dataset

    return Dataset.from_list([{"prompt": "What is 1 + 1?", "answer": "2"}] * 64)


def without_prompts():
    from datasets import Dataset

    return Dataset.from_list([{"question": "What is 1 + 1?", "answer": "2"}] * 64)


def spoil(model):
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(float("nan"))


def no_template(tokenizer):
    tokenizer.chat_template = None


def petabyte():
    import torch

    return torch.empty(1 << 50)


PROVOKE = {
    "generation_batch_size (4) must be divisible by num_generations (8)": lambda: config(per_device_train_batch_size=4),
    "GRPO requires at least 2 generations per prompt to calculate the advantages": lambda: config(num_generations=1),
    "got an unexpected keyword argument 'max_prompt_length'": lambda: config(max_prompt_length=64),
    "got an unexpected keyword argument 'warmup_ratio'": lambda: config(warmup_ratio=0.1),
    "got an unexpected keyword argument 'evaluation_strategy'": lambda: config(evaluation_strategy="steps"),
    "'>' not supported between instances of 'NoneType' and 'int'": lambda: trainer(max_steps=None),
    "'<=' not supported between instances of 'float' and 'str'": lambda: trainer(learning_rate="1e-5").train(),
    "got an unexpected keyword argument 'prompts'": lambda: trainer([no_kwargs]).train(),
    "missing 1 required positional argument: 'solution'": lambda: trainer([needs_a_column]).train(),
    "'list' object has no attribute 'strip'": lambda: trainer([as_text]).train(),
    "expected string or bytes-like object, got 'list'": lambda: trainer([as_pattern]).train(),
    "string indices must be integers, not 'str'": lambda: trainer([as_chat], strings()).train(),
    "returned 1 rewards, but 64 were expected": lambda: trainer([too_few]).train(),
    "Number of reward weights (1) must match number of reward functions (3)": lambda: trainer(reward_weights=[1.0]),
    "probability tensor contains either": lambda: trainer(model_change=spoil).train(),
    "can't allocate memory": petabyte,
    "Cannot use chat template functions because tokenizer.chat_template is not set": lambda: trainer(
        tokenizer_change=no_template
    ).train(),
    "KeyError: 'prompt'": lambda: trainer(rows=without_prompts()).train(),
    "auto_find_batch_size is not supported by GRPO": lambda: trainer(auto_find_batch_size=True),
    "At most one of fp16 and bf16 can be True": lambda: config(bf16=True, fp16=True),
    "vLLM is not available and `use_vllm` is set to True": lambda: trainer(use_vllm=True),
    "but you didn't pass an": lambda: trainer(eval_strategy="steps"),
    "has to be a strictly positive float": lambda: trainer(temperature=0.0).train(),
    "No valid checkpoint found in output directory": lambda: trainer().train(resume_from_checkpoint=True),
}


def test_what_is_called_tried_is_tried_and_nothing_else():
    tried = [name for name, body in headings(ERRORS).items() if re.search(r"^\*Tried\b", body.strip())]
    assert tried == list(PROVOKE)


@pytest.mark.slow
@pytest.mark.upgrade
@pytest.mark.parametrize("text", PROVOKE)
def test_the_error_reads_as_the_page_says(text):
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError)) as caught:
        PROVOKE[text]()
    assert text in f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.slow
def test_real_errors_have_their_verdicts():
    for text, code in (("can't allocate memory", "out_of_memory"), ("probability tensor contains either", "nan")):
        with pytest.raises(RuntimeError) as caught:
            PROVOKE[text]()
        assert diagnose_error(caught.value).code == code
