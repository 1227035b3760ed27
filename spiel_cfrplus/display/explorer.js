// The program of the strategy explorer; spiel_cfrplus/display/explorer.py documents the data.
// Texts of the game are put into the page by textContent only, so they are never interpreted as HTML.
"use strict";

const ROWS_PER_PAGE = 50;
const MOST_FOUND = 100;
const TYPES = { uint8: Uint8Array, uint32: Uint32Array, float32: Float32Array };

let data; // the header, the arrays by name, and the texts
const view = { situation: 0, infostate: -1, page: 0 };

// Elements.

function element(name, properties = {}, ...children) {
  const result = Object.assign(document.createElement(name), properties);
  result.append(...children.filter((child) => child !== null));
  return result;
}

function byId(id) {
  return document.getElementById(id);
}

function button(text, action, properties = {}) {
  return element("button", { type: "button", textContent: text, onclick: action, ...properties });
}

function header(texts) {
  return element("thead", {}, element("tr", {}, ...texts.map((text) => element("th", { scope: "col", textContent: text }))));
}

// A cell shows a rounded number; its title is the number in the file.
function numberCell(number, format = shortNumber) {
  return element("td", { textContent: format(number), title: Number.isNaN(number) ? "not defined" : String(number) });
}

function barCell(probability, profile) {
  const cell = numberCell(probability, probabilityText);
  cell.className = profile === 0 ? "bar" : "bar other";
  cell.style.setProperty("--width", `${100 * probability}%`);
  return cell;
}

function shortNumber(number) {
  if (Number.isNaN(number)) return "–";
  if (number !== 0 && Math.abs(number) < 0.001) return number.toExponential(2);
  return String(Number(number.toPrecision(4)));
}

function probabilityText(probability) {
  if (Number.isNaN(probability)) return "–";
  if (probability > 0 && probability < 0.0005) return "<0.001";
  return probability.toFixed(3);
}

// Data.

