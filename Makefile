# make help shows what there is. PYTHON=python3.12 picks another Python, PORT=9000 another port.
PYTHON ?= python3
PORT ?=
PY := .venv/bin/python
ONE_IN ?= 4
SAMPLE = $(if $(WHOLE),,--one-in $(ONE_IN))
BRIEF = $(if $(WHOLE),, and not long)
TESTS ?=
SERVERLESS := not servers and not postgres and not cluster and not bench and not faults and not ui and not upstream
VERSIONS ?= $(if $(WHOLE),1.35 1.36 1.37,1.36)
# Without them each process would compile all modules anew, and pytest rewrite all assertions.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev frontend run test coverage test-pythons test-postgres test-servers test-cluster test-e2e test-ui fuzz faults chaos soak mutants conformance verify-all check lint walls types dependencies templates \
	settings schema client lock format clean python bench bench-quick bench-against bench-growth bench-peers bench-docs bench-follower bench-profile bench-replay bench-sets bench-ui screenshots

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "gatehouse: there is no $(PYTHON); install Python 3.11 or later, or run: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }

setup: python ## make .venv with what the product needs
	@$(PYTHON) -m portal.dev.install main

setup-dev: python ## make .venv with what the tests need, too
	@$(PYTHON) -m portal.dev.install dev

frontend: setup ## bundle what the pages load, with the machine's Node or one from the package index
	@$(PY) -m portal.dev.bundle

run: setup ## start the portal with demo policies on 127.0.0.1:8000
	@$(PY) -m portal.dev.run $(if $(PORT),--port $(PORT))

test: setup-dev ## run what needs no server, and of many equal cases one in ONE_IN=4; WHOLE=1 runs all
	@$(PY) -m pytest -n 2 $(SAMPLE) -m "$(SERVERLESS)$(BRIEF)" $(TESTS)

coverage: setup-dev ## run tests/engine, which cover every branch of the engine; WHOLE=1 all tests, and 95 % of all code
	@$(PY) -m pytest -n 2 $(SAMPLE) -m "$(SERVERLESS)$(BRIEF)" --cov-report=term:skip-covered $(if $(WHOLE),--cov --cov-fail-under=95,tests/engine --cov=engine --cov-fail-under=100)
	@$(PY) -m coverage report --include='engine/*' --fail-under=100 --format=total >/dev/null || { echo "gatehouse: the engine is not covered in full"; exit 1; }

test-pythons: setup-dev ## run the same, or TESTS=tests/portal, with the other Pythons, 3.12 to 3.14, as far as they are here
	@$(PY) -m tests.pythons 3.12 3.13 3.14 -- $(TESTS)

test-postgres: setup-dev ## run the same with PostgreSQL, started here in a temporary folder
	@$(PY) .ci/with_postgres.py $(MAKE) --no-print-directory test

test-servers: setup-dev ## start the product's own processes, with PostgreSQL and Redis; follow the commands of the guides
	@$(PY) -m pytest -n 2 --dist loadfile -m servers tests

test-cluster: setup-dev ## ask a real API server, from KUBEBUILDER_ASSETS or built once with Go into the cache; WHOLE=1 asks three versions
	@$(PY) -m tests.cluster.build $(VERSIONS) || [ $$? -eq 3 ]
	@$(PY) -m pytest -n 2 --dist loadfile -rsfE $(SAMPLE) -m "cluster$(BRIEF)" tests

test-e2e: setup-dev ## run Kubernetes' own tests of ranges and quotas, ROUNDS=3 times; QUICK=1 ten of them, where they are built
	@$(if $(QUICK),:,$(PY) -m tests.cluster.build && nice -n 10 $(PY) -m tests.upstream.build || [ $$? -eq 3 ])
	@QUICK=$(QUICK) RESYNC=$(RESYNC) ROUNDS=$(or $(ROUNDS),$(if $(WHOLE),3,1)) $(PY) -m pytest -n 0 -p no:randomly -rsfE -m upstream $(if $(ONLY),-k $(ONLY)) tests/upstream

