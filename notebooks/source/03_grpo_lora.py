# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# {{badges}}
#
# **You will be able to** take a language model that often gets a task wrong and ignores the form you
# want, train it with GRPO and a verifiable reward, show fairly whether it got better, and
# save a model that plain `transformers` loads.
#
# GRPO, *group relative policy optimization*, samples several completions (answers) for each
# prompt, scores each, and makes the better ones of every group likelier. The scores come from a
# *verifiable reward*: a few lines of Python that check an answer, here against the known
# result (the *gold answer*). What is trained is a *LoRA adapter*: small extra matrices beside a
# frozen model, which section 5 loads.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | 50 to 120 minutes ([estimated](../docs/t4.md), never run); first try `STEPS=20` and `EVAL_ROWS=40`: 15 to 35 |
# | memory | 1.6 GB ([measured](../docs/results.md)) | 3 to 8 GiB on the card ([estimated](../docs/t4.md), never run) |
# | model | 0.46 million parameters, ships with the course | Qwen2.5-1.5B-Instruct, or Gemma 3 1B |
# | task | two-digit additions | GSM8K, school word problems |
#
# The bars below may come from a busier machine.
#
# **While it trains**, read section 8: it tells what the moving numbers mean.
#
# 1. Settings and machine
# 2. The data
# 3. The rewards, tried before training
# 4. Every training argument
# 5. The policy: a 4-bit base and an adapter
# 6. Before
# 7. Training
# 8. Reading the log
# 9. After
# 10. A model that stands alone
# 11. What this run proves, and what not
# 12. Exercises

# %% [markdown]
# ## 1. Settings and machine
#
# On Colab and Kaggle, the next cell installs the course and the packages that are missing there (a few
# minutes; never run there so far). A new session needs no restart. If pip reports conflicts with packages
# such as omegaconf, go on: the lessons do not use them. On Kaggle, turn on *Internet* in the settings first.
# Anywhere else the cell does nothing.

# %%
# {{install unsloth}}

# %% [markdown]
# These are the only settings. Change them here, or from a terminal:
# `make run ARGS="-p FAMILY gemma"`.

# %% tags=["parameters"]
PROFILE: str = "auto"  # auto, cpu, t4, l4, a100 or h100
FAMILY: str = "qwen"  # qwen or gemma
MODEL: str = ""  # any hub id or local folder; empty: the profile's own
BACKEND: str = "unsloth"  # unsloth, or transformers (with PEFT)
BASE_BITS: int = 0  # 4 or 16 for the frozen base; 0: the profile's own
STEPS: int = 0  # optimizer steps; 0: the profile's own number
SEED: int = 0  # everything random follows from it
EVAL_ROWS: int = 0  # held-out prompts; 0: the profile's own number
REPORT_TO: str = "none"  # none, trackio, tensorboard or wandb
OUTPUT_DIR: str = "outputs/run"  # adapter, merged model and report

# %% [markdown]
# A *profile* holds the sizes that fit one class of machine. It is found before anything
# heavy is imported, because threads and device have to be set first.

# %%
from grpo_utils import (
    BACKENDS,
    check_choice,
    check_count,
    check_model,
    check_report_to,
    choose_model,
    find_profile,
    fit_model,
    prepare_machine,
)

profile, reason = find_profile(PROFILE)
base_name = choose_model(profile, FAMILY, MODEL)
profile, warning = fit_model(profile, base_name)
print(f"Profile {profile.name}: {reason}.")
print(f"Why: {profile.why}.")
print(f"Model: {base_name}", warning, sep="\n" if warning else "")

# %% [markdown]
# The other settings are checked now, and the model is looked up before anything of it is
# downloaded: a slip should cost a second, not an hour.

# %%
check_choice("BACKEND", BACKEND, BACKENDS)
check_choice("BASE_BITS", BASE_BITS, (0, 4, 16))
check_count("STEPS", STEPS)
check_count("EVAL_ROWS", EVAL_ROWS)
check_report_to(REPORT_TO)
prepare_machine(profile, offline=not MODEL)
check_model(base_name)
load_in_4bit = BASE_BITS == 4 if BASE_BITS else profile.load_in_4bit
steps = STEPS or profile.steps
print(f"{steps} steps, base in 4 bits: {load_in_4bit}, backend {BACKEND}")

