# %% [markdown]
# # 11 · Thinking: tags, templates and limits
#
# {{sum(with_tag):.0f}} of 200 completions have the right form. TRL's format reward pays 0 for every one.
#
# **Guess first:** the completions are fine, and so is the reward's code. Which part of a thought does the reward not see?
#
# The same question returns at the other end of a completion, where a limit cuts it off. You will be able to write a reward
# that accepts every kind of thought that TRL passes to it, and choose a limit that leaves room for the answer.
#
# You need [lesson 03](03_grpo_lora.ipynb).
#
# Your time: 55–65 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.1 GB of memory.
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
STEPS: int = 0  # steps of each training run; 0: the default, 20
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 20)

# %% [markdown]
# ## 2. Find out why the format reward stays 0
#
# A *thinking model* writes a *thought* before its answer, usually between `<think>` and `</think>`. Your tiny model uses
# `<reasoning>` and `</reasoning>`, so `thinking_tokenizer` renames these two tokens. (A real thinking model does not
# need this.) The rows are lesson 03's addition problems, with the new tags in the system prompt.

# %% tags=["nbval-check-output"]
from datasets import Dataset
from grpo_utils import load_rows
from grpo_utils.thinking import thinking_tokenizer

tokenizer = thinking_tokenizer(run.path)


def rows_with_think_tags(split: str, count: int) -> Dataset:
    rows = load_rows("addition", split, count, SEED).to_list()
    for row in rows:
        system = row["prompt"][0]
        system["content"] = system["content"].replace("reasoning>", "think>")
    return Dataset.from_list(rows)


train_rows = rows_with_think_tags("train", 2000)
test_rows = rows_with_think_tags("test", 200)  # never trained on
print(test_rows[0]["prompt"][0]["content"])

# %% [markdown]
# A *chat template* turns messages into the text that the model reads. Those of many thinking models end this text with
# `<think>`, so that every completion begins with a thought. Ours now does so, too:

# %% tags=["nbval-check-output"]
CHAT = [{"role": "user", "content": "What is 15 + 27?"}]
tokenizer.chat_template += "{% if add_generation_prompt %}<think>{% endif %}"
text = tokenizer.apply_chat_template(
    CHAT, tokenize=False, add_generation_prompt=True
)
print(repr(text))

# %% [markdown]
# The untrained model completes the held-out prompts:

# %%
import torch
from grpo_utils import generate
from transformers import AutoModelForCausalLM

base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)


def complete(policy) -> list[str]:
    how = dict(max_new_tokens=64, temperature=1.0, seed=SEED)
    return generate(policy, tokenizer, list(test_rows["prompt"]), **how)


untrained = complete(base)
print(*untrained[:6], sep="\n")

# %% [markdown]
# Some completions close the thought and then answer. Others never close it. TRL's `think_format_reward` should give
# the first kind 1 and the second kind 0:

# %% tags=["nbval-check-output"]
from trl.rewards import think_format_reward


