# %% [markdown]
# # 00 · Start here
#
# {{badges}}
#
# **You will be able to** say what GRPO is for and when something else is better, what your machine
# can train, and where in this course to go. And you will have trained a language model, within a minute.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.0 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars and seconds below may come from a busier machine.
#
# **While it trains**, which takes about 20 seconds on a quiet machine, read the first lines of section 3.
#
# 1. Settings
# 2. A first success
# 3. What GRPO is, and when not to use it
# 4. Your machine, and what it can train
# 5. The course
# 6. Where to run it
# 7. Exercises
#
# You need Python. Nothing else is taken for granted; the [glossary](../docs/glossary.md) has every term.

# %% [markdown]
# ## 1. Settings
#
# On Colab and Kaggle, the next cell installs the course and the packages that are missing there (a few
# minutes; never run there so far). A new session needs no restart. If pip reports conflicts with packages
# such as omegaconf, go on: the lessons do not use them. On Kaggle, turn on *Internet* in the settings first.
# Anywhere else the cell does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson trains on the CPU on all
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # training steps; 0: the lesson's 25
SEED: int = 0  # everything random follows from it

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
)

machine, reason = find_profile(PROFILE)
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 25
prepare_machine(profile)
print(f"This machine: {machine.name} ({reason})")

# %% [markdown]
# ## 2. A first success
#
# The course ships with a tiny language model. It adds two-digit numbers, but mostly forgets
# the carry (15 + 27 = 32), and it answers in any form it likes. We want right answers in one form: `<reasoning>…</reasoning><answer>…</answer>`. Ask it something:

# %%
from grpo_utils import generate, load_policy, load_rows

policy, tokenizer = load_policy(
    profile.models[FAMILY],
    profile=profile,
    backend="transformers",
    load_in_4bit=False,
    seed=SEED,
)
test_rows = load_rows("addition", "test", 100, SEED)


def ask(count: int = 5) -> None:
    prompts = test_rows["prompt"][:count]
    said = generate(policy, tokenizer, prompts, max_new_tokens=32, seed=SEED)
    for prompt, text in zip(prompts, said):
        print(prompt[-1]["content"], "->", text)


ask()

# %% [markdown]
# Five answers are an impression. A hundred *held-out* questions (none of them is trained on) are a
# measurement: how many answers are in the asked form **and** right?

# %%
from grpo_utils import evaluate

judging = dict(max_new_tokens=32, seed=SEED)
before = evaluate(policy, tokenizer, test_rows, **judging)
print("in form and right, before:", before.accuracy)

# %% [markdown]
# The numbers in brackets are a 95 % interval. This share is called *strict accuracy* from here on; tables shorten it to
# *accuracy*. Now we train. The model gets questions and **no
# example answers**. It tries, and three short Python functions say how good each try was. (What they do
# is the matter of [lesson 02](02_rewards.ipynb).)

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import (
    keep_trainable_fp32,
    math_rewards,
    show_progress,
    training_arguments,
)

rewards, weights = math_rewards()
arguments = training_arguments(
    profile,
    output_dir=tempfile.mkdtemp(),
    max_steps=steps,
    reward_weights=weights,
    seed=SEED,
)

# %%
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=GRPOConfig(**arguments),
    train_dataset=load_rows("addition", "train", 2000, SEED),
    reward_funcs=rewards,
)
keep_trainable_fp32(policy)
show_progress(trainer)
result = trainer.train()

# %% [markdown]
# Beside the bar: the mean *reward* of the last step, the share of its answers that were *correct*, and the share of
# questions whose eight answers were *tied*, with the same score: from these nothing is learned.

# %%
ask()

# %%
from grpo_utils import compare

after = evaluate(policy, tokenizer, test_rows, **judging)
comparison = compare(before, after)
print(comparison)

# %% tags=["nbval-check-output"]
print("improvement shown:", comparison.improved)

# %% [markdown]
# *p* is how often chance alone would do this ([lesson 06](06_evaluation.ipynb)). The line above it splits the gain: *by form*
# is what came from answering in the asked form more often, *by answers* what came from being right more often within it.

# %%
from grpo_utils import logged, reward_curve, show

history = trainer.state.log_history
names = [reward.__name__ for reward in rewards]
curves = [logged(history, f"rewards/{name}/mean") for name in names]
ends = [f"{n} {c[0]:.2f} to {c[-1]:.2f}" for n, c in zip(names, curves)]
show(
    reward_curve(history, names),
    alt=f"Mean rewards over {steps} steps, first to last: {', '.join(ends)}.",
)

# %% [markdown]
# The curves are what the training saw; the comparison above them is what was measured on questions that it never saw.

