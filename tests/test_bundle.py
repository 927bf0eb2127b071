"""The bundle asks pip for what install.py installs."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import bundle
import install


def installed(monkeypatch, gpu: bool) -> list[tuple[str, ...]]:
    calls = []
    monkeypatch.setattr(install, "has_nvidia_gpu", lambda: gpu)
    monkeypatch.setattr(install, "pip_install", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(sys, "argv", ["install.py"])
    install.main()
    return calls


@pytest.mark.parametrize("gpu", [False, True])
def test_it_holds_what_install_installs(monkeypatch, gpu):
    pinned, unsloth, own = installed(monkeypatch, gpu)
    wheels, unsloth_wheels, builder = bundle.commands(gpu, [])
    assert set(pinned) <= set(wheels) and "--no-deps" not in wheels
    assert ("requirements-gpu.txt" in pinned) == gpu == ("requirements-gpu.txt" in wheels)
    assert "--no-deps" in unsloth and set(unsloth) <= set(unsloth_wheels)
    assert own == ("--no-deps", "--editable", ".")
    needs = re.search(r'requires = \["(.+)"\]', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert builder[-1] == needs


def test_show_prints_the_commands_and_runs_none():
    command = [sys.executable, str(ROOT / "scripts" / "bundle.py"), "--show", "--extra-index-url", "ADDRESS"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(said) == 4 and all("pip wheel" in line and "ADDRESS" in line for line in said[:3])
    assert "PIP_NO_INDEX=1" in said[3]
