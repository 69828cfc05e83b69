"use strict";
// Puts the texts that a stream sends into the page. Everything is set as text:
// nothing that is sent can become markup.
(function () {
  const live = document.getElementById("live");
  if (!live || !window.EventSource) return;
  const most = 200;
  const mostConsole = 200000;
  const state = document.getElementById("stream");
  let last = new URLSearchParams(live.dataset.stream.split("?")[1]).get("after") || "0";
  let over = false;
  let source = null;

  function say(el, text) {
    if (el && el.textContent !== text) el.textContent = text;
  }

  function cells(texts) {
    if (texts.shape !== live.dataset.shape) {
      location.reload();
      return;
    }
    for (const id of Object.keys(texts)) {
      const el = document.getElementById(id);
      if (!el) continue;
      if (el.tagName === "PROGRESS") el.value = Number(texts[id]);
      else say(el, texts[id]);
      if (el.dataset.state !== undefined) el.dataset.state = texts[id];
    }
  }

  function add(parent, tag, text) {
    const el = document.createElement(tag);
    const own = document.createElement("bdi"); // its direction is its own
    own.textContent = text;
    el.append(own);
    parent.append(el, " ");
    return el;
  }

  function event(e) {
    const list = document.getElementById("events");
    const none = document.getElementById("noevents");
    if (none) none.remove();
    const li = document.createElement("li");
    if (e.bad) li.className = "bad";
    add(li, "time", e.clock).dateTime = e.iso;
    if (e.lane) add(li, "b", e.lane);
    add(li, "span", e.text);
    list.prepend(li);
    while (list.children.length > most) list.lastElementChild.remove();
  }

  function open() {
    const address = live.dataset.stream.split("?")[0] + "?as=cells&after=" + last;
    source = new EventSource(address);
    source.onopen = function () { say(state, "This page follows the run."); };
    source.onerror = function () { if (!over) say(state, "The connection is lost; trying again."); };
    source.addEventListener("cells", function (m) { cells(JSON.parse(m.data)); });
    source.addEventListener("event", function (m) {
      last = m.lastEventId || last;
      event(JSON.parse(m.data));
    });
    source.addEventListener("end", function (m) { finish("The run is over: " + m.data + ". Reload this page for what comes next."); });
    source.addEventListener("gone", function (m) { finish(m.data); });
  }

  function finish(text) {
    over = true;
    source.close();
    say(state, text);
  }

  const screen = document.getElementById("console");
  const who = document.getElementById("consolestate");
  let said = null;

  function openConsole() {
    if (!screen) return;
    said = new EventSource(screen.dataset.stream);
    let fresh = true;
    said.addEventListener("who", function (m) {
      say(who, "Recorded by " + m.data);
      screen.hidden = false;
      if (fresh) screen.textContent = "";
      fresh = false;
    });
    said.addEventListener("idle", function (m) { say(who, m.data); });
    said.addEventListener("out", function (m) {
      const down = screen.scrollTop + screen.clientHeight >= screen.scrollHeight - 20;
      screen.append(m.data);
      if (screen.textContent.length > mostConsole) screen.textContent = screen.textContent.slice(-mostConsole / 2);
      if (down) screen.scrollTop = screen.scrollHeight;
    });
    said.addEventListener("end", function (m) {
      said.close();
      say(who, m.data);
    });
    said.onerror = function () { fresh = true; };
  }

  // A page that nobody sees follows nothing.
  document.addEventListener("visibilitychange", function () {
    if (over) return;
    if (document.hidden) {
      source.close();
      if (said) said.close();
    } else {
      open();
      openConsole();
    }
  });
  if (!document.hidden) {
    open();
    openConsole();
  }
})();
