# Bare `make` prints the targets. A continuous-integration machine runs .ci/run,
# which calls the same targets as the README.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The linter is pinned: a newer one is a change like any other.
GOLANGCI_VERSION := v2.15.0
GOLANGCI := .bin/golangci-lint-$(GOLANGCI_VERSION)

# One package's tests may take this long: a bound that only a standstill reaches, on a machine that does other things too.
TEST_TIMEOUT := 30m
# Tests on real servers wait more than they calculate: so many of a package at once.
WAITING := -parallel 8
# More for `go test` or a program, e.g. make test ARGS='-run Lease -count 10'.
ARGS :=

# Packages whose tests play Redis and time inside the process, or only calculate. They run without the race detector, which makes the
# interpreter of Redis' scripts seven times as slow; make prove runs them with it. The longest begins.
SIMULATED := ./scheduler ./scheduler/schedtest ./scheduler/internal/ledger ./scheduler/move ./scheduler/notify ./locking/redlock \
	./scheduler/internal/model ./scheduler/internal/audit ./scheduler/internal/roster ./scheduler/internal/lane \
	./scheduler/internal/failover ./scheduler/internal/cluster ./jobs
# This one has tests of both kinds. These are played inside the process.
LOCKS := ./locking/redislock
SIMULATED_LOCKS := 'Histories|Trace|Embedded|Shares|FullQueue|DeadWaiters|OutlivesALongHold'
# Tests that take long in real time, and promise nothing that a shorter one does not. They are in make prove.
LONG := 'TestThreeNodes$$'

SIM := ./scheduler/schedtest
# How many seeds make prove plays of TestSim; of the other simulations it plays a share.
SEEDS := 20000
SAME := 60

# Many short-lived objects in a small heap: fewer collections save a fifth to a third of a simulation's time, and cost some memory.
RARE_GC := -exec 'env GOGC=800 GOMEMLIMIT=500MiB'

# Modules of their own, so that databases and peers are nobody's dependency; ./... does not reach them. Two of them use SQLite,
# which takes a minute to compile: both require the same versions of it and of what it needs.
EXAMPLE := docs/examples/moverows
TRACED := docs/examples/otel
GUARDS := locking/fence/sqltest
# Locks in other stores, an adapter, and the program that has all drivers.
STORES := locking/zklock locking/etcdlock locking/pglock locking/gocronlock cmd/escapement-full
# Alert rules and dashboard on a real Prometheus. A module of its own, so that ./... needs none.
ALERTS := scheduler/metrics/promtest
# The pages of the web console, in TypeScript. What is built from them is committed: only who changes them needs npm.
WEB := scheduler/console/web
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
	@echo "building bin/escapement; the first time takes one to two minutes" >&2
	@go build -buildvcs=false -o bin/ ./cmd/escapement
	@if [ -t 0 ]; then set -m; fi; bin/escapement dev --redis "" $(ARGS); exit $$?

.PHONY: build
build: ## the program, in bin/
	go build -trimpath -o bin/ ./cmd/escapement

##@ Check it

# Two lanes at once. Tests of the first one mostly wait, so that it comes first to the processor; the second one is a little nice: beside
# other programs that want every core it still gets a quarter. What fails is named again at the end.
WAITING_LANE := race guards example sim-locks
CALCULATING_LANE := sim
# Nobody debugs what a check builds: without DWARF a tenth of the time that it compiles and links is saved. What go test would
# vet, lint vets.
PLAIN := GOFLAGS="-vet=off -ldflags=-w -gcflags=all=-dwarf=false"
LANES = @mkdir -p .bin; rm -f .bin/failed; export $(PLAIN); \
	$(MAKE) --no-print-directory -j2 -Otarget waiting-lane calculating-lane WAITING_LANE="$(WAITING_LANE)" CALCULATING_LANE="$(CALCULATING_LANE)" || { cat .bin/failed; exit 1; }; \
	echo "in make prove only: $(LONG), more seeds, simulations with the race detector, other stores, mutants, long torture"

.PHONY: test
test: redis-server postgresql ## every promise: real servers with the race detector, simulated clusters without
	$(LANES)

.PHONY: check
check: CALCULATING_LANE := lint sim
check: WAITING_LANE := race guards example sim-locks torture-short
check: redis-server postgresql ## what a continuous-integration machine runs: lint, test, a short torture
	$(LANES)

