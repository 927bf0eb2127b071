# %% [markdown]
# # 13 · Does the loss matter?
#
# We tried a dozen variants of the loss. None was shown to beat the default. Here is why.
#
# You will be able to read a comparison of losses over several seeds, and say when a different loss can make a
# difference.
#
# **What should I set for Qwen3 on a T4?** Leave `loss_type` and `num_iterations` at TRL's defaults, `"dapo"` and 1.
# With our tiny model, one learning rate, 16 steps and answers of 20 tokens, no other loss was shown to be better. That is not
# proof that the loss does not matter. Four updates per batch learned less in the same time. (We have not run Qwen3 on a T4.)
#
# Read [lesson 08](08_grpo_by_hand.ipynb) first. It derives the loss that this lesson changes.
#
# Your time: 45–55 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.0 GB of memory.
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
STEPS: int = 0  # optimizer steps of each run; 0 means 16
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 16)

# %% [markdown]
# ## 2. See whether another loss helps
#
# We trained `tiny-qwen3` with each loss and six seeds ([all settings](../docs/settings.md#what-the-losses-did)). These runs
# used an earlier format reward, which paid nothing unless a text opened with `<reasoning>`. The losses are compared on that
# reward, and a new run would give other numbers. The lists hold the number of correct answers to 200 held-out prompts, seed by seed. Within a table, all runs took the
# same number of steps and samples. `paired_difference` subtracts the first row, the *baseline*, seed by seed and
# computes the 95% interval over the seeds ([lesson 06](06_evaluation.ipynb)). If the interval contains 0, no
# difference is shown.

# %%
from statistics import mean

from grpo_utils.evaluation.statistics import paired_difference


def show_table(correct, baseline):
    """Print accuracies and differences; return the differences."""
    rates = {name: [n / 200 for n in row] for name, row in correct.items()}
    differences = {}
    print(f"{'':12}  accuracy  difference (95% interval)")
    for name, row in rates.items():
        found = paired_difference(row, rates[baseline], prompts=200)
        text = "baseline" if name == baseline else found.signed()
        print(f"{name:12}  {mean(row):8.3f}  {text}")
        if name != baseline:
            differences[name] = found
    return differences


# %% [markdown]
# In the first table, each batch of completions is used for one update, which is TRL's default. `dapo`, `grpo` and
# `dr_grpo` are values of `loss_type`; as in its paper, `dr_grpo` also has `scale_rewards="none"`. The other rows use
# `dapo` and change something else: how rewards are scaled (appendix), or whether there is a KL penalty ([lesson
# 04](04_reading_a_run.ipynb)).

# %% tags=["nbval-check-output"]
ONE_UPDATE = {
    "dapo": [193, 182, 191, 189, 183, 189],
    "grpo": [175, 165, 188, 189, 187, 186],
    "dr_grpo": [189, 179, 194, 191, 188, 184],
    "scale none": [190, 183, 192, 194, 188, 184],
    "scale batch": [191, 185, 194, 194, 192, 181],
    "GDPO": [189, 174, 194, 193, 187, 190],
    "KL 0.04": [194, 168, 192, 187, 182, 189],
}
one_update = show_table(ONE_UPDATE, baseline="dapo")

# %% [markdown]
# **No other loss was shown to help:** all intervals contain 0. Small differences are still possible, from
# {{min(d.low for d in one_update.values()):+.2f}} to {{max(d.high for d in one_update.values()):+.2f}}.
#
# With `num_iterations=4`, four updates learn from the same completions. Some losses limit how far the policy moves in
# these updates (section 5). `clip 0.28` has a higher limit than `dapo`, `no clip` has none, and `cispo` is in the
# appendix.

# %% tags=["nbval-check-output"]
FOUR_UPDATES = {
    "dapo": [154, 140, 163, 141, 153, 163],
    "grpo": [156, 149, 154, 144, 153, 149],
    "clip 0.28": [159, 154, 159, 137, 156, 129],
    "no clip": [151, 13, 178, 148, 182, 157],
    "cispo": [151, 149, 175, 143, 183, 132],
}
four_updates = show_table(FOUR_UPDATES, baseline="dapo")

