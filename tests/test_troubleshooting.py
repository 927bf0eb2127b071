"""What docs/troubleshooting.md calls tried is tried here: each error is provoked, and its text compared."""

import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from course import ROOT
from grpo_check.health.diagnosis import diagnose_error
from grpo_check.health.rules import RULES

from grpo_utils import load_policy, load_rows, math_rewards, model_path
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

PAGES = {
    name: (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("troubleshooting.md", "troubleshooting-gpu.md", "troubleshooting-training.md")
}
PAGE = PAGES["troubleshooting.md"]
VERDICTS, ERRORS = PAGE.split("## Verdicts")[1].split("## Error texts")


def headings(text: str) -> dict[str, str]:
    """Each ``###`` heading without its backticks, and what stands below it."""
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)[1:]
    return {name.strip("`"): body for name, body in zip(parts[::2], parts[1::2])}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.link], ids=lambda rule: rule.code)
def test_every_verdict_links_to_an_entry(rule):
    assert rule.code in headings(VERDICTS), f"add an entry '### {rule.code}' to the verdicts of docs/troubleshooting.md"


def test_every_entry_is_a_verdict():
    assert set(headings(VERDICTS)) == {rule.code for rule in RULES if rule.link}


def test_every_entry_says_whether_it_was_tried():
    entries = [entry for page in PAGES.values() for entry in headings(page).items()]
    assert not [name for name, text in entries if not re.search(r"(?i)\*(not tried|tried|measured|read)\b", text)]


@pytest.mark.parametrize("page", list(PAGES)[1:])
def test_every_symptom_is_in_the_index(page):
    anchors = [re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-") for name in headings(PAGES[page])]
    assert not [anchor for anchor in anchors if f"({page}#{anchor})" not in PAGE.split("## Verdicts")[0]]


def test_every_test_that_an_entry_names_exists():
    own = set(re.findall(r"^def (test_\w+)", (ROOT / "tests" / Path(__file__).name).read_text(), flags=re.MULTILINE))
    named = {name for page in list(PAGES)[1:] for name in re.findall(r"`(test_\w+)`", PAGES[page])}
    assert named <= own, named - own


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


def returns_zeros(completions, **kwargs):
    return [0.0] * len(completions)


def config(**changes):
    from trl import GRPOConfig

    return GRPOConfig(**{**training_arguments(CPU, output_dir="outputs/never", max_steps=1), **changes})


def trainer(rewards=None, rows=None, tokenizer_change=None, model_change=None, parts=None, **changes):
    """A trainer with ``parts`` of its own; ``changes`` are changes of its config."""
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
        **parts or {},
    )


def strings():
    from datasets import Dataset

    return Dataset.from_list([{"prompt": "What is 1 + 1?", "answer": "2"}] * 64)


def rendered_with_images():
    return strings().add_column("image", [str(ROOT / "never.png")] * 64)


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


def trained_adapter(folder, base="tiny-qwen3"):
    """Save an untrained adapter on ``base`` and return the folder."""
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    get_peft_model(plain(base), lora).save_pretrained(folder)
    return folder


def plain(base="tiny-qwen3", **changes):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model_path(base), **changes)


def continued(folder, **changes):
    """A trainer that goes on with the adapter in ``folder``; ``is_trainable`` is passed to PEFT."""
    from peft import PeftModel
    from transformers import AutoTokenizer
    from trl import GRPOTrainer

    options = {key: changes.pop(key) for key in ("is_trainable",) if key in changes}
    return GRPOTrainer(
        model=PeftModel.from_pretrained(plain(), folder, **options),
        processing_class=AutoTokenizer.from_pretrained(model_path("tiny-qwen3")),
        args=config(**changes),
        train_dataset=load_rows("addition", "train", 64),
        reward_funcs=math_rewards().rewards,
    )


def frozen():
    with tempfile.TemporaryDirectory() as folder:
        continued(trained_adapter(folder)).train()


