# Each of `make demo` and `make test` does everything on a fresh machine: it makes its own virtual environment with the
# versions of constraints.txt, and a second run starts at once. Needs make, and Python 3.11 or newer as `python3` (or PYTHON=...).
PYTHON ?= python3
PIP_FLAGS ?= --quiet --disable-pip-version-check
JOBS ?= 2
# Another torch than that of constraints.txt, with what fits it: `make test TORCH=2.13`. The files in constraints/ are the choice.
TORCH ?=
FITTING = $(if $(TORCH),constraints/torch-$(TORCH).txt)
ifneq ($(FITTING),$(wildcard $(FITTING)))
$(error TORCH=$(TORCH): there is no $(FITTING), only $(wildcard constraints/torch-*.txt))
endif
TESTS = .venv-test$(TORCH)

.PHONY: demo test lint bench sweep clean

demo: .venv-demo/stamp
	.venv-demo/bin/python examples/alexnet.py

# The types are checked with the torch of constraints.txt alone: each release annotates other names.
test: $(if $(TORCH),,lint) $(TESTS)/stamp
	$(TESTS)/bin/python -m pytest -q -n $(JOBS) -m "not slow"

lint: $(TESTS)/stamp
	$(TESTS)/bin/ruff check .
	$(TESTS)/bin/mypy

# What takes gigabytes or many minutes: models over 2 GiB, every model at every opset, thousands of other random examples.
sweep: $(TESTS)/stamp
	$(TESTS)/bin/python -m pytest -q -m slow
	$(TESTS)/bin/python -m pytest -q --hypothesis-profile=sweep tests/target tests/test_save.py tests/test_structure.py

bench: .venv-bench/stamp
	.venv-bench/bin/python benchmarks/run.py $(BENCH)

.venv-demo/stamp: EXTRAS = runtime,zoo
$(TESTS)/stamp: EXTRAS = dev,zoo
.venv-bench/stamp: EXTRAS = bench

.venv-%/stamp: pyproject.toml constraints.txt $(FITTING)
	$(PYTHON) -m venv .venv-$*
	$(if $(TORCH),grep -vE '^(torch|torchvision|triton|nvidia-.*|cuda-.*)==' constraints.txt | cat - $(FITTING),cat constraints.txt) > .venv-$*/constraints.txt
	.venv-$*/bin/python -m pip install $(PIP_FLAGS) -c .venv-$*/constraints.txt -e ".[$(EXTRAS)]"
	touch $@

clean:
	rm -rf .venv-demo .venv-test* .venv-bench build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
