# %% [markdown]
# # 04 · Reading a run
#
# Six runs are broken, and none of them stops with an error. In the first, the reward rises from
# {{logged(dead, "reward")[0]:.2f}} to {{logged(dead, "reward")[-1]:.2f}}, and {{logged(dead, CORRECT)[-1]:.0%}} of the last
# answers are correct.
#
# **Guess first:** what could be wrong with such a run? For each of the six, name the fault before you open the answer below its figure.
#
# You will be able to recognize a failing run in its log within twenty steps, name the cause, and fix it.
#
# Read [lesson 03](03_grpo_lora.ipynb) first, which trains a model with GRPO.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 3 minutes on a CPU, and 1.1 GB of memory.
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
#
# `setup_tiny` creates a folder for the logs.

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of each run; 0: the lesson's 20
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 20, "outputs/reading")

# %% [markdown]
# ## 2. Train a healthy run
#
# The task, format and rewards are those of lesson 03: two-digit addition problems, with reasoning and answer each in a pair
# of tags.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows, math_rewards

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 16, SEED)
rewards, weights = math_rewards()
for weight, function in zip(weights, rewards):
    print(f"{function.__name__:26} weight {weight}")

# %% [markdown]
# All runs share these settings. Each failing run changes one of them, or the rewards, the prompts or the tokenizer.

# %%
from trl import GRPOConfig, GRPOTrainer

BASE = dict(
    max_steps=run.steps,
    learning_rate=2e-3,
    lr_scheduler_type="constant",  # no schedule that bends the curves
    reward_weights=weights,
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions in a step: 8 groups
    max_completion_length=32,  # tokens
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    report_to="none",
    logging_steps=1,
    disable_tqdm=True,
    seed=SEED,
)
HOW = dict(  # for load_policy
    profile=run.profile,
    backend="transformers",
    load_in_4bit=False,  # the base in fp32
    seed=SEED,
)


def config_of(name, **own) -> GRPOConfig:
    """The settings of a run, with changes of its own."""
    return GRPOConfig(output_dir=f"{run.folder}/{name}", **BASE | own)


# %% [markdown]
# `load_policy` loads the base model and adds an untrained adapter. `HealthCallback` checks the log at every step, and lets the
# policy answer 16 held-out prompts every 10 steps.

# %%
from contextlib import redirect_stdout
from io import StringIO

from grpo_check import HealthCallback
from grpo_utils import load_policy


def train(config, functions=rewards, rows=train_rows, end=None) -> list:
    policy, tokenizer = load_policy(run.model, **HOW)
    tokenizer.eos_token = end or tokenizer.eos_token  # for section 7
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=config,
        train_dataset=rows,
        reward_funcs=functions,
        callbacks=[HealthCallback(test_rows, every=10)],
    )
    with redirect_stdout(StringIO()):  # hide messages that name the fault
        trainer.train()
    return trainer.state.log_history


# %%
from grpo_check import diagnose
from grpo_utils import logged, show_run_curves

healthy = train(config_of("healthy"))
KEYS = ["reward", "frac_reward_zero_std", "entropy"]
show_run_curves({"healthy": healthy}, KEYS)
print(diagnose(healthy)[0])

# %% [markdown]
# In this lesson's figures, blue marks what you want, such as a healthy run, and orange what to distrust.
#
# - **`reward`** rises from {{logged(healthy, 'reward')[0]:.2f}} to {{logged(healthy, 'reward')[-1]:.2f}}. The maximum is
#   {{sum(weights):.2f}}, the sum of the weights.
# - **`frac_reward_zero_std`**, the share of *tied* groups (all completions score the same), rises to
#   {{logged(healthy, 'frac_reward_zero_std')[-1]:.2f}}, because most groups now contain only correct answers.
# - *Entropy* measures how uncertain the policy is about its next token, in *nats* (0.69 nats are one bit). It falls
#   slowly, from {{logged(healthy, 'entropy')[0]:.2f}} to {{logged(healthy, 'entropy')[-1]:.2f}}.
#
# `diagnose` lists its findings, causes first. Here the first one says that nothing is wrong.

# %% [markdown]
# ## 3. Read five numbers first
#
# The log has one dictionary per step. The next cell lists its keys, and compares the reward with the *loss*, the number
# that training minimizes.

# %%
import textwrap

names = ", ".join(sorted(healthy[0]))
print(textwrap.fill(names, 79, break_on_hyphens=False), end="\n\n")
for key in ("reward", "loss"):
    values = logged(healthy, key)
    print(f"{key:6}  first {values[0]:6.3f}  last {values[-1]:6.3f}", end="")
    print(f"  lowest {min(values):6.3f}  highest {max(values):6.3f}")

