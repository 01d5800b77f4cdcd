// Lights up the groups of the GPU under the pointer, the focus or the pin, in every picture at once
// and without the server: any rank's groups follow from the sizes of the mesh's axes.
let mesh, card, grids, kinds;
let panels = [];
let overviews = [];
let jobs = [];
let hovered = null;
let pinned = null;
let frame = 0;

const filled = (text, facts) => text.replace(/\{(\w+)\}/g, (_, name) => facts[name]);

// --- Which ranks are together: as groups/grouping.py ---------------------------------------------

function coordinates(axes, rank) {
  const at = {};
  for (const axis of axes) {
    at[axis.name] = rank % axis.size;
    rank = Math.floor(rank / axis.size);
  }
  return at;
}

// The members of the rank's group over the named axes, before it is cut.
function sweep(axes, names, rank) {
  const at = coordinates(axes, rank);
  let ranks = [rank];
  for (const axis of axes) {
    if (!names.includes(axis.name)) continue;
    const start = -at[axis.name] * axis.stride;
    const wider = [];
    for (let c = 0; c < axis.size; c++) {
      for (const one of ranks) wider.push(one + start + c * axis.stride);
    }
    ranks = wider;
  }
  return ranks;
}

// The rank's position over some axes, the first fastest.
function position(axes, rank, isCounted) {
  const at = coordinates(axes, rank);
  let found = 0;
  let stride = 1;
  for (const axis of axes) {
    if (!isCounted(axis)) continue;
    found += at[axis.name] * stride;
    stride *= axis.size;
  }
  return found;
}

const placeIn = (kind, rank) => position(kind.axes, rank, (axis) => kind.names.includes(axis.name));
const wholeIndex = (kind, rank) =>
  position(kind.axes, rank, (axis) => !kind.names.includes(axis.name));

function members(kind, rank) {
  if (kind.joined > 1) return joinedMembers(kind, rank);
  const ranks = sweep(kind.axes, kind.names, rank);
  const place = placeIn(kind, rank);
  if (kind.places.length) {
    return kind.places.includes(place) ? kind.places.map((one) => ranks[one]) : [];
  }
  if (!kind.length) return ranks;
  const block = kind.length * kind.stride;
  const first = place - (place % block) + (place % kind.stride);
  return ranks.slice(first, first + block).filter((_, i) => i % kind.stride === 0);
}

function joinedMembers(kind, rank) {
  const others = kind.axes.filter((axis) => !kind.names.includes(axis.name));
  const first = Math.floor(wholeIndex(kind, rank) / kind.joined) * kind.joined;
  const ranks = [];
  for (let index = first; index < first + kind.joined; index++) {
    let left = index;
    let start = 0;
    for (const axis of others) {
      start += (left % axis.size) * axis.stride;
      left = Math.floor(left / axis.size);
    }
    ranks.push(...sweep(kind.axes, kind.names, start));
  }
  return ranks.sort((a, b) => a - b);
}

// Null for a rank that is in no group of the kind.
function groupIndex(kind, rank) {
  const whole = wholeIndex(kind, rank);
  const place = placeIn(kind, rank);
  if (kind.places.length) return kind.places.includes(place) ? whole : null;
  if (!kind.length) return Math.floor(whole / kind.joined);
  const size = kind.axes.reduce((n, a) => (kind.names.includes(a.name) ? n * a.size : n), 1);
  const block = kind.length * kind.stride;
  const piece = Math.floor(place / block) * kind.stride + (place % kind.stride);
  return whole * Math.ceil(size / kind.length) + piece;
}

// --- Reading what the server sent -----------------------------------------------------------------

