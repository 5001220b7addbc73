# Everything below sets itself up in .venv on first use; it needs Python 3.11 or later and a network.

PYTHON := $(shell for p in python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/installed
# Every worker of the tests computes references: with threads of their own, those would wait for each other's cores.
QUIET := OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE

.PHONY: demo test test-changed planted lint bench docs site dist clean

demo: $(READY)  ## every op on this machine, checked and timed beside PyTorch; then a small language model, trained with both: two minutes
	$(BIN)/baracuda-kernels demo
	$(BIN)/python examples/language_model/train.py --short

test: lint  ## linters, types, tests; with SLOW=1 also those that take many minutes
	$(QUIET) $(BIN)/python -m pytest -n auto --dist worksteal $(if $(SLOW),--slow)

test-changed: $(READY)  ## the tests that can be touched by what differs from BASE, by default the last commit
	$(QUIET) $(BIN)/python tests/tools/changed.py $(BASE) -- -n auto --dist worksteal -q

planted: $(READY)  ## whether the tests find faults that are planted one at a time
	$(QUIET) $(BIN)/python tests/tools/planted.py $(if $(SLOW),--slow)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)  ## the whole bench, with every peer that is installed; results go to bench/out/
	$(BIN)/python bench/run.py

docs: $(READY)  ## the generated parts of README.md and docs/
	$(BIN)/python docs/generate.py

site: .venv/installed-site  ## the documentation as a site, in site/; fails for a link or an anchor that leads nowhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(READY)  ## the wheel and the source distribution, in dist/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, as python3.11 or python3"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/installed-site: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf .venv dist site bench/out .pytest_cache .mypy_cache .ruff_cache .hypothesis
