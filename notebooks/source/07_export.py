# %% [markdown]
# # 07 · Merge, export, inference
#
# The same weights, the same questions: 20 of 20 correct with padding on the left, and 1 of 20 on the right.
#
# You will be able to turn a trained adapter into a model that anyone can load, check that nothing was lost on the
# way, describe the model in a card, and serve it.
#
# Export mistakes raise no errors. A model whose adapter was merged into the wrong weights still runs, but it answers
# badly. So every step below ends with a check.
#
# On Colab and Kaggle, the next cell installs the course. (We have not run it there yet.) On Kaggle, first turn on
# *Internet* in the settings. Elsewhere, the cell does nothing.
#
# Your time: 50–60 minutes with exercises. *Run All* takes about 1 minute on a CPU, and 1.4 GB of memory.
#
# {{badges}}

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
# ## 1. Train a policy on a 4-bit base
#
# First train a policy to export. It learns the addition problems of [lesson 03](03_grpo_lora.ipynb) with plain
# transformers and PEFT. Its base is *quantized*: each weight is rounded to one of 16 levels, so it takes only 4 bits.

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
# A fast code path of bitsandbytes gives wrong gradients on some CPUs, so the loop turns it off. Now add the adapter,
# evaluate the policy on the held-out prompts, and train it.

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
# {{after.accuracy.hits}} of {{after.n}}.
#
# **The policy that you export has two parts: a 4-bit base and an fp32 adapter.**

# %% [markdown]
# ## 2. Save the adapter
#
# PEFT's `save_pretrained` records the folder that the base was loaded from. Nobody else has this folder. So
# `save_adapter` calls `save_pretrained`, replaces the folder with the base's public name, and saves the tokenizer
# with its chat template.

# %%
from grpo_utils import save_adapter

adapter = save_adapter(policy, tokenizer, run.folder / "adapter", run.model)
for file in sorted(adapter.iterdir()):
    print(f"{file.name}: {file.stat().st_size:,} bytes")

# %% [markdown]
# To check the files, load the adapter onto a fresh 4-bit base. Then compare its *logits*, the scores for every
# possible next token, with those of the policy in memory. `apart` returns the largest difference over all
# held-out prompts.


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
# The difference is exactly 0, so the files reproduce the policy that you trained.
#
# **Keep the adapter, because on its 4-bit base it is exactly the policy that you trained.**

# %% [markdown]
# ## 3. Merge one matrix by hand
#
# An adapter needs PEFT and its base. *Merging* adds the adapter to the weights of the base, so that one plain model
# remains. For each adapted matrix `W`, the adapter holds two small matrices, `A` and `B`. With the rank `r`, the
# merged matrix is
#
# $$W' = W + \frac{\alpha}{r} B A$$
#
# In code, this is `W + lora_alpha / r * B @ A`.

# %%
from grpo_utils import diagram

diagram("lora")

# %% [markdown]
# The figure shows a larger model. The tiny model's `W` has 128 rows and columns. Load the **unquantized** base, put
# the adapter on it, and compute the formula for one matrix:

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
# Training changed these weights by {{change.abs().mean():.4f}} on average, {{change.abs().mean() / W.abs().mean():.0%}}
# of their mean absolute value. PEFT's `merge_and_unload` computes the same sum for every adapted matrix:

# %%
unmerged = logits(adapted)
merged = adapted.merge_and_unload()
by_peft = merged.model.layers[0].self_attn.q_proj.weight
print("difference of a weight:", (by_hand - by_peft).abs().max().item())
difference = (logits(merged) - unmerged).abs().max().item()
print(f"difference of a logit: {difference:.1e}")

# %% [markdown]
# PEFT's matrix equals yours exactly. The logits before and after the merge differ by {{difference:.1e}}, because the
# merged model adds in a different order and fp32 rounds every sum.
#
# **A merge is one addition per matrix, and in fp32 it is exact up to rounding.**

# %% [markdown]
# ## 4. Save the merged model and reload it
#
# Save the model and the tokenizer in one folder. Then load both with plain transformers, as your users will.

# %%
merged.save_pretrained(run.folder / "merged")
tokenizer.save_pretrained(run.folder / "merged")

released = AutoModelForCausalLM.from_pretrained(run.folder / "merged")
tokenizer = AutoTokenizer.from_pretrained(run.folder / "merged")
print(f"largest difference of a logit: {apart(merged, released):.1e}")
print("chat template saved:", bool(tokenizer.chat_template))

