
"use strict";
// Replays recorded runs. The data is in the page, nothing is loaded, and all text of a run is shown as text only.

const runs = JSON.parse(document.getElementById("data").textContent);
const state = { run: runs[0], step: 0, group: 0, timer: 0, seen: 0 };
const title = document.title.replace(/^Replay: /, "");
const at = (id) => document.getElementById(id);
const [TEXT, LENGTH, ADVANTAGE, TOTAL, REWARDS, EXTRAS] = [0, 1, 2, 3, 4, 5]; // the places in a row
const NONE = "–";
const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 340, height: 92, left: 44, right: 6, top: 6, bottom: 18 };

// ---- Small helpers ----

function make(tag, { text, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function shown(value, signed = false) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  const sign = value < 0 ? "−" : signed && value > 0 ? "+" : "";
  if (size && size < 1e-3) return sign + size.toExponential(1);
  const digits = Number.isInteger(value) && size < 1e6 ? 0 : size >= 100 ? 0 : size >= 10 ? 1 : size >= 0.01 || !size ? 2 : 4;
  return sign + size.toLocaleString("en", { minimumFractionDigits: signed && !digits ? 0 : digits, maximumFractionDigits: digits });
}

function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function count(number, one) {
  return `${number.toLocaleString("en")} ${one}${number === 1 ? "" : "s"}`;
}

function largest(numbers) { // "at most 8" where they differ
  const most = numbers.reduce((one, other) => Math.max(one, other));
  return numbers.every((each) => each === most) ? `${most}` : `at most ${most}`;
}

const stepNow = () => state.run.steps[state.step];
const rowsOf = (step) => step.groups.flatMap((group) => group.rows);
const textOf = (number) => state.run.texts[number];

function breakable(name) { // a long name may be broken after its underscores
  return (name.match(/[^_/.]+[_/.]*|[_/.]+/g) ?? []).flatMap((part) => [part, document.createElement("wbr")]).slice(0, -1);
}

function tinted(text) { // tags in a color of their own, because many rewards pay for them
  return text.split(/(<[^<>\s]{1,40}>)/).map((part, index) => (index % 2 ? make("span", { class: "tag", text: part }) : part));
}

function textBox(number, label) {
  const text = textOf(number);
  const box = make("div", { class: "text", dir: "auto", "data-label": label });
  if (text.trim()) box.append(...tinted(text));
  else box.append(make("span", { class: "empty", text: text ? "only blank characters" : "empty" }));
  return box;
}

function fit(part) { // a table that is too wide is stacked, and a text that must be scrolled is reached by keys
  for (const table of part.querySelectorAll(".wide-text")) {
    table.classList.remove("stacked");
    table.classList.toggle("stacked", table.offsetWidth > table.parentElement.clientWidth);
  }
  const measured = [...part.querySelectorAll(".text")].map((box) => [box, box.scrollHeight > box.clientHeight]);
  for (const [box, scrolls] of measured) { // after all are measured: a change between two would lay out the page again
    const names = { tabindex: "0", role: "region", "aria-label": box.dataset.label };
    for (const [name, value] of Object.entries(names)) scrolls ? box.setAttribute(name, value) : box.removeAttribute(name);
  }
}

// ---- A run as a whole ----

function showRun() {
  const { run } = state;
  const steps = run.steps;
  state.step = 0;
  state.group = 0;
  state.seen = 0;
  at("headline").textContent = runs.length > 1 || title !== run.name ? title : `Replay of ${run.name}`;
  at("about").textContent = about(run);
  at("story").textContent = run.story;
  document.body.classList.toggle("asks-more", run.steps.some((step) => step.groups.some((group) => questionOf(group).length > 34)));
  at("step").max = steps.length - 1;
  at("step").value = 0;
  fill(at("from"), steps.map((step) => step.step), 0);
  fill(at("to"), steps.map((step) => step.step), steps.length - 1);
  at("notes").replaceChildren(...notes(run).map((text) => make("li", { text })));
  listVerdicts();
  showCharts();
  showPaid();
  showChanges();
  showStep();
}

function about(run) {
  const first = run.steps[0];
  const rows = largest(run.steps.map((step) => rowsOf(step).length));
  const group = largest(run.steps.flatMap((step) => step.groups.map((each) => each.rows.length)));
  const sampled = `${count(run.steps.length, "recorded step")}, ${first.step} to ${run.steps.at(-1).step}`;
  return run.heldOut ? `${sampled} · ${rows} held-out prompts` : `${sampled} · ${rows} completions each, in groups of ${group}`;
}

function notes(run) {
  const length = "The length of a completion is in characters; special tokens that TRL removes do not count.";
  const weighted = run.weights.some((weight) => weight !== 1);
  const total = weighted ? "The total is the weighted sum of the rewards. Each reward is shown before it is weighted." : "The total is the sum of the rewards.";
  return [...run.notes, ...(run.heldOut ? [length] : [total, length]), "All that the page shows is in this file. It loads nothing and sends nothing."];
}

function fill(select, values, chosen) {
  select.replaceChildren(...values.map((text, value) => make("option", { value, text })));
  select.value = chosen;
}

// ---- Curves ----

function scales({ points, kind }, from, to) {
  const values = points.map(([, value]) => value);
  let [low, high] = [Math.min(0, ...values), Math.max(...values)];
  if (["correctness", "tied"].includes(kind) && low === 0 && high <= 1) high = 1; // a share, so that runs can be compared
  if (low === high) high = low + 1;
  const { width, height, left, right, top, bottom } = BOX;
  const x = (step) => left + ((step - from) / Math.max(1, to - from)) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  return { x, y, low, high };
}

function span() {
  const steps = state.run.curves.flatMap((curve) => curve.points.map(([step]) => step));
  steps.push(state.run.steps[0].step, state.run.steps.at(-1).step);
  return steps.reduce(([low, high], step) => [Math.min(low, step), Math.max(high, step)], [steps[0], steps[0]]);
}

function showCharts() {
  const [from, to] = span();
  at("charts").replaceChildren(...state.run.curves.map((curve) => chart(curve, from, to)));
  at("legend").textContent = "A curve is drawn as far as you have seen the run. The solid line is the step shown, a dotted line a warning, which looks back over several steps and so comes late. Click in a chart to go to a step.";
}

function chart(curve, from, to) {
  const { x, y, low, high } = scales(curve, from, to);
  const { width, height, left, right, bottom } = BOX;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: `chart ${curve.kind}`, role: "img" });
  for (const value of [low, high]) {
    svg.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    const text = shown(value);
    const long = text.length > 5; // it would begin left of the chart, and on a phone it reaches the step's number
    const place = long ? { x: 0, y: y(value) + (value === low ? -4 : 4) } : { x: left - 5, y: y(value) + 4, "text-anchor": "end" };
    svg.append(draw("text", place, text));
  }
  svg.append(draw("text", { x: left, y: height - 4 }, `step ${from}`));
  if (from !== to) svg.append(draw("text", { x: width - right, y: height - 4, "text-anchor": "end" }, to));
  for (const { step, severity } of state.run.verdicts) {
    if (severity !== "note") svg.append(draw("line", { class: "spoke", "data-step": step, x1: x(step), x2: x(step), y1: BOX.top, y2: height - bottom }));
  }
  svg.append(draw("polyline", { class: "curve" }));
  svg.append(draw("line", { class: "now", y1: BOX.top, y2: height - bottom }), draw("circle", { class: "dot", r: 4 }));
  svg.addEventListener("click", (event) => { stop(); goNear(stepAt(svg, event.clientX, from, to)); });
  const caption = make("figcaption", { class: curve.kind }, make("span", { dir: "auto" }, ...breakable(curve.label)), make("output", { "aria-live": "off" }));
  return make("figure", {}, caption, svg);
}

