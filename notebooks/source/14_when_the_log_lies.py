# %% [markdown]
# # 14 · When the log lies
#
# The log of this run ends at {{last["stale"]:.0%}} correct answers. The model that you would save gets
# {{results["stale"].accuracy.value:.0%}} right; before training, it got {{results["before"].accuracy.value:.0%}} right.
#
# **Guess first:** the first two numbers count answers to questions of the same kind, sampled at the same temperature. What
# differs: the prompts, the way of counting, or the policy?
#
# You will be able to say whose answers a log counts, what a ratio of 1 means, and when another loss can matter.
#
# Read [lesson 08](08_grpo_by_hand.ipynb) first. It derives the loss with its ratio and its clip.
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 2 minutes on a CPU, and 1.0 GB of memory.
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
STEPS: int = 0  # optimizer steps of each run; 0: the lesson's 16
DELAY: int = 4  # section 3 explains it
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 16)

# %% [markdown]
# ## 2. Read two logs that rise
#
# Train twice with the same model, settings, seed and number of samples. The runs *fresh* and *stale* differ in one thing,
# which the folded cell shows: open it after your guess. (On GitHub it is open: scroll past it.)

# %% cellView="form" jupyter={"source_hidden": true}
from collections import deque

import torch
from trl import GRPOTrainer


class StaleTrainer(GRPOTrainer):
    """Samples with the adapter of `delay` steps ago."""

    def __init__(self, *args, delay, **kwargs):
        super().__init__(*args, **kwargs)
        self.kept = deque(maxlen=delay + 1)
        every = self.model.parameters()
        self.adapter = [p for p in every if p.requires_grad]

    @torch.no_grad()
    def put(self, values):
        for parameter, value in zip(self.adapter, values):
            parameter.copy_(value)

    def _generate_and_score_completions(self, inputs):
        self.kept.append([p.detach().clone() for p in self.adapter])
        self.put(self.kept[0])  # the oldest
        batch = super()._generate_and_score_completions(inputs)
        self.put(self.kept[-1])  # the newest
        return batch


# %%
import tempfile

from trl import GRPOConfig

SETTINGS = dict(
    learning_rate=2e-3,
    lr_scheduler_type="constant",
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions per step
    max_completion_length=32,  # in tokens
    epsilon=0.2,  # clips the ratio; TRL's default
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws the bar
)

# %%
from grpo_utils import load_policy, load_rows, math_rewards, show_progress

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200)
functions, weights = math_rewards()
LOADING = dict(profile=run.profile, backend="transformers", load_in_4bit=False)


def train_with(delay, trainer_type=StaleTrainer):
    """Train a new policy; return it and its trainer."""
    policy, tokenizer = load_policy(run.model, seed=SEED, **LOADING)
    own = dict(max_steps=run.steps, reward_weights=weights, seed=SEED)
    trainer = trainer_type(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(tempfile.mkdtemp(), **SETTINGS, **own),
        train_dataset=train_rows,
        reward_funcs=functions,
        delay=delay,
    )
    show_progress(trainer)
    trainer.train()
    return policy, trainer


# %%
base, tokenizer = load_policy(run.model, seed=SEED, **LOADING)
policies, trainers = {"before": base}, {}
for name, delay in {"fresh": 0, "stale": DELAY}.items():
    policies[name], trainers[name] = train_with(delay)

# %% [markdown]
# Plot both logs. The stars are the strict accuracy of the saved models on 200 held-out prompts:

# %%
from grpo_utils import evaluate, logged
from grpo_utils.plots import COLORS, show
from matplotlib.figure import Figure

