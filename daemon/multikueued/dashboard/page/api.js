// The one way to the API: GET with the token that the page was opened with. Nothing else is ever asked.
const ROOT = "/apis/remote.multikueue.dev/v1alpha1";
const KEPT = "multikueue-token";

/** The token stands in the fragment once, which no server sees; a reload finds it in this tab's storage. */
export function takeToken() {
  const found = /^#token=([\w-]+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEPT, found[1]);
    history.replaceState(null, "", "#/fleet");
  }
}

export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

async function ask(path, signal) {
  const headers = { "X-Multikueue-Token": sessionStorage.getItem(KEPT) || "" };
  let answer;
  try {
    answer = await fetch(ROOT + path, { headers, signal, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "");
  }
  if (answer.ok) return answer;
  const status = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, String(status.message || answer.statusText));
}

const path = (namespace, name, part) =>
  `${namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ""}/remotejobs` +
  (name ? `/${encodeURIComponent(name)}` : "") + (part ? `/${part}` : "");

export const fleet = async (signal) => (await ask("/fleet", signal)).json();

export const namespaces = async (signal) =>
  (await (await ask("/remotenamespaces", signal)).json()).items.map((one) => one.metadata.name).sort();

export const job = async (namespace, name, part, signal) => (await ask(path(namespace, name, part), signal)).json();

/** All jobs of a namespace, page by page; `onPage` is called with each. Returns the version that a watch begins at. */
export async function listJobs(namespace, onPage, signal) {
  let next = "", version = "";
  do {
    const query = `?limit=500${next ? `&continue=${encodeURIComponent(next)}` : ""}`;
    const list = await (await ask(path(namespace) + query, signal)).json();
    onPage(list.items);
    next = list.metadata.continue || "";
    version = list.metadata.resourceVersion;
  } while (next);
  return version;
}

/** Follow a namespace's jobs; ends when the server closes the watch. A version that is too old is an ApiError 410. */
export async function watchJobs(namespace, version, onEvent, signal) {
  const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${encodeURIComponent(version)}`;
  for await (const line of lines(await ask(path(namespace) + query, signal))) {
    const event = JSON.parse(line);
    if (event.type === "ERROR") throw new ApiError(event.object.code, String(event.object.message));
    onEvent(event);
  }
}

/** The lines of a job's log, as they come. */
export async function* logLines(namespace, name, signal) {
  yield* lines(await ask(`${path(namespace, name, "log")}?follow=true&tailLines=500&allPods=true`, signal));
}

async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest) yield rest;
}
