"use strict";
const { summary, series, seriesInAll, bytes } = JSON.parse(document.getElementById("numbers").textContent);
const AGGREGATES = ["mean", "max", "min", "sum", "count", "std", "variance", "geometric_mean", "range", "min_count", "max_count"]
  .filter((name) => name in summary.windows.exact);
const LABELS = { std: "std. deviation", geometric_mean: "geometric mean", min_count: "count of min", max_count: "count of max" };
const label = (name) => LABELS[name] || name;
const FLEET = "All devices";
const $ = (id) => document.getElementById(id);
const chosen = { stream: null, device: null, aggregate: AGGREGATES[0] };

// ── words ──
const whole = new Intl.NumberFormat("en");
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

// ── the page ──
const current = () => series.find((s) => s.stream === chosen.stream && s.device === chosen.device) || series[0];
const flat = (t, values, tell) => ({ t, from: values, to: values, low: values, high: values, band: false, tell });
function drawWindows() {
  const one = current();
  if (!one) return;
  const data = one[chosen.aggregate];
  const called = label(chosen.aggregate), counted = chosen.aggregate.endsWith("count");
  const tell = (i) => [data.from[i] === data.to[i] ? `${called} ${number(data.from[i])}` : `${called} ${number(data.from[i])} to ${number(data.to[i])}`,
    `between ${number(data.low[i])} and ${number(data.high[i])}`, `complete ${percent(one.completeness[i])}`];
  const name = `${called} of ${one.stream}, ${one.device ?? FLEET}`;
  $("windows-note").textContent = `Windows of ${span(summary.window_us / 1e6)}, one every ${span(summary.slide_us / 1e6)}, drawn at their start (UTC). `
    + (one.thinned ? "Neighbours are drawn together, with the widest of their bands. " : "")
    + `${percent(one.facts.exact[chosen.aggregate])} of these ${whole.format(one.facts.windows)} windows are exact.`;
  chart($("chart-windows"), { t: one.t, ...data, band: true, tell }, { height: innerWidth < 760 ? 240 : 320, unit: short, zero: counted, label: name,
    none: chosen.aggregate === "geometric_mean" ? "No window here has a geometric mean: each may hold a reading of 0 or less." : "" });
  chart($("chart-completeness"), flat(one.t, one.completeness, (i) => [`complete ${percent(one.completeness[i])}`]), { height: 110, unit: (x) => `${Math.round(100 * x)} %`, zero: true, top: 1, label: `completeness of ${one.stream}` });
  const [unit, length] = unitOf(one.resolution);
  chart($("chart-resolution"), flat(one.t, one.resolution.map((x) => x === null ? null : x / length), (i) => [`a bucket covers ${span(one.resolution[i])}`]), { height: 110, unit: (x) => `${short(x)} ${unit}`, zero: true, label: `resolution of ${one.stream}` });
}
function bar(name, share, text) {
  const fill = element("i");
  fill.style.width = `${Math.max(0, Math.min(1, share ?? 0)) * 100}%`;
  return element("div", { class: "bar" }, element("span", { title: name }, name), element("span", { class: "track" }, fill), element("b", {}, text));
}
function tile(name, value, more) {
  return element("div", { class: "tile" }, element("span", {}, name), element("b", {}, value), element("small", {}, more));
}
function fill(select, options, value) {
  select.replaceChildren(...options.map(([key, text]) => element("option", { value: key, ...(key === value ? { selected: "" } : {}) }, text)));
  select.value = value;
}
function choices() {
  fill($("stream"), [...new Set(series.map((s) => s.stream))].map((s) => [s, s]), chosen.stream);
  const devices = series.filter((s) => s.stream === chosen.stream).map((s) => s.device);
  if (!devices.includes(chosen.device)) chosen.device = devices[0];
  fill($("device"), devices.map((d, i) => [String(i), d ?? FLEET]), String(devices.indexOf(chosen.device)));
  fill($("aggregate"), AGGREGATES.map((a) => [a, label(a)]), chosen.aggregate);
  $("device").onchange = (event) => { chosen.device = devices[+event.target.value]; drawWindows(); };
}
function choose(stream, device) { chosen.stream = stream; chosen.device = device; choices(); drawWindows(); }

