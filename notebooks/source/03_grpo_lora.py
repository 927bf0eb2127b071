# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# Eight calls take a model from 25% to 100%. The sixth tells you beforehand whether it can work.
#
# You will be able to train a language model with GRPO in eight calls, measure whether it improved, and save it for
# plain `transformers`.
#
# **With a free T4 and an hour,** run [lesson 14](14_real_model.ipynb) first. It trains a smaller model, and we have measured
# what that model reaches.
#
# Your time: 60–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.6 GB of memory.
#
# {{badges}}

# %% [markdown]
# ## The method and its eight calls
#
# The model that you train is called the *policy*. A *completion* is one answer that it writes. GRPO, *group relative
# policy optimization*, repeats four moves:
#
# 1. Take a few prompts, and sample a *group* of completions for each.
# 2. Score every completion with *reward functions*: plain Python that checks the answer.
# 3. Compare each score with the mean of its own group. The result is the *advantage*:
#    `(reward - mean) / (std + 0.0001)`. The 0.0001 avoids a division by zero.
# 4. Change the weights a little: completions with a positive advantage become more likely, those with a negative
#    advantage less likely.
#
# Eight calls do all of this. Sections 1 to 8 make one each:
#
# | | call | what it does |
# |---|---|---|
# | 1 | `FastLanguageModel.from_pretrained(...)` | loads the model in 4 bits |
# | 2 | `FastLanguageModel.get_peft_model(...)` | adds a LoRA adapter, the part that learns |
# | 3 | `load_rows(...)` | returns a dataset of prompts and correct answers |
# | 4 | `def reward(completions, answer, **kwargs)` | scores completions; you write it |
# | 5 | `GRPOConfig(...)` | holds all settings |
# | 6 | `generate_samples(...)` | samples some groups, which show whether there is anything to learn |
# | 7 | `GRPOTrainer(...).train()` | trains |
# | 8 | `evaluate(...)`, `save_pretrained(...)` | compares before and after, and saves the model |
#
# `FastLanguageModel` comes from Unsloth, and `GRPOConfig` and `GRPOTrainer` come from TRL. `load_rows`,
# `generate_samples` and `evaluate` belong to this course.
#
# **GRPO reinforces what the model already does sometimes.**
#
# ## Set up
#
# **In Colab, choose *Runtime > Change runtime type > T4 GPU* first.** On Kaggle, turn on *Internet* and choose *Accelerator >
# GPU T4 x2*. There, the next cell installs the course in two to four minutes. Elsewhere, it does nothing.

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
# `setup` picks a *profile*: a task and sizes that fit your machine. It also checks your settings and package versions,
# and creates a folder for this run. Colab deletes its files when it ends: to keep the checkpoints and the adapter of a long
# run, mount your Drive in a cell (`from google.colab import drive; drive.mount("/content/drive")`), and set
# `OUTPUT_DIR = "/content/drive/MyDrive/run"`. (The merged model of Qwen takes 3 GB.) If such a run is cut off, or ended by
# `MINUTES`, set `RESUME = True` as well, and run all cells again.

# %%
from grpo_utils import setup

model = FAMILY, MODEL, BACKEND, BASE_BITS
sizes = STEPS, EVAL_ROWS, MINUTES
run = setup(PROFILE, *model, *sizes, REPORT_TO, OUTPUT_DIR, RESUME)
profile = run.profile  # run.path: the weights; run.model: their name

# %% [markdown]
# Import Unsloth before the other libraries: on a GPU, it replaces parts of `transformers` and TRL with faster ones. On a
# CPU, TRL's own trainer does the work.

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
# parts of words. With `load_in_4bit=True`, the weights take about a quarter of the memory that they need in 16 bits. (A T4
# also has room for Qwen2.5-1.5B in 16 bits: with `BASE_BITS=16`, a step is a tenth faster by our estimate.)
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
# **Load the base model in 4 bits; training never changes it.**
#
# ## 2. Add a LoRA adapter
#
# A *LoRA adapter* adds two small matrices, A and B, to each large matrix W of the model. Only A and B learn:

# %%
from grpo_utils import diagram

