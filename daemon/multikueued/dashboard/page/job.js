// One job: where it is and why, its time line, what happens next, its events and logs.
import * as api from "./api.js";
import { el, state, table, time } from "./elements.js";
import { pause } from "./fleet.js";
import { notice, told } from "./notice.js";
import { t } from "./texts.js";

const EVERY = 5_000;
const LINES = 2_000;

export async function showJob(content, namespace, name, signal) {
  const body = el("div", {}, el("p", { class: "soft" }, t("reading")));
  const log = new Log(namespace, name, signal);
  content.append(el("h1", {}, `${namespace}/${name}`), body, log.shown);
  for (;;) {
    try {
      const [job, why, events] = await Promise.all([
        api.job(namespace, name, "", signal),
        api.job(namespace, name, "explain", signal).catch(absent(signal)),
        api.job(namespace, name, "events", signal).catch(absent(signal)),
      ]);
      body.replaceChildren(...parts(job, why, events));
      notice("");
    } catch (error) {
      if (signal.aborted) return;
      notice(error.code === 404 ? t("no.job") : told(error));
    }
    await pause(EVERY, signal);
  }
}

const absent = (signal) => (error) => {
  if (signal.aborted || error.code === 0) throw error;
  return null;
};

function parts(job, why, events) {
  const { status } = job;
  const made = [el("p", {}, state(status.state), " ", status.cluster ? el("strong", {}, status.cluster) : null, " ", time(status.since))];
  if (status.reason) made.push(el("p", {}, status.reason));
  if (why?.summary) made.push(el("p", {}, why.summary));
  if (why?.place || why?.start) made.push(el("p", {}, t("place", [why.place, why.start].filter(Boolean).join(" · "))));
  for (const finding of why?.findings ?? []) made.push(el("p", { class: finding.blocking ? "bad" : "wait" }, finding.why, finding.remedy ? el("pre", {}, finding.remedy) : null));
  const next = why?.next ?? status.next ?? [];
  if (next.length) made.push(el("h2", {}, t("then")), el("ul", {}, next.map((one) => el("li", {}, one.text, " ", one.at ? time(one.at) : null))));
  made.push(el("h2", {}, t("line")), line(job));
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
    if (one.until) points.push({ at: one.until, text: t("left", `${one.cluster}${one.reason ? `: ${one.reason}` : ""}`) });
  }
  points.push({ at: status.since, text: t(`state.${status.state}`, "", status.state) + (status.cluster ? ` · ${status.cluster}` : "") });
  points.sort((a, b) => ((a.at ?? "") < (b.at ?? "") ? -1 : 1));
  return el("ol", { class: "line" }, points.map((one) => el("li", {}, time(one.at), one.text)));
}

const answerColumns = () => [
  { label: t("worker"), cell: (one) => one.worker },
  { label: t("state"), cell: (one) => one.state },
  { label: t("reason"), words: true, cell: (one) => one.told },
];

const eventColumns = () => [
  { label: t("when"), cell: (one) => time(one.last) },
  { label: t("type"), cell: (one) => one.type },
  { label: t("reason"), cell: (one) => one.reason },
  { label: t("message"), words: true, cell: (one) => one.note },
];

/** The log, once somebody asks for it; the last lines only. */
class Log {
  constructor(namespace, name, signal) {
    this.text = el("pre", { tabindex: "0", "aria-label": t("logs"), hidden: true });
    this.button = el("button", { type: "button", onclick: () => this.read(namespace, name, signal) }, t("logs.show"));
    this.shown = el("section", {}, el("h2", {}, t("logs")), this.button, this.text);
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
