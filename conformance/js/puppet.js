// Drives autobahn-js as `rig/puppet.py` tells it: commands on standard input, one JSON object per
// line; answers and events on standard output.
'use strict';

const readline = require('readline');

// autobahn-js expects the runtime's own WebSocket, which Node.js has only since version 22.
// This one also takes `ws+unix:` URLs; and it offers compression unless it is told not to.
const NativeWebSocket = require('ws');

let perMessageDeflate = false;
let lastSocket = null;
global.WebSocket = class extends NativeWebSocket {
    constructor(url, protocols) {
        super(url, protocols, { perMessageDeflate });
        // autobahn-js waits for `close` alone, which follows every error.
        this.on('error', () => {});
        lastSocket = this;
    }
};
global.XMLHttpRequest = require('./requests.js').XMLHttpRequest;
// The Buffer constructor that autobahn-js still uses warns once per process.
process.removeAllListeners('warning');

const when = require('when');
const autobahn = require('autobahn');
const websocket = require('autobahn/lib/transport/websocket.js');
const rawsocket = require('autobahn/lib/transport/rawsocket.js');
const longpoll = require('autobahn/lib/transport/longpoll.js');

const SERIALIZERS = {
    json: autobahn.serializer.JSONSerializer,
    msgpack: autobahn.serializer.MsgpackSerializer,
    cbor: autobahn.serializer.CBORSerializer,
};

function say(what) {
    process.stdout.write(JSON.stringify(what, toSpeech) + '\n');
}

// Buffers become {type: 'Buffer', data: [...]} before a replacer sees them.
function toSpeech(key, value) {
    const original = this[key];
    if (original instanceof Uint8Array) {
        return { $bytes: Buffer.from(original).toString('base64') };
    }
    return value;
}

function fromSpeech(key, value) {
    if (value && typeof value === 'object' && Object.keys(value).join() === '$bytes') {
        return Buffer.from(value.$bytes, 'base64');
    }
    return value;
}

function fail(id, error) {
    if (error instanceof autobahn.Error) {
        say({ id, error: { uri: error.error, args: error.args || [], kwargs: error.kwargs || {} } });
    } else {
        say({ id, error: { uri: 'client', args: [String(error)], kwargs: {} } });
    }
}

function answer(id, promise, ok) {
    promise.then((value) => say({ id, ok: ok(value) }), (error) => fail(id, error));
}

class Session {
    constructor(name, place) {
        this.name = name;
        this.joining = null;
        this.leaving = null;
        this.keep = false;
        this.leftWith = null;
        this.objects = new Map();
        this.calls = new Map();
        this.held = new Map();
        this.invocations = 0;
        // How it says who it is: a method, an authid or none, and a ticket, a secret or a private key.
        this.auth = null;
        this.key = undefined;
        this.transport = transport(place);
        this.socket = place.kind === 'ws' ? lastSocket : null;
        this.transport.onopen = () => {
            // The session takes the transport's messages from now on.
            this.session = new autobahn.Session(
                this.transport, when.defer, (_, method, extra) => this.proof(method, extra),
                () => {}, () => {});
            this.session.onjoin = (details) => this.joined(details);
            this.session.onleave = (reason, details) => this.left(reason, details);
            this.say_hello();
        };
        this.transport.onclose = () => this.disconnected();
    }

    say_hello() {
        if (this.auth === null) {
            this.session.join(this.realm);
            return;
        }
        const { method, authid, secret } = this.auth;
        if (method === 'cryptosign') {
            this.key = autobahn.nacl.sign.keyPair.fromSeed(new Uint8Array(Buffer.from(secret, 'hex')));
        }
        const extra = this.key && { pubkey: autobahn.auth_cryptosign.public_key(this.key) };
        this.session.join(this.realm, [method], authid || undefined, extra);
    }

    proof(method, extra) {
        const { secret } = this.auth;
        switch (method) {
        case 'ticket':
        case 'jwt':
            return secret;
        case 'wampcra': {
            const key = extra.salt === undefined ? secret
                : autobahn.auth_cra.derive_key(secret, extra.salt, extra.iterations, extra.keylen);
            return autobahn.auth_cra.sign(key, extra.challenge);
        }
        default:
            return autobahn.auth_cryptosign.sign_challenge(this.key, extra);
        }
    }

    answerJoin(what) {
        const id = this.joining;
        this.joining = null;
        if (id !== null) {
            say({ id, ...what });
        }
        return id !== null;
    }

    joined(details) {
        const compressed = Boolean(this.socket && this.socket.extensions);
        this.answerJoin({ ok: { session: this.session.id, compressed, ...details } });
    }

    left(reason, details) {
        this.leftWith = reason;
        const aborted = { uri: reason, args: [details && details.message], kwargs: {} };
        if (!this.answerJoin({ error: aborted }) && this.leaving === null) {
            say({ session: this.name, event: 'left', reason });
        }
        if (this.leaving !== null && this.keep) {
            this.answerLeave();
        } else {
            this.transport.close(1000);
        }
    }