function read() {
  const picture = element.querySelector('.picture');
  if (!picture) return;
  mesh = JSON.parse(picture.dataset.mesh);
  card = JSON.parse(picture.dataset.words);
  grids = mesh.grids.map(withStrides);
  kinds = mesh.kinds.map(([name, tone, grid, names, length, stride, places, joined]) => ({
    name, tone, axes: grids[grid], names, length, stride, places, joined,
  }));
  panels = [...element.querySelectorAll('svg.panel')].filter(isAlive).map((svg) => ({
    svg,
    cells: [...svg.querySelectorAll('.c')],
  }));
  overviews = [...element.querySelectorAll('svg.overview')].filter(isAlive).map(readOverview);
  jobs = [...element.querySelectorAll('svg.job')].map(readJob);
  panels.forEach(({ svg, cells }) => {
    cells.forEach((cell) => cell.removeAttribute('tabindex'));
    const first = cells[inside(pinned) ? pinned : 0];
    if (first) prepare(first);
    svg.classList.remove('lit');
  });
  density.disconnect();
  panels.forEach(({ svg }) => density.observe(svg));
  reserve();
  light();
}

// Pictures of another layout beside this one stay as they are: their GPUs are not this one's.
const isAlive = (svg) => !svg.closest('.still');

function withStrides(axes) {
  let stride = 1;
  return axes.map(([name, size]) => {
    const axis = { name, size, stride };
    stride *= size;
    return axis;
  });
}

function readOverview(svg) {
  const number = (name) => Number(svg.dataset[name]);
  svg.setAttribute('tabindex', '0');
  return {
    svg,
    columns: number('columns'),
    rows: number('rows'),
    cell: number('cell'),
    left: number('left'),
    top: number('top'),
    marks: svg.dataset.kinds.split(',').map(Number),
    swell: svg.dataset.swell.split(',').map(Number),
    folds: svg.dataset.fold.split(';').map((fold) => fold.split(',').map(Number)),
    rankAt: null,
  };
}

function readJob(svg) {
  const numbers = (text, by = ',') => text.split(by).map(Number);
  const [wide, tall] = numbers(svg.dataset.cell);
  const view = {
    svg,
    wide,
    tall,
    left: Number(svg.dataset.left),
    top: Number(svg.dataset.top),
    scale: Number(svg.dataset.scale),
    pad: Number(svg.dataset.pad),
    boxed: Number(svg.dataset.boxed),
    kinds: numbers(svg.dataset.kinds),
    levels: numbers(svg.dataset.levels),
    swell: numbers(svg.dataset.swell),
    folds: svg.dataset.fold.split(';').map((fold) => numbers(fold)),
    cells: [...svg.querySelectorAll('.j')],
    rankAt: null,
  };
  const most = (dx, jump) => (end, fold) =>
    end + (Math.min(fold[0], fold[1]) - 1) * fold[dx] + (Math.ceil(fold[0] / fold[1]) - 1) * fold[jump];
  view.columns = Math.round(view.folds.reduce(most(2, 4), 0) / wide) + 1;
  view.rows = Math.round(view.folds.reduce(most(3, 5), 0) / tall) + 1;
  return view;
}

// Where a rank's cell is: as render/scenes/job.py.
function spot(view, rank) {
  let x = view.left;
  let y = view.top;
  for (const [size, period, dx, dy, jumpX, jumpY] of view.folds) {
    const at = rank % size;
    rank = Math.floor(rank / size);
    x += (at % period) * dx + Math.floor(at / period) * jumpX;
    y += (at % period) * dy + Math.floor(at / period) * jumpY;
  }
  return [x, y];
}

function square(view, rank) {
  const [x, y] = spot(view, rank);
  return [Math.round((x - view.left) / view.wide), Math.round((y - view.top) / view.tall)];
}

function rankInJob(view, column, row) {
  if (column < 0 || row < 0 || column >= view.columns || row >= view.rows) return -1;
  if (!view.rankAt) {
    view.rankAt = new Int32Array(view.columns * view.rows).fill(-1);
    for (let rank = 0; rank < mesh.world; rank++) {
      const [column, row] = square(view, rank);
      view.rankAt[row * view.columns + column] = rank;
    }
  }
  return view.rankAt[row * view.columns + column];
}

function placeOf(view, rank) {
  let place = 0;
  for (const [size, period, step, jump] of view.folds) {
    const at = rank % size;
    rank = Math.floor(rank / size);
    place += (at % period) * step + Math.floor(at / period) * jump;
  }
  return place;
}

