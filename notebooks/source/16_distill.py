# %% [markdown]
# # 16 · Distill or reinforce?
#
# A *teacher* gets {{sum(taught["weak"])}} of 200 sums right. One student is trained on this teacher's probabilities, token by token,
# and gets {{sum(last["distilled, weak teacher"])}}. A second student copies only the teacher's texts that a program found correct.
#
# **Guess first:** does the second student end below its teacher, level with it, or above?
#
# You will be able to choose what a model learns from: a reward, a teacher's texts, or a teacher's probabilities.
#
# Read [lesson 03](03_grpo_lora.ipynb) first. [Lesson 10](10_sft_then_grpo.ipynb) explains SFT.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 3 minutes on a CPU, and 1.0 GB of memory.
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
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of the teacher's GRPO run; 0: the lesson's 30
STUDENT_STEPS: int = 20  # optimizer steps of each student
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 30)

# %% [markdown]
# ## 2. Meet three ways to learn
#
# A *teacher* is a model that is better at your task than the *student*, the model that you train. To *distill* is to train
# the student to match the teacher.
#
# | method | who writes the completions | who judges them | what it needs |
# |---|---|---|---|
# | SFT on the teacher's answers | the teacher | nobody; the student copies every token | the teacher's texts |
# | on-policy distillation | the student | the teacher, token by token | the teacher's probabilities |
# | GRPO | the student | a program, once per completion | a reward, and some correct answers |
#
# *On-policy* means that the student learns from its own completions ([lesson 14](14_when_the_log_lies.ipynb)). GRPO does this
# too, but gives all tokens of a completion one rating; a teacher rates each token.

# %% [markdown]
# ## 3. Make two teachers
#
# A real teacher is usually a larger model. Ours has the student's size and learned addition with GRPO. One run gives both
# teachers: a *weak* one after a quarter of its steps, and a *good* one at its end.

# %%
import copy
import tempfile
from time import process_time

import torch
from transformers import TrainerCallback

from grpo_utils import evaluate_samples, load_policy, load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200)
LOADING = dict(profile=run.profile, backend="transformers", load_in_4bit=False)
SAMPLING = dict(samples=1, max_new_tokens=32, temperature=1.0, seed=SEED)


def answers_of(policy) -> list[bool]:
    """Which of the 200 held-out prompts a policy answers correctly."""
    found = evaluate_samples(policy, tokenizer, test_rows, **SAMPLING)
    return [right for (right,) in found.right]


def merged(policy):
    """A copy of a policy with its adapter merged into the weights."""
    return copy.deepcopy(policy).merge_and_unload().eval()


# %% cellView="form" jupyter={"source_hidden": true}
WEAK_STEP = max(1, run.steps // 4)
WATCHED = {5, 10, STUDENT_STEPS}


class Watch(TrainerCallback):
    """Evaluate a run after some steps, and add up its CPU seconds."""

    def __init__(self):
        self.right, self.seconds, self.spent = {}, 0.0, {}

    def on_step_begin(self, args, state, control, **kwargs):
        self.since = process_time()

    def on_step_end(self, args, state, control, model, **kwargs):
        self.seconds += process_time() - self.since
        step = state.global_step
        if step == WEAK_STEP:
            self.early = merged(model)
        if step in WATCHED:
            self.spent[step] = self.seconds
            with torch.random.fork_rng():  # the run draws the same numbers
                self.right[step] = answers_of(model)


# %% [markdown]
# Train the teacher with GRPO. Unlike in [lesson 06](06_evaluation.ipynb), `correctness_reward` is the only reward, and the learning
# rate is lower and constant. A constant rate does not depend on the length of the run, so the first {{STUDENT_STEPS}} steps also
# serve as our GRPO student.

# %%
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import show_progress
from grpo_utils.rewards import correctness_reward

SHARED = dict(
    lr_scheduler_type="constant",
    per_device_train_batch_size=64,  # sequences per step
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws the bar
    seed=SEED,
)

# %%
policy, tokenizer = load_policy(run.model, seed=SEED + 1000, **LOADING)
config = GRPOConfig(
    output_dir=tempfile.mkdtemp(),
    max_steps=run.steps,
    learning_rate=1e-3,
    num_generations=8,  # completions in a group
    max_completion_length=32,  # in tokens
    **SHARED,
)
watch = {"GRPO": Watch()}
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=[correctness_reward],
    callbacks=[watch["GRPO"]],
)
show_progress(trainer)
result = trainer.train()