DECODING = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
results = {
    name: evaluate(policy, tokenizer, test_rows, **DECODING)
    for name, policy in policies.items()
}
CORRECT = "rewards/correctness_reward/mean"
curves = {
    name: logged(trainer.state.log_history, CORRECT)
    for name, trainer in trainers.items()
}
last = {name: curve[-1] for name, curve in curves.items()}

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
ends = []
for (name, curve), color in zip(curves.items(), COLORS):
    saved = results[name].accuracy.value
    axes.plot(range(1, len(curve) + 1), curve, color=color, label=name)
    axes.plot(len(curve) + 2, saved, "*", color=color, markersize=15)
    ends.append(f"{name}: log {curve[-1]:.2f}, saved model {saved:.2f}")
untrained = results["before"].accuracy.value
axes.axhline(untrained, color="gray", linestyle=":", label="before training")
axes.set(xlabel="step; the stars are the saved models", ylim=(-0.04, 1.04))
axes.set(ylabel="share of correct answers")
axes.set_xticks(range(0, len(curve) + 1, 4))
figure.legend(loc="outside lower center", ncols=3, frameon=False)
print("\n".join(ends))
show(figure, f"Logs and their saved models. {'; '.join(ends)}")

# %% [markdown]
# Both logs rise, but one star is far below the end of its line. Prompts, counting or policy? Decide before you go on.

# %% [markdown]
# ## 3. Test the suspects
#
# Use the prompts and the scoring of the stars. Change only the policy: evaluate the one that wrote the log's last batch.
# (The stale trainer can still restore it.) If prompts or counting explain the gap, it scores as low as the saved one.

# %%
stale = trainers["stale"]
newest = [p.detach().clone() for p in stale.adapter]
stale.put(stale.kept[0])  # the policy that wrote the last batch
writer = evaluate(policies["stale"], tokenizer, test_rows, **DECODING)
stale.put(newest)

print(f"the log's last batch:        {last['stale']:.2f}")
print(f"the policy that wrote it:    {writer.accuracy.value:.2f}")
print(f"the policy that you save:    {results['stale'].accuracy.value:.2f}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The policy differs. On the same prompts, and counted in the same way, the one that wrote the last batch gets
# {{writer.accuracy.value:.0%}} right, and the one that you save gets {{results["stale"].accuracy.value:.0%}}. The saved one
# is {{DELAY + 1}} updates newer: the delay and the last update. The log would have shown the fall a few steps later.
#
# Prompts, counting and chance can explain only the gap from {{writer.accuracy.value:.0%}} to the log's {{last["stale"]:.0%}}: the log
# counts 64 completions to 8 training prompts, and also accepts a correct answer without the reasoning tags.
# </details>

# %% [markdown]
# In the stale run, the policy of {{DELAY}} steps ago samples, and the newest one learns. This happens when sampling and
# training run at the same time. TRL's asynchronous trainer allows 4 steps by default (`AsyncGRPOConfig(max_staleness=4)`).
# It needs vLLM and a GPU, so we simulate the delay.
#
# **The log describes the policy that sampled, not the one that you save.**

# %% [markdown]
# ## 4. Know what a ratio of 1 means
#
# The *ratio* of a token is its probability under the policy that learns, divided by its probability under the policy that
# sampled it. Training is *on-policy* if both are the same policy; each ratio is then 1. Otherwise, it is *off-policy*.
#
# By default, TRL uses each batch for one update, and takes each ratio as 1 without computing it. The run *stale* breaks this
# assumption, and TRL cannot notice.
#
# What does the ratio do in the loss? Here is the loss of one token, shared by `grpo`, `dapo`, `bnpo` and `dr_grpo`:

# %% tags=["formulas"]
import torch


def token_loss(logps, old, advantage):
    ratio = torch.exp(logps - old)
    clipped = ratio.clamp(0.8, 1.2)
    return -torch.min(ratio * advantage, clipped * advantage)


# %% [markdown]
# Compute the *push* on the token, the negative gradient of this loss, at ratios from 0.4 to 1.6. A positive push makes the
# token more likely:

# %%
ratio = torch.linspace(0.4, 1.6, 241)
pushes = {}
for advantage in (1.0, -1.0):
    logps = ratio.log().requires_grad_()
    token_loss(logps, 0.0, torch.tensor(advantage)).sum().backward()
    pushes[advantage] = -logps.grad

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 2.8), layout="constrained")
ends = []
for axes, (advantage, push) in zip(figure.subplots(1, 2), pushes.items()):
    first, final = (push[place].item() + 0.0 for place in (0, -1))
    ends.append(f"{advantage:+.0f}: {first:.1f} to {final:.1f}")
    axes.plot(ratio, push, color=COLORS[0], linewidth=2)
    axes.axvline(1, color="gray", linestyle="--")
    axes.set(title=f"advantage {advantage:+.0f}")
    axes.set(xlabel="ratio", ylabel="push on the token")
