# %% [markdown]
# # 09 · SFT, then GRPO
#
# GRPO doubles the accuracy of this model. It has learned to name the first number.
#
# You will be able to teach a model a new task with 100 examples, continue with GRPO on the same adapter, and find a
# *shortcut*: in this lesson, GRPO doubles the accuracy while the model learns to name the first number.
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** "Which is larger, 512 or 387?" After GRPO, half
# of the answers are correct. What has the model learned?
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.0 GB of memory.
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
# Pairs 200 to 299 get worked answers. The test rows, these pairs and the new rows share no question. The reward is 1 for a
# correct answer in the format of lesson 03, otherwise 0. `is_strictly_right` makes that check.

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
# The base model solves {{before.accuracy.hits}} of {{before.accuracy.n}} prompts. The printed sample imitates the JSON
# answers that it was trained to write.
#
# A policy that always named the first number would be correct in half of the cases, without any comparison. This is the
# *guess level* of the task: 0.5.
#
# **Before you choose a method, evaluate the base model, and write down the guess level.**

# %% [markdown]
# ## 3. GRPO alone learns nothing
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
# advantage and the gradient are 0, and no weight has changed. More steps could only wait for a lucky sample.
#
# **With a reward of 0 or 1, GRPO cannot start from a *pass rate* (the share of correct completions) of 0.**

# %% [markdown]
# ## 4. Teach the task with 100 examples
#
# *SFT*, supervised fine-tuning, trains the model to write given answers, token by token. Someone has to write these
# answers, which we call *worked answers*. Here, a function writes 100.


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
# TRL's `SFTTrainer` takes rows with the columns `prompt` and `completion`. With a *completion-only loss*, the default
# for such rows, only the completion's tokens count in the loss. An *epoch* is one pass over all rows.

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
# Each token has a *label*, the token that the model should write. A label of -100 removes a token from the loss. The
# prompt's labels are all -100. **Check that the end-of-turn token is among the trained tokens.** Without it, the model
# never learns to stop.

# %%
sft.train()
policy.save_pretrained(run.folder / "sft")
after_sft = evaluate(policy, tokenizer, test_rows, **DECODING)
print(f"correctly formatted:      {after_sft.format}")
print(f"strict accuracy, sampled: {after_sft.accuracy}")

# %% [markdown]
# SFT raised strict accuracy from {{before.accuracy.value:.2f}} to {{after_sft.accuracy.value:.2f}}, and
# {{after_sft.format.value:.0%}} of the answers have the required format. Many groups will now contain both correct and
# wrong answers.
#
# **A hundred worked answers can turn a pass rate of 0 into one that GRPO can use.**

# %% [markdown]
# ## 5. Continue with the same adapter
#
# GRPO should continue the adapter that SFT trained. `PeftModel.from_pretrained` loads a saved adapter for inference by
# default, which freezes it. Load it both ways, frozen and trainable, and train three steps with each.
#
# `beta` above 0 adds a penalty on the *KL divergence*, which measures how far the policy's token probabilities have
# moved from those of a *reference model*. Section 6 shows which model that is.


# %%
def saved_policy(trainable: bool, name: str = "sft") -> PeftModel:
    base, folder = load_base(), run.folder / name
    return PeftModel.from_pretrained(base, folder, is_trainable=trainable)


for trainable in (False, True):
    policy = saved_policy(trainable)
    start = adapter_of(policy)
    log = train_grpo(policy, new_rows, 3, beta=0.05)
    change = largest_change(start, adapter_of(policy))
    print(f"is_trainable={trainable}")
    print(f"  reward, by step: {[round(r, 2) for r in logged(log, 'reward')]}")
    print(f"  KL, by step: {[round(kl, 5) for kl in logged(log, 'kl')]}")
    print(f"  largest change of a weight: {change:.5f}")

# %% [markdown]
# Both runs finish without a warning and log rewards, but the frozen adapter has not changed. The only sign in that
# run's log is a KL of exactly 0 at every step ([report](https://github.com/huggingface/trl/issues/6700)).
#
# | mistake | what you see |
# |---|---|
# | load without `is_trainable=True`, set `beta` above 0 | no error; a KL of 0 at every step |
# | load without `is_trainable=True`, keep TRL's defaults | no error; [a gradient norm of 0](../docs/troubleshooting-training.md#it-trains-but-the-weights-never-change) at every step |
# | also pass a `peft_config` | a `ValueError` from TRL |
# | call `get_peft_model` again, in Unsloth | [`Your model already has LoRA adapters`](../docs/troubleshooting-gpu.md#your-model-already-has-lora-adapters) |
#
# **Load with `is_trainable=True`, and check after a few steps that a weight has changed.**

