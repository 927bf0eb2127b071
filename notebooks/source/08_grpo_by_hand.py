# %% [markdown]
# # 08 · GRPO by hand
#
# {{badges}}
#
# **You will be able to** write GRPO in plain PyTorch, train a model with it, and prove that your loss and its gradient
# are those of TRL's `GRPOTrainer`.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.2 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
# | task | two-digit addition problems | the same |
#
# **The numbers in the text** are from the stored CPU run, seed 0. Other seeds and machines give others.
#
# Read [lesson 03](03_grpo_lora.ipynb) first: it trains with these formulas and does not show them. From PyTorch, you
# need tensors and `backward()`.

# %% [markdown]
# ## 1. Set up
#
# On Colab and Kaggle, the next cell installs the course and missing packages (a few minutes; never run there so far).
# On Kaggle, turn on *Internet* in the settings first. Elsewhere the cell does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps of the loop; 0: the lesson's 25
SEED: int = 0  # everything random follows from it

# %%
from grpo_utils import diagram, setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 25)

# %% [markdown]
# ## 2. Turn rewards into advantages
#
# GRPO samples a group of completions for one prompt and scores each of them.

# %%
diagram("advantages")

# %% [markdown]
# The *advantage* says how much better a completion is than its group. It is the reward minus the mean of the group,
# divided by the standard deviation of the group (Shao et al. 2024, arXiv 2402.03300):
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + 0.0001}$$
#
# `torch.std` divides the squared differences by the size of the group minus 1, and so does TRL.

# %% tags=["formulas"]
import torch


def advantages_of(rewards, size):
    """One advantage per completion; the groups follow each other."""
    groups = rewards.view(-1, size)
    differences = groups - groups.mean(dim=1, keepdim=True)
    spreads = groups.std(dim=1, keepdim=True)
    return (differences / (spreads + 1e-4)).view(-1)


# %% tags=["nbval-check-output"]
pictured = [3.0, 1.0, 0.75, 3.0, 0.0, 1.0, 0.5, 3.0] + 8 * [1.0]
for group in advantages_of(torch.tensor(pictured), size=8).view(2, 8):
    print(" ".join(f"{advantage:5.2f}" for advantage in group.tolist()))

# %% [markdown]
# These are the two groups of the picture. The mean reward of the first group is 1.53, so a reward of 3.00 becomes an
# advantage of 1.17, and 0.75 becomes -0.62. In the second group all rewards are equal, so all advantages are 0. The
# 0.0001 keeps a tied group from dividing 0 by 0.
#
# **An advantage compares a completion with its own group, so a tied group teaches nothing.**
#
# ## 3. Sample and score a group
#
# The policy is the tiny model with a LoRA adapter, as in lesson 03. Its base stays in 32 bits here, because rounding
# to 4 bits would hide small differences from TRL. `new_policy` also makes the optimizer, AdamW, with a learning rate
# of 0.002.

# %%
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import load_rows, math_rewards, model_path

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
train_rows = load_rows("addition", "train", 2000, SEED)


def new_policy():
    """The tiny model with an untrained adapter, and its optimizer."""
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(SEED)  # PEFT draws the adapter's first weights
    sizes = dict(r=16, lora_alpha=32, target_modules="all-linear")
    policy = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **sizes))
    rate = dict(lr=2e-3, weight_decay=0.0)
    return policy, torch.optim.AdamW(policy.parameters(), **rate)


# %% [markdown]
# Completions differ in length, and a tensor has rows of one length. So `generate` fills short rows with *padding*,
# and a *mask* marks the real tokens with 1. A completion ends with its end-of-sequence token (EOS). The mask keeps the
# EOS, because the policy must also learn to stop. `cumsum` counts the EOS tokens so far. Minus the EOS at the
# position itself, the count is 0 until an EOS lies behind.


# %% tags=["formulas"]
def completion_mask(ids, eos):
    """1 up to the first EOS of each row and for that EOS, then 0."""
    ends = (ids == eos).int()
    return (ends.cumsum(dim=1) - ends == 0).int()


