// The node's log: its last lines, narrowed by text and level, and a level for a time.

import { h } from "./dom.js";
import { call, node } from "./node.js";
import { attempt, badge, count, form, section } from "./parts.js";

/** Levels from the most severe. */
const LEVELS = ["error", "warn", "info", "debug", "trace"];
const TIMES = { "1 minute": 1, "10 minutes": 10, "1 hour": 60 };
const MS_PER_MINUTE = 60000;
/** Lines that are kept, and lines of an answer: as many as the node keeps. */
const LINES = 1000;

export function logPage() {
  let lines = null;
  let wanted = "";
  let level = "trace";
  /** Whether new lines scroll the others up: the end is shown. */
  let isAtEnd = true;
  const page = {
    async load() {
      if (!node.mayChange) return;
      const after = lines ? lines.at(-1)?.number ?? 0 : null;
      const found = await call("crossbar.get_log", [after, LINES]);
      const missing = after === null || found.length === 0 ? 0 : found[0].number - after - 1;
      const gap = missing > 0 ? [{ number: found[0].number - 0.5, level: "warn", text: `(${count(missing)} lines are missing here: the node keeps no more)` }] : [];
      lines = [...(lines || []), ...gap, ...found].slice(-LINES);
    },
    view() {
      if (!node.mayChange) return h("p", { class: "empty" }, "The log is shown to the role administrator.");
      if (!lines) return null;
      const most = LEVELS.indexOf(level);
      const part = wanted.toLowerCase();
      const shown = lines.filter((line) => LEVELS.indexOf(line.level) <= most && line.text.toLowerCase().includes(part));
      return [
        h("div", { class: "bar", key: "bar" },
          h("label", { class: "hidden", for: "filter" }, "A part of the text"),
          h("input", { id: "filter", type: "search", placeholder: "A part of the text", value: wanted, oninput: narrow, autocomplete: "off", spellcheck: "false" }),
          h("label", null, "Level ", h("select", { value: level, onchange: choose },
            LEVELS.map((each) => h("option", { key: each, value: each }, each === "error" ? each : `${each} and above`)))),
          h("span", { class: "range" }, `${count(shown.length)} of ${count(lines.length)} lines`)),
        shown.length === 0 ? h("p", { class: "empty", key: "none" }, lines.length ? "Nothing matches." : "Nothing is logged yet.")
          : h("ol", { class: "log", key: "lines", tabindex: "0", "aria-label": "Lines of the log", onscroll: scrolled },
            shown.map((line) => h("li", { key: line.number }, badge(line.level, LEVELS.indexOf(line.level) < 2 ? "wrong" : ""), h("pre", null, line.text)))),
        section("Log more for a time", form("level", [
          { name: "level", label: "Level", kind: "choice", options: LEVELS, value: "debug" },
          { name: "time", label: "For", kind: "choice", options: Object.keys(TIMES), value: "10 minutes" },
        ], "Set", setLevel, { kind: "row", isChange: true }), h("p", { class: "note" }, "The former level returns afterwards.")),
      ];
    },
    drawn() {
      const list = document.querySelector("main .log");
      if (list && isAtEnd) list.scrollTop = list.scrollHeight;
    },
  };
  const narrow = (event) => {
    wanted = event.target.value;
    page.app.redraw();
  };
  const choose = (event) => {
    level = event.target.value;
    page.app.redraw();
  };
  const scrolled = ({ target }) => {
    isAtEnd = target.scrollHeight - target.scrollTop - target.clientHeight < 8;
  };
  const setLevel = ({ level: to, time }) => attempt(async () => {
    const { former } = await call("crossbar.set_log_level", [to, TIMES[time] * MS_PER_MINUTE]);
    page.app.reload();
    return former;
  }, (former) => `The log has level ${to} for ${time}; it was ${former}`);
  return page;
}
