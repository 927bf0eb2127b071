# %% [markdown]
# # 01 · Dataset preparation
#
# {{badges}}
#
# **You will be able to** turn raw records into rows that GRPO can learn from, yours or a public dataset's:
# with prompts the model understands, gold answers you can check, no question in both training and test, and
# none that teaches nothing.
#
# Nothing in a training run complains about bad rows. It runs to the end, and the reward stays where it
# was, or rises on questions that the test set shares. So every step below is followed by a check.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.1 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars below may come from a busier machine.
#
# **While it trains**, guess: of the prompts that the policy never solves today, how many can be dropped
# without loss?
#
# 1. Settings
# 2. What a row is
# 3. From messages to text
# 4. Plain strings: right for base models, ruin for chat models
# 5. Few-shot prompts
# 6. Gold answers
# 7. A file of your own
# 8. How long are the prompts?
# 9. Training and held-out rows
# 10. Prompts that teach nothing
# 11. Exercises
#
# You need Python's lists and dictionaries. Of GRPO you need one sentence: it samples a *group* of
# completions (answers) for each prompt, scores each, and makes those likelier that scored above their
# group's mean. The model in training is the *policy*. Any other word: the [glossary](../docs/glossary.md).

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
STEPS: int = 0  # optimizer steps of each training; 0: the lesson's 12
SEED: int = 0  # everything random follows from it
GSM8K_FILE: str = ""  # a JSONL file of GSM8K; "hub": download it

# %% [markdown]
# Section 6 reads records with worked solutions: those of a JSONL file that you name above, or GSM8K's training
# part, 7,473 school problems, from the Hub. On a machine without a GPU it asks the Hub only if you say so;
# without either it goes on with problems that are made here, in GSM8K's format.

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
)

machine, _ = find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
ask_hub = GSM8K_FILE == "hub" or (not GSM8K_FILE and machine.name != "cpu")
profile, steps = PROFILES["cpu"], STEPS or 12
prepare_machine(profile, offline=not ask_hub)
print(f"{profile.models[FAMILY]}, {steps} steps a training, on the CPU")

# %% [markdown]
# ## 2. What a row is
#
# For a supervised training (SFT) a row holds the text that the model should learn. For GRPO it holds a
# **prompt**, and what a reward needs to score an answer: here the **gold answer**, the known right one.
# The model writes its own solutions.

# %% tags=["nbval-check-output"]
from grpo_utils import chat_prompt

raw = {"question": "What is 15 + 27?", "solution": "5 + 7 = 12 ... 42"}
row = {"prompt": chat_prompt(raw["question"]), "answer": "42"}
for turn in row["prompt"]:
    print(f"{turn['role']:6} | {turn['content']}")
print("answer |", row["answer"])

# %% [markdown]
# - `prompt` is a list of *messages*, each with a role and a content. The **system prompt** says in which form
#   to answer. A reward that reads `<answer>` tags pays nothing to a model that was never told of them.
# - `answer` is text, since rewards compare text. TRL, the library that trains, hands every further column to the
#   rewards, by its name: add what yours needs.
#
# `check_rows` finds what would fail later, or never fail and only cost you a night:

# %% tags=["nbval-check-output"]
from grpo_utils import CourseError, check_rows

BROKEN = {
    "a plain string": {**row, "prompt": raw["question"]},
    "a number": {**row, "answer": 42},
    "an empty answer": {**row, "answer": " "},
    "the model spoke last": {
        **row,
        "prompt": [*row["prompt"], {"role": "assistant", "content": "42"}],
    },
}
for name, broken in BROKEN.items():
    try:
        check_rows([row, broken])
    except CourseError as error:
        print(f"{name}: {str(error)[:70]} ...")

# %% [markdown]
# Rows are counted from 0, so that `rows[1]` is the one that is meant.

# %% [markdown]
# ## 3. From messages to text
#
# A model reads no messages, only text. The **chat template**, which comes with its tokenizer, writes the
# roles between special tokens. TRL applies it for you, and this is what the policy sees:

# %%
from grpo_utils import load_policy, render_prompt

policy, tokenizer = load_policy(
    profile.models[FAMILY],
    profile=profile,
    backend="transformers",
    load_in_4bit=False,
    seed=SEED,
)
print(render_prompt(tokenizer, row["prompt"]))
print("special tokens:", tokenizer.all_special_tokens)

