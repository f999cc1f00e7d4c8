#!/bin/sh
# RabbitMQ documents x-death as a list whose newest entry is prepended, and whose known entry moves to the front with its
# count. RabbitMQ 3.10.8 also turns the order of all the others around at each death: after deaths in a, b and c the list
# is c a b. A program that looks for the death before the last one at index 1 finds the oldest. And an entry that moves
# to the front keeps the time of its first death, so that sorting by time does not mend it either.
#
# Needs root, Debian's apt-get and Python 3 with venv. Packages: rabbitmq-server 3.10.8 (Debian 12), pika 1.4.4 (PyPI).
# Seen on 2026-11-30.
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
cat > deaths.py <<'PY'
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


connection = connect()
channel = connection.channel()
channel.confirm_delivery()
names = ["a", "b", "c", "d"]
for name, following in zip(names, names[1:] + names[:1]):
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": following}
    channel.queue_declare(name, arguments=arguments)
channel.basic_publish("", "a", "m")
first = {}
for number in range(1, 8):
    method = None
    while method is None:
        method, properties, _ = channel.basic_get(names[(number - 1) % 4])
    deaths = (properties.headers or {}).get("x-death", [])
    if deaths:
        newest = names[(number - 2) % 4]
        time_of = {death["queue"]: death["time"] for death in deaths}
        is_kept = first.setdefault(newest, time_of[newest]) == time_of[newest]
        print("died in", newest + ":", *(death["queue"] + str(death["count"]) for death in deaths), end="")
        print("" if number < 6 else ", with the time of its first death" if is_kept else ", with a new time")
    time.sleep(1.1)
    channel.basic_reject(method.delivery_tag, requeue=False)
connection.close()
PY
"$place/venv/bin/python" deaths.py "$port" > seen
cat seen
cat > expected <<'TEXT'
died in a: a1
died in b: b1 a1
died in c: c1 a1 b1
died in d: d1 b1 a1 c1
died in a: a2 c1 b1 d1, with the time of its first death
died in b: b2 d1 c1 a2, with the time of its first death
TEXT
diff expected seen && echo "as before"
