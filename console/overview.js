// How the node is, what passes through it, and how to connect to it.

import { h } from "./dom.js";
import { call, node, ofRouter, read } from "./node.js";
import { badge, bytes, count, duration, facts, meter, rate, section, snippet, table, tile } from "./parts.js";

/** Readings that are kept for charts: two minutes. */
const KEPT = 120;

/** What a chart shows: its name, and a counter of a reading. */
const SERIES = {
  calls: ({ figures }) => figures.received.CALL,
  publications: ({ figures }) => figures.received.PUBLISH,
  events: ({ figures }) => figures.sent.EVENT,
  received: ({ figures }) => figures.counters.received_bytes,
  sent: ({ figures }) => figures.counters.sent_bytes,
  published: ({ broker }) => broker?.message_stats?.publish ?? 0,
  delivered: ({ broker }) => broker?.message_stats?.deliver_get ?? 0,
};

// They go on when another page is opened and this one again.
const rates = Object.fromEntries(Object.keys(SERIES).map((name) => [name, []]));
let former = null;
let example = "JavaScript";

function keep(reading) {
  const seconds = former ? (reading.figures.at_ms - former.figures.at_ms) / 1000 : 0;
  const isSameNode = former?.figures.started === reading.figures.started;
  if (seconds > 0 && isSameNode) {
    for (const [name, counter] of Object.entries(SERIES)) {
      rates[name].push(Math.max(0, (counter(reading) - counter(former)) / seconds));
      if (rates[name].length > KEPT) rates[name].shift();
    }
  }
  former = reading;
}

// Names of one address. A page at one of them may connect to no other.
const HERE = ["127.0.0.1", "localhost"];
const hosts = HERE.includes(location.hostname) ? /\/\/(0\.0\.0\.0|\[::\]|127\.0\.0\.1|localhost)(?=[:/]|$)/ : /\/\/(0\.0\.0\.0|\[::\])(?=[:/]|$)/;

/** A URL as this browser would use it: an address that stands for all, or for this machine, is the host of this page. */
export const reachable = (url) => url.replace(hosts, `//${location.hostname}`);

