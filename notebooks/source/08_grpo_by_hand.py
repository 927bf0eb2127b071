# %% [markdown]
# # 08 · GRPO by hand
#
# {{badges}}
#
# **You will be able to** write GRPO in plain torch: advantages, token log-probabilities, ratio, clip, KL,
# and the losses `grpo`, `bnpo`, `dr_grpo`, `dapo` and `cispo`; and show that loss and gradient are those of
# TRL's `GRPOTrainer`.
#
# A formula that is nearly right trains nearly as well, so training cannot find the slip. A reference can. So each
# formula stands here three times: on paper with a group of four completions, on a tiny model against TRL, and in
# a bare loop that learns.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.2 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars and seconds below may come from a busier machine.
#
# **While it trains**, take a pencil and compute section 2 yourself, before you look at its numbers.
#
# 1. Settings
# 2. One group, on paper
# 3. Which tokens learn
# 4. The same with a model
# 5. The same batch through TRL
# 6. A bare loop
# 7. Several updates a batch
# 8. What PPO has more
# 9. Exercises
#
# You need [lesson 03](03_grpo_lora.ipynb), which trains with these formulas without showing them, and from torch
# no more than tensors and `backward()`.

# %% [markdown]
# ## 1. Settings
#
# On Colab and Kaggle, the next cell installs the course and the packages that are missing there (a few
# minutes; never run there so far). A new session needs no restart. If pip reports conflicts with packages
# such as omegaconf, go on: the lessons do not use them. On Kaggle, turn on *Internet* in the settings first.
# Anywhere else the cell does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson trains on the CPU on all
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of the bare loop; 0: the lesson's 25
SEED: int = 0  # everything random follows from it

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
)

find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 25
prepare_machine(profile)
print(f"{profile.models[FAMILY]}, {steps} steps of the bare loop, on the CPU")

# %% [markdown]
# ## 2. One group, on paper
#
# One prompt, four completions, of 2, 1, 4 and 3 tokens. Only the first is right: it earned 1.0, the others
# nothing. We made the numbers up, so that you can follow them with a pencil.
#
# ### Advantages
#
# An *advantage* says how much better a completion is than its group: its reward minus the mean of the group,
# divided by the standard deviation of the group (Shao et al. 2024, arXiv 2402.03300). The mean is 0.25. The
# deviations are 0.75 and three times -0.25, their squares sum to 0.75, and 0.75 / 3 = 0.25, whose root is 0.5. We
# divided by 3, one less than the size of the group, as `torch.std` and TRL do. TRL adds 0.0001, so that a tied
# group divides zero by a small number and not by zero.

# %% tags=["formulas"]
import torch


def advantages_of(rewards, size, scale=True):
    """One advantage a completion; groups of `size`, one after the other."""
    groups = rewards.view(-1, size)
    advantages = groups - groups.mean(dim=1, keepdim=True)
    if scale:
        advantages = advantages / (groups.std(dim=1, keepdim=True) + 1e-4)
    return advantages.view(-1)


# %% tags=["nbval-check-output"]
rewards = torch.tensor([1.0, 0.0, 0.0, 0.0])
advantages = advantages_of(rewards, size=4)
print("scaled:    ", [round(a, 3) for a in advantages.tolist()])
unscaled = advantages_of(rewards, size=4, scale=False)
print("not scaled:", [round(a, 3) for a in unscaled.tolist()])

# %% [markdown]
# The right one is three deviations above the wrong ones. (`scale=False` is for `dr_grpo`; we come back to it.) All
# tokens of a completion share its advantage: GRPO does not know which token made the answer right.
#
# ### Ratio
#
# For each token we need the probability that the policy gave it at three times: when it was sampled (`old`),
# now (`new`), and by the frozen reference model (`ref`). Models give logarithms of probabilities, so we take
# them. Rows have different lengths, and the *mask* says where a token is.

# %%
from torch.nn.utils.rnn import pad_sequence

OLD = [[0.5, 0.4], [0.5], [0.4, 0.5, 0.2, 0.5], [0.5, 0.25, 0.8]]
NEW = [[0.3, 0.6], [0.3], [0.4, 0.7, 0.2, 0.5], [0.45, 0.25, 0.8]]
REF = [[0.3, 0.3], [0.6], [0.4, 0.7, 0.4, 0.5], [0.45, 0.5, 0.8]]


def padded(rows, filler):
    tensors = [torch.tensor(row) for row in rows]
    return pad_sequence(tensors, batch_first=True, padding_value=filler)


old, new, ref = (padded(rows, 1.0).log() for rows in (OLD, NEW, REF))
mask = padded([[1] * len(row) for row in OLD], 0)


# %% [markdown]
# The *ratio* is new divided by old. As a difference of logarithms: `exp(new - old)`.


# %% tags=["nbval-check-output"]
def show_tokens(values):
    for place, (row, kept) in enumerate(zip(values, mask.bool())):
        numbers = "".join(f"{value:8.2f}" for value in row[kept].tolist())
        print(
            f"completion {place + 1}, A = {advantages[place]:5.2f}:{numbers}"
        )


