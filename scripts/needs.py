"""Packages that the tests need beside the Rust toolchain, installed if missing.

Each function returns None, or the reason why its need cannot be met; a suite whose needs cannot
be met is skipped by that name and reason.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
VENV = TARGET / "venv"
PYTHON = VENV / "bin/python"
CONFORMANCE = ROOT / "conformance"
TESTSUITE = CONFORMANCE / "websocket_testsuite"
TESTSUITE_VENV = TARGET / "websocket-testsuite/venv"
WSTEST = TESTSUITE_VENV / "bin/wstest"
OSLO = CONFORMANCE / "oslo_messaging"
OSLO_VENV = TARGET / "oslo-messaging/venv"
FRAMEWORKS = CONFORMANCE / "frameworks"
FRAMEWORKS_VENV = TARGET / "frameworks/venv"
RABBITMQ_TOOLS = CONFORMANCE / "rabbitmq_tools"
RABBITMQ_TOOLS_PLACE = TARGET / "rabbitmq-tools"
XCONN = CONFORMANCE / "xconn_client"
XCONN_VENV = TARGET / "xconn-client/venv"
STRANGERS = CONFORMANCE / "strangers"
STRANGERS_VENV = TARGET / "strangers/venv"
RUST_CLIENT = TARGET / "amqp-rust-client"
GO_CLIENT = TARGET / "amqp-go-client"
MQTT = CONFORMANCE / "mqtt"
MQTT_GO_CLIENT = TARGET / "mqtt-go-client"
NEXUS_CLIENT = TARGET / "nexus-client"
SPRING_CLIENT = TARGET / "amqp-spring-client"
SPRING_STREAM_CLIENT = TARGET / "amqp-spring-stream-client"
H2SPEC = TARGET / "h2spec/h2spec"
NATS = TARGET / "nats-server"
NATS_BEFORE = TARGET / "nats-server-before"


def run(*command: object, cwd: Path = ROOT) -> str | None:
    """Run a command quietly; return None, or the end of what it said when it failed."""
    words = [str(word) for word in command]
    print("+", *words, flush=True)
    try:
        done = subprocess.run(
            words, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = done.stdout.strip().splitlines()
    return f"{' '.join(words)}: {said[-1] if said else f'exit code {done.returncode}'}"


@functools.cache
def packages(*names: str) -> str | None:
    """Install Debian packages."""
    if not shutil.which("apt-get"):
        return f"there is no apt-get to install {' '.join(names)} with"
    rights = [] if os.geteuid() == 0 else ["sudo", "-n"]
    quiet = [*rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    # Without fresh lists the packages may not be found; an old list may still do.
    run(*quiet, "update")
    return run(*quiet, "install", "--no-install-recommends", *names)


@functools.cache
def compiler() -> str | None:
    """A C compiler: the cryptography library is partly C and assembler."""
    return None if shutil.which("cc") else packages("gcc", "libc6-dev")


@functools.cache
def component(name: str) -> str | None:
    """A component of the Rust toolchain, such as rustfmt."""
    missing = run("cargo", name, "--version")
    if missing and shutil.which("rustup"):
        missing = run("rustup", "component", "add", {"fmt": "rustfmt"}.get(name, name))
    return missing


@functools.cache
def python() -> str | None:
    """An environment with exactly the packages of conformance/requirements.txt."""
    if sys.version_info < (3, 11):  # noqa: UP036 (the machine's own Python, whatever it is)
        return f"Python 3.11 or later is needed; this is {sys.version.split()[0]}"
    requirements = CONFORMANCE / "requirements.txt"
    wanted = digest(requirements) + sys.version
    stamp = VENV / "installed"
    if stamp.exists() and stamp.read_text() == wanted and PYTHON.exists():
        return None
    try:
        venv.create(VENV, clear=True, with_pip=True)
    except (subprocess.CalledProcessError, OSError, ImportError):
        # Debian keeps what this takes in a package of its own.
        if reason := packages("python3-venv"):
            return reason
        # In a new process: this one has looked for the module already.
        if reason := run(sys.executable, "-m", "venv", "--clear", VENV):
            return reason
    pip = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    if reason := run(*pip, "-r", requirements):
        return reason
    stamp.write_text(wanted)
    return None


@functools.cache
def node() -> str | None:
    """Node.js with exactly the packages of conformance/js/package-lock.json."""
    found = shutil.which("node") and shutil.which("npm")
    if not found and (reason := packages("nodejs", "npm")):
        return reason
    return node_packages(CONFORMANCE / "js")


@functools.cache
def strangers_in_javascript() -> str | None:
    """The JavaScript clients of the suite `strangers`."""
    return node() or node_packages(STRANGERS / "js")


def node_packages(folder: Path) -> str | None:
    """Install exactly the packages of a folder's package-lock.json."""
    wanted = digest(folder / "package-lock.json")
    stamp = folder / "node_modules/installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    # `npm ci` refuses a lock without the optional packages of every platform, which not every
    # registry has; this installs what the lock says, too, and leaves it as it is.
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    if reason := run("npm", "install", "--no-save", "--no-audit", "--no-fund", cwd=folder):
        return reason
    stamp.write_text(wanted)
    return None


