// Workers with quota, use and backlog; queues; moves. And one worker or queue, with its jobs.
import * as api from "./api.js";
import { again } from "./again.js";
import { address, amount, bar, el, findings, jobLink, lasts, queueLink, reading, replace, table, time, workerLink } from "./elements.js";
import { showJobs } from "./jobs.js";
import { t } from "./texts.js";
import { Picture } from "./time.js";

const EVERY = 5;

export async function showFleet(content, signal) {
  const body = el("div", {}, reading());
  content.append(el("h1", {}, t("fleet")), body);
  await follow(body, signal, (status) => {
    const { workers = [], queues = [], moves = [], notChecked } = status;
    return [
      notChecked ? el("p", { class: "soft" }, t("unread", notChecked)) : null,
      table(t("workers", workers.length), workerColumns(), [...workers].sort((a, b) => trouble(b) - trouble(a) || full(b) - full(a))),
      table(t("queues", queues.length), queueColumns(), queues),
      moves.length ? table(t("moves", moves.length), moveColumns(), moves) : null,
    ];
  });
}

/** Show the fleet again and again; who may not see it is told that, and where their jobs are. */
const follow = (body, signal, parts) => again(signal, async () => {
  const { status } = await api.fleet(signal).catch((error) => {
    if (error.code === 403) replace(body, el("p", {}, t("fleet.forbidden")), el("a", { href: "#/jobs" }, t("jobs")));
    throw error;
  });
  replace(body, parts(status));
}, EVERY);

/** One worker: what it says, its last hour, and its jobs. */
export async function showWorker(content, name, query, signal) {
  const body = el("div", {}, reading()), picture = new Picture({ worker: name });
  content.append(el("h1", {}, name), body, picture.shown);
  const jobs = el("div", {});
  content.append(jobs);
  query.set("worker", name);
  const seen = (status) => {
    const worker = status.workers.find((one) => one.name === name);
    return worker ? table(t("worker"), workerColumns(), [worker]) : el("p", {}, t("no.worker"));
  };
  await Promise.all([follow(body, signal, seen), picture.follow(signal), showJobs(jobs, query, signal, true)]);
}

/** One queue: its figures, and its jobs with their places. */
export async function showQueue(content, name, query, signal) {
  const body = el("div", {}, reading()), jobs = el("div", {});
  content.append(el("h1", {}, name), body, jobs);
  query.set("queue", name);
  const seen = (status) => table(t("queue"), queueColumns(), (status.queues ?? []).filter((one) => one.name === name));
  await Promise.all([follow(body, signal, seen), showJobs(jobs, query, signal, true)]);
}

const health = (one) => one.state === "Unknown" ? ["wait", "unknown"] : one.cordoned ? ["wait", "cordoned"] : one.reachable ? ["good", "reachable"] : ["bad", "unreachable"];
const trouble = (one) => ({ good: 0, wait: 1, bad: 2 })[health(one)[0]];

/** The share of what a worker has most of in use. */
const full = (one) => Math.max(0, ...(one.quota ?? []).flatMap((use) => use.flavors ?? []).map((flavor) => {
  const most = amount(flavor.nominal);
  return most ? (flavor.ours == null ? amount(flavor.used) : amount(flavor.ours) + amount(flavor.others)) / most : 0;
}));

const workerColumns = () => [
  { label: t("worker"), class: "name", cell: (one) => workerLink(one.name) },
  { label: t("health"), class: "words", cell: (one) => {
    const [kind, text] = health(one);
    return el("span", {}, el("span", { class: `state ${kind}` }, t(text)), " ", one.since ? lasts(one.since) : null,
      one.reason || one.notChecked ? el("div", { class: "soft" }, one.reason || one.notChecked) : null,
      one.findings?.length ? el("ul", { class: "needs" }, findings(one.findings)) : null);
  } },
  { label: t("use"), class: "bars", cell: (one) => (one.quota ?? []).flatMap((use) =>
    (use.flavors ?? []).map((flavor) => quotaBar(use.flavors.length > 1 ? `${use.resource} · ${flavor.name}` : use.resource, flavor))) },
  { label: t("jobs"), class: "short", cell: (one) => el("a", { href: address(["jobs"], { worker: one.name, state: "Starting,Running,Lost" }) }, t("run.of", one.running ?? 0)) },
  { label: t("backlog"), class: "short", cell: (one) => `${one.ownBacklog ?? "?"} + ${one.othersBacklog ?? "?"}` },
  { label: t("same"), cell: (one) => lasts(one.readAt) },
  { label: "Kueue", class: "short", cell: (one) => one.kueueVersion || "–" },
  { label: t("cost"), cell: (one) => one.cost ?? "–" },
];

function quotaBar(name, { used, nominal, ours, others }) {
  const most = amount(nominal), own = amount(ours), rest = amount(others);
  const words = ours == null ? `${name} ${used}/${nominal}` : t("quota.of", name).replace("{ours}", ours).replace("{others}", others).replace("{total}", nominal);
  return el("span", { class: "quota" }, most ? bar(words, ["ours", own / most], ["others", rest / most]) : null, words);
}

const queueColumns = () => [
  { label: t("queue"), class: "name", cell: (one) => queueLink(one.name) },
  { label: t("waiting"), cell: (one) => one.waiting ?? "–" },
  { label: t("running"), cell: (one) => one.running ?? "–" },
  { label: t("oldest"), cell: (one) => lasts(one.oldestWaiting) },
  { label: t("throughput"), cell: (one) => one.endedLastHour ?? "–" },
];

const moveColumns = () => [
  { label: t("job"), cell: (one) => one.namespace ? jobLink(one.namespace, one.job.replace("/", "."), one.job) : one.job },
  { label: t("from"), cell: (one) => workerLink(one.from) },
  { label: t("to"), cell: (one) => workerLink(one.to) },
  { label: t("when"), cell: (one) => time(one.at) },
  { label: t("reason"), class: "words", cell: (one) => one.reason ?? "" },
];
