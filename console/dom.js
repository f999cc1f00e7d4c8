// Elements from descriptions. Text becomes text nodes only, so that a name that is markup is shown, and not run.

const SVG = "http://www.w3.org/2000/svg";
const IS_SVG = new Set(["svg", "path", "line", "rect", "title"]);

/** Describes an element. Children are descriptions, texts, numbers, or lists of these; null and false are left out. */
export function h(tag, props, ...children) {
  const shown = children.flat(Infinity).filter((child) => child != null && child !== false && child !== true);
  return { tag, props: props || {}, children: shown };
}

/** Makes the children of `parent` what is described, and keeps elements that are there already. */
export function render(parent, ...described) {
  patch(parent, described.flat(Infinity).filter((child) => child != null && child !== false && child !== true));
}

function patch(parent, children) {
  const keyed = new Map();
  const kept = new Set(children.map((child) => child.props?.key));
  for (const node of [...parent.childNodes]) {
    const key = node.described?.props.key;
    if (key === undefined) continue;
    // What goes is gone before the rest is compared: otherwise each element behind it would move, and lose the focus.
    if (kept.has(key)) keyed.set(key, node);
    else node.remove();
  }
  let at = parent.firstChild;
  for (const child of children) {
    const known = typeof child === "object" && child.props.key !== undefined ? keyed.get(child.props.key) : at;
    const isThere = fits(known, child);
    const node = isThere ? known : make(child);
    // Moved in one step, an element keeps the focus.
    if (node === at) at = at.nextSibling;
    else if (isThere && parent.moveBefore) parent.moveBefore(node, at);
    else parent.insertBefore(node, at);
    update(node, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fits(node, child) {
  if (!node) return false;
  if (typeof child !== "object") return node.nodeType === Node.TEXT_NODE;
  return node.described?.tag === child.tag && node.described.props.key === child.props.key;
}

function make(child) {
  if (typeof child !== "object") return document.createTextNode("");
  const { tag } = child;
  const node = IS_SVG.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  node.described = { tag, props: {}, children: [] };
  return node;
}

function update(node, child) {
  if (typeof child !== "object") {
    const text = String(child);
    if (node.data !== text) node.data = text;
    return;
  }
  const before = node.described.props;
  node.described = child;
  for (const [name, value] of Object.entries(child.props)) {
    if (before[name] !== value) set(node, name, value);
  }
  for (const name of Object.keys(before)) {
    if (!(name in child.props)) set(node, name, null);
  }
  // A choice is set once its options are there.
  patch(node, child.children);
  if (node.tagName === "SELECT" && before.value !== child.props.value) node.value = child.props.value;
}

function set(node, name, value) {
  if (name === "key") return;
  if (name.startsWith("on")) {
    const event = name.slice(2);
    if (!node.heard) node.heard = {};
    if (!node.heard[event]) node.addEventListener(event, (occurred) => node.heard[event]?.(occurred));
    node.heard[event] = value;
  } else if (name === "value" || name === "checked" || name === "open") {
    node[name] = value ?? "";
  } else if (value == null || value === false) {
    node.removeAttribute(name);
  } else {
    node.setAttribute(name, value === true ? "" : value);
  }
}
