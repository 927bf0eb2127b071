# %% [markdown]
# # 02 · Reward functions and how to test them
#
# {{badges}}
#
# **You will be able to** write a reward function that survives an attack, see what a policy
# (the model in training) would make of a bad one, and give several rewards weights that work
# together.
#
# A *reward function* scores a model's answers. It is all that GRPO knows of your task: the
# policy learns what the reward pays, not what you meant. Many runs fail here, before the
# first step.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 2 minutes ([measured](../docs/results.md)) | never run |
# | memory | 1.1 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars below may come from a busier machine.
#
# **While it trains**, guess: what is the cheapest text that the reward of section 5 pays well?
#
# 1. Settings
# 2. What a reward gets, and gives
# 3. From a naive reward to a sound one
# 4. Watch a reward without training
# 5. A form reward, and how you hack it
# 6. How the policy hacks it
# 7. The mended reward, trained again
# 8. Weights, and what a group sees
# 9. Weights that adapt
# 10. A reward of your own
#
# You need Python's lists and functions. Of GRPO you need one sentence: it samples a *group* of
# completions (answers) for each prompt, scores each, and makes those likelier that scored above
# their group's mean.

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
STEPS: int = 0  # optimizer steps of each training; 0: the lesson's 38
SEED: int = 0  # everything random follows from it

# %% [markdown]
# A tiny model finds a hack within a minute on a CPU, so that is where this lesson trains,
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
profile, steps = PROFILES["cpu"], STEPS or 38
prepare_machine(profile)
print(f"{profile.models[FAMILY]}, {steps} steps a training, on the CPU")

# %% [markdown]
# ## 2. What a reward gets, and gives
#
# TRL calls a reward with keywords. It gets a list of completions and, beside it, every column of
# the dataset as a list of the same length. It gives back **one number for each completion**, or
# `None` where it does not apply.
#
# With chat prompts a completion is not a text but a list of messages:

# %% tags=["nbval-check-output"]
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
completion = [{"role": "assistant", "content": CLEAN}]


def says_42(completions, **kwargs) -> list[float]:
    return [float("42" in c[0]["content"]) for c in completions]


print(says_42(completions=[completion], answer=["42"]))

# %% [markdown]
# `**kwargs` is no ornament. TRL hands over everything it has (`prompts`, `completion_ids`,
# `trainer_state`, all columns), and a function that takes less stops the training with a
# `TypeError`.

# %% [markdown]
# ## 3. From a naive reward to a sound one
#
# The task: two-digit additions. The gold answer, the known right one, is in the column `answer`.
# A first try, which looks reasonable:


# %%
def naive_reward(completions, answer, **kwargs) -> list[float]:
    return [float(a in c[0]["content"]) for c, a in zip(completions, answer)]


# %% [markdown]
# Before we train on it, we attack it. `probe` writes almost a hundred completions for every gold
# answer (right ones, wrong ones, junk, repetition, pleas to the grader), scores them, and says
# what is wrong.

# %% tags=["nbval-check-output"]
from grpo_check import probe

GOLD = ["42", "1250", "-5"]
print(probe(naive_reward, answers=GOLD))

# %% [markdown]
# Read the codes, from the top. It `raises` on a message without content, which chat models with
# tools do write. `wrong_beats_right`, also where both
# earn the same: 42.84 holds a 42, and is paid as well as 42 itself.
# `pays_missing_answer`: every text holds the empty answer. `chat_only` is a mere warning: it
# cannot read plain strings.
#
# First the text. `completion_text` reads strings, messages and `None`.

# %% tags=["nbval-check-output"]
from grpo_utils import completion_text


