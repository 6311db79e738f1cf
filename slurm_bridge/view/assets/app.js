// The live view. Every text of a row comes from somebody's manifest: it is put into the page as text, never as HTML.

import { Store, chosen, events, mebibytes, namespaces, reasons, sorted, span, stages, totals } from "/ui/rows.js";

const VIEWS = ["workloads", "nodes", "queues", "decisions"];
const KINDS = [["cpus", "CPU"], ["memory", "Mem"], ["gpus", "GPU"]];
const HOLDERS = ["ours", "other", "native"];
const THEMES = ["auto", "dark", "light"];

const $ = (id) => document.getElementById(id);
const main = $("main");
const detail = $("detail");

let store = new Store();
let token = "";
let draw = () => {};
let closeView = () => {};
const state = {
  view: "workloads",
  filter: { stage: "active", reason: "", text: "" },
  sort: { column: "created", down: true },
  namespace: "",
  nodes: "",
  open: null,
};

// An element with properties, attributes (`aria-…`, `role`) and children.
function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined));
  return made;
}

function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

// The same content as a new drawing: what is the same element stays it, with its focus, its scroll and a click under way.
// What a button does is in its data (`act`), because a button may become another one.
function renew(parent, ...children) {
  const made = parent.cloneNode(false);
  fill(made, ...children);
  morph(parent, made);
}

function morph(old, made) {
  if (old.nodeName !== made.nodeName) {
    old.replaceWith(made);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== made.data) old.data = made.data;
  } else {
    for (const { name, value } of [...made.attributes]) {
      if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    for (const { name } of [...old.attributes]) {
      if (!["style", "open"].includes(name) && !made.hasAttribute(name)) old.removeAttribute(name);
    }
    if (old.style.cssText !== made.style.cssText) old.style.cssText = made.style.cssText;
    const parts = [...made.childNodes];
    while (old.childNodes.length > parts.length) old.lastChild.remove();
    parts.forEach((part, place) => (place < old.childNodes.length ? morph(old.childNodes[place], part) : old.append(part)));
  }
}

// A button whose click is `ACTS[act]`, with these values.
function button(kind, act, values, ...children) {
  const { pressed, ...more } = values;
  const data = Object.fromEntries(Object.entries(more).map(([name, value]) => [`data-${name}`, value]));
  return h("button", { type: "button", class: kind, "data-act": act, "aria-pressed": pressed, ...data }, ...children);
}

function meter(amounts, label) {
  const [all, ...held] = amounts;
  const bar = h("div", { class: "meter", role: "img", "aria-label": label });
  held.forEach((amount, place) => {
    const part = h("i", { class: HOLDERS[place] });
    part.style.width = `${all ? Math.min(100, (100 * amount) / all) : 0}%`;
    bar.append(part);
  });
  return bar;
}

function amount(kind, number) {
  return kind === "memory" ? mebibytes(number) : String(number);
}

function holders(kind, amounts) {
  const [all, ours, other, native] = amounts;
  const parts = [`${amount(kind, ours)} by pods of this bridge`];
  if (other) parts.push(`${amount(kind, other)} by other pods`);
  if (native) parts.push(`${amount(kind, native)} by other jobs`);
  return `${parts.join(", ")}, of ${amount(kind, all)}`;
}

function legend() {
  const words = [["ours", "pods of this bridge"], ["other", "other pods"], ["native", "other jobs of Slurm"], ["free", "free"]];
  return h("p", { class: "legend" }, words.map(([name, text]) => h("span", {}, h("i", { class: name }), text)));
}

function pill(word) {
  return h("span", { class: `pill ${word}` }, word);
}

// -- rows that are only there while they are seen ---------------------------------------------------------------------

// `across` items side by side, each `height` high. One item takes part in the order of the Tab key; arrows move on.
class Virtual {
  constructor(scroll, options) {
    Object.assign(this, { scroll, across: () => 1, ...options });
    this.items = [];
    this.elements = new Map();
    this.active = null;
    this.space = h("div", { class: "space", role: options.spaceRole ?? "presentation" });
    scroll.append(this.space);
    scroll.addEventListener("scroll", () => this.draw(), { passive: true });
    scroll.addEventListener("keydown", (event) => this.keyed(event));
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(scroll);
  }

  set(items) {
    this.items = items;
    this.places = new Map(items.map((item, place) => [this.key(item), place]));
    if (this.active !== null && !this.places.has(this.active)) this.active = null;
    this.draw();
  }

  draw() {
    const across = this.across(this.scroll.clientWidth);
    this.space.style.height = `${Math.ceil(this.items.length / across) * this.height}px`;
    const first = Math.max(0, Math.floor(this.scroll.scrollTop / this.height) - 4) * across;
    const count = (Math.ceil(this.scroll.clientHeight / this.height) + 8) * across;
    const seen = new Set();
    for (let place = first; place < Math.min(this.items.length, first + count); place += 1) seen.add(place);
    const active = this.active === null ? first : this.places.get(this.active);
    if (this.items.length) seen.add(Math.min(active, this.items.length - 1));
    const kept = new Set();
    for (const place of [...seen].sort((a, b) => a - b)) kept.add(this.put(place, across, place === active));
    for (const [key, one] of this.elements) {
      if (!kept.has(key)) {
        one.element.remove();
        this.elements.delete(key);
      }
    }
  }

