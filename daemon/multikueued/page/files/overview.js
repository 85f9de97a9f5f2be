// The first page: what needs somebody, how many jobs do what, how full the fleet is, who waits how long.
import * as api from "./api.js";
import { again } from "./again.js";
import { address, bar, command, copied, el, findings, jobLink, lasts, queueLink, reading, replace, since, span, state, svg, table, time } from "./elements.js";
import { t } from "./texts.js";

export async function showOverview(content, query, signal) {
  const body = el("div", {}, reading());
  content.append(el("h1", {}, t("overview")), body);
  const known = api.namespaces(signal).catch(api.absent(signal, []));
  known.catch(() => {}); // what fails is told by what follows
  let namespace = query.get("namespace") ?? "";
  await again(signal, async () => {
    const { status } = await api.overview(namespace, signal).catch(async (error) => {
      if (error.code === 404) replace(body, el("p", {}, t("older")));
      const namespaces = error.code === 403 && !namespace ? await known : [];
      if (!namespaces.length) throw error;
      [namespace] = namespaces; // who may not see the fleet sees what is theirs
      return api.overview(namespace, signal);
    });
    replace(body, choice(await known, namespace), parts(status, namespace));
    return status.every;
  });
}

/** One line on whose jobs these are, and a way to those of another namespace. */
const choice = (namespaces, chosen) => el("p", { class: "soft" }, chosen ? t("only", chosen) : t("whole"),
  namespaces.length < 2 && !chosen ? null : namespaces.slice(0, 20).flatMap((one) =>
    [" · ", one === chosen ? el("strong", {}, one) : el("a", { href: address(["overview"], { namespace: one }) }, one)]));

function parts(status, namespace) {
  return [
    status.notChecked ? el("p", { class: "soft" }, t("unread", status.notChecked)) : null,
    el("h2", {}, t("needs")), needs(status),
    el("h2", {}, t("jobs")), tiles(status, namespace),
    status.use.length ? el("h2", {}, t("full")) : null, status.use.length ? use(status.use) : null,
    table(t("waits"), waitColumns(namespace), status.waits),
    el("p", { class: "soft" }, t("read.at", new Date(status.readAt).toLocaleTimeString())),
  ];
}

function needs({ findings: found, troubled, troubledInAll }) {
  if (!found.length && !troubled.length) return el("p", { class: "good" }, t("nobody"));
  const jobs = troubled.map((one) => el("li", {}, el("span", {}, state(one.state), " ", jobLink(one.namespace, one.name, one.job), ` ${one.namespace} `, since(one)),
    one.reason ? el("div", { class: "soft" }, one.reason) : null, copied(command("explain", one.job, one.namespace))));
  const more = troubledInAll > troubled.length ? el("li", { class: "soft" }, t("more", troubledInAll - troubled.length)) : null;
  return el("ul", { class: "needs" }, findings(found), jobs, more);
}

const TILES = [["running", "good", "Starting,Running,Lost"], ["waiting", "busy", "Queued,Offered,Retrying"], ["held", "wait", "Waiting"], ["failedLastHour", "bad", "Failed", "failed"]];

function tiles({ jobs, history }, namespace) {
  const made = TILES.map(([name, kind, states, line = name]) => el("a", { class: "tile", href: address(["jobs"], { state: states, namespace }) },
    el("span", { class: `figure ${kind}` }, jobs[name]), " ", el("span", {}, t(`tile.${name}`)), trend(history[line], kind)));
  const kept = history.running?.length > 1 ? t("history", span((history.running.length - 1) * history.step)) : history.since ? t("history.begins") : t("no.history");
  return el("div", {}, el("div", { class: "tiles" }, made), el("p", { class: "soft" }, kept));
}

/** A line of the last hours; its greatest value stands at its top. */
function trend(values = [], kind) {
  if (values.length < 2) return svg("svg", { class: "trend", viewBox: "0 0 100 30", "aria-hidden": "true" });
  const most = Math.max(1, ...values), step = 100 / (values.length - 1);
  const points = values.map((one, at) => `${(at * step).toFixed(1)},${(28 - one / most * 26).toFixed(1)}`).join(" ");
  return svg("svg", { class: "trend", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": t("trend", most) },
    svg("polyline", { class: kind, points }));
}

/** How full: ours, others' and free, by resource and flavor. */
function use(lines) {
  const several = new Set(lines.map((one) => one.flavor)).size > 1;
  const key = el("p", { class: "key" }, ["ours", "others", "free"].map((one) => el("span", { class: `key-${one}` }, t(one))));
  return el("div", {}, key, el("div", { class: "uses" }, lines.map((one) => {
    const name = several ? `${one.resource} · ${one.flavor}` : one.resource;
    const words = t("use.of", name).replace("{ours}", one.ours).replace("{others}", one.others).replace("{total}", one.total);
    return el("div", { class: "use" }, el("span", { class: "name" }, name), bar(words, ["ours", one.shares[0]], ["others", one.shares[1]]),
      el("span", { class: "soft" }, words.slice(name.length + 2), one.readAt ? [" · ", t("others.read"), " ", time(one.readAt)] : null));
  })));
}

const waitColumns = (namespace) => [
  { label: t("queue"), cell: (one) => namespace ? one.queue || "–" : queueLink(one.queue) },
  { label: t("waiting.now"), cell: (one) => one.waiting || "–" },
  { label: t("oldest"), cell: (one) => lasts(one.oldest) },
  { label: t("started"), cell: (one) => one.started || "–" },
  { label: t("p50"), cell: (one) => one.p50 == null ? "–" : span(one.p50) },
  { label: t("p90"), cell: (one) => one.p90 == null ? "–" : span(one.p90) },
];
