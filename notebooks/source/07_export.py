# %% [markdown]
# # 07 · Keep, resume, export
#
# We kill a training run, cut its newest checkpoint in half, and start the same command again. The run still finishes its 8
# steps.
#
# **Guess first:** compare the resumed adapter with that of an uninterrupted run, weight by weight. Is the largest difference
# exactly 0, a rounding error, or large enough to change answers?
#
# You will be able to resume a killed run, merge an adapter and check what the merge changed, and publish and serve the model.
#
# You need [lesson 03](03_grpo_lora.ipynb).
#
# Your time: 50–60 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.4 GB of memory.
#
# {{badges}}

# %% [markdown]
# <details><summary>Set up: on Colab and Kaggle</summary>
#
# {{steps}}
#
# On Colab and Kaggle, the next cell installs the course in a few minutes. On Kaggle, first turn on *Internet* in the
# settings. Elsewhere, the cell does nothing.
# </details>

# %% cellView="form" jupyter={"source_hidden": true}
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson always trains on the CPU
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps; 0: the lesson's 30
SEED: int = 0  # seeds all randomness
OUTPUT_DIR: str = "outputs/export"  # adapter, merged model, card, report

# %%
from grpo_utils import load_rows, setup_tiny

run = setup_tiny(PROFILE, FAMILY, STEPS, 30, OUTPUT_DIR)
train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
prompts = list(test_rows["prompt"])

# %% [markdown]
# ## 1. Kill a run
#
# A free Colab session can end at any time. A run that survives this saves *checkpoints*, folders with everything that it needs to
# *resume*, which means to continue from a step. The next two cells put a training run into a script, so that we can kill it.
# First the settings:

# %%
SHARED = dict(
    learning_rate=2e-3,
    lr_scheduler_type="constant",
    num_generations=8,  # completions per prompt
    per_device_train_batch_size=64,  # completions per step
    max_completion_length=32,  # tokens
    **dict(use_cpu=True, bf16=False, gradient_checkpointing=False),  # fp32
    **dict(optim="adamw_torch", seed=SEED),
    **dict(logging_steps=1, report_to="none", disable_tqdm=True),
)

# %% [markdown]
# The script trains for 8 steps and saves a checkpoint every two. `newest_checkpoint` returns the newest complete one, or
# `None`. With `None`, `trainer.train` starts at step 0, so the same script can start a run and resume it.

# %%
SCRIPT = f"""
import sys
from grpo_utils import load_rows, math_rewards, newest_checkpoint
from peft import LoraConfig
from transformers import set_seed
from trl import GRPOConfig, GRPOTrainer
path, folder = sys.argv[1:]
set_seed({SEED})  # TRL initializes the adapter before it uses `seed`
rewards, weights = math_rewards()
saves = dict(save_strategy="steps", save_steps=2, save_total_limit=2)
own = dict(max_steps=8, reward_weights=weights)
trainer = GRPOTrainer(
    model=path,
    peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"),
    args=GRPOConfig(folder, **saves, **own, **{SHARED}),
    train_dataset=load_rows("addition", "train", 500),
    reward_funcs=rewards,
)
checkpoint = newest_checkpoint(folder)
print("resumes from:", checkpoint and checkpoint.name)
trainer.train(resume_from_checkpoint=checkpoint)
"""

# %% [markdown]
# First run the script without an interruption, to have something to compare with.

# %%
import re
import subprocess
import sys

script = run.folder / "resume" / "train.py"
script.parent.mkdir()
_ = script.write_text(SCRIPT)
command = [sys.executable, str(script), run.path]
unbroken, killed = script.with_name("unbroken"), script.with_name("killed")


def run_script(folder) -> None:
    how = dict(capture_output=True, text=True, check=True)
    done = subprocess.run([*command, str(folder)], **how)
    said = re.findall("^(?:checkpoint|resumes).*", done.stdout, re.M)
    print(*said, sep="\n")


run_script(unbroken)

# %% [markdown]
# Start it again in another folder, and **kill** it as soon as the checkpoint of step 4 is complete. On Linux and macOS,
# `process.kill()` sends SIGKILL. No program can catch that signal, so the script saves nothing more.

# %% tags=["nbval-check-output"]
import time

