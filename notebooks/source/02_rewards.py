# %% [markdown]
# # 02 · Reward functions and how to test them
#
# The reward rose from 0.45 to 3.71. The correct answers fell to 0. It is the same run.
#
# You will be able to write a reward function, attack it by hand and with a tool, recognize a reward hack in two curves,
# and choose weights for several rewards.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 3 minutes on a CPU, and 1.1 GB of memory.
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

# %% [markdown]
# These are the only settings. Training the tiny model takes about half a minute on a CPU, so this lesson never uses a
# GPU.

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # steps of each training run; 0: the default, 38
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 38)

# %% [markdown]
# ## 2. See what a reward function gets and returns
#
# The policy learns from the scores of its completions and from nothing else. It learns what the reward function pays for, not
# what you meant.

# %%
from grpo_utils import diagram

diagram("reward")

# %% [markdown]
# TRL calls the function with a list of completions. Every column of the dataset arrives as a list of the same length. The
# function returns **one number for each completion**, or `None` for a completion that it does not apply to. The following
# reward function prints what it gets and scores everything 0:


# %%
def look(completions, **kwargs) -> list[float]:
    print("\nTRL passes: completions,", ", ".join(sorted(kwargs)))
    print("answer:", kwargs["answer"][:10])
    print("first completion:", completions[0])
    return [0.0] * len(completions)


# %% [markdown]
# To see the output, train for one step on two-digit addition problems. `load_rows` returns rows with a `prompt` and the
# gold `answer`. `load_policy` loads the tiny model with `transformers` and adds an adapter with PEFT. `GRPOConfig` takes
# the settings, and [lesson 03](03_grpo_lora.ipynb) explains them one by one.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import load_policy, load_rows, show_progress

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
loading = dict(
    profile=run.profile,
    backend="transformers",
    load_in_4bit=False,
    seed=SEED,
)
policy, tokenizer = load_policy(run.model, **loading)


# %%
def settings(steps: int, weights: list[float]) -> GRPOConfig:
    return GRPOConfig(
        output_dir=tempfile.mkdtemp(),  # a temporary folder
        max_steps=steps,
        learning_rate=2e-3,
        num_generations=8,  # completions in a group
        per_device_train_batch_size=64,  # completions per step
        max_completion_length=32,  # in tokens
        reward_weights=weights,  # one factor for each reward function
        optim="adamw_torch",
        use_cpu=True,  # from here on: a CPU run without files
        bf16=False,
        gradient_checkpointing=False,
        save_strategy="no",
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,  # show_progress draws the bar
        seed=SEED,
    )


# %%
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=settings(steps=1, weights=[1.0]),
    train_dataset=train_rows,
    reward_funcs=[look],
)
show_progress(trainer)  # a bar instead of printed logs
result = trainer.train()

# %% [markdown]
# `answer` and `kind` are columns of the dataset. Each gold answer appears eight times because a group has eight completions.
# TRL adds the other arguments, so a function without `**kwargs` fails with a `TypeError`. Two of them are functions that your
# reward can call: `log_metric` logs a number for each step, and `log_extra` adds a column to the table of completions.
#
# The prompts are chat messages, so each completion is a list of messages and not a string. `completion_text` returns the text
# of either.
#
# **A reward function gets lists and returns one number for each completion.**

# %% [markdown]
# ## 3. Attack a naive reward by hand
#
# This reward looks reasonable: it pays 1.0 if the gold answer appears anywhere in the text.

# %%
from grpo_utils import completion_text


def naive_reward(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(gold in text) for text, gold in zip(texts, answer)]


# %% [markdown]
# Attack a reward before you train on it. `TEXTS` holds one honest completion and three cheats, each with its gold answer. The
# last gold answer is empty, as in a row that nobody filled in. Guess all four scores before you run the cell.

# %% tags=["nbval-check-output"]
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
TEXTS = {
    "honest": (CLEAN, "42"),
    "a list of numbers": ("40, 41, 42, 43 or 44", "42"),
    "two answers": ("<answer>41</answer><answer>42</answer>", "42"),
    "nothing at all": ("", ""),
}