function stepAt(svg, clientX, from, to) {
  const frame = svg.getBoundingClientRect();
  const inside = ((clientX - frame.left) / frame.width) * BOX.width - BOX.left;
  return from + (inside / (BOX.width - BOX.left - BOX.right)) * (to - from);
}

function markCharts() {
  const [from, to] = span();
  const step = stepNow().step;
  state.run.curves.forEach((curve, index) => {
    const figure = at("charts").children[index];
    const { x, y } = scales(curve, from, to);
    const point = lastUntil(curve.points, step);
    const line = figure.querySelector(".now");
    line.setAttribute("x1", x(step));
    line.setAttribute("x2", x(step));
    const dot = figure.querySelector(".dot");
    dot.setAttribute("visibility", point ? "visible" : "hidden");
    if (point) { dot.setAttribute("cx", x(point[0])); dot.setAttribute("cy", y(point[1])); }
    figure.querySelector("output").textContent = shown(point ? point[1] : null);
    const until = state.run.steps[state.seen].step;
    const known = curve.points.filter(([each]) => each <= until);
    const svg = figure.querySelector("svg");
    svg.querySelector(".curve").setAttribute("points", known.map(([each, value]) => `${x(each).toFixed(1)},${y(value).toFixed(1)}`).join(" "));
    const ends = known.length ? [known[0], known.at(-1)].map(([each, value]) => `${shown(value)} at step ${each}`) : [NONE, NONE];
    svg.setAttribute("aria-label", `${curve.label}: from ${ends[0]} to ${ends[1]}`);
    for (const spoke of svg.querySelectorAll(".spoke")) spoke.setAttribute("visibility", Number(spoke.dataset.step) <= until ? "visible" : "hidden");
  });
}

