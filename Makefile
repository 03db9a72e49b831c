# `make help` lists the targets. They need only Go, git and make: other tools are built from tools/go.mod, so that the
# root module does not carry their dependencies.

SHELL   := /bin/sh
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/bowsprit/bowsprit/internal/server/version.version=$(VERSION)
TOOL    := go tool -modfile=tools/go.mod

# All targets build like the released binary, without cgo and with trimmed paths, so that they share the build cache, even
# between clones. Only the race detector needs cgo.
export CGO_ENABLED ?= 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null)) -trimpath)

# Packages tested in parallel. More packages than cores only make timeouts more likely.
P ?= 2
# Targets of test that run in parallel: e2e and clients mostly wait for programs, while the others compile and link on all
# cores. The order of test pairs the waiting targets with unit.
J ?= 2
# Duration of one fuzz target, duration of soak, and the number of requests that it checks.
FUZZTIME   ?= 30s
SOAK       ?= 30m
OPERATIONS ?= 200000
# Duration of a turn of bench-fairness.
TURN       ?= 20s
# Number of turns of bench-aggregation.
TURNS      ?= 3
# Number of objects for `compare`: ten million comparisons.
OBJECTS  ?= 1800000
# The harness of Kubernetes' own tests; it is not part of this repository.
SHARED ?= ../shared

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

.PHONY: setup
setup: ## prepare a new checkout: check the prerequisites, fetch the modules, build once; five minutes the first time
	@command -v git >/dev/null || { echo "setup: git is missing; a source archive builds without it, but cannot be committed to"; }
	@go version || { echo "setup: Go is missing: https://go.dev/dl, the version in go.mod or later"; exit 1; }
	go mod download
	cd tools && go mod download
	$(MAKE) --no-print-directory build
	@bin/bowsprit version && echo "Ready: make run starts a server, make unit runs the tests, docs/tour.md shows the code."

.PHONY: run
run: build ## build, then start the server (ARGS adds flags: make run ARGS=--ephemeral)
	bin/bowsprit serve $(ARGS)

.PHONY: build
build: ## build the static binary bin/bowsprit
	CGO_ENABLED=0 go build -ldflags '$(LDFLAGS)' -o bin/bowsprit ./cmd/bowsprit

.PHONY: test check
test: space fmt ## everything that CI checks
	@$(MAKE) --no-print-directory -j$(J) modules lint vet unit e2e oracle clients
check: test ## the same as test

# The targets of test that test-time measures.
OF ?= lint vet unit e2e oracle clients
.PHONY: test-time
test-time: ## run the tests of OF="lint vet unit e2e oracle clients", and print the CPU time of compiling, linking and each package
	@cd tools && go build -o ../bin/testtime ./testtime
	@rm -rf bin/test-time && mkdir -p bin/test-time
	@GOFLAGS='$(GOFLAGS) -exec=$(CURDIR)/bin/testtime -toolexec=$(CURDIR)/bin/testtime -count=1' \
	  TESTTIME=$(CURDIR)/bin/test-time $(MAKE) --no-print-directory -k -j$(J) $(OF); code=$$?; \
	  bin/testtime -report bin/test-time; exit $$code

.PHONY: space
space: ## check the free disk space for test; .ci/run also frees some
	@.ci/space || true

.PHONY: fmt
fmt: ## check the format of every Go file with gofmt
	@files=$$(git ls-files '*.go' 2>/dev/null); test -n "$$files" || files=$$(find . -name '*.go'); \
	differs=$$(gofmt -l $$files) && test -z "$$differs" || { echo "run gofmt -w on:"; echo "$$differs"; exit 1; }

# Without the modules of make node, make operators and make docs-test, which no other target downloads.
.PHONY: modules
modules: ## check that the module files of test list all imports, also of the programs that they build, before later builds fail
	@for file in $$(find . -name go.mod -o -path './test/*' -name '*.mod' | \
	    grep -v -e /testdata/ -e /bin/ -e /node/ -e /operators/ -e /site/ | sort); do \
	  dir=$$(dirname $$file); \
	  out=$$(cd $$dir && go list -modfile=$(CURDIR)/$$file -deps -test ./... tool 2>&1 >/dev/null) || \
	    { echo "$$out"; echo "$$file: run go mod tidy for it"; exit 1; }; done

