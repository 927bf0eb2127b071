"""A GRPO trainer whose completions come from a sampler that differs from the policy that learns.

The sampler may be some optimizer steps old (`Delay`), sample at another temperature (`Temperature`), or have rounded
weights (`Rounded`). TRL corrects such a difference with vLLM only, so this trainer computes the weights as TRL does.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from time import process_time

import torch
from torch import Tensor, nn
from trl import GRPOTrainer

#: The largest importance weight, as `vllm_importance_sampling_clip_max` by default.
CAP = 3.0
#: Completions are grouped by their length in tokens: up to the first bound, up to the second, ...
BOUNDS = (13, 17, 19, 32)
#: The ratios are measured once in this number of steps, because that costs a forward pass.
EVERY = 4


@contextmanager
def swapped(parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> Iterator[None]:
    """Give parameters other values for a while. They are changed in place, so every reference sees them."""
    own = [parameter.detach().clone() for parameter in parameters]
    put(parameters, values)
    try:
        yield
    finally:
        put(parameters, own)


@torch.no_grad()
def put(parameters: Sequence[nn.Parameter], values: Sequence[Tensor]) -> None:
    for parameter, value in zip(parameters, values, strict=True):
        parameter.copy_(value)


@dataclass
class Delay:
    """A sampler with the adapter of some optimizer steps ago, at the beginning with that before the first step."""

    steps: int
    kept: deque = field(init=False)

    def __post_init__(self) -> None:
        self.kept = deque(maxlen=self.steps + 1)

    def __call__(self, trainer: GRPOTrainer) -> AbstractContextManager:
        adapter = [parameter for parameter in trainer.model.parameters() if parameter.requires_grad]
        self.kept.append([parameter.detach().clone() for parameter in adapter])
        return swapped(adapter, self.kept[0])


@dataclass
class Rounded:
    """A sampler with the newest weights, each matrix rounded to few bits."""

    bits: int

    def __call__(self, trainer: GRPOTrainer) -> AbstractContextManager:
        matrices = [parameter for parameter in trainer.model.parameters() if parameter.ndim == 2]
        return swapped(matrices, [rounded(matrix.detach(), self.bits) for matrix in matrices])


def rounded(matrix: Tensor, bits: int) -> Tensor:
    """A matrix whose rows have at most 2 to the power of ``bits`` different values.

    >>> rounded(torch.tensor([[1.0, 0.4, -1.0]]), bits=2)
    tensor([[ 1.,  0., -1.]])
    """
    largest = 2 ** (bits - 1) - 1
    scale = matrix.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / largest
    return (matrix / scale).round() * scale


@dataclass
class Temperature:
    """A sampler with the newest weights and another temperature than the trainer's."""

    value: float

    @contextmanager
    def __call__(self, trainer: GRPOTrainer) -> Iterator[None]:
        own = trainer.temperature
        trainer.temperature = trainer.generation_config.temperature = self.value
        try:
            yield
        finally:
            trainer.temperature = trainer.generation_config.temperature = own


def token_truncate(log_ratios: Tensor) -> Tensor:
    """Importance weights of tokens, at most `CAP`: TRL's mode of that name.

    >>> token_truncate(torch.tensor([[0.0, 10.0]]))
    tensor([[1., 3.]])
    """
    return log_ratios.exp().clamp(max=CAP)


def sequence_mask(log_ratios: Tensor) -> Tensor:
    """The importance weight of each completion, but 0 if it is more than `CAP`: TRL's default mode.

    >>> sequence_mask(torch.tensor([[0.5, -0.5], [0.6, 0.6]]))
    tensor([[1.],
            [0.]])
    """
    weights = log_ratios.sum(dim=-1, keepdim=True).exp()
    return weights.masked_fill(weights > CAP, 0.0)


#: How a correction weights tokens. The others leave that to the ratio of the loss, or do nothing.
WEIGHTS = {"token_truncate": token_truncate, "sequence_mask": sequence_mask}


class StaleTrainer(GRPOTrainer):
    """`GRPOTrainer` with another sampler, and one of the corrections ``none``, ``ratio``, or a name of `WEIGHTS`."""

    def __init__(self, *args: object, sampler: Delay | Rounded | Temperature, correct: str, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.sampler, self.correct = sampler, correct
        self.sampling = self.scoring = 0.0  # CPU seconds
        self.ratios: dict[int, list[Tensor]] = defaultdict(list)  # by bound of the length

    def _generate_and_score_completions(self, inputs: list[dict]) -> dict:
        begin = process_time()
        with self.sampler(self):
            batch = super()._generate_and_score_completions(inputs)
            self.sampling += process_time() - begin
            begin = process_time()
            sampled = self.log_probabilities(batch)
        if self.correct == "ratio":
            batch["old_per_token_logps"] = sampled
        if self.correct in WEIGHTS or self.state.global_step % EVERY == 0:
            log_ratios = (self.log_probabilities(batch) - sampled) * batch["completion_mask"]
            self.keep(log_ratios, batch["completion_mask"])
        self.scoring += process_time() - begin
        if self.correct in WEIGHTS:
            batch["advantages"] = batch["advantages"].unsqueeze(1) * WEIGHTS[self.correct](log_ratios)
        return batch

    @torch.no_grad()
    def log_probabilities(self, batch: dict) -> Tensor:
        """The log-probability of each token that was sampled, with the present weights and temperature."""
        ids, mask = (
            torch.cat([batch[f"prompt_{kind}"], batch[f"completion_{kind}"]], dim=1) for kind in ("ids", "mask")
        )
        return self._get_per_token_logps_and_entropies(self.model, ids, mask, batch["completion_ids"].size(1))[0]

    def keep(self, log_ratios: Tensor, mask: Tensor) -> None:
        """Keep what `ratio_rows` summarizes: for each completion its log ratio, and the squares of its tokens' ones."""
        lengths = mask.sum(dim=1)
        found = torch.stack([lengths, log_ratios.sum(dim=1), log_ratios.square().sum(dim=1)], dim=1)
        for length, row in zip(lengths.tolist(), found, strict=True):
            self.ratios[min(bound for bound in BOUNDS if length <= bound)].append(row)

    def ratio_rows(self) -> list[dict]:
        """The spread of the ratios by length: of the tokens, and of whole completions with their effective share."""
        return [ratio_row(bound, torch.stack(rows)) for bound, rows in sorted(self.ratios.items()) if len(rows) > 1]


def ratio_row(bound: int, rows: Tensor) -> dict:
    """The ratios of all completions with up to ``bound`` tokens, a row each: length, log ratio, squares of the tokens.

    ``share`` is the effective sample size of the weights as a share of the completions: 1 if all weights are equal.
    """
    lengths, sums, squares = rows.double().unbind(dim=1)
    weights = (sums - sums.max()).exp()
    share = weights.sum() ** 2 / weights.square().sum() / len(rows)
    spreads = dict(token=(squares.sum() / lengths.sum()).sqrt(), sequence=sums.std())
    shares = dict(outside=(sums.exp() > CAP).double().mean(), share=share)
    numbers = {name: round(float(value), 4) for name, value in (spreads | shares).items()}
    return dict(bound=bound, completions=len(rows), **numbers)
