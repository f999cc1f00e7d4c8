/**
 * A session of autobahn-js as its documentation shows it, with its default retry.
 *
 *     node returning.js URL
 *
 * It says "there" whenever it has subscribed, "got TOKEN" for each event, and "away" if it does not come back.
 */

'use strict';

// autobahn-js expects the runtime's own WebSocket, and waits for `close` alone, which follows every error.
const NativeWebSocket = require('ws');
global.WebSocket = class extends NativeWebSocket {
    constructor(url, protocols) {
        super(url, protocols);
        this.on('error', () => {});
    }
};
const autobahn = require('autobahn');

const connection = new autobahn.Connection({ url: process.argv[2], realm: 'realm1' });
connection.onopen = async (session) => {
    await session.subscribe('com.returning', ([token]) => console.log(`got ${token}`));
    console.log('there');
};
connection.onclose = (reason, details) => {
    if (!details.will_retry) {
        console.log('away');
    }
    return false;
};
connection.open();
// Nothing else keeps the program alive once the client has given up.
setInterval(() => {}, 1000);