# %% [markdown]
# ## 3. What GRPO is, and when not to use it
#
# **GRPO**, *group relative policy optimization* (Shao et al. 2024, arXiv 2402.03300), is reinforcement
# learning for language models:
#
# 1. For one question (*prompt*) sample a *group* of answers (*completions*), eight, say.
# 2. Score each by a *reward*: here, Python functions that check the answer.
# 3. Compare each with the mean of its group: that difference, usually divided by the
#    group's standard deviation, is its *advantage*.
# 4. Make the better ones likelier and the worse ones less likely. Repeat.
#
# The model in training is the *policy*. [Lesson 08](08_grpo_by_hand.ipynb) writes all of it in plain
# torch.
#
# Four libraries appear again and again. *TRL* is the one whose `GRPOTrainer` trains here; *PEFT* makes the adapters (section 4);
# *bitsandbytes* stores weights in 4 bits; *Unsloth* is made to load and train faster on a GPU.
#
# GRPO makes likely what the model could already do sometimes; it does not teach what was never sampled. So start with the first row below.
#
# | you have | then | why |
# |---|---|---|
# | answers that a program can check (a number, a test, a form), and a model that gets some right | **GRPO** | it needs no example answers and no second model to judge |
# | such a check, and a model that never gets one right | SFT (*supervised fine-tuning*) on some examples first, then GRPO | a group of failures is tied, and teaches nothing |
# | some hundred good answers, and want more like them | SFT, supervised fine-tuning | it copies them, quickly and cheaply |
# | pairs of a better and a worse answer, by people's taste | DPO (*direct preference optimization*), or a reward model | nobody can write "nicer" as a check |
# | facts that the model should know | search beside the model (RAG), or SFT | a reward cannot tell it what it has never seen |
# | a prompt that you have not yet tried to improve | a better prompt | it costs minutes |

# %% [markdown]
# ## 4. Your machine, and what it can train
#
# The sizes that this course takes, by card:

# %%
import pandas

from grpo_utils import PROFILES as ALL

rows = [
    {
        "profile": name,
        "hardware": each.hardware,
        "model": each.models[FAMILY],
        "4-bit": each.load_in_4bit,
        "completions a step": each.completions_per_step,
        "tokens an answer": each.max_completion_length,
        "state": each.evidence,
    }
    for name, each in ALL.items()
]
pandas.DataFrame(rows).set_index("profile")

# %% [markdown]
# And how large a model fits? The estimate of `preflight`, memory at the peak and minutes of training, for a few sizes of the
# Qwen family, at the sizes of the T4 profile, in 4 bits (each weight rounded to 4 bits, and frozen) with an *adapter* (a small
# trainable part beside it; both in lesson 03). **No GPU has been measured**: read both as lower bounds. Public runs on a T4
# took 1.0 to 2.1 times as long as the formula says ([comparison](../docs/t4.md#how-far-the-preflights-formula-is-off)). On a CPU it
# was off by at most the factor on [its page](../docs/preflight.md). (The shapes are those of the published
# models; no weights are needed.)

# %%
from transformers import Qwen2Config

from grpo_check import estimate_memory, estimate_minutes, model_sizes

SHAPES = {  # hidden, layers, heads, key-value heads, intermediate
    "0.5B": (896, 24, 14, 2, 4864),
    "1.5B": (1536, 28, 12, 2, 8960),
    "3B": (2048, 36, 16, 2, 11008),
    "7B": (3584, 28, 28, 4, 18944),
}


def shape(hidden, layers, heads, kv_heads, intermediate) -> Qwen2Config:
    return Qwen2Config(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=intermediate,
        vocab_size=151_936,
        tie_word_embeddings=hidden < 3000,
    )


# %%
t4 = PROFILES["t4"]
lengths = dict(prompt_tokens=256, completion_tokens=256, dtype="float16")
print(f"{'model':8}{'GiB, estimated':>16}{'minutes on a T4, estimated':>30}")
for name, numbers in SHAPES.items():
    sizes = model_sizes(shape(*numbers))
    memory = estimate_memory(
        sizes, batch=8, generated_at_once=32, backend="unsloth", **lengths
    )
    minutes = estimate_minutes(
        sizes,
        hardware="t4",
        steps=t4.steps,
        completions_per_step=32,
        generated_at_once=32,
        **lengths,
    )
    print(f"{name:8}{memory.gib:16.1f}{minutes.total:30.0f}")

# %% [markdown]
# The minutes are for training alone; lesson 03 adds the download, three evaluations and the merge. A free T4 has 14.6 GiB, so
# the largest of these may fit, and takes hours. For a first run take 0.5B or 1.5B. For
# a configuration of your own, `python -m grpo_check preflight config.yaml` says it before you wait.

