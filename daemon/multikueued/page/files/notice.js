// The line above the view: what does not work just now.
import { ApiError } from "./api.js";
import { t } from "./texts.js";

/** What an error says to people. */
export function told(error) {
  if (!(error instanceof ApiError)) throw error;
  if (error.code === 0) return t("gone");
  if (error.code === 401) return t("token");
  if (error.code === 404 || error.code === 410) return error.message;
  return error.code === 403 ? t("forbidden", error.message) : t("failed", error.message);
}

/** A line above the view; empty: none. */
export function notice(text) {
  document.getElementById("notice").textContent = text;
}
