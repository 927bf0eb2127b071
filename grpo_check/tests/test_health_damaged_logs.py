"""A log or a file that is damaged gets a verdict or a clear error, and a resumed run is put in order."""

import contextlib
import json
import random

import pytest
from grpo_check.logs.log import read_history
from grpo_core.errors import CourseError
from health_logs import BROKEN, NOTED, codes, healthy

from grpo_check import Finding, diagnose, diagnose_file


def test_a_resumed_run_keeps_what_was_before_and_drops_what_was_repeated():
    log = healthy(40)
    lost = [entry | {"loss": float("nan")} for entry in log[24:30]]
    assert codes([*log[:24], *lost, *log[24:]]) == ["healthy"]
    assert read_history([*log[:24], *lost, *log[24:]]).entries == read_history(log).entries


def test_steps_out_of_order_or_doubled_are_put_in_order():
    log = healthy(40)
    shuffled = random.Random(0).sample(log, k=40)
    assert [v.seen for v in diagnose(shuffled)] == [v.seen for v in diagnose(log)]
    doubled = [entry for entry in log for _ in range(2)]
    assert [v.seen for v in diagnose(doubled)] == [v.seen for v in diagnose(log)]


JUNK = [
    None,
    "",
    "NaN",
    "inf",
    "-inf",
    "text",
    "1.2.3",
    "1e400",
    float("nan"),
    float("inf"),
    -1e308,
    1e308,
    10**400,
    True,
]
JUNK += [[], {}, [1.0], {"a": 1}, -1, 0, 1e-320, "０", "١", b"x", object()]


def damaged(log: list[dict], noise: random.Random) -> list:
    """A log with random damage: values, keys, entries, order."""
    log = [dict(entry) for entry in log[: noise.randint(0, len(log))]]
    keys = [
        *healthy(1)[0],
        "kl",
        "rewards/f",
        "completion_length",
        "health/distinct",
        "eval_reward",
        7,
        None,
        ("a",),
        "",
    ]
    for _ in range(noise.randint(0, 40)):
        if not log:
            break
        at, entry = noise.randrange(len(log)), noise.choice(log)
        damage = noise.randrange(7)
        if damage < 3:
            entry[noise.choice(keys)] = noise.choice(JUNK)
        elif damage == 3:
            entry.pop(noise.choice(list(entry)), None) if entry else None
        elif damage == 4:
            log.insert(at, dict(entry))
        elif damage == 5:
            log.append(log.pop(at))
        else:
            key, value = noise.choice(keys), noise.choice(JUNK)
            log = [e | {key: value} for e in log]
    return log


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_log_gets_a_verdict_or_a_clear_error(seed):
    noise, logs = random.Random(seed), [*BROKEN.values(), *NOTED.values(), healthy(25)]
    for _ in range(300):
        log = damaged(noise.choice(logs), noise)
        try:
            verdicts = diagnose(log)
        except CourseError:
            continue
        assert verdicts and all(isinstance(verdict, Finding) and str(verdict) for verdict in verdicts)


@pytest.mark.parametrize("log", [None, 3, "text", {"log_history": []}, ["reward"], [None], iter([])])
def test_what_is_no_list_of_entries_is_a_clear_error(log):
    with pytest.raises(CourseError, match="a list of dicts"):
        diagnose(log)


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_file_gets_a_verdict_or_a_clear_error(seed, tmp_path):
    noise, text = random.Random(seed), json.dumps({"global_step": 12, "log_history": healthy(12)})
    file = tmp_path / "trainer_state.json"
    for _ in range(250):
        at, piece = (
            noise.randrange(len(text)),
            noise.choice(["", "{", "]", "NaN", '"', ",", "\x00", "9" * 5000, "[" * 3000, "é", "null"]),
        )
        file.write_text(
            text[:at] + piece + text[at + noise.choice([0, 0, 1, 30]) :][: noise.choice([10**6, 50])], encoding="utf-8"
        )
        for path in (file, tmp_path):
            with contextlib.suppress(CourseError):
                assert diagnose_file(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"global_step": 1e999, "log_history": 3}', "9" * 5000, "null", '"a"', "[1]"]
)
def test_json_that_is_no_log_is_a_clear_error(text, tmp_path):
    (tmp_path / "trainer_state.json").write_text(text)
    for path in (tmp_path, tmp_path / "trainer_state.json"):
        with pytest.raises(CourseError):
            diagnose_file(path)
