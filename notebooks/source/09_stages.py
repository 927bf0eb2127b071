# %% [markdown]
# # 09 · Train in stages
#
# Our first stage pays for the format and nothing for a correct number. Answers that are right in both still rise from
# {{before.accuracy.hits}} to {{formed.accuracy.hits}} of {{formed.n}}. A second stage then pays for both.
#
# **Guess first:** does this plan beat a single stage that pays for both from the start?
#
# You will be able to train one adapter in stages, and to test whether the stages help.
#
# You need [lesson 03](03_grpo_lora.ipynb) and the tests of [lesson 06](06_evaluation.ipynb).
#
# Your time: 45–55 minutes with exercises. *Run All* takes about 2 to 6 minutes on a CPU, and 1.8 GB of memory.
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
STEPS: int = 0  # steps in each of the two stages; 0: the default, 10
SEED: int = 0  # seeds all randomness

# %% [markdown]
# This lesson compares several training runs, so it trains the tiny model on the CPU. Section 6 shows the same two stages
# on a GPU. `setup_tiny` checks the parameters and creates a folder for the results.

# %%
from grpo_utils import setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 10, output_dir="outputs/stages")

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# ## 2. Train the first stage
#
# A *stage* is a training run with its own rewards, weights, steps and rows. It continues with the adapter of the stage
# before it. "First teach the format, then the answers" sounds like a good plan. Sections 2 and 3 carry it out, and
# section 4 tests it.
#
# The task is that of lesson 03: two-digit additions, answered as `<reasoning>…</reasoning><answer>…</answer>`. In the
# first stage, correctness has the weight 0: TRL logs this reward but does not train on it. The second stage rewards
# everything.

# %% tags=["nbval-check-output"]
from grpo_utils import load_rows, math_rewards, model_path

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)  # never trained on
rewards, BOTH = math_rewards()
FORMAT_ONLY = [0.0, *BOTH[1:]]
print(f"{'weight in stage':27}{'1':>4}{'2':>5}")
for reward, stage_1, stage_2 in zip(rewards, FORMAT_ONLY, BOTH):
    print(f"{reward.__name__:27}{stage_1:4}{stage_2:5}")

# %% [markdown]
# All runs share the settings below. By default, TRL lowers the learning rate to 0 within each stage, so it would
# jump back up at the start of the next one. A constant rate avoids the jump.

# %%
SHARED = dict(
    learning_rate=2e-3,
    lr_scheduler_type="constant",
    num_generations=8,  # completions in a group
    per_device_train_batch_size=64,  # completions, not prompts
    max_completion_length=32,  # in tokens
    use_cpu=True,  # this and the next three lines: for a tiny model
    bf16=False,
    gradient_checkpointing=False,
    optim="adamw_torch",
    logging_steps=1,
    report_to="none",
    disable_tqdm=True,  # show_progress draws a bar instead
)

# %% [markdown]
# Stages differ only in weights, steps and seed, so one function builds the trainer of each:

# %%
from grpo_utils import show_progress

path = model_path(run.model)
tokenizer = AutoTokenizer.from_pretrained(path)


def new_trainer(policy, weights, steps: int, seed: int) -> GRPOTrainer:
    own = dict(max_steps=steps, reward_weights=weights, seed=seed)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig("unused", save_strategy="no", **own, **SHARED),
        train_dataset=train_rows,
        reward_funcs=rewards,
    )
    show_progress(trainer)
    return trainer


# %% [markdown]
# The first stage starts from a new adapter. Evaluate it before and after on 200 held-out prompts, and then save it:


# %%
from grpo_utils import evaluate


def new_policy(seed: int) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    torch.manual_seed(seed)  # for the adapter's random initial weights
    lora = LoraConfig(
        r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(base, lora)


def measure(policy: PeftModel, seed: int):
    how = dict(max_new_tokens=32, temperature=1.0, seed=seed)
    return evaluate(policy, tokenizer, test_rows, **how)


# %%
policy = new_policy(SEED)
before = measure(policy, SEED)
first = new_trainer(policy, FORMAT_ONLY, run.steps, SEED)
first.train()
policy.save_pretrained(run.folder / "format")
formed = measure(policy, SEED)

# %%
from grpo_utils import compare

gain = compare(before, formed)
print(gain)

# %% [markdown]
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{formed.accuracy.value:.2f}}, and nearly all of this gain comes from
# the format, as the line before the last shows. Nothing shows that the model adds better: of the correctly formatted answers,
# {{before.accuracy_given_format.value:.0%}} were correct before, and {{formed.accuracy_given_format.value:.0%}} after. It could
# already add; it just did not write its results inside the tags.