# %% [markdown]
# `sample` calls `generate` for several copies of each prompt. Prompts are padded on the left, so that each one ends
# where its completion begins. A sampled completion is also called a *rollout*. The batch uses TRL's names, so
# section 8 can give it to TRL.


# %% tags=["formulas"]
def sample(model, tokenizer, prompts, size, longest=32):
    """`size` completions per prompt, as tensors and as texts."""
    chats = [prompt for prompt in prompts for _ in range(size)]
    form = dict(return_dict=True, return_tensors="pt", padding=True)
    form["add_generation_prompt"] = True  # the assistant's turn begins
    asked = tokenizer.apply_chat_template(chats, **form)
    decoding = dict(do_sample=True, temperature=1.0, top_p=1.0, top_k=0)
    with torch.no_grad():
        output = model.generate(**asked, **decoding, max_new_tokens=longest)
    ids = output[:, asked["input_ids"].shape[1] :]  # without the prompts
    batch = {"prompt_ids": asked["input_ids"], "completion_ids": ids}
    batch["prompt_mask"] = asked["attention_mask"]
    batch["completion_mask"] = completion_mask(ids, tokenizer.eos_token_id)
    return batch, tokenizer.batch_decode(ids, skip_special_tokens=True)


# %% [markdown]
# `collect` makes one batch for training. It samples eight completions per row, scores them with lesson 03's rewards
# and weights, and adds the advantages.


# %%
rewards, weights = math_rewards()


def collect(model, rows):
    batch, batch["texts"] = sample(model, tokenizer, rows["prompt"], size=8)
    golds = [answer for answer in rows["answer"] for _ in range(8)]
    scores = [reward(batch["texts"], answer=golds) for reward in rewards]
    batch["rewards"] = torch.tensor(scores).T @ torch.tensor(weights)
    batch["advantages"] = advantages_of(batch["rewards"], size=8)
    return batch


# %%
policy, optimizer = new_policy()
torch.manual_seed(SEED)
batch = collect(policy, train_rows[:1])
columns = zip(batch["rewards"], batch["advantages"], batch["texts"])
for reward, advantage, text in columns:
    print(f"reward {reward:.2f}  advantage {advantage:5.2f}  {text}")

# %% [markdown]
# The group answers "What is 95 + 13?". Three completions give the correct answer in the required format and get the
# advantage 0.98. Two leave out the reasoning and get 0.27. Three are correct but have no tags. Their reward is 0, and
# their advantage is -1.15. Every token of a completion shares its advantage, because the reward judges the whole text.
#
# **One reward per completion becomes one advantage for all of its tokens.**
#
# ## 4. Compute log-probabilities
#
# The loss needs the *log-probability* of every sampled token: the logarithm of the probability that the policy gives
# token $o_t$ after the question $q$ and the tokens before it.
#
# $$\log \pi(o_t \mid q, o_{\lt t}) = \mathrm{log\,softmax}(\mathrm{logits}_{t-1})[o_t]$$
#
# The *logits* at one position score every possible **next** token. So the logits for the first token of a completion
# are at the last token of the prompt. That is the shift by one in `token_logps`. `gather` selects the token that was
# sampled.


# %% tags=["formulas"]
def token_logps(model, batch):
    """The log-probability of each completion token."""
    tokens = batch["completion_ids"]
    ids = torch.cat([batch["prompt_ids"], tokens], dim=1)
    real = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    logits = model(input_ids=ids, attention_mask=real).logits
    logits = logits[:, -tokens.shape[1] - 1 : -1]  # the shift by one
    chosen = logits.log_softmax(-1).gather(-1, tokens.unsqueeze(-1))
    return chosen.squeeze(-1)


# %%
with torch.no_grad():
    probabilities = token_logps(policy, batch).exp()
for place in (0, 1, 3):
    length = int(batch["completion_mask"][place].sum())
    words = tokenizer.batch_decode(
        batch["completion_ids"][place, :length, None]
    )
    pairs = zip(words, probabilities[place].tolist())
    print("  ".join(f"{word} {p:.2f}" for word, p in pairs), "\n")

