# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# {{badges}}
#
# **You will be able to** take a language model that knows a task but not the form you
# want, train it with GRPO and a verifiable reward, show fairly whether it got better, and
# save a model that plain `transformers` loads.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | MINUTES (measured) | under 60 minutes (estimated, never run) |
# | model | a 0.66-million-parameter model that ships with the course | Qwen2.5-1.5B-Instruct or Gemma 3 1B |
# | task | two-digit additions | GSM8K word problems |
#
# **While it trains**, read section 8: it tells what the moving numbers mean.
#
# 1. Settings and machine
# 2. The data
# 3. The rewards, tried before training
# 4. The policy: a 4-bit base and an adapter
# 5. Before
# 6. Every training argument
# 7. Training
# 8. Reading the log
# 9. After
# 10. A model that stands alone
# 11. What this run proves, and what not
# 12. Exercises

# %% [markdown]
# ## 1. Settings and machine
#
# On Colab and Kaggle the next cell installs the course and its pinned packages (about three
# minutes; never run there so far). Anywhere else it does nothing.

# %%
import os

if {"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"} & set(os.environ):
    print("Installing, about three minutes ...")
    # %pip install -q "grpo_utils[colab] @ git+{{repository}}"

# %% [markdown]
# These are the only settings. Change them here, or from a terminal:
# `python -m grpo_utils run notebooks/03_grpo_lora.ipynb -p FAMILY gemma`.

# %% tags=["parameters"]
PROFILE: str = "auto"  # auto, cpu, t4, l4, a100 or h100
FAMILY: str = "qwen"  # qwen or gemma
MODEL: str = ""  # any hub id or local folder; empty: the profile's own
BACKEND: str = "unsloth"  # unsloth, or transformers (with PEFT)
LOAD_IN_4BIT: bool = True  # False: a 16-bit base (fp32 on a CPU)
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
    check_model,
    check_report_to,
    choose_model,
    find_profile,
    prepare_machine,
)

profile, reason = find_profile(PROFILE)
check_choice("BACKEND", BACKEND, BACKENDS)
check_report_to(REPORT_TO)
base_name = choose_model(profile, FAMILY, MODEL)
prepare_machine(profile, offline=not MODEL)
check_model(base_name)

print(f"Profile {profile.name}: {reason}.")
print(f"Why: {profile.why}.")
print(f"Model: {base_name}")

# %% [markdown]
# Now the libraries. Unsloth comes first: on a GPU it replaces parts of transformers and TRL
# by faster ones, and can do so only before they are loaded. Then a check that what is
# installed is what this lesson was tested with.

# %%
if BACKEND == "unsloth":
    from unsloth import FastLanguageModel
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import check_gpu, check_versions

print(check_versions())
print("Device:", check_gpu(profile))

# %% [markdown]
# The folder of this run. If it holds an earlier run, that one is renamed, never overwritten.

# %%
from grpo_utils import start_run

run_folder, said = start_run(OUTPUT_DIR)
print(said)

# %% [markdown]
# ## 2. The data
#
# A GRPO row needs two things: a `prompt`, as chat messages, and whatever the reward needs to
# check a completion, here the gold `answer`. There is **no worked solution** in it: the model
# writes its own attempts, and is told only how good each was.

# %%
from grpo_utils import load_rows

steps = STEPS or profile.steps
eval_rows = EVAL_ROWS or profile.eval_rows
train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
test_rows = load_rows(profile.dataset, "test", eval_rows, SEED)

print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
for message in train_rows[0]["prompt"]:
    print(f"{message['role']:>6}: {message['content']}")
print(f"answer: {train_rows[0]['answer']}")

# %% [markdown]
# The system prompt asks for a form: reasoning in one pair of tags, the answer in another. A
# held-out question is never trained on; on the CPU profile, not even the base model's makers
# showed it to it. We check that rather than believe it:

# %% tags=["nbval-check-output"]
seen = {row["prompt"][-1]["content"] for row in train_rows}
print("in both sets:", sum(r["prompt"][-1]["content"] in seen for r in test_rows))