# %% [markdown]
# ## 3. Continue with the same adapter
#
# The second stage loads the base model again and adds the saved adapter. By default, `PeftModel.from_pretrained` loads
# an adapter for inference and freezes its weights. To train it further, pass `is_trainable=True`.


# %% tags=["nbval-check-output"]
def saved_policy(adapter, trainable: bool = True) -> PeftModel:
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    return PeftModel.from_pretrained(base, adapter, is_trainable=trainable)


for trainable in (False, True):
    policy = saved_policy(run.folder / "format", trainable)
    count = policy.num_parameters(only_trainable=True)
    print(f"is_trainable={trainable}: {count} trainable parameters")

# %% [markdown]
# Now build the trainer of the second stage, with its own weights. Give it another seed, because the same seed would show
# the same rows in the same order.

# %%
second = new_trainer(policy, BOTH, run.steps, SEED + 1000)
_ = second.train()

# %% [markdown]
# The *optimizer* turns gradients into weight updates. Ours, Adam, keeps two running means for each weight and counts
# its steps. Did the second stage inherit them?

# %%
counted = next(iter(second.optimizer.state.values()))["step"]
print(f"steps of both stages:     {2 * run.steps}")
print(f"steps that Adam counted:  {counted:.0f}")

# %% [markdown]
# No, Adam started from zero. This is what we want here, because its old means belong to other rewards. (To resume an interrupted
# run, as in [lesson 07](07_export.ipynb), you need them.)
#
# **Only the adapter carries over to the next stage.**

# %% [markdown]
# ## 4. Compare with one stage
#
# A rising curve does not show that stages help. For a fair comparison, train **one** stage with all rewards from the
# start, and with as many steps, completions and rows as both stages together.

# %%
from grpo_utils import show_run_curves

one_policy = new_policy(SEED)
only = new_trainer(one_policy, BOTH, 2 * run.steps, SEED)
only.train()
in_two = first.state.log_history + second.state.log_history
curves = {"one stage": only.state.log_history, "two stages": in_two}
keys = [f"rewards/{r.__name__}/mean" for r in (rewards[1], rewards[0])]
show_run_curves(curves, keys, mark=run.steps + 0.5)

# %% [markdown]
# The dashed line marks the start of the second stage. One run of each plan does not show which is better, so repeat both
# with two more seeds. `train_plan` carries an adapter through any list of stages:


# %%
def train_plan(plan, seed: int) -> PeftModel:
    """Train one stage after another, each given as (weights, steps)."""
    policy = new_policy(seed)
    for number, (weights, steps) in enumerate(plan):
        if number:
            policy.save_pretrained(run.folder / "between")
            policy = saved_policy(run.folder / "between")
        new_trainer(policy, weights, steps, seed + 1000 * number).train()
    return policy


ONE_STAGE = [(BOTH, 2 * run.steps)]
TWO_STAGES = [(FORMAT_ONLY, run.steps), (BOTH, run.steps)]
ones, twos = [measure(one_policy, SEED)], [measure(policy, SEED)]
for seed in (SEED + 1, SEED + 2):
    ones.append(measure(train_plan(ONE_STAGE, seed), seed))
    twos.append(measure(train_plan(TWO_STAGES, seed), seed))

# %% [markdown]
# For each seed, compare the two plans prompt by prompt. Then average over the seeds, as in lesson 06.

# %%
from grpo_utils import compare_seeds, paired_change, show_changes

changes = {}
for seed, (one, two) in enumerate(zip(ones, twos), start=SEED):
    print(f"seed {seed}, one stage:  {one.accuracy}")
    print(f"seed {seed}, two stages: {two.accuracy}")
    changes[f"seed {seed}"] = paired_change(one.right, two.right)
by_seed = compare_seeds([compare(*pair) for pair in zip(ones, twos)])
print(by_seed)
show_changes(changes, "Two stages minus one stage")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# No improvement is shown: on average, two stages differ from one by {{by_seed.difference.value:+.2f}}, and the interval
# contains 0. "Format first" is a plan that feels right, and here it changed nothing that we can measure.
#
# Section 2 has the reason. Some completions were correct and correctly formatted from the start, so both rewards gave a
# signal from the first step. There was nothing to wait for.
# </details>

