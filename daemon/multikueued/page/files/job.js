// One job: where it is and why, its time line, what happens next, its events and logs.
import * as api from "./api.js";
import { again } from "./again.js";
import { ENDED, address, command, copied, el, findings, queueLink, reading, replace, since, state, table, time, workerLink } from "./elements.js";
import { notice, told } from "./notice.js";
import { t } from "./texts.js";
import { lifeOf } from "./time.js";

const LINES = 2_000;

export async function showJob(content, namespace, name, signal) {
  const body = el("div", {}, reading()), heading = el("h1", {}, name);
  const log = new Log(namespace, name, signal);
  content.append(heading, body, log.shown);
  await again(signal, async () => {
    const [job, why, events] = await Promise.all([
      api.job(namespace, name, "", signal),
      api.job(namespace, name, "explain", signal).catch(api.absent(signal)),
      api.job(namespace, name, "events", signal).catch(api.absent(signal)),
    ]).catch((error) => { throw error.code === 404 ? new api.ApiError(410, t("no.job")) : error; });
    heading.textContent = job.status.job || name;
    replace(body, parts(job, why, events, body.clientWidth));
    log.offer(job);
  });
}

function parts(job, why, events, width) {
  const { metadata, status } = job, waits = why?.job ?? {};
  const made = [
    el("p", {}, state(status.state), " ", since(status), " · ", t("namespace"), " ", el("a", { href: address(["jobs"], { namespace: metadata.namespace }) }, metadata.namespace),
      status.cluster ? [" · ", t("worker"), " ", workerLink(status.cluster)] : null,
      status.clusterQueue ? [" · ", t("queue"), " ", queueLink(status.clusterQueue), status.queue ? ` (${status.queue})` : null] : null),
    copied(command("explain", status.job, metadata.namespace)),
  ];
  if (why?.summary) made.push(el("p", {}, why.summary));
  if (status.reason && status.reason !== why?.summary) made.push(el("p", { class: "soft" }, status.reason));
  if (waits.place) made.push(el("p", {}, t("place", waits.place), waits.startEarliest ? [" · ", t("starts"), " ", time(waits.startEarliest), " – ", time(waits.startLatest)] : null));
  if (why?.findings?.length) made.push(el("ul", { class: "needs" }, findings(why.findings)));
  const next = why?.next ?? status.next ?? [];
  if (next.length) made.push(el("h2", {}, t("then")), el("ul", {}, next.map((one) => el("li", {}, one.text, " ", one.at ? time(one.at) : null))));
  made.push(el("h2", {}, t("line")), metadata.creationTimestamp ? lifeOf(job, width || 800) : null, line(job));
  if (why?.workers?.length) made.push(table(t("answers"), answerColumns(), why.workers));
  if (events?.items.length) made.push(table(t("events"), eventColumns(), events.items));
  return made;
}

/** Created, each place that had it, and where it is now: in the order of time. */
function line(job) {
  const { metadata, status } = job;
  const points = [{ at: metadata.creationTimestamp, text: t("created") }];
  for (const one of status.placements ?? []) {
    points.push({ at: one.since, text: t("placed", one.cluster) });
    if (one.until && !(ENDED.includes(status.state) && one === status.placements.at(-1))) points.push({ at: one.until, text: t("left", `${one.cluster}${one.reason ? `: ${one.reason}` : ""}`) });
  }
  points.push({ at: status.since, text: t(`state.${status.state}`, "", status.state) + (status.cluster ? ` · ${status.cluster}` : "") });
  points.sort((a, b) => ((a.at ?? "") < (b.at ?? "") ? -1 : 1));
  return el("ol", { class: "line" }, points.map((one) => el("li", {}, time(one.at), one.text)));
}

const answerColumns = () => [
  { label: t("worker"), cell: (one) => workerLink(one.worker) },
  { label: t("state"), cell: (one) => one.state },
  { label: t("reason"), class: "words", cell: (one) => one.told },
];

const eventColumns = () => [
  { label: t("when"), cell: (one) => time(one.last) },
  { label: t("type"), cell: (one) => one.type },
  { label: t("reason"), cell: (one) => one.reason },
  { label: t("message"), class: "words", cell: (one) => one.note },
];

/** The log, once somebody asks for it; the last lines only. */
class Log {
  constructor(namespace, name, signal) {
    this.text = el("pre", { tabindex: "0", "aria-label": t("logs"), hidden: true });
    this.command = el("div");
    this.button = el("button", { type: "button", onclick: () => this.read(namespace, name, signal) }, t("logs.show"));
    this.shown = el("section", {}, el("h2", {}, t("logs")), this.command, this.button, this.text);
  }

  /** The command that shows the same. */
  offer({ metadata, status }) {
    if (!this.command.firstChild) this.command.append(copied(command("logs", status.job, metadata.namespace)) ?? "");
  }

  async read(namespace, name, signal) {
    this.button.disabled = true;
    this.text.hidden = false;
    this.text.replaceChildren();
    try {
      for await (const one of api.logLines(namespace, name, signal)) {
        this.text.append(`${one}\n`);
        if (this.text.childNodes.length > LINES) this.text.firstChild.remove();
      }
    } catch (error) {
      if (!signal.aborted) notice(told(error));
    }
    this.button.disabled = false;
  }
}