show_tokens(torch.exp(new - old))

# %% [markdown]
# The first completion is good. Its first token has become less likely since it was sampled (0.3 / 0.5 = 0.60), its
# second more likely (1.50).
#
# ### Clip
#
# Ratio times advantage is what we want to be large. Were that all, one batch could push a token
# without end. So the ratio is also taken *clipped* to 0.8 .. 1.2 (that is epsilon 0.2 on both sides), and of the
# two products **the smaller one counts**. The loss is its negative, as optimizers go down.


# %% tags=["formulas"]
def clipped_loss(logps, old, advantages, low=0.2, high=0.2):
    """The loss of each token, of shape (completions, tokens)."""
    ratio = torch.exp(logps - old)
    clipped = ratio.clamp(1 - low, 1 + high)
    advantages = advantages.unsqueeze(1)  # the same for all tokens of a row
    return -torch.min(ratio * advantages, clipped * advantages)


# %% tags=["nbval-check-output"]
losses = clipped_loss(new, old, advantages)
show_tokens(losses)

# %% [markdown]
# Check four of them.
#
# - Completion 1, first token: the smaller of 0.60 x 1.5 = 0.90 and 0.80 x 1.5 = 1.20 is 0.90, so -0.90: not clipped.
# - Its second token: of 1.50 x 1.5 = 2.25 and 1.20 x 1.5 = 1.80 the smaller is 1.80: **clipped**.
# - Completion 2: of 0.60 x -0.5 = -0.30 and 0.80 x -0.5 = -0.40 the smaller is -0.40, so +0.40: **clipped**.
# - Completion 3, second token: of 1.40 x -0.5 = -0.70 and 1.20 x -0.5 = -0.60 the smaller is -0.70: not clipped.
#
# So a ratio outside of the interval is clipped only where the policy has **already gone far in the wanted direction**.
# Where it went the wrong way (the 0.60 in completion 1, the 1.40 in completion 3) nothing holds the correction up.
#
# ### CISPO: cap the weight, keep the gradient
#
# A clipped token has no gradient, so rare tokens whose probability doubles fall silent. CISPO (MiniMax 2025,
# arXiv 2506.13585) instead clips the ratio alone, treats it as a constant weight (`detach`), and multiplies it with advantage
# and log-probability. Every token then keeps a gradient. In the paper the weight is clipped to 1 - epsilon_low .. 1 + epsilon_high.
# TRL takes the variant of ScaleRL (Khatri et al. 2025, arXiv 2510.13786), with a cap alone: there `epsilon_high` **is** the cap, not a
# distance from 1. TRL's documentation recommends 5.0 for it; the default, 0.2, would put every ratio above 0.2 at 0.2.


# %% tags=["formulas"]
def cispo_loss(logps, old, advantages, cap=5.0):
    weight = torch.exp(logps - old).clamp(max=cap).detach()
    return -weight * advantages.unsqueeze(1) * logps


# %% [markdown]
# ### KL: how far from the reference
#
# With `beta` above zero every token also pays for its distance from the reference. With `r = ref / new` the
# penalty is `r - log(r) - 1`, the estimator called *k3* (Schulman 2020, *Approximating KL divergence*). It is never
# negative, and its mean over tokens sampled from the policy is the KL divergence (exercise 1).


# %% tags=["formulas"]
def kl_penalty(logps, ref):
    return torch.exp(ref - logps) - (ref - logps) - 1


# %% tags=["nbval-check-output"]
penalties = kl_penalty(new, ref)
show_tokens(penalties)

# %% [markdown]
# Zero where both agree; 2 - 0.69 - 1 = 0.31 where the reference gives a token twice the probability; and
# 0.5 + 0.69 - 1 = 0.19 where it gives it half.
#
# The first papers stop here. TRL 1.14 multiplies the penalty with the **ratio**, unless `use_bias_correction_kl=False`
# (DeepSeek-V3.2, arXiv 2512.02556). The mean of k3 is right, but its gradient is another matter: by the
# log-probability of a token it is `1 - r`, while the gradient of the KL divergence asks for `-log(r)`. With the
# ratio as a factor it is that. This holds on-policy too, where the factor is 1 and changes no value:

# %% tags=["nbval-check-output"]
for name, corrected in (("1 - r", False), ("-log(r)", True)):
    leaf = new.clone().requires_grad_()
    ratio = torch.exp(leaf - leaf.detach()) if corrected else 1.0
    (kl_penalty(leaf, ref) * ratio).sum().backward()
    slopes = leaf.grad[mask.bool()].tolist()
    print(f"{name:8}", sorted({round(slope, 2) + 0.0 for slope in slopes}))