saved = killed / "checkpoint-4" / "trainer_state.json"
with open(script.with_name("killed.log"), "w") as log:
    process = subprocess.Popen([*command, str(killed)], stdout=log, stderr=log)
    while process.poll() is None and not saved.exists():
        time.sleep(0.05)
    process.kill()
    process.wait()
print("killed:", process.returncode != 0)
print("left:", *sorted(p.name for p in killed.glob("checkpoint-*")))

# %% [markdown]
# ## 2. Find a damaged checkpoint
#
# A run can also die *while it saves*. To imitate that, cut the optimizer file of the newest checkpoint in half. Then
# call two functions: `get_last_checkpoint` of transformers, and `checkpoint_problem`, which opens every file.

# %% tags=["nbval-check-output"]
from transformers.trainer_utils import get_last_checkpoint

from grpo_utils import checkpoint_problem, newest_checkpoint

newest = newest_checkpoint(killed)
content = (newest / "optimizer.pt").read_bytes()
_ = (newest / "optimizer.pt").write_bytes(content[: len(content) // 2])
print("transformers takes:", get_last_checkpoint(str(killed)))
print(f"its problem: {checkpoint_problem(newest)}")

# %% [markdown]
# transformers takes the folder with the highest number without looking inside. `newest_checkpoint` skips the damaged one.
# What does a complete checkpoint contain?

# %%
for file in sorted(newest_checkpoint(killed, say=len).iterdir()):
    print(f"{file.name:28}{file.stat().st_size / 1000:6.0f} kB")

# %% [markdown]
# A run needs five of these files to continue: the adapter, the optimizer's running means (`optimizer.pt`), the
# learning-rate schedule (`scheduler.pt`), the states of the random generators (`rng_state.pth`) and the log
# (`trainer_state.json`). The base model never changes, so the checkpoint leaves it out and stays small.

# %% [markdown]
# ## 3. Resume the run
#
# To resume, run the same command with the same folder:

# %%
run_script(killed)

# %% [markdown]
# The script skipped the damaged checkpoint and resumed from `checkpoint-2`. The next cell compares the reward of every step
# and every weight of the adapter with those of the uninterrupted run. Look at your guess again first.

# %% tags=["nbval-check-output"]
import json

from grpo_utils import logged
from safetensors.torch import load_file


def end_of(folder) -> tuple[list[float], dict]:
    last = folder / "checkpoint-8"
    state = json.loads((last / "trainer_state.json").read_text())
    weights = load_file(last / "adapter_model.safetensors")
    return logged(state["log_history"], "reward"), weights


def apart_in_weights(one: dict, other: dict) -> float:
    return max((one[name] - other[name]).abs().max().item() for name in one)


(rewards_one, weights_one), (rewards_two, weights_two) = (
    end_of(unbroken),
    end_of(killed),
)
apart_resumed = apart_in_weights(weights_one, weights_two)
pairs = zip(rewards_one, rewards_two)
print("steps:", len(rewards_two))
print("largest difference of a reward:", max(abs(a - b) for a, b in pairs))
print("largest difference of a weight:", apart_resumed)

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# Both differences are exactly 0: the kill and the damage left no trace.
# </details>

# %% [markdown]
# Five things prevent such an exact match:
#
# - **A second pass over the rows.** After the first pass, TRL shuffles the rows differently in a resumed run
#   ([measured](../docs/troubleshooting.md#symptoms-without-an-error)).
# - **`save_only_model=True`.** The checkpoint then has no optimizer file. transformers resumes from it without a warning.
# - **A batch that serves several steps** (`num_iterations` or `steps_per_generation` above the default). Save only at steps
#   where new completions are sampled.
# - **`beta` above 0.** transformers 5.17 then resumes without the trained adapter. Call `train_or_resume(trainer)` from
#   `grpo_utils` instead of `trainer.train`.
# - **A GPU.** Many kernels add numbers in varying order, so even two uninterrupted runs differ slightly.
#
# <details><summary>On Colab: where to save checkpoints</summary>
#
# When a Colab session ends, its disk is deleted. Mount Google Drive
# (`from google.colab import drive; drive.mount("/content/drive")`), and save checkpoints there. Drive uploads files with a
# delay and in any order, so the newest checkpoint may lack a file, and `checkpoint_problem` finds that. Without Drive,
# `GRPOConfig(push_to_hub=True, hub_strategy="all_checkpoints", hub_always_push=True, hub_private_repo=True)` pushes each
# checkpoint to a private repository. (We have not tried that.)
# </details>
#
# **Keep two checkpoints on a disk that outlives the session, and resume with the same script and folder.**

# %% [markdown]
# ## 4. Train a policy on a 4-bit base
#
# Next, train a policy to export. It learns the addition task of [lesson 03](03_grpo_lora.ipynb) with plain transformers and
# PEFT. Its base is *quantized*: each weight is rounded to one of 16 levels, so it takes only 4 bits.

# %%
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers import BitsAndBytesConfig

FOUR_BITS = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",  # levels for normally distributed weights
    bnb_4bit_use_double_quant=True,  # the scales take 8 bits, not 32
)


def load_in_4_bits():
    model = AutoModelForCausalLM.from_pretrained(
        run.path, quantization_config=FOUR_BITS, device_map="cpu"
    )
    for module in model.modules():  # bitsandbytes 0.50: wrong gradients
        module.support_avx512bf16_for_cpu = False
    return model


# %% [markdown]
# A fast code path of bitsandbytes gives wrong gradients on some CPUs, so the loop turns it off. Add the adapter, and
# evaluate the policy before training.

# %%
from peft import LoraConfig, PeftModel, get_peft_model

from grpo_utils import evaluate

lora = LoraConfig(
    r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"
)
tokenizer = AutoTokenizer.from_pretrained(run.path)
torch.manual_seed(SEED)  # for the adapter's random numbers
policy = get_peft_model(load_in_4_bits(), lora)
decoding = dict(max_new_tokens=32, temperature=1.0, seed=SEED)
before = evaluate(policy, tokenizer, test_rows, **decoding)
print("strict accuracy before:", before.accuracy)

# %%
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import math_rewards, show_progress

rewards, weights = math_rewards()
config = GRPOConfig(
    output_dir=str(run.folder / "checkpoints"),  # stays empty
    max_steps=run.steps,
    learning_rate=2e-3,
    per_device_train_batch_size=64,  # completions per step
    num_generations=8,  # completions per prompt
    max_completion_length=32,  # tokens
    reward_weights=weights,
    **dict(use_cpu=True, bf16=False, gradient_checkpointing=False),  # fp32
    **dict(optim="adamw_torch", save_strategy="no", seed=SEED),  # Adam
    **dict(logging_steps=1, report_to="none", disable_tqdm=True),
)

# %%
trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=rewards,
)
for weight in policy.parameters():
    if weight.requires_grad:  # TRL cast the adapter to bf16: cast it back
        weight.data = weight.data.float()