# %% [markdown]
# **Again, no other loss was shown to help.** All these runs used the learning rate 0.002, which was not the best one
# for four updates (section 3). Each loss may have its own best rate, and the ranking may differ at those rates.
# Without a limit, one of six runs collapsed to {{min(FOUR_UPDATES["no clip"])}} correct answers, so the interval of
# `no clip` is wide.
#
# `sapo` and `gspo` (appendix) average over tokens as `grpo` does, so `grpo` is their baseline. They also make four
# updates per batch.

# %% tags=["nbval-check-output"]
LIKE_GRPO = {
    "grpo": FOUR_UPDATES["grpo"],
    "sapo": [153, 137, 156, 120, 172, 119],
    "gspo": [162, 163, 169, 79, 165, 152],
    "gspo, paper": [148, 126, 149, 122, 145, 159],
}
like_grpo = show_table(LIKE_GRPO, baseline="grpo")

# %% [markdown]
# **Neither loss was shown to help.** The worst run of `gspo` has {{min(LIKE_GRPO["gspo"])}} correct answers. With the
# much smaller epsilon of the GSPO paper (`gspo, paper`), the worst run has {{min(LIKE_GRPO["gspo, paper"])}}. But the
# mean over all seeds is lower with the paper's epsilon, and with six runs each, the difference between the worst runs
# can be chance.

# %% [markdown]
# ## 3. See whether several updates help
#
# In section 2, `dapo` reached {{mean(ONE_UPDATE["dapo"]) / 200:.2f}} with one update per batch and
# {{mean(FOUR_UPDATES["dapo"]) / 200:.2f}} with four. **That comparison is not fair.** All runs took 16 steps, so the
# runs with one update learned from 1,024 completions, and those with four from only 256.
#
# Equal samples and equal time are different questions, so we asked both, with five seeds
# ([details](../docs/results.md#four-updates-per-batch)). Each side uses the best of three learning rates, chosen with
# another seed: 0.002 for one update, and 0.001 for four. (0.001 is the lowest rate that we tried, so four updates may
# reach more than this.) With equal samples, four updates also take four times as many optimizer steps. Smaller
# batches would also give more steps, but we have not tried them.

# %% tags=["nbval-check-output"]
EQUAL_SAMPLES = {"1 update": [157, 134, 142, 150, 156]}
EQUAL_SAMPLES["4 updates"] = [182, 155, 167, 166, 181]
EQUAL_TIME = {"1 update": [188, 174, 187, 185, 184]}
EQUAL_TIME["4 updates"] = [169, 146, 150, 153, 165]
print("equal samples: 512 completions each")
by_samples = show_table(EQUAL_SAMPLES, baseline="1 update")["4 updates"]
print("\nequal CPU time: 1,024 completions, and 384")
by_time = show_table(EQUAL_TIME, baseline="1 update")["4 updates"]

# %% [markdown]
# With equal samples, accuracy is {{by_samples.value:.3f}} higher with four updates. With equal time, it is
# {{-by_time.value:.3f}} lower, because sampling takes only about 40% of a step here, so reuse saves little time. On a
# GPU, we estimate that sampling takes 66 to 76% of a step, so the result for equal time may differ there (never run).
#
# **Reuse samples only if sampling takes most of the time, and then lower the learning rate.**

# %% [markdown]
# ## 4. Know when the ratio moves
#
# Why was no loss shown to help? Many losses differ mainly in how they treat the *ratio*: a token's probability now,
# divided by its probability when it was sampled. Follow one imaginary token whose logit grows by 0.2 in each update.

# %%
import math

from grpo_utils.plots import COLORS, MARKERS, show
from matplotlib.figure import Figure

probability = [1 / (1 + math.exp(1 - 0.2 * update)) for update in range(8)]
figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
ratios = {}
for uses, color, marker in zip((1, 4), COLORS, MARKERS):
    ratios[uses] = [
        probability[u] / probability[u - u % uses] for u in range(8)
    ]
    style = dict(color=color, marker=marker, label=f"num_iterations={uses}")
    axes.plot(range(1, 9), ratios[uses], **style)
axes.axhline(1.2, color="gray", linestyle="--", label="clipping (section 5)")
axes.set(xlabel="update", ylabel="ratio of the token")
axes.legend(fontsize="small")
highest = f"at most {max(ratios[1]):.2f} and {max(ratios[4]):.2f}"
show(figure, f"Ratio by update, for num_iterations 1 and 4: {highest}")