# %% [markdown]
# Is what is installed what this lesson was tested with? Then the libraries. Unsloth comes
# first: on a GPU it replaces parts of transformers and TRL by faster ones, and can do so only
# before they are loaded.

# %% tags=["gpu-path"]
from grpo_utils import check_gpu, check_versions

print(check_versions(BACKEND))
if BACKEND == "unsloth":
    from unsloth import FastLanguageModel
from trl import GRPOConfig, GRPOTrainer

print("Device:", check_gpu(profile))

# %% [markdown]
# On a CPU Unsloth prints what it supports officially, which is less than what works: GRPO runs
# there through TRL's own trainer, as you will see. It also names bfloat16, which this lesson
# does not use on a CPU: everything is loaded in fp32 below, on one thread, because two are
# slower for matrices this small.

# %% [markdown]
# ## 2. The data
#
# A GRPO row needs two things: a `prompt`, as chat messages, and whatever the reward needs to
# check a completion, here the gold `answer`. There is **no worked solution** in it: the model
# writes its own attempts, and is told only how good each was.

# %% tags=["gpu-path"]
from grpo_utils import load_rows

eval_rows = EVAL_ROWS or profile.eval_rows
train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
test_rows = load_rows(profile.dataset, "test", eval_rows, SEED)

print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
for message in train_rows[0]["prompt"]:
    print(f"{message['role']:>6}: {message['content']}")
print(f"answer: {train_rows[0]['answer']}")

# %% [markdown]
# The system prompt asks for a form: reasoning in one pair of tags, the answer in another. No
# held-out question may be trained on, or the "after" would measure memory. We check that
# rather than believe it. For the additions, 15 + 27 and 27 + 15 count as one question.

# %% tags=["nbval-check-output"]
import re


def words(row: dict) -> frozenset:
    return frozenset(re.findall(r"\w+", row["prompt"][-1]["content"]))


seen = {words(row) for row in train_rows}
leaked = sum(words(row) in seen for row in test_rows)
print("held-out questions in the training set:", leaked)

# %% [markdown]
# ## 3. The rewards, tried before training
#
# A reward function takes a list of completions and gives back one number for each. Three
# work together here:
#
# - `correctness_reward`: 1.0 if the one `<answer>` equals the gold answer;
# - `strict_format_reward`: 1.0 for exactly the asked form;
# - `incremental_format_reward`: 0.25 for each tag in its place, so that half a form earns
#   more than none and there is a slope to climb.
#
# TRL multiplies each by its weight and adds.

# %% tags=["nbval-check-output", "gpu-path"]
from grpo_utils import math_rewards

rewards, weights = math_rewards()
for function, weight in zip(rewards, weights):
    print(f"{weight} x {function.__name__}")

# %% [markdown]
# Many GRPO runs fail here, before the first step: with a reward that is zero for
# everything, or that pays a wrong answer. So they are first tried on completions written by
# hand. ([Lesson 02](02_rewards.ipynb) attacks them in earnest.)

# %% tags=["nbval-check-output"]
HAND_WRITTEN = {
    "right, in form": "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "wrong, in form": "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "right, no tags": "15 + 27 is 42.",
    "right, unclosed": "<reasoning>15 + 27 = 42 <answer>42",
    "two answers": "<answer>41</answer><answer>42</answer>",
    "tags repeated": "<answer><answer><answer>42</answer></answer></answer>",
    "nothing": "",
}

texts = list(HAND_WRITTEN.values())
golds = ["42"] * len(texts)
scores = [
    [weight * score for score in reward(texts, answer=golds)]
    for reward, weight in zip(rewards, weights)
]
print(f"{'weighted':16}{'correct':>9}{'strict':>9}{'tags':>9}{'sum':>9}")
for name, row in zip(HAND_WRITTEN, zip(*scores), strict=True):
    print(
        f"{name:16}" + "".join(f"{score:9.3f}" for score in (*row, sum(row)))
    )

