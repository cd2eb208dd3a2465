# `make demo` and `make test` need nothing but Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo serve lint quick test units tests check-long bench schemas docs docs-serve docs-tables clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "banditto needs Python 3.11 or newer; say which with: make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -c 'import matplotlib.font_manager'  # which makes a list of the fonts the first time
	@touch $(STAMP)

demo: setup
	$(BIN)/banditto compare examples/demo.toml --jobs 2 --out demo-out
	@echo "Open demo-out/report.html. Then try your own arms:"
	@echo "  . $(VENV)/bin/activate"
	@echo "  banditto certify one-cut --gap 0.1 --means 0.6,0.5,0.5 --horizon 1e6 --rho 0.2"
	@echo "  banditto compare --gap 0.1 --means 0.6,0.5,0.5 --horizon 1e6 --rho 0.2 --policies one-cut,certified-elimination,ucb1"

# a service with an experiment to try: docs/service.md
serve: setup
	$(BIN)/banditto serve --demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# what one runs while one works; linters and types are checked beside the tests
quick: setup
	@$(MAKE) --no-print-directory -j2 lint units

test: setup
	@$(MAKE) --no-print-directory -j2 lint tests

units: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not long and not slow'

# three workers for two cores: some tests wait for servers and other processes
tests check-long: export PYTHONDONTWRITEBYTECODE =  # hundreds of processes start, and would compile every module anew
tests: setup
	$(BIN)/python -m pytest -n 3 --dist worksteal

check-long: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long

bench: setup
	$(BIN)/python benchmarks/run.py

# writes src/banditto/schemas from the types of what the verbs print
schemas: setup
	$(BIN)/python -m tools.schemas

# the site, without the network: open site/index.html
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --strict

# writes the measured tables and figures of docs/ again
docs-tables: setup
	$(BIN)/python docs/make.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-out dist site