.PHONY: prove
prove: redis-server postgresql ## the long list, hours: SEEDS simulated clusters, the race detector, all mutants, long torture
	$(MAKE) --no-print-directory test
	$(MAKE) --no-print-directory long race-simulated bench-once lint-modules
	$(MAKE) --no-print-directory seeds T=TestSim N=$(SEEDS)
	$(MAKE) --no-print-directory seeds T=TestPolicies N=$$(( $(SEEDS) / 4 ))
	$(MAKE) --no-print-directory seeds T=TestStored N=$$(( $(SEEDS) / 4 ))
	$(MAKE) --no-print-directory seeds T=TestFailover N=$$(( $(SEEDS) / 10 ))
	$(MAKE) --no-print-directory seeds T=TestAhead N=$$(( $(SEEDS) / 20 ))
	$(MAKE) --no-print-directory seeds T=TestFlushes N=$$(( $(SEEDS) / 20 ))
	$(MAKE) --no-print-directory seeds T=TestEmptied N=$$(( $(SEEDS) / 20 ))
	$(MAKE) --no-print-directory seeds T=TestMoves N=$$(( $(SEEDS) / 40 ))
	$(MAKE) --no-print-directory seeds T=TestChurn N=$$(( $(SEEDS) / 200 ))
	$(MAKE) --no-print-directory sim-same stores alerts mutants torture

.PHONY: waiting-lane calculating-lane
waiting-lane: NICE :=
waiting-lane: LANE := $(WAITING_LANE)
calculating-lane: NICE := nice -n 5
calculating-lane: LANE := $(CALCULATING_LANE)
waiting-lane calculating-lane:
	@for target in $(LANE); do \
		begun=$$SECONDS; \
		$(NICE) $(MAKE) --no-print-directory $$target || { echo "make $$target failed: what it printed stands above" | tee -a .bin/failed; exit 1; }; \
		echo "make $$target: $$((SECONDS - begun)) s"; \
	done

# All is compiled before anything runs: tests that wait for real servers are to have the processor.
.PHONY: race
race: redis-server
	packages=$$(go list ./... | grep -vxF -f <(go list $(SIMULATED) $(LOCKS))); \
	go list -race -deps -test -export $$packages $(LOCKS) >/dev/null; \
	go test -race -vet=off -p 3 $(WAITING) -timeout $(TEST_TIMEOUT) -skip $(LONG) -v $(ARGS) $$packages | awk -f .ci/tests.awk
	go test -race -vet=off $(WAITING) -timeout $(TEST_TIMEOUT) -skip $(SIMULATED_LOCKS) -v $(ARGS) $(LOCKS) | awk -f .ci/tests.awk

# A seed that fails prints how to replay it alone.
.PHONY: sim
sim: redis-server ## all that is simulated: clusters under random faults, all scenarios, every state of the model
	go test -vet=off -p 3 -timeout $(TEST_TIMEOUT) $(RARE_GC) -v $(ARGS) $(SIMULATED) | awk -f .ci/tests.awk

.PHONY: sim-locks
sim-locks: redis-server
	go test -vet=off -timeout $(TEST_TIMEOUT) $(RARE_GC) -run $(SIMULATED_LOCKS) -v $(ARGS) $(LOCKS) | awk -f .ci/tests.awk

# What make test leaves out.
.PHONY: long
long: redis-server
	go test -count=1 -timeout $(TEST_TIMEOUT) -run $(LONG) -v ./... | grep -v 'no test' | awk -f .ci/tests.awk

.PHONY: race-simulated
race-simulated: redis-server
	go test -race -count=1 -p 1 -timeout 3h -v $(SIMULATED) | awk -f .ci/tests.awk
	go test -race -count=1 -timeout 1h -run $(SIMULATED_LOCKS) -v $(LOCKS) | awk -f .ci/tests.awk

# As many of one kind as it takes: make seeds T=TestPolicies N=1000.
T := TestSim
N := 2000
.PHONY: seeds
seeds: ## N simulated clusters of one kind, T
	go test -count=1 -timeout 6h $(RARE_GC) -run '$(T)$$' -v $(SIM) -seeds $(N) $(ARGS) | grep -Ev '^(=== | *--- PASS)'

# The race detector and the number of cores change how goroutines interleave. Nothing of that may show.
.PHONY: sim-same
sim-same: ## the same seeds three times, with other cores and the race detector: the same histories
	@mkdir -p .bin
	GOMAXPROCS=1 go test -count=1 $(RARE_GC) -run 'TestSim$$' $(SIM) -seeds $(SAME) -digests $(CURDIR)/.bin/one.txt
	GOMAXPROCS=8 go test -count=1 $(RARE_GC) -run 'TestSim$$' $(SIM) -seeds $(SAME) -digests $(CURDIR)/.bin/eight.txt
	go test -race -count=1 $(RARE_GC) -run 'TestSim$$' $(SIM) -seeds $(SAME) -digests $(CURDIR)/.bin/race.txt
	@cmp .bin/one.txt .bin/eight.txt && cmp .bin/one.txt .bin/race.txt && echo "$(SAME) seeds, 3 times each: the same histories"