# The commit from which on no commit inserts more than 1,500 lines, other than moves and generated files.
SINCE ?= a31ddc8
.PHONY: commits
commits: ## the twenty largest commits since SINCE, by inserted lines; moved lines do not count
	@git log -M --numstat --format='@%h %s' $(SINCE)..HEAD | \
	  awk '/^@/ {commit = substr($$0, 2); lines[commit] = 0; next} {lines[commit] += $$1} \
	    END {for (c in lines) printf "%6d  %s\n", lines[c], c}' | sort -rn | head -20

.PHONY: vet
vet: ## go vet, staticcheck, govulncheck
	go vet ./...
	$(TOOL) staticcheck ./...
	@out=$$($(TOOL) govulncheck ./... 2>&1); code=$$?; \
	if [ $$code -eq 0 ]; then echo "govulncheck: nothing found"; \
	elif echo "$$out" | grep -q 'fetching vulnerabilities'; then echo "govulncheck: skipped, its database cannot be reached"; \
	else echo "$$out"; exit $$code; fi

.PHONY: lint
lint: ## the import order and the other rules of internal/lint
	go test -count=1 ./internal/lint

# test/norace.txt lists the packages without concurrency. Names of tests after a package need the race detector.
NORACE     := $(shell sed -n 's,^\(\./[^ ]*\).*,\1,p' test/norace.txt)
MIXED      := $(shell sed -n 's,^\(\./[^ ]*\) .*,\1,p' test/norace.txt)
CONCURRENT := $(shell sed -n 's,^\./[^ ]* ,,p' test/norace.txt)
# Tests of cmd/bowsprit that start dozens of processes; under the race detector they take ten times as long.
PROCESSES  := TestDocumentation|TestEveryCommand|TestOutputs|TestHarmless|TestCommandErrors
# Long tests in one goroutine, in packages that also have concurrency; the race detector makes them up to ten times as long.
SEQUENTIAL := TestAppendSchema|TestAppendProps|TestAppendRealKinds|TestTypesOfBuiltinKinds|TestWeight
EMPTY      :=
RACE        = $(filter-out $(NORACE) ./internal/lint,$(shell go list ./... | sed 's,^github.com/bowsprit/bowsprit,.,'))

# go vet checks all packages with more analyzers than go test, so tests run with -vet=off, here and below. lint tests
# internal/lint.
.PHONY: unit
unit: ## tests of the root module, with the race detector where there is concurrency
	CGO_ENABLED=1 go test -vet=off -race -p $(P) -timeout 20m -skip '^($(PROCESSES)|$(SEQUENTIAL)|TestSimulated)$$' $(RACE)
	CGO_ENABLED=1 go test -vet=off -race -run '^($(subst $(EMPTY) $(EMPTY),|,$(CONCURRENT)))$$' $(MIXED)
	go test -vet=off -p $(P) -timeout 20m $(NORACE)
	go test -vet=off -timeout 20m -run '^($(PROCESSES))$$' ./cmd/bowsprit
	go test -vet=off -p $(P) -timeout 20m -run '^($(SEQUENTIAL))$$' ./internal/api/openapi ./internal/kinds
	go test -vet=off -timeout 20m -run '^TestSimulated$$' ./test/attack # large controllers, as slow under the race detector
	cd tools && go vet ./... && go test -vet=off ./...

# Without the test that records output of kube-apiserver, and without rules and cases, whose expectations are written by
# hand first.
.PHONY: generate
generate: ## write the generated pages and lists anew: references, error texts, exit codes, measures; look at the difference before a commit
	go test -vet=off -count=1 -run '^TestAPI$$' . -update
	go test -vet=off -count=1 -run '^TestGoReference$$' ./docs -update
	go test -vet=off -count=1 -run '^TestMetricsReference$$' ./internal/server -update
	go test -vet=off -count=1 -run '^TestFields$$' ./internal/workload/pod -update
	go test -vet=off -count=1 -run '^TestCommandErrors$$' ./cmd/bowsprit -update
	cd test/oracle-builtins && go test -vet=off -count=1 -run '^TestErrorTexts$$' . -update-errors
	go test -vet=off -count=1 -run '^TestNoRace$$' ./internal/lint -update-race
	go test -vet=off -count=1 -run '^TestMeasuresPage$$' ./internal/lint -update