def in_its_tags(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    said = [t.split("<answer>")[-1].split("</answer>")[0] for t in texts]
    return [float(s == a) for s, a in zip(said, answer)]


print(probe(in_its_tags, answers=GOLD))

# %% [markdown]
# Better: a wrong answer earns nothing now. But where a row's gold answer is empty (a parser that
# failed, a line without `####`), an empty answer equals it, and is paid in full. A policy needs
# few such rows to learn silence.
#
# So: a missing answer never scores, whatever the gold answer is. `extract_answer` gives `None`
# unless there is exactly one answer.

# %% tags=["nbval-check-output"]
from grpo_utils import extract_answer


def one_answer(completions, answer, **kwargs) -> list[float]:
    said = [extract_answer(completion_text(c)) for c in completions]
    return [float(bool(s) and s == a) for s, a in zip(said, answer)]


print(probe(one_answer, answers=GOLD))

# %% [markdown]
# **ok**: no errors are left. The warning says that "1,250" for 1250 and "$42" for 42 earn nothing.
# Too strict is not unsound, but the policy is punished for being right. Compare numbers, not
# letters:

# %% tags=["nbval-check-output"]
from grpo_utils import same_answer


def sound_reward(completions, answer, **kwargs) -> list[float]:
    said = [extract_answer(completion_text(c)) for c in completions]
    return [float(same_answer(s, a)) for s, a in zip(said, answer)]


report = probe(sound_reward, answers=GOLD)
print(report)

# %% [markdown]
# Nothing left to find, for this lab. It does not know your task: *ok* means that the attacks it
# tries fail, not that none exists. Here are some of the completions and their scores.

# %%
WATCHED = "right, in the asked form|with a comma|wrong sign|several|nested"
table = report.table
table = table[(table.gold == "1250") & table.what.str.contains(WATCHED)]
table.set_index("what")[["label", "sound_reward"]]

# %% [markdown]
# (*neutral*: the lab does not judge it.)
#
# You need not write this each time: it is `correctness_reward` in `grpo_utils.rewards`, beside
# rewards for facts, choices, JSON, lengths and more. Which to use when, and how each is gamed:
# [docs/rewards.md](../docs/rewards.md). From a terminal, on a file of your own:
#
# ```
# python -m grpo_check probe my_rewards.py:my_reward --answers 42 1250 -5
# ```

# %% [markdown]
# ## 4. Watch a reward without training
#
# Two tools for the time before a run. First a **debug reward**: it prints what TRL hands over and
# scores everything 0.0, so that with weight 0.0 it changes nothing. We add it to the training of
# section 6.


# %%
def debug_reward(completions, **kwargs) -> list[float]:
    if kwargs["trainer_state"].global_step == 0:
        print("\nTRL hands over:", ", ".join(sorted(kwargs)))
        print("A completion:", completions[0])
    return [0.0 for _ in completions]


# %% [markdown]
# Second, **generation without training**. The policy is the tiny base with a fresh *adapter*
# (its small trainable part; lesson 03). It answers one prompt eight times: this is a group, as GRPO samples it.

# %%
from grpo_utils import generate, load_policy, load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)


def new_policy():
    return load_policy(
        profile.models[FAMILY],
        profile=profile,
        backend="transformers",
        load_in_4bit=False,
        seed=SEED,
    )


policy, tokenizer = new_policy()
prompts = [test_rows["prompt"][0]] * 8
group = generate(policy, tokenizer, prompts, max_new_tokens=32, seed=SEED)

# %%
gold = [test_rows["answer"][0]] * 8
print(prompts[0][-1]["content"], "gold:", gold[0])
for text, score in zip(group, sound_reward(group, answer=gold)):
    print(f"{score:4.1f}  {text}")

# %% [markdown]
# Look for two things. Are there both high and low scores? A group whose scores are all the same
# teaches nothing. And do you agree with each score?

# %% [markdown]
# ## 5. A form reward, and how you hack it
#
# Not all of these completions are in the asked form. Some notebooks therefore begin with a reward
# for the form alone, and let half a form earn something, so that there is a slope to climb. So let
# us count tags, a quarter of a point each.


# %%
def count_tags(completions, **kwargs) -> list[float]:
    tags = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
    texts = [completion_text(completion) for completion in completions]
    return [0.25 * sum(text.count(tag) for tag in tags) for text in texts]


# %% [markdown]
# ### Exercise 1: hack it by hand
#
# A clean completion earns 1.0 from `count_tags`. Write one that earns more and answers nothing.


# %%
def my_hack() -> str:
    """Your answer: a completion."""
    return ""


# %%
from grpo_utils import check_exercise


def earns_more_for_nothing(hack: str) -> bool | None:
    if not hack:
        return None
    answers = extract_answer(hack) is not None
    return count_tags([hack])[0] > count_tags([CLEAN])[0] and not answers


CHECK = [((my_hack(),), True)]
print(check_exercise("Exercise 1", earns_more_for_nothing, CHECK))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. The count has no upper end, so repeating any tag does it. That is what
# *reward hacking* is: nothing is broken, the reward pays exactly what it says.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def my_hack_solution() -> str:
    return "<answer>" * 7


