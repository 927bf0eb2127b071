# %% [markdown]
# # 08 · GRPO by hand
#
# You will write GRPO in plain PyTorch, and its loss will equal TRL's in all six decimals: {{theirs:.6f}}.
#
# **Guess first:** before training, this policy starts its answer to one question with `<reasoning>` with a probability of
# {{choices['<reasoning>'][0]:.2f}}. It answers the question eight times, and you make one update. How high is that probability now?
#
# You will be able to write GRPO yourself, train a model with it, and check your loss and gradient against TRL's
# `GRPOTrainer`.
#
# Read [lesson 03](03_grpo_lora.ipynb) first, and know PyTorch's tensors and `backward()`.
#
# Your time: 60–75 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.3 GB of memory.
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
STEPS: int = 0  # optimizer steps of the loop; 0 means 25
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import diagram, setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 25)

# %% [markdown]
# ## 2. Turn rewards into advantages
#
# GRPO samples a group of completions for one prompt, and scores each:

# %%
diagram("advantages")

# %% [markdown]
# The *advantage* says how much better a completion is than its group. It is the reward minus the group's mean, divided by the
# group's standard deviation (Shao et al. 2024, arXiv 2402.03300):
#
# $$A_i = \frac{r_i - \mathrm{mean}(r)}{\mathrm{std}(r) + 0.0001}$$
#
# As in TRL, `torch.std` divides the squared differences by the group size minus 1.

# %% tags=["formulas"]
import torch


def advantages_of(rewards, size):
    """One advantage per completion; groups are consecutive."""
    groups = rewards.view(-1, size)
    differences = groups - groups.mean(dim=1, keepdim=True)
    return (differences / (groups.std(dim=1, keepdim=True) + 1e-4)).view(-1)


# %% tags=["nbval-check-output"]
pictured = [3.0, 1.0, 0.25, 3.0, 0.0, 1.0, 0.25, 3.0] + 8 * [1.0]
for group in advantages_of(torch.tensor(pictured), size=8).view(2, 8):
    print(" ".join(f"{advantage:5.2f}" for advantage in group.tolist()))

# %% [markdown]
# These are the two groups in the figure. The second group is tied, so its standard deviation is 0. The 0.0001 avoids a
# division by zero.
#
# **An advantage compares a completion with its own group, so a tied group teaches nothing.**

# %% [markdown]
# ## 3. Sample and score a group
#
# The policy is the tiny model with a LoRA adapter, as in lesson 03, but its base stays in fp32.

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
# `generate` fills short rows with *padding*, so a *mask* marks the real tokens with 1. It includes the end-of-sequence token
# (EOS), because the policy must also learn to stop.


# %% tags=["formulas"]
def completion_mask(ids, eos):
    """1 up to the first EOS, EOS included, and 0 after it."""
    ends = (ids == eos).int()
    return (ends.cumsum(dim=1) - ends == 0).int()  # no EOS before it


# %% [markdown]
# `sample` calls `generate` for `size` copies of each prompt. Prompts are padded on the left, so that each ends where its
# completion begins. The batch uses TRL's key names, so section 8 can pass it to TRL.


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
# `collect` builds one training batch: eight completions per row, lesson 03's rewards, and the advantages.


# %%
rewards, weights = math_rewards()


def collect(model, rows):
    batch, texts = sample(model, tokenizer, rows["prompt"], size=8)
    golds = [answer for answer in rows["answer"] for _ in range(8)]
    scores = [reward(texts, answer=golds) for reward in rewards]
    batch["rewards"] = torch.tensor(scores).T @ torch.tensor(weights)
    batch["texts"] = texts
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
# The prompt asks "{{train_rows['prompt'][0][-1]['content']}}". All eight sums are correct, but only answers in the full format
# get the whole reward. All tokens of a completion share its advantage, because the reward scores the whole text.

# %% [markdown]
# ## 4. Find the probability of every token, and move it
#
# The loss needs the *log-probability* of every sampled token `o_t`. It is the logarithm of the token's probability
# after the prompt `q` and the earlier tokens:
#
# $$\log \pi(o_t \mid q, o_{\lt t}) = \mathrm{logsoftmax}(\mathrm{logits}_{t-1})[o_t]$$
#
# The *logits* at one position score every possible **next** token, and softmax turns them into probabilities. So the logits
# for the first token of a completion are at the last token of the prompt, and `token_logps` shifts by one. `gather` selects
# the sampled token. The second cell prints the first eight tokens of three completions, with their probabilities.


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
    words = tokenizer.batch_decode(batch["completion_ids"][place, :8, None])
    pairs = zip(words, probabilities[place].tolist())
    print("  ".join(f"{word!r} {p:.2f}" for word, p in pairs))

