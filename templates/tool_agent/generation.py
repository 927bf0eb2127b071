"""Run whole episodes on held-out questions as TRL does in training: turn, tools, turn, until no more calls."""

import itertools
import json
from dataclasses import dataclass, field

from grpo_core.training.generating import decoding_at, evaluation_mode
from grpo_core.training.texts import message_text
from tools import answer_calls, new_environment, toolbox


@dataclass
class Episode:
    """One completion: its messages and tokens; ``own`` is 1 for the model's tokens and 0 for those added by tools."""

    prompt: list[int]
    environment: object | None
    messages: list[dict] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        """The messages as text, for held_out.jsonl."""
        parts = []
        for message in self.messages:
            calls = [call["function"] for call in message.get("tool_calls") or []]
            called = [f"{call['name']}({json.dumps(call['arguments'], ensure_ascii=False)})" for call in calls]
            parts.append("\n".join([f"{message['role']}: {message_text(message)}".rstrip(), *called]))
        return "\n".join(parts)

    @classmethod
    def of_text(cls, text: str) -> "Episode":
        """An episode in which the model says only this, to try `is_right` on before a model is loaded."""
        return cls([], new_environment(), [{"role": "assistant", "content": text}])

    def say(self, tokenizer: object, ids: list[int]) -> None:
        """Add a turn of the model."""
        from trl.chat_template_utils import parse_response

        if ids:  # empty if the tool output left no room
            self.messages.append(parse_response(tokenizer, ids, prefix=self.prompt + self.tokens))
            self.tokens, self.own = self.tokens + ids, self.own + [1] * len(ids)

    def use_tools(self, tokenizer: object, room: int, template: dict) -> bool:
        """Answer the calls of the last turn; return whether there were any and the output fits into ``room`` tokens."""
        answers = answer_calls(self.messages[-1], toolbox(self.environment))
        ids = tokens_of(tokenizer, answers, template) if answers else []
        fits = bool(answers) and len(self.tokens) + len(ids) <= room
        if fits:
            self.messages += answers
            self.tokens, self.own = self.tokens + ids, self.own + [0] * len(ids)
        return fits


def generate(
    policy: object, tokenizer: object, rows: object, *, tokens: int, turns: int, template: dict, batch: int, seed: int,
    temperature: float,
) -> list[Episode]:  # fmt: skip
    """Run one episode per row, with at most ``turns`` rounds of tool calls and ``tokens`` tokens in all."""
    import torch

    torch.manual_seed(seed)
    decoding = decoding_at(temperature)
    episodes = [start(tokenizer, row, template) for row in rows]
    with evaluation_mode(policy):
        for first in range(0, len(episodes), batch):
            running = episodes[first : first + batch]
            take_turns(policy, tokenizer, running, tokens, decoding)
            for _ in range(turns):
                running = [episode for episode in running if episode.use_tools(tokenizer, tokens, template)]
                take_turns(policy, tokenizer, running, tokens, decoding)
    return episodes


def start(tokenizer: object, row: dict, template: dict) -> Episode:
    """An episode before its first turn; a text that `reset` returns is added to the question."""
    environment, messages = new_environment(), row["prompt"]
    added = environment.reset(**row) if environment is not None else None
    if added is not None:
        messages = [*messages[:-1], messages[-1] | {"content": messages[-1]["content"] + added}]
    options = dict(tools=list(toolbox(environment).values()), add_generation_prompt=True, return_dict=True)
    return Episode(tokenizer.apply_chat_template(messages, **options, **template)["input_ids"], environment)


def take_turns(policy: object, tokenizer: object, episodes: list[Episode], room: int, decoding: dict) -> None:
    """Generate one turn of the model in each episode."""
    import torch

    if not episodes:
        return
    contexts = {"input_ids": [episode.prompt + episode.tokens for episode in episodes]}
    inputs = tokenizer.pad(contexts, padding_side="left", return_tensors="pt").to(policy.device)
    with torch.no_grad():
        outputs = policy.generate(**inputs, **decoding, max_new_tokens=room)
    for episode, ids in zip(episodes, outputs[:, inputs["input_ids"].shape[1] :].tolist(), strict=True):
        end = ids.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in ids else len(ids)
        episode.say(tokenizer, ids[: min(end, room - len(episode.tokens))])


def tokens_of(tokenizer: object, answers: list[dict], template: dict) -> list[int]:
    """The tokens between two turns: the tool output and the opening of the next turn, without earlier turns."""
    call = {"type": "function", "function": {"name": answers[0]["name"], "arguments": {}}}
    asked = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    before = tokenizer.apply_chat_template(asked, return_dict=True, **template)["input_ids"]
    opened = dict(add_generation_prompt=True, return_dict=True)
    after = tokenizer.apply_chat_template([*asked, *answers], **opened, **template)["input_ids"]
    ends = [place for place, token in enumerate(before) if token == tokenizer.eos_token_id]
    return after[ends[-1] + 1 if ends else len(before) :]


def shown(tokenizer: object, episode: Episode) -> str:
    """The episode as text; «text added by tools» is masked in the loss."""
    parts = itertools.groupby(zip(episode.tokens, episode.own, strict=True), key=lambda pair: pair[1])
    texts = [(own, tokenizer.decode([token for token, _ in pairs])) for own, pairs in parts]
    return "".join(text if own else f"«{text}»" for own, text in texts)