function lastUntil(points, step) {
  let found = null;
  for (const point of points) if (point[0] <= step) found = point;
  return found;
}

// ---- One step ----

function goTo(index) {
  state.step = Math.max(0, Math.min(state.run.steps.length - 1, index));
  at("step").value = state.step;
  showStep();
}

function goNear(step) {
  const distances = state.run.steps.map((each) => Math.abs(each.step - step));
  goTo(distances.indexOf(Math.min(...distances)));
}

function showStep() {
  const step = stepNow();
  at("at").textContent = `step ${step.step} of ${state.run.steps.at(-1).step}`;
  at("said").textContent = sentence(step);
  at("step").setAttribute("aria-valuetext", `step ${step.step}. ${sentence(step)}`);
  state.group = Math.min(state.group, step.groups.length - 1);
  fill(at("group"), step.groups.map((group, index) => groupLabel(group, index, step)), state.group);
  state.seen = Math.max(state.seen, state.step);
  const ending = state.seen === state.run.steps.length - 1 ? state.run.ending : "";
  if (at("ending").textContent !== ending) at("ending").textContent = ending; // else it would be read out at each step
  at("ending").hidden = !ending;
  for (const part of document.querySelectorAll(".at-the-end")) part.hidden = part.dataset.empty === "yes" || state.seen < state.run.steps.length - 1;
  if (!state.timer) at("play").textContent = isLast() ? "Again" : "Play";
  markCharts();
  showVerdicts();
  showNow();
  showGroup();
}

function isLast() {
  return state.step === state.run.steps.length - 1 && state.step > 0;
}

function truthOf(run) { // the place of the reward that says whether an answer is correct, if its scores are only 0 and 1
  run.truth ??= findTruth(run);
  return run.truth;
}

function findTruth(run) {
  const index = run.rewards.findIndex((name) => run.curves.some((curve) => curve.kind === "correctness" && curve.label === name));
  const plain = index >= 0 && run.steps.every((step) => rowsOf(step).every((row) => [0, 1, null].includes(row[REWARDS][index])));
  return plain ? index : -1;
}

function isRight(row) { // null where nothing says so
  const truth = truthOf(state.run);
  return truth < 0 || row[REWARDS][truth] === null ? null : row[REWARDS][truth] === 1;
}

function questionOf(group) { // the last line of a prompt that is not the name of a speaker
  const lines = textOf(group.prompt).split("\n").map((line) => line.trim()).filter((line) => line && !/^(system|user|assistant|<\|.*\|>)$/i.test(line));
  return (lines.at(-1) ?? "").replace(/^user\s*:?\s*/i, "").slice(0, 300);
}

function showNow() {
  const step = stepNow();
  const paid = (row) => row[TOTAL] ?? -Infinity;
  let [best, from] = [step.groups[0].rows[0], step.groups[0]];
  for (const group of step.groups) for (const row of group.rows) if (paid(row) > paid(best)) [best, from] = [row, group];
  at("now-title").textContent = state.run.heldOut ? `A held-out sample of step ${step.step}` : `What was paid most in step ${step.step}`;
  at("asked").textContent = questionOf(from);
  at("best").replaceChildren(textBox(best[TEXT], at("now-title").textContent));
  const right = isRight(best);
  const parts = state.run.heldOut ? [] : [make("span", { class: "paid", text: `paid ${shown(best[TOTAL])}` })];
  if (right !== null) parts.push(make("span", { class: "right", text: right ? "✓ correct" : "✗ not correct" }));
  at("worth").replaceChildren(...parts);
  fit(at("now"));
}

