# Two commands: `make serve` talks to a model, `make test` runs every check and test.
#
#   make serve                                   the default model on 127.0.0.1:8080
#   make serve MODEL=path-or-hub-id REPLICAS=2   another model, twice
#   make serve ENGINE=simulated ENGINE_ARGS="tokens_per_second=50 ttft_ms=20"
#   make test ARGS="-k name"                     the Python tests of that name; any words of pytest
#   make check                                   format, lint, types, import law: under a minute
#   make test-long                               the long forms of tests, in hours; ONLY=kill_matrix: that one
#   make test-clients                            other clients against it: Node, LangChain, a browser ...
#   make serve ARGS="--open --gateway 0.0.0.0:9000"     any option of `penstock serve --help`
PYTHON ?= $(or $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done),python3)
ENGINE ?= vllm
# What nobody said is not passed on: a deployment stays as it was left.
SAID_ENGINE = $(if $(filter file,$(origin ENGINE)),,--engine $(ENGINE))
# Without bytecode every start of vLLM compiles it anew: half a minute more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help serve test check test-long test-clients bench setup lock clean

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

serve: check-python
	@$(PYTHON) setup/main.py serve --engine $(ENGINE)
	@exec .venv/bin/penstock serve $(if $(MODEL),"$(MODEL)") $(SAID_ENGINE) \
		$(if $(REPLICAS),--replicas $(REPLICAS)) \
		$(if $(ENGINE_ARGS),--engine-args "$(ENGINE_ARGS)") $(ARGS)

test: check-python
	@$(PYTHON) setup/main.py test
	@exec $(if $(ARGS),.venv/bin/pytest -q --ignore=tests/clients $(ARGS),tests/check)

check: check-python
	@$(PYTHON) setup/main.py test
	@exec tests/check fast

test-long: check-python
	@$(PYTHON) setup/main.py test
	@exec tests/long $(ONLY)

test-clients: check-python
	@$(PYTHON) setup/main.py clients
	@exec .venv-clients/bin/pytest -q tests/clients $(ARGS)

bench: check-python
	@$(PYTHON) setup/main.py bench --engine simulated
	@exec .venv/bin/python -m penstock.evals.main bench $(ARGS)

setup: check-python
	@$(PYTHON) setup/main.py test

lock:
	@.venv/bin/python setup/lock.py

clean:
	rm -rf .venv .venv-clients tests/clients/node/node_modules build gateway_cpp/build replica/build .penstock

.PHONY: check-python
check-python:
	@command -v $(PYTHON) >/dev/null || { echo "penstock setup: there is no '$(PYTHON)': install" \
		"Python 3.11 or later, or name one: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