# %% [markdown]
# ## 6. Find the reference of the KL penalty
#
# The policy of the last run now has two adapters:

# %% tags=["nbval-check-output"]
print("adapters:", list(policy.peft_config))
change = largest_change(start, adapter_of(policy, "ref"))
print(f"ref differs from the SFT adapter by {change}")

# %% [markdown]
# TRL 1.14 copied the adapter as `ref` before the first step, because the policy was a PEFT model and `beta` was not 0.
# This frozen copy, which equals the SFT adapter, is the reference. So the KL was 0 at step 1, and the penalty pulls toward
# the SFT model.
#
# | you pass to `GRPOTrainer` | reference for `beta > 0` |
# |---|---|
# | a `PeftModel` with a trained adapter | a frozen copy of that adapter |
# | a `PeftModel` with a new adapter | a copy of it, which equals the base model |
# | either of them, with Unsloth on a GPU | [the base model](../docs/troubleshooting-training.md#continue-the-sft-adapter-in-grpo): Unsloth removes the copy (we read this in `unsloth/models/rl.py` and have not run it) |
#
# This lesson continues with `beta=0`, TRL's default, and so needs no reference.
#
# **If the KL is clearly above 0 at the first step, check which model is the reference.**

# %% [markdown]
# ## 7. Continue with GRPO
#
# Load the SFT adapter again, and train on the new prompts.

# %%
from time import process_time

policy = saved_policy(True)
started = process_time()
log = train_grpo(policy, new_rows, run.steps)
grpo_seconds = process_time() - started
policy.save_pretrained(run.folder / "grpo")
after_grpo = evaluate(policy, tokenizer, test_rows, **DECODING)

# %%
from statistics import fmean

from grpo_utils import compare, show_run_curves

curves = {"GRPO alone": alone, "GRPO after SFT": log}
show_run_curves(curves, ["reward", "frac_reward_zero_std"])
reward, tied = logged(log, "reward"), logged(log, "frac_reward_zero_std")
first, last = fmean(reward[:5]), fmean(reward[-5:])
print(f"mean reward: {first:.2f} in the first 5 steps, {last:.2f} in the last")
early, late = fmean(tied[:5]), fmean(tied[-5:])
print(f"tied groups: {early:.2f} in the first 5 steps, {late:.2f} in the last")
gained = compare(after_sft, after_grpo)
print(gained)

# %% [markdown]
# The mean reward goes from {{first:.2f}} in the first five steps to {{last:.2f}} in the last five (left). Strict accuracy
# on the test prompts rose from {{after_sft.accuracy.value:.3f}} to {{after_grpo.accuracy.value:.3f}}, a change of
# {{gained.difference.signed()}}, and the table assigns almost all of it to correctness. The share of tied groups rose from
# {{early:.2f}} to {{late:.2f}} (right), as it does when a policy becomes certain.
#
# All this looks like success, except that {{after_grpo.accuracy.value:.3f}} is the guess level.
#
# **However much accuracy rose, compare it with the guess level.**

# %% [markdown]
# ## 8. Train a rival: more SFT
#
# For a fair comparison, fix a *budget*. Ours is the number of sequences that the trainer computes gradients for, 64 per step.
# So SFT continues from the same adapter for the same number of steps, with 64 worked answers per step and the same learning
# rate. It repeats the 100 worked answers.


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
after_more = evaluate(longer, tokenizer, test_rows, **DECODING)
print("GRPO:    ", after_grpo.accuracy)
print("more SFT:", after_more.accuracy)

# %% [markdown]
# More SFT reaches {{after_more.accuracy.value:.3f}}, and GRPO {{after_grpo.accuracy.value:.3f}}. GRPO took
# {{grpo_seconds:.0f}} CPU seconds and more SFT {{sft_seconds:.0f}}, because GRPO also generates its sequences.
#
# **Give SFT the same budget as GRPO before you conclude that GRPO helped.**