# %%
teachers = {"weak": watch["GRPO"].early, "good": merged(policy)}
taught = {name: answers_of(model) for name, model in teachers.items()}
for name, right in taught.items():
    print(f"{name} teacher: {sum(right)} of {len(right)} correct")

# %% [markdown]
# The weak teacher is correct on {{sum(taught["weak"]) / 200:.0%}} of the held-out prompts, the good one on
# {{sum(taught["good"]) / 200:.0%}}. Every student in sections 5 and 6 starts with a new adapter, so none of them continues the
# teacher's run.

# %% [markdown]
# ## 4. Read what a teacher says about a token
#
# Let the student answer, and give its text to both models. At each position, compare the two models' probabilities of the
# next token. The *reverse KL* averages the difference in log-probabilities, student minus teacher, over all possible tokens
# $x$. The student's probabilities $s(x)$ are the weights of this average; the teacher's are $t(x)$:
#
# $$\mathrm{KL}(s \,\|\, t) = \sum_x s(x) \log \frac{s(x)}{t(x)}$$
#
# It is 0 where both models agree. On-policy distillation minimizes its mean over all positions of the completions.

# %%
student, _ = load_policy(run.model, seed=SEED, **LOADING)
shape = dict(add_generation_prompt=True, return_tensors="pt", return_dict=True)
prompt = tokenizer.apply_chat_template(test_rows["prompt"][0], **shape)
start = prompt["input_ids"].shape[1]
before = answers_of(student)
torch.manual_seed(SEED)
written = student.generate(**prompt, do_sample=True, max_new_tokens=32)

with torch.inference_mode():
    own, other = (
        model(written).logits[0, start - 1 : -1].log_softmax(-1)
        for model in (student, teachers["good"])
    )
kl = (own.exp() * (own - other)).sum(-1).tolist()
tokens = [repr(tokenizer.decode(token)) for token in written[0, start:]]
for token, value in zip(tokens, kl):
    print(f"{token:14}{value:6.2f} {'#' * round(10 * value)}")

# %%
first = max(range(len(kl)), key=kl.__getitem__)
share = kl[first] / sum(kl)
wanted = repr(tokenizer.decode(other[first].argmax()))
print(f"{tokens[first]} has {share:.0%} of the sum.")
print(f"There, the teacher would most likely write {wanted}.")

# %% [markdown]
# The two models disagree at few positions: {{tokens[first]}} alone has {{share:.0%}} of the sum. There, the teacher would
# write {{wanted}}, the beginning of the format that the prompt asks for. (A correct sum without answer tags earns 0.) After
# the student's own token, the teacher would mostly continue as the student did. GRPO would give all {{len(kl)}} tokens the
# same rating.
#
# **A teacher says where it would have written something else, and what. A reward says only whether the whole answer is right.**

# %% [markdown]
# ## 5. Distill from each teacher
#
# TRL's `DistillationTrainer` takes prompts and a teacher, but no reward. With `beta=1.0`, its loss is the reverse KL above.
# Each step samples 64 completions, as the GRPO run did, but here each one answers a different prompt.

# %%
from trl import DistillationConfig, DistillationTrainer


def distill(teacher, name: str):
    """Train a new student on a teacher's opinion of its tokens."""
    policy, _ = load_policy(run.model, seed=SEED, **LOADING)
    config = DistillationConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=STUDENT_STEPS,
        learning_rate=1e-3,
        beta=1.0,  # reverse KL
        max_completion_length=32,
        **SHARED,
    )
    watch[name] = Watch()
    trainer = DistillationTrainer(
        model=policy,
        teacher_model=teacher,
        args=config,
        train_dataset=train_rows,
        processing_class=tokenizer,
        callbacks=[watch[name]],
    )
    show_progress(trainer, "distill")
    trainer.train()
    return policy


