// The node: its workers and listeners, and what a reload would change. The cluster: realms on several nodes, replicated vhosts.

import { h } from "./dom.js";
import { call, node, ofBroker, ofRouter } from "./node.js";
import { action, ask, attempt, badge, bytes, count, duration, facts, json, section, since, table } from "./parts.js";

export function machinePage([worker]) {
  if (worker) return workerPage(worker);
  let seen = null;
  let plan = null;
  const page = {
    async load() {
      const list = async (ids, one) => Promise.all((await ofRouter(ids)).map((id) => ofRouter(one, [id])));
      const [status, ids, transports, joints] = await Promise.all([
        call("crossbar.get_status"), call("crossbar.get_workers"),
        node.router ? list("get_router_transports", "get_router_transport") : [],
        node.router ? list("get_router_joints", "get_router_joint") : [],
      ]);
      seen = { status, transports, joints, workers: await Promise.all(ids.map((id) => call("crossbar.get_worker", [id]))) };
    },
    view() {
      if (!seen) return null;
      const { status, workers, transports, joints } = seen;
      return [
        facts([["id", status.id], ["version", status.version], ["process", status.pid], ["up for", duration(status.uptime)],
          ["directory", h("code", null, status.directory)], ["public key", status.public_key && h("code", { class: "long" }, status.public_key)]]),
        section("Workers", table("Workers", [
          { title: "worker", cell: (row) => (row.type === "router" ? row.id : h("a", { href: `#/node/${encodeURIComponent(row.id)}` }, row.id)) },
          { title: "type", cell: (row) => row.type },
          { title: "status", cell: (row) => badge(row.status, row.status === "started" ? "right" : "") },
          { title: "process", number: true, cell: (row) => row.pid },
          { title: "up for", cell: (row) => (row.uptime == null ? "–" : duration(row.uptime)) },
          { title: "restarts", number: true, cell: (row) => count(row.restarts) },
          { title: "components", cell: (row) => (row.components || []).map((each) => h("div", { key: each.id }, each.id, " ",
            badge(each.state, each.state === "started" ? "right" : "wrong"), " ", each.reason)) },
        ], workers, { key: (row) => row.id })),
        section("Transports", table("Transports", [
          { title: "transport", cell: (row) => row.id },
          { title: "type", cell: (row) => row.type },
          { title: "URLs", cell: (row) => row.urls.map((url) => h("div", { key: url }, h("code", null, url))) },
          { title: "connections", number: true, cell: (row) => count(row.connections) },
          { title: "since", cell: (row) => since(row.started) },
        ], transports, { key: (row) => row.id })),
        joints.length > 0 && section("Joints", table("Joints", [
          { title: "joint", cell: (row) => row.id }, { title: "type", cell: (row) => row.type },
          { title: "realm", cell: (row) => row.realm }, { title: "vhost", cell: (row) => row.vhost },
          { title: "state", cell: (row) => (row.connected ? badge("connected", "right") : [badge("not connected", "wrong"), " ", row.trouble]) },
          ...["passed", "refused", "dropped"].map((title) => ({ title, number: true, cell: (row) => count(row[title]) })),
        ], joints, { key: (row) => row.id })),
        node.mayChange && section("Configuration", h("div", { class: "buttons" }, action("What would a reload change?", compare, "quiet")),
          plan && planned()),
      ];
    },
  };
  const compare = async () => {
    plan = (await attempt(() => call("crossbar.reload", [true]))) || null;
    page.app.redraw();
  };
  const planned = () => [
    table("Changes", [
      { title: "key", cell: (row) => h("code", null, row.key) }, { title: "change", cell: (row) => row.change },
      { title: "effect", cell: (row) => row.effect }, { title: "from", cell: (row) => json(row.from) }, { title: "to", cell: (row) => json(row.to) },
    ], plan.changes, { key: (row) => row.key, empty: "The file says what is in force." }),
    plan.changes.length > 0 && plan.needs_restart.length === 0 && action("Reload", reload),
    plan.needs_restart.length > 0 && h("p", { class: "wrong" }, `These need a restart of the node: ${plan.needs_restart.join(", ")}`),
  ];
  const reload = async () => {
    const answer = await ask("Reload the configuration?", `${count(plan.changes.length)} changes are put in force.`, "Reload");
    if (!answer) return;
    await attempt(() => call("crossbar.reload"), "Reloaded");
    plan = null;
    page.app.reload();
  };
  return page;
}

