"""The known error texts: each is whole and true to its source, and found in a traceback; other texts find none."""

import ast
import io
import random
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from address import current
from error_tables import error_tables
from grpo_check.error_texts import KNOWN, THRESHOLD, ErrorText, compact, error_texts, find, score
from grpo_core.errors import CourseError
from places import ROOT
from test_links import dead_links
from test_troubleshooting import PROVOKE

THREAD = r"[\w.-]+/[\w.-]+#\d+"
#: Texts that other tests of test_troubleshooting.py provoke.
ALSO_PROVOKED = [
    "Unsloth should be imported before [trl] to ensure all optimizations are applied.",
    "You are trying to modify a model with PEFT for a second time.",
    "Found missing adapter keys while loading the checkpoint",
    "NaNs detected in the merged weights. The adapter default seems to be broken",
]
TRACEBACK = """Traceback (most recent call last):
  File "/home/user{n}/work/train_{n}.py", line {n}, in <module>
    trainer.train()
  File "/opt/venv{n}/lib/python3.12/site-packages/trl/trainer/grpo_trainer.py", line 2{n}, in _prepare_inputs
    generation_batch = self._generate_and_score_completions(generation_batch)
RuntimeError: {text}
"""
OTHER_TEXTS = [
    "I like GRPO",
    "dead_rewad",
    "gradient",
    "the reward function returned 3 values",
    "{'loss': 0.0123, 'grad_norm': 0.41, 'learning_rate': 1e-05, 'reward': 0.71, 'kl': 0.002, 'epoch': 0.03}",
    TRACEBACK.format(n=7, text="ModuleNotFoundError: No module named 'foo'"),
    "Unsloth: Will patch your computer to enable 2x faster free finetuning.",
    "ImportError: cannot import name 'SFTConfig' from 'trl'",
    "KeyError: 'prompts'",
    "AttributeError: 'NoneType' object has no attribute 'size'",
    "AttributeError: 'GRPOConfig' object has no attribute 'epsilon_low'",
    "TypeError: '>' not supported between instances of 'float' and 'str'",
    "TypeError: '<' not supported between instances of 'NoneType' and 'int'",
    "Dataset({features: ['prompt', 'answer'], num_rows: 7})\nKeyError: 'prompt_ids'",
    "ImportError: Using `bitsandbytes` 4-bit quantization requires accelerate: `pip install accelerate`",
    "TypeError: GRPOTrainer.__init__() got an unexpected keyword argument 'processor'",
    "RuntimeError: CUDA error: misaligned address",
    "RuntimeError: stack expects each tensor to be equal size, but got [8] at entry 0 and [7] at entry 1",
    "ValueError: The number of reward processing classes (1) must match the number of reward functions (2).",
]


def faults(record: ErrorText, libraries: set[str]) -> list[str]:
    """What is wrong with a record."""
    names, of_thread = "|".join(libraries | {"unsloth_zoo"}), bool(re.fullmatch(THREAD, record.source))
    right = {
        "cause and do end with a full stop": record.cause.endswith(".") and record.do.endswith("."),
        f"known is one of {', '.join(KNOWN)}": record.known in KNOWN,
        "fixed is a version of a library, open, or not a bug": re.fullmatch(
            rf"(by )?({names}) \d[\d.]*\d|open|not a bug", record.fixed
        ),
        "source is a thread or a file": of_thread or re.fullmatch(r"[\w./]+\.(py|so)", record.source),
        "the text is long enough to be found": len(compact(record.text.replace("…", ""))) >= 15,
        "what is known from a thread has a thread": record.known != "thread" or of_thread,
    }
    return [f"{record.text!r}: {rule}" for rule, kept in right.items() if not kept]


def test_every_record_is_whole():
    libraries = {record.library for record in error_texts()}
    found = [fault for record in error_texts() for fault in faults(record, libraries)]
    assert not found, "\n".join(found)


def test_a_record_that_is_not_whole_is_found_with_all_its_faults():
    wrong = ErrorText("too … short", "TRL", "a cause", "TRL soon", "Wait.", "a friend", "thread")
    assert len(faults(wrong, {"TRL"})) == 5 and faults(error_texts()[0], {"TRL"}) == []


def test_the_site_shows_every_record_and_its_links_lead_somewhere():
    shown = error_tables()
    missing = [record.text for record in error_texts() if record.text.replace("|", "\\|") not in shown]
    assert not missing, "\n".join(missing)
    assert shown.count("\n## ") + 1 == len({record.library for record in error_texts()})
    dead = dead_links(ROOT / "grpo_check" / "docs" / "errors.md", shown, current().url)
    assert not dead, "\n".join(dead)


def test_no_text_is_there_twice():
    texts = [compact(record.text) for record in error_texts()]
    assert len(texts) == len(set(texts)) >= 60


