"""Crosstie answers HTTP requests as Crossbar.io does, header for header, or it says why not.

`answers.json` holds what Crossbar.io 26.10.1 said (`record.py` asks it anew); where Crosstie is to
differ, `different.json` holds its answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rig.http import Http
from rig.router import Router

from bridge import cases

HERE = Path(__file__).resolve().parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
OURS = json.loads((HERE / "different.json").read_text())

THE_CLIENTS = "what is wrong with a request is said as 400, and not as a fault of the router (500)"
NOT_JSON = "what JSON does not have is no JSON"
UNSPACED = "arguments of an error pass as they came, without spaces"

DIFFERENT = {
    "procedure_number": THE_CLIENTS,
    "procedure_null": THE_CLIENTS,
    "topic_number": THE_CLIENTS,
    "procedure_empty": "what is no URI is WAMP's own error, as for any session",
    "procedure_space": "likewise",
    "topic_space": "likewise",
    "not_a_number": NOT_JSON,
    "args_text": "a text is no list of its characters",
    "args_number": THE_CLIENTS,
    "args_dict": "a dict is no list of its keys",
    "kwargs_list": THE_CLIENTS,
    "error": UNSPACED,
    "denied": "the session of a service has a name",
    "option_bad": THE_CLIENTS,
    "option_bad_list": THE_CLIENTS,
    "options_list": THE_CLIENTS,
    "charset_quoted": "a quoted character set is the same (RFC 9110 section 5.6.6)",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory, puppets):
    """The same node as Crossbar.io's, with callees."""
    router = Router(tmp_path_factory.mktemp("bridge"), config=cases.node())
    address = router.address("web")
    session = puppets("asyncio").session().open(cases.place(address))
    cases.serve(session)
    yield Http(address)
    session.leave()
    router.stop()


@pytest.mark.parametrize("name", [case.name for case in cases.cases()])
def test_as_crossbar(site: Http, name: str):
    # Signed now, and not when the tests were listed.
    case = next(case for case in cases.cases() if case.name == name)
    expected = OURS[name] if name in DIFFERENT else ANSWERS[name]
    assert case.ask(site) == expected, DIFFERENT.get(name, "as Crossbar.io")


def test_known_differences_are_real():
    assert set(OURS) == set(DIFFERENT)
    assert set(ANSWERS) == {case.name for case in cases.cases()}
    assert [name for name in DIFFERENT if OURS[name] == ANSWERS[name]] == []
