#!/bin/sh
# nats-server 2.15.3 gives no answer to a JetStream request of the system account that has a header, even an empty one.
# In other accounts the server itself adds a header that describes the client. In the system account it does not, and
# takes whatever header is there for that description: "Malformed JetStream API Request". The same request without a
# header is answered. A client library that sends each request with headers cannot remove a server, or move its streams.
#
# Needs Go 1.26, Python 3. Package: github.com/nats-io/nats-server/v2 v2.15.3 (Go module).
# Seen on 2026-11-28.
set -eu
place=$(mktemp -d)
cd "$place"
running=
trap 'for each in $running; do kill "$each" 2>/dev/null || true; done; wait || true; rm -rf "$place"' EXIT
GOBIN="$place" go install github.com/nats-io/nats-server/v2@v2.15.3
cat > free.py <<'PY'
import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
print(*(each.getsockname()[1] for each in held))
PY
ports=$(python3 free.py)
set -- $ports
first=$1
routes="\"nats://127.0.0.1:$4\", \"nats://127.0.0.1:$5\", \"nats://127.0.0.1:$6\""
for number in 1 2 3; do
    cat > "$number.conf" <<CONF
server_name: n$number
listen: "127.0.0.1:$1"
jetstream { store_dir: "$place/js$number" }
cluster { name: c, listen: "127.0.0.1:$4", routes: [$routes] }
accounts { "\$SYS" { users: [{ user: operator, password: pw }] } }
CONF
    ./nats-server -c "$number.conf" -l "$number.log" &
    running="$running $!"
    shift
done
cat > ask.py <<'PY'
import json
import socket
import sys
import time


def ask(headers):
    """Return the answer to the removal of a server that there is not."""
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as connection:
        stream = connection.makefile("rwb")
        stream.readline()
        options = {"verbose": False, "headers": True, "no_responders": True, "user": "operator", "pass": "pw"}
        stream.write(b"CONNECT " + json.dumps(options).encode() + b"\r\nSUB answer 1\r\n")
        question = b'{"peer": "n9"}'
        if headers is None:
            stream.write(b"PUB $JS.API.SERVER.REMOVE answer %d\r\n" % len(question))
        else:
            size = len(headers)
            stream.write(b"HPUB $JS.API.SERVER.REMOVE answer %d %d\r\n" % (size, size + len(question)))
            stream.write(headers)
        stream.write(question + b"\r\nPING\r\n")
        stream.flush()
        connection.settimeout(5)
        try:
            while True:
                line = stream.readline().split()
                if line[0] == b"HMSG":
                    # No responders: the servers are not ready.
                    return "not ready"
                if line[0] == b"MSG":
                    return json.loads(stream.read(int(line[-1])))["error"]["description"]
        except TimeoutError:
            return "no answer in 5 s"


for _ in range(60):
    plain = ask(None)
    if plain == "server is not a member of the cluster":
        break
    time.sleep(0.5)
print("without a header:", plain)
print("with an empty one:", ask(b"NATS/1.0\r\n\r\n"))
PY
python3 ask.py "$first" > seen
cat seen
cat > expected <<'TEXT'
without a header: server is not a member of the cluster
with an empty one: no answer in 5 s
TEXT
diff expected seen
grep -h "Malformed JetStream API Request" ./*.log && echo "as before"