# %% [markdown]
# As in lesson 03, the loss stayed near 0, between {{min(values):.2f}} and {{max(values):.2f}}, while the reward tripled. It does so for good and bad
# policies alike.
#
# Read these five numbers instead:
#
# - `rewards/NAME/mean` and `rewards/NAME/std`: the mean and the spread of each reward.
# - `frac_reward_zero_std`: the share of tied groups.
# - `entropy`: whether the policy still varies its answers. (Unsloth's GPU trainer does not log it.)
# - `completions/clipped_ratio`: the share of *truncated* completions, cut off at `max_completion_length`.
# - `kl`: the *KL divergence*, how far the policy has moved from the *reference model* (the frozen base). TRL logs it
#   only if *beta*, the strength of the pull back to that model, is above its default, 0.
#
# The [metrics page](../grpo_check/docs/checks.md#metrics-of-the-log) has all metrics, with healthy ranges.
#
# **The loss shows almost nothing; these five numbers show most faults.**

# %% [markdown]
# ## 4. Find a fault that the sum hides
#
# In this run, `pattern_reward` replaces the two format rewards. The reward rises. What is wrong?

# %%
import re

PATTERN = r"^<reasoning>\n.*?\n</reasoning>\n<answer>\n.*?\n</answer>\n$"


def pattern_reward(completions, **kwargs) -> list[float]:
    texts = [completion[0]["content"] for completion in completions]
    return [float(bool(re.match(PATTERN, text))) for text in texts]


dead = train(
    config_of("dead", reward_weights=[2.0, 1.0]), [rewards[0], pattern_reward]
)
CORRECT = "rewards/correctness_reward/mean"
KEYS = ["reward", CORRECT, "rewards/pattern_reward/mean"]
show_run_curves({"healthy": healthy, "this run": dead}, KEYS)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Only the lowest panel shows the fault: `pattern_reward` is always 0. A reward that gives every completion the same score is a
# *dead reward*. The pattern requires line breaks around the tags, but the prompt does not ask for them and the policy writes
# none. The fix is a pattern that matches the prompt's format.
# </details>

# %%
print(diagnose(dead)[0])

# %%
FORMAT = r"<reasoning>.*?</reasoning>\s*<answer>.*?</answer>"


def format_reward(completions, **kwargs) -> list[float]:
    texts = [completion[0]["content"].strip() for completion in completions]
    return [float(bool(re.fullmatch(FORMAT, t, re.DOTALL))) for t in texts]


fixed = train(
    config_of("fixed", reward_weights=[2.0, 1.0]), [rewards[0], format_reward]
)
KEYS = ["reward", CORRECT, "rewards/format_reward/mean"]
show_run_curves({"before the fix": dead, "after the fix": fixed}, KEYS)

# %% [markdown]
# After the fix, the share of correctly formatted answers rises to {{logged(fixed, KEYS[-1])[-1]:.2f}}. The share of correct answers hardly differs
# ({{logged(fixed, CORRECT)[-1]:.2f}} and {{logged(dead, CORRECT)[-1]:.2f}}), because `correctness_reward` pays only for answers in tags: that reward taught the tags in both runs.
#
# **Plot every reward separately, because their sum hides a dead one.**

# %% [markdown]
# ## 5. Find out why nothing is learned
#
# This run uses a single, hastily written reward. Which panel shows the fault?


# %%
def quick_reward(completions, answer, **kwargs) -> list[float]:
    return [float(int(gold) > 100) for gold in answer]


tied = train(config_of("tied", reward_weights=[1.0]), [quick_reward])
KEYS = ["reward_std", "frac_reward_zero_std", "grad_norm"]
show_run_curves({"healthy": healthy, "this run": tied}, KEYS)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Within each group, all scores are equal: `frac_reward_zero_std` is {{logged(tied, 'frac_reward_zero_std')[-1]:.2f}}. So all advantages are 0, and so is
# `grad_norm`, the length of the *gradient* (how to change each weight): {{max(logged(tied, 'grad_norm')):g}} at every step. The policy never changed.
#
# `reward_std` hides this. It is the spread of the scores in the whole batch, and ends at {{logged(tied, 'reward_std')[-1]:.2f}} (healthy run: {{logged(healthy, 'reward_std')[-1]:.2f}}).
#
# `quick_reward` reads only the gold answer, which is the same for a whole group. To fix the reward, compare this answer with the completion.
# </details>

