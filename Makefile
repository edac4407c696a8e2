# Versions of the tools that "make lint" runs; the Go command fetches them.
STATICCHECK = v0.8.2
GOVULNCHECK = v1.8.0
ACTIONLINT  = v1.7.12
# These make the packages of a release, list the modules in them, and sign their checksums.
# Newer versions of GORELEASER need a newer Go.
GORELEASER  = v2.12.7
SYFT        = v1.57.0
COSIGN      = v3.1.3
PACKAGING   = GO=$(GO) GORELEASER=$(GORELEASER) SYFT=$(SYFT) COSIGN=$(COSIGN)

# Settings for the command line, as in: make fuzz FUZZTIME=1m
# "work" means all packages of the modules that go.work lists. Folders bench and
# adapters, with what other libraries need, are workspaces of their own.
PKG       = work
TIMEOUT   = 40m
# The packages of the modules in folder adapters, which has a package of the root module,
# too: "./..." would be that one alone. Two modules need client-go, whose hundreds of
# packages take minutes to compile with the race detector: only make race does so.
LARGE     = ./clientgo/... ./clientgo/managertest/...
SMALL     = $$(ls -d */go.mod | grep -v ^clientgo/ | sed 's,go.mod$$,...,; s,^,./,')
ADAPTERS  = $(SMALL) $(LARGE)
# How many packages are tested beside each other, and how many tests of a package. Most
# of them wait: for servers, for processes, for the end of leases.
# With 4 and 6, some tests miss their time limits on two slow processors.
PACKAGES  = 3
PARALLEL  = 4
# The packages that take longest are begun first.
LONG      = ./store/redisstore ./store/sqlstore/sqlstoretest ./store/etcdstore ./cmd/leasehold/internal/cli ./store/zkstore ./store/azblobstore/azblobstoretest \
	./store/natsstore/natsstoretest ./cmd/leasehold/internal/serve .
# Tests that change scripts, and compare them with the rule until that shows: make mutants.
CHANGED   = ^Test(ScriptsChanged|ListsChanged|QueuesChanged|MarkScriptsChanged|SharesChanged|ListsOfSharesChanged)$$
# Tests without the race detector: those that compare scripts with the rule,
# those beside client-go, contests and searches in virtual time, and one that measures memory.
ALONE     = ^Test(Search|.*OnRedis|.*OnSimulatedRedis|.*OnObjects|ManyIdleConnections|ContestsUnderFaults|.*WithClientGo)$$
COMPARING = ./store/redisstore ./store/etcdstore ./store/recordstore ./cmd/leasehold/internal/serve/redisdoor ./store/azblobstore/azblobstoretest ./store/kubernetesstore/kubernetesstoretest
# These tests bring the servers and clients of others. Without them, and without client-go, all
# others need 1,000 packages instead of 1,900. So they are compiled once, without the race detector,
# and not for other systems: make race runs them with it, and make lint cross OURS=work compiles them.
SERVED    = ./store/gcsstore/gcsstoretest ./store/s3store/s3storetest
# The tests of the simulator that run many scripts: make sim does.
SCRIPTS   = ^Test(Seeds|Thousand|JumpingClocksAreDiscounted|FadingNetwork|OneListReplacesAnother|CountersMayExpire|KindsRepeat|HistoriesRepeat)$$
COUNT     = 10
BENCH     = .
BENCHTIME = 1s
# The packages with benchmarks. Others would only start the servers of their tests.
BENCHED   = $$(grep -rl --include='*_test.go' --exclude-dir=bench '^func Benchmark' . | xargs -n 1 dirname | sort -u)
# The packages with files for the checkers' build. The others are the same in it.
MUTATED   = $$(grep -rlE '^//go:build .*mutants' --include='*.go' . | xargs -n 1 dirname | sort -u)
FUZZTIME  = 10s
# Set if the benchmarks only have to run, once each, as in BENCHTIME=1x: the comparison with
# other libraries is then short and its figures mean nothing.
SHORT     = $(if $(filter 1x,$(BENCHTIME)),-short)
SEEDS     = 1000
MOST      = 0
TORTURE   = 60s
# How long a waiter may wait in the torture for a lock that is available; 0: not judged.
IDLE      = 500ms
SEED      = 0
PLATFORMS = darwin/arm64 windows/amd64
# The packages that staticcheck reads: all but those of tests that bring the servers and databases
# of others. It compiles all packages that they need, and these need two thirds of all. OURS=work has
# all, and client-go's adapter.
OURS      = $$($(GO) list work | grep -vE '[a-z0-9]storetest$$|/guardtest$$')