CHECK = [((my_hack_solution(),), True)]
print(check_exercise("Exercise 1, solution", earns_more_for_nothing, CHECK))

# %% [markdown]
# The lab finds it too, in a fraction of a second. `farmable`: junk, repetition or stuffing earns
# more than a clean completion.

# %% tags=["nbval-check-output"]
print(probe(count_tags))

# %% [markdown]
# ## 6. How the policy hacks it
#
# You found the hack by thinking. The policy finds it by trying: it samples, and whatever scored
# above its group becomes likelier. We train on `count_tags`, and log a number that we do **not**
# train on (its weight is 0.0): whether form and answer are truly both right.

# %%
from grpo_utils import is_strictly_right


def truth(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %% [markdown]
# The settings are those of lesson 03, which explains them one by one; here only the rewards and
# their weights change. Nothing is kept on disk.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import keep_trainable_fp32, show_progress, training_arguments


def settings_with(weights: list[float]) -> GRPOConfig:
    arguments = training_arguments(
        profile,
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        reward_weights=weights,
        seed=SEED,
    )
    return GRPOConfig(**arguments)


# %%
def train_on(policy, tokenizer, rewards, weights) -> list[dict]:
    """Train, and give back what was logged."""
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=settings_with(weights),
        train_dataset=train_rows,
        reward_funcs=rewards,
    )
    keep_trainable_fp32(policy)
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


# %% [markdown]
# Half a minute. The bar shows the mean reward.

# %%
bad = [count_tags, truth, debug_reward]
hacked = train_on(policy, tokenizer, bad, [1.0, 0.0, 0.0])

# %% [markdown]
# The debug reward printed once what TRL hands over. Now the curves.

# %%
from grpo_utils import logged, reward_and_truth, show


def show_curves(history: list[dict], title: str) -> None:
    reward, right = (
        logged(history, key) for key in ("reward", "rewards/truth/mean")
    )
    figure = reward_and_truth(reward, right, title)
    alt = f"{title}: the reward goes from {reward[0]:.1f} to {reward[-1]:.1f}"
    alt += f" over {len(reward)} steps, the share of truly right answers"
    show(figure, f"{alt} from {right[0]:.2f} to {right[-1]:.2f}.")


show_curves(hacked, "Counted tags")

# %% [markdown]
# It first learns the form: reward and truth rise together, since most answers in form are right.
# Then, in some group, a completion with one tag too many earns a quarter of a point more than its
# neighbours, and a few steps later **the reward jumps while the truth falls to nothing**. The upper
# curve alone looks like the best run you ever had.

# %%
from grpo_utils import evaluate

judging = dict(max_new_tokens=32, seed=SEED)
after_hack = evaluate(policy, tokenizer, test_rows, **judging)
for text in after_hack.sampled[:3]:
    print(text[:70])

# %% [markdown]
# Three lessons in one picture. Attack a reward before you train on it. Log one number that you do
# not train on. And **read samples**: one look at these would have been enough.

# %% [markdown]
# ## 7. The mended reward, trained again
#
# ### Exercise 2: mend it
#
# Write `mended(completions, **kwargs)`: a quarter for each of the four tags that stands there exactly
# once, and nothing for one that is repeated. The check scores three texts, then asks the lab.

# %%
TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")


def mended(completions, **kwargs) -> list[float]:
    """Your answer: one score for each completion."""
    return []


# %% tags=["nbval-check-output"]
def lab_says(reward, fixed: dict, **given) -> str | None:
    first = {name: values[:1] * len(fixed) for name, values in given.items()}
    scores = reward(completions=list(fixed), **first)
    if not scores:
        return None
    for text, score in zip(fixed, scores):
        if score != fixed[text]:
            return f"{text!r} earns {score}, not {fixed[text]}"
    report = probe(reward, answers=given.get("answer"))
    return "ok" if report.ok else report.findings[0].what


TEXTS = {CLEAN: 1.0, "<answer>42": 0.25, "<answer>" * 4: 0.0}
OK = [((), "ok")]
print(check_exercise("Exercise 2", lambda: lab_says(mended, TEXTS), OK))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it: a tag counts only if it stands there exactly once, as Open R1's
# `tag_count_reward` does it. The course's own
# `incremental_format_reward` asks more: each tag in its place, something between the tags.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def mended_solution(completions, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    once = [[text.count(tag) == 1 for tag in TAGS] for text in texts]
    return [0.25 * sum(tags) for tags in once]


