# %% [markdown]
# # 01 · Dataset preparation
#
# We ask a tiny model 100 questions as chat messages, and {{correct["messages"][1]}} answers end in the right number. We ask the same
# questions as plain strings, and {{correct["strings"][1]}} do. Nothing raises an error.
#
# **Guess first:** chat messages again, but now two solved examples come before each question. How many of the 100 answers end in
# the right number?
#
# You will be able to turn raw records into rows that GRPO can train on, and to find the faults that raise no error.
#
# You need [lesson 00](00_start.ipynb).
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 0.8 GB of memory.
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
PROFILE: str = "auto"  # any profile; this lesson always runs on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
SEED: int = 0  # seeds all randomness
GSM8K_FILE: str = ""  # a JSONL file, or "hub" to download (section 5)

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, offline=GSM8K_FILE != "hub")

# %% [markdown]
# ## 2. Write a row
#
# A row for GRPO holds a `prompt` and what the reward needs: here the *gold answer*, the known correct result. There is no worked
# solution, because the policy writes its own.

# %% tags=["nbval-check-output"]
from grpo_utils import chat_prompt

question = "What is 15 + 27?"
row = {"prompt": chat_prompt(question), "answer": "42"}
for message in row["prompt"]:
    print(f"{message['role']:6} | {message['content']}")
print("answer |", row["answer"])

# %% [markdown]
# The first message, the *system prompt*, says how to answer. If your reward reads `<answer>` tags, this prompt must ask for
# them. TRL passes `answer`, like every other column, to your reward functions by name. `check_rows` reports rows that TRL
# accepts although they teach nothing:

# %% tags=["nbval-check-output"]
from grpo_utils import CourseError, check_rows

for broken in ({"prompt": question}, {"answer": 42}, {"answer": " "}):
    try:
        check_rows([row, {**row, **broken}])
    except CourseError as error:
        print(error)

# %% [markdown]
# ## 3. Read what the model reads
#
# A model reads text, not messages. The tokenizer's *chat template* joins the messages into one text, with special tokens
# between them. TRL applies the template for you. The result is:

# %%
from transformers import AutoTokenizer

from grpo_utils import model_path

path = model_path(run.model)  # the folder of the tiny model
tokenizer = AutoTokenizer.from_pretrained(path)
as_text = dict(tokenize=False, add_generation_prompt=True)  # text, not numbers
print(tokenizer.apply_chat_template(row["prompt"], **as_text))

# %% [markdown]
# The text ends where the model starts to answer.

# %% [markdown]
# ## 4. Compare three kinds of prompts
#
# TRL applies the template **only** to lists of messages. It passes a plain string to the model unchanged, without a warning. A
# *few-shot* prompt shows examples with their answers, as earlier messages. Here is one as text:

# %%
from datasets import Dataset
from transformers import AutoModelForCausalLM

from grpo_utils import evaluate, load_rows

model = AutoModelForCausalLM.from_pretrained(path, dtype="float32")
held_out = load_rows("addition", "test", 100, SEED)
questions = [prompt[-1]["content"] for prompt in held_out["prompt"]]
FORMAT = "<reasoning>{0}</reasoning><answer>{1}</answer>"
SHOTS = [("What is 12 + 34?", FORMAT.format("12 + 34 = 46", 46))]
SHOTS += [("What is 58 + 17?", FORMAT.format("58 + 17 = 75", 75))]
prompts = {
    "messages": list(held_out["prompt"]),
    "strings": questions,
    "few-shot": [chat_prompt(asked, examples=SHOTS) for asked in questions],
}
print(tokenizer.apply_chat_template(prompts["few-shot"][0], **as_text))

# %% [markdown]
# The next cell asks 100 questions in each form. The *strict accuracy* is the share of answers that are correct and in the required
# format. The second number ignores the format.

# %%
import re

