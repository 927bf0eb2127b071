# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# {{badges}}
#
# **You will be able to** train a language model with GRPO, measure whether it improved, and save a model that plain
# `transformers` loads, with the libraries' own calls.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | 50 to 120 minutes ([estimated](../docs/t4.md), never run); first try `STEPS=20` and `EVAL_ROWS=40`: 15 to 35 |
# | memory | 1.6 GB ([measured](../docs/results.md)) | 3 to 8 GiB on the card ([estimated](../docs/t4.md), never run) |
# | model | 0.46 million parameters, ships with the course | Qwen2.5-1.5B-Instruct, or Gemma 3 1B |
# | task | two-digit additions | GSM8K, school word problems |
#
# **The numbers in the text** are from the stored CPU run, seed 0. Other seeds and machines give others.

# %% [markdown]
# ## 1. How GRPO learns
#
# The model that you train is called the *policy*. A *completion* is one answer that it writes. GRPO, *group relative
# policy optimization*, repeats four moves:
#
# 1. Take a few prompts, and sample a *group* of completions for each.
# 2. Score every completion with *reward functions*: plain Python that checks the answer.
# 3. Compare each score with the mean of its own group. The result is the *advantage*:
#    `(r-mean(r))/(std(r)+0.0001)`.
# 4. Change the weights of a small *adapter* (section 6) a little: completions with a positive advantage become more
#    likely, the others less.
#
# **GRPO reinforces what the model already does sometimes; it cannot reward what is never sampled.**
#
# ## 2. Set up
#
# On Colab and Kaggle, the next cell installs the course and missing packages (a few minutes; never run there so far).
# On Kaggle, turn on *Internet* in the settings first. Elsewhere it does nothing.

# %%
# {{install unsloth}}

# %% [markdown]
# These are the only settings. Change them here, or from a terminal: `make run ARGS="-p FAMILY gemma"`.

# %% tags=["parameters"]
PROFILE: str = "auto"  # auto, cpu, t4, l4, a100 or h100
FAMILY: str = "qwen"  # qwen or gemma
MODEL: str = ""  # any hub id or local folder; empty: the profile's own
BACKEND: str = "unsloth"  # unsloth, or transformers (with PEFT)
BASE_BITS: int = 0  # 4 or 16 for the frozen base; 0: the profile's own
STEPS: int = 0  # optimizer steps; 0: the profile's own number
SEED: int = 0  # everything random follows from it
EVAL_ROWS: int = 0  # held-out prompts; 0: the profile's own number
REPORT_TO: str = "none"  # none, trackio, tensorboard or wandb
OUTPUT_DIR: str = "outputs/run"  # adapter, merged model and report

# %% [markdown]
# `setup` finds a *profile*, the sizes that fit your machine. It checks every setting and package version, and makes a
# folder for this run. An earlier run in that folder is renamed and kept.

# %%
from grpo_utils import setup

model = FAMILY, MODEL, BACKEND, BASE_BITS
run = setup(PROFILE, *model, STEPS, EVAL_ROWS, REPORT_TO, OUTPUT_DIR)
profile = run.profile

# %% [markdown]
# Import Unsloth first: on a GPU it replaces parts of transformers and TRL with faster ones. On a CPU, TRL's own
# trainer does the work, in fp32.

# %% tags=["gpu-path"]
if BACKEND == "unsloth":
    from unsloth import FastLanguageModel
import torch
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

# %% [markdown]
# **Settings and versions are checked before anything slow starts.**
#
# ## 3. The data
#
# A row for GRPO has a `prompt`, as chat messages, and what the reward needs: here the correct result, the *gold
# answer*. *Held-out* rows are never trained on; they measure.

# %% tags=["gpu-path"]
from grpo_utils import drop_long_prompts, load_rows, math_rewards

train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
test_rows = load_rows(profile.dataset, "test", profile.eval_rows, SEED)
print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
for message in train_rows[0]["prompt"]:
    print(f"{message['role']:>6}: {message['content']}")
print(f"answer: {train_rows[0]['answer']}")

# %% [markdown]
# The system prompt asks for a *form*: reasoning in one pair of tags, the answer in another. A row has no worked
# solution.
#
# **The model sees prompts; only the reward sees the gold answer.**
#
# ## 4. The rewards
#
# A reward function takes a list of completions and returns one score for each. Columns of the dataset, such as
# `answer`, arrive as further arguments. TRL multiplies each score by the function's weight and adds them up. The
# source of our three:

