# Bare `make` prints the targets. A continuous-integration machine runs .ci/run,
# which calls the same targets as the README.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The linter is pinned: a newer one is a change like any other.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)

# One package's tests may take this long; all of them take a few minutes on two cores.
TEST_TIMEOUT := 10m
# More for `go test` or the torture program, e.g. make test ARGS='-run Lease -count 10'.
ARGS :=

SIM := ./scheduler/schedtest
SEEDS := 2000
SAME := 40

# Modules of their own, so that databases and peers are nobody's dependency; ./... does not reach them.
EXAMPLE := docs/examples/moverows
GUARDS := locking/fence/sqltest
PEERS := cmd/peerbench

##@ Try it

.PHONY: help
help: ## print this
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Built and then started, because `go run` answers 1 to Ctrl-C whatever the program
# answers. On a terminal the program gets a process group of its own, so that Ctrl-C
# reaches it and not make, which would end with an error too; hence also the line's tail:
# without a command to follow, bash would start the program in its own place.
.PHONY: run
run: ## three nodes and an embedded Redis in one process, with the jobs of config.yaml
	@go build -buildvcs=false -o bin/ ./cmd/escapement
	@if [ -t 0 ]; then set -m; fi; bin/escapement dev $(ARGS); exit $$?

.PHONY: build
build: ## the program, in bin/
	go build -trimpath -o bin/ ./cmd/escapement

##@ Check it

.PHONY: test
test: redis-server ## every test with the race detector, each benchmark once, and the simulation
	@mkdir -p .bin
	go test -race -p 3 -timeout $(TEST_TIMEOUT) -v $(ARGS) ./... | awk -f .ci/tests.awk
	@$(MAKE) --no-print-directory without-race bench-once sim sim-same guards example

# They count, play many seeds, or compare pure functions with slow twins: the race detector would make them take ten times
# as long, and leaves them out (//go:build !race). A test in docs holds this list against the files.
WITHOUT_RACE := 'TestMutants$$|TestShardMutants|TestFailoverMutants|TestLateTicksAreTakenInTurns|TestScriptCallsPerTick|TestChurn|TestOldNodesAreNotAsked|TestCutOffRuns|TestControlWithout|TestAuditFindsCorruption|TestEveryClockChange|TestAssign(Balance|MovesLittle|OneKeyMore)'

.PHONY: without-race
without-race: redis-server ## the tests that run without the race detector only
	go test -count=1 -timeout $(TEST_TIMEOUT) -v -run $(WITHOUT_RACE) ./jobs ./sharding ./scheduler ./scheduler/ledger $(SIM) | awk -f .ci/tests.awk
	go test -count=1 -timeout $(TEST_TIMEOUT) -v $(SIM)/explore | awk -f .ci/tests.awk

# A seed that fails prints how to replay it alone. More seeds: make sim SEEDS=20000.
.PHONY: sim
sim: ## a simulated cluster under random faults, SEEDS of them, a quarter as many with all policies, a tenth of failovers
	go test -count=1 -timeout 3h -run 'TestSim$$' -v $(SIM) -sim.seeds $(SEEDS) $(ARGS) | grep -v '^=== '
	go test -count=1 -timeout 3h -run 'TestPolicies$$' -v $(SIM) -policies.seeds $$(( $(SEEDS) / 4 )) $(ARGS) | grep -v '^=== '
	go test -count=1 -timeout 3h -run 'TestFailover$$' -v $(SIM) -failover.seeds $$(( $(SEEDS) / 10 )) $(ARGS) | grep -v '^=== '

# The race detector and the number of cores change how goroutines interleave. Nothing of that may show.
.PHONY: sim-same
sim-same: ## the same seeds three times, with other cores and the race detector: the same histories
	@mkdir -p .bin
	GOMAXPROCS=1 go test -count=1 -run 'TestSim$$' $(SIM) -sim.seeds $(SAME) -sim.digests $(CURDIR)/.bin/one.txt
	GOMAXPROCS=8 go test -count=1 -run 'TestSim$$' $(SIM) -sim.seeds $(SAME) -sim.digests $(CURDIR)/.bin/eight.txt
	go test -race -count=1 -run 'TestSim$$' $(SIM) -sim.seeds $(SAME) -sim.digests $(CURDIR)/.bin/race.txt
	@cmp .bin/one.txt .bin/eight.txt && cmp .bin/one.txt .bin/race.txt && echo "$(SAME) seeds, 3 times each: the same histories"