show_progress(trainer)
trainer.train()
after = evaluate(policy, tokenizer, test_rows, **decoding)
print("strict accuracy after:", after.accuracy)

# %% [markdown]
# Strict accuracy, the share of answers that are correct and correctly formatted, rose from {{before.accuracy.hits}} to
# {{after.accuracy.hits}} of {{after.n}}. This policy has two parts: a 4-bit base and an fp32 adapter.

# %% [markdown]
# ## 5. Save the adapter
#
# Export mistakes raise no errors: a model with a wrong merge still runs and answers badly. So every step below ends with a
# check.
#
# PEFT's `save_pretrained` records the local folder of the base model, which exists only on your machine. `save_adapter` calls it,
# replaces the folder with the base's public name, and saves the tokenizer with its chat template.

# %%
from grpo_utils import save_adapter

adapter = save_adapter(policy, tokenizer, run.folder / "adapter", run.model)
for file in sorted(adapter.iterdir()):
    print(f"{file.name}: {file.stat().st_size:,} bytes")

# %% [markdown]
# To check the files, load the adapter onto a fresh 4-bit base. Compare its *logits*, the scores of all possible next tokens,
# with those of the policy in memory. `apart` returns the largest difference over all held-out prompts.


# %% tags=["nbval-check-output"]
def encode(prompts):
    """Prompts in the chat template, as one batch of token IDs."""
    how = dict(add_generation_prompt=True, padding=True, return_dict=True)
    return tokenizer.apply_chat_template(prompts, return_tensors="pt", **how)