name = "Exercise 2, solution"
print(check_exercise(name, lambda: lab_says(mended_solution, TEXTS), OK))

# %% [markdown]
# The same training again: a fresh adapter, the same seed, the same number of steps, one point for
# the whole form. We train the course's own, stricter version; put `mended` in its place to try yours.

# %%
from grpo_utils import incremental_format_reward

policy, tokenizer = new_policy()
before = evaluate(policy, tokenizer, test_rows, **judging)
form_only = [incremental_format_reward, truth]
formed = train_on(policy, tokenizer, form_only, [1.0, 0.0])
after_form = evaluate(policy, tokenizer, test_rows, **judging)

# %%
show_curves(formed, "Tags in their places")

# %% [markdown]
# No hack: the reward ends at the form's one point, and stays. The lower curve rises with it. But two ways to
# answer are in form: `15 + 27 = 32`, where the model mostly forgets the carry, and adding digit by digit, where it is
# mostly right. This reward **pays both the same**, so how far the lower curve rises is luck: run the lesson with the
# other `FAMILY`, and it ends elsewhere. The third training pays form and correctness, correctness double.

# %%
policy, tokenizer = new_policy()
both = [sound_reward, incremental_format_reward, truth]
mended_run = train_on(policy, tokenizer, both, [2.0, 1.0, 0.0])
after_both = evaluate(policy, tokenizer, test_rows, **judging)

# %%
show_curves(mended_run, "Correctness, and tags in their places")

# %% [markdown]
# Now both curves tell the same story. On 200 held-out additions, sampled: how many are in form, and
# how many in form and right, with 95 % intervals.

# %%
runs = {
    "before": before,
    "counted tags": after_hack,
    "tags in place": after_form,
    "and correctness": after_both,
}
print(f"{'':17}{'form':>6}{'strict accuracy (95 % interval)':>32}")
for name, run in runs.items():
    rates = run.summary()
    low, high = rates["accuracy_ci95"]
    strict = f"{rates['accuracy']:.3f} ({low:.3f} to {high:.3f})"
    print(f"{name:17}{rates['format_rate']:6.3f}{strict:>32}")

# %% tags=["nbval-check-output"]
hack, reward = after_hack.summary(), logged(hacked, "reward")
print("counted tags, reward rose:", reward[-1] > 3 * reward[0])
print("counted tags, got worse:", hack["accuracy"] < 0.1)
print("tags in place, in form:", after_form.summary()["format_rate"] > 0.8)
print("and correctness, better:", after_both.summary()["accuracy"] > 0.6)

# %% [markdown]
# One task, one tiny model, one seed: this shows that it happens, not how often. How soon a policy
# finds a hack depends on how often it stumbles over it by chance, and on what the hack pays
# beside everything else. Try it: add `sound_reward` to `bad`, with weight 1.0.

# %% [markdown]
# ## 8. Weights, and what a group sees
#
# TRL multiplies each reward by its weight and adds. Then it subtracts the mean of the group and
# divides by the group's standard deviation: that is the *advantage*, and all that the policy is
# trained with. Take four completions, the first of them right and in form:

# %% tags=["nbval-check-output"]
from grpo_utils import group_advantages, weighted_sum

FOUR = [
    CLEAN,
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "I think <answer>42</answer>",
    "It is 42.",
]
right = sound_reward(FOUR, answer=["42"] * 4)
form = incremental_format_reward(FOUR)
print("right:", right, " form:", form)


def advantages(weights: list[float]) -> list[float]:
    sums = weighted_sum([right, form], weights)
    return [round(a, 2) for a in group_advantages(sums, len(FOUR))]


for weights in ([2.0, 1.0], [200.0, 100.0], [0.5, 2.0]):
    print(f"weights {weights}: advantages {advantages(weights)}")

# %% [markdown]
# - **The scale does not matter** (with TRL's default, `scale_rewards="group"`): a hundred times the
#   weights, the same advantages. Nor does a bonus for everybody: the mean takes it away.
# - **The proportion does.** With correctness at 2 the third completion, right and badly formed, is
#   better than the second, well formed and wrong. With the form at four times correctness they change
#   places: the policy is now taught to be wrong in style.
#
# Rule of thumb: correctness weighs more than all the rest together. The course's own set for
# mathematics keeps it. The lab judges a list of rewards by its weighted sum as well:

