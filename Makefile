# Everything here is one or two shell lines; the readme prints them for people without make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Many threads on small arrays cost more than they give, most of all on a busy machine (docs/design.md).
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: help install dev peer demo paper test check bench clean

help:    ## show this list
	@grep -E '^[a-z]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(STAMP)  ## make the virtual environment and install what the product needs
dev: $(VENV)/.installed-dev  ## the same, and what developing needs
peer: dev  ## the same, and the PyTorch peer of the speed comparison (1.1 GB)
	$(BIN)/python -m pip install -q -r requirements-peer.txt

demo: install  ## the main job: train PPO on DeepRM, evaluate it, draw
	$(BIN)/python launcher.py --algo ppo

paper: install  ## the figures of the DeepRM paper: train, measure, draw (10 minutes on two free cores)
	$(BIN)/python examples/reproduce_deeprm.py

test: dev  ## the tests, without the slow ones
	$(BIN)/python -m pytest -n 2

check: dev  ## what CI checks: lint, format, types, architecture, all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 -m "slow or not slow"

bench: install  ## the speed benchmarks; ratios within one run
	$(BIN)/python -m benchmarks

clean:  ## remove caches and builds; keeps the virtual environment, models and results
	rm -rf build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo "error: $(PYTHON) is not Python 3.11, 3.12 or 3.13; name one that is: make PYTHON=python3.12 ..." >&2; \
	  exit 2; }
	@echo "Installing into $(VENV): about 780 MB to download, once."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -r requirements.txt -e .
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(STAMP)
	$(BIN)/python -m pip install -q -r requirements-dev.txt
	@touch $@