# %% [markdown]
# Three slopes, for the tokens with r = 2, 1 and 0.5. Without the factor, a token that the reference finds likelier pulls
# too hard (-1 for -0.69), and one that it finds less likely is pushed too little (0.5 for 0.69).
#
# ### From tokens to one number
#
# Here the losses differ most, in a line each. Ten tokens have a loss. What is the loss of the batch?
#
# - `grpo`: the mean over the tokens of each completion, then the mean over completions.
# - `bnpo`: the mean over all tokens of what is computed **at once**.
# - `dapo` and `cispo`: the mean over all tokens of the **whole batch**, however it is cut. That is the same as `bnpo`, unless the
#   batch is worked off in parts (*gradient accumulation*). (DAPO's paper, Yu et al. 2025, arXiv 2503.14476, writes the mean over
#   the tokens of one *group*; TRL takes all groups sampled together. Where these serve several optimizer steps,
#   it takes each step's even share of their tokens, not its own count.)
# - `dr_grpo`: the sum, divided by a constant: completions x `max_completion_length` (Liu et al. 2025, arXiv
#   2503.20783).
#
# `parts` is the number of parts whose gradients are added up; `tokens` counts the tokens of all of them.


# %% tags=["formulas"]
def averaged(losses, mask, kind, tokens, longest, parts=1):
    """One number from the losses of the tokens."""
    losses = losses * mask
    if kind == "grpo":
        lengths = mask.sum(dim=1).clamp(min=1)
        return (losses.sum(dim=1) / lengths).mean() / parts
    if kind == "bnpo":
        return losses.sum() / mask.sum().clamp(min=1) / parts
    if kind == "dr_grpo":
        return losses.sum() / (len(mask) * longest) / parts
    return losses.sum() / tokens.clamp(min=1)  # dapo, cispo


# %% [markdown]
# And the whole loss. A batch is a dictionary with the names that TRL uses. If it holds no `old_per_token_logps`, the
# completions were sampled by the policy as it is now (*on-policy*), and every ratio is 1.


# %% tags=["formulas"]
def grpo_loss(
    logps, batch, kind, beta=0.0, low=0.2, high=0.2, longest=32, parts=1
):
    """The loss of a batch; `high` is the cap for cispo."""
    advantages = batch["advantages"]
    old = batch.get("old_per_token_logps", logps.detach())
    if kind == "cispo":
        losses = cispo_loss(logps, old, advantages, high)
    else:
        losses = clipped_loss(logps, old, advantages, low, high)
    if beta > 0:
        penalties = kl_penalty(logps, batch["ref_per_token_logps"])
        losses = losses + beta * penalties * torch.exp(logps - old)
    mask, tokens = batch["completion_mask"], batch["num_items_in_batch"]
    return averaged(losses, mask, kind, tokens, longest, parts)


# %% [markdown]
# All five for our group, as if `max_completion_length` were 5. Beside each loss stands what **one token** of each
# completion weighs in it.

# %% tags=["nbval-check-output"]
paper = {
    "completion_mask": mask,
    "num_items_in_batch": mask.sum(),
    "old_per_token_logps": old,
    "ref_per_token_logps": ref,
}
print("              loss   a token of completion 1, 2, 3, 4 weighs")
for kind in ("grpo", "bnpo", "dapo", "dr_grpo", "cispo"):
    paper["advantages"] = unscaled if kind == "dr_grpo" else advantages
    high = 5.0 if kind == "cispo" else 0.2
    loss = grpo_loss(new, paper, kind, high=high, longest=5)
    one = torch.ones(mask.shape, requires_grad=True)
    averaged(one, mask, kind, mask.sum(), longest=5).backward()
    weights = "".join(f"{w:9.4f}" for w in one.grad[:, 0].tolist())
    print(f"{kind:9}{loss:9.4f}{weights}")

# %% [markdown]
# The losses of the tokens sum to 1.35, so `dapo` and `bnpo` are 0.135 (1.35 / 10), and `dr_grpo`, whose advantages are half as
# large here, is 0.675 / 20 = 0.034.
#
# In `grpo` a token of the longest completion weighs 0.0625, a quarter of what it weighs in the shortest one. So a long wrong
# answer is punished less, token by token, than a short wrong one: the **length bias** of `grpo`. The other four weigh every token
# alike. `dr_grpo` uses the same constant for every batch, and leaves the standard deviation out as well: dividing by it
# makes nearly tied groups (very easy or very hard prompts) as loud as all others. In TRL you need both, `loss_type="dr_grpo"` and
# `scale_rewards=False`.
#
# **In parts.** Now the first two completions alone (3 tokens), then the other two (7 tokens), and the losses
# added, as gradient accumulation does:


# %% tags=["nbval-check-output"]
def part_of(batch, rows):
    """Some rows of a batch; `num_items_in_batch` stays that of the whole."""
    return {k: v[rows] if v.dim() else v for k, v in batch.items()}


halves = slice(0, 2), slice(2, 4)
paper["advantages"] = advantages
for kind in ("grpo", "bnpo", "dapo"):
    whole = grpo_loss(new, paper, kind)
    parts = [
        grpo_loss(new[rows], part_of(paper, rows), kind, parts=2)
        for rows in halves
    ]
    print(f"{kind:6} whole {whole:7.4f}   in two parts {sum(parts):7.4f}")