def score_texts(reward) -> None:
    for name, (text, gold) in TEXTS.items():
        [score] = reward([text], answer=[gold])
        print(f"{score:3.1f}  {name:19}{text!r}")


score_texts(naive_reward)

# %% [markdown]
# All three cheats earn as much as the honest completion:
#
# - **A list of numbers** hides the gold answer among wrong ones.
# - **Two answers** hide it inside the answer tags.
# - **Nothing at all** scores because every text contains the empty string. Rows with an empty gold answer teach the policy to
#   say nothing.
#
# A sound reward pays for *correctness*: a correct answer earns 1.0 even without the rest of the format. It accepts exactly one
# answer, compares it as a number and never pays for a missing answer. `extract_answer` returns the text between the
# `<answer>` tags, or `None` if there are several answers or none. `same_answer` compares two values: "1,250" equals 1250, and
# a missing answer never equals anything.

# %% tags=["nbval-check-output"]
from grpo_utils import extract_answer, same_answer


def sound_reward(completions, answer, **kwargs) -> list[float]:
    found = [extract_answer(completion_text(c)) for c in completions]
    return [float(same_answer(f, gold)) for f, gold in zip(found, answer)]


score_texts(sound_reward)

# %% [markdown]
# **Ask of every reward: what is the cheapest text that it pays for?**

# %% [markdown]
# ## 4. Let `probe` attack it
#
# You tried four texts. `probe` scores about a hundred texts for every gold answer: correct and wrong answers, junk,
# repetition and appeals to the grader.

# %%
from grpo_check import probe

GOLD = ["42", "1250", "-5"]
print(probe(naive_reward, answers=GOLD))

print(probe(sound_reward, answers=GOLD))

# %% [markdown]
# The first line has the verdict. The next two count the right answers that are paid too little (such as `42.00`) and the
# wrong ones that are paid too much. Each finding has a code, what was seen, an example, why it matters, and what to do.
# `wrong_beats_right` means that a wrong answer earns at least as much as a correct one: 42.84 contains 42. `probe` finds the
# third cheat from above, too, if some of your gold answers are empty: `answers=["42", ""]`.
#
# The sound reward is `ok`: no attack of `probe` succeeded. `probe` does not know your task, so keep trying cheats of your
# own. The same check runs in a terminal:
#
# ```
# grpo-check probe my_rewards.py:my_reward --answers 42 1250 -5
# ```
#
# `correctness_reward` in `grpo_utils.rewards` is this sound reward. The page [Rewards](../docs/rewards.md) lists more reward
# functions and their known exploits.
#
# **Run `probe` before every training run, because it takes only seconds.**

# %% [markdown]
# ## 5. Hack a reward for the format
#
# The prompt asks for a format: reasoning in one pair of tags and the answer in another. Training in section 2 changed
# nothing, because every score was 0.0. `evaluate` generates and checks one answer for each of 200 held-out prompts.

# %%
from grpo_utils import evaluate

decoding = dict(max_new_tokens=32, seed=SEED)
before = evaluate(policy, tokenizer, test_rows, **decoding)
print(*before.sampled[:6], sep="\n")
print("correctly formatted:", before.format)
print("strict accuracy:    ", before.accuracy)

# %% [markdown]
# Only {{before.format.hits}} of the {{before.n}} answers are correctly formatted, and {{before.accuracy.hits}} of them are also correct. So
# paying for the format seems like a good idea. The next reward gives partial credit: a quarter of a point for each tag.


# %%
def count_tags(completions, **kwargs) -> list[float]:
    tags = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
    texts = [completion_text(completion) for completion in completions]
    return [0.25 * sum(text.count(tag) for tag in tags) for text in texts]


# %% [markdown]
# A clean completion earns 1.0. Before you run the next cell, think of a text that earns more and answers nothing. The cell
# scores one such text by hand, and then calls `probe`.

# %% tags=["nbval-check-output"]
for text in (CLEAN, "<answer>" * 8):
    print(f"{count_tags([text])[0]:3.1f}  {text}")

print(probe(count_tags))