# %% [markdown]
# It ends where the model's turn begins. (Gemma 3's template knows no system role and puts the system
# prompt before the question.) Three questions to any template, before a training:
#
# 1. Is all that was said in it, the system prompt too? Some templates drop it, some raise an error.
# 2. Does the answer follow right on the prompt? A template that adds something in between, for example
#    an empty thinking part, shows the policy another start than the one you think of.
# 3. Does a turn end with the **EOS token**, at which sampling stops? If not, a model that has learned this
#    template never ends its answers.


# %% tags=["nbval-check-output"]
def check_template(tokenizer) -> dict[str, bool]:
    said = {"role": "assistant", "content": "It is 42."}
    talk = [*row["prompt"], said]
    whole = tokenizer.apply_chat_template(talk, tokenize=False)
    start = render_prompt(tokenizer, row["prompt"])
    ending = whole.rpartition(said["content"])[2]
    eos = tokenizer.eos_token
    return {
        "all is there": all(turn["content"] in whole for turn in talk),
        "the answer follows": whole.startswith(start + said["content"]),
        "a turn ends with EOS": eos is not None and eos in ending,
    }


print(check_template(tokenizer))

# %% [markdown]
# With the wrong EOS token (a common fault of base models that were given a template) the third fails:

# %% tags=["nbval-check-output"]
from copy import deepcopy

wrong = deepcopy(tokenizer)
wrong.eos_token = wrong.pad_token
print(check_template(wrong))

# %% [markdown]
# `preflight`, in the course's package, asks this and much else of a whole configuration:
# [docs/preflight.md](../docs/preflight.md).

# %% [markdown]
# ## 4. Plain strings: right for base models, ruin for chat models
#
# TRL puts a prompt into the chat template if it is a list of messages, and **only** then. A plain string
# goes to the model as it is, and nothing says so. What does our chat model make of it? A hundred held-out
# questions, both ways.

# %%
from datasets import Dataset

from grpo_utils import Rate, generate, is_strictly_right, load_rows

held_out = load_rows("addition", "test", 100, SEED)
questions = [prompt[-1]["content"] for prompt in held_out["prompt"]]


def ask(prompts) -> list[str]:
    return generate(policy, tokenizer, prompts, max_new_tokens=32, seed=SEED)


# %% [markdown]
# *Strict* is: in the asked form **and** right. The second number is kinder and looks only at the last number
# of the text.

# %%
import re


def judged(texts: list[str]) -> str:
    golds, n = held_out["answer"], len(texts)
    strict = sum(is_strictly_right(t, g) for t, g in zip(texts, golds))
    said = [re.findall(r"\d+", text)[-1:] for text in texts]
    kind = sum(numbers == [gold] for numbers, gold in zip(said, golds))
    return f"strict {Rate(strict, n)}\n  last number {Rate(kind, n)}"


as_chat = ask(held_out["prompt"])
as_text = ask(questions)
print("messages:", judged(as_chat))
print("strings: ", judged(as_text))

# %%
for question, chat, text in list(zip(questions, as_chat, as_text))[:4]:
    print(f"{question}\n  as messages: {chat}\n  as a string: {text!r}")

# %% [markdown]
# The skill is there, and the string does not reach it: a model that was trained on turns has never seen a question
# without one. This tiny model ends soon and says nonsense. Large chat models have been reported to do the
# opposite, to run on until they are cut off. Either way the reward is about 0 and no error is raised;
# [lesson 04](04_reading_a_run.ipynb), section 11, trains on such rows.
#
# **Base models** are the other case. They know no turns, only text that goes on, and a plain string is right
# for them: an instruction, examples, and the beginning of an answer.

# %% tags=["nbval-check-output"]
from grpo_utils import plain_prompt

EXAMPLES = [("What is 12 + 34?", "46"), ("What is 58 + 17?", "75")]
print(plain_prompt("What is 15 + 27?", "Add.", EXAMPLES))

# %% [markdown]
# What such a prompt cannot give is an **end**. A base model has learned to go on, so after its answer it may
# well write "Question:" and the next one, until the limit. Watch `completions/clipped_ratio` and the EOS
# token: with rewards that need an end, GRPO can teach it, if it sometimes happens by itself. And if you have
# the choice, take the instruct version and messages.

