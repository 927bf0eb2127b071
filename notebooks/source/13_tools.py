# %% [markdown]
# # 13 · Tools and several turns
#
# With a calculator, our trained model solves {{sum(scores["outcome"]):.0f}} of 200 problems. Then we add a second tool that does
# exactly the same, and the model solves {{sum(solved):.0f}}.
#
# **Guess first:** which of the two tools does it call now?
#
# You will be able to train a model to use tools, see which tokens it learns from, and notice when it stops calling.
#
# You need [lesson 03](03_grpo_lora.ipynb).
#
# Your time: 60–70 minutes with exercises. *Run All* takes about 2 minutes on a CPU, and 1.2 GB of memory.
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
# {{install reasoning-gym}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # this lesson trains on the CPU with any profile
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # steps of each training run; 0: the default, 20
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 20)

# %% [markdown]
# ## 2. Give the model a tool
#
# A *tool* is a Python function that the model calls by writing its name and arguments. An *episode* is one completion with
# all its turns: the model calls, the tool answers, the model continues. An *environment* is an object that serves one
# episode at a time: it offers the tools and remembers what happened.

# %%
import re


class Arithmetic:
    def reset(self, entry: dict, **row) -> None:
        self.entry, self.calls, self.results = entry, 0, []

    def calculator(self, expression: str) -> str:
        """Work out a sum or a difference.

        Args:
            expression: two numbers with + or - between them
        """
        self.calls += 1
        parts = re.fullmatch(r"(\d{1,9}) ?([+-]) ?(\d{1,9})", str(expression))
        if not parts:
            return "Error: write two numbers with + or - between them."
        sign = 1 if parts[2] == "+" else -1
        self.results.append(str(int(parts[1]) + sign * int(parts[3])))
        return self.results[-1]


# %% [markdown]
# TRL calls `reset` before each episode with the columns of the row. `calculator` becomes a tool.
#
# <details><summary>What TRL 1.14 requires of the class and of the chat template</summary>
#
# - `reset` must set every attribute, because TRL reuses the objects.
# - Every other public method except `get_reward` and static methods becomes a tool, even a `close` that you only need for
#   cleaning up ([a real case](https://github.com/vecna-labs/open-range/pull/353)). An underscore keeps a method private.
# - A tool needs type hints and a docstring with `Args:`. Most chat templates show them to the model. Ours shows only names.
# - TRL must recognize the model's calls. It does so for Qwen2.5, Qwen3, Llama 3.1 and several others. For another model, set
#   `tokenizer.response_template`, as ours does. TRL rejects a template that does not show calls and results, such as Gemma 3's.
#
# See also [all rules](../docs/troubleshooting-training.md#what-must-an-environment-define) and [a table of four ways to run an
# episode](../docs/troubleshooting-training.md#tools-environment_factory-or-rollout_func-which-one).
# </details>
#
# The problems are sums and differences from [reasoning-gym](https://github.com/open-thought/reasoning-gym), a package that
# generates over 100 kinds of problems offline, each with a scorer. The folded cell makes 2,000 for training and 200 others for
# evaluation. Then the chat template puts the tool into a prompt:

# %% cellView="form" jupyter={"source_hidden": true}
from datasets import Dataset

from grpo_utils.data.gym import import_reasoning_gym

# in your own project: import reasoning_gym
reasoning_gym = import_reasoning_gym()

KIND = dict(
    min_terms=2,
    max_terms=2,
    min_digits=2,
    max_digits=3,
    operators=["+", "-"],
    allow_parentheses=False,
    allow_negation=False,
    size=2000,
)


def rows_of(problems) -> Dataset:
    asked = [f"What is {p['metadata']['expression']}?" for p in problems]
    prompts = [[{"role": "user", "content": text}] for text in asked]
    return Dataset.from_dict({"prompt": prompts, "entry": list(problems)})


train = reasoning_gym.create_dataset("basic_arithmetic", seed=0, **KIND)
test = reasoning_gym.create_dataset("basic_arithmetic", seed=5000, **KIND)
known = {problem["question"] for problem in train}
test = [problem for problem in test if problem["question"] not in known]
train_rows, test_rows = rows_of(train), rows_of(test[:200])