diagram("lora")

# %% [markdown]
# `r`, the *rank*, is the number of rows of A. `lora_alpha` is the α that scales the product of the two small
# matrices. `target_modules` names the large matrices that get an adapter: here, all those in attention and in the
# layers between (*MLP*).

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
# `trainable params` counts the numbers in all matrices A and B. (With `BACKEND="transformers"`, `load_policy` calls
# `AutoModelForCausalLM.from_pretrained` and PEFT's `get_peft_model(model, LoraConfig(...))`, which takes the same `r`,
# `lora_alpha` and `target_modules`.)
#
# **Only the adapter learns; the 4-bit base never changes.**
#
# ## 3. Load the dataset
#
# A GRPO row has a `prompt`, as chat messages, and whatever the rewards need: here `answer`, the correct result or *gold
# answer*. Worked solutions are not needed, because the policy writes its own. *Held-out* rows are used only to evaluate.
#
# `TEMPLATE` has the options of the *chat template*, which turns messages into the text that the model reads. TRL does
# not shorten prompts, so `drop_long_prompts` removes rows with more tokens than the profile allows.

# %% tags=["gpu-path"]
from grpo_utils import drop_long_prompts, load_rows

TEMPLATE = {"enable_thinking": ENABLE_THINKING}  # read by Qwen3: section 10
longest = profile.max_prompt_length
train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
train_rows = drop_long_prompts(train_rows, tokenizer, longest, TEMPLATE)
test_rows = load_rows(profile.dataset, "test", profile.eval_rows, SEED)
print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
train_rows[0]

# %% [markdown]
# The system message asks for a *format*: reasoning in one pair of tags, the answer in another. The rewards also need this
# format to find the answer. `load_rows` returns a `Dataset` from the library `datasets`. Make one from your own rows with
# `Dataset.from_list(rows)`, where `rows` is a list of such dictionaries ([lesson 01](01_dataset.ipynb)).
#
# **The model sees prompts; only the reward sees the gold answer.**
#
# ## 4. Write the rewards
#
# A reward is a function. It takes a list of completions and, by name, the columns of the dataset. It returns one score
# for each completion:
#
# ```python
# def reward(completions, answer, **kwargs):
#     texts = [completion[0]["content"] for completion in completions]
#     pairs = zip(texts, answer)
#     return [float(f"<answer>{gold}</answer>" in text) for text, gold in pairs]
# ```
#
# This reward pays 1 for the gold answer in its tags. It would also pay for a text that lists many answers, so we use
# three functions of the course that have been tested against such tricks. ([Lesson 02](02_rewards.ipynb) attacks
# rewards.) TRL multiplies each score by its function's weight and adds them up:
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
# tag. Two of its four tags are in place, `<reasoning>` and `<answer>`, so `tags` is 2 × 0.25 = 0.5, and its weight makes it
# 0.5 × 0.5 = 0.25. The last text gives two answers and earns nothing.
#
# **In the same format, a correct answer must always earn more than a wrong one.**
#
# ## 5. Choose the settings
#
# `GRPOConfig` holds all settings. `per_device_train_batch_size` counts **completions**, not prompts. The *learning rate*
# is how far one step moves the weights. Training a LoRA adapter needs a higher learning rate than training all weights,
# often ten times as high.

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
# `gradient_accumulation_steps` is the number of such batches in a step. If memory is short, raise it instead of the batch
# size.
#
# `other_arguments` adds the rest: how the learning rate changes during the run, the optimizer, the number format,
# checkpoints and logs. On a GPU, Unsloth changes the defaults of many settings, and `other_arguments` sets these
# back to TRL's defaults, so that a run has the same settings with and without Unsloth. Print `other_arguments` to
# see all of these settings. [Settings](../docs/settings.md) explains which are worth changing.
#
# **Start from these settings, and change one at a time.**
#
# ## 6. Look before you train
#
# A group can teach something only if its rewards differ. Compare the two groups in this picture:

# %%
diagram("advantages")

