# Each of `make demo` and `make test` does everything on a fresh machine: it makes its own virtual environment with the
# versions of constraints.txt, and a second run starts at once. Needs make, and Python 3.11 or newer as `python3` (or PYTHON=...).
PYTHON ?= python3
PIP_FLAGS ?= --quiet --disable-pip-version-check
JOBS ?= 2

.PHONY: demo test lint bench sweep clean

demo: .venv-demo/stamp
	.venv-demo/bin/python examples/alexnet.py

test: .venv-test/stamp
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy
	.venv-test/bin/python -m pytest -q -n $(JOBS) -m "not slow"

lint: .venv-test/stamp
	.venv-test/bin/ruff check .
	.venv-test/bin/mypy

# What takes gigabytes or many minutes: models over 2 GiB, every model at every opset, thousands of other random examples.
sweep: .venv-test/stamp
	.venv-test/bin/python -m pytest -q -m slow
	.venv-test/bin/python -m pytest -q --hypothesis-profile=sweep tests/target tests/test_save.py tests/test_structure.py

bench: .venv-bench/stamp
	.venv-bench/bin/python benchmarks/run.py $(BENCH)

.venv-demo/stamp: EXTRAS = runtime,zoo
.venv-test/stamp: EXTRAS = dev,zoo
.venv-bench/stamp: EXTRAS = bench

.venv-%/stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install $(PIP_FLAGS) -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

clean:
	rm -rf .venv-demo .venv-test .venv-bench build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