# %% [markdown]
# Most tokens are nearly certain, so the shift is right: a wrong one raises no error, but makes these tokens look improbable.
# The first token is a real choice: `9` has a probability of {{probabilities[0, 0]:.2f}}, and `<reasoning>` of
# {{probabilities[1, 0]:.2f}}.

# %% [markdown]
# Make one update from this batch, and compare the uncertain tokens before and after. `uncertain_tokens` finds those with a
# probability below 0.9, each with the text that leads to it.


# %%
def uncertain_tokens(batch, probabilities):
    """Where each uncertain token was first sampled, by the text up to it."""
    found = {}
    for row, ids in enumerate(batch["completion_ids"]):
        for place in range(int(batch["completion_mask"][row].sum())):
            if probabilities[row, place] < 0.9:
                text = tokenizer.decode(ids[: place + 1])
                found.setdefault(text, (row, place))
    return found


# %% [markdown]
# The simplest loss multiplies each log-probability by its advantage, and takes the mean over all real tokens. It has a minus
# sign, because an optimizer minimizes. As in TRL, `clip_grad_norm_` scales the gradient down if its norm is above 1.0.

# %%
from grpo_utils.plots import show_before_and_after

places, mask = uncertain_tokens(batch, probabilities), batch["completion_mask"]
pushes = batch["advantages"].unsqueeze(1) * token_logps(policy, batch)
loss = -(pushes * mask).sum() / mask.sum()
optimizer.zero_grad()
loss.backward()
torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
optimizer.step()
with torch.no_grad():
    moved = token_logps(policy, batch).exp()
choices = {
    text: (probabilities[place].item(), moved[place].item())
    for text, place in places.items()
}
show_before_and_after(choices, "Probability of the last token of each text")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# `<reasoning>` rises from {{choices['<reasoning>'][0]:.2f}} to {{choices['<reasoning>'][1]:.2f}}, and the `5` after it, with
# which the column style starts, from {{choices['<reasoning>5'][0]:.2f}} to {{choices['<reasoning>5'][1]:.2f}}. All three
# completions with these tokens earned the full reward. The two probabilities multiply, so an answer in columns is now
# {{choices['<reasoning>'][1] * choices['<reasoning>5'][1] / choices['<reasoning>'][0] / choices['<reasoning>5'][0]:.1f}} times as likely as before.
#
# `9`, the start of all other answers, falls from {{choices['9'][0]:.2f}} to {{choices['9'][1]:.2f}}, although two of those
# five completions have a positive advantage: the three negative ones weigh more.
# </details>
#
# This is all that GRPO does. The rest is repetition, and one safeguard.

# %% [markdown]
# ## 5. Limit how far a token moves
#
# Sampling is slow, so you can make several updates from one batch. But from the second update on, the policy is no longer the
# one that sampled. The *ratio* divides the probability of token `t` now by its probability when it was sampled:
#
# $$\rho_t = \frac{\pi_{\mathrm{now}}(o_t)}{\pi_{\mathrm{old}}(o_t)} = \exp(\log \pi_{\mathrm{now}}(o_t) - \log \pi_{\mathrm{old}}(o_t))$$
#
# In the first update, the batch is *on-policy*: every ratio is 1, and the gradient is that of section 4. Afterward, the batch is
# *off-policy*, and the ratios move away from 1. *Clipping* keeps a ratio within *epsilon* of 1, by default 0.2. GRPO
# multiplies both the ratio and the clipped ratio by the advantage `A`, and takes the smaller product:
#
# $$\ell_t = -\min(\rho_t A, \mathrm{clip}(\rho_t, 1 - \epsilon, 1 + \epsilon) A)$$