# %% [markdown]
# In the upper group, correct completions have positive advantages. The lower group is *tied*: all rewards are equal, so
# all advantages are 0. Such a group teaches nothing, whether all its answers are wrong or all are correct. A group that
# is not tied is *informative*.
#
# `generate_samples` lets the policy write a group of completions for each prompt. Use eight training prompts:

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
# **{{informative}} of 8 groups are informative.** In {{mixed}} of them, some answers are correct and others are wrong, so they
# can teach what is correct. Groups that are informative for another reason, such as the format, cannot. Here is the group
# with the most different rewards, as GRPO sees it:

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
# The correct answer in the correct format earns 3, has the largest advantage, and becomes much more likely. The wrong
# answer in the correct format earns 1. This is above the group's mean of {{scored.mean():.2f}}, so it becomes a
# little more likely, too: this group also teaches the format. In a group with enough correct answers, the mean is
# above 1, and wrong answers become less likely.
#
# If **all groups tie**, training changes nothing, however long it runs. Read the completions, and find the cause:
#
# | the completions are | do this |
# |---|---|
# | all wrong, and never in the format | give partial credit for what has to come first, or train on a few example answers before GRPO ([lesson 09](09_sft_then_grpo.ipynb)) |
# | all wrong, but in the format | use easier rows, or train on example answers first |
# | all correct | use harder rows |
# | all cut off before the answer | raise `max_completion_length` |
# | nearly the same text | set `temperature=1.0` |
#
# In your own project, [`pilot`](../grpo_check/docs/pilot.md) samples more groups and names the cause.
#
# Now evaluate the base model, so that you can compare it with the trained one later. `evaluate` generates two answers for
# each held-out prompt: one *sampled*, as in training, and one *greedy*, always taking the most likely token. *Strict
# accuracy* counts answers that are correct and correctly formatted.

# %%
from grpo_utils import evaluate

before = evaluate(policy, tokenizer, test_rows, **decoding)
print(f"format, sampled:          {before.format}")
print(f"strict accuracy, sampled: {before.accuracy}")
print(f"strict accuracy, greedy:  {before.greedy_accuracy}")
print(f"a greedy answer:          {before.greedy[1]}")

# %% [markdown]
# The parentheses contain a *95% interval*, because {{before.n}} prompts measure a rate only roughly: about 95 of 100 such
# intervals contain the true rate. Strict accuracy starts at {{before.accuracy.value:.2f}} when sampled. The most likely
# answer (`{{before.greedy[1]}}`) lacks the format, so greedy accuracy is {{before.greedy_accuracy.value:.2f}}.
#
# **Start a run only if some groups are informative.**
#
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
# Because the base is in 4 bits, TRL has just converted the adapter to 16-bit numbers. These would round small updates
# away, so convert the adapter back to 32 bits:

# %% tags=["gpu-path"]
for weight in policy.parameters():
    if weight.requires_grad:
        weight.data = weight.data.float()

# %% [markdown]
# The progress bar shows the mean reward, the share of correct answers (`correct`), and the share of tied groups (`tied`)
# in the last step. On a GPU, Unsloth compiles the model in the first step, so the bar stays at 0 for some minutes.
#
# A *callback* runs at every step. `HealthCallback` reports problems and stops a run that cannot recover
# ([lesson 04](04_reading_a_run.ipynb)). `TimeLimit` ends training before a step that would end later than `MINUTES` after the
# start, so that the evaluation and the merge still run. `save_adapter` calls `policy.save_pretrained` and records the base
# model's name.

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
# `trainer.state.log_history` has about thirty numbers for each step. Read these four, and plot two rewards:

# %%
from grpo_utils import logged, reward_curve, show

history = trainer.state.log_history
KEYS = ["loss", "reward", "frac_reward_zero_std", "completions/mean_length"]
curves = {key: logged(history, key) for key in KEYS}
print(f"{'':26}{'first step':>12}{'last step':>12}")
for key, values in curves.items():
    print(f"{key:26}{values[0]:12.3f}{values[-1]:12.3f}")