    answerLeave() {
        const id = this.leaving;
        this.leaving = null;
        if (id !== null) {
            say({ id, ok: { reason: this.leftWith } });
        }
    }

    disconnected() {
        this.answerJoin({ error: { uri: 'transport lost', args: [], kwargs: {} } });
        this.answerLeave();
        say({ session: this.name, event: 'disconnected' });
    }

    open(id, command) {
        this.joining = id;
        this.realm = command.realm;
        this.auth = command.auth || null;
    }

    join(id, command) {
        this.joining = id;
        this.session.join(command.realm);
    }

    leave(id, command) {
        this.leaving = id;
        this.keep = command.keep;
        this.session.leave();
    }

    drop(id) {
        this.transport.close(1000);
        say({ id, ok: {} });
    }

    call(id, { procedure, args, kwargs, options }) {
        const progress = [];
        const called = this.session.call(procedure, args, kwargs, options);
        this.calls.set(id, called);
        called.then(
            (value) => say({ id, ok: { ...resultOf(value), progress } }),
            (error) => fail(id, error),
            (value) => {
                progress.push(resultOf(value));
                say({ session: this.name, event: 'progress', call: id, args: resultOf(value).args });
            });
    }

    cancel(id, command) {
        this.calls.get(command.call).cancel({ mode: command.mode });
        say({ id, ok: {} });
    }

    register(id, { procedure, behave, options }) {
        const endpoint = (args, kwargs, details) => this.invoked(behave, args, kwargs, details);
        answer(id, this.session.register(procedure, endpoint, options), (registration) => {
            this.objects.set(registration.id, registration);
            return { registration: registration.id };
        });
    }

    unregister(id, { registration }) {
        answer(id, this.session.unregister(this.objects.get(registration)), () => ({}));
    }

    subscribe(id, { topic, options }) {
        const published = (args, kwargs, event, subscription) => say({
            session: this.name,
            event: 'published',
            subscription: subscription.id,
            publication: event.publication,
            args,
            kwargs,
            topic: event.topic,
            publisher: event.publisher || null,
            publisher_authid: event.publisher_authid || null,
            publisher_authrole: event.publisher_authrole || null,
            retained: Boolean(event.retained),
        });
        answer(id, this.session.subscribe(topic, published, options), (subscription) => {
            this.objects.set(subscription.id, subscription);
            return { subscription: subscription.id };
        });
    }

    unsubscribe(id, { subscription }) {
        answer(id, this.session.unsubscribe(this.objects.get(subscription)), () => ({}));
    }

    publish(id, { topic, args, kwargs, options }) {
        const published = this.session.publish(topic, args, kwargs, options);
        if (published) {
            answer(id, published, (publication) => ({ publication: publication.id }));
        } else {
            say({ id, ok: { publication: null } });
        }
    }

    release(id, { invocation, args }) {
        this.held.get(invocation).resolve(new autobahn.Result(args, {}));
        this.held.delete(invocation);
        say({ id, ok: {} });
    }

    invoked(behave, args, kwargs, details) {
        switch (behave.do) {
        case 'echo':
            return new autobahn.Result(args, kwargs);
        case 'constant':
            return behave.value;
        case 'describe':
            return {
                procedure: details.procedure,
                caller: details.caller || null,
                caller_authid: details.caller_authid || null,
                caller_authrole: details.caller_authrole || null,
                progress: Boolean(details.progress),
            };
        case 'raise':
            throw new autobahn.Error(behave.uri, behave.args, behave.kwargs);
        case 'progress':
            for (let number = 0; details.progress && number < behave.count; number += 1) {
                details.progress([number], { number });
            }
            return 'done';
        case 'hold': {
            this.invocations += 1;
            const deferred = when.defer();
            this.held.set(this.invocations, deferred);
            say({
                session: this.name, event: 'invoked', invocation: this.invocations, args, kwargs,
            });
            return deferred.promise;
        }
        default:
            throw new Error(`no such behaviour: ${behave.do}`);
        }
    }
}

// autobahn-js hands a single positional result over bare, and no result as null.
function resultOf(value) {
    if (value instanceof autobahn.Result) {
        return { args: value.args, kwargs: value.kwargs };
    }
    return { args: value === null || value === undefined ? [] : [value], kwargs: {} };
}

function transport(place) {
    if (place.kind === 'ws') {
        const serializers = [new SERIALIZERS[place.serializer]()];
        perMessageDeflate = Boolean(place.deflate);
        return new websocket.Factory({ url: place.url, serializers }).create();
    }
    if (place.kind === 'lp') {
        return new longpoll.Factory({ url: place.url }).create();
    }
    const where = place.over === 'unix' ? { path: place.path } : { host: place.host, port: place.port };
    return new rawsocket.Factory(where).create();
}

const sessions = new Map();

readline.createInterface({ input: process.stdin }).on('line', (line) => {
    const command = JSON.parse(line, fromSpeech);
    try {
        if (command.do === 'open') {
            sessions.set(command.session, new Session(command.session, command.place));
        }
        sessions.get(command.session)[command.do](command.id, command);
    } catch (error) {
        fail(command.id, error);
    }
}).on('close', () => process.exit(0));