# %% [markdown]
# The count has no upper limit, so repetition pays. `probe` finds the same exploit and calls it `farmable`: a pile of tags
# earns 11.
#
# Earning the reward without doing the task is called *reward hacking*. Nothing raises an error, because the reward works as
# written.
#
# **A score without an upper limit invites repetition.**

# %% [markdown]
# ## 6. Watch the policy hack it
#
# You found the exploit by thinking. The policy finds it by sampling, because completions that score above the mean of their
# group become more likely. Train on `count_tags`, and also log what you really want, `truth`. TRL multiplies each score by
# the weight of its function, so a function with weight 0.0 does not change the training. TRL still logs its mean. `train_on`
# trains a new policy and evaluates it.

# %%
from grpo_utils import is_strictly_right


def truth(completions, answer, **kwargs) -> list[float]:
    """1.0 if an answer is correct and correctly formatted."""
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %%
def train_on(rewards: list, weights: list[float]) -> tuple:
    """Train a new policy, and return its log and its evaluation."""
    policy, tokenizer = load_policy(run.model, **loading)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings(run.steps, [*weights, 0.0]),
        train_dataset=train_rows,
        reward_funcs=[*rewards, truth],
    )
    show_progress(trainer)
    trainer.train()
    after = evaluate(policy, tokenizer, test_rows, **decoding)
    return trainer.state.log_history, after


flawed_log, flawed = train_on([count_tags], [1.0])

for text in flawed.sampled[:3]:
    print(text[:70])

# %% [markdown]
# The last mean reward is {{flawed_log[-2]["reward"]:.2f}}, although a clean completion earns only 1.0. The three samples (their first 70 characters)
# repeat one tag instead of reasoning.
#
# [This page](../docs/watch-it-cheat.html) replays the run in a browser (on GitHub, download it first). Drag the slider, and
# find the step from which a repeated tag earns more than a correct answer. Then [pay a model](../docs/pay-a-model.html), which
# trains on any reward that you type: its reward *A right answer* looks right, and is hacked. Can you fix it?
#
# **Read samples: three completions show what the mean reward hides.**

# %% [markdown]
# ## 7. Fix the reward and train again
#
# The fixed reward, `incremental_format_reward`, pays for each tag once, and only in the correct place. It returns a quarter
# of what this function counts:

# %%
import inspect

from grpo_utils import incremental_format_reward
from grpo_utils.rewards import count_placed_tags

print(inspect.getsource(count_placed_tags))

# %% [markdown]
# Train one policy with the fixed reward alone. Train another with the fixed reward and the sound reward for correctness,
# which has twice the weight.

# %%
fixed_log, fixed = train_on([incremental_format_reward], [1.0])
rewards = [sound_reward, incremental_format_reward]
both_log, both = train_on(rewards, [2.0, 1.0])

# %% [markdown]
# Compare the three runs. The upper row shows what each policy earned. The lower row shows the share of completions that were
# correct and correctly formatted. The table lists every third step.

# %%
from grpo_utils import show_reward_and_truth

logs = {
    "Flawed reward:\nevery tag pays": flawed_log,
    "Fixed reward:\neach tag pays once": fixed_log,
    "Fixed reward\nand correctness": both_log,
}
show_reward_and_truth(logs)

# %%
shown = [*range(0, run.steps - 1, 3), run.steps - 1]
print(f"{'step':16}" + "".join(f"{step + 1:5}" for step in shown))
for name, log in zip(("flawed", "fixed", "both"), logs.values()):
    for what, key in (("reward", "reward"), ("correct", "rewards/truth/mean")):
        values = "".join(f"{log[step][key]:5.2f}" for step in shown)
        print(f"{name + ', ' + what:16}{values}")
correct = [entry["rewards/truth/mean"] for entry in flawed_log[:-1]]
peak = correct.index(max(correct))

