// Plays a training step on the picture of the job, from the ops that the server worked out once
// (views/groups/film.py): stages that compute are tinted, those that wait fade, micro-batches are dots
// on each replica's way through the stages, and what data parallelism sends runs along its groups.
const SHOWN = 8; // seconds in which a step is shown
const WHOLE = 10000; // parts of the pipeline's time
const TRAVEL = { near: 0.15, far: 0.4 }; // seconds that a dot is shown between two stages
const DOTTED = 16; // replicas in which dots are shown
const LINED = 256; // GPUs up to which lines of gradients are drawn
const COVERED = 131072; // GPUs up to which the picture plays along, not the strip alone

let reel = null; // what is played: null until it is asked for
let covers = []; // what it draws on each picture
let waited = 0; // ms of playing before it was there
let moment = 0; // in the step, 0 to 1
let turns = 0; // pictures so far
let unasked = false; // whether it plays by itself: one step, then the picture is still again

const filmBar = () => element.querySelector('.film');
const filmStrip = () => element.querySelector('.film-strip');
const IS_DATA = /^e?dp(-cp)?$/;

// --- What is asked once ------------------------------------------------------------------------------

async function load() {
  const turn = turns;
  filmStrip().dataset.told = card.film_wait;
  const { answer } = await post('component_server', questionOf('film', state));
  if (turn !== turns) return; // another picture has come
  filmStrip().dataset.told = answer?.refused ?? '';
  if (!answer?.moves) return;
  reel = answer;
  if (reel.data) reel.data.kinds = reel.data.groups.map(spelledGroup);
}

// A group as the picture's own are.
const spelledGroup = ([axes, names, length, stride, places, joined]) => ({
  axes: withStrides(axes), names, length, stride, places, joined, world: mesh.world,
});

// --- What is drawn over a picture ---------------------------------------------------------------------

const axesOf = (view) => view.kinds[0]?.axes ?? grids[0];
const stageOf = (axes, rank) => {
  const axis = axes.find(({ name }) => name === 'pp');
  return axis ? coordinate(axis, rank) : 0;
};

function coverOf(view) {
  const axes = axesOf(view);
  const { svg } = view;
  const holder = svgNode('g', { 'aria-hidden': 'true' }, 'play');
  const stages = reel.busy.map(() => svgNode('path', {}, 'cover'));
  const paths = areasOf(view, stages.length, (rank) => stageOf(axes, rank));
  stages.forEach((path, stage) => path.setAttribute('d', paths[stage]));
  const lines = svgNode('g', {}, 'joins flows');
  const dots = svgNode('g', {}, 'dots');
  const boxes = boxesOf(view, axes, holder);
  const spoken = svgNode('g', {}, 'spoken');
  holder.append(...stages, lines, dots, spoken);
  svg.append(holder);
  svg.classList.add('playing'); // the tints of groups are off meanwhile
  svg.style.setProperty('--layer', `${layerSeconds().toFixed(3)}s`);
  return { view, axes, holder, stages, dots, lines, boxes, spoken, flows: null };
}

// The cells of each stage, or other part that a rank is in, as one path; of a raster, whole runs of
// a row.
function areasOf(view, number, partOf) {
  const paths = Array.from({ length: number }, () => []);
  if (isNumbered(view)) {
    for (let rank = 0; rank < mesh.world; rank++) {
      const [x, y] = spot(view, rank);
      paths[partOf(rank)].push(`M${x.toFixed(1)} ${y.toFixed(1)}h${view.wide}v${view.tall}h-${view.wide}z`);
    }
  } else {
    rankAt(view, 0, 0); // so that the table of ranks is there
    const partAt = (at) => (view.rankAt[at] < 0 ? -1 : partOf(view.rankAt[at]));
    for (let row = 0; row < view.rows; row++) {
      for (let column = 0; column < view.columns; ) {
        const part = partAt(row * view.columns + column);
        const from = column;
        do column++;
        while (column < view.columns && partAt(row * view.columns + column) === part);
        if (part < 0) continue;
        const wide = (column - from) * view.wide;
        const corner = `M${view.left + from * view.wide} ${view.top + row * view.tall}`;
        paths[part].push(`${corner}h${wide}v${view.tall}h-${wide}z`);
      }
    }
  }
  return paths.map((parts) => parts.join(''));
}