function rankAtPlace(view, place) {
  if (!view.rankAt) {
    view.rankAt = new Int32Array(view.columns * view.rows).fill(-1);
    for (let rank = 0; rank < mesh.world; rank++) view.rankAt[placeOf(view, rank)] = rank;
  }
  return view.rankAt[place] ?? -1;
}

function rankUnder(view, event) {
  const box = view.svg.getBoundingClientRect();
  const scale = view.svg.viewBox.baseVal.width / box.width;
  const column = Math.floor(((event.clientX - box.left) * scale - view.left) / view.cell);
  const row = Math.floor(((event.clientY - box.top) * scale - view.top) / view.cell);
  if (column < 0 || row < 0 || column >= view.columns || row >= view.rows) return null;
  const rank = rankAtPlace(view, row * view.columns + column);
  return rank < 0 ? null : rank;
}

// --- Drawing --------------------------------------------------------------------------------------

const inside = (rank) => rank !== null && rank < mesh.world;

function chosen() {
  if (inside(hovered)) return hovered;
  return inside(pinned) ? pinned : null;
}

// One GPU is always told of.
const active = () => chosen() ?? 0;

function light() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    const rank = active();
    panels.forEach((panel) => lightPanel(panel, chosen()));
    overviews.forEach((view) => markOverview(view, rank));
    jobs.forEach((view) => (view.cells.length ? markCells : markPlain)(view, rank));
    ask(rank);
    tell(rank);
  });
}

function lightPanel({ svg, cells }, rank) {
  svg.classList.toggle('lit', rank !== null);
  const group = rank === null ? null : cells[rank].dataset.g;
  cells.forEach((cell, i) => {
    cell.classList.toggle('on', cell.dataset.g === group && (group !== '' || i === rank));
    cell.classList.toggle('me', i === rank);
    cell.classList.toggle('pin', i === pinned);
  });
}

function markOverview(view, rank) {
  const canvas = document.createElement('canvas');
  canvas.width = view.columns;
  canvas.height = view.rows;
  const context = canvas.getContext('2d');
  const style = getComputedStyle(element);
  view.marks
    .map((number, i) => ({ tone: kinds[number].tone, ranks: members(kinds[number], rank), i }))
    .sort((a, b) => b.ranks.length - a.ranks.length)
    .forEach(({ tone, ranks, i }) => {
      context.fillStyle = style.getPropertyValue('--kind-' + tone);
      const swell = view.swell[i];
      const side = 2 * swell + 1;
      for (const one of ranks) {
        const place = placeOf(view, one);
        const row = Math.floor(place / view.columns);
        context.fillRect((place % view.columns) - swell, row - swell, side, side);
      }
    });
  view.svg.querySelector('.marks').setAttribute('href', canvas.toDataURL());
  const place = placeOf(view, rank);
  const ring = view.svg.querySelector('.chosen');
  ring.setAttribute('cx', view.left + ((place % view.columns) + 0.5) * view.cell);
  ring.setAttribute('cy', view.top + (Math.floor(place / view.columns) + 0.5) * view.cell);
}

// The groups of a rank that a picture marks, the largest first.
const marksOf = (view, rank) =>
  view.kinds
    .map((number, i) => ({ i, tone: kinds[number].tone, ranks: members(kinds[number], rank) }))
    .filter(({ ranks }) => ranks.length)
    .sort((a, b) => b.ranks.length - a.ranks.length);

function markCells(view, rank) {
  const marks = marksOf(view, rank);
  const toneOf = new Map();
  for (const { tone, ranks } of marks) for (const one of ranks) toneOf.set(one, tone);
  view.cells.forEach((cell, i) => {
    const mark = i === rank ? ' me' : toneOf.has(i) ? ' m t-' + toneOf.get(i) : '';
    const name = 'j' + mark + (i === pinned ? ' pin' : '');
    if (cell.className.baseVal !== name) cell.setAttribute('class', name);
  });
  const [x, y] = spot(view, rank);
  for (const frame of view.svg.querySelectorAll('.box, .replica')) {
    const at = (name) => frame[name].baseVal.value;
    const isOn = x >= at('x') && y >= at('y') && x < at('x') + at('width') && y < at('y') + at('height');
    frame.classList.toggle('on', isOn && (frame.matches('.replica') || view.boxed >= 0));
  }
  const joins = marks.filter(({ i, ranks }) => i !== view.boxed && ranks.length > 1);
  view.svg.querySelector('.joins').innerHTML = joins.map((mark) => joinsOf(view, mark)).join('');
}

