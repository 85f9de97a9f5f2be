// Which view is shown: by the fragment, so that links and the back button work.
import { takeToken } from "./api.js";
import { el } from "./elements.js";
import { showFleet } from "./fleet.js";
import { showJob } from "./job.js";
import { showJobs } from "./jobs.js";
import { notice, told } from "./notice.js";
import { change, current, t } from "./texts.js";

const VIEWS = [["#/fleet", "fleet"], ["#/jobs", "jobs"]];
const content = document.getElementById("content");
let leave = new AbortController();

function route(event) {
  takeToken();
  leave.abort();
  leave = new AbortController();
  if (location.hash === "#content") return content.focus();
  const [view, namespace, name] = location.hash.slice(2).split("/").map(decodeURIComponent);
  frame(view);
  content.replaceChildren();
  const { signal } = leave;
  const shown = view === "jobs" && name ? showJob(content, namespace, name, signal)
    : view === "jobs" ? showJobs(content, namespace || "", signal) : showFleet(content, signal);
  notice("");
  shown.catch((error) => signal.aborted || notice(told(error)));
  if (event) content.focus({ preventScroll: true });
}

function frame(view) {
  document.documentElement.lang = current();
  document.title = `${t(view === "jobs" ? "jobs" : "fleet")} – multikueue`;
  document.getElementById("skip").textContent = t("skip");
  document.getElementById("language").textContent = t("language");
  document.getElementById("views").replaceChildren(...VIEWS.map(([link, name]) =>
    el("a", { href: link, "aria-current": view === name || (view === "" && name === "fleet") ? "page" : null }, t(name))));
}

document.getElementById("language").addEventListener("click", () => { change(); route(); });
addEventListener("hashchange", route);
route();
