"use strict";
const { summary, fleet, series, bytes } = JSON.parse(document.getElementById("numbers").textContent);
const AGGREGATES = ["mean", "max", "min", "sum", "count", "std", "variance", "geometric_mean", "range", "min_count", "max_count"]
  .filter((name) => name in summary.windows.exact);
const LABELS = { std: "std. deviation", geometric_mean: "geometric mean", min_count: "count of min", max_count: "count of max" };
const label = (name) => LABELS[name] || name;
const FLEET = "All devices";
const $ = (id) => document.getElementById(id);
const chosen = { stream: null, device: null, aggregate: AGGREGATES[0] };

// ── words ──
const whole = new Intl.NumberFormat("en");
const counted = (n, word) => `${whole.format(n)} ${word}${n === 1 ? "" : "s"}`;
const number = (x) => x === null || x === undefined ? "–" : Math.abs(x) >= 1e5 ? whole.format(Math.round(x)) : String(+x.toPrecision(5));
const short = (x) => Math.abs(x) < 1e4 ? String(+x.toPrecision(6)) : new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 }).format(x);
function percent(x) {
  if (x === null || x === undefined) return "–";
  const shown = (100 * x).toFixed(x > 0 && x < .0995 ? 2 : 1);
  return (x < 1 && +shown === 100 ? ">99.9" : shown.replace(/\.0$/, "")) + " %";
}
function size(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1024 && at < 4) { n /= 1024; at++; }
  return `${at ? n.toPrecision(3) : n} ${units[at]}`;
}
function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  for (const [unit, length] of [["d", 172800], ["h", 3600], ["min", 60]]) if (seconds >= length) return `${+(seconds / (unit === "d" ? 86400 : length)).toPrecision(3)} ${unit}`;
  return `${+seconds.toPrecision(3)} s`;
}
function unitOf(seconds) {
  const most = Math.max(...seconds.map((x) => x ?? 0));
  return [["d", 86400], ["h", 3600], ["min", 60]].find(([, length]) => most >= 2 * length) || ["s", 1];
}
const moment = (ms) => new Date(ms).toISOString().slice(0, 16).replace("T", " ");

// ── elements ──
function element(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
function svg(tag, attributes = {}, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// ── scales ──
function ticks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= raw * 0.999);
  const out = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++) out.push(+(at * step).toPrecision(12));
  return out;
}
const HOUR = 3.6e6, DAY = 24 * HOUR;
const STEPS = [1, 10, 60, 300, 600, 1800].map((s) => s * 1000).concat([1, 3, 6, 12].map((h) => h * HOUR), [1, 2, 4, 7, 14].map((d) => d * DAY));
function timeTicks(low, high, most) {
  const step = STEPS.find((x) => (high - low) / x <= most);
  if (step) {
    const out = [];
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) out.push([at, clock(at, step)]);
    return out;
  }
  const months = [1, 2, 3, 6, 12, 24, 60, 120].find((m) => (high - low) / (m * 30.4 * DAY) <= most) || 120;
  const out = [], from = new Date(low);
  for (let at = Date.UTC(from.getUTCFullYear(), 0), i = 0; at <= high && i < 5000; i++, at = Date.UTC(from.getUTCFullYear(), i * months)) {
    if (at < low) continue;
    const date = new Date(at), year = date.getUTCFullYear(), month = date.toLocaleDateString("en", { month: "short", timeZone: "UTC" });
    out.push([at, months >= 12 ? String(year) : out.length && date.getUTCMonth() ? month : `${month} ${year}`]);
  }
  return out;
}
function clock(ms, step) {
  const at = new Date(ms);
  if (step >= DAY || ms % DAY === 0) return at.toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
  return at.toISOString().slice(11, step < 60000 ? 19 : 16);
}

