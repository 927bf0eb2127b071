PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
WORKERS ?= 2
# One file of tests after the other in each worker: a lesson is run once and asked by many tests.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Some images set this variable. Then each process compiles torch and TRL again, which takes longer than to import them.
unexport PYTHONDONTWRITEBYTECODE

# The tests of grpo-check that ask the installed TRL something; that of the package also attacks a reward. The rest read no
# more of TRL than a log.
NEWEST := $(addprefix grpo_check/tests/,test_preflight.py test_preflight_arguments.py test_preflight_any_arguments.py \
	test_preflight_cli.py test_preflight_numbers.py test_preflight_rewards.py test_preflight_rows.py \
	test_preflight_thinking.py test_preflight_users_code.py test_health.py test_health_damaged_logs.py \
	test_newest_trl.py test_pilot.py test_check_package.py)

BENCHES := bench-rewards bench-settings bench-losses bench-reuse bench-sft bench-controls bench-stale bench-distill bench-real bench-real-controls bench-real-checks bench-free bench-checked bench-estimate bench-checkpoint bench-pilot bench-merge bench-attack

.PHONY: run real lock test test-fast test-upgrade colab-cpu gpu-path gpu-day check-newest setup lab lab-workshop exercises lint notebooks templates figures replays tiny bench $(BENCHES) bench-gguf badges workshop handouts html bundle wheel dist clean help

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: setup       ## train a model: lesson 03 from beginning to end; ARGS="-p FAMILY gemma" sets a parameter, ARGS=notebooks/07_export.ipynb runs any lesson
	$(BIN)/python -m grpo_utils run $(ARGS)

real: setup      ## train a real language model, on a GPU if there is one: SmolLM2, 93 MB, about half an hour on two cores (slow in bf16: 80 minutes or more); ARGS="--task older"; after Ctrl-C, the same command resumes
	$(BIN)/python -m grpo_utils real $(ARGS)

test: setup lint .gpu-path/installed $(VENV)/html-installed ## what CI runs on every commit, two files of tests at a time; WORKERS=1: one
	$(PYTEST) -m "not upgrade" --durations 30 --durations-min 10 $(ARGS)

test-fast: setup lint ## lint and unit tests, no training
	$(PYTEST) -m "not slow and not upgrade" $(ARGS)

gpu-path: setup .gpu-path/installed ## Unsloth's CUDA branches on CPU tensors, all cases, about 20 minutes; `make test` runs the first
	$(BIN)/python -m pytest tests/test_gpu_path.py $(ARGS)

gpu-day: setup   ## what only a GPU can show, in steps of at most 10 minutes without a network; ARGS="lesson stock"
	$(BIN)/python scripts/gpu_day.py $(ARGS)

check-newest: setup .newest/installed ## grpo-check with the newest TRL: settings, logs, a pilot, a watched run and the commands in a plain project; ARGS: pytest's
	PYTHONPATH=$(CURDIR)/.newest $(PYTEST) -m "not upgrade" $(NEWEST) $(ARGS)

.newest/installed: requirements-newest.txt | $(VENV)/installed
	@mkdir -p .newest
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target .newest -r requirements-newest.txt
	@touch $@

.gpu-path/installed: requirements-gpu-path.txt | $(VENV)/installed
	@mkdir -p .gpu-path
	$(BIN)/python -m pip install --quiet --upgrade --no-deps --target .gpu-path -r requirements-gpu-path.txt
	@touch $@

test-upgrade: setup .gpu-path/installed ## what only a new version of a library can break: more training runs, lessons with the other family
	$(PYTEST) -m upgrade $(ARGS)
	$(MAKE) check-newest

colab-cpu: setup wheel ## lesson 03, 3 steps, with the Python, packages and pip of Colab (3.13) or Kaggle (3.12), about 3 minutes; ARGS=3.12
	$(BIN)/python scripts/try_colab.py $(ARGS)

setup: $(VENV)/installed ## .venv with the pinned packages, for this machine

