# Two commands: `make run` and `make test`. README.md says what they do.

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
CROSSTIE := $(TARGET)/release/crosstie

.PHONY: run build test

# `make run ARGS='bench rpc'` runs that instead of the router.
run: build
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
	@exec $(CROSSTIE) $(if $(strip $(ARGS)),$(ARGS),start)

build:
	$(CARGO) build --release -p crosstie

# Installs what the tests need and runs all of them; `make test SUITES='rust conformance'` runs some.
test:
	$(PYTHON) scripts/test.py $(SUITES)