def logits(model):
    with torch.no_grad():
        return model(**encode(prompts), logits_to_keep=1).logits[:, -1]


def apart(one, other) -> float:
    return (logits(one) - logits(other)).abs().max().item()


reloaded = PeftModel.from_pretrained(load_in_4_bits(), adapter).eval()
print("largest difference of a logit:", apart(policy.eval(), reloaded))

# %% [markdown]
# The difference is exactly 0. Keep the adapter: on its 4-bit base, it is the policy that you trained.

# %% [markdown]
# ## 6. Merge the adapter
#
# An adapter needs PEFT and its base. *Merging* adds it to the weights of the base, so that one plain model remains. For each
# matrix `W`, the adapter holds two small matrices, `A` and `B`. With the rank `r`, the merged matrix is
#
# $$W' = W + \frac{\alpha}{r} B A$$

# %%
from grpo_utils import diagram

diagram("lora")

# %% [markdown]
# The tiny model's `W` has only 128 rows and columns. Load the *unquantized* base, put the adapter on it, and compute the
# formula for one matrix:

# %%
base = AutoModelForCausalLM.from_pretrained(run.path, dtype=torch.float32)
adapted = PeftModel.from_pretrained(base, adapter).eval()
layer = adapted.get_base_model().model.layers[0].self_attn.q_proj
W = layer.weight
A, B = layer.lora_A["default"].weight, layer.lora_B["default"].weight
change = lora.lora_alpha / lora.r * B @ A
by_hand = W + change
print("shapes of W, B, A:", *(tuple(matrix.shape) for matrix in (W, B, A)))
print(f"mean size of a weight: {W.abs().mean():.4f}")
print(f"mean size of a change: {change.abs().mean():.4f}")

# %% [markdown]
# Training changed these weights by {{change.abs().mean() / W.abs().mean():.0%}} of their mean size. PEFT's
# `merge_and_unload` computes the same sum for every matrix:

# %%
unmerged = logits(adapted)
merged = adapted.merge_and_unload()
by_peft = merged.model.layers[0].self_attn.q_proj.weight
print("difference of a weight:", (by_hand - by_peft).abs().max().item())
difference = (logits(merged) - unmerged).abs().max().item()
print(f"difference of a logit: {difference:.1e}")

# %% [markdown]
# PEFT's matrix equals yours. The logits differ by a few millionths, because fp32 rounds every sum.
#
# Save the merged model and the tokenizer in one folder. Then load both with plain transformers, as your users will.

# %%
merged.save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")

released = AutoModelForCausalLM.from_pretrained(run.folder / "merged")
tokenizer = AutoTokenizer.from_pretrained(run.folder / "merged")
print(f"largest difference of a logit: {apart(merged, released):.1e}")
print("chat template saved:", bool(tokenizer.chat_template))

# %% [markdown]
# The reloaded model gives the same logits up to rounding, and its folder has the chat template. To halve the size of the
# file, call `merged.to(torch.bfloat16)` before you save. Always check the folder that you release, not the model in memory.

# %% [markdown]
# ## 7. See what a merge into 4 bits changes
#
# The policy in memory has a 4-bit base. Merging into that base looks simpler, but the sum has to be rounded to 16 levels
# again.

# %%
diagram("merge")

# %%
import warnings

from bitsandbytes.functional import dequantize_4bit


def matrix_of(model):
    quantized = model.model.layers[0].self_attn.q_proj.weight
    return dequantize_4bit(quantized.data, quantized.quant_state)


base_4bit = load_in_4_bits()
exact = matrix_of(base_4bit) + change  # the sum before it is rounded
with warnings.catch_warnings(record=True) as caught:
    policy_again = PeftModel.from_pretrained(base_4bit, adapter).eval()
    in_4_bits = policy_again.merge_and_unload()
print("warning:", caught[0].message)
rounding = matrix_of(in_4_bits) - exact
print(f"mean size of the rounding: {rounding.abs().mean():.4f}")

# %% [markdown]
# PEFT warns about the rounding. Its mean size is {{rounding.abs().mean() / change.abs().mean():.0%}} of what training changed.
# Now compare the models by their logits. The first bar is the difference from section 6.

