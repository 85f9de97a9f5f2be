// Elements, made of texts only: nothing that comes from outside is ever read as HTML.
import { t } from "./texts.js";

/** An element with attributes and children; a child that is no node is text. */
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);

/** The same for a picture. */
export const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((one) => one != null && one !== "").map((one) => one instanceof Node ? one : String(one)));
  return made;
}

/** What stands where nothing has been read yet; not below a notice, which says why nothing is. */
export const reading = () => el("p", { class: "soft reading" }, t("reading"));

/** Show other children. What has the focus keeps it, by its address or name; a text that is being chosen stays. */
export function replace(body, ...children) {
  const held = document.activeElement, key = body.contains(held) ? keyOf(held) : "";
  if (!getSelection().isCollapsed && body.contains(getSelection().anchorNode)) return;
  body.replaceChildren(...children.flat().filter(Boolean));
  if (key) [...body.querySelectorAll("a, button, [tabindex]")].find((one) => keyOf(one) === key)?.focus({ preventScroll: true });
}

const keyOf = (one) => one.getAttribute("href") || one.getAttribute("aria-label") || one.textContent;

/** A table of columns {label, cell(row), class?, sort?}; `caption` says what it shows. On a small screen each row is a
 * card, or with `form` "two" has two lines. */
export function table(caption, columns, rows, form = "cards", heading = (one) => one.label) {
  const head = el("tr", {}, columns.map((one) => el("th", { scope: "col", class: one.class, "aria-sort": one.sorted }, heading(one))));
  const body = rows.map((row) => el("tr", {}, columns.map((one) =>
    el("td", { "data-label": one.label, class: one.class }, el("span", { title: one.title?.(row) }, one.cell(row))))));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: form }, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)));
}

/** A bar of what is used: shares of 1, each [class, share], and the words that say the same. */
export function bar(words, ...shares) {
  let from = 0;
  const parts = shares.map(([kind, share]) => {
    const width = Math.max(0, Math.min(share, 1 - from)) * 100, x = from * 100;
    from += width / 100;
    return svg("rect", { class: kind, x, y: 0, width, height: 8 });
  });
  return svg("svg", { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": words }, parts);
}

const SUFFIXES = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** A Kubernetes quantity as a number; 0 if it is none. */
export function amount(text) {
  const found = /^([0-9.]+)([a-zA-Z]*)$/.exec(String(text ?? ""));
  return found ? Number(found[1]) * (SUFFIXES[found[2]] ?? 1) : 0;
}

/** A moment: how long ago, or ahead. */
export const time = (at) => moment(at, (seconds) => t(seconds >= 0 ? "ago" : "ahead", span(Math.abs(seconds))));

/** How long something has lasted that began then. */
export const lasts = (at) => moment(at, (seconds) => t("for", span(Math.max(0, seconds))));

/** States of a job that has ended. */
export const ENDED = ["Finished", "Failed"];

/** Since when a job is in its state: how long it has lasted, or how long ago it ended. */
export const since = (status) => ENDED.includes(status.state) ? time(status.since) : lasts(status.since);

function moment(at, words) {
  const when = at ? new Date(at) : null;
  if (!when || Number.isNaN(when.getTime())) return el("span", { class: "soft" }, "–");
  return el("time", { datetime: at, title: when.toLocaleString() }, words((Date.now() - when) / 1000));
}

/** Seconds in the unit that people would say. */
export function span(seconds) {
  const [size, unit] = seconds < 59.5 ? [1, "s"] : seconds < 3570 ? [60, "min"] : seconds < 84600 ? [3600, "h"] : [86400, "d"];
  const count = seconds / size;
  return `${unit === "h" && count < 10 ? Math.round(count * 10) / 10 : Math.round(count)} ${unit}`;
}

const KINDS = {
  Running: "good", Finished: "good", Starting: "busy", Offered: "busy", Queued: "wait", Waiting: "wait", Retrying: "wait",
  Stopping: "wait", Lost: "bad", Rejected: "bad", Failed: "bad", Inactive: "bad",
};

/** A job's state: a word first, a colour second. */
export const state = (name) => el("span", { class: `state ${KINDS[name] || "soft"}` }, t(`state.${name}`, "", name));

/** An address of this page: parts of the path, and what narrows it down. */
export function address(parts, query = {}) {
  const chosen = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value != null)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${chosen ? `?${chosen}` : ""}`;
}

export const jobLink = (namespace, name, words) => el("a", { href: address(["jobs", namespace, name]) }, words || name);
export const workerLink = (name) => name ? el("a", { href: address(["workers", name]) }, name) : "–";
export const queueLink = (name) => name ? el("a", { href: address(["queues", name]) }, name) : "–";

/** What to type about a job; null if it has a name that must not stand in a shell: others have chosen it. */
export function command(verb, job, namespace) {
  const isName = (text) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/.test(text);
  return job && [...job.split("/"), namespace].every(isName) ? `multikueue ${verb} ${job} -n ${namespace}` : null;
}

/** Words to be copied, as code, with a button; null: none. */
export function copied(text, tag = "code") {
  if (!text) return null;
  const button = el("button", { type: "button", class: "copy", "aria-label": `${t("copy")}: ${text}` }, t("copy"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = t("copied");
    setTimeout(() => { button.textContent = t("copy"); }, 1500);
  });
  return el("span", { class: "copied" }, el(tag, {}, text), button);
}

/** What to do: words, and the command at their end to be copied. Only how it looks depends on what they say. */
function remedy(text) {
  const [, words, typed] = /^(.*?)((?:kubectl|multikueue) [^()]*)?$/s.exec(text ?? "") ?? [];
  return text ? el("div", {}, words, typed ? copied(typed) : null) : null;
}

/** What is wrong and what to do, what needs somebody first. */
export const findings = (found) => found.map((one) => el("li", { class: one.blocking === false ? "wait" : "bad" },
  el("span", {}, el("strong", {}, one.where), " ", one.why), one.told && !one.why.includes(one.told) ? el("div", { class: "soft" }, one.told) : null,
  remedy(one.remedy)));