  put(place, across, active) {
    const item = this.items[place];
    const key = this.key(item);
    let one = this.elements.get(key);
    if (!one) {
      const made = { item, element: this.make(item) };
      made.element.addEventListener("click", () => this.choose(made.item));
      made.element.addEventListener("focus", () => { this.active = key; });
      this.space.append(made.element);
      this.elements.set(key, (one = made));
    } else if (one.item !== item) {
      one.item = item;
      morph(one.element, this.make(item));
    }
    const style = one.element.style;
    style.top = `${Math.floor(place / across) * this.height}px`;
    if (across > 1 || this.tiles) {
      style.left = `calc(${(100 * (place % across)) / across}% + 2px)`;
      style.width = `calc(${100 / across}% - 12px)`;
    }
    one.element.tabIndex = active ? 0 : -1;
    one.element.classList.toggle("active", this.isOpen(item));
    if (this.spaceRole === "rowgroup") one.element.setAttribute("aria-rowindex", place + 2);
    this.tick?.(one.element, item);
    return key;
  }

  choose(item) {
    this.active = this.key(item);
    this.open(item);
    this.draw();
  }

  keyed(event) {
    if (!this.items.length || event.altKey || event.ctrlKey || event.metaKey) return;
    const across = this.across(this.scroll.clientWidth);
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / this.height) - 1) * across;
    const steps = { ArrowDown: across, ArrowUp: -across, PageDown: page, PageUp: -page };
    if (across > 1) Object.assign(steps, { ArrowRight: 1, ArrowLeft: -1 });
    const at = this.active === null ? -1 : this.places.get(this.active);
    let to = null;
    if (event.key in steps) to = at < 0 ? 0 : at + steps[event.key];
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = this.items.length - 1;
    else if (event.key === "Enter" || event.key === " ") {
      if (at >= 0) this.choose(this.items[at]);
      event.preventDefault();
      return;
    } else return;
    event.preventDefault();
    this.show(Math.max(0, Math.min(this.items.length - 1, to)));
  }

  show(place) {
    const item = this.items[place];
    this.active = this.key(item);
    const top = Math.floor(place / this.across(this.scroll.clientWidth)) * this.height;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + this.height > this.scroll.scrollTop + this.scroll.clientHeight) {
      this.scroll.scrollTop = top + this.height - this.scroll.clientHeight;
    }
    this.draw();
    this.elements.get(this.active)?.element.focus({ preventScroll: true });
  }

  focus() {
    if (this.items.length) this.show(this.active === null ? 0 : this.places.get(this.active));
  }

  close() {
    this.sizes.disconnect();
  }
}

// -- the views --------------------------------------------------------------------------------------------------------

const COLUMNS = [
  ["stage", "Stage", ""], ["name", "Workload", ""], ["pods", "Pods", "num"], ["cpus", "CPUs", "num"],
  ["memory", "Memory", "num"], ["gpus", "GPUs", "num"], ["job", "Slurm job", "num"], ["reason", "Why it waits, or where it runs", ""],
  ["starts", "Starts", "num"], ["created", "Age", "num"],
];

