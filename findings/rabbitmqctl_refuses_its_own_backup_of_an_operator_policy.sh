#!/bin/sh
# RabbitMQ 3.10.8 does not take back what it exported itself once an operator policy exists. `rabbitmqctl
# export_definitions` writes the policy's definition as a list of pairs, where `GET /api/definitions` writes an object.
# `rabbitmqctl import_definitions` of that file ends with 69, "definition must be a dictionary", and the policy is not
# restored. The definition of an ordinary policy in the same file is an object.
#
# Needs root, Debian's apt-get and Python 3. Packages: rabbitmq-server 3.10.8 (Debian 12).
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
export HOME="$place" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$3" RABBITMQ_DIST_PORT="$2"
export RABBITMQ_NODENAME="finding$1@localhost" RABBITMQ_MNESIA_BASE="$place/mnesia" RABBITMQ_LOG_BASE="$place/log"
export RABBITMQ_CONFIG_FILE="$place/rabbitmq.conf" RABBITMQ_ENABLED_PLUGINS_FILE="$place/enabled_plugins"
printf 'listeners.tcp.1 = 127.0.0.1:%s\n' "$1" > rabbitmq.conf
"$bin/rabbitmq-server" > output 2>&1 &
running=$!
trap 'kill $running; wait $running || true; epmd -port "$ERL_EPMD_PORT" -kill >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
until "$bin/rabbitmqctl" -q await_startup >/dev/null 2>&1; do sleep 1; done
ctl() { "$bin/rabbitmqctl" -q "$@"; }
ctl set_policy plain '^p' '{"max-length":7}'
ctl set_operator_policy bound '^q' '{"max-length":5}'
ctl export_definitions "$place/backup.json" >/dev/null
python3 - > seen <<'PY'
import json
backup = json.load(open("backup.json"))
print("policy:", *(json.dumps(each["definition"]) for each in backup["policies"]))
for each in backup["parameters"]:
    print(f"{each['component']}:", json.dumps(each["value"]["definition"]))
PY
ctl clear_operator_policy bound
ended=0
ctl import_definitions "$place/backup.json" > answer 2>&1 || ended=$?
echo "import ends with $ended" >> seen
grep -o 'definition must be a dictionary' answer | head -n 1 >> seen
echo "operator policies afterwards: $(ctl list_operator_policies --formatter json | tr -d '\n ')" >> seen
cat seen
cat > expected <<'TEXT'
policy: {"max-length": 7}
operator_policy: [["max-length", 5]]
import ends with 69
definition must be a dictionary
operator policies afterwards: []
TEXT
diff expected seen && echo "as before"
