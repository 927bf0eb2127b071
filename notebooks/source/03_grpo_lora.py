# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# Before training, {{sum(before.formed)}} of {{before.n}} answers have the required format, and {{sum(before.right)}} of
# those are correct. After 60 steps, {{sum(after.formed)}} have it, and {{sum(after.right)}} of those are correct. Eight
# calls do this, and none of them shows the model a worked answer.
#
# **Guess first:** while the model improves, does the loss fall, rise or stay near 0? (The *loss* is the number that training
# minimizes.)
#
# You will be able to train a language model with GRPO, measure whether it improved, and save it for plain
# `transformers`.
#
# You need Python and the idea of [lesson 00](00_start.ipynb). On a free T4, this lesson trains Qwen2.5-1.5B in [40 to 50
# minutes, estimated](../docs/gpu.md); run the shorter [lesson 05](05_real_model.ipynb) first.
#
# Your time: 60–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.6 GB of memory.
#
# {{badges}}

# %% [markdown]
# ## Set up
#
# In Colab, choose *Runtime > Change runtime type > T4 GPU* before you run the first cell. Without a GPU, the lesson trains
# a tiny model on addition.
#
# <details><summary>On Colab and Kaggle</summary>
#
# {{steps}}
#
# The next cell installs the course in two to four minutes. Elsewhere, it does nothing. On Kaggle, first turn on *Internet*
# and choose *Accelerator > GPU T4 x2*. [On a GPU](../docs/gpu.md#a-free-t4-and-one-hour) explains how to keep a run,
# and how to resume one that was interrupted.
# </details>

# %% cellView="form" jupyter={"source_hidden": true}
# {{install unsloth}}

# %% [markdown]
# Change the lesson's settings here, or from a terminal: `make run ARGS="-p FAMILY gemma"`.

# %% tags=["parameters"]
PROFILE: str = "auto"  # auto, cpu, t4, l4, a100 or h100
FAMILY: str = "qwen"  # qwen or gemma
MODEL: str = ""  # hub id or local folder; empty: profile default
BACKEND: str = "unsloth"  # unsloth, or transformers (with PEFT)
BASE_BITS: int = 0  # 4, or 16 (faster on a T4); 0: profile default
STEPS: int = 0  # optimizer steps; 0: profile default
MINUTES: float = 30.0  # training ends before it takes longer; 0: no limit
ENABLE_THINKING: bool = False  # for models with this switch, such as Qwen3
SEED: int = 0  # seeds all randomness
EVAL_ROWS: int = 0  # held-out prompts; 0: profile default
REPORT_TO: str = "none"  # none, trackio, tensorboard or wandb
OUTPUT_DIR: str = "outputs/run"  # adapter, merged model and report
RESUME: bool = False  # continue the unfinished run in OUTPUT_DIR

# %% [markdown]
# `setup` picks a *profile*: a task and sizes that fit your machine. It also checks your settings and package versions, and
# creates a folder for this run.

# %%
from grpo_utils import setup

model = FAMILY, MODEL, BACKEND, BASE_BITS
sizes = STEPS, EVAL_ROWS, MINUTES
run = setup(PROFILE, *model, *sizes, REPORT_TO, OUTPUT_DIR, RESUME)
profile = run.profile  # run.path: the weights; run.model: their name

# %% [markdown]
# ## The method and its eight calls
#
# As in [lesson 00](00_start.ipynb), the *policy*, the model that you train, samples a *group* of *completions* for each prompt,
# and *reward functions* score them. The *advantage* of a completion is `(reward - mean) / (std + 0.0001)`, with the mean and the
# standard deviation of its own group; the 0.0001 avoids a division by zero. Completions with a positive advantage become more
# likely, and those with a negative one less likely. So GRPO reinforces what the model already does sometimes. Here are two groups:

# %%
from grpo_utils import diagram

diagram("advantages")

