# Every target sets up what it needs, from nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Real imagery beside the checkout. Tests that need it are skipped without it.
export AIRLOC_DATA ?= $(wildcard $(abspath ../shared/data))
# Python starts twice as fast from compiled files, and tests start it often.
unexport PYTHONDONTWRITEBYTECODE
# Two test processes with one thread each use two cores best. Each keeps to its half of the modules, so that their
# fixtures are built once, and takes tests from the other at the end.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal
FAST := not slow and not gpu and not long and not browser and not ray and not export

.PHONY: help setup browser demo check test test-slow coverage lint ruff types layers tests-fast tests-all bench docs clean

help:
	@echo "make demo       evaluate all agents on procedural areas: a table, and a report in out/demo.html"
	@echo "make check      lint, types, layers and the fast tests: no browser, no Ray, no export, nothing that takes seconds"
	@echo "make test       lint, types, layers, all tests but the slow ones"
	@echo "make test-slow  tests that take minutes"
	@echo "make coverage   the tests of make test, with the lines that none of them runs"
	@echo "make bench      benchmarks, each against a floor or a peer"
	@echo "make docs       the documentation as a static site in site/"
	@echo "make lint       ruff, mypy, import-linter"
	@echo "make setup      the virtual environment in $(VENV), with all extras"

setup: $(READY)

SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)
APT := $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends

# torch is installed first and by its exact version: a range would download gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { $(SUDO) apt-get update -qq && $(APT) python3-venv >/dev/null; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^torch==' constraints.txt)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# The browser tests need Chromium.
browser:
	@command -v chromium >/dev/null || { \
		echo "installing chromium"; $(SUDO) apt-get update -qq && $(APT) chromium >/dev/null; }

demo: setup
	$(BIN)/airloc demo --out out/demo.html

lint: ruff layers types

ruff: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/mypy

layers: setup
	$(BIN)/lint-imports

# The first run of mypy takes most of a minute on one core, so it runs beside the tests.
BESIDE := --no-print-directory --jobs 2 --output-sync=line types

check: ruff layers
	@$(MAKE) $(BESIDE) tests-fast

test: ruff layers browser
	@$(MAKE) $(BESIDE) tests-all

tests-fast: setup
	$(PYTEST) -m '$(FAST)'

tests-all: setup
	$(PYTEST) --durations=10

# Counting lines slows the tests down by up to a third, so that this is not a part of make test.
coverage: setup browser
	$(PYTEST) --cov --cov-report=term --cov-fail-under=90

test-slow: setup browser
	$(BIN)/python -m pytest -m slow --durations=10

bench: setup
	$(BIN)/python -m benchmarks

docs: setup
	$(BIN)/mkdocs build --strict --site-dir site

clean:
	rm -rf $(VENV) site out build dist .coverage .pytest_cache .mypy_cache .ruff_cache