# The last that makes environments for Python 2.7, and what it runs on.
VIRTUALENV = ["virtualenv==20.21.1", "distlib==0.4.4", "filelock==3.32.7", "platformdirs==3.11.0"]


@functools.cache
def testsuite() -> str | None:
    """The Autobahn TestSuite, in an environment of its own: it runs on Python 2.7 only."""
    interpreter = python27()
    if interpreter is None:
        return "the Autobahn TestSuite needs a Python 2.7, on PATH or of pyenv, and there is none"
    requirements = TESTSUITE / "requirements.txt"
    wanted = f"{digest(requirements)} {interpreter}"
    stamp = TESTSUITE_VENV / "installed"
    if stamp.exists() and stamp.read_text() == wanted and WSTEST.exists():
        return None
    if reason := compiler() or python():
        return reason
    tool = TESTSUITE_VENV.parent / "virtualenv"
    make = ("env", f"PYTHONPATH={tool}", PYTHON, "-m", "virtualenv", "-q", "--clear")
    pip = ("pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    steps = [
        (PYTHON, "-m", *pip, "--upgrade", "--target", tool, *VIRTUALENV),
        (*make, "-p", interpreter, TESTSUITE_VENV),
        (TESTSUITE_VENV / "bin/python", "-m", *pip, "-r", requirements),
    ]
    for step in steps:
        if reason := run(*step):
            return reason
    stamp.write_text(wanted)
    return None


def python27() -> Path | None:
    """Return a Python 2.7 that runs: a shim on PATH may lead nowhere."""
    found = shutil.which("python2.7")
    candidates = [Path(found)] if found else []
    candidates += sorted(Path.home().glob(".pyenv/versions/2.7*/bin/python"), reverse=True)
    for candidate in candidates:
        try:
            version = subprocess.run([candidate, "--version"], capture_output=True, text=True)
        except OSError:
            continue
        # This one said its version where programs complain.
        if (version.stdout + version.stderr).startswith("Python 2.7"):
            return candidate
    return None


@functools.cache
def bunny() -> str | None:
    """A client of AMQP in Ruby."""
    found = (
        subprocess.run(["ruby", "-rbunny", "-e", ""], capture_output=True)
        if shutil.which("ruby")
        else None
    )
    return None if found and found.returncode == 0 else packages("ruby-bunny")


@functools.cache
def strace() -> str | None:
    """Whether a confirm waits for the disk shows in the system calls."""
    return None if shutil.which("strace") else packages("strace")


@functools.cache
def curl() -> str | None:
    """A published HTTP/2 client."""
    return None if shutil.which("curl") else packages("curl")


@functools.cache
def nginx() -> str | None:
    """The server of files that ours is measured beside; Debian keeps it where only root looks."""
    found = shutil.which("nginx") or Path("/usr/sbin/nginx").exists()
    return None if found else packages("nginx-light")


@functools.cache
def haproxy() -> str | None:
    """The load balancer in front of the node under test."""
    found = shutil.which("haproxy") or Path("/usr/sbin/haproxy").exists()
    return None if found else packages("haproxy")


@functools.cache
def rabbitmq() -> str | None:
    """RabbitMQ, which judges AMQP. Debian's package starts it where there is an init system."""
    if Path("/usr/lib/rabbitmq/bin/rabbitmq-server").exists():
        return None
    return packages("rabbitmq-server")


@functools.cache
def mosquitto() -> str | None:
    """The judge of MQTT, and its clients. Debian's package starts it where there is an init."""
    found = shutil.which("mosquitto_rr") and Path("/usr/sbin/mosquitto").exists()
    return None if found else packages("mosquitto", "mosquitto-clients")