// A bar below each row that has several members, dots down each column of single ones.
function joinsOf(view, { i, tone, ranks }) {
  const rows = new Map();
  const spots = ranks.map((rank) => spot(view, rank)).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  for (const [x, y] of spots) {
    const key = y.toFixed(2);
    if (!rows.has(key)) rows.set(key, { y, xs: [] });
    rows.get(key).xs.push(x + view.wide / 2);
  }
  let bars = '';
  const columns = new Map();
  for (const { y, xs } of rows.values()) {
    if (xs.length === 1) {
      const key = xs[0].toFixed(2);
      columns.set(key, [...(columns.get(key) ?? []), y]);
      continue;
    }
    const bar = (y + view.tall + (view.pad + 5 + 6 * view.levels[i]) * view.scale).toFixed(2);
    bars += `M${xs[0].toFixed(2)} ${bar}L${xs.at(-1).toFixed(2)} ${bar}`;
    const end = (y + view.tall + 2 * view.scale).toFixed(2);
    for (const x of xs) bars += `M${x.toFixed(2)} ${bar}L${x.toFixed(2)} ${end}`;
  }
  let dots = '';
  for (const [x, ys] of columns) {
    ys.slice(1).forEach((y, n) => {
      dots += `M${x} ${(ys[n] + view.tall).toFixed(2)}L${x} ${y.toFixed(2)}`;
    });
  }
  const path = (d, name) => (d ? `<path class="t-${tone}${name}" d="${d}"/>` : '');
  return path(bars, '') + path(dots, ' dots');
}

function markPlain(view, rank) {
  const canvas = document.createElement('canvas');
  canvas.width = view.columns;
  canvas.height = view.rows;
  const context = canvas.getContext('2d');
  const style = getComputedStyle(element);
  for (const { i, tone, ranks } of marksOf(view, rank)) {
    context.fillStyle = style.getPropertyValue('--mark-' + tone);
    const side = 2 * view.swell[i] + 1;
    for (const one of ranks) {
      const [column, row] = square(view, one);
      context.fillRect(column - view.swell[i], row - view.swell[i], side, side);
    }
  }
  context.fillStyle = style.getPropertyValue('--gi');
  context.fillRect(...square(view, rank), 1, 1);
  view.svg.querySelector('.marks').setAttribute('href', canvas.toDataURL());
  const ring = view.svg.querySelector('.chosen');
  const [x, y] = spot(view, rank);
  ring.setAttribute('cx', x + view.wide / 2);
  ring.setAttribute('cy', y + view.tall / 2);
}

// --- In words: as views/groups/sentence.py --------------------------------------------------------

const FEW = 4;

function listed(words, last = card.and) {
  return words.length < 2 ? words.join('') : words.slice(0, -1).join(card.comma) + last + words.at(-1);
}

function gpusOf(ranks, nodes) {
  if (ranks.length === 1) return filled(card.one, { rank: ranks[0] });
  if (ranks.length <= FEW) return filled(card.few, { ranks: listed(ranks.map(String)) });
  const count = ranks.length.toLocaleString('en');
  return filled(nodes > 1 ? card.many_nodes : card.many, { count, nodes: nodes.toLocaleString('en') });
}

const ordered = (kind, rank) => members(kind, rank).sort((a, b) => a - b);
const nodesOf = (ranks) => new Set(ranks.map((one) => Math.floor(one / mesh.gpusPerNode))).size;

function clauseOf(role, ranks, rank, nodes) {
  if (role !== 'pp') {
    return filled(card['says_' + role], { gpus: gpusOf(ranks.filter((one) => one !== rank), nodes) });
  }
  const at = ranks.indexOf(rank);
  const place = at === 0 ? 'first' : at === ranks.length - 1 ? 'last' : 'middle';
  const [before, after] = [at - 1, at + 1].map((one) => filled(card.one, { rank: ranks[one] }));
  return filled(card['says_' + place], { before, after });
}