async function load() {
  const head = JSON.parse(byId("header").textContent);
  const stream = new Blob([bytesOf(byId("arrays").textContent)]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const arrays = {};
  for (const [name, [type, start, length]] of Object.entries(head.arrays)) {
    arrays[name] = new TYPES[type](buffer, start, length);
  }
  const [infostates, names, labels] = JSON.parse(new TextDecoder().decode(arrays.texts));
  return { ...arrays, head, infostates, names, labels, ...situationsAbove(arrays) };
}

function bytesOf(base64) {
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}

// The situation above each situation, and the first situation of each infostate.
function situationsAbove(arrays) {
  const children = arrays.situation_child_start;
  const members = arrays.situation_infostate_start;
  const count = children.length - 1;
  const parent = new Uint32Array(count);
  const situationOf = new Uint32Array(arrays.infostate_player.length);
  for (let s = count - 1; s >= 0; s--) {
    parent.fill(s, children[s], children[s + 1]);
    for (let k = members[s]; k < members[s + 1]; k++) situationOf[arrays.situation_infostates[k]] = s;
  }
  return { parent, situationOf };
}

function profiles() {
  return data.head.profiles.map((_, k) => k);
}

function childrenOf(s) {
  return range(data.situation_child_start[s], data.situation_child_start[s + 1]);
}

function infostatesOf(s) {
  return data.situation_infostates.subarray(data.situation_infostate_start[s], data.situation_infostate_start[s + 1]);
}

function rowsOf(i) {
  return range(data.row_start[i], data.row_start[i + 1]);
}

function range(start, end) {
  return Array.from({ length: end - start }, (_, k) => start + k);
}

function actionName(row) {
  return data.names[data.row_name[row]] || `action ${data.row_action[row]}`;
}

function reach(i, k = 0) {
  return data[`own_reach${k}`][i] * data[`counterfactual_reach${k}`][i];
}

function largestRegret(i) {
  let largest = -Infinity;
  for (let row = data.row_start[i]; row < data.row_start[i + 1]; row++) largest = Math.max(largest, data.regret0[row]);
  return largest;
}

// The value of an infostate: the mean of the expected values of its actions.
function meanValue(i, k) {
  return rowsOf(i).reduce((sum, row) => sum + data[`probability${k}`][row] * data[`expected_value${k}`][row], 0);
}

// What distinguishes the strings of several infostates: the strings without what all have in common at both ends.
function shortTexts(infostates) {
  const texts = Array.from(infostates, (i) => data.infostates[i]);
  if (texts.length < 2) return texts.map((text) => shortened(text));
  const start = commonLength(texts, (text, k) => text[k]);
  const room = Math.min(...texts.map((text) => text.length)) - start;
  const end = Math.min(room, commonLength(texts, (text, k) => text[text.length - 1 - k]));
  return texts.map((text) => shortened(text.slice(start, text.length - end)) || "(nothing)");
}

function commonLength(texts, letter) {
  const shortest = Math.min(...texts.map((text) => text.length));
  let length = 0;
  while (length < shortest && texts.every((text) => letter(text, length) === letter(texts[0], length))) length++;
  return length;
}

function shortened(text, most = 60) {
  const line = text.replace(/\s*\n\s*/g, " ⏎ ").trim();
  return line.length <= most ? line : `${line.slice(0, most / 2)}…${line.slice(-most / 2)}`;
}

// The situation, at which moves that nobody sees, the only ones there, are already made.
function settled(s) {
  while (infostatesOf(s).length === 0 && childrenOf(s).length === 1) s = data.situation_child_start[s];
  return s;
}

// Navigation.

function show(situation, infostate = -1, remember = true) {
  const members = infostatesOf(situation);
  const position = Math.max(0, members.indexOf(infostate));
  view.situation = situation;
  view.infostate = members.length ? members[position] : -1;
  view.page = Math.floor(position / ROWS_PER_PAGE);
  if (remember) history.pushState({ ...view }, "", `#situation=${situation}&infostate=${view.infostate}`);
  draw();
}

function select(infostate) {
  show(view.situation, infostate);
  document.querySelector('#grid tr[aria-selected="true"] button')?.focus();
}

function turnPage(step) {
  const members = infostatesOf(view.situation);
  const first = (view.page + step) * ROWS_PER_PAGE;
  if (first >= 0 && first < members.length) select(members[first]);
}

function showAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const situation = Number(given.get("situation") ?? -1);
  if (Number.isInteger(situation) && situation >= 0 && situation < data.situation_label.length) {
    show(situation, Number(given.get("infostate") ?? -1), false);
  } else {
    show(settled(0), -1, false);
  }
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const members = infostatesOf(view.situation);
  const position = members.indexOf(view.infostate);
  const moves = {
    Home: () => show(settled(0)),
    Backspace: goBack,
    ArrowDown: () => position + 1 < members.length && select(members[position + 1]),
    ArrowUp: () => position > 0 && select(members[position - 1]),
    ArrowRight: () => turnPage(1),
    ArrowLeft: () => turnPage(-1),
    "/": () => byId("query").focus(),
  };
  const children = childrenOf(view.situation);
  const move = moves[event.key] ?? (/^[1-9]$/.test(event.key) && event.key <= children.length ? () => follow(children[event.key - 1]) : null);
  if (!move) return;
  event.preventDefault();
  move();
}

function follow(child) {
  show(settled(child));
}

// To the situation of the move before, past those that are skipped on the way forward.
function goBack() {
  let above = view.situation;
  do above = data.parent[above];
  while (above !== 0 && settled(above) !== above);
  show(settled(above));
}

// Drawing: what is seen only.

function draw() {
  drawPath();
  drawSituation();
  drawGrid();
  drawInfostate();
}

function drawPath() {
  const path = [];
  for (let s = view.situation; s !== 0; s = data.parent[s]) path.unshift(s);
  const step = (s) => {
    const current = s === view.situation ? { ariaCurrent: "step" } : {};
    return button(s === 0 ? "start" : labelOf(s), () => show(s === 0 ? settled(0) : s), current);
  };
  byId("path").replaceChildren(step(0), ...path.map(step));
}

function labelOf(s) {
  return data.labels[data.situation_label[s]];
}

function drawSituation() {
  const s = view.situation;
  const children = childrenOf(s);
  const players = [...new Set(Array.from(infostatesOf(s), (i) => data.infostate_player[i]))];
  byId("title").textContent = players.length
    ? `Player ${players.join(" or ")} to move`
    : children.length ? "Chance" : "End of play";
  const facts = profiles().map((k) => {
    const values = valuesOf(s, k).map((value, player) => `player ${player} ${shortNumber(value)}`).join(", ");
    return `${prefix(k)}reached with probability ${shortNumber(data[`situation_reach${k}`][s])}; values: ${values}`;
  });
  byId("facts").textContent = facts.join(" · ");
  byId("next").replaceChildren(...(children.length ? [nextTable(s, children)] : []));
}

function prefix(k) {
  return profiles().length > 1 ? `${data.head.profiles[k].name}: ` : "";
}

function valuesOf(s, k) {
  const players = data.head.num_players;
  return Array.from(data[`situation_value${k}`].subarray(s * players, (s + 1) * players));
}