students = {
    name: distill(teachers[name.split()[1]], name)
    for name in ("distilled, good teacher", "distilled, weak teacher")
}

# %% [markdown]
# ## 6. Copy the correct answers of the weak teacher
#
# Let the weak teacher write as many answers as each rival samples. Keep those that a program finds correct, and
# train on them with SFT. This is called *rejection sampling fine-tuning*.

# %%
from datasets import Dataset, disable_progress_bars

disable_progress_bars()  # of datasets
count = 64 * STUDENT_STEPS
asked = train_rows.select([n % len(train_rows) for n in range(count)])


def correct_answers(writer) -> list[dict]:
    """The correct ones of a model's answers, as rows for SFT."""
    found = evaluate_samples(writer, tokenizer, asked, **SAMPLING)
    return [
        {"prompt": row, "completion": [{"role": "assistant", "content": text}]}
        for row, (text,), (right,) in zip(
            asked["prompt"], found.texts, found.right
        )
        if right
    ]


since = process_time()
correct = correct_answers(teachers["weak"])
sampling_seconds = process_time() - since
kept = len(correct)
print(f"{kept} of {count} answers are correct")

# %%
from transformers.trainer_callback import PrinterCallback
from trl import SFTConfig, SFTTrainer


def imitate(rows: list[dict], name: str):
    """Train a new student to write these answers."""
    policy, _ = load_policy(run.model, seed=SEED, **LOADING)
    config = SFTConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=STUDENT_STEPS,
        learning_rate=2e-3,
        max_length=128,
        completion_only_loss=True,
        dataloader_drop_last=True,
        **SHARED,
    )
    watch[name] = Watch()
    repeated = [rows[n % len(rows)] for n in range(count)]
    trainer = SFTTrainer(
        model=policy,
        args=config,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(repeated),
        callbacks=[watch[name]],
    )
    trainer.remove_callback(PrinterCallback)  # prints no log
    trainer.train()
    return policy


FILTERED = "SFT, weak teacher, filtered"
students[FILTERED] = imitate(correct, FILTERED)

# %% [markdown]
# ## 7. Compare your students
#
# Under half of the teacher's answers passed, so SFT saw each of those two or three times. Look at your first guess again.
# **Also guess:** which of the four students will learn fastest?

# %%
from grpo_utils.plots import COLORS, show
from matplotlib.figure import Figure

figure = Figure(figsize=(5.6, 4.0), layout="constrained")
axes = figure.subplots()
rates = {}
STYLES = [(COLORS[0], "o", "-"), (COLORS[1], "s", "-")]
STYLES += [(COLORS[1], "s", "--"), ("black", "D", "-")]
for (name, run_of), (color, marker, line) in zip(watch.items(), STYLES):
    watched = {0: before} | run_of.right
    points = {step: sum(r) / len(r) for step, r in watched.items()}
    style = dict(color=color, marker=marker, linestyle=line, label=name)
    axes.plot(list(points), list(points.values()), **style)
    rates[name] = list(points.values())
for name, line in (("weak", "--"), ("good", ":")):
    level = sum(taught[name]) / len(taught[name])
    style = dict(color="gray", linestyle=line, label=f"the {name} teacher")
    axes.axhline(level, **style)
axes.set(xlabel="step", ylabel="held-out strict accuracy", ylim=(-0.04, 1.04))
axes.set(title="Four students", xticks=list(points))
axes.grid(alpha=0.3)
figure.legend(loc="outside lower center", ncols=2, frameon=False)
ends = [f"{n} {v[0]:.2f} to {v[-1]:.2f}" for n, v in rates.items()]
show(figure, f"Accuracy by step: {'; '.join(ends)}")

# %%
from grpo_utils import paired_change

