// Lights up the groups of the GPU under the pointer, the focus or the pin, in every picture at once
// and without the server: any rank's groups follow from the sizes of the mesh's axes.
let mesh, card, grids, kinds, panels, overviews, large;
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
  large = element.querySelector('.large');
  panels.forEach(({ svg, cells }) => {
    cells.forEach((cell) => cell.removeAttribute('tabindex'));
    const first = cells[inside(pinned) ? pinned : 0];
    if (first) prepare(first);
    svg.classList.remove('lit');
  });
  density.disconnect();
  panels.forEach(({ svg }) => density.observe(svg));
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

function active() {
  if (inside(hovered)) return hovered;
  if (inside(pinned)) return pinned;
  return large ? Number(large.dataset.rank) : null;
}

function light() {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    const rank = active();
    panels.forEach((panel) => lightPanel(panel, rank));
    if (rank !== null) overviews.forEach((view) => markOverview(view, rank));
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

const MOST = 16;

function rankList(ranks) {
  const shown = [...ranks].sort((a, b) => a - b);
  return shown.slice(0, MOST).join(', ') + (shown.length > MOST ? ', …' : '');
}

function line(parts) {
  const p = document.createElement('p');
  for (const [tag, text, name] of parts) {
    const part = document.createElement(tag);
    part.textContent = text;
    if (name) part.className = name;
    p.append(part, ' ');
  }
  return p;
}

function tell(rank) {
  const place = element.querySelector('.told');
  if (!place) return;
  const told = rank === null ? [line([['span', card.idle]])] : cardOf(rank);
  if (pinned !== null && !inside(pinned)) {
    told.unshift(line([['b', filled(card.norank, { rank: pinned, last: mesh.world - 1 })]]));
  }
  place.replaceChildren(...told);
}

function cardOf(rank) {
  const place = {
    node: Math.floor(rank / mesh.gpusPerNode),
    local: rank % mesh.gpusPerNode,
  };
  const head = [['b', filled(card.gpu, { rank })], ['span', filled(card.place, place)]];
  for (const axes of grids.slice(0, mesh.coordinates)) {
    const at = coordinates(axes, rank);
    head.push(['code', axes.map((axis) => axis.name + ' ' + at[axis.name]).join(', ')]);
  }
  if (rank === pinned) head.push(['i', card.pinned]);
  const groups = kinds.slice(0, mesh.told).map((kind) => {
    const ranks = members(kind, rank);
    if (!ranks.length) {
      return line([
        ['span', kind.name, 'chip t-' + kind.tone],
        ['span', filled(card.none, { kind: kind.name })],
      ]);
    }
    const count = ranks.length.toLocaleString('en');
    return line([
      ['span', kind.name, 'chip t-' + kind.tone],
      ['b', filled(card.group, { kind: '', index: groupIndex(kind, rank) }).trim()],
      ['span', filled(ranks.length === 1 ? card.alone : card.count, { count })],
      ['span', rankList(ranks), 'peers'],
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
  const cell = event.target.closest?.('.c');
  if (cell) return Number(cell.dataset.r);
  const svg = event.target.closest?.('svg.overview');
  const view = svg && overviews.find((one) => one.svg === svg);
  return view ? rankUnder(view, event) : null;
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

const matrixOf = (cell) => cell.transform.baseVal.consolidate().matrix;

function neighbour(cell, [dx, dy]) {
  const from = matrixOf(cell);
  let best = null;
  let shortest = Infinity;
  for (const other of cell.parentNode.querySelectorAll('.c')) {
    const to = matrixOf(other);
    const along = (to.e - from.e) * dx + (to.f - from.f) * dy;
    const aside = Math.abs((to.e - from.e) * dy) + Math.abs((to.f - from.f) * dx);
    const distance = along + 3 * aside;
    if (along > 1 && distance < shortest) {
      best = other;
      shortest = distance;
    }
  }
  return best;
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
  const view = overviews.find((one) => one.svg === event.target);
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