# %% [markdown]
# - **Every tag pays.** The policy first learns the format, and the share of correct completions reaches {{correct[peak]:.2f}} at
#   step {{peak + 1}}. Then completions that repeat a tag earn more than the others in their group. The reward rises to
#   {{flawed_log[-2]["reward"]:.2f}} while the share of correct completions falls to {{correct[-1]:.2f}}. Only this reward rises above
#   what a clean completion earns, and only this policy fails.
# - **Each tag pays once.** The reward ends at {{fixed_log[-2]["reward"]:.2f}}, near its maximum of 1.0, and the share of correct
#   completions at {{fixed_log[-2]["rewards/truth/mean"]:.2f}}.
# - **Correctness pays as well.** The reward ends at {{both_log[-2]["reward"]:.2f}}, near its maximum of 3.0, and the share of correct
#   completions at {{both_log[-2]["rewards/truth/mean"]:.2f}}.
#
# Each step uses different prompts, so compare the policies on the same 200 held-out prompts:

# %%
measured = dict(before=before, flawed=flawed, fixed=fixed, both=both)
print(f"{'':10}{'formatted':>9}{'strict accuracy (95% interval)':>34}")
for name, evaluation in measured.items():
    rates = evaluation.summary()
    low, high = rates["accuracy_ci95"]
    strict = f"{rates['accuracy']:.3f} ({low:.3f} to {high:.3f})"
    print(f"{name:10}{rates['format_rate']:9.3f}{strict:>34}")

# %% [markdown]
# With the flawed reward, {{flawed.accuracy.hits}} of {{flawed.n}} answers are correct. With the fixed reward and a reward for
# correctness, {{both.accuracy.hits}} are correct. The fixed reward pays for the format alone, and yet {{fixed.accuracy.hits}} answers are correct. To
# see why, count two styles of reasoning, before and after training with the fixed reward:


# %%
def style(text: str) -> str:
    """15 + 27 = 42 is one equation; 5+7=12, 1+2+1=4 are columns."""
    if not text.startswith("<reasoning>"):
        return "other"
    return "columns" if ", " in text else "equation"


counts = {}
for name in ("before", "fixed"):
    found = measured[name]
    judged = zip(map(style, found.sampled), found.formed, found.right)
    for kind, formed, correct in judged:
        row = counts.setdefault((name, kind), [0, 0, 0])
        row[:] = [row[0] + 1, row[1] + formed, row[2] + correct]
print(f"{'':18}{'answers':>8}{'formatted':>11}{'correct':>9}")
for (name, kind), (n, formed, correct) in sorted(counts.items()):
    print(f"{name + ', ' + kind:18}{n:8}{formed:11}{correct:9}")

# %% [markdown]
# Before training, {{counts["before", "columns"][1]}} of the {{counts["before", "columns"][0]}} answers that add column by column have
# the format, and {{counts["before", "columns"][2]}} of them are correct. Of the {{counts["before", "equation"][0]}} answers with one
# equation, only {{counts["before", "equation"][1]}} have the format, because the others leave out a tag, and
# {{counts["before", "equation"][2]}} are correct. So a reward for tags made the column style more common
# ({{counts["fixed", "columns"][0]}} answers after training, nearly all of them correct). That is luck: the
# reward never reads a number. One task and one seed show that hacking happens, not how often.
#
# **Log one number that you do not train on.**

# %% [markdown]
# ## 8. Choose weights
#
# TRL adds the weighted scores of each completion. The advantage is this sum minus the group's mean, divided by the group's
# standard deviation. (The division is TRL's default, `scale_rewards="group"`.) Compute it for four completions:

# %% tags=["nbval-check-output"]
import statistics

FOUR = [
    CLEAN,
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "I think <answer>42</answer>",
    "It is 42.",
]
right = sound_reward(FOUR, answer=["42"] * 4)
tags = incremental_format_reward(FOUR)
print("correct:", right, "format:", tags)


def advantages(sums: list[float]) -> list[float]:
    mean, spread = statistics.mean(sums), statistics.stdev(sums)
    return [round((s - mean) / (spread + 1e-4), 2) for s in sums]


for first, second in ((2, 1), (200, 100), (0.5, 2)):
    sums = [first * r + second * f for r, f in zip(right, tags)]
    print(f"weights {first:3} and {second:3}: {advantages(sums)}")

