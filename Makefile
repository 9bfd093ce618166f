# Every target does its own set-up in .venv and nothing outside it. Needs make and a Python >= 3.11.

VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/package.stamp
TOOLS := $(VENV)/tools.stamp
SESSION ?= demo

# One test process a core; more than eight only wait for the disk.
TEST_PROCESSES ?= --numprocesses=auto --maxprocesses=8 --dist=worksteal

.DEFAULT_GOAL := help
.PHONY: help demo chat page screenshots test check clients bench format clean

help: ## Say what each target does
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F '|' '{ printf "%-15s %s\n", $$1, $$2 }'

demo: $(PACKAGE) ## Start a server with the demo agent, its chat page, and a chat here
	@.ci/clients page || echo "The demo goes on without its page."
	@$(BIN)/midstream demo

chat: $(PACKAGE) ## Join the demo's conversation from a second terminal
	@$(BIN)/midstream chat ws://127.0.0.1:8787 $(SESSION)

page: ## Build the chat page, which the server serves (needs Node 20 or newer with npm)
	@.ci/clients page && echo "The chat page is in clients/web/midstream/web/page."

screenshots: $(PACKAGE) ## Write pictures of the chat page's states to clients/web/screenshots (needs Chromium)
	@.ci/clients page
	@cd clients/web && MIDSTREAM_PYTHON=$(CURDIR)/$(BIN)/python npm run --silent screenshots

test: check clients ## Run the checks and then every test (ARGS="..." goes to pytest)
	@$(BIN)/python -m pytest $(TEST_PROCESSES) $(ARGS)

check: $(TOOLS) ## Check format, lint, types (mypy and pyright) and the direction of imports
	@$(BIN)/ruff format --check --quiet --diff
	@$(BIN)/ruff check --quiet
	@$(BIN)/lint-imports --no-logo --cache-dir $(VENV)/import-linter
	@$(BIN)/mypy --cache-dir $(VENV)/mypy
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

clients: $(PACKAGE) ## Check and test the TypeScript client and the page, where node and npm are there
	@MIDSTREAM_PYTHON=$(CURDIR)/$(BIN)/python .ci/clients test || [ $$? -eq 3 ]

bench: $(TOOLS) ## Measure everything, beside other servers where Node is there (10 minutes on an idle machine)
	@$(BIN)/python -m bench.everything

format: $(TOOLS) ## Format the code and repair what ruff can repair
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet

clean: ## Remove .venv, caches, build results and the demo's database
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -f demo.db demo.db-wal demo.db-shm demo.db-journal demo.db.lock
	rm -rf clients/node_modules clients/typescript/dist clients/web/midstream/web/page clients/web/screenshots
	rm -rf bench/peers/node_modules bench/.build bench/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed once, and again when pyproject.toml changed. After moving the clone: make clean.
$(PACKAGE): pyproject.toml
	@.ci/venv $(VENV)
	@echo "Installing midstream into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,tokens]'
	@touch $@

$(TOOLS): $(PACKAGE)
	@echo "Installing the checkers and the test tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --group bench
	@touch $@