function leavingOf(names) {
  if (!names.length) return card.says_none;
  if (names.length === 1 && mesh.spoken.length > 1) return filled(card.says_only, { name: names[0] });
  if (names.length === mesh.spoken.length) return card.says_all;
  return filled(card.says_some, { names: listed(names, card.and_names) });
}

function sentenceOf(rank) {
  const leaving = [];
  const clauses = mesh.spoken.map(([role, number]) => {
    const ranks = ordered(kinds[number], rank);
    const nodes = nodesOf(ranks);
    if (nodes > 1) leaving.push(card['name_' + role]);
    return clauseOf(role, ranks, rank, nodes).trim();
  });
  if (!clauses.length) return filled(card.says, { clauses: card.says_alone });
  const last = clauses.length === 2 ? card.last_of_two : card.last;
  const all = clauses.length < 2 ? clauses[0] : clauses.slice(0, -1).join(card.then) + last + clauses.at(-1);
  return [filled(card.says, { clauses: all }), leavingOf(leaving)].join(card.gap);
}

function ask(rank) {
  const title = element.querySelector('.question');
  if (!title) return;
  const said = { '.question': filled(card.question, { rank }), '.answer': sentenceOf(rank) };
  for (const [name, text] of Object.entries(said)) {
    const place = element.querySelector(name);
    if (place.textContent !== text) place.textContent = text;
  }
}

// --- The card -------------------------------------------------------------------------------------

const MOST = 8;

function line(parts) {
  const p = document.createElement('p');
  for (const [tag, text, name, data] of parts) {
    const part = document.createElement(tag);
    part.textContent = text;
    if (data) Object.assign(part.dataset, data);
    if (name) part.className = name;
    p.append(part, ' ');
  }
  return p;
}

function tell(rank) {
  const place = element.querySelector('.told');
  if (!place) return;
  const told = cardOf(rank);
  if (pinned !== null && !inside(pinned)) {
    told.unshift(line([['b', filled(card.norank, { rank: pinned, last: mesh.world - 1 })]]));
  }
  place.replaceChildren(...told);
  const hint = element.querySelector('.hero .hint');
  if (!hint) return;
  hint.textContent = rank === pinned ? card.pinned : card.hint;
  hint.classList.toggle('kept', rank === pinned);
}

// The longest that sentence and card come to stands unseen in the same place, so that nothing below
// them moves; measuring it would make the browser lay out once more.
function reserve() {
  const hero = element.querySelector('.hero');
  const card = hero?.querySelector('.card');
  if (!card) return;
  const last = mesh.world - 1;
  const middle = Math.floor(last / 2);
  const longest = [middle, last].map(sentenceOf).sort((a, b) => b.length - a.length)[0];
  twinIn(hero).textContent = longest;
  // Nothing in it can be pressed.
  twinIn(card).innerHTML = cardOf(last).map((one) => one.outerHTML.replaceAll('button', 'span')).join('');
}

function twinIn(parent) {
  const there = parent.querySelector(':scope > .twin');
  if (there) return there;
  const twin = document.createElement('div');
  twin.className = 'twin';
  twin.setAttribute('aria-hidden', 'true');
  parent.append(twin);
  return twin;
}

function placesOf(rank) {
  const node = Math.floor(rank / mesh.gpusPerNode);
  const at = coordinates(grids[0], rank);
  const found = [filled(card.place, { node, local: rank % mesh.gpusPerNode })];
  found.push(filled(card.stage, { stage: at.pp ?? 0 }));
  if (mesh.layers.length) found.push(filled(card.layers, { layers: mesh.layers[at.pp ?? 0] }));
  return found.join(' · ');
}

// The members of a group, the rank itself in bold; of a large one, how many they are.
function peersOf(ranks, rank) {
  if (ranks.length > MOST) return [['span', filled(card.of, { count: ranks.length.toLocaleString('en') }), 'peers']];
  return ranks.map((one, i) => [one === rank ? 'b' : 'span', one + (i < ranks.length - 1 ? ',' : ''), 'peers']);
}