# %% tags=["formulas"]
def clipped_loss(logps, old, advantages, low=0.2, high=0.2):
    """The loss of each token; one row per completion."""
    ratio = torch.exp(logps - old)
    clipped = ratio.clamp(1 - low, 1 + high)
    advantages = advantages.unsqueeze(1)  # the same for a whole row
    return -torch.min(ratio * advantages, clipped * advantages)


# %% [markdown]
# For five ratios, print the loss and its *gradient*: how the loss changes with the token's log-probability. A token whose
# gradient is 0 teaches nothing.


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
# With an advantage of +1, only the ratio 1.50 has a gradient of 0, because that token has already become much more likely.
# With an advantage of -1, only 0.50 has. So clipping stops a token only after it has moved too far in the direction of its
# advantage.
#
# The loss of the batch is the mean over all real tokens `t` of all completions `i`, where `m` is the mask. TRL calls
# this loss `"dapo"`.
#
# $$L = \frac{\sum_{i,t} m_{i,t} \ell_{i,t}}{\sum_{i,t} m_{i,t}}$$


# %% tags=["formulas"]
def grpo_loss(logps, batch, low=0.2, high=0.2):
    """The mean loss of all real tokens."""
    old, mask = batch["old_per_token_logps"], batch["completion_mask"]
    losses = clipped_loss(logps, old, batch["advantages"], low, high)
    return (losses * mask).sum() / mask.sum()


# %% [markdown]
# ## 6. Write the training loop
#
# `update` makes one step, as in section 4, with the clipped loss. The first update from a batch stores the current
# log-probabilities as the old ones.


# %% tags=["formulas"]
def update(model, optimizer, batch):
    """One step of the optimizer."""
    logps = token_logps(model, batch)
    batch.setdefault("old_per_token_logps", logps.detach())
    loss = grpo_loss(logps, batch)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


# %% [markdown]
# This is the whole training loop, from a fresh policy. Every five steps, `evaluate` generates answers to 200 held-out
# prompts.

# %%
from grpo_utils import evaluate

test_rows = load_rows("addition", "test", 200, SEED)


def held_out():
    with torch.random.fork_rng(devices=[]):  # training goes on unchanged
        decoding = dict(max_new_tokens=32, seed=SEED)
        return evaluate(policy, tokenizer, test_rows, **decoding)


policy, optimizer = new_policy()
evaluated, means = {0: held_out()}, []
torch.manual_seed(SEED)
for step in range(1, run.steps + 1):
    start = 8 * (step - 1) % len(train_rows)
    batch = collect(policy, train_rows[start : start + 8])
    update(policy, optimizer, batch)
    means.append(batch["rewards"].mean().item())
    if step % 5 == 0 or step == run.steps:
        evaluated[step] = held_out()
        print(f"step {step:2}  strict accuracy {evaluated[step].accuracy}")

# %% [markdown]
# **GRPO is a short loop: sample, score, compare within the group, update.**

# %% [markdown]
# ## 7. See that the policy learns
#
# Plot the run. Then `compare` the first evaluation with the last, prompt by prompt, and the last two with each other.

# %%
from grpo_utils import compare
from grpo_utils.plots import show_reward_and_accuracy

show_reward_and_accuracy(means, evaluated)
gain = compare(evaluated[0], evaluated[run.steps])
print(gain)
*_, earlier, last = evaluated.values()
late = compare(earlier, last)
print("\nthe last two evaluations:", late.sentence, sep="\n")

# %% [markdown]
# The loop learns without a single line of TRL. Held-out strict accuracy rose from
# {{gain.before.accuracy.value:.1%}} to {{gain.after.accuracy.value:.1%}}. Most of this gain is the format, which
# [lesson 06](06_evaluation.ipynb) separates from the arithmetic. The last five steps show no further improvement.

# %% [markdown]
# ## 8. Compare with TRL
#
# A slightly wrong formula still trains a model, so it can stay wrong for years. Compare yours with a reference, on a batch that
# is off-policy: on a fresh one, every ratio is 1, and a wrong clip would not show. The next cell makes eight updates from one
# batch.

# %%
policy, optimizer = new_policy()
torch.manual_seed(SEED)
batch = collect(policy, train_rows[:8])
real, signs = batch["completion_mask"].bool(), batch["advantages"][:, None]
for number in range(1, 9):
    update(policy, optimizer, batch)
    moved = token_logps(policy, batch) - batch["old_per_token_logps"]
    clipped = (moved.exp() < 0.8) & (signs < 0)
    clipped |= (moved.exp() > 1.2) & (signs > 0)
    print(f"clipped after update {number}: {clipped[real].float().mean():.1%}")