def as_chat(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


sampled = think_format_reward([as_chat(text) for text in untrained])
with_tag = think_format_reward([as_chat("<think>" + t) for t in untrained])
print(f"mean score of what was sampled:        {sum(sampled) / 200:.2f}")
print(f"mean score with <think> put in front:  {sum(with_tag) / 200:.2f}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The reward does not see the first tag. It is *prefilled*: the template wrote it into the prompt, and a reward gets only
# the sampled tokens. TRL's pattern starts with `^<think>`, so {{sum(with_tag):.0f}} well-formed completions score 0. A user
# [reported this](https://github.com/huggingface/trl/issues/6966) in 2026: the model did nothing wrong, and was paid
# nothing for it.
# </details>

# %% [markdown]
# Before you train, the [preflight](../grpo_check/docs/checks.md#prefilled-thinking) compares the end of the prompt with
# your rewards:

# %% tags=["nbval-check-output"]
from grpo_check import preflight
from trl import GRPOConfig

report = preflight(
    GRPOConfig("unused", use_cpu=True, bf16=False),
    tokenizer=tokenizer,
    train=train_rows.select(range(64)),
    rewards=[think_format_reward],
    backend="transformers",
)
print(*[f for f in report.findings if f.code == "prefilled_think"])

# %% [markdown]
# **If a format reward starts at exactly 0, look at the end of the prompt before you blame the model.**

# %% [markdown]
# ## 3. Write a reward that accepts every shape
#
# Thoughts reach a reward in three shapes. You have seen two: with both tags, and with the closing tag alone. In the third,
# TRL has already separated the thought from the answer, as it does for known models when you train with `tools`. TRL's
# `response_template` for Qwen3 shows this shape. `prefix` is what the prompt already contains of the model's turn, here
# nothing.

# %% tags=["nbval-check-output"]
from trl.chat_template_utils import qwen3_template

WHOLE = "<think>15 + 27 = 42</think><answer>42</answer>"
parser = thinking_tokenizer(run.path)
parser.response_template = qwen3_template
parsed = parser.parse_response(WHOLE, prefix="")
print(parsed)

# %% [markdown]
# The thought is in `reasoning_content`, and `content` has no thinking tag. For the other two shapes, `split_thinking` splits a
# text at `</think>`, whether or not it starts with `<think>`. If the thought is never closed, it returns `None`:

# %% tags=["nbval-check-output"]
from grpo_utils.rewards import AnswerReward, split_thinking

print("whole:", split_thinking(WHOLE))
print("cut off:", split_thinking(WHOLE[:19]))

# %% [markdown]
# `split_message` reads all three shapes, and `tolerant_reward` pays a correct answer only after a thought. `AnswerReward`
# reads what is between the `<answer>` tags. If your model answers without them, use `AnswerReward(extract=extract_all)`.


# %% tags=["nbval-check-output"]
def split_message(message: dict) -> tuple[str, str] | None:
    text = message.get("content") or ""
    if message.get("reasoning_content"):  # put TRL's two parts together
        text = f"{message['reasoning_content']}</think>{text}"
    return split_thinking(text)


score_answer = AnswerReward()


def tolerant_reward(completions, answer, **kwargs) -> list[float]:
    parts = [split_message(completion[-1]) for completion in completions]
    return score_answer([p[1] if p else "" for p in parts], answer=answer)


# %% [markdown]
# Test the reward by hand. For comparison, `strict_reward` pays a correct answer only if TRL's `think_format_reward`
# accepts the format.


# %% tags=["nbval-check-output"]
def strict_reward(completions, answer, **kwargs) -> list[float]:
    correct = score_answer(completions, answer=answer)
    return [f * c for f, c in zip(think_format_reward(completions), correct)]


SHAPES = [as_chat(WHOLE), as_chat(WHOLE.removeprefix("<think>")), [parsed]]
SHAPES += [as_chat("15 + 27 = 42 <answer>42</answer>")]
SHAPES += [as_chat("</think><answer>42</answer>"), as_chat("42</think>")]
scores = strict_reward(SHAPES, ["42"] * 6), tolerant_reward(SHAPES, ["42"] * 6)
print("strict  tolerant")
for strict, tolerant, (message,) in zip(*scores, SHAPES):
    reasoning = message.get("reasoning_content", "")
    print(f"{strict:6}{tolerant:10}  {reasoning:13} {message['content']}")

# %% [markdown]
# The first three completions are correct, and the strict reward pays only the first. The last three must earn nothing:
# one never closes its thought, one has an empty thought, and one has no answer. A reward that reads the last number of a
# completion would pay for an unfinished thought, which a user never sees.
#
# **Test a reward on what TRL passes to it, in all three shapes.**

# %% [markdown]
# ## 4. Train with both rewards
#
# Two runs differ only in the reward. The strict run also logs the tolerant reward, with weight 0. Will completions get
# longer or shorter while the model learns?

# %%
import tempfile

from peft import LoraConfig
from trl import GRPOTrainer

LORA = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
SHARED = dict(
    output_dir=tempfile.mkdtemp(),
    max_steps=run.steps,
    learning_rate=2e-3,
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, not prompts
    max_completion_length=32,  # in tokens: thought and answer together
    **dict(optim="adamw_torch", use_cpu=True, bf16=False),  # for a tiny model
    **dict(gradient_checkpointing=False, save_strategy="no"),
    **dict(logging_steps=1, report_to="none", disable_tqdm=True),
    seed=SEED,
)

# %%
from grpo_utils import show_progress


def train(rewards: list, weights: list, **changed) -> tuple:
    torch.manual_seed(SEED)  # for the new adapter
    trainer = GRPOTrainer(
        model=run.path,
        peft_config=LORA,
        processing_class=tokenizer,
        args=GRPOConfig(**SHARED | changed, reward_weights=weights),
        train_dataset=train_rows,
        reward_funcs=rewards,
    )
    show_progress(trainer)
    trainer.train()
    return complete(trainer.model), trainer.state.log_history


logs, texts = {}, {"untrained": untrained}
texts["tolerant"], logs["tolerant"] = train([tolerant_reward], [1.0])
_, logs["strict"] = train([strict_reward, tolerant_reward], [1.0, 0.0])

# %%
from grpo_utils import logged, show_run_curves

TRUTH, LENGTH = "rewards/tolerant_reward/mean", "completions/mean_length"
show_run_curves(logs, [TRUTH, LENGTH])
paid = sum(step > 0 for step in logged(logs["strict"], "reward"))
tokens = logged(logs["tolerant"], LENGTH)
print(f"steps in which the strict reward paid anything: {paid} of {run.steps}")

# %% [markdown]
# The left panel shows the tolerant reward, which the strict run only logs. It clearly rises only in the tolerant run. The
# strict reward paid something in {{paid}} of the {{run.steps}} steps, where a completion opened a second thought. In all other
# steps, the policy had nothing to learn from. The right panel shows the mean length. What changed?

# %%
from grpo_utils import paired_change
from grpo_utils.evaluation.statistics import Rate

scores, digitwise, lengths = {}, {}, {}  # of each run


def tokens_of(text: str) -> int:  # with the end token
    return len(tokenizer(text, add_special_tokens=False)["input_ids"]) + 1


def print_rates() -> None:
    for name, completions in texts.items():
        right = tolerant_reward(map(as_chat, completions), test_rows["answer"])
        mean = sum(tokens_of(text) for text in completions) / len(right)
        print(f"{name:10}{mean:6.1f} tokens, correct: ", end="")
        print(Rate(int(sum(right)), len(right)))
        digits = [r for r, text in zip(right, completions) if "," in text]
        print(f"{len(digits):20} digit by digit, {sum(digits):.0f} correct")
        scores[name], digitwise[name], lengths[name] = right, digits, mean


print_rates()
gain = paired_change(scores["untrained"], scores["tolerant"])
print("change:", gain)
print("before and after:", untrained[4], texts["tolerant"][4], sep="\n")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Completions got longer, from {{tokens[0]:.0f}} to {{tokens[-1]:.0f}} tokens in training, because longer ones earn more. The
# last completion printed above adds digit by digit. So did {{len(digitwise['untrained'])}} completions of the untrained model, and
# {{sum(digitwise['untrained']):.0f}} of these earned the reward. Of its other {{200 - len(digitwise['untrained'])}}, only
# {{sum(scores['untrained']) - sum(digitwise['untrained']):.0f}} did. GRPO reinforced what was paid: the trained model adds digit by
# digit in {{len(digitwise['tolerant'])}} completions, and {{sum(scores['tolerant']):.0f}} of 200 are correct.
# </details>

# %% [markdown]
# ## 5. Choose a limit for thoughts
#
# The template decides where the reward starts to read. `max_completion_length` decides where it stops: thought, answer and
# end token together must fit. If the answer is cut off, `tolerant_reward` pays nothing.
#
# A limit of 18 tokens truncates {{sum(tokens_of(text) > 18 for text in untrained) / 200:.0%}} of the untrained model's completions.
# Guess: what could the model no longer learn with this limit? The next cell counts what each limit truncates, and how many
# tokens a correct answer needs if it adds digit by digit, with a carry (`6+8+1=15`) or without one.


# %%
import re


def over(limit: int, name: str) -> float:
    return sum(tokens_of(text) > limit for text in texts[name]) / 200


print(f"{'limit':6}" + "".join(f"{name:>12}" for name in texts))
for limit in range(16, 26, 2):
    shares = [over(limit, name) for name in texts]
    print(f"{limit:<6}" + "".join(f"{share:12.0%}" for share in shares))

right = [
    text for name in texts for text, r in zip(texts[name], scores[name]) if r
]
shortest = {"digit by digit": ",", "with a carry": r"\d\+\d\+1="}
for kind, pattern in shortest.items():
    of_kind = [text for text in right if re.search(pattern, text)]
    shortest[kind] = min(map(tokens_of, of_kind))
    print(f"shortest correct completion {kind}: {shortest[kind]} tokens")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# To carry. The shortest correct completions that add digit by digit have {{shortest['digit by digit']}} tokens, and with a
# carry {{shortest['with a carry']}}. The limit looks harmless because the untrained model rarely adds this way. After training
# with room, it would truncate {{over(18, 'tolerant'):.0%}} of the completions.
# </details>

# %% [markdown]
# Real thoughts grow much more. A user reported that the 256 tokens of TRL's quickstart truncated [97 to 99% of the
# completions](https://github.com/huggingface/trl/issues/5697). (TRL 1.14's default is 512.)
#
# **Sample with a generous limit, look at the lengths, and leave room for growth.**

# %% [markdown]
# ## 6. Punish, mask or warn
#
# If you cannot raise a limit that is too short, you have three ways to treat the completions that it truncates:
#
# - **Punish:** change nothing. `tolerant_reward` finds no answer in a truncated completion and pays 0, so the policy
#   learns to avoid it.
# - **Mask:** set `mask_truncated_completions=True`. TRL leaves the tokens of a truncated completion out of the loss,
#   so the policy does not learn to avoid it. The completion's reward still counts in its group's mean.
# - **Warn:** add a penalty that grows before the limit is reached. TRL has the one from the DAPO paper for *overlong*
#   completions:

# %% tags=["nbval-check-output"]
from trl.rewards import get_soft_overlong_punishment

overlong = get_soft_overlong_punishment(24, 6)
for count in (18, 20, 22, 24):
    print(f"{count} tokens: {overlong(completion_ids=[[0] * count])[0]:.2f}")

# %% [markdown]
# The penalty is a reward function. It is 0 up to 18 tokens and falls to -1 at 24. You try it in exercise 2.
#
# The next cell trains with the first two ways and a limit of 18. (The tolerant run had 32.) Which of the two will keep its
# longer thoughts?

# %%
TIGHT = dict(max_completion_length=18)
MASKED = TIGHT | dict(mask_truncated_completions=True)
for name, changed in {"punished": TIGHT, "masked": MASKED}.items():
    texts[name], logs[name] = train([tolerant_reward], [1.0], **changed)

# %%
del logs["strict"]
CLIPPED = "completions/clipped_ratio"
show_run_curves(logs, [TRUTH, CLIPPED])
print_rates()
PAIRS = (
    ("tolerant", "punished"),
    ("tolerant", "masked"),
    ("punished", "masked"),
)
changes = {}
for old, new in PAIRS:
    changes[old, new] = paired_change(scores[old], scores[new])
    print(f"{old} to {new}:", changes[old, new])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Masking keeps more long thoughts: {{len(digitwise['masked'])}} completions add digit by digit, compared with
# {{len(digitwise['punished'])}} under punishment. But a carry does not fit, so neither run can reinforce it. The share of
# correct answers is lower than in the tolerant run, by {{-changes['tolerant', 'masked'].estimate.value:.2f}} (masked) and
# {{-changes['tolerant', 'punished'].estimate.value:.2f}} (punished).
#
# The right panel shows how the two differ. Punished, truncated completions became rare: `clipped_ratio` fell from
# {{logged(logs['punished'], CLIPPED)[0]:.2f}} to {{logged(logs['punished'], CLIPPED)[-1]:.2f}}. Masked, it ended at
# {{logged(logs['masked'], CLIPPED)[-1]:.2f}}, because the loss does not push masked completions down.
# </details>

# %% [markdown]
# Raise the limit if you can. Masking does not push long thoughts down, but it cannot reinforce them either, so compare it
# with punishing over several seeds. The loss can change lengths, too: `loss_type="grpo"` favors short correct answers
# ([lesson 14](14_when_the_log_lies.ipynb)).
#
# <details><summary>Evidence</summary>
#
# All rates are from completions of up to 64 tokens, with one run of each kind. The two tight runs answered the same
# questions, so a paired test compares them ([lesson 06](06_evaluation.ipynb)): p =
# {{changes['punished', 'masked'].p_value:.3f}}. Another seed can reverse their order.
# </details>

# %% [markdown]
# ## 7. Decide whether your model should think
#
# A thought buys accuracy with tokens. The figure shows how much one small model bought, on 500 competition problems.

# %%
from grpo_utils import show_points

MEASURED = {  # mean tokens of a completion, % of answers correct
    "base model": (79, 15.2),
    "base model, 50 steps of GRPO": (586, 47.4),
    "thinking model": (1370, 48.2),
}
show_points(MEASURED, "mean tokens", "% correct", "Qwen3-0.6B on MATH-500")

# %% [markdown]
# The thinking model solves three times as many problems as the base model, and writes 17 times as many tokens. The best of
# eight checkpoints of GRPO brings the base model almost as far with less than half of the tokens. How far a better prompt
# brings it is not reported. [Thinking, on or
# off](../docs/gpu.md#thinking-on-or-off) helps you to decide.
#
# <details><summary>Evidence</summary>
#
# We did not measure these numbers. They are from Sebastian Raschka's [Reasoning from
# Scratch](https://github.com/rasbt/reasoning-from-scratch/blob/main/ch06/02_rlvr_grpo_scripts_intro/README.md). Completions
# of more than 2,048 tokens were cut off. The GRPO run had a limit of 512 tokens. Six of the other
# checkpoints reach 33 to 46%, and one collapsed to 0.4%. The thinking model is the base model after more training
# by Qwen, so thinking may not be the only cause.
# </details>

# %% [markdown]
# Real templates have a switch for thoughts, `enable_thinking`. Each has its own default, so look at the end of a rendered
# prompt before you train. The next cell renders four of the templates that TRL ships:

# %% tags=["nbval-check-output"]
from pathlib import Path

import trl

TEMPLATES = Path(trl.__file__).parent / "chat_templates"


def end_of_prompt(name: str, **settings) -> str:
    text = tokenizer.apply_chat_template(
        CHAT,
        chat_template=(TEMPLATES / f"{name}.jinja").read_text("utf-8"),
        tokenize=False,
        add_generation_prompt=True,
        **settings,
    )
    return text.split("27?")[1]


for name in "qwen3", "qwen3_5_nothink", "qwen3_5_think", "deepseek_r1_distill":
    print(f"{name:20}{end_of_prompt(name)!r}")

# %% [markdown]
# - **Nothing** after `assistant\n`: the model writes both tags itself.
# - **Open**, with `<think>`: the completion contains only `</think>`.
# - **Closed**, with both tags: thinking is off, and the completion contains neither.
#
# Choose `enable_thinking` once, and pass it in training, evaluation and serving. If you train without thoughts and serve
# with them, the model gets prompts of a kind that it never saw in training.
#
# <details><summary>What the switch does in each template</summary>
#
# | template | models | default | on | off |
# |---|---|---|---|---|
# | `qwen3` | Qwen3 | nothing | nothing | closed |
# | `qwen3_5_nothink` | Qwen3.5 up to 2B | closed | open | closed |
# | `qwen3_5_think` | Qwen3.5 from 4B | open | open | closed |
# | `deepseek_r1_distill` | DeepSeek-R1's distilled models | open | open | open |
#
# The last one silently ignores the switch.
# </details>

# %% [markdown]
# ## 8. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | format reward exactly 0 | Does the rendered prompt end with `<think>`? | accept completions with and without the tag |
# | no tags in `content` | Does the message have `reasoning_content`? | read the thought from there |
# | completions without thoughts | Does the prompt end with `</think>`? | set `chat_template_kwargs={"enable_thinking": True}` |
# | unwanted thoughts | Does the template know `enable_thinking`? | set it to `False` and render a prompt again |
# | good in training, worse when served | Do both prompts end alike? | pass the same `enable_thinking` everywhere |
# | `completions/clipped_ratio` near 1 | How long are completions with a generous limit? | raise `max_completion_length` |
# | shorter and shorter completions | Are long completions truncated or punished? | raise the limit, or mask truncated completions |
# | thoughts that never close, `clipped_ratio` near 0 | Is an answer without `</think>` paid? | pay only for an answer after the thought |

# %% [markdown]
# ## 9. Exercises
#
# **Exercise 1.** Write `starts_inside(prompt)`, which returns `True` if the completion after this rendered prompt
# starts inside a thought, and `False` otherwise.


# %%
def starts_inside(prompt: str) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

ASKED = "Write <think>your thinking</think> and 15 + 27.<|im_end|>"
ENDS = [((ASKED + "<think>\n",), True), ((ASKED,), False)]
ENDS += [((ASKED + "<think>\n\n</think>\n\n",), False), (("<think>",), True)]
ENDS += [(("Start with <think>.<|im_end|>\n",), False)]
HINTS = [
    (True, "Does the prompt end with <think>? Earlier tags do not count.")
]
HINTS += [(False, "Look only at the prompt's end, and ignore white space.")]
print(check_exercise("Exercise 1", starts_inside, ENDS, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** Section 6 described the warning but did not try it. Train with
# `tolerant_reward` and `overlong`, both with weight 1, and the usual limit of 32. Predict first: will at least half of the
# 200 completions add digit by digit? Write `"yes"` or `"no"` into `PREDICTION`. Then let `warned` call `train` and return the
# completions (about half a minute).
# (The prediction is not graded.)
#
# **Try both before you unfold the solutions below.**

# %%
PREDICTION = ""  # "yes" or "no"


def warned() -> list[str] | None:
    """Your answer: the first of the two results of train(…)."""


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def mostly_digits(completions: list[str]) -> str:
    """Whether at least half of the completions add digit by digit."""
    digits = sum("," in text for text in completions)
    mean = sum(map(tokens_of, completions)) / len(completions)
    print(f"{mean:.1f} tokens, {digits} digit by digit")
    return "yes" if 2 * digits >= len(completions) else "no"


def outcome(prediction: str, trained) -> str:
    """What the run shows, compared with the prediction."""
    if (completions := trained()) is None:
        return ""
    if not prediction:
        return "missing"
    found = mostly_digits(completions)
    return compare_prediction(prediction, found)


HINTS = [("missing", "First write your prediction into PREDICTION.")]
RUN = [((PREDICTION, warned), "compared")]
print(check_exercise("Exercise 2", outcome, RUN, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: remove the white space at the end, then check whether the prompt ends with `<think>`.
#
# Exercise 2: in our run, `"no"`: 92 of 200, so close to half that another seed may give `"yes"`. A carry takes at least
# 21 tokens, where the penalty is half a point or more. A correct answer still earns more than a wrong one, but a short
# correct answer earns most.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def starts_inside_solution(prompt: str) -> bool:
    return prompt.rstrip().endswith("<think>")


print(check_exercise("Exercise 1, solution", starts_inside_solution, ENDS))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def warned_solution() -> list[str]:
    completions, _ = train([tolerant_reward, overlong], [1.0, 1.0])
    return completions


completions = warned_solution()
found = mostly_digits(completions)
RUN = [((found, lambda: completions), "compared")]
print(check_exercise("Exercise 2, solution", outcome, RUN, HINTS))