correct = {}
for kind, asked in prompts.items():
    rows = Dataset.from_dict({"prompt": asked, "answer": held_out["answer"]})
    result = evaluate(model, tokenizer, rows, max_new_tokens=32, seed=SEED)
    last = [re.findall(r"\d+", text)[-1:] for text in result.sampled]
    hits = sum(n == [gold] for n, gold in zip(last, held_out["answer"]))
    correct[kind] = result.accuracy.hits, hits
    print(f"{kind}\n  strict accuracy:     {result.accuracy}")
    print(f"  last number correct: {hits} of {len(last)}")
    print(f"  {questions[0]} -> {result.sampled[0]!r}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# With two solved examples, {{correct["few-shot"][1]}} answers end in the right number: this tiny model has never seen earlier
# answers in a prompt. Large models often gain from examples, so evaluate yours with and without them.
#
# With messages, {{correct["messages"][1]}} of 100 answers end in the right number. Only {{correct["messages"][0]}}
# answers have the required format as well. Most look like `20 + 28 is 48.`
#
# With plain strings, the last number is correct in {{correct["strings"][1]}}. The model was trained on messages and has never
# seen a bare question. In training, the reward would stay near 0 without any error.
# </details>
#
# Give messages to an *instruct model*, which was trained to answer them. Give plain text to a *base model*, which was only
# trained to continue text, such as `"Question: What is 12 + 34?\nAnswer: 46\n\nQuestion: What is 15 + 27?\nAnswer:"`.

# %% [markdown]
# The template itself can be wrong, too. Check three things about it: every message appears, the answer follows the prompt
# directly, and the answer ends with the *EOS* token, the token that stops generation.


# %% tags=["nbval-check-output"]
def check_template(tokenizer) -> None:
    reply = {"role": "assistant", "content": "It is 42."}
    talk = [*row["prompt"], reply]
    whole = tokenizer.apply_chat_template(talk, tokenize=False)
    start = tokenizer.apply_chat_template(row["prompt"], **as_text)
    ending = whole.rpartition(reply["content"])[2]
    print("every message appears:", all(m["content"] in whole for m in talk))
    print("the answer follows:", whole.startswith(start + reply["content"]))
    print("the answer ends with EOS:", tokenizer.eos_token in ending)


check_template(tokenizer)
wrong = AutoTokenizer.from_pretrained(path, eos_token=tokenizer.pad_token)
print("\nwith the wrong EOS token:")
check_template(wrong)

# %% [markdown]
# The last line shows a common fault, caused here on purpose. The tokenizer declares an EOS token that the template does not
# write, so the model ends its answer but generation continues.
#
# **Print one prompt as text before you train on a thousand.**

# %% [markdown]
# ## 5. Load your own dataset and look at it
#
# GSM8K is a dataset of grade-school math problems, whose solutions end with `#### ` and the result. To stay offline, the next
# cell writes 1000 problems in that form to a file. A few of them end differently.

# %%
import json
import random
from pathlib import Path


def made_problem(draw: random.Random) -> dict:
    name = draw.choice(["Ana", "Ben", "Carla", "David", "Elena", "Felix"])
    counts = [draw.randint(10, 2000) for _ in range(draw.randint(2, 9))]
    more = "".join(f" Then {name} gets {n} more." for n in counts[1:])
    question = f"{name} has {counts[0]} pens.{more} How many pens are there?"
    end = draw.choice(97 * ["#### "] + 2 * ["Answer: "] + ["#### about "])
    solution = f"{sum(counts)} pens\n{end}{sum(counts):,}"
    return {"question": question, "answer": solution}


draw = random.Random(SEED)
problems = [made_problem(draw) for _ in range(1000)]
made = Path("lesson01_problems.jsonl")
_ = made.write_text("\n".join(map(json.dumps, problems)), encoding="utf-8")

# %% [markdown]
# `load_dataset` reads local files, and datasets from the *Hub*, Hugging Face's public store. For your own dataset on the Hub, write
# `load_dataset("your-name/your-data", split="train")`. GSM8K has two configurations, so its call also names one:

# %%
from datasets import disable_progress_bars, load_dataset

disable_progress_bars()
if GSM8K_FILE == "hub":
    loaded = load_dataset("openai/gsm8k", "main", split="train")
else:
    file = GSM8K_FILE or str(made)
    loaded = load_dataset("json", data_files=file, split="train")
made.unlink()
print(f"{loaded.num_rows} records from {GSM8K_FILE or 'this lesson'}")

# %% [markdown]
# Look at the columns, and read five records. Which column has the question, and where exactly is the gold answer?

# %%
print(loaded.features)
for record in loaded.select(range(5)):
    print("\n" + record["question"], record["answer"], sep="\n")

# %% [markdown]
# Then map each record to a row. `gold_answer` reads the number after the last `####` and returns `None` if there is none.


# %%
def gold_answer(solution: str) -> str | None:
    _, marker, answer = solution.rpartition("####")
    number = answer.strip().replace(",", "")
    is_number = re.fullmatch(r"-?\d+(\.\d+)?", number)
    return number if marker and is_number else None


def to_row(record: dict) -> dict:
    prompt = chat_prompt(record["question"])
    return {"prompt": prompt, "answer": gold_answer(record["answer"])}


mapped = loaded.map(to_row, remove_columns=loaded.column_names)
rows = check_rows([row for row in mapped if row["answer"]])
pairs = zip(loaded["answer"], mapped["answer"])
unread = [solution for solution, gold in pairs if gold is None]
print(
    f"rows: {len(rows)}, gold answers that could not be parsed: {len(unread)}"
)
for text in unread[:6]:
    print("  ", text.splitlines()[-1])

# %% [markdown]
# {{len(unread)}} of {{len(mapped)}} gold answers could not be parsed. Those after `Answer:` are good data: extend
# `gold_answer` to read them, and count again. Those with `about` are not exact, so no reward can check them: drop them.
#
# **Read the records that could not be parsed before you drop them: often the parser is wrong, not the data.**

# %% [markdown]
# ## 6. Read a dirty file
#
# Files that people typed have more faults. The next cell writes a German one (*frage*: question, *loesung*: answer), with
# semicolons and in the encoding cp1252, as if it were still 1998. `read_table` needs three attempts:

# %% tags=["nbval-check-output"]
from grpo_utils import read_table

FILE = """frage;loesung
Ein Café verkauft 12 Tassen zu 3 €. Einnahmen?;36
 Was ist 15 + 27? ;42
Was ist 8 + 9?;
was  ist 15 + 27?;42
Was ist 7 + 7?;14
Was ist 7 + 7?;15
Ein CafÃ© verkauft 5 Tassen zu 3 â‚¬. Einnahmen?;15
"""
mine = Path("lesson01_example.csv")
_ = mine.write_bytes(FILE.encode("cp1252"))
cp1252 = {"encoding": "cp1252"}
for how in ({}, cp1252, {**cp1252, "delimiter": ";"}):
    try:
        records = read_table(mine, **how)
    except CourseError as error:
        print(error, "\n")
mine.unlink()
print(len(records), "records, the first:", records[0])

# %% [markdown]
# Each error message contains the fix. `rows_from` then turns the records into rows, and rejects the bad ones:

# %% tags=["nbval-check-output"]
from grpo_utils import rows_from

report = rows_from(records, question="frage", answer="loesung")
print(report)

# %% [markdown]
# Rows are counted from 0. Row 3 duplicates row 1: a change of case or spacing does not make a new question. Of rows 4 and 5,
# only you can know which one is wrong. Row 6 was damaged by a program that read UTF-8 as cp1252. `report.rows` has the
# accepted rows.

# %% [markdown]
# ## 7. Try the reward on your answers
#
# A gold answer that no completion can match wastes its prompt. So score a perfect completion for every row. (For answers in
# words, see [Rewards](../docs/rewards.md); for those that no rule can check, see [lesson 12](12_own_data_and_judge.ipynb).)

# %% tags=["nbval-check-output"]
from grpo_utils import correctness_reward

golds = [row["answer"] for row in rows]
perfect = [f"<answer>{gold}</answer>" for gold in golds]
scores = correctness_reward(completions=perfect, answer=golds)
print("every perfect completion scores 1:", set(scores) == {1.0})

# %% [markdown]
# ## 8. Limit the prompt lengths
#
# Prompt and completion must fit in memory together, and TRL does not truncate prompts. So drop the longest rows. This cell
# keeps about 95%:

# %%
texts = [tokenizer.apply_chat_template(r["prompt"], **as_text) for r in rows]
tokens = tokenizer(texts, add_special_tokens=False)["input_ids"]
lengths = list(map(len, tokens))
limit = sorted(lengths)[len(lengths) * 95 // 100]
short = [row for row, length in zip(rows, lengths) if length <= limit]
print(f"lengths: {min(lengths)} to {max(lengths)} tokens")
print(f"95% of the prompts have at most {limit} tokens")
print(f"rows within this limit: {len(short)} of {len(rows)}")

# %% cellView="form" jupyter={"source_hidden": true}
from grpo_utils import show
from grpo_utils.plots import length_histogram

show(
    length_histogram(lengths, limit),
    alt=f"Histogram of {len(lengths)} prompt lengths from {min(lengths)} to "
    f"{max(lengths)} tokens. A dashed line marks the limit of {limit}; "
    f"{len(rows) - len(short)} prompts are longer.",
)

# %% [markdown]
# The limit drops {{len(rows) - len(short)}} rows. Long problems are often the hard ones, so say how many you dropped.

# %% [markdown]
# ## 9. Split without leaks
#
# A *leak* is a question that appears in both the training rows and the held-out rows. It makes memorization look like skill.
# The usual split shuffles the rows and cuts the list in two. To test it, hide 80 copies (with different case or spacing) and
# 40 reworded questions among 300 addition problems:


# %%
def problem(words: str, a: int, b: int) -> dict:
    prompt = chat_prompt(words.format(a=a, b=b))
    return {"prompt": prompt, "answer": str(a + b)}


draw = random.Random(SEED)
pairs = [(draw.randint(10, 99), draw.randint(10, 99)) for _ in range(300)]
mixed = [problem("What is {a} + {b}?", *pair) for pair in pairs]
mixed += [problem("what is  {a} + {b} ?", *pair) for pair in pairs[:40]]
mixed += [problem("WHAT is {a} + {b}?", *pair) for pair in pairs[:40]]
mixed += [problem("Add {b} to {a}.", *pair) for pair in pairs[40:80]]
draw.shuffle(mixed)

# %% [markdown]
# A better split gives each question a key and lets a checksum of that key decide the side, so rows with the same key stay
# together.


# %%
import zlib


def same_text(question: str) -> str:
    return " ".join(question.casefold().split())


def same_numbers(question: str) -> str:
    return " ".join(sorted(re.findall(r"\d+", question)))


def split(rows: list[dict], key) -> tuple[list[dict], list[dict]]:
    sides = {True: [], False: []}
    for row in rows:
        checksum = zlib.crc32(key(row["prompt"][-1]["content"]).encode())
        sides[checksum % 5 == 0].append(row)  # one fifth is held out
    return sides[False], sides[True]


# %% [markdown]
# `find_twins` pairs rows that ask the same question (ignoring case and repeated spaces) or contain the same numbers in a
# different text. It compares two sets, or one set with itself.
#
# **Guess first:** 120 of the 420 rows are copies or rewordings, and about 85 rows are held out. With the usual split, how many of
# these 85 are also training questions, or share their numbers with one?

# %%
from grpo_utils import find_twins

cut = len(mixed) * 4 // 5
splits = {
    "shuffled and cut": (mixed[:cut], mixed[cut:]),
    "by text": split(mixed, same_text),
    "by numbers": split(mixed, same_numbers),
}
leaks = {}
for name, (train, test) in splits.items():
    leaks[name] = how = [twin.how for twin in find_twins(train, test)]
    print(f"{name}: {len(test)} held out")
    print(f"  same question as a training row:  {how.count('same')}")
    print(f"  same numbers, in other words:     {how.count('numbers')}")
    print(f"  repeats within the held-out rows: {len(find_twins(test))}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# - **Shuffled and cut**: {{leaks["shuffled and cut"].count("same")}} of the {{len(splits["shuffled and cut"][1])}} held-out questions are
#   also training questions, and {{leaks["shuffled and cut"].count("numbers")}} more share their numbers with one.
# - **By text**: no question is on both sides, but {{leaks["by text"].count("numbers")}} share their numbers with a training
#   question. Some are reworded. Others are copies that the key misses, because of the space before the question mark.
# - **By numbers**: nothing leaks. In word problems, equal numbers can be a coincidence, so read the pairs.
# </details>
#
# The last line of each block counts repeats within the held-out rows. Keep one of each: a question that counts twice makes
# the result look more certain than it is.
#
# **Split by question, not by row, and search for twins between the sides and within the held-out rows.**

# %% [markdown]
# ## 10. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward near 0 from the start | Is the prompt a list of messages? | Use messages for an instruct model. |
# | completions without an end | Does the template write the EOS token? | Set `tokenizer.eos_token`. |
# | row that never scores | Does a perfect completion score? | Fix the gold answer or the reward. |
# | broken letters | Does `é` appear as `Ã©`? | Read the file with its true encoding. |
# | accuracy too good to be true | Does `find_twins` find pairs? | Split by question. |

# %% [markdown]
# ## 11. Exercises
#
# **Exercise 1.** Another dataset ends its solutions with `\boxed{…}`, and some solutions contain several. Write
# `read_boxed(solution)`. It returns the content of the **last** box without outer spaces. It returns `None` if there is no
# box or the last one is empty. Boxes are never nested.


# %%
def read_boxed(solution: str) -> str | None:
    """Return the content of the last box, or None."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BOXED = [((r"So it is \boxed{42}.",), "42"), ((r"\boxed{ 7 }",), "7")]
BOXED += [((r"First \boxed{1}, then \boxed{2}.",), "2")]
BOXED += [((r"No box: 42",), None), ((r"\boxed{} is empty",), None)]
BOXED += [((r"\boxed{ }",), None)]
BOXED += [((r"\boxed{x - 3}",), "x - 3"), ((r"\boxed{3}, \boxed{}",), None)]
HINTS = [("1", "That is the first box. Which one holds the result?")]
HINTS += [("3", "The last box is empty. Did your pattern skip it?")]
HINTS += [("", "There is no boxed answer. What should the function return?")]
print(check_exercise("Exercise 1", read_boxed, BOXED, HINTS))

# %% [markdown]
# **Exercise 2.** Write `leaked(train, test)`. It returns the questions of `test` that are also in `train`, in the order of
# `test`. Ignore case, spaces **and punctuation at the end**.


# %%
def leaked(train: list[str], test: list[str]) -> list[str]:
    """Return the questions of test that leak."""
    return []


# %% tags=["nbval-check-output"]
TRAIN = ["What is 15 + 27?", "What is 1.5 + 2?", "Who won?"]
TEST = ["what is  15 + 27", "WHO WON ?", "What is 15 - 2?", "who WON?"]
TEST += ["Who won!"]
two, won, minus, case, cheer = TEST
FOUND = [((TRAIN, TEST), [two, won, case, cheer]), ((["a"], ["b"]), [])]
SPACE = "What is left of 'WHO WON ?' without its '?'?"
ROW = "One question has two spaces in a row. Which one?"
HINTS = [([case], "Case no longer matters. What about the '?' at the end?")]
HINTS += [([two, case], SPACE), ([two, case, cheer], SPACE)]
HINTS += [([won, case], ROW), ([won, case, cheer], ROW)]
HINTS += [
    ([case, cheer], "Two questions have extra spaces. Do you ignore them?")
]
HINTS += [
    ([two, won, case], "Punctuation can be more than '?'. What else is it?")
]
HINTS += [(TEST, "Is 1.5 + 2 the same as 15 - 2?")]
print(check_exercise("Exercise 2", leaked, FOUND, HINTS))

# %% [markdown]
# Try both exercises before you unfold the solutions below. Then go on with [lesson 02](02_rewards.ipynb).

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: use `findall` with a pattern that also matches an empty box, and take the last match.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def boxed_solution(solution: str) -> str | None:
    boxes = re.findall(r"\\boxed\{([^{}]*)\}", solution)
    return (boxes[-1].strip() or None) if boxes else None


print(check_exercise("Exercise 1, solution", boxed_solution, BOXED))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: compute the same key for both lists and look it up in a set.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def leaked_solution(train: list[str], test: list[str]) -> list[str]:
    def key(question: str) -> str:
        return same_text(question).rstrip(" ?.!")

    known = {key(question) for question in train}
    return [question for question in test if key(question) in known]


print(check_exercise("Exercise 2, solution", leaked_solution, FOUND))
