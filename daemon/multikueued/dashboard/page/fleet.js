// Workers with quota, use and backlog; queues; moves. Read again every 10 s while it is seen.
import * as api from "./api.js";
import { bar, el, table, time } from "./elements.js";
import { notice, told } from "./notice.js";
import { t } from "./texts.js";

const EVERY = 10_000;

export async function showFleet(content, signal) {
  const body = el("div", {}, el("p", { class: "soft" }, t("reading")));
  content.append(el("h1", {}, t("fleet")), body);
  for (;;) {
    try {
      if (!document.hidden) draw(body, await api.fleet(signal));
      notice("");
    } catch (error) {
      if (signal.aborted) return;
      notice(told(error));
      if (error.code === 403) return body.replaceChildren(el("p", {}, t("fleet.forbidden")), el("a", { href: "#/jobs" }, t("jobs")));
    }
    await pause(EVERY, signal);
  }
}

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

function draw(body, fleet) {
  const { workers = [], queues = [], moves = [], notChecked } = fleet.status;
  const parts = [notChecked ? el("p", { class: "soft" }, t("unread", notChecked)) : null, table(t("workers", workers.length), workerColumns(), workers), table(t("queues", queues.length), queueColumns(), queues)];
  if (moves.length) parts.push(table(t("moves", moves.length), moveColumns(), moves));
  const focused = body.contains(document.activeElement);
  if (!focused) body.replaceChildren(...parts.filter(Boolean));
}

const health = (one) => one.state === "Unknown" ? ["wait", "unknown"] : one.cordoned ? ["wait", "cordoned"] : one.reachable ? ["good", "reachable"] : ["bad", "unreachable"];

const workerColumns = () => [
  { label: t("worker"), cell: (one) => el("strong", {}, one.name) },
  { label: t("health"), words: true, cell: (one) => {
    const [kind, text] = health(one);
    return el("span", {}, el("span", { class: `state ${kind}` }, t(text)), " ", time(one.since),
      one.reason || one.notChecked ? el("div", { class: "soft" }, one.reason || one.notChecked) : null,
      (one.findings ?? []).map((found) => el("div", { class: "soft" }, found.why)));
  } },
  { label: t("use"), cell: (one) => (one.quota ?? []).flatMap((use) => [bar(use.resource, use.used, use.nominal), flavors(use)]) },
  { label: t("backlog"), cell: (one) => t("backlog.of", `${one.ownBacklog ?? "?"} / ${one.othersBacklog ?? "?"}`) },
  { label: t("read"), cell: (one) => time(one.readAt) },
  { label: "Kueue", cell: (one) => one.kueueVersion || t("unknown") },
  { label: t("cost"), cell: (one) => one.cost ?? "–" },
];

/** By flavor, where there are several. */
const flavors = ({ flavors: found = [] }) => found.length < 2 ? null
  : el("div", { class: "soft" }, found.map((one) => `${one.name} ${one.used}/${one.nominal}`).join(", "));

const queueColumns = () => [
  { label: t("queue"), cell: (one) => el("strong", {}, one.name) },
  { label: t("waiting"), cell: (one) => one.waiting ?? "–" },
  { label: t("running"), cell: (one) => one.running ?? "–" },
  { label: t("oldest"), cell: (one) => time(one.oldestWaiting) },
  { label: t("throughput"), cell: (one) => one.endedLastHour ?? "–" },
];

const moveColumns = () => [
  { label: t("job"), cell: (one) => one.job },
  { label: t("from"), cell: (one) => one.from },
  { label: t("to"), cell: (one) => one.to || "–" },
  { label: t("when"), cell: (one) => time(one.at) },
  { label: t("reason"), words: true, cell: (one) => one.reason ?? "" },
];
