// Looks for all words in all parts of all pages; the index comes when the first word is typed.
const root = document.currentScript.dataset.root;
const input = document.getElementById("search"), found = document.getElementById("found");
let parts;
input.form.addEventListener("submit", (e) => e.preventDefault());
input.addEventListener("input", async () => {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return found.replaceChildren();
  parts ??= await (await fetch(root + "search.json")).json();
  const hits = parts.map((p) => {
    const title = p.title.toLowerCase(), text = p.text.toLowerCase();
    if (!words.every((w) => title.includes(w) || text.includes(w))) return null;
    return { p, rank: words.filter((w) => title.includes(w)).length, at: Math.max(0, text.indexOf(words[0]) - 40) };
  }).filter(Boolean).sort((a, b) => b.rank - a.rank).slice(0, 12);
  const list = document.createElement("ul");
  for (const { p, at } of hits) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = root + p.page;
    link.textContent = p.title;
    item.append(link, " " + p.text.slice(at, at + 120));
    list.append(item);
  }
  found.replaceChildren(hits.length ? list : "Nothing found.");
});
if (matchMedia("(max-width: 48rem)").matches) document.querySelector("nav details").open = false;
