# %% [markdown]
# # 04 · Reading a run: what goes wrong and how to see it
#
# {{badges}}
#
# **You will be able to** tell a run that learns from one that only runs: see in the log, within
# twenty steps, that a reward is dead, that groups tie, that a policy collapses, runs away, is cut
# off, or is paid for the wrong thing; and know what to change.
#
# A run that is broken seldom stops. It trains to the end, hours later, and its loss looks like that of a
# good one. So this lesson breaks eight runs on purpose, each for real, shows its curves beside a
# healthy run, and mends it.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 3 minutes ([measured](../docs/results.md)) | never run |
# | memory | 1.3 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# **While it trains**, cover the text below a figure and name the fault from the curves alone.
#
# 1. Settings
# 2. A healthy run
# 3. What every number means
# 4. Three claims about these numbers
# 5. A dead reward
# 6. Every group tied
# 7. A learning rate that is too high
# 8. The policy runs away
# 9. Everything cut off
# 10. An end that never comes
# 11. Plain strings
# 12. Paid for length
# 13. Errors, files, and runs of your own
# 14. Exercises
#
# You need the words of [lesson 03](03_grpo_lora.ipynb): GRPO samples a *group* of completions for each
# prompt, scores each with the rewards, and makes those likelier that scored above their group's mean. That
# difference is the *advantage*; the model in training is the *policy*.

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
STEPS: int = 0  # optimizer steps of the healthy run; 0: the lesson's 20
SEED: int = 0  # everything random follows from it

# %% [markdown]
# A run of the tiny model fails within seconds, so that is what this lesson trains, on the CPU,
# whatever else the machine has.

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
)

find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 20
prepare_machine(profile)
print(f"{profile.models[FAMILY]}, {steps} healthy steps, on the CPU")

# %% [markdown]
# ## 2. A healthy run
#
# Two-digit additions, to be answered in the form `<reasoning>…</reasoning><answer>…</answer>`, and
# the rewards of lesson 03: correctness with weight 2, the strict form and its parts with 0.5 each.

# %%
from grpo_utils import load_rows, math_rewards

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 16, SEED)
rewards, weights = math_rewards()
print(train_rows[0]["prompt"][-1]["content"], train_rows[0]["answer"])
print([reward.__name__ for reward in rewards], weights)

# %% [markdown]
# What a run leaves goes into a folder. If an earlier one is there, it is renamed and kept.

# %%
from grpo_utils import start_run

folder, said = start_run("outputs/reading")
print(said)

# %% [markdown]
# Each run below starts from the same fresh adapter (the trainable part beside the frozen model) and
# differs from the healthy one in what the call names, and in nothing else. The learning rate is that with which
# lesson 03 begins, and stays constant, so that step 10 of one run can be compared with step 10 of another.

# %%
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import keep_trainable_fp32, load_policy, training_arguments


def settings_of(name: str, changes: dict) -> GRPOConfig:
    usual = dict(
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        max_steps=12,
        seed=SEED,
        output_dir=str(folder / name),
    )
    return GRPOConfig(**training_arguments(profile, **{**usual, **changes}))


# %% [markdown]
# The `HealthCallback` reads the log while it is written. It says **once** what is wrong, and every so
# often it puts a few held-out prompts to the policy and keeps the answers in a file.

# %%
from grpo_check import HealthCallback


def build(name, rewards, weights, rows, every, **changes) -> GRPOTrainer:
    policy, tokenizer = load_policy(
        profile.models[FAMILY],
        profile=profile,
        backend="transformers",
        load_in_4bit=False,
        seed=SEED,
    )
    changes = {"reward_weights": weights, **changes}
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings_of(name, changes),
        train_dataset=rows,
        reward_funcs=rewards,
        callbacks=[HealthCallback(test_rows, every=every)],
    )
    keep_trainable_fp32(policy)
    return trainer


# %%
import transformers
from transformers.trainer_callback import PrinterCallback

transformers.logging.set_verbosity_error()


def train(name, rewards=rewards, weights=weights, rows=train_rows, **changes):
    """Train, and give back what was logged."""
    every = changes.pop("every", 1000)
    trainer = build(name, rewards, weights, rows, every, **changes)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer.state.log_history


# %% [markdown]
# Now the healthy run, about 10 seconds.

