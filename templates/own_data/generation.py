"""What the policy answers to held-out prompts."""

from collections.abc import Sequence


def generate(policy: object, tokenizer: object, prompts: Sequence, *, tokens: int, batch: int, seed: int, sample: bool):
    """One completion for each prompt."""
    import torch

    was_training, texts = policy.training, []
    policy.eval()
    torch.manual_seed(seed)
    how = dict(do_sample=True, temperature=1.0, top_p=1.0, top_k=0) if sample else dict(do_sample=False)
    for start in range(0, len(prompts), batch):
        inputs = tokenizer.apply_chat_template(
            prompts[start : start + batch],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            padding=True,
            tokenizer_kwargs={"padding_side": "left"},  # a model goes on from the last position
        ).to(policy.device)
        with torch.no_grad():
            made = policy.generate(**inputs, **how, repetition_penalty=1.0, max_new_tokens=tokens)
        texts += tokenizer.batch_decode(made[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    policy.train(was_training)
    return texts
