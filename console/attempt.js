// Try it: calls, publications and subscriptions of a session of its own, with the rights of the login that is given.

import { h } from "./dom.js";
import { METHODS_WITH_SECRET, node, ofRouter } from "./node.js";
import { attempt, badge, form, link, notice, parsed, section } from "./parts.js";
import { reachable } from "./overview.js";
import { join } from "./wamp.js";

/** Messages that are kept. */
const KEPT = 200;
/** Maximum characters of a message that are shown. */
const TEXT_MAX = 50000;

// A session and what it has received last until the page is closed, or its user logs out of the console.
let session = null;
let where = "";
let log = [];
let subscriptions = new Map();
let received = 0;
let frame = 0;
/** The number of those who have logged out. */
let users = 0;

/** Ends the session, and forgets what it has received: another user may follow. */
export function forgetAttempt() {
  const former = session;
  session = null;
  log = [];
  subscriptions = new Map();
  users += 1;
  former?.leave();
}

export function attemptPage([what, realm, uri]) {
  let urls = null;
  let realms = [];
  const page = {
    async load() {
      if (urls) return;
      const ids = await ofRouter("get_router_transports");
      const transports = await Promise.all(ids.map((id) => ofRouter("get_router_transport", [id])));
      const found = transports.flatMap((transport) => transport.urls).filter((url) => /^wss?:/.test(url)).map(reachable);
      const open = await Promise.all((await ofRouter("get_router_realms")).map((id) => ofRouter("get_router_realm", [id])));
      realms = open.map((each) => each.name);
      urls = found;
    },
    view() {
      if (!urls) return null;
      if (urls.length === 0) return h("p", { class: "empty" }, "No transport of this router has a WebSocket that a browser can open.");
      return [
        session ? h("p", { class: "status", key: "joined" }, badge("joined", "right"), h("span", null, where),
          h("button", { type: "button", class: "quiet", onclick: leave }, "Leave"))
          : section("Join a realm", form("join", [
            { name: "url", label: "URL", kind: "choice", options: urls, value: urls[0] },
            { name: "realm", label: "Realm", kind: "choice", options: realms, value: realm || realms[0] },
            { name: "method", label: "Method", kind: "choice", options: ["anonymous", ...METHODS_WITH_SECRET] },
            { name: "authid", label: "User" },
            { name: "secret", label: "Password, ticket or token", kind: "password" },
          ], "Join", enter, { kind: "row" })),
        session && [
          section("Call", form("call", [
            { name: "procedure", label: "Procedure", value: what === "call" ? uri : "", required: true, wide: true },
            { name: "args", label: "Arguments, a JSON list", hint: "For instance [1, \"two\"]" },
            { name: "kwargs", label: "Keyword arguments, a JSON object" },
            { name: "progress", label: "Receive progressive results", kind: "check" },
          ], "Call", doCall)),
          section("Publish", form("publish", [
            { name: "topic", label: "Topic", required: true, wide: true },
            { name: "args", label: "Arguments, a JSON list" },
            { name: "kwargs", label: "Keyword arguments, a JSON object" },
            { name: "own", label: "Send it to this session, too", kind: "check", value: true },
          ], "Publish", doPublish)),
          section("Subscribe", form("subscribe", [
            { name: "topic", label: "Topic, or a part of it", value: what === "subscribe" ? uri : "", wide: true },
            { name: "match", label: "Match", kind: "choice", options: ["exact", "prefix", "wildcard"], value: "exact" },
          ], "Subscribe", doSubscribe, { kind: "row" }),
          subscriptions.size > 0 && h("ul", { class: "chips" }, [...subscriptions].map(([id, name]) => h("li", { key: id }, h("code", null, name),
            h("button", { type: "button", class: "quiet", onclick: () => cancel(id), "aria-label": `Cancel the subscription of ${name}` }, "×"))))),
        ],
        log.length > 0 && section("Messages", h("button", { type: "button", class: "quiet", onclick: clear }, "Clear"),
          h("ol", { class: "log", tabindex: "0", "aria-label": "Messages" }, log.map((line) => h("li", { key: line.number },
            badge(line.kind, line.kind === "error" ? "wrong" : ""), h("code", null, line.uri), h("pre", null, line.text))))),
        node.brokers.length > 0 && h("p", { key: "amqp" }, "AMQP messages are published and got at an ", link("exchange", "exchanges"), " or a ", link("queue", "queues"), "."),
      ];
    },
  };
  const add = (kind, name, value) => {
    received += 1;
    const text = value === undefined ? "" : JSON.stringify(value, null, 1);
    const shown = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${text.length} characters)` : text;
    log = [{ kind, uri: name, text: shown, number: received }, ...log].slice(0, KEPT);
    // Many messages come between two frames of the screen.
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      page.app.redraw();
    });
  };
  const payload = ({ args, kwargs }) => (Object.keys(kwargs).length ? { args, kwargs } : args);
  const given = ({ args, kwargs }) => [parsed(args, [], "Arguments"), parsed(kwargs, {}, "Keyword arguments")];
  const enter = ({ url, realm: name, method, authid, secret }) => attempt(async () => {
    const user = users;
    const joined = await join(url, name, { authid, secret, authmethods: [method] });
    if (user !== users) {
      joined.leave();
      return;
    }
    session = joined;
    where = `${url}, realm ${name}, as ${joined.details.authid} with role ${joined.details.authrole}`;
    joined.onend = (reason) => {
      if (session !== joined) return;
      forget();
      notice(`The session has ended${reason ? `: ${reason}` : ""}`, true);
    };
    page.app.redraw();
  });
  const forget = () => {
    session = null;
    subscriptions = new Map();
    page.app.redraw();
  };
  const leave = () => {
    session.onend = null;
    session.leave();
    forget();
  };
  const clear = () => {
    log = [];
    page.app.redraw();
  };
  const told = async (name, act) => {
    try {
      await act();
    } catch (error) {
      add("error", name, error.uri ? { error: error.uri, args: error.args, kwargs: error.kwargs } : error.message);
    }
  };
  const doCall = (values) => told(values.procedure, async () => {
    const onProgress = values.progress ? (part) => add("progress", values.procedure, payload(part)) : null;
    add("result", values.procedure, payload(await session.call(values.procedure, ...given(values), {}, onProgress)));
  });
  const doPublish = (values) => told(values.topic, async () => {
    await session.publish(values.topic, ...given(values), { exclude_me: !values.own });
    add("published", values.topic);
  });
  const doSubscribe = ({ topic, match }) => told(topic, async () => {
    const id = await session.subscribe(topic, match, (event) => add("event", event.details.topic || topic, payload(event)));
    subscriptions.set(id, match === "exact" ? topic : `${topic} (${match})`);
    page.app.redraw();
  });
  const cancel = (id) => told(subscriptions.get(id), async () => {
    await session.unsubscribe(id);
    subscriptions.delete(id);
    page.app.redraw();
  });
  return page;
}