# %% [markdown]
# `grpo` and `dapo` do not mind. `bnpo` even changes its sign: each part is divided by its own tokens, so the three tokens of
# the first weigh as much as the seven of the second. So `bnpo` is `dapo` only as long as nothing is accumulated.

# %% [markdown]
# ## 3. Which tokens learn
#
# The loss of a token against its ratio, for a good completion and for a bad one. Where the line is flat, the gradient is
# zero, and the token does not learn.

# %%
from matplotlib.figure import Figure

from grpo_utils import show

figure = Figure(figsize=(7, 3), layout="constrained")
ratios = torch.linspace(0.4, 1.6, 121)
signs = (("advantage +1", 1.0), ("advantage -1", -1.0))
for axes, (title, sign) in zip(figure.subplots(1, 2), signs):
    lines = ratios.log().unsqueeze(1), torch.zeros(121, 1)
    values = clipped_loss(*lines, torch.full((121,), sign))
    axes.plot(ratios, values, color="#0072B2")
    for edge in (0.8, 1.2):
        axes.axvline(edge, color="black", linewidth=0.8, linestyle=":")
    axes.set(title=title, xlabel="ratio", ylabel="loss of a token")
show(
    figure,
    "Two line charts of a token's loss against its ratio. Advantage +1: the "
    "loss falls and is flat above 1.2. Advantage -1: it is flat below 0.8 "
    "and rises from there on.",
)

# %% [markdown]
# Each line is flat on one side only. We ask torch for the gradients of our group. (By the log-probability of each token; the
# chain rule does the rest in a model.)

# %% tags=["nbval-check-output"]
leaf = new.clone().requires_grad_()
clipped_loss(leaf, old, advantages).sum().backward()
show_tokens(leaf.grad + 0.0)  # no negative zeros

# %% [markdown]
# Two of ten are zero: those that we called clipped. For the others the gradient is -ratio x advantage, negative where the
# token is to become likelier.

# %% [markdown]
# ## 4. The same with a model
#
# Now the tiny model, with all its weights, asked four prompts. In a chat template, as tensors. `padding_side="left"` puts the
# filler **before** short prompts, so that every prompt ends where its completion begins.

# %%
from grpo_utils import chat_prompt, load_policy, load_rows


def load(full_finetuning):
    return load_policy(
        profile.models[FAMILY],
        profile=profile,
        backend="transformers",
        load_in_4bit=False,
        full_finetuning=full_finetuning,
        seed=SEED,
    )


model, tokenizer = load(full_finetuning=True)
train_rows = load_rows("addition", "train", 2000, SEED)
four = [chat_prompt("What is 7 + 15?"), *train_rows["prompt"][:3]]
answers = ["22", *train_rows["answer"][:3]]


# %% [markdown]
# A completion ends with its end-of-sequence token (EOS); what stands behind it is filler and must not be learned. So the mask is
# 1 up to and **with** the EOS: to stop is a thing to learn, too. `cumsum` counts how many EOS have been seen; minus the present
# one, it is 0 as long as none has come before.


# %% tags=["formulas"]
def completion_mask(ids, eos):
    """1 up to and with the first EOS of each row, 0 behind it."""
    ends = (ids == eos).int()
    return (ends.cumsum(dim=1) - ends == 0).int()


# %% [markdown]
# `sample` draws a group for each prompt.


# %% tags=["formulas"]
def sample(model, tokenizer, prompts, size, longest=32):
    """`size` completions for each prompt: tensors, and their texts."""
    encoded = tokenizer.apply_chat_template(
        [prompt for prompt in prompts for _ in range(size)],
        add_generation_prompt=True,
        return_dict=True,
        return_tensors="pt",
        padding=True,
        tokenizer_kwargs={"padding_side": "left"},
    )
    decoding = dict(do_sample=True, temperature=1.0, top_p=1.0, top_k=0)
    with torch.no_grad():
        output = model.generate(**encoded, **decoding, max_new_tokens=longest)
    ids = output[:, encoded["input_ids"].shape[1] :]
    batch = {"prompt_ids": encoded["input_ids"], "completion_ids": ids}
    batch["prompt_mask"] = encoded["attention_mask"]
    batch["completion_mask"] = completion_mask(ids, tokenizer.eos_token_id)
    return batch, tokenizer.batch_decode(ids, skip_special_tokens=True)


# %%
torch.manual_seed(SEED)
batch, texts = sample(model, tokenizer, four, size=8)
for place in (0, 1, 8):
    kept = batch["completion_mask"][place].tolist()
    before = batch["prompt_mask"][place].tolist()
    print("filler before the prompt:", before.count(0), "tokens")
    print("completion:", texts[place])
    print("mask:", *kept, sep="")