# %% [markdown]
# - **The scale of the weights does not matter**, as long as TRL divides by the standard deviation. The weights 200 and 100 give
#   the same advantages as 2 and 1.
# - **The proportion matters.** With 2 and 1, the third completion (correct, wrong format) has a higher advantage than the
#   second (wrong, correctly formatted). With 0.5 and 2, the second has the higher advantage, so a well-formatted wrong
#   answer is reinforced more than a correct one in the wrong format.
#
# So correctness must weigh more than all other rewards combined. Otherwise a wrong answer can earn more than a correct one.
#
# But a small weight does not keep a reward's influence small. Suppose that a correct answer earns 2.3, a wrong one 0.3, and a
# bonus adds 0.1. Compare a group with two wrong answers and a group in which all four are correct:

# %% tags=["nbval-check-output"]
TWO_WRONG, ALL_CORRECT = [0.3, 2.4, 0.3, 2.4], [2.3, 2.4, 2.3, 2.4]
for sums in (TWO_WRONG, ALL_CORRECT):
    centered = [round(s - statistics.mean(sums), 2) for s in sums]
    print(f"{sums}  divided: {advantages(sums)}  not divided: {centered}")

# %% [markdown]
# In the second group, the bonus of 0.1 pushes as hard as a correct answer does in the first, because the group's small
# differences are divided by a small standard deviation. The same happens in a group in which all answers are wrong. If
# a bonus can be wrong, as a judge's score can, do one of these:
#
# - Pay it only for correct answers, so that it never reinforces a wrong one.
# - Set `scale_rewards="none"` or `"batch"`. Then its push stays small next to that of correctness (with `"batch"`, only while
#   the batch has correct and wrong answers).
#
# **Give correctness more weight than the rest combined, and remember that a tie in correctness gives the rest full force.**

# %% [markdown]
# ## 9. Read the answers of larger models
#
# Larger models have learned other forms of answers: GSM8K's `####`, a LaTeX box, a thought before the answer. (Qwen3 writes
# a thought unless you turn it off, as [lesson 03](03_grpo_lora.ipynb) does.) We wrote five such completions by hand. The
# question is "Ana has 12 pens and buys 3 boxes of 10. How many pens does she have?", so the gold answer is 42.

# %% tags=["nbval-check-output"]
LARGER = {
    "hashes": "3 boxes hold 3*10 = <<3*10=30>>30 pens. 12+30 = 42\n#### 42",
    "box": r"She has $12 + 3 \times 10 = \boxed{42}$ pens.",
    "box in tags": r"<answer>\boxed{42}</answer>",
    "thought": "<think>\\boxed{30}? No, plus 12.</think>\\boxed{42}, 30 of them new",
    "cut off": "<think>3 boxes hold 30 pens. 12 + 30 = 42. Wait, are",
}
for name, text in LARGER.items():
    print(f"{name:12}{text!r}")

# %% [markdown]
# `AnswerReward` makes a reward for correctness from any function that finds the answer in a text. The course has such a
# function for each form. Two of the functions below are our own: `last_number` takes the last number, as many published
# rewards do, and `after_thought` looks for a box after the thought. Which of the five completions does each one pay?

# %% tags=["nbval-check-output"]
import re

from grpo_utils.rewards import AnswerReward, extract_after_hashes
from grpo_utils.rewards import extract_after_thinking, extract_boxed


def last_number(text: str) -> str | None:
    return (re.findall(r"\d+", text) or [None])[-1]


def after_thought(text: str) -> str | None:
    return extract_boxed(extract_after_thinking(text) or "")


FINDERS = [extract_answer, extract_after_hashes, extract_boxed]
FINDERS += [after_thought, last_number]
print(" " * 24 + "".join(f"{name:>12}" for name in LARGER))
for find in FINDERS:
    reward = AnswerReward(extract=find)
    scores = reward(list(LARGER.values()), answer=["42"] * len(LARGER))
    row = "".join(f"{score:12}" for score in scores)
    print(f"{find.__name__:24}{row}")