# %% [markdown]
# In the upper group, correct completions have positive advantages. The lower group is *tied*: all rewards are equal, so all
# advantages are 0. Such a group teaches nothing, whether all its answers are wrong or all are correct. A group that is not
# tied is *informative*.
#
# Eight calls do all of this. Sections 1 to 8 explain one each:
#
# | | call | what it does |
# |---|---|---|
# | 1 | `FastLanguageModel.from_pretrained` | loads the model in 4 bits |
# | 2 | `FastLanguageModel.get_peft_model` | adds the part that learns |
# | 3 | `load_rows` | returns prompts and correct answers |
# | 4 | `reward` | scores completions; you write it |
# | 5 | `GRPOConfig` | holds all settings |
# | 6 | `generate_samples` | shows whether there is anything to learn |
# | 7 | `GRPOTrainer` | trains |
# | 8 | `evaluate` | measures, before and after training |
#
# Import Unsloth before the other libraries: on a GPU, it replaces parts of `transformers` and TRL with faster ones.

# %% tags=["gpu-path"]
if BACKEND == "unsloth":
    from unsloth import FastLanguageModel
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# ## 1. Load the model
#
# `from_pretrained` returns the *base model* and its tokenizer. The tokenizer cuts text into *tokens*, which are words or
# parts of words. With `load_in_4bit=True`, the weights take about a quarter of the memory that they need in 16 bits.
# `dtype` is the number format for everything else: 32-bit numbers (*fp32*) on a CPU, 16-bit numbers on a GPU.

# %% tags=["gpu-path"]
dtype = getattr(torch, profile.dtype)
checkpointing = False if profile.name == "cpu" else "unsloth"
if BACKEND == "unsloth":
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=run.path,
        max_seq_length=profile.max_seq_length,  # prompt and completion
        load_in_4bit=profile.load_in_4bit,
        dtype=dtype,
        use_gradient_checkpointing=checkpointing,  # less memory, more time
    )
    policy.generation_config.max_length = None  # max_new_tokens is the limit

# %% [markdown]
# ## 2. Add a LoRA adapter
#
# A *LoRA adapter* adds two small matrices, A and B, to each large matrix W of the model. Only A and B learn:

# %%
diagram("lora")

# %% [markdown]
# `r`, the *rank*, is the number of rows of A. `lora_alpha` is the α that scales the product of the two small matrices.
# `target_modules` names the large matrices that get an adapter: here, all those in attention and in the layers between
# (*MLP*).

# %% tags=["gpu-path"]
from grpo_utils import load_policy

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]
if BACKEND == "unsloth":
    policy = FastLanguageModel.get_peft_model(
        policy,
        r=profile.lora_rank,
        lora_alpha=profile.lora_alpha,
        lora_dropout=0.0,
        target_modules=ATTENTION + MLP,
        use_gradient_checkpointing=checkpointing,
        random_state=SEED,
    )
else:  # the same two calls with transformers and PEFT
    how = dict(backend=BACKEND, load_in_4bit=profile.load_in_4bit, seed=SEED)
    policy, tokenizer = load_policy(run.model, profile=profile, **how)
policy.print_trainable_parameters()

# %% [markdown]
# `trainable params` counts the numbers in all matrices A and B. The share is larger than in the figure, because this model's
# matrices are small. The 4-bit base never changes.

# %% [markdown]
# ## 3. Load the dataset
#
# A GRPO row has a `prompt`, as chat messages, and whatever the rewards need: here `answer`, the correct result or *gold
# answer*. The policy writes its own solutions. *Held-out* rows are used only to evaluate.
#
# `TEMPLATE` sets options of the *chat template*, which turns messages into the text that the model reads. Qwen3, for
# example, thinks at length unless `enable_thinking` is false ([should it think?](../docs/gpu.md#thinking-on-or-off)). TRL does
# not shorten prompts, so `drop_long_prompts` removes rows with more tokens than the profile allows.

# %% tags=["gpu-path"]
from grpo_utils import drop_long_prompts, load_rows

TEMPLATE = {"enable_thinking": ENABLE_THINKING}  # read by Qwen3
longest = profile.max_prompt_length
train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
train_rows = drop_long_prompts(train_rows, tokenizer, longest, TEMPLATE)
test_rows = load_rows(profile.dataset, "test", profile.eval_rows, SEED)
print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
train_rows[0]