last = {name: run_of.right[STUDENT_STEPS] for name, run_of in watch.items()}
sampled = dict.fromkeys(watch, (count, 0))
sampled[FILTERED] = (0, count)
extra = {FILTERED: sampling_seconds}
costs = {
    name: run_of.spent[STUDENT_STEPS] + extra.get(name, 0)
    for name, run_of in watch.items()
}
print(f"{'':28}{'student':>8}{'teacher':>8}{'CPU':>5}{'correct':>9}")
for name, right in last.items():
    samples = "".join(f"{number:8,}" for number in sampled[name])
    print(f"{name:28}{samples}{costs[name]:5.0f}{sum(right) / 200:9.3f}")

# %% [markdown]
# Every run has {{count:,}} samples, from the student or from the teacher, and takes {{min(costs.values()):.0f}} to
# {{max(costs.values()):.0f}} CPU seconds. The times exclude training the teacher, so distill only if you already have one.
#
# Now compare each student of the weak teacher with this teacher, prompt by prompt:

# %%
from grpo_utils import show_changes

NAMES = {
    "distilled": "distilled, weak teacher",
    "filtered SFT": FILTERED,
    "GRPO": "GRPO",
}
changes = {
    short: paired_change(taught["weak"], last[name])
    for short, name in NAMES.items()
}
for name, change in changes.items():
    print(f"{name:13}{change}")
show_changes(changes, "Students minus their weak teacher")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The second student (*filtered SFT*) ends above its teacher, at {{sum(last[FILTERED]) / 200:.2f}} compared with
# {{sum(taught["weak"]) / 200:.2f}}; GRPO ends at {{sum(last["GRPO"]) / 200:.2f}}. (GRPO is no surprise: this teacher is an
# early state of the same run.) The student distilled from this teacher ends at
# {{sum(last["distilled, weak teacher"]) / 200:.2f}} ({{changes["distilled"].verdict}}), because it learns only from that teacher.
# Filtered SFT learned from the teacher's texts and from the check; exercise 2 asks which of the two it needed.
#
# The student of the good teacher was fastest, ahead of GRPO: {{rates["distilled, good teacher"][2]:.2f}} compared with
# {{rates["GRPO"][2]:.2f}} after ten steps.
# </details>

# %% [markdown]
# Before you celebrate, try what is free. All these answers were sampled at a temperature of 1. Decode greedily instead:

# %%
from grpo_utils import evaluate

DECODING = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
asked_greedily = {"weak teacher": teachers["weak"]} | students
greedy = {}
for name, policy in asked_greedily.items():
    found = evaluate(policy, tokenizer, test_rows, **DECODING)
    greedy[name] = found.greedy_accuracy.value
    print(
        f"{name:28}{found.accuracy.value:7.2f} sampled{greedy[name]:7.2f} greedy"
    )

# %% [markdown]
# Greedy decoding alone takes the weak teacher from {{sum(taught["weak"]) / 200:.2f}} to {{greedy["weak teacher"]:.2f}}.
# Decoded greedily, its distilled student reaches {{greedy["distilled, weak teacher"]:.2f}}, and filtered SFT
# {{greedy[FILTERED]:.2f}}. So most of the teacher's mistakes come from sampling, not from what it knows.
#
# **Distillation copies how the teacher samples, mistakes included. If you check the answers, you can drop the wrong ones.**

# %% [markdown]
# ## 8. Compare the methods over seeds
#
# One seed can mislead, so we trained the tiny model with GRPO, distillation and SFT in three cases: addition with a *good teacher*, addition
# with a *weak teacher*, and a *new task*, "Which is larger, 512 or 387?", which the student never solves. *Filtered SFT* copies
# only the correct answers of the weak teacher. (These weak teachers are better than yours: their mean accuracy is 0.69.)
#
# Which method will be best in each case? Write down three guesses. The next cell stores the mean accuracies after 5, 10, 20
# and 30 steps of 64 sequences, over four seeds (three for the new task).

