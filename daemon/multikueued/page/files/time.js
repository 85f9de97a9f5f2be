// A picture of time: jobs as bars by worker, from a minute to a day. A move is a line from one bar to the next.
import * as api from "./api.js";
import { again } from "./again.js";
import { ENDED, address, el, replace, span, svg } from "./elements.js";
import { t } from "./texts.js";

const SPANS = [60, 300, 900, 3600, 6 * 3600, 86400];
const ROW = 14, BAR = 10, HEAD = 20, LABELS = 92, RIGHT = 4, TICK = 90;
const DRAG = 5, LEAST = 10; // pixels that are no click; seconds
const WAITING = 40; // rows of those that wait, thin ones: it is how many that tells, and they have no worker to say

export async function showTime(content, query, signal) {
  const picture = new Picture({ seconds: query.get("seconds") ?? "", until: query.get("until") ?? "", worker: query.get("worker") ?? "",
    queue: query.get("queue") ?? "" }, query.get("namespace"), true);
  content.append(el("h1", {}, t("time")), picture.shown);
  await picture.follow(signal);
}

/** The picture of `chosen` (seconds, until, worker, queue) with what chooses the span; it reads itself. */
export class Picture {
  constructor(chosen, namespace = null, shared = false) {
    this.chosen = { seconds: "", until: "", ...chosen };
    this.namespace = namespace;
    this.shared = shared;
    this.fitting = SPANS[3];
    this.body = el("div", { class: "picture" });
    this.control = el("p", { class: "spans" });
    this.shown = el("section", { "aria-label": t("time") }, this.control, this.body);
    this.drawn = null;
    this.dragged = false;
    this.offer();
    this.choosing();
  }

  /** A span is chosen by dragging over it, or by two fingers; the buttons do the same for a keyboard. */
  choosing() {
    const x = (event) => Math.min(Math.max(event.clientX - this.body.getBoundingClientRect().left, LABELS), this.drawn.width - RIGHT);
    const at = (place) => this.drawn.first + (place - LABELS) / (this.drawn.width - LABELS - RIGHT) * (this.drawn.last - this.drawn.first);
    const fingers = new Map(); // by pointer: where it is, and the moment that it holds
    let from = null, mark = null;
    const end = (event) => { mark?.remove(); [from, mark] = [null, null]; fingers.delete(event.pointerId); };
    const on = (name, act) => this.body.addEventListener(name, act, name === "click");
    on("pointerdown", (event) => {
      if (!this.drawn || event.button !== 0) return;
      if (!fingers.size) this.dragged = false;
      if (event.pointerType !== "touch") return from = x(event);
      if (fingers.size < 2) fingers.set(event.pointerId, { x: x(event) });
      if (fingers.size < 2) return;
      this.dragged = true;
      for (const [id, finger] of fingers) { this.body.setPointerCapture(id); finger.at = at(finger.x); }
    });
    on("pointermove", (event) => {
      if (fingers.has(event.pointerId)) {
        fingers.get(event.pointerId).x = x(event);
        return fingers.size === 2 && this.show(...held(...fingers.values(), this.drawn.width));
      }
      if (from === null || (!mark && Math.abs(x(event) - from) < DRAG)) return;
      if (!mark) {
        this.dragged = true;
        this.body.setPointerCapture(event.pointerId);
        this.body.querySelector("svg").append(mark = svg("rect", { class: "chosen", y: HEAD - 4, height: "100%" }));
      }
      mark.setAttribute("x", Math.min(from, x(event)));
      mark.setAttribute("width", Math.abs(x(event) - from));
    });
    const chosen = (event) => {
      if (fingers.size === 2) return fingers.has(event.pointerId) ? [this.drawn.first, this.drawn.last] : []; // a third
      return mark ? [from, x(event)].sort((a, b) => a - b).map(at) : [];
    };
    const up = (event) => {
      const [first, last] = chosen(event);
      end(event);
      if (first) this.choose({ seconds: Math.max(LEAST, Math.round(last - first)), until: later(Math.round(last), 0) });
    };
    on("pointerup", up);
    on("pointercancel", (event) => fingers.size === 2 ? up(event) : end(event));
    on("dragstart", (event) => event.preventDefault()); // bars are links
    on("click", (event) => { if (this.dragged) { event.preventDefault(); event.stopPropagation(); } });
    this.isChoosing = () => from !== null || fingers.size > 1;
  }

  /** Another span, of the jobs that are known already. */
  show(first, last) {
    this.drawn = { ...this.drawn, first, last };
    const [begin, end] = [first, last].map((at) => new Date(at * 1000).toISOString());
    this.body.querySelector("svg").replaceWith(draw({ ...this.status, begin, end }, this.drawn.width));
  }

