# %% [markdown]
# # 09 · SFT, then GRPO
#
# {{badges}}
#
# **You will be able to** teach a model a new task with 100 examples, continue with GRPO on the same adapter, and test
# whether GRPO was worth its cost. With correct examples, it was not. With half of them wrong, it was.
#
# | | CPU |
# |---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) |
# | memory | 1.0 GB ([measured](../docs/results.md)) |
# | model | 0.46 million parameters, included |
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** the base model never solves this lesson's
# task. What does GRPO alone do?
#
# **Numbers in the text** come from the stored CPU run (seed 0). Yours will differ with other seeds and machines.

# %% [markdown]
# ## 1. Set up
#
# On Colab and Kaggle, the next cell installs the course in a few minutes. (We have not run it there yet.) On Kaggle,
# first turn on *Internet* in the settings. Elsewhere, the cell does nothing.

# %%
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
# The tiny model was never trained to compare two numbers. That is our task.

# %%
import itertools
import random


def row(a: int, b: int) -> dict:
    question = {"role": "user", "content": f"Which is larger, {a} or {b}?"}
    return {"prompt": [question], "answer": str(max(a, b))}


pairs = list(itertools.combinations(range(100, 1000), 2))  # each pair once
pairs = random.Random(SEED).sample(pairs, 700)
pairs = [pair[::-1] if n % 2 else pair for n, pair in enumerate(pairs)]
rows = Dataset.from_list([row(a, b) for a, b in pairs])
test_rows = rows.select(range(200))  # only to evaluate
sft_rows = rows.select(range(200, 300))  # these get worked answers
new_rows = rows.select(range(300, 700))  # only a prompt and a gold answer
print(test_rows[0])

# %% [markdown]
# The test rows, the SFT rows and the new rows share no question. The reward is 1 for a correct answer in the format of
# lesson 03, otherwise 0. `is_strictly_right` makes that check.

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
# answers that it was trained to write. The upper end of the 95% interval is {{before.accuracy.interval[1]:.3f}}. Even
# at that rate, {{(1 - before.accuracy.interval[1]) ** 8:.0%}} of the groups of eight would contain no correct
# completion.
#
# **Evaluate the base model on your task before you choose a method.**

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
def demonstration(a: int, b: int, larger=max) -> dict:
    answer = larger(a, b)
    work = f"<reasoning>{answer} > {a + b - answer}</reasoning>"
    text = f"{work}<answer>{answer}</answer>"
    completion = [{"role": "assistant", "content": text}]
    return {"prompt": row(a, b)["prompt"], "completion": completion}


demonstrations = [demonstration(a, b) for a, b in pairs[200:300]]
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
# This frozen copy, which equals the SFT adapter, is the reference. That is why the KL was 0 at step 1, and why the
# penalty pulls toward the SFT model and not toward the base model.
#
# | you pass to `GRPOTrainer` | reference for `beta > 0` |
# |---|---|
# | a `PeftModel` with a trained adapter | a frozen copy of that adapter |
# | a `PeftModel` with a new adapter | a copy of it, which equals the base model |
# | either of them, with Unsloth on a GPU | [the base model](../docs/troubleshooting-training.md#continue-the-sft-adapter-in-grpo): Unsloth removes the copy (we read this in `unsloth/models/rl.py` and have not run it) |
#
# With Unsloth on a GPU, the penalty would therefore pull toward the base model and undo part of SFT. This lesson
# continues with `beta=0`, TRL's default, and so needs no reference.
#
# **If the KL is clearly above 0 at the first step, check which model is the reference.**

# %% [markdown]
# ## 7. Estimate how many groups will be tied
#
# GRPO learns nothing from a prompt that the SFT model always solves or never solves, because its group is tied.
# `pass_rates` samples eight answers per prompt and returns the share of correct ones. That costs samples too, so measure
# only 100 of the 400 new prompts. For comparison, also measure the prompts of the worked answers.

# %%
from time import process_time

from grpo_utils import drop_tied, pass_rates

