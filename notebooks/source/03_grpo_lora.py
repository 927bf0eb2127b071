# %% [markdown]
# # 03 · GRPO with a 4-bit LoRA
#
# {{badges}}
#
# **You will be able to** train a language model with GRPO, measure whether it improved, and export it for plain
# `transformers`.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | 30 to 65 minutes with `STEPS=20` and `EVAL_ROWS=40`; 3 to 8 hours in full ([estimated](../docs/t4.md), never run) |
# | memory | 1.6 GB ([measured](../docs/results.md)) | 4 to 9 GiB of GPU memory ([estimated](../docs/t4.md), never run) |
# | model | 0.46 million parameters, included | Qwen2.5-1.5B-Instruct, or Gemma 3 1B |
# | task | two-digit addition | GSM8K, grade-school word problems |
#
# **Numbers in the text** come from the stored CPU run (seed 0). Yours will differ with other seeds and machines.

# %% [markdown]
# ## 1. How GRPO learns
#
# The model that you train is called the *policy*. A *completion* is one answer that it writes. GRPO, *group relative
# policy optimization*, repeats four moves:
#
# 1. Take a few prompts, and sample a *group* of completions for each.
# 2. Score every completion with *reward functions*: plain Python that checks the answer.
# 3. Compare each score with the mean of its own group. The result is the *advantage*:
#    `(r-mean(r))/(std(r)+0.0001)`. The 0.0001 avoids a division by zero.
# 4. Change the weights of a small *adapter* (section 6) a little: completions with a positive advantage become more
#    likely, those with a negative advantage less likely.
#
# **GRPO reinforces what the model already does sometimes.**
#
# ## 2. Set up
#
# On Colab and Kaggle, the next cell installs the course in a few minutes. (We have not run it there yet.) On Kaggle,
# first turn on *Internet* in the settings. Elsewhere, the cell does nothing.

# %%
# {{install unsloth}}

# %% [markdown]
# Change the lesson's settings here, or from a terminal: `make run ARGS="-p FAMILY gemma"`.

# %% tags=["parameters"]
PROFILE: str = "auto"  # auto, cpu, t4, l4, a100 or h100
FAMILY: str = "qwen"  # qwen or gemma
MODEL: str = ""  # hub id or local folder; empty: profile default
BACKEND: str = "unsloth"  # unsloth, or transformers (with PEFT)
BASE_BITS: int = 0  # 4 or 16 for the frozen base; 0: profile default
STEPS: int = 0  # optimizer steps; 0: profile default
ENABLE_THINKING: bool = False  # for models with this switch, such as Qwen3
SEED: int = 0  # seeds all randomness
EVAL_ROWS: int = 0  # held-out prompts; 0: profile default
REPORT_TO: str = "none"  # none, trackio, tensorboard or wandb
OUTPUT_DIR: str = "outputs/run"  # adapter, merged model and report

# %% [markdown]
# **To train Qwen3 on a T4**, set `MODEL="unsloth/Qwen3-1.7B"` (never run here). Leave `ENABLE_THINKING` at `False`: the
# chat template then adds an empty thought to the prompt, in training and in evaluation alike. With thinking on, most
# completions reach the limit before they answer, and [more has to change](../docs/models.md#thinking-on-or-off).

# %% [markdown]
# `setup` picks a *profile*: a task and sizes that fit your machine. It also checks your settings and package versions,
# and creates a folder for this run.

# %%
from grpo_utils import setup

model = FAMILY, MODEL, BACKEND, BASE_BITS
run = setup(PROFILE, *model, STEPS, EVAL_ROWS, REPORT_TO, OUTPUT_DIR)
profile = run.profile  # run.path: the weights; run.model: their name

# %% [markdown]
# Import Unsloth first: on a GPU it replaces parts of transformers and TRL with faster ones. On a CPU, TRL's own
# trainer does the work in *fp32*, 32-bit numbers.

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
# A GRPO row has a `prompt`, as chat messages, and whatever the reward needs: here, the correct result or *gold
# answer*. *Held-out* rows are used only to evaluate.