# %%
healthy = train("healthy", max_steps=steps, every=10)

# %% [markdown]
# The last line is the verdict. `healthy` means that nothing wrong is seen. It is no proof that the
# policy got better: that takes held-out prompts, as in [lesson 06](06_evaluation.ipynb).

# %%
from grpo_utils import logged, reward_curve, show

names = [reward.__name__ for reward in rewards]
start, end = (logged(healthy, "reward")[i] for i in (0, -1))
show(
    reward_curve(healthy, names),
    alt=f"Three mean rewards over {steps} steps, all rising; their weighted "
    f"sum goes from {start:.2f} to {end:.2f}.",
)

# %% [markdown]
# The samples that the callback kept are text files for you to read. Here is the beginning of
# `samples.txt`, and below it `checks.csv`: one line for each check, with the share in form and its 95 %
# interval (`low` to `high`).

# %%
kept = folder / "healthy" / "health"
if (kept / "samples.txt").exists():
    print((kept / "samples.txt").read_text()[:420], "...\n")
    print((kept / "checks.csv").read_text())

# %% [markdown]
# ## 3. What every number means
#
# TRL logs these at each step. Keep the table at hand; the last two columns are from the run above.
# (A *nat* is the unit of entropy and KL, 1.44 bits. The *ratio*, which is clipped, is explained in lesson 08.)

# %%
from IPython.display import Markdown, display

from grpo_check import metrics_table

display(Markdown(metrics_table(healthy)))

# %% [markdown]
# Is the table whole? We look up every metric that the run logged.

# %% tags=["nbval-check-output"]
from grpo_check import what_is

logged_keys = {key for entry in healthy if "reward" in entry for key in entry}
print("without a meaning:", sorted(k for k in logged_keys if not what_is(k)))

# %% [markdown]
# Five of them carry the diagnosis: **`reward`** and the single rewards (what is learned),
# **`frac_reward_zero_std`** (whether anything *can* be learned), **`entropy`** (whether the policy still
# varies), **`completions/clipped_ratio`** (whether answers are cut off), and, where `beta` is above
# zero, **`kl`** (how far the policy has gone). Unsloth's own trainer on a GPU logs no `entropy`, and it logs `kl` as 0.0
# when `beta` is 0 (simulated).

# %% [markdown]
# ## 4. Three claims about these numbers
#
# They stand in many tutorials. We hold a number against each.
#
# **Claim 1: "the loss starts at zero and rises; it is the KL divergence".** The healthy run had
# `beta=0`, the default. Was any KL logged? And what did the loss do while the reward rose?

# %% tags=["nbval-check-output"]
print("kl logged with beta = 0:", "kl" in logged_keys)

# %%
loss, reward = logged(healthy, "loss"), logged(healthy, "reward")
print(f"reward: {reward[0]:.2f} -> {reward[-1]:.2f}")
print(f"loss:   {loss[0]:.3f} -> {loss[-1]:.3f}", end="")
print(f", between {min(loss):.3f} and {max(loss):.3f}")

# %% [markdown]
# No KL, and a loss that stays within two tenths of zero, of either sign. Why? Advantages sum
# to zero in each group, so at the moment of the update the loss is (nearly) zero **however good or bad
# the policy is**. Only its gradient matters. With `loss_type="grpo"`, which weighs each completion
# alike, it is zero to the last digit. `dapo`, the default, weighs each token alike, and long
# completions then leave a small rest.

# %%
plain = train("plain-grpo", loss_type="grpo", max_steps=12)

# %% tags=["nbval-check-output"]
largest = max(abs(value) for value in logged(plain, "loss"))
gain = logged(plain, "reward")[-1] - logged(plain, "reward")[0]
print("the largest loss is below 0.000001:", largest < 1e-6)
print("the reward rose meanwhile:", gain > 0.1)

# %% [markdown]
# **Claim 2: "the loss is beta times the KL".** That one is nearly right, if `beta` is above zero, the loss is
# `grpo`, and each batch is used once. Then all that is left of the loss is the KL term (averaged over
# completions, while the logged `kl` is averaged over tokens):

# %%
pulled = train("with-beta", beta=0.04, loss_type="grpo", max_steps=12)

print(f"{'step':>4}{'loss':>10}{'0.04 x kl':>12}")
for step in (0, 3, 7, 11):
    entry = pulled[step]
    print(f"{step + 1:4}{entry['loss']:10.5f}{0.04 * entry['kl']:12.5f}")

