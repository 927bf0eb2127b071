"""A folder that makes this computer look like one with a GPU and a network: its own PATH, hub cache and Jupyter start.

    environment = machine(folder, "t4")
    subprocess.run([python, "-m", "grpo_utils", "run", …], env=environment)

The code under test does not change. A model's name finds the tiny model of its family in the hub's cache, GSM8K
has addition problems in GSM8K's columns, `nvidia-smi` names the GPU, and each notebook kernel starts with `start.py`.
"""

import os
from pathlib import Path

import datasets
from fake_card import CARDS, ENVIRONMENT

from grpo_utils.data.sources import addition_rows
from grpo_utils.models import TINY_MODELS
from grpo_utils.profiles import PROFILES

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OVERLAY = ROOT / ".gpu-path"
NVIDIA_SMI = """#!/bin/sh
case "$1" in
    -L) echo "GPU 0: {name} (UUID: GPU-0)" ;;
    *) echo "{name}, {mib}, {capability}" ;;
esac
"""


def machine(folder: Path, card: str) -> dict[str, str]:
    """The environment of a machine with this GPU; its files go to ``folder``."""
    write_nvidia_smi(folder / "bin", card)
    write_start(folder / "ipython")
    return {
        **without_network(folder),
        **ENVIRONMENT,
        "PATH": os.pathsep.join([str(folder / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": python_path(HERE, OVERLAY, ROOT),
        "IPYTHONDIR": str(folder / "ipython"),
        "GPU_PATH_CARD": card,
        "OMP_NUM_THREADS": "1",
    }


def without_network(folder: Path) -> dict[str, str]:
    """The environment of this machine, with tiny models and addition problems in place of the hub's; in ``folder``."""
    fill_hub(folder / "hub")
    fill_gsm8k(folder / "datasets")
    return {
        **os.environ,
        "PYTHONPATH": python_path(ROOT),
        "HF_HUB_CACHE": str(folder / "hub"),
        "HF_DATASETS_CACHE": str(folder / "datasets"),
        "HF_HUB_OFFLINE": "1",
        "UNSLOTH_COMPILE_LOCATION": str(folder / "compiled"),
    }


def python_path(*folders: Path) -> str:
    """These folders, before those from which this process may have its packages."""
    return os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")]))


def write_nvidia_smi(folder: Path, card: str) -> None:
    """A program in place of nvidia-smi, which decides the profile."""
    folder.mkdir(parents=True)
    known = CARDS[card]
    capability, mib = ".".join(map(str, known.capability)), known.memory_gib << 10
    program = folder / "nvidia-smi"
    program.write_text(NVIDIA_SMI.format(name=known.name, mib=mib, capability=capability), encoding="utf-8")
    program.chmod(0o755)


def write_start(folder: Path) -> None:
    """Let each kernel run `start.py` first."""
    startup = folder / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00-card.py").write_text("import start\n", encoding="utf-8")


def fill_hub(folder: Path) -> None:
    """Add the tiny models to the cache under the names of all models that profiles and templates use."""
    for profile in PROFILES.values():
        for family, name in profile.models.items():
            if profile.name != "cpu":
                # Unsloth asks for its models in lower case, and on a real card for those that are in 4 bits already.
                for each in {made + end for made in (name, name.lower()) for end in ("", "-unsloth-bnb-4bit")}:
                    cache_model(folder, each, TINY_MODELS / PROFILES["cpu"].models[family])


def cache_model(folder: Path, name: str, model: Path) -> None:
    """A model in the layout of the hub's cache."""
    kept = folder / f"models--{name.replace('/', '--')}"
    if kept.exists():
        return
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("tiny", encoding="utf-8")
    (kept / "snapshots").mkdir()
    (kept / "snapshots" / "tiny").symlink_to(model)


class Additions(datasets.GeneratorBasedBuilder):
    """Addition problems in GSM8K's columns: a question, and a solution that ends in ``#### answer``."""

    def _info(self):
        return datasets.DatasetInfo(
            features=datasets.Features(dict.fromkeys(("question", "answer"), datasets.Value("string")))
        )

    def _split_generators(self, manager):
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in ("train", "test")]

    def _generate_examples(self, split):
        for number, row in enumerate(addition_rows(390 if split == "test" else 3000, split)):
            question = row["prompt"][-1]["content"]
            yield number, {"question": question, "answer": f"{question}\n#### {row['answer']}"}


def fill_gsm8k(folder: Path) -> None:
    """Add the addition problems to the cache of datasets under the name of GSM8K."""
    builder = Additions(
        cache_dir=str(folder), config_name="main", hash="additions", repo_id="openai/gsm8k", dataset_name="gsm8k"
    )
    builder.download_and_prepare()
