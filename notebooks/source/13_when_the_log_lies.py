# %% [markdown]
# # 13 · When the log lies
#
# The log ends at 94%. The model that you would save is at 4%.
#
# You will be able to measure how far your samples are from the policy that learns from them, and explain what a
# correction does.
#
# Read [lesson 08](08_grpo_by_hand.ipynb) first. It derives the loss with its ratio and clip.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 2 to 5 minutes on a CPU, and 1.0 GB of memory.
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
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of each run; 0: the lesson's 16
DELAY: int = 4  # how many steps old the stale samples are
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 16)

# %% [markdown]
# ## 2. Know three ways to learn from another policy
#
# GRPO assumes that the policy that learns is the one that wrote the completions. If so, training is *on-policy*. Three
# things break this assumption:
#
# | | why you would do it | in TRL |
# |---|---|---|
# | **reuse** | sampling is slow, so several optimizer steps learn from one round of sampling | `num_iterations` (the same samples again), `steps_per_generation` (a part of them per step) |
# | **delay** | sampler and trainer work at the same time, so samples are some steps old, or *stale* | `AsyncGRPOConfig(max_staleness=4)`, experimental |
# | **another sampler** | vLLM is fast, but rounds differently from the trainer; or its settings differ | `use_vllm=True` |
#
# We measured [reuse](../docs/results.md#four-updates-per-batch) as well. This lesson measures delay and another sampler. TRL corrects for another sampler only if that
# sampler is vLLM, which needs a GPU, and its asynchronous trainer needs vLLM too. **So we simulate both here**, on a CPU and
# with TRL's formulas.
#
# Guess before you go on. Suppose that samples come from the policy as it was 4 steps ago, the most that `max_staleness`
# allows by default. How much accuracy does that cost?
#
# ## 3. Train on stale samples
#
# The subclass of `GRPOTrainer` below keeps a copy of the adapter from each of the last few steps. It puts the oldest copy
# into the model while TRL samples, and puts the newest one back before TRL learns. For the ratio, the old adapter also
# computes the log-probabilities of its samples, because only the policy that sampled them can say how likely they were.

# %%
from collections import deque

import torch
from trl import GRPOTrainer


