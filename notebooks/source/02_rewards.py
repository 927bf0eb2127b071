# %% [markdown]
# # 02 · Reward functions and how to test them
#
# We paid a model for each tag of the format that its prompt asks for.
#
# In training, its mean reward rose from {{flawed_log[0]["reward"]:.2f}} to {{flawed_log[-2]["reward"]:.2f}}.
#
# **Guess first:** before training, {{before.accuracy.hits}} of its {{before.n}} answers were correct. Sketch the share of correct
# answers over the 38 steps of the run.
#
# You will be able to write a reward, attack it before you train, and recognize a reward hack in two curves.
#
# You need [lesson 00](00_start.ipynb).
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

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% [markdown]
# You can change these settings. A training run takes about a minute on a CPU, so this lesson never uses a GPU.

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
# The policy learns from the scores of its completions and from nothing else.

# %%
from grpo_utils import diagram

diagram("reward")

# %% [markdown]
# TRL calls the function with a list of completions, and with every column of the dataset as a list of the same length. The
# function returns one number for each completion, or `None` for a completion that it does not apply to. This one
# prints what it gets and scores everything 0:


# %%
def look(completions, **kwargs) -> list[float]:
    print("\nTRL passes: completions,", ", ".join(sorted(kwargs)))
    print("answer:", kwargs["answer"][:10])
    print("first completion:", completions[0])
    return [0.0] * len(completions)


# %% [markdown]
# Train with it for one step on two-digit addition problems. `load_rows` returns rows with a `prompt` and the gold
# `answer`, and `load_policy` adds a LoRA adapter to the tiny model. [Lesson 03](03_grpo_lora.ipynb) explains the settings.

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
# `answer` and `kind` are columns of the dataset. Each gold answer appears eight times, because a group has eight
# completions. TRL adds the other arguments, so a function without `**kwargs` fails with a `TypeError`. Two of these arguments
# are functions that you can call: `log_metric` logs a number for each step, and `log_extra` adds a column to the table of
# completions that TRL saves with `log_completions=True`.
#
# The prompts are chat messages, so each completion is a list of messages. `completion_text` returns its text.

# %% [markdown]
# ## 3. Attack a naive reward by hand
#
# This reward pays 1.0 if the gold answer appears anywhere in the text. It is short, and most reviewers would approve it.

# %%
from grpo_utils import completion_text


def naive_reward(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(gold in text) for text, gold in zip(texts, answer)]


# %% [markdown]
# `TEXTS` holds four texts, each with its gold answer. The last gold answer is empty, as in a row that nobody filled in.
# **Guess first:** what does each text score?

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
# <details><summary>After you have guessed</summary>
#
# All three cheats earn as much as the honest completion:
#
# - **A list of numbers** hides the gold answer among wrong ones.
# - **Two answers** hide it inside the answer tags.
# - **Nothing at all** earns 1.0 if the gold answer is empty, because every text contains the empty string. Such rows teach the
#   policy to say nothing.
# </details>

# %% [markdown]
# A sound reward accepts exactly one answer, compares it as a number, and never pays for a missing one. `extract_answer`
# returns the text between the `<answer>` tags, or `None` if there are several answers or none. `same_answer` compares two
# values: "1,250" equals 1250, and a missing answer never equals anything.

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
# You tried four texts. `probe` scores about a hundred for every gold answer: correct and wrong answers, junk, repetition
# and appeals to the grader.

# %%
from grpo_check import probe

GOLD = ["42", "1250", "-5"]
print(probe(naive_reward, answers=GOLD))

print(probe(sound_reward, answers=GOLD))

# %% [markdown]
# The first line has the verdict. The next two count forms of answers, each once for all gold answers: 8 correct ones (such
# as `42.00`), and 43 wrong, missing or hedged ones. The other completions are junk, broken formats and appeals. Each finding
# has a code, the evidence, an example, the reason and the fix. Here, `wrong_beats_right` means that a wrong answer earns at
# least as much as a correct one, because 42.84 contains 42. With `answers=["42", ""]`, `probe` also finds the third cheat.
#
# The sound reward is `ok`: no attack of `probe` succeeded. `probe` does not know your task, so add cheats of your own. In a
# terminal, `attack` goes further and trains a small model against your reward on your own rows
# ([five minutes](../grpo_check/docs/checks.md#attack)):
#
# ```
# grpo-check probe my_rewards.py:my_reward --answers 42 1250 -5
# grpo-check attack my_rewards.py:my_reward --rows rows.jsonl
# ```
#
# In the course's library, this reward is `correctness_reward`. [Rewards](../docs/rewards.md) lists others, with their
# known exploits.