# %%
from grpo_utils import compare, show_differences

fp32_apart, rounded_apart = (
    apart(released, reloaded),
    apart(in_4_bits, reloaded),
)
show_differences(
    {
        "fp32 merge vs base + adapter": difference,
        "fp32 merge vs 4-bit policy": fp32_apart,
        "4-bit merge vs 4-bit policy": rounded_apart,
    },
    "Largest difference of a logit",
)

# %% [markdown]
# The 4-bit merge moved a logit by {{rounded_apart:.2f}}, which changes the odds of a token by a factor of up to
# {{torch.tensor(rounded_apart).exp():.1f}}. The fp32 merge moved one by {{fp32_apart:.2f}}, because its base is not
# quantized. Do the answers get worse?

# %%
results, unlike, p_values = {}, {}, {}
for name, model in (("fp32 merge", released), ("4-bit merge", in_4_bits)):
    results[name] = evaluate(model, tokenizer, test_rows, **decoding)
    pairs = zip(after.sampled, results[name].sampled)
    unlike[name] = sum(a != b for a, b in pairs)
    p_values[name] = compare(after, results[name]).p_value
    print(f"{name}: strict accuracy {results[name].accuracy}")
    print(f"  answers unlike the policy's: {unlike[name]}")
    print(f"  McNemar's test: p = {p_values[name]:.2f}")

# %% [markdown]
# The 4-bit merge changed {{unlike['4-bit merge']}} of 200 answers, and the fp32 merge {{unlike['fp32 merge']}}. No loss of
# accuracy is shown on this easy task; a harder one could show it.
#
# **Merge into the unquantized base in fp32, evaluate the result, and quantize it afterward if you must.**

# %% [markdown]
# ## 8. Ask the merged model
#
# For one question, use `pipeline`. It applies the chat template to your messages, which include the system prompt,
# and returns them with the answer at the end.

# %%
from transformers import logging, pipeline

logging.set_verbosity_error()  # hides hints about defaults
greedily = dict(max_new_tokens=32, do_sample=False)
chat = pipeline("text-generation", model=str(run.folder / "merged"))
answer = chat(prompts[1], **greedily)[0]["generated_text"][-1]["content"]
print(prompts[1][-1]["content"], answer)

# %% [markdown]
# Pass `do_sample=False` for greedy decoding, because the model's `generation_config.json` can set other defaults.
#
# For many questions, call `generate` on a batch. Shorter prompts get *padding*, filler tokens that bring them to the length
# of the longest. The next cell adds it on the right, and then on the left. The weights, the questions and greedy decoding do
# not change. **Guess first:** how many of 20 problems does the model solve with each?

# %%
solved = {}
long = [{"role": "user", "content": "Take your time and think it over. " * 5}]
for side in ("right", "left"):
    tokenizer.padding_side = side
    batch = encode([*prompts[:20], long])  # `long` makes it pad the others
    output = released.generate(**batch, **greedily)[:20]
    new = output[:, batch["input_ids"].shape[1] :]
    texts = tokenizer.batch_decode(new, skip_special_tokens=True)
    solved[side] = sum(rewards[0](texts, answer=test_rows["answer"][:20]))
    print(f"padding on the {side}: {solved[side]:.0f} of 20 correct")

# %% [markdown]
# <details><summary>After you have guessed</summary>
#
# The model solves {{solved['left']:.0f}} with padding on the left, and {{solved['right']:.0f}} on the right. It continues from
# the last position. On the right, that position is a filler token and not the end of your question. There is no error and no
# warning, so the model looks as if export had broken it.
# </details>

# %% [markdown]
# For *streaming*, which shows an answer while it is generated, pass `streamer=TextStreamer(tokenizer)` to `generate`.
#
# **Pad on the left, and use the chat template and the system prompt of the training run.**

# %% [markdown]
# ## 9. Describe the model and upload it
#
# Your users need to know how a model was trained. `report_run` prints the tables of lesson 03 and writes every number and
# setting to `report.json`.

# %%
import json

from grpo_utils import report_run

figures = dict(merged=results["fp32 merge"], merge_difference=difference)
report_run(run, trainer, before, after, decoding, **figures)
report = json.loads((run.folder / "report.json").read_text())
print("\nkeys:", *report)
print("\nkeys of config:", *report["config"])

