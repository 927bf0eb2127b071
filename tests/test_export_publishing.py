"""The model card says what the report says; what goes to the Hub is what was laid out, and no secret."""

import json
import sys
import types

import pytest
import yaml
from grpo_core.errors import CourseError

from grpo_utils.export.cards import model_card, write_card
from grpo_utils.export.publishing import push

RATES = {"n": 200, "format_rate": 0.5, "accuracy": 0.2, "accuracy_ci95": [0.15, 0.26], "greedy_accuracy": 0.0}
BETTER = RATES | {"format_rate": 0.98, "accuracy": 0.95, "accuracy_ci95": [0.91, 0.97], "greedy_accuracy": 1.0}
ARGUMENTS = {
    "learning_rate": 2e-3,
    "lr_scheduler_type": "linear",
    "optim": "adamw_torch",
    "per_device_train_batch_size": 64,
    "gradient_accumulation_steps": 1,
    "num_generations": 8,
    "max_completion_length": 32,
    "temperature": 1.0,
    "beta": 0.0,
    "loss_type": "dapo",
    "scale_rewards": "group",
}


def report(**changes: object) -> dict:
    config = {
        "system_prompt": "Think first.",
        "profile": {"dataset": changes.pop("dataset", "gsm8k")},
        "train_rows": 2000,
        "rewards": [{"name": "correctness_reward", "weight": 2.0}, {"name": "strict_format_reward", "weight": 0.5}],
        "lora": {"r": 16, "lora_alpha": 32},
        "training_arguments": ARGUMENTS,
    }
    whole = {
        "model": "unsloth/Qwen2.5-1.5B-Instruct",
        "backend": "unsloth",
        "load_in_4bit": True,
        "steps": 100,
        "seed": 3,
        "before": RATES,
        "after": BETTER,
        "merged": BETTER,
        "merge_difference": 7e-7,
        "p_value": 1e-9,
        "versions": {"trl": "1.14.0", "torch": "2.13.0"},
        "config": config,
    }
    return whole | changes


def header_of(card: str) -> dict:
    return yaml.safe_load(card.split("---")[1])


def test_the_header_is_valid_and_says_where_the_model_comes_from():
    from huggingface_hub import ModelCard

    text = model_card(report())
    data = ModelCard(text).data
    assert (data.base_model, data.library_name) == ("unsloth/Qwen2.5-1.5B-Instruct", "transformers")
    assert data.to_dict()["base_model_relation"] == "finetune"
    assert data.datasets == ["openai/gsm8k"] and {"grpo", "trl", "unsloth"} <= set(data.tags)
    assert data.license is None and header_of(text) == data.to_dict()


def test_an_adapter_is_a_peft_model_that_names_its_base():
    text = model_card(report(), kind="adapter", license="apache-2.0")
    header = header_of(text)
    assert (header["library_name"], header["base_model_relation"]) == ("peft", "adapter")
    assert header["license"] == "apache-2.0"
    assert 'AutoModelForCausalLM.from_pretrained("unsloth/Qwen2.5-1.5B-Instruct")' in text


def test_a_base_that_is_not_on_the_hub_is_told_in_words_and_no_dead_link():
    text = model_card(report(model="tiny-qwen3", dataset="addition", backend="transformers"))
    assert not {"base_model", "datasets"} & header_of(text).keys() and "unsloth" not in header_of(text)["tags"]
    assert "rows of two-digit addition problems, made by the course" in text
    assert "`tiny-qwen3` is not on the Hub: it ships with the course" in text


def test_the_card_says_what_the_report_says():
    text = model_card(report())
    for told in ("| `correctness_reward` | 2 |", "| `learning_rate` | 0.002 |", "| `lora_rank` | 16 |", "trl 1.14.0"):
        assert told in text
    for told in ("100 steps, seed 3, base in 4 bits", "2000 rows of GSM8K", "Think first.", "0.950 (0.910 to 0.970)"):
        assert told in text
    assert "no logit by more than 7e-07" in text and "200 held-out prompts" in text


def test_the_card_shows_ability_apart_from_form_where_the_report_has_it():
    given = {"formed": 100, "accuracy_given_format": 0.4, "accuracy_given_format_ci95": [0.309, 0.498]}
    rates = RATES | given | {"by_kind": {"carry": {"n": 90, **given}, "no carry": {"n": 110, **given}}}
    text = model_card(report(before=rates, after=rates, merged=rates, merged_p_value=1.0))
    assert text.count("  100  0.400 (0.309 to 0.498)") == 9
    assert "accuracy among the n correctly formatted answers" in text
    assert "(exact McNemar test, p = 1).\n```" in text and text.count("McNemar test") == 1
    assert "formatted answers" not in model_card(report())


def test_the_versions_are_those_of_what_took_part():
    versions = {"unsloth": "2026.10.9", "unsloth_zoo": "2026.10.9", "trl": "1.14.0"}
    assert "unsloth 2026.10.9" in model_card(report(versions=versions))
    assert "unsloth" not in model_card(report(model="tiny-qwen3", versions=versions, backend="transformers"))