# %% [markdown]
# Read the last column. The right answer in the right form earns 3.0 and nothing else comes
# near; a wrong answer in perfect form earns 1.0; repeating tags or answering twice earns
# nothing. The form is worth something, but never as much as being right.
#
# The log should also show the arithmetic apart from the form. For this we add one function with weight 0: it
# pays nothing and changes nothing. It returns `None` for a completion that is not in form. TRL leaves `None` out of
# the mean that it logs, so that mean is the share of right answers among those in form.

# %% tags=["gpu-path"]
from grpo_utils import completion_text, is_strictly_right, split_form


def right_if_in_form(completions, answer, **kwargs) -> list[float | None]:
    texts = [completion_text(completion) for completion in completions]
    return [
        float(is_strictly_right(text, gold)) if split_form(text) else None
        for text, gold in zip(texts, answer)
    ]


rewards = [*rewards, right_if_in_form]
weights = [*weights, 0.0]

# %% [markdown]
# ## 4. Every training argument
#
# First a folder for this run. If there is an earlier run in it, that one is renamed, never
# overwritten.

# %%
from grpo_utils import start_run

run_folder, said = start_run(OUTPUT_DIR, MODEL)
print(said)

# %% [markdown]
# Unsloth on a GPU changes two dozen of TRL's defaults, and drops a misspelled name with no
# more than a warning. So every value that it would change is written out, and an unknown name
# is an error, before any model is loaded.

# %% tags=["gpu-path"]
from grpo_utils import training_arguments

arguments = training_arguments(
    profile,
    output_dir=str(run_folder / "checkpoints"),
    max_steps=steps,
    reward_weights=weights,
    seed=SEED,
    report_to=REPORT_TO,
)
for name, value in arguments.items():
    print(f"{name:38} {value}")

# %% [markdown]
# Four to know first (the rest are the defaults of TRL or the sizes of the profile):
#
# - `num_generations`: the size of a *group*, the completions sampled for one prompt;
# - `per_device_train_batch_size`: counts **completions**, not prompts, and with
#   `gradient_accumulation_steps` must hold whole groups;
# - `beta` 0.0: nothing pulls the policy back to the model it started from (a positive `beta`
#   would add that pull, the KL divergence from a frozen *reference model*, to the loss);
# - `learning_rate`: an adapter takes ten times and more what full fine-tuning would.

# %% tags=["gpu-path"]
config = GRPOConfig(**arguments)
completions = profile.completions_per_step
group = config.num_generations
print(f"{completions} completions a step, in groups of {group}")

# %% [markdown]
# TRL never cuts a prompt that is too long, so such rows are dropped now. To count its tokens takes
# the tokenizer alone.

# %% tags=["gpu-path"]
from transformers import AutoTokenizer

from grpo_utils import drop_long_prompts, model_path

longest = profile.max_prompt_length
counting = AutoTokenizer.from_pretrained(model_path(base_name))
kept = drop_long_prompts(train_rows, counting, longest)
print(f"{len(kept)} of {len(train_rows)} have at most {longest} tokens")
train_rows = kept

# %% [markdown]
# And before any weights are loaded, the *preflight*: it holds arguments, tokenizer, rows, rewards and
# machine against each other, and estimates memory and minutes. An error stops the notebook here,
# after seconds, and not after an hour. ([What it checks](../docs/preflight.md).)

# %%
from grpo_check import preflight

checked = preflight(
    arguments,
    model=base_name,
    tokenizer=counting,
    train=train_rows,
    heldout=test_rows,
    rewards=rewards,
    profile=profile,
    load_in_4bit=load_in_4bit,
    backend=BACKEND,
)
print(checked)
checked.stop_on_errors()

# %% [markdown]
# Read `ok` first. The memory is that of model and training alone; Python and its libraries take about
# one gigabyte more. The minutes are those of the training.

# %% [markdown]
# ## 5. The policy: a 4-bit base and an adapter
#
# The model that is trained is called the *policy*. Its base is loaded in 4 bits and frozen
# (a quarter of the memory of 16 bits); beside it comes a small trainable *LoRA adapter* in
# every projection. Together this is called QLoRA.
#
# `BACKEND="transformers"` does the same with plain transformers, PEFT and bitsandbytes, in
# `grpo_utils.models`. The default is Unsloth, whose API you see here.

