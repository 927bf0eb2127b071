"""Sample groups of completions as TRL does, and score them with the rewards of the run."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name
from grpo_core.training.generating import evaluation_mode

from ..preflights.planned import PlannedRun
from ..preflights.texts import prompt_text
from ..probes.calling import call
from ..probes.matrix import Case

#: What TRL passes from `GRPOConfig` to `generate`.
DECODING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "cache_implementation")

#: Completions per prompt, at least; with smaller groups the share of ties is computed from these.
_FEWEST_COMPLETIONS = 8


class RewardError(CourseError):
    """A reward failed on real completions."""


@dataclass(frozen=True)
class Group:
    """The completions to one prompt.

    Attributes:
        scores: one list per reward, with one score per completion.
        lengths: in tokens, up to and with the first EOS.
        ended: whether a completion has an EOS token; the others were cut off at the limit.
        seconds: per completion of the group's batch, for sampling and for scoring.
        row, texts: the row of the dataset, and what the rewards read.
        right, formed: whether each completion is correct, and in the required format; None if that is not known.
    """

    scores: list[list[float | None]]
    lengths: list[int]
    ended: list[bool]
    seconds: tuple[float, float]
    row: dict = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    right: list[bool] | None = None
    formed: list[bool] | None = None


def groups(run: PlannedRun, model: object, rows: Sequence[dict], seed: int) -> Iterator[Group]:
    """One scored group per row, of 8 completions at least; as many are sampled together as in the run.

    Raises:
        RewardError: a reward raised, took too long, or returned something else than a score per completion.
    """
    import torch
    from tqdm import trange

    size, most = max(_FEWEST_COMPLETIONS, run["num_generations"]), run["max_completion_length"]
    many = max(1, run.completions_at_once // size)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for start in trange(0, len(rows), many, desc="pilot", leave=False, delay=10):
            some, started = rows[start : start + many], time.perf_counter()
            ids = generate(run, model, [row["prompt"] for row in some for _ in range(size)], most)
            between = time.perf_counter()
            texts = run.tokenizer.batch_decode(ids, skip_special_tokens=True)
            scores = score(run, [row for row in some for _ in range(size)], texts, ids)
            seconds = (between - started) / len(ids), (time.perf_counter() - between) / len(ids)
            ended = [one[-1] == run.tokenizer.eos_token_id for one in ids]
            for n, row in enumerate(some):
                of = slice(n * size, (n + 1) * size)
                each = [column[of] for column in scores], [len(one) for one in ids[of]], ended[of]
                yield Group(*each, seconds, row, texts[of])


def generate(run: PlannedRun, model: object, prompts: list, most: int) -> list[list[int]]:
    """The tokens of one completion per prompt, with TRL's decoding, up to and with the first EOS."""
    import torch
    from transformers import GenerationConfig

    tokenizer = run.tokenizer
    plain = isinstance(prompts[0], str)
    texts = [prompt_text(run, prompt) for prompt in prompts]
    how = dict(return_tensors="pt", padding=True, padding_side="left", add_special_tokens=plain)
    inputs = tokenizer(text=texts, **how).to(model.device)
    tokens = {name: getattr(tokenizer, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    decoding = {name: run[name] for name in DECODING} | run.options("generation_kwargs")
    config = GenerationConfig(**{"max_new_tokens": most, "do_sample": True, **tokens, **decoding}, disable_compile=True)
    with evaluation_mode(model), torch.no_grad():
        output = model.generate(**inputs, generation_config=config)
    new = output[:, inputs["input_ids"].shape[1] :].tolist()
    eos = tokenizer.eos_token_id
    return [ids[: ids.index(eos) + 1] if eos in ids else ids for ids in new]


def score(run: PlannedRun, rows: list[dict], texts: list[str], ids: list[list[int]]) -> list[list[float | None]]:
    """The scores of every reward for a batch, each called once, as in training."""
    triples = zip(rows, texts, ids, strict=True)
    cases = [Case("sampled", "odd", text, columns={**row, "completion_ids": one}) for row, text, one in triples]
    return [_scores(reward, cases, run.chat) for reward in run.rewards]


def _scores(reward: object, cases: list[Case], chat: bool) -> list[float | None]:
    outcome, name = call(reward, cases, chat), reward_name(reward)
    if outcome.scores is None:
        raise RewardError(f"{name} failed on {len(cases)} real completions: {outcome.error}.")
    wrong = [n for n, score in enumerate(outcome.scores) if score is not None and not abs(score) < float("inf")]
    if wrong:
        what = f"{name} returned {outcome.scores[wrong[0]]} or something that is not a number"
        raise RewardError(f"{what} for {len(wrong)} of {len(cases)} completions, such as {cases[wrong[0]].text!r:.80}.")
    return outcome.scores


def longer(run: PlannedRun, model: object, cut: Sequence[Group], times: int = 4) -> list[tuple[int, bool]]:
    """The length of one further completion per group with ``times`` the limit, and whether it ended."""
    import torch

    with torch.random.fork_rng():
        found = generate(run, model, [one.row["prompt"] for one in cut], times * run["max_completion_length"])
    return [(len(ids), ids[-1] == run.tokenizer.eos_token_id) for ids in found]


def forward_seconds(run: PlannedRun, model: object, some: Sequence[Group]) -> float:
    """Seconds per completion of one forward pass without gradients, over one batch of the run."""
    import torch

    pairs = [(one.row["prompt"], text) for one in some for text in one.texts][: run["per_device_train_batch_size"]]
    texts = [prompt_text(run, prompt) + text for prompt, text in pairs]
    inputs = run.tokenizer(text=texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
    with evaluation_mode(model), torch.no_grad():
        for _ in range(2):  # the first pass may compile or allocate
            started = time.perf_counter()
            model(**inputs).logits.float().sum().item()
    return (time.perf_counter() - started) / len(texts)