# %% [markdown]
# The system message asks for a *format*: reasoning in one pair of tags, the answer in another. The rewards need this format
# to find the answer. The model sees only the prompt, and only the rewards see the gold answer.
#
# `load_rows` returns a `Dataset` from the `datasets` library. [Lesson 01](01_dataset.ipynb) builds rows from your own data.

# %% [markdown]
# ## 4. Write the rewards
#
# A reward is a function. It takes a list of completions and, by name, the columns of the dataset. It returns one score
# per completion:
#
# ```python
# def reward(completions, answer, **kwargs):
#     texts = [completion[0]["content"] for completion in completions]
#     pairs = zip(texts, answer)
#     return [float(f"<answer>{gold}</answer>" in text) for text, gold in pairs]
# ```
#
# This reward pays 1 for the gold answer in its tags. It would also pay for a text that lists many answers. So this lesson
# uses three of the course's reward functions, which resist such tricks ([lesson 02](02_rewards.ipynb)). TRL multiplies each
# score by its function's weight and adds them up:
#
# | weight | reward | pays |
# |---|---|---|
# | 2.0 | `correctness_reward` | 1 if the text between the `<answer>` tags equals the gold answer |
# | 0.5 | `strict_format_reward` | 1 if the whole text has the format |
# | 0.5 | `incremental_format_reward` | 0.25 for each of the four tags that is in its place |

# %% tags=["gpu-path"]
from grpo_utils.rewards import (
    correctness_reward,
    incremental_format_reward,
    strict_format_reward,
)

rewards = [correctness_reward, strict_format_reward, incremental_format_reward]
weights = [2.0, 0.5, 0.5]

# %% [markdown]
# Test rewards on texts that you write by hand, before you train:

# %% tags=["nbval-check-output"]
from grpo_utils.rewards import weighted_sum

TEXTS = [
    "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "<reasoning>15 + 27 = 42 <answer>42",
    "<answer>41</answer><answer>42</answer>",
]
scores = [reward(TEXTS, answer=["42"] * 4) for reward in rewards]
print("correct  format  tags  total")
for *each, total, text in zip(*scores, weighted_sum(scores, weights), TEXTS):
    print("{:7.0f} {:7.0f} {:5.2f} {:6.2f}".format(*each, total), f"  {text}")

# %% [markdown]
# A correct answer in the correct format earns 2.0 + 0.5 + 0.5 = 3, and a wrong one 0.5 + 0.5 = 1. The third text closes no
# tag. Two of its four tags are in place, so `tags` is 2 × 0.25 = 0.5, and its weight makes it 0.5 × 0.5 = 0.25. The last text
# gives two answers and earns nothing.
#
# **In the same format, a correct answer must always earn more than a wrong one.**

# %% [markdown]
# ## 5. Choose the settings
#
# `GRPOConfig` holds all settings. `per_device_train_batch_size` counts completions, not prompts. The *learning rate* is
# how far one step moves the weights. A LoRA adapter needs a higher one than training all weights does, often ten times as
# high.

# %% tags=["gpu-path"]
from grpo_utils import other_arguments

config = GRPOConfig(
    # What one step samples
    num_generations=profile.num_generations,  # completions in a group
    per_device_train_batch_size=profile.per_device_train_batch_size,
    gradient_accumulation_steps=profile.gradient_accumulation_steps,
    max_completion_length=profile.max_completion_length,  # in tokens
    temperature=1.0,  # sample with the model's own probabilities
    chat_template_kwargs=TEMPLATE,
    # What it learns
    reward_weights=weights,
    learning_rate=profile.learning_rate,
    max_steps=profile.steps,
    beta=0.0,  # no penalty for moving away from the base model
    # This run
    output_dir=str(run.folder / "checkpoints"),
    seed=SEED,
    report_to=REPORT_TO,
    log_completions=True,  # every completion into a file in output_dir, to watch what the policy writes
    num_completions_to_print=0,
    **other_arguments(profile),
)
batch = config.per_device_train_batch_size
per_step = batch * config.gradient_accumulation_steps
print(f"{config.max_steps} steps, {per_step} completions in each step")
print(f"{per_step // config.num_generations} groups in each step")

