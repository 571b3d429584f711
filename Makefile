# Two commands do all the set-up: `make demo` shows the whole path with proof, `make test` checks everything.
# Needs Python 3.11 to 3.13 with venv and headers, a C compiler and make. No root rights, no Java, no broker, no server.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= build/demo
TARGET ?= directory
SETUP := VENV=$(VENV) deploy/make/setup.sh
NATIVE := $(shell find native -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi')
PINS := deploy/make/constraints.txt pyproject.toml deploy/make/setup.sh
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

# --- installing: one stamp per part, so the second time is quick ------------------------------------------------
$(VENV)/edge.stamp: $(PINS)
	@$(SETUP) edge

$(VENV)/native.stamp: $(VENV)/edge.stamp setup.py $(NATIVE)
	@$(SETUP) native

$(VENV)/cloud.stamp: $(VENV)/edge.stamp
	@$(SETUP) cloud

$(VENV)/dev.stamp: $(VENV)/edge.stamp | $(VENV)/cloud.stamp
	@$(SETUP) dev

.PHONY: edge native cloud dev
edge: $(VENV)/native.stamp ## install the part that runs on the board, and build it
native: $(VENV)/native.stamp ## build the compiled modules
cloud: $(VENV)/cloud.stamp ## install the part that runs in Spark
dev: $(VENV)/native.stamp $(VENV)/cloud.stamp $(VENV)/dev.stamp ## install everything

# --- the main job -----------------------------------------------------------------------------------------------
.PHONY: demo
demo: $(VENV)/native.stamp ## the whole path on this machine: three agents, an outage, kills, Spark, the proof; TARGET=sync-gateway, couchbase-lite
	@MAKE='$(MAKE)' VENV=$(VENV) OUT=$(OUT) TARGET=$(TARGET) deploy/make/demo.sh

# --- checks -----------------------------------------------------------------------------------------------------
# Side by side: the compiler beside the downloads, then a run for each folder and lint, four at a time, since many wait
# more than they work. The agent's are two runs, of the folders in BESIDE and of all others; the native ones are two, of
# those in WINDOWS and of all others; the cloud's are three, of those in TABLES, with a Spark of their own, of those in
# CLUSTERS, and of all others. What takes longest begins first.
# What one printed comes when it has ended; where one fails the others go on.
LONGEST := tables native beside agent cloud couchbase clusters windows system faults house deploy
SUITES := $(LONGEST) $(filter-out $(LONGEST),$(sort $(patsubst tests/%/,%,$(dir $(wildcard tests/*/test_*.py)))))
BESIDE := tests/agent/alerts tests/agent/identity tests/agent/plant tests/agent/state
PARTS_agent := tests/agent $(BESIDE:%=--ignore=%)
PARTS_beside := $(BESIDE)
WINDOWS := $(addprefix tests/native/,window windowing keyed joining rolling)
PARTS_native := tests/native $(WINDOWS:%=--ignore=%)
PARTS_windows := $(WINDOWS)
TABLES := tests/cloud/table tests/cloud/places tests/cloud/sql
CLUSTERS := tests/cloud/cluster tests/cloud/lines
PARTS_cloud := tests/cloud $(TABLES:%=--ignore=%) $(CLUSTERS:%=--ignore=%)
PARTS_tables := $(TABLES)
PARTS_clusters := $(CLUSTERS)
EACH_RUN := $(wordlist 1,4,$(SUITES:%=test-%)) lint $(wordlist 5,99,$(SUITES:%=test-%))
TWO := $(MAKE) --no-print-directory --jobs=2
FOUR := $(MAKE) --no-print-directory --jobs=4

.PHONY: test $(SUITES:%=test-%) lint format check-quick
test: ## everything: lint, types, every test; PYTEST="-k name" for some of them
	@$(TWO) --silent dev
ifeq ($(strip $(PYTEST)),)
	@echo 'Lint and a run of the tests for each folder, four at a time; what one printed comes when it has ended.'
	@$(FOUR) --keep-going $(if $(filter output-sync,$(.FEATURES)),--output-sync=line) $(EACH_RUN)
else
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest $(PYTEST)
endif

# The native tests work all the time: they give way to the others, which wait more than they work, and fill the gaps.
$(SUITES:%=test-%): test-%: dev
	$(if $(filter native windows,$*),nice -n 5 )$(BIN)/python -m pytest $(or $(PARTS_$*),tests/$*) $(PYTEST)

check-quick: dev ## the tests under ten seconds each, without Spark and without killing processes
	$(BIN)/python -m pytest -m 'not slow and not spark and not faults' $(PYTEST)

lint: dev ## ruff, mypy --strict, stubtest on the compiled modules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@VENV=$(VENV) deploy/make/stubtest.sh

.PHONY: site
site: dev ## the pages as a site into build/site, without a network; open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: checked sanitized
checked: dev ## tests/native over a build with bounds checks (minutes; not part of `make test`)
	@VENV=$(VENV) deploy/make/checked.sh bounds

sanitized: dev ## the engines' tests over a build with the address sanitizer (minutes)
	@VENV=$(VENV) deploy/make/checked.sh address

# What does less in `make test` says so by what it imports.
WHOLE = $(shell grep -rlE --include='test_*.py' '^from thorough import' tests/agent tests/cloud tests/faults tests/system | sort)
.PHONY: whole
whole: dev ## every case of the long checks: tests/native, hostile payloads, kills at every step, the cloud's worlds (an hour or more; nightly)
	SLUICEGATE_TESTS=whole $(BIN)/python -m pytest tests/native $(WHOLE) $(PYTEST)

SECONDS ?= 60
SEED ?= 1
.PHONY: fuzz
fuzz: dev ## random windows of four engines against the plain readings, for SECONDS from SEED (KIND of times; not part of `make test`)
	$(BIN)/python tests/native/fuzz_windows.py --seconds $(SECONDS) --seed $(SEED) $(if $(KIND),--kind $(KIND))

WINDOWS ?= 1000000
FLEETS ?= 10
.PHONY: exact
exact: dev ## WINDOWS of random devices and FLEETS through the cloud's merge against exact arithmetic, from SEED (nightly)
	$(BIN)/python tests/cloud/check_windows.py --windows $(WINDOWS) --fleets $(FLEETS) --seed $(SEED) --out bench/results/cloud-exact.json

N ?= 100
.PHONY: faults
faults: dev ## the agent with the brokers, sensors and clocks there are: N runs of SEED of kills, cuts and worse; RUN repeats one
	@deploy/make/parts.sh
	PYTHONPATH=tests/faults:tests/couchbase $(BIN)/python -m campaign --seed $(SEED) $(if $(RUN),--run $(RUN),--runs $(N)) $(if $(BROKER),--broker $(BROKER)) $(if $(IDENTITY),--identity $(IDENTITY)) $(if $(FAMILY),--family '$(FAMILY)') $(if $(WAY),--way $(WAY)) $(if $(PLANT),--plant '$(PLANT)')

# --- for boards: wheels and packages, cross-compiled (docs/how-to/install.md) -----------------------------------------
# armv7 has msgspec as source alone. One after another: each compiles with all cores. The releases have Python 3.11,
# 3.13 and 3.14; for 3.12, which none has, the headers are those of this machine's python3.12.
BOARDS ?= amd64 arm64 armhf
RELEASES ?= bookworm 3.12 trixie forky
BOARD ?= arm64
RELEASE ?= bookworm
EACH ?= 1
.PHONY: wheels deb test-aarch64 test-armv7 reproducible sbom
$(VENV)/wheels.stamp: $(VENV)/edge.stamp
	@$(SETUP) wheels

wheels: $(VENV)/wheels.stamp ## wheels for BOARDS and the Pythons of RELEASES into dist/ (minutes each; Debian's cross compilers)
	@for release in $(RELEASES); do for board in $(BOARDS); do VENV=$(VENV) deploy/wheels/wheel.sh $$release $$board; done; \
	case ' $(BOARDS) ' in *' armhf '*) VENV=$(VENV) deploy/wheels/wheel.sh $$release armhf msgspec;; esac; done

deb: $(VENV)/native.stamp ## a package for each of BOARDS from the wheels in dist/
	@for board in $(BOARDS); do VENV=$(VENV) deploy/debian/build.sh $$board; done

test-aarch64: $(VENV)/dev.stamp ## tests/native and tests/agent over the aarch64 wheel, under qemu: hours; every EACH-th test; PYTEST for others
	@VENV=$(VENV) EACH=$(EACH) deploy/wheels/emulated.sh arm64 $(PYTEST)

test-armv7: $(VENV)/dev.stamp ## the same over the armv7 wheel
	@VENV=$(VENV) EACH=$(EACH) deploy/wheels/emulated.sh armhf $(PYTEST)

reproducible: $(VENV)/wheels.stamp ## build the wheel of BOARD and RELEASE twice and compare the bytes (minutes)
	@VENV=$(VENV) deploy/wheels/reproducible.sh $(RELEASE) $(BOARD)

sbom: $(VENV)/wheels.stamp $(VENV)/native.stamp $(VENV)/cloud.stamp ## what the extras agent and cloud bring along, CycloneDX, into dist/
	@mkdir -p dist
	@for extra in agent cloud; do $(BIN)/python deploy/wheels/pins.py $$extra | $(BIN)/cyclonedx-py requirements - \
	--pyproject pyproject.toml --output-reproducible --of JSON -o dist/sluicegate-$$extra.cdx.json; done

format: dev ## rewrite the sources as ruff would have them
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: pins clean
pins: dev ## write down the versions now installed
	@$(SETUP) pins

clean: ## remove what was built (the environment too)
	rm -rf build dist $(VENV) native/*.egg-info *.egg-info
	find native -name '*.so' -delete
