// Every word that the desk says by itself; the words lie in texts/*.json, one file a language, and are put in at the build.

const languages = Object.keys(TEXTS);
let language = "en";

/** Choose the language nearest to the tags of `wanted`, such as ["de-AT", "en"]; return its code. */
export function chooseLanguage(wanted) {
  const codes = wanted.map((tag) => tag.toLowerCase().split("-")[0]);
  language = codes.find((code) => languages.includes(code)) ?? "en";
  return language;
}

export function listLanguages() {
  return languages.map((code) => [code, TEXTS[code].language]);
}

/** Return the text of `key`, with `{name}` replaced by `values.name`. */
export function t(key, values = {}) {
  // What the server names in a newer way than this page knows is shown as it is named.
  const text = TEXTS[language][key] ?? TEXTS.en[key] ?? key.slice(key.indexOf(".") + 1);
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

export function formatNumber(value, digits = 0) {
  return new Intl.NumberFormat(language, { maximumFractionDigits: digits, minimumFractionDigits: digits }).format(value);
}

/** Return a moment (ISO 8601) as a person reads it; what is no date stays as it is. */
export function formatTime(moment) {
  const date = new Date(moment);
  if (Number.isNaN(date.getTime())) return moment;
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(date);
}