# %% [markdown]
# With `num_iterations=1`, every update has new samples, so the ratio is always 1. Training is *on-policy*: the policy
# that learns is the one that sampled. With `num_iterations=4`, only the first update of a batch is on-policy. The
# other three are *off-policy*: the policy has changed since it sampled the batch. The ratio grows to
# {{max(ratios[4]):.2f}}.
#
# Training in TRL is on-policy if `num_iterations * steps_per_generation` divides `gradient_accumulation_steps`, as it
# does by default.
#
# **On-policy, every ratio is 1, so losses that differ only in how they treat the ratio are the same.**

# %% [markdown]
# ## 5. Know what clipping does
#
# `dapo`, `grpo` and `dr_grpo` share this loss of one token, with an epsilon of 0.2. Plot its *push*, which is the
# negative gradient. A positive push makes the token more likely.

# %% tags=["formulas"]
import torch


def token_loss(logps, old, advantage):
    ratio = torch.exp(logps - old)
    clipped = ratio.clamp(0.8, 1.2)
    return -torch.min(ratio * advantage, clipped * advantage)


# %%
ratio = torch.linspace(0.4, 1.6, 241)
figure = Figure(figsize=(8, 3.2), layout="constrained")
ends = []
for axes, advantage in zip(figure.subplots(1, 2), (1.0, -1.0)):
    logps = ratio.log().requires_grad_()
    token_loss(logps, 0.0, torch.tensor(advantage)).sum().backward()
    push = -logps.grad
    first, last = (push[place].item() + 0.0 for place in (0, -1))
    ends.append(f"{advantage:+.0f}: {first:.1f} to {last:.1f}")
    axes.plot(ratio, push, color=COLORS[0], linewidth=2)
    axes.axvline(1, color="gray", linestyle="--")
    axes.set(title=f"advantage {advantage:+.0f}")
    axes.set(xlabel="ratio", ylabel="push on the token")
show(figure, "Push at ratios 0.4 to 1.6, by advantage. " + ", ".join(ends))

# %% [markdown]
# At a ratio of 1 (dashed line), the push equals the advantage, whatever epsilon is. Once the ratio has moved more
# than 0.2 in the direction of the advantage, the token is *clipped*: its push is 0.
#
# **A limit on the ratio can matter only off-policy.**

# %% [markdown]
# ## 6. Watch clipping in real runs
#
# Train with one and with four updates per batch, and plot the share of clipped tokens. One seed shows how clipping
# works, but not which run is better.

# %%
import tempfile

from grpo_utils import load_rows, logged, math_rewards, model_path
from grpo_utils import show_progress
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
functions, reward_weights = math_rewards()


# %%
def train(num_iterations):
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(SEED)  # PEFT draws the adapter's first weights
    sizes = dict(r=16, lora_alpha=32, target_modules="all-linear")
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        loss_type="dapo",
        num_iterations=num_iterations,
        max_steps=run.steps,
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        num_generations=8,  # completions in a group
        per_device_train_batch_size=64,  # completions, not prompts
        max_completion_length=32,  # in tokens
        reward_weights=reward_weights,
        seed=SEED,
        use_cpu=True,  # this and the rest: for a tiny model
        bf16=False,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,  # show_progress draws a bar instead
    )
    trainer = GRPOTrainer(
        model=get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **sizes)),
        processing_class=tokenizer,
        args=config,
        train_dataset=load_rows("addition", "train", 2000, SEED),
        reward_funcs=functions,
    )
    show_progress(trainer)
    trainer.train()
    return trainer.state.log_history


logs = {uses: train(num_iterations=uses) for uses in (1, 4)}

# %%
figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
clipped = {}
for (uses, log), color, marker in zip(logs.items(), COLORS, MARKERS):
    reward = logged(log, "reward")
    print(f"num_iterations={uses}: reward {reward[0]:.2f} to {reward[-1]:.2f}")
    clipped[uses] = logged(log, "clip_ratio/region_mean")
    style = dict(color=color, marker=marker, label=f"num_iterations={uses}")
    axes.plot(range(1, run.steps + 1), clipped[uses], **style)
axes.set(xlabel="step", ylabel="share of clipped tokens")
axes.legend(fontsize="small")
most = f"at most {max(clipped[1]):.1%} and {max(clipped[4]):.1%}"
show(figure, f"Clipped tokens by step, for num_iterations 1 and 4: {most}")

