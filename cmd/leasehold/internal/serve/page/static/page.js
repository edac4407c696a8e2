// The page works without this script. With it, times run, and the view is loaded again in the
// background whenever the server has looked at the store.
"use strict";

(() => {
  const button = document.getElementById("live");
  const said = document.getElementById("said");
  let base = performance.now(); // when the times of the view were true
  let source = null;            // the messages of the server
  let paused = false;
  let loading = false, again = false;
  let lastEvent = newestEvent(document);

  // brief writes milliseconds as the server does.
  function brief(ms) {
    const s = Math.floor(Math.max(ms, 0) / 1000), two = n => String(n).padStart(2, "0");
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m " + two(s % 60) + "s";
    if (s < 86400) return Math.floor(s / 3600) + "h " + two(Math.floor(s / 60) % 60) + "m";
    return Math.floor(s / 86400) + "d " + two(Math.floor(s / 3600) % 24) + "h";
  }

  function put(element, text) { if (element.textContent !== text) element.textContent = text; }

  // tick has all times run.
  function tick() {
    const passed = performance.now() - base;
    for (const e of document.querySelectorAll("[data-left]")) put(e, brief(e.dataset.left - passed));
    for (const e of document.querySelectorAll("[data-up]")) put(e, brief(+e.dataset.up + passed));
    for (const e of document.querySelectorAll("[data-ends]")) {
      const left = Math.max(0, e.firstElementChild.dataset.left - passed), bar = e.querySelector("progress");
      bar.value = left;
      e.classList.toggle("low", left < bar.max / 3);
    }
  }

  // local writes times of day in the zone of the browser.
  function local(root) {
    for (const t of root.querySelectorAll("time[datetime]")) {
      const at = new Date(t.getAttribute("datetime"));
      if (isNaN(at)) continue;
      t.textContent = t.hasAttribute("data-day") ? at.toLocaleString() : at.toTimeString().slice(0, 8);
    }
  }

  // morph makes old like fresh, and keeps the elements that stay, with their focus.
  function morph(old, fresh) {
    if (old.isEqualNode(fresh) || keeps(old)) return;
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const keyed = new Map();
    for (const c of old.children) if (c.dataset.key !== undefined) keyed.set(c.dataset.key, c);
    const hadKeys = keyed.size > 0;
    let at = old.firstChild;
    for (const f of [...fresh.childNodes]) {
      const key = f.nodeType === Node.ELEMENT_NODE ? f.dataset.key : undefined;
      let match = key !== undefined ? keyed.get(key) : at;
      if (key !== undefined) keyed.delete(key);
      if (key === undefined && match && match.nodeType === Node.ELEMENT_NODE && match.dataset.key !== undefined) match = null;
      if (!match || match.nodeType !== f.nodeType || match.nodeName !== f.nodeName) {
        if (hadKeys && key !== undefined) f.classList.add("new");
        old.insertBefore(f, at);
        continue;
      }
      if (match !== at) old.insertBefore(match, at);
      else at = at.nextSibling;
      if (f.nodeType === Node.ELEMENT_NODE) morph(match, f);
      else if (match.data !== f.data) match.data = f.data;
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  // keeps reports whether somebody is filling in a form.
  function keeps(e) { return e.hasAttribute("data-keep") && (e.open || e.contains(document.activeElement)); }

  function newestEvent(root) {
    return Math.max(0, ...[...root.querySelectorAll(".events li")].map(li => +li.dataset.key));
  }

  // tell has a screen reader say what went wrong since the last time.
  function tell(fresh) {
    const bad = [...fresh.querySelectorAll(".events li.bad")].filter(li => +li.dataset.key > lastEvent);
    if (bad.length) said.textContent = bad.map(li => li.querySelector(".verb").textContent + " " + li.querySelector(".what").textContent).slice(0, 3).join("; ");
    lastEvent = Math.max(lastEvent, newestEvent(fresh));
  }

  // load shows the view as it is now. It sends one request at a time.
  async function load() {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const url = new URL(location.href);
      url.hash = "";
      url.searchParams.delete("did");
      const answer = await fetch(url, { headers: { Accept: "text/html" }, cache: "no-store" });
      const text = await answer.text();
      if (!(answer.headers.get("Content-Type") || "").startsWith("text/html")) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(text, "text/html");
      local(fresh);
      tell(fresh);
      base = performance.now();
      for (const old of document.querySelectorAll("[data-live]")) {
        const f = fresh.getElementById(old.id);
        if (f) morph(old, f);
      }
      tick();
      document.body.dataset.loads = +(document.body.dataset.loads || 0) + 1;
      button.classList.toggle("cut", !answer.ok && answer.status !== 502);
    } catch {
      button.classList.add("cut");
    } finally {
      loading = false;
      if (again) { again = false; setTimeout(load, 200); }
    }
  }

  // listen follows the messages of the server while somebody can see the view. A browser has few
  // connections to one server, which other windows need, too.
  function listen() {
    const wanted = !paused && !document.hidden;
    if (wanted && !source) {
      source = new EventSource("live");
      source.addEventListener("look", () => load());
      source.onopen = () => button.classList.remove("cut");
      source.onerror = () => {
        button.classList.add("cut");
        if (source && source.readyState === EventSource.CLOSED) { source = null; setTimeout(listen, 5000); }
      };
    } else if (!wanted && source) {
      source.close();
      source = null;
    }
    button.setAttribute("aria-pressed", String(!paused));
    put(button, paused ? "paused" : "live");
  }

  local(document);
  setInterval(() => { if (!document.hidden) tick(); }, 250);
  if (!document.querySelector("meta[http-equiv=refresh]") && ["locks", "lock", "events", "health"].includes(document.body.dataset.view)) {
    button.hidden = false;
    button.addEventListener("click", () => { paused = !paused; listen(); });
    document.addEventListener("visibilitychange", listen);
    listen();
  }
  document.addEventListener("keydown", e => {
    const field = document.getElementById("prefix");
    if (e.key === "/" && field && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
      e.preventDefault();
      field.focus();
      field.select();
    }
  });
})();