/** Programs that connect, with the node's own addresses. */
function examples(wamp, amqp, realm) {
  const found = {};
  const web = wamp.find((url) => url.startsWith("ws"));
  if (web) {
    found.JavaScript = `const connection = new autobahn.Connection({url: "${web}", realm: "${realm}"});
connection.onopen = (session) => session.call("com.example.date").then(console.log);
connection.open();`;
    found.Python = `from autobahn.asyncio.component import Component, run

component = Component(transports="${web}", realm="${realm}")

@component.on_join
async def joined(session, details):
    print(await session.call("com.example.date"))

run([component])`;
    found["Command line"] = `crosstie register com.example.date --command date --url ${web} --realm ${realm}
crosstie call com.example.date --url ${web} --realm ${realm}`;
  }
  const broker = amqp[0];
  if (broker) {
    const address = broker.replace(/^amqps?:\/\//, "").replace(/\/$/, "");
    const [host, port] = [address.replace(/:\d+$/, ""), address.match(/:(\d+)$/)?.[1] || "5672"];
    found.pika = `import pika

connection = pika.BlockingConnection(pika.URLParameters("amqp://guest:guest@${address}/%2F"))
channel = connection.channel()
channel.queue_declare("hello")
channel.basic_publish("", "hello", b"it works")`;
    found.Celery = `app = Celery("tasks", broker="amqp://guest:guest@${address}//")`;
    found.Spring = `spring.rabbitmq.host=${host}
spring.rabbitmq.port=${port}
spring.rabbitmq.username=guest
spring.rabbitmq.password=guest`;
  }
  return found;
}

export const overviewPage = () => {
  let reading = null;
  let addresses = null;
  const page = {
    async load() {
      if (!addresses && node.router) {
        const ids = await ofRouter("get_router_transports");
        const transports = await Promise.all(ids.map((id) => ofRouter("get_router_transport", [id])));
        const realms = await ofRouter("get_router_realms");
        const realm = realms.length ? (await ofRouter("get_router_realm", [realms[0]])).name : "realm1";
        addresses = { transports, realm };
      }
      const [status, figures, broker] = await Promise.all([
        call("crossbar.get_status"), call("crossbar.get_figures"),
        node.broker ? read("overview") : null,
      ]);
      reading = { status, figures, broker };
      keep(reading);
    },
    view() {
      if (!reading) return null;
      const { status, figures, broker } = reading;
      const last = (name) => rates[name].at(-1);
      const chart = (title, name, note, show = rate) => tile(title, show(last(name)), { note, values: rates[name] });
      const [word, ...wrong] = figures.health.trim().split("\n");
      const held = Object.values(figures.held_bytes).reduce((sum, value) => sum + value, 0);
      const perSecond = (value) => (value == null ? "–" : `${bytes(value)}/s`);
      const totals = broker?.queue_totals || {};
      return [
        h("div", { class: "status", key: "status" },
          badge(word, figures.ready && wrong.length === 0 ? "right" : "wrong"),
          status.draining && badge("draining", "wrong"),
          h("span", null, `Crosstie ${status.version}, up for ${duration(status.uptime)}`)),
        wrong.length > 0 && h("ul", { class: "reasons", key: "reasons" }, wrong.map((line) => h("li", { key: line }, line))),
        section("WAMP", h("div", { class: "tiles" },
          chart("Calls", "calls", `${count(figures.calls)} open`),
          chart("Publications", "publications"),
          chart("Events", "events", `${count(figures.counters.events_dropped_full)} dropped at full queues`),
          tile("Sessions", count(figures.sessions), { note: `${count(figures.connections)} connections` }),
          tile("Registrations", count(figures.registrations)),
          tile("Subscriptions", count(figures.subscriptions)))),
        broker && section("AMQP", h("div", { class: "tiles" },
          chart("Published", "published"),
          chart("Delivered", "delivered"),
          tile("Messages ready", count(totals.messages_ready ?? 0), { note: `${count(totals.messages_unacknowledged ?? 0)} unacknowledged` }),
          tile("Queues", count(broker.object_totals?.queues), { note: `${count(broker.object_totals?.consumers)} consumers` }),
          tile("Connections", count(broker.object_totals?.connections), { note: `${count(broker.object_totals?.channels)} channels` }))),
        section("Traffic and memory", h("div", { class: "tiles" },
          chart("Received", "received", null, perSecond),
          chart("Sent", "sent", null, perSecond),
          h("div", { class: "tile", key: "held" }, h("div", { class: "name" }, "Memory held for peers"),
            meter("Memory held for peers", held, figures.held_bytes_max)))),
        addresses && connect(page),
      ];
    },
  };
  const connect = () => {
    const { transports, realm } = addresses;
    const rows = transports.flatMap(({ id, type, urls, pages, connections }) =>
      [...urls, ...(urls.some((url) => url.startsWith("http")) ? [] : pages || [])].map((url) => ({ id, type, url: reachable(url), connections })));
    const urls = rows.map((row) => row.url);
    const all = examples(urls.filter((url) => /^(ws|rs)/.test(url)), urls.filter((url) => url.startsWith("amqp")), realm);
    const names = Object.keys(all);
    if (!names.includes(example)) [example] = names;
    const choose = (name) => () => {
      example = name;
      page.app.redraw();
    };
    const columns = [
      { title: "URL", cell: (row) => h("code", null, row.url) },
      { title: "transport", cell: (row) => row.id },
      { title: "type", cell: (row) => row.type },
      { title: "connections", number: true, cell: (row) => count(row.connections) },
    ];
    return section("Connect",
      facts([["realm", realm]]),
      table("Addresses", columns, rows, { key: (row) => `${row.id} ${row.url}` }),
      names.length > 0 && h("div", { class: "examples" },
        h("div", { class: "tabs", role: "group", "aria-label": "Client" }, names.map((name) =>
          h("button", { key: name, type: "button", "aria-pressed": String(name === example), onclick: choose(name) }, name))),
        snippet(all[example])));
  };
  return page;
};