# The build of a program that imports us and a later version of Kubernetes' libraries.
LIBRARIES ?= v0.38.0-beta.0
NEXT      := bin/next.mod
.PHONY: libraries libraries-all next
next:
	@mkdir -p bin; cp go.sum bin/next.sum; sed 's/ v0\.37\.2$$/ $(LIBRARIES)/' go.mod > $(NEXT)
	go mod tidy -modfile=$(NEXT)

libraries: next ## test the packages that programs import with LIBRARIES=v0.38.0-beta.0 of Kubernetes' libraries, a later version
	go test -modfile=$(NEXT) -p $(P) -timeout 10m ./testserver ./internal/admit/expr

libraries-all: next ## vet all code with LIBRARIES=v0.38.0-beta.0, and run the tests that use them most: ten minutes
	go vet -modfile=$(NEXT) ./...
	go test -modfile=$(NEXT) -p $(P) -timeout 10m . ./testserver ./internal/admit/... ./internal/api/... ./internal/kinds \
	  ./internal/object/... ./internal/rest/...

.PHONY: follow
follow: ## list what VERSION=1.38.0 of Kubernetes changes since the served release, and our files that each change affects (Markdown)
	@cd tools && go run ./follow -root .. $(VERSION)

# AGAIN is go test with one retry of the failed tests that tools/again/foreign.txt lists: they run programs of other
# projects. A second retry of one name fails, as long as the record names it.
AGAIN := $(CURDIR)/bin/again -record $(CURDIR)/bin/flaky.txt
.PHONY: again
again:
	@cd tools && go build -o ../bin/again ./again

.PHONY: oracle
oracle: again ## compare with the Kubernetes libraries, with few random cases
	cd test/oracle && go vet ./... && $(AGAIN) -vet=off -p $(P) -timeout 30m ./...
	cd test/oracle-builtins && go vet ./... && $(AGAIN) -vet=off -p $(P) -timeout 30m ./...
	cd test/konnectivity && go vet ./... && $(AGAIN) -vet=off -timeout 30m ./...

# Number of random stories of `stories`; RANDOM_SEED is the first seed.
RANDOM_STORIES ?= 100
.PHONY: stories
stories: ## run every story of workloads, and random ones, with our controllers and Kubernetes': ten minutes
	@mkdir -p bin; cd test/oracle-builtins && STORIES=. RANDOM_STORIES=$(RANDOM_STORIES) \
	  go test -v -count=1 -timeout 60m ./workloads >../../bin/stories.log 2>&1; code=$$?; \
	  grep -e '--- FAIL' -e 'after it has differed' -e '^ok' -e '^FAIL' ../../bin/stories.log; \
	  echo "stories: the full log is bin/stories.log"; exit $$code

# Number of random pods of `pods`.
PODS ?= 10000
.PHONY: pods
pods: ## compare the status of random simulated pods with a kubelet's own code: half an hour
	cd test/oracle-builtins && ORACLE_PODS=$(PODS) go test -v -count=1 -timeout 0 -run '^TestPods$$' ./kubelet | grep -v '^[IWE][0-9]'

.PHONY: e2e
e2e: again ## test a built binary with a real kubectl
	@if [ -f test/e2e/go.mod ]; then cd test/e2e && go vet ./... && $(AGAIN) -vet=off -timeout 45m ./...; else echo "e2e: test/e2e does not exist"; fi

# The attacks that `attack` sends: all, or the ones with this text in their group or name.
ATTACK ?= all
.PHONY: attack
attack: ## send hostile bodies and expressions to a server process, and check memory, deadlines, CPU and another user's latency; minutes
	ATTACK="$(ATTACK)" go test -vet=off -count=1 -timeout 3h -v -run '^Test(All|Growth|GrowthOfRequests)$$' ./test/attack \
		./test/attack/cost ./test/attack/lists

.PHONY: crd-histories
crd-histories: ## compare the changes of definitions between releases of ten projects with crdify; downloads the releases, a minute
	cd test/oracle && CRD_HISTORIES=1 go test -vet=off -count=1 -timeout 30m -v -run '^TestCrdifyHistories$$' ./schema

# Number of rollouts of kill-rollouts.
ROLLOUTS ?= 1000
.PHONY: kill-rollouts
kill-rollouts: ## kill the server (-9) in the middle of ROLLOUTS=1000 rollouts of simulated workloads; not part of test
	cd test/e2e && E2E_ROLLOUTS=$(ROLLOUTS) go test -count=1 -timeout 0 -v -run TestKillRollout .

