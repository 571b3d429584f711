// ── the fleet: how complete it is over time, its devices, its widest intervals ──
const CLASSES = ["complete", "99 % and more", "90 % and more", "less", "nothing heard"];
const LEAST = [1, .99, .9, 0];
const classOf = (share) => share < 0 ? 4 : LEAST.findIndex((least) => share >= least);
const DEVICES_SHOWN = 25;
const ORDERS = {
  "least complete": (d) => (a, b) => (d.completeness[a] ?? -1) - (d.completeness[b] ?? -1) || a - b,
  "longest silent": (d) => (a, b) => d.last[a] - d.last[b] || a - b,
  "most missing": (d) => (a, b) => d.missing[b] - d.missing[a] || a - b,
  "by name": () => (a, b) => a - b,
};
const binOf = (i) => fleet.bins.from + i * fleet.bins.step;

// Both ends of a name: devices of one site often differ in their last letters alone.
function shortened(name, most) {
  const kept = Math.max(2, most - 2);
  return name.length <= most ? name : `${name.slice(0, Math.ceil(kept / 2))}…${name.slice(-Math.floor(kept / 2))}`;
}

// Cells in rows over time. `tell(row, bin)` has the lines of the tip, `shade(row, bin)` class and strength.
function grid(host, names, bins, height, { shade, tell, pick, label }) {
  host.replaceChildren();
  const width = Math.max(host.clientWidth, 240), left = Math.min(160, Math.max(56, width * .22)), bottom = 22;
  const cell = (width - left - 10) / bins, all = names.length * height + bottom;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${all}`, height: all, role: "img", "aria-label": label });
  names.forEach((name, row) => {
    const text = svg("text", { x: 0, y: row * height + height * .72 }, shortened(name, Math.floor(left / 7)));
    text.append(svg("title", {}, name));
    picture.append(text);
    for (let bin = 0; bin < bins; bin++) {
      const [kind, strength] = shade(row, bin);
      const made = svg("rect", { class: `cell class-${kind}`, x: (left + bin * cell).toFixed(1), y: row * height, width: cell.toFixed(2), height: height - 1, opacity: strength.toFixed(2) });
      made.dataset.at = `${row},${bin}`;
      picture.append(made);
    }
  });
  const from = binOf(0), to = binOf(bins);
  for (const [at, text] of timeTicks(from, to, Math.max(2, Math.floor((width - left) / 84))))
    picture.append(svg("text", { x: left + (at - from) / (to - from) * (width - left - 10), y: all - 5, "text-anchor": "middle" }, text));
  picture.addEventListener("pointermove", (event) => {
    const at = event.target.dataset?.at;
    if (!at) { $("tip").hidden = true; return; }
    const [row, bin] = at.split(",").map(Number), tip = $("tip");
    tip.replaceChildren(element("b", {}, `${moment(binOf(bin))} to ${moment(binOf(bin + 1))} UTC`), ...tell(row, bin).map((line) => element("div", {}, line)));
    tip.hidden = false;
    tip.style.left = `${Math.max(6, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6))}px`;
    tip.style.top = `${Math.max(6, event.clientY - tip.offsetHeight - 14)}px`;
  });
  picture.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  if (pick) picture.addEventListener("click", (event) => { const at = event.target.dataset?.at; if (at) pick(+at.split(",")[0]); });
  host.append(picture);
}

function drawHeat() {
  if (!fleet.bins) return;
  const { devices, classes, rows } = fleet, bins = classes[0].length, count = devices.device.length, few = count <= rows.length;
  $("heat-note").textContent = `Each cell: the least complete window that begins in these ${span(fleet.bins.step / 1000)}.`;
  $("heat-legend").replaceChildren(...CLASSES.map((name, i) => element("span", {}, element("i", { class: `shade class-${i}` }), name)));
  $("classes").hidden = $("classes-title").hidden = few;
  if (!few) grid($("classes"), CLASSES, bins, 22, {
    // a cube root, so that a twentieth of a fleet is seen beside the rest of it
    shade: (row, bin) => [row, classes[row][bin] ? .12 + .88 * Math.cbrt(classes[row][bin] / count) : 0],
    tell: (row, bin) => [`${whole.format(classes[row][bin])} of ${whole.format(count)} devices: ${CLASSES[row]}`],
    label: "how many devices are how complete over time",
  });
  $("rows-title").textContent = few ? "Each device" : `The ${rows.length} least complete`;
  grid($("rows"), rows.map(([device]) => devices.device[device]), bins, few && count < 12 ? 22 : 14, {
    shade: (row, bin) => [classOf(rows[row][1][bin]), 1],
    tell: (row, bin) => [devices.device[rows[row][0]], rows[row][1][bin] < 0 ? "nothing heard" : `complete ${percent(rows[row][1][bin])}`],
    pick: (row) => pickDevice(rows[row][0]),
    label: "completeness of devices over time",
  });
}

// The windows of a device, or where they are.
function pickDevice(number, stream) {
  const name = fleet.devices.device[number];
  const found = series.find((s) => s.device === name && (stream === undefined || s.stream === stream));
  $("device-note").textContent = found ? "" : `The windows of ${name} are not on this page, which draws ${series.length} of ${whole.format(fleet.series.stream.length)} series. `
    + `To see them make the page again, with --device '${name.replaceAll("'", "'\\''")}'`;
  if (!found) { $("device-note").scrollIntoView({ behavior: "smooth", block: "nearest" }); return; }
  choose(found.stream, found.device);
  $("windows-title").scrollIntoView({ behavior: "smooth" });
}
function picked(cells, act, text) {
  const made = row(cells, "td", text);
  made.className = "pick";
  made.tabIndex = 0;
  made.onclick = act;
  made.onkeydown = (event) => { if (event.key === "Enter") act(); };
  return made;
}

function drawDevices() {
  const { devices } = fleet, part = $("find").value.trim().toLowerCase();
  const found = devices.device.map((name, i) => i).filter((i) => !part || devices.device[i].toLowerCase().includes(part));
  const first = found.sort(ORDERS[$("order").value](devices)).slice(0, DEVICES_SHOWN);
  const head = row(["Device", "Complete", "Readings", "Missing", "Last reading (UTC)"], "th", [0]);
  const body = first.map((i) => picked([devices.device[i], percent(devices.completeness[i]), whole.format(devices.readings[i]), whole.format(devices.missing[i]),
    devices.last[i] ? moment(devices.last[i] * 1000) : "–"], () => pickDevice(i), [0]));
  $("devices").replaceChildren(element("thead", {}, head), element("tbody", {}, ...body));
  $("devices-note").textContent = found.length > first.length ? `${first.length} of ${whole.format(found.length)}${part ? " found" : ""}.` : found.length ? "" : "No device has this in its name.";
}

function drawWidest() {
  const name = chosen.aggregate, rows = fleet.widest.filter((one) => one.aggregate === name).sort((a, b) => b.width - a.width).slice(0, 12);
  $("widest-note").textContent = rows.length ? `Windows of a device whose ${label(name)} is known least well, at most five of a stream.` : `Every ${label(name)} is exact.`;
  const head = row(["Device", "Stream", "Window", label(name), "Low", "High"], "th");
  const body = rows.map((one) => picked([one.device, one.stream, moment(one.start), number(one.value), number(one.low), number(one.high)],
    () => pickDevice(fleet.devices.device.indexOf(one.device), one.stream), [0, 1]));
  $("widest").replaceChildren(...(rows.length ? [element("thead", {}, head), element("tbody", {}, ...body)] : []));
}

function drawFleet() {
  fill($("order"), Object.keys(ORDERS).map((name) => [name, name]), "least complete");
  $("find").oninput = drawDevices;
  $("order").onchange = drawDevices;
  drawHeat(); drawDevices(); drawWidest();
}
