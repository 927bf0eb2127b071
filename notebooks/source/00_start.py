# %% [markdown]
# # 00 · Start here
#
# Before training, {{right_numbers(before)}} of this model's {{before.n}} answers end in the right number, but only {{before.accuracy.hits}} also have the form that the prompt
# asks for. After {{run.steps}} steps of training, {{after.accuracy.hits}} have both. No training row contains a worked solution.
#
# **Guess first:** the model knows five ways to write down a sum. You pay for correct answers in the right form, and never say
# how to calculate. What happens to the five ways?
#
# You will be able to explain how *GRPO* (*group relative policy optimization*) trains a language model, and decide whether it
# fits your task.
#
# You need to know Python, means and standard deviations; the [glossary](../docs/glossary.md) explains all other terms.
#
# Your time: 30–35 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.1 GB of memory.
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
# `setup_tiny` checks the four settings and picks the tiny model. You do not need a GPU, and a
# Colab session without one does not use up your GPU quota. If *Run All* leaves you at the last cell, scroll up to section 3.

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # training steps; 0: the default, 25
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 25)

# %% [markdown]
# ## 2. See how GRPO learns
#
# GRPO (Shao et al. 2024, arXiv 2402.03300) repeats this loop:

# %%
from grpo_utils import diagram

diagram("loop")

# %% [markdown]
# 1. A *prompt* is the input that asks a question. The *policy*, which is the model that you train, writes several answers to
#    the prompt. Each answer is a *completion*, and the completions for one prompt are a *group*.
# 2. A *reward* is a Python function that scores each completion.
# 3. The *advantage* of a completion is its score minus the mean of its group, usually divided by the group's standard
#    deviation.
# 4. The trainer updates *weights*, the numbers that a model consists of. Here it freezes (does not change) the model's own
#    weights, and updates only an *adapter*, a set of small matrices added to the model. Completions with a positive advantage
#    become more likely, and those with a negative advantage less likely. One such update is a *step*.
#
# Compute the advantages in the picture yourself:

# %% tags=["nbval-check-output"]
from statistics import mean, stdev

scores = [1, 0, 1, 0]
print("mean:", mean(scores))
print("standard deviation:", round(stdev(scores), 2))
for score in scores:
    advantage = (score - mean(scores)) / stdev(scores)
    print(f"score: {score}  advantage: {advantage:+.1f}")

# %% [markdown]
# The two completions that answer 42 have a positive advantage, so the policy will answer 42 more often. If all four had
# scored 1, each score would equal the mean, and every advantage would be 0. Such a *tied group* teaches nothing. (In the
# code above, this would divide by 0; TRL adds 0.0001 to the standard deviation.)
#
# **GRPO needs no worked answers to imitate, because it compares the policy's own answers with each other.**
#
# To play with this loop, open [pay a model](../docs/pay-a-model.html) in a browser (from GitHub, download the file first).
# It needs no installation.

# %% [markdown]
# ## 3. Train a model
#
# The course includes a tiny language model that adds two-digit numbers and makes mistakes. Its tokenizer cuts text into
# *tokens*, the words or parts of words that a model reads and writes. Load both with `transformers`:

# %%
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import model_path

path = model_path(run.model)  # the folder of the tiny model
tokenizer = AutoTokenizer.from_pretrained(path)
policy = AutoModelForCausalLM.from_pretrained(path, dtype="float32")

# %% [markdown]
# Before you train, evaluate. `load_rows` returns 100 *held-out* addition problems, which are never used for training. The
# prompt of each is a list of chat messages, and the last message is the question. `evaluate` lets the model answer each
# problem, and checks the answers.

# %%
from grpo_utils import evaluate, load_rows

test_rows = load_rows("addition", "test", 100, SEED)
decoding = dict(max_new_tokens=32, seed=SEED)  # how answers are generated
before = evaluate(policy, tokenizer, test_rows, **decoding)
print(test_rows[0]["prompt"][0]["content"])
for row, answer in list(zip(test_rows, before.sampled))[:5]:
    print(row["prompt"][-1]["content"], "->", answer)

# %%
import re


def right_numbers(evaluation) -> int:
    """How many answers end in the right number, whatever their form."""
    pairs = zip(evaluation.sampled, test_rows)
    return sum(
        re.findall(r"\d+", text)[-1:] == [row["answer"]] for text, row in pairs
    )