# %% tags=["nbval-check-output"]
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(run.path)
how = dict(add_generation_prompt=True, tokenize=False)
question, tools = train_rows[0]["prompt"], [Arithmetic().calculator]
print(tokenizer.apply_chat_template(question, tools=tools, **how))

# %% [markdown]
# ## 3. Watch an episode turn by turn
#
# A reward gets each completion as a list of messages, and the environments in the same order. `outcome` pays 1 if the last
# turn has the correct number in `<answer>` tags. It keeps the episode and its score in the environment, so that we can look
# at them.


# %%
def answer_of(episode: list[dict]) -> str | None:
    last = episode[-1]
    text = (last.get("content") or "").strip()
    found = re.fullmatch(r"<answer>([^<>]*)</answer>", text)
    finished = last["role"] == "assistant" and not last.get("tool_calls")
    return found[1] if found and finished else None


def outcome(completions, environments, **kwargs) -> list[float]:
    for episode, its in zip(completions, environments):
        score = train.score_answer(answer_of(episode), its.entry)
        its.episode, its.score = episode, float(score == 1)
    return [its.score for its in environments]


# %% [markdown]
# The trainer gets the class as `environment_factory`. The folded cell has the settings of lesson 03 and two limits for an
# episode. `max_completion_length` limits the tokens of all turns together, the tool's text included.
# `max_tool_calling_iterations` limits the turns in which the model calls a tool.

# %% cellView="form" jupyter={"source_hidden": true}
SETTINGS = dict(
    max_steps=run.steps,
    learning_rate=2e-3,
    num_generations=8,
    per_device_train_batch_size=64,
    max_completion_length=80,
    max_tool_calling_iterations=2,
    num_generations_eval=1,
    per_device_eval_batch_size=200,
    optim="adamw_torch",
    use_cpu=True,
    bf16=False,
    gradient_checkpointing=False,
    save_strategy="no",
    logging_steps=1,
    disable_tqdm=True,
    seed=SEED,
)

# %%
import os

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # TRL warns about environments
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import show_progress


def new_policy() -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
    torch.manual_seed(SEED)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    return get_peft_model(base, lora)


def new_trainer(policy, rewards, weights, environment=Arithmetic):
    args = GRPOConfig("unused", reward_weights=weights, **SETTINGS)
    rows = dict(train_dataset=train_rows, eval_dataset=test_rows)
    how = dict(processing_class=tokenizer, environment_factory=environment)
    trainer = GRPOTrainer(policy, rewards, args, **rows, **how)
    show_progress(trainer)  # a progress bar instead of the printed log
    return trainer


# %% [markdown]
# Sample eight groups as in a training step, with a private method of the trainer, and print the group with the most calls.