# %% [markdown]
# The first token decides the format: `9` has the probability 0.60, and `<reasoning>` 0.39. After `95 + 13`, the policy
# writes `is` with 0.79 and `=` with 0.21. Most other tokens are nearly certain. A wrong shift gives a loss without an
# error, but sampled tokens would then look improbable.
#
# **Print the probabilities of sampled tokens: it is the quickest check of the shift and the mask.**
#
# ## 5. Clip the ratio
#
# Compare each token's probability now with its probability when it was sampled. This is the *ratio*:
#
# $$\rho_t = \frac{\pi_{\mathrm{now}}(o_t)}{\pi_{\mathrm{old}}(o_t)}
# = \exp(\log \pi_{\mathrm{now}} - \log \pi_{\mathrm{old}})$$
#
# A batch is *on-policy* if the current policy has sampled it. Every ratio is then 1. After one update from the batch, it
# is *off-policy*, and ratios move. The loss of a token is the ratio times the advantage, with a minus sign, because
# optimizers minimize. *Clipping* stops one batch from moving a token too far: the ratio also counts limited to
# `1 - epsilon` and `1 + epsilon`, and the smaller product wins. *Epsilon* is 0.2 by default.
#
# $$\ell_t = -\min\left(\rho_t A,\ \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon)\, A\right)$$


# %% tags=["formulas"]
def clipped_loss(logps, old, advantages, low=0.2, high=0.2):
    """The loss of each token; one row per completion."""
    ratio = torch.exp(logps - old)
    clipped = ratio.clamp(1 - low, 1 + high)
    advantages = advantages.unsqueeze(1)  # the same for a whole row
    return -torch.min(ratio * advantages, clipped * advantages)


# %% [markdown]
# The *gradient* says how the loss changes with each log-probability. A token whose gradient is 0 does not learn.
# PyTorch computes the gradient for five ratios and both signs of the advantage.


# %% tags=["nbval-check-output"]
def show_row(label, values):
    print(f"{label:18}", *(f"{value + 0.0:6.2f}" for value in values))


ratios = torch.tensor([[0.5, 0.9, 1.0, 1.1, 1.5]])
show_row("ratio", ratios[0].tolist())
for advantage in (1.0, -1.0):
    logps = ratios.log().requires_grad_()
    losses = clipped_loss(logps, torch.zeros(1, 5), torch.tensor([advantage]))
    losses.sum().backward()
    show_row(f"A = {advantage:+.0f}: loss", losses[0].tolist())
    show_row("        gradient", logps.grad[0].tolist())

# %% [markdown]
# With the advantage +1, only the ratio 1.50 has the gradient 0: that token has already become more likely by more than
# 0.2. The ratio 0.50 keeps its gradient, because that token moved the wrong way and must come back. With the advantage
# -1, only the ratio 0.50 is silent.
#
# The loss of the batch is the mean over its real tokens, where $m$ is the mask:
#
# $$L = \frac{\sum_{i,t} m_{i,t}\, \ell_{i,t}}{\sum_{i,t} m_{i,t}}$$
#
# This is TRL's `loss_type="dapo"`, its default.


# %% tags=["formulas"]
def grpo_loss(logps, batch, low=0.2, high=0.2):
    """The mean loss of all real tokens of the batch."""
    old, mask = batch["old_per_token_logps"], batch["completion_mask"]
    losses = clipped_loss(logps, old, batch["advantages"], low, high)
    return (losses * mask).sum() / mask.sum()


# %% [markdown]
# **Clipping silences a token only after it has moved far in the direction of its advantage.**
#
# ## 6. Write the training loop
#
# One update computes the loss, its gradient, and a step of the optimizer. The first update from a batch stores its
# log-probabilities as the old ones. Like TRL, `update` shortens a gradient whose length is above 1.0.


# %% tags=["formulas"]
def update(model, optimizer, batch):
    """One optimizer step."""
    logps = token_logps(model, batch)
    batch.setdefault("old_per_token_logps", logps.detach())
    loss = grpo_loss(logps, batch)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