// The boxes of each stage, which pulse layer by layer.
function boxesOf(view, axes, holder) {
  const own = view.svg.querySelector('.box.on');
  if (!own) return reel.busy.map(() => []);
  const paths = reel.busy.map(() => new Set());
  const size = `h${own.getAttribute('width')}v${own.getAttribute('height')}h-${own.getAttribute('width')}z`;
  for (let rank = 0; rank < mesh.world; rank++) {
    const [x, y] = corner(view, rank, view.boxes).map((at) => (at - view.pad * view.scale).toFixed(1));
    paths[stageOf(axes, rank)].add(`M${x} ${y}${size}`);
  }
  return paths.map((parts) => {
    const box = svgNode('path', { d: [...parts].join('') }, own.getAttribute('class').replace(' on', ' frame'));
    holder.append(box);
    return [box];
  });
}

// How long a layer of an op is shown, from the shortest run of a letter.
function layerSeconds() {
  const runs = reel.busy.flatMap((text) => text.match(/(.)\1*/g) ?? []).filter((run) => run[0] !== ' ');
  const shortest = Math.min(...runs.map((run) => run.length), reel.busy[0].length);
  const op = (shortest / reel.busy[0].length) * reel.ends.pipeline * SHOWN;
  return Math.max(0.12, op / Math.max(1, Math.min(reel.layers, 4)));
}

// --- One moment ---------------------------------------------------------------------------------------

function goTo(now) {
  moment = now;
  const bar = filmBar();
  if (!bar || !reel) return;
  const { ends } = reel;
  const phase = now < ends.pipeline ? 'pipeline' : now < ends.dp ? 'dp' : 'optimizer';
  const slider = bar.querySelector('input');
  slider.value = Math.round(now * slider.max);
  speak();
  for (const cover of covers) {
    drawBusy(cover, phase, now / ends.pipeline);
    drawDots(cover, phase === 'pipeline' ? (now / ends.pipeline) * WHOLE : Infinity);
    drawFlows(cover, phase, phase === 'dp' ? (now - ends.pipeline) / (ends.dp - ends.pipeline) : (now / ends.pipeline) * WHOLE);
  }
}

const NAMES = { F: 'f', B: 'b', I: 'i', W: 'w', P: 'p', ' ': 'idle' };

function drawBusy({ stages, boxes }, phase, part) {
  stages.forEach((path, stage) => {
    const text = reel.busy[stage];
    const letter = text[Math.min(text.length - 1, Math.floor(part * text.length))];
    const name = phase === 'pipeline' ? NAMES[letter] : phase;
    if (path.dataset.now === name) return;
    path.dataset.now = name;
    path.setAttribute('class', 'cover is-' + name);
    const computes = phase === 'pipeline' && letter !== ' ';
    boxes[stage].forEach((box) => box.classList.toggle('pulse', computes));
  });
}

// One pipeline of each replica, through the GPU with the coordinates of the chosen one.
function pipelines({ view, axes }) {
  const data = kinds.find(({ name, axes: own }) => name === 'dp' && own === axes);
  const all = data ? members(data, active()) : [active()];
  return !isNumbered(view) ? [] : all.length <= DOTTED ? all : [active()];
}

function drawDots(cover, time) {
  const { view, axes, dots } = cover;
  const axis = axes.find(({ name }) => name === 'pp');
  const second = WHOLE / (SHOWN * reel.ends.pipeline);
  let used = 0;
  if (time <= WHOLE) {
    for (const base of pipelines(cover)) {
      const rankOn = (stage) => base + (stage - stageOf(axes, base)) * (axis?.stride ?? 0);
      for (const [micro, kind, before, at, made, , ended] of reel.moves) {
        if (time < made || time >= ended) continue;
        const [to, from] = [rankOn(at), before < 0 ? null : rankOn(before)];
        const isFar = from !== null && Math.floor(from / mesh.gpusPerNode) !== Math.floor(to / mesh.gpusPerNode);
        const way = from === null || from === to ? 0 : Math.min(ended - made, second * TRAVEL[isFar ? 'far' : 'near']);
        const gone = way ? Math.min(1, (time - made) / way) : 1;
        const number = numbered(micro, base);
        placeDot(cover, used++, number, kind, gone < 1 && isFar, between(view, from ?? to, to, gone));
      }
    }
  }
  while (dots.children.length > used) dots.lastChild.remove();
}

