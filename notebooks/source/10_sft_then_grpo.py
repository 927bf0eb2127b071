# %% [markdown]
# # 10 · SFT, then GRPO
#
# GRPO doubles this model's correct answers, from {{after_sft.accuracy.hits}} to {{after_grpo.accuracy.hits}} of 200. Swap the two numbers
# in each question, and only {{counts["GRPO"][2]}} of the 200 pairs are answered correctly both ways.
#
# **Guess first:** the question is "Which is larger, 512 or 387?" What has the model learned?
#
# You will be able to teach a model a new task with 100 examples, continue with GRPO on the same adapter, and catch a
# *shortcut* that raises accuracy.
#
# You need [lesson 03](03_grpo_lora.ipynb).
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.0 GB of memory.
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
PROFILE: str = "auto"  # this lesson trains on the CPU with any profile
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # GRPO steps after SFT; 0: the default, 50
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 50, output_dir="outputs/sft")

import torch
from datasets import Dataset, disable_progress_bars
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

disable_progress_bars()  # of datasets
tokenizer = AutoTokenizer.from_pretrained(run.path)

# %% [markdown]
# ## 2. A task that the model has never seen
#
# The tiny model was never trained to compare two numbers. That is our task. In half of the rows, the larger number is
# first.

# %%
import itertools
import random


def row(a: int, b: int) -> dict:
    question = {"role": "user", "content": f"Which is larger, {a} or {b}?"}
    kind = "larger first" if a > b else "larger second"
    return {"prompt": [question], "answer": str(max(a, b)), "kind": kind}


pairs = list(itertools.combinations(range(100, 1000), 2))  # each pair once
pairs = random.Random(SEED).sample(pairs, 700)
pairs = [pair[::-1] if n % 2 else pair for n, pair in enumerate(pairs)]
rows = Dataset.from_list([row(a, b) for a, b in pairs])
test_rows = rows.select(range(200))  # only to evaluate
new_rows = rows.select(range(300, 700))  # only a prompt and a gold answer
print(test_rows[0])

# %% [markdown]
# Pairs 200 to 299 get worked answers. No question is in more than one of the three sets. The reward is 1 for a correct answer
# in the format of lesson 03, otherwise 0. `is_strictly_right` checks this.

# %%
from grpo_utils import completion_text, evaluate, is_strictly_right


def correct(completions, answer, **kwargs) -> list[float]:
    texts = [completion_text(completion) for completion in completions]
    return [float(is_strictly_right(t, a)) for t, a in zip(texts, answer)]


# %% [markdown]
# `new_policy` adds a new LoRA adapter to the base model. `evaluate` samples an answer to each test prompt.


# %%
def load_base():
    return AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)


def new_policy() -> PeftModel:
    base = load_base()
    torch.manual_seed(SEED)
    lora = dict(r=16, lora_alpha=32, target_modules="all-linear")
    return get_peft_model(base, LoraConfig(**lora, task_type="CAUSAL_LM"))


DECODING = dict(max_new_tokens=40, temperature=1.0, seed=SEED)
policy = new_policy()
before = evaluate(policy, tokenizer, test_rows, **DECODING)
print("strict accuracy, sampled:", before.accuracy)
print("one sample:              ", before.sampled[0])

# %% [markdown]
# The base model solves {{before.accuracy.hits}} of {{before.accuracy.n}} prompts. Asked which number is larger, it writes
# JSON, which it learned for an earlier task.
#
# A policy that always named the first number would be correct in half of the cases, without any comparison. This is the
# *guess level* of the task: 0.5. Write it down before you train.

# %% [markdown]
# ## 3. Try GRPO alone
#
# All trainers in this lesson use the settings in `SHARED`, so SFT and GRPO have the same constant learning rate. `GRPO`
# adds the settings that only GRPO has.

# %%
SHARED = dict(
    output_dir=str(run.folder / "unused"),
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,  # it saves memory and costs time
    learning_rate=1e-3,
    lr_scheduler_type="constant",
    optim="adamw_torch",
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws a bar instead
    seed=SEED,
)
GRPO = dict(
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, not prompts
    max_completion_length=40,  # in tokens
    **SHARED,
)

# %% [markdown]
# `train_grpo` builds the trainer, runs it and returns the log. `logged` reads one value per step from a log.

# %%
from grpo_utils import logged, show_progress


