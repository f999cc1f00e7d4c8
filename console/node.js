// The node as the console knows it: its session, its workers, and readings that are repeated while the page is looked at.

import { WampError, join } from "./wamp.js";

/** What every page reads. */
export const node = {
  session: null,
  role: "",
  id: "",
  /** Router workers, and those of them that speak AMQP. */
  routers: [],
  brokers: [],
  /** The chosen ones. */
  router: "",
  broker: "",
  get mayChange() {
    return this.role === "administrator";
  },
};

const METHODS = ["cookie", "tls", "anonymous"];
/** A router takes the first method that it has, so that a login names its own. */
export const METHODS_WITH_SECRET = ["ticket", "wampcra", "jwt"];

/** Joins the management realm: with a login, or by what the browser has already. It leaves again if that is not wanted any more. */
export async function enter(login, isWanted) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const authmethods = login ? ["cookie", login.method] : METHODS;
  const session = await join(`${scheme}://${location.host}/ws`, "crossbar", { ...login, authmethods });
  if (!isWanted()) return session;
  node.session = session;
  node.role = session.details.authrole;
  try {
    await learn();
  } catch (error) {
    session.leave();
    throw error;
  }
  return session;
}

async function learn() {
  const [status, workers] = await Promise.all([call("crossbar.get_status"), call("crossbar.get_workers")]);
  node.id = status.title || status.id;
  const all = await Promise.all(workers.map((id) => call("crossbar.get_worker", [id])));
  node.routers = all.filter((worker) => worker.type === "router").map((worker) => worker.id);
  const speaks = await Promise.all(node.routers.map((id) => ofWorker(id, "get_amqp_vhosts").then(() => true, () => false)));
  node.brokers = node.routers.filter((_, index) => speaks[index]);
  if (!node.routers.includes(node.router)) node.router = node.routers[0] || "";
  if (!node.brokers.includes(node.broker)) node.broker = node.brokers[0] || "";
}

/** Time within which a reading is answered, in milliseconds. A network that has gone says nothing. */
const ANSWER_MS = 30000;

/** Calls a management procedure. A reading without an answer ends the session, and the page joins again. */
export async function call(procedure, args = [], kwargs = {}) {
  const { session } = node;
  const timer = procedure.includes(".get_") ? setTimeout(() => session.abandon(), ANSWER_MS) : 0;
  try {
    const { args: result } = await session.call(procedure, args, kwargs);
    return result[0];
  } finally {
    clearTimeout(timer);
  }
}

const ofWorker = (worker, procedure, args, kwargs) => call(`crossbar.worker.${worker}.${procedure}`, args, kwargs);

/** Calls a procedure of the chosen router. */
export const ofRouter = (procedure, args, kwargs) => ofWorker(node.router, procedure, args, kwargs);

/** Calls a procedure of the chosen broker. */
export const ofBroker = (procedure, args, kwargs) => ofWorker(node.broker, procedure, args, kwargs);

/** A part of a path of RabbitMQ's management API. */
export const segment = encodeURIComponent;

/** Reads a path of the management API. */
export async function read(path) {
  return checked(await ofBroker("get_amqp_monitoring", [path]));
}

/** Reads a path that only the administrator may read. */
export async function readAll(path) {
  return checked(await ofBroker("get_amqp_management", [path]));
}

/** Sends a change to the management API. */
export async function change(method, path, body) {
  return checked(await ofBroker("request_amqp_management", body === undefined ? [method, path] : [method, path, body]));
}

function checked({ status, body }) {
  if (status < 400) return body;
  const reason = body?.reason || body?.error || `status ${status}`;
  throw new WampError(String(status), [typeof reason === "string" ? reason : JSON.stringify(reason)]);
}

/** Waiting time between two readings, in milliseconds. */
const EVERY_MS = 1000;
/** A reading that takes long is followed by a rest of as many times its duration. */
const REST = 3;

/** Repeats `read` once a second while the page is looked at. It may return a longer time until the next reading. */
export class Repeating {
  constructor(read) {
    Object.assign(this, { read, timer: 0, isOver: false, isReading: false, isWanted: false });
    this.seen = () => !document.hidden && this.now();
    document.addEventListener("visibilitychange", this.seen);
  }

  /** Reads at once; a reading that runs is followed by another. */
  async now() {
    clearTimeout(this.timer);
    if (this.isReading) {
      this.isWanted = true;
      return;
    }
    this.isReading = true;
    const began = performance.now();
    let ms = EVERY_MS;
    try {
      ms = (await this.read()) || EVERY_MS;
    } finally {
      this.isReading = false;
      this.rest(ms, performance.now() - began);
    }
  }

  rest(ms, took) {
    if (this.isOver || document.hidden) return;
    const rest = this.isWanted ? 0 : Math.max(ms - took, REST * took);
    this.isWanted = false;
    this.timer = setTimeout(() => this.seen(), rest);
  }

  stop() {
    this.isOver = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.seen);
  }
}
