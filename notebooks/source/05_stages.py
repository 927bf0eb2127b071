# %% [markdown]
# # 05 · Train in stages, stop and resume
#
# We kill this run and damage its newest checkpoint. The resumed run differs by 0.0.
#
# You will be able to train in *stages*, which are training runs that share one adapter, test whether they help,
# and *resume* a killed run, with the same result as if nothing had happened.
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** is it better to teach the format first or
# everything at once (section 4)? By how much?
#
# Your time: 45–55 minutes with exercises. *Run All* takes about 2 to 4 minutes on a CPU, and 1.8 GB of memory.
#
# {{badges}}

# %% [markdown]
# ## 1. Set up
#
# <details><summary>On Colab and Kaggle, and where the numbers come from</summary>
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
# This lesson compares several training runs, so it always trains the tiny model on the CPU. `setup_tiny` checks the
# parameters and creates a folder for the results.

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 10, output_dir="outputs/stages")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# ## 2. Train the first stage
#
# A *stage* is a training run with its own rewards, reward weights, steps and rows, which continues with the adapter of
# the previous stage. "First teach the format, then the answers" sounds like a good plan. This lesson tests it.
#
# The task is the same as in lesson 03: two-digit addition problems, answered as
# `<reasoning>…</reasoning><answer>…</answer>`. The first stage rewards only the format. Its reward weight for
# correctness is 0, so TRL logs that reward but does not train on it. The second stage rewards both.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows, math_rewards, model_path

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)  # never trained on
rewards, BOTH = math_rewards()
FORMAT_ONLY = [0.0, *BOTH[1:]]
print(f"{'weight in stage':27}{'1':>4}{'2':>5}")
for reward, first, second in zip(rewards, FORMAT_ONLY, BOTH):
    print(f"{reward.__name__:27}{first:4}{second:5}")

# %% [markdown]
# All runs share the settings in the next cell. The *learning-rate schedule* sets how the learning rate changes during
# a run. TRL's default lowers the rate to 0. We keep the rate constant, so that it does not jump between stages.

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
# The stages differ in their reward weights, steps and seed, so one function can build the trainer for each stage.
# `show_progress` replaces the trainer's own output with a progress bar.

# %%
from grpo_utils import show_progress

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path)


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


# %% [markdown]
# The first stage starts from a new adapter. `torch.manual_seed` fixes the adapter's random initial weights.
# `"all-linear"` selects the seven matrices from lesson 03.