# %% tags=["gpu-path"]
from grpo_utils import drop_long_prompts, load_rows, math_rewards

train_rows = load_rows(profile.dataset, "train", profile.train_rows, SEED)
test_rows = load_rows(profile.dataset, "test", profile.eval_rows, SEED)
print(f"{len(train_rows)} rows to train on, {len(test_rows)} held out")
train_rows[0]

# %% [markdown]
# The system prompt asks for a *format*: reasoning in one pair of tags, the answer in another. GRPO needs no worked
# solutions.
#
# **The model sees prompts; only the reward sees the gold answer.**
#
# ## 4. The rewards
#
# A reward function takes a list of completions and returns one score for each. Dataset columns, such as `answer`,
# arrive as keyword arguments. TRL multiplies each score by its function's weight and adds them up. Here are our three:

# %% tags=["gpu-path"]
import inspect

rewards, weights = math_rewards()
for weight, function in zip(weights, rewards):
    print(f"# weight {weight}\n{inspect.getsource(function)}")

# %% [markdown]
# `AnswerReward()` compares the text between the `<answer>` tags with the gold answer. `split_form` returns `None` unless
# the whole text has the format. `count_placed_tags` counts correctly placed tags.
#
# Test rewards before you train:

# %% tags=["nbval-check-output"]
HAND_WRITTEN = [
    "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>",
    "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "<reasoning>15 + 27 = 42 <answer>42",
    "<answer>41</answer><answer>42</answer>",
]


def total_rewards(texts: list[str], gold: str) -> list[float]:
    scores = [reward(texts, answer=[gold] * len(texts)) for reward in rewards]
    return [sum(w * s for w, s in zip(weights, row)) for row in zip(*scores)]


for text, reward in zip(HAND_WRITTEN, total_rewards(HAND_WRITTEN, "42")):
    print(f"{reward:6.3f}  {text}")

# %% [markdown]
# A correct answer in the correct format earns 3.0, and a wrong one 1.0. Missing tags cut the score to 0.25, and two
# answers earn nothing. ([Lesson 02](02_rewards.ipynb) attacks rewards.)
#
# Now add a function with weight 0. It does not affect training, but TRL logs its mean, without `None`: the share of
# correct answers among correctly formatted ones.

# %% tags=["gpu-path"]
correctness, strict_format = rewards[:2]


def correct_if_formatted(completions, answer, **kwargs) -> list[float | None]:
    scores = zip(correctness(completions, answer), strict_format(completions))
    return [correct if formatted else None for correct, formatted in scores]


all_rewards, all_weights = [*rewards, correct_if_formatted], [*weights, 0.0]

# %% [markdown]
# **In the same format, a correct answer must always earn more than a wrong one.**
#
# ## 5. The settings
#
# The *learning rate* is how far one step moves the weights. On a GPU, Unsloth changes the defaults of many other settings.
# `PINNED` sets each of these, nearly always to TRL's own default, so that a run is the same with and without Unsloth.
# Print it to see them. (`scale_rewards="group"`, for example, is the division by `std` in section 1.)

# %% tags=["gpu-path"]
from grpo_utils import PINNED

on_cpu = profile.name == "cpu"
config = GRPOConfig(
    output_dir=str(run.folder / "checkpoints"),
    max_steps=profile.steps,  # optimizer steps
    learning_rate=profile.learning_rate,  # LoRA: 10x full fine-tuning's
    lr_scheduler_type=profile.lr_scheduler_type,  # falls to 0, or constant
    warmup_steps=profile.warmup_steps,  # steps up to the full rate
    num_generations=profile.num_generations,  # completions in a group
    per_device_train_batch_size=profile.per_device_train_batch_size,
    per_device_eval_batch_size=profile.per_device_train_batch_size,
    gradient_accumulation_steps=profile.gradient_accumulation_steps,
    steps_per_generation=profile.gradient_accumulation_steps,
    max_completion_length=profile.max_completion_length,  # in tokens
    temperature=1.0,  # sample from the unmodified distribution
    beta=0.0,  # no KL penalty, which would pull toward the base model
    chat_template_kwargs={"enable_thinking": ENABLE_THINKING},
    reward_weights=all_weights,
    optim=profile.optim,  # 8-bit AdamW saves memory on a GPU
    bf16=profile.dtype == "bfloat16",
    fp16=profile.dtype == "float16",  # a T4 has no bf16 units
    use_cpu=on_cpu,
    use_vllm=profile.use_vllm,
    gradient_checkpointing=not on_cpu,
    save_strategy="no" if on_cpu else "steps",
    save_steps=25,
    save_total_limit=1,  # keep only the newest checkpoint
    logging_steps=1,
    disable_tqdm=True,  # `show_progress` shows a bar instead
    report_to=REPORT_TO,
    seed=SEED,
    **PINNED,
)
for name in ("max_steps", "learning_rate", "per_device_train_batch_size"):
    print(f"{name:28}{getattr(config, name)}")