// To the view that shows what a group does: a pipeline over time, another one number by number.
function leadOf(kind, rank) {
  const there = kind.name === 'pp' ? { view: 'pipeline' } : { view: 'collectives', collective_group: kind.name };
  return { set: JSON.stringify({ ...there, rank: String(rank) }), tip: card.lead };
}

function cardOf(rank) {
  const head = [['b', filled(card.gpu, { rank })], ['span', placesOf(rank), 'quiet']];
  if (rank === pinned && !element.querySelector('.hero .hint')) head.push(['i', card.pinned]);
  const groups = kinds.slice(0, mesh.told).map((kind) => {
    const chip = ['button', kind.name, 'chip t-' + kind.tone, leadOf(kind, rank)];
    const ranks = ordered(kind, rank);
    if (!ranks.length) return line([chip, ['span', card.in_none, 'quiet']]);
    const nodes = nodesOf(ranks);
    const where = nodes > 1 ? filled(card.crosses, { nodes: nodes.toLocaleString('en') }) : card.stays;
    return line([
      chip,
      ...peersOf(ranks, rank),
      ['span', where, nodes > 1 ? 'crosses' : 'quiet'],
      ['span', filled(card.group, { kind: '', index: groupIndex(kind, rank) }).trim(), 'index'],
    ]);
  });
  const first = line(head);
  first.className = 'gpu';
  return [first, ...groups];
}

// Pictures shrink with the page: a text that would be too small to read is left out. The observer
// is told sizes after layout; asking for them would make the browser lay out twice.
const READABLE = 7.5; // pixels
const density = new ResizeObserver((entries) => entries.forEach(thin));
function thin({ target, contentRect }) {
  const scale = contentRect.width / target.viewBox.baseVal.width;
  const lost = (size) => size > 0 && size * scale < READABLE;
  target.classList.toggle('no-index', lost(Number(target.dataset.indexSize)));
  target.classList.toggle('no-rank', lost(Number(target.dataset.rankSize)));
}

// --- What people do -------------------------------------------------------------------------------

function rankOf(event) {
  if (event.target.closest?.('.still')) return null;
  const cell = event.target.closest?.('.c, .j');
  if (cell) return Number(cell.dataset.r);
  const job = jobs.find((one) => one.svg === event.target.closest?.('svg.job.plain'));
  if (job) return rankUnderJob(job, event);
  const svg = event.target.closest?.('svg.overview');
  const view = svg && overviews.find((one) => one.svg === svg);
  return view ? rankUnder(view, event) : null;
}

function rankUnderJob(view, event) {
  const box = view.svg.getBoundingClientRect();
  const scale = view.svg.viewBox.baseVal.width / box.width;
  const column = Math.floor(((event.clientX - box.left) * scale - view.left) / view.wide);
  const row = Math.floor(((event.clientY - box.top) * scale - view.top) / view.tall);
  const rank = rankInJob(view, column, row);
  return rank < 0 ? null : rank;
}

function hover(rank) {
  if (rank === hovered) return;
  hovered = rank;
  light();
}

function pin(rank) {
  pinned = rank;
  light();
  document.dispatchEvent(new CustomEvent('pin', { detail: { rank: rank === null ? '' : String(rank) } }));
}