@functools.cache
def mqtt_clients() -> str | None:
    """Clients of MQTT in JavaScript and Go; without the latter, their tests report that."""
    go_program("mqtt/go", MQTT_GO_CLIENT)
    return node() or node_packages(MQTT / "js")


@functools.cache
def rust_client() -> str | None:
    """The AMQP client in Rust, built beside the workspace."""
    manifest = CONFORMANCE / "rust_client/Cargo.toml"
    return run("cargo", "build", "--manifest-path", manifest, "--target-dir", RUST_CLIENT)


def go_program(folder: str, place: Path) -> str | None:
    """A program in Go, with exactly the modules of its go.sum."""
    if not shutil.which("go") and (reason := packages("golang-go")):
        return reason
    return run("go", "build", "-o", place / "client", ".", cwd=CONFORMANCE / folder)


@functools.cache
def go_client() -> str | None:
    """The AMQP client in Go."""
    return go_program("go_client", GO_CLIENT)


@functools.cache
def rabbitmq_tools() -> str | None:
    """Tools of the management API: in Python, JavaScript and Go."""
    return (
        environment(RABBITMQ_TOOLS_PLACE / "venv", RABBITMQ_TOOLS / "requirements.txt")
        or node()
        or node_packages(RABBITMQ_TOOLS / "js")
        or go_suites()
    )


def go_suites() -> str | None:
    """Compile the tests of two modules, at the versions that go.mod names."""
    if not shutil.which("go") and (reason := packages("golang-go")):
        return reason
    folder, place = RABBITMQ_TOOLS / "go", RABBITMQ_TOOLS_PLACE / "go"
    place.mkdir(parents=True, exist_ok=True)
    module = "github.com/michaelklishin/rabbit-hole/v2"
    if reason := run("go", "mod", "download", cwd=folder):
        return reason
    listed = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", module],
        cwd=folder,
        text=True,
        capture_output=True,
        check=True,
    )
    # It waits five seconds for statistics each time, which are those of the moment here.
    copy = place / "source"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(listed.stdout.strip(), copy, copy_function=shutil.copyfile)
    copy.chmod(0o755)
    tests = copy / "rabbithole_test.go"
    tests.write_text(tests.read_text().replace("5000 * time.M", "50 * time.M"))
    compiled = ("go", "test", "-c", "-o")
    return run(*compiled, place / "rabbit-hole", ".", cwd=copy) or run(
        *(*compiled, place / "amqp091-go", "-tags", "integration"),
        "github.com/rabbitmq/amqp091-go",
        cwd=folder,
    )


@functools.cache
def nexus_client() -> str | None:
    """A program with nexus' client for Go, at the version that its go.mod names."""
    return go_program("nexus_client", NEXUS_CLIENT)


@functools.cache
def h2spec() -> str | None:
    """A judge of HTTP/2 in Go, with exactly the modules of its go.sum."""
    if not shutil.which("go") and (reason := packages("golang-go")):
        return reason
    package = "github.com/summerwind/h2spec/cmd/h2spec"
    return run("go", "build", "-o", H2SPEC, package, cwd=CONFORMANCE / "web/h2spec")


# Servers of the last two minor versions, which docs/fabric.md names. Most suites run the newer one.
NATS_SERVER = "github.com/nats-io/nats-server/v2@v2.15.3"
NATS_SERVER_BEFORE = "github.com/nats-io/nats-server/v2@v2.14.10"


@functools.cache
def nats() -> str | None:
    """NATS, which the nodes of one realm meet on; the Go module proxy has it with its sums."""
    return nats_server(NATS_SERVER, NATS)


@functools.cache
def nats_before() -> str | None:
    """The minor version before, which a cluster may still have."""
    return nats_server(NATS_SERVER_BEFORE, NATS_BEFORE)


def nats_server(version: str, place: Path) -> str | None:
    """Install a server."""
    stamp = place / "installed"
    if stamp.exists() and stamp.read_text() == version and (place / "nats-server").exists():
        return None
    if not shutil.which("go") and (reason := packages("golang-go")):
        return reason
    place.mkdir(parents=True, exist_ok=True)
    if reason := run("env", f"GOBIN={place}", "go", "install", version):
        return reason
    stamp.write_text(version)
    return None