# %% [markdown]
# A *token* is a piece of text, often a word. `per_device_train_batch_size` counts **completions**, not prompts: here,
# 64 completions per step make 8 groups of 8.
#
# TRL does not truncate prompts, so drop rows with long ones. Then run the *preflight*. It
# [checks](../docs/preflight.md) that settings, rows and rewards fit together, and it estimates memory and time.

# %% tags=["gpu-path"]
tokenizer = AutoTokenizer.from_pretrained(run.path)
longest = profile.max_prompt_length
template = config.chat_template_kwargs  # as in training
train_rows = drop_long_prompts(train_rows, tokenizer, longest, template)

# %%
from grpo_check import preflight

checked = preflight(
    config,
    profile=profile,
    model=run.model,
    tokenizer=tokenizer,
    train=train_rows,
    heldout=test_rows,
    rewards=all_rewards,
    backend=BACKEND,
)
print(checked)
checked.stop_on_errors()

# %% [markdown]
# The estimates are rough: in the stored run, training took longer than estimated (section 8).
#
# **Read the last line first: no errors means that the run can start.**
#
# ## 6. The policy
#
# Load the *base model* in 4 bits: its linear layers then take about a quarter of the memory of 16 bits. Its weights stay
# frozen.

# %% tags=["gpu-path"]
dtype = getattr(torch, profile.dtype)
saves_memory = False if on_cpu else "unsloth"  # less memory, slower
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
# Now add a *LoRA adapter*: two small trainable matrices next to each frozen one. Their product has *rank* `r`, is scaled
# by `lora_alpha / r`, and is added to the frozen matrix.

# %% tags=["gpu-path"]
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]
LORA = dict(
    r=profile.lora_rank,
    lora_alpha=profile.lora_alpha,
    lora_dropout=0.0,
    target_modules=ATTENTION + MLP,  # all linear layers
)
LoraConfig(**LORA, task_type="CAUSAL_LM")

# %% [markdown]
# That is PEFT's `LoraConfig`. Unsloth takes the same settings as arguments. With `BACKEND="transformers"`, `load_policy`
# calls PEFT's `get_peft_model(base, LoraConfig(...))` instead.

# %% tags=["gpu-path"]
from grpo_utils import evaluate, load_policy

