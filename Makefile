# Everything that this repository checks. `make check` is for the loop of edit and test, `make test` is what CI runs, and `make
# test-all` leaves nothing out; `make help` lists the steps.

SHELL := /bin/bash

# A test binary that runs longer than this prints its goroutines and fails. No test takes a tenth of it on two cores, so that
# a machine that is ten times as slow passes.
TEST_TIMEOUT ?= 30m
# How many tests of a package run at once, whatever the number of cores: most wait for a server, few compute.
PARALLEL ?= 16
# How many packages are tested at once, whatever the number of cores; empty: as many as there are.
PACKAGES ?= 4
# More flags for `go test` in `make race`, `short` and `test-matrix`, such as TESTFLAGS='-run Renew -v'.
TESTFLAGS ?=
# More flags for `go test` in `make bench`, such as BENCHFLAGS='-count 6 -cpu 1,16'.
BENCHFLAGS ?=
# More flags for the program of `make bench-peers`, such as PEERSFLAGS='-only free,names -rounds 3'.
PEERSFLAGS ?=

# More flags for `go test` in `make spec`; SPECFLAGS=-update writes the tables of reliability/spec/README.md.
SPECFLAGS ?=

# How long each fuzz target of `make fuzz` runs, such as 10m, or how many inputs it tries, such as 100000x.
FUZZTIME ?= 1m
# How many inputs it tries in `make race`.
FUZZINPUTS ?= 5000x

# What `make scale` simulates, such as SCALEFLAGS='-waiters 20000 -fair -frozen 0.001'.
SCALEFLAGS ?= -waiters 100000 -handovers 20000

# How long these run (torture: its clients work), and the seed of their choices; SEED=0: a random one, which they print.
torture: SECONDS ?= 600
simulate: SECONDS ?= 60
SEED ?= 0

# Cheap steps first; the first that fails ends the run.
check: STEPS := redis fmt vet lint short
test: STEPS := redis fmt tidy vet lint race
test-all: STEPS := redis fmt tidy vet lint apidiff rehearse spec race fuzz

# What runs a command in the modules of this repository: once for all, in a workspace of them, which builds each package once;
# or in one module after another, each with the dependencies of its own go.mod, as users build them.
MODULES ?= scripts/workspace.sh
test-all: export MODULES := scripts/modules.sh

# A go.work of the folders above would change what is built here.
export GOWORK := off
# Nothing here is a release: builds need no stamp, and fail on some checkouts when they ask Git for one. Without the paths of
# the source, a clone in another folder uses what was compiled for this one.
export GOFLAGS := $(strip $(shell go env GOFLAGS) -buildvcs=false -trimpath)

# Compilers, linkers and tests allocate much and keep little: with more memory they take a fifth less time.
check test test-all vet lint short race fuzz simulate scale: export GOGC ?= 400

.DEFAULT_GOAL := help
.PHONY: help check test test-all test-matrix promtool bench bench-peers torture simulate scale redis fmt tidy vet lint apidiff rehearse spec short race fuzz

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 13

check: ## Format, vet, lint, and test without the race detector, in fake time and on one server
test: ## All checks that CI makes, each strategy on each kind of server over one client (6 minutes)
test-all test-matrix: export HOLDFAST_TEST := full
test-all: ## The same over each client and module by module, a rehearsed release, the TLA+ specs, and fuzzing with coverage (for the night)
check test test-all:
	@scripts/lint.sh build &>/dev/null & \
	for step in $(STEPS); do \
		$(MAKE) --no-print-directory "$$step" || { echo "FAILED at step '$$step': \`make $$step\` runs it alone." >&2; exit 1; }; \
	done; \
	echo "==> $@: all passed ($(STEPS))"

redis: ## Install redis-server where it is missing and apt may be used
	@echo "==> redis: a server to test against"
	@scripts/redis.sh

fmt: ## Check that gofmt has nothing to change
	@echo "==> fmt: gofmt -s"
	@files=$$(gofmt -s -l .) || exit 1; \
	[[ -z "$$files" ]] || { printf 'Not formatted; run gofmt -s -w on:\n%s\n' "$$files" >&2; exit 1; }

tidy: ## Check that go.mod and go.sum are tidy
	@echo "==> tidy: go mod tidy -diff"
	@scripts/modules.sh go mod tidy -diff

vet: ## Run go vet
	@echo "==> vet: go vet"
	@$(MODULES) go vet ./...

lint: ## Run golangci-lint at its pinned version (the first run builds it, about 3 minutes)
	@echo "==> lint: golangci-lint"
	@MODULES=$(MODULES) scripts/lint.sh