NAMES = ["strict_format_reward", "correctness_reward"]
means = {name: logged(history, f"rewards/{name}/mean") for name in NAMES}
ends = [f"{name} {m[0]:.2f} to {m[-1]:.2f}" for name, m in means.items()]
show(
    reward_curve(history, NAMES),
    f"Mean rewards over {trainer.state.global_step} steps, first to last: "
    f"{', '.join(ends)}.",
)

# %% [markdown]
# - **`loss`** does not measure progress. It hovers around 0, because each group's advantages sum to 0. It is not exactly
#   0, because completions differ in length.
# - **`reward`** is the weighted sum, averaged over all completions of a step. It rose from {{curves["reward"][0]:.2f}} to
#   {{curves["reward"][-1]:.2f}}; the maximum is 3.
# - **`frac_reward_zero_std`** is the share of tied groups. It rose from {{curves["frac_reward_zero_std"][0]:.2f}} to
#   {{curves["frac_reward_zero_std"][-1]:.2f}}, because in most groups, all completions are now correct. If the reward
#   were near 0, all would be wrong.
# - **`completions/mean_length`** counts tokens. It grew from {{curves["completions/mean_length"][0]:.0f}} to
#   {{curves["completions/mean_length"][-1]:.0f}}.
#
# The format is the same for every question, so a policy often learns it first. Here, the mean of `strict_format_reward`
# first reaches 0.9 at step {{next(step for step, value in enumerate(means[NAMES[0]], 1) if value >= 0.9)}}, and that of
# `correctness_reward` at step {{next(step for step, value in enumerate(means[NAMES[1]], 1) if value >= 0.9)}}.
#
# **Save the adapter at once, before anything else can fail.**
#
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
# `report_run` compares all prompts, and writes every number and setting to `report.json`.

# %%
from grpo_utils import report_run

report_run(run, trainer, before, after, decoding, stopped=limit.note)

# %% [markdown]
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{after.accuracy.value:.2f}}, and the two intervals are far
# apart. The line below the second table reports a *paired test* (McNemar's), which compares each prompt before and
# after. `p` is the probability of a change at least this large if training had no effect. Claim a change only if `p` is below 0.05.
#
# The second table counts only correctly formatted answers, and separates additions with a *carry* (`15+27`) from those
# without (`15+22`). It does not show whether the policy adds better: the {{sum(before.formed)}} formatted answers before and
# the {{sum(after.formed)}} after belong to different prompts. [Lesson 06](06_evaluation.ipynb) compares the same prompts.
#
# To save a model that plain `transformers` loads, *merge*: add the adapter to the weights. For this, load the base again,
# but **unquantized**, because 4-bit weights would round the small updates away.

# %%
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=dtype)
base = PeftModel.from_pretrained(base, str(run.folder / "adapter"))
merged = base.merge_and_unload()
merged.save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")
del base, merged, policy, trainer  # free memory

