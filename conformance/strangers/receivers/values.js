/* Subscribes with autobahn-js, once for each serializer, and tells what arguments come.

   node values.js URL PACKAGES */
'use strict';

const path = require('path');
const packages = process.argv[3];
global.WebSocket = require(path.join(packages, 'ws'));
process.removeAllListeners('warning');
const autobahn = require(path.join(packages, 'autobahn'));

const TOPIC = 'com.value';
const SERIALIZERS = {
    json: autobahn.serializer.JSONSerializer,
    msgpack: autobahn.serializer.MsgpackSerializer,
    cbor: autobahn.serializer.CBORSerializer,
};

function told(value) {
    if (value === null || value === undefined || typeof value === 'boolean') {
        return String(value);
    }
    switch (typeof value) {
    case 'number':
        return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
        return value < 10n ** 40n ? `${value}n` : `an integer of ${String(value).length} digits`;
    case 'string':
        return JSON.stringify(value).replace(/[\ud800-\udfff]/g, '\ufffd');
    }
    if (value instanceof Uint8Array) {
        return `h'${Buffer.from(value).toString('hex')}'`;
    }
    if (value instanceof Date) {
        return `date ${value.toISOString()}`;
    }
    if (Array.isArray(value)) {
        return `[${value.map(told).join(', ')}]`;
    }
    if (value instanceof Map || value.constructor === Object) {
        const entries = value instanceof Map ? [...value] : Object.entries(value);
        return `{${entries.map(([key, each]) => `${told(key)}: ${told(each)}`).join(', ')}}`;
    }
    return value.constructor.name;
}

function say(...what) {
    process.stdout.write(JSON.stringify(what) + '\n');
}

for (const [name, Serializer] of Object.entries(SERIALIZERS)) {
    const connection = new autobahn.Connection({
        url: process.argv[2],
        realm: 'realm1',
        serializers: [new Serializer()],
        max_retries: 0,
    });
    connection.onopen = (session) => {
        session.subscribe(TOPIC, ([number, value]) => say(name, 'value', number, told(value)))
            .then(() => say(name, 'ready'));
    };
    connection.onclose = () => say(name, 'lost');
    connection.open();
}
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