# %%
def new_policy(seed: int) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(seed)
    lora = LoraConfig(
        r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(base, lora)


policy = new_policy(SEED)
first = new_trainer(policy, FORMAT_ONLY, run.steps, SEED)
first.train()
policy.save_pretrained(run.folder / "format")

# %% [markdown]
# The bar shows the values of the last step. Only the format is rewarded, so the maximum is {{sum(FORMAT_ONLY):.1f}}, and
# the weighted reward reached {{first.state.log_history[-2]['reward']:.2f}}. `correct` reached
# {{first.state.log_history[-2]['rewards/correctness_reward/mean']:.2f}}, although this stage does not train on it
# (section 4 explains why). `tied` is the share of groups whose completions all scored the same.
#
# **A stage is complete when its adapter is saved.**

# %% [markdown]
# ## 3. Continue with the same adapter
#
# The second stage loads the base model again and adds the saved adapter. By default, `PeftModel.from_pretrained` loads
# an adapter for inference and freezes its weights. To train the adapter further, pass `is_trainable=True`.


# %% tags=["nbval-check-output"]
def saved_policy(adapter, trainable: bool = True) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return PeftModel.from_pretrained(base, adapter, is_trainable=trainable)


for trainable in (False, True):
    policy = saved_policy(run.folder / "format", trainable)
    count = policy.num_parameters(only_trainable=True)
    print(f"is_trainable={trainable}: {count} trainable parameters")

# %% [markdown]
# Now build the second trainer with the reward weights of the second stage. It gets a different seed, because the same
# seed would show the same rows in the same order.

# %%
second = new_trainer(policy, BOTH, run.steps, SEED + 1000)
_ = second.train()

# %% [markdown]
# The *optimizer* turns gradients into weight updates. Ours, Adam, keeps two running means for each weight and counts
# the steps. Did the second stage inherit those means?

# %%
counted = next(iter(second.optimizer.state.values()))["step"]
print(f"steps of both stages:     {2 * run.steps}")
print(f"steps that Adam counted:  {counted:.0f}")

# %% [markdown]
# Adam counted {{counted:.0f}} of the {{2 * run.steps}} steps, so it started from zero in the second stage. That is what we want, because the
# running means from the first stage belong to different rewards.
#
# **Only the adapter carries over to the next stage.**

# %% [markdown]
# ## 4. Compare with one stage
#
# A rising reward curve does not show that stages help. For a fair comparison, train **one** stage with all rewards
# from the start, and with as many steps, completions and rows as both stages together.

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
# The dashed line marks the start of the second stage. In the left panel, both runs learn the format. In the right
# panel, correctness rises in the first stage too, although it is not rewarded there: `correctness_reward` reads only what
# is inside `<answer>` tags, and the first stage teaches the tags.
#
# One run of each plan does not show which plan is better, so repeat both with two more seeds. `evaluate` samples each
# policy's answers to the same 200 held-out prompts.

# %%
from grpo_utils import evaluate

DECODING = dict(max_new_tokens=32, temperature=1.0)


def measure(policy: PeftModel, seed: int):
    return evaluate(policy, tokenizer, test_rows, seed=seed, **DECODING)


ones, twos = [measure(one_policy, SEED)], [measure(policy, SEED)]
for seed in (SEED + 1, SEED + 2):
    policy = new_policy(seed)
    new_trainer(policy, BOTH, 2 * run.steps, seed).train()
    ones.append(measure(policy, seed))
    policy = new_policy(seed)
    new_trainer(policy, FORMAT_ONLY, run.steps, seed).train()
    policy.save_pretrained(run.folder / f"format-{seed}")
    policy = saved_policy(run.folder / f"format-{seed}")
    new_trainer(policy, BOTH, run.steps, seed + 1000).train()
    twos.append(measure(policy, seed))

# %% [markdown]
# *Strict accuracy* is the share of answers that are correct and correctly formatted. `compare` compares two policies
# prompt by prompt. `compare_seeds` computes the mean difference across seeds and its 95% interval
# ([lesson 06](06_evaluation.ipynb) explains the method).

# %%
from grpo_utils import compare, compare_seeds

for seed, (one, two) in enumerate(zip(ones, twos), start=SEED):
    print(f"seed {seed}, one stage:  {one.accuracy}")
    print(f"seed {seed}, two stages: {two.accuracy}")
pairs = [compare(one, two) for one, two in zip(ones, twos)]
by_seed = compare_seeds(pairs)
print(by_seed)

# %% [markdown]
# With the three seeds, the difference between two stages and one is {{by_seed.differences[0]:+.3f}},
# {{by_seed.differences[1]:+.3f}} and {{by_seed.differences[2]:+.3f}}. The mean is {{by_seed.difference.value:+.3f}}, and
# its interval from {{by_seed.difference.low:+.3f}} to {{by_seed.difference.high:+.3f}} contains 0. **The comparison shows
# no improvement.** Two stages could still be up to {{by_seed.difference.high:.2f}} better or up to
# {{-by_seed.difference.low:.2f}} worse, and more seeds would narrow the interval. Other tasks and models can behave differently.
#
# Stages are worth trying if one reward gives no signal at first. For example, a base model that is never correct
# gets 0 for correctness on every completion, until an earlier stage has taught it enough to be correct sometimes.
# You can also build a *curriculum*, which trains on easy rows first, from stages: give each stage its own rows, and
# make the same comparison.
#
# **Compare stages with a single stage, and report the interval.**

# %% [markdown]
# ## 5. Kill a run
#
# To *resume* a run is to continue it after an interruption. To allow this, the run saves *checkpoints*, which are
# folders with everything that the run needs to continue from the step at which they were saved.
#
# The next cell puts a training run into a script, so that we can kill it. The script saves a checkpoint every two
# steps. `newest_checkpoint` returns the newest complete checkpoint in a folder, or `None` if there is none. With
# `None`, `trainer.train` starts at step 0, so the same script can both start and resume a run. The f-string fills in
# `SHARED` and `SEED` from above.

# %%
SCRIPT = f"""
import sys
from grpo_utils import load_rows, math_rewards, newest_checkpoint
from peft import LoraConfig
from transformers import set_seed
from trl import GRPOConfig, GRPOTrainer
path, folder = sys.argv[1:]
set_seed({SEED})  # TRL initializes the adapter before it uses `seed`
rewards, weights = math_rewards()
own = dict(
    max_steps=8,
    reward_weights=weights,
    save_strategy="steps",
    save_steps=2,
    save_total_limit=2,
    seed={SEED},
)
trainer = GRPOTrainer(
    model=path,
    peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    args=GRPOConfig(folder, **own, **{SHARED}),
    train_dataset=load_rows("addition", "train", 500),
    reward_funcs=rewards,
)
checkpoint = newest_checkpoint(folder)
print("resumes from:", checkpoint and checkpoint.name)
trainer.train(resume_from_checkpoint=checkpoint)
"""

# %% [markdown]
# First run the script once without interruption, as a baseline for the comparison.

# %%
import re
import subprocess
import sys

script = run.folder / "train.py"
_ = script.write_text(SCRIPT)
command = [sys.executable, str(script), path]
unbroken, killed = run.folder / "unbroken", run.folder / "killed"


def run_script(folder) -> None:
    how = dict(capture_output=True, text=True, check=True)
    done = subprocess.run([*command, str(folder)], **how)
    print(
        *re.findall("^(?:checkpoint|resumes).*", done.stdout, re.M), sep="\n"
    )


run_script(unbroken)

# %% [markdown]
# Start the script again in another folder, and **kill** it as soon as the step-4 checkpoint is complete. On Linux and
# macOS, `process.kill()` sends SIGKILL. No program can catch that signal, so the script saves nothing more.

# %% tags=["nbval-check-output"]
import time

saved = killed / "checkpoint-4" / "trainer_state.json"
with open(run.folder / "killed.log", "w") as log:
    process = subprocess.Popen([*command, str(killed)], stdout=log, stderr=log)
    while process.poll() is None and not saved.exists():
        time.sleep(0.05)
    process.kill()
    process.wait()
print("killed:", process.returncode != 0)
print("left:", *sorted(p.name for p in killed.glob("checkpoint-*")))

# %% [markdown]
# **A killed run keeps its checkpoints and loses only the steps after the newest one.**

# %% [markdown]
# ## 6. Find a damaged checkpoint
#
# A run can also die *while it saves*. To imitate that, the next cell cuts the optimizer file of the newest checkpoint
# in half. `get_last_checkpoint` of transformers finds the newest checkpoint. `checkpoint_problem` opens every file of
# a checkpoint and reports what is wrong.

# %% tags=["nbval-check-output"]
from transformers.trainer_utils import get_last_checkpoint

from grpo_utils import checkpoint_problem, newest_checkpoint

newest = newest_checkpoint(killed)
content = (newest / "optimizer.pt").read_bytes()
_ = (newest / "optimizer.pt").write_bytes(content[: len(content) // 2])
print("transformers takes:", get_last_checkpoint(str(killed)))
print(f"its problem: {checkpoint_problem(newest)}")

# %% [markdown]
# transformers takes the folder with the highest number without looking inside. Our script calls `newest_checkpoint`,
# which skips the damaged checkpoint.
#
# What does a complete checkpoint contain?

# %%
for file in sorted(newest_checkpoint(killed, say=len).iterdir()):
    print(f"{file.name:28}{file.stat().st_size / 1000:6.0f} kB")

# %% [markdown]
# A run needs five of these files to continue: the adapter, the optimizer's running means (`optimizer.pt`), the
# learning-rate schedule (`scheduler.pt`), the states of the random generators (`rng_state.pth`) and the log
# (`trainer_state.json`). The base model never changes, so the checkpoint leaves it out and stays small.
#
# **A checkpoint is usable only if all its files are complete, so keep two checkpoints.**

# %% [markdown]
# ## 7. Resume the run
#
# To resume, run the same command with the same folder:

# %%
run_script(killed)

# %% [markdown]
# The script skipped the damaged checkpoint and resumed from `checkpoint-2`. Is the result the same as in the
# uninterrupted run? The next cell compares the reward at every step and every adapter weight.

# %% tags=["nbval-check-output"]
import json

from grpo_utils import logged
from safetensors.torch import load_file


def results(folder) -> tuple[list[float], dict]:
    last = folder / "checkpoint-8"
    state = json.loads((last / "trainer_state.json").read_text())
    weights = load_file(last / "adapter_model.safetensors")
    return logged(state["log_history"], "reward"), weights


(rewards_one, one), (rewards_two, two) = results(unbroken), results(killed)
apart = max(abs(a - b) for a, b in zip(rewards_one, rewards_two))
print("steps:", len(rewards_two))
print("largest difference of a reward:", apart)
apart = max((one[name] - two[name]).abs().max().item() for name in one)
print("largest difference of a weight:", apart)

# %% [markdown]
# Both differences are 0, so the resumed run has exactly the same result as the uninterrupted run. Five things prevent
# such an exact match:
#
# - **A second pass over the rows.** After the first pass, TRL shuffles the rows differently in a resumed run
#   ([measured](../docs/troubleshooting.md#symptoms-without-an-error)).
# - **`save_only_model=True`.** The checkpoint then has no optimizer file. transformers resumes from it without a
#   warning, but `newest_checkpoint` skips it.
# - **A batch that serves several steps** (`num_iterations` or `steps_per_generation` above the default). A checkpoint
#   stores no completions, so save only at steps where new ones are sampled.
# - **`beta` above 0.** transformers 5.17 then resumes without the trained adapter
#   ([measured](../docs/troubleshooting.md#symptoms-without-an-error)). Call `train_or_resume(trainer)` from
#   `grpo_utils` instead of `trainer.train`.
# - **A GPU.** Many kernels add numbers in varying order, so even two uninterrupted runs differ slightly
#   (never run here).
#
# **Resume with the same script and the same folder.**

# %% [markdown]
# ## 8. Save to storage that outlives the session
#
# A free Colab session can end at any time, and its disk is then deleted. Save checkpoints to Google Drive, and run the
# same cells in the next session (never run).
#
# ```python
# from google.colab import drive
#
# drive.mount("/content/drive")
# folder = "/content/drive/MyDrive/grpo/second-stage"  # the output_dir
# ```
#
# Drive uploads files with a delay and in any order, so the newest checkpoint may lack a file. `checkpoint_problem`
# finds that. Without Drive, pass `push_to_hub=True, hub_strategy="all_checkpoints", hub_always_push=True,
# hub_private_repo=True` to `GRPOConfig`. The trainer then pushes each checkpoint to a private repository (never run).
#
# **Save checkpoints where they outlive the session.**

# %% [markdown]
# ## 9. Cheat sheet
#
# | step or symptom | check | do |
# |---|---|---|
# | end of a stage | Does the folder contain `adapter_model.safetensors`? | call `policy.save_pretrained(folder)` |
# | start of the next stage | Is the number of trainable parameters above 0? | load with `is_trainable=True`, build a new `GRPOTrainer` |
# | unclear benefit of stages | Does the interval over the seeds contain 0? | compare with one stage that has the same steps and rows |
# | risk of a crash | Are there two `checkpoint-N` folders? | set `save_strategy="steps"`, `save_steps`, `save_total_limit=2` |
# | interrupted run | Which checkpoint does `newest_checkpoint` return? | pass it as `resume_from_checkpoint` |
# | error when resuming | What does `checkpoint_problem` say? | resume from the previous checkpoint |
# | new value for a setting | What did it do when we measured it? | read [settings](../docs/settings.md), change one setting at a time |
#
# **Between stages, carry over the adapter. Within a stage, resume from the whole checkpoint.**

# %% [markdown]
# ## 10. Exercises
#
# **Exercise 1.** A comparison over seeds gives an interval from `low` to `high` for the difference in accuracy. Write
# `verdict(low, high)`, which returns `"rose"`, `"fell"` or `"no improvement shown"`.


# %%
def verdict(low: float, high: float) -> str:
    """Your answer: one of the three strings."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

NONE = "no improvement shown"
INTERVALS = [((-0.049, 0.052), NONE), ((0.01, 0.2), "rose")]
INTERVALS += [((-0.3, -0.1), "fell"), ((0.0, 0.1), NONE)]
INTERVALS += [((-0.1, 0.0), NONE)]
HINTS = [("rose", "Is the whole interval above 0?")]
HINTS += [("fell", "Is the whole interval below 0?")]
print(check_exercise("Exercise 1", verdict, INTERVALS, HINTS))

# %% [markdown]
# **Exercise 2.** Write `resume_from(checkpoints, every)`. `checkpoints` is a list of pairs `[step, complete]`, in which
# `complete` says whether the checkpoint was fully written. Each batch of completions serves `every` steps. What is the
# last step from which a run can resume with the same result? Return 0 if there is none.
#
# **Try both before you unfold the solutions below.** [Lesson 06](06_evaluation.ipynb) explains the tests of section 4.
# *Curriculum learning* (Bengio et al. 2009, ICML) is the classic paper on curricula.


# %%
def resume_from(checkpoints: list, every: int) -> int | None:
    """Your answer: a step, or 0."""


# %% tags=["nbval-check-output"]
LEFT = [
    (([[10, True], [20, True], [30, False]], 1), 20),
    (([[100, True], [9, True]], 1), 100),
    (([[10, True], [15, True]], 2), 10),
    (([[10, False]], 1), 0),
]
HINTS = [(30, "Step 30 is not complete. Which one is?")]
HINTS += [(9, "Step 9 is not the newest. Which one is?")]
HINTS += [(15, "Step 15 is in the middle of a batch. Which is not?")]
print(check_exercise("Exercise 2", resume_from, LEFT, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: only an interval that does not contain 0 shows a change. An interval that ends at 0 contains 0.
#
# Exercise 2: keep the complete checkpoints at steps where new completions are sampled, and take the highest step.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def verdict_solution(low: float, high: float) -> str:
    if low > 0:
        return "rose"
    return "fell" if high < 0 else "no improvement shown"


print(check_exercise("Exercise 1, solution", verdict_solution, INTERVALS))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def resume_solution(checkpoints: list, every: int) -> int:
    fit = [step for step, whole in checkpoints if whole and not step % every]
    return max(fit, default=0)


print(check_exercise("Exercise 2, solution", resume_solution, LEFT))