# %% [markdown]
# The first prompt is a token shorter than the others, so one filler stands before it. The last 1 of a mask is the
# completion's EOS (unless it was cut off).
#
# **Log-probabilities of the tokens.** At each position the model gives *logits*, a score for every token of the vocabulary that
# could come **next**. So the logits that judge the first token of the completion stand at the last token of the prompt: hence
# the shift by one. `log_softmax` turns scores into log-probabilities, and `gather` picks out the one of the
# token that was really sampled. (We sample at temperature 1. At any other, divide the logits by it first, as TRL does.)


# %% tags=["formulas"]
def token_logps(model, batch):
    """Log-probabilities of the completions' tokens, (completions, tokens)."""
    names = (
        ("prompt_ids", "completion_ids"),
        ("prompt_mask", "completion_mask"),
    )
    ids, seen = (torch.cat([batch[n] for n in pair], dim=1) for pair in names)
    logits = model(input_ids=ids, attention_mask=seen).logits
    tokens = batch["completion_ids"]
    logits = logits[:, -tokens.shape[1] - 1 : -1]  # the shift
    chosen = logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1))
    return chosen.squeeze(-1)


# %%
with torch.no_grad():
    logps = token_logps(model, batch)
for place in range(3):
    length = int(batch["completion_mask"][place].sum())
    tokens = batch["completion_ids"][place, :length]
    words = [tokenizer.decode([token]) for token in tokens]
    probabilities = logps[place, :length].exp().tolist()
    pairs = zip(words, probabilities)
    print("  ".join(f"{word} {p:.2f}" for word, p in pairs))

# %% [markdown]
# Each token with its probability. Where the model hesitates, groups differ. The shift is easy to get wrong, and the loss would be a number all
# the same. Two checks: a right shift finds likely tokens (they were sampled, after all), and filler changes nothing.

# %% tags=["nbval-check-output"]
kept = batch["completion_mask"].bool()
print("mean probability above 0.5:", bool(logps[kept].exp().mean() > 0.5))

alone = part_of(batch, slice(0, 1))
alone["prompt_ids"] = alone["prompt_ids"][:, 1:]
alone["prompt_mask"] = alone["prompt_mask"][:, 1:]
with torch.no_grad():
    same = token_logps(model, alone)[0] - logps[0]
print("without the filler the same:", bool(same[kept[0]].abs().max() < 1e-4))

# %% [markdown]
# ## 5. The same batch through TRL
#
# Scores first, those of lesson 03: correctness with weight 2, the strict form and its parts with 0.5 each.

# %%
from grpo_utils import math_rewards, weighted_sum

functions, weights = math_rewards()


def score(texts, answers):
    scores = [function(texts, answer=answers) for function in functions]
    return torch.tensor(weighted_sum(scores, weights))


golds = [answer for answer in answers for _ in range(8)]
rewards = score(texts, golds)
print(rewards.view(4, 8))

# %% [markdown]
# **Off-policy.** A batch fresh from the policy has the ratio 1 everywhere: nothing is clipped, and a wrong clip would not
# show. So we pretend that another policy has sampled it, and another was the reference: to the true log-probabilities we add noise.

# %%
torch.manual_seed(SEED)
noise = torch.rand(2, *logps.shape) - 0.5
batch["old_per_token_logps"] = logps + noise[0]
batch["ref_per_token_logps"] = logps + noise[1]
batch["advantages"] = advantages_of(rewards, size=8)
batch["num_items_in_batch"] = batch["completion_mask"].sum()

ratio, signs = torch.exp(-noise[0]), batch["advantages"].unsqueeze(1)
too_low = int(((ratio < 0.8) & (signs < 0) & kept).sum())
too_high = int(((ratio > 1.2) & (signs > 0) & kept).sum())
print(f"{int(kept.sum())} tokens, {too_low} clipped below, ", end="")
print(f"{too_high} clipped above")

# %% tags=["nbval-check-output"]
print("clipped on both sides:", min(too_low, too_high) > 0)

# %% [markdown]
# TRL's trainer, for each kind of loss. Everything else is as in lesson 03.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

from grpo_utils import training_arguments

HIGH = {"cispo": 5.0}  # epsilon_high; 0.2 for all others


def settings_of(kind, beta, parts):
    arguments = training_arguments(
        profile,
        output_dir=tempfile.mkdtemp(),
        loss_type=kind,
        scale_rewards=kind != "dr_grpo",
        beta=beta,
        epsilon_high=HIGH.get(kind, 0.2),
        gradient_accumulation_steps=parts,
    )
    return GRPOConfig(**arguments)


# %%
def trainer_for(kind, beta, parts):
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        args=settings_of(kind, beta, parts),
        train_dataset=train_rows,
        reward_funcs=functions,
    )
    trainer.current_gradient_accumulation_steps = parts
    return trainer


# %% [markdown]
# A trainer samples its own completions, and we want it to take ours. So the next cell calls `trainer._compute_loss(model, batch)`. The
# underscore says that this method is **private**: it may change with any release of TRL, and code that is to last should not
# call it. For a comparison of formulas it is right: the method *is* TRL's loss, and the course pins TRL's version.