# What "make quick" runs: the packages that decide, which need no server, and of
# Redis the contract of a store, the wire format, and the scripts against the rule.
# It leaves out the tests that need more programs than redis-server.
QUICK      = . ./docs ./fence ./guard/... ./store ./store/memstore ./internal/clock ./cmd/leasehold/internal/doctor ./internal/layering \
	./internal/leasefsm ./internal/nodeclock ./internal/nodemark ./internal/quorum ./internal/quorum/driver \
	./internal/retain ./internal/callback ./internal/rule ./internal/renewer ./internal/validity ./internal/waitq ./internal/waits ./internal/excerpt ./store/redisstore/internal/...
QUICKREDIS = TestConformance|TestWireFormat|TestInteroperatesWithPlainClients|TestHandOff|TestOwnHolder|TestScriptsOnSimulatedRedis
QUICKSKIP  = TestOtherLanguages|TestDocumentedCommands

# What "make versions" runs on which other servers. The build of Valkey 9 that it uses has no TLS.
SERVERS  = valkey valkey-8.1 redis-6.2
CONTRACT = TestConformance|TestWireFormat|TestInteroperatesWithPlainClients|TestHandOff|TestOwnHolder|TestQuarantine|TestScriptsOnRedis

DATABASES = postgres mariadb pgbouncer faketime etcd curator

GO = go

.DEFAULT_GOAL = help
.PHONY: help quick test race lint fmt tidy vuln bench figures dashboard screens terminals peers fuzz cross explore sim prove mutants torture versions package rehearse tag release redis programs databases mysql azure kubernetes doors languages prometheus chromium z3

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo '  Settings, with their defaults: PKG=$(PKG) TIMEOUT=$(TIMEOUT) COUNT=$(COUNT) BENCH=$(BENCH) BENCHTIME=$(BENCHTIME) FUZZTIME=$(FUZZTIME)'

# A program with the race detector waits for a second before it ends, for races in goroutines
# that go on. There are more than a hundred such programs, one for each package at least.
# The second is spent in "make race".
test: export GORACE ?= atexit_sleep_ms=0

# The mysqld of MySQL itself that the tests start besides MariaDB: the one that "make mysql"
# has installed, unless the environment names another one, or an empty one for none.
test race: export LEASEHOLD_MYSQLD ?= $(shell scripts/ensure-mysql.sh --find)

# The emulator of Azure that "make azure" has installed, in the same way.
test race: export LEASEHOLD_AZURITE ?= $(shell scripts/ensure-azurite.sh --find)

# The command, built once for all tests that run it without the race detector. Each checkout
# has its own.
test: export LEASEHOLD_BUILT = $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/leasehold-test/command-$(shell pwd | cksum | cut -d' ' -f1)/leasehold

# The API server that "make kubernetes" has built, in the same way.
test race: export LEASEHOLD_KUBE_APISERVER ?= $(shell scripts/ensure-kube-apiserver.sh --find)

quick: redis ## run the tests of the inner loop in under a minute
	$(GO) test -skip '^($(QUICKSKIP))$$' $(QUICK)
	$(GO) test -run '^($(QUICKREDIS))$$' ./store/redisstore