# %% [markdown]
# ## 3. The rewards, tried before training
#
# A reward function takes a list of completions and gives back one number for each. Three
# work together here:
#
# - `correctness_reward`: 2.0 if the one `<answer>` equals the gold answer;
# - `strict_format_reward`: 0.5 for exactly the asked form;
# - `incremental_format_reward`: 0.125 for each tag in its place, so that half a form earns
#   more than none and there is a slope to climb.
#
# TRL adds them up. Most failed GRPO runs fail here, before the first step: with a reward that
# is zero for everything, or that pays a wrong answer. So each is first tried on completions
# written by hand.

# %% tags=["nbval-check-output"]
from grpo_utils import LESSON_REWARDS

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
scores = [reward(texts, answer=["42"] * len(texts)) for reward in LESSON_REWARDS]
print(f"{'':16}{'correct':>9}{'strict':>9}{'tags':>9}{'sum':>9}")
for name, row in zip(HAND_WRITTEN, zip(*scores), strict=True):
    print(f"{name:16}" + "".join(f"{score:9.3f}" for score in (*row, sum(row))))

# %% [markdown]
# Read the last column. The right answer in the right form earns 3.0 and nothing else comes
# near; a wrong answer in perfect form earns 1.0; repeating tags or answering twice earns
# nothing. The form is worth something, but never as much as being right.

# %% [markdown]
# ## 4. The policy: a 4-bit base and an adapter
#
# The model that is trained is called the *policy*. Its base is loaded in 4 bits and frozen
# (a quarter of the memory of 16 bits); beside it comes a small trainable *LoRA adapter* in
# every projection. Together this is called QLoRA.
#
# `BACKEND="transformers"` does the same with plain transformers, PEFT and bitsandbytes, in
# `grpo_utils.models`. The default is Unsloth, whose API you see here.

# %%
from grpo_utils import LORA_TARGETS, gradient_checkpointing, load_policy, model_path, torch_dtype

if BACKEND == "unsloth":
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=model_path(base_name),
        max_seq_length=profile.max_seq_length,
        dtype=torch_dtype(profile),
        load_in_4bit=LOAD_IN_4BIT,
        use_gradient_checkpointing=gradient_checkpointing(profile),
    )

# %% [markdown]
# `from_pretrained` gave the frozen base; `get_peft_model` adds the adapter. `r` is its rank:
# each of the adapted matrices learns a correction of that rank, scaled by `lora_alpha / r`.

# %%
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
    policy, tokenizer = load_policy(base_name, profile=profile, backend=BACKEND, load_in_4bit=LOAD_IN_4BIT, seed=SEED)
policy.print_trainable_parameters()

# %% [markdown]
# TRL never cuts a prompt that is too long, so such rows are dropped beforehand.

# %%
from grpo_utils import drop_long_prompts

kept = drop_long_prompts(train_rows, tokenizer, profile.max_prompt_length)
print(f"{len(kept)} of {len(train_rows)} prompts have at most {profile.max_prompt_length} tokens")
train_rows = kept

# %% [markdown]
# ## 5. Before
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

for question, said, gold in zip(test_rows["prompt"][:4], before.sampled, test_rows["answer"]):
    print(f"{question[-1]['content'][-60:]}\n  says: {said[:100]!r}\n  gold: {gold}")

# %%
rates = before.summary()
print(f"in form, sampled:           {rates['format_rate']:.3f}")
print(f"in form and right, sampled: {rates['accuracy']:.3f}")
print(f"in form and right, greedy:  {rates['greedy_accuracy']:.3f}")

# %% [markdown]
# On the CPU profile the base model can add, yet mostly writes plain sentences: that is why
# its strict accuracy is low when sampled and zero or close to it when greedy. It knows the
# task and not the form, as a real base model does.

# %% [markdown]
# ## 6. Every training argument
#
# Unsloth on a GPU changes a dozen of TRL's defaults, and drops a misspelled name with no
# more than a warning. So every value that matters is written out, and an unknown name is an
# error.

# %%
from grpo_utils import training_arguments

arguments = training_arguments(
    profile,
    output_dir=str(run_folder / "checkpoints"),
    max_steps=steps,
    seed=SEED,
    report_to=REPORT_TO,
)
for name, value in arguments.items():
    print(f"{name:38} {value}")

