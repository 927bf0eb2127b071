# %% [markdown]
# # 07 · Merge, export, inference
#
# {{badges}}
#
# **You will be able to** take a trained policy out of the notebook: save its adapter, merge it and
# prove the merge, run the result in three ways, hand it on with a card that says what was done,
# and serve it.
#
# Most of what goes wrong after a training goes wrong here: an adapter that was never loaded, a
# merge into the wrong weights, a chat template left behind. None of it raises an error. The model
# just answers like the one you started from.
#
# | | CPU | T4 |
# |---|---|---|
# | time for Run All | about 1 minute ([measured](../docs/results.md)) | never run |
# | memory | 1.4 GB ([measured](../docs/results.md)) | |
# | model | 0.46 million parameters, ships with the course | the same: it trains on the CPU |
#
# The bars below may come from a busier machine.
#
# **While it trains**, guess: the policy's base has 4 bits, the merged model 32. Will they answer the
# same? Section 5 measures it.
#
# 1. Settings
# 2. A 4-bit policy
# 3. The adapter alone
# 4. The merge, and its proof
# 5. Three models that are not the same
# 6. Inference: `pipeline`, batches, streaming
# 7. Base and trained, side by side
# 8. A model card, and the Hub
# 9. GGUF and Ollama
# 10. Served
# 11. vLLM
# 12. Your own run
# 13. The checklist, and what was not run
# 14. Exercises
#
# You need [lesson 03](03_grpo_lora.ipynb), or two words of it: a *policy* is a model in training;
# an *adapter* (LoRA) is the small set of extra matrices beside a frozen *base* that is trained.

# %% [markdown]
# ## 1. Settings
#
# On Colab and Kaggle, the next cell installs the course and the packages that are missing there (a few
# minutes; never run there so far). A new session needs no restart. If pip reports conflicts with packages
# such as omegaconf, go on: the lessons do not use them. On Kaggle, turn on *Internet* in the settings first.
# Anywhere else the cell does nothing.

# %%
# {{install}}

# %% tags=["parameters"]
PROFILE: str = "auto"  # any profile; this lesson trains on the CPU on all
FAMILY: str = "qwen"  # qwen or gemma: which tiny model
STEPS: int = 0  # optimizer steps; 0: the lesson's 30
SEED: int = 0  # everything random follows from it
LLAMA_CPP: str = ""  # llama.cpp's source; it refuses tiny models (section 9)
OUTPUT_DIR: str = "outputs/export"  # adapter, merged model, card, report

# %%
from grpo_utils import (
    FAMILIES,
    PROFILES,
    check_choice,
    check_count,
    find_profile,
    prepare_machine,
    start_run,
)

find_profile(PROFILE)  # an unknown name is an error now
check_choice("FAMILY", FAMILY, FAMILIES)
check_count("STEPS", STEPS)
profile, steps = PROFILES["cpu"], STEPS or 30
base_name = profile.models[FAMILY]
prepare_machine(profile)
run_folder, said = start_run(OUTPUT_DIR)
print(f"{base_name}, {steps} steps, on the CPU. {said}")

# %% [markdown]
# ## 2. A 4-bit policy
#
# Something has to be there before it can be exported. So: the task of lesson 03, two-digit additions
# in the form `<reasoning>…</reasoning><answer>…</answer>`, and a base in 4 bits. The backend is plain
# transformers with PEFT, so that all of this lesson can run in one process. (Where Unsloth trained
# on a GPU, export in a fresh one: `export_merged` does that.)

# %%
from grpo_utils import evaluate, load_policy, load_rows

train_rows = load_rows("addition", "train", 2000, SEED)
test_rows = load_rows("addition", "test", 200, SEED)
judging = dict(max_new_tokens=32, temperature=1.0, seed=SEED)

policy, tokenizer = load_policy(
    base_name, profile=profile, backend="transformers", seed=SEED
)
policy.print_trainable_parameters()

# %%
before = evaluate(policy, tokenizer, test_rows, **judging)
print("in form and right, before:", before.accuracy)

# %%
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import math_rewards, training_arguments

rewards, weights = math_rewards()
config = GRPOConfig(
    **training_arguments(
        profile,
        output_dir=str(run_folder / "checkpoints"),
        max_steps=steps,
        reward_weights=weights,
        seed=SEED,
    )
)

# %%
from grpo_utils import keep_trainable_fp32, show_progress

