// AMQP exchanges: where messages enter.

import { h } from "./dom.js";
import { List } from "./list.js";
import { change, read, segment } from "./node.js";
import { action, ask, attempt, badge, count, facts, form, json, link, parsed, rate, section, table, tile } from "./parts.js";
import { pageOf, publishTo } from "./queues.js";

const per = (row, name) => row.message_stats?.[`${name}_details`]?.rate;
const shown = (name) => name || "(default)";

export function exchangesPage([vhost, name]) {
  if (name !== undefined) return exchangePage(vhost, name);
  const list = new List({
    title: "Exchanges",
    filterLabel: "A part of the name",
    sort: "name",
    key: (row) => `${row.vhost}\n${row.name}`,
    read: pageOf("exchanges"),
    columns: [
      { title: "exchange", sort: "name", cell: (row) => link(shown(row.name), "exchanges", row.vhost, row.name || "amq.default"), class: "long" },
      { title: "vhost", sort: "vhost", cell: (row) => row.vhost },
      { title: "type", sort: "type", cell: (row) => [row.type, " ", features(row)] },
      { title: "in", sort: "message_stats.publish_in_details.rate", number: true, cell: (row) => rate(per(row, "publish_in")) },
      { title: "out", sort: "message_stats.publish_out_details.rate", number: true, cell: (row) => rate(per(row, "publish_out")) },
    ],
  });
  const page = { list, load: () => list.load(), view: () => list.view(), actions: () => action("New exchange", () => declare(page.app)) };
  return page;
}

const features = (row) => [row.durable && badge("durable"), row.internal && badge("internal"), row.auto_delete && badge("auto-delete"),
  row.policy && badge(row.policy, "policy")];

async function declare(app) {
  const answer = await ask("New exchange", "", "Declare", [
    { name: "vhost", label: "Vhost", value: "/", required: true },
    { name: "name", label: "Name", required: true },
    { name: "type", label: "Type", value: "topic", required: true, hint: "direct, fanout, topic, headers, x-…" },
    { name: "durable", label: "Durable", kind: "check", value: true },
    { name: "arguments", label: "Arguments, JSON" },
  ]);
  if (!answer) return;
  await attempt(() => change("PUT", `exchanges/${segment(answer.vhost)}/${segment(answer.name)}`,
    { type: answer.type, durable: answer.durable, arguments: parsed(answer.arguments, {}, "Arguments") }), `Exchange ${answer.name} is declared`);
  app.reload();
}

function exchangePage(vhost, name) {
  const path = `exchanges/${segment(vhost)}/${segment(name)}`;
  const isDefault = name === "amq.default";
  let exchange;
  let bindings = [];
  const page = {
    title: isDefault ? "(default)" : name,
    async load() {
      try {
        [exchange, bindings] = await Promise.all([read(path), isDefault ? [] : read(`${path}/bindings/source`)]);
      } catch (error) {
        if (error.uri !== "404") throw error;
        exchange = null;
      }
    },
    actions: () => exchange && !isDefault && !name.startsWith("amq.") && action("Delete", remove, "danger"),
    view() {
      if (exchange === undefined) return null;
      if (exchange === null) return h("p", { class: "empty" }, "There is no such exchange any more.");
      return [
        h("div", { class: "tiles", key: "tiles" },
          tile("In", rate(per(exchange, "publish_in")), { note: `${count(exchange.message_stats?.publish_in ?? 0)} so far` }),
          tile("Out", rate(per(exchange, "publish_out")), { note: `${count(exchange.message_stats?.publish_out ?? 0)} so far` })),
        facts([["vhost", vhost], ["type", exchange.type], ["features", features(exchange).filter(Boolean)], ["arguments", json(exchange.arguments)]]),
        isDefault ? h("p", { key: "default" }, "Every queue is bound to it by its own name.")
          : section("Bindings", table("Bindings", [
            { title: "to", cell: (row) => link(row.destination, row.destination_type === "queue" ? "queues" : "exchanges", vhost, row.destination) },
            { title: "type", cell: (row) => row.destination_type },
            { title: "routing key", cell: (row) => h("code", null, row.routing_key) },
            { title: "arguments", cell: (row) => json(row.arguments) },
          ], bindings, { key: (row) => `${row.destination_type} ${row.destination} ${row.properties_key}`, empty: "Nothing is bound: what is published here is gone." })),
        section("Publish", form("publish", [
          { name: "routing_key", label: "Routing key" },
          { name: "payload", label: "Body", kind: "area", wide: true },
          { name: "properties", label: "Properties, JSON", hint: "For instance {\"headers\": {\"kind\": \"a\"}}", wide: true },
        ], "Publish", ({ routing_key, payload, properties }) => run(() => publishTo(vhost, name, routing_key, payload, properties), null), { isChange: true })),
      ];
    },
  };
  const run = async (act, told) => {
    await attempt(act, told);
    page.app.reload();
  };
  const remove = async () => {
    const answer = await ask(`Delete ${name}?`, "Its bindings are removed for good.", "Delete");
    if (answer) run(() => change("DELETE", path), `${name} is deleted`);
  };
  return page;
}
