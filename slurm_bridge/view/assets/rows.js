// The rows of the view: taken in from the stream, filtered, sorted and counted. Nothing here touches the page.

export const STAGES = ["held", "queued", "starting", "running", "leaving", "done", "failed"];
const MOST_DECISIONS = 400;
const ACTIVE = new Set(["held", "queued", "starting", "running", "leaving"]);

export class Store {
  constructor() {
    this.clear({ fields: { workload: [], node: [], decision: [] } });
  }

  // Everything anew: the first event of a stream says what is in the rows.
  clear(about) {
    this.about = about;
    this.skew = about.now ? about.now - Date.now() / 1000 : 0;
    this.workloads = new Map();
    this.nodes = new Map();
    this.decisions = [];
    this.queues = [];
    this.leftOut = 0;
  }

  apply(delta) {
    const { workload, node, decision } = this.about.fields;
    for (const row of delta.workloads ?? []) {
      const made = record(workload, row);
      made.search = [made.namespace, "/", made.name, " ", made.kind, " ", made.reason, " ", made.partition, " ",
        made.account, " ", made.job || "", " ", made.nodes.join(" ")].join("").toLowerCase();
      this.workloads.set(made.number, made);
    }
    for (const number of delta.gone ?? []) this.workloads.delete(number);
    for (const row of delta.nodes ?? []) this.nodes.set(row[0], record(node, row));
    for (const name of delta.nodes_gone ?? []) this.nodes.delete(name);
    for (const row of delta.decisions ?? []) this.decisions.unshift(record(decision, row));
    if (this.decisions.length > MOST_DECISIONS) this.decisions.length = MOST_DECISIONS;
    if (delta.queues !== undefined) this.queues = delta.queues ?? [];
    if (delta.left_out !== undefined) this.leftOut = delta.left_out;
  }

  // Seconds since 1970 by the clock of the daemon.
  now() {
    return Date.now() / 1000 + this.skew;
  }

  find(kind, namespace, name, uid) {
    for (const row of this.workloads.values()) {
      if (row.name === name && row.namespace === namespace && row.kind === kind && row.uid === uid) return row;
    }
    return null;
  }
}

function record(fields, row) {
  const made = {};
  for (let place = 0; place < fields.length; place += 1) made[fields[place]] = row[place];
  return made;
}

// `stage` "" is all, "active" all that have not ended.
export function chosen(rows, { stage = "", reason = "", text = "" }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const row of rows) {
    if (stage && (stage === "active" ? !ACTIVE.has(row.stage) : row.stage !== stage)) continue;
    if (reason && row.reason !== reason) continue;
    if (words.every((word) => row.search.includes(word))) found.push(row);
  }
  return found;
}

const RANK = Object.fromEntries(STAGES.map((stage, place) => [stage, place]));
const ORDERS = {
  stage: (row) => RANK[row.stage],
  name: (row) => `${row.namespace}/${row.name}`,
  pods: (row) => row.pods,
  cpus: (row) => row.cpus,
  memory: (row) => row.memory,
  gpus: (row) => row.gpus,
  job: (row) => row.job,
  reason: (row) => row.reason,
  starts: (row) => row.starts || Infinity,
  created: (row) => row.created,
};

export function sorted(rows, column, down) {
  const key = ORDERS[column] ?? ORDERS.created;
  const keyed = rows.map((row) => [key(row), row]);
  keyed.sort(([one, a], [other, b]) => (one < other ? -1 : one > other ? 1 : a.number - b.number));
  const found = keyed.map(([, row]) => row);
  return down ? found.reverse() : found;
}

// How many workloads wait for which reason, the most frequent first.
export function reasons(rows) {
  const found = new Map();
  for (const row of rows) {
    if ((row.stage === "held" || row.stage === "queued") && row.reason) {
      found.set(row.reason, (found.get(row.reason) ?? 0) + 1);
    }
  }
  return [...found].sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1));
}

export function stages(rows) {
  const found = Object.fromEntries(STAGES.map((stage) => [stage, 0]));
  for (const row of rows) found[row.stage] += 1;
  return found;
}

export function namespaces(rows) {
  const found = new Map();
  for (const row of rows) {
    let one = found.get(row.namespace);
    if (!one) found.set(row.namespace, (one = { name: row.namespace, held: 0, queued: 0, running: 0, cpus: 0, gpus: 0 }));
    if (row.stage === "held") one.held += 1;
    else if (row.stage === "queued") one.queued += 1;
    else if (row.stage === "running" || row.stage === "starting") {
      one.running += 1;
      one.cpus += row.cpus;
      one.gpus += row.gpus;
    }
  }
  return [...found.values()].sort((a, b) => b.running - a.running || (a.name < b.name ? -1 : 1));
}

// All nodes together: for each kind of amount how much there is, and how much is held by whom.
export function totals(nodes) {
  const found = { cpus: [0, 0, 0, 0], memory: [0, 0, 0, 0], gpus: [0, 0, 0, 0] };
  for (const node of nodes) {
    for (const kind of Object.keys(found)) node[kind].forEach((amount, place) => (found[kind][place] += amount));
  }
  return found;
}

export function mebibytes(amount) {
  if (amount >= 1 << 20) return `${round(amount / (1 << 20))} TiB`;
  if (amount >= 1024) return `${round(amount / 1024)} GiB`;
  return `${amount} MiB`;
}

function round(number) {
  return number >= 100 || Number.isInteger(number) ? Math.round(number) : number.toFixed(1);
}

export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, "0")}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

// The events of one stream, as they come; ends with the connection.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      let from = 0;
      while ((end = rest.indexOf("\n\n", from)) >= 0) {
        let name = "message";
        let data = "";
        for (const line of rest.slice(from, end).split("\n")) {
          if (line.startsWith("event: ")) name = line.slice(7);
          else if (line.startsWith("data: ")) data += line.slice(6);
        }
        from = end + 2;
        if (data) yield [name, JSON.parse(data)];
      }
      rest = rest.slice(from);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
