/**
 * Logs in with wampy, by one method, and tells what WELCOME said, or the reason why it was refused.
 *
 *     node wampy.mjs URL METHOD AUTHID SECRET [PUBLIC KEY]
 */

import { Wampy } from 'wampy';
import * as cryptosign from 'wampy/cryptosign.js';
import * as wampcra from 'wampy/wampcra.js';
import WebSocket from 'ws';

const [url, method, authid, secret, pubkey] = process.argv.slice(2);
const proofs = {
    ticket: () => () => secret,
    jwt: () => () => secret,
    wampcra: wampcra.sign,
    cryptosign: cryptosign.sign,
};
const options = { ws: WebSocket, realm: 'realm1', autoReconnect: false };
if (method in proofs) {
    Object.assign(options, {
        authid,
        authmethods: [method],
        authMode: 'auto',
        authPlugins: { [method]: proofs[method](secret) },
        authextra: pubkey ? { pubkey } : {},
    });
}
const client = new Wampy(url, options);
try {
    const { authrole, authmethod, ...details } = await client.connect();
    console.log(JSON.stringify({ authid: details.authid, authrole, authmethod }));
    await client.disconnect();
} catch (error) {
    console.log(JSON.stringify({ refused: error.errorUri ?? String(error) }));
}
process.exit(0);