class StaleTrainer(GRPOTrainer):
    """Samples with the adapter of `delay` steps ago."""

    def __init__(self, *args, delay, use_ratio, **kwargs):
        super().__init__(*args, **kwargs)
        self.kept = deque(maxlen=delay + 1)
        self.use_ratio, self.log_ratios = use_ratio, []
        every = self.model.parameters()
        self.adapter = [p for p in every if p.requires_grad]

    @torch.no_grad()
    def put(self, values):
        for parameter, value in zip(self.adapter, values):
            parameter.copy_(value)

    @torch.no_grad()
    def score(self, batch):
        """The log-probability of each sampled token, shape (B, T)."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        length = batch["completion_ids"].shape[1]
        score = self._get_per_token_logps_and_entropies
        return score(self.model, ids, mask, length)[0]

    def _generate_and_score_completions(self, inputs):
        self.kept.append([p.detach().clone() for p in self.adapter])
        self.put(self.kept[0])  # the oldest
        batch = super()._generate_and_score_completions(inputs)
        if self.use_ratio:
            batch["old_per_token_logps"] = self.score(batch)
        self.put(self.kept[-1])  # the newest
        if self.use_ratio:
            change = self.score(batch) - batch["old_per_token_logps"]
            mask = batch["completion_mask"].bool()
            self.log_ratios.append((change, mask))
        return batch


# %% [markdown]
# `old_per_token_logps` is the denominator of the ratio. Without it, TRL takes each ratio as 1: it treats stale samples as
# fresh ones. With it, the ratio is correct and `epsilon` clips it.
#
# Train three times with the same settings, seed and number of samples: on fresh samples, on samples that are 4 steps old,
# and on samples that are 4 steps old with the ratio. (In the first 4 steps, no policy is that old yet, so the stale runs
# sample from the untrained one.)

# %%
import tempfile

from trl import GRPOConfig

from grpo_utils import load_policy, load_rows, math_rewards, show_progress

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200)
functions, reward_weights = math_rewards()
LOADING = dict(profile=run.profile, backend="transformers", load_in_4bit=False)


def train_with(delay, use_ratio=False):
    """Train a new policy; return it and its trainer."""
    policy, tokenizer = load_policy(run.model, seed=SEED, **LOADING)
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=run.steps,
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        num_generations=8,  # completions in a group
        per_device_train_batch_size=64,  # completions per step
        max_completion_length=32,  # in tokens
        reward_weights=reward_weights,
        epsilon=0.2,  # clips the ratio; TRL's default
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
    trainer = StaleTrainer(
        model=policy,
        processing_class=tokenizer,
        args=config,
        train_dataset=train_rows,
        reward_funcs=functions,
        delay=delay,
        use_ratio=use_ratio,
    )
    show_progress(trainer)
    trainer.train()
    return policy, trainer


# %%
base, tokenizer = load_policy(run.model, seed=SEED, **LOADING)
policies, trainers = {"before": base}, {}
RUNS = {
    "fresh": (0, False),
    "stale": (DELAY, False),
    "stale, ratio": (DELAY, True),
}
for name, (delay, use_ratio) in RUNS.items():
    policies[name], trainers[name] = train_with(delay, use_ratio)

# %%
from grpo_utils import evaluate, logged

DECODING = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
results = {
    name: evaluate(policy, tokenizer, test_rows, **DECODING)
    for name, policy in policies.items()
}
CORRECT = "rewards/correctness_reward/mean"
last = {
    name: logged(trainer.state.log_history, CORRECT)[-1]
    for name, trainer in trainers.items()
}
print(f"{'':13}{'last batch':>11}{'sampled':>9}{'greedy':>8}")
for name, result in results.items():
    in_log = f"{last[name]:11.2f}" if name in last else " " * 11
    rates = (result.accuracy.value, result.greedy_accuracy.value)
    print(f"{name:13}{in_log}{rates[0]:9.2f}{rates[1]:8.2f}")

# %% [markdown]
# *Last batch* is the mean reward for correctness that TRL logged in the last step. The other columns are strict accuracy on 200
# held-out prompts, after training.
#
# {{"**Read the row *stale* again.**" if last["stale"] > results["stale"].accuracy.value + 0.3 else "Compare the first two columns."}}
# The log of the stale run ends with {{last["stale"]:.0%}} correct, but the policy that you would save answers
# {{results["stale"].accuracy.value:.0%}} of the held-out prompts correctly (before training:
# {{results["before"].accuracy.value:.0%}}). The log is as old as its samples: it shows the policy of {{DELAY}} steps
# ago. It would show the current policy only after {{DELAY}} more steps.
#
# On samples of the same age, but with the ratio, accuracy is {{results["stale, ratio"].accuracy.value:.0%}}. On fresh
# samples, it is {{results["fresh"].accuracy.value:.0%}}. One seed per run is not enough, so section 7 uses more.
#
# Why can stale samples do harm without the ratio? One likely reason is late feedback (section 7 has another). Training
# pushes down a completion with a negative advantage, and a fresh sampler then writes it less often. A stale sampler keeps
# writing it for {{DELAY}} more steps, and each time, training pushes it down with full force. The policy overshoots before
# any sample shows it. With the correct ratio, the clip stops the push as soon as the token's ratio is below 0.8.
#
# ## 4. Look at the ratio by length
#
# The ratio of a *token* is its probability now, divided by its probability when it was sampled. The ratio of a *completion* is
# the product of its tokens' ratios, so each token can move it further from 1. Plot both for the last batch of the stale run with the ratio.
# In the right panel, each line is one completion: the product of all ratios up to a token.

# %%
from grpo_utils.plots import COLORS, show
from matplotlib.figure import Figure

differences, mask = trainers["stale, ratio"].log_ratios[-1]
tokens = differences[mask].exp()
products = (differences * mask).cumsum(1).exp()
lengths = mask.sum(1)
whole = products[:, -1]  # the ratio of each completion

figure = Figure(figsize=(8, 3.4), layout="constrained")
left, right = figure.subplots(1, 2, sharey=True)
for ratios, product, length in zip(differences.exp(), products, lengths):
    places = range(1, length + 1)
    left.plot(places, ratios[:length], ".", color=COLORS[0], alpha=0.4)
    right.plot(places, product[:length], color=COLORS[1], alpha=0.5)
left.set(yscale="log", xlabel="position of the token", ylabel="ratio")
left.set_title("of each token")
left.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
left.minorticks_off()
right.set(xlabel="tokens so far", title="of the completion so far")
for axes in (left, right):
    axes.axhline(1, color="gray", linestyle="--")
near = ((tokens > 0.8) & (tokens < 1.2)).float().mean().item()
near_whole = ((whole > 0.8) & (whole < 1.2)).float().mean().item()
alt = f"Ratios of a stale batch. Within 0.8 and 1.2: {near:.0%} of the tokens"
show(figure, f"{alt}, and {near_whole:.0%} of the whole completions")

# %%
from statistics import fmean


def spread_by_length(log_ratios, bounds=(13, 17, 19, 32)):
    """Print the spread of the log-ratio of tokens and completions."""
    token, total, length = [], [], []
    for difference, mask in log_ratios:
        token += (difference.square() * mask).sum(1).tolist()
        total += (difference * mask).sum(1).tolist()
        length += mask.sum(1).tolist()
    print("tokens   completions  spread of a token  of a completion")
    low, spreads = 0, []
    for high in bounds:
        here = [i for i, n in enumerate(length) if low < n <= high]
        if here:
            one = sum(token[i] for i in here) / sum(length[i] for i in here)
            all_ = fmean(total[i] ** 2 for i in here)
            spreads.append((one**0.5, all_**0.5))
            count = f"{low + 1}-{high}".ljust(8) + f"{len(here):12}"
            print(count + f"{one**0.5:19.3f}{all_**0.5:17.3f}")
        low = high
    return spreads


late = trainers["stale, ratio"].log_ratios[-8:]
spreads = spread_by_length(late)

# %% [markdown]
# Here *spread* is the root mean square of the logarithm of the ratio: 0 if every ratio is 1. In the last batch,
# {{near:.0%}} of the tokens have a ratio between 0.8 and 1.2, but only {{near_whole:.0%}} of the completions. In the
# last 8 batches, the spread of a completion is {{spreads[0][1] / spreads[0][0]:.1f}} times that of a token in the
# shortest group, and {{spreads[-1][1] / spreads[-1][0]:.1f}} times in the longest. (Compare only within a row: the
# lengths belong to different styles of answer, and training changes some styles more than others.)
#
# Our completions have about 20 tokens. A thinking model writes thousands. If the log-ratios of tokens are independent and
# identically distributed, the standard deviation of a completion's log-ratio grows with the square root of its length. Its
# mean is negative, and the size of the mean grows in proportion to the length. How much that matters depends on the spread
# of a token. With the spreads above (0.07 to 0.2), most completions of thousands of tokens would have a weight near 0;
# with that of bfloat16 in section 5 (0.001), nearly all would stay near 1. (This is arithmetic, not a measurement: our
# four groups do not show it.)
#
# **A ratio near 1 for each token says little about the ratio of the completion.**
#
# ## 5. Measure a sampler that is not the trainer
#
# A fast sampler such as vLLM has the newest weights, but it computes with other kernels, and often in another precision. To
# simulate that, sample with the fresh run's policy after rounding its weights, and score the samples with the exact weights.
# Also try a careless mistake: sample at a temperature of 1.3, and score at 1.0.

# %%
from contextlib import contextmanager


@contextmanager
def rounded(trainer, to):
    """Round every weight matrix for a while."""
    matrices = [p for p in trainer.model.parameters() if p.ndim == 2]
    own = [matrix.detach().clone() for matrix in matrices]
    with torch.no_grad():
        for matrix in matrices:
            matrix.copy_(to(matrix))
    yield
    with torch.no_grad():
        for matrix, value in zip(matrices, own):
            matrix.copy_(value)


@contextmanager
def temperature(trainer, value):
    """Sample and score at another temperature for a while."""
    own = trainer.temperature
    trainer.temperature = trainer.generation_config.temperature = value
    yield
    trainer.temperature = trainer.generation_config.temperature = own


def to_bits(bits):
    """A rounding to this many bits, with one scale per row."""

    def to(matrix):
        scale = matrix.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        return (matrix / scale.clamp(min=1e-12)).round() * scale

    return to


def ratios_of(sampler, trainer):
    """Log-ratios of 128 completions that a sampler wrote."""
    rows = [row for row in train_rows.select(range(16)) for _ in range(8)]
    with sampler:
        batch = GRPOTrainer._generate_and_score_completions(trainer, rows)
        sampled = trainer.score(batch)
    return trainer.score(batch) - sampled, batch["completion_mask"].bool()


# %%
trainer = trainers["fresh"]
torch.manual_seed(SEED)
SAMPLERS = {
    "bfloat16": rounded(trainer, lambda matrix: matrix.bfloat16().float()),
    "8 bits": rounded(trainer, to_bits(8)),
    "4 bits": rounded(trainer, to_bits(4)),
    "temperature 1.3": temperature(trainer, 1.3),
}
by_sampler = {}
for name, sampler in SAMPLERS.items():
    print(name)
    by_sampler[name] = spread_by_length([ratios_of(sampler, trainer)])

# %% [markdown]
# In the longest group, the spread of a completion is {{by_sampler["bfloat16"][-1][1]:.3f}} for bfloat16,
# {{by_sampler["8 bits"][-1][1]:.3f}} for 8 bits, {{by_sampler["4 bits"][-1][1]:.2f}} for 4 bits and
# {{by_sampler["temperature 1.3"][-1][1]:.2f}} for the wrong temperature. For the stale samples of section 4, it is
# {{spreads[-1][1]:.2f}}. On this short task, rounding to 8 bits
# {{"hardly matters" if max(by_sampler["8 bits"][-1]) < 0.2 else "matters"}}.
#
# Only the weights are rounded here. A real sampler also computes with rounded activations, so its ratios are further from 1.
#
# **To be safe, sample and score at the same temperature, and give the sampler the trainer's precision.** Use a correction
# only for what remains.
#
# ## 6. Know what a correction does
#
# There are two kinds of correction. The ratio in the loss, with its clip, corrects for what the *trainer* did since the
# samples were scored. An *importance weight* corrects for a *sampler* that differs from the trainer: TRL multiplies the loss
# by the trainer's probability divided by the sampler's. `vllm_importance_sampling_mode` says how it limits these weights,
# and `vllm_importance_sampling_clip_max` (3.0 by default) gives the limit. Two imaginary completions show two of the four
# modes:

# %% tags=["nbval-check-output"]
CAP = 3.0
one_odd_token = torch.tensor([1.0, 5.0, 1.0, 1.0, 1.0])
all_shifted = torch.tensor([1.3, 1.3, 1.3, 1.3, 1.3])
for name, ratios in {"odd": one_odd_token, "shifted": all_shifted}.items():
    product = ratios.prod().item()
    kept = product if product <= CAP else 0.0
    print(f"{name}: {[round(r, 1) for r in ratios.tolist()]}")
    capped = [round(r, 1) for r in ratios.clamp(max=CAP).tolist()]
    print(f"  token_truncate: each token has its weight: {capped}")
    print(f"  sequence_mask: the product is {product:.2f}, so all: {kept}")

# %% [markdown]
# `token_truncate` is *truncated importance sampling* for single tokens. It keeps every token, but it is biased: the weight
# of a token ignores the rest of its completion. `sequence_mask` is TRL's default. It gives a completion its exact weight,
# unless this weight is above the limit; then TRL drops the completion. The product of many small ratios can exceed the
# limit: in the second completion, no ratio is above 1.3. At most a third of the samples can have a weight above 3, because
# the mean weight is 1. A long completion is more likely to have a weight near 0.
#
# Now look at the ratio in the loss. The next cell prints the push on one token (the negative gradient of its
# loss) for ratios far from 1, with `epsilon=0.2`, first without `delta` and then with it:

# %% tags=["nbval-check-output"]


def push(ratio, advantage, delta=None):
    """TRL's gradient for one token: how much more likely it gets."""
    logp = torch.tensor(float(ratio)).log().requires_grad_()
    free = logp.exp()
    clipped = free.clamp(0.8, 1.2) * advantage
    free = free.clamp(max=delta) if delta else free
    torch.min(free * advantage, clipped).backward()
    return logp.grad.item()


