"""`python -m crosstie.container`: started by a node's controller, not by people."""

import argparse
import contextlib
import json
import os
import platform
import signal
import sys
from pathlib import Path


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="crosstie.container", description=__doc__)
    parser.add_argument("--worker", required=True, help="the worker's id")
    parser.add_argument("--management", required=True, help="unix:PATH of the management realm")
    parser.add_argument("--directory", required=True, type=Path, help="the node directory")
    parser.add_argument("--shutdown", default="manual")
    parser.add_argument("--title", help="what the process is called in process lists")
    parser.add_argument("--pythonpath", action="append", default=[], help="more to import from")
    parser.add_argument("--expose-shared", action="store_true", help="one dictionary for all")
    parser.add_argument("--loglevel", default="info")
    parser.add_argument("--extra", help="for components: JSON, or - for it on standard input")
    return parser.parse_args()


def main() -> int:
    """Run the host until it ends; return the exit code."""
    # Until there is something to leave orderly.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    said = arguments()
    directory = said.directory.resolve()
    # In the order of the configuration, and before what is installed.
    sys.path[:0] = [os.path.normpath(directory / path) for path in said.pythonpath]
    if said.title:
        rename(said.title)
    try:
        # Before it: what it brings along would be named as missing instead.
        import autobahn  # noqa: F401
        import txaio

        txaio.use_twisted()
        from crosstie.container import host, logging
    except ImportError as error:
        print(
            f"<3>Autobahn|Python cannot be imported by {sys.executable} ({error}):"
            " install it there, or name another 'python' in the worker's options",
            file=sys.stderr,
        )
        return 1
    if said.shutdown not in host.POLICIES:
        print(f"<3>--shutdown is one of {', '.join(host.POLICIES)}", file=sys.stderr)
        return 2
    logging.start(said.loglevel)
    try:
        return run(said, directory, host)
    finally:
        logging.finish()


def extra(text: str | None):
    """Return what the worker's configuration has for its components."""
    if text is None:
        return None
    return json.load(sys.stdin) if text == "-" else json.loads(text)


def run(said, directory: Path, host) -> int:
    """Connect to the node and serve."""
    from twisted.internet import reactor
    from twisted.internet.endpoints import UNIXClientEndpoint

    from crosstie import container
    from crosstie.container import shim
    from crosstie.container.rawsocket import RawSocketFactory
    from crosstie.container.serializers import available, serializer
    from crosstie.container.transport import shortest

    shim.install()
    container.extra = extra(said.extra)
    shared = {"reactor": reactor} if said.expose_shared else None
    options = host.Options(said.worker, directory, said.shutdown, shared)
    hosted = host.Host(options, reactor)
    hosted.log.info(
        "Worker process starting ({implementation}-{reactor}) ..",
        implementation=platform.python_implementation(),
        reactor=host.reactor_name(reactor),
    )
    factory = RawSocketFactory(
        lambda: host.Management(hosted, options),
        serializer("msgpack" if "msgpack" in available() else "cbor"),
        lambda _reason: hosted.handle_management_lost(),
    )
    path = said.management.removeprefix("unix:")

    def connect():
        # After the reactor has taken the signals for itself.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: hosted.handle_signal())
        connecting = UNIXClientEndpoint(reactor, shortest(Path(path))).connect(factory)
        connecting.addErrback(lambda _failure: hosted.handle_management_lost())

    reactor.callWhenRunning(connect)
    # A component that stops the reactor, as examples do when they are run alone, ends the worker.
    reactor.addSystemEventTrigger("before", "shutdown", hosted.shutdown)
    reactor.run()
    return hosted.exit_code


def rename(title: str) -> None:
    """Give the process a name, as far as the kernel keeps it: 15 bytes."""
    # It is for the eye only.
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(title)


if __name__ == "__main__":
    sys.exit(main())
