"""The pages of the console in a browser, used as an operator does."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.browser import Browser


def start_browser(directory: Path) -> Browser:
    """Start a browser without a window, or skip the test."""
    if "browser" in os.environ.get("CROSSTIE_WITHOUT", "") or not shutil.which("chromium"):
        pytest.skip("there is no chromium")
    return Browser(directory)


@pytest.fixture
def browser(tmp_path) -> Iterator[Browser]:
    """A browser without a window."""
    browser = start_browser(tmp_path)
    yield browser
    browser.close()


def text(browser: Browser, part: str) -> None:
    """Wait until the page shows a text."""
    script = f"document.body.innerText.includes({json.dumps(part)})"
    browser.await_page(f"{part!r} is shown", script)


def press(browser: Browser, name: str, within: str = "body") -> None:
    """Press a button once it is there."""
    buttons = f"[...document.querySelectorAll('{within} button')]"
    found = f"{buttons}.find((button) => button.innerText === {json.dumps(name)})"
    browser.await_page(f"the button {name}", f"({found})?.disabled === false")
    browser.evaluate(f"({found}).click()")


def go(browser: Browser, address: str) -> None:
    """Open a page of the console."""
    browser.evaluate(f"location.hash = {json.dumps('#/' + address)}")


def log_in(browser: Browser, user: str) -> None:
    """Fill the form."""
    browser.await_page("the form is shown", "Boolean(document.getElementById('login-authid'))")
    for name, value in {"authid": user, "secret": f"{user}'s secret"}.items():
        browser.evaluate(f"document.getElementById('login-{name}').value = {json.dumps(value)}")
    press(browser, "Log in")


def fill(browser: Browser, field: str, value: str) -> None:
    """Give a field a value as its user does."""
    element = f"document.getElementById({json.dumps(field)})"
    browser.await_page(f"the field {field}", f"Boolean({element})")
    browser.evaluate(f"{element}.value = {json.dumps(value)}")
    for event in ("input", "change"):
        browser.evaluate(f"{element}.dispatchEvent(new Event('{event}', {{bubbles: true}}))")


def rows(browser: Browser, table: str) -> str:
    """Return the text of a table's rows."""
    found = f"document.querySelector('[aria-label={json.dumps(table)}] tbody')"
    return browser.evaluate(f"{found}?.innerText") or ""