# %% [markdown]
# `gradient_accumulation_steps` is the number of batches in a step. If memory is short, raise it and lower the batch size.
#
# `other_arguments` adds the rest, such as the optimizer and the number format. On a GPU, Unsloth changes many defaults. These
# arguments keep TRL's, so a run has the same settings with and without Unsloth. [Settings](../docs/settings.md) says which
# are worth changing.

# %% [markdown]
# ## 6. Look before you train
#
# A run can work only if some groups are informative. `generate_samples` samples a group of completions for each prompt.
# Use eight training prompts:

# %%
from grpo_utils import generate_samples

decoding = dict(
    max_new_tokens=config.max_completion_length,
    temperature=config.temperature,
    batch_size=profile.eval_batch_size,
    chat_template_kwargs=config.chat_template_kwargs,
    seed=SEED,
)
some, size = train_rows.select(range(8)), config.num_generations
groups = generate_samples(
    policy, tokenizer, some["prompt"], samples=size, **decoding
)

# %% [markdown]
# Score them, and count the groups whose rewards differ:

# %%
paid, correct = [], []
for texts, gold in zip(groups, some["answer"]):
    scores = [reward(texts, answer=[gold] * size) for reward in rewards]
    paid.append(weighted_sum(scores, weights))
    correct.append(scores[0])
informative = sum(max(group) > min(group) for group in paid)
mixed = sum(max(group) > min(group) for group in correct)
print(f"informative groups:                    {informative} of 8")
print(f"groups with correct and wrong answers: {mixed} of 8")

# %% [markdown]
# {{informative}} of 8 groups are informative. In {{mixed}} of them, some answers are correct and others are wrong, so these
# groups can teach which answers are correct. Groups that differ only in format cannot.
#
# The next cell shows the group with the most different rewards, as GRPO sees it. **Guess first:** does a wrong answer in the
# right format become more likely, or less?