$(VENV)/installed: requirements.txt requirements-gpu.txt requirements-unsloth.txt requirements-reasoning-gym.txt pyproject.toml grpo_check/pyproject.toml scripts/install.py
	$(PYTHON) scripts/install.py --check
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/install.py
	@touch $@

lab: setup       ## JupyterLab on the lessons
	$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start.ipynb

lab-workshop: outputs/workshop/00_start.ipynb ## JupyterLab on the student copies, which are made if they are missing
	$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)/outputs/workshop" --LabApp.default_url=/lab/tree/00_start.ipynb

exercises: setup ## which exercises of the student copies were solved on this machine
	$(BIN)/python -m grpo_utils exercises $(ARGS)

outputs/workshop/00_start.ipynb: | $(VENV)/installed
	$(BIN)/python scripts/workshop.py

lint: setup      ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

templates: setup ## write what the templates share with basic_grpo
	$(BIN)/python scripts/share_templates.py

lock: setup      ## write the constraints.txt of the templates: each package that their requirements install, with its version
	$(BIN)/python scripts/share_templates.py --lock

notebooks: setup ## build and execute the lessons from notebooks/source
	$(BIN)/python scripts/build_notebooks.py $(ARGS)

workshop: setup  ## student copies without solutions, in outputs/workshop/
	$(BIN)/python scripts/workshop.py

handouts: setup  ## slides, quiz, cheat sheets, GRPO on one page, exit tickets and the assignment, each a file that needs no network, in outputs/handouts/
	$(BIN)/python scripts/handouts.py

html: setup $(VENV)/html-installed ## the lessons as pages that open without a network, in outputs/site/html/
	$(BIN)/python -m sphinx -M html . outputs/site -c docs -W -q

$(VENV)/html-installed: requirements-html.txt | $(VENV)/installed
	$(BIN)/python scripts/install.py requirements-html.txt
	@touch $@

bundle:          ## all packages in outputs/bundle/, for a room without a network; ARGS="-r requirements-gpu.txt"
	$(PYTHON) -m pip wheel --wheel-dir outputs/bundle -r requirements.txt $(ARGS)
	$(PYTHON) -m pip wheel --wheel-dir outputs/bundle --no-deps -r requirements-unsloth.txt -r requirements-reasoning-gym.txt "setuptools>=77"

wheel:           ## the course and grpo-check, a file each in outputs/, for Colab or Kaggle without GitHub
	rm -rf build grpo_check/build
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir outputs ./grpo_check .
	rm -rf build grpo_check/build
	@ls outputs/grpo_*-*.whl