trainer = GRPOTrainer(
    model=policy,
    processing_class=tokenizer,
    args=config,
    train_dataset=train_rows,
    reward_funcs=rewards,
)
keep_trainable_fp32(policy)
show_progress(trainer)
train_seconds = trainer.train().metrics["train_runtime"]

# %%
after = evaluate(policy, tokenizer, test_rows, **judging)
print("in form and right, after:", after.accuracy)

# %% [markdown]
# ## 3. The adapter alone
#
# The smallest thing to hand on is the adapter. `save_pretrained` of PEFT writes it, with one
# blemish: it notes the base by **the place it was loaded from**. For a base in a local folder that is
# a path of your machine, which helps nobody and tells what your folders are called. `save_adapter`
# calls `save_pretrained` and puts the public name there.

# %%
import json

from grpo_utils import save_adapter

adapter = save_adapter(policy, tokenizer, run_folder / "adapter", base_name)
for file in sorted(adapter.iterdir()):
    print(f"{file.stat().st_size:9,} bytes  {file.name}")

# %% tags=["nbval-check-output"]
noted = json.loads((adapter / "adapter_config.json").read_text())
print("named as asked for:", noted["base_model_name_or_path"] == base_name)

# %% [markdown]
# The tokenizer is in the folder too. It carries the **chat template**, and a model that was trained
# with one template and is asked with another is a model that nobody trained.
#
# An adapter is loaded beside its base. Here beside the base in 4 bits, as it was trained: a fresh
# load, compared with the policy that is still in memory. What is compared are the *logits*, the
# scores of all tokens after each held-out prompt.

# %%
from peft import PeftModel

from grpo_utils import load_4bit_base, logits

prompts = test_rows["prompt"]


def apart(one, other) -> float:
    """The largest difference of a logit over all held-out prompts."""
    sides = [logits(model, tokenizer, prompts) for model in (one, other)]
    return (sides[0] - sides[1]).abs().max().item()


base_4bit = load_4bit_base(base_name, profile)
reloaded = PeftModel.from_pretrained(base_4bit, adapter).eval()
lost_by_saving = apart(policy.eval(), reloaded)
print("saved and loaded again:", lost_by_saving)

# %% [markdown]
# No difference: what was saved is what was trained. This is the whole truth of the training, and
# the file to keep. It needs its base and PEFT wherever it goes.

# %% [markdown]
# ## 4. The merge, and its proof
#
# An adapter adds `B·A`, times a scale, to each matrix `W` of the base. *Merging* computes the sum once
# and writes it down: the result is a model of the base's size that needs no PEFT.
#
# Which `W`? The **unquantized** one. A merge into 4-bit weights would have to round the sum to 4
# bits again (section 5 does it, to see). And it is done in fp32, where it can be *proven*: the
# unquantized base with the adapter beside it, and the merged model, must give the same logits.

# %%
from grpo_utils import merge_adapter

merge = merge_adapter(adapter, base_name, prompts)
print(f"largest difference of a logit: {merge.largest_difference:.1e}")

# %% tags=["nbval-check-output"]
print("a merge without loss:", merge.largest_difference < 1e-4)

# %% [markdown]
# That is the rounding of fp32 and nothing else. `merge_adapter` raises if it is more than 0.001, or if the
# adapter names another base. It takes tokenizer and chat template from the adapter's folder: the ones of the training.
#
# Now save it, and load it as your users will: by plain `transformers`, from the folder alone.

# %%
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from grpo_utils import save_merged

save_merged(merge, run_folder / "merged", torch.float32)
merged = AutoModelForCausalLM.from_pretrained(run_folder / "merged").eval()
tokenizer = AutoTokenizer.from_pretrained(run_folder / "merged")
for file in sorted((run_folder / "merged").iterdir()):
    print(f"{file.stat().st_size:9,} bytes  {file.name}")

# %% tags=["nbval-check-output"]
pairs = zip(merge.model.parameters(), merged.parameters())
changed = max((old - new).abs().max().item() for old, new in pairs)
print("saved and loaded again, largest change of a weight:", changed)
print("adapters left in it:", "lora" in str(merged).lower())
print("chat template beside it:", bool(tokenizer.chat_template))

# %% [markdown]
# A large model is saved in 16 bits, to halve the file. That *is* a loss, if a small one:

# %%
from copy import deepcopy