# %% [markdown]
# Four of them make it GRPO:
#
# - `num_generations`: the size of a *group*, the completions sampled for one prompt;
# - `per_device_train_batch_size`: counts **completions**, not prompts, and with
#   `gradient_accumulation_steps` must hold whole groups;
# - `beta` 0.0: no reference model and no KL term;
# - `learning_rate`: an adapter takes ten times and more what full fine-tuning would.

# %%
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=GRPOConfig(**arguments),
    train_dataset=train_rows,
    reward_funcs=list(LESSON_REWARDS),
)

# %% [markdown]
# ## 7. Training
#
# Each step: sample a group of completions for each of a few prompts, score them, compare
# each with the mean of **its own group**, and make what was better than its group likelier.
# A group whose completions all score the same teaches nothing.

# %%
import time

from grpo_utils import show_progress

show_progress(trainer)
started = time.perf_counter()
result = trainer.train()
train_seconds = time.perf_counter() - started

# %%
from grpo_utils import logged, reward_curve, show

history = trainer.state.log_history
names = [reward.__name__ for reward in LESSON_REWARDS]
reward = logged(history, "reward")
show(
    reward_curve(history, names),
    alt=f"Line chart of the three mean rewards over {len(reward)} steps; their sum goes "
    f"from {reward[0]:.2f} at the first step to {reward[-1]:.2f} at the last.",
)

# %% [markdown]
# ## 8. Reading the log
#
# TRL logs some thirty numbers a step. Four of them tell most of the story.

# %%
for key in ("loss", "reward", "frac_reward_zero_std", "completions/mean_length"):
    values = logged(history, key)
    print(f"{key:24} first {values[0]:7.3f}   last {values[-1]:7.3f}   largest {max(values):7.3f}")

# %% [markdown]
# - **`loss` tells nothing about progress.** Advantages are centred in each group, so the loss
#   starts near zero and stays near zero while the policy learns; with the default `dapo`, which
#   weighs by token, it is noise of a tenth or two of either sign. It is *not* the KL divergence:
#   with `beta=0` none is computed.
# - **`reward`** is the weighted sum of all rewards, averaged over the batch. This is the curve
#   to watch; its largest possible value here is 3.0.
# - **`frac_reward_zero_std`** is the share of groups whose completions all scored the same.
#   They give no gradient. It rises when the task is solved (all right) and also when it is
#   hopeless (all wrong): look at `reward` to know which.
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
    print(test_rows["prompt"][index][-1]["content"][-60:], "  gold:", test_rows["answer"][index])
    print(f"  before: {before.sampled[index][:100]!r}")
    print(f"  after:  {after.sampled[index][:100]!r}")

# %% [markdown]
# Four samples prove nothing; all held-out prompts together do. The interval beside the
# accuracy is a 95 % Wilson interval. The p-value is of an exact McNemar test, which compares
# each prompt with itself.

# %%
from grpo_utils import before_after, mcnemar_p_value

p_value = mcnemar_p_value(before.right, after.right)
print(before_after(before.summary(), after.summary(), p_value))

# %% [markdown]
# How much of that is form and how much is ability? Among the answers that were in form at
# all, this share was right:

# %%
for name, result in (("before", before), ("after", after)):
    formed = sum(result.formed)
    print(f"{name:7} {sum(result.right)} right of {formed} in form")

# %% [markdown]
# On the CPU profile most of the gain is form, and part of it is arithmetic: the base model
# writes a wrong sum in about one answer in five, and the reward pays only right ones.

# %% [markdown]
# ## 10. A model that stands alone
#
# First the adapter, a few megabytes at most.

# %%
policy.save_pretrained(run_folder / "adapter")
tokenizer.save_pretrained(run_folder / "adapter")
print(sorted(path.name for path in (run_folder / "adapter").iterdir()))

# %% [markdown]
# Then the merge. The adapter goes into the **unquantized** base, in fp32, and the logits
# before and after are compared: they differ by rounding alone.

# %%
from grpo_utils import merge_adapter, save_merged

merge = merge_adapter(run_folder / "adapter", base_name, test_rows["prompt"][:8])
print(f"largest difference of a logit: {merge.largest_difference:.1e}")

# %% [markdown]
# The merge is exact, and still it is not the policy we trained: that one had its base in 4
# bits. Whether this matters is a question for the same held-out prompts, so the model is
# saved, in the type it will be used in, and evaluated as saved.

