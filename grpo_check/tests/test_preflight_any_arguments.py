"""Whatever the arguments are, preflight gives findings or one clear error, and never a traceback."""

from dataclasses import fields
from fractions import Fraction

import pytest
from grpo_check.preflights.checking import preflight
from grpo_check.preflights.config_file import preflight_file
from grpo_core.errors import CourseError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from preflight_runs import HELDOUT, REWARDS, ROWS, TINY, sound_tokenizer, write_addition

from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU


class Odd:
    """A value of no known type."""


def names_of_arguments() -> list[str]:
    from trl import GRPOConfig

    return [field.name for field in fields(GRPOConfig) if field.init]


#: The arguments that preflight computes with; the others are drawn less often.
COMPUTED = [
    "max_completion_length", "num_generations", "num_generations_eval", "per_device_train_batch_size",
    "per_device_eval_batch_size", "gradient_accumulation_steps", "steps_per_generation", "generation_batch_size",
    "max_steps", "num_train_epochs", "num_iterations", "learning_rate", "beta", "temperature", "chat_template_kwargs",
    "reward_weights", "report_to", "model_init_kwargs", "eval_strategy", "optim", "epsilon", "use_vllm", "vllm_mode",
]  # fmt: skip
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 100),
    st.integers(),
    st.sampled_from([10**9 + 7, 10**18, 10**400]),
    st.floats(),
    st.sampled_from(["", "x", "1", "1e-5", "no", "true", "none", "nan", "{", '{"a": 1}', "[1]", "-", "ü"]),
    st.lists(st.one_of(st.none(), st.integers(-2, 9), st.just("a"), st.just(10**400)), max_size=3),
    st.dictionaries(st.sampled_from(["a", "enable_thinking"]), st.integers(0, 2), max_size=1),
)
ANY = st.one_of(
    PLAIN,
    st.sampled_from([b"x", (1, 2), {1}, 1j, Fraction(1, 3), range(3)]),
    st.builds(Odd),
    st.just(CPU),
    st.just(print),
)
NAMES = st.one_of(
    st.sampled_from(COMPUTED), st.deferred(lambda: st.sampled_from(names_of_arguments())), st.text(max_size=3)
)


def checked(arguments):
    """The codes found, or the error that was raised, as text."""
    given = {"model": TINY, "train": ROWS, "heldout": HELDOUT, "rewards": REWARDS[:1], "profile": CPU}
    try:
        report = preflight(arguments, tokenizer=sound_tokenizer(), try_rewards=False, **given)
    except CourseError as error:
        assert 10 < len(str(error)) < 2000
        return ""
    for finding in report.findings:
        assert finding.what and finding.why and finding.fixes
    assert str(report)
    return report


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, ANY, max_size=4), st.booleans())
@example({"reward_weights": False}, False)
@example({"reward_weights": True}, False)
@pytest.mark.slow
def test_no_arguments_end_in_a_traceback(changes, with_defaults):
    arguments = {**(training_arguments(CPU) if with_defaults else {}), **changes}
    checked(arguments)


@pytest.mark.parametrize("value", [10**5000, -(10**5000), [10**5000]], ids=["large", "small", "in a list"])
def test_a_number_that_python_does_not_write_out_is_named(value):
    report = checked({**training_arguments(CPU), **dict.fromkeys(COMPUTED, value)})
    assert all(any(one.what.startswith(name) for one in report.errors) for name in COMPUTED), str(report)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(COMPUTED), ANY, min_size=1, max_size=3))
def test_no_built_config_ends_in_a_traceback(changes):
    from trl import GRPOConfig

    config = GRPOConfig(**training_arguments(CPU))
    for name, value in changes.items():
        setattr(config, name, value)  # as somebody who edits a config that was built
    checked(config)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.one_of(
            st.sampled_from([*COMPUTED, "model_name_or_path", "dataset_name", "reward_funcs", "use_peft", "lora_r",
                             "load_in_4bit", "dtype", "attn_implementation", "num_processes", "env",
                             "reward_model_name_or_path", "torch_dtype", "lora_target_modules"]),
            st.deferred(lambda: st.sampled_from(names_of_arguments())),
        ),
        PLAIN,
        max_size=4,
    )
)  # fmt: skip
@pytest.mark.slow
def test_no_config_file_ends_in_a_traceback(tmp_path_factory, changes):
    import yaml

    folder = tmp_path_factory.mktemp("any")
    config, rows = folder / "config.yaml", write_addition(folder).name
    config.write_text(yaml.safe_dump({"use_cpu": True, "bf16": False, "dataset_name": rows, **changes}))
    try:
        assert str(preflight_file(config))
    except CourseError as error:
        assert 10 < len(str(error)) < 2000
