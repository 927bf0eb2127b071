# %% [markdown]
# # 13 · Which loss cures what
#
# {{badges}}
#
# **You will be able to** choose `loss_type` and `scale_rewards` by symptom, and say whether a change helped.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute (measured) | never run |
# | memory | 0.9 GB (measured) | |
# | model | 0.46 million parameters, included | the same, on the CPU |
#
# **Numbers in the text** come from the stored CPU run (seed 0). Yours will differ with other seeds and machines.
#
# You need [lesson 08](08_grpo_by_hand.ipynb), which builds the loss.

# %% [markdown]
# ## 1. Set up
#
# On Colab and Kaggle, the next cell installs the course. (We have not run it there yet.) On Kaggle, first turn on
# *Internet* in the settings. Elsewhere, the cell does nothing.

# %%
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
# ## 2. Split a loss into three parts
#
# Each method changes one or two parts:
#
# | part | question | settings of `GRPOConfig` |
# |---|---|---|
# | advantage | How much better is this completion? | `scale_rewards`, `multi_objective_aggregation` |
# | ratio | When does a token stop learning? | `epsilon`, `importance_sampling_level`, some values of `loss_type` |
# | mean | How much does one token weigh? | the other values of `loss_type` |
#
# | method | settings in TRL 1.14 | arXiv |
# |---|---|---|
# | GRPO | `loss_type="grpo"` | 2402.03300 |
# | Dr. GRPO | `loss_type="dr_grpo", scale_rewards="none"` | 2503.20783 |
# | DAPO | `loss_type="dapo", epsilon_high=0.28` | 2503.14476 |
# | CISPO | `loss_type="cispo", epsilon_high=5.0` | 2506.13585 |
# | GSPO | `loss_type="grpo", importance_sampling_level="sequence", epsilon=3e-4, epsilon_high=4e-4` | 2507.18071 |
# | SAPO | `loss_type="sapo"` | 2511.20347 |
# | GDPO | `multi_objective_aggregation="normalize_then_sum"` | 2601.05242 |
#
# TRL's default is `"dapo"` with an upper epsilon of 0.2. Unsloth changes defaults on a GPU, so set what matters.
#
# **Ask which part can cause your symptom.**

# %% [markdown]
# ## 3. Weigh one token
#
# A completion has one advantage, but a loss is a mean over tokens. `batch_loss` computes TRL's four means. Gradient
# accumulation adds up several `parts`.

# %% tags=["formulas"]
import torch


def batch_loss(kind, losses, mask, parts, longest):
    """The loss of one optimizer step, from the loss of each token."""
    total = 0.0
    for part, real in zip(losses.chunk(parts), mask.chunk(parts)):
        summed = (part * real).sum(1)  # one number per completion
        if kind == "grpo":
            total += (summed / real.sum(1)).mean() / parts
        elif kind == "bnpo":
            total += summed.sum() / real.sum() / parts
        elif kind == "dapo":
            total += summed.sum() / mask.sum()  # the tokens of all parts
        elif kind == "dr_grpo":
            total += summed.sum() / (len(real) * longest) / parts
    return total


# %% [markdown]
# The weight of a token is the gradient of this mean. The toy batch has completions of 10, 20, 20 and 40 tokens, a
# limit of 50 (`longest`) and two parts.

# %% tags=["nbval-check-output"]
LENGTHS, LIMIT = torch.tensor([10, 20, 20, 40]), 50
mask = (torch.arange(LIMIT) < LENGTHS[:, None]).float()
KINDS = ("grpo", "bnpo", "dapo", "dr_grpo")
token_weight, completion_weight = {}, {}
for kind in KINDS:
    losses = torch.zeros(4, LIMIT, requires_grad=True)
    batch_loss(kind, losses, mask, parts=2, longest=LIMIT).backward()
    token_weight[kind] = losses.grad[:, 0].tolist()
    completion_weight[kind] = losses.grad.sum(1).tolist()
    print(f"{kind:8}", *(f"{weight:.4f}" for weight in token_weight[kind]))

# %%
from grpo_utils.plots import COLORS, show
from matplotlib.figure import Figure

