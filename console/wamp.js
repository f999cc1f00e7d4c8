// A WAMP session over a WebSocket, in JSON.

const HELLO = 1, WELCOME = 2, ABORT = 3, CHALLENGE = 4, AUTHENTICATE = 5, GOODBYE = 6, ERROR = 8, PUBLISH = 16,
  PUBLISHED = 17, SUBSCRIBE = 32, SUBSCRIBED = 33, UNSUBSCRIBE = 34, UNSUBSCRIBED = 35, EVENT = 36, CALL = 48,
  RESULT = 50;

/** An error of the realm: its URI, and the text of its first argument. */
export class WampError extends Error {
  constructor(uri, args, kwargs) {
    super(typeof args?.[0] === "string" ? args[0] : uri);
    Object.assign(this, { uri, args: args || [], kwargs: kwargs || {} });
  }
}

const encoder = new TextEncoder();
const toBase64 = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));

/** Signs a WAMP-CRA challenge, by a key that is derived if the challenge has a salt. */
async function sign(secret, extra) {
  if (!crypto.subtle) throw new Error("WAMP-CRA needs HTTPS, or an address of this machine");
  const import_ = (bytes, name, use) => crypto.subtle.importKey("raw", bytes, name, false, [use]);
  let key = encoder.encode(secret);
  if (extra.salt) {
    const from = await import_(key, "PBKDF2", "deriveBits");
    const how = { name: "PBKDF2", hash: "SHA-256", salt: encoder.encode(extra.salt), iterations: extra.iterations };
    const bits = await crypto.subtle.deriveBits(how, from, 8 * extra.keylen);
    key = encoder.encode(toBase64(bits));
  }
  const own = await import_(key, { name: "HMAC", hash: "SHA-256" }, "sign");
  return toBase64(await crypto.subtle.sign("HMAC", own, encoder.encode(extra.challenge)));
}

/** Joins a realm. `login` has `authmethods`, and `authid` and `secret` where the method wants them. */
export function join(url, realm, login) {
  return new Promise((resolve, reject) => {
    const session = new Session(new WebSocket(url, ["wamp.2.json"]));
    const { socket } = session;
    socket.onopen = () => {
      const roles = {
        caller: { features: { progressive_call_results: true, call_canceling: true } },
        publisher: { features: { publisher_exclusion: true } },
        subscriber: { features: { pattern_based_subscription: true } },
      };
      const { authid, authmethods } = login;
      session.send([HELLO, realm, authid ? { roles, authmethods, authid } : { roles, authmethods }]);
    };
    socket.onmessage = async ({ data }) => {
      const message = JSON.parse(data);
      if (message[0] === CHALLENGE) {
        try {
          const signature = message[1] === "wampcra" ? await sign(login.secret, message[2]) : login.secret;
          session.send([AUTHENTICATE, signature, {}]);
        } catch (error) {
          socket.close();
          reject(error);
        }
      } else if (message[0] === WELCOME) {
        Object.assign(session, { id: message[1], details: message[2], isOpen: true });
        socket.onmessage = (next) => session.handle(JSON.parse(next.data));
        resolve(session);
      } else if (message[0] === ABORT) {
        socket.close();
        reject(new WampError(message[2], [message[1]?.message]));
      }
    };
    socket.onclose = () => {
      reject(new Error("cannot connect"));
      session.end();
    };
  });
}

class Session {
  constructor(socket) {
    Object.assign(this, { socket, last: 0, waiting: new Map(), topics: new Map(), isOpen: false, onend: null });
  }

  send(message) {
    this.socket.send(JSON.stringify(message));
  }

  request(make, onProgress) {
    if (!this.isOpen) return Promise.reject(new Error("not connected"));
    this.last += 1;
    const id = this.last;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, onProgress });
      this.send(make(id));
    });
  }

  /** Resolves with `args` and `kwargs` of the result. */
  call(procedure, args = [], kwargs = {}, options = {}, onProgress = null) {
    const asked = onProgress ? { ...options, receive_progress: true } : options;
    return this.request((id) => [CALL, id, asked, procedure, args, kwargs], onProgress);
  }

  publish(topic, args = [], kwargs = {}, options = {}) {
    return this.request((id) => [PUBLISH, id, { ...options, acknowledge: true }, topic, args, kwargs]);
  }

  async subscribe(topic, match, onEvent) {
    const { id } = await this.request((id) => [SUBSCRIBE, id, { match }, topic]);
    this.topics.set(id, onEvent);
    return id;
  }

  async unsubscribe(subscription) {
    this.topics.delete(subscription);
    await this.request((id) => [UNSUBSCRIBE, id, subscription]);
  }

  leave(reason = "wamp.close.normal") {
    if (!this.isOpen) return;
    this.send([GOODBYE, {}, reason]);
    this.socket.close(1000);
    this.end();
  }

  /** Ends a session whose router does not answer. */
  abandon() {
    this.socket.close();
    this.end();
  }

  handle(message) {
    const [kind, id] = message;
    if (kind === EVENT) {
      this.topics.get(id)?.({ details: message[3], args: message[4] || [], kwargs: message[5] || {} });
    } else if (kind === GOODBYE) {
      this.goodbye = message[2];
      this.socket.close(1000);
    } else if (kind === ERROR) {
      this.take(message[2])?.reject(new WampError(message[4], message[5], message[6]));
    } else if (kind === RESULT) {
      const result = { args: message[3] || [], kwargs: message[4] || {} };
      if (message[2].progress) this.waiting.get(id)?.onProgress?.(result);
      else this.take(id)?.resolve(result);
    } else if (kind === SUBSCRIBED || kind === PUBLISHED) {
      this.take(id)?.resolve({ id: message[2] });
    } else if (kind === UNSUBSCRIBED) {
      this.take(id)?.resolve({});
    }
  }

  take(id) {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    return waiting;
  }

  end() {
    this.isOpen = false;
    for (const { reject } of this.waiting.values()) reject(new Error("the connection has ended"));
    this.waiting.clear();
    const tell = this.onend;
    this.onend = null;
    tell?.(this.goodbye);
  }
}