test-ui: setup-dev ## visit pages with Chromium: all journeys, and a sample of the pages and their looks; WHOLE=1 all
	@$(PY) -m portal.dev.bundle
	@PAGE_LOOKS=$(if $(WHOLE),6,1) $(PY) -m pytest -n 2 --dist loadfile -rsfE $(SAMPLE) -m "ui$(BRIEF)" tests/browser

fuzz: setup-dev ## answer FUZZ_REVIEWS=1000000 mutated reviews (about half an hour)
	@FUZZ_REVIEWS=$${FUZZ_REVIEWS:-1000000} $(PY) -m pytest -n 2 tests/admission/api/test_fuzz.py
	@REPLAY_WORLDS=$(or $(REPLAY_WORLDS),20000) $(PY) -m pytest -n 2 tests/property/test_replay_laws.py

faults: setup-dev ## kill processes and the database, three times each; WHOLE=1 breaks them in every way
	@CHAOS_KILLS=$${CHAOS_KILLS:-3} FREEZE_SECONDS=$${FREEZE_SECONDS:-10} $(PY) -m pytest -n 0 $(SAMPLE) -m "faults$(BRIEF)" tests/faults

chaos: setup-dev ## the same in every way, with CHAOS_KILLS=50 kills each, frozen for FREEZE_SECONDS=30
	@CHAOS_KILLS=$${CHAOS_KILLS:-50} FREEZE_SECONDS=$${FREEZE_SECONDS:-30} $(PY) -m pytest -n 0 -m faults tests/faults

soak: setup-dev ## exactness under load, SOAK=20 times; WATCH_SEEDS=1000 histories of the ledger; sync under faults, SYNC_SEEDS=500 histories
	@for round in $$(seq $${SOAK:-20}); do echo "== round $$round"; $(PY) -m pytest -q -n 0 -m faults tests/faults/test_exactness.py || exit 1; done
	@WATCH_SEEDS=$${WATCH_SEEDS:-1000} $(PY) -m pytest -q -n 2 tests/property/test_watched_histories.py
	@HISTORY_SEEDS=$${HISTORY_SEEDS:-50} $(PY) -m pytest -q -n 0 -m cluster tests/cluster/test_histories.py
	@SYNC_SEEDS=$${SYNC_SEEDS:-500} $(PY) -m pytest -q -n 0 -m cluster tests/cluster/test_sync_faults.py

mutants: setup-dev ## plant known faults in a copy of the code, one at a time: a test must find each
	@$(PY) -m tests.mutants

conformance: setup-dev ## compare the engine with real API servers on CASES=50000 random cases of each of VERSIONS="1.35 1.36 1.37"
	@$(PY) -m tests.cluster.build $(VERSIONS)
	@$(PY) -m tests.cluster.conformance --cases $${CASES:-50000} --versions "$(VERSIONS)" $(if $(SEED),--seed $(SEED))

verify-all: ## run everything in its long form, which takes hours; VERIFY_STEPS="soak chaos" runs only these
	@.ci/run --all $(VERIFY_STEPS)

check: lint walls types dependencies templates settings schema ## run all of the following

lint: setup-dev ## format and style
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

walls: setup-dev ## who may import whom
	.venv/bin/lint-imports

types: setup-dev ## mypy, strict
	$(PY) -m mypy

dependencies: setup-dev ## declared libraries are those in use, and the pinned ones suit each other
	$(PY) -m pip check --disable-pip-version-check
	.venv/bin/deptry .

templates: setup-dev ## style of templates
	.venv/bin/djade --check $$(git ls-files 'templates/*.html')