sft_policy = saved_policy(False)
SAMPLING = dict(samples=8, max_new_tokens=40, seed=SEED)
some_rows = new_rows.select(range(100))
started = process_time()
new_rates = pass_rates(sft_policy, tokenizer, some_rows, **SAMPLING)
estimating = process_time() - started  # CPU seconds
old_rates = pass_rates(sft_policy, tokenizer, sft_rows, **SAMPLING)
print(f"{'prompts':12}mean   never  always   all")
for name, found in {"new": new_rates, "SFT rows": old_rates}.items():
    never, always, every = found.count(0), found.count(1), len(found)
    print(f"{name:10}{sum(found) / every:6.2f}{never:8}{always:8}{every:6}")
kept = drop_tied(some_rows, new_rates)
print(f"drop_tied keeps {len(kept)} of {len(some_rows)} new prompts")

# %% [markdown]
# In eight attempts, the SFT model never solves {{new_rates.count(0)}} of the 100 new prompts and always solves
# {{new_rates.count(1)}}. So about {{1 - len(kept) / 100:.0%}} of the groups would be tied at the start. `drop_tied` leaves
# such prompts out.
#
# Is such a filter worth its cost? Filtering all 400 prompts takes 3,200 samples, as many as the GRPO run of the next
# section draws. The filter would double the sampling to save {{1 - len(kept) / 100:.0%}} of it. So this lesson uses
# all new prompts. A filter pays off if most groups are tied, or if you train on the same prompts many times.
#
# The mean pass rate is {{sum(old_rates) / len(old_rates):.2f}} on the SFT rows and
# {{sum(new_rates) / len(new_rates):.2f}} on the new prompts. A model does better on examples that it has partly
# memorized, so never evaluate on SFT rows.
#
# **Estimate the share of tied groups before you pay for a filter.**

# %% [markdown]
# ## 8. Continue with GRPO
#
# Load the SFT adapter again, and train on the new prompts.

# %%
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
# After SFT, the mean reward goes from {{first:.2f}} in the first five steps to {{last:.2f}} in the last five (left),
# and the share of tied groups from {{early:.2f}} to {{late:.2f}} (right). Both curves jump, because a step has only
# eight groups. Groups become tied when the policy becomes certain: it solves some prompts every time and others never.
# Neither kind teaches it anything more.
#
# On the test prompts, strict accuracy rose from {{after_sft.accuracy.value:.3f}} to {{after_grpo.accuracy.value:.3f}},
# a change of {{gained.difference.signed()}}. The table shows which part of the gain comes from the format, which SFT
# had already taught, and which from correctness.
#
# **SFT makes correct answers possible, and GRPO makes them more frequent.**

# %% [markdown]
# ## 9. Compare with more SFT
#
# A longer SFT run might have done as well. For a fair comparison, fix a *budget*. Ours is the number of sequences that
# the trainer computes gradients for, 64 per step. So SFT continues from the same adapter for the same number of steps,
# with 64 worked answers per step and the same constant learning rate. It has only the 100 worked answers, so it repeats
# them.


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

# %% [markdown]
# Count everything that each method costs, including the samples of section 7:

# %%
budget = 64 * run.steps
costs = [("pass rates (section 7)", 8 * len(some_rows), 0, estimating)]
costs += [("GRPO", budget, budget, grpo_seconds)]
costs += [("more SFT", 0, budget, sft_seconds)]
print(f"{'':24}sampled  trained on  CPU seconds")
for name, sampled, trained, seconds in costs:
    print(f"{name:24}{sampled:7}{trained:12}{seconds:13.0f}")
against = compare(after_more, after_grpo)
print(against)

# %% [markdown]
# More SFT (`before` in the table) reaches {{after_more.accuracy.value:.3f}}, and GRPO (`after`)
# {{after_grpo.accuracy.value:.3f}}. The difference is {{against.difference.signed()}}. GRPO took {{grpo_seconds:.0f}} CPU
# seconds and more SFT {{sft_seconds:.0f}}, because GRPO also has to generate its sequences. Section 7 took another
# {{estimating:.0f}} seconds.
#
# A worked answer can also teach what the model never samples. GRPO learns nothing from a prompt that the policy never
# solves.
#
# **With 100 correct worked answers, more SFT is the better use of this budget (section 10 repeats this with five
# seeds), and it takes less CPU time.**

