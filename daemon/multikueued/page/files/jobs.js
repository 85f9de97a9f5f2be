// The jobs of the namespaces that the user may read. Who serves them chooses, sorts and cuts: a page of rows is all that comes.
import * as api from "./api.js";
import { again } from "./again.js";
import { address, el, jobLink, queueLink, replace, since, state, table, workerLink } from "./elements.js";
import { t } from "./texts.js";

/** The jobs that `query` takes; `inside` another view, which has their heading and address. */
export async function showJobs(content, query, signal, inside = false) {
  const view = new View(query, inside, signal);
  content.append(el(inside ? "h2" : "h1", {}, t("jobs")), view.form, view.count, view.rows, view.pages);
  const known = api.namespaces(signal).catch(api.absent(signal, []));
  known.then((found) => view.offer(found)).catch(() => {}); // what fails is told by what follows
  await again(signal, () => view.read(known));
}

class View {
  shown = null;
  seen = "";
  asked = 0;
  page = 0;
  rest = 0;

  constructor(query, inside, signal) {
    const given = (name) => query.get(name) ?? "";
    this.inside = inside;
    this.signal = signal;
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
    this.states([]);
  }

  /** Of this list with something changed. */
  address(change = {}) {
    return address(["jobs"], { namespace: this.namespace, ...this.chosen, ...change });
  }

  choose(change) {
    Object.assign(this.chosen, change);
    this.page = 0;
    if (!this.inside) history.replaceState(null, "", this.address());
    this.soon();
  }

  /** Ask for what is chosen now, once nobody has typed for a moment. */
  soon() {
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.read().catch(() => {}), 150); // what fails is told with the next turn
  }

  /** Who may not read all jobs through the manager's API server sees those of the first namespace that is theirs. */
  async read(known = null) {
    const asked = this.asked += 1, chosen = Object.entries({ ...this.chosen, page: this.page || "", seen: this.seen }).filter(([, value]) => value !== "");
    const { seen, status } = await api.jobPage(this.namespace, chosen, this.signal).catch(async (error) => {
      const [first] = error.code === 403 && !this.namespace && known ? await known : [];
      if (!first) throw error.code === 404 ? new api.ApiError(410, t("older")) : error;
      this.namespace = first;
      this.offer(await known);
      return api.jobPage(first, chosen, this.signal);
    });
    if (asked !== this.asked) return undefined; // something else has been chosen meanwhile
    this.seen = seen;
    this.shown = status ?? this.shown;
    this.draw();
    return this.shown.every;
  }

  offer(namespaces) {
    const options = [...new Set([...namespaces, this.namespace].filter(Boolean))].sort();
    this.where.replaceChildren(el("option", { value: "" }, t("all")), ...options.map((one) => el("option", { value: one }, one)));
    this.where.value = this.namespace;
  }

  draw() {
    const { jobs, count, inAll, page, pages, states, leftOut } = this.shown, columns = this.columns();
    this.states(states);
    this.page = page;
    this.count.textContent = t("count", `${count} / ${inAll}`) + (leftOut ? ` · ${t("left.out", leftOut)}` : "");
    replace(this.rows, count ? table(t("jobs"), columns, jobs, "two", (one) => this.heading(one)) : el("p", {}, t("none")));
    this.turner(pages);
  }

  heading(column) {
    if (!column.name) return column.label;
    const other = this.chosen.sort === column.name ? `-${column.name}` : column.name;
    return el("button", { type: "button", class: "sort", onclick: () => this.choose({ sort: other }) }, column.label,
      column.sorted === "none" ? null : el("span", { "aria-hidden": "true" }, column.sorted === "ascending" ? " ^" : " v"));
  }

  columns() {
    const { places } = this.shown, sort = this.chosen.sort || (places ? "place" : "");
    const made = [
      { name: "namespace", label: t("namespace"), class: "where", cell: (one) => one.namespace },
      { name: "job", label: t("job"), class: "name", cell: (one) => jobLink(one.namespace, one.name, one.job) },
      { name: "state", label: t("state"), class: "is", cell: (one) => state(one.state) },
      places ? { name: "place", label: t("place.column"), class: "place", cell: (one) => one.place ?? "–" } : null,
      { name: "worker", label: t("worker"), class: "at", cell: (one) => workerLink(one.cluster) },
      { name: "queue", label: t("queue"), class: "queue", cell: (one) => queueLink(one.clusterQueue) },
      { name: "since", label: t("since"), class: "since", cell: since },
      { label: t("reason"), class: "words", cell: (one) => one.reason ?? "", title: (one) => one.reason },
    ].filter(Boolean);
    for (const one of made) one.sorted = one.name ? (one.name === sort ? "ascending" : `-${one.name}` === sort ? "descending" : "none") : null;
    return made;
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
    const button = (label, to) => el("button", { type: "button", disabled: to < 0 || to >= most, onclick: () => { this.page = to; this.soon(); } }, label);
    this.pages.replaceChildren(button(t("previous"), this.page - 1), ` ${this.page + 1} / ${most} `, button(t("next"), this.page + 1));
  }
}