def messages(path: Path) -> list[str]:
    """All texts in a file of Python; what an f-string fills in is ``…``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def not_in(source: str, texts: list[str]) -> list[str]:
    """The texts that a file of an installed library does not have; all of them if there is no such file."""
    package, _, rest = source.partition("/")
    library = find_spec(package)
    file = library and Path(library.origin).parent / rest
    there = messages(file) if file and file.is_file() else []
    return [text for text in texts if max((score(text, message) for message in there), default=0) < THRESHOLD]


def test_what_was_read_in_a_file_is_there():
    read = {}
    for record in error_texts():
        if record.source.endswith(".py") and record.known == "read":
            read.setdefault(record.source, []).append(record.text)
    missing = [f"{source}: {text}" for source, texts in read.items() for text in not_in(source, texts)]
    assert len(read) > 40 and not missing, "\n".join(missing)


def test_what_tests_provoke_is_in_the_table_as_tried():
    provoked = [*PROVOKE, *ALSO_PROVOKED]
    missing = [text for text in provoked if not any(record.known == "tried" for record in find(text))]
    assert not missing, "\n".join(missing)


def test_what_is_called_tried_is_provoked():
    provoked = {record for text in (*PROVOKE, *ALSO_PROVOKED) for record in find(text)}
    assert not [record.text for record in error_texts() if record.known == "tried" and record not in provoked]


def as_pasted(text: str, seed: int) -> str:
    """A traceback with an error text, other numbers and names in it, as a launcher prints it in a narrow terminal."""
    change = random.Random(seed)
    filled = re.sub(
        "…", lambda _: change.choice(["12", "0.85", "/data/run 3/checkpoint-500", "Qwen3ForCausalLM"]), text
    )
    filled = re.sub(r"\b\d+\b", lambda number: f"{int(number[0]) + change.randrange(9)}", filled)
    lines = [f"[rank0]: {line}" for line in TRACEBACK.format(n=change.randrange(10, 99), text=filled).splitlines()]
    return "\n".join(line[at : at + 60] for line in lines for at in range(0, len(line), 60))


def test_every_text_is_found_in_a_traceback_with_other_numbers():
    first = {record.text: find(as_pasted(record.text, seed=1))[:1] for record in error_texts()}
    wrong = [text for text, found in first.items() if [record.text for record in found] != [text]]
    assert not wrong, "\n".join(wrong)


def test_other_texts_find_none():
    wrong = [f"{text!r} finds {found[0].text!r}" for text in OTHER_TEXTS if (found := find(text))]
    assert not wrong, "\n".join(wrong)


def test_the_threshold_is_between_the_two():
    """Texts with other numbers score from 95, and the nearest other text 84."""
    pasted = [(record.text, as_pasted(record.text, 0)) for record in error_texts()]
    own = min(score(text, there) for text, there in pasted)
    others = max(score(record.text, text) for record in error_texts() for text in OTHER_TEXTS)
    assert others < THRESHOLD - 3 < THRESHOLD + 3 < own


def test_a_piece_of_a_text_is_enough_to_search_for():
    assert [record.library for record in find("device-side assert")] == ["torch"]
    assert find("assert") == []
    with pytest.raises(CourseError, match="known error texts contain this. Give more of your error"):
        find("got an unexpected keyword argument")


def test_what_a_launcher_or_vllm_puts_around_a_line_does_not_hide_it():
    boxed = "│ RuntimeError: probability tensor contains either │\n│ `inf`, `nan` or element < 0 │"
    colored = "\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m CUDA out of memory. Tried to allocate 2.00 GiB"
    ray = "(RayWorkerWrapper pid=1, ip=10.0.0.2) KeyError: 'prompt'"
    assert [find(text)[0].library for text in (boxed, colored, ray)] == ["torch", "torch", "TRL"]


def test_quotes_that_a_shell_removed_are_not_needed():
    assert find("KeyError: prompt")[0].text == "KeyError: 'prompt'"
    assert find("KeyError: prompts") == []


def test_the_last_lines_of_a_long_log_count():
    assert find("step 1: fine\n" * 20_000 + "KeyError: 'prompt'\n")[0].text == "KeyError: 'prompt'"


def test_a_pasted_error_is_explained_with_the_version_that_is_installed(grpo_check):
    code, out, _ = grpo_check("explain", "AttributeError: 'Qwen2ForCausalLM' object has no attribute 'warnings_issued'")
    assert code == 0 and f"TRL 0.27.2 (installed here: TRL {version('trl')})" in out and "trl#3257" in out


def test_a_traceback_is_read_from_standard_input(grpo_check, monkeypatch):
    pasted = "█".encode()[1:] + as_pasted("KeyError: 'prompt'", 0).encode()  # a log cut off inside a character
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pasted)))
    code, out, _ = grpo_check("explain", "-")
    assert code == 0 and "Name the column prompt" in out


def test_a_misspelled_code_is_an_error_with_a_hint(grpo_check):
    code, _, err = grpo_check("explain", "dead_rewad")
    assert code == 2 and "Did you mean 'dead_reward'?" in err


def test_a_code_is_not_taken_for_an_error_text(grpo_check):
    code, out, _ = grpo_check("explain", "out_of_memory", "nan")
    assert code == 0 and out.count("(error of health)") == 2


def test_the_words_of_an_error_text_may_be_separate_though_one_of_them_is_a_code(grpo_check):
    code, out, _ = grpo_check("explain", "probability", "tensor", "contains", "either", "inf,", "nan", "or", "element")
    assert code == 0 and out.startswith("torch: probability tensor")