function viewWorkloads() {
  const search = h("input", {
    type: "search", id: "search", placeholder: "Search", "aria-label": "Search workloads", autocomplete: "off", spellcheck: "false",
    oninput: () => { state.filter.text = search.value; draw(); },
  });
  search.value = state.filter.text;
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Reasons" });
  const count = h("span", { class: "count", role: "status" });
  const head = h("div", { class: "head", role: "row", "aria-rowindex": 1 });
  const scroll = h("div", { class: "scroll", role: "presentation" });
  const grid = h("div", { class: "grid workloads", role: "grid", "aria-label": "Workloads", "aria-colcount": COLUMNS.length },
    h("div", { role: "rowgroup" }, head), scroll);
  const rows = new Virtual(scroll, {
    height: 36, spaceRole: "rowgroup", key: (row) => row.number, make: workloadRow, tick: workloadTimes,
    open: (row) => openWorkload(row), isOpen: (row) => state.open?.row?.number === row.number,
  });
  fill(main, h("div", { class: "controls" }, search, chips, count), grid);
  const heads = COLUMNS.map(([column, text, kind]) => {
    const made = h("span", { role: "columnheader", class: `c-${column} ${kind}` }, h("button", {
      type: "button", onclick: () => {
        state.sort = { column, down: state.sort.column === column ? !state.sort.down : column === "created" };
        draw();
      },
    }, text));
    head.append(made);
    return [column, made];
  });
  const empty = h("p", { class: "empty" });
  let tried = "";
  draw = () => {
    for (const [column, made] of heads) {
      if (column === state.sort.column) made.setAttribute("aria-sort", state.sort.down ? "descending" : "ascending");
      else made.removeAttribute("aria-sort");
    }
    const all = [...store.workloads.values()];
    const found = sorted(chosen(all, state.filter), state.sort.column, state.sort.down);
    const why = reasons(chosen(all, { ...state.filter, reason: "" }));
    const text = JSON.stringify([why, state.filter.reason]);
    if (text !== tried) drawChips(chips, why);
    tried = text;
    grid.setAttribute("aria-rowcount", found.length + 1);
    rows.set(found);
    empty.textContent = all.length ? "No workload matches." : "There are no workloads that you may see.";
    if (!found.length && !empty.isConnected) scroll.append(empty);
    if (found.length) empty.remove();
    const left = store.leftOut ? `, ${store.leftOut} more are not shown` : "";
    setText(count, `${found.length} of ${all.length} workloads${left}`);
  };
  closeView = () => rows.close();
  return () => rows.focus();
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function drawChips(chips, why) {
  const { reason } = state.filter;
  const shown = why.slice(0, 7);
  const place = shown.findIndex(([one]) => one === reason);
  if (reason) shown.unshift(place < 0 ? [reason, 0] : shown.splice(place, 1)[0]);
  renew(chips, shown.map(([one, number]) => button("chip", "reason", { reason: one, pressed: one === reason }, one, h("b", {}, String(number)))));
}

function workloadRow(row) {
  const cell = (column, kind, ...children) => h("span", { role: "gridcell", class: `c-${column} ${kind}` }, ...children);
  const many = row.node_count > row.nodes.length ? ` and ${row.node_count - row.nodes.length} more` : "";
  const where = row.node_count ? `on ${row.nodes.join(", ")}${many}` : "";
  const why = row.reason || row.message
    ? [row.reason ? h("b", {}, row.reason) : null, h("span", { class: "muted" }, row.message)]
    : [h("span", { class: "muted" }, where)];
  return h("div", { class: "row", role: "row" },
    cell("stage", "", pill(row.stage)),
    cell("name", "name", h("span", { class: "muted" }, `${row.namespace}/`), row.name, row.kind === "Pod" ? "" : h("span", { class: "muted" }, ` ${row.kind}`)),
    cell("pods", "num", row.pods === 1 ? "1" : `${row.bound}/${row.pods}`),
    cell("cpus", "num", String(row.cpus)),
    cell("memory", "num", mebibytes(row.memory)),
    cell("gpus", "num", row.gpus ? String(row.gpus) : ""),
    cell("job", "num", row.job ? String(row.job) : ""),
    cell("reason", "why", why),
    cell("starts", "num muted"),
    cell("created", "num muted"));
}

function workloadTimes(element, row) {
  const now = store.now();
  const cells = element.children;
  setText(cells[9], row.created ? span(now - row.created) : "");
  let starts = "";
  if (row.stage === "queued" && row.starts) starts = row.starts > now ? `in ${span(row.starts - now)}` : "soon";
  else if (row.starts && (row.stage === "running" || row.stage === "starting")) starts = `${span(now - row.starts)} ago`;
  setText(cells[8], starts);
}

function viewNodes() {
  const chips = h("div", { class: "chips", role: "group", "aria-label": "States" });
  const count = h("span", { class: "count", role: "status" });
  const scroll = h("div", { class: "map" });
  fill(main, h("div", { class: "controls" }, legend(), chips, count), scroll);
  const tiles = new Virtual(scroll, {
    height: 116, tiles: true, across: (width) => Math.max(1, Math.floor(width / 236)), key: (node) => node.name,
    make: nodeTile, open: (node) => openNode(node.name), isOpen: (node) => state.open?.node === node.name,
  });
  let tried = "";
  draw = () => {
    if (!store.about.totals && store.about.fields.node.length) {
      fill(scroll, h("p", { class: "empty" }, "You may not list nodes in this cluster."));
      return;
    }
    const all = [...store.nodes.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const states = new Map();
    for (const node of all) states.set(node.state, (states.get(node.state) ?? 0) + 1);
    const text = JSON.stringify([[...states], state.nodes]);
    if (text !== tried) {
      renew(chips, [...states].map(([word, number]) => button("chip", "state", { state: word, pressed: state.nodes === word }, word, h("b", {}, String(number)))));
    }
    tried = text;
    tiles.set(state.nodes ? all.filter((node) => node.state === state.nodes) : all);
    setText(count, `${all.length} nodes`);
  };
  closeView = () => tiles.close();
  return () => tiles.focus();
}

function nodeTile(node) {
  const lines = KINDS.filter(([kind]) => node[kind][0]).map(([kind, text]) => {
    const [all, ...held] = node[kind];
    const free = Math.max(0, all - held.reduce((a, b) => a + b, 0));
    return h("span", { class: "line" }, text, meter(node[kind], `${text}: ${holders(kind, node[kind])}`), h("em", {}, `${amount(kind, free)} free`));
  });
  const made = h("button", { type: "button", class: "node" },
    h("span", { class: "top" }, h("span", {}, node.name), pill(node.state)), lines);
  made.style.position = "absolute";
  return made;
}

function viewQueues() {
  const box = h("div", { class: "scrolls" });
  fill(main, box);
  let tried = "";
  draw = () => {
    const rows = namespaces(store.workloads.values());
    const text = JSON.stringify([rows, store.queues]);
    if (text === tried) return;
    tried = text;
    renew(box, store.queues.map(queueTree), namespaceTable(rows));
  };
  closeView = () => {};
  return () => box.querySelector("button")?.focus();
}

function queueTree(tree) {
  const rows = tree.queues.map((queue) => {
    const name = queue.depth ? queue.path.slice(queue.path.lastIndexOf(".") + 1) : queue.path;
    return h("tr", {},
      h("th", { scope: "row", class: `depth-${Math.min(4, queue.depth)}` }, name, queue.state === "active" ? null : [" ", pill(queue.state)]),
      h("td", { class: "share" }, share(queue)),
      h("td", {}, list(queue.used)), h("td", {}, list(queue.guaranteed)), h("td", {}, list(queue.max)),
      h("td", { class: "num" }, String(queue.running)), h("td", { class: "num" }, String(queue.waiting)));
  });
  const heads = ["Queue", "Used of the limit", "Used", "Guaranteed", "Most"].map((text) => h("th", { scope: "col" }, text));
  const numbers = ["Running", "Waiting"].map((text) => h("th", { scope: "col", class: "num" }, text));
  return h("section", { class: "card", tabindex: "0", "aria-label": `Queues of partition ${tree.partition}` },
    h("h2", {}, "Queues", h("small", {}, `partition ${tree.partition}${tree.mode ? `, mode ${tree.mode}` : ""}`)),
    h("table", {}, h("thead", {}, h("tr", {}, heads, numbers)), h("tbody", {}, rows)));
}

// The resource of which the largest part of its limit is used; a mark is where the guarantee ends.
function share(queue) {
  let best = null;
  for (const [name, most] of Object.entries(queue.max)) {
    const part = most ? (queue.used[name] ?? 0) / most : 0;
    if (!best || part > best.part) best = { name, most, part };
  }
  if (!best) return h("span", { class: "muted" }, "no limit");
  const bar = h("div", { class: "meter", role: "img", "aria-label": `${Math.round(best.part * 100)} % of ${best.name}` });
  const used = h("i", { class: "ours" });
  used.style.width = `${Math.min(100, best.part * 100)}%`;
  bar.append(used);
  if (queue.guaranteed[best.name]) {
    const mark = h("i", { class: "mark" });
    mark.style.left = `${Math.min(100, (100 * queue.guaranteed[best.name]) / best.most)}%`;
    bar.append(mark);
  }
  return h("span", { class: "shared" }, bar, h("span", { class: "muted" }, `${Math.round(best.part * 100)} % of ${resource(best.name)}`));
}

function resource(name) {
  return name === "vcore" ? "CPUs" : name === "nvidia.com/gpu" ? "GPUs" : name;
}

function list(amounts) {
  const parts = Object.entries(amounts).filter(([name]) => name !== "pods").map(([name, number]) => {
    if (name === "vcore") return many(number / 1000, "CPU");
    if (name === "memory") return mebibytes(Math.round(number / (1 << 20)));
    return `${number} ${resource(name)}`;
  });
  return parts.length ? parts.join(", ") : "\u2013";
}

function namespaceTable(rows) {
  const window = store.about.window ?? 0;
  const made = rows.slice(0, 500).map((one) => {
    const bar = h("div", { class: "meter", role: "img", "aria-label": `${one.queued} of ${window} jobs that wait in Slurm` });
    const part = h("i", { class: "ours" });
    part.style.width = `${window ? Math.min(100, (100 * one.queued) / window) : 0}%`;
    bar.append(part);
    return h("tr", {},
      h("th", { scope: "row" }, button("link", "seek", { text: `${one.name}/` }, one.name)),
      h("td", { class: "num" }, String(one.running)), h("td", { class: "num" }, String(one.cpus)), h("td", { class: "num" }, String(one.gpus)),
      h("td", { class: "num" }, String(one.queued)), h("td", { class: "share" }, bar), h("td", { class: "num" }, String(one.held)));
  });
  const heads = [["Namespace", ""], ["Running", "num"], ["CPUs", "num"], ["GPUs", "num"], ["Queued", "num"], ["Share of the window", ""], ["Held", "num"]];
  return h("section", { class: "card", tabindex: "0", "aria-label": "Namespaces" },
    h("h2", {}, "Namespaces", h("small", {}, window ? `at most ${window} jobs wait in Slurm at a time` : "")),
    h("table", {}, h("thead", {}, h("tr", {}, heads.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), h("tbody", {}, made)));
}

// The workloads that match a text.
function seek(text) {
  state.filter = { stage: "active", reason: "", text };
  turn("workloads");
}

function viewDecisions() {
  const scroll = h("div", { class: "scroll", role: "presentation" });
  const head = h("div", { class: "head", role: "row", "aria-rowindex": 1 },
    [["Time", ""], ["Workload", ""], ["Reason", ""], ["Message", "c-message"]].map(([text, kind]) => h("span", { role: "columnheader", class: kind }, text)));
  const grid = h("div", { class: "grid decisions", role: "grid", "aria-label": "Decisions" }, h("div", { role: "rowgroup" }, head), scroll);
  fill(main, grid);
  const rows = new Virtual(scroll, {
    height: 36, spaceRole: "rowgroup", key: (one) => one, isOpen: () => false,
    make: (one) => h("div", { class: "row", role: "row" },
      h("span", { role: "gridcell", class: "muted" }, new Date(one.at * 1000).toLocaleTimeString()),
      h("span", { role: "gridcell", class: "name" }, h("span", { class: "muted" }, `${one.namespace}/`), one.name),
      h("span", { role: "gridcell", class: one.warning ? "problem" : "" }, one.reason),
      h("span", { role: "gridcell", class: "muted c-message" }, one.message)),
    open: (one) => {
      for (const row of store.workloads.values()) {
        if (row.kind === one.kind && row.namespace === one.namespace && row.name === one.name) openWorkload(row);
      }
    },
  });
  const empty = h("p", { class: "empty" }, "No decision has been taken since this view began.");
  draw = () => {
    const seen = store.decisions;
    grid.setAttribute("aria-rowcount", seen.length + 1);
    rows.set([...seen]);
    if (!seen.length && !empty.isConnected) scroll.append(empty);
    if (seen.length) empty.remove();
  };
  closeView = () => rows.close();
  return () => rows.focus();
}

const MAKERS = { workloads: viewWorkloads, nodes: viewNodes, queues: viewQueues, decisions: viewDecisions };
let focusRows = () => {};

function turn(view, focus = false) {
  state.view = view;
  closeView();
  for (const one of VIEWS) {
    $(`tab-${one}`).setAttribute("aria-selected", one === view);
    $(`tab-${one}`).tabIndex = one === view ? 0 : -1;
  }
  main.setAttribute("aria-labelledby", `tab-${view}`);
  focusRows = MAKERS[view]();
  drawTiles();
  draw();
  remember();
  if (focus) focusRows();
}

// -- the summary ------------------------------------------------------------------------------------------------------

const TILES = [["running", "running"], ["starting", "starting"], ["queued", "queued in Slurm"], ["held", "held by the bridge"]];
let tiles = null;

function drawTiles() {
  if (!tiles) {
    tiles = {};
    const made = TILES.map(([stage, text]) => {
      const number = h("b", {}, "0");
      const button = h("button", {
        type: "button", class: "tile", onclick: () => {
          const same = state.view === "workloads" && state.filter.stage === stage;
          state.filter.stage = same ? "active" : stage;
          state.filter.reason = "";
          turn("workloads");
        },
      }, number, h("span", { class: `dot ${stage}` }, text));
      tiles[stage] = { number, button };
      return button;
    });
    tiles.capacity = h("div", { class: "tile capacity" });
    fill($("tiles"), made, tiles.capacity);
  }
  const counted = stages(store.workloads.values());
  for (const [stage] of TILES) {
    setText(tiles[stage].number, counted[stage].toLocaleString("en"));
    tiles[stage].button.setAttribute("aria-pressed", state.view === "workloads" && state.filter.stage === stage);
  }
  if (store.nodes.size) drawCapacity(totals(store.nodes.values()));
  else fill(tiles.capacity, h("span", {}, store.about.totals === false ? "Nodes are not shown: you may not list them." : ""));
}

function drawCapacity(all) {
  const text = JSON.stringify(all);
  if (tiles.text === text) return;
  tiles.text = text;
  renew(tiles.capacity, KINDS.filter(([kind]) => all[kind][0]).map(([kind, word]) => {
    const used = all[kind][1] + all[kind][2] + all[kind][3];
    return h("div", { class: "line" }, { CPU: "CPUs", Mem: "Memory", GPU: "GPUs" }[word],
      meter(all[kind], holders(kind, all[kind])), h("em", {}, `${amount(kind, used)} of ${amount(kind, all[kind][0])}`));
  }));
}

// -- details ----------------------------------------------------------------------------------------------------------

let back = null;

function openDetail(open) {
  if (!state.open) back = document.activeElement;
  state.open = open;
  detail.hidden = false;
  remember();
}

function closeDetail() {
  if (!state.open) return;
  state.open = null;
  detail.hidden = true;
  detail.replaceChildren();
  remember();
  draw();
  if (back?.isConnected) back.focus();
  else focusRows();
}

function detailHead(title, sub, word) {
  return [h("header", {}, h("h2", { tabindex: "-1" }, title), button("quiet", "close", {}, "Close")),
    h("p", { class: "sub" }, word ? [pill(word), " "] : [], sub)];
}

async function openWorkload(row, focus = true) {
  openDetail({ row, explained: null });
  await showWorkload(focus);
  draw();
}

async function showWorkload(focus = false) {
  const open = state.open;
  const { kind, namespace, name, uid } = open.row;
  const found = await ask("workload", { kind, namespace, name, uid });
  if (state.open !== open) return;
  open.found = found;
  open.shown = store.workloads.get(open.row.number) ?? null;
  drawWorkload(open);
  if (focus) detail.querySelector("h2").focus();
}

function drawWorkload(open) {
  const { found, row } = open;
  if (found.problem) {
    renew(detail, detailHead(row.name, `${row.kind} in ${row.namespace}`, ""), h("p", { class: "muted" }, "This workload has gone."));
    return;
  }
  const facts = [
    ["Slurm job", found.row.job || "none"], ["Partition", found.row.partition], ["Account", found.row.account],
    ["Requests", [many(found.row.cpus, "CPU"), mebibytes(found.row.memory), ...(found.row.gpus ? [many(found.row.gpus, "GPU")] : [])].join(", ")],
    ["Priority", found.row.priority || ""],
  ].filter(([, value]) => value !== "");
  renew(detail,
    detailHead(found.name, `${found.kind} in ${found.namespace}`, found.stage),
    found.message || found.step ? whyBox(found, found.stage) : null,
    store.about.explains ? h("p", { class: "ask" }, button("quiet", "explain", {}, "Explain every step")) : null,
    h("div", { class: "explained", "aria-live": "polite" }, open.explained ?? []),
    h("h3", {}, "Timeline"), timeline(found.timeline),
    h("h3", {}, "Request"), h("dl", { class: "facts" }, facts.map(([term, value]) => [h("dt", {}, term), h("dd", {}, String(value))])),
    h("h3", {}, found.members.length === 1 ? "Pod" : `${found.row.pods} pods`), members(found),
    found.jobs.length > 1 ? [h("h3", {}, "Jobs"), h("ul", { class: "list" }, found.jobs.map((job) => h("li", {}, h("span", { class: "grow" }, job.text), h("span", { class: "muted" }, `attempt ${job.attempt}`))))] : null);
}

function whyBox(found, stage) {
  return h("div", { class: `why-box ${stage}` },
    found.reason ? h("p", { class: "reason" }, button("link", "alike", { reason: found.reason }, found.reason)) : null,
    found.message ? h("p", {}, found.message) : null,
    found.step ? h("p", { class: "step" }, h("b", {}, "Next step: "), coded(found.step)) : null);
}

// `commands` in a text as such.
function coded(text) {
  return text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));
}

function many(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

function timeline(lines) {
  return h("ol", { class: "time" }, lines.map((line) => {
    const when = new Date(line.at * 1000);
    const away = line.at - store.now();
    const far = away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
    return h("li", { class: line.what }, h("div", {}, line.text), h("div", { class: "at" }, `${when.toLocaleString()} \u00b7 ${far}`));
  }));
}

function members(found) {
  const more = found.unlisted ? h("li", { class: "muted" }, `and ${found.unlisted} more`) : null;
  return h("ul", { class: "list" }, found.members.map((pod) => h("li", {},
    h("span", { class: "grow" }, pod.name), h("span", { class: "muted" }, pod.state),
    pod.node ? button("link", "node", { node: pod.node }, pod.node) : null)), more);
}

async function explain() {
  const open = state.open;
  if (!open?.row || !store.about.explains) return;
  const box = detail.querySelector(".explained");
  fill(box, h("p", { class: "muted" }, "asking both servers\u2026"));
  const found = await ask("explain", { namespace: open.row.namespace, pod: open.row.lead });
  if (state.open !== open) return;
  open.explained = found.problem ? [h("p", { class: "problem" }, found.problem)] : explanation(found);
  fill(detail.querySelector(".explained"), open.explained);
}

function explanation(found) {
  const verdict = { submit: "would be submitted", wait: "would wait", refuse: "would be refused" }[found.verdict];
  const excluded = Object.entries(found.excluded);
  const hooks = found.hooks.filter((line) => line.reason || line.nodes_in !== line.nodes_out);
  return [
    h("h3", {}, `Now it ${verdict}`),
    found.message ? h("div", { class: "why-box" }, h("p", { class: "reason" }, found.reason), h("p", {}, found.message), found.step ? h("p", { class: "step" }, h("b", {}, "Next step: "), coded(found.step)) : null) : null,
    h("ul", { class: "list" },
      h("li", {}, h("span", { class: "grow" }, "eligible nodes"), h("b", {}, String(found.eligible))),
      Object.entries(found.closed).map(([said, number]) => h("li", {}, h("span", { class: "grow muted" }, `of these Slurm starts no job now (${said})`), h("b", {}, String(number)))),
      excluded.map(([reason, number]) => h("li", {}, h("span", { class: "grow muted" }, reason), h("b", {}, String(number)))),
      hooks.map((line) => h("li", {}, h("span", { class: "grow muted" }, `hook ${line.hook}, ${line.phase}${line.reason ? `: ${line.reason}` : ""}`), h("b", {}, line.nodes_in ? String(line.nodes_out) : "")))),
    found.text ? h("details", {}, h("summary", {}, "all of it"), h("pre", { tabindex: "0", "aria-label": "The whole explanation" }, found.text)) : null,
  ].filter(Boolean);
}

async function openNode(name, focus = true) {
  openDetail({ node: name });
  await showNode(focus);
  draw();
}

async function showNode(focus = false) {
  const open = state.open;
  const found = await ask("node", { name: open.node });
  if (state.open !== open) return;
  const node = store.nodes.get(open.node);
  if (found.problem || !node) {
    renew(detail, detailHead(open.node, "Node", ""), h("p", { class: "muted" }, "You may not list nodes, or this one has gone."));
    return;
  }
  open.shown = node;
  const pods = found.pods.map((pod) => h("li", {},
    pod.workload ? button("link grow", "workload", { workload: JSON.stringify([pod.workload[0], pod.namespace, pod.workload[1], pod.workload[2]]) }, `${pod.namespace}/${pod.name}`) : h("span", { class: "grow" }, `${pod.namespace}/${pod.name}`),
    h("span", { class: "muted" }, [many(pod.cpus, "CPU"), ...(pod.gpus ? [many(pod.gpus, "GPU")] : []), ...(pod.job ? [`job ${pod.job}`] : [])].join(", "))));
  renew(detail,
    detailHead(node.name, `Node${node.slurm_name ? `, in Slurm ${node.slurm_name}` : ""}`, node.state),
    node.why ? h("div", { class: "why-box" }, h("p", {}, node.why)) : null,
    h("h3", {}, "Held"),
    h("div", { class: "amounts" }, KINDS.filter(([kind]) => node[kind][0]).map(([kind, text]) =>
      h("div", { class: "line" }, h("span", {}, text), meter(node[kind], holders(kind, node[kind])), h("em", {}, holders(kind, node[kind]))))),
    h("h3", {}, "Partitions"), h("p", {}, node.partitions.join(", ") || "none"),
    h("h3", {}, many(node.pods, "pod")),
    h("ul", { class: "list" }, pods, found.unseen ? h("li", { class: "muted" }, `and ${found.unseen} that are not shown`) : null));
  if (focus) detail.querySelector("h2").focus();
}

// What is open follows its row; at most one question at a time.
let asking = false;
async function follow() {
  const open = state.open;
  if (!open || asking) return;
  const now = open.row ? store.workloads.get(open.row.number) ?? null : store.nodes.get(open.node);
  if (open.shown === undefined || now === open.shown) return;
  asking = true;
  try {
    if (open.row) await showWorkload();
    else await showNode();
  } finally {
    asking = false;
  }
}

// -- the daemon -------------------------------------------------------------------------------------------------------

function headers() {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function ask(page, query) {
  try {
    const answer = await fetch(`/ui/${page}?${new URLSearchParams(query)}`, { headers: headers() });
    const found = await answer.json();
    return answer.ok ? found : { problem: found.message ?? answer.statusText };
  } catch {
    return { problem: "the bridge does not answer" };
  }
}

let stopStream = new AbortController();

function live(word, text) {
  $("live").dataset.state = word;
  setText($("live"), text);
}

async function run() {
  for (let tries = 0; ; tries += 1) {
    stopStream = new AbortController();
    try {
      if (await stream(stopStream.signal)) tries = 0;
    } catch (problem) {
      if (!stopStream.signal.aborted) live("lost", "no answer, trying again");
      else tries = -1;
    }
    await new Promise((done) => setTimeout(done, tries < 0 ? 0 : Math.min(10, 2 ** Math.min(tries, 4)) * 500));
  }
}

async function stream(signal) {
  const query = state.namespace ? `?${new URLSearchParams({ namespace: state.namespace })}` : "";
  const answer = await fetch(`/ui/stream${query}`, { headers: headers(), signal });
  if (answer.status === 401) {
    await identify(token ? "The cluster does not accept this token." : "");
    return true;
  }
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    live("lost", said.message ?? answer.statusText);
    return false;
  }
  let next = store;
  for await (const [name, data] of events(answer)) {
    if (name === "begin") {
      next = new Store();
      next.clear(data);
      if (!store.workloads.size) swap(next);
    } else if (name === "ready") {
      swap(next);
      live("live", "live");
    } else if (name === "end") {
      if (data.why === "token") token = "";
      live("wait", "connecting");
    } else {
      next.apply(data);
      if (next === store) changed();
    }
  }
  live("lost", "the connection has ended, trying again");
  return true;
}

function swap(next) {
  const open = state.open?.row;
  store = next;
  setText($("cluster"), store.about.cluster ?? "");
  document.title = `${store.about.cluster ?? ""} \u00b7 slurm-bridge`;
  if (open) {
    const row = store.find(open.kind, open.namespace, open.name, open.uid);
    if (row) state.open.row = row;
  }
  changed();
}

// Drawing takes longer the more rows there are, and leaves time for keys in between.
let due = 0;
function changed() {
  if (due) return;
  const pause = store.workloads.size > 4000 ? 400 : 60;
  due = setTimeout(() => {
    due = 0;
    requestAnimationFrame(() => {
      drawTiles();
      draw();
      drawNamespaces();
      follow();
    });
  }, pause);
}

let known = "";
function drawNamespaces() {
  const names = [...new Set([...store.workloads.values()].map((row) => row.namespace))].sort();
  const text = names.join("\n");
  if (text === known || state.namespace) return;
  known = text;
  const select = $("namespace");
  fill(select, h("option", { value: "" }, "all"), names.slice(0, 1000).map((name) => h("option", { value: name }, name)));
}

function identify(problem) {
  const dialog = $("token");
  setText($("token-problem"), problem);
  live("wait", "a token is needed");
  dialog.showModal();
  return new Promise((done) => dialog.addEventListener("close", () => {
    token = $("token-words").value.trim();
    $("token-words").value = "";
    done();
  }, { once: true }));
}

// -- what buttons do --------------------------------------------------------------------------------------------------

const ACTS = {
  reason: ({ reason }) => { state.filter.reason = state.filter.reason === reason ? "" : reason; draw(); },
  state: (given) => { state.nodes = state.nodes === given.state ? "" : given.state; draw(); },
  seek: ({ text }) => seek(text),
  alike: ({ reason }) => { state.filter = { stage: "active", reason, text: "" }; turn("workloads"); },
  node: ({ node }) => openNode(node),
  workload: ({ workload }) => { const row = store.find(...JSON.parse(workload)); if (row) openWorkload(row); },
  explain: () => explain(),
  close: () => closeDetail(),
};

document.addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-act]");
  if (pressed) ACTS[pressed.dataset.act](pressed.dataset);
});