# %%
print(diagnose(tied)[0])

# %% [markdown]
# The healthy run also ends with {{logged(healthy, 'frac_reward_zero_std')[-1]:.2f}} of its groups tied, but these are *saturated*: all their answers are correct. (With
# `scale_rewards="batch"` or GDPO, TRL computes `frac_reward_zero_std` from the whole batch. It then does not show tied groups.)

# %% [markdown]
# ## 6. Change one number
#
# This run has another learning rate. What happened to the policy?

# %%
wild = train(config_of("wild", learning_rate=0.05))
KEYS = ["reward", "entropy", "completions/mean_length"]
show_run_curves({"healthy": healthy, "this run": wild}, KEYS)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The policy has collapsed. The reward falls to {{logged(wild, 'reward')[-1]:.2f}}, and the held-out sample printed below is noise. Entropy starts at {{logged(wild, 'entropy')[0]:.2f}} nats, jumps far above that, and ends
# at {{logged(wild, 'entropy')[-1]:.2f}}. (Choosing among all 512 tokens at random would give 6.24.)
#
# The cause is a learning rate 25 times that of the healthy run. Noise earns almost no reward, so the policy does not recover,
# however long you wait. Go back to a *checkpoint*, a saved copy of the run, and divide the learning rate by ten or more.
# </details>

# %%
print(diagnose(wild)[0])
samples = (run.folder / "wild/health/samples.txt").read_text()
print(*samples.splitlines()[:4], sep="\n")

# %% [markdown]
# ## 7. Distinguish two causes of truncation
#
# A completion ends with *EOS*, the end-of-sequence token. One of the next two runs cuts completions off too early. The
# other waits for a token that the model never writes. Which one is A? Guess from the curves, not from the code.

# %%
import transformers

short = train(config_of("a", max_completion_length=8))
base, tokenizer = load_policy(run.model, **HOW)
transformers.logging.set_verbosity_error()  # no warning about this EOS
endless = train(config_of("b"), end=tokenizer.pad_token)
KEYS = ["completions/clipped_ratio", "completions/mean_length", "reward"]
show_run_curves({"healthy": healthy, "A": short, "B": endless}, KEYS)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# A is the run with the short limit. Nearly all completions are truncated in both runs, but the reward of A ends at {{logged(short, 'reward')[-1]:.2f}},
# because the answer comes last and is never written. The reward of B ends at {{logged(endless, 'reward')[-1]:.2f}}: its completions contain the whole answer
# and only fail to stop.
#
# `HealthCallback` samples once more with four times the limit. If the completions end, as in A, raise `max_completion_length`.
# If they do not, as in B, set `tokenizer.eos_token` to the token that ends a turn in the chat template.
# </details>

# %%
for name in "ab":
    page = (run.folder / name / "health/verdicts.txt").read_text()
    print(f"{name.upper()}:", *page.splitlines()[:2], sep="\n")

# %% [markdown]
# ## 8. Find a fault that is there at step 1
#
# This run has the same questions, rewards and settings as the healthy run. Look at the first step only.

# %%
from datasets import Dataset

asked = [messages[-1]["content"] for messages in train_rows["prompt"]]
rows = Dataset.from_dict({"prompt": asked, "answer": train_rows["answer"]})
strings = train(config_of("strings"), rows=rows)
KEYS = ["reward", "completions/mean_length", "entropy"]
show_run_curves({"healthy": healthy, "this run": strings}, KEYS)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The fault is in the input. At step 1, neither policy has learned anything, but the reward is {{logged(strings, 'reward')[0]:.2f}} instead of {{logged(healthy, 'reward')[0]:.2f}},
# and entropy is {{logged(strings, 'entropy')[0]:.2f}} instead of {{logged(healthy, 'entropy')[0]:.2f}}.
#
# Each prompt is a plain string. TRL applies the chat template only to lists of messages, and says nothing when it gets
# something else. The fix is a list, `[{"role": "user", "content": question}]`, with the system prompt before it.
# [`preflight`](../grpo_check/docs/checks.md#preflight) finds this fault before training.
# </details>

# %%
print(diagnose(strings)[0])

# %% [markdown]
# ## 9. Ask the questions in this order
#
# This flow chart sums up the runs above. Causes come before symptoms, so start at the top. Each yes leads to a verdict and
# its fix.

# %%
from grpo_utils import diagram

diagram("failures")