  offer() {
    const { until } = this.chosen, seconds = this.chosen.seconds || this.fitting, step = seconds / 2, end = until || Date.now() / 1000;
    const button = (label, pressed, change, name = label) =>
      el("button", { type: "button", "aria-pressed": pressed, "aria-label": name, onclick: () => this.choose(change) }, label);
    replace(this.control, button(t("all"), String(!this.chosen.seconds), { seconds: "" }),
      SPANS.map((one) => button(span(one), String(one === Number(this.chosen.seconds)), { seconds: one })), " ",
      button("<", null, { seconds: Math.round(2 * step), until: Math.round(end - step) }, t("earlier")),
      button(">", null, { seconds: Math.round(2 * step), until: later(end, step) }, t("later")),
      button(t("now"), String(!until), { until: "" }));
  }

  choose(change) {
    Object.assign(this.chosen, change);
    this.offer();
    if (this.shared) history.replaceState(null, "", address(["time"], { ...this.chosen, namespace: this.namespace }));
    this.read?.().catch(() => {}); // what fails is told with the next turn
  }

  /** As long as nobody has chosen a span: all of the jobs. */
  fit(status) {
    const end = Date.parse(status.end) / 1000, first = Math.min(end, ...status.jobs.map((one) => Date.parse(one.created) / 1000));
    this.fitting = Math.min(SPANS.at(-1), Math.max(20, (end - first) * 1.05));
    status.begin = new Date((end - this.fitting) * 1000).toISOString();
  }

  async follow(signal) {
    this.read = async () => {
      const query = Object.entries({ ...this.chosen, seconds: this.chosen.seconds || SPANS.at(-1) }).filter(([, value]) => value !== "");
      const { status } = await api.timeline(this.namespace ?? "", query, signal).catch(async (error) => {
        if (error.code !== 403 || this.namespace != null) throw error;
        this.namespace = (await api.namespaces(signal))[0] ?? ""; // who may not list all jobs sees what is theirs
        return api.timeline(this.namespace, query, signal);
      });
      if (!this.chosen.seconds) this.fit(status);
      if (this.isChoosing()) return status.every;
      const width = this.body.clientWidth || 800;
      this.status = status;
      this.drawn = { first: Date.parse(status.begin) / 1000, last: Date.parse(status.end) / 1000, width };
      replace(this.body, draw(status, width), key(status));
      return status.every;
    };
    await again(signal, this.read);
  }
}

/** The span in which two fingers hold their moments, wherever they are: they draw it apart, or along. */
function held(one, other, width) {
  const [left, right] = [one, other].sort((a, b) => a.at - b.at), inner = width - LABELS - RIGHT;
  const each = (right.at - left.at) / Math.max(1, right.x - left.x), seconds = Math.min(Math.max(each * inner, LEAST), SPANS.at(-1));
  const middle = (left.at + right.at) / 2, share = ((left.x + right.x) / 2 - LABELS) / inner;
  const last = Math.min(middle + (1 - share) * seconds, Date.now() / 1000);
  return [last - seconds, last];
}

const later = (end, step) => end + step >= Date.now() / 1000 ? "" : Math.round(end + step);

const key = ({ jobs, inAll }) => el("p", { class: "key" }, ["queued", "offered", "runs", "done", "failed", "moved"].map((one) =>
  el("span", { class: `key-${one}` }, t(`bar.${one}`))), jobs.length < inAll ? t("bars", `${jobs.length} / ${inAll}`) : null, el("span", { class: "hint" }, t(matchMedia("(pointer: coarse)").matches ? "pinch" : "drag")));

/** The parts of a job's life, in the order of time: {kind, worker, from, to}; times in seconds. */
export function segments(job, now) {
  const at = (text) => Date.parse(text) / 1000, made = [], ended = ENDED.includes(job.state);
  let from = at(job.created);
  for (const place of job.placements ?? []) {
    const begin = at(place.since), lasts = !place.until, to = lasts ? now : at(place.until);
    if (begin > from) made.push({ kind: "queued", worker: "", from, to: begin });
    const last = place === job.placements.at(-1);
    const kind = last && ended ? (job.state === "Failed" ? "failed" : "done") : lasts ? (job.state === "Lost" ? "failed" : "runs") : "moved";
    made.push({ kind, worker: place.cluster, from: begin, to, reason: place.reason });
    from = to;
  }
  if (!ended && (job.placements?.at(-1)?.until || !job.placements?.length)) {
    const offered = job.state === "Offered" ? Math.max(from, at(job.since)) : now;
    if (offered > from) made.push({ kind: "queued", worker: "", from, to: offered });
    if (offered < now) made.push({ kind: "offered", worker: "", from: offered, to: now });
  }
  return made;
}

