// AMQP queues: their depth and rates, and what can be done with one.

import { h } from "./dom.js";
import { List } from "./list.js";
import { change, ofBroker, read, segment } from "./node.js";
import { action, ask, attempt, badge, bytes, count, facts, form, json, link, notice, parsed, rate, section, table, tile } from "./parts.js";

/** A page of a list of the management API. */
export const pageOf = (path) => async ({ filter, sort, isDown, first, rows }) => {
  const query = new URLSearchParams({ page: first / rows + 1, page_size: rows, name: filter, use_regex: false });
  if (sort) {
    query.set("sort", sort);
    query.set("sort_reverse", isDown);
  }
  try {
    const { items, filtered_count: total } = await read(`${path}?${query}`);
    return { items, total };
  } catch (error) {
    // There are fewer pages than there were.
    if (error.uri === "400" && first > 0) return { items: [], total: 0 };
    throw error;
  }
};

const per = (row, name) => row.message_stats?.[`${name}_details`]?.rate;

const features = (row) => [
  row.durable && badge("durable"), row.exclusive && badge("exclusive"), row.auto_delete && badge("auto-delete"),
  row.policy && badge(row.policy, "policy"),
];

export function queuesPage([vhost, name]) {
  if (name !== undefined) return queuePage(vhost, name);
  const list = new List({
    title: "Queues",
    filterLabel: "A part of the name",
    sort: "name",
    key: (row) => `${row.vhost}\n${row.name}`,
    empty: "No queue is declared.",
    read: pageOf("queues"),
    columns: [
      { title: "queue", sort: "name", cell: (row) => link(row.name, "queues", row.vhost, row.name), class: "long" },
      { title: "vhost", sort: "vhost", cell: (row) => row.vhost },
      { title: "type", sort: "type", cell: (row) => [row.type, " ", features(row)] },
      { title: "ready", sort: "messages_ready", number: true, cell: (row) => count(row.messages_ready) },
      { title: "unacked", sort: "messages_unacknowledged", number: true, cell: (row) => count(row.messages_unacknowledged) },
      { title: "in", sort: "message_stats.publish_details.rate", number: true, cell: (row) => rate(per(row, "publish")) },
      { title: "out", sort: "message_stats.deliver_get_details.rate", number: true, cell: (row) => rate(per(row, "deliver_get")) },
      { title: "consumers", sort: "consumers", number: true, cell: (row) => count(row.consumers) },
    ],
  });
  const page = { list, load: () => list.load(), view: () => list.view(), actions: () => action("New queue", () => declare(page.app)) };
  return page;
}

async function declare(app) {
  const answer = await ask("New queue", "", "Declare", [
    { name: "vhost", label: "Vhost", value: "/", required: true },
    { name: "name", label: "Name", required: true },
    { name: "type", label: "Type", kind: "choice", options: ["classic", "quorum", "stream"], value: "classic" },
    { name: "durable", label: "Durable", kind: "check", value: true },
    { name: "arguments", label: "Further arguments, JSON", hint: "For instance {\"x-max-length\": 1000}" },
  ]);
  if (!answer) return;
  await attempt(() => {
    const given = { "x-queue-type": answer.type, ...parsed(answer.arguments, {}, "Arguments") };
    return change("PUT", `queues/${segment(answer.vhost)}/${segment(answer.name)}`, { durable: answer.durable, arguments: given });
  }, `Queue ${answer.name} is declared`);
  app.reload();
}