# %% [markdown]
# `evaluate` calls `generate` for 200 held-out prompts. Strict accuracy is the share of answers that are correct and in
# the required format. `fork_rng` keeps the evaluation from changing what training samples next.

# %%
from grpo_utils import compare, evaluate, show

test_rows = load_rows("addition", "test", 200, SEED)


def held_out():
    with torch.random.fork_rng(devices=[]):
        decoding = dict(max_new_tokens=32, seed=SEED)
        return evaluate(policy, tokenizer, test_rows, **decoding)


# %% [markdown]
# This is the whole training loop: collect a batch, update, repeat.

# %%
evaluated, means = {0: held_out()}, []
torch.manual_seed(SEED)
for step in range(1, run.steps + 1):
    start = 8 * (step - 1) % len(train_rows)
    batch = collect(policy, train_rows[start : start + 8])
    update(policy, optimizer, batch)
    means.append(batch["rewards"].mean().item())
    if step % 5 == 0 or step == run.steps:
        evaluated[step] = held_out()
        print(f"step {step:2}  held-out: {evaluated[step].accuracy}")

# %% [markdown]
# **GRPO is a short loop: sample, score, compare within the group, update.**
#
# ## 7. See that it learns
#
# The left panel shows the mean reward of each batch. The right panel shows strict accuracy on held-out prompts, with its
# 95% interval.

# %%
from matplotlib.figure import Figure

figure = Figure(figsize=(7, 2.8), layout="constrained")
left, right = figure.subplots(1, 2)
left.plot(range(1, run.steps + 1), means, "o-", markersize=3)
left.set(xlabel="step", ylabel="mean reward of the batch")
rates = [evaluation.accuracy for evaluation in evaluated.values()]
accuracy = [rate.value for rate in rates]
right.plot(list(evaluated), accuracy, "s-", color="#D55E00")
bounds = zip(*(rate.interval for rate in rates))
right.fill_between(list(evaluated), *bounds, color="#D55E00", alpha=0.2)
right.set(xlabel="step", ylabel="held-out strict accuracy", ylim=(0, 1))
show(
    figure,
    f"Two line charts over {run.steps} steps. The mean reward goes from "
    f"{means[0]:.2f} to {means[-1]:.2f}. Held-out strict accuracy goes from "
    f"{accuracy[0]:.1%} to {accuracy[-1]:.1%}.",
)

# %% [markdown]
# The mean reward rose from 0.41 to 2.70, and strict accuracy from 25.0% to 95.5%. The same prompts, one by one:

# %%
print(compare(evaluated[0], evaluated[run.steps]))

# %% [markdown]
# 144 prompts became correct, and 3 became wrong. McNemar's test gives the probability of a change at least this
# one-sided if nothing but chance were at work: 5.9e-39.
#
# **The loop in plain PyTorch learns without a single line of TRL.**
#
# ## 8. Compare with TRL
#
# A nearly correct formula also trains, so learning does not prove the formula. A comparison does, if it can fail. On a
# fresh batch every ratio is 1 and nothing is clipped, so a wrong clip would not show. So make eight updates from one
# batch first.

# %%
policy, optimizer = new_policy()
torch.manual_seed(SEED)
batch = collect(policy, train_rows[:8])
real, signs = batch["completion_mask"].bool(), batch["advantages"][:, None]
for number in range(1, 9):
    update(policy, optimizer, batch)
    with torch.no_grad():
        moved = token_logps(policy, batch) - batch["old_per_token_logps"]
    silent = (moved.exp() < 0.8) & (signs < 0)
    silent |= (moved.exp() > 1.2) & (signs > 0)
    print(f"after update {number}: {silent[real].float().mean():.1%} clipped")

# %% [markdown]
# After eight updates, 13.2% of the tokens are clipped. TRL calls the number of updates `num_iterations`. Its default is
# 1: every ratio is 1, and `epsilon` has no effect.
#
# Now give TRL's trainer the same policy. These settings matter for the loss:

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