# %% tags=["gpu-path"]
from grpo_utils import (
    LORA_TARGETS,
    gradient_checkpointing,
    load_policy,
    torch_dtype,
)

if BACKEND == "unsloth":
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=model_path(base_name),
        max_seq_length=profile.max_seq_length,
        dtype=torch_dtype(profile),
        load_in_4bit=load_in_4bit,
        use_gradient_checkpointing=gradient_checkpointing(profile),
    )
    policy.generation_config.max_length = None  # max_new_tokens is the limit

# %% [markdown]
# `from_pretrained` gave the frozen base; `get_peft_model` adds the adapter. `r` is its rank:
# each of the adapted matrices learns a correction of that rank, scaled by `lora_alpha / r`.

# %% tags=["gpu-path"]
if BACKEND == "unsloth":
    policy = FastLanguageModel.get_peft_model(
        policy,
        r=profile.lora_rank,
        lora_alpha=profile.lora_alpha,
        lora_dropout=0.0,
        target_modules=list(LORA_TARGETS),
        use_gradient_checkpointing=gradient_checkpointing(profile),
        random_state=SEED,
    )
else:
    policy, tokenizer = load_policy(
        base_name,
        profile=profile,
        backend=BACKEND,
        load_in_4bit=load_in_4bit,
        seed=SEED,
    )
policy.print_trainable_parameters()

# %% [markdown]
# ## 6. Before
#
# Every held-out prompt is answered twice: *sampled* at temperature 1, as during training,
# and *greedily*, always taking the likeliest token. "Strict" means form and answer both right.

# %%
from grpo_utils import evaluate

judging = dict(
    max_new_tokens=profile.max_completion_length,
    batch_size=profile.eval_batch_size,
    temperature=1.0,
    seed=SEED,
)
before = evaluate(policy, tokenizer, test_rows, **judging)

for question, said, gold in zip(
    test_rows["prompt"][:4], before.sampled, test_rows["answer"]
):
    print(question[-1]["content"][-60:])
    print(f"  says: {said[:100]!r}\n  gold: {gold}")

# %%
rates = before.summary()
print(f"in form, sampled:           {rates['format_rate']:.3f}")
print(f"in form and right, sampled: {rates['accuracy']:.3f}")
print(f"in form and right, greedy:  {rates['greedy_accuracy']:.3f}")

# %% [markdown]
# On the CPU profile the base model rarely writes the whole form; the rest are plain sentences and incomplete tags. It
# also forgets the carry in most sums that have one (15 + 27 = 32). So its strict accuracy is low when sampled and
# zero, or close to it, when greedy.
#
# But now and then it adds digit by digit (`5+7=12, 1+2+1=4`), and then it is right. That is what GRPO needs: it makes
# likely what the model could already do sometimes; it does not teach what was never sampled.

# %% [markdown]
# ## 7. Training
#
# Each step: sample a group of completions for each of a few prompts, score them, compare
# each with the mean of **its own group**, and make what was better than its group likelier. How
# much better, measured in standard deviations of the group, is a completion's *advantage*. A
# group whose completions all score the same is *tied*: its advantages are zero and it teaches
# nothing.

# %% tags=["gpu-path"]
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=rewards,
)

# %% [markdown]
# TRL's own trainer casts the adapter of every 4-bit base to bf16. (Unsloth's trainer, which replaces it on a GPU, does
# not.) At an adapter's learning rate bf16 rounds small updates away, so we cast it back to fp32.

# %% tags=["gpu-path"]
from grpo_utils import keep_trainable_fp32

print(keep_trainable_fp32(policy), "adapter matrices in fp32")

# %% [markdown]
# A *callback* is called at every step. This one reads the log as it grows, says once what is wrong, stops a
# run that is lost, and every 50 steps keeps what the policy says to a few held-out prompts, in
# `checkpoints/health/samples.txt`. ([Lesson 04](04_reading_a_run.ipynb) breaks runs to see it work.)

