# Two commands: `make up` runs the sample region, `make test` runs every test. ARGS passes words on.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
LINT := $(BIN)/ruff check --quiet . && $(BIN)/ruff format --check --quiet . && $(BIN)/mypy --no-error-summary

.PHONY: up install test soak bench lint lock packages clean

# PROVIDER=bind or route53-dev, STORE=postgresql: the sample on these, started beside it.
up: $(VENV)/run.stamp
	@$(BIN)/fencepost up $(if $(PROVIDER),--provider $(PROVIDER)) $(if $(STORE),--store $(STORE)) $(ARGS)

install: $(VENV)/run.stamp

# What runs: hashes checked, nothing newer than was tried.
$(VENV)/run.stamp: requirements/run.txt pyproject.toml
	@echo "installing fencepost's pinned packages into $(VENV), once, about half a minute" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/test.stamp: requirements/test.txt $(VENV)/run.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/test.txt
	@touch $@

# Other people's programs that tests and benchmarks compare with: octoDNS, ministack. They pin other versions than ours.
$(VENV)/peers.stamp: requirements/peers.txt $(VENV)/run.stamp
	@test -x $(VENV)/peers/bin/python || $(PYTHON) -m venv $(VENV)/peers
	@$(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/peers.txt
	@touch $@

# Debian's packages that tests start as peers: with root they are installed, without it `make test` says which are missing.
packages:
	@./tests/debian-packages

# Five workers for two cores, since many tests wait; a file's tests stay together, in the order of tests/conftest.py. While
# mypy has one core, pytest rewrites the files' assertions on the other, once, and keeps them: else each worker does it.
test: export PYTHONDONTWRITEBYTECODE =
test: $(VENV)/test.stamp $(VENV)/peers.stamp packages
	@$(BIN)/python -m pytest --collect-only --quiet --quiet $(if $(ARGS),$(ARGS),tests) > /dev/null 2>&1 & $(LINT); \
	    linted=$$?; wait; exit $$linted
	@$(BIN)/python -m pytest -m "not soak" -n 5 --dist loadfile --no-loadscope-reorder $(if $(ARGS),$(ARGS),tests)

soak: $(VENV)/test.stamp $(VENV)/peers.stamp packages
	@FENCEPOST_HYPOTHESIS=random $(BIN)/python -m pytest -m soak $(if $(ARGS),$(ARGS),tests)

lint: $(VENV)/test.stamp
	@$(LINT)

bench: $(VENV)/test.stamp $(VENV)/peers.stamp packages
	@$(BIN)/python -m bench $(ARGS)

# Write the lock files anew. No index address may stand in them.
lock: $(VENV)/test.stamp
	@$(BIN)/python -m pip install --quiet pip-tools
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-trusted-host --strip-extras --allow-unsafe -o requirements/run.txt pyproject.toml
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-trusted-host --strip-extras --allow-unsafe --extra test -c requirements/run.txt -o requirements/test.txt pyproject.toml
	@$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-trusted-host --strip-extras --allow-unsafe -o requirements/peers.txt requirements/peers.in

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .fencepost