# %% tags=["gpu-path"]
import inspect

rewards, weights = math_rewards()
for weight, function in zip(weights, rewards):
    print(f"# weight {weight}\n{inspect.getsource(function)}")

# %% [markdown]
# `AnswerReward()` compares the text between the `<answer>` tags with the gold answer, as a number or as text.
# `split_form` returns `None` unless the text has exactly the form. `count_placed_tags` counts tags in their place, so
# that half a form earns more than none.
#
# Try rewards before you train: many runs fail because a reward is always zero, or pays a wrong answer.

# %% tags=["nbval-check-output"]
HAND_WRITTEN = [
    "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "<reasoning>15 + 27 = 42 <answer>42",
    "<answer>41</answer><answer>42</answer>",
]
columns = [reward(HAND_WRITTEN, answer=["42"] * 4) for reward in rewards]
for text, scores in zip(HAND_WRITTEN, zip(*columns)):
    total = sum(weight * score for weight, score in zip(weights, scores))
    print(f"{text}\n{total:6.3f} from {scores}")

# %% [markdown]
# The right answer in the right form earns 3.0, a wrong answer in perfect form 1.0, and two answers nothing.
# ([Lesson 02](02_rewards.ipynb) attacks rewards.)
#
# Add one function with weight 0: it changes nothing in training, but its mean appears in the log. TRL leaves `None`
# out of that mean, so it is the share of right answers among those in form.

# %% tags=["gpu-path"]
correctness, strict_format = rewards[:2]


def right_if_in_form(completions, answer, **kwargs) -> list[float | None]:
    right = correctness(completions, answer=answer)
    formed = strict_format(completions)
    return [score if form else None for form, score in zip(formed, right)]


rewards, weights = [*rewards, right_if_in_form], [*weights, 0.0]

# %% [markdown]
# **In the same form, a right answer must always earn more than a wrong one.**
#
# ## 5. The settings
#
# Unsloth changes many of TRL's defaults on a GPU; `PINNED` sets them, so that a run is the same with and without it.

# %% tags=["gpu-path"]
on_cpu = profile.name == "cpu"
PINNED = dict(loss_type="dapo", epsilon=0.2, epsilon_high=0.2)
PINNED |= dict(scale_rewards="group", mask_truncated_completions=False)
PINNED |= dict(num_iterations=1, top_p=1.0, top_k=0, generation_kwargs=None)
PINNED |= dict(lr_scheduler_type="linear", warmup_steps=0, max_grad_norm=1.0)
PINNED |= dict(weight_decay=0.0, router_aux_loss_coef=0.0, disable_tqdm=True)
PINNED |= dict(auto_find_batch_size=False, eval_accumulation_steps=None)
PINNED |= dict(logging_steps=1, logging_nan_inf_filter=False, save_steps=25)
PINNED |= dict(dataloader_pin_memory=False, torch_empty_cache_steps=None)
PINNED |= dict(include_num_input_tokens_seen="no", save_total_limit=1)
PINNED |= dict(save_strategy="no" if on_cpu else "steps", use_cpu=on_cpu)
PINNED |= dict(gradient_checkpointing=not on_cpu, use_vllm=profile.use_vllm)
PINNED |= dict(steps_per_generation=profile.gradient_accumulation_steps)
PINNED |= dict(per_device_eval_batch_size=profile.per_device_train_batch_size)

# %% [markdown]
# Change these in a project of your own:

# %% tags=["gpu-path"]
config = GRPOConfig(
    output_dir=str(run.folder / "checkpoints"),
    max_steps=profile.steps,  # optimizer steps
    learning_rate=profile.learning_rate,  # adapters take 10 x the usual rate
    num_generations=profile.num_generations,  # completions in a group
    per_device_train_batch_size=profile.per_device_train_batch_size,
    gradient_accumulation_steps=profile.gradient_accumulation_steps,
    max_completion_length=profile.max_completion_length,  # in tokens
    temperature=1.0,  # sample from the policy as it is
    beta=0.0,  # nothing pulls the policy back to the base model
    reward_weights=weights,
    optim=profile.optim,  # 8-bit AdamW saves memory on a GPU
    bf16=profile.dtype == "bfloat16",
    fp16=profile.dtype == "float16",  # a T4 has no bf16 units
    seed=SEED,
    report_to=REPORT_TO,
    **PINNED,
)
print(f"{config.max_steps} steps, groups of {config.num_generations}")