def two_adapters():
    from peft import LoraConfig

    trainer(parts=dict(peft_config=LoraConfig()))


def new_token():
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    tokenizer.add_tokens(["<new>"])
    plain()(**tokenizer("<new>", return_tensors="pt"))


def best(metric):
    """A trainer after two steps, from which it chose a checkpoint by ``metric``."""
    saving = dict(eval_strategy="steps", eval_steps=1, save_strategy="steps", save_steps=1, load_best_model_at_end=True)
    parts = dict(eval_dataset=load_rows("addition", "test", 16))
    with tempfile.TemporaryDirectory() as folder:
        choice = dict(metric_for_best_model=metric, greater_is_better=True)
        run = trainer(parts=parts, output_dir=folder, max_steps=2, **saving, **choice)
        run.train()
    return run


def multiply(a: int, b: int) -> int:
    """Multiply two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a * b


def template_without_tools(tokenizer):
    turn = "<|im_start|>{{m.role}}\n{{m.content}}<|im_end|>\n"
    tokenizer.chat_template = "{% for m in messages %}" + turn + "{% endfor %}<|im_start|>assistant\n"
    tokenizer.response_template = None


def old_name():
    from trl import GRPOTrainer

    GRPOTrainer(model=None, tokenizer=None, reward_funcs=as_text, args=config())


def bf16_config():
    from trl import GRPOConfig

    return GRPOConfig(output_dir="outputs/never", bf16=True)


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
    "Multimodal training requires conversational prompts": lambda: trainer(rows=rendered_with_images()).train(),
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
    "Your setup doesn't support bf16/gpu": bf16_config,
    "got an unexpected keyword argument 'tokenizer'": old_name,
    "must be divisible by the number of generations used for evaluation": lambda: config(
        eval_strategy="steps", per_device_eval_batch_size=4
    ),
    "element 0 of tensors does not require grad and does not have a grad_fn": frozen,
    "You passed a `PeftModel` instance together with a `peft_config` to the trainer": two_adapters,
    "index out of range in self": new_token,
    "requires the save and eval strategy to match": lambda: config(load_best_model_at_end=True, save_strategy="steps"),
    "The `metric_for_best_model` training argument is set to": lambda: best("eval_rewards/nothing"),
    "The provided chat template does not support tool calling": lambda: trainer(
        tokenizer_change=template_without_tools, parts=dict(tools=[multiply])
    ),
}


def test_what_is_called_tried_is_tried_and_nothing_else():
    tried = [name for name, body in headings(ERRORS).items() if re.search(r"\*[Tt]ried\b", body)]
    assert tried == list(PROVOKE)


@pytest.mark.slow
@pytest.mark.upgrade
@pytest.mark.parametrize("text", PROVOKE)
def test_the_error_reads_as_the_page_says(text):
    with pytest.raises(
        (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError, ImportError)
    ) as caught:
        PROVOKE[text]()
    assert text in f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.slow
@pytest.mark.upgrade
def test_another_number_that_is_none_gives_the_same_error():
    with pytest.raises(TypeError, match="'>' not supported between instances of 'NoneType' and 'int'"):
        config(logging_steps=None)


@pytest.mark.slow
def test_real_errors_have_their_verdicts():
    for text, code in (("can't allocate memory", "out_of_memory"), ("probability tensor contains either", "nan")):
        with pytest.raises(RuntimeError) as caught:
            PROVOKE[text]()
        assert diagnose_error(caught.value).code == code


def dropped(policy):
    """What a base with ``attention_dropout=0.1`` in its config has."""
    for module in policy.modules():
        if "attention_dropout" in vars(module):
            module.attention_dropout = 0.1


def first_kl(**changes) -> float:
    run = trainer(beta=0.04, learning_rate=1e-9, **changes)
    run.train()
    return next(line["kl"] for line in run.state.log_history if "kl" in line)


@pytest.mark.slow
def test_dropout_makes_a_kl_at_the_first_step():
    assert first_kl() < 1e-6
    with_dropout = first_kl(model_change=dropped)
    assert with_dropout > 100
    assert first_kl(model_change=dropped, disable_dropout=True) == pytest.approx(with_dropout, rel=0.5)


@pytest.mark.slow
def test_an_adapter_goes_on_only_if_it_is_trainable(tmp_path):
    import torch

    folder = trained_adapter(tmp_path)
    for trainable in (False, True):
        run = continued(folder, beta=0.04, is_trainable=trainable)
        before = {n: p.detach().clone() for n, p in run.model.named_parameters() if ".default." in n}
        assert len(before) == 8 and sum(p.requires_grad for p in run.model.parameters()) == (8 if trainable else 0)
        run.train()
        after = dict(run.model.named_parameters())
        assert run.state.log_history[0]["grad_norm"] > 0
        assert any(not torch.equal(old, after[name]) for name, old in before.items()) is trainable


@pytest.mark.slow
@pytest.mark.parametrize("beta", [0.0, 0.04])
def test_a_frozen_adapter_trains_in_silence(tmp_path, beta):
    run = continued(trained_adapter(tmp_path), beta=beta, gradient_checkpointing=True)
    run.train()
    assert run.state.global_step == 1 and (run.state.log_history[0]["grad_norm"] > 0) is (beta > 0)


def test_an_adapter_loads_on_a_wrong_base_without_an_error(tmp_path):
    from peft import PeftModel

    PeftModel.from_pretrained(plain("tiny-gemma3"), trained_adapter(tmp_path))


def test_the_check_of_an_idle_adapter(tmp_path):
    from safetensors.torch import load_file

    weights = load_file(trained_adapter(tmp_path) / "adapter_model.safetensors")
    assert max(w.abs().max() for name, w in weights.items() if "lora_B" in name) == 0


@pytest.mark.slow
def test_the_best_checkpoint_is_chosen_by_the_loss_unless_told():
    assert (
        config(load_best_model_at_end=True, eval_strategy="steps", save_strategy="steps").metric_for_best_model
        == "loss"
    )
    run = best("eval_reward")
    found = [line["eval_reward"] for line in run.state.log_history if "eval_reward" in line]
    assert run.state.best_metric == max(found) and len(found) == 2


def test_async_rewards_run_at_the_same_time():
    import asyncio

    running, most = 0, []

    async def waits(completions, **kwargs):
        nonlocal running
        running += 1
        most.append(running)
        await asyncio.sleep(0.1)
        running -= 1
        return [1.0] * len(completions)

    async def waits_too(completions, **kwargs):
        return await waits(completions)

    prompts = [[{"role": "user", "content": "1 + 1?"}]] * 8
    completions = [[{"role": "assistant", "content": "2"}]] * 8
    run = trainer([waits, waits_too])
    rewards = run._calculate_rewards([{"prompt": p} for p in prompts], prompts, completions, [[1]] * 8)
    assert rewards.tolist() == [[1.0, 1.0]] * 8 and most == [1, 2]


@pytest.mark.parametrize(
    ("rows", "batch", "accumulation", "per_generation", "iterations"),
    [(64, 4, 2, 2, 1), (64, 8, 2, 2, 2), (64, 8, 1, 4, 1), (65, 16, 1, 1, 1)],
)
def test_the_number_of_steps(rows, batch, accumulation, per_generation, iterations):
    run = trainer(
        rows=load_rows("addition", "train", rows),
        max_steps=-1,
        num_train_epochs=2,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=per_generation,
        num_iterations=iterations,
        num_generations=8,
    )
    steps = run.set_initial_training_values(run.args, run.get_train_dataloader())[-1]
    prompts = batch * per_generation // 8
    assert steps == 2 * (rows - rows % prompts) * 8 * iterations / (batch * accumulation)


def rolled_out(prompts, trainer):
    """Whole episodes, as ``rollout_func`` returns them: a turn, the environment's text and a second turn."""
    tokenizer, guesses = trainer.processing_class, [place % 2 for place in range(len(prompts))]
    encode = partial(tokenizer.encode, add_special_tokens=False)
    first, told = encode("<answer>9</answer>"), encode("Wrong.")
    second = [[*encode(f"<answer>{guess}</answer>"), tokenizer.eos_token_id] for guess in guesses]
    return {
        "prompt_ids": [encode("What is 1 + 0?")] * len(prompts),
        "completion_ids": [first + told + last for last in second],
        "logprobs": None,
        "env_mask": [[1] * len(first) + [0] * len(told) + [1] * len(last) for last in second],
        "guesses": guesses,
    }


