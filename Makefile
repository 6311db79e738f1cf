# Every target works on a fresh clone, makes what it needs, and says in one line what it is about to do.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

.DEFAULT_GOAL := help
.PHONY: help run test thorough simulate storms fuzz coverage check cluster-up cluster-down cluster-status cluster-test contract e2e nodes devices failures frameworks chaos soak oracle bench bench-hooks bench-cpu bench-size docs lock clean monitoring browser docs-site tutorial release release-test

# How many seeded runs `make simulate` takes, and what `make chaos`, `make bench` and the other benches are told
# (CHAOS=--short).
RUNS  ?= 2000
# Where their seeds begin: a number that changes with every commit makes other runs of each.
SEED_BASE ?= 1
# In which order Python goes through sets. No decision may depend on it: any other one makes the same runs.
HASHSEED ?= 1
# `make storms` takes STORMS= seeds for each of these, each other ones than those before.
HASHSEEDS ?= 1 2 3 4 5 6 7 8 9 10
STORMS ?= 340
# How many cases `make fuzz` makes for each target, and of which seed; `make oracle` makes 1 000 unless CASES= says more.
CASES ?= 20000
SEED  ?= 1
# `make oracle` looks at one of its clusters again: CLUSTER=17.
CLUSTER ?=
CHAOS ?=
# `make release` takes what hack/release takes: --base IMAGE, --out FOLDER, --dirty.
RELEASE ?=
BENCH ?=

# On real servers a failed case runs once more, alone: what passes then is listed in build/flakes.json.
SUITE := $(BIN)/python hack/suite.py

# Compiled modules are kept, also where the environment says otherwise: else each worker compiles all of them anew.
export PYTHONDONTWRITEBYTECODE :=

# Never beside others: two apply manifests as they are, for one scheduler name in one namespace, one measures how fast, one
# installs a webhook.
ALONE := tests/e2e/test_chart.py tests/e2e/test_deployed.py tests/e2e/test_examples.py tests/e2e/test_hostile_namespace.py tests/e2e/test_node_controller.py

# Ten minutes of kills, as a target of its own.
FAILURES := tests/e2e/test_real_failures.py
# What needs a cluster with FRAMEWORKS=1.
FRAMEWORKS_TESTS := tests/e2e/test_frameworks.py
# What needs a browser.
PAGE_TESTS := tests/e2e/test_live_page.py

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements/dev.lock pyproject.toml
	@echo "make: installing the pinned Python packages into $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slurm-bridge needs Python 3.11 or newer; name one with: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV) || { echo "python's venv module is incomplete: on Debian install python3-venv" >&2; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@# A copy is built, because a build leaves traces in the sources.
	@copy=$$(mktemp -d) && cp -R examples/custom-hook $$copy/ && \
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation $$copy/custom-hook; \
	status=$$?; rm -rf $$copy; exit $$status
	@touch $(READY)

run: $(READY) ## the real daemon takes the examples from pending to done, no servers needed
	@echo "make run: the daemon schedules the examples in the pocket Kubernetes and the pocket Slurm"
	@$(BIN)/slurm-bridge demo

test: $(READY) ## unit tests, conformance of the hooks, the contract suite on the pocket servers, hack/, a short fuzz, the example hook
	@echo "make test: unit tests, conformance cases of the hooks, the contract suite on the pocket servers, the tests of"
	@echo "make test: hack/, a short form of make fuzz, and the tests of examples/custom-hook"
	@PYTHONHASHSEED=$(HASHSEED) $(BIN)/pytest -q -n 4 --dist loadfile -m "not real and not thorough"
	@$(BIN)/pytest -q examples/custom-hook

thorough: $(READY) ## what make test leaves out: cases that take seconds, and every property on all of its examples, of SEED=
	@echo "make thorough: cases that take seconds, and every property on all of its examples, of seed $(SEED)"
	@PYTHONHASHSEED=$(HASHSEED) $(BIN)/pytest -q -n 4 --dist loadfile --thorough -m "thorough or hypothesis" \
	    --hypothesis-seed=$(SEED)

simulate: $(READY) ## the core killed after every call, and RUNS= seeded runs full of faults, watched by an observer
	@echo "make simulate: the daemon's core in a deterministic world: every kill, and $(RUNS) random runs"
	@echo "make simulate: to repeat all of it: make simulate RUNS=$(RUNS) SEED_BASE=$(SEED_BASE) HASHSEED=$(HASHSEED)"
	@PYTHONHASHSEED=$(HASHSEED) $(BIN)/pytest -q -n 2 tests/simulation --runs $(RUNS) --first-seed $(SEED_BASE) --every-call

storms: $(READY) ## the random runs of `make simulate` alone, other seeds for each of HASHSEEDS= (STORMS=, SEED_BASE=)
	@first=$(SEED_BASE); failed=; for hashseed in $(HASHSEEDS); do \
	    echo "make storms: seeds from $$first on, hash seed $$hashseed"; \
	    PYTHONHASHSEED=$$hashseed $(BIN)/pytest -q -n 2 tests/simulation --only-seeded --runs $(STORMS) --first-seed $$first \
	        || failed="$$failed $$hashseed"; \
	    first=$$((first + $(STORMS))); \
	done; test -z "$$failed" || { echo "make storms: failed with hash seeds:$$failed" >&2; exit 1; }

