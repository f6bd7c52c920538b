# Two commands do everything: make demo and make test. Each sets up what it needs, from nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Real imagery, where it lies beside the checkout; without it the tests that need it are skipped.
export AIRLOC_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: help setup browser demo test test-slow lint bench docs clean

help:
	@echo "make demo       all agents on procedural areas: a table and a page to look at"
	@echo "make test       lint, types, layers, tests and coverage"
	@echo "make test-slow  the tests that take minutes"
	@echo "make bench      what is timed, each against a floor or a peer"
	@echo "make docs       the documentation as a static site in site/"
	@echo "make lint       ruff, mypy, import-linter"
	@echo "make setup      the virtual environment in $(VENV), with all extras"

setup: $(READY)

SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)
APT := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

# torch goes first and by its exact version: a range would fetch gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { $(SUDO) apt-get update -qq && $(APT) python3-venv >/dev/null; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[field,export,cluster,dev]'
	touch $(READY)

# The tests open pages in a real browser.
browser:
	@command -v chromium >/dev/null || { \
		echo "installing chromium"; $(SUDO) apt-get update -qq && $(APT) chromium >/dev/null; }

demo: setup
	$(BIN)/airloc demo --out out/demo.html

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --cov --cov-report=term --cov-fail-under=90

test-slow: setup browser
	$(BIN)/python -m pytest -m slow --durations=10

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/mkdocs build --strict --site-dir site

clean:
	rm -rf $(VENV) site out build dist .coverage .pytest_cache .mypy_cache .ruff_cache
