#!/bin/sh
# x-single-active-consumer is chosen for order. On a classic queue of RabbitMQ 3.10.8 the order breaks at an orderly
# hand-over: the successor is sent new messages at once when the active consumer cancels, and what that one still held
# comes back behind them when its channel closes. A service that cancels, finishes and closes has its successor read
# 5 6 7 before 0 to 4, marked redelivered.
#
# Needs root, Debian's apt-get and Python 3 with venv. Packages: rabbitmq-server 3.10.8 (Debian 12), pika 1.4.4 (PyPI).
# Seen on 2026-11-28.
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
cat > hand_over.py <<'PY'
import sys
import time

import pika


def connect():
    parameters = pika.ConnectionParameters("127.0.0.1", int(sys.argv[1]))
    for _ in range(900):
        try:
            return pika.BlockingConnection(parameters)
        except pika.exceptions.AMQPConnectionError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def consume(got, prefetch):
    connection = connect()
    channel = connection.channel()
    channel.basic_qos(prefetch_count=prefetch)
    take = lambda _channel, method, _properties, body: got.append((int(body), method.redelivered))
    return connection, channel, channel.basic_consume("q", take)


def until(connection, got, count):
    for _ in range(200):
        connection.process_data_events(0.1)
        if len(got) >= count:
            return


publisher = connect()
channel = publisher.channel()
channel.confirm_delivery()
channel.queue_declare("q", arguments={"x-single-active-consumer": True})
first, second = [], []
active, held, tag = consume(first, 5)
waiting, _, _ = consume(second, 0)
for number in range(5):
    channel.basic_publish("", "q", str(number))
until(active, first, 5)
held.basic_cancel(tag)
for number in (5, 6, 7):
    channel.basic_publish("", "q", str(number))
until(waiting, second, 3)
held.close()
until(waiting, second, 8)
print("the active consumer:", *(number for number, _ in first))
print("its successor:", *(f"{number}{' again' if again else ''}" for number, again in second))
for each in (publisher, active, waiting):
    each.close()
PY
"$place/venv/bin/python" hand_over.py "$port" > seen
cat seen
cat > expected <<'TEXT'
the active consumer: 0 1 2 3 4
its successor: 5 6 7 0 again 1 again 2 again 3 again 4 again
TEXT
diff expected seen && echo "as before"