# %% cellView="form" jupyter={"source_hidden": true} tags=["nbval-check-output"]
STEPS_SEEN = (5, 10, 20, 30)
BENCH = {
    "good teacher": {
        "GRPO": (0.32, 0.54, 0.94, 0.96),
        "distillation": (0.42, 0.76, 0.96, 0.97),
        "SFT": (0.32, 0.46, 0.88, 0.90),
    },
    "weak teacher": {
        "GRPO": (0.32, 0.54, 0.94, 0.96),
        "distillation": (0.40, 0.63, 0.74, 0.73),
        "SFT": (0.34, 0.35, 0.68, 0.65),
        "filtered SFT": (0.34, 0.42, 0.82, 0.83),
    },
    "new task": {
        "GRPO": (0.00, 0.00, 0.00, 0.00),
        "distillation": (0.00, 0.00, 0.06, 0.20),
        "SFT": (0.00, 0.00, 0.12, 0.33),
    },
}
TEACHERS = {"good teacher": 0.93, "weak teacher": 0.69, "new task": 0.96}
print(f"{sum(map(len, BENCH.values()))} curves")

# %%
from grpo_utils.plots import MARKERS

colors = (*COLORS[:3], "black")
figure = Figure(figsize=(8, 3.8), layout="constrained")
panels = figure.subplots(1, 3, sharey=True)
ends = []
for axes, (case, arms) in zip(panels, BENCH.items()):
    for (arm, means), color, marker in zip(arms.items(), colors, MARKERS):
        axes.plot(STEPS_SEEN, means, color=color, marker=marker, label=arm)
        ends.append(f"{case}, {arm} {means[-1]:.2f}")
    style = dict(color="gray", linestyle="--", label="the teacher")
    axes.axhline(TEACHERS[case], **style)
    axes.set(title=case, xlabel="step", ylim=(-0.04, 1.04), xticks=STEPS_SEEN)
    axes.grid(alpha=0.3)
