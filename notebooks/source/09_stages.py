# %% [markdown]
# # 09 · Train in stages
#
# Our first training run pays for the format, not for a correct number. Yet correct answers in the format rise from
# {{before.accuracy.hits}} to {{formed.accuracy.hits}} of {{formed.n}}. A second *stage* continues this run and pays for
# both.
#
# **Guess first:** does this plan beat a single stage that pays for both from the start?
#
# You will be able to decide whether a task needs stages, train one adapter in them, and test whether they helped.
#
# You need [lesson 03](03_grpo_lora.ipynb) and the tests of [lesson 06](06_evaluation.ipynb).
#
# Your time: 45–55 minutes with exercises. *Run All* takes about 2 minutes on a CPU, and 1.8 GB of memory.
#
# {{badges}}

# %% [markdown]
# ## 1. Set up
#
# <details><summary>On Colab and Kaggle, and where the numbers come from</summary>
#
# {{steps}}
#
# On Colab and Kaggle, the next cell installs the course in a few minutes. On Kaggle, first turn on *Internet* in the
# settings. Elsewhere, the cell does nothing. Numbers in the text come from the stored run on a CPU (seed 0); yours will
# differ with other seeds and machines.
# </details>

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # steps in each of the two stages; 0: the default, 10
SEED: int = 0  # seeds all randomness

# %% [markdown]
# This lesson trains the tiny model on the CPU. Section 6 has the program for a GPU.

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 10, output_dir="outputs/stages")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# ## 2. Decide whether to add a stage
#
# A *stage* is a training run with its own rewards, weights, steps and rows. It continues with the adapter of the stage
# before it. GRPO learns from a reward only in groups in which its scores differ, so:
#
# **Add a stage only if the reward that you want gives no signal yet.**

# %% [markdown]
# The task is that of lesson 03: two-digit additions, answered as `<reasoning>…</reasoning><answer>…</answer>`. The plan
# is to pay first for the format, then for both. With a weight of 0, TRL logs a reward but does not train on it.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows, math_rewards, model_path

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)  # never trained on
rewards, BOTH = math_rewards()
FORMAT_ONLY = [0.0, *BOTH[1:]]
print(f"{'weight in stage':27}{'1':>4}{'2':>5}")
for reward, stage_1, stage_2 in zip(rewards, FORMAT_ONLY, BOTH):
    print(f"{reward.__name__:27}{stage_1:4}{stage_2:5}")

# %% [markdown]
# All runs share the settings below. By default, TRL lowers the learning rate to 0 within each stage, so it would
# jump back up at the start of the next one. A constant rate avoids the jump.

# %%
SHARED = dict(
    learning_rate=2e-3,
    lr_scheduler_type="constant",
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, not prompts
    max_completion_length=32,  # in tokens
    use_cpu=True,  # this and the next three lines: for a tiny model
    bf16=False,
    gradient_checkpointing=False,
    optim="adamw_torch",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws a bar instead
)

# %% [markdown]
# Each plan starts from a new adapter:

# %%
path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path)


def new_policy(seed: int) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(seed)  # for the adapter's random initial weights
    lora = LoraConfig(
        r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(base, lora)


# %% [markdown]
# Which reward gives a signal before training? `pilot` samples 32 groups and scores them with each reward.

# %%
from grpo_check import pilot

config = GRPOConfig("unused", reward_weights=BOTH, seed=SEED, **SHARED)
report = pilot(new_policy(SEED), tokenizer, rewards, train_rows, config=config)
signal = {}  # groups with different scores, for each reward
for place, reward in enumerate(rewards):
    name = reward.__name__
    signal[name] = sum(len(set(g.scores[place])) > 1 for g in report.groups)
    print(f"{name:27}differs in {signal[name]} of {len(report.groups)} groups")

# %% [markdown]
# Even `correctness_reward`, which also needs the format, differs in {{signal["correctness_reward"]}} of
# {{len(report.groups)}} groups. What does the rule predict for our plan? Does it agree with your guess?

# %% [markdown]
# ## 3. Train the first stage
#
# Stages differ only in weights, steps and seed, so one function builds the trainer of each. `measure` evaluates a policy on
# the held-out prompts.

# %%
from grpo_utils import evaluate, show_progress


def new_trainer(policy, weights, steps: int, seed: int) -> GRPOTrainer:
    own = dict(max_steps=steps, reward_weights=weights, seed=seed)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig("unused", save_strategy="no", **own, **SHARED),
        train_dataset=train_rows,
        reward_funcs=rewards,
    )
    show_progress(trainer)
    return trainer