if BACKEND == "unsloth":
    policy = FastLanguageModel.get_peft_model(
        policy,
        **LORA,
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
# ## 7. Evaluate the base model
#
# First look at one group, as GRPO sees it: eight completions of one prompt, their rewards and advantages.

# %%
from grpo_utils import generate

decoding = dict(
    max_new_tokens=profile.max_completion_length,
    temperature=1.0,
    batch_size=profile.eval_batch_size,
    chat_template_kwargs=template,
    seed=SEED,
)
group = generate(policy, tokenizer, [test_rows[4]["prompt"]] * 8, **decoding)
scores = torch.tensor(total_rewards(group, test_rows[4]["answer"]))
advantages = (scores - scores.mean()) / (scores.std() + 1e-4)
for text, score, advantage in zip(group, scores, advantages):
    print(f"reward {score:.2f}  advantage {advantage:+.2f}  {text[:60]}")

# %% [markdown]
# A correct, correctly formatted answer earns 3.0. Here {{sum(scores == 3)}} of eight do, and GRPO would make them more
# likely. A wrong answer in the correct format earns 1.0, less than this group's mean of {{scores.mean():.2f}}.
#
# A group teaches what is correct only if it holds both correct and wrong answers. Count such groups for eight
# training prompts:

# %%
size = profile.num_generations
some = [row for row in train_rows.select(range(8)) for _ in range(size)]
texts = generate(
    policy, tokenizer, [row["prompt"] for row in some], **decoding
)
correct = correctness(texts, answer=[row["answer"] for row in some])
counts = [sum(correct[i : i + size]) for i in range(0, len(some), size)]
found, mixed = sum(c > 0 for c in counts), sum(0 < c < size for c in counts)
print(f"groups with a correct answer:          {found} of 8")
print(f"groups with correct and wrong answers: {mixed} of 8")
if not found:
    print("Nothing correct to reinforce yet: start with SFT (lesson 09),")
    print("choose easier rows, or give partial credit for the answer.")

# %% [markdown]
# `evaluate` generates two answers per held-out prompt: one *sampled* at *temperature* 1, with the policy's own
# probabilities, and one *greedy*, always taking the most likely token. *Strict accuracy* counts answers that are correct and correctly
# formatted.

# %%
before = evaluate(policy, tokenizer, test_rows, **decoding)
print(f"format, sampled:          {before.format}")
print(f"strict accuracy, sampled: {before.accuracy}")
print(f"strict accuracy, greedy:  {before.greedy_accuracy}")
print(f"a greedy answer:          {before.greedy[1]}")

# %% [markdown]
# The parentheses contain a *95% interval* (Wilson's). With only 200 prompts, the measured rate differs somewhat from
# the true one. About 95 of 100 intervals computed this way contain the true rate.
#
# The most likely answer (`{{before.greedy[1]}}`) lacks the format, and greedy accuracy is
# {{before.greedy_accuracy.value:.2f}}. But {{before.format.value:.0%}} of the samples have it.
#
# **Strict accuracy starts at {{before.accuracy.value:.2f}} when sampled: enough correct answers to reinforce.**
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
    reward_funcs=all_rewards,
)
for weight in policy.parameters():
    if weight.requires_grad:
        weight.data = weight.data.float()

# %% [markdown]
# TRL casts the adapter of a 4-bit base to *bf16* (16 bits), which rounds small updates away. The loop casts it back to
# fp32.
#
# A *callback* runs at every step. `HealthCallback` reports problems and stops a hopeless run
# ([lesson 04](04_reading_a_run.ipynb)). The progress bar shows the mean reward, the share of correct answers
# (`correct`), and the share of groups whose completions all score the same (`tied`).

# %%
from grpo_check import HealthCallback
from grpo_utils import save_adapter, show_progress

show_progress(trainer)
trainer.add_callback(HealthCallback(test_rows, every=50))
trainer.train()
saved = save_adapter(policy, tokenizer, run.folder / "adapter", run.model)

# %% [markdown]
# `save_adapter` calls PEFT's `save_pretrained` and records the base model's name.
#
# **Save the adapter at once, before anything else can fail.**
#
# ## 9. Read the log
#
# `trainer.state.log_history` has about thirty numbers per step.

# %%
import numpy as np
from grpo_utils import logged, show_learning

history = trainer.state.log_history
KEYS = ["loss", "reward", "frac_reward_zero_std", "completions/mean_length"]
KEYS += ["rewards/correct_if_formatted/mean"]
curves = {key: logged(history, key) for key in KEYS}
print(f"{'':34}{'first':>9}{'last':>9}{'largest':>9}")
for key, values in curves.items():
    largest = np.nanmax(values)
    print(f"{key:34}{values[0]:9.3f}{values[-1]:9.3f}{largest:9.3f}")
show_learning(history)

