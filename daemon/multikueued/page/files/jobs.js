// The jobs of the namespaces that the user may read, live by watch: a page of 500 rows at a time.
import * as api from "./api.js";
import { again, pause } from "./again.js";
import { address, el, jobLink, queueLink, replace, since, state, table, workerLink } from "./elements.js";
import { notice, told } from "./notice.js";
import { t } from "./texts.js";

const PAGE = 500;
const AGAIN = 3_000;
const LOOK = 15_000;
const WATCHED = 2;
const PRESSING = ["Lost", "Rejected", "Inactive"];

/** The jobs that `query` takes; `inside` another view, which has their heading and address. */
export async function showJobs(content, query, signal, inside = false) {
  const view = new View(query, inside), namespace = view.namespace;
  content.append(el(inside ? "h2" : "h1", {}, t("jobs")), view.form, view.count, view.rows, view.pages);
  const known = api.namespaces(signal).catch((error) => {
    if (signal.aborted || error.code !== 404) throw error;
    return namespace ? [namespace] : [];
  });
  const offered = known.then((found) => {
    view.offer(found);
    if (view.chosen.queue) placed(view, found, signal);
    if (!found.length) view.draw();
  });
  if (namespace) return Promise.all([offered, follow(view, namespace, signal)]);
  await Promise.all([offered, follow(view, "", signal, async () => {
    const found = await known;
    await Promise.all([...found.slice(0, WATCHED).map((one) => follow(view, one, signal)), look(view, found.slice(WATCHED), signal)]);
  })]);
}

/** The places in the queue that is looked at: they change with each job that starts. */
function placed(view, known, signal) {
  const from = async () => (await api.places(view.namespace, view.chosen.queue, signal).catch((error) => {
    if (error.code !== 403 || view.namespace || !known.length) throw error;
    return api.places(known[0], view.chosen.queue, signal);
  }));
  again(signal, async () => {
    const { items } = await from().catch(api.absent(signal, { items: [] }));
    view.places = new Map(items.map((one) => [`${one.namespace}/${one.name}`, one]));
    view.redraw();
  }).catch(() => {}); // the view is left
}

/** Lists now and then what is not watched: a browser opens six connections, and other tabs need some. */
async function look(view, namespaces, signal) {
  while (namespaces.length) {
    for (const one of namespaces) await list(view, one, signal).catch((error) => { if (signal.aborted) throw error; notice(told(error)); });
    await pause(LOOK, signal);
  }
}

async function list(view, namespace, signal) {
  const seen = new Set();
  const version = await api.listJobs(namespace, (items) => items.forEach((one) => { seen.add(view.put(one)); }), signal);
  view.keep(namespace, seen);
  return version;
}

/** List, then watch; after a pause again, from the list where the version is too old. Who may not read that follows
 * `otherwise`. */
async function follow(view, namespace, signal, otherwise = null) {
  let version = "";
  while (!signal.aborted) {
    try {
      if (!version) version = await list(view, namespace, signal);
      notice("");
      await api.watchJobs(namespace, version, (event) => { version = view.take(event) || version; }, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 410) version = "";
      else if (error.code === 403 && otherwise) return otherwise();
      else if (error.code === 403) { notice(told(error)); return; }
      else notice(told(error));
    }
    await pause(AGAIN, signal);
  }
}

class View {
  jobs = new Map();
  places = null;
  page = 0;
  due = false;
  rest = 0;

  constructor(query, inside) {
    const given = (name) => query.get(name) ?? "";
    this.inside = inside;
    this.namespace = given("namespace");
    this.chosen = { state: given("state"), worker: given("worker"), queue: given("queue"), words: given("words"), sort: given("sort") };
    this.count = el("p", { class: "soft", role: "status" });
    this.rows = el("div");
    this.pages = el("p");
    this.filter = el("input", { type: "search", id: "filter", oninput: () => this.choose({ words: this.filter.value }) });
    this.filter.value = this.chosen.words;
    this.wanted = el("select", { onchange: () => this.choose({ state: this.wanted.value }) });
    this.where = el("select", { onchange: () => { location.hash = this.address({ namespace: this.where.value }); } });
    const narrowed = inside ? [] : ["worker", "queue"].filter((name) => this.chosen[name]).map((name) =>
      el("a", { class: "chip", href: this.address({ [name]: "" }) }, `${t(name)}: ${this.chosen[name]} `, el("span", { "aria-label": t("remove") }, "x")));
    this.form = el("form", { onsubmit: (event) => event.preventDefault() },
      inside ? null : el("label", {}, t("namespace"), this.where), el("label", {}, t("filter"), this.filter), el("label", {}, t("state"), this.wanted), narrowed);
    this.offer([]);
    this.states(new Set());
  }

  /** Of this list with something changed. */
  address(change = {}) {
    return address(["jobs"], { namespace: this.namespace, ...this.chosen, ...change });
  }

  choose(change) {
    Object.assign(this.chosen, change);
    this.page = 0;
    if (!this.inside) history.replaceState(null, "", this.address());
    this.redraw();
  }

  offer(namespaces) {
    const options = [...new Set([...namespaces, this.namespace].filter(Boolean))].sort();
    this.where.replaceChildren(el("option", { value: "" }, t("all")), ...options.map((one) => el("option", { value: one }, one)));
    this.where.value = this.namespace;
  }

  put(job) {
    const key = keyOf(job);
    this.jobs.set(key, job);
    this.redraw();
    return key;
  }

  /** Forget what a list no longer has. */
  keep(namespace, seen) {
    for (const [key, job] of this.jobs) if ((!namespace || job.metadata.namespace === namespace) && !seen.has(key)) this.jobs.delete(key);
    this.redraw();
  }