# %% [markdown]
# ## 10. Keep the prompts that can teach
#
# Groups also tie when a prompt is too hard or too easy. The *pass rate* of a prompt is the share of correct answers among
# several samples, here eight for each of 100 two-digit and 100 three-digit problems.

# %%
import random

from grpo_utils import chat_prompt, drop_tied, pass_rates
from grpo_utils.plots import pass_rate_bars, show

draw = random.Random(SEED)
hard = [(draw.randint(100, 999), draw.randint(100, 999)) for _ in range(100)]
prompts = [chat_prompt(f"What is {a} + {b}?") for a, b in hard]
golds = [str(a + b) for a, b in hard]
pool = Dataset.from_dict(
    {
        "prompt": train_rows["prompt"][:100] + prompts,
        "answer": train_rows["answer"][:100] + golds,
    }
)
sampling = dict(samples=8, max_new_tokens=32)
rates = pass_rates(base, tokenizer, pool, seed=SEED, **sampling)
parts = {"two digits": rates[:100], "three digits": rates[100:]}
counts = {name: (part.count(0), part.count(1)) for name, part in parts.items()}
told = [f"{k}: {n} never correct, {m} always" for k, (n, m) in counts.items()]
show(pass_rate_bars(parts, 8), "Bars, 100 prompts each. " + "; ".join(told))

# %% [markdown]
# With a reward for correct answers alone, {{sum(map(sum, counts.values()))}} of 200 groups would be tied. `drop_tied` keeps rows with a pass rate above 0
# and below 1. The next cell samples the kept rows again, and also the dropped two-digit problems.


# %%
def tied_groups(rates) -> str:
    return f"{sum(rate in (0, 1) for rate in rates)} of {len(rates)}"


kept = drop_tied(pool, rates)
again = pass_rates(base, tokenizer, kept, seed=SEED + 1, **sampling)
print("tied before:", tied_groups(rates))
print("tied after: ", tied_groups(again))
lost = pool.select([i for i in range(100) if rates[i] == 0])
solved = pass_rates(base, tokenizer, lost, seed=SEED + 2, **sampling)
solvable = sum(rate > 0 for rate in solved)
print("dropped, but solvable:", solvable, "of", len(lost))

# %% [markdown]
# Tied groups fell from {{tied_groups(rates)}} to {{tied_groups(again)}}. Some are left, because eight samples give only an estimate: a prompt with a true
# pass rate of 0.2 gets 0 of 8 one time in six. So the filter also dropped {{solvable}} solvable problems. A pass rate belongs to one prompt and
# one policy, so it changes during training. It also costs samples, so filter only rows that you will use.

# %% [markdown]
# ## 11. Watch your own run
#
# Add `trainer.add_callback(HealthCallback(test_rows))` to your script. If weights become NaN (not a number), or `kl` explodes
# and the reward falls, it saves the policy and stops the run. For a finished run, use `grpo-check health FOLDER`.
# [Troubleshooting](../docs/troubleshooting.md) explains every verdict.
#
# Curves show that something is wrong; completions show what. With `GRPOConfig(log_completions=True)`, TRL keeps them, and
# `grpo-check replay FOLDER` shows them step by step, as on [this page](../docs/watch-it-cheat.html) (download it, and open it
# in a browser).
#
# **Look at a new run within its first twenty steps.**

# %% [markdown]
# ## 12. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | one constant reward | Is its `std` 0? | match the format of the prompt |
# | tied groups | Are most answers correct? | yes: stop; no: fix the reward or drop tied prompts |
# | reward 0, extreme entropy | Are the samples noise or all equal? | go back; divide the learning rate by ten |
# | `clipped_ratio` near 1 | Do completions end with more room? | yes: raise the limit; no: fix the EOS token |
# | low reward at step 1 | Are prompts lists of messages? | use lists of messages |
# | rising reward, fewer correct answers | What else is rewarded? | reward it only in correct answers |
# | flat reward, untied groups | Is the learning rate tiny? | raise it |

# %% [markdown]
# ## 13. Exercises
#
# **Exercise 1.** Break a run yourself. Choose a change of the settings, for example `dict(temperature=0.01)`,
# `dict(temperature=3.0)`, `dict(num_generations=2)` or `dict(reward_weights=[-2.0, 0.5, 0.5])`, or invent one. Predict how the
# last five steps of three curves will differ from the healthy run: `"lower"`, `"same"` or `"higher"`. (The predictions are not
# graded.) Then train `mine` and run the check, which passes if at least one curve differs clearly.

# %%
change = {}  # your fault, such as dict(temperature=0.01)
predicted = dict(reward="", frac_reward_zero_std="", entropy="")
mine = train(config_of("mine", **change)) if change else None


