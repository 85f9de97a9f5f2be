// The jobs of the namespaces that the user may read, live by watch: a page of 500 rows at a time.
import * as api from "./api.js";
import { el, state, table, time } from "./elements.js";
import { pause } from "./fleet.js";
import { notice, told } from "./notice.js";
import { t } from "./texts.js";

const PAGE = 500;
const AGAIN = 3_000;
const LOOK = 15_000;
const WATCHED = 2;

export async function showJobs(content, namespace, signal) {
  const view = new View(namespace);
  content.append(el("h1", {}, t("jobs")), view.form, view.count, view.rows, view.pages);
  const known = await api.namespaces(signal).catch((error) => {
    if (signal.aborted || error.code !== 404) throw error;
    return namespace ? [namespace] : [];
  });
  view.offer(known);
  if (namespace) return follow(view, namespace, signal);
  if (!known.length) return view.draw();
  if (await mayReadAll(signal)) return follow(view, "", signal);
  await Promise.all([...known.slice(0, WATCHED).map((one) => follow(view, one, signal)), look(view, known.slice(WATCHED), signal)]);
}

const mayReadAll = (signal) => api.listJobs("", () => {}, signal, 1).then(() => true, (error) => {
  if (signal.aborted || error.code !== 403) throw error;
  return false;
});

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

/** List, then watch; after a pause again, from the list where the version is too old. */
async function follow(view, namespace, signal) {
  let version = "";
  while (!signal.aborted) {
    try {
      if (!version) version = await list(view, namespace, signal);
      notice("");
      await api.watchJobs(namespace, version, (event) => { version = view.take(event) || version; }, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error.code === 410) version = "";
      else if (error.code === 403) { notice(told(error)); return; }
      else notice(told(error));
    }
    await pause(AGAIN, signal);
  }
}

class View {
  jobs = new Map();
  page = 0;
  due = false;

  constructor(namespace) {
    this.count = el("p", { class: "soft", role: "status" });
    this.rows = el("div");
    this.pages = el("p");
    this.filter = el("input", { type: "search", id: "filter", oninput: () => this.changed() });
    this.wanted = el("select", { onchange: () => this.changed() }, el("option", { value: "" }, t("all")));
    this.places = el("select", { onchange: () => { location.hash = this.places.value ? `#/jobs/${encodeURIComponent(this.places.value)}` : "#/jobs"; } });
    this.namespace = namespace;
    this.form = el("form", { onsubmit: (event) => event.preventDefault() },
      el("label", {}, t("namespace"), this.places), el("label", {}, t("filter"), this.filter), el("label", {}, t("state"), this.wanted));
    this.offer([]);
  }

  offer(namespaces) {
    const options = [...new Set([...namespaces, this.namespace].filter(Boolean))].sort();
    this.places.replaceChildren(el("option", { value: "" }, t("all")), ...options.map((one) => el("option", { value: one }, one)));
    this.places.value = this.namespace;
  }

  put(job) {
    const key = `${job.metadata.namespace}/${job.metadata.name}`;
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
    if (type === "DELETED") this.jobs.delete(`${object.metadata.namespace}/${object.metadata.name}`);
    else if (type !== "BOOKMARK") this.put(object);
    this.redraw();
    return object.metadata.resourceVersion;
  }

  changed() {
    this.page = 0;
    this.redraw();
  }

  /** Once per frame at most, however many events come. */
  redraw() {
    if (this.due) return;
    this.due = true;
    setTimeout(() => requestAnimationFrame(() => { this.due = false; this.draw(); }), 200);
  }

  draw() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean), states = new Set();
    const shown = [];
    for (const job of this.jobs.values()) {
      states.add(job.status.state);
      if (this.wanted.value && job.status.state !== this.wanted.value) continue;
      const text = `${job.metadata.namespace} ${job.metadata.name} ${job.status.cluster ?? ""} ${job.status.queue ?? ""}`.toLowerCase();
      if (words.every((word) => text.includes(word))) shown.push(job);
    }
    shown.sort((a, b) => (a.metadata.creationTimestamp < b.metadata.creationTimestamp ? 1 : -1));
    this.states(states);
    const most = Math.max(1, Math.ceil(shown.length / PAGE));
    this.page = Math.min(this.page, most - 1);
    this.count.textContent = t("count", `${shown.length} / ${this.jobs.size}`);
    const focused = document.activeElement?.getAttribute("href");
    this.rows.replaceChildren(shown.length ? table(t("jobs"), columns(), shown.slice(this.page * PAGE, (this.page + 1) * PAGE)) : el("p", {}, t("none")));
    if (focused && !this.rows.contains(document.activeElement)) [...this.rows.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused)?.focus();
    this.turner(most);
  }

  states(found) {
    const options = [...found, this.wanted.value].filter(Boolean).sort(), known = [...this.wanted.options].slice(1).map((one) => one.value);
    if (new Set(options).size === known.length && known.every((one) => found.has(one) || one === this.wanted.value)) return;
    const chosen = this.wanted.value;
    this.wanted.replaceChildren(el("option", { value: "" }, t("all")), ...[...new Set(options)].map((one) => el("option", { value: one }, t(`state.${one}`, "", one))));
    this.wanted.value = chosen;
  }

  turner(most) {
    if (most === 1) return this.pages.replaceChildren();
    const button = (label, to) => el("button", { type: "button", disabled: to < 0 || to >= most, onclick: () => { this.page = to; this.draw(); } }, label);
    this.pages.replaceChildren(button(t("previous"), this.page - 1), ` ${this.page + 1} / ${most} `, button(t("next"), this.page + 1));
  }
}

const columns = () => [
  { label: t("namespace"), cell: (one) => one.metadata.namespace },
  { label: t("job"), cell: (one) =>
    el("a", { href: `#/jobs/${encodeURIComponent(one.metadata.namespace)}/${encodeURIComponent(one.metadata.name)}` }, one.metadata.name) },
  { label: t("state"), cell: (one) => state(one.status.state) },
  { label: t("worker"), cell: (one) => one.status.cluster || "–" },
  { label: t("since"), cell: (one) => time(one.status.since) },
  { label: t("reason"), words: true, cell: (one) => one.status.reason ?? "" },
];