# %% [markdown]
# Both runs learn. With one update per batch, no token is ever clipped. With four, none is clipped in the first update
# of a batch (steps 1, 5, 9 and 13), and up to {{max(clipped[4]):.1%}} are clipped in the others.
#
# **On-policy, `clip_ratio` is always 0, and this is not a fault.**

# %% [markdown]
# ## 7. Compare how much one token weighs
#
# On-policy, losses can still differ in how they average over tokens. The example has four completions of 10 to 40
# tokens, with a limit of 50 tokens (`longest`).


# %% tags=["formulas"]
def batch_loss(kind, losses, mask, longest):
    """The loss of a batch, from the loss of each token."""
    summed = (losses * mask).sum(1)  # one number per completion
    if kind == "grpo":
        return (summed / mask.sum(1)).mean()
    if kind == "dapo":
        return summed.sum() / mask.sum()
    if kind == "dr_grpo":
        return summed.sum() / (len(mask) * longest)


# %%
LENGTHS, LIMIT = torch.tensor([10, 20, 30, 40]), 50
mask = (torch.arange(LIMIT) < LENGTHS[:, None]).float()
figure = Figure(figsize=(7, 3.2), layout="constrained")
axes = figure.subplots()
weight = {}
for kind, color, marker in zip(("grpo", "dapo", "dr_grpo"), COLORS, MARKERS):
    losses = torch.zeros(4, LIMIT, requires_grad=True)
    batch_loss(kind, losses, mask, LIMIT).backward()
    weight[kind] = losses.grad[:, 0].tolist()  # of each first token
    axes.plot(LENGTHS, weight[kind], color=color, marker=marker, label=kind)
axes.set(xlabel="tokens of the completion", ylabel="weight of one token")
axes.set(xticks=LENGTHS, ylim=(0, None))
axes.legend(fontsize="small")
texts = [f"{k} {w[0]:.3f} to {w[-1]:.3f}" for k, w in weight.items()]
show(figure, "Token weight, from 10 to 40 tokens: " + ", ".join(texts))
ends = ("completions/min_length", "completions/max_length")
shortest, longest = (logged(logs[1], end)[-1] for end in ends)
print(f"tokens in our last batch: {shortest:.0f} to {longest:.0f}")

# %% [markdown]
# With `dapo` and `dr_grpo`, all tokens weigh the same. (`dr_grpo` gives all tokens a smaller weight, but Adam ignores
# a constant factor, as long as `max_grad_norm` does not clip the gradient.) With `grpo`, a token of the shortest
# completion weighs {{weight["grpo"][0] / weight["grpo"][3]:.0f}} times as much as one of the longest. So per token, a
# long incorrect answer is punished less than a short one, and a long correct answer is rewarded less. This is the
# *length bias* of `grpo`.
#
# In our last batch, completions have {{shortest:.0f}} to {{longest:.0f}} tokens, so there the weights of `grpo` differ by a
# factor of at most {{longest / shortest:.1f}}. In the first steps the factor is about 2, because the untrained model also
# writes answers of 12 tokens. The thoughts of a thinking model can differ far more in length, so the choice may
# matter there (not measured). None of our comparisons shows that it matters here.
#
# **`grpo` weighs completions equally, and `dapo` weighs tokens equally.**

# %% [markdown]
# ## 8. Cheat sheet
#
# | question or symptom | answer | evidence |
# |---|---|---|
# | Which loss? | the default, `loss_type="dapo"` | no other was shown to be better (section 2) |
# | How many updates per batch? | the default, `num_iterations=1` | 4 were worse in equal CPU time (section 3) |
# | Sampling takes most of the time. | Try several updates with a lower `learning_rate`. Compare after the same time. | 4 were better with equal samples (section 3) |
# | A run with several updates collapses. | Lower `learning_rate`, and keep `epsilon=0.2`. | with five seeds, the mean was 0.70 at 0.002 and 0.85 at 0.001 ([details](../docs/results.md#four-updates-per-batch)); without a limit, one of six runs collapsed, which can be chance (section 2) |
# | `clip_ratio` is always 0. | Change nothing. | shown (section 6) |
# | Lengths drift with `"grpo"`. | Use `"dapo"` or `"dr_grpo"`. | shown on an example (section 7) |
#
# **Change one setting at a time, keep samples or time equal, and use several seeds.**

