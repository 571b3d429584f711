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
    + `${percent(one.facts.exact[chosen.aggregate])} of these ${whole.format(one.facts.windows)} windows are exact.`
    + (one.facts.silent ? ` Devices that were heard of before the last window and never again: ${whole.format(one.facts.silent)}.` : "");
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
  const add = (numbers) => numbers.reduce((n, more) => n + more, 0);
  const held = add(fleet.devices.readings), gone = add(fleet.devices.missing);
  const streams = fleet.series.device.filter((d) => d >= 0).length, documents = summary.documents;
  const tiles = [
    tile("Readings", held >= 1e10 ? short(held) : whole.format(held), `${counted(fleet.devices.device.length, "device")}, ${counted(streams, "stream")}`),
    tile("Completeness", percent(held + gone ? held / (held + gone) : null), gone ? `${counted(gone, "reading")} missing` : "no reading missing"),
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
    + (fleet.series.stream.length > series.length ? ` Shown: ${series.length} of ${whole.format(fleet.series.stream.length)} series; all are in the Parquet files.` : "");
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
  $("range").textContent = `${moment(first)} to ${moment(last)} UTC · ${counted(fleet.devices.device.length, "device")}`;
  choices();
  $("stream").onchange = (event) => choose(event.target.value, chosen.device);
  $("aggregate").onchange = (event) => { chosen.aggregate = event.target.value; drawWindows(); drawTable(); drawWidest(); };
}
drawTiles(); drawBytes(); drawBars(); drawFleet(); drawTable(); drawAlarms(); drawDocuments(); drawWindows();
let wait;
addEventListener("resize", () => { clearTimeout(wait); wait = setTimeout(() => { drawWindows(); drawHeat(); }, 120); });