in_bf16 = deepcopy(merged).to(torch.bfloat16)
in_fp16 = deepcopy(merged).to(torch.float16)
for name, model in (("bf16", in_bf16), ("fp16", in_fp16)):
    print(f"{name}: largest difference of a logit {apart(merged, model):.1e}")

# %% [markdown]
# bf16 keeps 8 bits of each number and fp16 keeps 11, so bf16 is the coarser one. That is why a merge is
# proven in fp32 and rounded afterwards: in bf16, an error in the merge of this size would not be seen. But fp16 ends at
# 65,504, which the numbers inside Gemma 3 exceed, so Gemma 3 is saved in bf16.

# %% [markdown]
# ## 5. Three models that are not the same
#
# The merge lost nothing, and still the merged model is **not the policy that was trained**. The policy learned
# on top of a base in 4 bits; under the merged model lies the unquantized one. And there is a third one,
# which many scripts make without knowing: the adapter merged into the 4-bit base.

# %%
import warnings

from grpo_utils import merge_into_4bit

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    squeezed = merge_into_4bit(adapter, base_name, profile, prompts).model
told = [warning for warning in caught if "4-bit" in str(warning.message)]
print(f"PEFT warns {len(told)} times: {told[0].message}")

# %% [markdown]
# Once for every matrix. (Unsloth refuses such a merge unless forced.) Now all of them against each other, in logits:

# %%
differences = {
    "adapter beside base, and its fp32 merge": merge.largest_difference,
    "merge in fp32, and in bf16": apart(merged, in_bf16),
    "4-bit policy, and the merge": apart(reloaded, merged),
    "4-bit policy, and merged into 4 bits": apart(reloaded, squeezed),
}
exact = merge.largest_difference
for name, value in differences.items():
    print(f"{name:40} {value:9.1e} {value / exact:9,.0f} times the first")

# %%
from grpo_utils import difference_chart, show

show(
    difference_chart(differences, "Largest difference of a logit"),
    alt="Bar chart on a logarithmic scale. "
    + "; ".join(f"{name}: {value:.1e}" for name, value in differences.items()),
)

# %% [markdown]
# The scale is logarithmic: read the last column of the table above. Even rounding the merged model to bf16
# does far more than the merge did, and so do both steps between 4 bits and full precision. So "the merge is exact"
# and "the merged model differs from the policy" are both true: the first is about the merge, the second about
# the base. And merging into 4 bits does not keep the policy either,
# although its base is the policy's own: the sum is rounded again.
#
# What does it do to the answers?

# %%
results = {
    "4-bit policy": after,
    "merged, fp32": evaluate(merged, tokenizer, test_rows, **judging),
    "merged, bf16": evaluate(in_bf16, tokenizer, test_rows, **judging),
    "merged into 4 bits": evaluate(squeezed, tokenizer, test_rows, **judging),
}
for name, result in results.items():
    print(f"{name:20}{result.accuracy}")
    print(f"{'  greedy':20}{result.greedy_accuracy}")

# %%
from grpo_utils import compare

for name in ("merged, fp32", "merged, bf16", "merged into 4 bits"):
    pair = compare(after, results[name])
    shown = "a difference is shown" if pair.changed else "none is shown"
    print(f"{name}, against the policy:")
    print(f"  {pair.difference.signed()}, p = {pair.p_value:.2f}: {shown}")
    texts = zip(after.sampled, results[name].sampled)
    print(f"  other texts: {sum(a != b for a, b in texts)} of {after.n}")

# %% [markdown]
# Read the differences and their intervals, not the rates. Each is a paired test on the same 200 prompts
# ([lesson 06](06_evaluation.ipynb)), sampled with the same random numbers. "None is shown" does not say that there
# is none: some texts are others, and on a larger model or a harder task they may be worse ones. So **evaluate what
# you hand on**, and not only what you trained.
#
# Which one to hand on? The merge into the unquantized base: it is exact, it runs everywhere, and whoever
# wants 4 bits quantizes it afterwards, by a method of their choice.

# %% [markdown]
# ## 6. Inference: `pipeline`, batches, streaming
#
# **One question**: `pipeline` takes messages, applies the chat template and gives the messages back, with the
# answer as the last one. The system prompt has to be the one of the training.

# %%
import transformers
from transformers import pipeline

from grpo_utils import chat_prompt

transformers.logging.set_verbosity_error()  # its hints on defaults
chat = pipeline("text-generation", model=str(run_folder / "merged"))
question = chat_prompt("What is 15 + 27?")
said = chat(question, max_new_tokens=32, do_sample=False)
print(said[0]["generated_text"][-1]["content"])