def two_per_prompt(prompts, trainer):
    return rolled_out([*prompts, *prompts], trainer)


def sampled(run, rows=2):
    """One round of sampling and scoring: the batch, as the loss gets it."""
    run.model.train()
    prompts = load_rows("addition", "train", rows)
    return run._generate_and_score_completions([dict(row) for row in prompts for _ in range(run.num_generations)])


@pytest.mark.slow
def test_a_rollout_function_returns_one_sequence_per_prompt():
    seen = {}

    def score(completions, guesses, **kwargs):
        seen.update(completions=completions, guesses=guesses)
        return [float(guess == 1) for guess in guesses]

    run = trainer([score], parts=dict(rollout_func=rolled_out))
    batch, expected = sampled(run), rolled_out(range(2 * run.num_generations), run)
    assert batch["completion_ids"].tolist() == expected["completion_ids"]
    assert batch["tool_mask"].tolist() == expected["env_mask"]
    assert seen["guesses"] == expected["guesses"] and "Wrong." in seen["completions"][0][0]["content"]
    run.train()
    assert run.state.log_history[0]["grad_norm"] > 0


@pytest.mark.slow
def test_two_sequences_per_prompt_are_too_many():
    run = trainer([returns_zeros], parts=dict(rollout_func=two_per_prompt))
    count = 2 * run.num_generations
    with pytest.raises(ValueError, match=f"returned {2 * count} rewards, but {count} were expected"):
        sampled(run)