# %% tags=["nbval-check-output"]
from math import isclose

pairs = [(e["loss"], 0.04 * e["kl"]) for e in pulled if "kl" in e]
near = all(isclose(a, b, rel_tol=0.2, abs_tol=1e-4) for a, b in pairs)
print("loss is beta x kl, within a fifth, at every step:", near)

# %% [markdown]
# So a rising loss then means that the policy moves away from its base, which it must, to learn. "Watch
# that KL stays below 0.5" is no advice at all for a run with `beta=0`: there is none to watch.
#
# **Claim 3: "`reward_std` above 0.1 means that the groups differ".** Section 6 shows a run in
# which it is false at every step.

# %% [markdown]
# ## 5. A dead reward
#
# The most copied fault in the field is a regular expression that can never match. In the best-known notebooks the
# dot meets line breaks without `re.DOTALL`. This one was written for another form: it demands a line break
# around every tag, and our form has none.

# %%
import re

from grpo_utils import completion_text

PATTERN = r"^<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$"


def pattern_reward(completions, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(bool(re.match(PATTERN, text))) for text in texts]


dead = train("dead", [rewards[0], pattern_reward], [2.0, 1.0])

# %% [markdown]
# For the figures below, a function: some metrics of a run beside those of the healthy one.

# %%
from grpo_utils import run_curves


def beside(name: str, run: list[dict], *keys: str) -> None:
    said = []
    for key in keys:
        good, bad = logged(healthy, key), logged(run, key)
        if bad:
            ends = f"{bad[0]:.3g} to {bad[-1]:.3g} in the run '{name}'"
            good_ends = f"{good[0]:.3g} to {good[-1]:.3g}" if good else "none"
            said.append(f"{key}: {ends}, {good_ends} in the healthy run")
    show(run_curves({"healthy": healthy, name: run}, keys), "; ".join(said))


mean = "rewards/pattern_reward/mean"
beside("dead", dead, "reward", mean)

# %% [markdown]
# The curve on the right lies on zero. The left one **rises**: correctness alone is learned, since it reads
# the answer out of the tags. A glance at `reward` misses the fault, and with it goes the half of the work
# that the dead reward was to do. The verdict looks at each reward's own standard deviation:

# %%
from grpo_check import diagnose

print(diagnose(dead)[0])

# %% [markdown]
# From here on we note for every run the code, and the step at which it could be known: we diagnose the
# first step alone, then two, and so on. (A table at the end of section 12 has them all.)


# %%
def known_at(run: list[dict], code: str) -> int:
    """The first step at which the log shows the fault; 0 if it never does."""
    for step in range(1, len(run) + 1):
        seen = [entry for entry in run if entry["step"] <= step]
        if code in [verdict.code for verdict in diagnose(seen)]:
            return step
    return 0


# %% tags=["nbval-check-output"]
known = {}


def check(run: list[dict], code: str) -> None:
    known[code] = known_at(run, code)
    print(f"{code}: {code in [v.code for v in diagnose(run)]}", end=", ")
    print(f"within 20 steps: {0 < known[code] <= 20}")


check(dead, "dead_reward")

# %% [markdown]
# **The mend**: a pattern for the form that was asked for (with `re.DOTALL`, should a completion have several lines). Better
# still, probe a reward before training, as [lesson 02](02_rewards.ipynb) does.

# %%
FORM = r"<reasoning>.*?</reasoning>\s*<answer>.*?</answer>"


def form_reward(completions, **kwargs) -> list[float]:
    texts = [completion_text(completion).strip() for completion in completions]
    return [float(bool(re.fullmatch(FORM, t, re.DOTALL))) for t in texts]


mended = train("dead-mended", [rewards[0], form_reward], [2.0, 1.0])

# %% tags=["nbval-check-output"]
form = logged(mended, "rewards/form_reward/mean")
print("the form is learned now:", form[-1] > form[0] + 0.2)
print("still dead:", "dead_reward" in [v.code for v in diagnose(mended)])

# %% [markdown]
# ## 6. Every group tied
#
# This reward has a slip in it that no one sees at once: it looks at the gold answer and never at the
# completion. So all completions of one prompt get the same score.