# %% [markdown]
# - **`loss`** does not measure progress. It hovers around 0, because each group's advantages sum to 0. It is not exactly
#   0, because completions differ in length.
# - **`reward`** is the weighted sum, averaged over the *batch*, the completions of one step. It rose from
#   {{curves["reward"][0]:.2f}} to {{curves["reward"][-1]:.2f}}; the maximum is 3.00.
# - **`frac_reward_zero_std`** is the share of tied groups. Their advantages are 0, so they teach nothing. It rose from
#   {{curves["frac_reward_zero_std"][0]:.2f}} to {{curves["frac_reward_zero_std"][-1]:.2f}}, because most groups are now
#   all correct. With a reward near 0, they would be all wrong.
# - **`completions/mean_length`** counts tokens. It grew from {{curves["completions/mean_length"][0]:.0f}} to
#   {{curves["completions/mean_length"][-1]:.0f}}.
#
# The policy learns the format first, because it is the same for every question. Among correctly formatted answers, the
# share of correct ones rose from {{curves[KEYS[-1]][0]:.2f}} to {{curves[KEYS[-1]][-1]:.2f}}. (Section 10 explains why this
# share alone does not show better arithmetic.) Another model may print `nan` here: in that step, no completion was
# correctly formatted.
#
# **The format is learned first; the share of correct answers keeps rising.**
#
# ## 10. Evaluate the trained policy
#
# Use the same prompts and decoding.

# %%
after = evaluate(policy, tokenizer, test_rows, **decoding)
for row, old, new in list(zip(test_rows, before.sampled, after.sampled))[:4]:
    print(row["prompt"][-1]["content"][-60:], "  gold:", row["answer"])
    print(f"  before: {old[:100]!r}")
    print(f"  after:  {new[:100]!r}")

# %% [markdown]
# `report_run` compares all prompts in two tables and writes `report.json`.

# %%
from grpo_utils import check_merged, report_run

report_run(run, trainer, before, after, decoding)

# %% [markdown]
# Strict accuracy rose from {{before.accuracy.value:.2f}} to {{after.accuracy.value:.2f}}, and the two intervals are far
# apart. The last line reports a *paired test*
# (McNemar's), which compares each prompt before and after. `p` is the probability of a change at least this large by
# chance alone. Claim a change only if `p` is below 0.05.
#
# The second table counts only correctly formatted answers, with a *carry* (`15+27`) and without (`15+22`). Do
# not conclude from it that arithmetic improved: far fewer answers were formatted before training, so the two rows
# cover different prompts. [Lesson 06](06_evaluation.ipynb) compares the same prompts.
#
# **Judge a run by a paired test on the same prompts.**
#
# ## 11. Merge
#
# Load the base again, this time **unquantized** and in fp32, because 4-bit weights would round the small updates away.
# Then *merge*: add the adapter to its weights.

# %%
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
base = PeftModel.from_pretrained(base, str(run.folder / "adapter"))
merged = base.merge_and_unload()
merged.to(dtype).save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")
del base, merged  # free memory

# %% [markdown]
# You trained on a 4-bit base, but the merged model is unquantized, so evaluate it separately. `check_merged` does so with
# plain `transformers`. It also compares *logits*, the scores of possible next tokens, before and after
# merging.

# %%
folders = run.folder / "adapter", run.model, run.folder / "merged"
difference, again = check_merged(*folders, profile, test_rows, decoding)
print(f"largest logit difference: {difference:.1e}\n")
figures = dict(merged=again, merge_difference=difference)
report_run(run, trainer, before, after, decoding, **figures)

