"""The console for those who use a keyboard, a screen reader, or a narrow screen.

axe-core judges what a program can: names, roles, contrast, headings, landmarks. It runs in the
page, in both schemes of colours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pika
import pytest
from rig import certificates, config
from rig.browser import Browser
from rig.console import Console
from rig.console_page import fill, go, log_in, press, rows, start_browser, text
from rig.rawsocket import RawSocket
from rig.session import GOODBYE
from rig.waiting import await_true

AXE = Path(__file__).resolve().parents[1] / "js/node_modules/axe-core/axe.min.js"
MARKUP = "<img/src=x/onerror=alert(1)>"
NARROW = 360
# Pages by their address, each with a text that it shows once it was read.
PAGES = {
    "overview": "Connect",
    "live": "Call round trip",
    "trouble": "Ends of sessions",
    "log": "lines",
    "node": "Transports",
    "cluster": "No vhost is replicated.",
    "sessions": "tcp:127.0.0.1",
    "sessions/{session}": "authid",
    "procedures": MARKUP,
    "topics": "com.news",
    "try": "Join a realm",
    "queues": MARKUP,
    "queues/%2F/{queue}": "1 ready",
    "exchanges": "amq.direct",
    "exchanges/%2F/amq.direct": MARKUP,
    "connections": "guest",
    "connections/{connection}": "guest",
    "channels": "guest",
    "users": "Operator policies",
}


class Settled(Console):
    """A console whose node has something to show on each page."""

    def configuration(self) -> dict:
        """Return a node with a certificate that ends soon, too."""
        made = super().configuration()
        secure = {"type": "rawsocket", "id": "secure", "endpoint": config.tls(self.directory)}
        made["workers"][0]["transports"].append(secure)
        return made


@dataclass
class Stage:
    """A console that shows much, and a browser that has logged in."""

    console: Settled
    browser: Browser
    peer: RawSocket
    names: dict[str, str]

    def go(self, page: str, shown: str) -> None:
        """Open a page, and wait until it was read."""
        go(self.browser, page.format(**self.names))
        text(self.browser, shown)

    def scheme(self, name: str) -> None:
        """Choose the scheme of colours; without motion, so that it counts at once."""
        wanted = {"prefers-color-scheme": name, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in wanted.items()]
        self.browser.ask("Emulation.setEmulatedMedia", features=features)

    def findings(self, options: dict) -> list[str]:
        """Return what axe-core finds on the page."""
        script = f"axe.run(document, {json.dumps(options)}).then((found) => found.violations)"
        found = self.browser.evaluate(script)
        return [
            f"{rule['impact']}: {rule['id']}: {node['target']}: {node['failureSummary']}"
            for rule in found
            for node in rule["nodes"]
        ]

    def key(self, name: str, code: int, written: str = "") -> None:
        """Press a key."""
        about = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        text = {"text": written} if written else {}
        self.browser.ask("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.browser.ask("Input.dispatchKeyEvent", type="keyUp", **about)

    def focused(self) -> str:
        """Return the text of the element that has the focus."""
        return self.browser.evaluate("document.activeElement.innerText")


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Iterator[Stage]:
    """One node and one browser for all tests."""
    if not AXE.exists():
        pytest.skip("there is no axe-core")
    directory = tmp_path_factory.mktemp("console")
    certificates.write_self_signed(directory, ["localhost", f"{MARKUP}.example"], 9)
    browser = start_browser(tmp_path_factory.mktemp("browser"))
    console = Settled(directory)
    peer = RawSocket.tcp(console.router.address("tcp")).shake_hands().join()
    peer.register(f"com.{MARKUP}")
    peer.subscribe("com.news")
    host, port = console.router.address("amqp")
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, heartbeat=0))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare(MARKUP)
    channel.queue_bind(MARKUP, "amq.direct", MARKUP)
    channel.basic_publish("", MARKUP, b"a message")
    channel.basic_publish("", "nowhere", b"lost")
    browser.open(f"http://127.0.0.1:{console.address[1]}/")
    log_in(browser, "ann")
    text(browser, "Overview")
    browser.evaluate(f"{AXE.read_text()};0")
    go(browser, "connections")
    text(browser, "guest")
    link = browser.evaluate("document.querySelector('main tbody a').getAttribute('href')")
    names = {
        "session": str(peer.id),
        "queue": quote(MARKUP, safe=""),
        "connection": link.removeprefix("#/connections/"),
    }
    yield Stage(console, browser, peer, names)
    browser.close()
    connection.close()
    peer.close()
    console.router.stop()


def test_axe_finds_nothing(stage: Stage):
    browser = stage.browser
    colours = {"runOnly": ["color-contrast"]}
    found = []
    for page, shown in PAGES.items():
        stage.scheme("light")
        stage.go(page, shown)
        found += [f"{page}: {each}" for each in stage.findings({})]
        stage.scheme("dark")
        found += [f"{page}, dark: {each}" for each in stage.findings(colours)]
    stage.go("queues/%2F/{queue}", "1 ready")
    press(browser, "Purge")
    browser.await_page("the dialog is open", "document.getElementById('dialog').open")
    found += [f"dialog, dark: {each}" for each in stage.findings({})]
    press(browser, "Cancel", "dialog")
    press(browser, "Log out")
    text(browser, "Password, ticket or token")
    for scheme in ("light", "dark"):
        stage.scheme(scheme)
        found += [f"login, {scheme}: {each}" for each in stage.findings({})]
    log_in(browser, "ann")
    text(browser, "Overview")
    assert found == []


def test_each_control_is_reached_by_key(stage: Stage):
    browser = stage.browser
    stage.scheme("light")
    # Those that are seen and can be used; radio buttons of one name would be one.
    controls = """(() => {
        const kinds = "a[href], button, input, select, textarea, [tabindex='0']";
        const all = [...document.querySelectorAll(kinds)];
        return all.filter((each) => !each.disabled && each.checkVisibility());
    })()"""
    missed = []
    for page, shown in PAGES.items():
        stage.go(page, shown)
        # The first one of the page; Tab would go on from the last one that had the focus.
        browser.evaluate(f"{controls}[0].focus(); reached = new Set({controls}.slice(0, 1))")
        browser.evaluate("unseen = []")
        # Scrolled boxes have the focus, too, and a page may grow when it is read again.
        for _ in range(2 * browser.evaluate(f"{controls}.length") + 10):
            if browser.evaluate(f"{controls}.every((each) => reached.has(each))"):
                break
            stage.key("Tab", 9)
            browser.evaluate("""{
                const at = document.activeElement;
                const outline = getComputedStyle(at).outlineStyle;
                if (at !== document.body && outline === "none") unseen.push(at.outerHTML);
                reached.add(at);
            }""")
        script = f"{controls}.filter((each) => !reached.has(each)).map((each) => each.outerHTML)"
        missed += [f"{page}: {each}" for each in browser.evaluate(script)]
        missed += [f"{page}, unseen: {each}" for each in browser.evaluate("unseen")]
    assert missed == []


def test_keys_work_as_a_pointer_does(stage: Stage):
    browser = stage.browser
    stage.go("queues", MARKUP)
    browser.evaluate("document.querySelector('.skip').focus()")
    stage.key("Enter", 13, "\r")
    assert browser.evaluate("document.activeElement.id") == "main"
    assert browser.evaluate("location.hash") == "#/queues"

    # A dialog has the focus until it is left, and returns it.
    stage.go("queues/%2F/{queue}", "1 ready")
    buttons = "[...document.querySelectorAll('main button')]"
    browser.evaluate(f"{buttons}.find((each) => each.innerText === 'Purge').focus()")
    stage.key("Enter", 13, "\r")
    dialog = "document.getElementById('dialog')"
    within = f"{dialog}.open && {dialog}.contains(document.activeElement)"
    browser.await_page("the dialog has the focus", within)
    stage.key("Escape", 27)
    browser.await_page("the dialog is closed", f"!{dialog}.open")
    assert stage.focused() == "Purge"

    # A list that is read again leaves the focus where it is.
    stage.go("sessions", "tcp:127.0.0.1")
    others = [
        RawSocket.tcp(stage.console.router.address("tcp")).shake_hands().join() for _ in range(3)
    ]
    last = str(others[-1].id)
    await_true("all are shown", lambda: last in rows(browser, "Sessions"))
    browser.evaluate(f"document.querySelector('a[href=\"#/sessions/{last}\"]').focus()")
    for other in others[:-1]:
        other.say(GOODBYE, {}, "wamp.close.normal")
        other.hear(GOODBYE)
        other.close()
    gone = [str(other.id) for other in others[:-1]]
    await_true("two are gone", lambda: not any(each in rows(browser, "Sessions") for each in gone))
    assert stage.focused() == last
    others[-1].close()


def test_no_page_is_wider_than_a_telephone(stage: Stage):
    browser = stage.browser
    size = {"width": NARROW, "height": 640, "deviceScaleFactor": 2, "mobile": True}
    browser.ask("Emulation.setDeviceMetricsOverride", **size)
    wide = {}
    for page, shown in PAGES.items():
        stage.go(page, shown)
        width = browser.evaluate("document.documentElement.scrollWidth")
        if width > NARROW:
            wide[page] = width
    browser.ask("Emulation.clearDeviceMetricsOverride")
    assert wide == {}


def test_markup_in_names_stays_text(stage: Stage):
    browser = stage.browser
    for page, shown in PAGES.items():
        stage.go(page, shown)
        assert browser.evaluate("document.querySelector('main img, main b, main i')") is None
    stage.go("queues", MARKUP)
    fill(browser, "filter", MARKUP)
    text(browser, MARKUP)
    assert browser.faults == []