# %%
def slip_reward(completions, answer, **kwargs) -> list[float]:
    return [float(int(gold) > 100) for gold in answer]


tied = train("tied", [slip_reward], [1.0], max_steps=12)

# %%
beside("tied", tied, "reward_std", "frac_reward_zero_std", "grad_norm")

# %% [markdown]
# Look at the left panel first. `reward_std` is well above 0.1: the **prompts** differ. In the middle,
# `frac_reward_zero_std` is 1.0: within each **group** nothing differs. An advantage compares a
# completion with its own group, so all are zero, and so is the gradient, on the right. That is claim 3.

# %% tags=["nbval-check-output"]
spread, gradient = logged(tied, "reward_std"), logged(tied, "grad_norm")
print("reward_std above 0.1 on average:", sum(spread) / len(spread) > 0.1)
print("gradient zero at every step:", max(gradient) == 0.0)
check(tied, "no_gradient")

# %% [markdown]
# Most runs with tied groups have no such slip. Their prompts are too hard (all wrong) or too easy (all
# right). In the last case the verdict is `saturated` instead, and no alarm: there is nothing left to
# learn. **The mend** here is to compare the answer with the completion, as
# `correctness_reward` does, and that is the healthy run.

# %% [markdown]
# ## 7. A learning rate that is too high
#
# Twenty-five times the healthy rate. Everything else is the same.

# %%
wild = train("wild", learning_rate=0.05, max_steps=12)

# %%
beside("wild", wild, "reward", "entropy", "completions/mean_length")

# %% [markdown]
# Within three or four steps the reward is gone. **Entropy** tells what became of the policy. The healthy run's falls
# slowly: it grows sure of what it does. In the collapsed run it moves at once, here upwards, to several nats per
# token: noise (a policy that picked from all of its 512 tokens at random would have 6.2). In other collapses it
# sinks: the same few tokens, over and over.

# %% tags=["nbval-check-output"]
check(wild, "mode_collapse")

# %% [markdown]
# The verdict is one, `mode_collapse`, although groups tie now and completions are cut off too: those are
# consequences, and are not told beside their cause. A collapsed policy does not come back, for noise
# never earns a reward again. **The mend**: go back to a checkpoint and divide the rate by ten. The healthy run is this run
# with a lower rate.

# %% [markdown]
# ## 8. The policy runs away
#
# With `beta` above zero TRL keeps a frozen *reference model* (the base without its adapter) and logs the
# *KL divergence* from it: how much likelier, in nats a token, the policy finds its own words than the
# reference does. Pulled back by `beta=0.04`, the same wild rate shows itself there:

# %%
away = train("away", beta=0.04, learning_rate=0.05, max_steps=15)

# %% [markdown]
# The callback **stopped** the run. This cannot be mended by more steps, so it saved policy and log in a
# folder of their own, where no good checkpoint is rotated away for them.

# %%
print(f"{'step':>4}{'kl, healthy rate':>18}{'kl, wild rate':>16}")
for step, kl in enumerate(logged(away, "kl")):
    print(f"{step + 1:4}{logged(pulled, 'kl')[step]:18.3f}{kl:16.3f}")

# %% tags=["nbval-check-output"]
check(away, "kl_explosion")
print("stopped early:", len(logged(away, "kl")) < 15)

# %% [markdown]
# The left column is the run of claim 2, whose rate is 25 times lower: that is **the mend**. Its KL rises
# too, but slowly (see claim 2): learning is a distance.
#
# Only two things stop a run: weights that are no number, and this. `mode_collapse` only speaks, since a
# sudden jump to much harder prompts looks like it in the log.

# %% [markdown]
# ## 9. Everything cut off
#
# The wanted form takes 17 to 24 tokens of this model, with its end. We allow 8.

# %%
short = train("short", max_completion_length=8, max_steps=10)

# %%
right = "rewards/correctness_reward/mean"
beside("short", short, "completions/clipped_ratio", right, "reward")

# %% [markdown]
# All is cut off from the first step (left). Correctness (middle) stays at zero, as the answer comes last. The
# reward (right) rises a little and stops: the beginning of the form is paid, its end is never reached.

# %% tags=["nbval-check-output"]
check(short, "all_truncated")

# %% [markdown]
# **The mend** is a limit with room: the healthy run's 32. Before you train, look at how long a right answer
# in the asked form is, in tokens; `preflight` does that (section 13).