settings: setup-dev ## system checks as deployed, and migrations that nobody forgot
	GATEHOUSE_ENV_FILE=/dev/null $(PY) manage.py check --deploy --fail-level WARNING
	GATEHOUSE_ENV_FILE=/dev/null $(PY) manage.py makemigrations --check --dry-run

schema: setup-dev ## the API's description
	GATEHOUSE_ENV_FILE=/dev/null $(PY) manage.py spectacular --validate --fail-on-warn --file /dev/null

client: setup-dev ## write gatehouse_cli/client from the API's description
	@GATEHOUSE_ENV_FILE=/dev/null $(PY) manage.py spectacular --format openapi-json | $(PY) -m portal.dev.client

lock: setup-dev ## pin requirements anew, from pyproject.toml
	.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra server --extra cli -o requirements/main.txt pyproject.toml
	.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --extra server --extra cli --group dev -o requirements/dev.txt pyproject.toml
	.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --group bench -o requirements/bench.txt
	.venv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --group node -o requirements/node.txt

bench-quick: setup-dev ## measure the product beside its floors, about a minute; SQLITE=1 on SQLite
	@$(PY) -m bench quick $(if $(SQLITE),--sqlite)

bench: setup-dev ## measure everything, about eight minutes; SQLITE=1 on SQLite
	@$(PY) -m bench $(if $(SQLITE),--sqlite)

bench-growth: setup-dev ## read a record of ten million rows; SQLITE=1 on SQLite
	@$(PY) -m bench growth $(if $(SQLITE),--sqlite)

bench-sets: setup-dev ## apply a repository of 1,000 objects, and test as many files offline; SQLITE=1 on SQLite
	@$(PY) -m bench sets $(if $(SQLITE),--sqlite)

bench-replay: setup-dev ## replay 100,000 recorded decisions under a proposed policy; SQLITE=1 on SQLite
	@$(PY) -m bench replay $(if $(SQLITE),--sqlite)

bench-follower: setup-dev ## follow 100 clusters with 50,000 pods; SQLITE=1 on SQLite
	@$(PY) -m bench follower $(if $(SQLITE),--sqlite)

bench-against: setup-dev ## measure this checkout beside COMMIT=, by turns in ten pairs; about ten minutes
	@[ -n "$(COMMIT)" ] || { echo "gatehouse: name the commit to compare with: make bench-against COMMIT=HEAD~1" >&2; exit 1; }
	@$(PY) -m bench against $(COMMIT) $(if $(PAIRS),--pairs $(PAIRS)) $(if $(SQLITE),--sqlite)

bench-live: setup-dev ## create pods on a real API server, through the webhook and without
	@$(PY) -m tests.cluster.build || [ $$? -eq 3 ]
	@$(PY) -m bench live $(if $(RATE),--rate $(RATE))

bench-profile: setup-dev ## show where the product's time goes; SQLITE=1 on SQLite
	@$(PY) -m bench profile $(if $(SQLITE),--sqlite)

bench-ui: setup-dev ## measure the pages over 5,000 policies and a million decisions; QUICK=1 over fewer
	@$(PY) -m portal.dev.bundle
	@$(PY) -m bench ui $(if $(QUICK),--quick)

screenshots: setup-dev ## take the pictures of docs/images from the demo data, with Chromium
	@$(PY) -m portal.dev.bundle
	@$(PY) -m tests.browser.pictures

bench-peers: setup-dev ## fetch the engines that the benchmark compares with, where it can
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade --require-hashes --no-deps --target bench/results/python --requirement requirements/bench.txt
	@command -v go > /dev/null || { echo "there is no Go compiler here: OPA is left out"; exit 0; }; \
	GOBIN="$(CURDIR)/bench/results/peers" go install -trimpath github.com/open-policy-agent/opa@v1.22.0

bench-docs: setup-dev ## put the last full run into docs/explanation
	@$(PY) -m bench docs

format: setup-dev ## format the code
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

clean: ## remove .venv; data under var/ is kept
	rm -rf .venv