apidiff: ## Show what the exported names gained and lost since the latest tagged release
	@echo "==> apidiff: exported names since the latest release"
	@scripts/apidiff.sh

rehearse: ## Prepare a release in a clone, and check that its modules are found by their tags
	@echo "==> rehearse: a release"
	@scripts/release.sh rehearse

spec: ## Check the TLA+ specs of reliability/spec with TLC (2 minutes; installs Java and TLC where they are missing)
	@echo "==> spec: the TLA+ specs"
	@scripts/spec.sh $(SPECFLAGS)

# What all test runs have in common. `make vet` has vetted the tests.
GOTEST = go test -vet=off $(if $(PACKAGES),-p $(PACKAGES)) -parallel $(PARALLEL) -timeout $(TEST_TIMEOUT)

short: ## Run the tests with -short, which leaves out clusters, Sentinels, quorums of real servers, and torture
	@echo "==> short: go test -short"
	@$(MODULES) $(GOTEST) -short $(TESTFLAGS) ./...

# A program with the race detector sleeps for a second when it exits, in case that others still run: here none may.
race: export GORACE := atexit_sleep_ms=100 $(GORACE)
race: ## Run all tests with the race detector, in random order, and try FUZZINPUTS=5000x for each fuzz target
	@echo "==> race: go test -race -shuffle=on"
	@set -- $$(go env CC); scripts/need.sh "$$1" gcc libc6-dev
	@CGO_ENABLED=1 $(MODULES) $(GOTEST) -race -shuffle=on -exec "'$(CURDIR)/scripts/fuzzed.sh' $(FUZZINPUTS)" $(TESTFLAGS) ./...

fuzz: ## Run each fuzz target for FUZZTIME=1m, guided by coverage
	@echo "==> fuzz: each target for $(FUZZTIME)"
	@scripts/modules.sh "$(CURDIR)/scripts/fuzz.sh" $(FUZZTIME)

test-matrix: ## Run the tests on each server of docs/versions.md (needs apt-get and pip)
	@echo "==> test-matrix: one server after another"
	@TESTFLAGS="-parallel $(PARALLEL) -timeout $(TEST_TIMEOUT) $(TESTFLAGS)" scripts/matrix.sh

promtool: ## Test the alert rules with Prometheus' own promtool (PROMTOOL=promtool; else it is built, for minutes)
	@cd docs/grafana && version=$$(go list -m -f '{{.Version}}' github.com/prometheus/prometheus) && \
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && tool="$(PROMTOOL)" && \
	if [[ -z "$$tool" ]]; then tool="$$dir/promtool" && (cd "$$dir" && go mod init promtool && \
		go get github.com/prometheus/prometheus/cmd/promtool@$$version && \
		go build -o promtool github.com/prometheus/prometheus/cmd/promtool); fi && \
	"$$tool" check rules alerts.yaml && "$$tool" test rules alerts_test.yaml

bench: redis ## Print the benchmarks, each beside the bare client
	@echo "==> bench: Holdfast beside the bare client"
	@cd bench && go test -run '^$$' -bench . -benchmem $(BENCHFLAGS) ./...

bench-peers: redis ## Compare with other lock libraries and write docs/performance.md and its figures (15 minutes)
	@echo "==> bench-peers: Holdfast beside other lock libraries"
	@bin=$$(mktemp) && trap 'rm -f "$$bin"' EXIT && (cd bench/peers && go build -o "$$bin" .) && \
		"$$bin" -out docs/performance -page docs/performance.md $(PEERSFLAGS)

torture: redis ## Torture locks on real servers for SECONDS=600 of work [SEED=n], and check every answer
	@echo "==> torture: real servers, processes and faults for $(SECONDS) s"
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && (cd reliability && go build -o "$$dir" ./torture) && \
		"$$dir/torture" -seconds $(SECONDS) -seed $(SEED)

simulate: ## Run locks through schedules of faults in fake time (SECONDS=60, SEED=n, SCHEDULES=n, REPEAT=n)
	@bin=$$(mktemp) && trap 'rm -f "$$bin"' EXIT && cd reliability && go test -c -o "$$bin" ./simulate && \
	"$$bin" -seconds $(if $(SCHEDULES),0,$(SECONDS)) -seed $(SEED) -schedules $(or $(SCHEDULES),0) -repeat $(or $(REPEAT),1)

scale: ## Let 100,000 processes wait for one lock in fake time (SCALEFLAGS=...; 2 minutes)
	@bin=$$(mktemp) && trap 'rm -f "$$bin"' EXIT && cd reliability && go test -c -o "$$bin" ./scale && \
	"$$bin" -test.run '^TestScale$$' $(SCALEFLAGS)
