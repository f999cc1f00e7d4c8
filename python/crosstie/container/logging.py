"""The log of the process: lines on standard error, each with its level before it.

The level is written as services write it for their supervisor (`<3>` error … `<7>` debug, sd-daemon
(3)); time and process are the reader's to add. Components' `self.log`, Python's `logging`, `print`
and what Twisted has to say all come out here, a text of several lines as several lines.
"""

from __future__ import annotations

import io
import logging
import sys
import threading

import txaio
from twisted.logger import ILogObserver, LogLevel, eventAsText, globalLogBeginner
from zope.interface import implementer

ERROR, WARN, INFO, DEBUG = 3, 4, 6, 7
BY_TWISTED = {
    LogLevel.critical: ERROR,
    LogLevel.error: ERROR,
    LogLevel.warn: WARN,
    LogLevel.info: INFO,
    LogLevel.debug: DEBUG,
}
BY_NAME = {"none": -1, "error": ERROR, "warn": WARN, "info": INFO, "debug": DEBUG, "trace": DEBUG}


class Sink:
    """The target of all lines. Lines of several threads do not mix."""

    def __init__(self, out, level_most: int):
        self._out = out
        self._level_most = level_most
        self._lock = threading.Lock()

    def write(self, level: int, text: str) -> None:
        """Write a text, line by line."""
        if level > self._level_most:
            return
        octets = "".join(f"<{level}>{line}\n" for line in text.splitlines() or [""]).encode(
            errors="backslashreplace"
        )
        with self._lock:
            try:
                self._out.write(octets)
                self._out.flush()
            except OSError:
                # The reader is gone with the node, which its connection reports.
                pass


def start(level: str) -> Sink:
    """Send everything that this process has to say there."""
    sink = Sink(sys.stderr.buffer, BY_NAME[level])
    # Twisted's own complaints about itself would name this file otherwise.
    sys.stdout = Stream(sink, INFO)
    sys.stderr = Stream(sink, WARN)
    logging.basicConfig(handlers=[Handler(sink)], level=logging.INFO, format="%(message)s")
    txaio.set_global_log_level(level)
    globalLogBeginner.beginLoggingTo([Observer(sink)], redirectStandardIO=False)
    return sink


def finish() -> None:
    """Write what was printed without an end of line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Stream):
            stream.end_line()


@implementer(ILogObserver)
class Observer:
    """Takes what Twisted and Autobahn log."""

    # Lines of no use to an operator.
    SILENT = ("Received SIGTERM, shutting down.", "Main loop terminated.")
    # An orderly goodbye, of which Autobahn warns.
    ORDERLY = "wamp.close.goodbye_and_out"

    def __init__(self, sink: Sink):
        self._sink = sink

    def __call__(self, event):
        """Write one event."""
        if event.get("reason") == self.ORDERLY:
            return
        text = eventAsText(event, includeTimestamp=False, includeSystem=False).rstrip()
        if text and text not in self.SILENT:
            self._sink.write(BY_TWISTED.get(event.get("log_level"), INFO), text)


class Handler(logging.Handler):
    """Takes what goes to Python's `logging`."""

    def __init__(self, sink: Sink):
        super().__init__()
        self._sink = sink

    def emit(self, record):
        """Write one record."""
        level = next(
            (
                ours
                for theirs, ours in ((logging.ERROR, ERROR), (logging.WARNING, WARN), (20, INFO))
                if record.levelno >= theirs
            ),
            DEBUG,
        )
        self._sink.write(level, self.format(record))


class Stream(io.TextIOBase):
    """Takes what is printed; a line is written when it is complete."""

    # A line without an end is cut here rather than collected for ever.
    LINE_MAX = 64 * 1024

    def __init__(self, sink: Sink, level: int):
        self._sink = sink
        self._level = level
        self._begun = ""

    @property
    def encoding(self):
        """Text is written in UTF-8."""
        return "utf-8"

    def writable(self):
        """Say that it can be written to."""
        return True

    def write(self, text):
        """Take a part of a line, or several lines."""
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._sink.write(self._level, line)
        if len(self._begun) > self.LINE_MAX:
            self._sink.write(self._level, self._begun)
            self._begun = ""
        return len(text)

    def end_line(self):
        """Write the line that has begun, if one has."""
        if self._begun:
            self._sink.write(self._level, self._begun)
            self._begun = ""

    def flush(self):
        """Nothing is held back but the beginning of a line, which a flush does not end."""
