// What is wrong, which clients read too slowly or send the most, and what was refused.

import { h } from "./dom.js";
import { restOf } from "./list.js";
import { call, node, ofBroker, ofRouter, read } from "./node.js";
import { badge, bytes, count, facts, link, meter, rate, section, table } from "./parts.js";

/** Counters that tell of something that a client wanted and did not get. */
const REFUSAL = /refused|denied|dropped|closed_for|evicted|not_sent|not_recorded|failed|faults|slowed|held_back|unacknowledged|slowness/;

/** The same of AMQP; messages without a queue have a table of their own. */
const AMQP_REFUSAL = /refused|denied|delayed|failed|dropped|expired|cut|evicted|strangers|incomplete/;

const words = (name) => name.replaceAll("_", " ");

/** Rows of each table of clients and queues. */
const MOST = 10;
/** The node warns of a certificate from then on. */
const WARNED_DAYS = 21;
/** Sessions of an answer. */
const PART = 50000;

/** The numbers of all sessions of the router, by id, and the time. */
async function sessionCounters() {
  const found = new Map();
  for (let offset = 0; ; offset += PART) {
    const part = await ofRouter("get_router_session_counters", [null, offset, PART]);
    part.session.forEach((id, index) => found.set(id, {
      id, requests: part.requests[index], busy: part.busy_us[index], invocations: part.invocations[index], calls: part.calls[index], waiting: part.queued_bytes[index],
    }));
    if (part.session.length < PART) return { found, at: performance.now() };
  }
}

/** Rates between two readings; a session that was not there before has none. */
function rates(now, before) {
  const seconds = (now.at - before.at) / 1000;
  return [...now.found.values()].flatMap((row) => {
    const former = before.found.get(row.id);
    if (!former) return [];
    const requests = (row.requests - former.requests) / seconds;
    const invocations = (row.invocations - former.invocations) / seconds;
    // At 2^32 the time begins at 0 again.
    const busy = ((row.busy - former.busy) >>> 0) / 1e4 / seconds;
    return [{ ...row, cpu: busy, requestRate: requests, invocationRate: invocations, sum: requests + invocations }];
  });
}

/** The rows with most of a number, and none without any. */
const most = (rows, name) => rows.filter((row) => row[name] > 0).sort((a, b) => b[name] - a[name]).slice(0, MOST);

const top = (path, sort) => read(`${path}?page=1&page_size=${MOST}&sort=${sort}&sort_reverse=true`);

