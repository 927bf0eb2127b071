# %% [markdown]
# # 09 · SFT, then GRPO
#
# {{badges}}
#
# **You will be able to** teach a model a new task with 100 examples, continue with GRPO on the same adapter, and test
# whether GRPO was worth it.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 2 minutes | never run |
# | memory | about 2 GB | never run |
# | model | 0.46 million parameters, ships with the course | the same, also on the CPU |
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** the base model never solves the task of this
# lesson. What does GRPO alone do with it?
#
# **The numbers in the text** are from the stored CPU run, seed 0. Other seeds and machines give different numbers.

# %% [markdown]
# ## 1. Set up
#
# On Colab and Kaggle, the next cell installs the course and missing packages (a few minutes; never run there so far).
# On Kaggle, turn on *Internet* in the settings first. Elsewhere it does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # this lesson trains on the CPU with any profile
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # GRPO steps after SFT; 0: the default, 50
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 50, output_dir="outputs/sft")

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

tokenizer = AutoTokenizer.from_pretrained(run.path)

# %% [markdown]
# ## 2. A task that the model has never seen
#
# The tiny model was trained to add numbers, to write JSON, and on a few more tasks, but never to compare two numbers. That
# is our task. Every row has a prompt and a gold answer.

# %%
import itertools
import random


def row(a: int, b: int) -> dict:
    question = {"role": "user", "content": f"Which is larger, {a} or {b}?"}
    return {"prompt": [question], "answer": str(max(a, b))}


pairs = list(itertools.combinations(range(100, 1000), 2))  # each pair once
pairs = random.Random(SEED).sample(pairs, 700)
pairs = [pair[::-1] if n % 2 else pair for n, pair in enumerate(pairs)]
rows = Dataset.from_list([row(a, b) for a, b in pairs])
test_rows = rows.select(range(200))  # only to evaluate
sft_rows = rows.select(range(200, 300))  # these get worked answers
new_rows = rows.select(range(300, 700))  # only a prompt and a gold answer
print(test_rows[0])

# %% [markdown]
# The three parts share no question. The reward is 1 for a correct answer in the format of lesson 03, otherwise 0.
# `is_strictly_right` makes that check.

# %%
from grpo_utils import completion_text, evaluate, is_strictly_right


def correct(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %% [markdown]
# `new_policy` adds a new LoRA adapter to the base model, as in lesson 05. `evaluate` samples an answer to each test prompt.


# %%
def load_base():
    return AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)


def new_policy() -> PeftModel:
    base = load_base()
    torch.manual_seed(SEED)
    lora = dict(r=16, lora_alpha=32, target_modules="all-linear")
    return get_peft_model(base, LoraConfig(**lora, task_type="CAUSAL_LM"))


DECODING = dict(max_new_tokens=40, temperature=1.0, seed=SEED)
policy = new_policy()
before = evaluate(policy, tokenizer, test_rows, **DECODING)
print("strict accuracy, sampled:", before.accuracy)
print("one sample:              ", before.sampled[0])

# %% [markdown]
# The base model solves 0 of 200 prompts. The upper end of the 95% interval is 0.019, so a group of eight completions
# will almost never contain a correct one.
#
# **Evaluate the base model on your task before you choose a method.**

# %% [markdown]
# ## 3. GRPO alone learns nothing
#
# `SHARED` holds the settings for a tiny model that all trainers of this lesson use. `GRPO` adds those of GRPO.

# %%
SHARED = dict(
    output_dir=str(run.folder / "unused"),
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    optim="adamw_torch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws a bar instead
    seed=SEED,
)
GRPO = dict(
    learning_rate=1e-3,
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, not prompts
    max_completion_length=40,  # in tokens
    **SHARED,
)

# %% [markdown]
# `train_grpo` builds the trainer, runs it and returns the log. `logged` reads one number of every step from a log.

# %%
from grpo_utils import logged, show_progress


def train_grpo(policy, rows, steps: int, **more) -> list[dict]:
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(max_steps=steps, **GRPO, **more),
        train_dataset=rows,
        reward_funcs=correct,
    )
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


# %% [markdown]
# `adapter_of` copies the weights of an adapter, and `largest_change` compares two copies.


# %%
def adapter_of(policy, name: str = "default") -> list[torch.Tensor]:
    named = policy.named_parameters()
    return [w.detach().clone() for n, w in named if f".{name}." in n]


def largest_change(old: list, new: list) -> float:
    return max((a - b).abs().max().item() for a, b in zip(old, new))


# %%
start = adapter_of(policy)
alone = train_grpo(policy, new_rows, 5)
print("rewards:", logged(alone, "reward"))
print("tied:   ", logged(alone, "frac_reward_zero_std"))
print("largest change of a weight:", largest_change(start, adapter_of(policy)))

