#!/bin/sh
# `rabbitmqctl add_vhost --tags a,b` of RabbitMQ 3.10.8 keeps the words as one text, "a,b", and none as "", where
# `set_vhost_tags` keeps a list: a program that reads `list_vhosts name tags --formatter json` gets either. In the same
# release `--formatter pretty_table` writes the tags of a user as one word: administratormonitoring.
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
"$bin/rabbitmqctl" -q add_vhost none
"$bin/rabbitmqctl" -q add_vhost two --tags a,b
"$bin/rabbitmqctl" -q add_vhost set
"$bin/rabbitmqctl" -q set_vhost_tags set a b
"$bin/rabbitmqctl" list_vhosts name tags --formatter json | grep -o '{.*}' | sort > seen
"$bin/rabbitmqctl" -q add_user alice secret
"$bin/rabbitmqctl" -q set_user_tags alice administrator monitoring
"$bin/rabbitmqctl" -q list_users --formatter pretty_table | grep -o 'admin.*ing' >> seen
cat seen
cat > expected <<'TEXT'
{"name":"/","tags":[]}
{"name":"none","tags":""}
{"name":"set","tags":["a","b"]}
{"name":"two","tags":"a,b"}
administratormonitoring
TEXT
diff expected seen && echo "as before"
