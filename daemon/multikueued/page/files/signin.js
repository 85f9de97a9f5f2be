// Where people sign in: with a token of the manager, which is kept in memory alone. A proxy in front may pass one instead.
import { signIn } from "./api.js";
import { el } from "./elements.js";
import { t } from "./texts.js";

/** Ask for a token; `then` is called once somebody has given one. */
export function showSignIn(content, then) {
  const token = el("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const give = (event) => {
    event.preventDefault();
    signIn(token.value.trim().replace(/^Bearer\s+/i, ""));
    token.value = "";
    then();
  };
  content.replaceChildren(el("h1", {}, t("sign.in")), el("p", {}, t("sign.how")), el("p", {}, el("code", {}, "kubectl create token NAME -n NAMESPACE")),
    el("form", { class: "sign", onsubmit: give }, el("label", {}, t("sign.token"), token), el("button", { type: "submit" }, t("sign.in"))),
    el("p", { class: "soft" }, t("sign.kept")));
  token.focus();
}
