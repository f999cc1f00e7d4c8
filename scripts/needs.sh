#!/bin/sh
# Says what is missing, with the command that installs it, before anything is compiled.
#
#   scripts/needs.sh run|test
#
# A function per need; all are looked at, so that one answer names all that is missing. `make test`
# installs the rest by itself (needs.py).

RUST_MIN=1.95
PYTHON_MIN=3.11
missing=0

say() {
    printf 'missing: %s\n' "$1" >&2
    shift
    printf '  %s\n' "$@" >&2
    missing=1
}

# Whether version $1 is at least $2; both begin with MAJOR.MINOR.
at_least() {
    major=${1%%.*} rest=${1#*.} minor=${rest%%[!0-9]*}
    [ "$major" -gt "${2%%.*}" ] 2>/dev/null ||
        { [ "$major" -eq "${2%%.*}" ] && [ "$minor" -ge "${2#*.}" ]; } 2>/dev/null
}

# The command that installs Debian packages, or what they are called where there is no apt-get.
install_with() {
    if command -v apt-get >/dev/null; then
        [ "$(id -u)" = 0 ] && echo "apt-get install $*" || echo "sudo apt-get install $*"
    else
        echo "install what your system calls: $*"
    fi
}

rust() {
    found=$(${CARGO:-cargo} --version 2>/dev/null | cut -d' ' -f2)
    at_least "${found:-0.0}" "$RUST_MIN" && return
    if command -v rustup >/dev/null; then
        say "Rust $RUST_MIN or later (found: ${found:-none})" "rustup update stable && rustup default stable"
    else
        say "Rust $RUST_MIN or later (found: ${found:-none})" \
            "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" \
            ". \"\$HOME/.cargo/env\""
    fi
}

# The cryptography library and SQLite are partly C.
compiler() {
    command -v "${CC:-cc}" >/dev/null || say "a C compiler (looked for: ${CC:-cc})" "$(install_with gcc libc6-dev)"
}

python() {
    command="import sys; print('.'.join(map(str, sys.version_info[:2])))"
    found=$("${PYTHON:-python3}" -c "$command" 2>/dev/null)
    at_least "${found:-0.0}" "$PYTHON_MIN" ||
        say "Python $PYTHON_MIN or later (${PYTHON:-python3} is: ${found:-not there})" \
            "$(install_with python3 python3-venv)" \
            "or name another: make test PYTHON=/path/to/python3"
}

case ${1:-} in
run) rust; compiler ;;
test) rust; python ;;
*)
    echo "expected: needs.sh run|test" >&2
    exit 2
    ;;
esac
exit "$missing"