def train_grpo(policy, rows, steps: int, **more) -> list[dict]:
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(max_steps=steps, **GRPO, **more),
        train_dataset=rows,
        reward_funcs=correct,
    )
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


# %% [markdown]
# `adapter_of` copies the weights of an adapter, and `largest_change` compares two copies.


# %%
def adapter_of(policy, name: str = "default") -> list[torch.Tensor]:
    named = policy.named_parameters()
    return [w.detach().clone() for n, w in named if f".{name}." in n]


def largest_change(old: list, new: list) -> float:
    return max((a - b).abs().max().item() for a, b in zip(old, new))


# %%
start = adapter_of(policy)
alone = train_grpo(policy, new_rows, 5)
print("rewards:", logged(alone, "reward"))
print("tied:   ", logged(alone, "frac_reward_zero_std"))
print("largest change of a weight:", largest_change(start, adapter_of(policy)))

# %% [markdown]
# None of the 320 completions earned a reward. All groups are *tied*: their completions score the same, so every
# advantage and the gradient are 0, and no weight has changed. With a reward of 0 or 1, GRPO cannot start from a *pass
# rate* (the share of correct completions) of 0.

# %% [markdown]
# ## 4. Teach the task with 100 examples
#
# *SFT*, supervised fine-tuning, trains the model to write given answers, token by token. Here, a function writes 100 of these
# *worked answers*.


# %%
def demonstration(row: dict, work, answer) -> dict:
    text = f"<reasoning>{work}</reasoning><answer>{answer}</answer>"
    completion = [{"role": "assistant", "content": text}]
    return {"prompt": row["prompt"], "completion": completion}


demonstrations = []
for a, b in pairs[200:300]:
    small, large = sorted((a, b))
    work = f"{large} > {small}"
    demonstrations.append(demonstration(row(a, b), work, large))
print(demonstrations[0]["completion"][0]["content"])
demonstrations = Dataset.from_list(demonstrations)

# %% [markdown]
# TRL's `SFTTrainer` takes rows with the columns `prompt` and `completion`. By default, only the completion's tokens of
# such rows count in the loss. An *epoch* is one pass over all rows.

# %%
from transformers.trainer_callback import PrinterCallback


def new_sft(policy, rows, **more) -> SFTTrainer:
    config = SFTConfig(
        max_length=128,  # in tokens; a longer row is cut
        completion_only_loss=True,
        **more,
        **SHARED,
    )
    given = dict(processing_class=tokenizer, train_dataset=rows)
    trainer = SFTTrainer(policy, args=config, **given)
    trainer.remove_callback(PrinterCallback)  # prints every step
    return trainer


# %%
policy = new_policy()
FIRST_SFT = dict(num_train_epochs=10, per_device_train_batch_size=20)
sft = new_sft(policy, demonstrations, **FIRST_SFT)
labels = sft.train_dataset[0]["labels"]
trained = [token for token in labels if token != -100]
print(f"{len(labels)} tokens, trained on {len(trained)}:")
print(repr(tokenizer.decode(trained)))

# %% [markdown]
# Each token has a *label*, the token that the model should write. A label of -100 removes a token from the loss, as for
# all tokens of the prompt. Check that the end-of-turn token is among the trained tokens. Without it, the model never
# learns to stop.

# %%
sft.train()
policy.save_pretrained(run.folder / "sft")
after_sft = evaluate(policy, tokenizer, test_rows, **DECODING)
print(f"correctly formatted:      {after_sft.format}")
print(f"strict accuracy, sampled: {after_sft.accuracy}")

# %% [markdown]
# A hundred worked answers turned a pass rate of 0 into one that GRPO can use. Strict accuracy rose from
# {{before.accuracy.value:.2f}} to {{after_sft.accuracy.value:.2f}}, and {{after_sft.format.value:.0%}} of the answers have the
# required format. Many groups will now contain both correct and wrong answers.

# %% [markdown]
# ## 5. Continue with GRPO
#
# GRPO continues the adapter that SFT trained. Load it with `is_trainable=True` (section 11 shows why), and train on the new
# prompts, for which nobody wrote an answer.

# %%
from time import process_time


def saved_policy(trainable: bool, name: str = "sft") -> PeftModel:
    base, folder = load_base(), run.folder / name
    return PeftModel.from_pretrained(base, folder, is_trainable=trainable)