show(figure, "Push at ratios 0.4 to 1.6, by advantage. " + ", ".join(ends))

# %% [markdown]
# At a ratio of 1, the push equals the advantage. Once the ratio has moved more than 0.2 in the direction of the advantage,
# the token has moved far enough and is *clipped*: its push is 0.
#
# A ratio that moves against the advantage is not clipped. In the right panel, the push down grows with the ratio. TRL's setting
# `delta` stops this: with a negative advantage, the push is 0 at ratios above `delta`.
#
# If every ratio counts as 1, nothing is clipped. So give the stale run its true ratios: let the policy that
# sampled also compute the log-probabilities of its samples (`old_per_token_logps`).


# %%
class RatioTrainer(StaleTrainer):
    """Compares the newest policy with the one that sampled."""

    @torch.no_grad()
    def score(self, batch):
        """The log-probability of each sampled token, shape (B, T)."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
        length = batch["completion_ids"].shape[1]
        score = self._get_per_token_logps_and_entropies
        return score(self.model, ids, mask, length)[0]

    def _generate_and_score_completions(self, inputs):
        batch = super()._generate_and_score_completions(inputs)
        self.put(self.kept[0])  # the policy that sampled
        old = batch["old_per_token_logps"] = self.score(batch)
        self.put(self.kept[-1])  # the newest
        self.change = self.score(batch) - old
        self.mask = batch["completion_mask"].bool()
        return batch


# %% [markdown]
# The samples are as old as before. Will the saved model now be better than the untrained one?

# %%
RATIO = "stale, ratio"
policies[RATIO], trainers[RATIO] = train_with(DELAY, RatioTrainer)
results[RATIO] = evaluate(policies[RATIO], tokenizer, test_rows, **DECODING)
for name, result in results.items():
    print(f"{name:14}{result.accuracy.value:.2f}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Yes: it gets {{results["stale, ratio"].accuracy.value:.0%}} right. Without true ratios, a bad completion is pushed
# down with full force, again and again, while the old sampler still writes it. The clip stops this, but a correction can also do without
# it: in section 6, `sequence_mask` clips nothing and ends with a higher accuracy than the ratio. TRL's asynchronous trainer always uses the true ratios.
# </details>

# %% [markdown]
# Now look at the metric that should have warned you, the share of clipped tokens:

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 2.8), layout="constrained")
axes = figure.subplots()
clipped = {}
style = zip(COLORS, "os^", (10, 5, 6))
for (name, trainer), (color, marker, size) in zip(trainers.items(), style):
    share = logged(trainer.state.log_history, "clip_ratio/region_mean")
    line = dict(color=color, marker=marker, markersize=size, label=name)
    axes.plot(range(1, len(share) + 1), share, **line)
    clipped[name] = share
axes.set(xlabel="step", ylabel="share of clipped tokens")
axes.set_xticks(range(0, len(share) + 1, 4))
figure.legend(loc="outside lower center", ncols=3, frameon=False)
most = [f"{name} at most {max(share):.1%}" for name, share in clipped.items()]
print("\n".join(most))
show(figure, f"Clipped tokens by step: {', '.join(most)}")

# %% [markdown]
# In the fresh run, `clip_ratio` is 0 because no ratio can leave 1. It is also 0 in the run that collapsed, because TRL
# took each ratio as 1. Only the run with true ratios reports clipping.
#
# **A `clip_ratio` of 0 means that training is on-policy, or that the trainer assumes it is, or that no ratio has left the range yet.**

# %% [markdown]
# ## 5. Look at whole completions
#
# The ratio of a completion is the product of its tokens' ratios, so each token can move it further from 1. Plot both for the
# last batch of *stale, ratio*. In the right panel, each line is one completion. Most tokens have a ratio between 0.8 and
# 1.2. What share of the completions ends in this range?

# %%
last_trainer = trainers[RATIO]
change, real = last_trainer.change, last_trainer.mask
products = (change * real).cumsum(1).exp()


def near_one(values):
    """The share of ratios between 0.8 and 1.2."""
    return ((values > 0.8) & (values < 1.2)).float().mean().item()


near, near_whole = near_one(change[real].exp()), near_one(products[:, -1])

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 3.2), layout="constrained")
left, right = figure.subplots(1, 2, sharey=True)
for row, length in enumerate(real.sum(1)):
    places, ratios = range(1, length + 1), change[row, :length].exp()
    left.plot(places, ratios, ".", color=COLORS[0], alpha=0.4)
    right.plot(places, products[row, :length], color=COLORS[1], alpha=0.5)
left.set(yscale="log", xlabel="position of the token", ylabel="ratio")
left.set_title("of each token")
left.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
left.minorticks_off()
right.set(xlabel="tokens so far", title="of the completion so far")
alt = f"Ratios of a stale batch. Within 0.8 and 1.2: {near:.0%} of the tokens"
show(figure, f"{alt}, and {near_whole:.0%} of the whole completions")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Small changes in the tokens' ratios multiply over a completion: {{near:.0%}} of the tokens have a ratio between 0.8 and
# 1.2, but only {{near_whole:.0%}} of the completions do. Our completions have about 20 tokens; a thinking model writes
# thousands.
# </details>
#
# Ratios of completions matter with vLLM, which rounds differently from the trainer. TRL then multiplies the loss by an
# *importance weight*, the trainer's probability divided by the sampler's. `vllm_importance_sampling_mode` sets whether TRL
# compares completions or tokens:
#
# | mode | what it does | what to know |
# |---|---|---|
# | `sequence_mask`, the default | weights each completion by its exact ratio, and drops it if the ratio is above 3 | the weight of a long completion can be near 0, so watch `sampling/importance_sampling_ratio/mean` |
# | `token_truncate` | weights each token by its own ratio, but by at most 3 | keeps every token, but ignores the rest of the completion |

# %% [markdown]
# ## 6. Compare the corrections over seeds
#
# One run per case shows what can happen, not how often. So we trained each case with three seeds, for 24 steps of 64
# completions. Some samplers have old weights (*delay*, in steps). Others have the newest weights, but sample at a temperature of
# 1.3 (the trainer scores at 1.0) or round the weights to 4 bits.
#
# Which sampler does the most harm without a correction (sections 4 and 5): one with old weights, a higher temperature, or
# 4-bit weights? The next cell stores the strict accuracy of each seed:

# %% tags=["nbval-check-output"]
SAMPLED = {
    "fresh": (0.98, 0.94, 0.95),
    "delay 4": (0.00, 0.00, 0.49),
    "delay 4, ratio": (0.89, 0.87, 0.89),
    "delay 8": (0.09, 0.00, 0.00),
    "delay 8, ratio": (0.73, 0.69, 0.78),
    "delay 8, ratio and delta": (0.77, 0.68, 0.77),
    "delay 8, token_truncate": (0.65, 0.48, 0.15),
    "delay 8, sequence_mask": (0.93, 0.84, 0.89),
    "temperature 1.3": (0.96, 0.95, 0.96),
    "temperature 1.3, token_truncate": (0.93, 0.89, 0.96),
    "temperature 1.3, sequence_mask": (0.99, 0.95, 0.97),
    "4 bits": (0.94, 0.92, 0.94),
}
print(f"{len(SAMPLED)} cases, {sum(map(len, SAMPLED.values()))} runs")

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 4.4), layout="constrained")
axes = figure.subplots()
KINDS = {COLORS[0]: "with a correction", COLORS[1]: "without"}
for row, (name, rates) in enumerate(SAMPLED.items()):
    color = COLORS["," not in name]
    axes.plot(rates, [row] * len(rates), "o", color=color, alpha=0.7)
for color, kind in KINDS.items():
    axes.plot([], [], "o", color=color, label=kind)
axes.axvline(untrained, color="gray", linestyle=":")
axes.set_yticks(range(len(SAMPLED)), list(SAMPLED))
axes.invert_yaxis()
axes.set(xlabel="strict accuracy; dotted: before training", xlim=(-0.04, 1.04))
axes.grid(alpha=0.3, axis="x")
figure.legend(loc="outside lower center", ncols=2, frameon=False)
ranges = [f"{n} {min(r):.2f} to {max(r):.2f}" for n, r in SAMPLED.items()]
show(figure, f"Accuracy of three seeds: {'; '.join(ranges)}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The one with old weights: without a correction, five of six delayed runs ended below the untrained model. A higher temperature
# or 4-bit weights cost at most a few points.
#
# With the ratio, all six delayed runs learned, but less than with fresh samples, so first shorten the delay. (With greedy decoding,
# the ratio is shown to be less accurate than fresh samples at a delay of 8, but not at a delay of 4.) No gain from `delta` is
# shown. At a delay of 8, `sequence_mask` beat the ratio ({{(sum(SAMPLED["delay 8, sequence_mask"]) - sum(SAMPLED["delay 8, ratio"])) / 3:+.2f}}), and `token_truncate` was below the ratio with each seed.
# </details>

# %% [markdown]
# Judge a sampler by the accuracy of the newest policy. Not every difference between sampler and trainer is harmful.
#
# <details><summary>Evidence</summary>
#
# `make bench-stale`, [all figures](../docs/results.md#stale-samples). All cases have one learning rate, 0.002, at which 4
# steps change the tiny model a lot. A smaller rate changes it less, but was not measured here, so do not copy our delays. `sequence_mask` is ahead of
# the ratio by +0.152 (+0.058 to +0.245), three seeds. `delta` is 1.5. Not measured: `off_policy_mask_threshold`, and [masks
# for single tokens](../docs/map.md#masks-for-single-tokens).
# </details>

# %% [markdown]
# ## 7. Choose a loss
#
# Losses differ in two ways: how much a token weighs, and what happens when its ratio leaves 1. On-policy, the second
# difference does nothing, because every ratio is 1. These three are the best known:
#
# | loss | what it changes | settings in TRL 1.14 |
# |---|---|---|
# | [DAPO](https://arxiv.org/abs/2503.14476) | all tokens of the batch weigh the same; TRL's default (the paper also sets `epsilon_high=0.28`) | `loss_type="dapo"` |
# | [GRPO](https://arxiv.org/abs/2402.03300) | all completions weigh the same, so a token of a long one weighs less (*length bias*) | `loss_type="grpo"` |
# | [GSPO](https://arxiv.org/abs/2507.18071) | has one ratio per completion, the geometric mean of its tokens' ratios | `loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4` |
#
# <details><summary>Five more variants</summary>
#
# BNPO, CISPO (always set its `epsilon_high`) and Dr. GRPO are in [lesson 08](08_grpo_by_hand.ipynb), section 9.
#
# | variant | what it changes | settings in TRL 1.14 |
# |---|---|---|
# | [GDPO](https://arxiv.org/abs/2601.05242) | normalizes each reward before it adds them | `multi_objective_aggregation="normalize_then_sum"` |
# | [SAPO](https://arxiv.org/abs/2511.20347) | lets the push fade instead of stopping it | `loss_type="sapo"` |
#
# </details>
#
# We tried 14 changes: these losses and some single settings, each with six seeds. The next cell stores each difference in
# accuracy from the same run with DAPO, and its 95% interval. (SAPO and GSPO are compared with GRPO, which averages as they
# do.)
#
# With one update per batch, training is on-policy; with four (`num_iterations=4`), ratios leave 1. *Scale* is
# `scale_rewards`, *KL* is `beta`, and *clip* is `epsilon_high`. *Gspo* has an epsilon of 0.2; *gspo, paper* has those of the
# table.
#
# **Guess first:** how many of the 14 are shown to change accuracy?

# %% tags=["nbval-check-output"]
LOSSES = {
    "grpo": (-0.031, -0.079, +0.017),
    "dr_grpo": (-0.002, -0.024, +0.020),
    "bnpo, 4 micro-batches": (-0.004, -0.023, +0.015),
    "scale none": (+0.003, -0.018, +0.025),
    "scale batch": (+0.008, -0.023, +0.039),
    "GDPO": (+0.000, -0.026, +0.026),
    "KL 0.04": (-0.012, -0.043, +0.018),
    "4 updates, grpo": (-0.007, -0.052, +0.037),
    "4 updates, clip 0.28": (-0.017, -0.103, +0.070),
    "4 updates, no clip": (-0.071, -0.368, +0.227),
    "4 updates, cispo": (+0.016, -0.090, +0.122),
    "4 updates, sapo": (-0.040, -0.134, +0.054),
    "4 updates, gspo": (-0.013, -0.175, +0.150),
    "4 updates, gspo, paper": (-0.047, -0.111, +0.017),
}
shown = [
    name for name, (_, low, high) in LOSSES.items() if low > 0 or high < 0
]
print(f"{len(LOSSES)} comparisons; intervals without 0: {len(shown)}")

# %% cellView="form" jupyter={"source_hidden": true}
figure = Figure(figsize=(6.4, 4.8), layout="constrained")
axes = figure.subplots()
OFF = "4 updates, "
for row, (name, (value, low, high)) in enumerate(LOSSES.items()):
    color = COLORS[name.startswith(OFF)]
    axes.plot([low, high], [row, row], color=color, linewidth=2)
    axes.plot(value, row, "o", color=color)
for color, label in zip(COLORS, ("1 update per batch", "4 updates")):
    axes.plot([], [], "o-", color=color, label=label)
axes.axvline(0, color="black", linewidth=0.8)
axes.set_yticks(range(len(LOSSES)), list(LOSSES))
axes.invert_yaxis()
axes.set(xlabel="difference in accuracy, and its 95% interval")
axes.grid(alpha=0.3, axis="x")
figure.legend(loc="outside lower center", ncols=2, frameon=False)
parts = [f"{name} {value:+.3f}" for name, (value, *_) in LOSSES.items()]
show(
    figure,
    f"Losses minus their base; all intervals contain 0: {', '.join(parts)}",
)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# None: every interval contains 0, which does not prove the losses equal. The blue intervals end within 0.08 of 0, but some
# orange ones are much wider, and with no clip at all, one run of six collapsed. With long thoughts, the length bias of
# `grpo` could matter.
# </details>
#
# **Keep the default loss until another one wins over several seeds.**
#
# <details><summary>Evidence</summary>
#
# [All settings and figures of the losses](../docs/settings.md#what-the-losses-did): 16 steps at one learning rate, 0.002,
# with an earlier format reward. Each loss may have its own best rate. Unsloth's default is `"dapo"` too, but if you pass it
# explicitly, Unsloth also sets `epsilon_high=0.28` and `mask_truncated_completions=True` (read in Unsloth 2026.10.9). [More
# losses](../docs/map.md#losses-that-lesson-14-leaves-out).
#
# With the same number of samples, four updates per batch ended 0.11 above one update in accuracy; with the same CPU time,
# 0.14 below. So reuse samples only if sampling takes most of the time, and then lower the learning rate. ([All
# figures](../docs/results.md#four-updates-per-batch): five seeds, the best of three rates for each.)
# </details>

# %% [markdown]
# ## 8. Cheat sheet
#
# | question | what to do |
# |---|---|
# | Is my training on-policy? | yes, if no batch is used after an update on it (the default), and sampling is neither asynchronous nor done by vLLM |
# | `clip_ratio` is always 0 | nothing, if the row above says yes; else find out what computes the ratios |
# | samples are delayed | use the sampler's log-probabilities, keep `max_staleness` small, and evaluate the newest policy |
# | the sampler is vLLM | same temperature and precision first, then `vllm_importance_sampling_correction=True` (the default) |
# | the ratios are far above 1 | `delta` above `1 + epsilon`; it acts on negative advantages only |
# | which loss? | the default |

# %% [markdown]
# ## 9. Exercises
#
# **Exercise 1: change, predict, run, compare.** A delay of {{DELAY}} steps ruined the run. Does one step ruin it too? Predict whether the
# saved model will be better than the untrained one. Then write `short_delay`: call `train_with(delay=1)`, and return your
# prediction (True or False) and the policy. The run takes less than a minute. (The prediction is not graded.)


# %%
def short_delay() -> tuple | None:
    """Your answer: (better than untrained?, trained policy)."""


# %% tags=["nbval-check-output"]
from functools import partial

from grpo_utils import check_exercise, compare_prediction


def compared(attempt):
    """Evaluate the policy of an attempt, and print what was predicted."""
    if (found := attempt()) is None:
        return None
    predicted, policy = found
    measured = evaluate(policy, tokenizer, test_rows, **DECODING).accuracy
    better = measured.value > results["before"].accuracy.value
    print(f"strict accuracy: {measured.value:.2f}")
    return compare_prediction(str(predicted), str(better))


COMPARED = [((), "compared")]
mine = partial(compared, short_delay)
print(check_exercise("Exercise 1", mine, COMPARED))

# %% [markdown]
# **Exercise 2.** Which settings let a ratio leave 1? A batch has `steps_per_generation` parts and is used
# `num_iterations` times. An update follows every `accumulation` parts. Write
# `can_clip(num_iterations, steps_per_generation, accumulation)`, which returns whether any ratio can differ from 1 by more
# than a rounding error. (vLLM does not change this: TRL puts its probabilities into the importance weight.)
#
# Try both before you unfold the solutions.


# %%
def can_clip(
    num_iterations: int, steps_per_generation: int, accumulation: int
) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
CASES = [((1, 1, 1), False), ((4, 1, 1), True), ((1, 4, 4), False)]
CASES += [((1, 8, 4), True), ((2, 2, 4), False), ((2, 4, 4), True)]
CASES += [((1, 2, 4), False), ((1, 3, 4), True)]
HINTS = [(True, "No update comes between sampling and the last use here.")]
HINTS += [(False, "Which completions are still used after an update?")]
print(check_exercise("Exercise 2", can_clip, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: in our run, a delay of one step ended as high as fresh samples. Then try delays of 2 and 3, or a lower learning rate: where does the
# collapse begin?
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def short_solution() -> tuple:
    return True, train_with(delay=1)[0]


solved = partial(compared, short_solution)
print(check_exercise("Exercise 1, solution", solved, COMPARED))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: training stays on-policy only if every use of a batch comes before the first update after sampling. So
# `num_iterations * steps_per_generation` must divide `gradient_accumulation_steps`.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def clip_solution(
    num_iterations: int, steps_per_generation: int, accumulation: int
) -> bool:
    return accumulation % (num_iterations * steps_per_generation) != 0


CASES = [((1, 1, 1), False), ((4, 1, 1), True), ((1, 4, 4), False)]
CASES += [((1, 8, 4), True), ((2, 2, 4), False), ((2, 4, 4), True)]
print(check_exercise("Exercise 2, solution", clip_solution, CASES))