# %%
import time

from grpo_check import HealthCallback
from grpo_utils import save_adapter, show_progress

show_progress(trainer)
trainer.add_callback(HealthCallback(test_rows, every=50))
started = time.perf_counter()
result = trainer.train()
train_seconds = time.perf_counter() - started
adapter = save_adapter(policy, tokenizer, run_folder / "adapter", base_name)
print("saved:", adapter)

# %% [markdown]
# (The verdict of the health check takes the mean of a few steps at either end; the bar shows the last step alone.)
#
# The adapter is saved at once: whatever happens next, it is there. (`save_adapter` is PEFT's `save_pretrained`; it also
# names the base as others know it, where PEFT would write the path it was loaded from.) Now the curve.

# %%
from grpo_utils import form_and_answers, logged, show

history = trainer.state.log_history
in_form = logged(history, "rewards/strict_format_reward/mean")
right = logged(history, "rewards/right_if_in_form/mean")
length = logged(history, "completions/mean_length")
show(
    form_and_answers(in_form, right, length),
    alt=f"Three lines over {len(in_form)} steps. The share in form goes from "
    f"{in_form[0]:.2f} to {in_form[-1]:.2f}; the share of right answers "
    f"among those in form goes from {right[0]:.2f} to {right[-1]:.2f}; "
    f"the mean length goes from {length[0]:.0f} to {length[-1]:.0f} tokens.",
)

# %% [markdown]
# **Form first, arithmetic second.** On the CPU profile most completions are in form within fifteen steps, because the
# form is the same for every question. The share of right answers among those in form rises later. The lower panel
# shows how: the answers grow, first by their tags, and then because the policy adds digit by digit. That is longer and is
# rewarded more often. Thinking in steps pays, and the policy found that by itself.

# %% [markdown]
# ## 8. Reading the log
#
# TRL logs some thirty numbers a step. Four of them tell most of the story.

# %%
TELLING = "loss reward frac_reward_zero_std completions/mean_length"
print(f"{'':24}{'first':>9}{'last':>9}{'largest':>9}")
for key in TELLING.split():
    values = logged(history, key)
    first, last = values[0], values[-1]
    print(f"{key:24}{first:9.3f}{last:9.3f}{max(values):9.3f}")

# %% [markdown]
# - **`loss` tells nothing about progress.** Advantages are centred in each group, so the loss
#   starts near zero and stays near zero while the policy learns; with the default `dapo`, which
#   weighs by token, it is small noise of either sign. It is *not* the KL divergence:
#   with `beta=0` none is computed.
# - **`reward`** is the weighted sum of all rewards, averaged over the batch. This is the number
#   to watch; its largest possible value here is 3.0, of which correctness (`correct` in the
#   bar, before its weight) brings 2.0.
# - **`frac_reward_zero_std`** (`tied` in the bar) is the share of groups whose completions all scored the same.
#   They give no gradient. It rises when the task is solved (all right) and also when it is
#   hopeless (all wrong): look at `reward` to know which. On the CPU profile its last step is near
#   1 with `reward` near 3.0, so: solved.
# - **`completions/mean_length`** counts tokens. Lengths that hit `max_completion_length` (see
#   `completions/clipped_ratio`) mean answers cut off before they are given.

# %% [markdown]
# ## 9. After
#
# The same prompts, the same template, the same decoding as before, first as samples side by
# side.

# %%
after = evaluate(policy, tokenizer, test_rows, **judging)

for index in range(4):
    print(
        test_rows["prompt"][index][-1]["content"][-60:],
        "  gold:",
        test_rows["answer"][index],
    )
    print(f"  before: {before.sampled[index][:100]!r}")
    print(f"  after:  {after.sampled[index][:100]!r}")

# %% [markdown]
# Four samples prove nothing; all held-out prompts together do. Beside the accuracy stands a
# 95 % Wilson interval: the true rate lies within in 95 of 100 such experiments. The p-value is
# of an exact McNemar test, which compares each prompt with itself: how often chance alone would
# change that many answers that one-sidedly. Near 1 means no change shown, below 0.05 some.