// -- keys, theme, address ---------------------------------------------------------------------------------------------

function remember() {
  const parts = new URLSearchParams({ view: state.view });
  const open = state.open;
  if (open?.node) parts.set("node", open.node);
  else if (open?.row) parts.set("workload", [open.row.kind, open.row.namespace, open.row.name].map(encodeURIComponent).join("/"));
  history.replaceState(null, "", `#${parts}`);
}

function theme(word) {
  if (word === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = word;
  setText($("theme"), `Theme: ${word}`);
  try {
    localStorage.setItem("theme", word);
  } catch { /* without storage the theme ends with the page */ }
}

function nextTheme() {
  const now = document.documentElement.dataset.theme ?? "auto";
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
}

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || document.querySelector("dialog[open]")) return;
  const typed = event.target.closest("input, select, textarea");
  if (event.key === "Escape") {
    if (typed?.id === "search" && typed.value) {
      typed.value = "";
      state.filter.text = "";
      draw();
    } else if (state.open) closeDetail();
    else if (typed) focusRows();
    return;
  }
  if (typed) {
    if (typed.id === "search" && (event.key === "ArrowDown" || event.key === "Enter")) {
      event.preventDefault();
      focusRows();
    }
    return;
  }
  const at = Number(event.key) - 1;
  if (VIEWS[at]) turn(VIEWS[at], true);
  else if (event.key === "/") {
    if (state.view !== "workloads") turn("workloads");
    $("search").focus();
  } else if (event.key === "t") nextTheme();
  else if (event.key === "x") explain();
  else if (event.key === "?") $("keys").showModal();
  else if (event.key === "ArrowDown" && document.activeElement === document.body) focusRows();
  else return;
  event.preventDefault();
});

for (const view of VIEWS) $(`tab-${view}`).addEventListener("click", () => turn(view));
document.querySelector(".tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const to = VIEWS[(VIEWS.indexOf(state.view) + step + VIEWS.length) % VIEWS.length];
  turn(to);
  $(`tab-${to}`).focus();
});
$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => $("keys").showModal());
$("namespace").addEventListener("change", () => {
  state.namespace = $("namespace").value;
  known = "";
  store = new Store();
  stopStream.abort();
});
setInterval(() => { if (!document.hidden) draw(); }, 1000);

let kept = "auto";
try {
  kept = localStorage.getItem("theme") ?? "auto";
} catch { /* likewise */ }
theme(THEMES.includes(kept) ? kept : "auto");
const given = new URLSearchParams(location.hash.slice(1));
turn(VIEWS.includes(given.get("view")) ? given.get("view") : "workloads");
run();