function sentence(step) {
  const parts = state.run.curves
    .filter((curve) => curve.kind === "reward" || curve.kind === "correctness")
    .map((curve) => [curve.label, lastUntil(curve.points, step.step)])
    .filter(([, point]) => point)
    .map(([label, point]) => `${label} ${shown(point[1])}`);
  const tied = step.groups.filter((group) => group.tied).length;
  if (!state.run.heldOut) parts.push(`${tied} of ${count(step.groups.length, "group")} tied`);
  return parts.join(" · ");
}

function groupLabel(group, index, step) {
  return `${index + 1} of ${step.groups.length}${group.tied && !state.run.heldOut ? " (tied)" : ""}`;
}

function listVerdicts() {
  const { verdicts } = state.run;
  const none = make("li", { text: verdicts.length ? "" : "Not known: there is no log." });
  at("verdicts").replaceChildren(none, ...verdicts.map(verdictItem));
}

function showVerdicts() { // the items stay, so that one that was opened stays open
  const { verdicts } = state.run;
  const now = stepNow().step;
  const isEnd = isLast() || state.run.steps.length === 1;
  const [none, ...items] = at("verdicts").children;
  items.forEach((item, index) => {
    item.hidden = verdicts[index].step > now && !isEnd;
    item.classList.toggle("new", verdicts[index].step === now);
  });
  if (items.length) none.textContent = state.step < 10 ? "No warning up to this step. Most checks need ten steps or more." : "No warning up to this step.";
  none.hidden = items.some((item) => !item.hidden);
}

function verdictItem(verdict) {
  const summary = make("summary", {},
    make("span", { class: `severity ${verdict.severity}`, text: verdict.severity }), ` ${verdict.code}: ${verdict.what} `);
  const lines = [verdict.seen, verdict.why && `Why: ${verdict.why}`, ...verdict.fixes.map((fix) => `Do: ${fix}`)];
  const go = make("button", { type: "button", text: `Go to step ${verdict.step}` });
  go.addEventListener("click", () => { stop(); goNear(verdict.step); at("step").focus(); });
  const details = make("details", {}, summary, ...lines.filter(Boolean).map((text) => make("p", { text })), go);
  return make("li", {}, details);
}

// ---- One group ----

function showGroup() {
  const step = stepNow();
  const group = step.groups[state.group];
  at("group").value = state.group;
  at("before").setAttribute("aria-disabled", state.group === 0); // `disabled` would drop the focus
  at("after").setAttribute("aria-disabled", state.group === step.groups.length - 1);
  at("prompt").textContent = textOf(group.prompt) || "The prompt was not recorded.";
  at("question").textContent = questionOf(group);
  at("rows").replaceChildren(groupTable(group, step));
  fit(at("group-view"));
}

function columnsOf() {
  const { run } = state;
  const label = (name, index) => {
    const weight = run.weights[index];
    return weight === 1 ? name : weight ? `${name} (weight ${weight})` : `${name} (not paid)`;
  };
  const truth = truthOf(run);
  const tick = (row) => ({ true: "✓", false: "✗", null: NONE })[isRight(row)];
  const right = truth < 0 ? [] : [{ name: label(run.rewards[truth], truth), value: tick }];
  const named = run.rewards.map((name, index) => ({ name: label(name, index), value: (row) => shown(row[REWARDS][index]) })).filter((_, index) => index !== truth);
  const length = { name: "characters", value: (row) => shown(row[LENGTH]) };
  if (run.heldOut) return [...right, ...named, length];
  const paid = run.weights.filter((weight) => weight);
  const total = run.rewards.length > 1 && (paid.length > 1 || paid[0] !== 1) ? [{ name: run.total, value: (row) => shown(row[TOTAL]) }] : [];
  return [...right, { name: "advantage", value: (row) => shown(settled(row[ADVANTAGE]), true), bar: true }, ...total, ...named, length];
}