# %% [markdown]
# ## 10. See when GRPO wins: many wrong worked answers
#
# People and models make mistakes in worked answers. In the next comparison, 50 of the 100 worked answers give the
# smaller number as the larger one. The gold answers of the new prompts are still correct. Everything else is as
# before: the first SFT run, then GRPO or more SFT for the same number of sequences.

# %%
claims = [min] * 50 + [max] * 50
flawed = [demonstration(*p, c) for p, c in zip(pairs[200:300], claims)]
print(flawed[0]["completion"][0]["content"])
flawed = Dataset.from_list(flawed)
policy = new_policy()
new_sft(policy, flawed, **FIRST_SFT).train()
policy.save_pretrained(run.folder / "flawed")
flawed_sft = evaluate(policy, tokenizer, test_rows, **DECODING)

# %%
policy = saved_policy(True, "flawed")
train_grpo(policy, new_rows, run.steps)
flawed_grpo = evaluate(policy, tokenizer, test_rows, **DECODING)
policy = saved_policy(True, "flawed")
more_sft(policy, flawed)
flawed_more = evaluate(policy, tokenizer, test_rows, **DECODING)
print("after the first SFT run:", flawed_sft.accuracy)
print("then GRPO:              ", flawed_grpo.accuracy)
print("or more SFT:            ", flawed_more.accuracy)
flawed_against = compare(flawed_more, flawed_grpo)
print(flawed_against)

# %% [markdown]
# From {{flawed_sft.accuracy.value:.3f}} after the first SFT run, GRPO reaches {{flawed_grpo.accuracy.value:.3f}} and
# more SFT {{flawed_more.accuracy.value:.3f}}. On the same prompts, the difference (GRPO minus more SFT) is
# {{flawed_against.difference.signed()}}. More SFT repeats the mistakes as often as the correct answers. The reward
# knows the gold answers, so GRPO reinforces only correct ones.
#
# One seed does not settle this. `make bench-sft` repeats both comparisons with five seeds, and adds a case with 30
# wrong worked answers ([table](../docs/results.md#sft-then-grpo-or-more-sft)). The last column is GRPO minus more
# SFT, with its 95% interval over the seeds:
#
# | worked answers | first SFT | GRPO | more SFT | difference |
# |---|---|---|---|---|
# | 100 correct | 0.306 | 0.589 | 0.745 | -0.156 (-0.271 to -0.041) |
# | 100, 30 of them wrong | 0.204 | 0.510 | 0.471 | +0.039 (-0.040 to +0.118) |
# | 100, 50 of them wrong | 0.165 | 0.516 | 0.312 | +0.204 (+0.150 to +0.258) |
#
# - **With 100 correct worked answers, more SFT is better.**
# - **With 30 wrong ones, no difference is shown.** We added the case with 50 after we had seen this result.
# - **With 50 wrong ones, GRPO is better**, even if more SFT gets as much CPU time. More SFT falls from 0.745 to 0.312,
#   because it copies the mistakes. GRPO falls only from 0.589 to 0.516, because it needs the worked answers only to
#   get started.
#
# All runs use the same learning rate, and we tried no other for this table. A lower one might leave GRPO fewer tied
# groups. If you can check the worked answers too, remove the wrong ones before SFT, and use GRPO on prompts that have a
# gold answer but no worked answer.
#
# **Here, more SFT was better with correct worked answers, and GRPO was better with half of them wrong.** GRPO also had
# 400 gold answers that SFT did not use. SFT on the model's own correct samples (*rejection sampling*) would use them
# too; we have not run it.

