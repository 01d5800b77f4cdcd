// The pipeline view: tells every op under the pointer or the arrow keys, what it waits for and what
// waits for it; moves a time cursor; zooms. All of it in the browser: the ops came with the picture.
const KINDS = 'FBIW';
const PLAY = 12; // seconds from the first op to the last
let root = null;
let given = ''; // the strips as they were sent
let strips = [];
let words = {};
let waits = [];
let chosen = null; // { strip, op } under the pointer or the keys
let cursor = 0; // ticks
let zoom = 0; // power of two

const find = (selector) => root.querySelector(selector);

// --- What the server sent -------------------------------------------------------------------------

function read() {
  root = element.querySelector('.pipeline-views');
  if (!root) {
    player.stop();
    given = '';
    strips = [];
    return;
  }
  words = JSON.parse(root.dataset.words);
  waits = JSON.parse(root.dataset.waits);
  if (root.dataset.strips !== given) {
    player.stop();
    given = root.dataset.strips;
    chosen = null;
    picked = '';
    cursor = 0;
    strips = JSON.parse(given);
    strips.forEach((strip) => unpack(strip, given));
  }
  watchSize.disconnect();
  watchSize.observe(find('.pipeline-scroll'));
  apply();
  pick();
}

// As render/scenes/timeline.py packs them: counts of each rank, then five columns of differences.
async function unpack(strip, sent) {
  const bytes = Uint8Array.from(atob(strip.ops), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  const all = new Uint16Array(await new Response(stream).arrayBuffer());
  if (sent !== given) return;
  const ranks = strip.ranks.length;
  strip.first = [0];
  for (let r = 0; r < ranks; r++) strip.first.push(strip.first[r] + all[r] + 65536 * all[ranks + r]);
  const count = strip.first[ranks];
  const [start, end, micro, stage, what] = [0, 1, 2, 3, 4].map((column) => {
    const from = 2 * ranks + column * count;
    const values = all.slice(from, from + count);
    for (let i = 1; i < count; i++) values[i] += values[i - 1];
    return values;
  });
  Object.assign(strip, { count, start, end, micro, stage, what });
  strip.where = new Int32Array(4 * strip.m * strip.stages).fill(-1);
  for (let i = 0; i < count; i++) {
    strip.where[kindOf(strip, i) + 4 * (micro[i] + strip.m * stage[i])] = i;
  }
  apply();
  pick();
}

// The op of the moment that the time axis above chose, once its ops are there.
let picked = '';
function pick() {
  const said = root?.closest('.pipeline')?.dataset.op ?? '';
  if (said === picked || !strips[0]?.count) return;
  picked = said;
  const op = said ? opOf(strips[0], ...JSON.parse(said)) : -1;
  if (op >= 0) choose(0, op);
}

const kindOf = (strip, i) => strip.what[i] % 4;
const halfOf = (strip, i) => Math.floor(strip.what[i] / 4);

// The last place of rising values, from low and before high, with at most this; low - 1 where none is.
function lastUpTo(values, most, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

const rankOf = (strip, i) => lastUpTo(strip.first, i, 0, strip.ranks.length);

// The last op of a rank that has started at a time, or -1.
function lastAt(strip, rank, tick) {
  const [first, end] = strip.first.slice(rank, rank + 2);
  const last = lastUpTo(strip.start, tick, first, end);
  return last < first ? -1 : last;
}

// The op that runs at a time, the upper or the lower one of a pair, or -1.
function runningAt(strip, rank, tick, lower) {
  const op = lastAt(strip, rank, tick);
  if (op < 0 || strip.end[op] <= tick) return -1;
  return halfOf(strip, op) === 2 && !lower ? op - 1 : op;
}

// --- What waits for what: of each kind, the first of [kind, stages away] that is run ----------------

const opOf = (strip, kind, micro, stage) =>
  stage < 0 || stage >= strip.stages ? -1 : strip.where[kind + 4 * (micro + strip.m * stage)];

function needsOf(strip, i) {
  const inputs = waits[kindOf(strip, i)];
  const ops = inputs.map(([kind, away]) => opOf(strip, kind, strip.micro[i], strip.stage[i] + away));
  return ops.filter((op) => op >= 0).slice(0, 1);
}

function feedsOf(strip, i) {
  const ops = waits.flatMap((inputs, kind) =>
    inputs
      .filter(([other]) => other === kindOf(strip, i))
      .map(([, away]) => opOf(strip, kind, strip.micro[i], strip.stage[i] - away)),
  );
  return ops.filter((op) => op >= 0 && needsOf(strip, op)[0] === i);
}

const partnerOf = (strip, i) => [i, i + 1, i - 1][halfOf(strip, i)];

// --- In words --------------------------------------------------------------------------------------

const timeOf = (strip, tick) => Number((tick * strip.tick).toPrecision(7)).toLocaleString('en-US');
const stageOf = (strip, i) =>
  filled(strip.virtual ? words.virtual : words.stage, { stage: strip.stage[i] });
const nameOf = (strip, i) =>
  `${KINDS[kindOf(strip, i)]}${strip.micro[i]} (${stageOf(strip, i)})`;

function cardText(strip, i) {
  const place = rankOf(strip, i);
  const other = (word) => (op) =>
    filled(word, {
      op: nameOf(strip, op),
      rank: strip.ranks[rankOf(strip, op)],
      end: timeOf(strip, strip.end[op]),
    });
  const letter = KINDS[kindOf(strip, i)];
  const parts = [
    filled(words.card, {
      kind: words.kinds[letter],
      micro_batch: strip.micro[i],
      stage: stageOf(strip, i),
      rank: strip.ranks[place],
      place,
      start: timeOf(strip, strip.start[i]),
      end: timeOf(strip, strip.end[i]),
    }),
  ];
  if (strip.layers[strip.stage[i]]) {
    parts.push(filled(words.card_layers, { layers: strip.layers[strip.stage[i]] }));
  }
  const partner = partnerOf(strip, i);
  if (partner !== i) parts.push(filled(words.card_pair, { op: nameOf(strip, partner) }));
  parts.push(...needsOf(strip, i).map(other(words.card_needs)));
  parts.push(...feedsOf(strip, i).map(other(words.card_feeds)));
  return parts.join(' ');
}

// --- Drawing over the picture ----------------------------------------------------------------------

function boxOf(strip, i) {
  const tall = strip.row - (strip.row >= 12 ? 2 : 1);
  const upper = Math.ceil(tall / 2);
  const half = halfOf(strip, i);
  return {
    x: strip.start[i],
    y: rankOf(strip, i) * strip.row + (half === 2 ? upper : 0),
    width: strip.end[i] - strip.start[i],
    height: [tall, upper, tall - upper][half],
  };
}

function wire(strip, from, to, kind) {
  const [a, b] = [boxOf(strip, from), boxOf(strip, to)];
  const line = { x1: a.x + a.width, y1: a.y + a.height / 2, x2: b.x, y2: b.y + b.height / 2 };
  return svgNode('line', line, `wire ${kind}`);
}

function apply() {
  if (!root) return;
  slideTo(find('.pipeline-zoom'), zoom);
  find('.pipeline-chart').style.setProperty('--pipeline-zoom', 2 ** zoom);
  player.label();
  goTo(cursor);
  fitNumbers();
}

// Only this follows the pointer: nothing here asks for a layout.
function mark() {
  root.querySelectorAll('.pipeline-strip').forEach((svg) => {
    const number = Number(svg.dataset.strip);
    const strip = strips[number];
    const marks = [];
    const tall = strip.row * strip.ranks.length;
    if (cursor) {
      marks.push(svgNode('rect', { x: cursor, y: 0, width: strip.ticks, height: tall }, 'later'));
      marks.push(svgNode('line', { x1: cursor, x2: cursor, y1: 0, y2: tall }, 'cursor'));
    }
    if (chosen?.number === number && strip.count) {
      const picked = chosen.op;
      const box = (op, kind) => svgNode('rect', boxOf(strip, op), kind);
      for (const op of needsOf(strip, picked)) marks.push(box(op, 'needs'), wire(strip, op, picked, 'needs'));
      for (const op of feedsOf(strip, picked)) marks.push(box(op, 'feeds'), wire(strip, picked, op, 'feeds'));
      marks.push(box(picked, 'chosen'));
    }
    svg.querySelector('.pipeline-marks').replaceChildren(...marks);
  });
  const strip = chosen && strips[chosen.number];
  find('.pipeline-card').textContent = strip?.count ? cardText(strip, chosen.op) : touchWord(words, 'idle');
}

// What each rank does at the cursor, beside its number.
function showNow() {
  find('.pipeline-at').textContent = cursor ? timeOf(strips[0], cursor) : '';
  strips.forEach((strip, number) => {
    root.querySelectorAll(`.pipeline-labels[data-lane="${number}"] [data-row]`).forEach((row) => {
      const now = row.querySelector('.pipeline-now');
      if (!now) return;
      const op = cursor && strip.count ? runningAt(strip, Number(row.dataset.row), cursor - 0.5) : -1;
      const letter = op < 0 ? '' : KINDS[kindOf(strip, op)].toLowerCase();
      now.textContent = !cursor ? '' : op < 0 ? '–' : `${letter.toUpperCase()}${strip.micro[op]}`;
      now.className = `pipeline-now ${op < 0 ? 'idle' : `op-${letter}0`}`;
      now.title = op < 0 ? words.waits : words.kinds[letter.toUpperCase()];
    });
  });
}

// Numbers stand in boxes that are wide enough for them, at this zoom.
function fitNumbers() {
  root?.querySelectorAll('.pipeline-strip').forEach((svg) => {
    const width = svg.getBoundingClientRect().width;
    svg.querySelectorAll('[data-need]').forEach((group) => {
      group.classList.toggle('off', Number(group.dataset.need) > width);
    });
    numberPicture(svg, width);
  });
}

// A picture of many ops has no numbers of its own: the ops in sight get them once they are wide.
const MOST_NUMBERS = 4000;
const DIGIT = 6.4; // as in render/scenes/timeline.py
const MARGIN = 3;

function numberPicture(svg, width) {
  const strip = strips[Number(svg.dataset.strip)];
  if (!svg.querySelector('image') || !strip.count || strip.row < 12) return;
  const numbers = svg.querySelector('.pipeline-live')
    ?? svg.appendChild(svgNode('g', { 'font-size': 9 }, 'pipeline-numbers pipeline-live'));
  const scroll = find('.pipeline-scroll');
  const scale = width / strip.ticks;
  strip.digits ??= String(strip.micro.reduce((most, one) => Math.max(most, one), 0)).length;
  const [from, to] = [scroll.scrollLeft, scroll.scrollLeft + scroll.clientWidth];
  const labels = [];
  for (let rank = 0; rank < strip.ranks.length && labels.length <= MOST_NUMBERS; rank++) {
    let op = Math.max(lastAt(strip, rank, from / scale), strip.first[rank]);
    for (; op < strip.first[rank + 1] && strip.start[op] * scale < to; op++) {
      const text = String(strip.micro[op]);
      const room = (strip.end[op] - strip.start[op]) * scale;
      if (halfOf(strip, op) || room < strip.digits * DIGIT * 0.75 + MARGIN) continue;
      const x = ((strip.start[op] + strip.end[op]) / 2) * scale;
      const place = { x, y: rank * strip.row + strip.row / 2 + 2.5 };
      const number = svgNode('text', place, `on-${KINDS[kindOf(strip, op)].toLowerCase()}0`);
      number.textContent = text;
      labels.push(number);
    }
  }
  numbers.replaceChildren(...(labels.length > MOST_NUMBERS ? [] : labels));
}

const watchSize = new ResizeObserver(fitNumbers);
let scrolled = 0;
element.addEventListener(
  'scroll',
  (event) => {
    if (!event.target.matches?.('.pipeline-scroll')) return;
    cancelAnimationFrame(scrolled);
    scrolled = requestAnimationFrame(fitNumbers);
  },
  true,
);

// --- Pointer, keys, sliders ------------------------------------------------------------------------

function choose(number, op) {
  if (chosen?.number === number && chosen?.op === op) return;
  chosen = op < 0 ? null : { number, op };
  mark();
}

// The strip that an event is about, once its ops are there.
function stripOf(event) {
  const svg = event.target.closest?.('.pipeline-strip');
  if (!svg || !root?.contains(svg)) return {};
  const number = Number(svg.dataset.strip);
  return strips[number]?.count ? { svg, number, strip: strips[number] } : {};
}

for (const kind of ['pointermove', 'pointerdown']) {
  element.addEventListener(kind, (event) => {
    const { svg, number, strip } = stripOf(event);
    if (!strip) return;
    const area = svg.getBoundingClientRect();
    const y = event.clientY - area.top;
    const rank = Math.floor(y / strip.row);
    if (rank < 0 || rank >= strip.ranks.length) return;
    const tick = ((event.clientX - area.left) / area.width) * strip.ticks;
    const op = runningAt(strip, rank, tick, y % strip.row > strip.row / 2);
    if (op >= 0 || kind === 'pointerdown') choose(number, op);
  });
}

element.addEventListener('focusin', (event) => {
  const { svg, number } = stripOf(event);
  if (svg?.matches(':focus-visible') && chosen?.number !== number) choose(number, 0);
});

element.addEventListener('keydown', (event) => {
  const { svg, number, strip } = stripOf(event);
  if (!strip) return;
  if (event.key === 'Escape') return choose(number, -1);
  const next = moved(strip, chosen?.number === number ? chosen.op : 0, event.key);
  if (next === null) return;
  event.preventDefault();
  choose(number, next);
  bringIntoView(svg, strip, next);
});

function moved(strip, op, key) {
  const rank = rankOf(strip, op);
  const [first, last] = [strip.first[rank], strip.first[rank + 1] - 1];
  const across = { ArrowLeft: op - 1, ArrowRight: op + 1, Home: first, End: last }[key];
  if (across !== undefined) return Math.min(Math.max(across, first), last);
  const other = rank + ({ ArrowUp: -1, ArrowDown: 1 }[key] ?? NaN);
  if (!(other >= 0 && other < strip.ranks.length)) return Number.isNaN(other) ? null : op;
  return Math.max(lastAt(strip, other, strip.start[op]), strip.first[other]);
}

function bringIntoView(svg, strip, op) {
  const scroll = find('.pipeline-scroll');
  const at = (strip.start[op] / strip.ticks) * svg.getBoundingClientRect().width;
  if (at < scroll.scrollLeft || at > scroll.scrollLeft + scroll.clientWidth - 40) {
    scroll.scrollLeft = at - scroll.clientWidth / 2;
  }
}

on('input', '.pipeline-cursor', (slider) => {
  player.stop();
  goTo(Number(slider.value));
});
on('input', '.pipeline-zoom', (slider) => zoomTo(Number(slider.value)));

// The middle of what is seen stays where it is.
function zoomTo(power) {
  const scroll = find('.pipeline-scroll');
  const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / scroll.scrollWidth;
  zoom = power;
  apply();
  scroll.scrollLeft = middle * scroll.scrollWidth - scroll.clientWidth / 2;
}

function goTo(tick) {
  cursor = tick;
  slideTo(find('.pipeline-cursor'), cursor);
  mark();
  showNow();
}

// The next time, or the one before, at which any op ends.
function step(isOn) {
  let tick = isOn ? strips[0].ticks : 0;
  for (const strip of strips) {
    for (let i = 0; i < (strip.count ?? 0); i++) {
      const at = strip.end[i];
      if (isOn ? at > cursor && at < tick : at < cursor && at > tick) tick = at;
    }
  }
  return tick;
}

const player = playerOf('.pipeline-tools', {
  begin: () => (cursor >= strips[0].ticks ? 0 : cursor),
  at(from, time) {
    const most = strips[0]?.ticks ?? 0;
    if (root) goTo(Math.min(most, from + Math.floor((time / 1000 / PLAY) * most)));
    return cursor < most;
  },
  go: (isOn) => goTo(step(isOn)),
});

watch('value', read);
read();