# %% [markdown]
# ## 5. Few-shot prompts
#
# Examples in the prompt show a chat model what you want. They belong in it as **earlier turns**, so that the
# template puts each where an answer stands:

# %%
from grpo_utils import SYSTEM_PROMPT


def in_form(a: int, b: int) -> str:
    c = a + b
    return f"<reasoning>{a} + {b} = {c}</reasoning><answer>{c}</answer>"


SHOTS = [
    (f"What is {a} + {b}?", in_form(a, b)) for a, b in [(12, 34), (58, 17)]
]
few = [chat_prompt(q, SYSTEM_PROMPT, SHOTS) for q in questions]
print(render_prompt(tokenizer, few[0]))

# %% [markdown]
# Does it help? Measure it. That is the rule for every idea about prompts:

# %%
as_few = ask(few)
for name, texts in (("no examples", as_chat), ("two examples", as_few)):
    print(f"{name:13} {judged(texts)}")
    print(" ", texts[0])

# %% [markdown]
# Here it **harms**: far fewer answers are right, because this tiny model has never seen a conversation with earlier answers. Large base models gain from
# examples (Brown et al. 2020, arXiv 2005.14165), and large instruct models are said to. Two costs remain for them: every prompt grows longer, and
# all completions of a group grow more alike, while GRPO lives on their differences. Often one starts with
# examples to get any reward at all and drops them once the form is learned.
#
# And an example is a question with its answer: it must not be one of the held-out questions.

# %% [markdown]
# ## 6. Gold answers
#
# Now whole records: your file's, GSM8K's from the Hub, or, if there is neither, problems that we make in GSM8K's
# format: a worked solution, and the result after `####`.

# %%
import random

from grpo_utils import read_gsm8k

