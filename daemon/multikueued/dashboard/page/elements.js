// Elements, made of texts only: nothing that comes from outside is ever read as HTML.
import { t } from "./texts.js";

/** An element with attributes and children; a child that is no node is text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((one) => one != null && one !== "").map((one) => one instanceof Node ? one : String(one)));
  return made;
}

/** A table of columns {label, cell(row), words?}; `caption` says what it shows. On a small screen each row is a card. */
export function table(caption, columns, rows) {
  const head = el("tr", {}, columns.map((one) => el("th", { scope: "col" }, one.label)));
  const body = rows.map((row) => el("tr", {}, columns.map((one) =>
    el("td", { "data-label": one.label, class: one.words ? "words" : null }, el("span", {}, one.cell(row))))));
  return el("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: "cards" }, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)));
}

/** A bar of what is used of a quota, with its numbers. */
export function bar(name, used, nominal) {
  const text = nominal == null ? `${name} ${used ?? "?"}` : `${name} ${used ?? "?"}/${nominal}`;
  const [value, max] = [amount(used), amount(nominal)];
  const meter = max > 0 ? el("meter", { min: 0, max, value: Math.min(value, max), high: max * 0.9, "aria-label": text }) : null;
  return el("span", { class: "use" }, meter, text);
}

const SUFFIXES = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

/** A Kubernetes quantity as a number; 0 if it is none. */
export function amount(text) {
  const found = /^([0-9.]+)([a-zA-Z]*)$/.exec(String(text ?? ""));
  return found ? Number(found[1]) * (SUFFIXES[found[2]] ?? 1) : 0;
}

/** A time as a machine reads it and as a person does. */
export function time(at) {
  const when = at ? new Date(at) : null;
  if (!when || Number.isNaN(when.getTime())) return el("span", { class: "soft" }, "–");
  return el("time", { datetime: at, title: when.toLocaleString() }, ago(when));
}

function ago(when) {
  const seconds = Math.round((Date.now() - when) / 1000), far = Math.abs(seconds);
  const [size, unit] = far < 60 ? [1, "s"] : far < 3600 ? [60, "min"] : far < 86400 ? [3600, "h"] : [86400, "d"];
  return t(seconds >= 0 ? "ago" : "ahead", `${Math.round(far / size)} ${unit}`);
}

const KINDS = {
  Running: "good", Finished: "good", Starting: "busy", Offered: "busy", Queued: "wait", Waiting: "wait", Retrying: "wait",
  Stopping: "wait", Held: "wait", Lost: "bad", Rejected: "bad", Failed: "bad", Inactive: "bad",
};

/** A job's state: a word first, a colour second. */
export const state = (name) => el("span", { class: `state ${KINDS[name] || "soft"}` }, t(`state.${name}`, "", name));