def test_the_card_of_a_merged_model_quotes_the_merged_model():
    """The fault: its proof was the policy's, on another base."""
    worse = report(merged=RATES, merged_p_value=1.0)
    assert "No improvement shown" in model_card(worse) and 'compares "before" with "merged"' in model_card(worse)
    assert "rose by" in model_card(worse, kind="adapter")
    assert 'compares "before" with "after"' in model_card(report()) and "base in 4 bits" in model_card(report())
    assert "base in 4 bits." not in model_card(report(load_in_4bit=False))


@pytest.fixture
def asked(monkeypatch) -> list[tuple]:
    """The messages and the options that a pipeline in place of transformers' own is given."""
    asked, answer = [], [{"generated_text": [{"role": "assistant", "content": "42"}]}]
    pipe = types.SimpleNamespace(pipeline=lambda *_, **__: lambda *given, **how: asked.append((*given, how)) or answer)
    monkeypatch.setitem(sys.modules, "transformers", pipe)
    return asked


@pytest.mark.parametrize("prompt", ["Think first.", 'Say "yes"\nor {no}.', None])
def test_the_code_of_the_card_runs_when_it_is_pasted(prompt, asked):
    """The fault: it used a SYSTEM_PROMPT that nobody defines."""
    whole = report()
    whole["config"]["system_prompt"] = prompt
    exec(model_card(whole).split("```python\n")[1].split("```")[0], {})
    [(messages, _)] = asked
    told = [message["content"] for message in messages if message["role"] == "system"]
    assert told == ([prompt] if prompt else []) and messages[-1]["role"] == "user"


def test_a_model_trained_without_thoughts_is_used_without_them(asked):
    whole = report()
    whole["config"]["chat_template_kwargs"] = {"enable_thinking": False}
    for kind in ("merged", "adapter"):
        assert "`{'enable_thinking': False}`" in model_card(whole, kind=kind)
    exec(model_card(whole).split("```python\n")[1].split("```")[0], {})
    assert asked[0][-1]["tokenizer_encode_kwargs"] == {"enable_thinking": False}
    assert "enable_thinking" not in model_card(report())


def test_no_logit_changed_by_more_than_the_card_says():
    """The fault: 7.4e-07 was told as "no more than 7e-07"."""
    assert "by more than 8e-07." in model_card(report(merge_difference=7.4e-7))


def test_a_local_base_does_not_tell_its_path():
    text = model_card(report(model="/data/secret-project/my-qwen"))
    assert "secret-project" not in text and "`my-qwen`" in text


@pytest.mark.parametrize("missing", ["p_value", "config", "versions"])
def test_a_report_that_lacks_something_is_named(missing):
    whole = report()
    del whole[missing]
    with pytest.raises(CourseError, match=f"a model card needs: '{missing}'"):
        model_card(whole)


@pytest.fixture
def model(tmp_path):
    """A folder as a run leaves it: a model, its card, and things that are nobody's business."""
    folder = tmp_path / "merged"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "optimizer.pt").write_bytes(b"state")
    (folder / ".env").write_text("HF_TOKEN=hf_" + "x" * 30)
    write_card(folder, report())
    return folder


def test_a_dry_run_shows_what_would_be_uploaded(model):
    sizes = push(model, "me/my-model")
    assert sizes == {name: (model / name).stat().st_size for name in sizes}
    assert sorted(sizes) == ["README.md", "config.json", "model.safetensors", "tokenizer_config.json"]


@pytest.mark.parametrize(
    ("weights", "missing"),
    [
        ("model.safetensors", "config.json"),
        ("model.safetensors", "tokenizer_config.json"),
        ("adapter_model.safetensors", "adapter_config.json"),
    ],
)
def test_weights_that_could_not_be_loaded_are_refused(model, weights, missing):
    (model / "model.safetensors").rename(model / weights)
    (model / missing).unlink(missing_ok=True)
    with pytest.raises(CourseError, match=f"cannot be loaded: {missing} missing"):
        push(model, "me/my-model")


@pytest.mark.parametrize("name", ["my-model", "a/b/c", "../me/x", "me/", "/me", "me/..", "me/a b"])
def test_a_repository_is_owner_and_name(model, name):
    with pytest.raises(CourseError, match="owner/name"):
        push(model, name)


def test_a_folder_without_weights_or_without_card(model):
    (model / "README.md").unlink()
    with pytest.raises(CourseError, match="no README.md"):
        push(model, "me/my-model")
    (model / "model.safetensors").unlink()
    with pytest.raises(CourseError, match="no weights"):
        push(model, "me/my-model")


def pushed_with(model, name: str, text: str) -> dict[str, int]:
    (model / name).write_text(text)
    return push(model, "me/my-model")


@pytest.mark.parametrize("start", ["hf_", "api_org_", "ghp_", "github_pat_", "sk-", "sk-proj-"])
def test_a_token_in_a_file_is_refused_and_not_repeated(model, start):
    token = start + "a1B2" * 8
    with pytest.raises(CourseError, match="config.json holds what looks like an access token") as refused:
        pushed_with(model, "config.json", json.dumps({"token": token}))
    assert token not in str(refused.value)