# %% [markdown]
# ## 10. An end that never comes
#
# A completion ends when the model says the *end-of-sequence token* (EOS). Chat models end a
# turn with a token of their own, and many a tokenizer file names another one as EOS. Then the model does say
# its end, and nobody listens. Here is that fault: the trainer is told to wait for the padding token.


# %%
def train_without_end(name: str, **changes) -> list[dict]:
    trainer = build(name, rewards, weights, train_rows, 1000, **changes)
    tokenizer = trainer.processing_class
    trainer.eos_token_id = tokenizer.pad_token_id
    trainer.generation_config.eos_token_id = tokenizer.pad_token_id
    tokenizer.eos_token = tokenizer.pad_token
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer.state.log_history


endless = train_without_end("endless", max_steps=12)

# %%
ended = "completions/mean_terminated_length"
beside("endless", endless, "completions/clipped_ratio", ended, "reward")

# %% [markdown]
# `clipped_ratio` is 1.0 from the first step and `mean_terminated_length` 0: not one completion has ended. (The
# reward may rise all the same, for what stands before the end that nobody hears is still scored. But every
# step takes the longest time, and all the noise behind the answer is trained as well.)
#
# In the log these two numbers are the same as in section 9. So the callback, when it sees them, asks the policy once with four
# times the room, and the verdict holds what came of it:

# %%
print("section 9: ", diagnose(short)[0].seen)
print("section 10:", diagnose(endless)[0].seen)

# %% tags=["nbval-check-output"]
check(endless, "no_eos")

# %% [markdown]
# **The mend**: give the tokenizer the EOS token that the chat template ends a turn with. (Again that is the healthy
# run.)

# %% [markdown]
# ## 11. Plain strings
#
# TRL puts a prompt into the chat template if it is a list of messages, and **only** then. A plain string goes to
# the model as it is, and a chat model does not know it is being asked.

# %%
from datasets import Dataset

bare = [
    {"prompt": prompt[-1]["content"], "answer": answer}
    for prompt, answer in zip(train_rows["prompt"], train_rows["answer"])
]
print(repr(bare[0]["prompt"]))
strings = train("strings", rows=Dataset.from_list(bare), max_steps=12)

# %%
beside("strings", strings, "reward", "completions/mean_length", "entropy")

# %% [markdown]
# Almost no reward, and nothing raised an error. Large chat models given plain strings have been seen never to end
# their answer, so that everything is cut off (as in section 10); this small one answers, mostly soon, and mostly nonsense. From the log
# alone that is a dead reward like any other. The callback has seen the prompts themselves, and so it knows:

# %% tags=["nbval-check-output"]
check(strings, "string_prompt")

# %% [markdown]
# **The mend** is the healthy run's data: `chat_prompt(question)` makes a list of messages.

# %% [markdown]
# ## 12. Paid for length
#
# "Long reasoning is good reasoning", so someone pays for length: weight 3 for up to 200 characters. Correctness
# is only watched, with weight 0. To let it unfold quickly, the rate is twice the healthy one and the limit 64.


# %%
def length_reward(completions, **kwargs) -> list[float]:
    lengths = [len(completion_text(completion)) for completion in completions]
    return [min(1.0, length / 200) for length in lengths]


LONG = dict(max_completion_length=64, learning_rate=4e-3)
paid = [length_reward, rewards[0]]
long = train("long", paid, [3.0, 0.0], max_steps=16, **LONG)

# %%
beside("long", long, "reward", "completions/mean_length", right)

# %% [markdown]
# The **reward rises beautifully** (left), and this is the best-looking curve of the lesson. Lengths (middle) go up
# to the limit, and correctness (right) ends at or near zero: the policy writes on and on. No single metric shows the
# fault. Two together do: one reward rises while the truth falls.

# %% tags=["nbval-check-output"]
check(long, "length_hacking")

# %% [markdown]
# `reward_hacking_suspected` is the same for rewards of any other kind. Both need a reward that
# measures the truth in the log; it may have the weight 0.0, then it is only watched. **The mend**: pay length only
# where the answer is right, and less than the answer.


# %%
def length_if_right(completions, answer, **kwargs) -> list[float]:
    lengths = length_reward(completions)
    correct = rewards[0](completions, answer=answer)
    return [score * length for score, length in zip(correct, lengths)]


