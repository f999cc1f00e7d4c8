// AMQP connections and their channels.

import { h } from "./dom.js";
import { List } from "./list.js";
import { change, read, segment } from "./node.js";
import { action, ask, attempt, badge, bytes, count, facts, json, link, rate, section, since, table } from "./parts.js";
import { pageOf } from "./queues.js";

const at = (ms) => (ms ? since(new Date(ms).toISOString()) : "–");
const perSecond = (details) => (details ? `${bytes(details.rate)}/s` : "–");
const state = (row) => badge(row.state, ["blocked", "blocking", "flow"].includes(row.state) ? "wrong" : "");

async function close(name, app) {
  const answer = await ask("Close this connection?", `The client of ${name} gets 320 CONNECTION_FORCED.`, "Close");
  if (!answer) return;
  await attempt(() => change("DELETE", `connections/${segment(name)}`), "The connection is closed");
  app.reload();
}

export function connectionsPage([name]) {
  if (name !== undefined) return connectionPage(name);
  const list = new List({
    title: "Connections",
    filterLabel: "A part of the name",
    sort: "name",
    key: (row) => row.name,
    empty: "No client is connected.",
    read: pageOf("connections"),
    columns: [
      { title: "connection", sort: "name", cell: (row) => link(row.user_provided_name || row.name, "connections", row.name), class: "long" },
      { title: "user", sort: "user", cell: (row) => row.user },
      { title: "vhost", sort: "vhost", cell: (row) => row.vhost },
      { title: "state", sort: "state", cell: state },
      { title: "channels", sort: "channels", number: true, cell: (row) => count(row.channels) },
      { title: "from client", sort: "recv_oct_details.rate", number: true, cell: (row) => perSecond(row.recv_oct_details) },
      { title: "to client", sort: "send_oct_details.rate", number: true, cell: (row) => perSecond(row.send_oct_details) },
      { title: "since", sort: "connected_at", cell: (row) => at(row.connected_at) },
    ],
  });
  return { list, load: () => list.load(), view: () => list.view() };
}

const CHANNELS = [
  { title: "channel", sort: "name", cell: (row) => row.name, class: "long" },
  { title: "user", sort: "user", cell: (row) => row.user },
  { title: "state", sort: "state", cell: state },
  { title: "unacked", sort: "messages_unacknowledged", number: true, cell: (row) => count(row.messages_unacknowledged) },
  { title: "unconfirmed", sort: "messages_unconfirmed", number: true, cell: (row) => count(row.messages_unconfirmed) },
  { title: "prefetch", sort: "prefetch_count", number: true, cell: (row) => count(row.prefetch_count) },
  { title: "consumers", sort: "consumer_count", number: true, cell: (row) => count(row.consumer_count) },
  { title: "published", number: true, cell: (row) => rate(row.message_stats?.publish_details?.rate) },
  { title: "delivered", number: true, cell: (row) => rate(row.message_stats?.deliver_get_details?.rate) },
];

function connectionPage(name) {
  let connection;
  let channels = [];
  const page = {
    title: name,
    async load() {
      try {
        [connection, channels] = await Promise.all([read(`connections/${segment(name)}`), read(`connections/${segment(name)}/channels`)]);
      } catch (error) {
        if (error.uri !== "404") throw error;
        connection = null;
      }
    },
    actions: () => connection && action("Close", () => close(name, page.app), "danger"),
    view() {
      if (connection === undefined) return null;
      if (connection === null) return h("p", { class: "empty" }, "This connection has ended.");
      return [
        facts([["user", connection.user], ["vhost", connection.vhost], ["state", state(connection)], ["since", at(connection.connected_at)],
          ["client", json(connection.client_properties)], ["TLS", connection.ssl ? "yes" : "no"], ["heartbeat", connection.timeout ? `${connection.timeout} s` : "none"],
          ["from client", `${bytes(connection.recv_oct)}, ${perSecond(connection.recv_oct_details)}`],
          ["to client", `${bytes(connection.send_oct)}, ${perSecond(connection.send_oct_details)}`]]),
        section("Channels", table("Channels", CHANNELS, channels, { key: (row) => row.name, empty: "No channel is open." })),
      ];
    },
  };
  return page;
}

export function channelsPage() {
  const list = new List({
    title: "Channels", filterLabel: "A part of the name", sort: "name", key: (row) => row.name, empty: "No channel is open.",
    read: pageOf("channels"), columns: CHANNELS,
  });
  return { list, load: () => list.load(), view: () => list.view() };
}