monitoring: $(READY) ## the board and the alerts of deploy/monitoring, in a real Prometheus that scrapes daemons at work
	@echo "make monitoring: every alert is made to fire by promtool, every expression has data under the load of make run"
	@$(BIN)/pytest -q -n 2 --dist loadfile tests/monitoring

release: $(READY) ## wheel, sdist, chart, alerts, board, bill of materials, notes and checksums (RELEASE=--dirty)
	@echo "make release: the files of the version in slurm_bridge/__init__.py, below build/release"
	@$(BIN)/python hack/release $(RELEASE)

release-test: $(READY) ## the wheel in an empty environment from the index, and the file system of the image
	@echo "make release-test: what was installed and what is in the image run the demo; minutes"
	@$(BIN)/pytest -q tests/release

fuzz: $(READY) ## hostile manifests, answers, objects, daemons and looks, CASES= of each, of SEED=
	@echo "make fuzz: $(CASES) cases of seed $(SEED) for each target; a finding says how its case is made again"
	@PYTHONHASHSEED=$(HASHSEED) $(BIN)/pytest -q -n 2 tests/fuzz --cases $(CASES) --fuzz-seed $(SEED)

browser: $(READY) ## the page of the live view in a headless Chromium, which Debian's packages bring (as root they are installed)
	@echo "make browser: a real Chromium on the page of a daemon with 2 000 workloads; pictures in build/browser/"
	@$(BIN)/pytest -q tests/browser

browser-real: $(READY) ## the same page with 2 000 workloads on the local cluster
	@echo "make browser-real: from a queue to a node by clicks, the first paint, and what a viewer costs; pictures and figures in build/browser-real/"
	@$(BIN)/pytest -q $(PAGE_TESTS)

coverage: $(READY) ## which lines no unit test, no pocket case and no short simulation has run
	@echo "make coverage: the tests of make test, without the fuzz and the example hook, and a short simulation: slower,"
	@echo "make coverage: counting lines and branches"
	@$(BIN)/coverage run -m pytest -q tests/unit tests/component tests/conformance tests/contract tests/hack tests/simulation
	@$(BIN)/coverage report

check: $(READY) ## format, lint, types, words, layers, and whether the generated pages are current
	@echo "make check: ruff, mypy --strict, words, import-linter, generated docs"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@MYPYPATH=hack/cluster $(BIN)/mypy --strict --explicit-package-bases -p localcluster
	@MYPYPATH=hack:hack/cluster $(BIN)/mypy --strict hack/docs.py hack/suite.py hack/failed_cases.py hack/words.py \
	    hack/figures.py hack/hops.py hack/soak/watch_soak.py
	@MYPYPATH=hack/release $(BIN)/mypy --strict hack/release/__main__.py deploy/rootfs.py
	@MYPYPATH=hack/bench:hack/cluster:hack $(BIN)/mypy --strict --explicit-package-bases -p clusterbench -p cpubench -p hooksbench \
	    -p sizebench -m bench_page
	@MYPYPATH=hack/oracle:hack/cluster $(BIN)/mypy --strict --explicit-package-bases -p scheduleroracle
	@$(BIN)/python hack/words.py
	@$(BIN)/lint-imports --no-cache --no-logo
	@$(BIN)/python hack/docs.py --check

cluster-up: ## real Slurm and Kubernetes on loopback (NODES=, CPUS=, GPUS=, ACCOUNTING=1, REAL_NODES=2, FRAMEWORKS=1)
	@echo "make cluster-up: Slurm 26.05 in a container and Kubernetes 1.36 on loopback"
	@hack/cluster/up

cluster-down: ## stop the local cluster and remove what it wrote
	@echo "make cluster-down: stopping every part of the local cluster and removing its files"
	@hack/cluster/down

cluster-status: ## what runs, where, and its log
	@hack/cluster/status

cluster-test: $(READY) ## start, hurt, repair and stop a second local cluster, and look for leftovers
	@echo "make cluster-test: a second cluster beside yours: started, killed part by part, repaired, enlarged, removed"
	@$(BIN)/pytest -q tests/cluster

contract: $(READY) ## the same cases on the pocket servers and on the real ones
	@echo "make contract: one suite per port, on the pocket servers and on the local cluster"
	@$(SUITE) contract "--with=--servers both" --run tests/contract

e2e: $(READY) ## pods and groups through both real servers at once
	@echo "make e2e: real objects of real controllers, allocated by the real Slurm, on the local cluster"
	@$(SUITE) e2e --run "-n 3 --dist loadfile -m 'not disruptive' tests/e2e $(ALONE:%=--ignore=%) --ignore=$(FRAMEWORKS_TESTS) --ignore=$(PAGE_TESTS)" \
		--run "$(ALONE)" --run "-m disruptive tests/e2e --ignore=$(FAILURES)"