function prepare(cell) {
  const panel = cell.closest('svg');
  panel.querySelector('.c[tabindex="0"]')?.setAttribute('tabindex', '-1');
  const rank = Number(cell.dataset.r);
  const kind = panel.dataset.kind;
  cell.setAttribute('tabindex', '0');
  cell.setAttribute('role', 'button');
  const named = cell.dataset.g === '' ? card.none : card.group;
  const group = filled(named, { kind, index: cell.dataset.g });
  cell.setAttribute('aria-label', filled(card.gpu, { rank }) + ', ' + group);
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The place nearest in a direction: of places as [x, y], the number; -1 if there is none.
function nearest(places, [fromX, fromY], [dx, dy]) {
  let best = -1;
  let shortest = Infinity;
  places.forEach(([x, y], number) => {
    const along = (x - fromX) * dx + (y - fromY) * dy;
    const aside = Math.abs((x - fromX) * dy) + Math.abs((y - fromY) * dx);
    const distance = along + 3 * aside;
    if (along > 1 && distance < shortest) {
      best = number;
      shortest = distance;
    }
  });
  return best;
}

function neighbour(cell, step) {
  const cells = [...cell.parentNode.querySelectorAll('.c')];
  const matrixOf = (one) => one.transform.baseVal.consolidate().matrix;
  const places = cells.map(matrixOf).map(({ e, f }) => [e, f]);
  return cells[nearest(places, places[cells.indexOf(cell)], step)];
}

function moveJob(view, step) {
  const rank = active();
  if (view.cells.length) {
    const places = view.cells.map((_, one) => spot(view, one));
    const next = nearest(places, places[rank], step);
    if (next >= 0) hover(next);
    return;
  }
  let [column, row] = square(view, rank);
  // Bands are parted by cells without a GPU.
  for (let one = 0; one < view.columns + view.rows; one++) {
    column += step[0];
    row += step[1];
    const next = rankInJob(view, column, row);
    if (next >= 0) return hover(next);
  }
}

function moveOverview(view, [dx, dy]) {
  const place = placeOf(view, active());
  const column = (place % view.columns) + dx;
  const row = Math.floor(place / view.columns) + dy;
  if (column < 0 || row < 0 || column >= view.columns || row >= view.rows) return;
  const rank = rankAtPlace(view, row * view.columns + column);
  if (rank >= 0) hover(rank);
}

function onKey(event) {
  if (event.key === 'Escape') {
    hovered = null;
    pin(null);
    return;
  }
  const cell = event.target.closest?.('.c');
  const job = jobs.find((one) => one.svg === event.target);
  const view = job ?? overviews.find((one) => one.svg === event.target);
  if (!cell && !view) return;
  if (event.key === 'Enter' || event.key === ' ') {
    const rank = cell ? Number(cell.dataset.r) : active();
    pin(rank === pinned ? null : rank);
  } else if (STEPS[event.key] && cell) {
    const next = neighbour(cell, STEPS[event.key]);
    if (next) {
      prepare(next);
      next.focus();
    }
  } else if (STEPS[event.key] && job) {
    moveJob(job, STEPS[event.key]);
  } else if (STEPS[event.key]) {
    moveOverview(view, STEPS[event.key]);
  } else {
    return;
  }
  event.preventDefault();
}

element.addEventListener('pointermove', (event) => {
  if (event.pointerType !== 'touch') hover(rankOf(event));
});
element.addEventListener('pointerleave', () => hover(null));
element.addEventListener('focusin', (event) => {
  const cell = event.target.closest?.('.c');
  if (cell && event.target.matches(':focus-visible')) hover(Number(cell.dataset.r));
});
element.addEventListener('focusout', () => hover(null));
element.addEventListener('click', (event) => {
  const rank = rankOf(event);
  if (rank === null) return;
  hovered = null;
  pin(rank === pinned ? null : rank);
});
document.addEventListener('keydown', (event) => {
  const here = element.contains(event.target);
  // Esc anywhere lets a pin go, unless it closes a list.
  const elsewhere = event.key === 'Escape' && !event.target.closest('[role=combobox], [role=listbox]');
  if (here || (elsewhere && pinned !== null)) onKey(event);
});
// A rank that was typed, or that a link has: pinned if there is such a GPU, said in words if there
// is none.
function takeRank(event) {
  if (!event.target.closest?.('#rank')) return;
  const text = event.target.value.trim();
  if (event.type === 'input') hovered = null;
  if (/^[0-9]{1,12}$/.test(text)) pinned = Number(text);
  else if (text === '') pinned = null;
  else return;
  light();
}
document.addEventListener('input', takeRank);
document.addEventListener('filled', takeRank);
new MutationObserver(light).observe(document.body, { attributes: true, attributeFilter: ['class'] });
watch('value', read);