test: programs ## run all tests with the race detector, against real servers
	@scripts/need-race.sh
	@test -n "$$LEASEHOLD_MYSQLD" || echo 'The tests run on MariaDB, and not on MySQL itself, which was not asked for: "make mysql" installs it.'
	@command -v terraform >/dev/null || command -v tofu >/dev/null || echo 'The tests send the requests of Terraform, and do not run it, since neither terraform nor tofu is installed.'
	@test -n "$$LEASEHOLD_AZURITE" || echo 'The tests of Azure Blob Storage are skipped, since its emulator was not asked for: "make azure" installs it.'
	@test -n "$$LEASEHOLD_KUBE_APISERVER" || echo 'The tests of Kubernetes run on an imitation of its API server, which was not asked for: "make kubernetes" builds it.'
	@mkdir -p "$$(dirname "$$LEASEHOLD_BUILT")"
	$(GO) build -o "$$LEASEHOLD_BUILT" ./cmd/leasehold
ifeq ($(PKG),work)
	@# The explorers, the simulator, the queue of a process and the tests that compare with the
	@# rule, which compute in one goroutine, take three to six times as long with the race detector, so they run
	@# without it here; make race runs them with the detector. So do the suites on servers of
	@# objects, which the tests serve in their own process: contests and lists have several
	@# goroutines call the stores of objects with the detector, and the suites on recordstore
	@# have it. Go vets each package before its tests, which takes half a minute here, and make
	@# lint does it, too.
	@# The explorers and the simulator have a low priority, and so the processor time that
	@# the others leave while they wait. In .ci/run, what computes beside this target has a lower
	@# one. The searches that make explore, make mutants and make sim repeat are left to them:
	@# -short leaves those of the explorer out.
	@# The interpreter of Lua, by which simulated servers of Redis run the scripts, is compiled
	@# without the detector, too: one goroutine at a time uses each, and the detector makes their
	@# tests half as slow again.
	nice -n 10 $(GO) test -short -skip '$(SCRIPTS)' -vet=off -timeout $(TIMEOUT) ./internal/proof/explore ./internal/proof/queues ./internal/proof/sim ./internal/waitq & searches=$$!; \
	$(GO) test -race '-gcflags=github.com/yuin/gopher-lua/...=-race=false' -vet=off -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) -skip '$(ALONE)|$(CHANGED)' $(LONG) $$($(GO) list work | grep -vE '/internal/(proof/(explore|queues|sim)|waitq)$$' | grep -v $(SERVED:.%=-e '%$$')); code=$$?; \
	wait $$searches && exit $$code
	@# Comparing computes in one goroutine, and the servers of objects have their tests wait.
	$(GO) test -vet=off -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) -run '$(ALONE)' $(COMPARING) & comparing=$$!; \
	$(GO) test -vet=off -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) $(SERVED); code=$$?; \
	wait $$comparing && exit $$code
	(cd bench && $(GO) test -race -vet=off -timeout $(TIMEOUT) ./beside) & beside=$$!; cd adapters; \
	$(GO) test -race -vet=off -timeout $(TIMEOUT) -p $(PACKAGES) -parallel $(PARALLEL) $(SMALL); code=$$?; \
	wait $$beside && exit $$code
	cd adapters && $(GO) test -vet=off -timeout $(TIMEOUT) $(LARGE)
else
	$(GO) test -race -timeout $(TIMEOUT) -parallel $(PARALLEL) $(PKG)
endif

race: programs ## run the tests COUNT times, to find rare failures
	@scripts/need-race.sh
	$(GO) test -race -timeout 60m -count $(COUNT) $(PKG)
ifeq ($(PKG),work)
	cd bench && $(GO) test -race -timeout 60m -count $(COUNT) ./beside
	cd adapters && $(GO) test -race -timeout 60m -count $(COUNT) $(ADAPTERS)
endif

versions: redis ## run the tests of the contract of Redis on Valkey 9 and 8, and on Redis 6.2
	@set -e; for server in $(SERVERS); do \
		LEASEHOLD_REDIS_SERVER=$$(scripts/ensure-redis-version.sh $$server); export LEASEHOLD_REDIS_SERVER; \
		test -n "$$LEASEHOLD_REDIS_SERVER"; echo "On $$server:"; \
		$(GO) test -vet=off -timeout $(TIMEOUT) -parallel $(PARALLEL) -run '$(CONTRACT)' ./store/redisstore; \
	done