# Number of writes of unchanged-writes, the seed of the random ones, and the path of a kube-apiserver to compare with.
WRITES ?= 100000
WRITES_SEED ?= 1
.PHONY: unchanged-writes
unchanged-writes: ## repeat WRITES=100000 random writes of all kinds, which must not change their objects; KUBE_APISERVER=PATH sends them to Kubernetes' too, where they may not change less; half an hour
	cd test/e2e && E2E_UNCHANGED_WRITES=$(WRITES) E2E_UNCHANGED_SEED=$(WRITES_SEED) \
	  E2E_KUBE_APISERVER=$(KUBE_APISERVER) go test -count=1 -timeout 0 -v -run TestUnchangedWrites .

.PHONY: clients
clients: build importers again ## test with controller-runtime, client-go, a client-gen client, Helm and a kubebuilder suite, through envtest; importers
	bin/bowsprit envtest bin/envtest
	cd test/clients && go vet ./... && KUBEBUILDER_ASSETS=$(CURDIR)/bin/envtest $(AGAIN) -vet=off -timeout 30m ./...

# Debian's Python: its packages python3-pytest, python3-pytest-xdist and python3-kubernetes.
PYTHON ?= /usr/bin/python3
.PHONY: clients-python
clients-python: build ## test the package for Python; needs pytest, pytest-xdist and kubernetes for PYTHON
	cd clients/python && BOWSPRIT=$(CURDIR)/bin/bowsprit BOWSPRIT_UNDER_TEST=$(CURDIR)/bin/bowsprit \
	  $(PYTHON) -B -m pytest -p no:cacheprovider -q

.PHONY: clients-javascript
clients-javascript: build ## test the package for JavaScript; needs node, and npm with a network
	rm -rf bin/clients-javascript && cp -r clients/javascript bin/clients-javascript
	cd bin/clients-javascript && npm install --no-save --no-package-lock --no-audit --no-fund && \
	  BOWSPRIT=$(CURDIR)/bin/bowsprit npm test