# %% [markdown]
# `do_sample=False` is greedy decoding. It is written out, since a model may bring other defaults in its
# `generation_config.json`. Look into that file of yours: a `repetition_penalty`, which some models bring, changes the
# scores before the best is taken, so it acts on greedy decoding too.
#
# **Many questions**: one `generate` on a batch. Prompts differ in length, so the shorter ones are filled
# up, and here is the classic mistake: a model continues from the **last** position. Filled up on the right,
# that is filling. We put one long prompt among twenty and count both ways.


# %%
def answers(rows: list[list[dict]], side: str) -> list[str]:
    """Greedy answers to a batch of prompts, filled up on one side."""
    texts = tokenizer.apply_chat_template(
        rows, add_generation_prompt=True, tokenize=False
    )
    inputs = tokenizer(
        texts,
        return_tensors="pt",
        padding=True,
        padding_side=side,
        add_special_tokens=False,  # the template has put them there
    )
    made = merged.generate(**inputs, max_new_tokens=32, do_sample=False)
    new = made[:, inputs["input_ids"].shape[1] :]
    return tokenizer.batch_decode(new, skip_special_tokens=True)


# %%
from grpo_utils import is_strictly_right

long = chat_prompt("Take your time and think it over. " * 5)
twenty = test_rows.select(range(20))
right = {}
for side in ("left", "right"):
    texts = answers([*twenty["prompt"], long], side)[:20]
    pairs = zip(texts, twenty["answer"])
    right[side] = sum(is_strictly_right(text, gold) for text, gold in pairs)
    print(f"filled on the {side:5}: {right[side]:2} of 20 right: {texts[0]}")

# %% tags=["nbval-check-output"]
print("right padding breaks it:", right["right"] < right["left"] / 2)

# %% [markdown]
# The same model and the same questions; only the side differs. transformers warns of it (we silenced its
# hints above), and no error is raised. So `padding_side="left"`, always written out.
#
# **Streaming**: show the text while it is made. `TextStreamer` prints it; `TextIteratorStreamer` gives it to
# a loop, so that a web page can take it. Then `generate` runs in a thread of its own.

# %%
from transformers import TextStreamer

inputs = tokenizer.apply_chat_template(
    question, add_generation_prompt=True, return_dict=True, return_tensors="pt"
)
streamer = TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
made = merged.generate(
    **inputs, max_new_tokens=32, do_sample=False, streamer=streamer
)

# %%
from threading import Thread

from transformers import TextIteratorStreamer

pieces = TextIteratorStreamer(
    tokenizer, skip_prompt=True, skip_special_tokens=True
)
settings = dict(max_new_tokens=32, do_sample=False, streamer=pieces)
worker = Thread(target=merged.generate, kwargs={**inputs, **settings})
worker.start()
streamed = list(pieces)
worker.join()
print(len(streamed), "pieces:", streamed)

# %% [markdown]
# Many pieces are empty: a token may be half a word, or half a letter, so the streamer keeps text back until a space
# follows. Joined, they are the answer.

# %% [markdown]
# ## 7. Base and trained, side by side
#
# The question of everyone who gets your model: what is different? `side_by_side` puts both answers to the
# same prompts beside each other, greedy and sampled alike; here the sampled ones.

# %%
import pandas

from grpo_utils import side_by_side

table = side_by_side(test_rows, before, results["merged, fp32"])
pandas.set_option("display.max_colwidth", 60)
table[["prompt", "before", "after", "right before", "right after"]].head(8)

# %%
both = table["right before"], table["right after"]
print("both right:    ", (both[0] & both[1]).sum(), "of", len(table))
print("only the base: ", (both[0] & ~both[1]).sum())
print("only trained:  ", (~both[0] & both[1]).sum())
print("neither:       ", (~both[0] & ~both[1]).sum())

# %% [markdown]
# What the training gained is the third line. What it lost is the second one; here it is, if there is any:

# %%
lost = table[both[0] & ~both[1]]
lost[["prompt", "before", "after", "gold"]].head(8)

# %% [markdown]
# ## 8. A model card, and the Hub
#
# In a year nobody remembers which base, which rewards, which prompts. So the run is written down, as lesson
# 03 does it: every setting and figure in one `report.json`.

# %%
from dataclasses import asdict