# %%
place = max(range(8), key=lambda number: len(set(paid[number])))
scored = torch.tensor(paid[place])
advantages = (scored - scored.mean()) / (scored.std() + 1e-4)
print(
    some[place]["prompt"][-1]["content"][-60:], " gold:", some[place]["answer"]
)
for text, score, advantage in zip(groups[place], scored, advantages):
    print(f"reward {score:.2f}  advantage {advantage:+.2f}  {text[:60]}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# More likely, in this group. The wrong answer in the correct format earns 1, which is above the group's mean of
# {{scored.mean():.2f}}. So its advantage is positive: this group also teaches the format. The correct answer in the correct
# format earns 3 and gains much more. Once a group has enough correct answers, its mean is above 1, and wrong answers become
# less likely.
# </details>

# %% [markdown]
# If all groups tie, training changes nothing, however long it runs. Read the completions, and find the cause:
#
# | the completions are | do this |
# |---|---|
# | all wrong, and never in the format | give partial credit for what has to come first, or train on a few example answers before GRPO ([lesson 10](10_sft_then_grpo.ipynb)) |
# | all wrong, but in the format | use easier rows, or train on example answers first |
# | all correct | use harder rows |
# | all cut off before the answer | raise `max_completion_length` |
# | nearly the same text | set `temperature=1.0` |
#
# In your own project, [`pilot`](../grpo_check/docs/checks.md#pilot) samples groups and names the cause for you.
#
# **Start a run only if some groups are informative.**

# %% [markdown]
# Now evaluate the base model, to compare it with the trained one later. `evaluate` generates two answers to each held-out
# prompt. One is *sampled*, as in training; the other is *greedy*, which always takes the most likely token. *Strict
# accuracy* counts answers that are correct and correctly formatted.

# %%
from grpo_utils import evaluate

before = evaluate(policy, tokenizer, test_rows, **decoding)
print(f"format, sampled:          {before.format}")
print(f"strict accuracy, sampled: {before.accuracy}")
print(f"strict accuracy, greedy:  {before.greedy_accuracy}")
print(f"a greedy answer:          {before.greedy[1]}")

# %% [markdown]
# The parentheses contain a *95% interval*: {{before.n}} prompts measure a rate only roughly, and about 95 of 100 such
# intervals contain the true rate. Greedy accuracy is {{before.greedy_accuracy.value:.2f}}, because the most likely answer
# (`{{before.greedy[1]}}`) lacks the format.

# %% [markdown]
# ## 7. Train
#
# `GRPOTrainer` brings policy, rewards, settings and rows together:

# %% tags=["gpu-path"]
trainer = GRPOTrainer(
    model=policy,
    reward_funcs=rewards,
    args=config,
    train_dataset=train_rows,
    processing_class=tokenizer,
)

# %% [markdown]
# Because the base is in 4 bits, TRL has just converted the adapter to 16-bit numbers. These would round small updates away,
# so convert the adapter back to 32 bits:

# %% tags=["gpu-path"]
for weight in policy.parameters():
    if weight.requires_grad:
        weight.data = weight.data.float()

# %% [markdown]
# The progress bar shows three numbers of the latest step: the mean reward, the share of correct answers (`correct`) and the
# share of tied groups (`tied`). If it starts with `tied=1.00` for several steps, stop, and use the table of section 6. On a
# GPU, Unsloth compiles the model in the first step, so the bar stays at 0 for some minutes.
#
# A *callback* runs at every step. `HealthCallback` stops a run that cannot recover ([lesson 04](04_reading_a_run.ipynb)).
# `TimeLimit` ends training after `MINUTES`, so that there is time left to evaluate and merge. Save the adapter at once,
# before anything else can fail: `save_adapter` calls `policy.save_pretrained` and records the base model's name.

# %%
from grpo_check import HealthCallback
from grpo_utils import TimeLimit, save_adapter, show_progress

show_progress(trainer)
limit = TimeLimit(MINUTES)
trainer.add_callback(limit)
trainer.add_callback(HealthCallback(test_rows, every=50))
trainer.train(resume_from_checkpoint=run.checkpoint)  # None: a new run
saved = save_adapter(policy, tokenizer, run.folder / "adapter", run.model)

# %% [markdown]
# `trainer.state.log_history` has about thirty numbers for each step. Print four of them, and plot two rewards:

# %%
from grpo_utils import logged, show_rewards

history = trainer.state.log_history
loss = logged(history, "loss")
print(f"loss: between {min(loss):.2f} and {max(loss):.2f} in all steps\n")
KEYS = ["reward", "frac_reward_zero_std", "completions/mean_length"]
curves = {key: logged(history, key) for key in KEYS}
print(f"{'':26}{'first step':>12}{'last step':>12}")
for key, values in curves.items():
    print(f"{key:26}{values[0]:12.3f}{values[-1]:12.3f}")

show_rewards(history, ["strict_format_reward", "correctness_reward"])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The value of a step's loss is minus the mean advantage of its tokens. Each group's advantages sum to 0, so the loss
# stays near 0, between {{min(loss):.2f}} and {{max(loss):.2f}}. (In the first steps it is a little below 0: completions in the
# format are longer, and the loss averages over tokens.) Most of us look at the loss first; here it is the number to ignore.
# </details>
#
# Read the others:
#
# - `reward` is the weighted sum, averaged over all completions of a step. It rose from {{curves["reward"][0]:.2f}} to
#   {{curves["reward"][-1]:.2f}}; the maximum is 3.
# - `frac_reward_zero_std` is the share of tied groups. It rose from {{curves["frac_reward_zero_std"][0]:.2f}} to
#   {{curves["frac_reward_zero_std"][-1]:.2f}}, because in most groups, all completions are now correct. If the reward were
#   near 0, all would be wrong. (The line `health` below the progress bar says {{sum(curves["frac_reward_zero_std"][-5:]) / 5:.0%}}, the mean of the
#   last five steps.)
# - `completions/mean_length` counts tokens. It grew from {{curves["completions/mean_length"][0]:.0f}} to
#   {{curves["completions/mean_length"][-1]:.0f}}.
#
# The format is the same for every question, so a policy often learns it first. Here, the mean of `strict_format_reward`
# first reaches 0.9 at step {{next(step for step, value in enumerate(logged(history, "rewards/strict_format_reward/mean"), 1) if value >= 0.9)}}, and that of
# `correctness_reward` at step {{next(step for step, value in enumerate(logged(history, "rewards/correctness_reward/mean"), 1) if value >= 0.9)}}.

# %% [markdown]
# ## 8. Evaluate and save
#
# Evaluate again, with the same prompts and the same `decoding` settings:

# %%
after = evaluate(policy, tokenizer, test_rows, **decoding)
for row, old, new in list(zip(test_rows, before.sampled, after.sampled))[:4]:
    print(row["prompt"][-1]["content"][-60:], "  gold:", row["answer"])
    print(f"  before: {old[:100]!r}")
    print(f"  after:  {new[:100]!r}")

# %% [markdown]
# `report_run` compares the results on all prompts, and writes every number and setting to `report.json`.

# %%
from grpo_utils import report_run

report_run(run, trainer, before, after, decoding, stopped=limit.note)

# %% [markdown]
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{after.accuracy.value:.2f}}. Most of this gain is the format:
# before training, {{before.n - sum(before.formed)}} answers lacked it, and {{sum(before.formed) - sum(before.right)}} had it
# but were wrong. In a separate measurement with these settings, 149 of 200 untrained answers already ended with the correct
# number. So always say what you count.
#
# Do not read the second table as a gain: it counts only formatted answers, with a *carry* (`15+27`) and without (`15+22`), and
# these belong to different prompts before and after. [Lesson 06](06_evaluation.ipynb) compares the same prompts.
#
# The sentence below the tables reports a *paired test* (McNemar's), which compares each prompt before and after. `p` is the
# probability of a change at least this large if training had no effect. Claim a change only if `p` is below 0.05.

