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
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.0 GB ([measured](../docs/results.md)) | never run |
# | model | 0.46 million parameters, ships with the course | the same, also on the CPU |
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** the base model never solves this lesson's
# task. What does GRPO alone do?
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
from datasets import Dataset, disable_progress_bars
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

disable_progress_bars()  # of datasets
tokenizer = AutoTokenizer.from_pretrained(run.path)

# %% [markdown]
# ## 2. A task that the model has never seen
#
# The tiny model was never trained to compare two numbers. That is our task.

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
# `new_policy` adds a new LoRA adapter to the base model. `evaluate` samples an answer to each test prompt.


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
# The base model solves {{before.accuracy.hits}} of {{before.accuracy.n}} prompts. Its sample imitates the JSON answers
# that it was trained to write. The upper end of the 95% interval is {{before.accuracy.interval[1]:.3f}}. Even at that
# rate, {{(1 - before.accuracy.interval[1]) ** 8:.0%}} of the groups of eight would contain no correct completion.
#
# **Evaluate the base model on your task before you choose a method.**

# %% [markdown]
# ## 3. GRPO alone learns nothing
#
# All trainers of this lesson use the settings in `SHARED`. `GRPO` adds those of GRPO.

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
# advantage and the gradient are 0, and no weight has changed. More steps could only wait for a lucky sample.
#
# **With a reward of 0 or 1, GRPO cannot start from a pass rate of 0.**

# %% [markdown]
# ## 4. Teach the task with 100 examples
#
# *SFT*, supervised fine-tuning, trains the model to write given answers, token by token. Someone has to write these
# worked answers. Here, a function writes 100.


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
# TRL's `SFTTrainer` takes rows with the columns `prompt` and `completion`. With a *completion-only loss*, the default
# for such rows, only the completion's tokens count. An *epoch* is one pass over all rows.

# %%
from transformers.trainer_callback import PrinterCallback


def new_sft(policy, **more) -> SFTTrainer:
    config = SFTConfig(
        max_length=128,  # in tokens; a longer row is cut
        completion_only_loss=True,
        **more,
        **SHARED,
    )
    given = dict(processing_class=tokenizer, train_dataset=demonstrations)
    trainer = SFTTrainer(policy, args=config, **given)
    trainer.remove_callback(PrinterCallback)  # prints every step
    return trainer


# %%
policy = new_policy()
length = dict(num_train_epochs=8, per_device_train_batch_size=20)
rate = dict(learning_rate=2e-3, lr_scheduler_type="constant")
sft = new_sft(policy, **length, **rate)
labels = sft.train_dataset[0]["labels"]
trained = [token for token in labels if token != -100]
print(f"{len(labels)} tokens, trained on {len(trained)}:")
print(repr(tokenizer.decode(trained)))

# %% [markdown]
# Each token has a *label*, the token that the model should write. A label of -100 removes a token from the loss. The
# prompt's labels are all -100. **Check that the end-of-turn token is among the trained ones.** Without it, the model
# never learns to stop.

# %%
sft.train()
policy.save_pretrained(run.folder / "sft")
after_sft = evaluate(policy, tokenizer, test_rows, **DECODING)
print(f"correctly formatted:      {after_sft.format}")
print(f"strict accuracy, sampled: {after_sft.accuracy}")

# %% [markdown]
# SFT raised strict accuracy from {{before.accuracy.value:.2f}} to {{after_sft.accuracy.value:.2f}}, and
# {{after_sft.format.value:.0%}} of the answers have the required format. Many groups will now contain both correct and
# wrong answers.
#
# **A hundred worked answers can turn a pass rate of 0 into one that GRPO can use.**

# %% [markdown]
# ## 5. Continue with the same adapter
#
# GRPO should continue the adapter that SFT trained ([thread](https://github.com/huggingface/trl/issues/3684)).
# `PeftModel.from_pretrained` loads the saved adapter for inference by default, which freezes it. Load it both ways, and
# train three steps with each. `beta` above 0 turns on the KL penalty, which pulls the policy toward a reference model
# (section 6).


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
# Both runs finish without a warning and log rewards and a gradient norm. But the frozen adapter is unchanged. The
# trainer built its optimizer while nothing was trainable, so it updates nothing. Computing the KL then unfreezes the
# adapter, so gradients appear. The only sign in the log is a KL of exactly 0 at every step
# ([report](https://github.com/huggingface/trl/issues/6700)). With TRL's defaults, `beta=0` and gradient checkpointing,
# a frozen run also finishes, with a gradient norm of 0. Without checkpointing, as here, the first step raises `element
# 0 of tensors does not require grad`.
#
# Do not also pass a `peft_config`, because TRL then raises a `ValueError`. If you call `get_peft_model` again, Unsloth
# says [`Your model already has LoRA adapters`](https://github.com/unslothai/unsloth/issues/2288).
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
# `ref` is the reference. It stays frozen and still equals the SFT adapter. So the KL was 0 at step 1, and the penalty
# pulls toward the SFT model, not the base model.
#
# | you pass to `GRPOTrainer` | reference for `beta > 0` |
# |---|---|
# | a `PeftModel` with a trained adapter | a frozen copy of that adapter |
# | a `PeftModel` with a new adapter | a copy of it, which equals the base model |
# | a model with SFT merged in, and `peft_config` | the same model without the new adapter |
#
# [Older versions of TRL](https://github.com/huggingface/trl/pull/4723) used the base model.
#
# **If the KL is clearly above 0 at the first step, check which model is the reference.**