# Debian's JUnit: its packages junit5 and openjdk-17-jdk-headless. The module for Testcontainers is only compiled, against
# declarations of the methods that it uses.
JARS      ?= /usr/share/java
JUNIT      = $(JARS)/junit-jupiter-api.jar:$(JARS)/junit-platform-commons.jar:$(JARS)/apiguardian-api.jar:$(JARS)/opentest4j.jar
JUNIT_RUN  = $(JUNIT):$(JARS)/junit-jupiter-engine.jar:$(JARS)/junit-platform-engine.jar:$(JARS)/junit-platform-launcher.jar:$(JARS)/junit-platform-console.jar:$(JARS)/junit-platform-reporting.jar:$(JARS)/picocli.jar
JAVA_OUT  := bin/clients-java
JAVAC      = javac -Xlint:all -Werror --release 17
.PHONY: clients-java
clients-java: build ## test the package for Java; needs a JDK 17, and the jars of JUnit 5 in JARS
	rm -rf $(JAVA_OUT) && mkdir -p $(JAVA_OUT)/test
	$(JAVAC) -cp $(JUNIT) -d $(JAVA_OUT)/main $$(find clients/java/src/main -name '*.java')
	$(JAVAC) -d $(JAVA_OUT)/testcontainers $$(find clients/java/testcontainers -name '*.java')
	$(JAVAC) -cp $(JUNIT):$(JAVA_OUT)/main -d $(JAVA_OUT)/test $$(find clients/java/src/test -name '*.java')
	cp clients/java/src/test/resources/* $(JAVA_OUT)/test/
	BOWSPRIT=$(CURDIR)/bin/bowsprit java -cp $(JAVA_OUT)/main:$(JAVA_OUT)/test:$(JUNIT_RUN) \
	  org.junit.platform.console.ConsoleLauncher --scan-class-path $(JAVA_OUT)/test --details tree --disable-banner \
	  --fail-if-no-tests

.PHONY: setup-envtest-test
setup-envtest-test: ## install a release with the real setup-envtest, and run the installed programs
	cd tools && go run ./release -root .. -out ../bin/release-envtest -targets $$(go env GOOS)/$$(go env GOARCH)
	cd test/clients && RELEASE=$(CURDIR)/bin/release-envtest go test -count=1 -timeout 10m -run TestSetupEnvtest .

.PHONY: importers
importers: again ## test modules that import testserver, with client-go and controller-runtime, and an extension over a database
	cd test/importers/client-go && $(AGAIN) -timeout 30m .
	cd test/importers/controller-runtime && $(AGAIN) -timeout 30m .
	cd test/importers/kubebuilder && $(AGAIN) -timeout 30m ./...
	cd test/importers/sql && go vet . && $(AGAIN) .

.PHONY: importers-all
importers-all: importers ## importers, and a module with the previous controller-runtime
	cd test/importers/controller-runtime && $(AGAIN) -modfile=controller-runtime-0.24.mod .

.PHONY: operators
operators: ## test the main functions of cert-manager, prometheus-operator, Argo Rollouts, metrics-server and custom metrics, and run the end-to-end suites of JobSet and LeaderWorkerSet; not part of test: ten minutes to build the first time
	cd test/operators && go vet ./... && go test -timeout 15m ./...

.PHONY: node
node: ## test a built binary with Kubernetes' own scheduler, controllers and a real node, and the image and chart of a release on that node (test/node); not part of test: half an hour to link the first time
	cd test/node && go vet . && go test -count=1 -timeout 90m .

.PHONY: bench-node
bench-node: ## compare bowsprit with kube-apiserver and etcd on a real node: memory with the node idle and with 100 pods, time to the first pod and to 200, 1 GiB by kubectl exec and cp; twenty minutes, half an hour the first time
	@mkdir -p bin
	cd test/node && NODE_BENCH=1 go test -count=1 -timeout 90m -v -run TestBench . > ../../bin/node.bench || { cat ../../bin/node.bench; exit 1; }
	@if grep -q -e '--- SKIP' bin/node.bench; then cat bin/node.bench; else sed -n 's/.* bench: //p' bin/node.bench; fi

.PHONY: first-test
first-test: build ## measure the time from the start of a kubebuilder suite to its first object; ENVTEST_ASSETS=DIR also measures Kubernetes' binaries
	bin/bowsprit envtest bin/envtest
	cd test/clients && KUBEBUILDER_ASSETS=$(CURDIR)/bin/envtest go test -run '^$$' -bench FirstTest -benchtime 1x -count 5 .

.PHONY: bench-konnectivity
bench-konnectivity: ## measure the throughput of Konnectivity's halves, ours and upstream's in every combination
	cd test/konnectivity && go test -run '^$$' -bench Throughput -benchtime 3x .

.PHONY: bench
bench: ## run every benchmark, and the comparisons with the Kubernetes libraries (plot in bin/libraries.svg)
	@mkdir -p bin
	go test -run '^$$' -bench . -benchmem -p 1 ./...
	cd test/oracle && go test -run '^$$' -bench . -benchmem -p 1 ./... > ../../bin/libraries.bench || { cat ../../bin/libraries.bench; exit 1; }
	@cat bin/libraries.bench
	cd tools && go run ./plot -title "The schema engine and Kubernetes' libraries" < ../bin/libraries.bench > ../bin/libraries.svg

.PHONY: bench-engine
bench-engine: ## compare the schema engine with the Kubernetes libraries: medians of ten, by benchstat
	@mkdir -p bin; cd test/oracle && go test -run '^$$' -bench 'Create|Update|Compile|Check|Evaluate|Request|Validate' -benchtime 200ms -count 10 -timeout 0 -p 1 ./schema ./cel ./crd > ../../bin/engine.bench
	$(TOOL) benchstat -row .fullname -col /by bin/engine.bench
	cd tools && go run ./plot -title "The schema engine and Kubernetes' libraries" < ../bin/engine.bench > ../bin/engine.svg

.PHONY: compare
compare: ## compare the engines on OBJECTS random objects (six comparisons each), 60,000 rules, and thousands of mutations of each real definition; then print the coverage
	cd test/oracle && ORACLE_CASES=$(OBJECTS) go test -v -timeout 0 -run '^TestRandom$$' ./schema | grep -v '^ *=== '
	cd test/oracle && ORACLE_CASES=60000 go test -v -timeout 0 -run '^TestRandom$$' ./cel | grep -v '^ *=== '
	cd test/oracle && ORACLE_MUTANTS=3000 go test -v -timeout 0 -run '^TestValidate' ./crd | grep -v -e '^ *=== ' -e '--- PASS'
	cd test/oracle && ORACLE_MUTANTS=700 ORACLE_STEP=1 go test -v -timeout 0 -run '^TestValidate$$/^upjet' ./crd | grep -v -e '^ *=== ' -e '--- PASS'
	cd test/oracle && ORACLE_ROUNDS=100 go test -v -timeout 0 -run '^TestConvert' ./crd | grep -v '^ *=== '
	cd test/oracle && ORACLE_STEP=1 go test -v -timeout 0 -run '^TestHold$$' ./crd | grep -v '^ *=== '
	$(MAKE) --no-print-directory compare-coverage

# The packages for schemas and rules, ours and the Kubernetes libraries'.
ENGINES := github.com/bowsprit/bowsprit/internal/object/schema,github.com/bowsprit/bowsprit/internal/object/schema/cel,github.com/bowsprit/bowsprit/internal/api/crd,k8s.io/apiextensions-apiserver/pkg/apiserver/schema/...,k8s.io/apiextensions-apiserver/pkg/apiserver/validation,k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation,k8s.io/kube-openapi/pkg/validation/validate

.PHONY: compare-coverage
compare-coverage: ## print the coverage of both engines by the comparisons of schemas, rules and definitions
	@mkdir -p bin; cd test/oracle && go test -count=1 -timeout 0 -coverpkg=$(ENGINES) -coverprofile=../../bin/engines.cover ./schema ./cel ./crd >/dev/null
	@awk -F '[: ]' 'NR > 1 { n = $$1 ":" $$2; size[n] = $$3; if ($$4) ran[n] = 1 } END { for (n in size) { p = n; sub("/[^/]*$$", "", p); all[p] += size[n]; if (n in ran) hit[p] += size[n] } \
	  for (p in all) printf "%5.1f%% of %4d statements  %s\n", 100 * hit[p] / all[p], all[p], p }' bin/engines.cover | sort -k6

# Platforms of a release; TARGETS=linux/amd64 builds fewer. The first `go build` of each takes a quarter of an hour.
TARGETS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64
.PHONY: release release-twice packages-test journeys platforms
release: ## build a release in bin/release: binaries, .deb, .rpm, image, bill of materials, provenance, checksums
	cd tools && go run ./release -root .. -out ../bin/release -targets $(TARGETS)

release-twice: ## check that a release of a copy of the sources has the same bytes
	packaging/twice.sh $(TARGETS)

packages-test: ## install, start, use, upgrade and remove the .deb in a clean Debian; needs root and debootstrap
	packaging/packages-test.sh

journeys: ## follow pages of the documentation in a clean Debian, from the .deb on, and measure the times; needs root and debootstrap
	packaging/journeys.sh

platforms: ## compile the program for each platform of a release
	@for t in $$(echo $(TARGETS) | tr , ' '); do echo "== $$t"; \
	  CGO_ENABLED=0 GOOS=$${t%/*} GOARCH=$${t#*/} go build -o /dev/null ./cmd/bowsprit || exit 1; done