# %% [markdown]
# ## 5. Hack a reward for the format
#
# The prompt asks for reasoning in one pair of tags and the answer in another. `evaluate` generates and checks one answer
# for each of 200 held-out prompts. (The step of section 2 changed nothing, because every score was 0.)

# %%
from grpo_utils import evaluate

decoding = dict(max_new_tokens=32, seed=SEED)
before = evaluate(policy, tokenizer, test_rows, **decoding)
print(*before.sampled[:6], sep="\n")
print("correctly formatted:", before.format)
print("strict accuracy:    ", before.accuracy)

# %% [markdown]
# Only {{before.format.hits}} of the {{before.n}} answers are correctly formatted, and {{before.accuracy.hits}} of them are also
# correct.
#
# So paying for the format seems like a good idea. This reward pays a quarter of a point for each tag:


# %%
def count_tags(completions, **kwargs) -> list[float]:
    tags = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
    texts = [completion_text(completion) for completion in completions]
    return [0.25 * sum(text.count(tag) for tag in tags) for text in texts]


# %% [markdown]
# A clean completion earns 1.0. Before you run the next cell, think of a text that earns more and answers nothing.

# %% tags=["nbval-check-output"]
for text in (CLEAN, "<answer>" * 8):
    print(f"{count_tags([text])[0]:3.1f}  {text}")

print(probe(count_tags))

# %% [markdown]
# The count has no upper limit, so repetition pays: a pile of tags earns 11. (The best clean completion of `probe` earns 2,
# because it writes the clean text twice.) `probe` calls such a reward `farmable`.
#
# Earning the reward without doing the task is called *reward hacking*. Nothing raises an error, because the reward works as
# written.

# %% [markdown]
# ## 6. Watch the policy hack it
#
# You found the exploit by thinking. The policy finds it by sampling, because completions that score above the mean of their
# group become more likely.
#
# Train on `count_tags`, and also log what you really want: `truth`. TRL multiplies each score by the weight of its
# function, so a function with weight 0.0 changes nothing, and TRL still logs its mean.


# %%
from grpo_utils import is_strictly_right


def truth(completions, answer, **kwargs) -> list[float]:
    """1.0 if an answer is correct and correctly formatted."""
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %%
def train_on(rewards: list, weights: list[float], steps: int = run.steps):
    """Train a new policy, and return its log and its evaluation."""
    policy, tokenizer = load_policy(run.model, **loading)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings(steps, [*weights, 0.0]),
        train_dataset=train_rows,
        reward_funcs=[*rewards, truth],
    )
    show_progress(trainer)
    trainer.train()
    after = evaluate(policy, tokenizer, test_rows, **decoding)
    return trainer.state.log_history, after


# %%
from grpo_utils import show_run_curves

flawed_log, flawed = train_on([count_tags], [1.0])
show_run_curves({"every tag pays": flawed_log}, ["reward"])

# %% [markdown]
# This is the curve that most people watch. Would you stop this run, and at which step? Decide, then read three samples (their
# first 70 characters):

# %%
for text in flawed.sampled[:3]:
    print(text[:70])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The policy repeats one tag instead of reasoning. The last mean reward is {{flawed_log[-2]["reward"]:.2f}}, but a clean
# completion earns only 1.0. Stop a run when its mean reward exceeds what a clean completion can earn. Here, it does from step
# {{max(step for step, entry in enumerate(flawed_log[:-1], 1) if entry["reward"] <= 1) + 1}} on. Three samples show what the
# curve hides.
# </details>

# %% [markdown]
# [This page](../docs/watch-it-cheat.html) replays the run in a browser (on GitHub, download it first). Find the step from which
# a repeated tag earns more than a correct answer. Then [pay a model](../docs/pay-a-model.html), which trains on any reward
# that you type: its reward *A right answer* looks right, and is hacked. Can you fix it?

# %% [markdown]
# ## 7. Fix the reward and train again
#
# `incremental_format_reward` pays for each tag once, and only in its place. It returns a quarter of what this function
# counts:

# %%
import inspect

from grpo_utils import incremental_format_reward
from grpo_utils.rewards import count_placed_tags

print(inspect.getsource(count_placed_tags))

# %% [markdown]
# Train one policy with the fixed reward alone, and another with the fixed and the sound reward, which has twice the weight.
# **Guess first:** what happens to the correct answers under the fixed reward, which never reads a number?

# %%
fixed_log, fixed = train_on([incremental_format_reward], [1.0])
rewards = [sound_reward, incremental_format_reward]
both_log, both = train_on(rewards, [2.0, 1.0])

