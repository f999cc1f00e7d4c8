"""Crossbar.io's components that make HTTP requests, where it is not installed.

`RESTCallee` and `MessageForwarder`, for containers: among a router's own components the router is
them itself. Both send requests only to the servers in their configuration, and follow no
redirection: a caller must not choose the target.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from autobahn.twisted.wamp import ApplicationSession
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import SubscribeOptions
from twisted.internet import defer, protocol, reactor
from twisted.web.client import Agent, FileBodyProducer, HTTPConnectionPool, ResponseDone
from twisted.web.http_headers import Headers

PORTS = {"http": 80, "https": 443}
# RFC 9110, "Tokens".
METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Headers of a connection, which a caller must not set.
OWN = {
    "connection",
    "content-length",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
# Each key of `extra` that bounds something: what it is by default, and at most.
BOUNDS = {
    "timeout": (30, 3_600),
    "requests_max": (16, 1_024),
    "waiting_max": (1_000, 100_000),
    "answer_bytes_max": (1 << 20, 1 << 24),
}


class UnansweredError(Exception):
    """Why there is no answer of a server's."""


class Server:
    """Makes requests, some at a time; what waits for its turn is bounded too."""

    def __init__(self, extra: dict, *known: str):
        known = (*known, "ca_certificates")
        unknown = set(extra) - set(known) - set(BOUNDS) - {"cbdir", "debug"}
        if unknown:
            names = ", ".join(sorted([*known, *BOUNDS]))
            raise ValueError(f"unknown key {min(unknown)!r} in 'extra'; known here: {names}")
        bounds = {key: bound(extra, key, *numbers) for key, numbers in BOUNDS.items()}
        self.timeout = bounds["timeout"]
        self.answer_bytes_max = bounds["answer_bytes_max"]
        self.waiting_max = bounds["waiting_max"]
        self.turns = defer.DeferredSemaphore(bounds["requests_max"])
        pool = HTTPConnectionPool(reactor)
        more = {}
        if extra.get("ca_certificates"):
            more["contextFactory"] = trusting(extra["ca_certificates"], extra.get("cbdir") or "")
        self.agent = Agent(reactor, connectTimeout=self.timeout, pool=pool, **more)

    @defer.inlineCallbacks
    def ask(self, method: str, url: str, headers: dict[str, list[str]], body: bytes):
        """Return the status, the headers and the body of an answer; raise UnansweredError."""
        if len(self.turns.waiting) >= self.waiting_max:
            raise UnansweredError(f"{self.waiting_max} requests wait already")
        yield self.turns.acquire()
        try:
            asked = self._ask(method, url, headers, body)
            asked.addTimeout(self.timeout, reactor)
            answer = yield asked
        except UnansweredError:
            raise
        except defer.TimeoutError:
            raise UnansweredError(f"no answer in {self.timeout} s") from None
        except Exception as error:
            raise UnansweredError(str(error) or type(error).__name__) from error
        finally:
            self.turns.release()
        return answer

    @defer.inlineCallbacks
    def _ask(self, method: str, url: str, headers: dict[str, list[str]], body: bytes):
        producer = FileBodyProducer(BytesIO(body)) if body else None
        request = self.agent.request(method.encode(), url.encode(), Headers(headers), producer)
        response = yield request
        content = Content(self.answer_bytes_max)
        if isinstance(response.length, int):
            # Twisted keeps it among what is the connection's.
            response.headers.setRawHeaders("Content-Length", [str(response.length)])
        response.deliverBody(content)
        whole = yield content.done
        return response.code, response.headers, whole


class Content(protocol.Protocol):
    """Collects an answer's body, up to a bound."""

    def __init__(self, bytes_max: int):
        self.bytes_max = bytes_max
        self.collected = bytearray()
        self.done = defer.Deferred(lambda _: self.transport and self.transport.abortConnection())

    def dataReceived(self, data: bytes):
        """Keep what came."""
        self.collected += data
        if len(self.collected) > self.bytes_max and not self.done.called:
            self.done.errback(UnansweredError(f"the answer is longer than {self.bytes_max} bytes"))
            self.transport.abortConnection()

    def connectionLost(self, reason=protocol.connectionDone):
        """Tell that it is whole, or is not."""
        if self.done.called:
            return
        if reason.check(ResponseDone):
            self.done.callback(bytes(self.collected))
        else:
            self.done.errback(UnansweredError("the answer broke off"))


