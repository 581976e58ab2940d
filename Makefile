# Two commands need nothing done before: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without a GPU the constraints keep torch at a release whose CPU build is small where the index has one.
CONSTRAINTS := $(if $(shell command -v nvidia-smi 2>/dev/null),,-c constraints-cpu.txt)

.PHONY: run test install lint types contracts tests test-peers clean

run: $(VENV)/.installed
	$(BIN)/escala run quickstart --out runs/quickstart

test: $(VENV)/.installed-dev lint types contracts tests

install: $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "escala needs Python 3.11 or newer; try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "no virtual environment could be made; try: sudo apt install python3-venv"; exit 1; }

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints-cpu.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) --editable '.[dev]'
	@touch $@

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

contracts:
	$(BIN)/lint-imports

tests:
	$(BIN)/python -m pytest

# Other people's training loops: what they need is large, so `make test` does without and skips these.
test-peers: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) --editable '.[dev,peers]'
	$(BIN)/python -m pytest tests/peers tests/run/test_peer_campaign.py

clean:
	rm -rf $(VENV) runs build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