function workerPage(id) {
  let worker = null;
  let lines = null;
  const page = {
    title: `Worker ${id}`,
    async load() {
      worker = await call("crossbar.get_worker", [id]);
      if (node.mayChange) lines = await call("crossbar.get_worker_log", [id, 200]);
    },
    actions: () => action("Restart", restart),
    view: () => worker && [
      facts([["type", worker.type], ["status", worker.status], ["process", worker.pid], ["restarts", count(worker.restarts)], ["last end", worker.last_end]]),
      lines && section("Last lines", h("ol", { class: "log", tabindex: "0", "aria-label": "Last lines" },
        lines.map((line, index) => h("li", { key: index }, badge(line.level, line.level === "error" ? "wrong" : ""), h("pre", null, line.text))))),
    ],
  };
  const restart = async () => {
    const answer = await ask(`Restart ${id}?`, "Its components leave, and start again.", "Restart");
    if (answer) await attempt(() => call("crossbar.restart_worker", [id]), `${id} has restarted`);
    page.app.reload();
  };
  return page;
}

/** A realm on several nodes: the others, and the resets of pairs by cause. */
function fabric(realm) {
  const resets = Object.entries(realm.resets).filter(([, times]) => times > 0);
  return section(`Realm ${realm.realm}`,
    realm.troubles.length > 0 && h("ul", { class: "reasons" }, realm.troubles.map((text) => h("li", { key: text }, text))),
    facts([["this node", badge(realm.state, realm.state === "attached" ? "right" : "wrong")], ["NATS server", realm.server],
      ["open calls", count(realm.calls)], ["registrations of others", count(realm.registrations)],
      ["waiting for NATS", bytes(realm.queued_bytes)], ["events dropped", count(realm.dropped)],
      ["mean confirmation", realm.barriers > 0 && `${count(realm.barrier_us / realm.barriers / 1000)} ms`],
      ["pair resets", resets.length === 0 ? "none" : resets.map(([cause, times]) => badge(`${cause} ${count(times)}`))]]),
    table(`Nodes of ${realm.realm}`, [
      { title: "node", cell: (row) => row.node, class: "long" },
      { title: "state", cell: (row) => badge(row.state, row.state === "active" ? "right" : "wrong") },
      { title: "NATS server", cell: (row) => row.server, class: "long" },
      { title: "calls", cell: (row) => (row.paired ? "yes" : "no") },
      { title: "last heard", number: true, cell: (row) => `${count(row.silent_ms)} ms ago` },
    ], realm.nodes.map((row, index) => ({ ...row, index })), { key: (row) => row.index, empty: "No other node has been heard." }));
}

export function clusterPage() {
  let vhosts = null;
  let realms = null;
  const page = {
    async load() {
      [realms, vhosts] = await Promise.all([node.router ? ofRouter("get_fabric_realms") : [], node.broker ? ofBroker("get_amqp_replicated_vhosts") : []]);
    },
    view: () => realms && [
      realms.length === 0 && section("Realms", h("p", { class: "empty" }, "No realm of this router is on several nodes.")),
      realms.map(fabric),
      section("Replicated vhosts", table("Replicated vhosts", [
        { title: "vhost", cell: (row) => row.name },
        { title: "this node", cell: (row) => badge(row.role, row.role === "owner" ? "right" : "") },
        { title: "owner", cell: (row) => row.owner },
        { title: "term", number: true, cell: (row) => count(row.epoch) },
        { title: "entries", number: true, cell: (row) => count(row.entries) },
        { title: "lag", number: true, cell: (row) => count(row.lag_entries) },
        { title: "unconfirmed", number: true, cell: (row) => bytes(row.waiting_bytes) },
        { title: "alarm", cell: (row) => row.alarm },
        { title: "", cell: (row) => row.role === "owner" && action("Move", () => move(row.name), "quiet") },
      ], vhosts, { key: (row) => row.name, empty: "No vhost is replicated." })),
    ],
  };
  const move = async (name) => {
    const answer = await ask(`Move ${name}?`, "Another node becomes its owner; its clients reconnect.", "Move", [{ name: "to", label: "To the node", hint: "Empty: any" }]);
    if (!answer) return;
    await attempt(() => ofBroker("move_amqp_vhost", answer.to ? [name, answer.to] : [name]), ({ to, ms }) => `${name} is owned by ${to}, after ${ms} ms`);
    page.app.reload();
  };
  return page;
}