# %% [markdown]
# To save a model that plain `transformers` loads, *merge*: add the adapter to the weights of the base. First load the base
# again, this time unquantized, because 4-bit weights would round the small updates away.

# %%
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=dtype)
base = PeftModel.from_pretrained(base, str(run.folder / "adapter"))
merged = base.merge_and_unload()
merged.save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")
del base, merged, policy, trainer  # free memory

# %% [markdown]
# The merged model is not quantized, so it differs from the policy. `check_merged` evaluates it with plain `transformers`, and
# compares *logits*, the scores of possible next tokens, before and after merging.

# %%
from grpo_utils import check_merged, report_merged

folders = run.folder / "adapter", run.model, run.folder / "merged"
difference, again = check_merged(*folders, profile, test_rows, decoding)
report_merged(run, before, again, difference)
print(f"largest logit difference: {difference:.1e}")
print(f"strict accuracy, sampled: {again.accuracy}")
print(f"strict accuracy, greedy:  {again.greedy_accuracy}")

# %% [markdown]
# Merging changed the logits by only a rounding error, and the merged model's sampled strict accuracy is
# {{again.accuracy.value:.2f}}. (The logit difference is that of merging alone. The policy ran on the 4-bit base and the merged model
# does not, so their samples differ: {{again.accuracy.hits}} correct here, {{after.accuracy.hits}} before.)
# `pipeline("text-generation", model="outputs/run/merged")` loads it without PEFT or this course.
#
# **Evaluate the model that you release, not the policy that it came from.**
#
# [Lesson 05](05_real_model.ipynb) makes the same calls with a real model, and [On a GPU](../docs/gpu.md) says what to expect
# from Qwen and Gemma. To start a project, copy the template [minimal](../templates/minimal/README.md), which has all calls
# in one file: `python -m grpo_utils new minimal my-project`.

# %% [markdown]
# ## 9. Cheat sheet
#
# | call | remember |
# |---|---|
# | `from_pretrained` | import Unsloth first; load the base in 4 bits, it never changes |
# | `get_peft_model` | only the adapter learns |
# | `load_rows` | `prompt` as chat messages; the gold answer goes to the rewards alone |
# | `reward` | test it on texts that you write |
# | `GRPOConfig` | the batch size counts completions; change one setting at a time |
# | `generate_samples` | are some groups informative? If not, do not train |
# | `GRPOTrainer` | read rewards and tied groups, not the loss; save the adapter at once |
# | `evaluate` | the same prompts and decoding before and after, and again for the merged model |

# %% [markdown]
# ## 10. Exercises
#
# **Exercise 1.** Write `tied_share(rewards, size)`, the share of tied groups. `rewards` lists the groups one after another,
# `size` rewards each.