# %%
def gradient_of(loss):
    """The loss as a number, and its gradient by all weights in one row."""
    model.zero_grad()
    loss.backward()
    grads = [weight.grad.flatten() for weight in model.parameters()]
    return loss.item(), torch.cat(grads)


def both(kind, beta, halves):
    """By hand and by TRL: loss and gradient, added up over the parts."""
    trainer = trainer_for(kind, beta, len(halves))
    trainer.model.train()
    how = dict(high=HIGH.get(kind, 0.2), longest=32, parts=len(halves))
    mine = [
        grpo_loss(token_logps(model, half), half, kind, beta, **how)
        for half in halves
    ]
    theirs = [trainer._compute_loss(model, half) for half in halves]
    return gradient_of(sum(mine)), gradient_of(sum(theirs))


# %% [markdown]
# The hardest case in a table: off-policy, with KL (`beta` 0.04), and in two parts of different lengths. The last column is
# the largest entry of TRL's gradient, so that a small difference means something.

# %%
print("          loss by hand    by TRL      off by", end="")
print("   gradient off by  largest entry")
worst = 0.0
for kind in ("grpo", "bnpo", "dapo", "dr_grpo", "cispo"):
    scale = kind != "dr_grpo"
    batch["advantages"] = advantages_of(rewards, size=8, scale=scale)
    halves = [part_of(batch, slice(a, a + 16)) for a in (0, 16)]
    (mine, my_grad), (theirs, grad) = both(kind, 0.04, halves)
    off = [abs(mine - theirs), float((my_grad - grad).abs().max())]
    worst = max(worst, *off)
    print(f"{kind:9}{mine:13.6f}{theirs:10.6f}", end="")
    print(f"{off[0]:12.0e}{off[1]:18.0e}{grad.abs().max():15.3f}")

# %% tags=["nbval-check-output"]
print("equal to 1e-5:", worst < 1e-5)

# %% [markdown]
# Equal, but for rounding. The course's tests do the same for every kind with and without KL, on-policy and off-policy, whole and in parts,
# and with two whole steps of `trainer.train()`: advantages, masks (with `mask_truncated_completions=True`, too) and the
# weights that come out. And they break each formula on purpose (advantages, mask, log-probabilities, and all that the loss is made of), to
# see that the comparison fails.

# %% [markdown]
# ## 6. A bare loop
#
# All formulas are there; what remains is to go round: **sample a group, score, advantages, log-probabilities, loss,
# step**. The policy is the tiny model with a LoRA adapter, as in lesson 03. The loss is `dapo`, in one line; for any other,
# `grpo_loss` takes the place of two lines. (The tests give this loop a batch of TRL's, and compare the weights after two updates.)


# %% tags=["formulas"]
def train(model, tokenizer, rows, score, steps, updates=1, rate=2e-3, **clip):
    """Eight prompts a step, eight completions each; what was seen."""
    weights = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=rate, weight_decay=0.0)
    seen = []
    for start in range(0, steps * 8, 8):
        some = rows[start % len(rows) : start % len(rows) + 8]
        batch, texts = sample(model, tokenizer, some["prompt"], size=8)
        rewards = score(texts, [a for a in some["answer"] for _ in range(8)])
        advantages, mask = advantages_of(rewards, 8), batch["completion_mask"]
        old = None
        for _ in range(updates):
            logps = token_logps(model, batch)
            old = logps.detach() if old is None else old
            losses = clipped_loss(logps, old, advantages, **clip)
            loss = (losses * mask).sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            seen.append(what_happened(logps, old, advantages, mask, rewards))
    return seen


# %% [markdown]
# For each update we note the mean reward, and what the ratios do (for section 7).


# %% tags=["formulas"]
def what_happened(logps, old, advantages, mask, rewards, epsilon=0.2):
    kept, signs = mask.bool(), advantages.unsqueeze(1)
    log_ratio = logps.detach() - old
    below = (log_ratio.exp() < 1 - epsilon) & (signs < 0)
    above = (log_ratio.exp() > 1 + epsilon) & (signs > 0)
    return {
        "reward": rewards.mean().item(),
        "clipped": (below | above)[kept].float().mean().item(),
        "moved": log_ratio[kept].abs().mean().item(),
    }


# %% [markdown]
# How long is that, from the group to the step? Python counts every function of this lesson that the loop calls.

# %% tags=["nbval-check-output"]
import inspect

used = [advantages_of, clipped_loss, completion_mask, sample, token_logps]
used += [train, what_happened]
count = sum(len(inspect.getsource(part).splitlines()) for part in used)
print(count, "lines, under 80:", count < 80)

# %% [markdown]
# Before and after on held-out prompts, as in [lesson 06](06_evaluation.ipynb).

# %%
import time

from grpo_utils import evaluate

test_rows = load_rows("addition", "test", 200, SEED)
policy, tokenizer = load(full_finetuning=False)
before = evaluate(policy, tokenizer, test_rows, max_new_tokens=32, seed=SEED)

