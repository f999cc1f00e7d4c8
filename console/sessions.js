// WAMP: sessions, procedures, topics.

import { h } from "./dom.js";
import { List } from "./list.js";
import { ofRouter } from "./node.js";
import { action, ask, attempt, count, facts, link, since } from "./parts.js";

/** A list of the router's. It does not count its rows: one more than is shown tells whether there are others. */
const listed = (procedure) => async ({ filter, first, rows }) => ({ items: await ofRouter(procedure, [null, first, rows + 1, filter]) });

async function kill(id, app) {
  const answer = await ask("End this session?", `The client of session ${id} gets GOODBYE, and may open another session.`, "End it",
    [{ name: "reason", label: "Reason, for the client" }]);
  if (!answer) return;
  await attempt(() => ofRouter("close_router_session", answer.reason ? [id, answer.reason] : [id]), `Session ${id} has ended`);
  app.reload();
}

const listPage = (list) => ({ list, load: () => list.load(), view: () => list.view() });

export function sessionsPage([id]) {
  if (id) return sessionPage(Number(id));
  const page = listPage(new List({
    title: "Sessions",
    filterLabel: "Id, authid, role or address",
    key: (row) => row.session,
    empty: "No client has a session.",
    read: listed("get_router_sessions"),
    columns: [
      { title: "session", cell: (row) => link(row.session, "sessions", row.session) },
      { title: "realm", cell: (row) => row.realm },
      { title: "authid", cell: (row) => row.authid, class: "long" },
      { title: "role", cell: (row) => row.authrole },
      { title: "from", cell: (row) => row.peer },
      { title: "subscriptions", number: true, cell: (row) => count(row.subscriptions) },
      { title: "registrations", number: true, cell: (row) => count(row.registrations) },
      { title: "calls", number: true, cell: (row) => count(row.calls) },
      { title: "since", cell: (row) => since(row.since) },
      { title: "", cell: (row) => action("End", () => kill(row.session, page.app), "quiet") },
    ],
  }));
  return page;
}

function sessionPage(id) {
  let session;
  const page = {
    title: `Session ${id}`,
    async load() {
      const [found] = await ofRouter("get_router_sessions_by_id", [[id]]);
      session = found || null;
    },
    actions: () => session && action("End the session", () => kill(id, page.app)),
    view() {
      if (session === undefined) return null;
      if (session === null) return h("p", { class: "empty" }, "This session has ended.");
      return facts([
        ["realm", session.realm], ["authid", session.authid], ["role", session.authrole], ["method", session.authmethod],
        ["from", session.peer], ["transport", `${session.transport}, ${session.serializer}`],
        ["since", `${since(session.since)} (${session.since})`],
        ["subscriptions", count(session.subscriptions)], ["registrations", count(session.registrations)], ["open calls", count(session.calls)],
      ]);
    },
  };
  return page;
}

const entries = (title, procedure, members, empty, more = []) => listPage(new List({
  title,
  filterLabel: "A part of the URI",
  key: (row) => `${row.realm} ${row.id}`,
  empty,
  read: listed(procedure),
  columns: [
    { title: "URI", cell: (row) => h("code", null, row.uri || "(every URI)"), class: "long" },
    { title: "realm", cell: (row) => row.realm },
    { title: "match", cell: (row) => row.match },
    ...more,
    { title: members, number: true, cell: (row) => count(row[members]) },
    { title: "since", cell: (row) => since(row.since) },
    { title: "", cell: (row) => row.match === "exact" && link("Try", "try", title === "Procedures" ? "call" : "subscribe", row.realm, row.uri) },
  ],
}));

export const proceduresPage = () => entries("Procedures", "get_router_registrations", "callees", "No procedure is registered.",
  [{ title: "invoke", cell: (row) => row.invoke }]);

export const topicsPage = () => entries("Topics", "get_router_subscriptions", "subscribers", "No topic has a subscriber.");