# %%
from grpo_utils import before_after, mcnemar_p_value

p_value = mcnemar_p_value(before.right, after.right)
print(before_after(before.summary(), after.summary(), p_value))

# %% [markdown]
# How much of that is form and how much is ability? The second table leaves the form aside: it counts only
# the answers in form (n) and gives the share of them that is right. With additions, two more columns give the
# share for sums whose units carry into the tens (15 + 27) and for sums whose units do not (15 + 22).
#
# On the CPU profile both rose. Sums without a carry were right before. Of the sums with a carry about half were right
# before, and nearly all are now. Nobody told the model to add digit by digit: it did so sometimes, and those answers were rewarded.
# The row "before" counts few answers, so its intervals are wide.
#
# The report is written now, every figure, version and setting of this run. What the merged
# model does is added to it below.

# %%
from dataclasses import asdict

from grpo_utils import SYSTEM_PROMPT, lora_arguments, reward_settings

settings = {
    "system_prompt": SYSTEM_PROMPT,
    "machine": reason,
    "profile": asdict(profile),
    "train_rows": len(train_rows),
    "rewards": reward_settings(rewards, weights),
    "lora": {**lora_arguments(profile), "random_state": SEED},
    "evaluation": judging,
    "training_arguments": config.to_dict(),
}

# %%
from grpo_utils import processor_seconds, seconds_since_start


def seconds() -> dict:
    """Since the kernel started: on the clock, and of processor time."""
    return {
        "wall_seconds": seconds_since_start(),
        "processor_seconds": processor_seconds(),
    }


# %%
from grpo_utils import versions, write_report

report = {
    "profile": profile.name,
    "family": FAMILY,
    "model": base_name,
    "backend": BACKEND,
    "load_in_4bit": load_in_4bit,
    "steps": trainer.state.global_step,
    "seed": SEED,
    "before": before.summary(),
    "after": after.summary(),
    "p_value": p_value,
    "train_seconds": train_seconds,
    **seconds(),
    "versions": versions(),
    "config": settings,
}
print("written:", write_report(run_folder, report))

# %% [markdown]
# ## 10. A model that stands alone
#
# The adapter goes into the **unquantized** base, in fp32, and the *logits* (the scores of all
# tokens that could come next) before and after are compared: they should differ by rounding alone. This happens in a fresh
# Python process, since Unsloth on a GPU has replaced parts of transformers in this one.

# %%
from grpo_utils import export_merged

merge_difference, merged = export_merged(
    run_folder / "adapter",
    base_name,
    run_folder / "merged",
    profile,
    test_rows,
    judging,
)
print(f"largest difference of a logit: {merge_difference:.1e}")

# %% [markdown]
# The merge is exact, and still it is not the policy we trained: that one had its base in 4
# bits. So the merged model was answered for on its own, as saved, on the same held-out prompts.

# %%
print(
    before_after(before.summary(), after.summary(), p_value, merged.summary())
)

# %% [markdown]
# And into the report, which is now complete.

# %%
report |= {
    "merged": merged.summary(),
    "merge_difference": merge_difference,
    **seconds(),
}
print("written:", write_report(run_folder, report))

# %% [markdown]
# Last, what a user of your model does: plain `pipeline` on the saved folder, in a Python of its
# own, without Unsloth, PEFT or this course. (`pipeline` warns of defaults of its own; it is
# asked not to.)

# %%
ASK = """
import sys
import transformers

transformers.logging.set_verbosity_error()
folder, system, question = sys.argv[1:]
chat = transformers.pipeline("text-generation", model=folder)
messages = [
    {"role": "system", "content": system},
    {"role": "user", "content": question},
]
said = chat(messages, max_new_tokens=256, do_sample=False)
print(said[0]["generated_text"][-1]["content"])
"""

# %%
import subprocess
import sys

question = "What is 15 + 27?"
folder = str(run_folder / "merged")
answer = subprocess.run(
    [sys.executable, "-c", ASK, folder, SYSTEM_PROMPT, question],
    capture_output=True,
    text=True,
    check=True,
)
print(answer.stdout.strip())

