"""uv installs from where pip would, and takes torch's CPU build where there is no GPU."""

import json
import os
import re
import subprocess
import sys
from unittest import mock

import install
import pytest
from course import ROOT


@pytest.fixture(autouse=True)
def variables(tmp_path):
    """No variables of pip's or uv's except these; what a test sets does not outlive it."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    own = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
    with mock.patch.dict(os.environ, others | own, clear=True):
        yield


def test_pips_settings_come_from_its_files_and_variables_and_the_nearest_one_wins(tmp_path):
    lines = ["[global]", "index-url = file:///everywhere", "[install]", "index-url = file:///mirror", "find-links = a"]
    (tmp_path / "pip.conf").write_text("\n".join([*lines, "cert = ca.pem", "no-index = 1"]))
    os.environ["PIP_FIND_LINKS"] = "b\nc"
    wanted = {"UV_DEFAULT_INDEX": "file:///mirror", "UV_FIND_LINKS": "b,c", "SSL_CERT_FILE": "ca.pem"}
    assert (wanted | {"UV_OFFLINE": "1"}).items() <= install.pip_settings().items()


def test_without_pytorchs_index_torch_comes_from_pips_and_it_says_so(capfd):
    install.choose_cpu_build()
    said = capfd.readouterr().out
    assert "UV_TORCH_BACKEND" not in os.environ
    assert said.startswith("PyTorch's index of CPU builds gave no torch (") and said.count("\n") == 2


def test_with_pytorchs_index_torch_comes_from_there(monkeypatch, capfd):
    monkeypatch.setattr(install, "run", lambda *_, **options: subprocess.CompletedProcess([], 0))
    install.choose_cpu_build()
    assert os.environ["UV_TORCH_BACKEND"] == "cpu" and not capfd.readouterr().out


def test_what_cannot_be_installed_is_named_after_uvs_own_error(capfd):
    with pytest.raises(SystemExit, match="Error: no-such-package could not be installed; see the error above"):
        install.install(install.UV, "no-such-package")
    assert "no-such-package" in capfd.readouterr().err


@pytest.mark.parametrize("gpu", [False, True])
def test_the_bundle_holds_what_is_installed(gpu, monkeypatch):
    """Offline, so PyTorch's index is not asked."""
    installed = []
    monkeypatch.setattr(sys, "argv", ["install.py"])
    monkeypatch.setattr(install, "has_nvidia_gpu", lambda: gpu)
    monkeypatch.delenv("WITHOUT_GPU", raising=False)
    monkeypatch.setattr(install, "choose_cpu_build", lambda: pytest.fail("it asked PyTorch's index"))
    monkeypatch.setattr(
        install, "install", lambda installer, *what: installed.append({*what} - {"--editable", "grpo_check", "."})
    )
    install.main()
    more = "ARGS=-r requirements-gpu.txt" if gpu else "ARGS="
    # Under `make test`, make would also print the folder that it enters.
    command = ["make", "--no-print-directory", "-n", "bundle", more]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pinned, alone = map(str.split, told.splitlines())
    assert installed[1] <= {*pinned} and installed[2] <= {*alone}
    assert re.search(r'requires = \["(.+)"\]', (ROOT / "pyproject.toml").read_text())[1] in alone[-1]


def test_without_gpu_leaves_out_the_gpu_packages_and_cuda_although_there_is_a_gpu(monkeypatch, capsys):
    installed = []
    monkeypatch.setenv("WITHOUT_GPU", "1")
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setattr(install, "has_nvidia_gpu", lambda: True)
    monkeypatch.setattr(install, "pip_settings", dict)
    monkeypatch.setattr(install, "choose_cpu_build", lambda: installed.append("cpu build"))
    monkeypatch.setattr(install, "install", lambda installer, *what: installed.extend(what))
    install.install_course()
    assert "cpu build" in installed and "requirements-gpu.txt" not in installed
    assert "found, but skipped: WITHOUT_GPU=1" in capsys.readouterr().out


def test_the_dev_container_has_a_supported_python_and_runs_targets_of_the_makefile():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    version = tuple(map(int, re.search(r"python:(\d+)\.(\d+)", container["image"]).groups()))
    commands = [command for name, command in container.items() if name.endswith("Command")]
    targets = re.findall(r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert install.SUPPORTED[0] <= version < install.SUPPORTED[1]
    assert commands and {command.removeprefix("make ") for command in commands} <= set(targets)
