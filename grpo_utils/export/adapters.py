"""Save an adapter so that its files name the base as others know it.

PEFT records where the base was loaded from. For a base in a local folder, such as a tiny model of this course, this is
a path of the machine that trained. `save_adapter` replaces the path with a public name.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.training.publishing import is_hub_id, public_name

from ..models import TINY

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CODE = """from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

base = {load}
model = PeftModel.from_pretrained(base, "FOLDER_OR_ID_OF_THIS_ADAPTER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER_OR_ID_OF_THIS_ADAPTER")"""


def save_adapter(
    policy: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", folder: str | Path, base: str
) -> Path:
    """Write adapter, tokenizer and a README to ``folder``, without any path of this machine.

    ``base`` is the name that you gave for the policy's base: a hub id, a tiny model's name or a folder.

    Raises:
        CourseError: the policy has no adapter.
    """
    folder = Path(folder)
    policy.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = folder / "adapter_config.json"
    if not config.is_file():
        raise CourseError(f"{type(policy).__name__} has no adapter to save: it was saved whole, in {str(folder)!r}.")
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings["base_model_name_or_path"] = public_name(base)
    config.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(_readme(base), encoding="utf-8")
    return folder


def _readme(base: str) -> str:
    from jinja2 import Template

    name = public_name(base)
    words = dict(base=name, code=CODE.format(load=loading_code(base)), remark=where_the_base_is(base))
    text = Path(__file__).with_name("adapter.md").read_text(encoding="utf-8")
    return Template(text).render(words, header=f"base_model: {name}\n" if is_hub_id(name) else "")


def loading_code(base: str) -> str:
    """The line of code that loads a base."""
    if base in TINY:
        return f'AutoModelForCausalLM.from_pretrained(model_path("{base}"))  # from grpo_utils import model_path'
    return f'AutoModelForCausalLM.from_pretrained("{public_name(base)}")'


def where_the_base_is(base: str) -> str:
    """A sentence about a base that is not on the Hub, or nothing."""
    if is_hub_id(public_name(base)):
        return ""
    if base in TINY:
        return f"\nThe base `{base}` is not on the Hub: it ships with the course, in `grpo_utils/tiny/{base}`.\n"
    return f"\nThe base `{public_name(base)}` was a local folder. Replace its name in the code with your own folder.\n"
