"""What `grpo-check explain` makes of what people paste: a traceback, a text that only the pages know, a new text."""

import re
import subprocess
import sys

import pytest
from grpo_check.explaining import explain
from grpo_check.pasted import errors, plain
from grpo_check.sections import PAGES, error_texts_in, nearest, quoting, sections
from grpo_core.errors import CourseError
from places import ROOT

FRAMES = """Traceback (most recent call last):
  File "/home/me/train_{n}.py", line {n}, in <module>
    trainer.train()
  File "/opt/lib/python3.12/site-packages/trl/trainer/grpo_trainer.py", line 2{n}, in _prepare_inputs
    raise ValueError("not this line")
"""
CHAIN = "\nThe above exception was the direct cause of the following exception:\n\n"
#: A text that only a page quotes.
QUOTED = "IndexError: pop from an empty deque"


def quoted_texts() -> list[tuple[str, str]]:
    """Each error text that a page quotes outside of blocks of code, and the page."""
    found = {}
    for page in PAGES:
        text = re.sub(r"^ *```.*?^ *```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for quoted in error_texts_in(text):
            found.setdefault(quoted, page)
    return list(found.items())


def with_other_numbers(text: str) -> str:
    """A text as another person sees it."""
    return re.sub(r"\d+", lambda number: f"{int(number[0]) + 3}", text.strip("… ")).replace("…", "/data/run 3")


def is_answered(text: str) -> bool:
    """Whether a text is known. Where many known texts contain it, explain lists them and asks for more."""
    try:
        return "not a known error text" not in explain(text)
    except CourseError as error:
        return "known error texts contain this" in str(error)


def test_every_error_text_that_a_page_quotes_is_found():
    texts = quoted_texts()
    missed = [f"{page}: {text}" for text, page in texts if not is_answered(with_other_numbers(text))]
    assert len(texts) > 200 and not missed, "\n".join(missed)


def test_what_only_a_page_knows_is_shown_with_its_page_and_what_to_do(grpo_check):
    code, out, _ = grpo_check("explain", "remaining_argv: ['--beta', '0.2']")
    assert code == 0 and "Fix." in out and "docs/other-trainers.md#remaining_argv-ms-swift" in out


def test_every_part_that_is_shown_has_a_heading_in_its_page():
    from test_links import headings

    there = {page: headings(ROOT / page) for page in PAGES}
    parts = [part for section in sections() for part in section]
    anchors = {(part.page, re.search(r"#(\S*) in the repository", str(part))[1]) for part in parts}
    assert len(anchors) > 150 and not [anchor for page, anchor in anchors if anchor not in there[page]]


def vllm_line(line: str) -> str:
    return f"\x1b[1;36m(EngineCore_DP0 pid=9)\x1b[0;0m ERROR 11-20 09:00:01 [core.py:708] {line}"


def colored(line: str) -> str:
    return re.sub(r"^(\w+Error): (.*)", "\x1b[1;35m\\1\x1b[0m: \x1b[35m\\2\x1b[0m", line)


@pytest.mark.parametrize("change", [str, vllm_line, colored, "[rank3]: {}".format, "│ {} │".format])
def test_the_last_exception_of_a_chain_is_answered_first(change):
    log = f"{FRAMES.format(n=7)}KeyError: 'prompt_ids_of_me'\n{CHAIN}{FRAMES.format(n=8)}{QUOTED}\n"
    pasted = "\n".join(map(change, log.splitlines()))
    assert errors(plain(pasted))[0].rstrip(" │") == QUOTED
    assert quoting(QUOTED)[0].heading in explain(pasted)


def test_the_cause_is_answered_if_nothing_is_known_about_the_last_exception():
    pasted = f"{FRAMES.format(n=7)}{QUOTED}\n{CHAIN}{FRAMES.format(n=8)}MyError: banana fruit\n"
    assert quoting(QUOTED)[0].heading in explain(pasted)


def test_a_warning_before_the_traceback_does_not_hide_the_error():
    warning = "`torch_dtype` is deprecated! Use `dtype` instead!\n"
    assert explain(f"{warning}{FRAMES.format(n=7)}KeyError: 'prompt'\n").startswith("TRL: KeyError: 'prompt'")
    said = explain(f"{warning}{FRAMES.format(n=7)}{QUOTED}\n")
    assert said.index(quoting(QUOTED)[0].heading) < said.index("torch_dtype")


@pytest.mark.parametrize("text", ["banana fruit", f"{FRAMES.format(n=7)}ValueError: banana fruit in /home/me/7\n"])
def test_a_text_that_nobody_knows_is_not_taken_for_a_code(text, grpo_check):
    code, _, err = grpo_check("explain", text)
    assert code == 2 and "banana fruit" in err and "code of a finding" not in err and "#your-error-is-not-here" in err


def test_a_new_text_leads_to_the_section_with_most_of_its_words(grpo_check):
    text = "RuntimeError: image_grid_thw has 3 image tokens and pixel_values 4"
    code, out, _ = grpo_check("explain", text)
    assert code == 0 and "not a known error text" in out and "#vision-models-several-images" in out


def test_other_words_for_an_entry_lead_to_it():
    assert "stalled" in [part.heading for part in nearest("training is frozen")]
    assert [part for part in nearest("the merged model talks nonsense") if part.heading.startswith("Gibberish")]


def test_words_that_no_page_has_lead_nowhere():
    assert nearest("purple bananas dance") == [] and quoting("purple bananas dance") == []
    with pytest.raises(CourseError):
        explain("AttributeError: 'PurpleBanana' object has no attribute 'dance'")


def test_an_error_text_needs_none_of_the_checks():
    code = "import sys; from grpo_check.explaining import explain; explain(sys.argv[1]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, QUOTED], check=True, capture_output=True, text=True)
    assert not {"grpo_check.preflights", "grpo_check.attacks", "asyncio", "numpy", "torch"} & set(run.stdout.split())


def test_a_traceback_of_another_trainer_is_said_to_be_one():
    frames = FRAMES.format(n=7).replace("/trl/", "/swift/")
    said = explain(f"{frames}KeyError: 'prompt'\n")
    assert said.startswith("This traceback is of ms-swift") and "TRL: KeyError: 'prompt'" in said
    assert explain(f"{frames}KeyError: 'grpo'\n").startswith("ms-swift: KeyError: 'grpo'")


def test_an_error_of_a_parser_before_a_traceback_that_was_cut_off_is_found():
    pasted = "grpo.py: error: the following arguments are required: --dataset_name/--dataset-name\n"
    pasted += 'Traceback (most recent call last):\n  File "accelerate", line 10, in <module>\n    sys.exit(main())\n'
    assert explain(pasted).startswith("TRL: error: the following arguments are required")