# %% [markdown]
# ## 5. The course
#
# Each lesson starts from nothing and runs by itself; in this order no term comes before its explanation.
#
# | lesson | you learn to |
# |---|---|
# | [01 Dataset preparation](01_dataset.ipynb) | make rows that GRPO can train on, without leaks |
# | [02 Reward functions](02_rewards.ipynb) | write a reward that survives an attack |
# | [03 GRPO with a 4-bit LoRA](03_grpo_lora.ipynb) | train, from data to a merged model; the main one |
# | [04 Reading a run](04_reading_a_run.ipynb) | see within twenty steps what is wrong |
# | [05 Multi-stage training](05_stages.ipynb) | train in stages, and resume a run that was killed |
# | [06 Did it get better?](06_evaluation.ipynb) | say so, with intervals, or that nothing is shown |
# | [07 Merge, export, inference](07_export.ipynb) | take the model home and serve it |
# | [08 GRPO by hand](08_grpo_by_hand.ipynb) | understand every formula |
#
# An hour? 03. Half a day? 02, 03, 04. Each has exercises with a check cell, which answers kindly, and a folded solution.

# %% [markdown]
# ## 6. Where to run it
#
# - **Colab or Kaggle**: the top of each lesson shows how to open it there. Choose a T4; on Kaggle one of the two cards is used. (Never run there so
#   far.)
# - **Your machine**: `make lab` opens JupyterLab; `make run` trains lesson 03 from a terminal.
# - **Without network**: install once with one, then nothing here needs it: on the `cpu` profile models and data ship
#   with the course. On a GPU profile run a lesson once with a network, then set `HF_HUB_OFFLINE=1`.
# - **Another model or size**: `PROFILE`, `FAMILY` and, in lesson 03, `MODEL` in the parameters cell.

# %% [markdown]
# ## 7. Exercises
#
# ### Exercise 1: what would you use?
#
# For each task choose `"grpo"`, `"sft"`, `"dpo"` or `"prompt"`, whichever you would try **first**:
#
# - a: 300 letters by your best clerk; the model should write like them.
# - b: SQL queries that must return the right table; the model gets one of four right.
# - c: the model answers in English, and should in Spanish; you have not asked it to.
# - d: readers said of 5,000 pairs of summaries which one they like better.
#
# The cell that checks it is folded, for it holds the answers.


# %%
def first_choice() -> list[str]:
    """Your answer: four words, for a, b, c and d."""
    return []


# %% cellView="form" jupyter={"source_hidden": true} tags=["nbval-check-output"]
from grpo_utils import check_exercise

CHOICE = ["sft", "grpo", "prompt", "dpo"]
FOUR = [((), [True] * 4)]


def right_of(answer) -> list[bool]:
    same = [said == wanted for said, wanted in zip(answer, CHOICE)]
    return same + [False] * (len(answer) - 4)  # a fifth word is wrong


print(check_exercise("Exercise 1", lambda: right_of(first_choice()), FOUR))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. b is the case for GRPO: a program can check the table, and the model is right
# now and then.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
name = "Exercise 1, solution"
print(check_exercise(name, lambda: right_of(CHOICE), FOUR))

# %% [markdown]
# ### Exercise 2: how many completions?
#
# A training of `steps` steps takes groups of `num_generations` completions for `prompts` prompts a step. Write
# `completions_in_all`. For this lesson's training (25 steps, 8 prompts a step, groups of 8) it is 1,600.


# %%
def completions_in_all(steps: int, prompts: int, num_generations: int) -> int:
    """Your answer: how many completions the whole training samples."""
    return None


# %% tags=["nbval-check-output"]
COUNTS = [((25, 8, 8), 1600), ((100, 4, 8), 3200), ((1, 1, 2), 2)]
print(check_exercise("Exercise 2", completions_in_all, COUNTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. Sampling all of these is what most of the time goes into.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def completions_solution(
    steps: int, prompts: int, num_generations: int
) -> int:
    return steps * prompts * num_generations


name = "Exercise 2, solution"
print(check_exercise(name, completions_solution, COUNTS))

# %% [markdown]
# ## What to take along
#
# - GRPO needs a check that a program can do, and a model that is right now and then.
# - It gets no example answers: it samples its own, and learns from comparing them.
# - What a training shows is an interval on held-out questions, not a curve and not one sample.
#
# Next: [lesson 01](01_dataset.ipynb), or at once the main one, [lesson 03](03_grpo_lora.ipynb).