# %% [markdown]
# ## 11. What this run proves, and what not
#
# **On a CPU** these are the real parts: Unsloth's loader, bitsandbytes' 4-bit layers, PEFT's
# adapter, TRL's trainer, the rewards, the evaluation and the merge. The model truly learns,
# from samples of its own.
#
# What a CPU cannot show: Unsloth's CUDA kernels and its own GPU trainer (on a CPU it hands
# over to the stock libraries), fp16 and bf16, vLLM, the memory of a real model. And a tiny
# model on two-digit additions says nothing about how far GSM8K accuracy moves on a GPU. The
# GPU profiles run this same code, and say `never run` until someone has run them. The course's tests do run
# Unsloth's GPU trainer on CPU tensors, where in fp32 it gives the same figures as TRL's
# ([what that covers](../docs/compatibility.md#what-simulated-covers)).

# %% [markdown]
# ## 12. Exercises
#
# ### Exercise 1: advantages by hand
#
# GRPO compares each completion with its own group: subtract the group's mean reward, divide
# by its standard deviation (with `ddof=1`, plus 0.0001). Write `advantages(rewards)` for one
# group. What do you get for a group that all scored 3.0?


# %%
def advantages(rewards: list[float]) -> list[float]:
    """Your answer: one advantage for each reward of the group."""
    return []


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

GROUPS = [
    (([3.0, 1.0, 1.0, 3.0],), [0.87, -0.87, -0.87, 0.87]),
    (([3.0, 3.0, 3.0, 3.0],), [0.0, 0.0, 0.0, 0.0]),
]
print(check_exercise("Exercise 1", advantages, GROUPS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. A tied group gives zeros: no completion is better than another, so
# there is nothing to learn. That is what `frac_reward_zero_std` counts.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
import statistics


def advantages_solution(rewards: list[float]) -> list[float]:
    mean, spread = statistics.mean(rewards), statistics.stdev(rewards)
    return [(reward - mean) / (spread + 1e-4) for reward in rewards]


print(check_exercise("Exercise 1, solution", advantages_solution, GROUPS))

# %% [markdown]
# ### Exercise 2: a brevity reward
#
# Write `brevity_reward(completions, **kwargs)`: 0.25 for a completion of at most 60
# characters, else 0.0. It must take strings as well as chat messages, and an empty completion
# earns nothing. (`completion_text` gives the text of either.)


# %%
def brevity_reward(completions, **kwargs) -> list[float]:
    """Your answer: one score for each completion."""
    return []


# %% tags=["nbval-check-output"]
LENGTHS = [
    ((["short", "x" * 60, "x" * 61, ""],), [0.25, 0.25, 0.0, 0.0]),
    (([[{"role": "assistant", "content": "x" * 60}]],), [0.25]),
    (([[{"role": "assistant", "content": "x" * 61}]],), [0.0]),
]
print(check_exercise("Exercise 2", brevity_reward, LENGTHS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. Would you train with it? It also pays short wrong answers, and a
# policy that finds this out stops reasoning: reward the length only where the answer is right.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def brevity_solution(completions, **kwargs) -> list[float]:
    lengths = [len(completion_text(completion)) for completion in completions]
    return [0.25 if 0 < length <= 60 else 0.0 for length in lengths]


print(check_exercise("Exercise 2, solution", brevity_solution, LENGTHS))

# %% [markdown]
# ## What to take along
#
# - Try the rewards by hand before training; a wrong answer must never earn what a right one does.
# - Compare on held-out prompts, sampled and greedy, with an interval; tell form from ability.
# - The merged model is another model than the 4-bit policy: evaluate it too.
#
# Next: [lesson 04](04_reading_a_run.ipynb) breaks eight runs, so that you know a good one. To read:
#
# - Shao et al. 2024, *DeepSeekMath* (arXiv 2402.03300), where GRPO comes from.
# - Yu et al. 2025, *DAPO* (arXiv 2503.14476), the loss used here.
# - Dettmers et al. 2023, *QLoRA* (arXiv 2305.14314), 4-bit bases with adapters.
# - TRL's GRPO page and Unsloth's documentation, for every argument.
