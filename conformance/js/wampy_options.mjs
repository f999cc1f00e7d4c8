/**
 * Uses options and ids with wampy, in one of its serializers, and tells what came of it.
 *
 *     node wampy_options.mjs URL json|msgpack|cbor
 */

import { Wampy } from 'wampy';
import { CborSerializer } from 'wampy/CborSerializer.js';
import { JsonSerializer } from 'wampy/JsonSerializer.js';
import { MsgpackSerializer } from 'wampy/MsgpackSerializer.js';
import WebSocket from 'ws';

const [url, name] = process.argv.slice(2);
const serializers = { json: JsonSerializer, msgpack: MsgpackSerializer, cbor: CborSerializer };

async function open() {
    const options = {
        ws: WebSocket,
        realm: 'realm1',
        autoReconnect: false,
        serializer: new serializers[name](),
        onClose: () => {
            told.closed = true;
        },
    };
    const client = new Wampy(url, options);
    const welcome = await client.connect();
    return { client, id: client.getSessionId(), welcome };
}

const told = { closed: false, heard: [] };
const topic = 'com.example.news';
try {
    const [one, two] = [await open(), await open()];
    let last;
    const all = new Promise((resolve) => {
        last = resolve;
    });
    // Its options `match` and `get_retained` are undefined.
    const { subscriptionId } = await two.client.subscribe(topic, ({ argsList }) => {
        told.heard.push(argsList[0]);
        if (argsList[0] === 'last') {
            last();
        }
    });
    // A session's id is mostly beyond 32 bits, and then a float.
    const excluded = { exclude: [Number(two.id)] };
    await one.client.publish(topic, { argsList: ['excluded'], argsDict: {} }, excluded);
    await one.client.publish(topic, { argsList: ['last'], argsDict: {} });
    await all;
    const found = await one.client.call('wamp.session.get', [Number(two.id)]);
    told.found = Number(found.argsList[0].session) === Number(two.id);
    await two.client.register('com.example.echo', ({ argsList }) => ({ argsList }));
    told.echo = (await one.client.call('com.example.echo', ['back'])).argsList[0];
    await two.client.unsubscribe(subscriptionId);
    told.unsubscribed = true;
} catch (error) {
    told.error = error.errorUri ?? String(error);
}
console.log(JSON.stringify(told));
process.exit(0);
