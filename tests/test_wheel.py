"""The wheel that goes next to a lesson in Colab or Kaggle."""

import shutil
import subprocess
import sys
import zipfile

import pytest
from course import ROOT


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_the_tiny_models(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "outputs", "*.egg-info")
    for name in ("grpo_utils", "grpo_check"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run(build, cwd=tmp_path, check=True)
    [wheel] = tmp_path.glob("grpo_utils-*.whl")  # the name that the install cell looks for
    files = [path.relative_to(tmp_path).as_posix() for name in ("grpo_utils", "grpo_check")
             for path in (tmp_path / name).rglob("*") if path.is_file()]  # fmt: skip
    assert set(files) <= set(zipfile.ZipFile(wheel).namelist())
    assert "grpo_utils/tiny/tiny-qwen3/model.safetensors" in files