figure = Figure(figsize=(8, 3), layout="constrained")
panels = figure.subplots(1, 2)
titles = ("weight of one token", "weight of the whole completion")
for axes, weights, title in zip(
    panels, (token_weight, completion_weight), titles
):
    for place, length in enumerate(LENGTHS.tolist()):
        spots = [number + 0.2 * (place - 1.5) for number in range(4)]
        heights = [weights[kind][place] for kind in KINDS]
        axes.bar(spots, heights, 0.18, color=COLORS[place], label=length)
    axes.set(title=title)
    axes.set_xticks(range(4), KINDS)
panels[0].legend(title="tokens", fontsize="small")
ratios = ", ".join(f"{k} {w[0] / w[3]:.1f}" for k, w in token_weight.items())
show(figure, "Weight of a token of 10 tokens against one of 40: " + ratios)

# %% [markdown]
# In the left panel, `grpo` gives a token of the 10-token completion a weight of 0.025, four times as much as in the
# 40-token completion. With `dapo` and `dr_grpo`, all tokens weigh the same. With `bnpo`, the weight depends on which
# completions share a part. In the right panel, `grpo` weighs all completions equally, and `dapo` gives the longest
# one four times the weight of the shortest.
#
# The left panel explains the *length bias* of `grpo`: per token, a long incorrect answer is punished less than a short
# one, and a long correct answer is rewarded less. Users blame it when completions
# [get shorter](https://github.com/om-ai-lab/VLM-R1/issues/280). Others
# [object](https://github.com/sail-sg/understand-r1-zero/issues/25) with the right panel. Section 8 measures it.
#
# **`grpo` treats completions equally, `dapo` and `dr_grpo` treat tokens equally.**

# %% [markdown]
# ## 4. Choose what divides the advantage
#
# `scale_rewards` says which standard deviation divides an advantage. The first toy group has rewards of 3 and 0. In
# the second, one completion has 2.9 instead of 3.

# %% tags=["nbval-check-output", "formulas"]
rewards = torch.tensor([[3.0, 0.0, 3.0, 0.0], [3.0, 3.0, 3.0, 2.9]])
centered = rewards - rewards.mean(1, keepdim=True)
DIVISORS = {"group": rewards.std(1, keepdim=True) + 1e-4}
DIVISORS |= {"batch": rewards.std() + 1e-4, "none": torch.tensor(1.0)}
for scale, divisor in DIVISORS.items():
    for group in (centered / divisor).tolist():
        print(f"{scale:6}", *(f"{advantage:6.2f}" for advantage in group))

# %% [markdown]
# With `"group"`, the completion that lost 0.1 gets -1.50, a stronger push than the -0.87 of a completion that lost 3.
# So almost tied groups count as much as others. With `"batch"` or `"none"`, the same completion gets -0.05 or -0.07.
#
# **With `"group"`, a tiny difference in reward can cause a large update.**

# %% [markdown]
# ## 5. Normalize each reward before adding them up
#
# TRL adds up several rewards and then normalizes the sum. A
# [pull request](https://github.com/huggingface/trl/pull/4785) shows what this loses. Below, each completion has two
# rewards. The better completion wins in one of them in the first group, and in both in the second group.

