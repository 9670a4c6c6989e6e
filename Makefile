# `make demo` and `make test` do their own set-up; nothing else is needed first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# A CPU build is enough here. On a GPU machine say TORCH=torch and the extra index of your CUDA version.
TORCH ?= torch==2.13.0
BIN := .venv/bin

# The heart of each suite, for CI; the whole ones take a quarter of an hour each.
RSL_RL_CORE := (agent or ppo_field or adaptive or finished_run or two_ranks_end or goes_on_from_it or interrupted_twin) and not twenty
ISAACLAB_CORE := stock or direct or manager_based or exported or app_starts or through_our_loop or failure_ends or unknown_reward or every_task or by_url
MJLAB_CORE := go1_trains or own_agent or own_figures or exported or unknown_reward or misspelt or next_iteration or clips or one_command

.PHONY: demo test check format clean
.PHONY: test-hydra test-optuna test-rsl-rl test-rsl-rl-core test-isaaclab test-isaaclab-core test-mjlab test-mjlab-core

demo: .venv/.installed
	$(BIN)/python -m canard_hydra -m name=demo ppo.learning_rate=1e-4,3e-4

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

# The trainer under each rsl-rl that a simulator pins.
test-rsl-rl: .venv/.installed-dev
	$(BIN)/nox -s trainer -- -n auto

test-rsl-rl-core: .venv/.installed-dev
	$(BIN)/nox -s 'trainer(5.4.2)' -- -n auto -k '$(RSL_RL_CORE)'

# Members as Hydra itself composes them, on both lines of Hydra; and Optuna's sweeper.
test-hydra: .venv/.installed-dev
	$(BIN)/nox -s hydra

test-optuna: .venv/.installed-dev
	$(BIN)/nox -s optuna

# Isaac Lab 3.0 without Isaac Sim, and 2.3.2 with a stand-in for it; 8 GB under the user's cache.
test-isaaclab: .venv/.installed-dev
	tests/isaaclab/make_env.sh
	tests/isaaclab/make_env_232.sh $(BIN)/python
	$(BIN)/python -m pytest -m isaaclab tests/isaaclab

test-isaaclab-core: .venv/.installed-dev
	$(BIN)/python -m pytest -m isaaclab tests/isaaclab -n 2 --dist loadfile -k '$(ISAACLAB_CORE)'

# mjlab on the CPU; 2.3 GB under the user's cache.
test-mjlab: .venv/.installed-dev
	tests/mjlab/make_env.sh
	$(BIN)/python -m pytest -m mjlab tests/mjlab -n 2 --dist worksteal

test-mjlab-core: .venv/.installed-dev
	$(BIN)/python -m pytest -m mjlab tests/mjlab -n 2 --dist worksteal -k '$(MJLAB_CORE)'

check: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/canard check conf

format: .venv/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' -e '.[platform,trainer]'
	touch $@

.venv/.installed-dev: pyproject.toml .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' -e '.[platform,trainer,dev]'
	touch $@

clean:
	rm -rf .venv build dist multirun outputs
