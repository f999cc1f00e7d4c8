// The frame around the pages: login, menu, the page of the address, its repeated reading.

import { h, render } from "./dom.js";
import { METHODS_WITH_SECRET, Repeating, enter, node } from "./node.js";
import { form, notice } from "./parts.js";
import { attemptPage, forgetAttempt } from "./attempt.js";
import { channelsPage, connectionsPage } from "./connections.js";
import { exchangesPage } from "./exchanges.js";
import { livePage } from "./live.js";
import { logPage } from "./log.js";
import { clusterPage, machinePage } from "./machine.js";
import { overviewPage } from "./overview.js";
import { queuesPage } from "./queues.js";
import { proceduresPage, sessionsPage, topicsPage } from "./sessions.js";
import { troublePage } from "./trouble.js";
import { usersPage } from "./users.js";

/** Pages by their address: a title, and a function of the rest of the address. */
const PAGES = {
  overview: ["Overview", overviewPage],
  live: ["Live", livePage],
  sessions: ["Sessions", sessionsPage],
  procedures: ["Procedures", proceduresPage],
  topics: ["Topics", topicsPage],
  try: ["Try it", attemptPage],
  queues: ["Queues", queuesPage],
  exchanges: ["Exchanges", exchangesPage],
  connections: ["Connections", connectionsPage],
  channels: ["Channels", channelsPage],
  users: ["Users and policies", usersPage],
  trouble: ["Trouble", troublePage],
  node: ["Node", machinePage],
  log: ["Log", logPage],
  cluster: ["Cluster", clusterPage],
};

const MENU = [
  ["", ["overview", "live", "trouble", "log", "node", "cluster"]],
  ["WAMP", ["sessions", "procedures", "topics", "try"]],
  ["AMQP", ["queues", "exchanges", "connections", "channels", "users"]],
];

const place = (id) => document.getElementById(id);

/** What a page may ask of the frame. */
const app = {
  /** Shows the page again, as what it knows has changed. */
  redraw: () => draw(),
  /** Has the page read again. */
  reload: () => repeating?.now(),
};

let page = null;
let repeating = null;
let trouble = "";
let isLost = false;

function address() {
  try {
    const path = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
    if (Object.hasOwn(PAGES, path[0])) return path;
  } catch {
    // Its escapes are no UTF-8.
  }
  return ["overview"];
}

function open() {
  repeating?.stop();
  page?.left?.();
  const [name, ...rest] = address();
  const [title, make] = PAGES[name];
  page = make(rest);
  page.app = app;
  if (page.list) page.list.app = app;
  page.title = page.title || title;
  trouble = "";
  const opened = page;
  repeating = new Repeating(async () => {
    let ms;
    try {
      ms = await opened.load();
      if (opened === page) trouble = "";
    } catch (error) {
      if (opened === page) trouble = error.message;
    }
    if (opened === page) draw();
    return ms;
  });
  draw();
  repeating.now();
}

function draw() {
  if (!node.session || !page) return;
  document.title = `${page.title} · ${node.id} · Crosstie`;
  drawFrame();
  const isAmqp = ["queues", "exchanges", "connections", "channels", "users"].includes(address()[0]);
  const content = isAmqp && node.brokers.length === 0
    ? h("p", { class: "empty" }, "No router of this node speaks AMQP.")
    : page.view();
  render(place("main"),
    h("div", { class: "heading", key: "heading" }, h("h1", null, page.title), page.actions?.()),
    trouble && h("p", { class: "wrong", role: "alert", key: "trouble" }, trouble),
    h("div", { key: location.hash }, content));
  page.drawn?.();
}

function drawFrame() {
  const choices = (name, all) => all.length > 1 && h("label", null, `${name} `,
    h("select", { value: node[name], onchange: (event) => { node[name] = event.target.value; open(); } },
      all.map((id) => h("option", { key: id, value: id }, id))));
  render(place("top"),
    h("a", { class: "brand", href: "#/overview" }, "Crosstie"), h("span", { class: "of" }, node.id),
    h("span", { class: "grow" }), choices("router", node.routers), choices("broker", node.brokers),
    isLost ? h("span", { class: "badge wrong" }, "reconnecting") : h("span", { class: "of role" }, node.role),
    !isLost && h("button", { type: "button", class: "quiet", onclick: logOut }, "Log out"));
  const [current] = address();
  const item = (name) => h("li", { key: name }, h("a", { href: `#/${name}`, "aria-current": name === current ? "page" : null }, PAGES[name][0]));
  render(place("menu"), MENU.map(([title, names]) => [
    title && h("h2", { key: title }, title),
    h("ul", { key: `list ${title}` }, names.map(item)),
  ]));
}

function drawLogin(text) {
  repeating?.stop();
  forgetAttempt();
  page = null;
  document.title = "Log in · Crosstie";
  render(place("top"), h("span", { class: "brand" }, "Crosstie"));
  render(place("menu"));
  const fields = [
    { name: "authid", label: "User", required: true, autocomplete: "username" },
    { name: "secret", label: "Password, ticket or token", kind: "password", required: true, autocomplete: "current-password" },
    { name: "method", label: "Method", kind: "choice", options: METHODS_WITH_SECRET },
  ];
  render(place("main"), h("div", { class: "login" }, h("h1", null, "Log in"), text && h("p", { class: "wrong", role: "alert" }, text),
    form("login", fields, "Log in", (login) => begin(login))));
  place("login-authid").focus();
}

function logOut() {
  clearTimeout(timer);
  turn += 1;
  node.session.onend = null;
  node.session.leave("wamp.close.logout");
  node.session = null;
  known = undefined;
  drawLogin("");
}

/** The login of this page, for a node that comes back; no other page has it. */
let known;

/** Counts attempts to join: an earlier one that succeeds late leaves again. */
let turn = 0;

async function begin(login) {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  let session;
  try {
    session = await enter(login, () => mine === turn);
  } catch (error) {
    if (mine !== turn) return undefined;
    if (!error.uri) return retry(login);
    // Without a login, the realm has only told that it wants one.
    const wasIn = node.session !== null;
    node.session = null;
    drawLogin(login ? `${wasIn ? "This login is no longer accepted" : "This login is not accepted"}: ${error.message}` : "");
    return undefined;
  }
  if (mine !== turn) return session.leave();
  known = login;
  session.onend = lost;
  tries = 0;
  isLost = false;
  return open();
}

let tries = 0;
let timer = 0;

/** The connection has ended: the node was stopped, or an operator has ended the session. */
function lost(goodbye) {
  if (goodbye === "wamp.close.killed" || goodbye === "wamp.close.logout") {
    node.session = null;
    known = undefined;
    return drawLogin("The session was ended by an operator.");
  }
  isLost = true;
  repeating?.stop();
  if (page) draw();
  return retry(known);
}

function retry(login) {
  if (!node.session && !page) render(place("main"), h("p", { class: "empty" }, "Connecting…"));
  tries += 1;
  clearTimeout(timer);
  timer = setTimeout(() => begin(login), Math.min(4000, 250 * tries));
}

// Addresses are pages: the link to the content is none of them.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  place("main").focus();
});
window.addEventListener("hashchange", () => {
  if (!node.session) return;
  open();
  place("main").focus();
  window.scrollTo(0, 0);
  // Where the menu is a strip.
  document.querySelector("#menu [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
});
window.addEventListener("unhandledrejection", ({ reason }) => notice(reason?.message || String(reason), true));
begin();