# %% tags=["nbval-check-output", "formulas"]
WON = torch.tensor([[[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]])


def normalize(values, *dims):
    centered = values - values.mean(dims, keepdim=True)
    return centered / (values.std(dims, keepdim=True) + 1e-4)


sum_then_normalize = normalize(WON.sum(2), 1)
separate = normalize(WON, 1).sum(2)  # within the group, then the sum
normalize_then_sum = normalize(separate, 0, 1)  # over the whole batch
for group in (0, 1):
    before, after = sum_then_normalize[group], normalize_then_sum[group]
    print(f"group {group + 1}: sum first {before[0]:.2f}, last {after[0]:.2f}")

# %% [markdown]
# If the sum comes first, both winners get the same advantage, 0.71. With `"normalize_then_sum"` (*GDPO*), the winner in
# both rewards gets 1.10, and the other one 0.55.
#
# Three things change. A weight now multiplies the *normalized* reward, so a reward that hardly varies still counts.
# TRL ignores `scale_rewards`. And `frac_reward_zero_std` no longer counts tied groups, because TRL then computes it
# from the whole batch (also with `scale_rewards="batch"`).
#
# **Use `"normalize_then_sum"` if one reward drowns out another, and read each reward's own curve.**

# %% [markdown]
# ## 6. Find out when the ratio matters
#
# The ratio is a token's probability now, divided by its probability when it was sampled. The losses differ in how
# strongly a token pushes at each ratio. This push is the negative gradient of TRL's formulas:


# %% tags=["formulas"]
def token_loss(kind, logps, old, advantage):
    ratio = torch.exp(logps - old)
    if kind == "cispo":
        return -ratio.clamp(max=5.0).detach() * advantage * logps
    if kind == "sapo":
        heat = torch.where(advantage > 0, 1.0, 1.05)
        return -torch.sigmoid(heat * (ratio - 1)) * 4 / heat * advantage
    clipped = ratio.clamp(0.8, 1.2)  # grpo, bnpo, dapo and dr_grpo
    return -torch.min(ratio * advantage, clipped * advantage)


# %%
ratio = torch.linspace(0.02, 6, 300)
figure = Figure(figsize=(8, 3), layout="constrained")
panels = figure.subplots(1, 2, sharex=True)
pushes = []
for axes, sign in zip(panels, (1.0, -1.0)):
    curves = zip(("clip", "cispo", "sapo"), COLORS, (4, 2, 2))
    for kind, color, width in curves:
        logps = ratio.log().requires_grad_()
        token_loss(kind, logps, 0.0, torch.tensor(sign)).sum().backward()
        axes.plot(ratio, -logps.grad, color=color, lw=width, label=kind)
        at_two = -logps.grad[(ratio - 2).abs().argmin()].item()
        pushes.append(f"{kind} {at_two + 0.0:.1f}")
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set(title=f"push with advantage {sign:+.0f}", xlabel="ratio")
panels[0].legend(fontsize="small")
show(figure, "Push at ratio 2, for +1, then -1: " + ", ".join(pushes))

# %% [markdown]
# At a ratio of 1, the gray line, all curves meet. If a token has moved too far in the direction of its advantage,
# clipping drops to 0 at once. CISPO only limits the weight to 5, and SAPO fades out.
#
# *GSPO* uses one ratio for a whole completion, the geometric mean of its tokens' ratios. Here, one of 20 tokens has
# become three times as likely:

# %% tags=["nbval-check-output", "formulas"]
log_ratio = torch.zeros(20)
log_ratio[7] = torch.tensor(3.0).log()
print(f"ratio of that token:       {log_ratio[7].exp():.4f}")
print(f"ratio of the completion:   {log_ratio.mean().exp():.4f}")

# %% [markdown]
# Clipping per token drops that one token. GSPO sees 1.0565, which an epsilon of 0.2 does not clip, but the paper's
# 0.0004 drops all 20 tokens.
#
# All of this needs ratios other than 1. TRL is on-policy if `num_iterations * steps_per_generation` divides
# `gradient_accumulation_steps`, as by default. Then every ratio is 1, and `epsilon`, CISPO, SAPO and GSPO change no
# token's gradient.
#
# **If `clip_ratio/region_mean` is 0, another clipping rule cannot help.**

# %% [markdown]
# ## 7. Train two losses
#
# Train `"grpo"` and `"dapo"` on-policy, and `"dapo"` with four updates per batch.

# %%
import tempfile

from grpo_utils import evaluate, load_rows, logged, math_rewards, model_path
from grpo_utils import show_progress
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
functions, reward_weights = math_rewards()


def new_policy():
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(SEED)  # PEFT draws the adapter's first weights
    sizes = dict(r=16, lora_alpha=32, target_modules="all-linear")
    return get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **sizes))


# %%
SHARED = dict(
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
    optim="adamw_torch",
    logging_steps=1,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,  # show_progress draws a bar instead
)


# %%
def train(**changes):
    policy = new_policy()
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(tempfile.mkdtemp(), **SHARED, **changes),
        train_dataset=train_rows,
        reward_funcs=functions,
    )
    show_progress(trainer)
    trainer.train()
    decoding = dict(max_new_tokens=32, seed=SEED)
    evaluated = evaluate(policy, tokenizer, test_rows, **decoding)
    return trainer.state.log_history, evaluated