# %% [markdown]
# After eight updates, {{clipped[real].float().mean():.1%}} of the tokens are clipped. TRL calls the number of updates per batch
# `num_iterations`. With its default, 1, every ratio is 1, and `epsilon` has no effect. Now create TRL's trainer with the same
# policy and settings.

# %%
import tempfile

from trl import GRPOConfig, GRPOTrainer

config = GRPOConfig(
    output_dir=tempfile.mkdtemp(),
    loss_type="dapo",  # the mean over all tokens of the batch
    epsilon=0.2,  # clip below 0.8 and above 1.2
    beta=0.0,  # without a reference model
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions in a batch
    max_completion_length=32,  # in tokens
    reward_weights=weights,
    use_cpu=True,
    bf16=False,  # compute in fp32
    gradient_checkpointing=False,
)
trainer = GRPOTrainer(
    policy, rewards, config, train_rows, processing_class=tokenizer
)

# %% [markdown]
# A trainer samples its own completions, but here TRL has to use ours. So the next cell calls its private method
# `_compute_loss`, which a new release can change. The last comparison uses a wrong upper epsilon.

# %%
trainer.model.train()
trainer.current_gradient_accumulation_steps = 1  # one batch, not split
batch["num_items_in_batch"] = batch["completion_mask"].sum()


def gradient_of(loss):
    policy.zero_grad()
    loss.backward()
    trained = [w.grad for w in policy.parameters() if w.requires_grad]
    return torch.cat([gradient.flatten() for gradient in trained])


theirs = trainer._compute_loss(policy, batch)
reference = gradient_of(theirs)
print(f"TRL's loss:             {theirs:.6f}")
print(f"largest gradient:       {reference.abs().max():.1e}")


def ours_off_by(high):
    loss = grpo_loss(token_logps(policy, batch), batch, high=high)
    return loss, (gradient_of(loss) - reference).abs().max()


ours, rounding = ours_off_by(high=0.2)
print(f"loss by hand:           {ours:.6f}, gradient off by {rounding:.0e}")
wrong, error = ours_off_by(high=0.28)
print(f"loss with epsilon 0.28: {wrong:.6f}, gradient off by {error:.0e}")

# %% [markdown]
# Your loss equals TRL's in all printed digits, and the gradients differ only by rounding, at most {{rounding:.0e}}. With an upper
# epsilon of 0.28, the gradient is off by {{error:.0e}}, so this comparison detects a wrong formula.
#
# **Compare loss and gradient off-policy. Then break the formula on purpose, to check that the comparison fails.**

# %% [markdown]
# ## 9. Appendix: know the variants
#
# Dr. GRPO, CISPO and others each change one line of this loss.
#
# <details><summary>Five variants, with their code and TRL's settings</summary>
#
# Our tests compare every row with TRL. `ref` holds the log-probabilities of the frozen reference model ([lesson
# 04](04_reading_a_run.ipynb)).
#
# | name | what changes | in TRL |
# |---|---|---|
# | GRPO | `((losses * mask).sum(1) / mask.sum(1)).mean()` | `loss_type="grpo"` |
# | BNPO | `(losses * mask).sum() / mask.sum()` | `loss_type="bnpo"` |
# | Dr. GRPO | `(losses * mask).sum() / (len(mask) * max_completion_length)` | `loss_type="dr_grpo", scale_rewards="none"` |
# | CISPO | `losses = -ratio.clamp(max=5.0).detach() * advantages * logps` | `loss_type="cispo", epsilon_high=5.0` |
# | KL penalty | `losses + 0.04 * ratio * (torch.exp(ref - logps) - (ref - logps) - 1)` | `beta=0.04` |
#
# - GRPO averages the tokens of each completion first, so a long incorrect answer is punished less per token.
# - BNPO equals this lesson's loss (DAPO, arXiv 2503.14476) unless gradient accumulation splits a batch: it takes the mean of
#   each part, and DAPO divides by the tokens of the whole batch.
# - Dr. GRPO (arXiv 2503.20783) divides by a constant and leaves the standard deviation out of its advantages.
# - CISPO (arXiv 2506.13585) uses the clipped ratio as a constant weight, so every token keeps a gradient.
# - The KL penalty pulls the policy back to the reference model. The factor `ratio` makes its gradient unbiased.
#
# Ratio and clipping come from *PPO* (arXiv 1707.06347), which trains a second network, the *value model*, to predict the
# reward. GRPO uses the mean of the group instead.
# </details>