/** The picture: a band for each worker, in it as many rows as jobs at a time; below them those that wait. */
export function draw({ begin, end, jobs }, width) {
  const [first, last] = [Date.parse(begin) / 1000, Date.parse(end) / 1000];
  const x = (at) => LABELS + (Math.min(Math.max(at, first), last) - first) / (last - first) * (width - LABELS - RIGHT);
  const lives = jobs.map((job) => segments(job, last).filter((one) => one.to >= first && one.from <= last).map((one) => ({ ...one, job })));
  const every = lives.flat().sort((a, b) => a.from - b.from), made = [];
  let top = HEAD;
  for (const name of [...new Set(every.map((one) => one.worker))].sort((a, b) => !a - !b || (a < b ? -1 : 1))) {
    const rows = [], height = name ? ROW : ROW / 2;
    made.push(svg("line", { class: "band", x1: 0, x2: width, y1: top, y2: top }), label(name, top));
    for (const one of every.filter((part) => part.worker === name)) {
      const row = rowFor(rows, one, (last - first) / 400);
      Object.assign(one, { y: top + 4 + (name ? row : row % WAITING) * height, height: height - 4 });
    }
    top += Math.max(ROW, (name ? rows.length : Math.min(rows.length, WAITING)) * height) + 8;
  }
  const lines = ticks(first, last, width).map(([at, words]) =>
    [svg("line", { class: "tick", x1: x(at), x2: x(at), y1: HEAD - 4, y2: top }), svg("text", { class: "soft", x: x(at) + 3, y: 12 }, words)]);
  const moves = lives.flatMap((parts) => parts.filter((one) => one.worker).flatMap((one, at, placed) => at ? moved(placed[at - 1], one, x) : []));
  return svg("svg", { class: "time", width, height: top + 4, role: "group", "aria-label": t("time.of", jobs.length) },
    lines.flat(), made, every.map((one) => piece(one, x)), moves);
}

/** The first row of a band that is free by then; a bar is at least as long as can be seen. */
function rowFor(rows, one, least) {
  let row = rows.findIndex((until) => until <= one.from);
  if (row < 0) row = rows.length;
  rows[row] = Math.max(one.to, one.from + least);
  return row;
}

const label = (name, top) => name
  ? svg("a", { href: address(["workers", name]) }, svg("text", { x: 0, y: top + 14 }, name.length > 13 ? `${name.slice(0, 12)}…` : name, svg("title", {}, name)))
  : svg("text", { class: "soft", x: 0, y: top + 14 }, t("no.worker.yet"));

function piece({ kind, worker, from, to, job, reason, y, height }, x) {
  const words = `${job.job} ${job.namespace}: ${t(`bar.${kind}`)}${worker ? ` · ${worker}` : ""} · ${span(to - from)}${reason ? ` · ${reason}` : ""}`;
  return svg("a", { href: address(["jobs", job.namespace, job.name]), "aria-label": words },
    svg("rect", { class: kind, x: x(from), y, width: Math.max(2, x(to) - x(from)), height, rx: 2 }, svg("title", {}, words)));
}

/** From the worker that a job has left to the one that it has next. */
function moved(before, next, x) {
  const [from, to, above, below] = [x(before.to), x(next.from), before.y + BAR / 2, next.y + BAR / 2], bend = Math.max(12, (to - from) / 2);
  return [svg("path", { class: "line-moved", d: `M${from} ${above} C${from + bend} ${above} ${to - bend} ${below} ${to} ${below}` }),
    svg("path", { class: "line-moved", d: `M${to - 5} ${below - 4} L${to} ${below} L${to - 5} ${below + 4}` })];
}

/** A few moments that people would choose, with their words. */
function ticks(first, last, width) {
  const step = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200].find((one) => (last - first) / one <= Math.max(1, (width - LABELS) / TICK / 1.6)) ?? 86400;
  const zone = new Date(first * 1000).getTimezoneOffset() * 60, made = [];
  for (let at = Math.ceil((first - zone) / step) * step + zone; at <= last; at += step) {
    const words = new Date(at * 1000).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", ...(step < 60 ? { second: "2-digit" } : {}), hour12: false });
    if (at < last - (last - first) / 12) made.push([at, words]);
  }
  return made;
}

/** The line of one job alone, from its creation on. */
export function lifeOf(job, width) {
  const { metadata, status } = job, end = ENDED.includes(status.state) ? status.since : new Date().toISOString();
  const one = { ...status, namespace: metadata.namespace, name: metadata.name, created: metadata.creationTimestamp };
  const least = Date.parse(one.created) + 1000;
  return draw({ begin: one.created, end: new Date(Math.max(least, Date.parse(end))).toISOString(), jobs: [one] }, width);
}