# %% [markdown]
# `config` holds what you need to repeat the run. The row `merged` describes the model that you release.
#
# A *model card* is the README of a model, with a header for the Hub. `write_card` generates it from the report, and `push`
# lists what an upload would contain.

# %%
from grpo_utils import push, write_card

card = write_card(run.folder / "merged", report)
print(card.read_text().partition("## Training")[0])
for name, size in push(run.folder / "merged", "you/tiny-grpo").items():
    print(f"{name}: {size:,} bytes")

# %% [markdown]
# The rest of the card lists rewards, settings and results, and says so if nothing improved. You choose the license, which
# depends on the base.
#
# `push` rejects a file with what looks like an access token or a path on your machine. With `dry_run=False`, it uploads the
# files to a private repository. The libraries' own calls upload without these checks:
#
# ```python
# from huggingface_hub import ModelCard
#
# released.push_to_hub("you/tiny-grpo", private=True)
# tokenizer.push_to_hub("you/tiny-grpo")
# ModelCard.load(card).push_to_hub("you/tiny-grpo")
# ```
#
# `hf auth login` in a terminal stores your token. Never write a token into a cell, because notebooks are shared.

# %% [markdown]
# ## 10. Serve the model
#
# Applications send questions to a *server* over HTTP, usually in OpenAI's format. `transformers serve` is such a
# server and runs on a CPU. `served` starts it on a free port and stops it after the `with` block.

# %%
import httpx

from grpo_utils import served

body = dict(messages=prompts[1], max_tokens=32, temperature=0)
with served(run.folder / "merged") as address:
    url = f"{address}/v1/chat/completions"
    reply = httpx.post(url, json=body, timeout=60, trust_env=False)
print("server:  ", reply.json()["choices"][0]["message"]["content"])
print("pipeline:", answer)

# %% [markdown]
# The server gives the same answer as `pipeline`. Make this comparison for every server. To start this one yourself, type
# `transformers serve outputs/export/merged`.
#
# <details><summary>vLLM, Ollama and llama.cpp</summary>
#
# *vLLM* serves many users on a GPU. The first command below serves the merged model, the second the adapter on its base;
# replace `BASE` with the base's name. (We have not run the commands in the rest of this section.)
#
# ```
# vllm serve outputs/export/merged --served-model-name tiny-grpo
# vllm serve BASE --enable-lora --max-lora-rank 16 --lora-modules tiny-grpo=outputs/export/adapter
# ```
#
# Ollama and llama.cpp run a model from one file in the *GGUF* format. The converter of llama.cpp does not support the tiny
# model's tokenizer ([measured](../docs/troubleshooting-gpu.md#gguf-measured)). For a model that it supports, type:
#
# ```
# git clone --depth 1 https://github.com/ggml-org/llama.cpp
# python llama.cpp/convert_hf_to_gguf.py outputs/export/merged --outfile model.gguf --outtype bf16
# ollama create tiny-grpo -f Modelfile
# ollama run tiny-grpo "What is 15 + 27?"
# ```
# </details>

# %% [markdown]
# Ollama's `Modelfile` needs the chat template in Go's template language. `ollama_template` derives it from the tokenizer.

# %%
from grpo_utils import ollama_template

print(f'''FROM ./model.gguf
TEMPLATE """{ollama_template(tokenizer)}"""
SYSTEM """{report["config"]["system_prompt"]}"""
PARAMETER stop "{tokenizer.eos_token}"
PARAMETER temperature 0''')

# %% [markdown]
# `stop` names the token that ends an answer. Without it, the model can keep going and write the next question.

# %% [markdown]
# ## 11. Cheat sheet
#
# | step | check | fix |
# |---|---|---|
# | before a long run | Are there two `checkpoint-N` folders on a disk that stays? | set `save_steps` and `save_total_limit=2` |
# | resume | Which checkpoint does `newest_checkpoint` return? | pass it as `resume_from_checkpoint` |
# | merge | Is the base unquantized and in fp32? | load the base again, without 4 bits |
# | compare logits | Did the merge move them by less than 0.001? | release the adapter with its base |
# | reload | Is there a chat template in the folder? | save the tokenizer, too |
# | evaluate | Is the merged model as accurate as the policy? | read the answers that changed |
# | ask a batch | Is the padding on the left? | set `tokenizer.padding_side = "left"` |
# | serve | Does the server answer like `pipeline`? | set `temperature` to 0 and send the system prompt |
#
# After training with Unsloth on a GPU, use `check_merged` from lesson 03. In a new process, it merges again, compares the
# saved weights with this merge, and evaluates the saved model.