from grpo_utils import SYSTEM_PROMPT, lora_arguments, reward_settings

settings = {
    "system_prompt": SYSTEM_PROMPT,
    "profile": asdict(profile),
    "train_rows": len(train_rows),
    "rewards": reward_settings(rewards, weights),
    "lora": {**lora_arguments(profile), "random_state": SEED},
    "evaluation": judging,
    "training_arguments": config.to_dict(),
}

# %%
from grpo_utils import seconds_since_start, versions, write_report

base_and_policy = compare(before, after)
base_and_merged = compare(before, results["merged, fp32"])
report = {
    "profile": profile.name,
    "family": FAMILY,
    "model": base_name,
    "backend": "transformers",
    "load_in_4bit": True,
    "steps": trainer.state.global_step,
    "seed": SEED,
    "before": before.summary(),
    "after": after.summary(),
    "merged": results["merged, fp32"].summary(),
    "p_value": base_and_policy.p_value,
    "merged_p_value": base_and_merged.p_value,
}

# %%
report |= {
    "merge_difference": merge.largest_difference,
    "train_seconds": train_seconds,
    "wall_seconds": seconds_since_start(),
    "versions": versions(),
    "config": settings,
}
print("written:", write_report(run_folder, report))

# %% [markdown]
# A *model card* is the README of a model on the Hub, with a header of metadata. This one is made from the report
# and from nothing else. What it says of success is said of the model in the folder: the base against the *merged* model,
# in a paired test of their own. The licence is left to you: it depends on the base's.

# %%
from IPython.display import Markdown
from grpo_utils import write_card

card = write_card(run_folder / "merged", report, kind="merged")
write_card(run_folder / "adapter", report, kind="adapter")
Markdown(card.read_text().split("---", 2)[2].replace("\n#", "\n####"))

# %% tags=["nbval-check-output"]
from huggingface_hub import ModelCard

print(ModelCard.load(card).data)

# %% [markdown]
# `ModelCard` of `huggingface_hub` reads the header, so it is valid. A tiny model has no `base_model` in it, because
# there is none of that name on the Hub; with a real base it stands there, and the Hub links your model to it.
#
# **Push.** `model.push_to_hub("you/name")` uploads the weights, at once, without this card, and
# `tokenizer.push_to_hub` has to follow. `push` first looks at the files that belong to a model, and takes no others. It refuses weights
# without the files that they are loaded with; a text with a token that begins with `hf_`, `api_org_`, `ghp_`,
# `github_pat_` or `sk-`; a value in a JSON file that begins like an absolute path; and a path in another text below a
# folder like `home`, `content` or `data`. Other secrets it cannot know: read your card. By default that is all it does.

# %%
from grpo_utils import push

sizes = push(run_folder / "merged", "you/tiny-grpo")
for name, size in sizes.items():
    print(f"{size:9,} bytes  {name}")

# %% [markdown]
# A dry run: no token, no network. These files of `merged`, and no others, would be uploaded: read them. Then upload with
# `dry_run=False`, which checks them again. A new repository is *private* unless you say otherwise; one that exists stays as it is.
#
# The token is read by `huggingface_hub` from where `hf auth login` put it, or from `HF_TOKEN`. Never write one into a
# cell: notebooks are shared with their outputs. (The upload is tested against a stand-in for the Hub; to the real one it was never run.)

# %% [markdown]
# ## 9. GGUF and Ollama
#
# llama.cpp, and Ollama on top of it, run models from one file in the format GGUF. llama.cpp brings the converter. It
# knows tokenizers by their fingerprint and refuses one that it has never seen. **The tiny models' own one is such**: with
# them the conversion fails, so leave `LLAMA_CPP` empty here; convert the merge of a published model with the command below.

# %%
import subprocess
import sys

folder, gguf = run_folder / "merged", run_folder / "merged" / "model.gguf"
converter = f"{LLAMA_CPP or 'llama.cpp'}/convert_hf_to_gguf.py"
command = [converter, folder, "--outfile", gguf, "--outtype", "f16"]
if LLAMA_CPP:
    made = subprocess.run([sys.executable, *command], stderr=subprocess.PIPE)
    assert made.returncode == 0, made.stderr.decode()
    print(f"{gguf.stat().st_size:,} bytes  {gguf.name}")
else:
    print("LLAMA_CPP is not set, so nothing was converted. Never run:")
    print("git clone --depth 1 https://github.com/ggml-org/llama.cpp")
    print("python", *command)