# %% [markdown]
# A *token* is a piece of text, often a word. `per_device_train_batch_size` counts **completions**, not prompts; with
# `gradient_accumulation_steps` it must hold whole groups.
#
# TRL does not shorten a long prompt, so drop such rows. Then run the *preflight*: it checks settings, rows and rewards
# against each other, and estimates memory and minutes. An error stops the notebook before any weights are loaded.
# ([What it checks](../docs/preflight.md).)

# %% tags=["gpu-path"]
tokenizer = AutoTokenizer.from_pretrained(run.path)
longest = profile.max_prompt_length
train_rows = drop_long_prompts(train_rows, tokenizer, longest)

# %%
from grpo_check import preflight

parts = dict(model=run.model, tokenizer=tokenizer, rewards=rewards)
parts |= dict(train=train_rows, heldout=test_rows, backend=BACKEND)
checked = preflight(config, profile=profile, **parts)
print(checked)
checked.stop_on_errors()

# %% [markdown]
# **Read the last line first: no errors means that the run can start.**
#
# ## 6. The policy
#
# Load the *base model* in 4 bits, which takes a quarter of the memory of 16 bits. Its weights stay frozen.

# %% tags=["gpu-path"]
dtype = getattr(torch, profile.dtype)
saves_memory = False if on_cpu else "unsloth"  # less memory, more time
if BACKEND == "unsloth":
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=run.path,
        max_seq_length=profile.max_seq_length,  # prompt and completion
        dtype=dtype,
        load_in_4bit=profile.load_in_4bit,
        use_gradient_checkpointing=saves_memory,
    )
    policy.generation_config.max_length = None  # max_new_tokens is the limit

# %% [markdown]
# Now add a *LoRA adapter*: two small trainable matrices next to each frozen one. Their product has rank `r`, is scaled
# by `lora_alpha / r`, and is added to the frozen matrix. In PEFT, that is a `LoraConfig`:

# %% tags=["gpu-path"]
attention = ["q_proj", "k_proj", "v_proj", "o_proj"]
lora = LoraConfig(
    r=profile.lora_rank,
    lora_alpha=profile.lora_alpha,
    lora_dropout=0.0,
    target_modules=[*attention, "gate_proj", "up_proj", "down_proj"],
    task_type="CAUSAL_LM",
)

# %% [markdown]
# Unsloth takes the same settings by name. `BACKEND="transformers"` does it with PEFT, in one call.

# %% tags=["gpu-path"]
from grpo_utils import evaluate, load_policy

if BACKEND == "unsloth":
    policy = FastLanguageModel.get_peft_model(
        policy,
        r=lora.r,
        lora_alpha=lora.lora_alpha,
        lora_dropout=lora.lora_dropout,
        target_modules=sorted(lora.target_modules),
        use_gradient_checkpointing=saves_memory,
        random_state=SEED,
    )
else:
    how = dict(backend=BACKEND, load_in_4bit=profile.load_in_4bit, seed=SEED)
    policy, tokenizer = load_policy(run.model, profile=profile, **how)
policy.print_trainable_parameters()

# %% [markdown]
# **Only the adapter learns; the 4-bit base never changes.**
#
# ## 7. Measure before
#
# Answer every held-out prompt twice: *sampled* at temperature 1, as in training, and *greedily*, which always takes
# the most likely token. *Strict accuracy* counts answers that are in form and right.

# %%
judging = dict(max_new_tokens=profile.max_completion_length, seed=SEED)
judging |= dict(batch_size=profile.eval_batch_size, temperature=1.0)
before = evaluate(policy, tokenizer, test_rows, **judging)
print(*before.sampled[:4], sep="\n")
print(f"in form, sampled:         {before.format}")
print(f"strict accuracy, sampled: {before.accuracy}")
print(f"strict accuracy, greedy:  {before.greedy_accuracy}")

# %% [markdown]
# The brackets hold a *95 % interval*. You measured some of many possible prompts, so the true rate differs from the
# measured one. In 95 of 100 such experiments, an interval computed this way (Wilson's) contains the true rate. More
# prompts make it narrower.
#
# The base model writes the form in 0.315 of its answers and often forgets the carry: `16+15=21`. But sometimes it adds
# digit by digit (`6+3=9, 8+9=17`), and then it is right.
#
# **Strict accuracy starts at 0.25 when sampled: enough right answers to reinforce.**
#
# ## 8. Train
#
# `GRPOTrainer` brings policy, settings, rows and rewards together.