# %% [markdown]
# ## 7. Choose the prompts for GRPO
#
# `pass_rates` samples eight answers per prompt from the SFT model and returns the share of correct ones.

# %%
from time import process_time

from grpo_utils import drop_tied, pass_rates

sft_policy = saved_policy(False)
SAMPLING = dict(samples=8, max_new_tokens=40, seed=SEED)
started = process_time()
new_rates = pass_rates(sft_policy, tokenizer, new_rows, **SAMPLING)
choosing = process_time() - started  # CPU seconds
old_rates = pass_rates(sft_policy, tokenizer, sft_rows, **SAMPLING)
print(f"{'prompts':12}mean   never  always   all")
for name, found in {"new": new_rates, "SFT rows": old_rates}.items():
    never, always, every = found.count(0), found.count(1), len(found)
    print(f"{name:10}{sum(found) / every:6.2f}{never:8}{always:8}{every:6}")
grpo_rows = drop_tied(new_rows, new_rates)
print(f"kept: {len(grpo_rows)} of {len(new_rows)} new prompts")

# %% [markdown]
# In eight attempts, the SFT model never solves {{new_rates.count(0)}} of the {{len(new_rows)}} new prompts and always
# solves {{new_rates.count(1)}}. Their groups would often be tied. `drop_tied` keeps the other {{len(grpo_rows)}}.
#
# The mean pass rate is {{sum(old_rates) / len(old_rates):.2f}} on the SFT rows and
# {{sum(new_rates) / len(new_rates):.2f}} on the new prompts, because the model has memorized part of its examples. So
# never evaluate on SFT rows. GRPO could use the {{sum(0 < rate < 1 for rate in old_rates)}} SFT rows that are neither
# never nor always solved, but it has less to learn there.
#
# One team [kept](https://github.com/HumanMLLM/HumanOmniV2/issues/11) prompts with pass rates above 0 and up to 0.75.
#
# **Prefer new prompts that the SFT model sometimes solves.**

# %% [markdown]
# ## 8. Continue with GRPO
#
# Load the SFT adapter again, and train on the chosen prompts with `beta=0`, TRL's default.

# %%
policy = saved_policy(True)
started = process_time()
log = train_grpo(policy, grpo_rows, run.steps)
grpo_seconds = process_time() - started
policy.save_pretrained(run.folder / "grpo")
after_grpo = evaluate(policy, tokenizer, test_rows, **DECODING)

# %%
from grpo_utils import compare, show_run_curves

curves = {"GRPO alone": alone, "GRPO after SFT": log}
show_run_curves(curves, ["reward", "frac_reward_zero_std"])
reward = logged(log, "reward")
first, last = sum(reward[:5]) / 5, sum(reward[-5:]) / 5
print(f"mean reward: {first:.2f} in the first 5 steps, {last:.2f} in the last")
gained = compare(after_sft, after_grpo)
print(gained)

# %% [markdown]
# After SFT, the mean reward of five steps rises from {{first:.2f}} to {{last:.2f}} (left). Tied groups become more
# frequent (right), because the policy now solves many prompts every time. Both curves jump, because a step has only
# eight groups.
#
# On the test prompts, strict accuracy rose from {{after_sft.accuracy.value:.3f}} to {{after_grpo.accuracy.value:.3f}}, a
# change of {{gained.difference.signed()}}. Nearly all of the gain comes from correctness, because SFT had taught the
# format.
#
# If accuracy falls ([report](https://github.com/zwhong714/PSFT/issues/19)), ask first whether the interval contains 0.
# Then look for tied groups.
#
# **SFT makes correct answers possible, and GRPO makes them more frequent.**

# %% [markdown]
# ## 9. Compare with SFT alone
#
# A longer SFT run might have done the same. To compare, fix a *budget*. Ours is the number of sequences that the
# trainer computes gradients for, 64 per GRPO step. So SFT continues from the same adapter with as many steps of 64
# rows, and with the learning rate and schedule of the GRPO run. It repeats the 100 worked answers.