# %% [markdown]
# **Compare stages with a single stage of the same length, over several seeds.**
#
# <details><summary>Evidence</summary>
#
# The interval of the mean, printed above, has room on both sides of 0. So two stages could still be a little better or worse.
# This is one easy task and one tiny model; other tasks can behave differently.
# </details>

# %% [markdown]
# ## 5. Know when stages may help
#
# Three plans can be worth the comparison. We have measured only the first:
#
# | plan | what it is for | how to build it |
# |---|---|---|
# | examples first, then GRPO | a model that is never correct: all completions of a group earn the same, so nothing is learned | train on worked answers (SFT), and continue the same adapter with GRPO ([lesson 10](10_sft_then_grpo.ipynb)) |
# | easy rows first, a *curriculum* | hard rows, on which all groups are tied at first | give each stage its own `train_dataset`, and [measure which rows can teach](../grpo_check/docs/checks.md#pilot) before each |
# | a low length limit first | long answers, which take most of the time | raise `max_completion_length` in later stages, as DeepScaleR did from 8K to 16K and 24K tokens |
#
# Before you use either of the first two plans, ask: *is there something to learn that no sample is rewarded for yet?* Look at
# samples of the base model, as [lesson 03](03_grpo_lora.ipynb) does. If some groups contain correct and wrong answers, start with
# one stage.
#
# **Add a stage only for a reward that gives no signal yet.**

# %% [markdown]
# ## 6. Run two stages on a GPU
#
# This is the plan for a T4, with Unsloth and TRL, for Qwen or Gemma. (A test compares its arguments with TRL's; we have not
# run it on a T4.) The policy stays in memory, so each stage only builds a new trainer around it.
#
# ```python
# from unsloth import FastLanguageModel  # first: it changes the other libraries
# from grpo_utils import load_rows, math_rewards
# from trl import GRPOConfig, GRPOTrainer
#
# QWEN, GEMMA = "unsloth/Qwen2.5-1.5B-Instruct", "unsloth/gemma-3-1b-it"
# MODEL = QWEN
#
# policy, tokenizer = FastLanguageModel.from_pretrained(
#     model_name=MODEL, max_seq_length=512, load_in_4bit=True
# )
# ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
# MLP = ["gate_proj", "up_proj", "down_proj"]
# policy = FastLanguageModel.get_peft_model(
#     policy,
#     r=16,
#     lora_alpha=32,
#     target_modules=ATTENTION + MLP,
#     use_gradient_checkpointing="unsloth",
#     random_state=0,
# )
#
# rewards, both = math_rewards()
# STAGES = {"form": ([0.0, 0.5, 0.5], 40), "answers": (both, 100)}  # weights, steps
# for number, (name, (weights, steps)) in enumerate(STAGES.items()):
#     config = GRPOConfig(
#         output_dir=f"outputs/{name}",  # its own checkpoints
#         reward_weights=weights,
#         max_steps=steps,
#         seed=number,  # other rows in each stage
#         learning_rate=2e-4,
#         lr_scheduler_type="constant_with_warmup",
#         warmup_steps=2,
#         per_device_train_batch_size=8,
#         gradient_accumulation_steps=4,
#         num_generations=8,
#         max_completion_length=256,
#         optim="adamw_8bit",
#         fp16=MODEL == QWEN,  # a T4; Unsloth runs Gemma 3 in fp32 there
#         bf16=False,  # from an L4 on: bf16=True and fp16=False
#         save_steps=25,
#         save_total_limit=2,
#         report_to="none",
#     )
#     trainer = GRPOTrainer(
#         model=policy,
#         processing_class=tokenizer,
#         reward_funcs=rewards,
#         args=config,
#         train_dataset=load_rows("gsm8k", "train", 7000),
#     )
#     trainer.train()
#     policy.save_pretrained(f"outputs/{name}/adapter")
# ```
#
# <details><summary>The same without Unsloth</summary>
#
# Replace the first two calls with those of transformers and PEFT. The loop does not change:
#
# ```python
# from peft import LoraConfig, get_peft_model
# from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
#
# tokenizer = AutoTokenizer.from_pretrained(MODEL)
# base = AutoModelForCausalLM.from_pretrained(
#     MODEL,
#     dtype="float16",
#     quantization_config=BitsAndBytesConfig(load_in_4bit=True),
# )
# lora = LoraConfig(r=16, lora_alpha=32, target_modules="all-linear")
# policy = get_peft_model(base, lora)
# ```
# </details>
#
# For a plan in a file, checkpoints within each stage, and evaluation after each, copy the template: `python -m grpo_utils
# new multi_stage FOLDER` ([what it contains](../templates/multi_stage/README.md)). [Which model](../docs/gpu.md#which-model) says what
# changes for newer Qwen and Gemma models.

