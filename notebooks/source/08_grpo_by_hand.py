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
# You need [lesson 03](03_grpo_lora.ipynb), which trains with these formulas but does not show them. From PyTorch, you
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
# GRPO samples a group of completions for one prompt and scores each completion.

# %%
diagram("advantages")

# %% [markdown]
# The *advantage* says how much better a completion is than its group. It is the reward minus the mean of the group,
# divided by the standard deviation of the group (Shao et al. 2024, arXiv 2402.03300):
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + 0.0001}$$
#
# As in TRL, `torch.std` divides by the size of the group minus 1.

# %% tags=["formulas"]
import torch


def advantages_of(rewards, size):
    """One advantage per completion; the groups follow each other."""
    groups = rewards.view(-1, size)
    differences = groups - groups.mean(dim=1, keepdim=True)
    return (differences / (groups.std(dim=1, keepdim=True) + 1e-4)).view(-1)


# %% tags=["nbval-check-output"]
pictured = [3.0, 1.0, 0.75, 3.0, 0.0, 1.0, 0.5, 3.0] + 8 * [1.0]
for group in advantages_of(torch.tensor(pictured), size=8).view(2, 8):
    print(" ".join(f"{advantage:5.2f}" for advantage in group.tolist()))

# %% [markdown]
# These are the two groups of the picture. The mean reward of the first group is 1.53, so a reward of 3.00 becomes an
# advantage of 1.17, and 0.75 becomes -0.62. The second group is tied. The 0.0001 prevents a division of 0 by 0.
#
# **An advantage compares a completion with its own group, so a tied group teaches nothing.**
#
# ## 3. Sample and score a group
#
# The policy is the tiny model with a LoRA adapter, as in lesson 03, but its base keeps 32 bits. The optimizer is Adam
# with the learning rate 0.002.

# %%
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import load_rows, math_rewards, model_path

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
train_rows = load_rows("addition", "train", 2000, SEED)


def new_policy():
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(SEED)  # PEFT draws the adapter's first weights
    sizes = dict(r=16, lora_alpha=32, target_modules="all-linear")
    policy = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **sizes))
    return policy, torch.optim.Adam(policy.parameters(), lr=2e-3)


# %% [markdown]
# Completions differ in length, and a tensor has rows of one length. So `generate` fills short rows with *padding*,
# and a *mask* marks the real tokens with 1. A completion ends with its end-of-sequence token (EOS). The mask includes
# the EOS, because the policy must also learn to stop.


# %% tags=["formulas"]
def completion_mask(ids, eos):
    """1 for all tokens up to the first EOS, EOS included; then 0."""
    ends = (ids == eos).int()
    return (ends.cumsum(dim=1) - ends == 0).int()  # no EOS before it


# %% [markdown]
# `sample` calls `generate` for `size` copies of each prompt. A sampled completion is also called a *rollout*. Prompts
# are padded on the left, so that each prompt ends where its completion begins. The batch has the names that TRL uses.


# %% tags=["formulas"]
def sample(model, tokenizer, prompts, size, longest=32):
    """`size` completions per prompt, as tensors and as texts."""
    chats = [prompt for prompt in prompts for _ in range(size)]
    how = dict(return_dict=True, return_tensors="pt", padding=True)
    how["add_generation_prompt"] = True  # the assistant's turn begins
    asked = tokenizer.apply_chat_template(chats, **how)
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
# advantage 0.98. Two leave out the reasoning tags and get 0.27. Three have no tags at all, so their reward is 0 and
# their advantage is -1.15, although 108 is correct.
#
# **One reward per completion becomes one advantage for all of its tokens.**
#
# ## 4. Compute log-probabilities
#
# The loss needs the *log-probability* of every sampled token, the logarithm of the probability that the policy gives
# to token $o_t$ after the question $q$ and the earlier tokens:
#
# $$\log \pi(o_t \mid q, o_{\lt t}) = \mathrm{log\,softmax}(\mathrm{logits}_{t-1})[o_t]$$
#
# The *logits* at one position are scores of every possible **next** token. So the logits for the first token of a
# completion are at the last token of the prompt, and `token_logps` shifts by one. `gather` selects the sampled token.


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
# writes `is` with 0.79 and `=` with 0.21. Most other tokens are nearly certain. With a wrong shift the loss would still
# be a number, but these tokens would look improbable.
#
# **The probabilities of sampled tokens show at once whether the shift is correct.**
#
# ## 5. Clip the ratio
#
# Compare each token's probability now with its probability when it was sampled. This is the *ratio*:
#
# $$\rho_t = \frac{\pi_{\mathrm{now}}(o_t)}{\pi_{\mathrm{old}}(o_t)}
# = \exp(\log \pi_{\mathrm{now}} - \log \pi_{\mathrm{old}})$$
#
# A batch is *on-policy* while the policy is still the one that sampled it. Every ratio is then 1. After an update the
# batch is *off-policy*, and the ratios move. GRPO wants a large ratio times advantage, and optimizers minimize, so the
# loss has a minus sign. *Clipping* limits the ratio to `1 - epsilon` and `1 + epsilon`, and the smaller of both products
# counts. *Epsilon* is 0.2 by default.
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
# The *gradient* says how the loss changes with each log-probability. A token with the gradient 0 does not learn.


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
# With the advantage +1, only the ratio 1.50 has the gradient 0, because that token has already become much more likely.
# The ratio 0.50 keeps its gradient, because that token moved the wrong way. With the advantage -1, only the ratio 0.50
# has the gradient 0.
#
# The loss of the batch is the mean over its real tokens ($m$ is the mask):
#
# $$L = \frac{\sum_{i,t} m_{i,t}\, \ell_{i,t}}{\sum_{i,t} m_{i,t}}$$
#
# TRL calls it `loss_type="dapo"`.