config = GRPOConfig(
    output_dir=tempfile.mkdtemp(),
    loss_type="dapo",  # the mean over all tokens of the batch
    epsilon=0.2,  # the clip on both sides
    beta=0.0,  # without a reference model
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions in a batch
    max_completion_length=32,  # in tokens
    reward_weights=weights,
    use_cpu=True,
    bf16=False,  # compute in 32 bits
    gradient_checkpointing=False,
    report_to="none",
    seed=SEED,
)
parts = dict(model=policy, processing_class=tokenizer, args=config)
parts |= dict(train_dataset=train_rows, reward_funcs=rewards)
trainer = GRPOTrainer(**parts)

# %% [markdown]
# A trainer samples its own completions, and this one has to take ours. So the next cell calls the method that computes
# TRL's loss. The underscore of `_compute_loss` says that it is **private** and may change with any release. The course
# pins TRL's version; do not call it in a program that has to last.

# %%
trainer.model.train()
trainer.current_gradient_accumulation_steps = 1  # the batch is one part
batch["num_items_in_batch"] = batch["completion_mask"].sum()


def gradient_of(loss):
    policy.zero_grad()
    loss.backward()
    trained = [w.grad for w in policy.parameters() if w.requires_grad]
    return torch.cat([gradient.flatten() for gradient in trained])


theirs = trainer._compute_loss(policy, batch)
reference = gradient_of(theirs)
print(f"TRL: loss {theirs:.6f}, largest gradient {reference.abs().max():.1e}")
for name, high in (("by hand", 0.2), ("wrong epsilon, 0.28", 0.28)):
    ours = grpo_loss(token_logps(policy, batch), batch, high=high)
    off = (gradient_of(ours) - reference).abs().max()
    print(f"{name}: loss {ours:.6f}, gradient differs by {off:.0e}")

# %% [markdown]
# Both losses are -0.172617. The gradients differ by 9e-09 where the largest entry is 4.8e-03, which is rounding. With
# the upper epsilon at 0.28, the gradient differs by 4e-04, so the comparison does find an error.
#
# The course's tests repeat this with 64-bit numbers, on-policy and off-policy, and for two whole steps of
# `trainer.train()`. They also break each formula on purpose and check that the comparison fails.
#
# **Compare loss and gradient off-policy, and break a formula once to see the comparison fail.**
#
# ## 9. Appendix: know the variants
#
# Each variant changes one line. `ref` holds the log-probabilities of a frozen *reference model*, and `longest` is
# `max_completion_length`.
#
# | name | what changes | in TRL |
# |---|---|---|
# | GRPO | `((losses * mask).sum(1) / mask.sum(1)).mean()` | `loss_type="grpo"` |
# | BNPO | `(losses * mask).sum() / mask.sum()` | `loss_type="bnpo"` |
# | Dr. GRPO | `(losses * mask).sum() / (len(mask) * longest)` | `loss_type="dr_grpo", scale_rewards="none"` |
# | CISPO | `losses = -ratio.clamp(max=5.0).detach() * advantages * logps` | `loss_type="cispo", epsilon_high=5.0` |
# | clip-higher | `ratio.clamp(1 - 0.2, 1 + 0.28)` | `epsilon_high=0.28` |
# | KL penalty | `losses + 0.04 * ratio * (torch.exp(ref - logps) - (ref - logps) - 1)` | `beta=0.04` |
#
# - **GRPO**, the first loss, takes the mean of each completion before the mean of the batch. A token of a long
#   completion then weighs less, so a long wrong answer is punished less per token. This is its *length bias*.
# - **BNPO** looks like this lesson's loss (DAPO, arXiv 2503.14476). But if gradient accumulation splits a batch, BNPO
#   takes the mean of each part alone, and DAPO divides every part by the tokens of the whole batch.
# - **Dr. GRPO** (arXiv 2503.20783) divides by a constant, and its advantages leave out the standard deviation.
# - **CISPO** (arXiv 2506.13585) limits the ratio and uses it as a constant weight, so every token keeps a gradient.
# - The **KL penalty** pulls the policy back to the reference model.
#
# Ratio and clip come from *PPO* (arXiv 1707.06347). PPO also trains a *value model*, a second network that predicts the
# reward of every token. GRPO uses the mean of the group instead.
#
# **The variants differ in what one token weighs and in how far it may move.**
#
# ## 10. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | sampled tokens look improbable | do the logits come one position earlier? | shift by one; pad prompts on the left |
# | completions do not stop | does the mask include the EOS? | keep the first EOS in the mask |
# | all advantages are 0 | do all rewards of a group tie? | choose easier prompts or a finer reward |
# | `epsilon` has no effect | is `num_iterations` 1? | make several updates per batch |
# | loss differs from TRL's | is the batch off-policy? | compare term by term: ratio, clip, mask, mean |
# | gradient differs when accumulated | which count divides each part? | divide by the tokens of the whole batch |
# | long wrong answers grow | does each completion get its own mean? | use `loss_type="dapo"` or `"dr_grpo"` |
#
# **Check a formula against a reference before you trust a curve.**
#
# ## 11. Exercises
#
# **Exercise 1.** Write `learns(ratio, advantage)` for the clipped loss with epsilon 0.2: does the token have a gradient?


