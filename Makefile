# Every target makes what it needs. `.venv` is the virtual environment: it is brought up to date when
# the text of pyproject.toml or constraints.txt changes, or PYTHON, and left alone otherwise.
#
#   PYTHON=python3.13   another interpreter (3.11 or newer); the first suitable one by default
#   ARGS='-k budget'    more arguments for pytest, or for the demo
#   WORKERS=4           test processes side by side; two by default

.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?=
WORKERS ?= 2
ARGS ?=

KEY := $(shell { printf '%s' '$(PYTHON)'; cat pyproject.toml constraints.txt; } | cksum | tr ' ' '-')
RUN := .venv/.run-$(KEY)
DEV := .venv/.dev-$(KEY)
PIP := .venv/bin/python -m pip --disable-pip-version-check
PYTEST := .venv/bin/python -m pytest

# What is fast enough to run between two commits; `make test` runs the rest as well.
FAST := $(wildcard tests/unit tests/properties tests/adversarial tests/test_*.py)

.PHONY: help demo test test-full check bench lint format docs recording clean lab

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F '|' '{ printf "%-18s%s\n", $$1, $$2 }'

demo: $(RUN) ## Watch the controller at work on a simulated cluster
	@.venv/bin/gpu-pruner demo $(ARGS)

test: $(DEV) ## Run the tests
	$(PYTEST) -n $(WORKERS) --dist loadgroup $(ARGS)

test-full: $(DEV) ## Run the tests with the long counts
	$(PYTEST) -n $(WORKERS) --dist loadgroup -m 'long or not long' --hypothesis-profile=long $(ARGS)

check: lint ## Lint and run the fast tests: what every commit passes
	$(PYTEST) -n $(WORKERS) --dist worksteal $(FAST) $(ARGS)

bench: $(DEV) ## Measure the figures of docs/reference/performance.md, about five minutes
	@.venv/bin/python -m bench $(ARGS)

lint: $(DEV) ## Check format, types, import contracts, spelling and dependencies
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/codespell
	.venv/bin/deptry .
	@.venv/bin/towncrier build --draft --version next >/dev/null

format: $(DEV) ## Fix what can be fixed without thinking
	.venv/bin/ruff check --fix-only
	.venv/bin/ruff format

docs: $(DEV) ## Bring the reference up to date and build the documentation into docs/_build/html
	.venv/bin/python docs/generate.py
	.venv/bin/python -m sphinx -W -n --keep-going -q -b html docs docs/_build/html
	@echo 'Open docs/_build/html/index.html'

recording: $(DEV) ## Play the demo and draw the picture in the README anew, about a minute
	@.venv/bin/python docs/record_demo.py $(ARGS)

lab: $(DEV) ## Build a real Kubernetes control plane (Go 1.26; minutes the first time) and test it
	@tests/lab/build.sh >/dev/null
	$(PYTEST) tests/lab $(ARGS)

clean: ## Remove everything that make has made
	rm -rf .venv docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# Finds a suitable interpreter, and says what is missing where there is none.
define find_python
	python=; \
	for one in $${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do \
	    if "$$one" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$one; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	    echo "gpu-pruner needs Python 3.11 or newer; found: $$("$${PYTHON:-python3}" --version 2>&1)." >&2; \
	    echo "Install one, or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "$$python has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; \
	fi
endef

export PYTHON

$(RUN):
	@$(find_python); \
	wanted=$$("$$python" -c 'import sys; print(*sys.version_info[:2])'); \
	if [ "$$(.venv/bin/python -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null)" != "$$wanted" ]; then \
	    echo "Making .venv with $$("$$python" --version)" >&2; "$$python" -m venv --clear .venv; \
	fi
	@echo 'Installing gpu-pruner into .venv' >&2
	@$(PIP) install -q -c constraints.txt -e '.[controller]' >&2
	@rm -f .venv/.run-* && touch $@

$(DEV): $(RUN)
	@echo 'Installing the development tools into .venv' >&2
	@$(PIP) install -q -c constraints.txt -e '.[controller,postgres,plot,test,lint,docs]' >&2
	@rm -f .venv/.dev-* && touch $@