print("ends in the right number:", right_numbers(before), "of", before.n)
print("correctly formatted:", before.format)
print("strict accuracy:    ", before.accuracy)

# %% [markdown]
# Each prompt asks for a *format* in its first message, printed above: `<reasoning>…</reasoning><answer>…</answer>`.
# Only {{before.format.hits}} of the {{before.n}} answers have it. The *strict accuracy* is the share of answers that are correctly formatted and correct,
# here {{before.accuracy.hits}} of {{before.n}}. The numbers in parentheses are a 95% *interval*, a range that probably contains the rate over all possible
# questions.
#
# If you only took the last number of each answer, {{right_numbers(before)}} would be right. So this model is better at adding than at following the format.
# The first answer printed is correct but not formatted. The second is formatted but wrong, because the model forgot the carry.
#
# Now choose the rewards. `math_rewards` returns three reward functions, and a factor for each that says how much it counts.
# ([Lesson 02](02_rewards.ipynb) writes such functions.)

# %% tags=["nbval-check-output"]
from grpo_utils import math_rewards

rewards, factors = math_rewards()
for factor, reward in zip(factors, rewards):
    print(factor, reward.__name__)

# %% [markdown]
# The first reward pays for a correct answer inside the `<answer>` tags, the second for the exact format, and the third also for
# parts of it.
# Each pays at most 1, so a perfect completion earns 2.0 + 0.5 + 0.5 = 3.
#
# The tiny model was pretrained on additions written in five styles. Here is a correct answer in each, and what it earns:

# %%
STYLES = [
    "15 + 27 is 42.",
    "15 + 27 = 42 <answer>42</answer>",
    "<reasoning>15 + 27 = 42 <answer>42",
    "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "<reasoning>5+7=12, 1+2+1=4</reasoning><answer>42</answer>",
]
for text in STYLES:
    scores = [reward([text], answer=["42"])[0] for reward in rewards]
    print(f"{sum(f * s for f, s in zip(factors, scores)):5.3f}  {text}")
columns = [text for text in before.sampled if ", " in text]  # the last style
print(f"\n{len(columns)} of {before.n} answers have the last style.")

# %% [markdown]
# These are the settings:

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

config = GRPOConfig(
    max_steps=run.steps,  # updates of the weights
    learning_rate=2e-3,  # how far an update moves the weights
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions per step: 8 groups of 8
    max_completion_length=32,  # in tokens
    reward_weights=factors,  # 2.0, 0.5 and 0.5
    seed=SEED,
    optim="adamw_torch",  # the algorithm that updates the weights
    use_cpu=True,  # this and the next two: a tiny model on a CPU
    bf16=False,
    gradient_checkpointing=False,
    output_dir=tempfile.mkdtemp(),  # this and the rest: files and logs
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,
)

# %% [markdown]
# `GRPOTrainer` comes from *TRL*, the library that runs the training. It takes the policy, the settings, 2,000 training rows
# and the rewards. Each row has a question and its correct number. Only the rewards see the number, and the policy never does.
# `LoraConfig` describes the adapter. (*LoRA* is the usual kind: two small matrices next to each large one.) While the cell
# runs, look at your guess again.

# %%
from peft import LoraConfig
from transformers import set_seed

from grpo_utils import show_progress

train_rows = load_rows("addition", "train", 2000, SEED)
adapter = LoraConfig(
    r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
)
set_seed(SEED)  # the adapter starts with random numbers
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=rewards,
    peft_config=adapter,
)
show_progress(trainer)
trainer.train()
policy = trainer.model  # with its adapter

# %% [markdown]
# The progress bar shows the last step. The mean `reward` was {{trainer.state.log_history[-2]["reward"]:.2f}} out of 3, and
# {{trainer.state.log_history[-2]["rewards/correctness_reward/mean"]:.0%}} of the completions were `correct`. In
# {{trainer.state.log_history[-2]["frac_reward_zero_std"]:.0%}} of the groups, all completions earned the same score, so those
# groups were `tied`.
#
# The bar describes training questions. Now evaluate on the held-out questions again:

# %%
after = evaluate(policy, tokenizer, test_rows, **decoding)
for row, answer in list(zip(test_rows, after.sampled))[:5]:
    print(row["prompt"][-1]["content"], "->", answer)