PATHS = (
    "/home/me/models/base /Users/me/base /content/base /data/me/base /scratch /private/var/x ~/base /Volumes/disk/base "
    "/opt/base /srv/base /var/tmp/base /work/base /nfs/base /a-place/of/mine C:\\Users\\me c:/models \\\\server\\x"
)


@pytest.mark.parametrize("path", PATHS.split())
def test_a_path_of_this_machine_is_refused(model, path):
    with pytest.raises(CourseError, match="config.json names a path of this machine"):
        pushed_with(model, "config.json", json.dumps({"a": [{"_name_or_path": path}]}))


def test_a_path_in_a_card_and_a_config_that_is_not_json_are_refused(model):
    with pytest.raises(CourseError, match="config.json is not valid JSON"):
        pushed_with(model, "config.json", "{")
    (model / "config.json").write_text("{}")
    with pytest.raises(CourseError, match="README.md names a path of this machine: '/scratch/me/base.'"):
        pushed_with(model, "README.md", "Trained on /scratch/me/base.")


ADDED = {"added_tokens_decoder": {"7": {"content": "/no_think"}}, "chat_template": "/think {{ messages }}", "sep": "/"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokenizer_config.json", json.dumps(ADDED | {"eos_token": "</s>"})),
        ("tokenizer.json", json.dumps({"vocab": {"/home/user": 5}})),
        ("README.md", "See https://example.org/home/me and docs/tmp/x."),
    ],
)
def test_a_token_a_template_a_vocabulary_and_an_address_are_not_paths(model, name, text):
    assert name in pushed_with(model, name, text)


def test_a_vocabulary_of_bytes_is_not_read_as_text(model):
    (model / "tokenizer.model").write_bytes(b"\xff\xfe")
    assert "tokenizer.model" in push(model, "me/my-model")


@pytest.fixture
def hub(fake_hub):
    """A Hub that takes an upload: what it was asked, and how it answers."""
    import httpx

    asked = []
    status = {"create": 200}

    def answer(request: httpx.Request) -> httpx.Response:
        if status["create"] == "unplugged":
            raise httpx.ConnectError("no route to host", request=request)
        asked.append((request.method, request.url.path, request.read()))
        if request.url.path.endswith("/repos/create"):
            return httpx.Response(status["create"], json={"url": "https://huggingface.co/me/my-model"}, request=request)
        if "/preupload/" in request.url.path:
            names = [file["path"] for file in json.loads(request.content)["files"]]
            files = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return httpx.Response(200, json={"files": files}, request=request)
        if "/commit/" in request.url.path:
            done = {"commitUrl": "https://huggingface.co/me/my-model/commit/1", "commitOid": "1", "success": True}
            return httpx.Response(200, json=done, request=request)
        if request.url.path.endswith("/validate-yaml"):
            return httpx.Response(200, json={"errors": [], "warnings": []}, request=request)
        known = {"id": "me/my-model", "siblings": []}
        return httpx.Response(404 if status["create"] != 200 else 200, json=known, request=request)

    fake_hub(answer)
    return asked, status


@pytest.fixture
def token(monkeypatch) -> str:
    monkeypatch.setenv("HF_TOKEN", "hf_" + "s3cr3t" * 5)
    return "hf_" + "s3cr3t" * 5


def test_without_a_token_nothing_is_asked(model, tmp_path, hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(CourseError, match="no token found.*hf auth login"):
        push(model, "me/my-model", dry_run=False)
    assert not hub[0]


def test_offline_nothing_is_asked(model, token):
    with pytest.raises(CourseError, match="unset the `HF_HUB_OFFLINE`"):
        push(model, "me/my-model", dry_run=False)


def test_the_upload_sends_what_the_dry_run_shows_and_no_more(model, hub, token, capsys):
    (model / "checkpoint").mkdir()
    (model / "checkpoint" / "config.json").write_text("{}")
    asked, _ = hub
    sizes = push(model, "me/my-model", dry_run=False)
    created = next(json.loads(body) for _, path, body in asked if path.endswith("/repos/create"))
    assert created["visibility"] == "private"
    commit = next(body.decode() for _, path, body in asked if "/commit/" in path)
    sent = {json.loads(line)["value"]["path"] for line in commit.splitlines() if '"file"' in line}
    assert sent == set(sizes) == set(push(model, "me/my-model"))
    said = capsys.readouterr()
    assert token not in said.out + said.err + commit


@pytest.mark.parametrize(
    ("status", "said"),
    [("unplugged", "no route to host"), (401, "401"), (403, "token has the correct permissions"), (500, "500")],
)
def test_an_upload_that_fails_says_why(model, hub, token, status, said):
    """The fault: the library's own httpx.ConnectError came through."""
    hub[1]["create"] = status
    with pytest.raises(CourseError, match=f"(?s)may not be complete on the Hub.*{said}") as refused:
        push(model, "me/my-model", dry_run=False)
    assert token not in str(refused.value)