function settled(advantage) { // a rounding error of a tied group is no advantage
  return advantage !== null && Math.abs(advantage) < 1e-4 ? 0 : advantage;
}

function groupTable(group, step) {
  const columns = columnsOf();
  const head = make("tr", {}, ...columns.map(({ name }) => make("th", { scope: "col", dir: "auto" }, ...breakable(name))),
    make("th", { scope: "col", class: "wide", text: "completion" }));
  const most = group.tied ? Infinity : Math.max(...group.rows.map((row) => Math.abs(row[ADVANTAGE] ?? 0)), 2.5); // one scale, unless advantages are larger
  const body = group.rows.map((row, index) => groupRow(row, index, columns, most));
  const caption = state.run.heldOut ? `${count(group.rows.length, "sample")} at step ${step.step}`
    : `Step ${step.step}, group ${state.group + 1}: ${count(group.rows.length, "completion")}${group.tied ? "" : ", the highest advantage first"}`;
  const table = make("table", { class: "wide-text" }, make("caption", { text: caption }), make("thead", {}, head), make("tbody", {}, ...body));
  if (group.tied && !state.run.heldOut) {
    table.caption.append(make("b", { text: `. ${whyTied(group)}` }));
  }
  return table;
}

function whyTied(group) {
  if (group.rows.every((row) => row[TOTAL] === null)) return "No reward function scored them: this group teaches nothing.";
  return group.rows.every((row) => isRight(row)) ? "All are correct and were paid the same: nothing is left to learn from this prompt." : "All were paid the same: this group teaches nothing.";
}

function groupRow(row, index, columns, most) {
  const cells = columns.map(({ name, value, bar }) => {
    const said = value(row), spoken = { "✓": "correct", "✗": "not correct" }[said];
    const cell = make("td", { "data-label": name }, spoken ? make("span", { role: "img", "aria-label": spoken, text: said }) : said);
    if (bar && settled(row[ADVANTAGE])) cell.append(advantageBar(row[ADVANTAGE], most));
    return cell;
  });
  const said = make("td", { class: "wide" }, textBox(row[TEXT], `Completion ${index + 1}`));
  state.run.extras.forEach((name, place) => {
    const value = textOf(row[EXTRAS][place]);
    if (value) said.append(make("div", { class: "extra", dir: "auto", text: `${name}: ${value}` }));
  });
  return make("tr", {}, ...cells, said);
}

function advantageBar(value, most) {
  const svg = draw("svg", { viewBox: "-50 0 100 8", class: "bar", "aria-hidden": "true" });
  const width = (Math.abs(value) / most) * 50;
  svg.append(draw("rect", { class: value > 0 ? "up" : "down", x: value > 0 ? 0 : -width, y: 1, width, height: 6 }));
  svg.append(draw("line", { x1: 0, x2: 0, y1: 0, y2: 8 }));
  return svg;
}

// ---- Two steps ----

function showChanges() {
  const { steps } = state.run;
  const [one, two] = [steps[at("from").value], steps[at("to").value]];
  const words = make("div", { class: "pair" }, ...wordTables(one, two));
  const best = make("div", { class: "pair" }, bestOf(one), bestOf(two));
  at("changes").replaceChildren(metricTable(one, two), words, best);
  fit(at("changes"));
}

function metricsOf(step) {
  const rows = rowsOf(step);
  const { run } = state;
  const metrics = run.heldOut ? [] : [[`reward (${run.total})`, mean(rows.map((row) => row[TOTAL]))]];
  run.rewards.forEach((name, index) => metrics.push([name, mean(rows.map((row) => row[REWARDS][index]))]));
  metrics.push(["length in characters", mean(rows.map((row) => row[LENGTH]))]);
  metrics.push(["different completions (share)", new Set(rows.map((row) => row[TEXT])).size / rows.length]);
  if (!run.heldOut) metrics.push(["tied groups (share)", mean(step.groups.map((group) => Number(group.tied)))]);
  return metrics;
}