# %%
more = saved_policy(True)
more_sft = new_sft(
    more,
    max_steps=run.steps,
    per_device_train_batch_size=64,
    dataloader_drop_last=True,  # every batch has 64 rows
    learning_rate=GRPO["learning_rate"],  # falls to 0, as in GRPO
)
started = process_time()
more_sft.train()
sft_seconds = process_time() - started
after_more = evaluate(more, tokenizer, test_rows, **DECODING)
print(f"samples, GRPO: {64 * run.steps}")
print(f"samples, to choose its prompts: {8 * len(new_rows)}")
print(f"CPU seconds, GRPO: {grpo_seconds:.0f}")
print(f"CPU seconds, to choose its prompts: {choosing:.0f}")
print(f"CPU seconds, SFT: {sft_seconds:.0f}")
against = compare(after_more, after_grpo)
print(against)

# %% [markdown]
# SFT alone (`before` in the table) reaches {{after_more.accuracy.value:.3f}}, and SFT with GRPO
# {{after_grpo.accuracy.value:.3f}}. The difference is {{against.difference.signed()}}. GRPO took
# {{grpo_seconds:.0f}} CPU seconds and SFT {{sft_seconds:.0f}}, because GRPO also has to generate its sequences. Before
# that, choosing the prompts took {{choosing:.0f}} seconds and as many samples as the whole GRPO run.
#
# One seed cannot decide. With five seeds, a constant learning rate and 16 GRPO steps
# ([table](../docs/results.md#sft-then-grpo-or-more-sft)), GRPO reaches 0.596 and more SFT 0.703 with as many sequences.
# The difference is -0.107 (95% interval -0.186 to -0.028), and GRPO takes more than twice the time. So with 100 correct
# worked answers, and at the only learning rate that we tried, more SFT is the better choice.
#
# If 30 of the 100 worked answers are wrong, the means change sides: 0.501 with GRPO and 0.398 with more SFT. The reward
# knows the gold answers, and the worked answers repeat their mistakes. But five seeds do not settle it: the
# difference is +0.103 (-0.000 to +0.206). With 20 correct worked answers, no difference is shown either (-0.016, -0.136
# to +0.104).
#
# **Compare GRPO with more SFT on the same budget.**

# %% [markdown]
# ## 10. Merge the right adapter
#
# The `grpo` adapter continued `sft`, so it contains both stages. Merge it alone, once, into the original base. The next
# cell checks that and two common mistakes.


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
reached = {}
with torch.inference_mode():
    wanted = policy.eval()(**batch).logits
    for names in (("grpo",), ("sft", "grpo"), ("sft",)):
        model = merged(*names)
        difference = (model(**batch).logits - wanted).abs().max().item()
        accuracy = evaluate(model, tokenizer, test_rows, **DECODING).accuracy
        reached["+".join(names)] = accuracy
        print(f"{'+'.join(names):9} logits {difference:7.1e}  {accuracy}")

# %% [markdown]
# The correct merge reaches {{reached["grpo"].value:.2f}}, as the policy does. Its logits differ only by rounding. Merging
# both adds the SFT part twice and gives {{reached["sft+grpo"].value:.2f}}. The SFT adapter alone gives
# {{reached["sft"].value:.2f}}, because the GRPO stage is missing.
#
# | how you trained ([asked here](https://github.com/modelscope/ms-swift/issues/7377)) | merge into the original base |
# |---|---|
# | GRPO continued the SFT adapter | the GRPO adapter alone |
# | SFT was merged first, GRPO trained a new adapter | the SFT adapter, then the GRPO adapter |
#
# **Compare the merged model's logits with the policy's before you release it.**

# %% [markdown]
# ## 11. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward 0, all groups tied | Is the base model's pass rate 0? | run SFT first; `sft.py` in the template basic_grpo does |
# | answers that never end | Is the end-of-turn token among the labels? | use the chat template, raise `max_length` |
# | no change after GRPO | Is the largest change of a weight 0? | load with `is_trainable=True` |
# | KL above 0 at step 1 | Which model is the reference? | continue the SFT adapter, or merge SFT first |
# | many tied groups after SFT | Which prompts are solved always, or never? | call `drop_tied`, add new prompts |
# | result below the SFT model | Does `compare` show a change? | lower the learning rate, or take an earlier [checkpoint](../docs/choosing-a-checkpoint.md) |
# | worse after the merge | Do the logits equal the policy's? | merge the last adapter once |
#
# **If the pass rate is 0, run SFT first. Then compare more SFT with GRPO on new prompts, at the same cost.**

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
HINTS = [("GRPO", "How many of these groups are tied?")]
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