  take({ type, object }) {
    if (type === "DELETED") this.jobs.delete(keyOf(object));
    else if (type !== "BOOKMARK") this.put(object);
    this.redraw();
    return object.metadata.resourceVersion;
  }

  /** Some times a second at most, however many events come, and a fifth of the time at most, however many rows there are;
   * the first rows at once. */
  redraw() {
    if (this.due) return;
    this.due = true;
    setTimeout(() => requestAnimationFrame(() => {
      const began = performance.now();
      this.due = false;
      this.draw();
      this.rest = Math.max(200, 4 * (performance.now() - began));
    }), this.rest);
  }

  draw() {
    const shown = [...this.jobs.values()].filter(this.taken());
    this.states(new Set([...this.jobs.values()].map((one) => one.status.state)));
    const columns = this.columns(), most = Math.max(1, Math.ceil(shown.length / PAGE));
    this.sort(shown, columns);
    this.page = Math.min(this.page, most - 1);
    this.count.textContent = t("count", `${shown.length} / ${this.jobs.size}`);
    const rows = shown.slice(this.page * PAGE, (this.page + 1) * PAGE);
    replace(this.rows, shown.length ? table(t("jobs"), columns, rows, "two", (one) => this.heading(one)) : el("p", {}, t("none")));
    this.turner(most);
  }

  /** Whether a job is shown. */
  taken() {
    const { state: wanted, worker, queue, words } = this.chosen, states = wanted.split(",").filter(Boolean);
    const parts = words.toLowerCase().split(/\s+/).filter(Boolean);
    return ({ metadata, status }) => (!states.length || states.includes(status.state))
      && (!worker || status.cluster === worker || (!status.cluster && (status.offeredTo ?? []).includes(worker)))
      && (!queue || status.queue === queue || status.clusterQueue === queue)
      && parts.every((word) => `${metadata.namespace} ${nameOf({ metadata, status })} ${status.cluster ?? ""} ${status.queue ?? ""}`.toLowerCase().includes(word));
  }

  /** By the chosen column; without one by place in the queue that is looked at, else those that need somebody, then
   * the newest first. */
  sort(jobs, columns) {
    const [name, down] = [this.chosen.sort.replace(/^-/, ""), this.chosen.sort.startsWith("-") ? -1 : 1];
    const column = columns.find((one) => one.name === (name || (this.places ? "place" : "")));
    const newest = (a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1);
    const by = (job) => column ? column.by(job) : !PRESSING.includes(job.status.state);
    jobs.sort((a, b) => { const [one, other] = [by(a), by(b)]; return one < other ? -down : one > other ? down : newest(a, b); });
    for (const one of columns) one.sorted = one.by ? (one === column ? (down < 0 ? "descending" : "ascending") : "none") : null;
  }

  heading(column) {
    if (!column.by) return column.label;
    const other = this.chosen.sort === column.name ? `-${column.name}` : column.name;
    return el("button", { type: "button", class: "sort", onclick: () => this.choose({ sort: other }) }, column.label,
      column.sorted === "none" ? null : el("span", { "aria-hidden": "true" }, column.sorted === "ascending" ? " ^" : " v"));
  }

  columns() {
    const places = this.places, placeOf = (one) => places?.get(keyOf(one));
    return [
      { name: "namespace", label: t("namespace"), class: "where", by: (one) => one.metadata.namespace, cell: (one) => one.metadata.namespace },
      { name: "job", label: t("job"), class: "name", by: nameOf, cell: (one) => jobLink(one.metadata.namespace, one.metadata.name, nameOf(one)) },
      { name: "state", label: t("state"), class: "is", by: (one) => one.status.state, cell: (one) => state(one.status.state) },
      places ? { name: "place", label: t("place.column"), class: "place", by: (one) => placeOf(one)?.place ?? Infinity, cell: (one) => placeOf(one)?.place ?? "–" } : null,
      { name: "worker", label: t("worker"), class: "at", by: (one) => one.status.cluster ?? "", cell: (one) => workerLink(one.status.cluster) },
      { name: "queue", label: t("queue"), class: "queue", by: (one) => one.status.clusterQueue ?? "", cell: (one) => queueLink(one.status.clusterQueue) },
      { name: "since", label: t("since"), class: "since", by: (one) => one.status.since ?? "", cell: (one) => since(one.status) },
      { name: "reason", label: t("reason"), class: "words", cell: (one) => one.status.reason ?? "", title: (one) => one.status.reason },
    ].filter(Boolean);
  }

  /** What may be chosen: each state that there is, and what an address has chosen. */
  states(there) {
    const options = ["", ...[...new Set([...there, this.chosen.state].filter(Boolean))].sort()];
    const known = [...this.wanted.options].map((one) => one.value);
    if (options.length !== known.length || options.some((one, at) => one !== known[at])) {
      const words = (one) => one.split(",").map((each) => t(`state.${each}`, "", each)).join(", ");
      this.wanted.replaceChildren(...options.map((one) => el("option", { value: one }, one ? words(one) : t("all"))));
    }
    this.wanted.value = this.chosen.state;
  }

  turner(most) {
    if (most === 1) return this.pages.replaceChildren();
    const button = (label, to) => el("button", { type: "button", disabled: to < 0 || to >= most, onclick: () => { this.page = to; this.draw(); } }, label);
    this.pages.replaceChildren(button(t("previous"), this.page - 1), ` ${this.page + 1} / ${most} `, button(t("next"), this.page + 1));
  }
}

const keyOf = ({ metadata }) => `${metadata.namespace}/${metadata.name}`;

/** As the commands write it. */
const nameOf = ({ metadata, status }) => status.job || metadata.name;