# %% [markdown]
# ## 9. Ask which number it names
#
# Accuracy does not show how an answer was found. Two counts do:
#
# - *Named first* and *named second* count the answers that are the first and the second number of the question.
# - The *swap test* asks the same pairs in the other order. A policy that always names the same place is never correct
#   in *both orders*. One that names either number at random is, in at most half as many pairs as it names a number.


# %%
swapped_rows = Dataset.from_list([row(b, a) for a, b in pairs[:200]])


def named(result, place: int) -> int:
    """How many answers are the number in this place of the question."""
    answers = zip(result.sampled, pairs)
    return sum(is_strictly_right(t, str(pair[place])) for t, pair in answers)


def both_orders(policy, result) -> int:
    """How many pairs are answered correctly in both orders."""
    swapped = evaluate(policy, tokenizer, swapped_rows, **DECODING)
    return sum(map(all, zip(result.right, swapped.right)))


# %%
tested = {
    "first SFT": (saved_policy(False), after_sft),
    "GRPO": (policy, after_grpo),
    "more SFT": (longer, after_more),
}
counts = {}
print("of 200      correct  named first  named second  both orders")
for name, (model, result) in tested.items():
    places = named(result, 0), named(result, 1)
    counts[name] = *places, both_orders(model, result)
    columns = "{:13}{:13}{:13}".format(*counts[name])
    print(f"{name:10}{result.accuracy.hits:8}{columns}")

# %% [markdown]
# GRPO's policy names the first number in {{counts["GRPO"][0]}} of 200 answers and the second in {{counts["GRPO"][1]}}. It
# does not compare. In both orders, it is correct for {{counts["GRPO"][2]}} pairs, after {{counts["first SFT"][2]}} before
# GRPO, and more SFT reaches {{counts["more SFT"][2]}}.
#
# The cause is in the first row. After SFT, the policy rarely named one of the two numbers, and if it did, it was mostly
# the first ({{counts["first SFT"][0]}} to {{counts["first SFT"][1]}}). So most rewarded samples named the first number (all of them
# named the larger one, too), and GRPO reinforced the place. In the end, in most groups, all eight samples do it, and are all correct or all wrong. Such
# groups are tied, and nothing corrects the policy any more.
#
# **GRPO reinforces whatever the rewarded samples share. It may be a shortcut.**

# %% [markdown]
# ## 10. What the checks saw
#
# Another count needs no new samples: the accuracy by the place of the correct answer. `row` stored this place as `kind`,
# and the summary of an evaluation counts each kind separately:

# %%
for name, (_, result) in tested.items():
    kinds = result.summary()["by_kind"].items()
    rates = {k: found["accuracy_given_format"] for k, found in kinds}
    print(f"{name:9}", {k: round(rate, 2) for k, rate in rates.items()})

# %% [markdown]
# If the larger number is first, almost all answers of GRPO's policy are correct. If it is second, almost none is.
#
# | check | what it says about this GRPO run |
# |---|---|
# | reward curve | no alarm: it rises |
# | `compare` | no alarm: a gain from correctness, beyond chance |
# | five seeds (section 11) | no alarm: a gain with every seed |
# | tied groups | {{late:.2f}}. A solved task ties its groups too, but then the reward is near 1 |
# | guess level | **{{after_grpo.accuracy.value:.3f}} is not above 0.5** |
# | accuracy by `kind` | **near 1 for one kind, near 0 for the other** |
# | swap test | **{{counts["GRPO"][2]}} of 200 pairs** |
#
# The shortcut raises accuracy, so no check that only compares accuracies finds it. The last three rows ask what a shortcut
# earns.
#
# **Find the laziest policy that your reward would pay, and evaluate on prompts where it is wrong.**

# %% [markdown]
# ## 11. Repeat it with five seeds
#
# One seed does not settle this. `make bench-sft` trains five, also with 50 wrong worked answers
# ([tables](../docs/results.md#sft-then-grpo-or-more-sft)). Below, `179 : 1, 6` means that 179 answers name the first number and
# 1 the second, and that 6 of 200 pairs are correct in both orders. A star marks a shortcut, by the rule of Exercise 1. Under
# *first SFT* it says little, because most answers there name neither number.
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
# - **Accuracy rose in all ten GRPO runs, and six end with a shortcut.** More SFT never does. With 50 wrong answers, it does not
#   learn to compare either: of its answers that name one of the two numbers, 50% are correct. With 100 correct worked answers,
#   it is also ahead in accuracy, 0.745 to 0.605.
# - **The start may matter.** Four first SFT runs named the first number at least four times as often as the second, and all
#   four ended with the shortcut. Three named both about equally often, and GRPO learned to compare. The other three ended in
#   three ways. (We chose "four times" after we saw these runs.)
# - **More SFT before GRPO helps in part.** After 50 more SFT steps on 100 correct answers, one of five GRPO runs ended with
#   a shortcut, and no gain in accuracy is shown.
# - **Accuracy alone misleads.** With 50 wrong answers, GRPO is ahead, 0.523 to 0.312, but four of its five policies follow a
#   place.