# %% [markdown]
# ## 11. Merge the right adapter
#
# The `grpo` adapter of section 8 continued `sft`, so it contains both stages. Merge it alone, once, into the original
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
# ## 12. Use the recipe on a real base model
#
# Unsloth's notebook [Qwen3 (4B) GRPO](https://github.com/unslothai/notebooks/blob/main/nb/Qwen3_%284B%29-GRPO.ipynb)
# trains a base model in the same two stages. We read its code and never ran it.
#
# | | this lesson | Unsloth's notebook |
# |---|---|---|
# | model | 0.46 million parameters, LoRA of rank 16 | Qwen3-4B-Base in 16 bits, LoRA of rank 32 |
# | what SFT teaches | format and task | the format, with a chat template that the notebook writes |
# | worked answers | 100, written by a function | about 60 solutions by DeepSeek-R1, of at most 1,024 tokens with their prompt |
# | SFT | 50 steps of 20 rows, learning rate 1e-3 | two epochs of one row per step, about 120 steps, 2e-4 |
# | tokens trained on | the completion | the whole text, prompt included |
# | GRPO | 50 steps of 8 groups of 8, 1e-3 | 100 steps of one group of 4, 5e-6 |
# | prompts for GRPO | 400 new ones | new ones, from DAPO-Math-17k |
# | completion limit | 40 tokens | about 1,846 tokens |
# | time | {{grpo_seconds / run.steps:.1f}} CPU seconds per GRPO step | 106 s per GRPO step in its stored outputs of May 2025, on a T4 with vLLM, so about 3 hours for 100 |
#
# If you adapt it:
#
# - The notebook trains both stages on one model in memory. It saves and loads nothing between them, so the mistakes
#   of section 5 cannot happen. They can happen if you run the stages in two sessions.
# - Check the final answers of the solutions before you train on them. The notebook's solutions come from a dataset
#   that had already been filtered. Section 10 shows what wrong ones do.
# - Between the stages, the notebook prints one answer. Evaluate on held-out prompts instead. If the format is right and
#   some answers are correct, GRPO can start.
#
# Measure an instruct model before you train it: if it already writes correct answers in your format, skip SFT.

# %% [markdown]
# ## 13. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward 0, all groups tied | Is the base model's pass rate 0? | run SFT first; `sft.py` in the template basic_grpo does |
# | answers that never end | Is the end-of-turn token among the labels? | use the chat template, raise `max_length` |
# | no change after GRPO | Is the largest change of a weight 0? | load with `is_trainable=True` |
# | KL above 0 at step 1 | Which model is the reference? | continue the SFT adapter with `beta=0`, or merge SFT first |
# | many tied groups after SFT | Are most prompts solved always, or never? | call `drop_tied`, add new prompts |
# | result below more SFT | Are the worked answers correct? | stay with SFT |
# | result below the SFT model | Does `compare` show a change? | lower the learning rate, or take an earlier [checkpoint](../docs/choosing-a-checkpoint.md) |
# | worse after the merge | Do the logits equal the policy's? | merge the last adapter once |
#
# **If the pass rate is 0, run SFT first. Then give more SFT and GRPO the same budget, and keep the cheaper one unless
# the other is shown to be better.**

# %% [markdown]
# ## 14. Exercises
#
# **Exercise 1.** Write `next_step(rate, tied)`, which takes the mean pass rate and the share of tied groups and returns
# `"SFT first"` (nothing is ever correct), `"other prompts"` (more than half of the groups are tied) or `"GRPO"`.


# %%
def next_step(rate: float, tied: float) -> str:
    """Your answer: one of the three strings."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

CASES = [((0.0, 1.0), "SFT first"), ((0.4, 0.1), "GRPO")]
CASES += [((0.97, 0.8), "other prompts"), ((0.03, 0.9), "other prompts")]
CASES += [((0.5, 0.5), "GRPO"), ((0.0, 0.3), "SFT first")]
HINTS = [("GRPO", "How many groups are tied? Is anything ever correct?")]
HINTS += [("SFT first", "Is the pass rate exactly 0?")]
HINTS += [("other prompts", "Is anything correct? Is half more than half?")]
print(check_exercise("Exercise 1", next_step, CASES, HINTS))

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
# Exercise 1: a pass rate of 0 leaves nothing to reinforce. If most groups are tied, most of the work is wasted.
#
# Exercise 2: a continued adapter contains both stages. A stacked one was trained on the base with SFT merged in.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def next_step_solution(rate: float, tied: float) -> str:
    if rate == 0:
        return "SFT first"
    return "other prompts" if tied > 0.5 else "GRPO"


print(check_exercise("Exercise 1, solution", next_step_solution, CASES))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def to_merge_solution(plan: str) -> list[str]:
    return ["grpo"] if plan == "continued" else ["sft", "grpo"]


print(check_exercise("Exercise 2, solution", to_merge_solution, PLANS))