# %% [markdown]
# ## 12. Exercises
#
# **Exercise 1.** An exported model answers badly. You apply the chat template yourself and compare the model's logits
# with those of the base and of the correct merge. Write `diagnose`, which takes the largest difference from each of
# the two and returns the fault. In the case of "template lost", the merge itself is correct.


# %%
def diagnose(from_base: float, from_merge: float) -> str:
    """Your answer: "adapter missing", "wrong base" or "template lost"."""


# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise

FAULTS = [((4e-6, 9.5), "adapter missing"), ((9.5, 4e-6), "template lost")]
FAULTS += [((12.4, 14.1), "wrong base"), ((0.4, 9.3), "wrong base")]
HINTS = [("wrong base", "One difference is below 0.001. Which models agree?")]
HINTS += [("adapter missing", "Is from_base near 0, as without an adapter?")]
HINTS += [("template lost", "Is from_merge near 0, as with a correct merge?")]
print(check_exercise("Exercise 1", diagnose, FAULTS, HINTS))

# %% [markdown]
# **Exercise 2.** Your run is at step 6 of 8, and you think that its learning rate is too high. You divide it by ten in the
# script, and resume. **Predict** whether the last adapter is the `"same"` as that of the uninterrupted run, or
# `"different"`. Then try it, and fill in both variables below:
#
# 1. Copy the checkpoint: `shutil.copytree(unbroken / "checkpoint-6", mine / "checkpoint-6")`.
# 2. Change the script: `script.write_text(SCRIPT.replace("0.002", "0.0002"))`.
# 3. Resume with `run_script(mine)`, which takes 15 to 60 seconds. For another try, use another folder.
#
# The prediction is not graded.
#
# Try both before you unfold the solutions. Next, [lesson 08](08_grpo_by_hand.ipynb) writes GRPO by hand. The papers behind
# this lesson are *LoRA* (arXiv 2106.09685) and *QLoRA* (arXiv 2305.14314).

# %%
import shutil

prediction = ""  # "same" or "different"
mine = script.with_name("mine")
my_results = None  # after your run: end_of(mine)


# %% tags=["nbval-check-output"]
from grpo_utils import compare_prediction


def outcome(found) -> str:
    """What a run shows, compared with the uninterrupted one."""
    same = apart_in_weights(weights_one, found[1]) == 0
    return "same" if same else "different"


def compared() -> str:
    """Print what you predicted, and what your run shows."""
    if not (my_results and prediction):
        return ""
    return compare_prediction(prediction, outcome(my_results))


COMPARED = [((), "compared")]
print(check_exercise("Exercise 2", compared, COMPARED))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: a difference below 0.001 is rounding, so the two models are then the same. If the weights equal the correct
# merge, only the template can be at fault.
#
# Exercise 2: the adapter is the same to the last bit, and every step logged the old rate. A resumed run takes the learning
# rate from the checkpoint: the optimizer and the schedule bring their own. To change it, start a new stage from the adapter
# ([lesson 09](09_stages.ipynb)).
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def diagnose_solution(from_base: float, from_merge: float) -> str:
    if from_base < 1e-3:
        return "adapter missing"
    return "template lost" if from_merge < 1e-3 else "wrong base"


print(check_exercise("Exercise 1, solution", diagnose_solution, FAULTS))

# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
slower = script.with_name("slower")
shutil.copytree(unbroken / "checkpoint-6", slower / "checkpoint-6")
_ = script.write_text(SCRIPT.replace("0.002", "0.0002"))
run_script(slower)
state = slower / "checkpoint-8" / "trainer_state.json"
log = json.loads(state.read_text())["log_history"]
print("learning rates:", *logged(log, "learning_rate"))
my_results, prediction = end_of(slower), "same"
print(check_exercise("Exercise 2, solution", compared, COMPARED))
