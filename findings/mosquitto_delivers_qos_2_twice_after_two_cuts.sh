#!/bin/sh
# mosquitto 2.0.11 delivers a message of QoS 2 twice if two connections in a row are lost. The subscriber has had the
# message and its PUBREL, so that it has forgotten the packet id; its PUBCOMP is lost with the connection. Then it loses
# two connections before mosquitto has repeated the PUBREL, as on a bad mobile network. At the next one mosquitto repeats
# the PUBLISH in place of the PUBREL, with DUP. DUP proves nothing, and the packet id is free: it is a new message.
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
cat > cut.py <<'PY'
import socket
import sys
import time

CONNACK, PUBLISH, PUBREC, PUBREL, PUBCOMP, SUBACK, PINGRESP = 2, 3, 5, 6, 7, 9, 13
MESSAGES, ROUNDS = 15, 10


def connect(name):
    """Connect with a session that is kept, and read nothing."""
    for _ in range(100):
        try:
            opened = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
            break
        except OSError:
            time.sleep(0.1)
    opened.sendall(b"\x10\x0d\0\4MQTT\4\0\0\0\0\1" + name)
    return opened


class Packets:
    def __init__(self, opened):
        self.opened, self.stream = opened, opened.makefile("rwb")

    def hear(self):
        """Return the kind and the packet id of the next one; all of them are short."""
        first, length = self.stream.read(2)
        body = self.stream.read(length)
        return first >> 4, body[3:5] if first >> 4 == PUBLISH else body[:2]

    def say(self, octets):
        self.stream.write(octets)
        self.stream.flush()


publisher = Packets(connect(b"p"))
assert publisher.hear()[0] == CONNACK
twice = 0
for _ in range(ROUNDS):
    subscriber = Packets(connect(b"s"))
    assert subscriber.hear()[0] == CONNACK
    subscriber.say(b"\x82\6\0\1\0\1t\2")
    assert subscriber.hear()[0] == SUBACK
    for number in range(1, MESSAGES + 1):
        publisher.say(b"\x34\6\0\1t\0" + bytes([number]) + b"x")
        assert publisher.hear()[0] == PUBREC
        publisher.say(b"\x62\2\0" + bytes([number]))
        assert publisher.hear()[0] == PUBCOMP
    released = [id_ for _, id_ in (subscriber.hear() for _ in range(MESSAGES))]
    for id_ in released:
        subscriber.say(b"\x50\2" + id_)
        assert subscriber.hear() == (PUBREL, id_)
    # The connection is lost, and two more as soon as they are made.
    subscriber.stream.close()
    subscriber.opened.close()
    for _ in range(2):
        connect(b"s").close()
    subscriber = Packets(connect(b"s"))
    assert subscriber.hear()[0] == CONNACK
    subscriber.say(b"\xc0\0")
    heard = []
    while (packet := subscriber.hear())[0] != PINGRESP:
        heard.append(packet)
    twice += sum(kind == PUBLISH and id_ in released for kind, id_ in heard)
    # What is under way is ended, for the next round.
    for kind, id_ in heard:
        if kind == PUBLISH:
            subscriber.say(b"\x50\2" + id_)
            assert subscriber.hear() == (PUBREL, id_)
        subscriber.say(b"\x70\2" + id_)
    subscriber.say(b"\xe0\0")
    subscriber.stream.read()
print(f"{twice} of {ROUNDS * MESSAGES} messages were published to the subscriber again after their PUBREL")
raise SystemExit(0 if twice else 1)
PY
python3 cut.py "$port"