# %% [markdown]
# You trained on a 4-bit base, and the merged model is not quantized, so it is a different model. `check_merged` evaluates it
# with plain `transformers`. It also compares *logits*, the scores of possible next tokens, before and after merging.

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
# {{again.accuracy.value:.2f}}. `pipeline("text-generation", model="outputs/run/merged")` loads it without PEFT or this
# course.
#
# **Evaluate the model that you release, not the policy that it came from.**
#
# ## 9. See a real model learn
#
# The calls are the same for a real model. In [lesson 14](14_real_model.ipynb), SmolLM2-135M-Instruct learns to turn an
# order into one line of JSON with the keys `customer`, `item`, `quantity`, `price` and `city`. Its rewards also pay for
# correct keys and for each correct value, so groups are informative long before a whole answer is correct. These are its
# most likely answers to one held-out order, before training, early in training, and at the end:
#
# {{transcript}}
#
# **Read what your model writes before, during and after training.**
#
# ## 10. Train Qwen or Gemma on a GPU
#
# Choose a GPU and run all cells: on a T4, the lesson trains Qwen2.5-1.5B-Instruct on GSM8K, grade-school word problems, in
# [40 to 50 minutes by our estimate](../docs/gpu.md). (We have not run it on one.) A step samples 32 completions of up to 256
# tokens, in four groups of 8. Training takes 60 steps or 30 minutes, whichever ends first; we expect the 30 minutes.
#
# - **What to expect.** In [a public run](https://abhishuoza.github.io/portfolio/grpo-qwen/) with this model, task and format,
#   strict accuracy rose from 1.7% to 48.7% in two epochs, and accuracy in any format from 38.3% to 55.0%. So most of the
#   first number is the format. Your run is much shorter, so expect the format to come first.
# - **Gemma.** Set `FAMILY = "gemma"` for Gemma 3 1B. It overflows in fp16, so Unsloth computes part of it in fp32. Its seconds
#   per step are less certain than Qwen's. `MINUTES` ends its training all the same, so the lesson takes no longer.
# - **Shorter or longer.** Lower `MINUTES`, `STEPS` or `EVAL_ROWS`. For a long run, set `STEPS = 200`, `EVAL_ROWS = 200` and
#   `MINUTES = 0`; by our estimate, training alone then takes one to three hours. On Kaggle, *Save Version > Save & Run All*
#   runs it in the background.
# - **Qwen3.** Set `MODEL = "unsloth/Qwen3-1.7B"`, and `EVAL_ROWS = 40`, because it needs more memory. It thinks before it answers, unless the chat template gets
#   `enable_thinking=False`. With thinking, it writes 1,399 tokens per answer on GSM8K, on average ([one model
#   card](https://huggingface.co/LakshyAAAgrawal/QThink-Qwen3-1.7B-GSM8k)), and here completions are cut off at 256.
#   `TEMPLATE` passes `enable_thinking` to training (`chat_template_kwargs` in section 5) **and** to evaluation (`decoding` in
#   section 6). To train the thinking itself, [more settings must change](../docs/models.md#thinking-on-or-off).
#
# While it trains, `logged(history, "grad_norm")` should be above 0 from step 5 on: with fp16, the first steps may be skipped.
# If the reward falls, set a lower `learning_rate` in section 5, such as 1e-4.
#
# If the bar shows **`tied=1.00`** for several steps, stop, and read the completions. First look for answers that are cut
# off, and check whether the format is ever written: an answer without its end or without the format scores like a wrong one.
# Then use the table of section 6. If most groups are tied because all their answers are correct, `drop_tied` keeps the rows
# that the model sometimes gets wrong ([lesson 09](09_sft_then_grpo.ipynb)).
#
# **Set `enable_thinking` to the same value in training and in evaluation.**
#
# ## 11. Know what this run does not show
#
# On a CPU, the model learned from its own samples, but the run did not use Unsloth's GPU kernels, 16-bit numbers (*bf16* or
# *fp16*) or a large model. [What has run where](../docs/gpu.md) says what was measured and what was simulated.
#
# **You learned the method; a tiny model on addition says nothing about GSM8K scores.**
#
# ## 12. Cheat sheet
#
# This program makes all eight calls, for the tiny model on a CPU. To start a project, copy the template `minimal` instead
# (`python -m grpo_utils new minimal my-project`): it also chooses the settings for a GPU.
#
# ```python
# from unsloth import FastLanguageModel  # first
# import torch
# from datasets import Dataset
# from peft import PeftModel
# from transformers import AutoModelForCausalLM
# from trl import GRPOConfig, GRPOTrainer
#
# from grpo_utils import evaluate, generate_samples, model_path
#
# NAME = model_path("tiny-qwen3")  # T4: "unsloth/Qwen2.5-1.5B-Instruct"
# TOKENS = 32  # longest completion; T4: 256
# TEMPLATE = {"enable_thinking": False}
# FORMAT = (
#     "Think first, then answer, in exactly this form: <reasoning>your "
#     "thinking</reasoning><answer>the result alone</answer>"
# )
#
# # 1. Load the model. T4: max_seq_length=512, dtype=torch.float16
# policy, tokenizer = FastLanguageModel.from_pretrained(
#     NAME, max_seq_length=128, load_in_4bit=True, dtype=torch.float32
# )
#
# # 2. Add a LoRA adapter.
# policy = FastLanguageModel.get_peft_model(policy, r=16, lora_alpha=32)
#
#
# # 3. Make the dataset, and keep some rows to evaluate.
# def row(question, answer):
#     system = {"role": "system", "content": FORMAT}
#     user = {"role": "user", "content": question}
#     return {"prompt": [system, user], "answer": answer}
#
#
# pairs = [(a, b) for a in range(10, 100) for b in range(a, 100)]
# rows = [row(f"What is {a} + {b}?", str(a + b)) for a, b in pairs]
# train_rows, test_rows = (
#     Dataset.from_list(rows).train_test_split(test_size=200, seed=0).values()
# )
#
#
# # 4. Write a reward.
# def correct(completions, answer, **kwargs):
#     texts = [completion[0]["content"] for completion in completions]
#     ends = [f"</reasoning><answer>{gold}</answer>" for gold in answer]
#     return [float(text.endswith(end)) for text, end in zip(texts, ends)]
#
#
# # 5. Choose the settings. T4: learning_rate=2e-4, fp16=True,
# #    lr_scheduler_type="constant_with_warmup", warmup_steps=2,
# #    per_device_train_batch_size=8, gradient_accumulation_steps=4
# config = GRPOConfig(
#     "run",
#     max_steps=60,
#     learning_rate=2e-3,
#     num_generations=8,  # completions in a group
#     per_device_train_batch_size=64,  # completions, so 8 groups
#     max_completion_length=TOKENS,
#     chat_template_kwargs=TEMPLATE,
#     bf16=False,
#     report_to="none",
# )
#
# # 6. Look before you train: are some of these eight answers correct?
# decoding = dict(max_new_tokens=TOKENS, chat_template_kwargs=TEMPLATE)
# prompts = train_rows["prompt"][:1]
# [group] = generate_samples(policy, tokenizer, prompts, samples=8, **decoding)
# print("gold:", train_rows["answer"][0], *group, sep="\n")
# before = evaluate(policy, tokenizer, test_rows, **decoding)
#
# # 7. Train.
# trainer = GRPOTrainer(
#     model=policy,
#     reward_funcs=[correct],
#     args=config,
#     train_dataset=train_rows,
#     processing_class=tokenizer,
# )
# for weight in policy.parameters():  # TRL made the adapter bf16
#     if weight.requires_grad:
#         weight.data = weight.data.float()
# trainer.train()
# policy.save_pretrained("adapter")
#
# # 8. Evaluate and save.
# after = evaluate(policy, tokenizer, test_rows, **decoding)
# print("strict accuracy:", before.accuracy, "->", after.accuracy)
# base = AutoModelForCausalLM.from_pretrained(NAME, dtype=torch.float32)
# merged = PeftModel.from_pretrained(base, "adapter").merge_and_unload()
# merged.save_pretrained("merged")
# tokenizer.save_pretrained("merged")
# ```
#
# **Look at samples first.**
#
# ## 13. Exercises
#
# **Exercise 1.** Write `tied_share(rewards, size)`, the share of tied groups. `rewards` lists the groups one after
# another, `size` rewards each.


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
# **Exercise 2.** With `batch` completions per device, `accumulation` steps and groups of `group`, how many different
# prompts does one step use?
#
# **Try both before you unfold the solutions.** Next, [lesson 04](04_reading_a_run.ipynb) breaks runs. The GRPO paper is
# *DeepSeekMath* (arXiv 2402.03300).


# %%
def prompts_per_step(batch: int, accumulation: int, group: int) -> int:
    """Your answer: a number of prompts."""


# %% tags=["nbval-check-output"]
SIZES = [((8, 4, 8), 4), ((32, 2, 16), 4), ((64, 1, 8), 8)]
HINTS = [(32, "That counts completions. How many share a prompt?")]
HINTS += [(1, "Did you include the accumulation steps?")]
HINTS += [(4, "Does your number depend on all three arguments?")]
print(check_exercise("Exercise 2", prompts_per_step, SIZES, HINTS))

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
# Exercise 2: the completions of one step, divided by the size of a group.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def prompts_solution(batch: int, accumulation: int, group: int) -> int:
    return batch * accumulation // group


print(check_exercise("Exercise 2, solution", prompts_solution, SIZES))
