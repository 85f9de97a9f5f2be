// Which language the page speaks. A text that a catalogue lacks is English.
import en from "./texts.en.js";
import zh from "./texts.zh.js";

const CATALOGUES = { en, zh };
const KEPT = "multikueue-language";
let language = localStorage.getItem(KEPT) || (navigator.language.startsWith("zh") ? "zh" : "en");
if (!(language in CATALOGUES)) language = "en";

/** The text of a key; `{}` in it is `value`. `otherwise` stands for a key that no catalogue has. */
export const t = (key, value = "", otherwise = key) =>
  (CATALOGUES[language][key] ?? en[key] ?? otherwise).replace("{}", () => String(value));

export const current = () => language;

export function change() {
  language = language === "en" ? "zh" : "en";
  localStorage.setItem(KEPT, language);
}