# %% [markdown]
# Merging changed the logits by only a rounding error, and the merged model reaches {{again.accuracy.value:.2f}}.
# `pipeline("text-generation", model="outputs/run/merged")` loads it without PEFT or this course.
#
# **Evaluate the model that you release, not the policy that it came from.**
#
# ## 12. Know what this run does not show
#
# The model learned from its own samples, but the run did not use Unsloth's GPU kernels, 16-bit numbers (bf16 or *fp16*)
# or a large model. Tests [simulate](../docs/compatibility.md) Unsloth's GPU trainer; the GPU profiles have never been run.
#
# **You learned the method; a tiny model on addition says nothing about GSM8K scores.**
#
# ## 13. Copy all of it in one file
#
# `templates/minimal/train.py` trains and evaluates in one script, without this course's packages. To copy it, run
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
# | step | call |
# |---|---|
# | import | `from unsloth import FastLanguageModel`, then `torch`, `datasets`, `transformers`, `trl` and `peft` |
# | rows | `rows = Dataset.from_list([{"prompt": [{"role": "system", "content": FORMAT}, {"role": "user", "content": "What is 15 + 27?"}], "answer": "42"}, …])` |
# | reward | `def reward(completions, answer, **kwargs): return [float(f"<answer>{a}</answer>" in c[0]["content"]) for c, a in zip(completions, answer)]` |
# | model | `policy, tokenizer = FastLanguageModel.from_pretrained(name, max_seq_length=128, load_in_4bit=True, dtype=torch.float32)`; the tiny one is `name = grpo_utils.model_path("tiny-qwen3")` |
# | adapter | `policy = FastLanguageModel.get_peft_model(policy, r=16, lora_alpha=32)` |
# | samples | `inputs = tokenizer.apply_chat_template(rows[0]["prompt"], add_generation_prompt=True, return_tensors="pt", return_dict=True)`, then `tokenizer.batch_decode(policy.generate(**inputs, max_new_tokens=32, do_sample=True, num_return_sequences=10))` |
# | settings | `config = GRPOConfig("run", max_steps=60, learning_rate=2e-3, num_generations=8, per_device_train_batch_size=64, max_completion_length=32, bf16=False)`; a real model takes a lower rate: 2e-4 in [lesson 14](14_real_model.ipynb), 5e-5 in the `t4` profile |
# | train | `trainer = GRPOTrainer(policy, [reward], config, rows, processing_class=tokenizer)`, cast (section 8), `trainer.train()`, `policy.save_pretrained("adapter")` |
# | merge | `base = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32)`, `PeftModel.from_pretrained(base, "adapter").merge_and_unload().save_pretrained("merged")`, `tokenizer.save_pretrained("merged")` |
# | notes | Ignore Unsloth's CPU warnings. 64 completions are 8 prompts, so 60 steps use 480 rows. Batches need `padding_side="left"`. |
#
# **Look at samples first.**
#
# ## 15. Exercises
#
# **Exercise 1.** Write `tied_share(rewards, size)`, the share of tied groups. `rewards` lists the groups one after
# another, `size` rewards each.


# %%
def tied_share(rewards: list[float], size: int) -> float:
    """Your answer: a share from 0 to 1."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

BATCHES = [(([3.0, 3.0, 1.0, 0.0], 2), 0.5), (([1.0] * 6, 3), 1.0)]
HINTS = [(1, "That counts the tied groups. How many groups are there?")]
print(check_exercise("Exercise 1", tied_share, BATCHES, HINTS))

# %% [markdown]
# **Exercise 2.** With `batch` completions per device, `accumulation` steps and groups of `group`, how many different
# prompts does one step use?
#
# **Try both before you unfold the solutions.** Next, [lesson 04](04_reading_a_run.ipynb) breaks runs. The GRPO paper is
# *DeepSeekMath* (arXiv 2402.03300).


# %%
def prompts_per_step(batch: int, accumulation: int, group: int) -> int:
    """Your answer: a number of prompts."""


# %% tags=["nbval-check-output"]
SIZES = [((8, 4, 8), 4), ((32, 2, 16), 4)]
HINTS = [(32, "That counts completions. How many share a prompt?")]
HINTS += [(1, "Did you include the accumulation steps?")]
print(check_exercise("Exercise 2", prompts_per_step, SIZES, HINTS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 1: a group is tied if its largest reward equals its smallest.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def tied_solution(rewards: list[float], size: int) -> float:
    starts = range(0, len(rewards), size)
    groups = [rewards[start : start + size] for start in starts]
    return sum(max(group) == min(group) for group in groups) / len(groups)


print(check_exercise("Exercise 1, solution", tied_solution, BATCHES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# Exercise 2: the completions of one step, divided by the size of a group.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def prompts_solution(batch: int, accumulation: int, group: int) -> int:
    return batch * accumulation // group


print(check_exercise("Exercise 2, solution", prompts_solution, SIZES))
