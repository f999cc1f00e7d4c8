#!/bin/sh
# mosquitto 2.0.11 never frees the place of a QoS 2 message that an MQTT 5 client refuses. PUBREC with an error code ends
# such a message, says the specification, and no PUBREL follows. mosquitto sends none either, and counts the message as
# under way for as long as the connection lasts. After 20 of them, its default for messages under way, or after as many
# as the client's Receive Maximum says, it sends nothing of QoS 1 or 2 any more. The subscription stays, pings
# are answered, and publishers are acknowledged. gmqtt refuses when its program's handler returns a code.
#
# Needs root and Debian's apt-get. Packages: mosquitto 2.0.11 (Debian 12), gmqtt 0.8.0 (PyPI). Seen on 2026-11-30.
set -eu
[ -x /usr/sbin/mosquitto ] || apt-get install -y -q --no-install-recommends 'mosquitto=2.0.11*' >/dev/null
place=$(mktemp -d)
cd "$place"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check gmqtt==0.8.0
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
printf 'listener %s 127.0.0.1\nallow_anonymous true\n' "$port" > mosquitto.conf
/usr/sbin/mosquitto -c mosquitto.conf > log 2>&1 &
running=$!
trap 'kill $running; rm -rf "$place"' EXIT
cat > refuse.py <<'PY'
import asyncio
import os
import sys

import gmqtt

QUOTA_EXCEEDED = 0x97
heard = []


async def connected(client):
    for _ in range(100):
        try:
            return await client.connect("127.0.0.1", int(sys.argv[1]))
        except OSError:
            await asyncio.sleep(0.1)
    raise SystemExit("mosquitto did not start")


def on_message(client, topic, payload, qos, properties):
    heard.append(payload)
    return QUOTA_EXCEEDED


async def main():
    subscriber = gmqtt.Client("subscriber", optimistic_acknowledgement=False)
    subscriber.on_message = on_message
    publisher = gmqtt.Client("publisher")
    for client in (subscriber, publisher):
        await connected(client)
    subscriber.subscribe("topic", qos=2)
    await asyncio.sleep(1)
    for number in range(60):
        publisher.publish("topic", str(number), qos=2)
        await asyncio.sleep(0.02)
    await asyncio.sleep(2)
    print(f"{len(heard)} of 60 messages came, the last of them {heard[-1].decode()}")
    print("the subscriber is connected:", subscriber.is_connected)
    return len(heard) == 20


has_gone_silent = asyncio.new_event_loop().run_until_complete(main())
sys.stdout.flush()
# gmqtt's tasks have no end of their own.
os._exit(0 if has_gone_silent else 1)
PY
venv/bin/python refuse.py "$port"