# %% [markdown]
# ## 12. See when GRPO wins: many wrong worked answers
#
# Take a task whose answer is not in the question: "Which number comes after 512?" Copying earns nothing. But one shortcut
# is left: raise the last digit and never carry. It is correct in nine of ten cases, so `kind` counts the carries separately.
#
# People and models make mistakes in worked answers. Here, 50 of the 100 worked answers give the number before. The gold
# answers of the new prompts are correct.


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

# %% [markdown]
# Everything else is as before.

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

# %%
carries = [n for n, kind in enumerate(next_test["kind"]) if kind == "carry"]
for name, found in {"first SFT": flawed_sft, "GRPO": flawed_grpo}.items():
    hits = sum(found.right[n] for n in carries)
    print(f"carries after {name}: {hits} of {len(carries)} correct")

# %% [markdown]
# More SFT repeats the mistakes as often as the correct answers. The reward knows the gold answers, so GRPO reinforces only
# the correct ones: it reaches {{flawed_grpo.accuracy.value:.3f}} from {{flawed_sft.accuracy.value:.3f}}, and more SFT
# {{flawed_more.accuracy.value:.3f}}. The difference is {{flawed_against.difference.signed()}}.
#
# But {{hits}} of {{len(carries)}} carries are correct. GRPO learns nothing from a prompt that the policy never solves, and the
# shortcut pays on all others.
#
# `make bench-sft` repeats this with five seeds. The last column is GRPO minus more SFT, with its 95% interval:
#
# | worked answers | first SFT | GRPO | more SFT | difference |
# |---|---|---|---|---|
# | 100 correct | 0.763 | 0.901 | 0.946 | -0.045 (-0.077 to -0.013) |
# | 30 of 100 wrong | 0.395 | 0.886 | 0.587 | +0.299 (+0.246 to +0.352) |
# | 50 of 100 wrong | 0.257 | 0.875 | 0.377 | +0.498 (+0.430 to +0.566) |
#
# - **With 30 or 50 wrong worked answers, GRPO is better**, even than 100 steps of SFT, which take about as long.
# - **With 100 correct ones, more SFT is better**, because it teaches what the policy rarely samples. Over the seeds, 47 of 90
#   carries are correct after more SFT, 5 after the first SFT run, and none after GRPO.
# - On a third task, sorting digits with 50 wrong worked answers, no difference is shown.
#
# We tried no other learning rate. GRPO also had 400 gold answers that SFT did not use. In this task, a worked answer is the
# gold answer written twice, so SFT on those 400 is free. We have not run it; SFT on 100 correct ones gave 0.946. And GRPO's
# 0.875 to 0.901 is no better than never carrying (about 0.9).
#
# **If you can build worked answers from your gold answers, do that first. Use GRPO where you cannot.**

# %% [markdown]
# ## 13. Merge the right adapter
#
# The `grpo` adapter of section 7 continued `sft`, so it contains both stages. Merge it alone, once, into the original
# base. The next cell compares this merge and two common mistakes with the trained policy. It looks at accuracy and at
# the *logits*, the model's scores for every possible next token.


# %%
def merged(*names: str):
    model = load_base()
    for name in names:
        model = PeftModel.from_pretrained(model, run.folder / name)
        model = model.merge_and_unload()
    return model.eval()


prompts = list(test_rows["prompt"][:8])
shape = dict(add_generation_prompt=True, padding=True, return_dict=True)
batch = tokenizer.apply_chat_template(prompts, return_tensors="pt", **shape)
reached = {}
with torch.inference_mode():
    wanted = saved_policy(False, "grpo").eval()(**batch).logits
    for names in (("grpo",), ("sft", "grpo"), ("sft",)):
        model = merged(*names)
        difference = (model(**batch).logits - wanted).abs().max().item()
        accuracy = evaluate(model, tokenizer, test_rows, **DECODING).accuracy
        reached["+".join(names)] = accuracy
        print(f"{'+'.join(names):9} logits {difference:7.1e}  {accuracy}")