# %% [markdown]
# `--outtype q8_0` makes a file of about half the size of `f16`. For Gemma 3 take `--outtype bf16`: it exceeds what fp16
# can hold.
#
# A GGUF file alone is not your model yet: Ollama needs the **same template and system prompt** as the training, in a
# `Modelfile`. Its templates are not Jinja but Go's. `ollama_template` renders a conversation of three questions in the
# tokenizer's own template, with marks in it, and reads off what is between them, so that nothing has to be
# translated by hand. It refuses a template that writes a later turn in another way than an earlier one.

# %%
from grpo_utils import ollama_template

text = f'''FROM ./model.gguf

TEMPLATE """{ollama_template(tokenizer)}"""

SYSTEM """{SYSTEM_PROMPT}"""

PARAMETER stop "{tokenizer.eos_token}"
PARAMETER temperature 0
'''
(run_folder / "merged" / "Modelfile").write_text(text)
print(text)

# %% [markdown]
# `stop` is the token that ends a turn; without it the model would go on and play both sides. `temperature 0` is greedy
# decoding. A test of the course renders this template and the tokenizer's, for one question and for a conversation, and
# compares the texts letter by letter. With a published model, once `model.gguf` is there (never run):
#
# ```
# ollama create tiny-grpo -f outputs/export/merged/Modelfile
# ollama run tiny-grpo "What is 15 + 27?"
# ```

# %% [markdown]
# ## 10. Served
#
# Whoever uses a model mostly asks a *server*, over HTTP, in OpenAI's protocol. `transformers serve` is one, and runs on a
# CPU. `served` starts it on a free port of this machine, and ends it with the `with`. The question goes there with the
# system prompt: the server knows the chat template, which is in the folder, but not what you trained with.

# %%
from grpo_utils import ask_server, served

with served(run_folder / "merged") as address:
    print(ask_server(address, question, max_tokens=32))
    from_server = [
        ask_server(address, messages, max_tokens=32)
        for messages in twenty["prompt"]
    ]

# %% tags=["nbval-check-output"]
own = answers(list(twenty["prompt"]), "left")
print("answers like the folder itself:", from_server == own)

# %% [markdown]
# Twenty held-out questions, the same texts as from `generate` in this process: what was evaluated is what is served. The
# same by hand, in two terminals, where any program that speaks the protocol can ask:

# %%
body = {"messages": question, "max_tokens": 32, "temperature": 0}
print(f"transformers serve {run_folder / 'merged'} --port 8000\n")
print("curl http://localhost:8000/v1/chat/completions \\")
print('  -H "Content-Type: application/json" \\')
print(f"  -d '{json.dumps(body)}'")

# %% [markdown]
# `temperature` 0 is greedy decoding. Without it the server samples if the model's `generation_config.json` says so.
# `transformers serve` needs a few packages more; if they are missing, the error of `served` says how to install them. It listens to this
# machine only; before a server listens to others, it needs a password and a limit in front of it.

# %% [markdown]
# ## 11. vLLM
#
# For many users at once: vLLM, meant for a GPU, in the same protocol. It reads the merged folder if it brings transformers 5,
# which wrote the tokenizer's files; older programs may not read them.

# %%
print("Never run:")
template = f"--chat-template {folder}/chat_template.jinja"
print(f"vllm serve {folder} --served-model-name tiny-grpo", end=" ")
print(f"--max-model-len 128 {template}")

# %% [markdown]
# Ask it with the `curl` above, plus `"model": "tiny-grpo"`. By default vLLM applies the model's own
# `generation_config.json`, so send `"temperature": 0` with the request. For several adapters on one base, `vllm serve BASE
# --enable-lora --max-lora-rank 32 --lora-modules name=adapter` loads an adapter without any merge. The rank is that of the
# course's GPU profiles; unless told, vLLM admits 16 at most. (None of this was ever run here.)

# %% [markdown]
# ## 12. Your own run
#
# All of the above was about a policy that this lesson trained. For one of yours, such as lesson 03 leaves in
# `outputs/run`, these lines merge the adapter. Put in your folder and your base. The base is the unquantized one: a name
# without `-bnb-4bit`.
#
# ```python
# import torch
#
# from grpo_utils import load_rows, merge_adapter, save_merged
#
# adapter = "outputs/run/adapter"
# base = "tiny-qwen3"  # as adapter_config.json names it
# prompts = load_rows("addition", "test", 8, 0)["prompt"]  # of your task
#
# merge = merge_adapter(adapter, base, prompts)
# print(f"largest difference of a logit: {merge.largest_difference:.1e}")
# save_merged(merge, "outputs/merged", torch.float32)  # large: bfloat16
# ```
#
# Then load `outputs/merged`, evaluate it (section 5), and serve it (section 10). If Unsloth trained in the same process,
# do it in a fresh one.

