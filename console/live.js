// What passes through the routers now, second by second, and how long it took. Nothing is kept when the page is left.

import { h } from "./dom.js";
import { call, node, read } from "./node.js";
import { count, facts, rate, section, table, tile } from "./parts.js";

/** Seconds that are kept. */
const KEPT = 60;
/** Rows of calls by realm and role. */
const ROLES = 20;

const messages = (figures, way) => Object.values(figures[way]).reduce((sum, value) => sum + value, 0);

/** Charts: a name, and a counter of a reading. Those of AMQP are absent without a broker. */
const WAMP = {
  Calls: ({ figures }) => figures.received.CALL,
  Publications: ({ figures }) => figures.received.PUBLISH,
  Events: ({ figures }) => figures.sent.EVENT,
  "Messages received": ({ figures }) => messages(figures, "received"),
  "Messages sent": ({ figures }) => messages(figures, "sent"),
};
const stats = (name) => ({ broker }) => broker.message_stats?.[name] ?? 0;
const AMQP = {
  Published: stats("publish"),
  Confirmed: stats("confirm"),
  Delivered: stats("deliver_get"),
  Acknowledged: stats("ack"),
};

/** Histograms: the name of the node, the title, what is measured, and what there is without a value. */
const TIMES = [
  ["call_duration", "Call round trip", "From a CALL to the answer of its callee.", "No call was answered."],
  ["fan_out_duration", "Event fan-out", "From an event for more than 8 connections until all of them were sent theirs.", "No event had so many receivers."],
  ["amqp_confirm_duration", "Publisher confirm", "From a durable message to its confirm.", "No message was confirmed behind a commit."],
];

/** The counts by class between two readings. */
const between = (now, then) => now.map((value, index) => value - (then?.[index] ?? 0));

/** The upper bound of a class of microseconds, in words. Class n has the values below 2^n. */
function bound(n) {
  const us = 2 ** n;
  return us < 1000 ? `${us} µs` : us < 1e6 ? `${count(us / 1000)} ms` : `${count(us / 1e6)} s`;
}

/** The class below whose bound a share of the values is. */
function quantile(classes, share) {
  const all = classes.reduce((sum, value) => sum + value, 0);
  let seen = 0;
  const found = classes.findIndex((value) => (seen += value) >= share * all);
  return all > 0 ? `< ${bound(found)}` : "–";
}

/** A histogram as a table, whose bars are shares of the longest one. */
function histogram([, title, text, empty], { classes, sum }) {
  const all = classes.reduce((total, value) => total + value, 0);
  const first = classes.findIndex((value) => value > 0);
  const last = classes.findLastIndex((value) => value > 0);
  const longest = Math.max(1, ...classes);
  const rows = all > 0 ? classes.slice(first, last + 1).map((value, index) => ({ n: first + index, value })) : [];
  return h("div", { class: "times", key: title }, h("h3", null, title), h("p", { class: "note" }, text),
    all === 0 ? h("p", { class: "empty" }, empty) : [
      facts([["values", count(all)], ["mean", `${count(sum / all / 1000)} ms`], ["median", quantile(classes, 0.5)], ["99 %", quantile(classes, 0.99)]]),
      table(title, [
        { title: "below", number: true, cell: ({ n }) => bound(n) },
        { title: "share", cell: ({ value }) => bar(value / longest) },
        { title: "values", number: true, cell: ({ value }) => count(value) },
      ], rows, { key: ({ n }) => n }),
    ]);
}

const bar = (part) => h("svg", { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
  h("rect", { class: "bar-of", width: String(100 * part), height: "10" }));

const keyOf = (row) => JSON.stringify([row.worker, row.realm, row.role]);

export function livePage() {
  /** The last readings, oldest first. */
  let readings = [];
  let rates = {};
  const keep = (reading) => {
    const former = readings.at(-1);
    if (former && (former.figures.started !== reading.figures.started || former.of !== reading.of)) {
      readings = [];
      rates = {};
    } else if (former) {
      const seconds = Math.max(0.001, (reading.figures.at_ms - former.figures.at_ms) / 1000);
      for (const [name, counter] of Object.entries(reading.broker ? { ...WAMP, ...AMQP } : WAMP)) {
        const values = rates[name] ??= [];
        values.push(Math.max(0, (counter(reading) - counter(former)) / seconds));
        if (values.length > KEPT) values.shift();
      }
    }
    readings.push(reading);
    if (readings.length > KEPT + 1) readings.shift();
  };
  return {
    async load() {
      const [figures, histograms, roles, broker] = await Promise.all([
        call("crossbar.get_figures"), call("crossbar.get_histograms"), call("crossbar.get_histograms", ["call_duration", 0, ROLES]),
        node.broker ? read("overview") : null,
      ]);
      const times = Object.fromEntries(histograms.map((row) => [row.name, row]));
      keep({ figures, times, roles, broker: broker && { message_stats: broker.message_stats }, of: node.broker });
    },
    view() {
      const now = readings.at(-1);
      if (!now) return null;
      const then = readings[0];
      const seconds = (now.figures.at_ms - then.figures.at_ms) / 1000;
      const charts = (names) => h("div", { class: "tiles" }, Object.keys(names).map((name) =>
        tile(name, rate(rates[name]?.at(-1)), { values: rates[name] || [] })));
      const shown = TIMES.filter(([name]) => now.times[name] && (now.broker || !name.startsWith("amqp_")));
      const changed = (name) => {
        const [last, first] = [now.times[name], then.times[name]];
        return { classes: between(last.classes, first?.classes), sum: last.sum - (first?.sum ?? 0) };
      };
      const before = new Map(then.roles.map((row) => [keyOf(row), row]));
      // One that was not among the first ones before has values of unknown age.
      const isKnown = (row) => before.has(keyOf(row)) || then.roles.length < ROLES;
      const roles = now.roles.filter((row) => row.count > 0 && isKnown(row))
        .map((row) => ({ ...row, changed: between(row.classes, before.get(keyOf(row))?.classes) }));
      const answered = ({ changed: classes }) => classes.reduce((sum, value) => sum + value, 0);
      return [
        section("WAMP, a second", charts(WAMP)),
        now.broker && section(`AMQP of ${node.broker}, a second`, charts(AMQP)),
        section(`Times of the last ${count(Math.round(seconds))} s`, h("div", { class: "histograms" }, shown.map((each) => histogram(each, changed(each[0]))))),
        section("Calls by realm and role", table("Calls by realm and role", [
          { title: "realm", cell: (row) => row.realm, class: "long" },
          { title: "role of the caller", cell: (row) => row.role, class: "long" },
          { title: "worker", cell: (row) => row.worker },
          { title: "answered", number: true, cell: (row) => (seconds > 0 ? rate(answered(row) / seconds) : "–") },
          { title: "median", number: true, cell: (row) => quantile(row.changed, 0.5) },
          { title: "99 %", number: true, cell: (row) => quantile(row.changed, 0.99) },
        ], roles, { key: keyOf, empty: "No call has been answered." })),
      ];
    },
  };
}
