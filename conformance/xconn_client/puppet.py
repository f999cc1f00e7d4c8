"""Logs in with xconn's client for Python as each line of standard input says, and says as whom.

It runs in the environment of that client alone.
"""

import json
import sys

from wampproto import auth, serializers
from xconn.client import Client

SERIALIZERS = {
    "json": serializers.JSONSerializer,
    "msgpack": serializers.MsgPackSerializer,
    "cbor": serializers.CBORSerializer,
}
METHODS = {
    "ticket": auth.TicketAuthenticator,
    "wampcra": auth.WAMPCRAAuthenticator,
    "cryptosign": auth.CryptoSignAuthenticator,
}


def told(asked: dict) -> dict:
    """Log in, ask the router who that is, and leave."""
    method, authid, secret = asked["method"], asked["authid"], asked["secret"]
    known = METHODS.get(method)
    who = known(authid, secret) if known else auth.AnonymousAuthenticator(authid)
    serializer = SERIALIZERS[asked["serializer"]]()
    session = Client(who, serializer).connect(asked["url"], "realm1")
    own = session._base_session.id
    details = session.call("wamp.session.get", [own]).args[0]
    session.leave()
    return {key: details[key] for key in ("authid", "authrole", "authmethod", "authprovider")}


def main() -> None:
    """Answer each line by a line."""
    for line in sys.stdin:
        try:
            answer = told(json.loads(line))
        except Exception as error:
            answer = {"refused": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