def measure(policy: PeftModel, seed: int):
    how = dict(max_new_tokens=32, temperature=1.0, seed=seed)
    return evaluate(policy, tokenizer, test_rows, **how)


# %% [markdown]
# Train the first stage, which pays for the format alone, and save its adapter:

# %%
policy = new_policy(SEED)
before = measure(policy, SEED)
first = new_trainer(policy, FORMAT_ONLY, run.steps, SEED)
first.train()
policy.save_pretrained(run.folder / "format")
formed = measure(policy, SEED)

# %%
from grpo_utils import compare

gain = compare(before, formed)
print(gain)

# %% [markdown]
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{formed.accuracy.value:.2f}}, although nothing paid for a correct
# sum. The model could already add; it just did not write its results inside the tags. Of the correctly formatted answers,
# {{before.accuracy_given_format.value:.0%}} were correct before, and {{formed.accuracy_given_format.value:.0%}} after.
#
# When is a stage done? Look at its tied groups:

# %%
from grpo_utils import logged

tied = logged(first.state.log_history, "frac_reward_zero_std")
print("tied groups, by step:", [round(share, 2) for share in tied])

# %% [markdown]
# The share rose from {{tied[0]:.2f}} to {{tied[-1]:.2f}}. In the last step, most groups taught nothing.
#
# **End a stage when nearly all of its groups are tied.**

# %% [markdown]
# ## 4. Continue with the same adapter
#
# In the same session, the next stage can train `policy` as it is. In a new session, load the base model and the saved
# adapter. By default, `PeftModel.from_pretrained` loads an adapter for inference and freezes its weights. To train it further,
# pass `is_trainable=True`.


# %% tags=["nbval-check-output"]
for trainable in (False, True):
    policy = PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32),
        run.folder / "format",
        is_trainable=trainable,
    )
    count = policy.num_parameters(only_trainable=True)
    print(f"is_trainable={trainable}: {count} trainable parameters")

# %% [markdown]
# Now build the trainer of the second stage, with its own weights. Give it another seed; with the same one, it would train
# on the same rows in the same order.

# %%
second = new_trainer(policy, BOTH, run.steps, SEED + 1000)
_ = second.train()

# %% [markdown]
# The *optimizer* turns gradients into weight updates. Ours, Adam, keeps two running means for each weight and counts
# its steps. Did the second stage inherit them?

# %%
counted = next(iter(second.optimizer.state.values()))["step"]
print(f"steps of both stages:     {2 * run.steps}")
print(f"steps that Adam counted:  {counted:.0f}")

# %% [markdown]
# No. Only the adapter carries over to the next stage, and Adam starts from zero. This is what we want, because its old means
# belong to other rewards. To *resume* an interrupted run, you need them ([lesson 07](07_export.ipynb)).

# %% [markdown]
# ## 5. Compare with one stage
#
# Rising curves show that training helps, not that stages do. So train **one** stage with all rewards from the start, and
# with as many steps, completions and rows as both stages together.

# %%
from grpo_utils import show_run_curves