.PHONY: docs
docs: build ## write the documentation as static pages to bin/docs
	bin/bowsprit docs --write bin/docs

AXE := axe-core-4.10.3
.PHONY: docs-test
docs-test: docs ## test the pages in headless Chromium: axe-core, dark and light, a phone's width, keyboard, search; needs chromium and npm
	@command -v chromium chromium-browser google-chrome >/dev/null || { echo "docs-test: Chromium is missing: apt-get install chromium"; exit 1; }
	@test -f bin/$(AXE)/axe.min.js || { command -v npm >/dev/null || { echo "docs-test: npm is missing, which fetches $(AXE): apt-get install npm"; exit 1; }; \
	  mkdir -p bin/$(AXE) && cd bin && npm pack --silent axe-core@$(AXE:axe-core-%=%) && tar -xzf $(AXE).tgz -C $(AXE) --strip-components=1 package/axe.min.js; }
	cd test/site && go vet . && DOCS_SITE=$(CURDIR)/bin/docs AXE=$(CURDIR)/bin/$(AXE)/axe.min.js go test -count=1 -timeout 60m .

.PHONY: monitoring-test
monitoring-test: build ## test the alert rules and each expression of the dashboard in a real Prometheus, by default Debian's
	packaging/monitoring-test.sh

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME=30s, one after the other
	@for dir in $$(git grep -l '^func Fuzz' -- '*_test.go' ':!test' | xargs -n1 dirname | sort -u); do \
	  for name in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -d' ' -f2); do \
	    echo "== $$dir $$name"; go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) ./$$dir || exit 1; \
	  done; \
	done