started = time.perf_counter()
torch.manual_seed(SEED)
seen = train(policy, tokenizer, train_rows, score, steps)
print(f"{time.perf_counter() - started:.0f} s")

# %%
from grpo_utils import logged, run_curves

reward = logged(seen, "reward")
show(
    run_curves({"bare loop": seen}, ["reward"]),
    f"Line chart of the mean reward over {len(reward)} steps of the bare "
    f"loop, from {reward[0]:.2f} to {reward[-1]:.2f}.",
)

# %%
from grpo_utils import compare

after = evaluate(policy, tokenizer, test_rows, max_new_tokens=32, seed=SEED)
comparison = compare(before, after)
print(comparison)

# %% tags=["nbval-check-output"]
print("improvement shown:", comparison.improved)

# %% [markdown]
# What TRL has more is not in the formulas: many GPUs, vLLM, logs, checkpoints, tools, models of every make.

# %% [markdown]
# ## 7. Several updates a batch
#
# A batch is sampled token by token, and an update reads it all at once. So why not learn several times from one batch? TRL calls
# the number `num_iterations`, here it is `updates`. From the second update on the policy is no longer the one that sampled: the
# batch is off-policy, and only now ratio and clip have work to do. One batch, eight updates, once clipped and once not (an
# infinite epsilon):

# %%
import math

runs = {}
for name, epsilon in (("epsilon 0.2", 0.2), ("no clip", math.inf)):
    fresh, _ = load(full_finetuning=False)
    torch.manual_seed(SEED)
    often = dict(steps=1, updates=8, low=epsilon, high=epsilon)
    runs[name] = train(fresh, tokenizer, train_rows, score, **often)


# %% [markdown]
# The table has, for each of the eight updates, the share of tokens beyond the clip, and how far the policy has moved from
# the one that sampled (the mean size of log(ratio) over the tokens).

# %%
print("             epsilon 0.2              no clip")
print("update   beyond     moved      beyond     moved")
for number in range(8):
    print(f"{number + 1:6}", end="")
    for run in runs.values():
        print(f"{run[number]['clipped']:9.3f}", end="")
        print(f"{run[number]['moved']:10.3f}   ", end="")
    print()

# %%
figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
styles = (("#0072B2", "o"), ("#D55E00", "s"))
for (name, run), (colour, marker) in zip(runs.items(), styles):
    far = logged(run, "moved")
    axes.plot(range(1, 9), far, color=colour, marker=marker, label=name)
axes.set(xlabel="update from the same batch", ylabel="mean |log(ratio)|")
axes.grid(alpha=0.3)
axes.legend()
show(
    figure,
    "Distance from the policy that sampled, over eight updates from one "
    f"batch. Without a clip it ends at {far[-1]:.2f}; clipped it ends at "
    f"{runs['epsilon 0.2'][-1]['moved']:.2f}.",
)

# %% [markdown]
# At the first update nothing can be clipped: the policy is still the one that sampled, and every ratio is 1 by construction. So with `num_iterations=1`, TRL's default and the setting of
# lesson 03, epsilon is idle: whatever you set, the training is the same. (Unless one generation is cut into
# several optimizer steps, `steps_per_generation` above `gradient_accumulation_steps`; and for `cispo` a cap below 1 always
# counts.) After it some tokens are. Without a clip the policy
# runs on, on the word of 64 completions that it would no longer write. Clipped, the tokens that went far enough stop
# pushing, and it ends nearer. It is not a wall: unclipped tokens share their weights with the clipped ones and move those as well.

# %% tags=["nbval-check-output"]
clipped, free = (run[-1] for run in runs.values())
print("some clipped at the eighth:", clipped["clipped"] > 0)
further = free["moved"] > clipped["moved"]
print("without a clip it moves further:", further)

# %% [markdown]
# `epsilon_high` above `epsilon` (DAPO's *clip-higher*, 0.28) leaves good rare tokens more room to become likelier. In the table of
# lesson 04 the clipped shares are `clip_ratio/low_mean` and `clip_ratio/high_mean`.

# %% [markdown]
# ## 8. What PPO has more
#
# Ratio and clip come from PPO (Schulman et al. 2017, arXiv 1707.06347), unchanged. What differs is where the advantage
# comes from.
#
# | | PPO | GRPO |
# |---|---|---|
# | policy, trained | yes | yes |
# | what scores a completion | a reward model or a function | a reward model or a function |
# | reference model, frozen | for the KL, usually in the reward | only with `beta` above zero, in the loss |
# | **value model**, trained | yes: often as large as the policy | **none** |
# | baseline of the advantage | what the value model expects, token by token | the mean of the group |
# | advantage | differs from token to token (GAE) | one for the whole completion |
# | completions a prompt | one is enough | a group, at least 2 |
#
# So what goes is the *value model* (or critic), a second network that is trained to foresee the reward, with its memory, its
# optimizer and its own loss. It is **not** the reward model: either method can use one, or do without. The price is paid
# in samples: GRPO needs a whole group to know what was to be expected, and it cannot tell a completion's good tokens from
# its bad ones.