# %% [markdown]
# The correct merge reaches {{reached["grpo"].value:.2f}}, as the policy does. Its logits differ only by rounding. Merging
# both adds the SFT part twice and gives {{reached["sft+grpo"].value:.2f}}. The SFT adapter alone gives
# {{reached["sft"].value:.2f}}, because the GRPO stage is missing.
#
# | how you trained | merge into the original base |
# |---|---|
# | GRPO continued the SFT adapter | the GRPO adapter alone |
# | SFT was merged first, GRPO trained a new adapter | the SFT adapter, then the GRPO adapter |
#
# **Compare the merged model's logits with the policy's before you release it.**

# %% [markdown]
# ## 14. Use the recipe on a real base model
#
# Unsloth's notebook [Qwen3 (4B) GRPO](https://github.com/unslothai/notebooks/blob/main/nb/Qwen3_%284B%29-GRPO.ipynb)
# trains a base model in these two stages. We read its code and never ran it. SFT teaches only the format, with about 60
# solutions by DeepSeek-R1. GRPO then makes 100 steps of one group of 4, which took 106 s each in the stored outputs of May
# 2025, on a T4 with vLLM. (Here, a step of 8 groups of 8 takes {{grpo_seconds / run.steps:.1f}} CPU seconds.) If you adapt it:
#
# - Both stages train one model in memory. In two sessions, the mistakes of section 5 can happen.
# - Check the final answers of the solutions before you train on them. Section 12 shows what wrong ones do.
# - Between the stages, evaluate on held-out prompts, some of which a shortcut gets wrong.
#
# If an instruct model already writes correct answers in your format, skip SFT.

# %% [markdown]
# ## 15. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward 0, all groups tied | Is the base model's pass rate 0? | run SFT first; `sft.py` in the template basic_grpo does |
# | answers that never end | Is the end-of-turn token among the labels? | use the chat template, raise `max_length` |
# | no change after GRPO | Is the largest change of a weight 0? | load with `is_trainable=True` |
# | many tied groups after SFT | Are most prompts solved always, or never? | call `drop_tied` ([lesson 04](04_reading_a_run.ipynb)), add new prompts |
# | accuracy near the guess level | Is it near 0 for one `kind`? Do swapped twins fail? | more SFT first, then test again; rows or a task without the shortcut |
# | result below more SFT | Are the worked answers correct? | stay with SFT |
#
# **If the pass rate is 0, run SFT first. Check what the rewarded samples have in common. Then give more SFT and GRPO the
# same budget, and keep the cheaper one unless the other is shown to be better.**

# %% [markdown]
# ## 16. Exercises
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
# **Exercise 2.** Write `to_merge(plan)`, which returns the list of adapters to merge into the original base, in order.
# The plans are `"continued"` (GRPO continued the SFT adapter) and `"stacked"` (SFT was merged, then GRPO trained a new
# adapter).
#
# **Try both before you unfold the solutions.** [Lesson 05](05_stages.ipynb) compares GRPO stages over several seeds.


# %%
def to_merge(plan: str) -> list[str] | None:
    """Your answer: a list with "sft", "grpo" or both."""


# %% tags=["nbval-check-output"]
PLANS = [(("continued",), ["grpo"]), (("stacked",), ["sft", "grpo"])]
HINTS = [(["sft", "grpo"], "Whose weights did GRPO's adapter start from?")]
HINTS += [(["grpo"], "Which base was the GRPO adapter trained on?")]
print(check_exercise("Exercise 2", to_merge, PLANS, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: a policy that compares is correct in both orders. One that follows a place is correct in one of them.
#
# Exercise 2: a continued adapter contains both stages. A stacked one was trained on the base with SFT merged in.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def shortcut_solution(first: int, second: int, both: int) -> str:
    if first > second + both:
        return "first"
    return "second" if second > first + both else "none"


print(check_exercise("Exercise 1, solution", shortcut_solution, CASES))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def to_merge_solution(plan: str) -> list[str]:
    return ["grpo"] if plan == "continued" else ["sft", "grpo"]


print(check_exercise("Exercise 2, solution", to_merge_solution, PLANS))
