// Users, permissions and policies of the broker. Only the administrator reads them.

import { h } from "./dom.js";
import { change, node, readAll, segment } from "./node.js";
import { action, ask, attempt, badge, json, parsed, section, table } from "./parts.js";

const rowsOf = (body) => body.items || body;

/** Maximum rows of an answer. */
const ROWS_MAX = 5000;

export function usersPage() {
  let all = null;
  const page = {
    async load() {
      if (!node.mayChange) return;
      const paths = ["users", "permissions", "policies", "operator-policies", "vhosts"];
      const [users, permissions, policies, operatorPolicies, vhosts] = await Promise.all(paths.map(readAll));
      all = { users: rowsOf(users), permissions: rowsOf(permissions), policies: rowsOf(policies), operatorPolicies: rowsOf(operatorPolicies), vhosts: rowsOf(vhosts) };
    },
    view() {
      if (!node.mayChange) return h("p", { class: "empty" }, "Users and policies are shown to the role administrator.");
      if (!all) return null;
      const cut = Object.values(all).some((rows) => rows.length >= ROWS_MAX);
      return [
        cut && h("p", { class: "status", key: "cut" }, `Each list ends after ${ROWS_MAX} rows. The management API returns all of them.`),
        section("Users", table("Users", [
          { title: "user", cell: (row) => row.name },
          { title: "tags", cell: (row) => [].concat(row.tags).filter(Boolean).map((tag) => badge(tag)) },
          { title: "password", cell: (row) => (row.password_hash ? "set" : "none") },
          { title: "", cell: (row) => action("Delete", () => remove("user", row.name, `users/${segment(row.name)}`), "quiet") },
        ], all.users, { key: (row) => row.name }), action("New user", addUser)),
        section("Permissions", table("Permissions", [
          { title: "user", cell: (row) => row.user },
          { title: "vhost", cell: (row) => row.vhost },
          ...["configure", "write", "read"].map((title) => ({ title, cell: (row) => h("code", null, row[title]) })),
          { title: "", cell: (row) => action("Clear", () => remove("permission of", row.user, `permissions/${segment(row.vhost)}/${segment(row.user)}`), "quiet") },
        ], all.permissions, { key: (row) => `${row.vhost}\n${row.user}` }), action("Set a permission", setPermission)),
        policies("Policies", "policies", all.policies),
        policies("Operator policies", "operator-policies", all.operatorPolicies),
        section("Vhosts", table("Vhosts", [
          { title: "vhost", cell: (row) => row.name },
          { title: "description", cell: (row) => row.description },
          { title: "", cell: (row) => action("Delete", () => remove("vhost", row.name, `vhosts/${segment(row.name)}`), "quiet") },
        ], all.vhosts, { key: (row) => row.name }), action("New vhost", addVhost)),
      ];
    },
  };
  const policies = (title, path, rows) => section(title, table(title, [
    { title: "policy", cell: (row) => row.name },
    { title: "vhost", cell: (row) => row.vhost },
    { title: "pattern", cell: (row) => h("code", null, row.pattern) },
    { title: "applies to", cell: (row) => row["apply-to"] },
    { title: "priority", number: true, cell: (row) => row.priority },
    { title: "definition", cell: (row) => json(row.definition) },
    { title: "", cell: (row) => action("Clear", () => remove("policy", row.name, `${path}/${segment(row.vhost)}/${segment(row.name)}`), "quiet") },
  ], rows, { key: (row) => `${row.vhost}\n${row.name}` }), action(title === "Policies" ? "New policy" : "New operator policy", () => addPolicy(path)));

  const send = async (make, told) => {
    await attempt(make, told);
    page.app.reload();
  };
  const remove = async (what, name, path) => {
    const answer = await ask(`Delete ${what} ${name}?`, what === "vhost" ? "Its queues and messages are removed for good." : "It takes effect at once.", "Delete");
    if (answer) send(() => change("DELETE", path), "Deleted");
  };
  const addUser = async () => {
    const answer = await ask("New user", "A user of the same name is replaced.", "Add", [
      { name: "name", label: "Name", required: true },
      { name: "password", label: "Password", kind: "password", required: true, autocomplete: "new-password" },
      { name: "tags", label: "Tags", hint: "management, policymaker, monitoring, administrator; or none" },
    ]);
    if (answer) send(() => change("PUT", `users/${segment(answer.name)}`, { password: answer.password, tags: answer.tags }), "Added");
  };
  const addVhost = async () => {
    const answer = await ask("New vhost", "", "Add", [{ name: "name", label: "Name", required: true }, { name: "description", label: "Description" }]);
    if (answer) send(() => change("PUT", `vhosts/${segment(answer.name)}`, { description: answer.description }), "Added");
  };
  const setPermission = async () => {
    const answer = await ask("Set a permission", "Each is a regular expression of names.", "Set", [
      { name: "user", label: "User", required: true }, { name: "vhost", label: "Vhost", value: "/", required: true },
      ...["configure", "write", "read"].map((name) => ({ name, label: name, value: ".*" })),
    ]);
    if (!answer) return;
    const { user, vhost, ...permission } = answer;
    send(() => change("PUT", `permissions/${segment(vhost)}/${segment(user)}`, permission), "Set");
  };
  const addPolicy = async (path) => {
    const answer = await ask("New policy", "A policy of the same name is replaced.", "Set", [
      { name: "name", label: "Name", required: true }, { name: "vhost", label: "Vhost", value: "/", required: true },
      { name: "pattern", label: "Pattern of names", value: "^", required: true },
      { name: "apply", label: "Applies to", kind: "choice", options: path === "policies" ? ["all", "queues", "exchanges"] : ["queues"], value: path === "policies" ? "all" : "queues" },
      { name: "priority", label: "Priority", kind: "number", value: 0 },
      { name: "definition", label: "Definition, JSON", kind: "area", value: "{\"max-length\": 10000}", required: true },
    ]);
    if (!answer) return;
    const { name, vhost, pattern, apply, priority, definition } = answer;
    send(() => change("PUT", `${path}/${segment(vhost)}/${segment(name)}`,
      { pattern, "apply-to": apply, priority: Number(priority), definition: parsed(definition, {}, "Definition") }), "Set");
  };
  return page;
}