# %% tags=["nbval-check-output"]
from grpo_utils import math_rewards

rewards, weights = math_rewards()
print("weights", weights)
print(probe(rewards, weights=weights, answers=GOLD))

# %% [markdown]
# ## 9. Weights that adapt
#
# A form is learned early; from then on its reward is the same for all of a group, and centring
# removes it. One may fade it out on the way. `adaptive_weights` does that **from the logged history
# and nothing else**: a reward's weight falls as its recent mean rises. Being a pure function of what
# was logged, it gives a resumed run the weights that it had.
#
# From the history of the third training, with weights 2 and 1 at the start:

# %%
from grpo_utils import adaptive_weights, weight_curve

names = ["sound_reward", "incremental_format_reward"]
faded = [
    adaptive_weights(mended_run[:step], names, [2.0, 1.0])
    for step in range(steps)
]
first, last = faded[0], faded[-1]
show(
    weight_curve(faded, names),
    alt=f"Two weights over {steps} steps: correctness falls from "
    f"{first[0]:.2f} to {last[0]:.2f}, the form from {first[1]:.2f} to "
    f"{last[1]:.2f}.",
)

# %% [markdown]
# Both weights fall here, since both rewards are learned. What counts is their **proportion** (section 8):
# it moves towards whichever is learned later.

# %%
for when, pair in (("first", first), ("last", last)):
    times = pair[0] / pair[1]
    print(f"{when:5} correctness weighs {times:.2f} times the form")

# %% [markdown]
# To train with them, put `AdaptiveReward((r1, r2), (2.0, 1.0))` into `reward_funcs`: it sums the
# rewards itself, with these weights, and logs each part and weight. Whether fading helps *your* run is
# an open question; nobody has shown that it does in general. Start with fixed weights.

# %% [markdown]
# ## 10. A reward of your own
#
# ### Exercise 3
#
# The task: name the capital of a country. Gold answers are city names; models write "paris",
# "Paris." or "The answer is Paris". Write `capital_reward(completions, answer, **kwargs)`: 1.0 if the
# one `<answer>` names the city, else 0.0, so that the lab accepts it. (Then do the same for a
# task that is really yours.)


# %%
def capital_reward(completions, answer, **kwargs) -> list[float]:
    """Your answer: one score for each completion."""
    return []


# %% tags=["nbval-check-output"]
CITIES = ["Paris", "London", "New Delhi", "Addis Ababa"]
PARIS = {"<answer>paris.</answer>": 1.0, "<answer>Lyon</answer>": 0.0}


def capitals_lab() -> str | None:
    return lab_says(capital_reward, PARIS, answer=CITIES)


print(check_exercise("Exercise 3", capitals_lab, [((), "ok")]))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds one of many: take the one answer, compare in small letters without
# punctuation. `fuzzy_reward` also forgives a slip of spelling.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def plain(text: str | None) -> str:
    letters = (c for c in text or "" if c.isalpha() or c == " ")
    words = "".join(letters).lower().split()
    return " ".join(words).removeprefix("the answer is ")


def capital_solution(completions, answer, **kwargs) -> list[float]:
    said = [extract_answer(completion_text(c)) for c in completions]
    return [float(plain(s) == plain(a) != "") for s, a in zip(said, answer)]


name = "Exercise 3, solution"
said = lab_says(capital_solution, PARIS, answer=CITIES)
print(check_exercise(name, lambda: said, [((), "ok")]))

# %% [markdown]
# ## What to take along
#
# - The policy learns what the reward pays. Attack it first: `probe` costs a second.
# - A missing answer never scores. Several answers are none. Repetition never pays.
# - Read texts with `completion_text`, compare numbers as numbers, count lengths in tokens.
# - Correctness outweighs everything else together; the scale of the weights means nothing.
# - Log a number that you do not train on, and read samples.
#
# Next: [lesson 03](03_grpo_lora.ipynb) trains with these rewards from beginning to end. To read:
# Amodei et al. 2016, *Concrete problems in AI safety* (arXiv 1606.06565), section 4, on reward
# hacking; Gao et al. 2022, *Scaling laws for reward model overoptimization* (arXiv 2210.10760); the rewards of
# [Open R1](https://github.com/huggingface/open-r1/blob/main/src/open_r1/rewards.py), an open replication of
# DeepSeek-R1: read them with the questions of this lesson.