class RESTCallee(ApplicationSession):
    """A procedure whose calls become requests."""

    def __init__(self, config=None):
        super().__init__(config)
        extra = config.extra or {}
        self.server = Server(extra, "baseurl", "procedure", "servers")
        self.base = text(extra, "baseurl")
        self.servers = {origin(one) for one in [self.base, *(extra.get("servers") or [])]}
        self.procedure = text(extra, "procedure")

    def onJoin(self, details):
        """Register."""
        return self.register(self.request, self.procedure)

    @defer.inlineCallbacks
    def request(self, *args, **kwargs):
        """Answer a call."""
        try:
            asked = self.asked(*args, **kwargs)
        except (AttributeError, TypeError, ValueError) as error:
            raise ApplicationError("wamp.error.invalid_argument", str(error)) from error
        try:
            code, answered, content = yield self.server.ask(*asked)
        except UnansweredError as error:
            raise ApplicationError("wamp.error.runtime_error", str(error)) from error
        named = {
            name.decode("latin-1"): [value.decode("latin-1") for value in values]
            for name, values in answered.getAllRawHeaders()
        }
        return {"code": code, "content": decoded(content), "headers": named}

    def asked(self, method, url="", body="", headers=None, params=None) -> tuple:
        """Return the request that a call asks for."""
        if not isinstance(method, str) or not METHOD.fullmatch(method):
            raise ValueError('"method" must be a method of HTTP')
        place = self.target(url or "", params or {})
        return method, place, caller_headers(headers or {}), (body or "").encode()

    def target(self, url: str, params: dict[str, str]) -> str:
        """Return where a call leads: to a server that is named, and to no other."""
        if any(not "!" <= each <= "~" or each == "\\" for each in url):
            raise ValueError("the url is none of HTTP")
        place = urljoin(self.base, url).partition("#")[0]
        if origin(place) not in self.servers:
            server = urlsplit(place).netloc
            raise ValueError(f"the url leads to {server}, which is not the server of the baseurl")
        if any(not isinstance(each, str) for each in params.values()):
            raise ValueError('each of "params" must be text')
        if params:
            place += ("&" if "?" in place else "?") + urlencode(params)
        return place


class MessageForwarder(ApplicationSession):
    """Sends events of topics to servers."""

    def __init__(self, config=None):
        super().__init__(config)
        extra = config.extra or {}
        self.server = Server(extra, "subscriptions", "method", "expectedcode")
        self.method = extra.get("method") or "POST"
        self.expected = extra.get("expectedcode")
        self.ways = [
            (text(each, "topic"), text(each, "url"), each.get("match") or "exact")
            for each in extra["subscriptions"]
        ]
        for _, url, _ in self.ways:
            origin(url)
        # True if the last event did not arrive: logged once until one does.
        self.failing: set[str] = set()

    @defer.inlineCallbacks
    def onJoin(self, details):
        """Subscribe."""
        for topic, url, match in self.ways:

            def forward(*args, url=url, **kwargs):
                # The subscription does not wait for the server.
                self.send(url, args, kwargs)

            yield self.subscribe(forward, topic, SubscribeOptions(match=match))

    @defer.inlineCallbacks
    def send(self, url: str, args: tuple, kwargs: dict):
        """Send an event."""
        try:
            body = json.dumps({"args": args, "kwargs": kwargs}, separators=(",", ":")).encode()
            headers = {"Content-Type": ["application/json"]}
            code, _, _ = yield self.server.ask(self.method, url, headers, body)
            if self.expected is not None and code != self.expected:
                raise UnansweredError(f"it was answered {code}, where {self.expected} was expected")
        except (TypeError, ValueError, UnansweredError) as error:
            if url not in self.failing:
                self.failing.add(url)
                self.log.warn(f"an event was not taken by {url}: {error}")
        else:
            self.failing.discard(url)


def trusting(files: list[str], directory: str):
    """Return what trusts servers that these authorities have signed for, and no others."""
    # Without HTTPS servers its library is not needed.
    from twisted.internet.ssl import Certificate, trustRootFromCertificates
    from twisted.web.client import BrowserLikePolicyForHTTPS

    texts = [(Path(directory) / file).read_text() for file in files]
    found = [one for text in texts for one in CERTIFICATE.findall(text)]
    if not found:
        raise ValueError(f"there is no certificate in {', '.join(files)}")
    authorities = [Certificate.loadPEM(one) for one in found]
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(authorities))


def bound(extra: dict, key: str, default: int, most: int) -> int:
    """Return a number that bounds something."""
    number = extra.get(key)
    if number is None:
        return default
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
        raise ValueError(f"'{key}' must be an integer between 1 and {most}")
    return number


def text(extra: dict, key: str) -> str:
    """Return a text that must be there."""
    found = extra.get(key)
    if not isinstance(found, str) or not found:
        raise ValueError(f"'{key}' must be text")
    return found


def origin(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of a URL of HTTP."""
    parts: SplitResult = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"{url!r} must begin with http:// or https:// and a host")
    return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]


def caller_headers(said: dict) -> dict[str, list[str]]:
    """Return the headers of a request as a caller may say them."""
    headers: dict[str, list[str]] = {}
    for name, values in said.items():
        if name.lower() in OWN:
            raise ValueError(f'the header "{name}" is not for a caller to say')
        values = values if isinstance(values, list) else [values]
        if any(not isinstance(each, str) or "\r" in each or "\n" in each for each in values):
            raise ValueError('each of "headers" must be text, or a list of it')
        headers.setdefault(name, []).extend(values)
    return headers


def decoded(octets: bytes) -> str:
    """Return bytes as text: UTF-8 where they are that."""
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return octets.decode("latin-1")