def test_math_verify_has_no_timeout_outside_the_main_thread():
    from concurrent.futures import ThreadPoolExecutor

    from math_verify import parse
    from trl.rewards import accuracy_reward

    completion = [[{"role": "assistant", "content": r"\boxed{4}"}]]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(accuracy_reward, completion, ["4"]).result() == [1.0]
        with pytest.raises(ValueError, match="parsing_timeout=None"):
            pool.submit(parse, "4").result()
        assert pool.submit(parse, "4", parsing_timeout=None).result()


def test_a_prefilled_think_earns_nothing_from_trl():
    from trl.rewards import think_format_reward as theirs

    from grpo_utils.rewards import think_format_reward as ours

    completion = [[{"role": "assistant", "content": "Two and two.\n</think>\nThe answer is 4."}]]
    assert theirs(completion) == [0.0] and ours(completion) == [1.0]


def test_gdpo_separates_what_a_sum_merges():
    import torch

    rewards = torch.tensor([[1.0, 0], [0, 1], [0, 1], [0, 0]])
    total = rewards.sum(1)
    summed = (total - total.mean()) / (total.std() + 1e-4)
    each = ((rewards - rewards.mean(0)) / (rewards.std(0) + 1e-4)).sum(1)
    apart = (each - each.mean()) / (each.std() + 1e-4)
    table = re.findall(
        r"^\| \([^|]*\| \d \| (\S+) \| (\S+) \|", PAGES["troubleshooting-training.md"], flags=re.MULTILINE
    )
    assert [(f"{a:.2f}", f"{b:.2f}") for a, b in zip(summed, apart)] == table