# %%
save_merged(merge, run_folder / "merged", torch_dtype(profile))
merged = evaluate(merge.model.to(policy.device), merge.tokenizer, test_rows, **judging)
print(before_after(before.summary(), after.summary(), p_value, merged.summary()))

# %% [markdown]
# Now the report: every figure, version and setting of this run.

# %%
from grpo_utils import (
    SYSTEM_PROMPT,
    lora_arguments,
    reward_settings,
    seconds_since_start,
    versions,
    write_report,
)

config = {
    "system_prompt": SYSTEM_PROMPT,
    "dataset": profile.dataset,
    "train_rows": len(train_rows),
    "rewards": reward_settings(LESSON_REWARDS, arguments.get("reward_weights")),
    "lora": lora_arguments(profile),
    "evaluation": judging,
    "training_arguments": trainer.args.to_dict(),
}

# %%
report = {
    "profile": profile.name,
    "family": FAMILY,
    "model": base_name,
    "backend": BACKEND,
    "load_in_4bit": LOAD_IN_4BIT,
    "steps": trainer.state.global_step,
    "seed": SEED,
    "before": before.summary(),
    "after": after.summary(),
    "merged": merged.summary(),
    "p_value": p_value,
    "merge_difference": merge.largest_difference,
    "train_seconds": train_seconds,
    "wall_seconds": seconds_since_start(),
    "versions": versions(),
    "config": config,
}
print("written:", write_report(run_folder, report))

# %% [markdown]
# Last, what a user of your model does: plain `pipeline`, on the saved folder. No Unsloth, no
# PEFT, no course. (`pipeline` warns of defaults of its own; we ask it not to.)

# %%
import transformers

transformers.logging.set_verbosity_error()
chat = transformers.pipeline("text-generation", model=str(run_folder / "merged"))
question = [
    {"role": "system", "content": SYSTEM_PROMPT},
    {"role": "user", "content": "What is 15 + 27?"},
]
said = chat(question, max_new_tokens=profile.max_completion_length, do_sample=False)
print(said[0]["generated_text"][-1]["content"])

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
# GPU profiles run this same code, and say `never run` until someone has run them.

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
def check_advantages(function) -> str:
    answer = [round(a, 2) for a in function([3.0, 1.0, 1.0, 3.0])]
    if not answer:
        return "Exercise 1: not attempted yet."
    if answer != [0.87, -0.87, -0.87, 0.87]:
        return f"Exercise 1: not yet; [3, 1, 1, 3] should give ±0.87, and gives {answer}."
    tied = function([3.0, 3.0])
    return "Exercise 1: right." if not any(tied) else f"Exercise 1: a tied group gives {tied}."


print(check_advantages(advantages))

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


print(check_advantages(advantages_solution))

# %% [markdown]
# ### Exercise 2: a reward that ends on time
#
# Write `brevity_reward(completions, **kwargs)`: 0.25 for a completion of at most 60
# characters, else 0.0. It must take strings as well as chat messages, and an empty completion
# earns nothing. (`completion_text` gives the text of either.)

# %%
from grpo_utils import completion_text


def brevity_reward(completions, **kwargs) -> list[float]:
    """Your answer: one score for each completion."""
    return []


# %% tags=["nbval-check-output"]
def check_brevity(function) -> str:
    chat = [[{"role": "assistant", "content": text}] for text in ("short", "x" * 61, "")]
    plain, messages = function(["short", "x" * 61, ""]), function(chat)
    if not plain:
        return "Exercise 2: not attempted yet."
    if plain != [0.25, 0.0, 0.0]:
        return f"Exercise 2: not yet; strings should give [0.25, 0.0, 0.0] and give {plain}."
    return "Exercise 2: right." if messages == plain else f"Exercise 2: chat gives {messages}."


print(check_brevity(brevity_reward))

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


print(check_brevity(brevity_solution))

# %% [markdown]
# ## What to read next
#
# - Shao et al. 2024, *DeepSeekMath* (arXiv 2402.03300), where GRPO comes from.
# - Yu et al. 2025, *DAPO* (arXiv 2503.14476), the loss used here.
# - Dettmers et al. 2023, *QLoRA* (arXiv 2305.14314), 4-bit bases with adapters.
# - TRL's GRPO page and Unsloth's documentation, for every argument.