# %%
def tied_share(rewards: list[float], size: int) -> float:
    """Your answer: a share from 0 to 1."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BATCHES = [(([3.0, 3.0, 1.0, 0.0], 2), 0.5), (([1.0] * 6, 3), 1.0)]
THREE = [0.0, 0.0, 0.0, 1.0, 3.0, 1.0, 3.0, 3.0, 0.0]
BATCHES += [((THREE, 3), 1 / 3)]
HINTS = [(1, "That counts the tied groups. How many groups are there?")]
OVERLAP = "Do your groups overlap? Each reward is in one group."
HINTS += [(share, OVERLAP) for share in (1 / 3, 2 / 9, 1 / 7)]
HINTS += [(2 / 3, "Compare all rewards of a group, not only its ends.")]
HINTS += [(0, "Rewards that are all equal tie, even if they are all 0.")]
print(check_exercise("Exercise 1", tied_share, BATCHES, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Multiply all reward weights by 10: a correct answer in the correct format
# now earns 30, and a wrong one 10. Will the policy learn *faster*, *as fast* or *slower*? (The prediction is not graded.)
#
# Write your prediction into the second cell below. Then call `train_again`, which trains for 15 steps, with the old weights
# and with the new ones. (Together, the two runs take about a minute on a CPU, and longer on a GPU.)


# %%
from copy import copy


def train_again(new_weights: list[float]) -> list[dict]:
    """Trains a new adapter with these weights, and returns the log."""
    short = copy(config)
    short.max_steps = min(15, config.max_steps)
    short.reward_weights = new_weights
    how = dict(backend=BACKEND, load_in_4bit=profile.load_in_4bit, seed=SEED)
    learner, _ = load_policy(run.model, profile=profile, **how)
    trainer = GRPOTrainer(
        model=learner,
        reward_funcs=rewards,
        args=short,
        train_dataset=train_rows,
        processing_class=tokenizer,
    )
    for weight in learner.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


# %%
prediction = ""  # "faster", "as fast" or "slower"
old_log = []  # train_again([2.0, 0.5, 0.5])
new_log = []  # the same call, with ten times the weights

# %% tags=["nbval-check-output"]
from statistics import fmean

from grpo_utils import compare_prediction

SHARE = "rewards/correctness_reward/mean"


def seen(guess: str, old: list[dict], new: list[dict]) -> str:
    """Compare a prediction with two runs; "" before both have run."""
    if not (guess and old and new):
        return ""
    if round(logged(new, "reward")[0] / logged(old, "reward")[0]) != 10:
        return "other weights"
    change = fmean(logged(new, SHARE)) - fmean(logged(old, SHARE))
    same = "slower" if change < -0.1 else "as fast"
    shown = "faster" if change > 0.1 else same
    return compare_prediction(guess, shown)


def mine() -> str:
    return seen(prediction, old_log, new_log)


RUNS = [((), "compared")]
HINTS = [("other weights", "Is each new weight ten times the old one?")]
print(check_exercise("Exercise 2", mine, RUNS, HINTS))

# %% [markdown]
# Try both before you unfold the solutions. Next, [lesson 04](04_reading_a_run.ipynb) breaks runs. The GRPO paper is
# *DeepSeekMath* (arXiv 2402.03300).

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a group is tied if its largest reward equals its smallest.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def tied_solution(rewards: list[float], size: int) -> float:
    starts = range(0, len(rewards), size)
    groups = [rewards[start : start + size] for start in starts]
    return sum(max(group) == min(group) for group in groups) / len(groups)


print(check_exercise("Exercise 1, solution", tied_solution, BATCHES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: as fast. Each advantage is divided by the standard deviation of its group, which is ten times as large, too. So
# only the proportion of the weights matters.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
if profile.name == "cpu":
    first = train_again([2.0, 0.5, 0.5])
    second = train_again([20.0, 5.0, 5.0])
    for name, log in (("weights", first), ("ten times", second)):
        shares = [f"{share:.2f}" for share in logged(log, SHARE)[-5:]]
        print(f"{name:10} correct in the last steps:", *shares)
    said = seen("as fast", first, second)
    print(check_exercise("Exercise 2, solution", lambda: said, RUNS))