def test_all_linear_trains_the_router_of_a_mixture_of_experts():
    from peft import LoraConfig, get_peft_model
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    heads = dict(num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=16)
    experts = dict(moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2, decoder_sparse_step=1)
    base = Qwen3MoeForCausalLM(Qwen3MoeConfig(vocab_size=64, hidden_size=32, intermediate_size=64, **heads, **experts))
    policy = get_peft_model(base, LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM"))
    trained = {
        name.split(".lora_")[0].split("layers.")[-1].split(".", 1)[-1]
        for name, p in policy.named_parameters()
        if p.requires_grad
    }
    assert {"mlp.gate", "mlp.experts", "self_attn.q_proj"} <= trained


@pytest.mark.slow
def test_the_callback_of_the_page_names_the_first_gradient_that_is_not_finite():
    code = re.search(
        r"```python\n(from transformers import TrainerCallback.*?)```", PAGES["troubleshooting-gpu.md"], re.DOTALL
    )
    space = {}
    exec(code[1], space)
    run = trainer(max_grad_norm=1.0)
    name, weight = [(name, p) for name, p in run.model.named_parameters() if p.requires_grad][3]
    weight.register_hook(lambda gradient: gradient * float("nan"))
    run.add_callback(space["StopAtNaN"]())
    with pytest.raises(FloatingPointError, match=re.escape(f"after step 0: the gradient of {name} is not finite")):
        run.train()


def test_adapter_keys_behind_a_wrapper_are_missing(tmp_path):
    from peft import PeftModel, get_peft_model_state_dict
    from safetensors.torch import load_file, save_file

    file = trained_adapter(tmp_path) / "adapter_model.safetensors"
    saved = load_file(file)
    save_file({f"module.{name}": weight for name, weight in saved.items()}, file)
    with pytest.warns(UserWarning, match="Found missing adapter keys while loading the checkpoint"):
        model = PeftModel.from_pretrained(plain(), tmp_path)
    assert set(get_peft_model_state_dict(model, save_embedding_layers=False)) == set(saved)


def test_a_merged_4_bit_weight_stays_packed():
    import torch

    policy, _ = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=True)
    policy.merge_adapter()
    merged = {name: weight for name, weight in policy.named_parameters() if name.endswith("q_proj.base_layer.weight")}
    assert merged and {(weight.dtype, weight.shape[1]) for weight in merged.values()} == {(torch.uint8, 1)}


def test_the_check_of_4_bit_layers():
    from bitsandbytes.nn import Linear4bit

    policy, _ = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=True)
    layers = [module for module in policy.modules() if isinstance(module, Linear4bit)]
    assert len(layers) == 14 and all(layer.weight.quant_state is not None for layer in layers)


def test_peft_warns_about_a_second_adapter():
    from peft import LoraConfig, get_peft_model

    lora = LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM")
    with pytest.warns(UserWarning, match="You are trying to modify a model with PEFT for a second time"):
        get_peft_model(get_peft_model(plain(), lora), lora)


def test_only_a_safe_merge_reports_an_adapter_with_nan():
    import torch
    from peft import LoraConfig, get_peft_model

    def adapted():
        model = get_peft_model(torch.nn.Sequential(torch.nn.Linear(4, 4)), LoraConfig(target_modules=["0"], r=2))
        torch.nn.init.constant_(model.base_model.model[0].lora_B["default"].weight, float("nan"))
        return model

    assert not torch.isfinite(adapted().merge_and_unload()[0].weight).any()
    with pytest.raises(ValueError, match="NaNs detected in the merged weights. The adapter default seems to be broken"):
        adapted().merge_and_unload(safe_merge=True)


@pytest.mark.slow
def test_unsloth_warns_if_it_is_imported_last():
    code = "import trl, transformers, peft; from trl import GRPOTrainer; import unsloth"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert "Unsloth should be imported before [trl, transformers, peft]" in found.stderr
