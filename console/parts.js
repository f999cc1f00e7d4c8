// Parts that pages are made of: figures as text, tables, charts, forms.

import { h, render } from "./dom.js";
import { node } from "./node.js";

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** 12,345 or 1.2M */
export const count = (value) => (value == null ? "–" : Math.abs(value) < 1e6 ? number.format(value) : compact.format(value));

/** 1.5 MiB */
export function bytes(value) {
  if (value == null) return "–";
  const unit = value < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${number.format(value / 1024 ** unit)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
}

/** 3 d 4 h */
export function duration(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  const units = [["d", Math.floor(s / 86400)], ["h", Math.floor(s / 3600) % 24], ["min", Math.floor(s / 60) % 60], ["s", s % 60]];
  const first = units.findIndex(([, value]) => value > 0);
  return first < 0 ? "0 s" : units.slice(first, first + 2).filter(([, v]) => v > 0).map(([unit, v]) => `${v} ${unit}`).join(" ");
}

export const since = (date) => (date ? duration((Date.now() - Date.parse(date)) / 1000) : "–");

export const rate = (value) => (value == null ? "–" : `${count(value)}/s`);

/** A table that scrolls sideways by itself. Columns: `title`, `cell(row)`, `number`, `sort`. */
export function table(caption, columns, rows, { key, sorted, onSort, empty = "None." } = {}) {
  const head = columns.map((column) => {
    const isSorted = sorted && column.sort === sorted.by;
    const order = isSorted ? (sorted.isDown ? "descending" : "ascending") : null;
    const title = column.sort && onSort
      ? h("button", { class: "sort", type: "button", onclick: () => onSort(column.sort) }, column.title,
        h("span", { "aria-hidden": "true" }, isSorted ? (sorted.isDown ? " ↓" : " ↑") : ""))
      : column.title || h("span", { class: "hidden" }, "Actions");
    return h("th", { scope: "col", class: column.number ? "n" : null, "aria-sort": order }, title);
  });
  const body = rows.map((row) => h("tr", key ? { key: key(row) } : null, columns.map((column, index) =>
    h(index === 0 ? "th" : "td", { scope: index === 0 ? "row" : null, class: column.number ? "n" : column.class }, column.cell(row)))));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption), h("thead", null, h("tr", null, head)), h("tbody", null, body)),
    rows.length === 0 && h("p", { class: "empty" }, empty));
}

/** Names and values. */
export const facts = (pairs) => h("dl", { class: "facts" },
  pairs.filter(([, value]) => value != null && value !== "" && value !== false)
    .map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))));

export const section = (title, ...content) => h("section", { key: title }, h("h2", null, title), content);

export const badge = (text, kind = "") => h("span", { class: `badge ${kind}` }, text);

export const link = (text, ...path) => h("a", { href: `#/${path.map(encodeURIComponent).join("/")}` }, text);

/** A value in JSON, or nothing for an empty object. */
export const json = (value) => {
  const isEmpty = value == null || (typeof value === "object" && Object.keys(value).length === 0);
  return isEmpty ? "" : h("code", { class: "long" }, JSON.stringify(value));
};

const WIDTH = 240, HEIGHT = 48;

