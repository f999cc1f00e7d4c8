/**
 * The same with wampy: `node returning.mjs URL`.
 */

import { Wampy } from 'wampy';
import WebSocket from 'ws';

const client = new Wampy(process.argv[2], {
    ws: WebSocket,
    realm: 'realm1',
    onReconnectSuccess: () => console.log('there'),
    // It is not called where the client is about to connect anew.
    onClose: () => console.log('away'),
});
await client.connect();
await client.subscribe('com.returning', (event) => console.log(`got ${event.argsList[0]}`));
console.log('there');
setInterval(() => {}, 1000);