function queuePage(vhost, name) {
  const path = `queues/${segment(vhost)}/${segment(name)}`;
  const depth = [];
  let queue;
  let bindings = [];
  let messages = null;
  /** The move that goes on: its target, the messages so far and at most, and whether it is to stop. */
  let moving = null;
  const page = {
    title: name,
    async load() {
      try {
        [queue, bindings] = await Promise.all([read(path), read(`${path}/bindings`)]);
        depth.push(queue.messages);
        if (depth.length > 120) depth.shift();
      } catch (error) {
        if (error.uri !== "404") throw error;
        queue = null;
      }
    },
    actions: () => queue && [
      action("Move messages", move), action("Purge", purge), action("Delete", remove, "danger"),
    ],
    left() {
      if (moving) moving.isStopping = true;
    },
    view() {
      if (queue === undefined) return null;
      if (queue === null) return h("p", { class: "empty" }, "There is no such queue any more.");
      const consumers = queue.consumer_details || [];
      return [
        moving && section("Move", h("div", { class: "meter" },
          h("progress", { max: String(moving.most), value: moving.done, "aria-label": `Messages moved to ${moving.to}` }),
          h("span", null, `${count(moving.done)} of ${count(moving.most)} to ${moving.to}. Leaving this page stops it.`)),
        h("p", null, h("button", { type: "button", class: "quiet", disabled: moving.isStopping, onclick: stop }, "Stop"))),
        h("div", { class: "tiles", key: "tiles" },
          tile("Messages", count(queue.messages), { note: `${count(queue.messages_ready)} ready, ${count(queue.messages_unacknowledged)} unacknowledged`, values: depth }),
          tile("In", rate(per(queue, "publish")), { note: `${count(queue.message_stats?.publish ?? 0)} so far` }),
          tile("Out", rate(per(queue, "deliver_get")), { note: `${count(queue.message_stats?.deliver_get ?? 0)} so far` }),
          tile("Bytes ready", bytes(queue.message_bytes))),
        facts([["vhost", vhost], ["type", queue.type], ["features", features(queue).filter(Boolean)], ["state", queue.state],
          ["arguments", json(queue.arguments)], ["policy", queue.policy], ["effective policy", json(queue.effective_policy_definition)]]),
        section("Bindings", table("Bindings", [
          { title: "exchange", cell: (row) => (row.source ? link(row.source, "exchanges", vhost, row.source) : "(default)") },
          { title: "routing key", cell: (row) => h("code", null, row.routing_key) },
          { title: "arguments", cell: (row) => json(row.arguments) },
          { title: "", cell: (row) => row.source && action("Unbind", () => unbind(row), "quiet") },
        ], bindings, { key: (row) => `${row.source} ${row.properties_key}` }),
        form("bind", [
          { name: "source", label: "Exchange", required: true }, { name: "routing_key", label: "Routing key" },
          { name: "arguments", label: "Arguments, JSON" },
        ], "Bind", bind, { kind: "row", isChange: true })),
        section("Consumers", table("Consumers", [
          { title: "tag", cell: (row) => h("code", null, row.consumer_tag) },
          { title: "channel", cell: (row) => row.channel_details?.name },
          { title: "prefetch", number: true, cell: (row) => count(row.prefetch_count) },
          { title: "acknowledges", cell: (row) => (row.ack_required ? "yes" : "no") },
        ], consumers, { key: (row) => `${row.channel_details?.name} ${row.consumer_tag}`, empty: "No consumer." })),
        section("Publish", form("publish", [
          { name: "payload", label: "Body", kind: "area", wide: true },
          { name: "properties", label: "Properties, JSON", hint: "For instance {\"delivery_mode\": 2}", wide: true },
        ], "Publish to this queue", publish, { isChange: true })),
        section("Messages", form("get", [
          { name: "count", label: "How many", kind: "number", value: 10, required: true },
          { name: "ackmode", label: "Then", kind: "choice", options: Object.keys(ACK_MODES), value: "put back" },
        ], "Get", get, { kind: "row", isChange: true }),
        messages && (messages.length === 0 ? h("p", { class: "empty" }, "The queue is empty.") : messages.map(shown))),
      ];
    },
  };
  const shown = (message, index) => h("article", { class: "message", key: index },
    facts([["exchange", message.exchange || "(default)"], ["routing key", message.routing_key], ["redelivered", message.redelivered ? "yes" : null],
      ["left in the queue", count(message.message_count)], ["properties", json(message.properties)],
      ["encoding", message.payload_encoding === "string" ? null : message.payload_encoding]]),
    h("pre", { tabindex: "0" }, h("code", null, message.payload)));
  const run = async (act, told) => {
    await attempt(act, told);
    page.app.reload();
  };
  const stop = () => {
    moving.isStopping = true;
    page.app.redraw();
  };
  const move = async () => {
    if (moving) return;
    const answer = await ask(`Move messages of ${name}?`, "The first ready messages are published to another queue, and removed here.", "Move", [
      { name: "to", label: "To the queue", required: true, hint: `In the vhost ${vhost}` },
      { name: "count", label: "How many at most", kind: "number", value: queue.messages_ready, required: true },
    ]);
    const most = Math.floor(Number(answer?.count));
    if (!answer || !(most > 0) || moving) return;
    moving = { to: answer.to, done: 0, most, isStopping: false };
    await attempt(async () => {
      while (!moving.isStopping && moving.done < most) {
        // The node bounds a call by bytes, too.
        const { moved, left } = await ofBroker("move_amqp_messages", [name, answer.to, vhost, Math.min(MOVED_AT_ONCE, most - moving.done)]);
        moving.done += moved;
        page.app.redraw();
        if (moved === 0 || left === 0) break;
      }
    }, () => `${count(moving.done)} messages are moved to ${answer.to}`);
    moving = null;
    page.app.reload();
  };
  const purge = async () => {
    const answer = await ask(`Purge ${name}?`, `${count(queue.messages_ready)} ready messages are removed for good.`, "Purge");
    if (answer) run(() => change("DELETE", `${path}/contents`), `${name} is purged`);
  };
  const remove = async () => {
    const answer = await ask(`Delete ${name}?`, `Its ${count(queue.messages)} messages and its bindings are removed for good.`, "Delete");
    if (answer) run(() => change("DELETE", path), `${name} is deleted`);
  };
  const unbind = ({ source, properties_key: key }) =>
    run(() => change("DELETE", `bindings/${segment(vhost)}/e/${segment(source)}/q/${segment(name)}/${segment(key)}`), "Unbound");
  const bind = ({ source, routing_key, arguments: given }, element) => run(async () => {
    await change("POST", `bindings/${segment(vhost)}/e/${segment(source)}/q/${segment(name)}`, { routing_key, arguments: parsed(given, {}, "Arguments") });
    element.reset();
  }, "Bound");
  const publish = ({ payload, properties }) => run(() => publishTo(vhost, "", name, payload, properties), null);
  const get = async ({ count: many, ackmode }) => {
    const asked = { count: Number(many), ackmode: ACK_MODES[ackmode], encoding: "auto", truncate: 50000 };
    messages = (await attempt(() => change("POST", `${path}/get`, asked))) || messages;
    page.app.reload();
  };
  return page;
}

/** Messages of one call: a stop comes after these. */
const MOVED_AT_ONCE = 100;

const ACK_MODES = { "put back": "ack_requeue_true", remove: "ack_requeue_false", "dead-letter": "reject_requeue_false" };

/** Publishes a message, and tells whether a queue has it. */
export async function publishTo(vhost, exchange, routing_key, payload, properties) {
  const { routed } = await change("POST", `exchanges/${segment(vhost)}/${segment(exchange || "amq.default")}/publish`,
    { routing_key, payload, payload_encoding: "string", properties: parsed(properties, {}, "Properties") });
  notice(routed ? "Published, and routed to a queue" : "Published, but no queue is bound for it: the message is gone", !routed);
}