# %% [markdown]
# None of the 320 completions earned a reward. All groups are *tied*: their completions score the same, so every
# advantage is 0. The gradient is 0 as well, and after five steps no weight has changed. A larger learning rate or more
# steps would not help, because there is nothing to reinforce.
#
# **GRPO cannot start from a pass rate of 0.**

# %% [markdown]
# ## 4. Teach the task with 100 examples
#
# *SFT*, supervised fine-tuning, trains the model to write given answers, token by token. It needs the whole answer, not
# only the result. So someone has to write 100 worked answers. Here a function does it.


# %%
def demonstration(a: int, b: int) -> dict:
    answer = max(a, b)
    work = f"<reasoning>{answer} > {min(a, b)}</reasoning>"
    text = f"{work}<answer>{answer}</answer>"
    completion = [{"role": "assistant", "content": text}]
    return {"prompt": row(a, b)["prompt"], "completion": completion}


demonstrations = [demonstration(a, b) for a, b in pairs[200:300]]
print(demonstrations[0]["completion"][0]["content"])
demonstrations = Dataset.from_list(demonstrations)

# %% [markdown]
# TRL's `SFTTrainer` trains on rows with the columns `prompt` and `completion`. With `completion_only_loss=True`, the
# default for such rows, only the tokens of the completion count. An *epoch* is one pass over all rows.

# %%
from transformers.trainer_callback import PrinterCallback


def new_sft(policy, **length) -> SFTTrainer:
    config = SFTConfig(
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        max_length=128,  # in tokens; a longer row is cut
        completion_only_loss=True,
        packing=False,  # one row per sequence
        **length,
        **SHARED,
    )
    given = dict(processing_class=tokenizer, train_dataset=demonstrations)
    trainer = SFTTrainer(policy, args=config, **given)
    trainer.remove_callback(PrinterCallback)  # prints every step
    return trainer


# %%
policy = new_policy()
sft = new_sft(policy, num_train_epochs=8, per_device_train_batch_size=20)
labels = sft.train_dataset[0]["labels"]
trained = [token for token in labels if token != -100]
print(f"{len(labels)} tokens, trained on {len(trained)}:")
print(repr(tokenizer.decode(trained)))

# %% [markdown]
# Each token has a *label*, the token that the model should write. A label of -100 removes a token from the loss. The
# prompt's labels are all -100, so the model does not learn to write questions. **Check that the end-of-turn token is
# among the trained ones.** Without it, the model never learns to stop.
#
# Now train, save the adapter, and evaluate.

# %%
sft.train()
policy.save_pretrained(run.folder / "sft")
after_sft = evaluate(policy, tokenizer, test_rows, **DECODING)
print(f"correctly formatted:      {after_sft.format}")
print(f"strict accuracy, sampled: {after_sft.accuracy}")

# %% [markdown]
# SFT_TEXT
#
# **A hundred worked answers can turn a pass rate of 0 into one that GRPO can use.**

# %% [markdown]
# ## 5. Continue with the same adapter
#
# GRPO should go on where SFT stopped. `PeftModel.from_pretrained` loads the saved adapter for inference by default, which
# freezes it. Load it both ways, and train three steps with each. `beta` above 0 turns on the KL penalty, which pulls the
# policy toward a *reference* model. (Section 6 explains which.)


# %%
def saved_policy(trainable: bool) -> PeftModel:
    base, folder = load_base(), run.folder / "sft"
    return PeftModel.from_pretrained(base, folder, is_trainable=trainable)


for trainable in (False, True):
    policy = saved_policy(trainable)
    start = adapter_of(policy)
    log = train_grpo(policy, new_rows, 3, beta=0.05)
    change = largest_change(start, adapter_of(policy))
    print(f"is_trainable={trainable}")
    print(f"  gradient norm, last step: {log[2]['grad_norm']:.3f}")
    print(f"  KL, by step: {[round(kl, 5) for kl in logged(log, 'kl')]}")
    print(f"  largest change of a weight: {change:.5f}")

# %% [markdown]
# Both runs finish without a warning, and both log rewards and a gradient norm. But the frozen adapter has not changed at
# all. The only sign in its log is a KL of exactly 0 at every step. One user lost
# [100 steps](https://github.com/huggingface/trl/issues/6700) this way. (FROZEN_TEXT)
#
# Do not pass a `peft_config` or call `get_peft_model` as well: the policy already has its adapter. TRL then raises a
# `ValueError`, and Unsloth says
# [`Your model already has LoRA adapters`](https://github.com/unslothai/unsloth/issues/2288).
#
# **Load with `is_trainable=True`, and check after a few steps that a weight has changed.**