# %% [markdown]
# ## 9. Exercises
#
# **Exercise 1.** Is a comparison fair? Write `completions(steps, num_iterations)`, which returns how many completions
# a run samples. A batch has 64 completions and is sampled as a whole, even if the run ends before its last update.
# There is no gradient accumulation.


# %%
def completions(steps: int, num_iterations: int) -> int | None:
    """Your answer: a number of completions."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BUDGETS = [((16, 4), 256), ((16, 1), 1024), ((18, 4), 320), ((3, 4), 64)]
HINTS = [(1024, "Four steps use the same completions.")]
HINTS += [(4, "That is the number of batches.")]
HINTS += [(wrong, "Step 17 needs a whole new batch.") for wrong in (256, 288)]
print(check_exercise("Exercise 1", completions, BUDGETS, HINTS))

# %% [markdown]
# **Exercise 2.** Write `can_clip(num_iterations, steps_per_generation, accumulation)`, which returns whether any ratio
# can differ from 1 by more than a rounding error. (vLLM does not change this: TRL puts its probabilities into a
# separate importance weight.)
#
# **Try both before you unfold the solutions.**


# %%
def can_clip(
    num_iterations: int, steps_per_generation: int, accumulation: int
) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
SETTINGS = [((1, 1, 1), False), ((4, 1, 1), True), ((1, 4, 4), False)]
SETTINGS += [((1, 8, 4), True), ((2, 2, 4), False), ((2, 4, 4), True)]
SETTINGS += [((1, 2, 4), False), ((1, 3, 4), True)]
HINTS = [(True, "No update comes between sampling and the last use here.")]
HINTS += [(False, "Which completions are still used after an update?")]
print(check_exercise("Exercise 2", can_clip, SETTINGS, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: divide the steps by `num_iterations`, round up, and multiply by 64.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def completions_solution(steps: int, num_iterations: int) -> int:
    return 64 * math.ceil(steps / num_iterations)


print(check_exercise("Exercise 1, solution", completions_solution, BUDGETS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: completions stay on-policy only if each one is used before the first update after sampling.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def clip_solution(
    num_iterations: int, steps_per_generation: int, accumulation: int
) -> bool:
    return accumulation % (num_iterations * steps_per_generation) != 0


print(check_exercise("Exercise 2, solution", clip_solution, SETTINGS))

# %% [markdown]
# ## 10. Appendix: look up the variants
#
# [Lesson 08](08_grpo_by_hand.ipynb) has the papers and formulas of `grpo`, `bnpo`, `dr_grpo` and `dapo`. The others:
#
# | method | what it changes | settings in TRL 1.14 |
# |---|---|---|
# | [CISPO](https://arxiv.org/abs/2506.13585) | limits the ratio, but keeps a push on every token | `loss_type="cispo", epsilon_high=5.0` |
# | [GSPO](https://arxiv.org/abs/2507.18071) | has one ratio per completion, the geometric mean of its tokens' ratios | `loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4` |
# | [SAPO](https://arxiv.org/abs/2511.20347) | lets the push fade instead of stopping it | `loss_type="sapo"` |
# | [GDPO](https://arxiv.org/abs/2601.05242) | normalizes each reward in its group, adds them, and normalizes the sum over the batch; `scale_rewards` has no effect ([example](../docs/troubleshooting-training.md#several-rewards-cancel-or-collapse-to-one-advantage-gdpo)) | `multi_objective_aggregation="normalize_then_sum"` |
#
# - `scale_rewards` selects the standard deviation that divides the advantage: of the `"group"`, of the `"batch"`, or
#   `"none"`. If the rewards of a group are 3, 3, 3 and 2.9, the last advantage is
#   {{-0.075 / (torch.tensor([3, 3, 3, 2.9]).std() + 1e-4):.2f}} with `"group"`, and -0.075 with `"none"`.
# - With CISPO, always set `epsilon_high`: TRL's default would limit the ratio to 0.2. (Unsloth sets 5.0 if you give
#   no value.)
# - Unsloth's default is `"dapo"` too. But if you pass `loss_type="dapo"` explicitly, it also sets `epsilon_high=0.28`
#   and `mask_truncated_completions=True`, unless you give your own values (we read this in Unsloth 2026.10.9 and have
#   not run it on a GPU).
#
# The map lists [more losses](../docs/map.md#losses-that-lesson-13-leaves-out).