function drawTiles() {
  const held = summary.devices.reduce((n, d) => n + d.readings, 0), gone = summary.devices.reduce((n, d) => n + d.missing, 0);
  const streams = summary.streams.length, documents = summary.documents;
  const tiles = [
    tile("Readings", whole.format(held), `${whole.format(summary.devices.length)} devices, ${whole.format(streams)} streams`),
    tile("Completeness", percent(held + gone ? held / (held + gone) : null), gone ? `${whole.format(gone)} readings missing` : "no reading missing"),
    tile("Windows", whole.format(summary.windows.rows), "per device and fleet-wide"),
    tile(`Exact: ${label(AGGREGATES[0])}`, percent(summary.windows.exact[AGGREGATES[0]]), "each other window has a band"),
  ];
  const payload = bytes.mqtt_payload, synced = bytes.synced;
  tiles.push(payload && synced ? tile("Bytes saved", percent(1 - synced / payload), `${size(synced)} instead of ${size(payload)}`)
    : tile("Bytes merged", size(documents.used_bytes), `${number(documents.used_bytes / Math.max(held, 1))} bytes a reading`));
  $("tiles").replaceChildren(...tiles);
}
function drawBytes() {
  const rows = [["MQTT payload", bytes.mqtt_payload], ["Raw, deflated", bytes.raw_columns_deflated], ["Synced", bytes.synced]].filter(([, n]) => n);
  if (!rows.length) { $("bytes-card").hidden = true; return; }
  const most = Math.max(...rows.map(([, n]) => n));
  $("bytes").replaceChildren(...rows.map(([name, n]) => bar(name, n / most, size(n))));
  if (bytes.mqtt_payload && bytes.synced) $("bytes-note").textContent = `Synced to the cloud: ${percent(bytes.synced / bytes.mqtt_payload)} of what MQTT carried.`;
}
function drawBars() {
  const worst = [...summary.devices].sort((a, b) => (a.completeness ?? 0) - (b.completeness ?? 0) || (a.device < b.device ? -1 : 1));
  $("devices").replaceChildren(...worst.slice(0, 40).map((d) => bar(d.device, d.completeness, percent(d.completeness))));
  if (worst.length > 40) $("devices").append(element("p", { class: "note" }, `The 40 least complete of ${whole.format(worst.length)}.`));
  $("exact").replaceChildren(...AGGREGATES.map((a) => bar(label(a), summary.windows.exact[a], percent(summary.windows.exact[a]))));
}
function row(cells, tag = "td", text = [0, 1]) {
  return element("tr", {}, ...cells.map((cell, i) => element(tag, text.includes(i) ? { class: "text" } : {}, cell)));
}
function drawTable() {
  const name = chosen.aggregate, called = label(name);
  const head = row(["Stream", "Device", "Windows", `Exact: ${called}`, "Band ±", "Complete", "Resolution"], "th");
  const body = series.map((s) => {
    const made = row([s.stream, s.device ?? FLEET, whole.format(s.facts.windows), percent(s.facts.exact[name]), s.facts.half_width[name] === null ? "–" : String(+s.facts.half_width[name].toPrecision(3)), percent(s.facts.completeness), span(s.facts.resolution)]);
    made.className = "pick";
    made.tabIndex = 0;
    const pick = () => { choose(s.stream, s.device); $("windows-title").scrollIntoView({ behavior: "smooth" }); };
    made.onclick = pick;
    made.onkeydown = (event) => { if (event.key === "Enter") pick(); };
    return made;
  });
  $("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
  $("table-note").textContent = `Band ±: half the width of the band of the ${called}, the median of the windows that are not exact. Choose a row to see its windows.`
    + (seriesInAll > series.length ? ` Shown: ${series.length} of ${whole.format(seriesInAll)} series; all are in the Parquet files.` : "");
}
function drawDocuments() {
  const d = summary.documents;
  $("documents").textContent = `${whole.format(d.files)} files read, ${whole.format(d.used)} used, ${whole.format(d.copy)} copies of the same bytes, ${whole.format(d.refused)} unreadable, ${whole.format(d.conflict)} in conflict, ${whole.format(d.overlap)} overlapping, ${whole.format(d.partly ?? 0)} used in part.`;
  if (!summary.problems.length) return;
  $("problems").replaceChildren(element("thead", {}, row(["What", "Device", "File", "Why"], "th", [0, 1, 2, 3])), element("tbody", {}, ...summary.problems.map((p) => row([p.fate, p.device ?? "–", p.path.split("/").slice(-1)[0], p.reason ?? ""], "td", [0, 1, 2, 3]))));
}
// What somebody must look into: boards that speak as one device.
function drawAlarms() {
  const alarms = summary.alarms ?? [];
  if (!alarms.length) return;
  const text = [0, 1, 2, 3, 5];
  const body = alarms.map((a) => row([a.device, a.stream, a.text, a.keys.join(", ") || "–", whole.format(a.readings), a.ids.join(", ")], "td", text));
  $("alarms").replaceChildren(element("thead", {}, row(["Device", "Stream", "What", "Keys", "Readings in doubt", "Documents"], "th", text)), element("tbody", {}, ...body));
  $("alarms-note").textContent = summary.alarms_in_all > alarms.length ? `The first ${alarms.length} of ${whole.format(summary.alarms_in_all)}.` : "";
  $("alarms-card").hidden = false;
}

if (series.length) {
  chosen.stream = series[0].stream;
  chosen.device = series[0].device;
  const first = Math.min(...series.map((s) => s.t[0])), last = Math.max(...series.map((s) => s.end[s.end.length - 1]));
  $("range").textContent = `${moment(first)} to ${moment(last)} UTC · ${whole.format(summary.devices.length)} devices`;
  choices();
  $("stream").onchange = (event) => choose(event.target.value, chosen.device);
  $("aggregate").onchange = (event) => { chosen.aggregate = event.target.value; drawWindows(); drawTable(); };
}
drawTiles(); drawBytes(); drawBars(); drawTable(); drawAlarms(); drawDocuments(); drawWindows();
let wait;
addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(drawWindows, 120); });