# %% [markdown]
# ## 10. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | improbable sampled tokens | Do the logits come from one position earlier? | Shift by one, and pad prompts on the left. |
# | completions that do not stop | Does the mask include the EOS? | Keep the first EOS in the mask. |
# | no effect of `epsilon` | Is `num_iterations` 1? | Make several updates per batch. |
# | a loss that differs from TRL's | Is the batch off-policy? | Compare ratio, clip, mask and mean one by one. |

# %% [markdown]
# ## 11. Exercises
#
# **Exercise 1.** Write `learns(ratio, advantage)`, which returns whether a token's clipped loss with an epsilon of
# 0.2 has a nonzero gradient.


# %%
def learns(ratio: float, advantage: float) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

TOKENS = [((1.3, 1.0), False), ((0.7, 1.0), True), ((0.7, -1.0), False)]
TOKENS += [((1.3, -1.0), True), ((1.1, 2.0), True), ((1.0, 0.0), False)]
TOKENS += [((0.9, -1.0), True)]
ZERO = "That gradient is 0. Is the token clipped, or is its advantage 0?"
NOT_ZERO = "That gradient is not 0. Which of the two products is smaller?"
HINTS = [(True, ZERO), (False, NOT_ZERO)]
print(check_exercise("Exercise 1", learns, TOKENS, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Do not divide by the standard deviation. Write `without_std(rewards, size)`,
# which returns the reward minus the mean of its group, as in Dr. GRPO. Then fill in `predicted`: how well does the loop of
# section 6 learn without the division? (The prediction is not graded.) The check trains with your advantages, and compares.
#
# Try both before you unfold the solutions. Next, read `_compute_loss` in TRL's `grpo_trainer.py`.


# %%
def train_with(formula):
    """Held-out answers after the loop of section 6, with other advantages."""
    policy, optimizer = new_policy()
    torch.manual_seed(SEED)
    for step in range(run.steps):
        start = 8 * step % len(train_rows)
        batch = collect(policy, train_rows[start : start + 8])
        batch["advantages"] = formula(batch["rewards"], 8)
        update(policy, optimizer, batch)
    return evaluate(policy, tokenizer, test_rows, max_new_tokens=32, seed=SEED)


# %%
predicted = ""  # "worse", "the same" or "better"


def without_std(rewards, size):
    """Your answer: one advantage per completion."""


# %% tags=["nbval-check-output"]
def trained() -> str:
    """Check the formula on the group of section 2, then train with it."""
    advantages = without_std(torch.tensor(pictured), 8) if predicted else None
    if advantages is None:
        return "no formula" if predicted else ""
    first = [round(float(advantage), 2) for advantage in advantages[:3]]
    if first != [1.56, -0.44, -1.19]:
        return "divided" if first == [1.16, -0.33, -0.89] else "other"
    result = compare(evaluated[run.steps], train_with(without_std))
    print(f"You predicted: {predicted}.")
    print(f"with std: {result.before.accuracy}")
    print(f"without:  {result.after.accuracy}")
    return "none"


CLUES = [("no formula", "Return the advantages from without_std.")]
CLUES += [("divided", "You still divide by the standard deviation.")]
CLUES += [("other", "Subtract from each reward the mean of its group.")]
print(check_exercise("Exercise 2", trained, [((), "none")], CLUES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a token past the limit in the direction of its advantage has a gradient of 0. With an advantage of 0,
# every token does.
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
# Exercise 2: the same, or a little better; one run cannot tell these apart. Within a group, the standard deviation only
# rescales the advantages, and Adam rescales the gradient in any case. Only the weight of whole groups changes: without the
# division, a group whose rewards hardly differ weighs less.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
predicted = "the same"


def without_std(rewards, size):
    groups = rewards.view(-1, size)
    return (groups - groups.mean(dim=1, keepdim=True)).view(-1)


print(check_exercise("Exercise 2, solution", trained, [((), "none")]))