# %% [markdown]
# The first four completions are correct, and no function finds all four answers:
#
# - `extract_answer`, which this lesson used so far, pays none of them. Even the third fails, because its tags hold a box and
#   not a number. With such a reward, one project reports [about 0% accuracy](https://github.com/AI-Hypercomputer/maxtext/pull/4150)
#   for Qwen3 on GSM8K.
# - `extract_boxed` finds two different boxes in the fourth completion, and counts several answers as none. `after_thought`
#   skips the draft in the thought.
# - `last_number` does not pay the fourth completion, which ends with another number. And it pays the fifth, which was cut
#   off before it gave an answer.
#
# So choose one form, ask for it in the prompt (for example with `Put your final answer in \boxed{}.`), and read that form only.
# Attack the new reward with `probe`. Then score samples of your own model and check some scores by hand: if a capable
# model earns 0 everywhere, suspect the reward first.
#
# **Read the answer in the form that your prompt asks for, and check the scores of real samples.**

# %% [markdown]
# ## 10. Attack a reward with a policy
#
# `probe` tries texts that somebody wrote down. A policy can find others. `attack` trains one against any reward:
#
# 1. It shows a small model correct completions of some rows, so that the model learns their form.
# 2. It trains the model with GRPO on the other rows until the time is up.
# 3. It varies the best-paid completions that are not correct. It repeats them, cuts them, removes their digits, and so on.
# 4. It compares the score of every wrong completion with that of a correct one to the same prompt, if one is known.
#
# Attack `count_tags` from section 5 on 32 training rows. By default, `attack` trains a real language model for five minutes.
# Here it trains the tiny model for 18 seconds, and prints a line every few seconds.

# %%
from grpo_check import attack
from grpo_utils import model_path

rows = train_rows.select(range(32))
given = dict(model=model_path("tiny-qwen3"), minutes=0.3, seed=SEED)
print(report := attack(count_tags, rows, **given))

[error] = report.errors
sampled = [one for one in report.paid if one.step]
most = max(sampled, key=lambda one: one.score).score

# %% [markdown]
# The attack scored {{len(report.paid):,}} completions, of which the policy wrote {{len(sampled)}}. It found an error:
# {{error.what}} The line *Rows by who found it* counts these rows by where the completions come from: from the policy, from
# variations of well-paid completions, or from the texts that `probe` uses too. The next lines show the most overpaid
# completion from each source, with its score and the score of a correct one.
#
# The policy wrote far fewer completions than in section 6, and did not get as far, but one of them earned {{most:.2f}}. On other
# rewards, a policy finds faults that `probe` misses. For example, a reward for a translation paid for any word that was
# spelled much like the right one. The policy repeated the English word from the first steps on, and nearly always in the end
# ([what attacks found](../grpo_check/docs/attack.md#what-it-finds)).
#
# A larger model or more steps may find more, so an attack that finds no error does not show that a reward is sound. Attack
# the reward that you write, on the rows that you train on. In a terminal:
#
# ```
# grpo-check attack my_rewards.py:my_reward --rows rows.jsonl
# ```
#
# The page [Attack](../grpo_check/docs/attack.md) explains each line of the report.
#
# **Attack a new reward with `probe` first, and then with a policy.**

# %% [markdown]
# ## 11. Cheat sheet
#
# | step | check | fix |
# |---|---|---|
# | 1. Write the reward | Does it return one number for each completion and accept `**kwargs`? | Read texts with `completion_text`. |
# | 2. Attack it by hand | Do lists, several answers, empty texts and repeated tags earn less than a clean completion? | Accept exactly one answer, and never pay for a missing one. |
# | 3. Attack it with `probe` | Does the report begin with `ok`? | Look up the code in [docs/rewards.md, *What probe does*](../docs/rewards.md#what-probe-does). |
# | | Does `attack`, on your own rows, report no error? | Find what is paid in the wrong completions, and pay for it only if the answer is correct. |
# | 4. Score samples of the base model | Do you agree with the scores? | Read the form that the model writes, or ask for another one. |
# | | Does a group have high and low scores? | Choose an easier task, or give partial credit. |
# | 5. Choose weights | Does correctness outweigh the rest combined? | Lower the other weights. |
# | 6. Train | Does a logged truth with weight 0.0 rise with the reward? | Stop, read samples, fix the reward and train again. |
#
# **The policy learns what you pay for.**