function between(view, from, to, gone) {
  const [a, b] = [spot(view, from), spot(view, to)];
  const eased = gone * gone * (3 - 2 * gone);
  // In a corner of its cell: the number there stays in sight.
  return [0, 1].map((i) => a[i] + (b[i] - a[i]) * eased + (i ? 0.12 * view.tall : 0.88 * view.wide));
}

function placeDot({ view, dots }, number, micro, kind, isFar, [x, y]) {
  let dot = dots.children[number];
  if (!dot) {
    dot = svgNode('g', {}, 'dot');
    const radius = Math.max(6, Math.min(11, 0.42 * Math.min(view.wide, view.tall)));
    dot.append(svgNode('circle', { r: radius }, ''), svgNode('text', { 'font-size': radius * 1.15 }, ''));
    dots.append(dot);
  }
  dot.setAttribute('class', `dot is-${kind ? 'b' : 'f'}${isFar ? ' far' : ''}`);
  dot.setAttribute('transform', `translate(${x.toFixed(1)},${y.toFixed(1)})`);
  if (dot.lastChild.textContent !== String(micro)) dot.lastChild.textContent = micro;
}

// Along every group of data parallelism that sends: all of them behind the pipeline, those of a stage
// while it runs an op with which they do. Those that leave their node take all the time.
function drawFlows(cover, phase, at) {
  cover.flows ??= flowsOf(cover);
  const stages = phase === 'pipeline' ? reel.busy.map((_, stage) => flowingAt(stage, at)) : [];
  const behind = new Set(phase === 'dp' ? numbersOf(['dp']) : []);
  let some = false;
  for (const [path, isFar, number, stage] of cover.flows) {
    const [numbers, part] = phase === 'pipeline' ? stages[stage] : [behind, at];
    const isOn = numbers.has(number) && part > 0;
    some ||= isOn;
    path.style.strokeDashoffset = isOn ? 1 - Math.min(1, isFar ? part : 2.5 * part) : 1;
  }
  cover.lines.classList.toggle('on', some);
}

const numbersOf = (whens) => whens.flatMap((when) => (reel.data?.ops[when] ?? []).map(([, , number]) => number));

// The groups with which a stage sends at a time, and the part of its op that has passed.
function flowingAt(stage, time) {
  const move = reel.moves.find(([, , , own, , begun, ended]) => own === stage && begun <= time && time < ended);
  if (!move) return [new Set(), 0];
  const [, , , , , begun, ended] = move;
  return [new Set(numbersOf(whensOf(stage, move))), (time - begun) / (ended - begun)];
}

function flowsOf({ view, axes, lines }) {
  if (!reel.data || !isNumbered(view) || mesh.world > LINED) return [];
  const data = view.kinds.findIndex(({ name }) => IS_DATA.test(name));
  const [tone, level] = data < 0 ? ['dp', 0] : [view.kinds[data].tone, view.levels[data]];
  const drawn = [];
  reel.data.kinds.forEach((kind, number) => {
    for (const ranks of groupsOf(kind)) {
      const isFar = new Set(ranks.map((rank) => Math.floor(rank / mesh.gpusPerNode))).size > 1;
      const group = svgNode('g', {}, isFar ? 'far' : '');
      group.innerHTML = joinsOf(view, tone, ranks, level);
      for (const path of group.children) {
        path.setAttribute('pathLength', 1);
        drawn.push([path, isFar, number, stageOf(axes, ranks[0])]);
      }
      lines.append(group);
    }
  });
  return drawn;
}

// All groups of a kind with more than one rank.
function groupsOf(kind) {
  const groups = new Map();
  for (let rank = 0; rank < mesh.world; rank++) {
    const index = groupIndex(kind, rank);
    if (!groups.has(index)) groups.set(index, []);
    groups.get(index).push(rank);
  }
  return [...groups.values()].filter((ranks) => ranks.length > 1);
}

// --- The strip ----------------------------------------------------------------------------------------

// What the chosen GPU does over the step, and what comes after.
// A row for each stage, of more than a few for some from the first to the last; then what all do.
const MOST_ROWS = 6;
const MOST_APART = 150; // ops of a row that are told apart; of more, short ones are one colour
const SHORT = 12;
const startsOf = (ends) => ({ pipeline: 0, dp: ends.pipeline, optimizer: ends.dp });
const tailsOf = (ends) => ['dp', 'optimizer'].filter((name) => ends[name] > startsOf(ends)[name]);