# %%
def learns(ratio: float, advantage: float) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

TOKENS = [((1.3, 1.0), False), ((0.7, 1.0), True), ((0.7, -1.0), False)]
TOKENS += [((1.3, -1.0), True), ((1.1, 2.0), True), ((1.0, 0.0), False)]
HINTS = [(True, "Has it moved far in the direction of its advantage?")]
HINTS += [(False, "Did it move the wrong way? Then it must come back.")]
print(check_exercise("Exercise 1", learns, TOKENS, HINTS))

# %% [markdown]
# **Exercise 2.** Write `mask_of(ids, eos)` for one completion, as a list of 0 and 1, without torch.


# %%
def mask_of(ids: list[int], eos: int) -> list[int]:
    """Your answer: one number per token."""
    return []


# %% tags=["nbval-check-output"]
ROWS = [(([5, 6, 2, 2], 2), [1, 1, 1, 0]), (([5, 6, 7], 2), [1, 1, 1])]
HINTS = [([1, 1, 0, 0], "How would the policy learn to stop?")]
HINTS += [([1, 1, 1, 1], "What follows the first EOS is padding.")]
print(check_exercise("Exercise 2", mask_of, ROWS, HINTS))

# %% [markdown]
# **Exercise 3.** Write `token_weights(lengths, kind)`: what does one token of each completion weigh in the loss of the
# batch, for `"grpo"` and for `"dapo"`?
#
# **Try all three before you unfold the solutions below.** To read: `_compute_loss` in TRL's `grpo_trainer.py`.


# %%
def token_weights(lengths: list[int], kind: str) -> list[float]:
    """Your answer: one weight per completion."""
    return []


# %% tags=["nbval-check-output"]
CASES = [(([2, 8], "grpo"), [0.25, 0.06]), (([2, 8], "dapo"), [0.1, 0.1])]
HINTS = [([0.5, 0.12], "There are two completions in the batch.")]
print(check_exercise("Exercise 3", token_weights, CASES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a token falls silent beyond the edge on the side of its advantage. With the advantage 0 it never learns.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def learns_solution(ratio: float, advantage: float) -> bool:
    if advantage > 0:
        return ratio < 1.2
    return advantage < 0 and ratio > 0.8


print(check_exercise("Exercise 1, solution", learns_solution, TOKENS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: everything up to the first EOS counts, and so does that EOS.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def mask_solution(ids: list[int], eos: int) -> list[int]:
    return [int(eos not in ids[:place]) for place in range(len(ids))]


print(check_exercise("Exercise 2, solution", mask_solution, ROWS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 3: only in `grpo` does a token of the longer completion weigh less, here a quarter.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def weights_solution(lengths: list[int], kind: str) -> list[float]:
    if kind == "grpo":
        return [1 / (len(lengths) * length) for length in lengths]
    return [1 / sum(lengths) for _ in lengths]


print(check_exercise("Exercise 3, solution", weights_solution, CASES))
