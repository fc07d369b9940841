.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
UV := .uv/bin/uv
RUN := .venv/bin/
# With it, each of hundreds of processes compiles all that it imports: a second or two each time.
unexport PYTHONDONTWRITEBYTECODE
BENCH = PYTHONPATH=tests $(RUN)python -m benchmarks.
# Two workers, each with a broker, a schema registry and a Spark session that its tests share.
WORKERS := 2
PYTEST = $(RUN)python $(PYTEST_OPTIONS)
PYTEST_OF_DELTA = lake/.venv/bin/python $(PYTEST_OPTIONS)
PYTEST_OPTIONS = -m pytest --numprocesses $(WORKERS) --no-loadscope-reorder $(SELECTED)

# unit: no JVM. spark: transforms and streams, no server. kafka: a real broker. secure: one that requires authentication. dashboard: pages, and a
# browser. cluster: a Spark Standalone cluster. e2e: whole programs that fail and are killed.
TIERS := e2e cluster kafka secure dashboard spark unit
# Those with tests that need Delta.
TIERS_OF_DELTA := cluster e2e kafka secure spark
# The files of these tiers that have tests which need Delta. Each worker imports all files that it is given.
files_of_delta = $(if $(filter $(TIERS_OF_DELTA),$(1)),$(shell grep -rl --include='*.py' 'mark\.delta' $(addprefix tests/,$(filter $(TIERS_OF_DELTA),$(1)))))

.PHONY: help setup demo check docs screenshots animation format test test-quick $(addprefix test-,$(TIERS)) lake compose-test chaos crash-points schedules bench workshop-notebooks workshop-bundle jars-lock clean clean-data

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "make test-TIER          one tier, whole: $(TIERS)"

.uv/bin/uv:
	@echo "installing uv into .uv"
	@$(PYTHON) -m venv .uv || { echo "$(PYTHON) -m venv failed; on Debian and Ubuntu: apt install python3 python3-venv"; exit 1; }
	@.uv/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.8

# $(PYTHON) if it fits, else one that uv finds or fetches.
FITS := import sys; (3, 11) <= sys.version_info < (3, 15) or sys.exit(1); print(sys.executable)
define sync
	@echo "installing Python packages into $(@D)$(2)"
	@python="$$($(PYTHON) -c '$(FITS)')" || python="$$($(UV) python find --quiet)" \
		|| { $(UV) python install 3.13 && python=3.13; } \
		|| { echo "no Python 3.11, 3.12, 3.13 or 3.14 found, and none could be fetched: install one, then make PYTHON=/path/to/python3"; exit 1; }; \
	$(UV) sync --frozen --compile-bytecode --python "$$python" $(1)
	@touch $@
endef

# What the programs need. Development tools that are there stay.
.venv/.ready: pyproject.toml uv.lock | .uv/bin/uv
	$(call sync,--no-dev --inexact)

.venv/.dev: pyproject.toml uv.lock | .uv/bin/uv
	$(call sync,, with development tools)
	@touch .venv/.ready

setup: .venv/.dev ## the virtual environment with development tools, from the lock

demo: .venv/.ready ## Kafka, producers, pipeline and dashboard, all at once; Ctrl-C ends it
	@$(RUN)streamgauge demo

# Delta has no version for Spark 4.3 yet.
lake/.venv/.ready: pyproject.toml lake/pyproject.toml lake/uv.lock | .uv/bin/uv
	$(call sync,--project lake)

lake: lake/.venv/.ready ## what ingest, derive, maintain and Delta archives need, once (docs/lake.md)

check: .venv/.dev ## lint, format, types, imports and prose
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	$(RUN)lint-imports
	$(RUN)proselint check --config .proselintrc.json *.md benchmarks/NOTES.md docs workshop

docs: .uv/bin/uv ## the documentation as a site, in site/; a dead link fails
	NO_MKDOCS_2_WARNING=1 $(UV) run --frozen --isolated --only-group docs mkdocs build

screenshots: .venv/.dev ## docs/pictures, of the dashboard that runs, in Chromium
	PYTHONPATH=. $(RUN)python docs/screenshots.py

animation: .venv/.dev ## docs/pictures/verified.webp, of the demo that runs, which it kills
	PYTHONPATH=. $(RUN)python docs/animation.py

format: .venv/.dev ## put the code into its format
	$(RUN)ruff check --fix .
	$(RUN)ruff format .

# The third worker uses the cores while others wait.
test: WORKERS := 3
test: .venv/.dev lake/.venv/.ready ## every test but compose-test and the longest (marked `long`)
	$(PYTEST) -m "not long and not delta" $(addprefix tests/,$(TIERS))
	$(if $(call files_of_delta,$(TIERS)),$(PYTEST_OF_DELTA) -m "not long and delta" $(call files_of_delta,$(TIERS)))

