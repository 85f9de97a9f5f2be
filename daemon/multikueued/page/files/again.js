// Reads again and again while the page is seen, and says above it what does not work.
import { ApiError } from "./api.js";
import { notice, told } from "./notice.js";

const BACK_OFF = 3;

/** Call `read` now and then, until the view is left. It answers with the seconds until the next time, and ends it by an
 * error that lasts: who may not read a thing may not a moment later. */
export async function again(signal, read, every = 5) {
  for (;;) {
    let seconds = every;
    try {
      if (!document.hidden) seconds = (await read()) ?? every;
      notice("");
    } catch (error) {
      if (signal.aborted) return;
      notice(told(error));
      if (!(error instanceof ApiError) || [401, 403, 404].includes(error.code)) return;
      seconds = BACK_OFF;
    }
    await pause(Math.max(0.5, seconds) * 1000, signal);
  }
}

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}
