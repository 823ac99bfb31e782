// Makes the pages a little better; they are complete without it. No outside request, no key bound.
"use strict";

// How long after load or focus a press counts as a slip, in milliseconds: somebody was clicking where the button came up.
const STILL = 700;

// Counts down by the server's clock: what matters is the time since the page was made, not what this machine's clock says.
function countDown(element) {
  const until = Date.parse(element.dataset.until);
  const skew = Date.parse(element.dataset.now) - Date.now();
  const left = () => Math.max(0, Math.floor((until - Date.now() - skew) / 1000));
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const draw = () => {
    let rest = left();
    const words = [];
    for (const [size, unit] of units) {
      const number = Math.floor(rest / size);
      rest -= number * size;
      if (number || words.length) words.push(number ? `${number} ${unit}` : "");
      if (words.length === 2) break;
    }
    element.textContent = words.filter(Boolean).join(" ") || "0 s";
    if (left() > 0) setTimeout(draw, 1000);
    else document.dispatchEvent(new Event("time-is-over"));
  };
  draw();
}

// Keeps a form from being sent by a press that was meant for something else, and from being sent twice. What it
// does is to be seen and heard: buttons that rest look like it and say so, and a press that did not count is told.
function deliberate(form) {
  const buttons = form.querySelectorAll("button:not([hidden])");
  const line = form.appendChild(document.createElement("p"));
  const word = line.appendChild(document.createElement("span"));
  const told = line.appendChild(document.createElement("span"));
  line.className = "pause";
  told.setAttribute("role", "status");
  let alive = 0;
  let done = false;
  const show = (still, text) => {
    form.classList.toggle("still", still);
    buttons.forEach((button) => button.setAttribute("aria-disabled", still));
    word.textContent = text;
  };
  const rest = () => {
    if (done) return;
    alive = performance.now() + STILL;
    told.textContent = "";
    show(true, "One moment \u2026");
    setTimeout(() => { if (!done && performance.now() >= alive) show(false, ""); }, STILL + 20);
  };
  form.addEventListener("submit", (event) => {
    if (done || performance.now() < alive) {
      event.preventDefault();
      if (!done) told.textContent = " That press came too soon and did not count.";
      return;
    }
    done = true;
    show(true, "Sent \u2026");
  });
  window.addEventListener("focus", rest);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) rest(); });
  document.addEventListener("time-is-over", () => { done = true; show(true, "The time is over."); });
  rest();
}

// Keeps the number of what waits up to date. The list stays as it is, so that nothing moves under the pointer.
function live(line) {
  const title = document.title;
  const number = line.querySelector("b");
  const show = ({count, newest}) => {
    number.textContent = count;
    document.title = count ? `(${count}) ${title}` : title;
    const isNew = "more" in line.dataset ? false : newest > Number(line.dataset.newest);
    if (!isNew && count >= Number(line.dataset.count)) return;
    addLink(line, isNew ? "Something new: show it" : "Some of these are settled: look again");
  };
  listen(line.dataset.live, show);
}

// Tells that what the page is about has changed, or shows it at once where nobody is in the middle of something.
function follow(line) {
  const busy = () => document.querySelector("main details[open]")
    || [...document.querySelectorAll("main input:not([type=hidden])")].some(
      (field) => field.value || field === document.activeElement);
  listen(line.dataset.follow, ({standing}) => {
    if (!standing || standing === line.dataset.standing) return;
    if ("reload" in line.dataset && !busy()) location.reload();
    else addLink(line, "This has changed: look again");
  });
}

function addLink(line, text) {
  const link = line.querySelector("a") ?? line.appendChild(document.createElement("a"));
  link.href = "";
  link.textContent = text;
}

function listen(address, show) {
  let source;
  const open = () => {
    source = new EventSource(address);
    source.onmessage = (event) => show(JSON.parse(event.data));
    source.addEventListener("end", () => source.close());
  };
  // The server ends the oldest streams of somebody with many tabs.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && source.readyState === EventSource.CLOSED) open();
  });
  open();
}

// A page that comes back out of the browser's memory may show what is no longer so.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
document.querySelectorAll("[data-live]").forEach(live);
document.querySelectorAll("[data-follow]").forEach(follow);
document.querySelectorAll("[data-until]").forEach(countDown);
document.querySelectorAll("form[data-deliberate]").forEach(deliberate);
