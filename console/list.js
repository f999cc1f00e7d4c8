// A list of any length, read a page at a time: filter, order, page. The server finds and orders the rows.

import { h } from "./dom.js";
import { count, table } from "./parts.js";

const ROWS = 100;
/** The server orders all rows for one page of them: a list of 10,000 rows is read every 5 s. */
const MS_PER_ROW = 0.5, MS_MAX = 10000;
export const restOf = (rows) => Math.min(MS_MAX, MS_PER_ROW * (rows || 0));

/** `read({filter, sort, isDown, first, rows})` resolves with `items`, and `total` where it is known. */
export class List {
  constructor({ title, columns, read, key, sort = null, empty, filterLabel = "Filter", extra = null }) {
    Object.assign(this, { title, columns, read, key, empty, filterLabel, extra });
    Object.assign(this, { filter: "", sort, isDown: false, page: 0, items: null, total: null, isMore: false });
  }

  async load() {
    const asked = { filter: this.filter, sort: this.sort, isDown: this.isDown, first: this.page * ROWS, rows: ROWS };
    const { items, total } = await this.read(asked);
    if (items.length === 0 && this.page > 0) {
      this.page = 0;
      return this.load();
    }
    this.items = items.slice(0, ROWS);
    this.total = total ?? null;
    this.isMore = total == null ? items.length > ROWS : asked.first + ROWS < total;
    return restOf(total);
  }

  view() {
    const narrow = (event) => {
      this.filter = event.target.value;
      this.page = 0;
      this.app.reload();
    };
    const onSort = (by) => {
      this.isDown = this.sort === by ? !this.isDown : false;
      this.sort = by;
      this.page = 0;
      this.app.reload();
    };
    const turn = (by) => () => {
      this.page += by;
      this.app.reload();
    };
    const first = this.page * ROWS;
    const shown = this.items || [];
    const of = this.total == null ? "" : ` of ${count(this.total)}`;
    const range = shown.length ? `${count(first + 1)}–${count(first + shown.length)}${of}` : "";
    return [
      h("div", { class: "bar", key: "bar" },
        h("label", { class: "hidden", for: "filter" }, this.filterLabel),
        h("input", { id: "filter", type: "search", placeholder: this.filterLabel, value: this.filter, oninput: narrow, autocomplete: "off", spellcheck: "false" }),
        this.extra?.(),
        h("span", { class: "range" }, range),
        (this.page > 0 || this.isMore) && h("span", { class: "pager" },
          h("button", { type: "button", class: "quiet", disabled: this.page === 0, onclick: turn(-1), "aria-label": "Previous page" }, "‹"),
          h("button", { type: "button", class: "quiet", disabled: !this.isMore, onclick: turn(1), "aria-label": "Next page" }, "›"))),
      this.items && table(this.title, this.columns, shown,
        { key: this.key, sorted: this.sort && { by: this.sort, isDown: this.isDown }, onSort, empty: this.filter ? "Nothing matches." : this.empty }),
    ];
  }
}