dist: .dist/installed ## sdists and wheels of grpo-check and the course in outputs/dist/, checked by twine; publishes nothing
	rm -rf outputs/dist build grpo_check/build
	.dist/bin/python -m build --outdir outputs/dist grpo_check
	.dist/bin/python -m build --outdir outputs/dist .
	.dist/bin/python -m twine check --strict outputs/dist/*

.dist/installed: requirements-dist.txt
	$(PYTHON) -m venv .dist
	.dist/bin/python -m pip install --quiet -r requirements-dist.txt
	@touch $@

tiny: setup      ## train the two tiny base models again, about 20 minutes
	$(BIN)/python scripts/tiny/build.py qwen --out outputs/tiny-qwen3
	$(BIN)/python scripts/tiny/build.py gemma --out outputs/tiny-gemma3

figures: setup   ## what the README and docs show of stored results; the diagrams and the tables of codes
	$(BIN)/python scripts/figures.py
	$(BIN)/python scripts/diagrams.py
	$(BIN)/python scripts/preview.py
	$(BIN)/python scripts/quiz_figures.py
	$(BIN)/python scripts/rule_tables.py

replays: setup   ## docs/watch-it-cheat.html, six runs that the page replays, about 3 minutes; ARGS=--write: only write it again
	$(BIN)/python experiments/record_replays.py $(ARGS)

bench: setup     ## the figures of docs/results.md, about 45 minutes; ARGS=--resume: only what is missing
	$(BIN)/python experiments/bench.py $(ARGS)

$(BENCHES): bench-%: setup
	$(BIN)/python experiments/bench_$(subst -,_,$*).py $(ARGS)

# What to run again after a change; the tests only compare the pages with what is stored.
#   a lesson or its settings: bench            rewards or probe: bench-rewards       attack: bench-attack
#   preflight's estimates: bench-estimate      pilot: bench-pilot, bench-real-checks
#   grpo_utils/real or the template structured_output: bench-real, bench-real-controls, bench-real-checks, bench-free,
#   bench-checked
#   the tiny models: all except bench-real*, bench-free and bench-checked, which train SmolLM2
#   the pin of TRL, transformers or torch: bench, and what the notes of the release name
bench-rewards:   ## the figures of docs/rewards.md, about 4 minutes
bench-settings:  ## the figures of docs/settings.md, about 6 minutes; ARGS=--write: without training
bench-losses:    ## the losses in docs/settings.md, 6 seeds each, about 15 minutes; run it again to continue
bench-reuse:     ## one against four updates per batch in docs/results.md, 5 seeds, about 8 minutes; run it again to continue
bench-sft:       ## SFT, then GRPO or more SFT, in docs/results.md, 5 seeds, about 25 minutes; run it again to continue
bench-controls:  ## the true reward, two controls and a leaked test, in docs/results.md, 5 seeds, about 12 minutes
bench-stale:     ## samples of an older or another policy, and corrections, in docs/results.md, 3 seeds, about 20 minutes
bench-distill:   ## distillation, SFT and GRPO in docs/results.md, 4 seeds, about 35 minutes; run it again to continue
bench-real:      ## "A real model on a CPU" in docs/results.md: 22 runs of make real, three hours; run it again to continue
bench-real-controls: ## the true rewards and two controls on SmolLM2, 3 seeds, in docs/results.md; a GPU helps; run it again to continue
bench-real-checks: ## "The checks on a real model" in docs/results.md, about an hour; run it again to continue
bench-free:      ## docs/what-to-try-first.md: a day or more without fast bf16; stop and start again as you like
bench-checked:   ## pilots of tasks that a program checks, in docs/what-to-try-first.md, hours without fast bf16; run it again to continue
bench-estimate:  ## the estimates of preflight in docs/results.md, about 4 minutes
bench-checkpoint: ## the last section of docs/evaluation.md, about 4 minutes
bench-attack:    ## "What attack finds" in docs/results.md, 5 minutes per reward; stop and start again as you like
bench-pilot:     ## "How often the pilot is right" in docs/results.md, about 30 minutes; stop and start again as you like
bench-merge:     ## the memory that checking a merged 1.5B model takes, about 4 minutes and 12 GB of disk

bench-gguf: setup ## the figures of GGUF in docs/troubleshooting-gpu.md; builds llama.cpp first, about 15 minutes
	@mkdir -p .gguf
	[ -d .gguf/site ] || $(BIN)/python -m pip download --quiet --no-deps --no-binary :all: --dest .gguf llama-cpp-python==0.3.36
	[ -d .gguf/site ] || tar -xzf .gguf/llama_cpp_python-0.3.36.tar.gz -C .gguf
	[ -d .gguf/site ] || CMAKE_ARGS="-DLLAVA_BUILD=OFF -DGGML_OPENMP=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF" $(BIN)/python -m pip install --quiet --no-deps \
		--target .gguf/site .gguf/llama_cpp_python-0.3.36 diskcache==5.6.3 sentencepiece==0.2.3
	PYTHONPATH=.gguf/site $(BIN)/python experiments/bench_gguf.py .gguf/llama_cpp_python-0.3.36/vendor/llama.cpp $(ARGS)

badges:          ## REPO=owner/name: write the public address everywhere; BRANCH=: another default branch
	$(PYTHON) scripts/address.py $(REPO) $(if $(BRANCH),--branch $(BRANCH))

clean:           ## remove .venv and caches; outputs stay
	rm -rf $(VENV) .gpu-path .newest .dist .gguf outputs/colab-cpu build grpo_check/build templates/*/lib *.egg-info grpo_check/src/*.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
