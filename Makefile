# `make test` needs python3 (3.11 or newer) and nothing else: it makes its own environment.

PYTHON ?= python3
BIN := .venv/bin
NEW_ENOUGH := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "msdnet needs Python 3.11 or newer")'

# Bytecode is kept, whatever the environment says: tests start hundreds of processes, each of which would compile again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-oldest test-gpu test-slow lint types docs unit bench figures clean

# Real images inside a budget, with the small install: no torch.
demo: .venv-demo/installed
	.venv-demo/bin/msdnet demo

.venv-demo/installed: pyproject.toml $(shell find src -type f -not -path '*/__pycache__/*')
	$(NEW_ENOUGH)
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check .
	touch $@

test: .venv/installed
	$(MAKE) --jobs 2 --output-sync lint types docs
	$(MAKE) unit

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

# The documentation as a site, in site/. A link that leads nowhere is an error (not with --quiet, which mutes strictness too).
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A test process for each core, with one thread each, as for what they start; tests of one file stay together, since they
# share what is slow to make. In their own order: by number, the slowest files, which have few tests, would come last.
SIDE_BY_SIDE := --numprocesses auto --dist loadfile --no-loadscope-reorder
unit: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/pytest $(SIDE_BY_SIDE)

# The same tests with the oldest torch that is supported, in an environment of their own.
test-oldest: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python -m pip install --quiet --editable '.[train]' --group dev torch==2.11.* torchvision==0.26.*
	OMP_NUM_THREADS=1 .venv-oldest/bin/pytest $(SIDE_BY_SIDE)

# What only a GPU can show; the default run skips it where there is none.
test-gpu: .venv/installed
	$(BIN)/pytest tests/gpu

# What takes minutes: the models on all test images, where these are at hand (the default run has a thousand), real CIFAR and
# photos from end to end, and the largest networks.
test-slow: .venv/installed
	$(BIN)/pytest -m slow

# Timed, so never part of the tests: each prints ratios that were measured in one run.
bench: .venv/installed
	$(BIN)/python -m benchmarks.stages
	$(BIN)/python -m benchmarks.throughput --batch 64
	$(BIN)/python -m benchmarks.processor
	$(BIN)/python -m benchmarks.padding
	$(BIN)/python -m benchmarks.freed_memory
	$(BIN)/python -m benchmarks.engines
	$(BIN)/python -m benchmarks.batches
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.deadlines
	$(BIN)/python -m benchmarks.service
	$(BIN)/python -m benchmarks.policies
	$(BIN)/python -m benchmarks.startup

# The drawings in docs/, made by the project itself.
figures: .venv/installed
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/pictures.py

# Not compiled, which takes a minute: what is imported is, the first time.
.venv/installed: pyproject.toml
	$(NEW_ENOUGH)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[train]' --group dev
	touch $@

clean:
	rm -rf .venv .venv-demo .venv-oldest msdnet-demo.html dist build site .mypy_cache .pytest_cache .ruff_cache .hypothesis