# %% [markdown]
# The upper row shows what each policy was paid, and the lower row the share of completions that were correct and in the
# format. The table has every third step.

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
# Each step uses different prompts, so compare the policies on the same 200 held-out prompts, too:

# %%
measured = dict(before=before, flawed=flawed, fixed=fixed, both=both)
print(f"{'':10}{'formatted':>9}{'strict accuracy (95% interval)':>34}")
for name, evaluation in measured.items():
    rates = evaluation.summary()
    low, high = rates["accuracy_ci95"]
    strict = f"{rates['accuracy']:.3f} ({low:.3f} to {high:.3f})"
    print(f"{name:10}{rates['format_rate']:9.3f}{strict:>34}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# - **Every tag pays.** The share of correct completions is highest at step {{peak + 1}}: {{correct[peak]:.2f}}. (Each point
#   is the mean of only 64 completions.) The policy first learns the format; then repeated tags earn more. The reward rises
#   to {{flawed_log[-2]["reward"]:.2f}}, and {{flawed.accuracy.hits}} of {{flawed.n}} held-out answers are correct.
# - **Each tag pays once.** The reward ends near its maximum of 1.0. It pays for the format alone, and yet
#   {{fixed.accuracy.hits}} held-out answers are correct, {{fixed.accuracy.hits - before.accuracy.hits}} more than before.
# - **Correctness pays as well.** The reward ends near its maximum of 3.0, and {{both.accuracy.hits}} answers are correct.
#
# Only the flawed reward rises above what a clean completion earns, and only its policy fails.
# </details>

# %% [markdown]
# How can a reward that never reads a number change the numbers? Count two styles of reasoning, before training and after
# training with the fixed reward:


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
# Before training, {{counts["before", "columns"][0]}} answers added column by column:
# {{counts["before", "columns"][1]}} had the format, and {{counts["before", "columns"][2]}} were correct. Of the
# {{counts["before", "equation"][0]}} answers with one equation, {{counts["before", "equation"][1]}} had the format and
# {{counts["before", "equation"][2]}} were correct. So a reward for tags made the column style more common
# ({{counts["fixed", "columns"][0]}} answers after training), and this style happens to be the correct one. That is luck. In
# [lesson 15](15_controls.ipynb), the same luck runs out with another seed.
#
# **Log one number that you do not train on.**

# %% [markdown]
# ## 8. Choose weights
#
# TRL adds the weighted scores of each completion. The advantage is this sum minus the group's mean, divided by the group's
# standard deviation (TRL's default, `scale_rewards="group"`). Here are four completions and two pairs of weights:

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


for first, second in ((2, 1), (0.5, 2)):
    sums = [first * r + second * f for r, f in zip(right, tags)]
    print(f"weights {first:3} and {second:3}: {advantages(sums)}")

# %% [markdown]
# The proportion of the weights decides which completion wins. With 2 and 1, the third completion (correct, wrong format) beats
# the second (wrong, correctly formatted). With 0.5 and 2, the second beats the third. So correctness must weigh more than all
# other rewards combined.
#
# But a small weight does not keep a reward's influence small. Say a correct answer earns 2, its format 0.3 and a bonus
# 0.1, so a correct answer earns 2.3 and a wrong one 0.3. Compare a group with two wrong answers with a group in which all
# four are correct:

# %% tags=["nbval-check-output"]
TWO_WRONG, ALL_CORRECT = [0.3, 2.4, 0.3, 2.4], [2.3, 2.4, 2.3, 2.4]
for sums in (TWO_WRONG, ALL_CORRECT):
    centered = [round(s - statistics.mean(sums), 2) for s in sums]
    print(f"{sums}  divided: {advantages(sums)}  not divided: {centered}")

# %% [markdown]
# In the second group, the bonus of 0.1 pushes as hard as a correct answer does in the first, because TRL divides small
# differences by a small standard deviation. The same happens if all answers are wrong. If a bonus can be wrong, as a judge's
# score can, pay it only for correct answers, or set `scale_rewards="none"`.

# %% [markdown]
# ## 9. Read the answers of larger models
#
# Larger models have learned other forms: GSM8K's `####`, a LaTeX box, a thought before the answer. `AnswerReward` makes a
# reward from any function that finds an answer in a text. Which of these completions does each function pay? The gold
# answer is 42. `last_number` is our own, and does what many published rewards do.

# %% tags=["nbval-check-output"]
import re

from grpo_utils.rewards import AnswerReward, extract_after_hashes
from grpo_utils.rewards import extract_boxed

LARGER = {
    "hashes": "12 + 30 = 42\n#### 42",
    "box": r"She has $12 + 30 = \boxed{42}$ pens.",
    "thought": "<think>\\boxed{30}? No.</think>\\boxed{42}, 30 of them new",
    "cut off": "<think>3 boxes hold 30 pens. 12 + 30 = 42. Wait, are",
}


def last_number(text: str) -> str | None:
    return (re.findall(r"\d+", text) or [None])[-1]


print(" " * 22 + "".join(f"{name:>9}" for name in LARGER))
for find in [extract_answer, extract_after_hashes, extract_boxed, last_number]:
    reward = AnswerReward(extract=find)
    scores = reward(list(LARGER.values()), answer=["42"] * len(LARGER))
    print(f"{find.__name__:22}" + "".join(f"{score:9}" for score in scores))

# %% [markdown]
# - `extract_answer`, which this lesson used so far, pays none of them. One project reports
#   [about 0% accuracy](https://github.com/AI-Hypercomputer/maxtext/pull/4150) for Qwen3 on GSM8K with such a reward.
# - `extract_boxed` finds two different boxes in the third completion, so it returns no answer.
#   Apply `extract_after_thinking` first to skip the draft.
# - `last_number` pays the fourth completion, which was cut off before it gave an answer.
#
# So choose one form, ask for it in the prompt, and read that form only. Then score samples of your own model and check some
# scores by hand: if a capable model earns 0 everywhere, suspect the reward first.

# %% [markdown]
# ## 10. Cheat sheet
#
# | step | check | fix |
# |---|---|---|
# | 1. Write the reward | Does it return one number for each completion and accept `**kwargs`? | Read texts with `completion_text`. |
# | 2. Attack it by hand | Do lists, several answers, empty texts and repeated tags earn less than a clean completion? | Accept exactly one answer, and never pay for a missing one. |
# | 3. Attack it with `probe` | Does the report begin with `ok`? | Look up the code in [*What probe does*](../docs/rewards.md#what-probe-does). |
# | 4. Score samples of the base model | Do you agree with the scores? | Read the form that the model writes, or ask for another one. |
# | | Does a group have high and low scores? | Choose an easier task, or give partial credit. |
# | 5. Choose weights | Does correctness outweigh the rest combined? | Lower the other weights. |
# | 6. Train | Does a logged truth with weight 0.0 rise with the reward? | Stop, read samples, and fix the reward. |
#
# **The policy learns what you pay for.**

# %% [markdown]
# ## 11. Exercises
#
# **Exercise 1: change, predict, run, compare.** Copy the body of `count_tags` into `my_reward`, and change one thing:
# cap the sum (`min(1.0, ...)`), pay another amount per tag, or count something else, such as `=`. Will the number of correct
# held-out answers `"rise"` or `"fall"`? Write your prediction into `my_guess`. The check then trains on your reward (about
# half a minute). The prediction is not graded.


# %%
def my_reward(completions, **kwargs) -> list[float]:
    """Return one score for each completion."""
    return []


my_guess = ""  # "rise" or "fall"

# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise, compare_prediction


def compared(reward, guess: str) -> str | None:
    if not guess:
        return None
    log, after = train_on([reward], [1.0], steps=min(24, run.steps))
    show_reward_and_truth({reward.__name__: log})
    first, last = before.accuracy.hits, after.accuracy.hits
    print(f"correct: {first} before, {last} after")
    happened = "rise" if last > first else "fall"
    return compare_prediction(guess, happened)


COMPARED = [((), "compared")]
mine = (lambda: compared(my_reward, my_guess), COMPARED)
print(check_exercise("Exercise 1", *mine))

# %% [markdown]
# **Exercise 2.** The task is to name the capital of a country. Models write "paris", "Paris." or "The answer is Paris". Pay
# 1.0 if the only `<answer>` names the city of the gold answer, and 0.0 otherwise. The check scores six texts with your reward.
# If these scores are correct, it also calls `probe`, which must report neither an error nor a warning. Then write a reward
# for a task of yours.


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
# Try both before you unfold the solutions. [Lesson 03](03_grpo_lora.ipynb) trains with these rewards from start to end. [Open
# R1](https://github.com/huggingface/open-r1/blob/main/src/open_r1/rewards.py) has rewards to attack.

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: with a cap of 1.0, a pile of tags earns no more than a clean completion. So nothing favors the pile, and the number
# of correct answers rises. If you only pay another amount per tag, the pile still wins.
#
# Exercise 2: extract the only answer, and compare lower-case letters without punctuation. The course's `fuzzy_reward` also
# accepts a typo.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def capped_tags(completions, **kwargs) -> list[float]:
    return [min(1.0, score) for score in count_tags(completions)]


capped = (lambda: compared(capped_tags, "rise"), COMPARED)
print(check_exercise("Exercise 1, solution", *capped))


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
