"use strict";
// One look a second by server-sent events. What the agent says is put in as text, never as HTML.
const KEPT = 180;
const histories = new Map();
const SVG = "http://www.w3.org/2000/svg";

const byId = (id) => document.getElementById(id);

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") return JSON.stringify(value);
  return Number.isInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(6)).toString();
}

function size(bytes) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (bytes < 1024) return `${bytes.toFixed(unit === "B" ? 0 : 1)} ${unit}`;
    bytes /= 1024;
  }
  return `${bytes.toFixed(1)} GiB`;
}

function clock(us) {
  return us === null ? "–" : new Date(us / 1000).toISOString().replace("T", " ").slice(0, 19);
}

function length(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

function figure(name, text, share, isBad) {
  const group = element("div");
  group.append(element("dt", name), element("dd", text, isBad ? "bad" : ""));
  if (share !== undefined) {
    const bar = element("progress");
    bar.max = 1;
    bar.value = Math.min(1, share);
    group.append(bar);
  }
  return group;
}

// A broker that refused a subscription is connected, too; an agent without one lacks nothing.
function isLinked(seen) {
  return seen.broker.broker === "none" || seen.broker.state === "connected";
}

function figures(seen) {
  const box = seen.outbox;
  const found = [
    figure("memory of the plan", `${size(seen.rss_bytes)} of ${size(seen.planned_bytes)}`,
      seen.planned_bytes ? seen.rss_bytes / seen.planned_bytes : undefined),
    figure("outbox", `${number(box.buckets)} buckets, ${size(box.bytes)}`, box.bytes / box.bytes_most),
    figure("broker", `${seen.broker.broker}: ${seen.broker.state}`, undefined, !isLinked(seen)),
    figure("target", seen.target.state === "unused" ? "none" : `${seen.target.target}: ${seen.target.state}`,
      undefined, seen.target.state === "down"),
    figure("readings", number(seen.counters.accepted || 0)),
    figure("commits", seen.commits.count ? `${(1000 * seen.commits.seconds / seen.commits.count).toFixed(1)} ms each` : "–"),
    figure("up for", length(seen.uptime_s)),
  ];
  if (seen.store.refuses) found.push(figure("store", `refuses: ${seen.store.refuses}`, undefined, true));
  if (seen.budget) found.push(figure("link budget",
    `${size(seen.budget.used)}${seen.budget.limit ? ` of ${size(seen.budget.limit)}` : ""}`,
    seen.budget.limit ? seen.budget.used / seen.budget.limit : undefined, seen.budget.short_since_us !== null));
  for (const each of seen.alerts || []) {
    found.push(figure(`alert ${each.alert}`, `${each.stream}: ${each.state}`, undefined, each.state === "raised"));
  }
  byId("figures").replaceChildren(...found);
}

function spark(points) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 100 28");
  drawing.setAttribute("preserveAspectRatio", "none");
  const known = points.flatMap((p) => p).filter((v) => typeof v === "number");
  if (points.length < 2 || !known.length) return drawing;
  const least = Math.min(...known), most = Math.max(...known), span = most - least || 1;
  const x = (i) => (100 * i) / (points.length - 1);
  const y = (v) => 26 - (24 * (v - least)) / span;
  const whole = points.every(([v, low, high]) => [v, low, high].every((each) => typeof each === "number"));
  if (whole) {
    const band = document.createElementNS(SVG, "polygon");
    const upper = points.map(([, , high], i) => `${x(i)},${y(high)}`);
    const lower = points.map(([, low], i) => `${x(i)},${y(low)}`).reverse();
    band.setAttribute("points", [...upper, ...lower].join(" "));
    band.setAttribute("class", "band");
    drawing.append(band);
  }
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", points.map(([v], i) => (typeof v === "number" ? `${x(i)},${y(v)}` : "")).join(" "));
  line.setAttribute("class", "mean");
  drawing.append(line);
  return drawing;
}

function answers(seen) {
  const rows = seen.answers.map((a) => {
    const key = JSON.stringify([a.stream, a.window, a.aggregate]);
    const points = histories.get(key) || [];
    points.push([a.value, a.low, a.high]);
    if (points.length > KEPT) points.shift();
    histories.set(key, points);
    const row = element("tr"), drawn = element("td");
    drawn.append(spark(points));
    const between = a.exact ? "exact" : `${number(a.low)} to ${number(a.high)}`;
    row.append(element("td", a.stream), element("td", `${a.window} ${a.aggregate}`), element("td", number(a.value)),
      element("td", between), drawn, element("td", number(a.count), "right"));
    return row;
  });
  byId("answers").tBodies[0].replaceChildren(...rows);
}

function streams(seen) {
  const rows = seen.streams.map((s) => {
    const row = element("tr");
    row.append(element("td", s.stream),
      ...[s.readings, s.late, s.missing, s.buckets_waiting].map((v) => element("td", number(v), "right")),
      element("td", clock(s.newest_us)));
    return row;
  });
  if (seen.streams_in_all > seen.streams.length) {
    const more = element("td", `and ${number(seen.streams_in_all - seen.streams.length)} more`);
    more.colSpan = 6;
    const row = element("tr");
    row.append(more);
    rows.push(row);
  }
  byId("streams").tBodies[0].replaceChildren(...rows);
}

function errors(seen) {
  const lines = seen.errors.map((e) => {
    const line = element("li");
    line.append(element("time", clock(e.at_us)), element("span", `${e.level}: ${e.said}`));
    return line;
  });
  byId("errors").replaceChildren(...(lines.length ? lines : [element("li", "none")]));
}

function state(text, isBad) {
  byId("state").textContent = text;
  byId("state").className = isBad ? "bad" : "";
}

const events = new EventSource("/api/events");
events.onmessage = (event) => {
  const seen = JSON.parse(event.data);
  document.title = `${seen.device} – Sluicegate`;
  byId("device").textContent = seen.device;
  const isWell = isLinked(seen) && !seen.store.refuses;
  state(isWell ? "running" : "running, with trouble", !isWell);
  for (const show of [figures, answers, streams, errors]) show(seen);
};
events.onerror = () => state("the agent does not answer", true);