# %% [markdown]
# ## 6. Find the reference of the KL penalty
#
# The policy of the last run now has two adapters:

# %% tags=["nbval-check-output"]
print("adapters:", list(policy.peft_config))
change = largest_change(start, adapter_of(policy, "ref"))
print(f"ref differs from the SFT adapter by {change}")

# %% [markdown]
# TRL 1.14 copied the adapter as `ref` before the first step, because the policy was a PEFT model and `beta` was not 0.
# `ref` is the reference, it stays frozen, and it equals the SFT adapter. That is why the KL was 0 at step 1. So the
# penalty pulls toward the SFT model, not toward the base model. (`save_pretrained` writes this copy too, into a subfolder
# `ref`. You do not need it.)
#
# | you pass to `GRPOTrainer` | reference for `beta > 0` |
# |---|---|
# | a `PeftModel` with a trained adapter | a frozen copy of that adapter: the SFT model |
# | a `PeftModel` with a new adapter | a copy of the new adapter: the base model |
# | a model with SFT merged in, and `peft_config` | the model with the adapter off: the SFT model |
# | a model without PEFT | a second copy of the whole model |
#
# Older versions of TRL switched the adapter off, so the reference was the base model, and the KL was large from the start
# ([the change](https://github.com/huggingface/trl/pull/4723)). With `beta=0`, TRL's default, there is no reference.
#
# **If the KL is not 0 at the first step, the reference is not the model that you started from.**

# %% [markdown]
# ## 7. Choose the prompts for GRPO
#
# Which prompts should GRPO use? Sample eight answers per prompt from the SFT model, and count how many are correct.
# `pass_rates` returns the share of correct answers for each row.

# %%
from grpo_utils import drop_tied, pass_rates

sft_policy = saved_policy(False)
SAMPLING = dict(samples=8, max_new_tokens=40, seed=SEED)
new_rates = pass_rates(sft_policy, tokenizer, new_rows, **SAMPLING)
old_rates = pass_rates(sft_policy, tokenizer, sft_rows, **SAMPLING)
print(f"{'prompts':12}mean   never  always   all")
for name, found in {"new": new_rates, "SFT rows": old_rates}.items():
    never, always, every = found.count(0), found.count(1), len(found)
    print(f"{name:10}{sum(found) / every:6.2f}{never:8}{always:8}{every:6}")
grpo_rows = drop_tied(new_rows, new_rates)
print(f"kept: {len(grpo_rows)} of {len(new_rows)} new prompts")

# %% [markdown]
# DATA_TEXT
#
# **Use new prompts that the SFT model sometimes solves.**

# %% [markdown]
# ## 8. Continue with GRPO
#
# Load the SFT adapter once more, and train on the chosen prompts. From here on, `beta` is 0, TRL's default.

# %%
policy = saved_policy(True)
log = train_grpo(policy, grpo_rows, run.steps)
policy.save_pretrained(run.folder / "grpo")
after_grpo = evaluate(policy, tokenizer, test_rows, **DECODING)

# %%
from grpo_utils import compare, show_run_curves

curves = {"GRPO alone": alone, "GRPO after SFT": log}
show_run_curves(curves, ["reward", "frac_reward_zero_std"])
print(compare(after_sft, after_grpo))

# %% [markdown]
# GRPO_TEXT
#
# **SFT gives GRPO something to reinforce; GRPO makes it reliable.**

# %% [markdown]
# ## 9. Compare with SFT alone
#
# A longer SFT run might have done the same. To compare, fix a *budget*. Ours is the number of sequences that the trainer
# computes gradients for: each GRPO step uses 64. So SFT continues from the same adapter with as many steps of 64 rows.
# It repeats the 100 worked answers, because there are no others.

# %%
more = saved_policy(True)
budget = dict(max_steps=run.steps, per_device_train_batch_size=64)
more_sft = new_sft(more, **budget, dataloader_drop_last=True)  # always 64
result = more_sft.train()
after_more = evaluate(more, tokenizer, test_rows, **DECODING)
print(f"seconds, GRPO: {log[-1]['train_runtime']:.0f}")
print(f"seconds, SFT:  {result.metrics['train_runtime']:.0f}")
print(compare(after_more, after_grpo))

# %% [markdown]
# COMPARE_TEXT
#
# **Compare GRPO with more SFT on the same budget, not with no training.**

# %% [markdown]
# ## 10. Merge the right adapter
#
# You now have two saved adapters, `sft` and `grpo`. The second started as a copy of the first, so it contains both
# stages. Merge it alone, once, into the original base. The next cell checks that, and shows two common mistakes.