# %%
trainer = new_trainer(new_policy(), [outcome], [1.0])
rows = [test_rows[place // 8] for place in range(64)]
batch = trainer._generate_and_score_completions(rows)
calls = [its.calls for its in trainer.environments]
start = max(range(0, 64, 8), key=lambda first: sum(calls[first : first + 8]))
for place in range(start, start + 8):
    turns = trainer.environments[place].episode
    texts = " | ".join(turn["content"] or "(call)" for turn in turns)
    print(f"advantage {batch['advantages'][place]:+.2f}  {texts}")

# %% [markdown]
# Only the episode with the correct answer in tags has a positive advantage,
# {{batch['advantages'][start : start + 8].max():+.2f}}. The others with a call give the result in the wrong form.
#
# Now look at the tokens of the group's first episode with a call. From which of them does the model learn?

# %%
from grpo_utils import show_tokens

place = calls.index(1, start)
keys = ("completion_ids", "completion_mask", "tool_mask")
episode = zip(*(batch[key][place].tolist() for key in keys))
tokens = [
    (tokenizer.decode([token]), own == 1)
    for token, real, own in episode
    if real
]
show_tokens(tokens)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# From the blue ones, which it wrote itself. For them, TRL's `tool_mask` is 1. It is 0 for the tokens that the tool and the
# template added, and the loss leaves these out.
#
# TRL computes one advantage for each episode, and all blue tokens share it.
# </details>
#
# **The model learns only from its own tokens, and they all share one advantage.**

# %% [markdown]
# ## 4. Train with one tool, then offer two
#
# Train with `outcome` as the only reward. `trainer.evaluate()` samples one episode for each of the 200 held-out problems,
# before and after. Nothing pays for a call. Will the policy call more or less often than before?


# %%
def evaluated(trainer: GRPOTrainer) -> tuple[list[float], float]:
    log = trainer.evaluate()
    scores = [its.score for its in trainer.environments]
    calls = log["eval_tools/call_frequency"]
    print(f"calls per episode: {calls:.2f}, correct: {sum(scores):.0f} of 200")
    return scores, calls


logs, policies, scores, called = {}, {}, {}, {}


def train_policy(name: str, rewards: list, weights: list) -> None:
    policies[name] = new_policy()
    trainer = new_trainer(policies[name], rewards, weights)
    scores["base"], called["base"] = evaluated(trainer)
    trainer.train()
    logs[name] = trainer.state.log_history
    scores[name], called[name] = evaluated(trainer)


train_policy("outcome", [outcome], [1.0])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# More often: the calls rose from {{called['base']:.2f}} to {{called['outcome']:.2f}} per episode, because most correct answers
# follow a call, and the call shares their advantage. The policy now solves {{sum(scores['outcome']):.0f}} problems instead of
# {{sum(scores['base']):.0f}}. This shows how tools are trained, not that training was needed: one line of code passes the expression to the
# calculator, and an example call in the prompt and SFT on calls were not measured.
# </details>
#
# Now add a second tool, `solve`, which does the same as `calculator`. The prompt lists both, and the policy has not changed.
# Which tool does it call?


# %%
class TwoTools(Arithmetic):
    def solve(self, expression: str) -> str:
        return self.calculator(expression)

    solve.__doc__ = Arithmetic.calculator.__doc__


trainer = new_trainer(policies["outcome"], [outcome], [1.0], TwoTools)
solved, calls = evaluated(trainer)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Mostly neither. With one tool, the policy made {{called['outcome']:.2f}} calls per episode, and with two, {{calls:.2f}}.
# Without a call, it guesses the number.
# </details>
#
# Does training with both tools help?

# %%
trainer.train()
solved_later, _ = evaluated(trainer)

# %% [markdown]
# After {{run.steps}} more steps, it solves {{sum(solved_later):.0f}} problems. It could learn this because it still called
# sometimes: GRPO reinforces only what the policy samples.
#
# **Look at the calls after you add a tool, before you train.**

# %% [markdown]
# ## 5. Choose what a reward may read
#
# A common shortcut searches all messages for the gold answer, as in [a TRL
# thread](https://github.com/huggingface/trl/issues/5366). Here it scores four endings of an episode whose gold answer is 42,
# next to `outcome`. How many of the four should be paid?

# %% tags=["nbval-check-output"]
ENDINGS = [("42", "<answer>42</answer>"), ("42", "<answer>7</answer>")]
ENDINGS += [("42", "Done."), ("Say <answer>42</answer>", "No.")]
for result, last in ENDINGS:
    its = Arithmetic()
    its.reset({"answer": "42"})
    shortcut = float("42" in f"{result} {last}")
    [score] = outcome([[{"role": "assistant", "content": last}]], [its])
    print(f"shortcut {shortcut}, outcome {score}: {result} | {last}")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Only the first, and `outcome` pays for no other. The shortcut pays for all four. In the fourth, it reads *injected text*: a tool
# result, for example a web page, that contains an answer or an instruction.
# </details>
#
# A reward should read the model's last turn and the environment's own record, never the tool's text.
#
# Test a scorer before you trust it, even a published one. This is the one that `outcome` calls:

# %% tags=["nbval-check-output"]
print(train[0]["question"], "Gold answer:", train[0]["answer"])
for text in ("-224", "224", "-224.0", "-224 or 224"):
    print(f"{train.score_answer(text, train[0]):.2f}  {text}")

# %% [markdown]
# It gives partial credit to every text that contains the gold answer: {{train.score_answer(text, train[0]):.2f}} for two
# answers at once. So `outcome` counts only a score of 1.

# %% [markdown]
# ## 6. Reward the calls, too
#
# `worked` is the share of calls that gave a result. (A reward for each call would teach the policy to call again and again.)
# Train a second policy with `worked` at weight 0.5, from the same adapter and rows. Which of the two policies will call more
# often, and which will answer better?


# %%
def worked(environments, **kwargs) -> list[float]:
    return [len(its.results) / max(its.calls, 1) for its in environments]


train_policy("outcome and calls", [outcome, worked], [1.0, 0.5])

# %% [markdown]
# `paired_change` compares the scores problem by problem.

# %%
from grpo_utils import logged, paired_change, show_run_curves

base, first, second = scores
for old, new in ((base, first), (base, second), (first, second)):
    change = paired_change(scores[old], scores[new])
    print(f"{old} to {new}:", change)
show_run_curves(logs, ["rewards/outcome/mean", "tools/call_frequency"])

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The second policy calls more often, {{called[second]:.2f}} times per episode instead of {{called[first]:.2f}}, but solves
# only {{sum(scores[second]):.0f}} problems. The first solves {{sum(scores[first]):.0f}}. One reason: a call is now paid even if
# the answer is wrong. With another seed, their order may be different ([lesson 06](06_evaluation.ipynb)).
# </details>
#
# **Judge a run by held-out answers, not by the number of calls.**

# %% [markdown]
# ## 7. Charge for each call
#
# Calls cost time, so you may want fewer of them. In the next run, an answer in the required format earns 1.0, one that is also
# correct earns 2.0 in all, and each call costs 1.0. Will the reward, the share of correct answers and the number of calls rise
# or fall?


# %%
def formatted(completions, **kwargs) -> list[float]:
    return [float(answer_of(episode) is not None) for episode in completions]


def cost(environments, **kwargs) -> list[float]:
    return [-float(its.calls) for its in environments]


# %% [markdown]
# TRL logs `tools/call_frequency`, the number of calls per episode. A callback can watch it and stop the run.

# %%
from transformers import TrainerCallback


class WatchCalls(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        calls = logs.get("tools/call_frequency", 1.0)
        if state.global_step > 3 and calls < 0.05:
            print(f"\nstep {state.global_step}: {calls:.3f} calls per episode")
            control.should_training_stop = True


# %%
trainer = new_trainer(new_policy(), [outcome, formatted, cost], [1.0] * 3)
trainer.add_callback(WatchCalls())
trainer.train()
keys = ["reward", "rewards/outcome/mean", "tools/call_frequency"]
history = trainer.state.log_history
show_run_curves({"a call costs 1": history}, keys)
paid, right, calls = (logged(history, key) for key in keys)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The reward rose from {{paid[0]:.2f}} to {{paid[-1]:.2f}}. The calls rose to {{max(calls):.2f}} per episode in step
# {{calls.index(max(calls)) + 1}} and then fell to {{calls[-1]:.2f}}, where `WatchCalls` stopped the run. The share of correct
# answers reached {{max(right):.2f}} and ended at {{right[-1]:.2f}}.
#
# The policy learned what we paid for: a correct answer after a call earns 1.0, no more than a wrong one in the format. Users
# report runs in which calls become rarer, too ([one](https://github.com/TIGER-AI-Lab/Pixel-Reasoner/issues/39),
# [two](https://github.com/Visual-Agent/DeepEyes/issues/55)). So plot `tools/call_frequency` next to the reward.
# </details>

# %% [markdown]
# ## 8. Handle errors in a tool and in reset
#
# If a tool raises an error, TRL gives the error's text to the model and continues. So a bug in your tool looks like a
# model that fails:


# %%
class Buggy(Arithmetic):
    def calculator(self, expression: str) -> str:
        return self.entry[expression]  # a bug: there is no such key


trainer = new_trainer(new_policy(), [outcome], [1.0], Buggy)
log = trainer.evaluate()
print(f"calls that raised: {log['eval_tools/failure_frequency']:.0%}")
longest = max((its.episode for its in trainer.environments), key=len)
print("the model reads:", longest[1]["content"])

# %% [markdown]
# `tools/failure_frequency` is the share of calls that raised an error. Our calculator returns "Error: ..." for the model's
# mistakes, so a share above 0 means a bug in the tool, or a call with a wrong name or wrong arguments.
#
# An error in `reset` ends the run. This environment fails after two steps, like a server that stops answering:


# %%
class Unreliable(Arithmetic):
    def reset(self, entry: dict, **row) -> None:
        super().reset(entry)
        if trainer.state.global_step == 2:
            raise ConnectionError("the server does not answer")


trainer = new_trainer(new_policy(), [outcome], [1.0], Unreliable)
try:
    trainer.train()
except ConnectionError as error:
    print(f"\nstopped after {trainer.state.global_step} steps: {error}")
    trainer.save_model("outputs/tools")

# %% [markdown]
# The two steps are not lost: the policy in memory has learned from them, and `save_model` writes its adapter. To find bad
# rows before training, try `for row in train_rows: Arithmetic().reset(**row)`.

# %% [markdown]
# ## 9. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | no calls at all | Does the printed prompt list the tools? Does the base model ever call? | choose a model and template that support tools, or start with SFT (lesson 10) |
# | calls fall to zero | Does an answer without a call pay as much? | raise the weight of the outcome, lower the cost |
# | more and more calls | Does each call add to the reward? | reward the share of calls that worked |
# | reward rises, answers do not improve | Does the reward read the tool's text? | read the last turn and the environment's record |
# | episodes without an answer | Is `completions/clipped_ratio` above 0? Is the last turn a call? | raise `max_completion_length` (TRL drops tool text that does not fit) or `max_tool_calling_iterations` |

# %% [markdown]
# ## 10. Exercises
#
# **Exercise 1.** A correct answer earns 1. It is correct with probability `with_call` after a call, and `without` if there
# was none. Write `highest_cost(with_call, without)`, the break-even cost of a call.


# %%
def highest_cost(with_call: float, without: float) -> float | None:
    """Your answer: a cost."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

RATES = [((0.75, 0.25), 0.5), ((1.0, 0.0), 1.0), ((0.5, 0.5), 0.0)]
RATES += [((0.2, 0.5), -0.3)]
HINTS = [(0.75, "What does the answer earn without a call?")]
HINTS += [(0.3, "A call can do harm. What is the sign of its cost then?")]
HINTS += [(0.0, "A call can do harm. What is the sign of its cost then?")]
print(check_exercise("Exercise 1", highest_cost, RATES, HINTS))

# %% [markdown]
# **Exercise 2: change, predict, run, compare.** At a cost of 1.0, the calls vanished. Choose another cost, and write into
# `my_guess` whether they will "vanish" or "stay". They vanish if the last five steps have fewer than half as many calls as the
# first five. The check trains with your cost for half a minute and draws the curves. The prediction is not graded.

# %%
my_cost = None  # of a call
my_guess = ""  # "vanish" or "stay"


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def compared(price: float | None, guess: str) -> str | None:
    if price is None or not guess:
        return None
    weights = [1.0, 1.0, price]
    learner = new_trainer(new_policy(), [outcome, formatted, cost], weights)
    learner.train()
    log = learner.state.log_history
    show_run_curves({f"a call costs {price}": log}, keys)
    often = logged(log, "tools/call_frequency")
    gone = sum(often[-5:]) < sum(often[:5]) / 2
    happened = "vanish" if gone else "stay"
    return compare_prediction(guess, happened)


COMPARED = [((), "compared")]
mine = (lambda: compared(my_cost, my_guess), COMPARED)
print(check_exercise("Exercise 2", *mine))

# %% [markdown]
# Then train on your own tools: `python -m grpo_utils new tool_agent my-agent`.

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: subtract the two expected rewards.
#
# Exercise 2: at a cost of 0.75, the policy keeps calling, because a guess is rarely right, so the break-even cost is not far
# below 1.0. But the calls hardly increase. In section 4, where a call cost nothing and the format earned nothing, they rose to
# {{called['outcome']:.2f}} per episode. While most answers after a call are still wrong, the cost of a call and the reward for
# the format make a guess look good.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def cost_solution(with_call: float, without: float) -> float:
    return with_call - without


print(check_exercise("Exercise 1, solution", cost_solution, RATES))

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
cheaper = (lambda: compared(0.75, "stay"), COMPARED)
print(check_exercise("Exercise 2, solution", *cheaper))