paid = [length_if_right, rewards[0]]
honest = train("honest", paid, [0.5, 3.0], max_completion_length=64)

# %% tags=["nbval-check-output"]
good = logged(honest, right)
print("correctness rises now:", sum(good[-5:]) > sum(good[:5]))
print("hacked:", "length_hacking" in [v.code for v in diagnose(honest)])

# %% [markdown]
# So early could each of the eight be known. Ten steps are the least: before, nothing but a KL, a NaN or a string is
# judged, since ordinary noise looks like a trend.

# %%
for code, step in known.items():
    print(f"{code:16} step {step:2}")

# %% [markdown]
# ## 13. Errors, files, and runs of your own
#
# **Out of memory** shows in no log: the run just ends. The exception has a verdict too. Here is a real one: a
# tensor of four petabytes.

# %%
import torch

from grpo_check import diagnose_error

try:
    torch.empty(1 << 50)
except RuntimeError as error:
    print(diagnose_error(error))

# %% [markdown]
# The order of the list is the order in which to try: the first knobs change nothing but time, the last ones the
# training itself.
#
# **Any log you have**, of today's TRL or of an old one, can be judged from a terminal. Every checkpoint holds a
# `trainer_state.json`; this is the one that was saved when the run of section 8 was stopped.

# %%
import subprocess
import sys

lost = next((folder / "away").glob("lost-at-step-*"))
command = [sys.executable, "-m", "grpo_check", "health", str(lost)]
print("python -m grpo_check health", lost, end="\n\n")
print(subprocess.run(command, capture_output=True, text=True).stdout)

# %% [markdown]
# **Before** a run, `preflight` finds in seconds what can be known without training: among the faults of this lesson the
# tokens of section 10, the strings of section 11, and a limit as in section 9. Here it is on the data of
# section 11:

# %%
from transformers import AutoTokenizer

from grpo_check import preflight
from grpo_utils import model_path

report = preflight(
    training_arguments(profile, max_steps=12),
    tokenizer=AutoTokenizer.from_pretrained(
        model_path(profile.models[FAMILY])
    ),
    train=Dataset.from_list(bare),
    profile=profile,
)
print(*report.findings, sep="\n")

# %% [markdown]
# In a training of your own, add one line: `trainer.add_callback(HealthCallback(test_rows))`. It keeps samples every 100 steps
# (`every=25` for a short run). If your correctness reward has a name that does not say so, name it:
# `HealthCallback(test_rows, correctness=["my_reward"])`. What it looks at and every
# threshold, each with its source, stand in `grpo_check/health/`; they were measured on the two tiny
# models and are no law. [Troubleshooting](../docs/troubleshooting.md) has every code and many an error text.

# %% [markdown]
# ## 14. Exercises
#
# ### Exercise 1: the sign of tied groups
#
# Write `share_tied(rewards, num_generations)`: of the groups (one after the other in `rewards`),
# which share has the same score throughout? This is `frac_reward_zero_std`.


# %%
def share_tied(rewards: list[float], num_generations: int) -> float | None:
    """Your answer: the share of tied groups."""
    return None


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