# %% [markdown]
# The reloaded model gives the same logits up to rounding, and its folder has the chat template of the training run.
# To halve the size of the file, call `merged.to(torch.bfloat16)` before you save.
#
# **Check the folder that you release, not the model in memory.**

# %% [markdown]
# ## 5. See what a merge into 4 bits changes
#
# The policy in memory has a 4-bit base. Merging the adapter into that base looks simpler, but the sum has to be
# rounded to 16 levels again.

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
# PEFT warns about the rounding. Its mean size is {{rounding.abs().mean():.4f}}, while the change from training was
# {{change.abs().mean():.4f}}. Now compare the models by their logits. The first bar is the difference from section 3.

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
# The 4-bit merge moved a logit of the policy by {{rounded_apart:.2f}}, which can change the odds of a token by a factor
# of {{torch.tensor(rounded_apart).exp():.1f}}. The fp32 merge moved one by only {{fp32_apart:.2f}}, because it does not
# round to 4 bits again: it differs from the policy only in its base, which is not quantized. Do the answers get worse?

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
# The policy had {{after.accuracy.hits}} of 200 answers correct. The 4-bit merge changed {{unlike['4-bit merge']}} of
# its answers, and {{results['4-bit merge'].accuracy.hits}} are correct (p = {{p_values['4-bit merge']:.2f}}). The fp32
# merge changed {{unlike['fp32 merge']}}, and {{results['fp32 merge'].accuracy.hits}} are correct (p =
# {{p_values['fp32 merge']:.2f}}). Chance alone can explain both differences in accuracy. On a harder task, a merge may
# lose accuracy; we did not test a harder task.
#
# **Merge into the unquantized base in fp32, evaluate the result, and quantize it afterward if you must.**

# %% [markdown]
# ## 6. Ask the merged model
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
# Always pass `do_sample=False` for greedy decoding, because the model's `generation_config.json` can set other
# defaults. It can also set a `repetition_penalty`, which changes greedy answers too; our evaluation sets it to 1.0.
#
# For many questions, call `generate` on a batch. Shorter prompts get *padding*, filler tokens that bring them to the
# length of the longest. The model continues from the last position, so padding belongs on the left.

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
# The same model solves {{solved['left']:.0f}} of 20 problems with padding on the left, and {{solved['right']:.0f}} with
# padding on the right. For *streaming*, which shows an answer while it is generated, pass
# `streamer=TextStreamer(tokenizer)` to `generate`.
#
# **Pad on the left, and use the chat template and the system prompt of the training run.**

# %% [markdown]
# ## 7. Describe the model and upload it
#
# Your users need to know how a model was trained. `report_run` prints the tables of lesson 03 and writes every number
# and setting to `report.json`.

# %%
import json

from grpo_utils import report_run

figures = dict(merged=results["fp32 merge"], merge_difference=difference)
report_run(run, trainer, before, after, decoding, **figures)
report = json.loads((run.folder / "report.json").read_text())
print("\nkeys:", *report)
print("\nkeys of config:", *report["config"])

# %% [markdown]
# `config` holds what you need to repeat the run, such as the system prompt, the rewards and all training arguments.
# The row `merged` describes the model that you release. `merged_p_value` compares it with the base.
#
# A *model card* is the README of a model, with a header for the Hub. `write_card` generates it from the report alone,
# and `push` lists what an upload would contain.

# %%
from grpo_utils import push, write_card

card = write_card(run.folder / "merged", report)
print(card.read_text().partition("## Training")[0])
for name, size in push(run.folder / "merged", "you/tiny-grpo").items():
    print(f"{name}: {size:,} bytes")

# %% [markdown]
# The rest of the card lists the rewards, settings and results, and says so if nothing improved. You choose the
# license, which depends on the base.
#
# `push` selects only the files of a model. It rejects a file with what looks like an access token or a path on your
# machine. With `dry_run=False`, it uploads the files to a private repository. The libraries' own calls upload without
# these checks. They need an access token and were never run here:
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
#
# **Evaluate the saved model, generate its card from the report, and read the list of files before you upload.**

