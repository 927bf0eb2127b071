"""One place holds the pins, and our lists hold what Unsloth needs."""

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import install
import pytest
import yaml
from course import ROOT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from requirement_lists import extras, left_out, needs, pinned, read, requirements

from grpo_utils.data.gym import LEFT_OUT
from grpo_utils.install import UNSLOTH

INSTALLED = ("requirements.txt", "requirements-unsloth.txt", "requirements-reasoning-gym.txt")
LISTS = (*INSTALLED, "requirements-gpu.txt", "requirements-html.txt")
TEMPLATES = sorted((ROOT / "templates").glob("*/requirements*.txt"))
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"}
OURS = {name: version for file in LISTS for name, version in pinned(requirements(read(file))).items()}


def test_every_line_of_the_lists_is_an_exact_pin_with_its_reason():
    for file in (*LISTS, "requirements-newest.txt", "requirements-dist.txt"):
        lines = [line for line in read(file).splitlines() if line and not line.startswith("#")]
        assert len(pinned(requirements(read(file)))) == len(lines)
        assert not [line for line in lines if not re.search(r"  # \S", line)]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_templates_pins_are_ours(path):
    text = path.read_text(encoding="utf-8")
    assert pinned(requirements(text)).items() <= OURS.items()
    of_an_image = path.name == "requirements-colab.txt"  # whose own versions stay where they suit
    assert of_an_image or len(pinned(requirements(text))) == len(requirements(text)) > 0
    in_comments = re.findall(r"^# .*", text, re.MULTILINE)
    assert dict(re.findall(r"([\w-]+)==([\w.]+)", "\n".join(in_comments))).items() <= OURS.items()


def test_a_template_with_unsloth_has_it_in_a_file_of_its_own():
    for path in (path for path in TEMPLATES if path.name == "requirements.txt"):
        second = path.with_name("requirements-unsloth.txt")
        assert "unsloth" not in pinned(requirements(path.read_text()))
        assert second.exists() == ("requirements-unsloth.txt" in path.read_text()) == (path.parent.name != "scale_out")


@pytest.mark.parametrize("extra", ["colab", "unsloth"])
def test_the_pins_of_an_extra_are_ours_and_its_ranges_hold_them(extra):
    assert pinned(extras()[extra]).items() <= OURS.items()
    ranges = [r for r in extras()[extra] if canonicalize_name(r.name) in OURS]
    assert not [r for r in ranges if not r.specifier.contains(OURS[canonicalize_name(r.name)])]


def parser_of(those: list[Requirement]) -> list[str]:
    """The antlr runtime that math-verify is asked to bring, as its extras name it."""
    return [extra for r in those if r.name == "math-verify" for extra in r.extras]


@pytest.mark.parametrize("image", ["colab", "kaggle"])
def test_the_extra_for_an_image_keeps_its_antlr_because_its_omegaconf_works_with_no_other(image):
    packages = json.loads(read(f"tests/images/{image}.json"))["packages"]
    there = packages["antlr4-python3-runtime"].replace(".", "_")
    assert "omegaconf" in packages and parser_of(extras()["colab"]) == [f"antlr{there}"]


def test_a_plain_install_keeps_or_brings_an_antlr_with_which_math_verify_reads():
    """The checks and the course's rewards share them, so grpo-check asks for them."""
    plain = [Requirement(line) for line in tomllib.loads(read("grpo_check/pyproject.toml"))["project"]["dependencies"]]
    [limit] = [r.specifier for r in plain if r.name == "antlr4-python3-runtime"]
    [others] = [Requirement(line).specifier for line in metadata.requires("latex2sympy2_extended") if "<=" in line]
    releases = ["4.9.2", "4.9.3", "4.10", "4.11.0", "4.11.1", "4.12.0", "4.13.0", "4.13.1", "4.13.2", "4.13.3"]
    assert parser_of(plain) == [] and parser_of(requirements(read("requirements.txt"))) == ["antlr4_13_2"]
    assert [*(limit & others).filter(releases)] == ["4.9.3", "4.11.0", "4.11.1", "4.13.2"]