GROUPS = [
    (([3.0, 3.0, 1.0, 1.0], 2), 1.0),
    (([3.0, 1.0, 3.0, 1.0], 2), 0.0),
    (([0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 2.0], 4), 0.5),
]
print(check_exercise("Exercise 1", share_tied, GROUPS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. The first two cases hold the same four numbers, with the same
# standard deviation over the batch; in one nothing can be learned, in the other all groups teach.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]


def share_tied_solution(rewards: list[float], num_generations: int) -> float:
    starts = range(0, len(rewards), num_generations)
    groups = [rewards[start : start + num_generations] for start in starts]
    return sum(len(set(group)) == 1 for group in groups) / len(groups)


print(check_exercise("Exercise 1, solution", share_tied_solution, GROUPS))

# %% [markdown]
# ### Exercise 2: three runs that you have not seen
#
# The next cell, which is folded, trains three runs and shuffles them. Do not open it: read the curves. What are their codes? Where several
# fit, the cause counts, not what follows from it. Fill in `codes`, one for each run from a to c. (Each is one of `dead_reward`, `no_gradient`,
# `all_truncated`, `mode_collapse`, `no_learning`, `healthy`. A run has `no_learning` where groups differ, and yet
# the reward has not risen by more than chance.)

# %% cellView="form" jupyter={"source_hidden": true}
import contextlib
import io
import random


def tone_reward(completions, **kwargs) -> list[float]:
    return [0.5 for _ in completions]


with contextlib.redirect_stdout(io.StringIO()):  # the callback would tell
    toned = dict(rewards=[rewards[0], tone_reward], weights=[1.0, 1.0])
    mystery = {
        "mode_collapse": train("x1", learning_rate=0.08, max_steps=20),
        "no_learning": train("x2", learning_rate=1e-7, max_steps=20),
        "dead_reward": train("x3", **toned, max_steps=20),
    }
hidden = random.Random(SEED + 1).sample(sorted(mystery), k=3)

# %%
KEYS = ["reward", "entropy", "grad_norm", "frac_reward_zero_std"]
three = {label: mystery[code] for label, code in zip("abc", hidden)}
ends = {
    label: [round(logged(run, key)[-1], 3) for key in KEYS]
    for label, run in three.items()
}
show(run_curves(three, KEYS), alt=f"Last values of {KEYS}: {ends}")

# %%
for label, run in three.items():
    last = run[-2]  # the last entry is the summary of the whole training
    single = [k for k in last if k.startswith("rewards/")]
    print(
        label, {k.removeprefix("rewards/"): round(last[k], 2) for k in single}
    )

# %%
codes = ["", "", ""]  # your answer, for example ["healthy", …]


# %% tags=["nbval-check-output"]
def right_ones(said: list[str]) -> list[bool]:
    return [a == b for a, b in zip(said, hidden)] if any(said) else []


THREE = [((), [True, True, True])]
print(check_exercise("Exercise 2", lambda: right_ones(codes), THREE))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell lets `diagnose` answer. The run that lost all its reward at once has collapsed. The one whose curves
# are level although groups are not tied and the gradient is not zero has a rate of nearly nothing. In the third
# one a reward has a standard deviation of zero: it pays 0.5 to everything, while the other one is learned.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
answers = [diagnose(run)[0].code for run in three.values()]
name = "Exercise 2, solution"
print(check_exercise(name, lambda: right_ones(answers), THREE))

# %% [markdown]
# ### Exercise 3: a rule of your own
#
# Write `is_cut_off(log_history)`: is, at the last five logged steps, at least nine of ten completions cut off on
# average? Entries without the metric (the summary at the end) do not count.


# %%
def is_cut_off(log_history: list[dict]) -> bool | None:
    """Your answer: whether nearly all is cut off."""
    return None


# %% tags=["nbval-check-output"]
CASES = [((short,), True), ((healthy,), False), ((endless,), True)]


def say(found: bool | None) -> str:
    return "" if found is None else str(found)


def asked(function) -> list[str]:
    answers = [say(function(*arguments)) for arguments, _ in CASES]
    return answers if any(answers) else []


WANTED = [((), [str(wanted) for _, wanted in CASES])]
print(check_exercise("Exercise 3", lambda: asked(is_cut_off), WANTED))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. A rule needs a window: single steps of small batches are noisy.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def cut_off_solution(log_history: list[dict]) -> bool:
    newest = logged(log_history, "completions/clipped_ratio")[-5:]
    return sum(newest) / len(newest) >= 0.9


name = "Exercise 3, solution"
print(check_exercise(name, lambda: asked(cut_off_solution), WANTED))

# %% [markdown]
# ## What to take along
#
# - The loss says nothing. Look at each reward, `frac_reward_zero_std`, `entropy`, `clipped_ratio`, and samples.
# - `reward_std` is over the batch; whether groups tie stands in `frac_reward_zero_std`.
# - A rising reward proves that the reward rises. Log the truth beside it, with weight 0 if need be.
# - A broken run shows itself within twenty steps here. Look early, and stop it.
#
# Next: [lesson 05](05_stages.ipynb), training in stages. To read: TRL's page on GRPO, "Logged metrics";
# Liu et al. 2025, *Understanding R1-Zero-like training* (arXiv 2503.20783), on lengths and standard
# deviations; Yu et al. 2025, *DAPO* (arXiv 2503.14476), on tied groups, entropy and cut-off completions.