/** A line of the last values, the newest at the right end. */
export function spark(label, values, places = 60) {
  const shown = values.slice(-places);
  const most = Math.max(1, ...shown);
  const x = (index) => WIDTH - (shown.length - 1 - index) * (WIDTH / (places - 1));
  const y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 6);
  const points = shown.map((value, index) => `${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
  const line = points.length > 1 ? `M${points.join("L")}` : "";
  const area = line && `${line}L${WIDTH} ${HEIGHT}L${x(0).toFixed(1)} ${HEIGHT}Z`;
  return h("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `${label}, the last ${shown.length} readings; most ${count(most)}` },
  h("path", { class: "area", d: area }), h("path", { class: "line", d: line }));
}

/** A figure with its name, and a chart if it has values. */
export const tile = (name, value, { note, values } = {}) => h("div", { class: "tile", key: name },
  h("div", { class: "name" }, name), h("div", { class: "value" }, value),
  note && h("div", { class: "note" }, note), values && spark(name, values));

/** A share of a bound. */
export const meter = (label, value, most) => h("div", { class: "meter" },
  h("progress", { max: "1", value: most ? Math.min(1, value / most) : 0, "aria-label": label }),
  h("span", null, `${bytes(value)} of ${bytes(most)}`));

let clearing = 0;

/** Tells of an outcome, aloud for screen readers. */
export function notice(text, isError = false) {
  const place = document.getElementById("notice");
  render(place, h("p", { class: isError ? "wrong" : "right" }, text));
  clearTimeout(clearing);
  clearing = setTimeout(() => render(place), isError ? 12000 : 5000);
}

/** Does something that may fail, and tells of the outcome. */
export async function attempt(action, told) {
  try {
    const result = await action();
    if (told) notice(typeof told === "function" ? told(result) : told);
    return result;
  } catch (error) {
    notice(error.message, true);
    return undefined;
  }
}

const NEEDS = "Needs the role administrator";

/** A button of the administrator. Others see it without effect, with the reason. */
export function action(text, onclick, kind = "") {
  const title = node.mayChange ? null : NEEDS;
  return h("button", { type: "button", class: kind, onclick, disabled: !node.mayChange, title }, text);
}

/** A form. Fields: `name`, `label`, `value`, `kind` (text, area, number, check, password, choice), `options`, `hint`, `required`. A change is for the administrator. */
export function form(key, fields, submit, onSubmit, { kind = "", isChange = false } = {}) {
  const field = (each) => {
    const id = `${key}-${each.name}`;
    const common = { id, name: each.name, required: each.required, autocomplete: each.autocomplete || "off", spellcheck: "false" };
    const hint = each.hint && h("small", { id: `${id}-hint` }, each.hint);
    if (each.hint) common["aria-describedby"] = `${id}-hint`;
    if (each.kind === "check") {
      return h("div", { class: "field check", key: each.name }, h("input", { ...common, type: "checkbox", checked: Boolean(each.value) }),
        h("label", { for: id }, each.label), hint);
    }
    const input = each.kind === "area" ? h("textarea", { ...common, rows: each.rows || 3, value: each.value || "" })
      : each.kind === "choice" ? h("select", { ...common, value: each.value },
        each.options.map((option) => h("option", { key: option, value: option }, option)))
        : h("input", { ...common, type: each.kind || "text", value: each.value ?? "", list: each.list });
    return h("div", { class: `field ${each.wide ? "wide" : ""}`, key: each.name }, h("label", { for: id }, each.label), input, hint);
  };
  const send = (event) => {
    event.preventDefault();
    const values = {};
    for (const { name, kind: of } of fields) {
      const element = event.target.elements[name];
      values[name] = of === "check" ? element.checked : element.value;
    }
    onSubmit(values, event.target);
  };
  const isRefused = isChange && !node.mayChange;
  return h("form", { key, class: kind, onsubmit: send }, fields.map(field),
    h("button", { type: "submit", disabled: isRefused, title: isRefused ? NEEDS : null }, submit));
}

/** The value of a field in JSON; what it means if it is empty. */
export function parsed(text, otherwise, what) {
  if (!text.trim()) return otherwise;
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${what}: expected JSON, got ${text.slice(0, 40)}`);
  }
  const isList = Array.isArray(otherwise);
  if (otherwise !== undefined && (typeof value !== "object" || value === null || Array.isArray(value) !== isList)) {
    throw new Error(`${what}: expected ${isList ? "a list" : "an object"}`);
  }
  return value;
}

/** Asks before something is done that cannot be undone; resolves with the fields, or with null. */
export function ask(title, text, submit, fields = []) {
  const dialog = document.getElementById("dialog");
  return new Promise((resolve) => {
    let answer = null;
    const done = (values) => {
      answer = values;
      dialog.close();
    };
    dialog.onclose = () => {
      render(dialog);
      resolve(answer);
    };
    render(dialog, h("h2", { id: "asked" }, title), h("p", null, text), form("ask", fields, submit, done),
      h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"));
    dialog.setAttribute("aria-labelledby", "asked");
    dialog.showModal();
  });
}

/** Text to copy. */
export function snippet(text) {
  const copy = () => attempt(() => navigator.clipboard.writeText(text), "Copied");
  return h("div", { class: "snippet" }, h("pre", { tabindex: "0" }, h("code", null, text)),
    navigator.clipboard && h("button", { type: "button", class: "quiet", onclick: copy }, "Copy"));
}