export function troublePage() {
  let seen = null;
  let before = null;
  let direction = "recv_oct_details.rate";
  const page = {
    async load() {
      const none = { items: [], total_count: 0 };
      const ofAmqp = (path, sort) => (node.broker ? top(path, sort) : none);
      const [figures, alarms, certificates, unroutable, queues, unread, talking, sessions] = await Promise.all([
        call("crossbar.get_figures"), node.broker ? ofBroker("get_amqp_alarms") : [],
        call("crossbar.get_certificates", [0, MOST]), node.broker ? ofBroker("get_amqp_unroutable", [MOST]) : [],
        ofAmqp("queues", "messages_ready"), ofAmqp("connections", "send_pend"), ofAmqp("connections", direction),
        node.router ? sessionCounters() : { found: new Map(), at: performance.now() },
      ]);
      const slow = most([...sessions.found.values()], "waiting");
      const busy = before && most(rates(sessions, before), "sum");
      before = sessions;
      const ids = [...slow, ...(busy || [])].map((row) => row.id);
      const details = new Map((ids.length ? await ofRouter("get_router_sessions_by_id", [ids]) : []).map((row) => [row.session, row]));
      // Those that have ended meanwhile have no details.
      const detailed = (rows) => rows.flatMap((row) => (details.has(row.id) ? [{ ...details.get(row.id), ...row }] : []));
      const connections = unread.items.map((row) => ({ name: row.name, user: row.user, shown: row.user_provided_name || row.name, waiting: row.send_pend }));
      seen = {
        figures, alarms, certificates, unroutable, queues: queues.items.filter((queue) => queue.messages_ready > 0), busy: busy && detailed(busy),
        slow: most([...detailed(slow), ...connections], "waiting"),
        talking: talking.items.filter((row) => row.recv_oct_details?.rate > 0 || row.send_oct_details?.rate > 0),
      };
      return restOf(Math.max(queues.total_count, unread.total_count, sessions.found.size));
    },
    view() {
      if (!seen) return null;
      const { figures, alarms, certificates, unroutable, queues, slow, busy, talking } = seen;
      const [, ...reasons] = figures.health.trim().split("\n");
      const above0 = (counts, what) => Object.entries(counts).filter(([, value]) => value > 0)
        .map(([name, value]) => [what ? `${what}: ${name}` : name, value]);
      const refusals = [
        ...above0(figures.counters).filter(([name]) => REFUSAL.test(name)),
        ...above0(figures.actions_refused, "request refused"),
        ...above0(figures.authentications_refused, "login refused"),
        ...above0(figures.amqp).filter(([name]) => AMQP_REFUSAL.test(name)).map(([name, value]) => [`AMQP: ${name}`, value]),
      ];
      const ends = Object.entries(figures.session_ends).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]);
      const held = Object.entries(figures.held_bytes).sort((a, b) => b[1] - a[1]);
      const sum = held.reduce((total, [, value]) => total + value, 0);
      const counters = (title, rows, empty) => section(title, table(title, [
        { title: title === "Ends of sessions" ? "reason" : "what", cell: ([name]) => words(name) },
        { title: "since the start", number: true, cell: ([, value]) => count(value) },
      ], rows, { key: ([name]) => name, empty }));
      return [
        section("Now", reasons.length + alarms.length === 0 ? h("p", null, badge("ok", "right"), " Nothing is wrong.")
          : h("ul", { class: "reasons" }, reasons.map((reason) => h("li", { key: reason }, reason)),
            alarms.filter(({ text }) => !reasons.some((reason) => reason.includes(text))).map(({ alarm, text }) => h("li", { key: text }, badge(alarm, "wrong"), " ", text)))),
        certificates.length > 0 && section("Certificates", table("Certificates", [
          { title: "listener", cell: (row) => row.transport },
          { title: "worker", cell: (row) => row.worker },
          { title: "names", cell: (row) => row.names.join(", ") || row.kind, class: "long" },
          { title: "file", cell: (row) => h("code", null, row.file), class: "long" },
          { title: "expires", cell: (row) => (row.expires ? row.expires.slice(0, 10) : "–") },
          { title: "days left", number: true, cell: (row) => (row.days_left == null ? "–" : badge(count(row.days_left), row.days_left < WARNED_DAYS || row.refused ? "wrong" : "right")) },
        ], certificates, { key: (row) => `${row.worker}\n${row.transport}\n${row.file}` })),
        section("Memory held for peers", meter("Memory held for peers", sum, figures.held_bytes_max),
          facts(held.filter(([, value]) => value > 0).map(([kind, value]) => [words(kind), bytes(value)]))),
        section("Slow consumers", h("p", null, "Clients with output that they have not read yet."), table("Slow consumers", [
          { title: "client", cell: (row) => (row.id ? session(row) : link(row.shown, "connections", row.name)), class: "long" },
          { title: "protocol", cell: (row) => (row.id ? `WAMP, ${row.realm}` : "AMQP") },
          { title: "user", cell: (row) => (row.id ? row.authid : row.user), class: "long" },
          { title: "waiting", number: true, cell: (row) => bytes(row.waiting) },
        ], slow, { key: (row) => row.id || row.name, empty: "No output waits for a client." })),
        node.router && section("Busiest sessions", busy ? table("Busiest sessions", [
          { title: "session", cell: session },
          { title: "realm", cell: (row) => row.realm },
          { title: "authid", cell: (row) => row.authid, class: "long" },
          { title: "requests", number: true, cell: (row) => rate(row.requestRate) },
          { title: "invocations", number: true, cell: (row) => rate(row.invocationRate) },
          { title: "CPU", number: true, cell: (row) => `${count(row.cpu)} %` },
          { title: "open calls", number: true, cell: (row) => count(row.calls) },
        ], busy, { key: (row) => row.id, empty: "No session sends a request, or is invoked." }) : h("p", { class: "empty" }, "Rates follow with the next reading.")),
        node.broker && section("Busiest connections", table("Busiest connections", [
          { title: "connection", cell: (row) => link(row.user_provided_name || row.name, "connections", row.name), class: "long" },
          { title: "user", cell: (row) => row.user },
          { title: "vhost", cell: (row) => row.vhost },
          ...[["from client", "recv_oct_details"], ["to client", "send_oct_details"]].map(([title, name]) => (
            { title, sort: `${name}.rate`, number: true, cell: (row) => (row[name] ? `${bytes(row[name].rate)}/s` : "–") })),
        ], talking, { key: (row) => row.name, sorted: { by: direction, isDown: true }, onSort: order, empty: "No AMQP client sends or receives." })),
        node.broker && section("Longest queues", table("Longest queues", [
          { title: "queue", cell: (row) => link(row.name, "queues", row.vhost, row.name) },
          { title: "vhost", cell: (row) => row.vhost },
          { title: "ready", number: true, cell: (row) => count(row.messages_ready) },
          { title: "consumers", number: true, cell: (row) => count(row.consumers) },
        ], queues, { key: (row) => `${row.vhost}\n${row.name}`, empty: "No message waits." })),
        node.broker && section("Unroutable messages", h("p", null, "Messages that reached no queue, since the start: ",
          `${count(figures.amqp.messages_returned)} returned to their publishers, ${count(figures.amqp.messages_unroutable - figures.amqp.messages_returned)} dropped.`),
        unroutable.length > 0 && table("Unroutable messages", [
          { title: "exchange", cell: (row) => link(row.exchange || "(default)", "exchanges", row.vhost, row.exchange || "amq.default"), class: "long" },
          { title: "vhost", cell: (row) => row.vhost },
          { title: "messages", number: true, cell: (row) => count(row.messages) },
        ], unroutable, { key: (row) => `${row.vhost}\n${row.exchange}` })),
        counters("Refused and dropped", refusals, "Nothing was refused or dropped."),
        counters("Ends of sessions", ends, "No session has ended."),
      ];
    },
  };
  const session = (row) => link(row.id, "sessions", row.id);
  const order = (by) => {
    direction = by;
    page.app.reload();
  };
  return page;
}
