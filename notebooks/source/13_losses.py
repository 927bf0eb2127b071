# %% [markdown]
# # 13 · Does the loss matter?
#
# {{badges}}
#
# **You will be able to** say which part of a loss can cause a symptom, and decide whether a change of loss helped.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.0 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, included | the same, on the CPU |
#
# **Numbers in the text** come from the stored CPU run (seed 0). Yours will differ with other seeds and machines.
#
# Read [lesson 08](08_grpo_by_hand.ipynb) first. It builds the loss.

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
# | advantage | How much better is a completion than its group? | `scale_rewards`, `multi_objective_aggregation` |
# | ratio | When does a token stop learning? | `epsilon`, `importance_sampling_level`, `loss_type` (`"cispo"`, `"sapo"`) |
# | mean | How much does one token weigh? | `loss_type` |
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
# The DAPO paper also resamples tied groups. TRL's default is `"dapo"` with an upper epsilon of 0.2. With CISPO, this
# default would limit each importance weight to 0.2, so set `epsilon_high`. Unsloth changes some of these defaults.
#
# **Ask which part can cause your symptom, and set what matters.**

# %% [markdown]
# ## 3. Weigh one token
#
# A completion has one advantage, but the loss is a mean over tokens. `batch_loss` computes the four means. (`"cispo"`
# uses that of `"dapo"`, and `"sapo"` that of `"grpo"`.) Gradient accumulation splits a batch into `parts`.

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
# The weight of a token is the gradient of the mean with respect to that token's loss. The toy batch has four
# completions of 10 to 40 tokens, a limit of 50 (`longest`) and two parts.

# %% tags=["nbval-check-output"]
LENGTHS, LIMIT = torch.tensor([10, 20, 20, 40]), 50
mask = (torch.arange(LIMIT) < LENGTHS[:, None]).float()
KINDS = ("grpo", "bnpo", "dapo", "dr_grpo")
token_weight, completion_weight = {}, {}
print("tokens  ", *(f"{length:6}" for length in LENGTHS.tolist()))
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
show(figure, "Token weight, 10-token over 40-token completion: " + ratios)

# %% [markdown]
# In the left panel, `grpo` gives a token of the 10-token completion a weight of {{token_weight["grpo"][0]:.3f}}, four
# times as much as in the 40-token completion. With `dapo` and `dr_grpo`, all tokens weigh the same. With `bnpo`, the
# weight depends on which completions share a part. In the right panel, `grpo` weighs all completions equally, and `dapo` gives the longest one
# four times the weight of the shortest.
#
# The left panel shows the *length bias* of `grpo`: per token, a long incorrect answer is punished less than a short
# one, and a long correct answer is rewarded less. Users suspect it when completions
# [get shorter](https://github.com/om-ai-lab/VLM-R1/issues/280). One user
# [objects](https://github.com/sail-sg/understand-r1-zero/issues/25) that a long completion also has more tokens
# (right panel).
#
# **`grpo` weighs completions equally, while `dapo` and `dr_grpo` weigh tokens equally.**

# %% [markdown]
# ## 4. Choose what divides the advantage
#
# `scale_rewards` selects the standard deviation that divides an advantage. The first toy group has rewards of 3 and 0.
# In the second group, one reward is 2.9 instead of 3.

# %% tags=["nbval-check-output", "formulas"]
rewards = torch.tensor([[3.0, 0.0, 3.0, 0.0], [3.0, 3.0, 3.0, 2.9]])
centered = rewards - rewards.mean(1, keepdim=True)
DIVISORS = {"group": rewards.std(1, keepdim=True) + 1e-4}
DIVISORS |= {"batch": rewards.std() + 1e-4, "none": torch.tensor(1.0)}
advantages = {scale: centered / by for scale, by in DIVISORS.items()}
for scale, groups in advantages.items():
    for number, group in enumerate(groups.tolist(), 1):
        numbers = " ".join(f"{advantage:6.2f}" for advantage in group)
        print(f"{scale!r:8} group {number}: {numbers}")

# %% [markdown]
# With `"group"`, the completion that lost 0.1 has an advantage of {{advantages["group"][1, 3]:.2f}}, a stronger push
# than the {{advantages["group"][0, 1]:.2f}} of one that lost 3, because its group's deviation is tiny. With `"batch"` or
# `"none"`, it has {{advantages["batch"][1, 3]:.2f}} or {{advantages["none"][1, 3]:.2f}}.
#
# **With `"group"`, a tiny difference in reward can cause a large update.**

# %% [markdown]
# ## 5. Normalize each reward before adding them up
#
# By default, TRL adds up the rewards and then normalizes the sum. A
# [pull request](https://github.com/huggingface/trl/pull/4785) shows what this loses. Below, each completion has two
# rewards. The better completion wins one of them in the first group, and both in the second.