# %% tags=["formulas"]
def grpo_loss(logps, batch, low=0.2, high=0.2):
    old, mask = batch["old_per_token_logps"], batch["completion_mask"]
    losses = clipped_loss(logps, old, batch["advantages"], low, high)
    return (losses * mask).sum() / mask.sum()


# %% [markdown]
# **Clipping silences a token only after it has moved far in the direction of its advantage.**
#
# ## 6. Write the training loop
#
# `update` makes one step of the optimizer. The first update from a batch stores its log-probabilities as the old ones.
# `clip_grad_norm_` shortens a gradient that is longer than 1.0, as TRL does.


# %% tags=["formulas"]
def update(model, optimizer, batch):
    logps = token_logps(model, batch)
    batch.setdefault("old_per_token_logps", logps.detach())
    loss = grpo_loss(logps, batch)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


# %% [markdown]
# `evaluate` calls `generate` for 200 held-out prompts. `fork_rng` keeps the random numbers of the training run as they
# are.

# %%
from grpo_utils import compare, evaluate

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
# Strict accuracy is the share of answers that are correct and correctly formatted.

# %%
from grpo_utils.plots import show_reward_and_accuracy

show_reward_and_accuracy(means, evaluated)

# %% [markdown]
# The mean reward rose from 0.41 to 2.70, and strict accuracy on held-out prompts rose from 25.0% to 95.5%. `compare`
# compares each prompt with itself.

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
# A nearly correct formula also trains, so compare yours with a reference. On a fresh batch every ratio is 1, and a wrong
# clip would not show. So the next cell makes eight updates from one batch.

# %%
policy, optimizer = new_policy()
torch.manual_seed(SEED)
batch = collect(policy, train_rows[:8])
real, signs = batch["completion_mask"].bool(), batch["advantages"][:, None]
for number in range(1, 9):
    update(policy, optimizer, batch)
    moved = token_logps(policy, batch) - batch["old_per_token_logps"]
    silent = (moved.exp() < 0.8) & (signs < 0)
    silent |= (moved.exp() > 1.2) & (signs > 0)
    print(f"after update {number}: {silent[real].float().mean():.1%} clipped")

# %% [markdown]
# After eight updates, 13.2% of the tokens are clipped. TRL calls the number of updates `num_iterations`. With its
# default of 1 every ratio is 1, and `epsilon` has no effect.
#
# Now give TRL's trainer the same policy and settings.

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
)
trainer = GRPOTrainer(
    policy, rewards, config, train_rows, processing_class=tokenizer
)

# %% [markdown]
# A trainer samples its own completions, but here TRL has to take ours. So the next cell calls the method
# `_compute_loss`. Its underscore says that the method is **private**, so a new release may change it.

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
# Both losses are -0.172617. The largest gradient is 4.8e-03 and the difference 9e-09, which is rounding. With the upper
# epsilon at 0.28, the gradient differs by 4e-04, so the comparison does find an error. The course's tests also compare
# the weights after two steps of `trainer.train()`.
#
# **Compare loss and gradient off-policy, and break a formula once to see the comparison fail.**
#
# ## 9. Appendix: know the variants
#
# Each variant changes one line. `ref` holds the log-probabilities of a frozen *reference model*.
#
# | name | what changes | in TRL |
# |---|---|---|
# | GRPO | `((losses * mask).sum(1) / mask.sum(1)).mean()` | `loss_type="grpo"` |
# | BNPO | `(losses * mask).sum() / mask.sum()` | `loss_type="bnpo"` |
# | Dr. GRPO | `(losses * mask).sum() / (len(mask) * max_completion_length)` | `loss_type="dr_grpo", scale_rewards="none"` |
# | CISPO | `losses = -ratio.clamp(max=5.0).detach() * advantages * logps` | `loss_type="cispo", epsilon_high=5.0` |
# | KL penalty | `losses + 0.04 * ratio * (torch.exp(ref - logps) - (ref - logps) - 1)` | `beta=0.04` |
#
# - **GRPO** takes the mean of each completion first. A token of a long completion then weighs less, so a long wrong
#   answer is punished less per token.
# - **BNPO** equals this lesson's loss (DAPO, arXiv 2503.14476) until gradient accumulation splits a batch. Then BNPO
#   takes the mean of each part, and DAPO divides each part by all tokens of the batch.
# - **Dr. GRPO** (arXiv 2503.20783) divides by a constant, and its advantages leave out the standard deviation.
# - **CISPO** (arXiv 2506.13585) uses the limited ratio as a constant weight, so every token keeps a gradient.
# - The **KL penalty** pulls the policy back to the reference model.
#
# Ratio and clip come from *PPO* (arXiv 1707.06347). PPO also trains a *value model*, a second network that predicts the
# reward. GRPO uses the mean of the group instead.
#
# **The variants differ in what one token weighs and in how far it may move.**
#
# ## 10. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | sampled tokens look improbable | do the logits come one position earlier? | shift by one; pad prompts on the left |
# | completions do not stop | does the mask include the EOS? | keep the first EOS in the mask |
# | all advantages are 0 | do the rewards of a group tie? | choose easier prompts or a finer reward |
# | `epsilon` has no effect | is `num_iterations` 1? | make several updates per batch |
# | loss differs from TRL's | is the batch off-policy? | compare ratio, clip, mask and mean, one by one |
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
# **Try all three before you unfold the solutions below.**


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
