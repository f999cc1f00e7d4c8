#!/bin/sh
# mosquitto 2.0.11 sends more messages of QoS 2 than an MQTT 5 client takes. The client's Receive Maximum is the number of
# messages of QoS 1 and 2 that may be under way; one of QoS 2 is until its PUBCOMP. mosquitto holds it at first, and
# then sends two messages for each one that ends, so that a client which takes 2 soon has 21. A client that goes by the
# book disconnects with 0x93, which is what the specification has for this.
#
# Needs root and Debian's apt-get. Package: mosquitto 2.0.11 (Debian 12). Seen on 2026-11-30.
set -eu
[ -x /usr/sbin/mosquitto ] || apt-get install -y -q --no-install-recommends 'mosquitto=2.0.11*' >/dev/null
place=$(mktemp -d)
cd "$place"
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
printf 'listener %s 127.0.0.1\nallow_anonymous true\n' "$port" > mosquitto.conf
/usr/sbin/mosquitto -c mosquitto.conf > log 2>&1 &
running=$!
trap 'kill $running; rm -rf "$place"' EXIT
cat > count.py <<'PY'
import socket
import struct
import sys
import time

TAKES, PUBLISHED = 2, 40
PUBLISH, PUBREC, PUBREL, PUBCOMP, SUBACK, PINGRESP = 3, 5, 6, 7, 9, 13


def connect(name, properties=b""):
    for _ in range(100):
        try:
            opened = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
            break
        except OSError:
            time.sleep(0.1)
    body = b"\0\4MQTT\5\2\0\0" + bytes([len(properties)]) + properties + b"\0\1" + name
    opened.sendall(b"\x10" + bytes([len(body)]) + body)
    stream = opened.makefile("rwb")
    packet(stream)
    return stream


def packet(stream):
    """Return the kind and the packet id of the next one; all of them are short."""
    first, length = stream.read(2)
    body = stream.read(length)
    at = 2 + struct.unpack("!H", body[:2])[0] if first >> 4 == PUBLISH else 0
    return first >> 4, body[at : at + 2]


def say(stream, octets):
    stream.write(octets)
    stream.flush()


subscriber = connect(b"s", b"\x21" + struct.pack("!H", TAKES))
say(subscriber, b"\x82\7\0\1\0\0\1t\2")
assert packet(subscriber)[0] == SUBACK
publisher = connect(b"p")
for number in range(1, PUBLISHED + 1):
    id_ = struct.pack("!H", number)
    say(publisher, b"\x34\7\0\1t" + id_ + b"\0x")
    assert packet(publisher) == (PUBREC, id_)
    say(publisher, b"\x62\2" + id_)
    assert packet(publisher) == (PUBCOMP, id_)

under_way, most, ended = [], 0, 0


def hear_all():
    """Read until the answer to a ping."""
    say(subscriber, b"\xc0\0")
    while (heard := packet(subscriber))[0] != PINGRESP:
        if heard[0] == PUBLISH:
            under_way.append(heard[1])


hear_all()
print(f"the client takes {TAKES} messages at a time; at first it is sent {len(under_way)}")
while under_way:
    most = max(most, len(under_way))
    say(subscriber, b"\x50\2" + under_way[0])
    hear_all()
    say(subscriber, b"\x70\2" + under_way.pop(0))
    ended += 1
    hear_all()
print(f"{ended} messages came; at most {most} of them were under way at once")
raise SystemExit(0 if most > TAKES else 1)
PY
python3 count.py "$port"