mysql: redis databases ## install MySQL itself for this user, and run the tests of MariaDB on it
	@scripts/need-race.sh
	@LEASEHOLD_MYSQLD=$${LEASEHOLD_MYSQLD:-$$(scripts/ensure-mysql.sh)} && export LEASEHOLD_MYSQLD && test -n "$$LEASEHOLD_MYSQLD" && set -x && \
		$(GO) test -race -vet=off -timeout $(TIMEOUT) -parallel $(PARALLEL) -run '/^MySQL' ./internal/testenv/sqltest ./store/sqlstore/sqlstoretest ./guard/guardtest && \
		$(GO) test -race -vet=off -timeout $(TIMEOUT) -run '^Test(Database|DatabaseOverTLS|TortureOfDatabases)$$/^MySQL' ./cmd/leasehold/internal/cli

azure: databases ## install an emulator of Azure Blob Storage for this user, and run the tests on it
	@LEASEHOLD_AZURITE=$${LEASEHOLD_AZURITE:-$$(scripts/ensure-azurite.sh)} && export LEASEHOLD_AZURITE && test -n "$$LEASEHOLD_AZURITE" && set -x && \
		$(GO) test -vet=off -timeout $(TIMEOUT) -parallel $(PARALLEL) ./store/azblobstore/azblobstoretest

doors: databases languages ## install lock clients of Redis for Node, Java and PHP, and have them take turns over the Redis door
	@LEASEHOLD_DOOR_CLIENTS=$${LEASEHOLD_DOOR_CLIENTS:-$$(scripts/ensure-door-clients.sh)} && export LEASEHOLD_DOOR_CLIENTS && test -n "$$LEASEHOLD_DOOR_CLIENTS" && set -x && \
		cd bench && $(GO) test -count=1 -vet=off -timeout $(TIMEOUT) -v -run '^TestTheDoorIsKilled$$' ./beside

kubernetes: databases ## build the API server of Kubernetes for this user, and run the tests on it
	@LEASEHOLD_KUBE_APISERVER=$${LEASEHOLD_KUBE_APISERVER:-$$(scripts/ensure-kube-apiserver.sh)} && export LEASEHOLD_KUBE_APISERVER && test -n "$$LEASEHOLD_KUBE_APISERVER" && set -x && \
		$(GO) test -vet=off -timeout $(TIMEOUT) -parallel $(PARALLEL) ./store/kubernetesstore/kubernetesstoretest

lint: ## check formatting, prose, go vet, staticcheck, workflows, known vulnerabilities
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted (make fmt does it):"; echo "$$unformatted"; exit 1; fi
	@scripts/prose.sh
	$(GO) vet work
	$(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) $(OURS)
	cd bench && $(GO) vet ./... ./rueidisnode && $(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) ./... ./rueidisnode
	cd adapters && $(GO) vet $(ADAPTERS) && $(GO) run honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK) $(if $(filter work,$(OURS)),$(ADAPTERS),$(SMALL))
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT) -shellcheck= -pyflakes=
	@scripts/govulncheck.sh $(GOVULNCHECK)

fmt: ## format the code
	gofmt -w .

tidy: ## tidy the go.mod of every module (VERSION=v1.2.3 to publish)
	@scripts/tidy.sh $(VERSION)

bench: redis databases ## run the benchmarks, other libraries included (once each: BENCHTIME=1x)
	$(GO) test -vet=off -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 30m $(if $(filter work,$(PKG)),$(BENCHED),$(PKG))
ifeq ($(PKG),work)
	@$(if $(SHORT),,$(MAKE) --no-print-directory peers)
	@# The tests of package beside are in make test.
	cd bench && $(GO) test -vet=off $$($(GO) list ./... ./rueidisnode | grep -v /beside$$) && $(GO) run . $(SHORT)
endif

figures: redis peers ## measure all libraries again, for docs/performance
	cd bench && $(GO) run . -goroutines 1,16,64,256 -processes 2,16,64,128 -out ../docs/performance -doc ../docs/performance/figures.md