// ── a chart: a band, a value with its spread, over time ──
function chart(host, data, { height, unit, zero, top, label, none }) {
  host.replaceChildren();
  const values = [...data.low, ...data.high].filter((x) => x !== null);
  if (!values.length) { host.append(element("p", { class: "note" }, none || "No window here holds a reading.")); return; }
  let low = Math.min(...values), high = Math.max(...values);
  if (zero) low = Math.min(low, 0);
  if (top !== undefined) high = Math.max(high, top);
  if (low === high) { const room = Math.abs(low) * .05 || 1; low -= zero ? 0 : room; high += room; }
  else if (!zero) { const room = (high - low) * .04; low -= room; high += room; } else if (top === undefined) high += (high - low) * .04;
  const width = Math.max(host.clientWidth, 240);
  const marks = ticks(low, high, Math.max(3, Math.round(height / 60)));
  const left = Math.max(56, 14 + Math.max(...marks.map((x) => unit(x).length)) * 7), right = 10, bottom = 22, above = 8;
  const from = data.t[0], to = data.t[data.t.length - 1];
  const x = (t) => to === from ? (left + width - right) / 2 : left + (t - from) / (to - from) * (width - left - right);
  const y = (v) => above + (high - v) / (high - low) * (height - above - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  for (const mark of marks) {
    picture.append(svg("line", { class: "gridline", x1: left, x2: width - right, y1: y(mark), y2: y(mark) }));
    picture.append(svg("text", { x: left - 8, y: y(mark) + 4, "text-anchor": "end" }, unit(mark)));
  }
  picture.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
  for (const [at, text] of timeTicks(from, to, Math.max(2, Math.floor((width - left) / 72)))) {
    const anchor = x(at) > width - 34 ? "end" : x(at) < left + 10 ? "start" : "middle";
    picture.append(svg("line", { class: "axis", x1: x(at), x2: x(at), y1: height - bottom, y2: height - bottom + 4 }));
    picture.append(svg("text", { x: x(at), y: height - 5, "text-anchor": anchor }, text));
  }
  for (const run of runs(data)) {
    if (data.band) picture.append(svg("path", { class: "band", d: area(run, data.low, data.high, data.t, x, y) }));
    picture.append(svg("path", { class: "value", d: line(run, data.from, data.to, data.t, x, y) }));
  }
  pointer(picture, host, data, x, y, left, width - right, height - bottom, above);
  host.append(picture);
}
// Runs of points that have a value; an empty stretch breaks the line and the band.
function runs(data) {
  const out = [];
  let run = [];
  data.from.forEach((value, i) => { if (value === null) { if (run.length) out.push(run); run = []; } else run.push(i); });
  if (run.length) out.push(run);
  return out;
}
const at = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
function area(run, low, high, t, x, y) {
  const wide = run.length === 1 ? 1.5 : 0;
  const over = run.map((i) => at(x(t[i]) + (wide ? -wide : 0), y(high[i]))), under = [...run].reverse().map((i) => at(x(t[i]) + wide, y(low[i])));
  return `M${over.join("L")}L${under.join("L")}Z`;
}
function line(run, from, to, t, x, y) {
  const points = run.flatMap((i) => from[i] === to[i] ? [at(x(t[i]), y(to[i]))] : [at(x(t[i]), y(to[i])), at(x(t[i]), y(from[i]))]);
  return run.length === 1 ? `M${at(x(t[run[0]]) - 1.5, y(to[run[0]]))}L${at(x(t[run[0]]) + 1.5, y(from[run[0]]))}` : `M${points.join("L")}`;
}
function pointer(picture, host, data, x, y, left, right, floor, ceiling) {
  const cursor = svg("line", { class: "cursor", y1: ceiling, y2: floor, visibility: "hidden" });
  picture.append(cursor);
  const hide = () => { cursor.setAttribute("visibility", "hidden"); $("tip").hidden = true; };
  picture.addEventListener("pointermove", (event) => {
    const px = event.clientX - host.getBoundingClientRect().left;
    if (px < left - 6 || px > right + 6) return hide();
    let best = 0;
    data.t.forEach((t, i) => { if (Math.abs(x(t) - px) < Math.abs(x(data.t[best]) - px)) best = i; });
    cursor.setAttribute("visibility", "visible");
    for (const name of ["x1", "x2"]) cursor.setAttribute(name, x(data.t[best]));
    const tip = $("tip");
    tip.replaceChildren(element("b", {}, `${moment(data.t[best])} UTC`), ...data.tell(best).map((text) => element("div", {}, text)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - box.width - 6))}px`;
    tip.style.top = `${Math.max(6, event.clientY - box.height - 14)}px`;
  });
  picture.addEventListener("pointerleave", hide);
}