print("advantage  ratio    push  push with delta=1.5")
for advantage in (1.0, -1.0):
    for ratio in (0.2, 5.0):
        both = (push(ratio, advantage, delta) + 0.0 for delta in (None, 1.5))
        cells = "".join(f"{one:8.1f}" for one in both)
        print(f"{advantage:9.0f}{ratio:7.1f}{cells}")

# %% [markdown]
# Clipping stops a token that has already moved far in the direction of its advantage. It does not stop one that moved far in
# the other direction: a token of a wrong answer that became 5 times as likely is pushed down with 5 times the force. `delta`
# stops this token too. So `delta` matters only for negative advantages and large ratios.
#
# ## 7. Compare accuracy over seeds
#
# `make bench-stale` trained each case with three seeds, for 24 steps of 64 completions ([all
# figures](../docs/results.md#stale-samples)). So all cases have the same number of samples. *Ratio* is the correction of
# section 3: the sampler's log-probabilities and `epsilon=0.2`. `delta` is 1.5, and the limit of the importance weights is 3.
# All cases have the same learning rate. A correction that clips also makes steps smaller, and each may have its own best rate.
# Each cell has one value per seed:
#
# | samples and correction | sampled accuracy of each seed | greedy accuracy |
# |---|---|---|
# | fresh | 0.98, 0.94, 0.95 | 0.99, 0.99, 0.97 |
# | delay 4 | 0.00, 0.00, 0.49 | 0.00, 0.00, 0.77 |
# | delay 4, ratio | 0.89, 0.87, 0.89 | 0.95, 0.99, 0.97 |
# | delay 8 | 0.09, 0.00, 0.00 | 0.14, 0.00, 0.00 |
# | delay 8, ratio | 0.73, 0.69, 0.78 | 0.86, 0.85, 0.90 |
# | delay 8, ratio and delta | 0.77, 0.68, 0.77 | 0.87, 0.90, 0.91 |
# | delay 8, token_truncate | 0.65, 0.48, 0.15 | 0.77, 0.53, 0.19 |
# | delay 8, sequence_mask | 0.93, 0.84, 0.89 | 0.96, 0.95, 0.98 |
# | temperature 1.3 | 0.96, 0.95, 0.96 | 0.99, 1.00, 1.00 |
# | temperature 1.3, token_truncate | 0.93, 0.89, 0.96 | 1.00, 0.98, 0.99 |
# | temperature 1.3, sequence_mask | 0.99, 0.95, 0.97 | 1.00, 1.00, 1.00 |
# | 4 bits | 0.94, 0.92, 0.94 | 1.00, 0.99, 1.00 |
#
# - **Without the ratio, a delay ruined five of the six runs.** They ended at 0.09 or below, which is worse than before training
#   (about 0.2, [lesson 15](15_controls.ipynb), section 4). The sixth ended at 0.49, about half of the accuracy with fresh samples.
# - **The ratio prevented most of that damage**, on samples of the same age. With a delay of 4, its runs are 0.078 below
#   those with fresh samples (95% interval 0.040 to 0.116). TRL's asynchronous trainer always uses the ratio. Its
#   default, `max_staleness=4`, is a limit, so its samples are at most as old as ours.
# - **`sequence_mask` helped more than the ratio** at this rate, with a delay of 8: +0.152 (+0.058 to +0.245). In TRL, it is the default
#   with vLLM. The asynchronous trainer does not offer it. `token_truncate` had the lowest mean, but its runs ended between
#   0.15 and 0.65, so three seeds do not show that it is worse than the ratio. Nor do they show whether `delta` helps.
# - **The careless temperature did no harm that we could show**: +0.000 (-0.033 to +0.033), without any correction.
#
# We have not measured two other kinds of correction. `off_policy_mask_threshold` drops a completion with a negative advantage
# if the policy has moved away from it, and works without vLLM. And some trainers [mask single
# tokens](../docs/map.md#masks-for-single-tokens) that the sampler and the policy see too differently.
#
# Why does an old sampler do harm, but not a *hot* one, which samples at 1.3? There are two explanations, and our runs
# do not decide between them:
#
# - **Late feedback.** The hot sampler has the newest weights, so it writes a completion less often in the step after that
#   completion was pushed down. A stale sampler keeps writing it for several more steps.
# - **Extreme ratios.** The *effective sample size* says how many fresh samples a batch is worth. Computed within groups of
#   similar length, and averaged over the completions, it is 85% for the hot sampler, and no ratio is above 3. For the
#   uncorrected runs with a delay of 4, it is 41%. But a policy that collapses also produces extreme ratios, so they may be a
#   consequence of the harm, not its cause.
#
# The spread alone does not predict the harm: for whole completions, the standard deviation of the log-ratio was 2.5 to
# 4.9 times as large with the hot sampler as in the runs with a delay of 4 that were corrected with the ratio. Yet it
# was those runs that lost accuracy.
#
# **Measure the ratios, but judge a sampler by the accuracy of the newest policy.**
#
# ## 8. Count minutes too
#
# Reuse saves samples, and a delay saves time. To see whether either pays off, count minutes:
#
# - **Reuse.** With the same number of samples, and the best of three learning rates for each, runs with four updates per
#   batch (`num_iterations=4`) reached an accuracy 0.112 higher than runs with one. With the same CPU time, it was 0.135 lower
#   ([results](../docs/results.md#four-updates-per-batch)). There, sampling took about 40% of a step with one update, so reuse saved little.
# - **Delay.** If sampler and trainer work at the same time, a step takes as long as the slower of the two. At best, if
#   both take the same time, the run is twice as fast. Exercise 2 computes the speedup. To gain it, you need a second device;
#   our simulation saves no time.
#
# A delay pays off only if the run reaches your target accuracy in fewer minutes, even though it needs more samples.
#
# ## 9. Know what this lesson does not show
#
# - Delay and samplers are simulated. A real vLLM also differs in its kernels, and TRL's asynchronous trainer was never run here.
# - The tiny model learns with a rate of 0.002, so 4 steps change it a lot. With a smaller rate, 4 steps change less.
#   Measure the ratios of your own run, and do not copy our number of steps.
# - Our completions have at most 32 tokens. With thousands, the ratios of whole completions lie further from 1. If each token
#   is as far off as in our stale samples, `sequence_mask` keeps most completions, but with weights near 0, so few of them
#   teach anything. If the sampler differs only by rounding, the weights shrink less: one user [measured a mean of
#   0.57](https://github.com/huggingface/trl/pull/5815).
# - Three seeds show only large effects. They separate some of the corrections, and only at one delay.
#
# ## 10. Cheat sheet
#
# | question | what to do |
# |---|---|
# | are my samples stale? | yes, if `num_iterations * steps_per_generation` does not divide `gradient_accumulation_steps`, or if sampling is asynchronous |
# | how far is the sampler? | the spread of the log-ratio of whole completions, by length; with vLLM, `sampling/sampling_logp_difference/mean`, which is per token |
# | delay | always use the sampler's log-probabilities; keep `max_staleness` small; judge by the newest policy, not by the log |
# | other sampler | first set the same temperature and precision; then `vllm_importance_sampling_correction=True` (the default) |
# | long completions | with `sequence_mask`, watch `sampling/importance_sampling_ratio/mean`: near 0, few completions count; `"token_truncate"` keeps all tokens, but varied most in section 7 |
# | ratios far above 1 | `delta` above `1 + epsilon`; it acts on negative advantages only |
# | does it pay? | compare with equal samples and with equal minutes |
#
# **Old samples are usable. Old samples that are treated as fresh are not.**
#
# ## 11. Exercises
#
# **Exercise 1.** Write `completion_weights(log_ratios, cap)`. `log_ratios` has a list of log-ratios for each completion, one
# per token. Return the importance weight of each completion, or 0.0 if the weight is above `cap`, as the mode
# `sequence_mask` does.