# Without the race detector: it would compile SQLite once more, and the nodes are processes of their own.
.PHONY: example
example: redis-server ## three nodes move a table by shards, one is killed; runs as spans; fetches a database driver, 40 MB
	for m in $(EXAMPLE) $(TRACED); do (cd $$m && go test -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk); done

# With the race detector it would compile SQLite once more; the tests start servers and processes of their own.
.PHONY: guards
guards: redis-server postgresql ## the SQL guards of locking/fence against PostgreSQL and SQLite
	cd $(GUARDS) && go test -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk

# Not in check: three servers of each kind, elections and 10,000 acquisitions take some ten minutes.
.PHONY: stores
stores: redis-server postgresql store-servers $(GOLANGCI) ## locks in ZooKeeper, etcd and PostgreSQL, and their linters, ten minutes
	for m in $(STORES); do (cd $$m && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./... && go mod tidy -diff && go test -race -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk); done

# Not in check: it needs Prometheus, and takes five minutes, most of them waiting.
.PHONY: alerts
alerts: redis-server prometheus $(GOLANGCI) ## alert rules and dashboard on a real Prometheus that scrapes real nodes, five minutes
	cd $(ALERTS) && $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./... && go mod tidy -diff && go test -count=1 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk

# A guard is one line that a promise rests on, marked where it stands; cmd/mutants/guards.txt names the tests.
.PHONY: mutants
mutants: redis-server postgresql store-servers ## each marked guard is removed in turn, and a named test must fail
	go run ./cmd/mutants -p 2 $(ARGS)

.PHONY: lint
lint: fmt-check golangci pruning ## formatting, golangci-lint with what go vet checks, and what the linker must be able to prune

.PHONY: lint-modules
lint-modules: $(GOLANGCI) ## the linter for the modules that are nobody's dependency
	for m in $(EXAMPLE) $(TRACED) $(GUARDS) $(PEERS); do (cd $$m && $(GC) $(CURDIR)/$(GOLANGCI) run --allow-parallel-runners ./...); done

.PHONY: bench
bench: ## every benchmark, with allocations
	go test -run '^$$' -bench . -benchmem $(ARGS) ./...