RUNS = {"grpo": dict(loss_type="grpo"), "dapo": dict(loss_type="dapo")}
RUNS["4 updates"] = dict(loss_type="dapo", num_iterations=4)
results = {name: train(**changes) for name, changes in RUNS.items()}

# %% [markdown]
# Print loss and mean reward of the first and the last step, the mean share of clipped tokens, and strict accuracy on
# 200 held-out prompts.

# %%
for name, (log, evaluated) in results.items():
    loss, reward = logged(log, "loss"), logged(log, "reward")
    clipped = logged(log, "clip_ratio/region_mean")
    print(f"{name}\n  loss:     {loss[0]:.3f}, then {loss[-1]:.3f}")
    print(f"  reward:   {reward[0]:.2f}, then {reward[-1]:.2f}")
    print(f"  clipped:  {sum(clipped) / len(clipped):.1%}")
    print(f"  accuracy: {evaluated.accuracy}")

# %% [markdown]
# With `grpo`, the mean reward rose from 0.93 to 2.80, but the loss was 0.000 at the first and the last step,
# [as in many logs](https://github.com/huggingface/trl/issues/3452). On-policy, the loss of a completion is minus its
# advantage. Advantages sum to 0, and `grpo` weighs all completions equally. With `dapo`, longer completions weigh
# more, so its first loss of -0.137 only says that they had higher advantages.
#
# On-policy, no token was clipped, as section 6 predicts. With four updates per batch, 3.5% of the tokens were. This run
# sampled a quarter of the completions and reached 77.0%.
#
# With `dapo`, accuracy is 96.5%, with `grpo` 87.5%. The intervals do not overlap, but they ignore other
# seeds.
#
# **A loss of 0 is normal, and one run per loss compares nothing.**

# %% [markdown]
# ## 8. Compare several seeds
#
# `make bench-losses` trained every variant with six seeds ([all settings](../docs/settings.md#what-the-losses-did)).
# The table shows mean differences from `dapo`, ± half of the 95% interval over the seeds. Rows below *4 updates, dapo*
# are compared with it, `sapo` and `gspo` with *4 updates, grpo*. Only **bold** intervals exclude 0.
#
# | variant | accuracy | tokens |
# |---|---|---|
# | grpo | -0.031±0.048 | -0.2±0.2 |
# | dr_grpo | -0.002±0.022 | 0.0±0.1 |
# | scale none | 0.003±0.021 | 0.0±0.1 |
# | scale batch | 0.008±0.031 | 0.0±0.1 |
# | GDPO | 0.000±0.026 | 0.0±0.1 |
# | KL 0.04 | -0.012±0.030 | -0.1±0.2 |
# | any format, grpo | **-0.050±0.040** | -0.4±0.5 |
# | 4 updates, dapo | **-0.177±0.046** | **-1.8±0.6** |
# | 4 updates, grpo | -0.007±0.044 | 0.0±0.1 |
# | 4 updates, no clip | -0.071±0.298 | **1.6±0.7** |
# | 4 updates, cispo | 0.016±0.106 | **1.8±0.7** |
# | 4 updates, sapo | -0.040±0.094 | **1.6±0.7** |
# | 4 updates, gspo | -0.013±0.163 | **1.6±0.6** |
# | 4 updates, gspo, paper | -0.047±0.064 | -0.1±0.2 |
#
# In the first six rows, no difference is shown. `grpo` could still lose up to 0.08. The gradient of `dr_grpo` is a
# third smaller, but Adam ignores a constant factor.
#
# In the row *any format*, the reward accepts any format, so short answers compete with the long format. With the same
# reward, `grpo` is 0.050 below `dapo` in strict accuracy. The length bias predicts this direction, but the change of
# 0.4 tokens is not shown, and of 30 intervals one or two exclude 0 by chance.
#
# Four updates per batch cost 0.177 of accuracy, for a quarter of the samples. Without clipping, one of six seeds
# collapsed to 0.065. CISPO, SAPO and GSPO move further per batch, as the longer answers show.
#
# **Most of these losses cannot be told apart here, so change one only for a measured symptom.**