# %%
def completion_weights(
    log_ratios: list[list[float]], cap: float
) -> list[float]:
    """Your answer: one weight per completion."""


# %% tags=["nbval-check-output"]
import math

from grpo_utils import check_exercise

LOGS = [[0.0, 0.0], [math.log(2), math.log(0.5)], [math.log(2)] * 3]
CASES = [((LOGS, 3.0), [1.0, 1.0, 0.0]), ((LOGS, 10.0), [1.0, 1.0, 8.0])]
HINTS = [
    ([1.0, 1.0, 3.0], "That truncates. A mask gives 0."),
    ([1.0, 1.0, 2.0], "That averages over tokens. Multiply the ratios."),
]
print(check_exercise("Exercise 1", completion_weights, CASES, HINTS))

# %% [markdown]
# **Exercise 2.** A step samples for `sampling` seconds and then learns for `learning` seconds. Write
# `speedup(sampling, learning)`: how many times as fast a run is that does both at the same time, on two devices.
#
# **Try both before you unfold the solutions.**


# %%
def speedup(sampling: float, learning: float) -> float:
    """Your answer: 1 if nothing is gained."""


# %% tags=["nbval-check-output"]
CASES = [((5.0, 5.0), 2.0), ((9.0, 3.0), 4 / 3), ((2.0, 6.0), 4 / 3)]
HINTS = [
    (4.0, "The sampler still needs its own time."),
    (12.0, "That is the time of a step now. Divide by the new one."),
    (3.0, "Divide the time of both by the time of the slower one."),
]
print(check_exercise("Exercise 2", speedup, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: the logarithm of a product is the sum of the logarithms.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def weights_solution(log_ratios: list[list[float]], cap: float) -> list[float]:
    weights = [math.exp(sum(tokens)) for tokens in log_ratios]
    return [weight if weight <= cap else 0.0 for weight in weights]


CASES = [((LOGS, 3.0), [1.0, 1.0, 0.0]), ((LOGS, 10.0), [1.0, 1.0, 8.0])]
print(check_exercise("Exercise 1, solution", weights_solution, CASES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: before, a step took the sum of both times. Now it takes the larger one.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def speedup_solution(sampling: float, learning: float) -> float:
    return (sampling + learning) / max(sampling, learning)


CASES = [((5.0, 5.0), 2.0), ((9.0, 3.0), 4 / 3), ((2.0, 6.0), 4 / 3)]
print(check_exercise("Exercise 2, solution", speedup_solution, CASES))
