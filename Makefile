# Two commands: `make run` and `make test`. README.md says what they do. `make bench` measures.

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Compiled without link-time optimization, in less than half of the time.
CROSSTIE := $(TARGET)/quick/crosstie

.PHONY: run build bench book test test-all chaos needs free quick

# `make run ARGS='check'` runs that instead of the router.
run: needs free quick
ifeq ($(strip $(ARGS)),)
	@printf '%s\n' \
	  'The router starts on its embedded default. To try it, in other terminals:' \
	  '' \
	  '  $(CROSSTIE) register com.example.echo --echo' \
	  '  $(CROSSTIE) call com.example.echo 2 hello' \
	  '' \
	  '  $(CROSSTIE) subscribe com.example. --match prefix' \
	  "  $(CROSSTIE) publish com.example.news '\"it works\"' --acknowledge" \
	  '' \
	  'To measure a call, with an optimized router of its own:' \
	  '' \
	  "  make bench ARGS='rpc'" \
	  ''
endif
	@PATH="$$PATH:$(abspath $(TARGET))/nats-server" exec $(CROSSTIE) $(if $(strip $(ARGS)),$(ARGS),start)

# What is missing is said before anything is compiled.
needs:
	@CARGO='$(CARGO)' sh scripts/needs.sh run

# So is that a node runs here already.
free:
ifeq ($(strip $(ARGS)),)
	@if [ -x $(CROSSTIE) ] && $(CROSSTIE) status --assert running >/dev/null 2>&1; then \
	  echo 'A node runs here already:'; \
	  $(CROSSTIE) status; \
	  echo "'$(CROSSTIE) stop' ends it; then run this again."; \
	  exit 1; \
	fi
endif

# The laboratory is compiled only for its own commands.
LABORATORY := bench report analyze testee conformance link oslo roundtrip
quick:
	$(CARGO) build --profile quick -p crosstie $(if $(filter $(LABORATORY),$(firstword $(ARGS))),-p crosstie-lab)

# The optimized server: the one to install, and the one that figures are of.
build: needs
	$(CARGO) build --release -p crosstie

# A release in dist/: static programs, packages for Debian and for rpm, an image, a chart, wheels, checksums.
.PHONY: release
release: needs
	$(PYTHON) packaging/release.py $(ARGS)

# Both programs, optimized; then an instrument: `make bench ARGS='rpc --runs 5'`, `make bench ARGS='all'`.
bench: needs
	$(CARGO) build --release -p crosstie -p crosstie-lab
	@PATH="$$PATH:$(abspath $(TARGET))/nats-server" exec $(TARGET)/release/crosstie bench $(or $(strip $(ARGS)),--help)

# Builds the guide with mdBook, which CONTRIBUTING.md names the version of, and fails if that warns or a link
# leads nowhere.
MDBOOK ?= mdbook
book:
	@mkdir -p $(TARGET)
	$(MDBOOK) build docs --dest-dir $(abspath $(TARGET))/book 2>&1 | tee $(TARGET)/book.log
	@test -f $(TARGET)/book/index.html
	@! grep -E 'WARN|ERROR' $(TARGET)/book.log
	@$(PYTHON) scripts/book_links.py $(TARGET)/book

# Installs what the tests need and runs all of them; `make test SUITES='rust conformance'` runs some.
# Of long suites it runs a sample, which the summary states; `make test-all` runs them whole. `make test RECORD=1`
# keeps what each suite takes in scripts/suite_times.tsv.
test:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(PYTHON) scripts/test.py $(if $(RECORD),--record) $(SUITES)

test-all:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(PYTHON) scripts/test.py --all $(SUITES)

# Loses nodes, NATS servers, links and machines of a replicated vhost in turn; `make chaos SECONDS=3600` for an hour.
SECONDS ?= 180
chaos:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(CARGO) build -p crosstie -p crosstie-lab
	cd scripts && $(PYTHON) -c 'import needs, sys; sys.exit(needs.python() or needs.nats())'
	$(TARGET)/venv/bin/python conformance/ledger/chaos.py --seconds $(SECONDS)

# Loses machines, links, nodes and servers of a realm of three nodes in turn, under calls and events.
LOSSES ?= 20
.PHONY: chaos-realm
chaos-realm:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(CARGO) build -p crosstie -p crosstie-lab
	cd scripts && $(PYTHON) -c 'import needs, sys; sys.exit(needs.python() or needs.nats() or needs.namespaces())'
	$(TARGET)/venv/bin/python conformance/fabric/chaos.py --losses $(LOSSES)