function nextTable(s, children) {
  const titles = profiles().flatMap((k) => [`${prefix(k)}frequency`, `${prefix(k)}value (player 0)`]);
  const body = children.map((child, number) => {
    const ends = childrenOf(child).length === 0 && infostatesOf(child).length === 0;
    const key = number < 9 ? `${number + 1}. ` : "";
    const numbers = profiles().flatMap((k) => [
      barCell(data[`situation_reach${k}`][child] / data[`situation_reach${k}`][s], k),
      numberCell(valuesOf(child, k)[0]),
    ]);
    const label = button(`${key}${labelOf(child)}${ends ? " (end)" : ""}`, () => follow(child));
    return element("tr", {}, element("td", {}, label), ...numbers);
  });
  return element("table", {}, header(["next", ...titles]), element("tbody", {}, ...body));
}

function drawGrid() {
  const members = infostatesOf(view.situation);
  if (members.length === 0) return byId("grid").replaceChildren();
  const first = view.page * ROWS_PER_PAGE;
  const shown = members.subarray(first, first + ROWS_PER_PAGE);
  const pairs = Array.from(shown).flatMap((i) => rowsOf(i).map((row) => [data.row_action[row], actionName(row)]));
  const actions = [...new Map(pairs)].sort(([action], [next]) => action - next);
  const titles = actions.flatMap(([, name]) => profiles().map((k) => prefix(k) + name));
  const texts = shortTexts(shown);
  const body = Array.from(shown, (i, position) => gridRow(i, texts[position], actions));
  const table = element("table", {}, header(["infostate", ...titles, ...profiles().map((k) => `${prefix(k)}reach`)]), element("tbody", {}, ...body));
  byId("grid").replaceChildren(table, ...pager(members.length, first, shown.length));
}

function gridRow(i, text, actions) {
  const rowOf = new Map(rowsOf(i).map((row) => [data.row_action[row], row]));
  const cells = actions.flatMap(([action]) =>
    profiles().map((k) => (rowOf.has(action) ? barCell(data[`probability${k}`][rowOf.get(action)], k) : element("td", { textContent: "not legal", className: "faint" }))),
  );
  const name = button(text || "(empty text)", () => select(i), { title: data.infostates[i].slice(0, 1000) });
  const reaches = profiles().map((k) => numberCell(reach(i, k)));
  return element("tr", { ariaSelected: String(i === view.infostate) }, element("td", {}, name), ...cells, ...reaches);
}

function pager(count, first, shown) {
  if (count <= ROWS_PER_PAGE) return [];
  const range = element("span", { textContent: ` ${first + 1} to ${first + shown} of ${count} infostates ` });
  const before = button("← before", () => turnPage(-1), { disabled: first === 0 });
  return [before, range, button("after →", () => turnPage(1), { disabled: first + shown >= count })];
}

function drawInfostate() {
  const i = view.infostate;
  if (i < 0) return byId("infostate").replaceChildren();
  const facts = profiles().map((k) => {
    const own = shortNumber(data[`own_reach${k}`][i]);
    const others = shortNumber(data[`counterfactual_reach${k}`][i]);
    return element("p", { className: "faint", textContent: `${prefix(k)}own reach ${own}, counterfactual reach ${others}, reach ${shortNumber(reach(i, k))}, value ${shortNumber(meanValue(i, k))}` });
  });
  const titles = ["action", ...profiles().flatMap((k) => ["probability", "value", "regret"].map((name) => prefix(k) + name))];
  const body = rowsOf(i).map((row) => {
    const numbers = profiles().flatMap((k) => [
      barCell(data[`probability${k}`][row], k),
      numberCell(data[`expected_value${k}`][row]),
      numberCell(data[`regret${k}`][row]),
    ]);
    return element("tr", {}, element("td", { textContent: actionName(row) }), ...numbers);
  });
  byId("infostate").replaceChildren(
    element("h2", { textContent: `Infostate of player ${data.infostate_player[i]}` }),
    element("pre", { textContent: data.infostates[i], tabIndex: 0 }),
    ...facts,
    element("table", {}, header(titles), element("tbody", {}, ...body)),
  );
}

