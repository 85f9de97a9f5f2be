// The one way to the API: GET. Nothing else is ever asked.
const ROOT = "/apis/remote.multikueue.dev/v1alpha1";
const KEPT = "multikueue-token";

/** Whether people sign in here: then their token is kept in this tab's memory alone. */
export const signsIn = document.documentElement.dataset.door === "sign-in";
let bearer = "";

/** Where people do not sign in, the token stands in the fragment once, which no server sees; a reload finds it in this
 * tab's storage. */
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (!found) return;
  if (!signsIn) sessionStorage.setItem(KEPT, found[1]);
  history.replaceState(null, "", "#/overview");
}

/** Ask with this token from now on; empty: with none, as a proxy in front may have one. */
export const signIn = (token) => { bearer = token; };
export const isSignedIn = () => Boolean(bearer);

/** What the door of this page asks for; and that a proxy in front answers with a code, and not with its page to sign in. */
const headers = () => ({ Accept: "application/json, */*",
  ...(signsIn ? (bearer ? { Authorization: `Bearer ${bearer}` } : {}) : { "X-Multikueue-Token": sessionStorage.getItem(KEPT) || "" }) });

/** Why somebody is a stranger, by what asks them to sign in (RFC 6750): our server, or a proxy in front whose session has ended. */
const why = (challenge) => challenge == null ? "sign.ended" : challenge.includes("invalid_token") ? "sign.refused" : "";

export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** What breaks off, before an answer or in the middle of it, is no answer; what we gave up ourselves is no error. */
function broken(error) {
  throw error.name === "AbortError" ? error : new ApiError(0, "");
}

const read = async (path, signal) => (await ask(path, signal)).json().catch(broken);

async function ask(path, signal) {
  const answer = await fetch(ROOT + path, { headers: headers(), signal, cache: "no-store", redirect: "error" }).catch(broken);
  if (answer.ok) return answer;
  const status = await answer.json().catch(() => ({}));
  if (answer.status === 401 && !signal?.aborted) dispatchEvent(new CustomEvent("strange", { detail: why(answer.headers.get("WWW-Authenticate")) }));
  throw new ApiError(answer.status, String(status.message || answer.statusText));
}

const path = (namespace, name, part) =>
  `${namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ""}/remotejobs` +
  (name ? `/${encodeURIComponent(name)}` : "") + (part ? `/${part}` : "");

const within = (namespace, name) => `${namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ""}/${name}`;

/** The fleet, or a namespace, at one look. */
export const overview = (namespace, signal) => read(within(namespace, "overview"), signal);

/** The jobs of a span of time; `query` has seconds, until, worker, queue. */
export const timeline = (namespace, query, signal) => read(`${within(namespace, "timeline")}?${new URLSearchParams(query)}`, signal);

/** The places of the jobs that wait in a queue. */
export const places = (namespace, queue, signal) => read(`${within(namespace, "places")}?${new URLSearchParams({ queue })}`, signal);

/** For what can be done without: what stands in for it where it may not be read, or is not served. */
export const absent = (signal, otherwise = null) => (error) => {
  if (signal.aborted || !(error instanceof ApiError) || [0, 401].includes(error.code)) throw error;
  return otherwise;
};

export const fleet = (signal) => read("/fleet", signal);

/** The namespaces whose jobs the user may list. Who may not ask that has the one that the page was opened for. */
export const namespaces = (signal) => listed(signal).catch((error) => {
  const own = document.documentElement.dataset.namespace;
  if (error.code !== 403 || !own) throw error;
  return [own];
});

/** They come in pages, of which any may be empty. */
async function listed(signal) {
  const names = [];
  for (let next = "", first = true; first || next; first = false) {
    const list = await read(`/remotenamespaces${next ? `?continue=${encodeURIComponent(next)}` : ""}`, signal);
    names.push(...list.items.map((one) => one.metadata.name));
    next = list.metadata?.continue || "";
  }
  return names.sort();
}

export const job = (namespace, name, part, signal) => read(path(namespace, name, part), signal);

/** One page of the jobs that `query` chooses; without `status` if it is still as `seen`. */
export const jobPage = (namespace, query, signal) => read(`${within(namespace, "jobpage")}?${new URLSearchParams(query)}`, signal);

/** The lines of a job's log, as they come. */
export async function* logLines(namespace, name, signal) {
  yield* lines(await ask(`${path(namespace, name, "log")}?follow=true&tailLines=500&allPods=true`, signal));
}

async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch(broken);
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest) yield rest;
}
