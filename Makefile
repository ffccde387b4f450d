# Every target does its own set-up: it needs python3 (with venv), make and a C compiler, and `make test` a browser (.ci/browser).

N ?= 20000
SCALE ?= 1
SEED ?= $(SPARSELOOM_SEED)
ARGS ?=
python := .venv/bin/python
pytest := $(python) -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal

# The source beside this file wins over any other sparseloom, also in a copied checkout.
export PYTHONPATH := $(CURDIR)/src
export PYTHON
export SPARSELOOM_SEED := $(SEED)

# Tests start many processes. Bytecode is kept for them, but never beside the sources, also where Python is told to write none.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode
unexport PYTHONDONTWRITEBYTECODE

# Targets share .venv, so they run one after another.
.NOTPARALLEL:
.PHONY: help demo test lint docs gallery fuzz attack hostile metamorphic sanitize races conformance bench bench-schedules bench-results bench-products bench-functions clean core dev
.DEFAULT_GOAL := help

help:
	@echo "make demo              run a sampled product, a fused expression and SpMV, time them against SciPy, show the C"
	@echo "make test              run all tests in parallel (SEED=7 for other random data, ARGS='-k split' for some)"
	@echo "make lint              ruff, and mypy --strict"
	@echo "make docs              build the site into build/site"
	@echo "make fuzz N=20000      compare N random statements, and schedules of N/2, across the oracles; a new seed each time"
	@echo "make attack SCALE=1    thousands of hostile calls: damaged storage and files, signals, forks; a new seed each time (ARGS are passed on)"
	@echo "make hostile N=20000   N hostile requests to the explorer's server, under a new seed"
	@echo "make metamorphic       N=10000 programs, each compared with variants of itself that must give the same; a new seed each time"
	@echo "make sanitize SCALE=1  the fuzzers' kernels under ASan, UBSan, MSan or valgrind, and TSan, as far as they are here"
	@echo "make races SCALE=1     every parallel form of kernels 400 times with more threads than cores, and under ThreadSanitizer"
	@echo "make conformance       NumPy's, SciPy's and PyData/Sparse's own tests, computed again on tensors: the share that is the same"
	@echo "make bench             python -m benchmarks cpu: kernels beside hand-written C and other libraries (ARGS=--quick: two minutes)"
	@echo "make bench-schedules   measure what schedules gain, on one and two threads"
	@echo "make bench-results     measure sparse results beside SciPy, MKL and GraphBLAS (ARGS=--quick for a look)"
	@echo "make bench-products    products of small and large sparse matrices beside SciPy, and where sl.accelerate.scipy() gains"
	@echo "make bench-functions   array functions, parts, shapes and narrow products beside SciPy, PyData/Sparse and torch: one table, worst first"
	@echo "make gallery           time the gallery's programs beside what people use today, and write the times into the pages"
	@echo "make clean             remove .venv and everything else that was made"
	@echo "PYTHON=...             the Python to make .venv with; else the newest one found"

demo: core
	@$(python) -m sparseloom.cli.demo $(ARGS)

test: dev
	@.ci/browser > /dev/null
	@$(pytest) $(ARGS)

lint: dev
	@echo "ruff ..."
	@$(python) -m ruff check .
	@echo "mypy ..."
	@$(python) -m mypy

docs:
	@.ci/setup docs
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --strict --quiet
	@echo "The site is in build/site. To read it, and to search it, serve it:"
	@echo "  $(python) -m http.server 8000 --bind 127.0.0.1 --directory build/site"
	@echo "and open http://127.0.0.1:8000. The pages also open as files, from build/site/index.html, without the search."

gallery: dev
	@$(python) -m benchmarks.gallery $(ARGS)

fuzz: dev
	@SPARSELOOM_CASES=$(N) SPARSELOOM_SEED=$${SPARSELOOM_SEED:-$$($(python) -c 'import secrets; print(secrets.randbelow(10**9))')} \
		$(pytest) tests/laws/test_differential.py tests/laws/test_schedule_differential.py tests/laws/test_result_formats.py $(ARGS)

attack: dev
	@$(python) tests/attack/campaign.py --scale $(SCALE) $(if $(SEED),--seed $(SEED)) $(ARGS)

hostile: dev
	@SPARSELOOM_HOSTILE=$(N) SPARSELOOM_SEED=$${SPARSELOOM_SEED:-$$($(python) -c 'import secrets; print(secrets.randbelow(10**9))')} \
		$(python) -m pytest tests/explorer/test_hostile.py $(ARGS)

metamorphic: dev
	@$(python) tests/metamorphic/campaign.py $(if $(filter command line,$(origin N)),--count $(N)) $(if $(SEED),--seed $(SEED)) $(ARGS)

sanitize: dev
	@$(python) tests/sanitize/run.py --scale $(SCALE) $(if $(SEED),--seed $(SEED)) $(ARGS)

races: dev
	@$(python) tests/races/campaign.py --scale $(SCALE) $(if $(SEED),--seed $(SEED)) $(ARGS)

conformance: dev
	@$(python) tests/conformance/campaign.py $(ARGS)

bench:
	@.ci/setup bench
	@$(python) -m benchmarks cpu $(ARGS)

bench-schedules: core
	@$(python) -m benchmarks.schedules $(ARGS)

bench-results:
	@.ci/setup bench
	@$(python) -m benchmarks.results $(ARGS)

bench-products:
	@.ci/setup bench
	@$(python) -m benchmarks.products $(ARGS)

bench-functions:
	@.ci/setup bench
	@$(python) -m benchmarks.functions $(ARGS)

core:
	@.ci/setup core

dev:
	@.ci/setup dev

clean:
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	@find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