# %% tags=["nbval-check-output", "formulas"]
WON = torch.tensor([[[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]])


def normalize(values, *dims):
    centered = values - values.mean(dims, keepdim=True)
    return centered / (values.std(dims, keepdim=True) + 1e-4)


sum_then_normalize = normalize(WON.sum(2), 1)
separate = normalize(WON, 1).sum(2)  # within the group, then the sum
normalize_then_sum = normalize(separate, 0, 1)  # over the whole batch
for group in (0, 1):
    print(f"winner of group {group + 1}")
    print(f"  sum_then_normalize:  {sum_then_normalize[group][0]:.2f}")
    print(f"  normalize_then_sum:  {normalize_then_sum[group][0]:.2f}")

# %% [markdown]
# With the default, both winners have the same advantage, {{sum_then_normalize[0, 0]:.2f}}. With `"normalize_then_sum"`
# (*GDPO*), which normalizes each reward first, the winner of both rewards has {{normalize_then_sum[1, 0]:.2f}}, and the
# winner of one has {{normalize_then_sum[0, 0]:.2f}}.
#
# A weight then multiplies the *normalized* reward, so a reward that hardly varies still counts. TRL ignores
# `scale_rewards`. And `frac_reward_zero_std` no longer counts tied groups, because TRL computes it from the whole
# batch (also with `scale_rewards="batch"`).
#
# **Use `"normalize_then_sum"` if one reward drowns out another.**

# %% [markdown]
# ## 6. Find out when the ratio matters
#
# The ratio is a token's probability now, divided by its probability when it was sampled. The losses differ in their
# *push* at each ratio, which is the negative gradient of these formulas of TRL:


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
# At a ratio of 1 (the gray line), all pushes are equal. Once a token has moved too far in the direction of its
# advantage, clipping drops its push to 0. CISPO only limits the push to 5. SAPO's push fades above a ratio of about 2,
# in both panels.
#
# *GSPO* uses one ratio for a whole completion, the geometric mean of its tokens' ratios. Here, one of 20 tokens has
# become three times as likely:

# %% tags=["nbval-check-output", "formulas"]
log_ratio = torch.zeros(20)
log_ratio[7] = torch.tensor(3.0).log()
print(f"ratio of that token:       {log_ratio[7].exp():.4f}")
print(f"ratio of the completion:   {log_ratio.mean().exp():.4f}")

# %% [markdown]
# With a positive advantage, clipping per token drops only that token. GSPO sees {{log_ratio.mean().exp():.4f}}, which
# an epsilon of 0.2 does not clip, but the paper's 0.0004 drops all 20 tokens.
#
# All of this needs ratios other than 1. TRL is on-policy if `num_iterations * steps_per_generation` divides
# `gradient_accumulation_steps`, as by default. Then every ratio is 1, and epsilon, GSPO and the formulas of CISPO and
# SAPO change no push.
#
# **On-policy, `clip_ratio/region_mean` is 0, and another clipping rule cannot help.**

# %% [markdown]
# ## 7. Train two losses
#
# Train with `"grpo"` and `"dapo"` on-policy, then with `"dapo"` and four updates per batch. All three runs take the same
# number of steps, so the last one samples a quarter of the completions.

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
# Print the first and last loss and mean reward, the mean share of clipped tokens, and strict accuracy on 200 held-out
# prompts. `logged` reads one metric from the log.

# %%
loss, reward, clipped, accuracy = {}, {}, {}, {}
for name, (log, evaluated) in results.items():
    loss[name], reward[name] = logged(log, "loss"), logged(log, "reward")
    shares = logged(log, "clip_ratio/region_mean")
    clipped[name] = sum(shares) / len(shares)
    accuracy[name] = evaluated.accuracy
    print(name)
    print(f"  loss:     {loss[name][0]:.3f}, then {loss[name][-1]:.3f}")
    print(f"  reward:   {reward[name][0]:.2f}, then {reward[name][-1]:.2f}")
    print(f"  clipped:  {clipped[name]:.1%}")
    print(f"  accuracy: {accuracy[name]}")

# %% [markdown]
# With `grpo`, the mean reward rose from {{reward["grpo"][0]:.2f}} to {{reward["grpo"][-1]:.2f}}, but the loss was
# {{abs(loss["grpo"][0]):.3f}} at the first step and {{abs(loss["grpo"][-1]):.3f}} at the last,
# [as in many logs](https://github.com/huggingface/trl/issues/3452). On-policy, the loss of a completion is minus its
# advantage. Advantages sum to 0, and `grpo` weighs all completions equally. With `dapo`, longer completions weigh
# more, so its first loss of {{loss["dapo"][0]:.3f}} only shows that they had higher advantages.
#
# On-policy, no token was clipped. With four updates per batch, {{clipped["4 updates"]:.1%}} of the tokens were.
#
# Accuracy is {{accuracy["dapo"].value:.1%}} with `dapo`, {{accuracy["grpo"].value:.1%}} with `grpo` and
# {{accuracy["4 updates"].value:.1%}} with four updates per batch. One run per loss cannot separate the effect of the
# loss from that of the seed, and the last run also saw fewer samples.
#
# **A loss near 0 is normal, and one run per loss is not a comparison.**

# %% [markdown]
# ## 8. Compare several seeds
#
# `make bench-losses` trained every variant with six seeds ([all settings](../docs/settings.md#what-the-losses-did)).
# At that time, the format reward gave less partial credit than above, so do not compare these runs with section 7. The
# table shows the mean difference from `dapo`, ± half of its 95% interval over the seeds. The rows below *4 updates,
# dapo* are compared with that row, but `sapo` and `gspo` with *4 updates, grpo*. Only **bold** intervals exclude 0.
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
# The first six rows show no difference, but accuracy with `grpo` could still be up to 0.08 lower. The gradient of
# `dr_grpo` is a third smaller, but Adam ignores a constant factor.
#
# In *any format*, the reward accepts any format, so short answers compete with the long format. Strict accuracy is
# 0.050 lower with `grpo` than with `dapo` and the same reward. The length bias predicts this direction, but the
# evidence is weak: the interval of the 0.4 tokens contains 0, both losses earn the reward with 82% of their answers, and
# one or two of 28 intervals would exclude 0 by chance.
#
# Without clipping, one of six seeds with four updates per batch collapsed to 6.5%. With it (*4 updates, dapo*), none
# did, but accuracy was 76% instead of 94%. Those runs took the same number of steps but sampled only a quarter of
# the completions.
#
# `make bench-reuse` compares one and four updates fairly, with five seeds
# ([table](../docs/results.md#four-updates-per-batch)). With equal samples, and the best of three learning rates for
# each, four updates reach 0.851 and one reaches 0.739. The difference is +0.112 (95% interval +0.077 to +0.147). With
# equal CPU time, it is -0.135 (-0.184 to -0.086), because sampling is only about 40% of a step here. The best rate for
# four updates was the lowest that we tried, half of the best rate for one, so an even lower one may be better. With
# the rate of section 7, no gain from four updates is shown with equal samples, and with equal time they lose 0.19.
#
# **Most of these losses cannot be told apart here, so change the loss only for a measured symptom.**

# %% [markdown]
# ## 9. Check what people say
#
# | claim | here |
# |---|---|
# | `beta=0.04` keeps a run stable. | No difference shown; no on-policy run collapsed. |
# | A KL in the millions means a broken policy. | One token is enough, as the next cell shows. |

# %% tags=["nbval-check-output"]
difference = torch.zeros(1000)  # log-probability: reference minus policy
difference[0] = 22.0  # one token that the policy finds nearly impossible
kl = difference.exp() - difference - 1
print(f"mean KL:             {kl.mean():,.0f}")
print(f"without that token:  {kl[1:].mean():.0f}")

# %% [markdown]
# TRL's estimate of KL grows exponentially with the difference of one token's log-probabilities. In
# [such a log](https://github.com/meta-pytorch/torchforge/issues/664), look at single tokens first.
#
# With vLLM, probabilities differ between sampler and trainer. TRL corrects this with a second ratio. The `sampling/`
# metrics show it [after its limits](https://github.com/huggingface/trl/issues/5231), and `top_p` or `top_k`
# [bias it](https://github.com/huggingface/trl/issues/6789). (We have read these reports, but not run such a case.)
#
# **Judge by held-out accuracy, and use loss and KL to find causes.**

# %% [markdown]
# ## 10. Cheat sheet
#
# | symptom | setting | here |
# |---|---|---|
# | completions that get shorter or longer | `loss_type="dapo"` or `"dr_grpo"` | toy: section 3; a hint: section 8 |
# | almost tied groups | `scale_rewards="batch"` or `"none"` | toy; no difference shown |
# | one reward that drowns out another | weights, or `"normalize_then_sum"` | toy; no difference shown |
# | high `clip_ratio`, or low accuracy with several updates per batch | a lower `learning_rate`, or `num_iterations=1` | measured: section 8 |
# | sampling takes most of the time | `num_iterations` above 1 and a lower `learning_rate`, compared after the same time | better per sample, worse per CPU second: section 8 |
# | off-policy collapse | `epsilon=0.2`, `"cispo"` or `"sapo"` | one seed: section 8 |
# | a loss near 0 | none | shown: section 7 |
# | KL that [soars late](https://github.com/qiufengqijun/open-r1-reprod/issues/4) while accuracy falls | an earlier checkpoint, lower `learning_rate`, `beta` | [lesson 04](04_reading_a_run.ipynb) |
#
# **Change one setting at a time, and use several seeds.**

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
HINTS = [(7.39, "That is the product of the ratios. Which root of it?")]
HINTS += [(4.19, "That is the mean of the ratios. Average their logarithms.")]
HINTS += [(0.37, "Is the probability now above or below the line?")]
HINTS += [(1.0, "That is the mean of the logarithms. What undoes them?")]
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
SETTINGS += [((1, 2, 4), False), ((1, 3, 4), True)]
HINTS = [(True, "No update comes between sampling and the last use here.")]
HINTS += [(False, "Which completions are still used after an update?")]
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