.PHONY: soak
soak: ## run a mixed load on 5,000 objects for SOAK=30m, then check OPERATIONS=200000 requests under kill -9 for linearizability
	cd test/e2e && E2E_SOAK=$(SOAK) E2E_OPERATIONS=$(OPERATIONS) go test -count=1 -timeout 0 -v -run 'TestSoak|TestLinearizable' .

.PHONY: bench-fairness
bench-fairness: ## measure a user's requests beside another user's 500 connections with large lists and writes, in turns of TURN=20s; KUBE_APISERVER=PATH also measures Kubernetes'
	cd test/e2e && E2E_FAIRNESS=$(TURN) E2E_KUBE_APISERVER=$(KUBE_APISERVER) go test -count=1 -timeout 0 -v -run TestFairness .

.PHONY: bench-aggregation
bench-aggregation: ## measure the CPU time of aggregated requests, and of a bare ReverseProxy, in TURNS=3; KUBE_APISERVER=PATH also measures Kubernetes'
	@mkdir -p bin
	cd test/e2e && E2E_AGGREGATION_COST=$(TURNS) E2E_KUBE_APISERVER=$(KUBE_APISERVER) go test -count=1 -timeout 0 -v -run TestAggregationCost . \
	  > ../../bin/aggregation.bench || { cat ../../bin/aggregation.bench; exit 1; }
	@grep 'of CPU each' bin/aggregation.bench
	cd tools && go run ./plot -title 'CPU time of the process that forwards an aggregated request' < ../bin/aggregation.bench > ../bin/aggregation.svg

# Numbers of nodes and pods of bench-workloads, and a folder with Kubernetes' programs and kwok for comparison; LIMITS=1 also
# measures them with the default limits of their clients, as in kwokctl: for minutes.
NODES ?= 1000
PODS ?= 10000
.PHONY: bench-workloads
bench-workloads: ## measure the first Deployment of a process, then PODS=10000 pods on NODES=1000 nodes: time until all are available, memory; KUBE=DIR also measures kube-apiserver, kube-controller-manager, kube-scheduler and kwok in that folder
	@mkdir -p bin
	go test -count=5 -run '^$$' -bench FirstDeployment -benchtime 1x ./testserver
	cd test/e2e && E2E_NODES=$(NODES) E2E_PODS=$(PODS) E2E_KUBE=$(KUBE) E2E_LIMITS=$(LIMITS) go test -count=1 -timeout 0 -v -run TestWorkloadsScale . \
	  > ../../bin/workloads.bench || { cat ../../bin/workloads.bench; exit 1; }
	@grep -e 'pods on' -e ratios bin/workloads.bench
	cd tools && go run ./plot -title 'Simulated workloads' < ../bin/workloads.bench > ../bin/workloads.svg

.PHONY: conformance
conformance: build ## run Kubernetes' integration tests and controller-runtime's specs against bin/bowsprit; needs ../shared/conformance
	@if [ ! -d $(SHARED)/conformance ]; then echo "conformance: skipped, $(SHARED)/conformance does not exist"; exit 0; fi; \
	export SUT_CMD=$(CURDIR)/test/conformance/sut.sh; \
	for suite in apiext apiext-conversion; do $(SHARED)/conformance/run.sh $$suite; done; \
	test/conformance/ctrl-runtime.sh $(SHARED)/conformance

.PHONY: conformance-simulated
conformance-simulated: build ## run Kubernetes' conformance tests against bin/bowsprit with simulated nodes, an hour; E2E_TEST=PATH names a built test binary
	test/conformance/simulated.sh

# SPECS selects conformance tests by a regular expression of their names.
SPECS = .

.PHONY: conformance-e2e
conformance-e2e: ## run Kubernetes' conformance tests on a real node, with kube-apiserver and etcd, and with a built binary; SPECS=REGEX selects; hours, half an hour more the first time; results in bin/conformance-e2e
	cd test/node && NODE_CONFORMANCE='$(SPECS)' NODE_CONFORMANCE_RESULTS=$(CURDIR)/bin/conformance-e2e \
	    go test -count=1 -timeout 12h -v -run '^TestConformance$$' .

.PHONY: conformance-kubectl
conformance-kubectl: build ## run kubectl's own tests with Kubernetes' controllers against bin/bowsprit, fifteen minutes; needs ../shared/conformance
	test/conformance/kubectl.sh $(SHARED)/conformance