# %% tags=["nbval-check-output"]
from statistics import mean

from grpo_utils import check_exercise


def outcome(key) -> str:
    """How the last five steps of `mine` differ from the healthy run."""
    usual = logged(healthy, key)
    gap = mean(logged(mine, key)[-5:]) - mean(usual[-5:])
    if abs(gap) <= (max(usual) - min(usual)) / 5:
        return "same"
    return "higher" if gap > 0 else "lower"


def broke() -> str:
    """Print predictions and outcomes; "none" if a curve broke."""
    if mine is None:
        return ""
    found = {key: outcome(key) for key in predicted}
    for key, seen in found.items():
        print(f"{key:22} predicted {predicted[key] or '-':8} seen {seen}")
    return "none" if set(found.values()) != {"same"} else "nothing"


STRONGER = [("nothing", "No curve broke. Choose a stronger change.")]
print(check_exercise("Exercise 1", broke, [((), "none")], STRONGER))

# %% [markdown]
# **Exercise 2.** The next cells train three more runs and plot them in random order. Fill `codes` with the fault of
# each: `dead_reward`, `no_gradient`, `all_truncated`, `mode_collapse`, `no_learning` (groups differ, but the reward
# does not rise) or `length_hacking` (the reward pays for length, and correct answers vanish). The printed numbers are
# final reward means.
#
# Try both before you unfold the solutions. Next, [lesson 05](05_real_model.ipynb) trains a real model.


# %%
def length_reward(completions, **kwargs) -> list[float]:
    return [min(1.0, len(c[0]["content"]) / 200) for c in completions]


def tone_reward(completions, **kwargs) -> list[float]:
    return [0.5 for _ in completions]


first = config_of("x", reward_weights=[3.0, 0.0], learning_rate=4e-3)
first.max_completion_length = 64
logs = {
    "length_hacking": train(first, [length_reward, rewards[0]]),
    "no_learning": train(config_of("y", learning_rate=1e-7)),
}
third = config_of("z", reward_weights=[1.0, 1.0])
logs["dead_reward"] = train(third, [rewards[0], tone_reward])

# %%
hidden = random.Random(SEED + 1).sample(sorted(logs), k=3)
three = {label: logs[code] for label, code in zip("abc", hidden)}
show_run_curves(three, ["reward", CORRECT, "completions/mean_length"])
for label, log in three.items():
    last = [entry for entry in log if "reward" in entry][-1]
    single = [key for key in last if re.fullmatch("rewards/.+/mean", key)]
    print(label, {key.split("/")[1]: round(last[key], 2) for key in single})

# %%
codes = ["", "", ""]  # your answer: the faults of a, b and c


# %% tags=["nbval-check-output"]
def misnamed() -> str:
    """The first fault that `codes` names wrongly; "" for the stub."""
    given = [
        re.sub(r"[\s-]+", "_", code.strip().lower())  # or "Dead Reward"
        for code in [*codes, "", "", ""]
    ]
    wrong = [code for code, name in zip(hidden, given) if code != name]
    return (wrong or ["none"])[0] if any(codes) else ""


CLUES = [("length_hacking", "In one run, correct answers vanish. What grows?")]
CLUES += [("no_learning", "In one run, no curve moves. Which setting is low?")]
CLUES += [
    ("dead_reward", "In one run, a reward has the same mean throughout.")
]
print(check_exercise("Exercise 2", misnamed, [((), "none")], CLUES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: this is one of many possible changes. At a temperature of 0.01, the eight completions of a group are equal, so every group is tied and
# the policy learns nothing. The untrained policy's most likely answer has no tags, so the reward is near 0, too.
# Our prediction for entropy was wrong: we wrote "same", and it is lower, because the policy no longer varies its answers.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
change = dict(temperature=0.01)
predicted = dict(reward="lower", frac_reward_zero_std="higher", entropy="same")
mine = train(config_of("mine", **change))
show_run_curves({"healthy": healthy, "this run": mine}, list(predicted))
print(check_exercise("Exercise 1, solution", broke, [((), "none")]))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: run a is `{{hidden[0]}}`, run b is `{{hidden[1]}}`, and run c is `{{hidden[2]}}`. In the dead-reward run,
# `tone_reward` stays at 0.5. The run that does not learn has a learning rate of 1e-7. In the length-hacking run, correct
# answers vanish.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
codes = hidden  # in the order in which the runs were shuffled
print(check_exercise("Exercise 2, solution", misnamed, [((), "none")]))
