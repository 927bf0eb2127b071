# %% [markdown]
# # 10 · Thinking models
#
# {{badges}}
#
# **You will be able to** see what a chat template writes before the model's first token, reward thoughts in all
# three shapes that TRL passes to a reward, and choose a length limit for them.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.1 GB ([measured](../docs/results.md)) | never run |
# | model | 0.46 million parameters, included | the same, on the CPU |
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** do completions get longer or shorter while
# the model learns (section 5)?
#
# **Numbers in the text** come from the stored CPU run (seed 0). Yours will differ with other seeds and machines.

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
STEPS: int = 0  # steps of each training run; 0: the default, 20
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 20)

# %% [markdown]
# A *thinking model* writes a *thought* before its answer, usually between `<think>` and `</think>`. The tiny model
# uses `<reasoning>` and `</reasoning>` instead. The next cell renames these two tokens in a copy of its tokenizer.
# Their ids stay the same, so the weights still fit. A real thinking model does not need this.

# %%
import json
import re
import tempfile
from itertools import combinations
from pathlib import Path

from transformers import AutoTokenizer

folder = Path(tempfile.mkdtemp())
AutoTokenizer.from_pretrained(run.path).save_pretrained(folder)
spec = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
model, added = spec["model"], spec["added_tokens"]
for old, new in {"<reasoning>": "<think>", "</reasoning>": "</think>"}.items():
    number = model["vocab"].pop(old)
    model["vocab"][new] = number
    model["merges"] = [m for m in model["merges"] if "".join(m) != old]
    added.append(added[0] | dict(id=number, content=new, special=False))
(folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
tokenizer = AutoTokenizer.from_pretrained(folder)

# %% [markdown]
# The rows are lesson 03's addition problems, with the new tags in the system prompt.

# %% tags=["nbval-check-output"]
from datasets import Dataset
from grpo_utils import load_rows


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
# ## 2. See what a template writes before the completion
#
# A chat template ends the prompt with the start of the model's turn. Templates of many thinking models add a tag there.
# Such text is *prefilled*: it looks like the model's own words, but it is part of the prompt. TRL ships the chat
# templates of known models. The next cell renders all of them with our tokenizer. It prints the end of each prompt
# from `<think>` on: by default, and with `enable_thinking` on and off.

# %% tags=["nbval-check-output"]
import trl

CHAT = [{"role": "user", "content": "What is 15 + 27?"}]
ON, OFF = dict(enable_thinking=True), dict(enable_thinking=False)


def prefilled(template: str, **settings) -> str:
    text = tokenizer.apply_chat_template(
        CHAT,
        chat_template=template,
        tokenize=False,
        add_generation_prompt=True,
        bos_token="",
        **settings,
    )
    after_the_question = text.rpartition("27?")[2]
    return "".join(after_the_question.partition("<think>")[1:])


paths = sorted(Path(trl.__file__).parent.glob("chat_templates/*.jinja"))
paths, tagged = [p for p in paths if "_training" not in p.stem], 0
print(f"{'':23}{'default':24}{'thinking on':14}thinking off")
for path in paths:
    template = path.read_text(encoding="utf-8")
    ends = [prefilled(template, **setting) for setting in ({}, ON, OFF)]
    one, two, three = (repr(end).replace("\\n", "↵") for end in ends)
    if any(ends):
        print(f"{path.stem:23}{one:24}{two:14}{three}")
        tagged += 1
print(f"{tagged} of {len(paths)} templates add a tag")

# %% [markdown]
# Of the {{len(paths)}} templates, {{tagged}} add a tag. There are three cases (`↵` is a line break):
#
# - **Open:** `'<think>↵'`. The completion starts inside the thought, so it contains `</think>` but not `<think>`.
#   DeepSeek's templates always do this. Those of Qwen3.6 and Nemotron 3 do it by default.
# - **Nothing:** `''`. The model writes both tags itself, as Qwen3 does by default.
# - **Closed:** `'<think>↵↵</think>↵↵'`, or both tags without line breaks. Thinking is off, and the completion contains
#   neither tag. Qwen3.5 up to 2B does this by default (`qwen3_5_nothink`).
#
# `GRPOConfig(chat_template_kwargs={"enable_thinking": False})` turns thinking off in training. DeepSeek's templates
# do not know the argument and ignore it without a warning. Gemma 4 and GPT-OSS mark thoughts with other tags, which the
# cell does not look for.
#
# **Render one prompt with your own tokenizer, and read its end before you choose a reward.**

# %% [markdown]
# ## 3. Find out why the format reward stays 0
#
# Now our template prefills `<think>`, too. (A real one also adds a line break, which the tiny model has never seen.) We
# also remove the tokenizer's `response_template`, which section 4 explains.

# %% tags=["nbval-check-output"]
tokenizer.chat_template += "{% if add_generation_prompt %}<think>{% endif %}"
tokenizer.response_template = None
text = tokenizer.apply_chat_template(
    CHAT, tokenize=False, add_generation_prompt=True
)
print(repr(text))

# %% [markdown]
# The untrained model completes the held-out prompts. `generate` calls transformers' `policy.generate`.

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
# Some completions close the thought and then answer. Others never close it. TRL's `think_format_reward` should score 1
# and 0:

# %% tags=["nbval-check-output"]
from trl.rewards import think_format_reward


def as_chat(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


sampled = think_format_reward([as_chat(text) for text in untrained])
with_tag = think_format_reward([as_chat("<think>" + t) for t in untrained])
print(f"mean score of what was sampled:        {sum(sampled) / 200:.2f}")
print(f"mean score with <think> put in front:  {sum(with_tag) / 200:.2f}")

# %% [markdown]
# {{sum(with_tag):.0f}} of the 200 completions are well-formed, and all of them score 0. TRL's pattern starts with
# `^<think>`, but a reward gets only the sampled tokens, and the tag is in the prompt. Users reported this for
# [DeepSeek-R1 models](https://github.com/huggingface/open-r1/issues/560) in 2025, and for [TRL's own
# reward](https://github.com/huggingface/trl/issues/6966) in 2026.
#
# The [preflight](../docs/preflight.md#prefilled-thinking) compares the end of the prompt with your rewards:

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
# ## 4. Write a reward that accepts every shape
#
# Thoughts reach a reward in three shapes. You have seen two: with both tags, and with the closing tag alone. The third
# appears if the tokenizer has a `response_template`, which describes how to parse the model's turn. TRL sets one for
# known models when you train with `tools`. The next cell parses a completion with TRL's template for Qwen3:

# %% tags=["nbval-check-output"]
from trl.chat_template_utils import qwen3_template

WHOLE = "<think>15 + 27 = 42</think><answer>42</answer>"
tokenizer.response_template = qwen3_template
parsed = tokenizer.parse_response(WHOLE, prefix="")
tokenizer.response_template = None
print(parsed)

# %% [markdown]
# The thought is in `reasoning_content`, and `content` has no thinking tag. (The tiny tokenizer's own
# `response_template` has no rule for thoughts. With it, TRL would put the prefilled `<think>` back in front of
# `content`, so we removed it.)
#
# `split_thinking` splits a text at `</think>`, whether or not it starts with `<think>`:

# %% tags=["nbval-check-output"]
import inspect

from grpo_utils.rewards import AnswerReward, split_thinking

print(inspect.getsource(split_thinking))

# %% [markdown]
# `split_message` also reads `reasoning_content`. `tolerant_reward` pays a correct answer only after a thought.
# `AnswerReward` reads what is between the `<answer>` tags, as in lesson 03. If your model answers without these tags,
# use `AnswerReward(extract=extract_all)`.


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
    thought = message.get("reasoning_content", "")
    print(f"{strict:6}{tolerant:10}  {thought:13} {message['content']}")

# %% [markdown]
# The first three completions are correct, and the strict reward pays only the first. The last three must earn nothing:
# one never closes its thought, one has an empty thought, and one has no answer.
#
# **Test a reward on what TRL passes to it, in all three shapes.**

# %% [markdown]
# ## 5. Train with both rewards
#
# Two runs differ only in the reward. The strict run also logs the tolerant reward, with weight 0.

# %%
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
_, logs["strict"] = train([strict_reward, tolerant_reward], [1.0, 0.0])
texts["tolerant"], logs["tolerant"] = train([tolerant_reward], [1.0])

# %%
from grpo_utils import logged, show_run_curves

TRUTH, LENGTH = "rewards/tolerant_reward/mean", "completions/mean_length"
show_run_curves(logs, [TRUTH, "frac_reward_zero_std", LENGTH])
paid = sum(step > 0 for step in logged(logs["strict"], "reward"))
tokens = logged(logs["tolerant"], LENGTH)
print(f"steps in which the strict reward paid anything: {paid} of {run.steps}")

# %% [markdown]
# The left panel shows the tolerant reward, which the strict run (blue) only logs. It clearly rises only in the tolerant
# run (orange). The middle panel shows why: nearly all groups of the strict run are tied, with eight equal rewards. (In
# the tolerant run, groups tie later, mostly because all eight answers are correct.) In {{paid}} of the {{run.steps}}
# steps, the strict reward paid something. TRL's pattern needs `<think>` at the start of a line, so a paid completion
# opened the thought a second time.
#
# The right panel shows the mean length. It grew from {{tokens[0]:.1f}} to {{tokens[-1]:.1f}} tokens in the tolerant
# run. Why?

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
# The share of correct answers rose from {{sum(scores['untrained']) / 200:.3f}} to {{sum(scores['tolerant']) / 200:.3f}}
# (95% interval of the change: {{gain.estimate.low:.3f}} to {{gain.estimate.high:.3f}}). The second sample adds digit by
# digit. The untrained model did so in {{len(digitwise['untrained'])}} completions, and
# {{sum(digitwise['untrained']):.0f}} of these earned the reward. Of its other {{200 - len(digitwise['untrained'])}}
# completions, only {{sum(scores['untrained']) - sum(digitwise['untrained']):.0f}} did. So GRPO made adding digit by
# digit more likely. The trained model does it in {{len(digitwise['tolerant'])}} completions, and it needs more tokens.
# The [DeepSeek-R1 paper](https://arxiv.org/abs/2501.12948) reports thoughts that grow during training, too, on a far
# larger scale: to thousands of tokens.
#
# **Thoughts get longer when longer thoughts earn more.**

# %% [markdown]
# ## 6. Choose a limit for thoughts
#
# `max_completion_length` limits thought, answer and end token together. A longer completion is truncated, and if its
# answer is cut off, `tolerant_reward` pays nothing. How many of the held-out completions would each limit truncate?
# And how many tokens does adding digit by digit need, if there is a carry (`6+8+1=15`) or not?


# %%
def over(limit: int, name: str) -> float:
    return sum(tokens_of(text) > limit for text in texts[name]) / 200


print(f"{'limit':6}" + "".join(f"{name:>12}" for name in texts))
for limit in range(16, 26, 2):
    shares = [over(limit, name) for name in texts]
    print(f"{limit:<6}" + "".join(f"{share:12.0%}" for share in shares))

paid = [
    text for name in texts for text, r in zip(texts[name], scores[name]) if r
]
shortest = {"digit by digit": ",", "with a carry": r"\d\+\d\+1="}
for kind, pattern in shortest.items():
    of_kind = [text for text in paid if re.search(pattern, text)]
    shortest[kind] = min(map(tokens_of, of_kind))
    print(f"shortest correct completion {kind}: {shortest[kind]} tokens")

# %% [markdown]
# A limit of 18 tokens truncates {{over(18, 'untrained'):.0%}} of the untrained model's completions, but
# {{over(18, 'tolerant'):.0%}} of the trained model's. So a limit that suits the untrained model can be too short later.
# A user reported that the 256 tokens of TRL's quickstart truncated [97 to 99% of the
# completions](https://github.com/huggingface/trl/issues/5697). (TRL 1.14's default is 512.)
#
# The shortest correct completions that add digit by digit have {{shortest['digit by digit']}} tokens, and with a carry
# {{shortest['with a carry']}}. So a limit of 18 rules out every sum with a carry that is added this way.
#
# **Choose the limit from completions sampled with a generous one, with room for growth.**

# %% [markdown]
# ## 7. Punish or mask truncated completions
#
# There are three ways to treat completions that are too long:
#
# - **Punish:** do nothing special. TRL scores a truncated completion like any other. Ours usually earns 0, because
#   `tolerant_reward` finds no complete answer. A reward with partial credit would still pay for the part that is there.
# - **Mask:** with `mask_truncated_completions=True`, its tokens are left out of the loss. Its reward still counts in
#   its group's mean.
# - **Warn early:** a *soft overlong punishment* is a reward that falls from 0 to -1 as a completion approaches a
#   length. TRL has the one of the DAPO paper:

# %% tags=["nbval-check-output"]
from trl.rewards import get_soft_overlong_punishment

overlong = get_soft_overlong_punishment(24, 6)
for count in (18, 20, 22, 24):
    print(f"{count} tokens: {overlong(completion_ids=[[0] * count])[0]:.2f}")

# %%
TIGHT = dict(max_completion_length=18)
MASKED = TIGHT | dict(mask_truncated_completions=True)
for name, changed in {"punished": TIGHT, "masked": MASKED}.items():
    texts[name], logs[name] = train([tolerant_reward], [1.0], **changed)
both = train([tolerant_reward, overlong], [1.0, 1.0])
texts["overlong"], logs["overlong"] = both

# %%
del logs["strict"]
CLIPPED = "completions/clipped_ratio"
show_run_curves(logs, [TRUTH, LENGTH, CLIPPED])
print_rates()
changes, runs = {}, ("tolerant", "punished", "masked", "overlong")
for old, new in combinations(runs, 2):
    changes[old, new] = paired_change(scores[old], scores[new])
    print(f"{old} to {new}:", changes[old, new])

# %% [markdown]
# The rates are from completions of up to 64 tokens. All three new runs are worse than the tolerant run (now blue). The
# share of correct answers is lower by {{-changes['tolerant', 'punished'].estimate.value:.3f}} with punishment, by
# {{-changes['tolerant', 'masked'].estimate.value:.3f}} with masking, and by
# {{-changes['tolerant', 'overlong'].estimate.value:.3f}} with the soft punishment. Adding digit by digit with a carry
# needs {{shortest['with a carry']}} tokens or more: the limit of 18 truncates it, and the soft punishment makes it
# expensive. So these runs do it in only {{len(digitwise['punished'])}}, {{len(digitwise['masked'])}} and
# {{len(digitwise['overlong'])}} completions.
#
# Which of the three is best? Their intervals overlap, but that does not decide: all runs answered the same questions,
# so use the paired test. It shows that masking was better than punishing here (p =
# {{changes['punished', 'masked'].p_value:.3f}}). It shows no difference between the soft punishment and punishing (p =
# {{changes['punished', 'overlong'].p_value:.2f}}) or masking (p = {{changes['masked', 'overlong'].p_value:.2f}}). Each
# is a single run, and another seed can reverse the order ([lesson 06](06_evaluation.ipynb)).
#
# When truncated completions were punished, they became rare. `clipped_ratio` fell from
# {{logged(logs['punished'], CLIPPED)[0]:.2f}} to {{logged(logs['punished'], CLIPPED)[-1]:.2f}}, and the mean length on
# the held-out prompts from {{lengths['untrained']:.1f}} to {{lengths['punished']:.1f}} tokens. When they were masked,
# `clipped_ratio` ended at {{logged(logs['masked'], CLIPPED)[-1]:.2f}}, because the loss does not push masked
# completions down.
#
# The loss can shorten completions, too: with `loss_type="grpo"`, a token of a short completion counts more ([lesson
# 08](08_grpo_by_hand.ipynb)). [Users suspect this](https://github.com/om-ai-lab/VLM-R1/issues/280). TRL's default,
# `"dapo"`, avoids it.
#
# **If completions get shorter, look for a limit, penalty or loss that makes long ones lose.**

# %% [markdown]
# ## 8. Find thoughts that never close
#
# Many of the untrained completions ended without `</think>`. Some rewards take a completion's last number as its
# answer. How often is that number correct?

# %%
closed, last_right = {}, {}
print(f"{'':10}closed  last number correct")
for name, completions in texts.items():
    closed[name] = sum("</think>" in text for text in completions) / 200
    last = [re.findall(r"\d+", text)[-1:] for text in completions]
    same = [n == [gold] for n, gold in zip(last, test_rows["answer"])]
    last_right[name] = sum(same) / 200
    print(f"{name:10}{closed[name]:6.0%}{last_right[name]:21.0%}")

# %% [markdown]
# The untrained model closed only {{closed['untrained']:.0%}} of its thoughts. The others ended by themselves (with a
# limit of 32, the first `clipped_ratio` is {{logged(logs['tolerant'], CLIPPED)[0]:.2f}}), so a higher limit cannot
# close them. The last number is correct in {{last_right['untrained']:.1%}} of all its completions, but
# `tolerant_reward` paid only {{sum(scores['untrained']) / 200:.1%}}. The difference is answers inside unclosed
# thoughts, which a user would not see. After training with `tolerant_reward`, each run closed at least
# {{min(closed[name] for name in runs):.0%}} of its thoughts.
#
# **Pay only for an answer that comes after a closed thought.**

# %% [markdown]
# ## 9. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | format reward exactly 0 | Does the rendered prompt end with `<think>`? | accept completions with and without the tag |
# | no tags in `content` | Does the message have `reasoning_content`? | read the thought from there |
# | completions without thoughts | Does the prompt end with `</think>`? | set `chat_template_kwargs={"enable_thinking": True}` |
# | unwanted thoughts | Does the template know `enable_thinking`? | set it to `False` and render a prompt again |
# | `completions/clipped_ratio` near 1 | How long are completions with a generous limit? | raise `max_completion_length` |
# | shorter and shorter completions | Are long completions truncated or punished? | raise the limit, or lower the penalty's weight |
# | thoughts that never close, `clipped_ratio` near 0 | Is an answer without `</think>` paid? | pay only for an answer after the thought |
#
# **Look at the end of the prompt, at one raw completion and at `clipped_ratio`.**

# %% [markdown]
# ## 10. Exercises
#
# **Exercise 1.** Write `starts_inside(prompt)`, which returns `True` if the completion after this rendered prompt
# starts inside a thought, and `False` otherwise.


# %%
def starts_inside(prompt: str) -> bool | None:
    """Your answer: True or False."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

ENDS = [(("27?<|im_end|><think>\n",), True), (("27?<|im_end|>",), False)]
ENDS += [(("27?<|im_end|><think>\n\n</think>\n\n",), False)]
HINTS = [(True, "Is a thought open?"), (False, "Is white space at the end?")]
print(check_exercise("Exercise 1", starts_inside, ENDS, HINTS))

# %% [markdown]
# **Exercise 2.** Write `smallest_limit(lengths, percent)`, which returns the smallest `max_completion_length` that
# truncates at most `percent` percent of the completions. A completion with as many tokens as the limit, end token
# included, is not truncated.
#
# **Try both before you unfold the solutions below.**


# %%
def smallest_limit(lengths: list[int], percent: float) -> int | None:
    """Your answer: a number of tokens."""


# %% tags=["nbval-check-output"]
LENGTHS = [30, 10, 20, 40]
LIMITS = [((LENGTHS, 0), 40), ((LENGTHS, 25), 30), ((LENGTHS, 60), 20)]
HINTS = [(41, "Is a completion of exactly 40 tokens truncated at 40?")]
HINTS += [(10, "That limit truncates 75%. Did you compare a share with 25?")]
print(check_exercise("Exercise 2", smallest_limit, LIMITS, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: remove the white space at the end, then check whether the prompt ends with `<think>`.
#
# Exercise 2: take the smallest of the lengths that truncates few enough.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def starts_inside_solution(prompt: str) -> bool:
    return prompt.rstrip().endswith("<think>")


print(check_exercise("Exercise 1, solution", starts_inside_solution, ENDS))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def limit_solution(lengths: list[int], percent: float) -> int:
    def truncated(limit: int) -> float:
        return 100 * sum(n > limit for n in lengths) / len(lengths)

    return min(n for n in lengths if truncated(n) <= percent)


print(check_exercise("Exercise 2, solution", limit_solution, LIMITS))
