"""TRL's trainer without the work that teaches a policy little; to be imported only when it is used."""

import torch
from trl import GRPOTrainer

#: Completions of a step that are learned from: those with the best and worst advantages.
_LEARNED_FROM = 4


class LeanTrainer(GRPOTrainer):
    """A `GRPOTrainer` that learns from the extremes of each step, and from nothing where all are paid the same."""

    def compute_loss(self, model: object, inputs: dict, *more: object, **rest: object) -> torch.Tensor:
        """The loss of the extremes; a zero without a pass through the model if no completion is better than another."""
        advantages = inputs["advantages"]
        if not advantages.any():
            return 0.0 * next(one for one in model.parameters() if one.requires_grad).sum()
        order, half = advantages.argsort(), _LEARNED_FROM // 2
        kept = torch.cat([order[:half], order[-half:]]) if len(order) > _LEARNED_FROM else order
        batch = {name: one[kept] if _is_per_completion(one, order) else one for name, one in inputs.items()}
        return super().compute_loss(model, batch, *more, **rest)


def _is_per_completion(value: object, order: torch.Tensor) -> bool:
    """Whether something in a batch has one entry per completion."""
    return isinstance(value, torch.Tensor) and value.dim() > 0 and len(value) == len(order)
