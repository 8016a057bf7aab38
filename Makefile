# Corelane. `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Targets use what the one before them has installed or built, also where MAKEFLAGS has -j.
.NOTPARALLEL:
.PHONY: help setup run build images sbom cluster docs docs-serve generate verify format test test-load test-repeat test-all test-mutants test-hostile test-frameworks test-alerts test-dashboards test-browser test-keda test-argocd test-tracing e2e bench-concurrency bench-drain bench-edge bench-faults bench-fleet bench-first-hour bench-observe bench-operator bench-rollout bench-runtime simulate bench-browser soak demo down clean tools-path release release-images release-test release-publish

NODE := node_modules/.bin/node
# The engine's address, tools on PATH, image names: each script prints what the next one needs.
ENGINE = eval "$$(e2e/cluster/engine.sh env)"
TOOLS = export PATH="$$(e2e/cluster/tools.sh):$$PATH"

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: node_modules/.package-lock.json examples/storefront/node_modules/.package-lock.json ## install Node packages (Node 24 among them), checked, no script of theirs run

node_modules/.package-lock.json: package.json package-lock.json
	@echo "Installing Node packages (about 30 s) ..." >&2
	@npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	@.ci/node-is-there.sh
	@touch $@

examples/storefront/node_modules/.package-lock.json: examples/storefront/package.json examples/storefront/package-lock.json
	@cd examples/storefront && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	@touch $@

run: ## a page on http://localhost:8080, without a cluster; APP=FILE.yaml or a folder, OPTIONS='--pods 3 --chaos'
	@e2e/run.sh "$(APP)" $(OPTIONS)

build: setup operator/dist/main.mjs sidecar/runtime/dist/spans.cjs ## bundle the operator, and what sends spans, into a file each

sidecar/runtime/dist/spans.cjs: sidecar/runtime/dist/spans.cdx.json ;