// The infostates whose texts contain the query, those with the largest reach or regret first.
function drawFound() {
  const query = byId("query").value;
  const key = { reach, regret: largestRegret, order: (i) => -i }[byId("sort").value];
  const { found, count } = largest(query, key);
  const lines = found.map(([number, i]) => {
    const text = `player ${data.infostate_player[i]}: ${shortened(data.infostates[i], 120) || "(empty text)"}`;
    const value = byId("sort").value === "order" ? "" : ` (${shortNumber(number)})`;
    return element("li", {}, button(text + value, () => show(data.situationOf[i], i), { title: data.infostates[i].slice(0, 1000) }));
  });
  byId("found").replaceChildren(...lines);
  byId("count").textContent = count > found.length ? `the first ${found.length} of ${count} infostates` : `${count} infostates`;
}

function largest(query, key) {
  const found = [];
  let count = 0;
  for (let i = 0; i < data.infostates.length; i++) {
    if (query && !data.infostates[i].includes(query)) continue;
    count++;
    const number = key(i);
    if (found.length === MOST_FOUND && number <= found[MOST_FOUND - 1][0]) continue;
    let place = found.length;
    while (place > 0 && found[place - 1][0] < number) place--;
    found.splice(place, 0, [number, i]);
    if (found.length > MOST_FOUND) found.pop();
  }
  return { found, count };
}

// The convergence curve, on log-log axes.

function drawCurve() {
  const runs = Object.entries(data.head.rows).map(([name, rows]) => [name, rows.filter(([t, gap]) => t > 0 && gap > 0)]);
  const points = runs.flatMap(([, rows]) => rows);
  if (points.length === 0) return;
  const [left, right] = bounds(points.map(([t]) => t));
  const [low, high] = bounds(points.map(([, gap]) => gap));
  const x = (t) => 60 + (460 * (Math.log10(t) - left)) / (right - left);
  const y = (gap) => 210 - (190 * (Math.log10(gap) - low)) / (high - low);
  const picture = svg("svg", { viewBox: "0 0 540 250", role: "img", "aria-label": "NashConv against iterations, on logarithmic axes" });
  for (const power of powers(left, right)) picture.append(svg("path", { class: "grid", d: `M${x(10 ** power)},20V210` }), label(x(10 ** power), 226, power, "middle"));
  for (const power of powers(low, high)) picture.append(svg("path", { class: "grid", d: `M60,${y(10 ** power)}H520` }), label(54, y(10 ** power) + 4, power, "end"));
  runs.forEach(([name, rows], number) => {
    const dashes = ["", "6 3", "2 3", "8 3 2 3"][number % 4];
    picture.append(svg("path", { class: "line", "stroke-dasharray": dashes, d: rows.map(([t, gap], k) => `${k ? "L" : "M"}${x(t)},${y(gap)}`).join("") }));
    if (rows.length) picture.append(svg("text", { x: 500, y: y(rows[rows.length - 1][1]) - 6, "text-anchor": "end" }, name));
  });
  picture.append(svg("text", { x: 290, y: 244, "text-anchor": "middle" }, "iterations"), svg("text", { x: 4, y: 12 }, "NashConv"));
  byId("curve").append(picture);
  byId("curve").hidden = false;
}

function svg(name, attributes, text = "") {
  const result = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) result.setAttribute(key, value);
  result.textContent = text;
  return result;
}

function label(x, y, power, anchor) {
  return svg("text", { x, y, "text-anchor": anchor }, Math.abs(power) <= 3 ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`);
}

function bounds(numbers) {
  const logs = numbers.map(Math.log10);
  const [start, end] = [Math.floor(Math.min(...logs)), Math.ceil(Math.max(...logs))];
  return [start, Math.max(end, start + 1)];
}

function powers(start, end) {
  const step = Math.ceil((end - start) / 8);
  return range(0, Math.floor((end - start) / step) + 1).map((k) => start + k * step);
}

// Start.

async function main() {
  data = await load();
  const { game, num_histories: histories, profiles: shown } = data.head;
  document.title = `${game}: strategy explorer`;
  byId("game").textContent = game;
  const lines = [`${histories} histories, ${data.infostates.length} infostates`, ...shown.map((own) => `${own.name}: NashConv ${shortNumber(own.nash_conv)}, values ${own.values.map(shortNumber).join(", ")}`)];
  byId("summary").replaceChildren(...lines.map((line) => element("div", { textContent: line })));
  byId("search").onsubmit = (event) => event.preventDefault();
  byId("query").oninput = drawFound;
  byId("sort").onchange = drawFound;
  window.onpopstate = showAddress;
  document.onkeydown = pressed;
  showAddress();
  drawFound();
  drawCurve();
  document.body.dataset.ready = "yes";
}

main().catch((error) => {
  byId("summary").textContent = `This page cannot be shown: ${error.message}. It needs a browser with DecompressionStream (2023 or later).`;
  throw error;
});
