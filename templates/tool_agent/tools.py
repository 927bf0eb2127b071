"""Find the tools, answer calls as TRL does, and check that the model can call tools."""

import functools
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from environment import TOOLS

KNOWN = "for example Qwen/Qwen2.5-1.5B-Instruct; TRL's guide to chat templates lists all of them"


def new_environment() -> object | None:
    """An environment for one episode; None if `TOOLS` has only plain tools."""
    return TOOLS["environment_factory"]() if "environment_factory" in TOOLS else None


def toolbox(environment: object | None) -> dict[str, Callable]:
    """The tools of an episode by name: plain tools, and the public methods of its environment except for two."""
    methods = inspect.getmembers(environment, inspect.ismethod) if environment is not None else []
    own = [m for name, m in methods if not name.startswith("_") and name not in ("reset", "get_reward")]
    return {tool.__name__: tool for tool in [*TOOLS.get("tools", []), *own]}


def answer_calls(message: dict, tools: dict[str, Callable]) -> list[dict]:
    """A tool message for each call of a turn. As in TRL, the model gets a tool's error as text."""
    answers = []
    for call in message.get("tool_calls") or []:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            if name not in tools:
                raise ValueError(f"Tool {name} not found.")
            result = tools[name](**arguments)
        except Exception as error:  # your own code, called with whatever the model wrote
            result = {"error": str(error)}
            if inside := traceback.extract_tb(error.__traceback__)[1:]:  # empty for a wrong name or arguments
                note_once(name, type(error).__name__, f"{Path(inside[-1].filename).name}, line {inside[-1].lineno}")
        if isinstance(result, list):
            raise SystemExit(f"Error: the tool {name} returned a list, which TRL treats as images; return text.")
        answers.append({"role": "tool", "name": name, "content": str(result)})
    return answers


@functools.cache
def note_once(name: str, kind: str, place: str) -> None:
    """Print a note once, because a tool that raises often has a bug in environment.py."""
    note = f"Note: the tool {name} raised {kind} ({place}). The model gets the error as text; the run continues."
    print(note, file=sys.stderr)


def check_tools(tokenizer: object, model: str) -> None:
    """Before training, stop if a tool is not described, or if the model's chat template cannot call tools."""
    from trl.chat_template_utils import supports_tool_calling

    check_descriptions()
    if not supports_tool_calling(tokenizer):
        raise SystemExit(
            f"Error: the chat template of {model} does not support tools. Use a model that does ({KNOWN})."
        )
    add_parser(tokenizer, model)
    if not reads_back(tokenizer):
        raise SystemExit(f"Error: TRL cannot parse a call that {model}'s chat template writes, because its "
                         "response_template does not match. Fix tokenizer.response_template, or use another "
                         "model.")  # fmt: skip
    treat_odd_calls_as_text(tokenizer)


def check_descriptions() -> None:
    """Stop if a tool has no types or docstring for the prompt, or is async."""
    from transformers.utils.chat_template_utils import (
        DocstringParsingException,
        TypeHintParsingException,
        get_json_schema,
    )

    tools = toolbox(new_environment())
    try:
        described = [get_json_schema(tool) for tool in tools.values()]
    except (DocstringParsingException, TypeHintParsingException) as error:
        raise SystemExit(f"Error: environment.py: {error}") from error
    if not described:
        raise SystemExit("Error: environment.py: TOOLS has no tool, neither a public method nor a function.")
    if later := [name for name, tool in tools.items() if inspect.iscoroutinefunction(tool)]:
        raise SystemExit(f"Error: environment.py: {later[0]} is async, which generation.py does not support.")


def add_parser(tokenizer: object, model: str) -> None:
    """Give the tokenizer TRL's rules for parsing calls, if it has none; TRL recognizes templates by exact text."""
    from trl import chat_template_utils as templates

    if getattr(tokenizer, "response_template", None):  # an attribute that most tokenizers lack
        return
    try:
        templates.add_response_schema(tokenizer)
    except ValueError as error:
        raise SystemExit(
            f"Error: TRL cannot parse tool calls of {model}: it does not recognize the chat template, and the "
            f"tokenizer has no response_template. Use a model that TRL recognizes ({KNOWN}), an unedited copy, "
            "or set tokenizer.response_template in tools.py (see response parsing in transformers)."
        ) from error


def treat_odd_calls_as_text(tokenizer: object) -> None:
    """Let TRL treat a call as text if parsing or answering it would end the run.

    TRL itself does so only for a ValueError. Brackets nested a thousand deep raise another error, and half a character
    (the escape "\\ud800" in JSON) in a tool's name cannot be tokenized in the error message for the model.
    """
    read = tokenizer.parse_response

    def parse_response(*args: object, **kwargs: object) -> dict:
        try:
            message = read(*args, **kwargs)
            json.dumps(message, ensure_ascii=False).encode()  # half a character raises a ValueError here
        except RecursionError as error:
            raise ValueError("brackets too deep") from error
        return message

    tokenizer.parse_response = parse_response


def template_of(tokenizer: object, training: object) -> dict:
    """The chat template's settings, and TRL's copy of the template if its own rewrites old turns (as Qwen3's does)."""
    from trl import chat_template_utils as templates

    try:
        kept = templates.is_chat_template_prefix_preserving(tokenizer)
        own = None if kept else templates.get_training_chat_template(tokenizer)
    except ValueError as error:
        raise SystemExit(
            f"Error: the chat template rewrites old turns, and TRL has no replacement for it: {error}"
        ) from error
    return {"chat_template": own, **(training.chat_template_kwargs or {})}


def reads_back(tokenizer: object) -> bool:
    """Whether TRL parses a call that the chat template writes back to the same call."""
    from trl.chat_template_utils import parse_response

    call = {"type": "function", "function": {"name": "tool", "arguments": {"text": "15 + 27"}}}
    question = [{"role": "user", "content": "?"}]
    asked = tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False)
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    written = tokenizer.apply_chat_template([*question, turn], tokenize=False).removeprefix(asked)
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (written, asked)]
    return parse_response(tokenizer, ids[0], prefix=ids[1]).get("tool_calls") == [call]
