#!/bin/sh
# Autobahn|JS 26.3.1 sends a HELLO without `agent`, although WAMP reserves that key for the client's name and version and
# Autobahn|Python fills it in. A router that treats clients by their library has to look at the features that a client
# announces: Autobahn|JS announces call_canceling as a caller, and not as a callee.
#
# Needs Node.js and npm. Packages: autobahn 26.3.1, ws 8.23.0 (npm). Seen on 2026-11-28 with Node.js 20.
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
npm init -y >/dev/null
npm install --no-audit --no-fund --silent autobahn@26.3.1 ws@8.23.0 >/dev/null
cat > seen.js <<'JS'
const autobahn = require('autobahn');
const { WebSocket, WebSocketServer } = require('ws');
globalThis.WebSocket = WebSocket;
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => 'wamp.2.json' });
server.on('connection', (socket) => socket.on('message', (text) => {
    const [, realm, details] = JSON.parse(text);
    const features = (role) => details.roles[role].features;
    console.log(`keys of HELLO's details: ${Object.keys(details).sort().join(' ')}`);
    console.log(`agent: ${details.agent}`);
    console.log(`caller announces call_canceling: ${features('caller').call_canceling === true}`);
    console.log(`callee announces call_canceling: ${features('callee').call_canceling === true}`);
    process.exit(0);
}));
server.on('listening', () => {
    const url = `ws://127.0.0.1:${server.address().port}/`;
    new autobahn.Connection({ url, realm: 'realm1' }).open();
});
JS
timeout 30 node seen.js > seen
cat seen
cat > expected <<'TEXT'
keys of HELLO's details: roles
agent: undefined
caller announces call_canceling: true
callee announces call_canceling: false
TEXT
diff expected seen && echo "as before"