one_policy = new_policy(SEED)
only = new_trainer(one_policy, BOTH, 2 * run.steps, SEED)
only.train()
in_two = first.state.log_history + second.state.log_history
curves = {"one stage": only.state.log_history, "two stages": in_two}
keys = [f"rewards/{r.__name__}/mean" for r in (rewards[1], rewards[0])]
show_run_curves(curves, keys, mark=run.steps + 0.5)

# %% [markdown]
# The dashed line marks the start of the second stage. One run of each plan cannot show which is better, so repeat both
# with two more seeds. `train_plan` trains one adapter in any list of stages:


# %%
def train_plan(plan, seed: int) -> PeftModel:
    """Train one stage after another, each given as (weights, steps)."""
    policy = new_policy(seed)
    for number, (weights, steps) in enumerate(plan):
        new_trainer(policy, weights, steps, seed + 1000 * number).train()
    return policy


ONE_STAGE = [(BOTH, 2 * run.steps)]
TWO_STAGES = [(FORMAT_ONLY, run.steps), (BOTH, run.steps)]
ones, twos = [measure(one_policy, SEED)], [measure(policy, SEED)]
for seed in (SEED + 1, SEED + 2):
    ones.append(measure(train_plan(ONE_STAGE, seed), seed))
    twos.append(measure(train_plan(TWO_STAGES, seed), seed))

# %%
from grpo_utils import compare_seeds, paired_change, show_changes

changes = {}
for seed, (one, two) in enumerate(zip(ones, twos), start=SEED):
    print(f"seed {seed}, one stage:  {one.accuracy}")
    print(f"seed {seed}, two stages: {two.accuracy}")
    changes[f"seed {seed}"] = paired_change(one.right, two.right)
by_seed = compare_seeds([compare(*pair) for pair in zip(ones, twos)])
print(by_seed)
show_changes(changes, "Two stages minus one stage")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The rule predicted no gain, and we found none. On average, the accuracy of two stages minus that of one is
# {{by_seed.difference.value:+.2f}}, and the interval contains 0. By the end, both have leveled off; Exercise 2 stops earlier.
# </details>

# %% [markdown]
# **Compare stages with a single stage of the same length, over several seeds.**
#
# <details><summary>Evidence</summary>
#
# `paired_change` compares the plans prompt by prompt, and `compare_seeds` averages over the seeds, as in lesson 06. The
# interval, {{by_seed.difference.low:.2f}} to {{by_seed.difference.high:+.2f}}, leaves room for a small difference.
# </details>

# %% [markdown]
# What if no answer is correct at first, as with [lesson 05's real model](05_real_model.ipynb)? Three runs paid for the keys and the
# JSON form in the first 35 of 70 steps, then for everything. Others always paid for everything. **Also guess:** which plan ends ahead?
#
# <details><summary>After you have guessed</summary>
#
# One stage is safer. It solves 0.80 to 0.95 of 400 held-out orders in six runs, and two stages 0.89, 0.00 and 0.34 with three seeds.
# The check accepts `"quantity": 12` and rejects `"quantity": "12"`, but the first stage pays the same for both. At first, the policy
# wrote both. By the end of that stage, it wrote almost only numbers with one seed, and almost only quotes with two. If no sample
# of a group has a number, the group teaches nothing about it. So one run undid the quotes late in the second stage, and one never.
#
# **Before a stage that pays for less, list the differences that it does not pay for.** [SFT on 200 gold answers](../docs/what-to-try-first.md)
# reached 0.94 in a seventh of the time of one stage. ([All figures](../docs/what-to-try-first.md#the-form-first-or-everything-at-once))
# </details>

