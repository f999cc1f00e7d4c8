#!/bin/sh
# The scope `configure:*/a*b` of an OAuth 2 token lets a client of RabbitMQ 3.10.8 declare the queues ab and axb, and not
# abb or axbxb: a part of the pattern takes its first occurrence, and is never tried at a later one. The scope
# `configure:*/a**` does not cover the queue a. The scope `write:*/*` lets a client publish to every exchange but those of
# type topic, which need `write:*/*/*`.
#
# Needs root, Debian's apt-get, openssl and Python 3. Packages: rabbitmq-server 3.10.8 (Debian 12), pika 1.3.2,
# PyJWT 2.9.0, cryptography 43.0.3.
# Seen on 2026-11-29.
set -eu
bin=/usr/lib/rabbitmq/bin
[ -x "$bin/rabbitmq-server" ] || apt-get install -y -q --no-install-recommends 'rabbitmq-server=3.10.8*' >/dev/null
place=$(mktemp -d)
cd "$place"
cat > free.py <<'PY'
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(each.getsockname()[1] for each in held))
PY
set -- $(python3 free.py)
python3 -m venv venv
venv/bin/pip install -q pika==1.3.2 PyJWT==2.9.0 cryptography==43.0.3
openssl genrsa -out key.pem 2048 2>/dev/null
openssl rsa -in key.pem -pubout -out public.pem 2>/dev/null
export HOME="$place" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$3" RABBITMQ_DIST_PORT="$2"
export RABBITMQ_NODENAME="finding$1@localhost" RABBITMQ_MNESIA_BASE="$place/mnesia" RABBITMQ_LOG_BASE="$place/log"
export RABBITMQ_CONFIG_FILE="$place/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$place/enabled_plugins"
echo '[rabbitmq_auth_backend_oauth2].' > enabled_plugins
cat > rabbitmq.conf <<TEXT
listeners.tcp.1 = 127.0.0.1:$1
auth_backends.1 = rabbit_auth_backend_oauth2
auth_oauth2.resource_server_id = rabbitmq
auth_oauth2.default_key = one
auth_oauth2.signing_keys.one = $place/public.pem
auth_oauth2.algorithms.1 = RS256
TEXT
"$bin/rabbitmq-server" > output 2>&1 &
running=$!
trap 'kill $running; wait $running || true; epmd -port "$ERL_EPMD_PORT" -kill >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
until "$bin/rabbitmqctl" -q await_startup >/dev/null 2>&1; do sleep 1; done
cat > ask.py <<'PY'
import sys
import time

import jwt
import pika

key = open("key.pem").read()


def may(scopes, act):
    claims = {"sub": "alice", "aud": "rabbitmq", "exp": int(time.time()) + 600}
    claims["scope"] = [f"rabbitmq.{scope}" for scope in scopes]
    token = jwt.encode(claims, key, "RS256", headers={"kid": "one"})
    login = pika.PlainCredentials("alice", token)
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", int(sys.argv[1]), credentials=login)
    )
    channel = connection.channel()
    channel.confirm_delivery()
    try:
        act(channel)
        return "allowed"
    except pika.exceptions.ChannelClosedByBroker as closed:
        return f"refused with {closed.reply_code}"
    finally:
        connection.close()


for pattern, names in (("a*b", ("ab", "axb", "abb", "axbxb")), ("a**", ("ab", "a"))):
    for name in names:
        scopes = [f"configure:*/{pattern}"]
        outcome = may(scopes, lambda channel: channel.queue_declare(name, exclusive=True))
        print(pattern, name, outcome)
for scope in ("write:*/*", "write:*/*/*"):
    for exchange in ("amq.direct", "amq.topic"):
        print(scope, exchange, may([scope], lambda channel: channel.basic_publish(exchange, "key", b"")))
PY
venv/bin/python ask.py "$1" | tee seen
cat > expected <<'TEXT'
a*b ab allowed
a*b axb allowed
a*b abb refused with 403
a*b axbxb refused with 403
a** ab allowed
a** a refused with 403
write:*/* amq.direct allowed
write:*/* amq.topic refused with 403
write:*/*/* amq.direct allowed
write:*/*/* amq.topic allowed
TEXT
diff expected seen && echo "as before"
