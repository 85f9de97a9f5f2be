// Which view is shown: by the fragment, so that addresses can be shared and the back button works.
import { isSignedIn, signIn, signsIn, takeToken } from "./api.js";
import { el } from "./elements.js";
import { showFleet, showQueue, showWorker } from "./fleet.js";
import { showJob } from "./job.js";
import { showJobs } from "./jobs.js";
import { notice, told } from "./notice.js";
import { showOverview } from "./overview.js";
import { showSignIn } from "./signin.js";
import { change, current, t } from "./texts.js";
import { showTime } from "./time.js";

const NAMES = ["overview", "fleet", "jobs", "time"];
const ABOVE = { workers: "fleet", queues: "fleet" };
const content = document.getElementById("content");
let leave = new AbortController();

function route(event) {
  takeToken();
  if (location.hash === "#content") return content.focus();
  leave.abort();
  leave = new AbortController();
  const [path, query] = location.hash.slice(2).split(/\?(.*)/s);
  const [view, ...names] = path.split("/").map(decodeURIComponent);
  const title = names.length ? names.at(-1) : t(NAMES.includes(view) ? view : "overview");
  frame(ABOVE[view] || (NAMES.includes(view) ? view : "overview"), title);
  content.replaceChildren();
  notice("");
  shown(view, names, new URLSearchParams(query), leave.signal).catch(quietly(leave.signal));
  if (event) content.focus({ preventScroll: true });
}

const quietly = (signal) => (error) => signal.aborted || notice(told(error));

function shown(view, names, query, signal) {
  if (view === "jobs" && names.length === 2) return showJob(content, ...names, signal);
  if (view === "jobs") return showJobs(content, query, signal);
  if (view === "workers") return showWorker(content, names[0], query, signal);
  if (view === "queues") return showQueue(content, names[0], query, signal);
  if (view === "fleet") return showFleet(content, signal);
  return view === "time" ? showTime(content, query, signal) : showOverview(content, query, signal);
}

function frame(view, title) {
  const language = document.getElementById("language"), other = current() === "en" ? "zh" : "en";
  document.documentElement.lang = current();
  document.title = `${title} – multikueue`;
  document.getElementById("skip").textContent = t("skip");
  language.textContent = other; // two letters that every font has
  language.setAttribute("aria-label", t("language"));
  const out = document.getElementById("leave");
  out.textContent = t("sign.out");
  out.hidden = !isSignedIn();
  document.getElementById("views").replaceChildren(...NAMES.map((name) =>
    el("a", { href: `#/${name}`, "aria-current": view === name ? "page" : null }, t(name))));
}

/** Nobody is known: whatever is shown goes. `why` is a text's name. */
function strange(why) {
  if (!signsIn) return;
  leave.abort();
  signIn("");
  frame("", t("sign.in"));
  notice(why && t(why));
  showSignIn(content, () => route());
}

addEventListener("strange", (event) => strange(event.detail));
document.getElementById("leave").addEventListener("click", () => strange(""));
document.getElementById("language").addEventListener("click", () => { change(); route(); });
addEventListener("hashchange", route);
route();
