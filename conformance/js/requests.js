// The XMLHttpRequest that autobahn-js expects of a browser and Node.js lacks: as much of it as `http_post` uses.
//
// autobahn-js does not wait for one message to be sent before it sends the next. So each WAMP transport has two
// connections: one for the request that waits, one for all others, which so arrive in the order in which they were made.
'use strict';

const http = require('http');

const agents = new Map();

function agentOf(url) {
    const name = url.endsWith('/receive') ? url : url.replace(/\/[^/]*$/, '');
    if (!agents.has(name)) {
        agents.set(name, new http.Agent({ keepAlive: true, maxSockets: 1 }));
    }
    return agents.get(name);
}

class XMLHttpRequest {
    constructor() {
        this.readyState = 0;
        this.status = 0;
        this.statusText = '';
        this.responseText = '';
        this.timeout = 0;
        this.headers = {};
    }

    open(method, url) {
        this.method = method;
        this.url = url;
    }

    setRequestHeader(name, value) {
        this.headers[name] = value;
    }

    send(body = '') {
        const options = { method: this.method, headers: this.headers, agent: agentOf(this.url) };
        const request = http.request(this.url, options, (response) => {
            const parts = [];
            response.on('data', (part) => parts.push(part));
            response.on('end', () => {
                this.responseText = Buffer.concat(parts).toString();
                this.done(response.statusCode, response.statusMessage);
            });
            response.on('error', (error) => this.done(0, String(error)));
        });
        request.on('error', (error) => this.done(0, String(error)));
        if (this.timeout > 0) {
            this.timer = setTimeout(() => {
                this.isDone = true;
                request.destroy();
                this.ontimeout();
            }, this.timeout);
        }
        request.end(body);
    }

    done(status, text) {
        if (this.isDone) {
            return;
        }
        this.isDone = true;
        clearTimeout(this.timer);
        this.status = status;
        this.statusText = text;
        this.readyState = 4;
        this.onreadystatechange();
    }
}

module.exports = { XMLHttpRequest };