# %%
def merged(*names: str):
    model = load_base()
    for name in names:
        model = PeftModel.from_pretrained(model, run.folder / name)
        model = model.merge_and_unload()
    return model.eval()


prompts = list(test_rows["prompt"][:8])
shape = dict(add_generation_prompt=True, padding=True, return_dict=True)
batch = tokenizer.apply_chat_template(prompts, return_tensors="pt", **shape)
with torch.inference_mode():
    wanted = policy.eval()(**batch).logits
    for names in (("grpo",), ("sft", "grpo"), ("sft",)):
        model = merged(*names)
        difference = (model(**batch).logits - wanted).abs().max().item()
        accuracy = evaluate(model, tokenizer, test_rows, **DECODING).accuracy
        print(f"{'+'.join(names):9} logits {difference:7.1e}  {accuracy}")

# %% [markdown]
# MERGE_TEXT
#
# | how you trained | what to merge into the original base |
# |---|---|
# | GRPO continued the SFT adapter | the GRPO adapter alone |
# | SFT was merged first, GRPO trained a new adapter | the SFT adapter, then the GRPO adapter |
# | SFT adapter frozen, GRPO trained a second adapter on top | both |
#
# **Compare the merged model's logits with the policy's before you release it.**

# %% [markdown]
# ## 11. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward 0 and all groups tied | Is the pass rate of the base model 0? | run SFT first, with 100 or more worked answers |
# | SFT model never stops | Is the end-of-turn token among the trained labels? | use the chat template, raise `max_length` |
# | GRPO after SFT changes nothing | Is the largest change of a weight 0? | load with `is_trainable=True` |
# | KL large at step 1 | What does `list(policy.peft_config)` show? | continue the SFT adapter, or merge SFT first |
# | few useful groups after SFT | How many prompts are solved always, or never? | drop them with `drop_tied`, take new prompts |
# | GRPO below the SFT model | Does `compare` show a change? | lower the learning rate; take an earlier [checkpoint](../docs/choosing-a-checkpoint.md) |
# | worse after the merge | Do the logits equal the policy's? | merge the last adapter once, into the base that it was trained on |
#
# **SFT first if the pass rate is 0; then GRPO on new prompts, with the same adapter.**

# %% [markdown]
# ## 12. Exercises
#
# **Exercise 1.** Write `next_step(rate, tied)`, which takes the mean pass rate and the share of tied groups and returns
# `"SFT first"` (nothing is ever correct), `"other prompts"` (more than half of the groups are tied) or `"GRPO"`.


# %%
def next_step(rate: float, tied: float) -> str:
    """Your answer: one of the three strings."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

CASES = [((0.0, 1.0), "SFT first"), ((0.4, 0.1), "GRPO")]
CASES += [((0.97, 0.8), "other prompts"), ((0.03, 0.9), "other prompts")]
HINTS = [("GRPO", "Are enough groups not tied?")]
HINTS += [("SFT first", "Is the pass rate exactly 0?")]
print(check_exercise("Exercise 1", next_step, CASES, HINTS))

# %% [markdown]
# **Exercise 2.** Write `to_merge(plan)`, which returns the list of adapters to merge into the original base, in order.
# The plans are `"continued"` (GRPO continued the SFT adapter) and `"stacked"` (SFT was merged, then GRPO trained a new
# adapter).
#
# **Try both before you unfold the solutions.** [Lesson 05](05_stages.ipynb) compares GRPO stages over several seeds.


# %%
def to_merge(plan: str) -> list[str] | None:
    """Your answer: a list with "sft", "grpo" or both."""


# %% tags=["nbval-check-output"]
PLANS = [(("continued",), ["grpo"]), (("stacked",), ["sft", "grpo"])]
HINTS = [(["sft", "grpo"], "Whose weights did GRPO's adapter start from?")]
HINTS += [(["grpo"], "Which base was the GRPO adapter trained on?")]
print(check_exercise("Exercise 2", to_merge, PLANS, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: a pass rate of 0 leaves nothing to reinforce. If most groups are tied, most of the work is wasted.
#
# Exercise 2: a continued adapter contains both stages. A stacked one was trained on the base with SFT merged in.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def next_step_solution(rate: float, tied: float) -> str:
    if rate == 0:
        return "SFT first"
    return "other prompts" if tied > 0.5 else "GRPO"


print(check_exercise("Exercise 1, solution", next_step_solution, CASES))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def to_merge_solution(plan: str) -> list[str]:
    return ["grpo"] if plan == "continued" else ["sft", "grpo"]


print(check_exercise("Exercise 2, solution", to_merge_solution, PLANS))