# %% [markdown]
# ## 7. Cheat sheet
#
# | step or symptom | check | do |
# |---|---|---|
# | before you plan stages | Are some groups of the base model informative? | if so, start with one stage |
# | end of a stage | Does the folder contain `adapter_model.safetensors`? | call `policy.save_pretrained(folder)` |
# | start of the next stage | Is the number of trainable parameters above 0? | load with `is_trainable=True`, build a new `GRPOTrainer` |
# | unclear benefit of stages | Does the interval over the seeds contain 0? | compare with one stage that has the same steps and rows |

# %% [markdown]
# ## 8. Exercises
#
# **Exercise 1.** A comparison over seeds gives an interval from `low` to `high` for the difference in accuracy. Write
# `verdict(low, high)`, which returns `"rose"`, `"fell"` or `"no improvement shown"`.


# %%
def verdict(low: float, high: float) -> str:
    """Your answer: one of the three strings."""
    return ""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

NONE = "no improvement shown"
INTERVALS = [((-0.049, 0.052), NONE), ((0.01, 0.2), "rose")]
INTERVALS += [((-0.3, -0.1), "fell"), ((0.0, 0.1), NONE)]
INTERVALS += [((-0.1, 0.0), NONE)]
HINTS = [("rose", "Is the whole interval above 0?")]
HINTS += [("fell", "Is the whole interval below 0?")]
print(check_exercise("Exercise 1", verdict, INTERVALS, HINTS))

# %% [markdown]
# **Exercise 2.** Change the plan and train it, which takes less than a minute. Either swap the two stages of
# `TWO_STAGES`, so that the last one does not pay for correctness, or give the first stage 18 of the 20 steps. First
# **predict** how it compares with the lesson's two stages: `"improved"`, `"got worse"` or `"no change shown"`. Fill in
# both variables below.
#
# **Try both before you unfold the solutions below.** Next, [lesson 10](10_sft_then_grpo.ipynb) puts examples before GRPO.
# *Curriculum learning* (Bengio et al. 2009, ICML) is the classic paper on curricula, and *FastCuRL* (arXiv 2503.17287)
# is about limits that grow from stage to stage.

# %%
prediction = ""  # one of the three verdicts
mine = None  # your run: measure(train_plan([...], SEED), SEED)


# %% tags=["nbval-check-output"]
def outcome(found) -> str:
    """The verdict on a run, compared with the lesson's two stages."""
    return paired_change(twos[0].right, found.right).verdict


def compared() -> str:
    """Whether your run shows what you predicted, or else what it shows."""
    if not (mine and prediction):
        return ""
    shown = outcome(mine)
    return "as predicted" if prediction == shown else shown


CLUE = "Your run says {!r}. What did its last stage pay for?"
VERDICTS = ("improved", "got worse", "no change shown")
HINTS = [(verdict, CLUE.format(verdict)) for verdict in VERDICTS]
print(check_exercise("Exercise 2", compared, [((), "as predicted")], HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: only an interval that does not contain 0 shows a change. An interval that ends at 0 contains 0.
#
# Exercise 2: with the stages swapped, our run got worse: 182 of 200 answers are correct instead of 191. This is only just
# beyond chance, so your run may show no change. The cause is plausible: the last stage pays a wrong sum as much as a correct
# one, so nothing protects what the first stage taught. Keep the earlier rewards in every later stage.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def verdict_solution(low: float, high: float) -> str:
    if low > 0:
        return "rose"
    return "fell" if high < 0 else "no improvement shown"


print(check_exercise("Exercise 1, solution", verdict_solution, INTERVALS))

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
mine = measure(train_plan(TWO_STAGES[::-1], SEED), SEED)
print(compare(twos[0], mine))
prediction = outcome(mine)  # with hindsight
EXPECTED = [((), "as predicted")]
print(check_exercise("Exercise 2, solution", compared, EXPECTED))