# %% tags=["gpu-path"]
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=rewards,
)
for weight in policy.parameters():
    if weight.requires_grad:
        weight.data = weight.data.float()

# %% [markdown]
# The loop puts the adapter back into fp32, numbers of 32 bits. TRL casts it to bf16 (16 bits) on a 4-bit base, which
# rounds small updates away.
#
# A *callback* runs at every step. `HealthCallback` reports what is wrong, and stops a hopeless run
# ([lesson 04](04_reading_a_run.ipynb)). The bar shows the reward, the share of right answers (`correct`), and of groups
# whose completions all score the same (`tied`).

# %%
from grpo_check import HealthCallback
from grpo_utils import save_adapter, show_progress

show_progress(trainer)
trainer.add_callback(HealthCallback(test_rows, every=50))
trainer.train()
saved = save_adapter(policy, tokenizer, run.folder / "adapter", run.model)

# %% [markdown]
# `save_adapter` is PEFT's `save_pretrained`, and notes the base's public name.
#
# **Save the adapter at once, before anything else can fail.**
#
# ## 9. Read the log
#
# `trainer.state.log_history` has about thirty numbers per step. Start with four.

# %%
history = trainer.state.log_history
KEYS = "loss reward frac_reward_zero_std completions/mean_length"
print(f"{'':24}{'first':>9}{'last':>9}{'largest':>9}")
for key in KEYS.split():
    values = [entry[key] for entry in history if key in entry]
    print(f"{key:24}{values[0]:9.3f}{values[-1]:9.3f}{max(values):9.3f}")

# %% [markdown]
# - **`loss`** does not measure progress. It stays near 0 while the policy learns, because each group's advantages sum
#   to 0.
# - **`reward`** is the weighted sum, averaged over the batch. It rose from 0.93 to 2.94; 3.00 is the maximum.
# - **`frac_reward_zero_std`** is the share of tied groups. Their advantages are 0, so they teach nothing. It rose from
#   0.00 to 0.88. With a reward near 3 that means solved; with a reward near 0 it would mean hopeless.
# - **`completions/mean_length`** counts tokens. It grew from 16 to 22.

# %%
from grpo_utils import check_merged, report_run, show_learning

show_learning(history)

# %% [markdown]
# The form comes first, because it is the same for every question. The share of right answers among those in form rose
# from 0.74 to 0.97. Completions gain tags, and then steps of arithmetic.
#
# **The policy found by itself that adding digit by digit pays.**
#
# ## 10. Measure after
#
# Use the same prompts and the same decoding as before.

# %%
after = evaluate(policy, tokenizer, test_rows, **judging)
for row, old, new in list(zip(test_rows, before.sampled, after.sampled))[:4]:
    print(row["prompt"][-1]["content"][-60:], "  gold:", row["answer"])
    print(f"  before: {old[:100]!r}")
    print(f"  after:  {new[:100]!r}")

# %% [markdown]
# Four samples prove nothing: compare all held-out prompts. `report_run` prints two tables, and writes every number and
# setting to `report.json`.

# %%
report_run(run, trainer, before, after, judging)

# %% [markdown]
# Strict accuracy rose from 0.25 to 0.99, and the two intervals are far apart. The sentence below the tables is a
# *paired test* (McNemar's), which compares each prompt with itself. Its `p` is the probability that chance alone gives
# such a one-sided change. At 0.05 or above, no change was shown.
#
# The second table counts only answers in form, with a *carry* (`15+27`) and without (`15+22`). Sums with a carry rose
# from 0.54 to 0.99. Sums without one were always right.
#
# **The policy improved in form and in arithmetic.**
#
# ## 11. Merge
#
# Load the base again, this time **unquantized** and in fp32, and add the adapter to its weights:

# %%
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
base = PeftModel.from_pretrained(base, str(run.folder / "adapter"))
merged = base.merge_and_unload()
merged.to(dtype).save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")
del base, merged  # gives the memory back

# %% [markdown]
# The trained policy had a 4-bit base, and the merged model has not. So evaluate it too, in a fresh process with plain
# `transformers`. `check_merged` also compares *logits*, the scores of the possible next tokens, before and after a
# merge.