# %% [markdown]
# ## 8. Serve the model
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
# The server gives the same answer as `pipeline`. Type `transformers serve outputs/export/merged` to start it
# yourself. *vLLM* serves many users from GPUs. The second vLLM command below serves the unmerged adapter on its
# base; replace `BASE` with the base's name. (We have never run either vLLM command.)
#
# ```
# vllm serve outputs/export/merged --served-model-name tiny-grpo
# vllm serve BASE --enable-lora --max-lora-rank 16 --lora-modules tiny-grpo=outputs/export/adapter
# ```
#
# Ollama and llama.cpp run a model from one file in the *GGUF* format. The llama.cpp converter does not support the
# tiny model's tokenizer ([what we measured](../docs/troubleshooting-gpu.md#gguf-measured)). For a model whose
# tokenizer the converter supports, type these commands (never run here):
#
# ```
# git clone --depth 1 https://github.com/ggml-org/llama.cpp
# python llama.cpp/convert_hf_to_gguf.py outputs/export/merged --outfile model.gguf --outtype bf16
# ollama create tiny-grpo -f Modelfile
# ollama run tiny-grpo "What is 15 + 27?"
# ```
#
# The `Modelfile` needs the chat template in Go's template language. `ollama_template` renders a conversation with the
# tokenizer and derives the template from the result.

# %%
from grpo_utils import ollama_template

print(f'''FROM ./model.gguf
TEMPLATE """{ollama_template(tokenizer)}"""
SYSTEM """{report["config"]["system_prompt"]}"""
PARAMETER stop "{tokenizer.eos_token}"
PARAMETER temperature 0''')

# %% [markdown]
# `stop` names the token that ends an answer. Without it, the model can keep going and write the next question.
#
# **Send the server a question that `pipeline` has answered, and compare the two answers.**

# %% [markdown]
# ## 9. Cheat sheet
#
# | step | check | fix |
# |---|---|---|
# | save the adapter | Does a fresh load give the policy's logits? | save again before the session ends |
# | merge | Is the base unquantized and in fp32? | load the base again, without 4 bits |
# | compare logits | Did the merge move them by less than 0.001? | release the adapter with its base |
# | reload | Is there a chat template in the folder? | save the tokenizer next to the model |
# | evaluate | Is the merged model as accurate as the policy? | read the answers that changed |
# | ask a batch | Is the padding on the left? | set `tokenizer.padding_side = "left"` |
# | upload | Does the list contain a private file? | remove the file from the folder |
# | serve | Does the server answer like `pipeline`? | set `temperature` to 0 and send the system prompt |
#
# After training with Unsloth on a GPU, use `check_merged` from lesson 03. In a new process, it merges again, compares
# the saved weights with this merge, and evaluates the saved model.
#
# **This lesson ran every step on a CPU, except the real upload, llama.cpp, vLLM and Ollama. We have never run vLLM or
# Ollama.**

# %% [markdown]
# ## 10. Exercises
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
# **Exercise 2.** Write `gigabytes`, which returns the total size of a base with `parameters` weights of `bits` bits
# and an adapter with `adapter` weights of 16 bits. A gigabyte is 10⁹ bytes.
#
# **Try both before you unfold the solutions.** Next, [lesson 08](08_grpo_by_hand.ipynb) computes GRPO by hand. The
# papers behind this lesson are *LoRA* (arXiv 2106.09685) and *QLoRA* (arXiv 2305.14314).


# %%
def gigabytes(parameters: float, bits: int, adapter: float) -> float | None:
    """Your answer, in gigabytes."""


# %% tags=["nbval-check-output"]
SIZES = [((1.5e9, 4, 37e6), 0.82), ((1.5e9, 16, 0), 3.0)]
HINTS = [(6.59, "These are gigabits. How many bits are in a byte?")]
HINTS += [(0.75, "This is the base alone. How large is the adapter?")]
print(check_exercise("Exercise 2", gigabytes, SIZES, HINTS))

# %% [markdown]
# <details><summary>Solutions</summary>
#
# Exercise 1: a difference below 0.001 is rounding, so those two models are the same. If the weights equal the correct
# merge, only the template can be at fault. Exercise 2: a parameter of 16 bits takes 2 bytes.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def diagnose_solution(from_base: float, from_merge: float) -> str:
    if from_base < 1e-3:
        return "adapter missing"
    return "template lost" if from_merge < 1e-3 else "wrong base"


print(check_exercise("Exercise 1, solution", diagnose_solution, FAULTS))


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def gigabytes_solution(parameters: float, bits: int, adapter: float) -> float:
    return (parameters * bits / 8 + adapter * 2) / 1e9


print(check_exercise("Exercise 2, solution", gigabytes_solution, SIZES))
