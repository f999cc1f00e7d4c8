#!/bin/sh
# RabbitMQ 3.10.8 answers the protocol headers "AMQP 1 1 8 0" and "AMQP 1 1 9 1" with a `connection.start` of version 8-0,
# and "AMQP 1 1 0 9" with one of 0-9. It then really speaks 0-8 to the first two: `connection.close` is method 10,60 in
# place of 10,50, and the table of capabilities is empty. A broker that takes such a header for 0-9-1
# under another name sends its clients a close that they do not know.
#
# Needs root and Debian's apt-get. Package: rabbitmq-server 3.10.8 (Debian 12). Seen on 2026-11-28.
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
cat > ask.py <<'PY'
import socket
import struct
import sys
import time

PORT = int(sys.argv[1])


def connect():
    for _ in range(900):
        try:
            return socket.create_connection(("127.0.0.1", PORT), timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def frame(stream):
    """Return a method frame's payload; heartbeats are passed over."""
    while True:
        kind, channel, size = struct.unpack("!BHI", stream.read(7))
        payload = stream.read(size + 1)[:-1]
        if kind == 1:
            return channel, payload


def method(channel, class_id, method_id, arguments):
    payload = struct.pack("!HH", class_id, method_id) + arguments
    return struct.pack("!BHI", 1, channel, len(payload)) + payload + b"\xce"


for header in (b"\1\1\x08\0", b"\1\1\x09\1", b"\1\1\0\x09", b"\0\0\x09\1"):
    with connect() as connection:
        connection.sendall(b"AMQP" + header)
        stream = connection.makefile("rb")
        _, start = frame(stream)
        version = f"{start[4]}-{start[5]}"
        login = b"\0guest\0guest"
        start_ok = b"\0\0\0\0" + b"\x05PLAIN" + struct.pack("!I", len(login)) + login + b"\x05en_US"
        connection.sendall(method(0, 10, 11, start_ok))
        _, tune = frame(stream)
        connection.sendall(method(0, 10, 31, tune[4:]))
        connection.sendall(method(0, 10, 40, b"\x01/\0\0"))
        frame(stream)
        # A second `connection.open` is out of order: the server closes the connection.
        connection.sendall(method(0, 10, 40, b"\x01/\0\0"))
        _, close = frame(stream)
        ids = struct.unpack("!HH", close[:4])
        _, _, behind = start.partition(b"capabilitiesF")
        (size,) = struct.unpack("!I", behind[:4])
        capabilities = "some" if size else "none"
        print(f"header {header.hex(' ')}: version {version}, capabilities {capabilities}, close {ids}")
PY
python3 ask.py "$port" > seen
cat seen
cat > expected <<'TEXT'
header 01 01 08 00: version 8-0, capabilities none, close (10, 60)
header 01 01 09 01: version 8-0, capabilities none, close (10, 60)
header 01 01 00 09: version 0-9, capabilities some, close (10, 50)
header 00 00 09 01: version 0-9, capabilities some, close (10, 50)
TEXT
diff expected seen && echo "as before"