# %% [markdown]
# ## 9. Check what people say
#
# | claim | here |
# |---|---|
# | The loss must fall. | It stayed at 0.000 while the model learned. |
# | `beta=0.04` keeps a run stable. | No difference shown; no on-policy run collapsed. |
# | Division by the group's deviation hurts. | No difference shown. |
# | A KL in the millions means a broken policy. | One token is enough: |

# %% tags=["nbval-check-output"]
difference = torch.zeros(1000)  # log-probability: reference minus policy
difference[0] = 22.0  # one token that the policy finds nearly impossible
kl = difference.exp() - difference - 1
print(f"mean KL: {kl.mean():,.0f}; without that token: {kl[1:].mean():.0f}")

# %% [markdown]
# TRL's estimate of KL grows exponentially with the difference of one token's log-probabilities. In
# [such a log](https://github.com/meta-pytorch/torchforge/issues/664), look at single tokens. Often the sampler and the
# trainer compute different probabilities. With vLLM, ratios therefore differ from 1 even on-policy. TRL corrects them,
# its `sampling/` metrics show them [after truncation](https://github.com/huggingface/trl/issues/5231), and `top_p` or
# `top_k` [bias them](https://github.com/huggingface/trl/issues/6789) (read, never run here).
#
# **Judge by held-out accuracy, and use loss and KL to find causes.**

# %% [markdown]
# ## 10. Cheat sheet
#
# | symptom | setting | here | arXiv |
# |---|---|---|---|
# | completions that get shorter or longer | `loss_type="dapo"` or `"dr_grpo"` | toy: section 3; a hint: section 8 | 2503.20783 |
# | almost tied groups | `scale_rewards="batch"` or `"none"` | toy; no difference shown | 2503.20783, 2508.08221 |
# | one reward that drowns out another | weights, or `"normalize_then_sum"` | toy; no difference shown | 2601.05242 |
# | low accuracy with several updates per batch | `num_iterations=1` | shown: section 8 | |
# | off-policy collapse | `epsilon=0.2`, `"cispo"` or `"sapo"` | one seed: section 8 | 2506.13585, 2511.20347 |
# | high `clip_ratio` | GSPO | no difference shown | 2507.18071 |
# | a loss of 0 | none | shown: section 7 | 2402.03300 |
# | KL that [soars late](https://github.com/qiufengqijun/open-r1-reprod/issues/4) while accuracy falls | an earlier checkpoint, lower `learning_rate`, `beta` | [lesson 04](04_reading_a_run.ipynb) | 2402.03300 |
#
# **Change one setting, and use several seeds.**

# %% [markdown]
# ## 11. Exercises
#
# **Exercise 1.** Write `completion_ratio(now, old)`, GSPO's ratio of one completion, from the log-probabilities of its
# tokens now and at sampling time.


# %%
import math


def completion_ratio(now: list[float], old: list[float]) -> float:
    """Your answer: one number."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

TOKENS = [(([-1.0, -1.0], [-1.0, -3.0]), round(math.e, 2))]
TOKENS += [(([-2.0, -2.0, -2.0], [-2.0, -2.0, -2.0]), 1.0)]
HINTS = [(7.39, "That is the product of the ratios. How long is it?")]
HINTS += [(4.19, "That is the mean of the ratios. Average their logarithms.")]
HINTS += [(0.37, "Is the probability now above or below the line?")]
print(check_exercise("Exercise 1", completion_ratio, TOKENS, HINTS))

# %% [markdown]
# **Exercise 2.** Write `can_clip(num_iterations, steps_per_generation, accumulation)`, which returns whether any ratio
# can differ from 1 in a run without vLLM.
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
HINTS = [(True, "No update comes between sampling and the last use here.")]
HINTS += [(False, "Is every completion used before the first update?")]
print(check_exercise("Exercise 2", can_clip, SETTINGS, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: the mean of the differences of the log-probabilities, then `exp`.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def ratio_solution(now: list[float], old: list[float]) -> float:
    differences = [one - other for one, other in zip(now, old)]
    return round(math.exp(sum(differences) / len(differences)), 2)


print(check_exercise("Exercise 1, solution", ratio_solution, TOKENS))

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
