"""`contrib`: boards and alerts read metrics of a node; each alert has its part of the book."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess

import pytest
from rig import certificates, config, prometheus
from rig.amqp_peer import Peer
from rig.rawsocket import RawSocket
from rig.router import ROOT
from rig.scraped import ask, described, everything
from rig.session import CALL, PUBLISH, RESULT
from rig.waiting import await_true

RULES = ROOT / "contrib/prometheus/crosstie.rules.yml"
BOARDS = sorted((ROOT / "contrib/grafana").glob("*.json"))
# Realms and vhosts of several nodes have these; the documentation has their names.
SHARED = ("crosstie_fabric_", "crosstie_ledger_")
NAME = re.compile(r"\b(?:crosstie|process)_[a-z0-9_]+\b")


def alerts() -> list[tuple[str, str, str]]:
    """Return name, expression and runbook of each alert."""
    form = r"(?s)- alert: (\w+)\n    expr: '([^'\n]+)'\n.*?      runbook: (\S+)\n"
    found = re.findall(form, RULES.read_text())
    assert len(found) == RULES.read_text().count("- alert:")
    return found


def panels(board) -> list[tuple[str, str]]:
    """Return title and expression of each target of a board."""
    found = json.loads(board.read_text())["panels"]
    targets = [(panel["title"], target) for panel in found for target in panel.get("targets", ())]
    return [(title, target["expr"]) for title, target in targets]


def of_board(expression: str) -> str:
    """Return an expression as Grafana sends it if all of everything is selected."""
    for variable in ("instance", "realm", "vhost"):
        expression = expression.replace(f'"${variable}"', '".*"')
    expression = expression.replace("$__rate_interval", "1m")
    assert "$" not in expression
    return expression


def expressions() -> list[str]:
    """Return all expressions."""
    of_boards = [of_board(expression) for board in BOARDS for _, expression in panels(board)]
    return [expression for _, expression, _ in alerts()] + of_boards


def use(router) -> None:
    """Send what the metrics count."""
    with RawSocket.tcp(router.address("tcp")).shake_hands().join() as peer:
        peer.ask(CALL, {}, "wamp.session.count")
        peer.hear(RESULT)
        peer.say(PUBLISH, 1, {}, "com.example.topic")
        peer.round_trip()
    with Peer(socket.create_connection(router.address("amqp"))).open("guest", "guest") as client:
        client.channel()
        client.call("queue.declare", queue="watched", durable=True)
        client.expect("queue.declare-ok")


def test_every_metric_in_an_expression_exists(start_router, tmp_path):
    node = everything()
    certificates.write(tmp_path)
    node["workers"][0]["transports"].append(config.universal("secure", config.tls(tmp_path)))
    router = start_router(node)
    use(router)
    documented = set(re.findall(r"(?m)^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text()))
    documented |= set(
        re.findall(r"`(crosstie_ledger_\w+)`", (ROOT / "docs/metrics.md").read_text())
    )
    _, text = ask(router, None)
    scraped = described(text)
    for expression in expressions():
        names = {re.sub("_(bucket|sum|count)$", "", name) for name in NAME.findall(expression)}
        assert names or expression.startswith("up{"), expression
        for name in names:
            there = documented if name.startswith(SHARED) else scraped
            assert name in there, f"{name} in {expression}"


def test_every_label_in_an_expression_exists(start_router):
    router = start_router(everything())
    use(router)
    _, text = ask(router, None)
    labels = {"instance", "job", "le"}
    labels |= set(re.findall(r'[{,](\w+)="', text))
    for expression in expressions():
        if any(name.startswith(SHARED) for name in NAME.findall(expression)):
            continue
        used = set(re.findall(r'[{,](\w+)=~?"', expression))
        for group in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression):
            used |= {label.strip() for label in group.split(",")}
        assert used <= labels, (expression, used - labels)


def test_every_alert_has_a_part_of_the_book():
    page = (ROOT / "docs/tasks/alerts.md").read_text()
    headings = re.findall(r"(?m)^## (.+)$", page)
    anchors = {re.sub(r"[^a-z0-9-]", "", heading.lower().replace(" ", "-")) for heading in headings}
    named = set()
    for alert, _, runbook in alerts():
        file, anchor = runbook.split("#")
        assert file == "docs/tasks/alerts.md"
        assert anchor in anchors, runbook
        assert f"`{alert}`" in page, alert
        named.add(anchor)
    assert named == anchors


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (prometheus)")
def test_the_rules_are_those_of_prometheus():
    checked = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@prometheus.needed
def test_prometheus_evaluates_every_expression(start_router, tmp_path):
    router = start_router(everything())
    use(router)
    of_boards = [of_board(expression) for board in BOARDS for _, expression in panels(board)]
    with prometheus.scraping("crosstie", router.address("tcp"), tmp_path) as running:
        for _, expression, _ in alerts():
            running.answer(expression)

        def unanswered() -> list[str]:
            return [expression for expression in of_boards if not running.answer(expression)]

        await_true("every expression of the boards has an answer", lambda: unanswered() == [])
