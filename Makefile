# `make` lists the targets. All of them work on a fresh clone with Go and
# Python 3: what they need goes into ./.venv and ./build, nothing by hand.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON := .venv/bin/python
BINARY := build/sheaf
GO_SOURCES := $(shell find . -name '*.go' -not -path './build/*' -not -path './.venv/*' -not -path './bench/*')
TOOL := go tool -modfile=tools/go.mod

# demo, bench-peers
SCALE ?=
PEERS ?= golimit,flight-limit,sheaf
TABLES ?= lineitem,events,wide
# bench-scale: rows of the large table
ROWS ?= 100000000
# fuzz: how long each target runs
FUZZTIME ?= 30s
# soak: how long; a seed gives the same sequence of operations to each worker
SOAK_MINUTES ?= 30
SOAK_SEED ?= 1
# test-long: operations of each randomised model test
OPERATIONS ?= 200000
# bench: which Go benchmarks run
BENCH ?= .
# test-python: more arguments for pytest
PYTEST_ARGS ?=

.PHONY: help
help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-14s %s\n", $$1, $$2}'

.PHONY: build
build: $(BINARY) ## build the gateway and command line: build/sheaf

$(BINARY): $(GO_SOURCES) go.mod go.sum
	@mkdir -p build
	go build -o $(BINARY) ./cmd/sheaf

.PHONY: demo
demo: $(BINARY) .venv/.demo-ready ## load real data and run filtered reads with plain pyarrow (SCALE=1 for all of TPC-H SF1)
	$(PYTHON) demo/demo.py --binary $(BINARY) --work build/demo $(if $(SCALE),--scale $(SCALE))

.PHONY: test
test: lint test-go test-python ## linters, Go tests under the race detector, black-box tests

.PHONY: test-go
test-go: ## Go tests under the race detector
	go test -race -timeout 20m ./...

.PHONY: test-python
test-python: $(BINARY) .venv/.tests-ready ## black-box tests with the real pyarrow
	SHEAF_BIN=$(CURDIR)/$(BINARY) $(PYTHON) -m pytest tests $(PYTEST_ARGS)

.PHONY: lint
lint: .venv/.tests-ready ## gofmt, go vet, staticcheck, ruff
	@unformatted=$$(gofmt -l $(GO_SOURCES)); if [ -n "$$unformatted" ]; then \
		echo "not formatted (make fmt): $$unformatted"; exit 1; fi
	go vet ./...
	$(TOOL) staticcheck ./...
	$(PYTHON) -m ruff check

.PHONY: fmt
fmt: .venv/.tests-ready ## format Go, mend what ruff can
	gofmt -w $(GO_SOURCES)
	$(PYTHON) -m ruff check --fix

# Short runs, six of each (what benchstat needs), one package at a time: a few minutes for all.
GO_BENCH = go test -p 1 -run '^$$' -bench '$(BENCH)' -benchmem -benchtime 50ms -count 6 ./...

.PHONY: bench
bench: ## Go benchmarks (BENCH=regexp), compared with the recorded bench/baseline.txt
	@mkdir -p build
	$(GO_BENCH) | tee build/bench.txt
	$(TOOL) benchstat -ignore cpu -filter '.name:/$(subst Benchmark,,$(firstword $(subst /, ,$(BENCH))))/' bench/baseline.txt build/bench.txt

.PHONY: bench-baseline
bench-baseline: .venv/.bench-ready ## record bench/baseline.txt anew, on a quiet machine
	@mkdir -p build
	$(GO_BENCH) > build/bench.txt
	(cd bench && ../$(PYTHON) -m peers.machine) | sed 's/^/# /' | cat - build/bench.txt > bench/baseline.txt

.PHONY: bench-peers
bench-peers: $(BINARY) .venv/.bench-ready $(if $(filter all,$(PEERS)),.venv/.peers-ready) ## measure PEERS=a,b (or all: also into docs/benchmarks.md) on TABLES=lineitem,events,wide at SCALE=1 through the wire
	cd bench && SHEAF_BIN=$(CURDIR)/$(BINARY) ../$(PYTHON) -m peers run \
		--peers $(PEERS) --tables $(TABLES) --scale $(or $(SCALE),1) \
		$(if $(filter all,$(PEERS)),--page $(CURDIR)/docs/benchmarks.md)

.PHONY: bench-scale
bench-scale: $(BINARY) .venv/.bench-ready ## load ROWS=100000000 rows: lookups, scans, start-up, beside those of 1M rows
	cd bench && SHEAF_BIN=$(CURDIR)/$(BINARY) ../$(PYTHON) -m peers scale --rows $(ROWS)

.PHONY: bench-page
bench-page: .venv/.bench-ready ## write docs/benchmarks.md again from the results of bench-peers, bench-scale and soak
	cd bench && ../$(PYTHON) -m peers report --page $(CURDIR)/docs/benchmarks.md

.PHONY: soak
soak: $(BINARY) .venv/.tests-ready ## SOAK_MINUTES=30 of mixed work, restarts and kills against a model, memory and disk watched
	cd tests && SHEAF_BIN=$(CURDIR)/$(BINARY) ../$(PYTHON) -m soak --minutes $(SOAK_MINUTES) \
		--seed $(SOAK_SEED) --out $(or $(PEERS_HOME),$(CURDIR)/build/peers)/out

.PHONY: test-long
test-long: $(BINARY) .venv/.tests-ready ## the long forms of the randomised (OPERATIONS=n) and the durability tests
	SHEAF_SOAK=$(OPERATIONS) go test -timeout 3h -count 1 ./...
	SHEAF_SOAK=$(OPERATIONS) SHEAF_BIN=$(CURDIR)/$(BINARY) $(PYTHON) -m pytest tests --timeout 7200 $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME=30s
	tools/fuzz.sh $(FUZZTIME)

.PHONY: clean
clean: ## remove ./build and ./.venv
	rm -rf build .venv

.venv/.tests-ready: tests/requirements.txt demo/requirements.txt tools/venv.sh
	tools/venv.sh tests/requirements.txt demo/requirements.txt
	@touch $@

.venv/.demo-ready: demo/requirements.txt tools/venv.sh
	tools/venv.sh demo/requirements.txt
	@touch $@

.venv/.bench-ready: bench/requirements.txt tools/venv.sh
	tools/venv.sh bench/requirements.txt
	@touch $@

.venv/.peers-ready: bench/requirements-peers.txt bench/requirements.txt tools/venv.sh
	tools/venv.sh bench/requirements-peers.txt
	@touch $@