function metricTable(one, two) {
  const after = metricsOf(two);
  const rows = metricsOf(one).map(([name, value], index) => {
    const change = value === null || after[index][1] === null ? null : after[index][1] - value;
    return [name, shown(value), shown(after[index][1]), shown(change, true)];
  });
  const size = `${rowsOf(one).length} and ${rowsOf(two).length} completions`;
  return plainTable(`Means over ${size}; one step is a small sample`, ["", `step ${one.step}`, `step ${two.step}`, "change"], rows);
}

function plainTable(caption, names, rows) {
  const head = make("tr", {}, ...names.map((text) => (text ? make("th", { scope: "col", text }) : make("td"))));
  const body = rows.map(([name, ...values]) => make("tr", {}, make("th", { scope: "row", dir: "auto" }, ...breakable(name)), ...values.map((text) => make("td", { text }))));
  return make("table", { class: "plain" }, make("caption", { text: caption }), make("thead", {}, head), make("tbody", {}, ...body));
}

function sharesOfWords(step) {
  const counts = new Map();
  const size = rowsOf(step).length;
  for (const group of step.groups) {
    const asked = wordsOf(textOf(group.prompt));
    for (const row of group.rows) {
      for (const word of wordsOf(textOf(row[TEXT]))) {
        if (!asked.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1 / size);
      }
    }
  }
  return counts;
}

function wordsOf(text) { // tags, words and single signs; numbers differ from prompt to prompt
  const found = text.match(/<[^<>\s]{1,30}>|[\p{L}_][\p{L}\p{N}_]*|[^\s\p{L}\p{N}_]/gu) ?? [];
  return new Set(found.filter((word) => word.length <= 40));
}

function wordTables(one, two) {
  const [before, after] = [sharesOfWords(one), sharesOfWords(two)];
  const changes = [...new Set([...before.keys(), ...after.keys()])].map((word) => [word, before.get(word) ?? 0, after.get(word) ?? 0]);
  const percent = (share) => `${Math.round(share * 100)}%`;
  const table = (caption, sign) => {
    const most = changes.filter(([, a, b]) => sign * (b - a) >= 0.1).sort((a, b) => sign * (b[2] - b[1] - a[2] + a[1])).slice(0, 6);
    if (!most.length) return make("p", { class: "quiet", text: `${caption}: none by ten points or more.` });
    return plainTable(`${caption} (share of completions with the word; without numbers and the words of the prompt)`, ["", `step ${one.step}`, `step ${two.step}`], most.map(([word, a, b]) => [word, percent(a), percent(b)]));
  };
  return [table("Words that came", 1), table("Words that went", -1)].map((each) => make("div", {}, each));
}

function bestOf(step) {
  const paid = (row) => row[TOTAL] ?? -Infinity;
  const best = rowsOf(step).reduce((most, row) => (paid(row) > paid(most) ? row : most));
  const heading = state.run.heldOut ? `A sample of step ${step.step}` : `The most paid of step ${step.step}: ${shown(best[TOTAL])}`;
  return make("div", {}, make("h3", { text: heading }), textBox(best[TEXT], heading));
}

// ---- The most paid completions ----

function showPaid() {
  const { paid, heldOut } = state.run;
  at("paid").parentElement.dataset.empty = heldOut || !paid.length ? "yes" : "no";
  const names = ["reward", "times", "steps"];
  const head = make("tr", {}, ...names.map((text) => make("th", { scope: "col", text })), make("th", { scope: "col", class: "wide", text: "completion" }));
  const table = make("table", { class: "wide-text" },
    make("caption", { text: "Different texts by the most that they earned, then by how often they earned it. Read these first: they show what the rewards pay for." }),
    make("thead", {}, head), make("tbody", {}, ...paid.map(paidRow)));
  at("paid").replaceChildren(table);
  fit(at("paid"));
}

function paidRow(paid, index) {
  const [first, last] = paid.steps;
  const text = first === last ? `${first}` : `${first}–${last}`;
  const kept = state.run.steps.some((each) => each.step === first); // a small file may have left it out
  const go = kept ? make("button", { type: "button", text, "aria-label": `Go to step ${first}` }) : text;
  if (kept) go.addEventListener("click", () => { goNear(first); showGroupWith(paid.text); at("step").focus(); });
  return make("tr", {}, make("td", { "data-label": "reward", text: shown(paid.reward) }), make("td", { "data-label": "times", text: `${paid.times}` }),
    make("td", { "data-label": "steps" }, go), make("td", { class: "wide" }, textBox(paid.text, `Paid completion ${index + 1}`)));
}