# Without the race detector: it would compile SQLite once more, and the nodes are processes of their own.
.PHONY: example
example: redis-server ## three nodes move a table by shards, one is killed; fetches a database driver, 40 MB
	cd $(EXAMPLE) && go test -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk

# With the race detector it would compile SQLite once more; the tests start servers and processes of their own.
.PHONY: guards
guards: redis-server postgresql ## the SQL guards of locking/fence against PostgreSQL and SQLite
	cd $(GUARDS) && go test -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk

.PHONY: mutants
mutants: ## broken versions of the system, each of which a named check must catch
	go test -count=1 -timeout 30m -tags mutants -run 'TestMutants$$' -v $(SIM) $(ARGS) | grep -v '^=== '

.PHONY: lint
lint: fmt-check vet golangci pruning ## formatting, go vet, golangci-lint and what the linker must be able to prune

.PHONY: bench
bench: ## every benchmark, with allocations
	go test -run '^$$' -bench . -benchmem $(ARGS) ./...

.PHONY: bench-once
bench-once: redis-server ## every benchmark once, so that none rots
	go test -run '^$$' -bench . -benchtime 1x -timeout $(TEST_TIMEOUT) ./... | awk -f .ci/benchmarks.awk

# Its module is not in tidy-check: a test of one of the peers wants a version that cannot be had everywhere.
.PHONY: peers
peers: redis-server ## locks beside those of other libraries, in one run
	cd $(PEERS) && go run . $(ARGS)

.PHONY: torture
torture: redis-server ## real processes, a real Redis, real faults
	go run ./cmd/torture $(ARGS)

.PHONY: torture-short
torture-short: redis-server ## the same for a minute or two
	go run ./cmd/torture -short $(ARGS)

.PHONY: tidy-check
tidy-check: ## go.mod lists what is used, go.sum what was downloaded
	go mod tidy -diff
	go mod verify
	for m in $(EXAMPLE) $(GUARDS); do (cd $$m && go mod tidy -diff); done

##@ Mend it

.PHONY: fmt
fmt: ## format every Go file
	gofmt -w .

# --- the parts of the targets above -------------------------------------------

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt mends it):"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet:
	go vet ./...
	for m in $(EXAMPLE) $(GUARDS) $(PEERS); do (cd $$m && go vet ./...); done

.PHONY: golangci
golangci: $(GOLANGCI)
	$(GOLANGCI) run ./...
	for m in $(EXAMPLE) $(GUARDS) $(PEERS); do (cd $$m && $(CURDIR)/$(GOLANGCI) run ./...); done

$(GOLANGCI):
	GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv .bin/golangci-lint $@

# One reachable reflect.MethodByName with a name unknown at compile time (text/template
# has one, and so have many flag and validation libraries) makes the linker keep every
# method of go-redis: 7 to 14 MB. An empty dump would prove nothing, so its size counts.
.PHONY: pruning
pruning:
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	go build -buildvcs=false -ldflags=-dumpdep -o "$$dir/escapement" ./cmd/escapement 2>"$$dir/deps" || { tail -n 20 "$$dir/deps"; exit 1; }; \
	if [ "$$(wc -l <"$$dir/deps")" -lt 1000 ]; then echo "the linker printed no dependencies: this check looked at nothing"; exit 1; fi; \
	if grep '<ReflectMethod>' "$$dir/deps"; then echo "the functions above keep the linker from pruning methods"; exit 1; fi; \
	echo "linker: 0 uses of <ReflectMethod>"

.PHONY: redis-server
redis-server:
	@if command -v redis-server >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null && apt-get install -y -qq --no-install-recommends redis-server </dev/null; \
	else \
		echo "redis-server is missing: install it (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis) and run this again" >&2; exit 1; \
	fi

# Debian keeps its programs out of PATH.
.PHONY: postgresql
postgresql:
	@if command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null && apt-get install -y -qq --no-install-recommends postgresql </dev/null; \
	else \
		echo "PostgreSQL's server is missing: install it (Debian, Ubuntu: sudo apt-get install postgresql; macOS: brew install postgresql) and run this again" >&2; exit 1; \
	fi