def test_unsloth_is_in_no_extra_because_pip_would_install_its_dependencies():
    assert not [r for lines in extras().values() for r in lines if r.name.startswith("unsloth")]
    assert pinned(requirements(read("requirements-unsloth.txt"))) == {
        canonicalize_name(n): v for n, v in UNSLOTH.items()
    }


def test_colabs_second_extra_names_what_the_list_for_a_gpu_names():
    on_linux = [r.name for r in requirements(read("requirements-gpu.txt")) if not r.marker or r.marker.evaluate(LINUX)]
    assert [r.name for r in extras()["unsloth"]] == on_linux


def test_the_conda_file_brings_a_supported_python_and_no_pins_of_its_own():
    python, pip = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert pip == "pip" and "python scripts/install.py" in read("environment.yml")
    supported = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    assert supported == ">={}.{},<{}.{}".format(*install.SUPPORTED[0], *install.SUPPORTED[1])
    assert python.removeprefix("python=") in SpecifierSet(supported)


def test_what_is_installed_is_what_is_pinned():
    wanted = [line for file in INSTALLED for line in requirements(read(file))]
    wrong = {name: v for name, v in pinned(wanted).items() if metadata.version(name).split("+")[0] != v}
    assert not {name: metadata.version(name) for name in wrong}


def test_what_lesson_12_leaves_out_of_reasoning_gym_is_what_it_replaces():
    """What reasoning-gym asks for is in our lists, or our import puts a stand-in in its place."""
    asked = [Requirement(line) for line in metadata.requires("reasoning-gym")]
    asked = [need for need in asked if not need.marker]
    replaced = set(re.findall(r"\w+", " ".join(LEFT_OUT)))
    assert len(asked) == 11 and replaced >= {need.name for need in asked} - {"pyyaml", "sympy"}
    assert not [said for need in asked if need.name in ("pyyaml", "sympy") and (said := fault(need, {}))]


# What Unsloth asks for


def version_here(name: str) -> str | None:
    """The version that our lists give: a pin, or what the pins brought into this environment."""
    if name in OURS:
        return OURS[name]
    found = [d.version for d in metadata.distributions() if canonicalize_name(d.metadata["Name"]) == name]
    return found[0] if found else None


def fault(need: Requirement, left: dict[str, str]) -> str | None:
    """What is wrong with our answer to one need of Unsloth's; None: nothing."""
    name, version = canonicalize_name(need.name), None
    if name in left:
        return f"{name} is left out and pinned" if name in OURS else None
    version = version_here(name)
    if version is None:
        return f"{need}: in none of our lists; add it, or leave it out with a reason, in requirements-gpu.txt"
    return None if need.specifier.contains(version) else f"{need}: we have {version}"


def test_our_lists_hold_all_that_unsloth_needs():
    assert len(needs()) > 40
    assert not [said for need in needs() if (said := fault(need, left_out()))]


def test_nothing_is_left_out_that_unsloth_no_longer_asks_for():
    assert set(left_out()) <= {canonicalize_name(need.name) for need in needs()}


def test_a_need_that_nobody_answers_is_found():
    assert "in none of our lists" in fault(Requirement("a-new-need"), left_out())
    assert "in none of our lists" in fault(Requirement("diffusers"), {})
    assert fault(Requirement("transformers<5.10"), {}) == "transformers<5.10: we have 5.17.0"
    assert fault(Requirement("torch"), {"torch": "why"}) == "torch is left out and pinned"


def test_what_is_left_out_is_not_imported_at_the_top_of_unsloths_modules():
    """Only guarded or late imports: a module of Unsloth's that starts with one of them would fail."""
    allowed = {"triton", "msgspec", "mlx", "mlx-lm", "mlx-vlm"}  # brought by torch; only next to vLLM; only on a Mac
    for package in UNSLOTH:
        for path in Path(metadata.distribution(package).locate_file(package)).rglob("*.py"):
            tops = re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert not {canonicalize_name(top) for top in tops} & (set(left_out()) - allowed), path