function coarse(text) {
  if (text.match(/(.)\1*/g).length <= MOST_APART) return text;
  return text.replace(/([^ ])\1*/g, (run) => (run.length < SHORT ? 'P'.repeat(run.length) : run));
}

function drawTrack(busy, ends) {
  const rows = Math.min(busy.length, MOST_ROWS);
  const texts = Array.from({ length: rows }, (_, row) => busy[Math.round((row * (busy.length - 1)) / Math.max(1, rows - 1))]);
  const box = (kind, left, wide, row) => {
    const place = row === undefined ? 'height:100%' : `top:${((100 * row) / rows).toFixed(2)}%;height:${(100 / rows).toFixed(2)}%`;
    return `<i class="is-${kind}" style="left:${left.toFixed(2)}%;width:${wide.toFixed(2)}%;${place}"></i>`;
  };
  let boxes = '';
  texts.map(coarse).forEach((text, row) => {
    const each = (100 * ends.pipeline) / text.length;
    let from = 0;
    for (const run of text.match(/(.)\1*/g)) {
      if (run[0] !== ' ') boxes += box(NAMES[run[0]], from * each, run.length * each, row);
      from += run.length;
    }
  });
  const starts = startsOf(ends);
  for (const name of tailsOf(ends)) boxes += box(name, 100 * starts[name], 100 * (ends[name] - starts[name]));
  filmBar().querySelector('.film-track').innerHTML = boxes;
}

function drawStrip() {
  const bar = filmBar();
  if (!reel || !bar) return; // another view has come
  const { ends } = reel;
  drawTrack(reel.busy, ends);
  const [starts, tails] = [startsOf(ends), tailsOf(ends)];
  const names = ['pipeline', ...tails];
  bar.classList.remove('still');
  bar.closest('.hero').classList.add('filmed');
  bar.querySelector('.film-names').innerHTML = names
    .map((name) => {
      const side = name === 'optimizer' ? 'right:0' : `left:${(100 * starts[name]).toFixed(1)}%`;
      const isRest = name === 'dp' && !reel.data?.ops.dp.length;
      return `<span style="${side}">${card['film_' + (isRest ? 'rest' : name)]}</span>`;
    })
    .join('');
  const told = filled(reel.step ? card.film_step : card.film_unit, { step: reel.step, shown: SHOWN });
  const own = replicasOf() > 1 ? card.film_samples : '';
  filmStrip().dataset.told = [told, card.film_badge + own].join(' · ');
}

// --- Playing ------------------------------------------------------------------------------------------

function begin() {
  if (covers.length || !reel) return;
  say('lens', '');
  if (mesh.world <= COVERED) covers = views.filter(({ svg }) => svg.matches('.job')).map(coverOf);
  drawStrip();
}

const player = playerOf('.film', {
  begin() {
    waited = 0;
    if (!reel) load();
    return moment;
  },
  at(from, time) {
    if (!filmBar()) return false;
    if (!reel) {
      waited = time;
      return filmStrip().dataset.told === card.film_wait;
    }
    begin();
    const gone = from + (time - waited) / 1000 / SHOWN;
    if (unasked && gone >= 1) {
      rewind();
      return false;
    }
    goTo(gone % 1);
    return true;
  },
  go: () => {},
});

function rewind() {
  player.stop();
  turns += 1;
  for (const { view, holder, boxes } of covers) {
    holder.remove();
    view.svg.classList.remove('playing');
    boxes.flat().forEach((box) => box.classList.remove('pulse'));
  }
  [reel, covers, moment] = [null, [], 0];
  const bar = filmBar();
  if (!bar) return;
  bar.classList.add('still');
  bar.closest('.hero').classList.remove('filmed');
  filmStrip().dataset.told = '';
  bar.querySelector('.film-says').textContent = '';
  bar.querySelector('input').value = 0;
  bar.querySelector('.film-names').innerHTML = '';
}

on('input', '.film input', async (slider) => {
  player.stop();
  const to = slider.value / slider.max;
  if (!reel) await load();
  begin();
  goTo(Math.min(to, 0.9999));
});
document.addEventListener('state', () => {
  if (!reel) return;
  drawStrip();
  if (covers.length) goTo(moment);
});
watch('value', rewind);