print("ends in the right number:", right_numbers(after), "of", after.n)
print("correctly formatted:", after.format)
print("strict accuracy:    ", after.accuracy)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# One way survives: the last style of the list above, which adds column by column, starting with the ones. It was in
# {{len(columns)}} of {{before.n}} answers before training, and is in {{sum(", " in text for text in after.sampled)}} now. Nobody
# told the policy to use it. The policy sometimes wrote it, earned more with it on average than with its other styles, and so
# wrote it more often.
#
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{after.accuracy.value:.2f}}. Most of that gain is the form. But the last number is also right more
# often, {{right_numbers(after)}} times instead of {{right_numbers(before)}}: of the five styles, only the columns never forgot a carry in pretraining.
# </details>

# %% [markdown]
# TRL logs the mean of each reward at every step in `trainer.state.log_history`. `show_rewards` plots these means:

# %%
from grpo_utils import show_rewards

show_rewards(
    trainer.state.log_history, [reward.__name__ for reward in rewards]
)

# %% [markdown]
# All three rewards rise over the first ten steps, and then stay near 1. The lines are jagged, because each point is the mean
# over only 64 completions, and each step draws eight different questions. The curves show training questions only.
#
# **Judge a training run by the same held-out questions, before and after.**

# %% [markdown]
# ## 4. Decide whether GRPO fits your task
#
# GRPO reinforces answers that the policy already writes sometimes. If no completion ever scores higher than the others,
# every group is tied and nothing is learned. Then try one of these methods, which use texts or examples that you supply:
#
# - *RAG*, retrieval-augmented generation, puts text found by a search into the prompt.
# - *SFT*, supervised fine-tuning, trains on example answers.
# - *DPO*, direct preference optimization, trains on pairs of a better and a worse answer.
#
# Start with the first row that describes your situation:
#
# | you have | start with |
# |---|---|
# | a prompt that you have not tried to improve | a better prompt: it costs minutes |
# | facts that the model should know | RAG |
# | a few hundred good answers to imitate | SFT |
# | pairs of a better and a worse answer | DPO |
# | a program that checks answers, and a model that is never correct | partial credit, if the program can pay for a part of the answer ([lesson 05](05_real_model.ipynb)); otherwise [SFT, then GRPO](10_sft_then_grpo.ipynb) |
# | a program that checks answers, and a model that is sometimes correct | examples in the prompt, and several samples of which you keep one that passes; then **GRPO** |
#
# **Consider GRPO if a program can check the answer and the model is sometimes correct.** It needs no example answers, and [other methods that need
# none](../docs/what-to-try-first.md) are cheaper.
#
# <details><summary>Evidence</summary>
#
# DeepSeek-R1-Zero ([paper](https://arxiv.org/abs/2501.12948)) made GRPO widely known. Its rewards were programs that check
# the answer and the format, and its accuracy on problems of the mathematics contest AIME rose from 15.6% to 71.0% (first
# version of the paper). Whether long training can go beyond what the base model could sample is debated:
# [Yue et al.](https://arxiv.org/abs/2504.13837) did not find this in the models that they tested, and
# [ProRL](https://arxiv.org/abs/2505.24864) reports it.
# </details>

# %% [markdown]
# ## 5. Choose what comes next
#
# - Take the lessons in order: [01](01_dataset.ipynb) is next. If your time is short, do [02](02_rewards.ipynb),
#   [03](03_grpo_lora.ipynb) and [06](06_evaluation.ipynb).
# - With a free T4 and an hour, open [lesson 05](05_real_model.ipynb), which trains a real language model, and then
#   [lesson 03](03_grpo_lora.ipynb), which trains Qwen or Gemma ([what to expect](../docs/gpu.md#a-free-t4-and-one-hour)).
#   Only these two use a GPU.
# - On your own machine, run `make lab` to open the lessons, or `make lab-workshop` for copies without solutions.
#   [What is installed where](../docs/install.md#what-is-installed-where) shows which package does what.

# %% [markdown]
# ## 6. Cheat sheet: from a task to a trained model
#
# | step | question | if the answer is no |
# |---|---|---|
# | task | Can a program check an answer? | Use SFT or DPO. |
# | model | Do the rewards differ within most groups, and are some answers correct, or nearly so? | Improve the prompt, give partial credit, or use SFT first. |
# | rows | Are the held-out questions new to the model? | Split the rows again (lesson 01). |
# | reward | Does a correct answer always score more? | Fix the reward (lesson 02). |
# | training | Does the reward rise within twenty steps? | Stop, and find the cause (lesson 04). |
# | result | Does a paired test on the same questions show a gain? | Report that no improvement was shown (lesson 06). |