policy = saved_policy(True)
started = process_time()
log = train_grpo(policy, new_rows, run.steps)
grpo_seconds = process_time() - started
policy.save_pretrained(run.folder / "grpo")
after_grpo = evaluate(policy, tokenizer, test_rows, **DECODING)

# %%
from statistics import fmean

from grpo_utils import compare

reward, tied = logged(log, "reward"), logged(log, "frac_reward_zero_std")
first, last = fmean(reward[:5]), fmean(reward[-5:])
print(f"mean reward: {first:.2f} in the first 5 steps, {last:.2f} in the last")
early, late = fmean(tied[:5]), fmean(tied[-5:])
print(f"tied groups: {early:.2f} in the first 5 steps, {late:.2f} in the last")
gained = compare(after_sft, after_grpo)
print(gained)

# %% [markdown]
# The reward rose. Strict accuracy on the test prompts rose from {{after_sft.accuracy.value:.2f}} to
# {{after_grpo.accuracy.value:.2f}}, and almost all of the gain comes from correctness. More groups are tied, as in any
# policy that becomes certain. All this looks like success, except that {{after_grpo.accuracy.value:.2f}} is the guess
# level.

# %% [markdown]
# ## 6. Train a rival: more SFT
#
# For a fair comparison, fix a *budget*. Ours is the number of sequences that the trainer computes gradients for: 64 per step.
# So SFT continues from the same adapter for as many steps, with 64 worked answers per step and the same learning rate. It
# repeats the 100 worked answers.


# %%
def more_sft(policy, rows) -> float:
    """Continue SFT for as many sequences as GRPO; the CPU seconds."""
    trainer = new_sft(
        policy,
        rows,
        max_steps=run.steps,
        per_device_train_batch_size=64,
        dataloader_drop_last=True,  # every batch has 64 rows
    )
    started = process_time()
    trainer.train()
    return process_time() - started


longer = saved_policy(True)
sft_seconds = more_sft(longer, demonstrations)
longer.save_pretrained(run.folder / "longer")
after_more = evaluate(longer, tokenizer, test_rows, **DECODING)
print("GRPO:    ", after_grpo.accuracy)
print("more SFT:", after_more.accuracy)

# %%
from grpo_utils import show_shares


def show_answers(results: dict) -> None:
    """A bar for each policy: correct, wrong in the right format, or neither."""
    bars = {}
    for name, result in results.items():
        right, formed = result.accuracy.hits, result.format.hits
        bars[name] = {"correct": right, "wrong, in the format": formed - right}
        bars[name]["not in the format"] = result.n - formed
    show_shares({"200 held-out prompts": bars}, "How each policy answers")


bars = {"base": before, "SFT": after_sft, "then GRPO": after_grpo}
show_answers(bars | {"or more SFT": after_more})

# %% [markdown]
# More SFT wins. Its share of correct answers is {{after_more.accuracy.value:.2f}}, and that of GRPO
# {{after_grpo.accuracy.value:.2f}}. It was also cheaper, {{sft_seconds:.0f}} CPU seconds to {{grpo_seconds:.0f}}, because GRPO also
# generates its sequences.
#
# **Give SFT the same budget as GRPO before you conclude that GRPO helped.**

# %% [markdown]
# ## 7. Ask which number it names
#
# Accuracy does not show how an answer was found. The *swap test* asks each pair in both orders. A policy that always names
# the number in the same place is never correct in *both orders*. Which number do you expect GRPO to name when the larger one
# is first, and when it is second?


# %%
swapped_rows = Dataset.from_list([row(b, a) for a, b in pairs[:200]])


def tested(policy, result) -> tuple:
    """The evaluation of a policy, and one of the swapped questions."""
    return result, evaluate(policy, tokenizer, swapped_rows, **DECODING)


policies = {
    "first SFT": tested(saved_policy(False), after_sft),
    "GRPO": tested(policy, after_grpo),
    "more SFT": tested(longer, after_more),
}


# %%
def names(result, swapped, first: bool) -> dict:
    """What is named where the larger number is first, or second."""
    asked = list(zip(result.sampled, pairs))
    asked += [(text, pair[::-1]) for text, pair in zip(swapped.sampled, pairs)]
    asked = [(text, (a, b)) for text, (a, b) in asked if (a > b) == first]
    larger = sum(is_strictly_right(t, str(max(pair))) for t, pair in asked)
    smaller = sum(is_strictly_right(t, str(min(pair))) for t, pair in asked)
    neither = len(asked) - larger - smaller
    return {"the larger": larger, "the smaller": smaller, "neither": neither}