NAMES = ["Ana", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo"]
NAMES += ["Iris", "Jonas", "Karin", "Leo", "Mara", "Nils", "Olga", "Paul"]
NAMES += ["Rosa", "Sven", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zoe"]


def made_problem(draw: random.Random) -> dict:
    name, what = draw.choice(NAMES), draw.choice(["pens", "books", "eggs"])
    counts = [draw.randint(10, 2000) for _ in range(draw.randint(2, 9))]
    then = "".join(f" Then {name} gets {n} more." for n in counts[1:])
    asked = f"{name} has {counts[0]} {what}.{then} How many {what} are there?"
    sums = " + ".join(map(str, counts))
    return {
        "question": asked,
        "answer": f"{sums} = {sum(counts)}\n#### {sum(counts):,}",
    }


# %%
path = "" if GSM8K_FILE == "hub" else GSM8K_FILE
records = []
if path or ask_hub:
    try:
        records = read_gsm8k("train", path)
        source = "of your file" if path else "GSM8K's training part"
    except CourseError as error:
        if path:
            raise  # a file that you name has to be there, and not empty
        print(error)
if not records:
    draw, source = random.Random(SEED), "made here"
    records = [made_problem(draw) for _ in range(1000)]
print(f"{len(records)} records, {source}")

# %%
print(records[0]["question"], records[0]["answer"], sep="\n\n")

# %% [markdown]
# The gold answer is what follows the last `####`, without thousands commas. `rows_from` makes the rows, and
# `read_answer` says how to get the answer from the column. What comes back is a report: **no record is
# left out without a note that says which, and why.** Ten notes of a kind are printed, and how many more there are;
# `report.refused` and `report.changed` hold them all.

# %%
from grpo_utils import gsm8k_answer, rows_from

report = rows_from(records, read_answer=gsm8k_answer)
rows = report.all_rows()  # an error if one was refused
print(report)
print([row["answer"] for row in rows[:5]])

# %% [markdown]
# A gold answer that no reward can read is a row on which nobody can be right, or only who writes the same
# characters: "N/A" pays for "N/A". Ours are numbers, so each has to be read as one **and**, put into a flawless
# completion, be paid in full.

# %%
from grpo_utils import correctness_reward, parse_number

golds = [row["answer"] for row in rows]
flawless = [f"<answer>{gold}</answer>" for gold in golds]
paid = correctness_reward(completions=flawless, answer=golds)
unreadable = sum(parse_number(gold) is None for gold in golds)
print("no number:", unreadable)
print("of", len(golds), "flawless completions, paid:", sum(paid))

# %% tags=["nbval-check-output"]
sound = unreadable == 0 and sum(paid) == len(golds)
print("every gold answer can be earned:", sound)

# %% [markdown]
# ## 7. A file of your own
#
# `read_table` reads CSV, TSV, JSON and JSONL, whole or not at all. Here is a file as people have them: written
# by an old program, with semicolons.

# %% tags=["nbval-check-output"]
from pathlib import Path

from grpo_utils import read_table

FILE = """frage;loesung
Ein Café verkauft 12 Tassen zu 3 €. Einnahmen?;36
 Was ist 15 + 27? ;42
Was ist 8 + 9?;
was  ist 15 + 27?;42
Was ist 7 + 7?;14
Was ist 7 + 7?;15
"""
mine = Path("outputs/lesson01_example.csv")
mine.parent.mkdir(exist_ok=True)
_ = mine.write_bytes(FILE.encode("cp1252"))


# %% [markdown]
# The first two calls fail and say what to do; the third does it.


# %% tags=["nbval-check-output"]
def attempt(**how) -> list[dict]:
    try:
        return read_table(mine, **how)
    except CourseError as error:
        print(error, "\n")
        return []


attempt()
attempt(encoding="cp1252")
read = attempt(encoding="cp1252", delimiter=";")
mine.unlink()
print(len(read), "records, the first:", read[0])

# %% [markdown]
# Ragged lines, a quote that never closes, a header with a name twice, broken JSON, no records at all: each is an
# error, with its line where there is one.
# Why be so strict? Python's own CSV reader takes an open quote as the start of a very long field and swallows
# the rest of the file, silently.
#
# The records are read; now to the rows.

# %% tags=["nbval-check-output"]
try:
    rows_from(read)
except CourseError as error:
    print(error, "\n")
own = rows_from(read, question="frage", answer="loesung")
print(own)

# %% [markdown]
# - Row 2 has no answer. With some rewards an empty gold answer pays an empty completion.
# - Row 3 repeats row 1; case and spaces make no new question. (If yours do, as in "5 Mb" and "5 MB", word the
#   questions further apart.)
# - Rows 4 and 5 contradict each other. One is wrong, and nobody but you knows which, so both are refused.
#
# You decide: mend the file, or go on with `own.rows`. `all_rows()` is the strict way, and stops.

# %% tags=["nbval-check-output"]
try:
    own.all_rows()
except CourseError as error:
    print(str(error).splitlines()[0])
print("going on with", len(own.rows))

# %% [markdown]
# One more fault that no reader can see: a UTF-8 file that some program opened as cp1252 and saved again. It
# is valid, and the words are broken. `rows_from` refuses what is surely such damage; a little of it, such as one
# lone "Å¡" for "š", looks too much like a sound text and passes. Read some of your rows.

# %% tags=["nbval-check-output"]
damaged = "Ein Café verkauft 5 Tassen zu 3 €.".encode().decode("cp1252")
print(rows_from([{"question": damaged, "answer": "15"}]))

# %% [markdown]
# ## 8. How long are the prompts?
#
# Prompt and completion have to fit into memory and into the model's context. Many tutorials set
# `max_prompt_length`. TRL had it, cut off the **beginning** of longer prompts (the system prompt first!), and took it
# out; now a prompt is never cut. So look at the lengths, and drop what is too long yourself.

# %%
import numpy

from grpo_utils import prompt_lengths

dataset = Dataset.from_list(rows)
lengths = prompt_lengths(dataset, tokenizer)
shares = (0.5, 0.9, 0.95, 0.99, 1.0)
at = [int(n) for n in numpy.quantile(lengths, shares, method="higher")]
for share, length in zip(shares, at):
    print(f"{share:4.0%} of the prompts have at most {length} tokens")
limit = at[2]

# %%
from grpo_utils.plots import length_histogram, show

show(
    length_histogram(lengths, limit),
    alt=f"Histogram of {len(lengths)} prompt lengths from {min(lengths)} to "
    f"{max(lengths)} tokens, half of them at most {at[0]}; a dashed line "
    f"marks the limit of {limit}, beyond which 5 % or less lie.",
)

# %% [markdown]
# (The tiny tokenizer knows 512 pieces of words; a real one needs far fewer tokens for the same text. Always measure
# with the tokenizer of your model.) A few very long prompts decide how much memory a batch takes.

# %%
from grpo_utils import drop_long_prompts

short = drop_long_prompts(dataset, tokenizer, limit)
gone = [n for n in lengths if n > limit]
longest = max(gone, default=0)
print(f"kept {len(short)}, dropped {len(gone)}, the longest {longest}")

# %% [markdown]
# The filter changes your data: long problems are often the hard ones. Say what you dropped, and how many.

# %% [markdown]
# ## 9. Training and held-out rows
#
# A test on questions that were trained on measures memory. The usual split shuffles the rows and cuts: a question
# that stands there twice may fall on both sides. See it on additions, among which we hide copies.


# %%
def addition_asked(words: str, a: int, b: int) -> dict:
    prompt = chat_prompt(words.format(a=a, b=b))
    return {"prompt": prompt, "answer": str(a + b)}


draw = random.Random(SEED)
pairs = [(draw.randint(10, 99), draw.randint(10, 99)) for _ in range(300)]
asked = [addition_asked("What is {a} + {b}?", *p) for p in pairs]
asked += [addition_asked("what is  {a} + {b} ?", *p) for p in pairs[:40]]
asked += [addition_asked("WHAT is {a} + {b}?", *p) for p in pairs[:40]]
asked += [addition_asked("Add {b} to {a}.", *p) for p in pairs[40:80]]
draw.shuffle(asked)
print(len(asked), "rows")

# %% [markdown]
# `find_twins` pairs rows that ask the same, either literally (but for case and spaces) or with the same numbers in
# other words.

# %%
from collections import Counter

from grpo_utils import find_twins, numbers_key, split_rows


def leaks(train, test) -> str:
    """How many of the held-out rows have a twin in training."""
    how = Counter(twin.how for twin in find_twins(train, test))
    return f"held out {len(test):3}, leaked: {how['same']:2} copies, " + (
        f"{how['numbers']:2} with the same numbers"
    )


cut = len(asked) * 8 // 10
print("shuffled and cut: ", leaks(asked[:cut], asked[cut:]))
by_question = split_rows(asked, 0.2, SEED)
print("split by question:", leaks(*by_question))
by_numbers = split_rows(asked, 0.2, SEED, key=numbers_key)
print("split by numbers: ", leaks(*by_numbers))

# %% [markdown]
# - **Shuffled and cut** leaks, and nobody would see it in the result but by its being too good.
# - **By question**: a checksum of the question, without case and spaces, decides the side. Copies cannot part. And
#   a row keeps its side when others are added later, which no shuffle promises.
# - **By numbers**: rewordings stay together too. That suits sums. In word problems the same numbers may be
#   chance, so there `find_twins` only reports, and you read.

# %% tags=["nbval-check-output"]
print("no copies leak:", "leaked:  0" in leaks(*by_question))
print("no numbers leak:", find_twins(*by_numbers) == [])

# %% [markdown]
# The same for the records of section 6. (GSM8K has a test part of its own; a file of yours may not.) If rows share
# their numbers, the most similar pairs stand beneath, to be read; the long problems made here seldom do.

# %%
train, test = split_rows(rows, 0.1, SEED)
twins = find_twins(train, test)
print(leaks(train, test))
for twin in twins[:2]:
    print(f"\nlike by {twin.similarity:.0f} of 100:")
    print(" ", train[twin.first]["prompt"][-1]["content"])
    print(" ", test[twin.second]["prompt"][-1]["content"])

# %% [markdown]
# And **within** a test set: a question that stands there twice counts as two, and pretends to know more than it does.
# A split by question keeps copies together, on the held-out side as well. So look there too:

# %%
within = find_twins(by_question[1])
how = Counter(twin.how for twin in within)
n = len(by_question[1])
print(f"held out: {n} rows, {how['same']} of them copies of others,")
print(f"{how['numbers']} with the numbers of others in other words")
for twin in within[:1]:
    for place in (twin.first, twin.second):
        print(" ", by_question[1][place]["prompt"][-1]["content"])
print(f"so {n - len(within)} sums to measure with, not {n}")

# %% [markdown]
# Keep one of each. The course's own held-out additions hold each pair of numbers once, one way round: 15 + 27 or
# 27 + 15.

# %% [markdown]
# ## 10. Prompts that teach nothing
#
# An advantage is the distance to the group's mean, mostly in standard deviations. If all completions of a group earn the same, all right or all
# wrong, every advantage is 0: the group was paid for and teaches nothing. TRL logs their share as
# `frac_reward_zero_std`. So why not keep the prompts that the policy solves **sometimes**?
#
# A pool of 200 prompts for our policy: half two-digit sums, which it sometimes gets right, half three-digit ones,
# which are beyond it. We sample each eight times; the *pass rate* of a prompt is the share of right answers.

# %%
from grpo_utils import addition_rows, evaluate_samples, pass_rates

draw = random.Random(SEED)
three = [[draw.randint(100, 999) for _ in "ab"] for _ in range(100)]
pool = Dataset.from_list(
    addition_rows(100, "train", SEED)
    + [addition_asked("What is {a} + {b}?", *pair) for pair in three]
)


how = dict(samples=8, max_new_tokens=32)
sampled = evaluate_samples(policy, tokenizer, pool, seed=SEED, **how)
rates = [sum(right) / 8 for right in sampled.right]


def rates_of(rows, seed: int, model=policy) -> list[float]:
    """The same in one call, where only the rates are needed."""
    return pass_rates(model, tokenizer, rows, seed=seed, **how)


# %%
from grpo_utils.plots import pass_rate_bars

halves = {"two digits": rates[:100], "three digits": rates[100:]}
told = "; ".join(
    f"{name}: {rates.count(0)} of 100 never, {rates.count(1)} always"
    for name, rates in halves.items()
)
show(
    pass_rate_bars(halves, 8),
    alt=f"Bars: prompts by right answers of eight. {told}.",
)
print(told)

# %% [markdown]
# `drop_tied` keeps the rows with a rate between 0 and 1. Did it work? With a reward that pays for right and for
# nothing else, a group ties exactly where its rate is 0 or 1.

# %%
from grpo_utils import drop_tied


def ties(rates) -> Rate:
    return Rate(sum(rate in (0, 1) for rate in rates), len(rates))


kept = drop_tied(pool, rates)
chosen = [rate for rate in rates if 0 < rate < 1]
print("ties before:                 ", ties(rates))
print("after, on the same samples:  ", ties(chosen))
print("after, on new samples:       ", ties(rates_of(kept, SEED + 1)))

# %% [markdown]
# The middle line is zero by its making: the rows were chosen by these very samples, so it proves nothing. The last
# is what a training will see. The filter has worked, and yet some groups tie again: a prompt that is solved twice
# in ten tries comes out at 0 of 8 in one case of six (0.8 to the power of 8 is 0.17).
#
# The same chance dropped good rows. Ask the two-digit prompts anew that were "never solved":

# %%
lost = [i for i in range(100) if rates[i] == 0]
anew = rates_of(pool.select(lost), SEED + 2) if lost else []
never, solved = rates.count(0), sum(map(bool, anew))
print(f"two-digit prompts dropped for 0 of 8: {len(lost)}")
print(f"of these, solved at least once in 8 new samples: {solved}")
print(f"never solved, of both kinds: {never}")
print(f"of these can be dropped without loss: at most {never - solved}")

# %% [markdown]
# That is the answer to the guess, for this policy and today: at most the last number, and nobody sees which ones.
# "0 of 8" is a measurement, and not a property of the prompt. More samples make it surer and dearer. So the price:

# %%
ROWS, SAMPLES = 7473, 8  # GSM8K's training rows
t4 = PROFILES["t4"]
print(f"{ROWS} rows x {SAMPLES} samples = {ROWS * SAMPLES} completions,")
share = ROWS * SAMPLES / t4.completions_per_step
print(f"as many as {share:.0f} steps of training on the t4 profile, which")
print(f"has {t4.steps} steps by default.")

# %% [markdown]
# Filtering all of GSM8K would cost far more than the training itself. It pays where the same rows are
# trained on again and again, or where a small part is enough: filter as many rows as you will use.
#
# Now the real metric. Two short trainings from the same start, on the pool and on what was kept, with one
# reward: right or not.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import completion_text, keep_trainable_fp32
from grpo_utils import show_progress, training_arguments


def right_reward(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


def settings() -> GRPOConfig:
    arguments = training_arguments(
        profile, output_dir=tempfile.mkdtemp(), max_steps=steps, seed=SEED
    )
    return GRPOConfig(**arguments)


# %%
def trained(rows):
    """A fresh policy, trained on these rows, and its log."""
    model, _ = load_policy(
        profile.models[FAMILY],
        profile=profile,
        backend="transformers",
        load_in_4bit=False,
        seed=SEED,
    )
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=settings(),
        train_dataset=rows,
        reward_funcs=right_reward,
    )
    keep_trainable_fp32(model)
    show_progress(trainer)
    trainer.train()
    return model, trainer.state.log_history


# %%
on_pool, pool_log = trained(pool)
on_kept, kept_log = trained(kept)

# %%
from grpo_utils import logged

GROUPS = profile.completions_per_step // profile.num_generations
for name, log in (("the pool", pool_log), ("the kept", kept_log)):
    tied = logged(log, "frac_reward_zero_std")
    half = len(tied) // 2 or 1
    for part, values in (("first", tied[:half]), ("second", tied[half:])):
        if values:
            hits = round(sum(values) * GROUPS)
            rate = Rate(hits, len(values) * GROUPS)
            print(f"{name}, {part} half: frac_reward_zero_std {rate}")

# %% [markdown]
# (The groups of one training are not independent of each other, so take the intervals as a rough guide.) In the first half the
# filter has cut the ties. What the second half shows depends on how fast the policy learns: a prompt that
# is solved always now ties as well. **The filter is for the policy of the day.** How old is our list after these few steps?

# %%
now = rates_of(pool, SEED + 3, on_kept)
was_kept = [new for new, old in zip(now, rates) if 0 < old < 1]
was_dropped = [new for new, old in zip(now, rates) if old in (0, 1)]
print("kept, tied now:      ", ties(was_kept))
solved = Rate(sum(rate > 0 for rate in was_dropped), len(was_dropped))
print("dropped, solved now: ", solved)

# %% [markdown]
# Some of the kept rows are too easy by now, and some of the dropped ones could teach. In a long run, filter anew
# now and then, or sample more prompts than you need and drop tied groups while training, as DAPO does (Yu et al.
# 2025, arXiv 2503.14476).
#
# Did the training on fewer, better rows come out ahead? Paired, on the held-out questions:

# %%
from grpo_utils import paired_interval

ends = [rates_of(held_out, SEED, model) for model in (on_pool, on_kept)]
print(f"trained on the pool: {numpy.mean(ends[0]):.3f}")
print(f"trained on the kept: {numpy.mean(ends[1]):.3f}")
difference = paired_interval(*ends)
print("difference:", difference.signed())
ahead = "the kept" if difference.value > 0 else "the pool"
if difference.covers_zero:
    ahead = "no difference shown, the interval covers zero"
print("ahead:", ahead)

# %% [markdown]
# The last line is the answer for these two policies. It is none about the method: one training each, and another
# seed may say something else ([lesson 06](06_evaluation.ipynb), section 10). What is sure: of the same number of
# completions, more were in groups that teach.
#
# Last: **form rewards break ties.** The same samples, scored with the rewards of lesson 03, which also pay for
# parts of the form:

# %%
from grpo_utils import math_rewards, weighted_sum

rewards, weights = math_rewards()
tied = {"right or not": 0, "with form": 0}
for texts, gold in zip(sampled.texts, sampled.answers):
    scores = [reward(texts, answer=[gold] * 8) for reward in rewards]
    sums = weighted_sum(scores, weights)
    tied["with form"] += max(sums) - min(sums) < 1e-6
    tied["right or not"] += (
        len({is_strictly_right(t, gold) for t in texts}) == 1
    )
for name, hits in tied.items():
    print(f"{name:13} {Rate(hits, sampled.n)}")

# %% [markdown]
# Far fewer groups tie. But what do the rest of them teach? On a three-digit sum the answer is wrong in each
# completion, so all that the group learns there is form. A low `frac_reward_zero_std` says that something is
# learned, and not what.

# %% [markdown]
# ## 11. Exercises
#
# ### Exercise 1: gold answers from a foreign format
#
# Another dataset ends its solutions with `\boxed{…}`, and some of them hold more than one box. Write
# `read_boxed(solution)`: the content of the **last** box without spaces around it, or `None` where there is none or it
# is empty (not "": an empty gold answer must not pass as one). Boxes in boxes do not occur.


# %%
def read_boxed(solution: str) -> str | None:
    """Your answer: for example "42"."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BOXED = [((r"So it is \boxed{42}.",), "42"), ((r"\boxed{ 7 }",), "7")]
BOXED += [((r"First \boxed{1}, then \boxed{2}.",), "2")]
BOXED += [((r"No box: 42",), None), ((r"\boxed{} is empty",), None)]
BOXED += [((r"\boxed{x - 3}",), "x - 3"), ((r"\boxed{1}, \boxed{}",), None)]
print(check_exercise("Exercise 1", read_boxed, BOXED))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. `rows_from(records, read_answer=boxed_solution)` then refuses the records without an
# answer and names them. (For boxes in boxes: `extract_boxed` of `grpo_utils`.)
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def boxed_solution(solution: str) -> str | None:
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", solution)
    return (boxes[-1].strip() or None) if boxes else None


print(check_exercise("Exercise 1, solution", boxed_solution, BOXED))

# %% [markdown]
# ### Exercise 2: find the leak
#
# Write `leaked(train, test)`: the questions of `test`, in their order, that also stand in `train` if case, spaces
# **and punctuation at the end** do not matter.


# %%
def leaked(train: list[str], test: list[str]) -> list[str]:
    """Your answer: a list of questions of test."""
    return []


# %% tags=["nbval-check-output"]
TRAIN = ["What is 15 + 27?", "How many eggs are left?", "Who won?"]
TEST = ["what is  15 + 27", "How many are left?", "WHO WON ?"]
TRAIN += ["What is 1.5 + 2?"]  # within a question punctuation does matter
TEST += ["What is 15 - 2?"]
FOUND = [((TRAIN, TEST), ["what is  15 + 27", "WHO WON ?"])]
FOUND += [((["a"], ["b"]), [])]
print(check_exercise("Exercise 2", leaked, FOUND))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it: one key for both sides, and a set.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
from grpo_utils import prompt_key


def leaked_solution(train: list[str], test: list[str]) -> list[str]:
    def key(question: str) -> str:
        return prompt_key(question).rstrip(" ?.!")

    known = {key(question) for question in train}
    return [question for question in test if key(question) in known]


print(check_exercise("Exercise 2, solution", leaked_solution, FOUND))

# %% [markdown]
# ### Exercise 3: a length filter
#
# Write `places_that_fit(lengths, context, completion)`: the places of the prompts that fit, together with a
# completion of at most `completion` tokens, into a context of `context` tokens.


# %%
def places_that_fit(lengths: list[int], context: int, completion: int) -> list:
    """Your answer: places, counted from 0."""
    return []


# %% tags=["nbval-check-output"]
FIT = [(([100, 300, 200, 201], 456, 256), [0, 2])]
FIT += [(([10, 20], 30, 10), [0, 1]), (([10, 20], 30, 30), [])]
print(check_exercise("Exercise 3", places_that_fit, FIT))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. `dataset.select(places)` then makes the dataset.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def fit_solution(lengths: list[int], context: int, completion: int) -> list:
    room = context - completion
    return [place for place, n in enumerate(lengths) if n <= room]


print(check_exercise("Exercise 3, solution", fit_solution, FIT))

# %% [markdown]
# ## What to take along
#
# - A row is a prompt of messages and what the reward needs. Look at one as the model sees it.
# - Chat models get messages, base models get text; the wrong one fails without an error.
# - Every gold answer has to be earned by a flawless completion. Try it, for all rows.
# - Refuse bad records by name. What is dropped silently is never found again.
# - Split by the question and not by the row; then look for twins.
# - A pass-rate filter belongs to one policy, costs samples, and errs by chance.
#
# To read: Cobbe et al. 2021 (arXiv 2110.14168) on GSM8K; Yu et al. 2025 (arXiv 2503.14476) on dropping tied
# groups. Next: [lesson 02](02_rewards.ipynb), the rewards.
