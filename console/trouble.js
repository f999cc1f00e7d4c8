// What is wrong, and what was refused.

import { h } from "./dom.js";
import { restOf } from "./list.js";
import { call, node, ofBroker, read } from "./node.js";
import { badge, bytes, count, facts, link, meter, section, table } from "./parts.js";

/** Counters that tell of something that a client wanted and did not get. */
const REFUSAL = /refused|denied|dropped|closed_for|evicted|not_sent|not_recorded|failed|faults|slowed|held_back|unacknowledged|slowness/;

const words = (name) => name.replaceAll("_", " ");

export function troublePage() {
  let seen = null;
  const page = {
    async load() {
      const longest = "queues?page=1&page_size=10&sort=messages_ready&sort_reverse=true";
      const [figures, alarms, queues] = await Promise.all([
        call("crossbar.get_figures"),
        node.broker ? ofBroker("get_amqp_alarms") : [],
        node.broker ? read(longest) : { items: [] },
      ]);
      seen = { figures, alarms, queues: queues.items.filter((queue) => queue.messages_ready > 0) };
      return restOf(queues.total_count);
    },
    view() {
      if (!seen) return null;
      const { figures, alarms, queues } = seen;
      const [, ...reasons] = figures.health.trim().split("\n");
      const refusals = Object.entries(figures.counters).filter(([name, value]) => value > 0 && REFUSAL.test(name));
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
        section("Memory held for peers", meter("Memory held for peers", sum, figures.held_bytes_max),
          facts(held.filter(([, value]) => value > 0).map(([kind, value]) => [words(kind), bytes(value)]))),
        node.broker && section("Longest queues", table("Longest queues", [
          { title: "queue", cell: (row) => link(row.name, "queues", row.vhost, row.name) },
          { title: "vhost", cell: (row) => row.vhost },
          { title: "ready", number: true, cell: (row) => count(row.messages_ready) },
          { title: "consumers", number: true, cell: (row) => count(row.consumers) },
        ], queues, { key: (row) => `${row.vhost}\n${row.name}`, empty: "No message waits." })),
        counters("Refused and dropped", refusals, "Nothing was refused or dropped."),
        counters("Ends of sessions", ends, "No session has ended."),
      ];
    },
  };
  return page;
}