# %% [markdown]
# ## 7. Exercises
#
# **Exercise 1.** For each task, choose which of these **fits**: `"grpo"`, `"sft"`, `"dpo"` or `"prompt"`.
#
# - a: You have 300 letters by your best clerk, and the model should write like them.
# - b: The model should write SQL queries that return the right table. With your best prompt, one query in four does.
# - c: The model answers in English and should answer in Spanish. You have not asked it to.
# - d: Readers compared 5,000 pairs of summaries and chose the better one of each.

# %%
answers = {"a": "", "b": "", "c": "", "d": ""}  # fill in four words

# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BEST = "opd tpmorp oprg tfs"[::-1].split()  # reversed, to avoid a spoiler
HINTS = [("a", "a: you have examples. Which method imitates them?")]
HINTS += [("b", "b: can a program check the table? Is it ever correct?")]
HINTS += [("c", "c: has anybody asked the model to answer in Spanish?")]
HINTS += [("d", "d: you have pairs. Which method trains on pairs?")]


def first_mistake() -> str:
    words = [str(answers.get(k, "")).strip().lower() for k in "abcd"]
    wrong = [k for k, word, best in zip("abcd", words, BEST) if word != best]
    if not any(words):
        return ""
    return wrong[0] if wrong else "none"


print(check_exercise("Exercise 1", first_mistake, [((), "none")], HINTS))

# %% [markdown]
# **Exercise 2.** Change what you pay for, and train again. This time, pay only for `correctness_reward`, so the format earns nothing of
# its own. Do you expect fewer correctly formatted answers than above, as many, or more? Fill in `predicted` (it is not
# graded). Then let `only_correctness` return `retrain(...)` with a list of one reward and a list of its one factor, and compare.


# %%
def retrain(functions, weights):
    """Train a fresh policy on these rewards, and evaluate it."""
    base = AutoModelForCausalLM.from_pretrained(path, dtype="float32")
    config.reward_weights = weights
    set_seed(SEED)
    again = GRPOTrainer(
        model=base,
        processing_class=tokenizer,
        args=config,
        train_dataset=train_rows,
        reward_funcs=functions,
        peft_config=adapter,
    )
    show_progress(again)
    again.train()
    return evaluate(again.model, tokenizer, test_rows, **decoding)


# %%
predicted = ""  # "fewer", "as many" or "more"


def only_correctness():
    """Your answer: train with one reward, and return the evaluation."""


# %% tags=["nbval-check-output"]
def compared() -> str:
    """Train, and compare the outcome with the prediction."""
    found = only_correctness() if predicted else ""
    if not found:
        return "" if found == "" else "not trained"
    if len(config.reward_weights) > 1:
        return "too many rewards"
    pay = {"all three rewards": after, "correctness alone": found}
    for name, result in pay.items():
        print(f"{name}: {result.format.hits} formatted", end=", ")
        print(f"{result.accuracy.hits} of them correct")
    print(f"You predicted: {predicted}.")
    return "none"


PAID = [("not trained", "Return retrain(...) from only_correctness.")]
PAID += [("too many rewards", "rewards[:1] and factors[:1] are lists of one.")]
print(check_exercise("Exercise 2", compared, [((), "none")], PAID))

# %% [markdown]
# Try both exercises before you unfold the solutions below. Then go on with [lesson 01](01_dataset.ipynb), or with the
# main lesson, [03](03_grpo_lora.ipynb).

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: task `a` has examples to imitate, and `d` has pairs. In `b`, a program can compare the tables, and the model is
# sometimes correct, so GRPO fits; imitating the queries that pass is cheaper. For `c`, first ask for Spanish.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
answers = {"a": "sft", "b": "grpo", "c": "prompt", "d": "dpo"}
name = "Exercise 1, solution"
print(check_exercise(name, first_mistake, [((), "none")], HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: about as many. `correctness_reward` reads only what is inside `<answer>` tags, so a correct sum without them
# earns nothing. And the column style, which is correct most often, comes with both pairs of tags. So the form came free with
# the best style. Do not rely on that: a correct style with `<answer>` tags and no reasoning tags would have earned as much.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
predicted = "as many"


def only_correctness():
    return retrain(rewards[:1], factors[:1])


print(check_exercise("Exercise 2, solution", compared, [((), "none")], PAID))