@functools.cache
def crossbar() -> str | None:
    """Crossbar.io, in an environment of its own: two minutes, 100 packages and 400 MB."""
    # The recorder of its answers installs it.
    return python() or run(
        PYTHON, "-c", "import crossbar.record as r; r.install()", cwd=CONFORMANCE
    )


@functools.cache
def spring_client() -> str | None:
    """Spring AMQP, where there is a Maven to fetch it; it is not installed for this alone."""
    return of_maven("spring_client", SPRING_CLIENT)


@functools.cache
def spring_stream_client() -> str | None:
    """Spring Cloud Stream, in the same way."""
    return of_maven("spring_stream_client", SPRING_STREAM_CLIENT)


def of_maven(name: str, built: Path) -> str | None:
    """Build a client of the conformance tests, and note its classpath."""
    if not shutil.which("mvn") or not shutil.which("java"):
        return "there is no Maven: apt-get install maven"
    folder = CONFORMANCE / name
    sources = [folder / "pom.xml", *sorted(folder.glob("src/**/*.java"))]
    wanted = " ".join(digest(source) for source in sources)
    stamp = built / "built"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    goals = ("compile", "dependency:build-classpath")
    where = (f"-Dbuilt={built}", f"-Dmdep.outputFile={built / 'classpath'}")
    if reason := run("mvn", "-q", "-B", "-ntp", *where, *goals, cwd=folder):
        return reason
    stamp.write_text(wanted)
    return None


@functools.cache
def spring_client_if_there() -> str | None:
    """The same for who can do without it."""
    return spring_client() if shutil.which("mvn") and shutil.which("java") else None


@functools.cache
def oslo_messaging() -> str | None:
    """The oslo.messaging library in an environment of its own: it brings eighty packages."""
    return environment(OSLO_VENV, OSLO / "requirements.txt")


@functools.cache
def frameworks() -> str | None:
    """Celery, kombu and Dramatiq in an environment of their own, with what runs their tests."""
    return environment(FRAMEWORKS_VENV, FRAMEWORKS / "requirements.txt")


@functools.cache
def xconn_client() -> str | None:
    """xconn's client in an environment of its own: others of its packages are not the tests'."""
    return environment(XCONN_VENV, XCONN / "requirements.txt")


@functools.cache
def strangers() -> str | None:
    """The clients of the suite `strangers` that no other environment has."""
    return environment(STRANGERS_VENV, STRANGERS / "requirements.txt")


@functools.cache
def old_amqp_clients() -> str | None:
    """Clients of AMQP 0-9 and 0-8 that Debian packages: two in Perl, and amqplib."""
    perl = ("perl", "-MAnyEvent::RabbitMQ", "-MMojo::RabbitMQ::Client", "-e", "1")
    python3 = ("/usr/bin/python3", "-c", "import amqplib")
    if run(*perl) is None and run(*python3) is None:
        return None
    return packages("libanyevent-rabbitmq-perl", "libmojo-rabbitmq-client-perl", "python3-amqplib")


def environment(place: Path, requirements: Path) -> str | None:
    """Make an environment with exactly these packages."""
    wanted = digest(requirements) + sys.version
    stamp = place / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    # The tests' own environment shows that one can be made.
    if reason := python() or run(sys.executable, "-m", "venv", "--clear", place):
        return reason
    pip = (place / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    if reason := run(*pip, "--no-deps", "-r", requirements):
        return reason
    stamp.write_text(wanted)
    return None


@functools.cache
def namespaces() -> None:
    """The tool for network namespaces; if unavailable, their tests report that by name."""
    if not shutil.which("ip"):
        packages("iproute2")


@functools.cache
def systemd() -> None:
    """The judge of units; if unavailable, their tests report that by name."""
    if not shutil.which("systemd-analyze"):
        packages("systemd")


@functools.cache
def packagers() -> str | None:
    """The tools of packages, and the shells that have completions."""
    tools = {
        "lintian": "lintian",
        "rpmbuild": "rpm",
        "bwrap": "bubblewrap",
        "zsh": "zsh",
        "fish": "fish",
        "dpkg": "dpkg",
        "zstd": "zstd",
    }
    missing = [package for tool, package in tools.items() if not shutil.which(tool)]
    return packages(*missing) if missing else None


@functools.cache
def browser() -> str | None:
    """A browser that needs no display, and a font to show text with."""
    return None if shutil.which("chromium") else packages("chromium", "fonts-dejavu-core")


def digest(path: Path) -> str:
    """Return what changes when the file does."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