dashboard: redis prometheus ## draw the dashboard's queries again, for docs/adapters.md
	cd adapters && $(GO) test -count=1 -run '^TestPicture$$' ./prometheus -picture $(CURDIR)/docs/adapters/dashboard.svg

screens: chromium ## draw the pictures of docs/page.md again
	$(GO) test -count=1 -run '^TestPictures$$' ./cmd/leasehold/internal/serve/page -pictures $(CURDIR)/docs/page

terminals: redis ## draw the terminals of docs/terminal again
	$(GO) test -count=1 -run '^TestTerminalPictures$$' ./cmd/leasehold/internal/cli -terminals

fuzz: redis ## run every fuzz target for FUZZTIME
	@scripts/fuzz.sh $(FUZZTIME)

cross: ## read all packages as other systems have them (OURS=work builds and vets them there, too)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; \
		(cd internal/testenv/systems && export GOWORK=off && $(GO) test . && $(GO) build -o "$$dir/systems" .) && \
		"$$dir/systems" $(PLATFORMS) linux/386 -- work
ifeq ($(OURS),work)
	@set -e; for p in $(PLATFORMS) linux/386; do \
		echo "cross $$p"; \
		export GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0; \
		$(GO) build work; \
		$(GO) vet work; \
	done
endif

explore: ## search every interleaving of the protocol in small worlds (long; a few minutes with MOST=500000)
	@# With MOST, as in .ci/run, the rows of mutants are left to make mutants, which searches them all.
	$(GO) run -tags mutants ./internal/proof/explore/cmd/explore -most $(MOST) $(if $(filter-out 0,$(MOST)),-shipped)

sim: ## run SEEDS seeds of the simulator, and its tests that run many scripts
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(GO) test -c -o "$$dir/sim" ./internal/proof/sim && \
		cd internal/proof/sim && "$$dir/sim" -test.run '$(SCRIPTS)' -test.timeout 12h -seeds=$(SEEDS)

prove: z3 ## prove the protocol for any number of nodes and attempts (OUT=DIR keeps the files)
	@$(GO) run ./internal/proof/induct/cmd/prove $(if $(OUT),-out $(OUT))

mutants: redis ## remove one mechanism after the other: the checker that is named for it must notice
	$(GO) vet -tags mutants $(MUTATED)
	$(GO) test -vet=off -timeout $(TIMEOUT) -run '$(CHANGED)' ./store/redisstore
	$(GO) test -tags mutants -run '^TestMechanismsAreNeeded$$' . ./internal/retain ./internal/waitq ./internal/quorum/driver ./store/recordstore ./store/redisstore/internal/node
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(GO) test -tags mutants -c -o "$$dir/mutants" ./internal/proof/mutants && \
		cd internal/proof/mutants && "$$dir/mutants"

torture: redis ## stress locks on real servers with real faults for TORTURE (faults by SEED, waits by IDLE)
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; $(GO) test -race -c -o "$$dir/chaos" ./cmd/leasehold/internal/lab/chaos && \
		cd cmd/leasehold/internal/lab/chaos && "$$dir/chaos" -test.run '^TestTorture$$' -test.v -test.timeout 3h -for $(TORTURE) -seed $(SEED) -idle $(IDLE)

package: ## make the packages of Linux as for a release, and try the .deb and .rpm (SYSTEMS=all: of all systems, signed with a throwaway key)
	@$(PACKAGING) scripts/package.sh $(SYSTEMS)

rehearse: ## tag the last commit in a copy of the repository, and use every module from there
	@GO=$(GO) scripts/rehearse.sh $(VERSION)

tag: ## tag the commit that is checked out as VERSION, once for each module
	@scripts/tag.sh $(VERSION)

release: ## publish the packages of the tag that is checked out (the workflow "release" does)
	@$(PACKAGING) scripts/release.sh

# The servers and programs that all tests need.
programs:
	@scripts/ensure.sh redis $(DATABASES) languages prometheus chromium

databases:
	@scripts/ensure.sh $(DATABASES)

redis languages prometheus chromium z3:
	@scripts/ensure-$@.sh

peers:
	@scripts/ensure.sh etcd zookeeper