# %% [markdown]
# When a stage is worth trying:
#
# | what you see before training | what to train first | how |
# |---|---|---|
# | no completion is ever correct | worked answers | SFT. Then try GRPO on the same adapter, and compare it with as much more SFT ([lesson 10](10_sft_then_grpo.ipynb)) |
# | no completion has the format, so none is correct | the format | a weight of 0 for correctness (section 3); compare with one stage that pays for parts |
# | correct completions on easy rows only | easy rows, a *curriculum* | give each stage its own `train_dataset`; [measure which rows can teach](../grpo_check/docs/checks.md#pilot) before each |
# | long completions take most of the time | short completions | raise `max_completion_length`, as DeepScaleR did: 8K, 16K, 24K tokens |
#
# If no row describes your task, start with one stage that pays for everything. (We have measured only the first row, in
# [lesson 10](10_sft_then_grpo.ipynb), and a case like the second, where two of three runs ended far behind.)

# %% [markdown]
# ## 6. Run your plan on a GPU
#
# `python -m grpo_utils new multi_stage FOLDER` copies a [template](../templates/multi_stage/README.md) that trains in
# stages, evaluates and resumes. For a notebook, copy the short program below, for a T4. (We have not run it.)
#
# <details><summary>The program, with Unsloth, for Qwen or Gemma</summary>
#
# ```python
# from unsloth import FastLanguageModel  # first: it changes the other libraries
# from grpo_utils import load_rows, math_rewards
# from trl import GRPOConfig, GRPOTrainer
#
# QWEN, GEMMA = "unsloth/Qwen2.5-1.5B-Instruct", "unsloth/gemma-3-1b-it"
# MODEL = QWEN
#
# policy, tokenizer = FastLanguageModel.from_pretrained(
#     model_name=MODEL, max_seq_length=512, load_in_4bit=True
# )
# ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
# MLP = ["gate_proj", "up_proj", "down_proj"]
# policy = FastLanguageModel.get_peft_model(
#     policy,
#     r=16,
#     lora_alpha=32,
#     target_modules=ATTENTION + MLP,
#     use_gradient_checkpointing="unsloth",
#     random_state=0,
# )
#
# rewards, both = math_rewards()
# STAGES = {"form": ([0.0, 0.5, 0.5], 40), "answers": (both, 100)}  # weights, steps
# for number, (name, (weights, steps)) in enumerate(STAGES.items()):
#     config = GRPOConfig(
#         output_dir=f"outputs/{name}",  # its own checkpoints
#         reward_weights=weights,
#         max_steps=steps,
#         seed=number,  # other rows in each stage
#         learning_rate=2e-4,
#         lr_scheduler_type="constant_with_warmup",
#         warmup_steps=2,
#         per_device_train_batch_size=8,
#         gradient_accumulation_steps=4,
#         num_generations=8,
#         max_completion_length=256,
#         optim="adamw_8bit",
#         fp16=MODEL == QWEN,  # a T4; Unsloth runs Gemma 3 in fp32 there
#         bf16=False,  # from an L4 on: bf16=True and fp16=False
#         save_steps=25,
#         save_total_limit=2,
#         report_to="none",
#     )
#     trainer = GRPOTrainer(
#         model=policy,
#         processing_class=tokenizer,
#         reward_funcs=rewards,
#         args=config,
#         train_dataset=load_rows("gsm8k", "train", 7000),
#     )
#     trainer.train()
#     policy.save_pretrained(f"outputs/{name}/adapter")
# ```
#
# The loop is that of `train_plan`. Without Unsloth, load `MODEL` as in `new_policy`, with `dtype="float16"` and
# `quantization_config=BitsAndBytesConfig(load_in_4bit=True)` (from `transformers`). For newer models, see [Which
# model](../docs/gpu.md#which-model).
# </details>

# %% [markdown]
# ## 7. Cheat sheet
#
# | step or symptom | check | do |
# |---|---|---|
# | before you plan stages | In how many groups do the scores of the reward that you want differ? | in many: start with one stage |
# | end of a stage | Are nearly all groups tied? | save the adapter, start the next stage |
# | start of the next stage | Is the number of trainable parameters above 0? | load with `is_trainable=True`, build a new `GRPOTrainer` |
# | unclear benefit of stages | Does the interval over the seeds contain 0? | if so, use one stage, which is simpler |