sidecar/runtime/dist/spans.cdx.json: package-lock.json operator/gen/sbom.ts $(wildcard sidecar/spans/*)
	@sidecar/spans/bundle.sh

# The bundle and what is in it come from one run of esbuild.
operator/dist/main.mjs: operator/dist/main.cdx.json ;

operator/dist/main.cdx.json: package-lock.json operator/gen/bundle.sh operator/gen/sbom.ts $(shell find operator/src -name '*.ts' 2>/dev/null)
	@operator/gen/bundle.sh operator/dist

images: build ## build the images (operator, sidecar, storefront)
	@e2e/cluster/engine.sh up
	@$(ENGINE); e2e/images.sh

sbom: build ## SBOMs of operator and sidecar image into .state/sbom (CycloneDX, SPDX), by syft (the first time some minutes to build it)
	@e2e/cluster/engine.sh up
	@$(ENGINE); e2e/sbom.sh

cluster: setup ## bring up the three-node kind cluster
	@e2e/cluster/engine.sh up
	@$(ENGINE); $(TOOLS); e2e/cluster/cluster.sh up >/dev/null

generate: setup ## make CRD, chart copy, RBAC, install.yaml, reference and the picture of the supervisor
	@$(NODE) operator/gen/generate.ts
	@PATH="$$(e2e/cluster/tools.sh helm):$$PATH" $(NODE) operator/gen/install.ts

verify: setup ## generated files, types, lint, chart: nothing may differ or complain
	@.ci/verify.sh

format: setup ## format and fix what can be fixed by machine
	@node_modules/.bin/biome check --write .

docs/site/node_modules/.package-lock.json: docs/site/package.json docs/site/package-lock.json
	@cd docs/site && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2
	@touch $@

docs: setup docs/site/node_modules/.package-lock.json ## the documentation as a site in docs/site/dist; a dead link fails (15 s)
	@.ci/docs.sh

docs-serve: setup docs/site/node_modules/.package-lock.json ## the documentation on http://localhost:5173, as you write it
	@$(NODE) docs/site/node_modules/vitepress/bin/vitepress.js dev docs/site --host 127.0.0.1 --port 5173

test: build ## the gate's tests that need no cluster: unit, API server, sidecar image
	@.ci/test.sh unit api sidecar

test-load: build ## tests whose verdict depends on rates, times or free cores, one file at a time, alone on the machine (about an hour); LOAD=sidecar for a part
	@.ci/load.sh

test-repeat: build ## FILE='sidecar/test/drain.test.ts' N=20 BURN=1: a test file N times beside a loop that burns a core; GATE=1 N=5: the whole gate, from clean clones
	@$(NODE) .ci/repeat.mjs

test-all: build ## everything there is, and a table of it (most of a day); ALL='gate load' for a part
	@$(NODE) .ci/all.mjs

test-mutants: build ## break the data plane in more than 400 ways: does a test notice each? (about an hour; SHARD=2/4 for a quarter)
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) sidecar/test/mutants/run.ts $(MUTANTS)

test-hostile: build ## hostile bytes, floods, slow clients and neighbours against every port, with honest clients beside (20 min); HOSTILE=floods for a part
	@.ci/hostile.sh

test-frameworks: build ## the examples of docs/frameworks (Next, Nuxt, SvelteKit, React Router, Astro, Angular, Hypernova), built, run, and opened in Debian's Chromium (8 min; the first time some more)
	@.ci/test.sh frameworks

test-alerts: build ## faults of a real fleet, seen by a real Prometheus: each raises its alert and none of another's (11 min)
	@.ci/test.sh alerts

test-keda: build ## KEDA scales RenderServices: its operator, built from its module, beside a real API server (8 min; the first time as long again to build it)
	@.ci/test.sh keda

test-argocd: build ## Argo CD's own comparison, built from its module, says Synced of RenderServices on a real API server (the first time some minutes to build it)
	@.ci/test.sh argocd

test-tracing: build ## spans of pods, received by a real OpenTelemetry Collector, built from its modules (2 min; the first time some more to build it)
	@.ci/test.sh tracing

test-dashboards: build ## each query of the Grafana dashboards, asked of a real Prometheus that has seen a fleet under faults (6 min); UPDATE_PICTURES=1 draws the docs' pictures
	@.ci/dashboards.sh

test-browser: build ## the page of `corelane dashboard` in Debian's Chromium (1 min; the first time 30 s more); UPDATE_PICTURES=1 makes the docs' pictures
	@.ci/test.sh browser

e2e: build cluster ## the stories on the kind cluster
	@.ci/test.sh e2e

bench-drain: build cluster ## the drain and the fault story in full, 100,000 requests (about 25 min)
	@BENCH=full .ci/test.sh load-e2e -- --testPathPatterns 'stories/(drain|faults)' || failed=1; \
	 $(NODE) bench/drain.ts && exit $${failed:-0}

soak: build cluster ## RenderServices made, changed, broken and deleted, pods, operators and API server killed, by chance, with honest clients beside (an hour; MINUTES=12); SEED=7 repeats a run
	@.ci/soak.sh

simulate: setup ## a simulated day: the scaling policy beside HPA, Knative, fixed fleets and an oracle; and renders that wait (about a minute)
	@$(NODE) operator/bin/corelane.mjs simulate --out docs/benchmarks
	@$(NODE) operator/gen/simulate-waiting.ts

bench/peers/node_modules/.package-lock.json: bench/peers/package.json bench/peers/package-lock.json
	@cd bench/peers && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error >&2
	@touch $@

bench-faults: build bench/peers/node_modules/.package-lock.json ## faults, side by side with peers (25 min on a quiet machine); BENCH=corelane,cluster SCENARIOS=kill,chain for a part
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/faults.ts

bench-fleet: build ## pods that share their work, side by side with peers (30 min on a quiet machine); BENCH=corelane LOADS=0.8 for a part
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/fleet.ts

bench-edge: build bench/peers/node_modules/.package-lock.json ## what a front does in the pod, side by side with peers (6 min on a quiet machine); EDGE=cached,herd for a part
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh sidecar node peers); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE CORELANE_PEERS_IMAGE=$$PEERS_IMAGE \
	 $(NODE) bench/edge.ts

bench-concurrency: build ## concurrency: Auto beside fixed numbers and Node's cluster (8 min); BENCH=waits,steady for a part
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh sidecar node chromium); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/concurrency.ts

bench-runtime: build ## every fault on every major of Node.js, and what the worker runtime costs (about 15 min)
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/runtime.ts

bench-browser: build ## the page of `corelane dashboard` with 200 pods, in Chromium: frame times (1 min on a quiet machine)
	@e2e/cluster/engine.sh up
	@$(ENGINE); $(NODE) bench/browser.ts

bench-observe: build ## ten faults in an order that nobody knows, each named by corelane explain and dashboard; what it costs to be seen (8 min); OBSERVE=faults,cost FAULTS=loop SEED=7
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh sidecar node chromium); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/observe.ts

bench-operator: build ## the operator with 1,000 services and 10,000 pods on kwok, beside plain objects (Linux; about an hour); SHAPES=100x10/5 for a part
	@e2e/cluster/engine.sh up
	@$(ENGINE); export PATH="$$(e2e/cluster/tools.sh kubectl helm):$$PATH"; images=$$(e2e/images.sh sidecar node); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/operator.ts

bench-rollout: build ## a change under load: shares, aborts, pods that go, chunks of yesterday, beside plain Deployments; PARTS=traffic,judgement,chunks REQUESTS=20000
	@e2e/cluster/engine.sh up
	@$(ENGINE); images=$$(e2e/images.sh sidecar node chromium); export $$images; \
	 CORELANE_SIDECAR_IMAGE=$$SIDECAR_IMAGE CORELANE_NODE_IMAGE=$$NODE_IMAGE $(NODE) bench/rollout.ts

bench-first-hour: setup ## run, demo and test where nothing is cached, in an engine and folders of their own (30 min, root); PARTS=demo_cold for a part
	@$(NODE) bench/first-hour.ts

demo: ## a React page on three nodes: 1,000 renders, and a table
	@e2e/demo.sh

release: build ## every file of a release into dist/, nothing published (needs Linux; the first time it builds syft, some minutes)
	@e2e/cluster/engine.sh up
	@$(ENGINE); .ci/release/release.sh

release-images: build ## images of this machine's architecture into dist/images, for `IMAGES=FOLDER make release` elsewhere
	@e2e/cluster/engine.sh up
	@$(ENGINE); .ci/release/images.sh native dist/images

release-test: ## a kind cluster of its own, installed from the files in dist/ alone, serves an example; chart and images through a registry
	@e2e/cluster/engine.sh up
	@$(ENGINE); .ci/release/test.sh

release-publish: ## publish and sign what is in dist/: for .github/workflows/release.yaml only
	@.ci/release/publish.sh all

tools-path: ## print the folder of kubectl, helm and kind
	@e2e/cluster/tools.sh

down: ## remove the cluster and test containers, stop the engine; keep what was built
	@e2e/cluster/down.sh

clean: ## remove all that the other targets created, caches included
	@e2e/cluster/clean.sh
	@rm -rf node_modules operator/dist dist examples/storefront/node_modules bench/peers/node_modules docs/site/node_modules docs/site/dist
