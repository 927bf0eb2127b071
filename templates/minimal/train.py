"""Train with GRPO in one file, using Unsloth and TRL: a tiny model on a CPU, or Qwen or Gemma on a GPU."""

import os

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # use one GPU; more would increase the batch size
os.environ.setdefault("OMP_NUM_THREADS", "1")  # a second thread makes a model this tiny slower
import torch

GPU = torch.cuda.is_available()
os.environ.setdefault("HF_HUB_OFFLINE", "0" if GPU else "1")  # the tiny model is a local folder
from unsloth import FastLanguageModel, is_bfloat16_supported  # before TRL, which it patches on a GPU

# isort: split
import re
from pathlib import Path

from datasets import Dataset, load_dataset
from scipy.stats import binomtest
from trl import GRPOConfig, GRPOTrainer

# ---- CHANGE THIS PART: the model, the rows, the rewards. ----
MODEL = "unsloth/Qwen2.5-1.5B-Instruct" if GPU else "./tiny-model"  # or "unsloth/gemma-3-1b-it"
TEMPLATE = {"enable_thinking": False}  # Qwen3 then answers without a thought; other models ignore it
STEPS, TOKENS = (60, 256) if GPU else (50, 32)  # optimizer steps, and the longest completion
GSM8K, HELD_OUT = (True, 100) if GPU else (False, 200)  # the task (False: addition), and rows to evaluate
OUTPUT = Path("outputs/minimal")
FORMAT = "<reasoning>your thinking</reasoning><answer>the result alone</answer>"
SYSTEM = {"role": "system", "content": f"Think first, then answer, in exactly this form: {FORMAT}"}
PART = r"(?>\s*)((?:(?!</?(?:reasoning|answer)>)[\s\S])+)"  # text between tags that is not blank; "3 < 5" is fine
ANSWER = re.compile(rf"<answer>{PART}</answer>\s*")
IN_FORMAT = re.compile(rf"\s*<reasoning>{PART}</reasoning>\s*" + ANSWER.pattern)
TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")


def row(question, answer):  # chat messages: TRL applies the chat template only to these
    return {"prompt": [SYSTEM, {"role": "user", "content": question}], "answer": answer}


def load_rows():
    """Return the training rows and the held-out rows."""
    if GSM8K:
        data = load_dataset("openai/gsm8k", "main").shuffle(seed=0)  # GSM8K answers end in "#### 1,234"
        data = data.map(lambda each: row(each["question"], each["answer"].split("#### ")[1].replace(",", "")))
        return data["train"], data["test"].select(range(HELD_OUT))
    pairs = [(a, b) if a % 2 else (b, a) for a in range(10, 100) for b in range(a, 100)]  # 15 + 27 or 27 + 15, not both
    data = Dataset.from_list([row(f"What is {a} + {b}?", str(a + b)) for a, b in pairs])
    return data.train_test_split(test_size=HELD_OUT, seed=0).values()


def is_number(match, answer):
    """Return whether a match contains the correct whole number: 1250, 1,250 or $1,250.00."""
    return match is not None and match[match.lastindex].strip().removeprefix("$").removesuffix(".00") in (
        answer,
        f"{int(answer):,}",
    )


def is_correct(text, answer):
    """Return whether the text has the format and the correct number. Accuracy counts only such texts."""
    return is_number(IN_FORMAT.fullmatch(text), answer)


def tag_credit(text):
    """Return 1.0 for the whole format, or 0.25 (at most 0.75) for each tag that opens or closes some text."""
    tags = re.findall("|".join(TAGS), text)
    if tags != [tag for tag in TAGS if tag in tags]:  # repeated, or in the wrong order
        return 0.0
    pairs = re.findall(rf"<(reasoning|answer)>{PART}(</\1>)?", text)
    return 1.0 if IN_FORMAT.fullmatch(text) else min(0.75, sum(0.5 if closed else 0.25 for *_, closed in pairs))


def correctness_reward(completions, answer, **kwargs):  # a correct answer in its tags earns this before the format does
    texts = [reply[0]["content"] or "" for reply in completions]
    answers = [ANSWER.fullmatch("".join(text.partition("<answer>")[1:])) for text in texts]  # it ends the text
    return [float(is_number(match, gold)) for match, gold in zip(answers, answer, strict=True)]


def format_reward(completions, **kwargs):
    return [tag_credit(reply[0]["content"] or "") for reply in completions]


REWARDS = {correctness_reward: 2.0, format_reward: 1.0}  # each with its weight
# ---- The rest fits most tasks. ----