test-quick: .venv/.dev ## what needs neither server nor Delta: for each change
	$(PYTEST) -m "not long and not delta" tests/spark tests/unit

$(addprefix test-,$(TIERS)): test-%: .venv/.dev
	$(PYTEST) -m "not delta" tests/$*
	$(if $(call files_of_delta,$*),$(PYTEST_OF_DELTA) -m delta $(call files_of_delta,$*))

$(addprefix test-,$(TIERS_OF_DELTA)): lake/.venv/.ready

compose-test: .venv/.dev ## docker-compose.yaml, from its build to `down`; needs Docker; MINUTES=10
	MINUTES=$(or $(MINUTES),10) $(RUN)python -m pytest tests/compose
	.ci/compose passed

chaos: .venv/.dev ## break everything under load, then verify; ROUNDS=n SEED=s
	PYTHONPATH=tests $(RUN)python -m chaos --rounds $(or $(ROUNDS),1) --seed $(or $(SEED),0)

crash-points: .venv/.dev lake/.venv/.ready ## kill before each file operation, then verify; CASE=name
	PYTHONPATH=tests $(RUN)python -m crash_points $(CASE)

schedules: .venv/.dev ## take schedules of the model in tests/protocol.py on Spark; NUMBER=n SEED=s
	PYTHONPATH=tests $(RUN)python -m protocol_on_spark --number $(or $(NUMBER),1000) --seed $(or $(SEED),0)

bench: .venv/.dev ## figures of this machine; takes an hour
	$(BENCH)nest
	$(BENCH)latency 60 micro-batches micro-batches-alone kafka-streams
	$(BENCH)peers
	$(BENCH)peers.kill
	$(BENCH)wikimedia
	$(BENCH)tables
	$(BENCH)neighbours
	$(BENCH)demo
	$(BENCH)workshop

workshop-notebooks: .venv/.dev ## labs as notebooks, in my-workshop/, and JupyterLab
	@$(UV) sync --frozen --quiet --inexact --group notebooks
	$(RUN)python -m workshop.notebooks

# The copy sets itself up as a machine in the room will, and keeps what it downloads: packages and jars in .bundle.
BUNDLE := build/streamgauge
workshop-bundle: .venv/.dev ## the workshop for machines without a network: build/streamgauge-workshop.tar.gz
	rm -rf $(BUNDLE)
	mkdir -p $(BUNDLE)/.uv/bin
	git archive HEAD | tar -x -C $(BUNDLE)
	cp $(UV) $(BUNDLE)/$(UV)
	@# For lake/, uv reads no settings of the folder above.
	echo 'cache-dir = ".bundle/uv"' | tee $(BUNDLE)/uv.toml >$(BUNDLE)/lake/uv.toml
	$(MAKE) -C $(BUNDLE) setup lake workshop-notebooks
	cd $(BUNDLE) && STREAMGAUGE_CACHE=.bundle/jars $(RUN)streamgauge fetch
	cd $(BUNDLE) && STREAMGAUGE_CACHE=.bundle/jars lake/.venv/bin/streamgauge fetch
	echo 'offline = true' | tee -a $(BUNDLE)/uv.toml >>$(BUNDLE)/lake/uv.toml
	rm -rf $(BUNDLE)/.venv $(BUNDLE)/lake/.venv $(BUNDLE)/my-workshop
	@# Each machine's `fetch` makes these for its own folder, from what is in .bundle.
	rm -rf $(BUNDLE)/.bundle/jars/class-data $(BUNDLE)/.bundle/jars/unpacked
	@# uv needs what it built, and not what it built it from.
	find $(BUNDLE)/.bundle/uv/sdists-*/pypi '(' -name src -o -name '*.whl' ')' -prune -exec rm -rf '{}' +
	@# Two versions of Spark share most of their jars.
	$(RUN)python .ci/link_copies.py $(BUNDLE)/.bundle
	tar -czf $(BUNDLE)-workshop.tar.gz -C build streamgauge
	$(RUN)python -m pytest tests/bundle
	@du -h $(BUNDLE)-workshop.tar.gz

jars-lock: .venv/.dev ## regenerate infrastructure/java/jars.lock (needs Maven)
	$(RUN)python .ci/lock_jars.py

clean-data: .venv/.ready ## all data of the programs, after a question
	@$(RUN)streamgauge clean

clean: ## environments and what tools have built; data stays
	rm -rf .venv .uv lake/.venv build site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