# %% [markdown]
# ## 13. The checklist, and what was not run
#
# What to have done before a model leaves the house, answered by this run:

# %% tags=["nbval-check-output"]
merged_files = {file.name for file in (run_folder / "merged").iterdir()}
CHECKLIST = {
    "the adapter reloads without a difference": lost_by_saving == 0,
    "the merge is exact, below 0.001": merge.largest_difference < 1e-3,
    "the merged model was evaluated itself": "merged" in report,
    "paired with the base, on the same prompts": (
        before.asked == results["merged, fp32"].asked
    ),
    "template beside the weights": "chat_template.jinja" in merged_files,
    "system prompt in the card": SYSTEM_PROMPT in card.read_text(),
    "a dry run of the push": {"README.md", "model.safetensors"} <= set(sizes),
    "served, it answers like the folder": from_server == own,
}
for item, done in CHECKLIST.items():
    print("[x]" if done else "[ ]", item)

# %% [markdown]
# Nothing in it says that the model is good: that is what the card says. And this is how far the lesson went:
#
# | | |
# |---|---|
# | adapter, fp32 merge, merge into 4 bits, bf16 and fp16 | run, on a CPU, with a tiny model |
# | `pipeline`, batches, streaming | run |
# | card, dry run of the push | run |
# | `transformers serve`, asked over HTTP | run, on a CPU |
# | push to the real Hub | never run; tested against a stand-in |
# | GGUF, Ollama | never run: llama.cpp refuses the tiny models' tokenizer; the template is tested |
# | vLLM | never run |
# | export after Unsloth on a GPU | never run |

# %% [markdown]
# ## 14. Exercises
#
# ### Exercise 1: it answers like the base
#
# A colleague exported three models, and none is right. One was merged into the **wrong base**. In one the **adapter
# is missing**. One is a good model that is asked **without its template**. The next cell makes them and shuffles them.
# Do not open it: read the table.

# %% cellView="form" jupyter={"source_hidden": true}
import random

from grpo_utils import encode_prompts, model_path

base = AutoModelForCausalLM.from_pretrained(model_path(base_name)).eval()
torch.manual_seed(1)
stranger = AutoModelForCausalLM.from_config(base.config).eval()
mixed = PeftModel.from_pretrained(stranger, adapter).merge_and_unload()
exports = {
    "wrong_base": (mixed, True),
    "adapter_missing": (base, True),
    "template_lost": (merged, False),
}
hidden = random.Random(SEED + 1).sample(sorted(exports), k=3)

# %% [markdown]
# For each, the largest difference of a logit from base and from the good merge, *both asked in the template*, and what
# it answers as the colleague asks it.


# %%
def ask(model, templated: bool) -> str:
    inputs = encode_prompts(tokenizer, [question])
    if not templated:
        inputs = tokenizer("What is 15 + 27?", return_tensors="pt")
    made = model.generate(**inputs, max_new_tokens=24, do_sample=False)
    return tokenizer.decode(made[0, inputs["input_ids"].shape[1] :])


print("   from base   from merge   says")
for label, code in zip("abc", hidden):
    model, templated = exports[code]
    numbers = f"{apart(model, base):12.2f} {apart(model, merged):12.2f}"
    print(f"{label}{numbers}   {ask(model, templated)[:44]!r}")

# %%
codes = ["", "", ""]  # yours: wrong_base, adapter_missing, template_lost

# %% tags=["nbval-check-output"]
from grpo_utils import check_exercise


def right_ones(said: list[str]) -> list[bool]:
    return [a == b for a, b in zip(said, hidden)] if any(said) else []


THREE = [((), [True, True, True])]
print(check_exercise("Exercise 1", lambda: right_ones(codes), THREE))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. No difference from the base: no adapter in it. No difference from the merge: the weights are
# right, so it is the way they are asked. Far from both: other weights. The answers alone do not tell.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def fault(model) -> str:
    if apart(model, base) < 1e-3:
        return "adapter_missing"
    return "template_lost" if apart(model, merged) < 1e-3 else "wrong_base"