def generate(model, tokenizer, rows, **decoding):
    """Return a completion for each row."""
    FastLanguageModel.for_inference(model)
    torch.manual_seed(0)
    completions = []
    for start in range(0, len(rows), 50):
        batch = rows[start : start + 50]
        texts = tokenizer.apply_chat_template(batch["prompt"], **TEMPLATE, add_generation_prompt=True, tokenize=False)
        prompts = tokenizer(texts, add_special_tokens=False, padding=True, padding_side="left", return_tensors="pt")
        outputs = model.generate(**prompts.to(model.device), **decoding, max_new_tokens=TOKENS, repetition_penalty=1.0)
        completions += tokenizer.batch_decode(outputs[:, prompts["input_ids"].shape[1] :], skip_special_tokens=True)
    FastLanguageModel.for_training(model)
    return completions


def evaluate(model, tokenizer, rows, **decoding):
    """Return, for each row, whether the completion is correct."""
    return list(map(is_correct, generate(model, tokenizer, rows, **decoding), rows["answer"]))


def show_groups(model, tokenizer, rows, **decoding):
    """Print how many of 8 groups the run could learn from: those that hold correct and wrong answers."""
    rows = rows.select([i for i in range(8) for _ in range(8)])
    replies = [[{"content": text}] for text in generate(model, tokenizer, rows, **decoding)]
    correct = correctness_reward(replies, rows["answer"])
    counts = [sum(correct[i : i + 8]) for i in range(0, 64, 8)]
    found, mixed = sum(count > 0 for count in counts), sum(0 < count < 8 for count in counts)
    print(f"Before training, {found} of 8 groups hold a correct answer, and {mixed} also a wrong one.")
    if not found:
        print("Only the partial credit can teach here at first. If the reward stays flat: SFT first, or easier rows.")


if __name__ == "__main__":
    if OUTPUT.exists():
        raise SystemExit(f"Error: {OUTPUT} already exists. Rename it, or set OUTPUT to another folder.")
    train_rows, held_out = load_rows()
    dtype = None if GPU else torch.float32  # None: bf16, or fp16 on a T4
    model, tokenizer = FastLanguageModel.from_pretrained(MODEL, max_seq_length=1024, load_in_4bit=GPU, dtype=dtype)
    model = FastLanguageModel.get_peft_model(model, r=16, lora_alpha=32, random_state=0)
    model.generation_config.max_length = None  # max_new_tokens is the limit
    decodings = [dict(do_sample=True, temperature=1.0, top_p=1.0, top_k=0), dict(do_sample=False)]
    show_groups(model, tokenizer, train_rows, **decodings[0])
    before = [evaluate(model, tokenizer, held_out, **decoding) for decoding in decodings]
    config = GRPOConfig(
        output_dir=str(OUTPUT),
        max_steps=STEPS,
        learning_rate=2e-4 if GPU else 2e-3,
        lr_scheduler_type="constant_with_warmup" if GPU else "linear",  # linear: it falls to 0
        warmup_steps=2 if GPU else 0,
        optim="adamw_8bit" if GPU else "adamw_torch",
        per_device_train_batch_size=8 if GPU else 64,  # completions, not prompts
        gradient_accumulation_steps=4 if GPU else 1,
        num_generations=8,  # completions of one prompt: a group
        max_completion_length=TOKENS,
        chat_template_kwargs=TEMPLATE,
        reward_weights=list(REWARDS.values()),
        bf16=GPU and is_bfloat16_supported(),
        fp16=GPU and not is_bfloat16_supported(),  # a T4 has no bf16; a CPU stays in fp32
        logging_steps=10,
        log_completions=True,  # to outputs/minimal/completions; grpo-check replay makes a page of them
        num_completions_to_print=0,
        save_steps=25,
        report_to="none",
        seed=0,
        # TRL's defaults, set explicitly because Unsloth changes them on a GPU.
        loss_type="dapo",
        beta=0.0,
        epsilon_high=0.2,
        mask_truncated_completions=False,
        weight_decay=0.0,
    )
    trainer = GRPOTrainer(model, list(REWARDS), config, train_rows, processing_class=tokenizer)
    trainer.train()
    model.save_pretrained(OUTPUT / "model")
    tokenizer.save_pretrained(OUTPUT / "model")
    after = [evaluate(model, tokenizer, held_out, **decoding) for decoding in decodings]
    print("        accuracy (95% interval)   greedy")
    for name, (sampled, greedy) in {"before": before, "after": after}.items():
        result = binomtest(sum(sampled), len(sampled))
        low, high = result.proportion_ci(method="wilson")
        print(f"{name:8}{result.statistic:.3f} ({low:.3f} to {high:.3f}){sum(greedy) / len(greedy):10.3f}")
    changes = [new - old for old, new in zip(before[0], after[0], strict=True)]
    better, worse = changes.count(1), changes.count(-1)
    p = binomtest(better, max(better + worse, 1)).pvalue  # if nothing changed: 1.0
    verdict = "No significant change" if p >= 0.05 else "Accuracy rose" if better > worse else "Accuracy fell"
    print(f"{verdict}: {better} prompts got better, {worse} got worse (exact McNemar test, p = {p:.2g}).")