# %% [markdown]
# ## 12. Exercises
#
# **Exercise 1.** The reward `show_work` should make the policy show its work. Write a completion that earns more than 1.0
# and contains no `<answer>`.


# %%
def show_work(completions, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [0.2 * text.count("=") for text in texts]


def my_hack() -> str:
    """Return a completion."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise


def verdict(hack: str) -> str | None:
    if not hack:
        return None
    if "<answer>" in hack:
        return "it answers"
    return "hacked" if show_work([hack])[0] > 1.0 else "too cheap"


HINTS = [("too cheap", "It earns 1.0 or less. What does show_work count?")]
HINTS += [("it answers", "It contains <answer>. Does the reward ask for one?")]
HACKED = [((), "hacked")]
print(check_exercise("Exercise 1", lambda: verdict(my_hack()), HACKED, HINTS))

# %% [markdown]
# **Exercise 2.** Write a reward of your own. The task is to name the capital of a country. Gold answers are names of cities,
# and models write "paris", "Paris." or "The answer is Paris". Pay 1.0 if the only `<answer>` names the city, and 0.0
# otherwise. The cell below yours scores six texts with it. If these are correct, the cell also calls `probe`, which must
# report neither an error nor a warning. Then write a reward for a task of yours.


# %%
def capital_reward(completions, answer, **kwargs) -> list[float]:
    """Return one score for each completion."""
    return []


# %% tags=["nbval-check-output"]
CLAIMS = [("paris.", "Paris", 1.0), ("The answer is Paris", "Paris", 1.0)]
CLAIMS += [("Lyon", "Paris", 0.0), ("Old Delhi", "New Delhi", 0.0)]
CLAIMS += [("London or Paris", "Paris", 0.0)]
CLAIMS += [("It is not Paris", "Paris", 0.0)]
CITIES = ["Paris", "London", "New Delhi", "Addis Ababa"]
TEXTS = [
    (([f"<answer>{said}</answer>"], [gold]), [score])
    for said, gold, score in CLAIMS
]
FAULTY = [("faulty", "Fix what probe reports above, warnings included.")]


def attacked() -> str:
    print(report := probe(capital_reward, answers=[*CITIES, ""]))
    faults = [one for one in report.findings if one.severity != "note"]
    return "faulty" if faults else "sound"


name = "Exercise 2, texts"
print(checked := check_exercise(name, capital_reward, TEXTS))
if checked.endswith("correct."):
    name, wanted = "Exercise 2, probe", [((), "sound")]
    print(check_exercise(name, attacked, wanted, FAULTY))

# %% [markdown]
# **Try both before you unfold the solutions below.** [Lesson 03](03_grpo_lora.ipynb) trains with these rewards from start to
# end. *Concrete problems in AI safety* (Amodei et al. 2016, arXiv 1606.06565, section 4) explains reward hacking. [Open
# R1](https://github.com/huggingface/open-r1/blob/main/src/open_r1/rewards.py) has rewards to attack.

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: `show_work` has no upper limit, so repeat the equals sign.
#
# Exercise 2: extract the only answer, and compare lower-case letters without punctuation. The course's `fuzzy_reward` also
# accepts a typo.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def my_hack_solution() -> str:
    return "=" * 6


hack = verdict(my_hack_solution())
print(check_exercise("Exercise 1, solution", lambda: hack, HACKED))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def plain(text: str | None) -> str:
    letters = (c for c in text or "" if c.isalpha() or c == " ")
    words = "".join(letters).lower().split()
    return " ".join(words).removeprefix("the answer is ")


def capital_solution(completions, answer, **kwargs) -> list[float]:
    found = [extract_answer(completion_text(c)) for c in completions]
    pairs = zip(found, answer)
    return [float(plain(f) == plain(gold) != "") for f, gold in pairs]


name = "Exercise 2, solution"
print(check_exercise(name, capital_solution, TEXTS))
print(probe(capital_solution, answers=[*CITIES, ""]))
