# `make demo` and `make test` do their own set-up; nothing else is needed first.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# A CPU build is enough here. On a GPU machine say TORCH=torch and the extra index of your CUDA version.
TORCH ?= torch==2.13.0
BIN := .venv/bin

.PHONY: demo test check format clean

demo: .venv/.installed
	$(BIN)/python -m canard_hydra -m name=demo ppo.learning_rate=1e-4,3e-4

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

check: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

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