panels = {}
for order in ("first", "second"):
    panels[f"the larger number is {order}"] = {
        name: names(*found, order == "first")
        for name, found in policies.items()
    }
show_shares(panels, "Which number each policy names, 200 pairs in both orders")


# %%
def named(result, place: int) -> int:
    """How many answers are the number in this place of the question."""
    answers = zip(result.sampled, pairs)
    return sum(is_strictly_right(t, str(pair[place])) for t, pair in answers)


counts = {}
print("of 200      correct  named first  named second  both orders")
for name, (result, swapped) in policies.items():
    both = sum(map(all, zip(result.right, swapped.right)))
    counts[name] = named(result, 0), named(result, 1), both
    columns = "{:13}{:13}{:13}".format(*counts[name])
    print(f"{name:10}{result.accuracy.hits:8}{columns}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# GRPO's bar changes color when the numbers swap places: this policy names the first number, larger or not. It
# does so in {{counts["GRPO"][0]}} of the 200 test prompts, and names the second number in {{counts["GRPO"][1]}}. It does not
# compare. In both orders, it is correct for {{counts["GRPO"][2]}} pairs, after {{counts["first SFT"][2]}} before GRPO. More SFT
# reaches {{counts["more SFT"][2]}}.
#
# The cause is in the first row of the table. After SFT, the policy named the first number {{counts["first SFT"][0]}} times and
# the second {{counts["first SFT"][1]}} times. So most rewarded samples named the first number, and GRPO reinforced the place.
# By the end, all eight samples in most groups name the first number, so all are correct or all are wrong. Such groups are tied,
# and nothing corrects the policy anymore.
# </details>

# %% [markdown]
# **GRPO reinforces whatever the rewarded samples share. It may be a shortcut.**

# %% [markdown]
# ## 8. See which checks noticed it
#
# One more check needs no new samples: accuracy by the place of the correct answer. `row` stored this place as `kind`, and
# the summary of an evaluation counts each kind separately.

# %%
for name, (result, _) in policies.items():
    kinds = result.summary()["by_kind"].items()
    rates = {k: found["accuracy_given_format"] for k, found in kinds}
    print(f"{name:9}", {k: round(rate, 2) for k, rate in rates.items()})

# %% [markdown]
# | check | what it says about this GRPO run |
# |---|---|
# | reward curve, `compare`, five seeds | no alarm: a gain beyond chance |
# | tied groups | {{late:.2f}}. A solved task ties its groups too, but then the reward is near 1 |
# | guess level | {{after_grpo.accuracy.value:.2f}} is not above 0.5 |
# | accuracy by `kind` | near 1 for one kind, near 0 for the other |
# | swap test | {{counts["GRPO"][2]}} of 200 pairs |
#
# The shortcut raises accuracy, so no check that only compares accuracies finds it. Think of the laziest policy that your
# reward would pay, and evaluate on prompts where it is wrong.

# %% [markdown]
# ## 9. Train on worked answers with mistakes
#
# People and models make mistakes in worked answers. Now, 50 of 100 worked answers are wrong. The gold answers of the new
# prompts are correct.
#
# The task is "Which number comes after 512?", so copying a number from the question earns nothing. One shortcut is left:
# raise the last digit and never carry. It is correct in nine of ten cases, so `kind` counts the carries separately. **Guess
# first:** which will be better, GRPO or more SFT?


# %%
def next_row(n: int) -> dict:
    text = f"Which number comes after {n}?"
    kind = "carry" if n % 10 == 9 else "no carry"
    prompt = [{"role": "user", "content": text}]
    return {"prompt": prompt, "answer": str(n + 1), "kind": kind}


numbers = random.Random(SEED).sample(range(100, 999), 700)
next_rows = Dataset.from_list([next_row(n) for n in numbers])
next_test = next_rows.select(range(200))
next_new = next_rows.select(range(300, 700))

# %%
shown = [(n, n - 1) for n in numbers[200:250]]  # wrong
shown += [(n, n + 1) for n in numbers[250:300]]  # correct
flawed = [demonstration(next_row(n), m, m) for n, m in shown]
for i in (0, 50):
    question = flawed[i]["prompt"][0]["content"]
    print(question, flawed[i]["completion"][0]["content"])
flawed = Dataset.from_list(flawed)

# %%
policy = new_policy()
new_sft(policy, flawed, **FIRST_SFT).train()
policy.save_pretrained(run.folder / "flawed")
flawed_sft = evaluate(policy, tokenizer, next_test, **DECODING)

# %%
policy = saved_policy(True, "flawed")
train_grpo(policy, next_new, run.steps)
flawed_grpo = evaluate(policy, tokenizer, next_test, **DECODING)
policy = saved_policy(True, "flawed")
more_sft(policy, flawed)
flawed_more = evaluate(policy, tokenizer, next_test, **DECODING)

# %%
flawed_against = compare(flawed_more, flawed_grpo)
print("after the first SFT run:", flawed_sft.accuracy)
print("then GRPO:              ", flawed_grpo.accuracy)
print("or more SFT:            ", flawed_more.accuracy)
print(flawed_against.sentence)
bars = {"SFT": flawed_sft, "then GRPO": flawed_grpo}
show_answers(bars | {"or more SFT": flawed_more})

# %%
carries = [n for n, kind in enumerate(next_test["kind"]) if kind == "carry"]
for name, found in {"first SFT": flawed_sft, "GRPO": flawed_grpo}.items():
    hits = sum(found.right[n] for n in carries)
    print(f"carries after {name}: {hits} of {len(carries)} correct")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# GRPO wins: it reaches {{flawed_grpo.accuracy.value:.2f}} from {{flawed_sft.accuracy.value:.2f}}, and more SFT
# {{flawed_more.accuracy.value:.2f}}. More SFT repeats the mistakes as often as the correct answers. The reward knows the gold
# answers, so GRPO reinforces only the correct ones.
#
# But {{hits}} of {{len(carries)}} carries are correct. GRPO learns nothing from a prompt that the policy never solves, and the
# shortcut pays on all others. Its accuracy is no better than never carrying (about 0.9).
# </details>

# %% [markdown]
# ## 10. Repeat both with five seeds
#
# Over five seeds, the result depends on two things:
#
# - **Are the worked answers correct?** In the second task ("Which number comes after 512?"), GRPO is better if 30 or 50 of the
#   100 worked answers are wrong. If all 100 are correct, more SFT is better: it gets 47 of 90 carries right, and GRPO none,
#   because the policy rarely samples a carry.
# - **Is there a shortcut?** We trained the first task ("Which is larger?") with 100 correct worked answers and with 50 wrong
#   ones, five seeds each. GRPO raised accuracy in all ten runs, and six of the ten policies take the shortcut. After more SFT,
#   none does. With 50 wrong answers, GRPO reaches 0.52 and more SFT 0.31, but four of the five GRPO policies take the shortcut.
#
# GRPO also had 400 gold answers that SFT did not use. In these tasks, a worked answer is little more than the gold answer, so
# SFT on those 400 would be free.
#
# **If you can build worked answers from your gold answers, do that first.** Where you cannot, first try three cheaper steps: drop the wrong
# worked answers, decode greedily, and imitate the samples that pass. Then try GRPO. We measured none of the three here, and all accuracies are
# sampled at temperature 1, so a part of GRPO's lead may be free.
#
# <details><summary>Evidence: the second task</summary>
#
# The means of five seeds (`make bench-sft`). The last column is GRPO minus more SFT, with its 95% interval. On a third task,
# sorting digits with 50 wrong worked answers, no difference is shown. No other learning rate was tried.
#
# | worked answers | first SFT | GRPO | more SFT | difference |
# |---|---|---|---|---|
# | 100 correct | 0.763 | 0.901 | 0.946 | -0.045 (-0.077 to -0.013) |
# | 30 of 100 wrong | 0.395 | 0.886 | 0.587 | +0.299 (+0.246 to +0.352) |
# | 50 of 100 wrong | 0.257 | 0.875 | 0.377 | +0.498 (+0.430 to +0.566) |
# </details>
#
# <details><summary>Evidence: the first task</summary>
#
# In these runs ([tables](../docs/results.md#sft-then-grpo-or-more-sft)), `179 : 1, 6` means that 179 answers name the first
# number and 1 the second, and that 6 of 200 pairs are correct in both orders. A star marks a shortcut, by the rule of
# Exercise 1. Under *first SFT*, a star says little, because most answers there name neither number.
#
# | worked answers, seed | first SFT | GRPO | more SFT |
# |---|---|---|---|
# | 100 correct, 0 | 48 : 9, 15* | 179 : 1, 6* | 69 : 76, 117 |
# | 100 correct, 1 | 53 : 53, 48 | 55 : 93, 108 | 87 : 84, 123 |
# | 100 correct, 2 | 61 : 15, 17* | 185 : 0, 0* | 70 : 85, 131 |
# | 100 correct, 3 | 24 : 29, 16* | 85 : 72, 123 | 64 : 87, 122 |
# | 100 correct, 4 | 40 : 33, 42 | 77 : 54, 92 | 87 : 75, 131 |
# | 50 of 100 wrong, 0 | 47 : 2, 5* | 161 : 0, 0* | 54 : 61, 30 |
# | 50 of 100 wrong, 1 | 60 : 23, 16* | 55 : 86, 100 | 62 : 71, 36 |
# | 50 of 100 wrong, 2 | 48 : 9, 8* | 192 : 0, 0* | 59 : 68, 30 |
# | 50 of 100 wrong, 3 | 42 : 15, 6* | 180 : 2, 2* | 60 : 63, 31 |
# | 50 of 100 wrong, 4 | 42 : 16, 12* | 16 : 152, 29* | 71 : 56, 36 |
#
# The start may matter. Four first SFT runs named the first number at least four times as often as the second, and all
# four ended with the shortcut. Three named both about equally often, and GRPO learned to compare. (We chose "four times" after
# we saw these runs.)
#
# With 50 wrong answers, more SFT does not learn to compare either: of its answers that name one of the two numbers, 50% are
# correct.
# </details>

# %% [markdown]
# ## 11. Check what happens to the adapter
#
# By default, `PeftModel.from_pretrained` freezes a saved adapter. Load it both ways, frozen and trainable, and train three
# steps with each. `beta` above 0 adds a penalty on the *KL divergence*, which measures how far the policy has moved from a
# *reference model*.

# %%
for trainable in (False, True):
    policy = saved_policy(trainable)
    start = adapter_of(policy)
    log = train_grpo(policy, new_rows, 3, beta=0.05)
    change = largest_change(start, adapter_of(policy))
    print(f"is_trainable={trainable}")
    print(f"  reward, by step: {[round(r, 2) for r in logged(log, 'reward')]}")
    print(f"  KL, by step: {[round(kl, 5) for kl in logged(log, 'kl')]}")
    print(f"  largest change of a weight: {change:.5f}")
print("adapters:", list(policy.peft_config))

# %% [markdown]
# - **Frozen.** Both runs finish without a warning and log rewards, but the frozen adapter has not changed. The only sign in
#   its log is a KL of exactly 0 at every step. With `beta=0`, TRL's default, the sign is [a gradient norm of
#   0](../docs/troubleshooting-training.md#it-trains-but-the-weights-never-change). So check after a few steps that a weight has
#   changed.
#
# <details><summary>With beta above 0, and when you merge</summary>
#
# - **Reference.** The second adapter, `ref`, is a copy of the SFT adapter from before the first step, so the penalty pulls
#   toward the SFT model. [Unsloth on a GPU](../docs/troubleshooting-training.md#continue-the-sft-adapter-in-grpo) removes
#   this copy and pulls toward the base. All other runs of this lesson have `beta=0` and need no reference.
# - **Merge.** The adapter `grpo` contains both stages. To get one model, [merge](07_export.ipynb) it once into the original
#   base, without the SFT adapter. If you merged SFT first and GRPO trained a new adapter, [the steps
#   differ](../docs/troubleshooting-training.md#merge-the-sft-lora-the-grpo-lora-or-both).
# </details>
#
# <details><summary>The recipe on a real base model</summary>
#
# Unsloth's notebook [Qwen3 (4B) GRPO](https://github.com/unslothai/notebooks/blob/main/nb/Qwen3_%284B%29-GRPO.ipynb)
# trains a base model in these two stages: SFT on about 60 solutions teaches only the format, and GRPO follows. If you adapt
# it:
#
# - The notebook runs both stages in one session. If you split them, load the adapter with `is_trainable=True`.
# - Check the final answers of the solutions before you train on them. Section 9 shows what wrong ones do.
# - Between the stages, evaluate on held-out prompts, some of which a shortcut gets wrong.
#
# If an instruct model already writes correct answers in your format, skip SFT.
# </details>

# %% [markdown]
# ## 12. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward 0, all groups tied | Is the base model's pass rate 0? | run SFT first; `sft.py` in the template basic_grpo does |
# | answers that never end | Is the end-of-turn token among the labels? | use the chat template, raise `max_length` |
# | no change after GRPO | Is the largest change of a weight 0? | load with `is_trainable=True` |
# | many tied groups after SFT | Are most prompts solved always, or never? | call `drop_tied` ([lesson 04](04_reading_a_run.ipynb)), add new prompts |
# | accuracy near the guess level | Is it near 0 for one `kind`? Do swapped twins fail? | more SFT first, then test again; rows or a task without the shortcut |
# | result below more SFT | Are the worked answers correct? | stay with SFT |

# %% [markdown]
# ## 13. Exercises
#
# **Exercise 1.** Write `shortcut(first, second, both)`. It takes the results of a swap test: how many pairs are answered
# correctly only with the larger number first, only with it second, and in both orders. It returns `"first"` or `"second"`
# if the pairs of this place outnumber all other pairs together, otherwise `"none"`.


# %%
def shortcut(first: int, second: int, both: int) -> str:
    """Your answer: one of the three strings."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

CASES = [((191, 0, 6), "first"), ((10, 42, 117), "none")]
CASES += [((0, 150, 10), "second"), ((30, 28, 20), "none")]
CASES += [((60, 7, 15), "first"), ((40, 20, 20), "none")]
HINTS = [("first", "Did you add the pairs that are correct in both orders?")]
HINTS += [("second", "Do these pairs outnumber all others together?")]
HINTS += [("none", "Which place has most of the correct pairs?")]
print(check_exercise("Exercise 1", shortcut, CASES, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Give GRPO another start. In section 6, you saved the adapter `longer`, after
# more SFT. Predict which shortcut GRPO takes from there, and write it into `PREDICTION`. Then train `longer` with GRPO on
# `new_rows` for `run.steps` steps, and return the policy. The check asks it all pairs in both orders (one to two minutes in all).
# (The prediction is not graded.)
#
# **Try both before you unfold the solutions.** Next, [lesson 11](11_thinking.ipynb) is about prefilled tags and length limits.

# %%
PREDICTION = ""  # "first", "second" or "none"


def from_longer() -> PeftModel | None:
    """Your answer: a policy from saved_policy, trained by train_grpo."""


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def found_in(result, swapped) -> str:
    """The shortcut of a policy, by the rule of Exercise 1."""
    first, second, both = 0, 0, 0
    for here, there, (a, b) in zip(result.right, swapped.right, pairs):
        both += here and there
        first += here != there and here == (a > b)
        second += here != there and here != (a > b)
    print(f"only larger first {first}, only second {second}, both {both}")
    if max(first, second) <= both + min(first, second):
        return "none"
    return "first" if first > second else "second"


def outcome(prediction: str, train) -> str:
    """What the swap test finds, compared with the prediction."""
    if (trained := train()) is None:
        return ""
    if not prediction:
        return "missing"
    result = evaluate(trained, tokenizer, test_rows, **DECODING)
    found = found_in(*tested(trained, result))
    return compare_prediction(prediction, found)


HINTS = [("missing", "First write your prediction into PREDICTION.")]
RUN = [((PREDICTION, from_longer), "compared")]
print(check_exercise("Exercise 2", outcome, RUN, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: a policy that compares is correct in both orders. One that follows a place is correct in one of them.
#
# Exercise 2: after more SFT, the policy names both numbers about equally often, and mostly the larger one. The place earns
# nothing extra, so GRPO finds no shortcut here. Accuracy hardly changes either. With another seed (one of five), GRPO found one.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def shortcut_solution(first: int, second: int, both: int) -> str:
    if first > second + both:
        return "first"
    return "second" if second > first + both else "none"


print(check_exercise("Exercise 1, solution", shortcut_solution, CASES))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def from_longer_solution() -> PeftModel:
    policy = saved_policy(True, "longer")
    train_grpo(policy, new_rows, run.steps)
    return policy


RUN = [(("none", from_longer_solution), "compared")]
print(check_exercise("Exercise 2, solution", outcome, RUN, HINTS))