panels[0].set_ylabel("mean accuracy")
guess = panels[2].axhline(0.5, color="gray", linestyle=":")
drawn, names = panels[1].get_legend_handles_labels()  # it has all methods
drawn, names = [*drawn, guess], [*names, "a random guess"]
legend = dict(loc="outside lower center", ncols=3, frameon=False)
figure.legend(drawn, names, **legend)
show(figure, f"Mean accuracy after 30 steps: {'; '.join(ends)}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# - *Good teacher:* distillation leads early, but all end near the teacher. It is an easy case: the teacher is the
#   student's own base after GRPO, so both write alike.
# - *Weak teacher:* distillation and SFT end near the teacher. Filtered SFT and GRPO surpass it.
# - *New task:* GRPO learns nothing, because no answer is ever correct and all groups tie. Distillation and SFT rise. Sampled,
#   both stay below a random guess, so we cannot say that they compare the numbers.
# </details>
#
# **With a good teacher, distillation led GRPO after ten steps, and was about level after twenty. Only
# students with a check beat a weak teacher's samples.**
#
# <details><summary>Evidence</summary>
#
# `make bench-distill`, [all figures with intervals](../docs/results.md#distillation-sft-and-grpo). Each method has the best
# of three learning rates, chosen once at step 20 with the good teacher; filtered SFT uses the rate of SFT. The curves
# overstate the early lead. At 0.002, the best early rate of both, GRPO is at 0.85 after ten steps and distillation at 0.94
# (+0.10, +0.03 to +0.16, four seeds). Filtered SFT surpasses its weak teacher by 0.14 sampled; decoded greedily, no gain is
# shown. *Rethinking On-Policy Distillation* (arXiv [2604.13016](https://arxiv.org/abs/2604.13016)) names compatible ways of
# thinking as a condition of success.
# </details>

# %% [markdown]
# ## 9. Avoid the vocabulary trap
#
# Distillation compares two probability distributions over tokens, so student and teacher need the same vocabulary. The same
# tokenizer is not enough: models of one family often differ in the number of *padding rows* in their embeddings, which
# belong to no token. Add eight of them to the teacher:

# %%
padded = copy.deepcopy(teachers["good"])
size = padded.config.vocab_size
padded.resize_token_embeddings(size + 8, mean_resizing=False)
policy, _ = load_policy(run.model, seed=SEED, **LOADING)
given = dict(processing_class=tokenizer, train_dataset=train_rows)
config = DistillationConfig(tempfile.mkdtemp(), use_cpu=True, bf16=False)
try:
    DistillationTrainer(policy, padded, config, **given)
except ValueError as error:
    print(f"ValueError: {error}")

# %% [markdown]
# This happens with real models: Qwen2.5-7B-Instruct has 152,064 rows, and Qwen2.5-3B has 151,936 for the same tokens
# ([trl#3028](https://github.com/huggingface/trl/issues/3028),
# [LMOps#331](https://github.com/microsoft/LMOps/pull/331)). If only the padding differs, trim the teacher to the
# student's size:

# %%
padded.resize_token_embeddings(size, mean_resizing=False)
trainer = DistillationTrainer(policy, padded, config, **given)
same = (padded(**prompt).logits - teachers["good"](**prompt).logits).abs()
print(f"accepted; largest difference to the teacher: {same.max():.1e}")

# %% [markdown]
# Trim only if `tokenizer.get_vocab()` is the same for both. Otherwise, use TRL's `GOLDTrainer`, or SFT on the teacher's
# texts: neither needs a common vocabulary. The teacher also reads the student's prompt, so the chat template must suit both
# models.

# %% [markdown]
# ## 10. Choose the tool
#
# | you have | use | why |
# |---|---|---|
# | a teacher that is good enough, its weights, and a base that is sometimes correct | on-policy distillation | it learns from every token, and needed the fewest steps on addition |
# | a good teacher, but only its texts (an API) | SFT on its answers | needs no probabilities; check the provider's terms of use |
# | a teacher that is often wrong, and a check of answers | SFT on its correct answers, or GRPO | both surpassed the teacher's samples; over four seeds, only GRPO is shown to surpass its greedy answers |
# | a teacher that is often wrong but better than the student, and no check | distillation | the student becomes about as good as the teacher |
# | a check, no teacher that is good enough, and a base that is sometimes correct | SFT on its own correct samples, then GRPO | the first is cheaper; a reward does not stop at the level of a teacher |
# | a base that is never correct | SFT, then perhaps GRPO; check that its answers beat a random guess | all groups tie, so GRPO has no gradient |
#
# If your teacher is often wrong, first decode it greedily.

# %% [markdown]
# <details><summary>Trainers and memory for a real teacher</summary>
#
# | you have | in TRL 1.14 | for example |
# |---|---|---|
# | a teacher with the same vocabulary | `from trl import DistillationTrainer` | student `Qwen/Qwen3-0.6B`, teacher `Qwen/Qwen3-4B` |
# | a teacher with another tokenizer | `from trl.experimental.gold import GOLDTrainer` | with `use_uld_loss=True` |
# | a teacher with the same vocabulary, and texts to mix with the student's | `from trl.experimental.gkd import GKDTrainer` | `lmbda` is the share of the student's texts |
# | no teacher, but a reward or feedback | `from trl.experimental.sdpo import SDPOTrainer` | the model also reads a correct attempt, and is its own teacher |
#
# With a real model, four points differ from this lesson:
#
# - Memory: the teacher stays in memory with the student. By our estimate, Qwen3-4B takes about 8 GB in 16 bits and about
#   3 GB in 4 bits. A T4 has 14.56 GiB. The teacher needs no gradients, no optimizer and no cache.
# - Precision: `DistillationConfig` turns bf16 on unless you set `fp16=True`. A T4 has no bf16 units.
# - Learning rate: the default is 1e-6. Try several rates for each method, and choose at the step at which you compare.
# - Thinking: pass `chat_template_kwargs={"enable_thinking": False}`, or set a limit that is long enough for a
#   thought ([lesson 11](11_thinking.ipynb)).
# </details>

# %% [markdown]
# ## 11. Cheat sheet
#
# | step | what to do |
# |---|---|
# | before | measure teacher and student on the same held-out prompts; the teacher must be clearly better |
# | good teacher | `DistillationTrainer(student, teacher, DistillationConfig(beta=1.0, ...), train_dataset=prompts)` |
# | error about `vocab_size` | compare the tokenizers; cut padding rows with `teacher.resize_token_embeddings(n)` |
# | another case | choose by the table of section 10 |
# | report | samples of both models, steps, seconds, the difference from the teacher, and what the teacher cost |
#
# Distill if somebody has already paid for a good teacher. If all you have is a check, imitate the samples that pass, and then reinforce.

# %% [markdown]
# ## 12. Exercises
#
# **Exercise 1: change, predict, run, compare.** Student A gives two tokens the probabilities (0.98, 0.02), and its teacher
# gives them (0.5, 0.5). For student B, swap the two pairs. Predict which student has the larger reverse KL. Then write
# `reverse_kl(student, teacher)` for two lists of probabilities, all above 0 (section 4; use `math.log`), call it for both,
# and compare.


# %%
import math


def reverse_kl(student: list[float], teacher: list[float]) -> float:
    """Your answer: 0 if both lists are equal."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

SURE, UNSURE = [0.98, 0.02], [0.5, 0.5]
CASES = [((SURE, UNSURE), 0.5951), ((UNSURE, SURE), 1.2730)]
CASES += [((SURE, SURE), 0.0)]
HINTS = [
    (1.2730, "That is the forward KL. Weight with the student."),
    (-0.5951, "The student's probability is above the fraction line."),
]
print(check_exercise("Exercise 1", reverse_kl, CASES, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Is a teacher needed at all? Let the untrained student write the answers, keep its correct
# ones, and train on these. Predict the accuracy; with the weak teacher's correct answers, it was
# {{sum(last[FILTERED]) / 200:.2f}}. Then write `without_teacher` with `correct_answers(student)` and `imitate`,
# and return your prediction and what `answers_of` measures, both from 0 to 1. This takes about 30 seconds.
#
# Try both before you unfold the solutions.


# %%
def without_teacher() -> tuple[float, float] | None:
    """Your answer: (predicted accuracy, measured accuracy)."""


# %% tags=["nbval-check-output"]
from functools import partial


def compared(attempt):
    """What the run of an attempt says, next to its prediction."""
    if (found := attempt()) is None:
        return None
    predicted, measured = found
    print(f"predicted {predicted:.2f}, measured {measured:.2f}")
    return "learned" if measured > sum(before) / len(before) else "worse"


OUTCOME = [((), "learned")]
HINTS = [
    ("worse", "Did you keep only the correct answers, and train on them?")
]
mine = partial(compared, without_teacher)
print(check_exercise("Exercise 2", mine, OUTCOME, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: student B has the larger one, 1.27 compared with 0.60. Half of its choices are nearly impossible for the
# teacher. So distillation makes a student drop what its teacher would not write.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def kl_solution(student: list[float], teacher: list[float]) -> float:
    pairs = zip(student, teacher, strict=True)
    return sum(s * math.log(s / t) for s, t in pairs)


CASES = [((SURE, UNSURE), 0.5951), ((UNSURE, SURE), 1.2730)]
CASES += [((SURE, SURE), 0.0)]
print(check_exercise("Exercise 1, solution", kl_solution, CASES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: sample, keep the correct answers, and imitate them. Our run reached 0.74 without any teacher, and 0.76 with the
# weak one (one seed). So the check did most of the work, and this teacher's texts hardly helped. A real model learned
# as well from its own correct answers as with GRPO ([one seed](../docs/what-to-try-first.md#what-grpo-adds-to-what-is-free)).
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def without_solution() -> tuple[float, float]:
    rows = correct_answers(student)
    print(f"{len(rows)} of {count} answers are correct")
    policy = imitate(rows, "SFT, no teacher")
    right = answers_of(policy)
    return 0.5, sum(right) / len(right)


solved = partial(compared, without_solution)
print(check_exercise("Exercise 2, solution", solved, OUTCOME))
print(f"the student of the weak teacher: {sum(last[FILTERED]) / 200:.2f}")
