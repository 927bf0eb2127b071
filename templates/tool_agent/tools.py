"""What TRL does with tools, for `generation.py`: which there are, how a call is answered, and whether a model can."""

import functools
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from environment import TOOLS

KNOWN = "for example Qwen/Qwen2.5-1.5B-Instruct; TRL's guide on chat templates lists all"


def new_environment() -> object | None:
    """An environment for one episode; None where `TOOLS` has plain tools alone."""
    return TOOLS["environment_factory"]() if "environment_factory" in TOOLS else None


def toolbox(environment: object | None) -> dict[str, Callable]:
    """The tools of an episode by name: the plain ones, and each public method of its environment but two."""
    methods = inspect.getmembers(environment, inspect.ismethod) if environment is not None else []
    own = [m for name, m in methods if not name.startswith("_") and name not in ("reset", "get_reward")]
    return {tool.__name__: tool for tool in [*TOOLS.get("tools", []), *own]}


def answer_calls(message: dict, tools: dict[str, Callable]) -> list[dict]:
    """A tool message for each call of a turn. As in TRL, what a tool raises goes to the model as text."""
    answers = []
    for call in message.get("tool_calls") or []:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            if name not in tools:
                raise ValueError(f"Tool {name} not found.")
            said = tools[name](**arguments)
        except Exception as error:  # your own code, called with whatever the model wrote
            said = {"error": str(error)}
            if inside := traceback.extract_tb(error.__traceback__)[1:]:  # none: unknown name, or wrong arguments
                tell_once(name, type(error).__name__, f"{Path(inside[-1].filename).name}, line {inside[-1].lineno}")
        if isinstance(said, list):
            raise SystemExit(f"Error: the tool {name} gave back a list, which TRL takes for images: give back a text.")
        answers.append({"role": "tool", "name": name, "content": str(said)})
    return answers


@functools.cache
def tell_once(name: str, kind: str, place: str) -> None:
    """A tool that raises is often a slip in environment.py."""
    said = f"Note: the tool {name} raised {kind} ({place}). The model reads that as its answer; the run goes on."
    print(said, file=sys.stderr)


def check_tools(tokenizer: object, model: str) -> None:
    """Stop before anything is trained where tools are badly described, or the model's template can't call them."""
    from trl.chat_template_utils import supports_tool_calling

    check_descriptions()
    if not supports_tool_calling(tokenizer):
        raise SystemExit(
            f"Error: the chat template of {model} has no place for tools. Take a model that has ({KNOWN})."
        )
    learn_to_read(tokenizer, model)
    if not reads_back(tokenizer):
        raise SystemExit(f"Error: a call as {model}'s chat template writes it is not read back: its response_template "
                         f"does not fit. Mend tokenizer.response_template, or take another model.")  # fmt: skip
    survive_odd_calls(tokenizer)


def check_descriptions() -> None:
    """Stop where a tool has no types or docstring that the model could be told, or can't be played."""
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
        raise SystemExit("Error: environment.py: TOOLS holds no tool: no public method, and no function.")
    if later := [name for name, tool in tools.items() if inspect.iscoroutinefunction(tool)]:
        raise SystemExit(f"Error: environment.py: {later[0]} is async, which generation.py does not play.")


def learn_to_read(tokenizer: object, model: str) -> None:
    """Give the tokenizer TRL's rules for reading calls, if it has none; TRL knows templates letter by letter."""
    from trl import chat_template_utils as templates

    if getattr(tokenizer, "response_template", None):  # an attribute that most tokenizers lack
        return
    try:
        templates.add_response_schema(tokenizer)
    except ValueError as error:
        raise SystemExit(
            f"Error: TRL can't read tool calls of {model}: its chat template is not one of those that TRL knows, and "
            f"its tokenizer has no response_template. Take a model that TRL knows ({KNOWN}); of an edited copy the "
            "original; or set tokenizer.response_template here in tools.py (transformers: response parsing)."
        ) from error


def survive_odd_calls(tokenizer: object) -> None:
    """Let TRL take a call for text where reading it, or answering it, would end the run.

    TRL does so for a ValueError alone. Brackets a thousand deep raise another error, and half a character (the escape
    "\\ud800" in JSON) as the name of a tool can't be tokenized when the model is told that there is no such tool.
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
    """What to render with: TRL's copy of a chat template that rewrites old turns (Qwen3's does), and its settings."""
    from trl import chat_template_utils as templates

    try:
        kept = templates.is_chat_template_prefix_preserving(tokenizer)
        own = None if kept else templates.get_training_chat_template(tokenizer)
    except ValueError as error:
        raise SystemExit(
            f"Error: the chat template writes old turns anew, and TRL has no other for it: {error}"
        ) from error
    return {"chat_template": own, **(training.chat_template_kwargs or {})}


def reads_back(tokenizer: object) -> bool:
    """Whether a call, written by the chat template, is the same after it is read."""
    from trl.chat_template_utils import parse_response

    call = {"type": "function", "function": {"name": "tool", "arguments": {"text": "15 + 27"}}}
    question = [{"role": "user", "content": "?"}]
    asked = tokenizer.apply_chat_template(question, add_generation_prompt=True, tokenize=False)
    turn = {"role": "assistant", "content": "", "tool_calls": [call]}
    written = tokenizer.apply_chat_template([*question, turn], tokenize=False).removeprefix(asked)
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (written, asked)]
    return parse_response(tokenizer, ids[0], prefix=ids[1]).get("tool_calls") == [call]
