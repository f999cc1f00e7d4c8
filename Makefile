# Two commands: `make run` and `make test`. README.md says what they do.

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
CROSSTIE := $(TARGET)/release/crosstie

.PHONY: run build book test test-all chaos needs free

# `make run ARGS='bench rpc'` runs that instead of the router.
run: needs free build
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
	  'To measure a call, with a router of its own:' \
	  '' \
	  "  make run ARGS='bench rpc'" \
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

build:
	$(CARGO) build --release -p crosstie

# Builds the guide with mdBook, which CONTRIBUTING.md names the version of, and fails if that warns.
MDBOOK ?= mdbook
book:
	@mkdir -p $(TARGET)
	$(MDBOOK) build docs --dest-dir $(abspath $(TARGET))/book 2>&1 | tee $(TARGET)/book.log
	@test -f $(TARGET)/book/index.html
	@! grep -E 'WARN|ERROR' $(TARGET)/book.log

# Installs what the tests need and runs all of them; `make test SUITES='rust conformance'` runs some.
# Of long suites it runs a sample, which the summary states; `make test-all` runs them whole. `make test RECORD=1`
# keeps what each suite takes in scripts/suite_times.tsv.
test:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(PYTHON) scripts/test.py $(if $(RECORD),--record) $(SUITES)

test-all:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(PYTHON) scripts/test.py --all $(SUITES)

# Kills and stops the nodes of a replicated vhost and their servers of NATS in turn; `make chaos SECONDS=3600` for an hour.
SECONDS ?= 180
chaos:
	@CARGO='$(CARGO)' PYTHON='$(PYTHON)' sh scripts/needs.sh test
	$(CARGO) build -p crosstie
	cd scripts && $(PYTHON) -c 'import needs, sys; sys.exit(needs.python() or needs.nats())'
	$(TARGET)/venv/bin/python conformance/ledger/chaos.py --seconds $(SECONDS)