# %% [markdown]
# ## 8. Exercises
#
# **Exercise 1.** Write `end_of_stage(tied)`, which returns the number of steps after which a stage can end. `tied` lists
# the share of tied groups at each step. The stage can end as soon as this share was at least 0.9 in three steps in a row. If
# that never happens, return the number of all steps.


# %%
def end_of_stage(tied: list[float]) -> int | None:
    """Your answer: a number of steps."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

SHARES = [(([0.0, 0.6, 0.9, 1.0, 0.95, 1.0],), 5)]
SHARES += [(([1.0, 1.0, 0.5, 0.6, 0.9, 1.0, 1.0],), 7)]
SHARES += [(([1.0, 0.8] * 4,), 8), (([0.9] * 4,), 3), (([0.0, 0.5],), 2)]
SHARES += [(([0.9, 1.0, 0.9, 0.5, 0.6, 0.4, 0.5],), 3)]
HINTS = [(4, "Count steps from 1, and include the third of the three.")]
HINTS += [(5, "The three steps must follow each other.")]
FIRST = "End at the first such step. A share of 0.9 is enough."
HINTS += [(6, FIRST), (7, FIRST)]
print(check_exercise("Exercise 1", end_of_stage, SHARES, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Choose one change, and **predict** how your run compares with its rival:
# `"improved"`, `"got worse"` or `"no change shown"`. Then train it, which takes less than a minute, and fill in the variables.
# (The prediction is not graded.)
#
# - **Swap** the stages of `TWO_STAGES`, so that the last one does not pay for correctness. The rival is `twos[0]`.
# - **Stop early:** train two stages of 3 steps each. The rival is one stage of 6 steps, which you train as well.
#
# **Try both before you unfold the solutions below.** Next, [lesson 10](10_sft_then_grpo.ipynb) puts examples before GRPO. To
# read: *Curriculum learning* (Bengio et al. 2009, ICML) on easy rows first, *FastCuRL* (arXiv 2503.17287) on growing limits.

# %%
prediction = ""  # one of the three verdicts
mine = None  # your run: measure(train_plan([...], SEED), SEED)
rival = None  # what it is compared with: twos[0], or a second run


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def outcome(found) -> str:
    """The verdict on a run, compared with its rival."""
    return paired_change(rival.right, found.right).verdict


def compared() -> str:
    """Print what you predicted, and what your run shows."""
    if not (mine and rival and prediction):
        return ""
    return compare_prediction(prediction, outcome(mine))


RUN = [((), "compared")]
print(check_exercise("Exercise 2", compared, RUN))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: count the steps in a row, and start again at 0 after a step below 0.9.
#
# Exercise 2, swapped: our run got worse, with 182 of 200 correct answers instead of 191. This is only just beyond chance, so
# yours may show no change. The last stage pays a wrong sum as much as a correct one, so it corrects no
# mistakes. Keep the earlier rewards in every later stage.
#
# Exercise 2, stopped early: in our run, two stages are ahead, because more of their answers have the format. After 20 steps,
# we find no lead. So compare plans at the length that you will train.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def end_of_stage_solution(tied: list[float]) -> int:
    in_a_row = 0
    for step, share in enumerate(tied, start=1):
        in_a_row = in_a_row + 1 if share >= 0.9 else 0
        if in_a_row == 3:
            return step
    return len(tied)


print(check_exercise("Exercise 1, solution", end_of_stage_solution, SHARES))

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
mine, rival = measure(train_plan(TWO_STAGES[::-1], SEED), SEED), twos[0]
print(compare(rival, mine))
prediction = "no change shown"
print(check_exercise("Exercise 2, solution", compared, RUN))
early_one = measure(train_plan([(BOTH, 6)], SEED), SEED)
early_two = measure(train_plan([(FORMAT_ONLY, 3), (BOTH, 3)], SEED), SEED)
print("\nstopped early", compare(early_one, early_two), sep="\n")
