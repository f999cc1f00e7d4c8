#!/bin/sh
# A policy of RabbitMQ 3.10.8 bounds all queues (max-length) and sets delivery-limit, which only quorum queues know. The
# server accepts it for all queues without a warning. For a quorum queue both keys count. For a classic queue not the
# one key is left out, but the whole policy: the queue is not bounded, and rabbitmqctl lists no policy for it.
#
# Needs root, Debian's apt-get and Python 3 with venv. Packages: rabbitmq-server 3.10.8 (Debian 12) and pika 1.4.4 (PyPI).
# Seen on 2026-11-29.
set -eu
server=/usr/lib/rabbitmq/bin/rabbitmq-server
[ -x "$server" ] || apt-get install -y -q --no-install-recommends 'rabbitmq-server=3.10.8*' >/dev/null
place=$(mktemp -d)
cd "$place"
cat > free.py <<'PY'
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(each.getsockname()[1] for each in held))
PY
set -- $(python3 free.py)
port=$1
export HOME="$place" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$3" RABBITMQ_DIST_PORT="$2"
export RABBITMQ_NODENAME="finding$port@localhost" RABBITMQ_MNESIA_BASE="$place/mnesia" RABBITMQ_LOG_BASE="$place/log"
export RABBITMQ_CONFIG_FILE="$place/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$place/enabled_plugins"
printf 'listeners.tcp.1 = 127.0.0.1:%s\n' "$port" > rabbitmq.conf
"$server" > output 2>&1 &
running=$!
trap 'kill $running; wait $running || true; epmd -port "$ERL_EPMD_PORT" -kill >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install -q --disable-pip-version-check pika==1.4.4
control() { /usr/lib/rabbitmq/bin/rabbitmqctl -q -n "$RABBITMQ_NODENAME" "$@"; }
cat > fill.py <<'PY'
import sys
import time

import pika

for _ in range(240):
    try:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(sys.argv[1])))
        break
    except pika.exceptions.AMQPConnectionError:
        time.sleep(0.25)
if len(sys.argv) > 2:
    channel = connection.channel()
    channel.confirm_delivery()
    for kind in ("classic", "quorum"):
        channel.queue_declare(kind, durable=True, arguments={"x-queue-type": kind})
        for number in range(10):
            channel.basic_publish("", kind, b"%d" % number)
        depth = channel.queue_declare(kind, passive=True).method.message_count
        print(f"{kind} holds {depth} of 10 messages")
PY
"$place/venv/bin/python" fill.py "$port"
control set_policy bounds '.*' '{"max-length": 2, "delivery-limit": 5}' --apply-to queues
"$place/venv/bin/python" fill.py "$port" fill > seen
control list_queues --no-table-headers name policy | tr '\t' ' ' | sed 's/ *$//; s/^/policy of /' | sort >> seen
cat seen
cat > expected <<'TEXT'
classic holds 10 of 10 messages
quorum holds 2 of 10 messages
policy of classic
policy of quorum bounds
TEXT
diff expected seen > /dev/null || { echo "The behaviour has changed; expected:"; cat expected; exit 1; }
echo "The whole policy is skipped for the classic queue."