# %%
folders = run.folder / "adapter", run.model, run.folder / "merged"
difference, again = check_merged(*folders, profile, test_rows, judging)
print(f"largest difference of a logit: {difference:.1e}\n")
figures = dict(merged=again, merge_difference=difference)
report_run(run, trainer, before, after, judging, **figures)

# %% [markdown]
# The merge changed logits by rounding only, and the merged model reaches 0.99 as well. `pipeline("text-generation",
# model="outputs/run/merged")` loads it without PEFT or this course.
#
# **Evaluate the model that you release, not the policy that it came from.**
#
# ## 12. What this run proves
#
# On a CPU, every part above is real, and the model learned from its own samples. Not shown: Unsloth's GPU kernels,
# fp16, bf16 and the memory of a large model. The course's tests simulate Unsloth's GPU trainer
# ([what that covers](../docs/compatibility.md)); the GPU profiles were never run.
#
# **You learned the method; a tiny model on additions says nothing about GSM8K scores.**
#
# ## 13. All of it in one file
#
# `templates/minimal/train.py` trains and measures in one script, without this course's packages. This is all; copy it:
# `python -m grpo_utils new minimal my-project`.

# %%
from pathlib import Path

source = Path(inspect.getfile(setup)).parents[1] / "templates/minimal/train.py"
print(source.read_text() if source.is_file() else "not part of this install")

# %% [markdown]
# **Change the marked part (model, rows and rewards), and keep the rest.**
#
# ## 14. Cheat sheet
#
# | symptom | check | fix |
# |---|---|---|
# | reward is 0 from the start | score hand-written completions; sample the base model | fix the reward; choose easier prompts |
# | reward rises, accuracy does not | try wrong answers in perfect form | pay less for form ([lesson 02](02_rewards.ipynb)) |
# | most groups tied, low reward | are all completions wrong? | easier prompts, larger `num_generations` |
# | `completions/clipped_ratio` above 0.1 | are answers cut off? | raise `max_completion_length` |
# | nothing changes | adapter in fp32? | cast it; raise `learning_rate` |
# | out of memory | longest completion | halve the batch, double the accumulation |
# | merged model is worse | which base? | the unquantized one, in fp32 |
#
# **Start with samples: most symptoms are visible in ten completions.**
#
# ## 15. Exercises
#
# **Exercise 1.** Write `advantages(rewards)` for one group, as in section 1, with `statistics.stdev`. What does a tied
# group get?


# %%
def advantages(rewards: list[float]) -> list[float]:
    """Your answer: one advantage for each reward of the group."""
    return []


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

GROUPS = [(([3.0, 3.0, 1.0, 0.0],), [0.83, 0.83, -0.5, -1.17])]
HINTS = [([1.25, 1.25, -0.75, -1.75], "Divide by the deviation, too.")]
HINTS += [([0.96, 0.96, -0.58, -1.35], "stdev divides by n - 1, pstdev by n.")]
print(check_exercise("Exercise 1", advantages, GROUPS, HINTS))

# %% [markdown]
# **Exercise 2.** With `batch` completions per device, `accumulation` steps and groups of `group`, how many different
# prompts does one optimizer step see?
#
# **Try both before you unfold the solutions below.** Next: [lesson 04](04_reading_a_run.ipynb) breaks runs. To read:
# *DeepSeekMath* (arXiv 2402.03300).


# %%
def prompts_per_step(batch: int, accumulation: int, group: int) -> int:
    """Your answer: a number of prompts."""


# %% tags=["nbval-check-output"]
SIZES = [((8, 4, 8), 4), ((32, 2, 16), 4)]
HINTS = [(32, "Those are completions."), (1, "Count the accumulation, too.")]
print(check_exercise("Exercise 2", prompts_per_step, SIZES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a tied group gets zeros; there is nothing to learn from it.
# </details>

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
import statistics


def advantages_solution(rewards: list[float]) -> list[float]:
    mean, spread = statistics.mean(rewards), statistics.stdev(rewards)
    return [(reward - mean) / (spread + 1e-4) for reward in rewards]


print(check_exercise("Exercise 1, solution", advantages_solution, GROUPS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: the completions of one step, divided by the size of a group.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def prompts_solution(batch: int, accumulation: int, group: int) -> int:
    return batch * accumulation // group


print(check_exercise("Exercise 2, solution", prompts_solution, SIZES))