# %% [markdown]
# ## 9. Exercises
#
# ### Exercise 1: is k3 the KL divergence?
#
# A policy picks among a few tokens with the probabilities `new`, the reference with `ref`. The KL divergence is the sum of
# `new * log(new / ref)`. Write `mean_k3(new, ref)`: the mean of `r - log(r) - 1`, `r = ref / new`, over tokens that the
# **policy** picks. (Use `math.log`.) Compare with the KL divergence.


# %%
def mean_k3(new: list[float], ref: list[float]) -> float | None:
    """Your answer: a number."""
    return None


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

PAIRS = [
    (([0.9, 0.1], [0.5, 0.5]), 0.37),
    (([0.7, 0.2, 0.1], [0.2, 0.2, 0.6]), 0.70),
    (([0.5, 0.5], [0.5, 0.5]), 0.0),
]
print(check_exercise("Exercise 1", mean_k3, PAIRS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. The mean of `r` is the sum of `ref`, so 1, and `r - 1` drops out: what remains is the mean of
# `-log(r)`, the KL divergence. The `r - 1` only serves to keep each single token's value from being negative, so that
# fewer samples are needed.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def mean_k3_solution(new: list[float], ref: list[float]) -> float:
    pairs = [(p, q / p) for p, q in zip(new, ref)]
    return sum(p * (r - math.log(r) - 1) for p, r in pairs)


print(check_exercise("Exercise 1, solution", mean_k3_solution, PAIRS))

# %% [markdown]
# ### Exercise 2: does the token learn?
#
# Write `learns(ratio, advantage)` for the clipped loss with epsilon 0.2: whether the token has a gradient.


# %%
def learns(ratio: float, advantage: float) -> bool | None:
    """Your answer: True or False."""
    return None


# %% tags=["nbval-check-output"]
TOKENS = [
    ((1.0, 1.0), True),
    ((1.3, 1.0), False),
    ((1.3, -1.0), True),
    ((1.15, 2.0), True),
    ((0.7, 1.0), True),
    ((0.7, -1.0), False),
    ((1.0, 0.0), False),
]
print(check_exercise("Exercise 2", learns, TOKENS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. A token falls silent when it has gone beyond the edge **in the direction of its advantage**. And with
# the advantage 0, as in every tied group, nothing is learned at any ratio.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def learns_solution(ratio: float, advantage: float) -> bool:
    if advantage > 0:
        return ratio < 1.2
    return advantage < 0 and ratio > 0.8


print(check_exercise("Exercise 2, solution", learns_solution, TOKENS))

# %% [markdown]
# ### Exercise 3: what does a token weigh?
#
# Write `weights_of(lengths, kind, longest)`: for completions of these lengths, the weight of one token of each in the loss, for
# `"grpo"`, `"dapo"` and `"dr_grpo"` (one batch, no parts). Two completions, of 2 and of 8 tokens: in which loss does a
# token of the long one count for less?


# %%
def weights_of(lengths: list[int], kind: str, longest: int) -> list[float]:
    """Your answer: one weight for each completion."""
    return []


# %% tags=["nbval-check-output"]
WEIGHTS = [
    (([2, 8], "grpo", 10), [0.25, 0.06]),
    (([2, 8], "dapo", 10), [0.1, 0.1]),
    (([2, 8], "dr_grpo", 10), [0.05, 0.05]),
]
print(check_exercise("Exercise 3", weights_of, WEIGHTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. Only in `grpo`: there a token of the long completion counts a quarter of one of the short.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def weights_solution(lengths: list[int], kind: str, longest: int) -> list:
    if kind == "grpo":
        return [1 / (len(lengths) * length) for length in lengths]
    whole = sum(lengths) if kind == "dapo" else len(lengths) * longest
    return [1 / whole for _ in lengths]


print(check_exercise("Exercise 3, solution", weights_solution, WEIGHTS))

# %% [markdown]
# ## What to take along
#
# - Compare a formula with a reference, in loss **and** gradient, off-policy, and in parts. On-policy many a slip has
#   no effect: the clip is idle, and a factor that is 1 changes no value.
# - The losses differ in what a token weighs. `grpo` favours long wrong answers; `bnpo` depends on how you cut the batch.
# - The shift, the mask and the side of the padding are where an implementation of your own goes wrong without a sound.
# - With one update a batch, epsilon does nothing.
#
# To read: Shao et al. 2024, *DeepSeekMath* (arXiv 2402.03300); Yu et al. 2025, *DAPO* (2503.14476); Liu et al. 2025,
# *Understanding R1-Zero-like training* (2503.20783); MiniMax 2025, *MiniMax-M1* (2506.13585); Khatri et al. 2025, *The art of
# scaling reinforcement learning compute* (2510.13786); Schulman's note on
# approximating KL divergence; and `_compute_loss` in TRL's `grpo_trainer.py`, which you can read now.