.PHONY: bench-once
bench-once: redis-server ## every benchmark once, so that none rots
	packages=$$(go list -f '{{.Dir}}' ./... | while read -r dir; do ! grep -qs '^func Benchmark' "$$dir"/*_test.go || echo "$$dir"; done); \
	go test -run '^$$' -bench . -benchtime 1x -timeout $(TEST_TIMEOUT) $$packages | awk -f .ci/benchmarks.awk

# Its module is not in tidy-check: a test of one of the peers wants a version that cannot be had everywhere.
.PHONY: peers
peers: redis-server ## locks beside those of other libraries, in one run
	cd $(PEERS) && go run . locks $(ARGS)

.PHONY: peers-test
peers-test: redis-server
	cd $(PEERS) && go test -count=1 -parallel 8 -timeout $(TEST_TIMEOUT) -v ./... | awk -f $(CURDIR)/.ci/tests.awk

.PHONY: bench-scale
bench-scale: redis-server ## a namespace of 100,000 jobs: starts, memory, lists; a few minutes
	cd $(PEERS) && go run . scale $(ARGS)

# A part of it: make bench-peers ARGS='-who ours,cron -jobs 1,1000 -for 10s -rounds 1'.
.PHONY: bench-peers
bench-peers: redis-server ## ticks beside those of other schedulers, in one run, a quarter of an hour
	cd $(PEERS) && go run . ticks $(ARGS)

.PHONY: peers-docs
peers-docs: redis-server ## the same, and docs/benchmarks.md anew
	cd $(PEERS) && go run . ticks -docs ../../docs -patience 15m $(ARGS)

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
	for m in $(EXAMPLE) $(TRACED) $(GUARDS); do (cd $$m && go mod tidy -diff); done

##@ Ship it

DEPLOY := docs/deploy
TEMPLATE := helm template escapement $(DEPLOY)/helm/escapement --kube-version 1.32.0

.PHONY: image
image: ## the images escapement and escapement:shell; needs a Docker engine
	@docker info >/dev/null 2>&1 || { echo "no Docker engine answers here: start one, or build the program alone with make build" >&2; exit 1; }
	docker build -f $(DEPLOY)/Dockerfile -t escapement .
	docker build -f $(DEPLOY)/Dockerfile -t escapement:shell --target shell .

.PHONY: manifests
manifests: ## docs/deploy/kubernetes anew from the chart; needs helm
	@command -v helm >/dev/null || { echo "helm is missing: install it and run this again" >&2; exit 1; }
	{ sed '/^---$$/,$$d' $(DEPLOY)/kubernetes/escapement.yaml; $(TEMPLATE) | grep -v '^# Source:'; } >$(DEPLOY)/kubernetes/escapement.yaml.new
	mv $(DEPLOY)/kubernetes/escapement.yaml.new $(DEPLOY)/kubernetes/escapement.yaml

# Needs nothing: a tool that is missing is named. The tests below cmd/internal compare the same files with the program.
.PHONY: deploy-check
deploy-check: ## the files of docs/deploy, by those tools that this machine has
	@missing=""; has() { command -v "$$1" >/dev/null || { missing="$$missing $$1"; return 1; }; }; \
	if has helm; then \
		helm lint --strict --kube-version 1.32.0 $(DEPLOY)/helm/escapement; \
		diff <($(TEMPLATE) | grep -v '^# Source:') <(sed -n '/^---$$/,$$p' $(DEPLOY)/kubernetes/escapement.yaml) || { echo "kubernetes/escapement.yaml is not what the chart gives: make manifests"; exit 1; }; \
	fi; \
	if has promtool; then promtool check config $(DEPLOY)/prometheus/prometheus.yaml; fi; \
	if has goreleaser; then goreleaser check; fi; \
	if has systemd-analyze; then \
		dir=$$(mktemp -d); sed 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' $(DEPLOY)/systemd/escapement.service >$$dir/escapement.service; \
		systemd-analyze verify $$dir/escapement.service; rm -r "$$dir"; echo "escapement.service: verified"; \
	fi; \
	echo "not here, so not asked:$${missing:- none}"

# Where npm is missing, nothing is compared, and that is said.
.PHONY: console-check
console-check: ## the console's committed pages are what npm builds from their sources
	@if ! command -v npm >/dev/null; then echo "!!! make console-check compared NOTHING: npm is missing (Debian: apt-get install npm)" >&2; exit 0; fi; \
	dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
	mkdir -p "$$dir"/scheduler/ops/http "$$dir"/scheduler/console; \
	cp scheduler/ops/http/openapi.json "$$dir"/scheduler/ops/http/; \
	tar -c --exclude node_modules -C scheduler/console web | tar -x -C "$$dir"/scheduler/console; \
	cd "$$dir"/$(WEB) && npm ci --no-audit --no-fund --silent && npm run --silent build >/dev/null; \
	cd $(CURDIR); diff -r scheduler/console/dist "$$dir"/scheduler/console/dist && diff $(WEB)/src/types.ts "$$dir"/$(WEB)/src/types.ts || \
		{ echo "the console's pages are not what is built from their sources: make console"; exit 1; }; \
	echo "console: the committed pages are what is built from their sources"

# Where Chromium is missing, nothing is tested, and that is said.
.PHONY: console-e2e
console-e2e: redis-server ## the console in a browser, before three nodes and a Redis; a few minutes
	@if ! command -v npm >/dev/null; then echo "!!! the console was NOT tested in a browser: npm is missing (Debian: apt-get install npm)" >&2; exit 0; fi; \
	cd $(WEB) && npm ci --no-audit --no-fund --silent && npm run --silent e2e

##@ Mend it

.PHONY: console
console: ## build the console's pages from their sources; fetches npm packages, 60 MB
	cd $(WEB) && npm ci --no-audit --no-fund && npm run build

.PHONY: notices
notices: ## THIRD_PARTY_NOTICES, and the licences that the console shows; fetches all modules
	go mod download; cd cmd/escapement-full && go mod download
	cd $(WEB) && npm ci --no-audit --no-fund --omit=dev --ignore-scripts
	go run ./cmd/notices

.PHONY: fmt
fmt: ## format every Go file
	gofmt -w .

# --- the parts of the targets above -------------------------------------------

.PHONY: fmt-check
fmt-check:
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt mends it):"; echo "$$unformatted"; exit 1; fi

# It reads all sources of all dependencies: a collection more or less is a fifth of its time.
.PHONY: golangci
golangci lint-modules: GC := GOGC=800 GOMEMLIMIT=4GiB
golangci: $(GOLANGCI)
	$(GC) $(GOLANGCI) run --allow-parallel-runners ./...

$(GOLANGCI):
	GOGC=400 GOBIN=$(CURDIR)/.bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
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

# ZooKeeper, etcd and pgbouncer, where they can be installed. A test whose server is missing fails and names its package.
.PHONY: store-servers
store-servers:
	@if [ -e /usr/share/java/zookeeper.jar ] && command -v etcd >/dev/null && command -v pgbouncer >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null && apt-get install -y -qq --no-install-recommends zookeeper etcd-server pgbouncer </dev/null; \
	fi

# Prometheus and promtool, where they can be installed. A test without them fails and names the package.
.PHONY: prometheus
prometheus:
	@if command -v prometheus >/dev/null && command -v promtool >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq </dev/null && apt-get install -y -qq --no-install-recommends prometheus </dev/null; \
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