nodes: MINUTES = 10
nodes: $(READY) ## administrators of both sides work at random on 200 nodes, for MINUTES=
	@echo "make nodes: nodes are added, cordoned, drained, renamed and deleted on both sides, and both have to agree"
	@$(BIN)/pytest -q tests/e2e/test_node_controller.py --node-minutes $(MINUTES) --node-count 200

devices: ROUNDS = 100
devices: $(READY) ## pods and native jobs at random on the GPUs of two real nodes, ROUNDS= times (REAL_NODES=2)
	@echo "make devices: no device is held twice, seen from inside the containers and the native jobs"
	@$(BIN)/pytest -q tests/e2e/test_real_devices.py --device-rounds $(ROUNDS)

failures: $(READY) ## kill every part of two real nodes and of the servers while pods and native jobs run (REAL_NODES=2)
	@echo "make failures: what runs runs on, no device is held twice, and nothing is left, on the local cluster"
	@$(SUITE) failures --run "-m disruptive $(FAILURES)"

frameworks: $(READY) ## MPI operator, Trainer, KubeRay, Argo Workflows and Kueue with pods placed by Slurm (FRAMEWORKS=1)
	@echo "make frameworks: what real operators make is grouped, queued, bound and ended, on the local cluster"
	@$(SUITE) frameworks --run $(FRAMEWORKS_TESTS)

chaos: $(READY) ## kill the daemon and the servers while pods are scheduled (CHAOS=--short)
	@echo "make chaos: kill -9 of the daemon, of slurmctld, slurmrestd and the apiserver, on the local cluster"
	@$(SUITE) chaos "--with=$(CHAOS)" --run tests/chaos

soak: $(READY) ## 10 000 pods while the apiserver is killed five times
	@echo "make soak: the watched cache against a fresh list while the real apiserver dies five times"
	@$(BIN)/python hack/soak/watch_soak.py

oracle: CASES = 1000
oracle: $(READY) ## kube-scheduler 1.36 itself against the hook kube-scheduler, on CASES= random pods, of SEED=
	@echo "make oracle: $(CASES) random pods of seed $(SEED) on random clusters, through an apiserver of its own"
	@PYTHONPATH=hack/oracle:hack/cluster $(BIN)/python -m scheduleroracle --cases $(CASES) --seed $(SEED) \
	    $(CLUSTER:%=--cluster %)

bench: $(READY) ## pods a second, latencies, calls and CPU, beside bare calls and kube-scheduler (BENCH="--pods 500")
	@echo "make bench: this daemon, a raw loop and kube-scheduler, by turns, on 1 000 nodes; writes build/bench.json"
	@PYTHONPATH=hack/bench:hack/cluster:hack $(BIN)/python -m clusterbench $(BENCH)

bench-hooks: $(READY) ## workloads a second through the hooks at 100 to 20 000 nodes, against the goals (BENCH=--quick)
	@echo "make bench-hooks: the families of hooks, and queues, on made-up clusters; writes build/bench-hooks.json"
	@PYTHONPATH=hack/bench $(BIN)/python -m hooksbench $(BENCH)

bench-cpu: $(READY) ## the daemon's CPU per pod, without families of hooks, with each and with all (BENCH="--rounds 3")
	@echo "make bench-cpu: the daemon between pocket servers with 1 000 nodes, by turns; writes build/bench-cpu.json"
	@PYTHONPATH=hack/bench:hack/cluster:hack $(BIN)/python -m cpubench $(BENCH)

bench-size: $(READY) ## the daemon between pocket servers of 1 000 and 5 000 nodes: cold start, memory, quiet (BENCH="--nodes 20000")
	@echo "make bench-size: ten pods for each node, of which four run, between pocket servers; writes build/bench-size.json"
	@PYTHONPATH=hack/bench:hack/cluster:hack $(BIN)/python -m sizebench $(BENCH)

docs: $(READY) ## write the generated pages again, and the generated parts of others
	@echo "make docs: writing docs/explained/ and the generated parts of README.md and docs/"
	@$(BIN)/python hack/docs.py

DOCS := build/docs-venv

$(DOCS)/ready: requirements/docs.lock
	@echo "make: installing the pinned packages for the documents into $(DOCS)"
	@$(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.lock
	@touch $(DOCS)/ready

docs-site: $(DOCS)/ready ## the documents as a site in build/site, with search and versions; every link is checked
	@echo "make docs-site: building the site of this version, and checking every link"
	@$(DOCS)/bin/python hack/site/build_site.py

tutorial: $(READY) ## run every command of docs/tutorial.md in order; starts the local cluster and removes it
	@echo "make tutorial: the commands of docs/tutorial.md, on the local cluster, which is removed at the end"
	@$(BIN)/pytest -q tests/tutorial

lock: $(READY) ## pin the dependencies anew
	@echo "make lock: resolving the ranges of pyproject.toml into requirements/*.lock"
	@hack/lock

clean: ## remove the virtual environment and build products
	@echo "make clean: removing $(VENV) and build/"
	@rm -rf $(VENV) build