function showGroupWith(text) {
  const index = stepNow().groups.findIndex((group) => group.rows.some((row) => row[TEXT] === text));
  if (index >= 0) chooseGroup(index);
}

function chooseGroup(index) {
  state.group = Math.max(0, Math.min(stepNow().groups.length - 1, index));
  showGroup();
}

// ---- Controls ----

function play() {
  if (state.timer) return stop();
  if (state.step === state.run.steps.length - 1) goTo(0);
  at("play").textContent = "Pause";
  document.body.classList.add("playing");
  if (window.innerWidth <= 640) at("controls").scrollIntoView();
  at("said").setAttribute("aria-live", "off"); // a screen reader could not keep up
  state.timer = setInterval(() => {
    goTo(state.step + 1);
    if (state.step === state.run.steps.length - 1) stop();
  }, Math.max(60, Math.min(400, 20000 / state.run.steps.length)));
}

function stop() {
  clearInterval(state.timer);
  state.timer = 0;
  document.body.classList.remove("playing");
  at("play").textContent = isLast() ? "Again" : "Play";
  at("said").setAttribute("aria-live", "polite");
  if (state.listening) writeAddress();
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === " " && [document.body, at("step")].includes(event.target)) { event.preventDefault(); play(); }
  if (event.target.closest("input, select, .text")) return;
  const places = { ArrowLeft: state.step - 1, ArrowRight: state.step + 1, Home: 0, End: state.run.steps.length - 1 };
  if (event.key in places) { event.preventDefault(); stop(); goTo(places[event.key]); }
}

function chooseRun() {
  stop();
  state.run = runs[at("run").value];
  showRun();
}

function readAddress() { // #run=2&step=12&group=3, counted from 1; a step by its number
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (/^\d{1,9}$/.test(asked.get(name) ?? "") ? Number(asked.get(name)) : 0);
  const run = runs[number("run") - 1];
  if (run && run !== state.run) { at("run").value = number("run") - 1; chooseRun(); }
  if (number("step")) goNear(number("step"));
  if (number("group")) chooseGroup(number("group") - 1);
}

function writeAddress() {
  if (state.timer) return;
  const run = runs.length > 1 ? `run=${runs.indexOf(state.run) + 1}&` : "";
  history.replaceState(null, "", `#${run}step=${stepNow().step}&group=${state.group + 1}`);
}

function addRuns() { // the others, which stand after the script
  runs.push(...JSON.parse(at("more").textContent));
  fill(at("run"), runs.map((run) => run.name), 0);
  at("run-choice").hidden = runs.length < 2;
  at("run-choice").firstElementChild.textContent = `Choose one of ${runs.length} runs`;
  if (runs.length > 1) at("headline").textContent = title;
  readAddress();
  state.listening = true;
  for (const id of ["step", "run", "group"]) at(id).addEventListener("change", writeAddress);
  document.addEventListener("keyup", writeAddress);
  document.addEventListener("click", writeAddress);
  window.addEventListener("hashchange", readAddress);
}

function listen() {
  at("step").addEventListener("input", () => { stop(); goTo(Number(at("step").value)); });
  at("group").addEventListener("change", () => chooseGroup(Number(at("group").value)));
  at("before").addEventListener("click", () => chooseGroup(state.group - 1));
  at("after").addEventListener("click", () => chooseGroup(state.group + 1));
  for (const id of ["from", "to"]) at(id).addEventListener("change", showChanges);
  at("play").addEventListener("click", play);
  at("run").addEventListener("change", chooseRun);
  document.addEventListener("keydown", onKey);
  // The header is as wide as the page, also where a scroll bar made it narrower, and what `fit` does never changes it.
  new ResizeObserver(() => fit(document)).observe(document.querySelector("header"));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
}

function open() {
  document.querySelector("main").hidden = false;
  listen();
  showRun();
  at("needs").hidden = true; // an old browser does not come this far
  if (/\brun=(?!1\b)\d/.test(location.hash)) at("story").textContent = "The run of this address is still loading.";
  document.addEventListener("DOMContentLoaded", addRuns);
}

open();
