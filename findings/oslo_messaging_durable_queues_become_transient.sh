#!/bin/sh
# A service asks oslo.messaging for durable queues (amqp_durable_queues). If another service has declared their common
# exchange without that option, RabbitMQ refuses the exchange with 406. oslo.messaging 18.3.1 then declares the queue
# transient, and serves; a warning mentions conflicting configurations. With quorum queues (rabbit_quorum_queue) the
# same step can not succeed: the service is never ready, and the error that it gives is about the property
# 'non-durable' of the queue, though the exchange is at fault and the configuration says durable.
#
# Needs root, Debian's apt-get and Python 3 with venv. Packages: rabbitmq-server 3.10.8 (Debian 12), oslo.messaging
# 18.3.1 and pika 1.4.4 (PyPI). Seen on 2026-11-28.
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
"$place/venv/bin/pip" install -q --disable-pip-version-check oslo.messaging==18.3.1 pika==1.4.4
cat > service.py <<'PY'
import logging
import sys

import oslo_messaging
from oslo_config import cfg

url, topic, *options = sys.argv[1:]
logging.basicConfig(level=logging.WARNING)
with open(f"{topic}.conf", "w") as file:
    file.write("\n".join(["[oslo_messaging_rabbit]", *options]) + "\n")
cfg.CONF(["--config-file", f"{topic}.conf"])
transport = oslo_messaging.get_rpc_transport(cfg.CONF, url=url)
target = oslo_messaging.Target(exchange="common", topic=topic, server="one")
oslo_messaging.get_rpc_server(transport, target, [object()], executor="threading").start()
print("ready", flush=True)
sys.stdin.read()
PY
cat > play.py <<'PY'
import atexit
import subprocess
import sys
import time

import pika

port = int(sys.argv[1])


def connect():
    for _ in range(900):
        try:
            return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
        except pika.exceptions.AMQPConnectionError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def is_durable(queue):
    channel = connect().channel()
    try:
        channel.queue_declare(queue, durable=True)
    except pika.exceptions.ChannelClosedByBroker as closed:
        return "inequivalent arg 'durable'" not in closed.reply_text
    return True


def service(topic, *options):
    command = [sys.executable, "service.py", f"rabbit://guest:guest@127.0.0.1:{port}/", topic]
    process = subprocess.Popen(
        [*command, *options], text=True, stdin=-1, stdout=-1, stderr=subprocess.STDOUT
    )
    atexit.register(process.kill)
    return process


def await_line(process, *wanted):
    for line in process.stdout:
        for each in wanted:
            if each in line:
                return each + (" (non-durable)" if "'non-durable'" in line else "")
    raise SystemExit(f"none of {wanted} was said")


connect()
await_line(service("plain"), "ready")
asked = service("asked", "amqp_durable_queues=true")
warned = "conflicting configurations"
print("durable queues are asked for:", await_line(asked, warned))
print("the service:", await_line(asked, "ready", "Unable to connect"))
print("its queue is durable:", is_durable("asked"))
quorum = service("quorum", "amqp_durable_queues=true", "rabbit_quorum_queue=true")
print("quorum queues are asked for:", await_line(quorum, warned))
print("the service:", await_line(quorum, "ready", "Unable to connect"))
PY
"$place/venv/bin/python" play.py "$port" > seen
cat seen
cat > expected <<'TEXT'
durable queues are asked for: conflicting configurations
the service: ready
its queue is durable: False
quorum queues are asked for: conflicting configurations
the service: Unable to connect (non-durable)
TEXT
diff expected seen && echo "as before"