found = [fault(exports[code][0]) for code in hidden]
name = "Exercise 1, solution"
print(check_exercise(name, lambda: right_ones(found), THREE))

# %% [markdown]
# ### Exercise 2: how large is it?
#
# Write `gigabytes(parameters, bits, adapter)`: the base's `parameters` at so many `bits`, and an `adapter` of so many
# parameters beside it in 16 bits (the adapter file above is in fp32: twice that). A gigabyte is 10⁹ bytes. How large is
# a base of 1.5 billion in 4 bits with an adapter of 37 million? And merged, in 16?


# %%
def gigabytes(parameters: float, bits: int, adapter: float) -> float | None:
    """Your answer, in gigabytes."""
    return None


# %% tags=["nbval-check-output"]
SIZES = [((1.5e9, 4, 37e6), 0.82), ((1.5e9, 16, 0), 3.0)]
SIZES += [((7e9, 4, 80e6), 3.66), ((7e9, 16, 0), 14.0)]
print(check_exercise("Exercise 2", gigabytes, SIZES))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. A merge in fp32 needs a machine that holds the base in 32 bits: 6 GB for 1.5 billion, 28 GB
# for 7 billion. (Real 4-bit files are larger than this: each block of weights has a scale, and some layers
# are not quantized.)
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def gigabytes_solution(parameters: float, bits: int, adapter: float) -> float:
    return (parameters * bits / 8 + adapter * 2) / 1e9


print(check_exercise("Exercise 2, solution", gigabytes_solution, SIZES))

# %% [markdown]
# ### Exercise 3: fill up on the left
#
# Write `pad_left(rows, pad)`: lists of token numbers, all brought to the length of the longest by `pad` in front. Give back
# the filled rows **and** the attention mask (0 where filled, 1 elsewhere), in this order.


# %%
def pad_left(rows: list[list[int]], pad: int) -> list[list[list[int]]]:
    """Your answer: [filled rows, attention mask]."""
    return []


# %% tags=["nbval-check-output"]
ROWS = [
    (([[5, 6, 7], [8]], 0), [[[5, 6, 7], [0, 0, 8]], [[1, 1, 1], [0, 0, 1]]])
]
ROWS += [(([[0], [4, 4]], 9), [[[9, 0], [4, 4]], [[0, 1], [1, 1]]])]
ROWS += [(([[0], [4, 4]], 0), [[[0, 0], [4, 4]], [[0, 1], [1, 1]]])]
print(check_exercise("Exercise 3", pad_left, ROWS))

# %% [markdown]
# <details><summary>Solution</summary>
#
# The next cell holds it. The mask is made from lengths, not from `token == pad`: the filling token may be a
# real token of the text, as in the last case.
# </details>


# %% cellView="form" jupyter={"source_hidden": true} tags=["solution"]
def pad_left_solution(rows: list[list[int]], pad: int) -> list:
    longest = max(len(row) for row in rows)
    gaps = [longest - len(row) for row in rows]
    filled = [[pad] * gap + row for gap, row in zip(gaps, rows)]
    mask = [[0] * gap + [1] * len(row) for gap, row in zip(gaps, rows)]
    return [filled, mask]


print(check_exercise("Exercise 3, solution", pad_left_solution, ROWS))

# %% [markdown]
# ## What to take along
#
# - Keep the adapter. It is small, and it is the only exact record of a 4-bit training.
# - Merge into the unquantized base, in fp32, and compare logits. Round afterwards.
# - The merged model is not the policy: evaluate what you hand on.
# - Template, system prompt and stop token belong to the model. Most "it forgot everything" is one of these.
# - Fill up on the left.
# - A card from the report, a dry run before the push, no token in a notebook.
# - Ask the served model what you asked the folder, and compare the texts.
#
# To read: Hu et al. 2021, *LoRA* (arXiv 2106.09685), on merging; Dettmers et al. 2023, *QLoRA* (arXiv 2305.14314);
# Mitchell et al. 2019, *Model cards for model reporting* (arXiv 1810.03993); the pages of `transformers serve`,
# llama.cpp, Ollama and vLLM.
#
# Next: [lesson 08](08_grpo_by_hand.ipynb) opens the trainer and computes every number of it by hand. Or your own task: rows
# as in lesson 01, a reward as in lesson 02, then lesson 03 with them.
