// Lights up the groups of the GPU under the pointer, the focus or the pin, in every picture at once
// and without the server.
let mesh, card, grids, kinds;
let panels = []; // of one kind each
let views = []; // the job, its nodes
let hovered = null;
let pinned = null;
let frame = 0;

// --- Reading what the server sent -----------------------------------------------------------------

// Pictures of another layout beside this one stay as they are: their GPUs are not this one's.
const isAlive = (svg) => !svg.closest('.still');

function read() {
  const picture = element.querySelector('.picture');
  if (!picture) return;
  const layout = layoutOf(picture);
  ({ mesh, grids, kinds } = layout);
  card = JSON.parse(picture.dataset.words);
  const all = [...element.querySelectorAll('svg.panel')];
  const read = (svgs) => svgs.filter(isAlive).map((svg) => readView(svg, layout));
  panels = read(all);
  views = read([...element.querySelectorAll('svg.job, svg.overview')].filter((svg) => !svg.closest('.plan-role[data-mesh]')));
  readPlan(layout);
  for (const { svg } of [...panels, ...views]) svg.setAttribute('tabindex', '0');
  density.disconnect();
  const drawn = {};
  for (const svg of [...all, ...element.querySelectorAll('svg.job.numbered')]) {
    const kind = svg.dataset.kind ?? 'job';
    drawn[kind] = (drawn[kind] ?? 0) + 1;
    svg.dataset.place = kind + drawn[kind];
    const width = widths.get(svg.dataset.place);
    if (width) thin(svg, width); // or its texts would be styled twice
    density.observe(svg);
  }
  reserve();
  light();
}

// The sizes of a layout, its grids and its groups.
function layoutOf({ dataset }) {
  const mesh = JSON.parse(dataset.mesh);
  const grids = mesh.grids.map(withStrides);
  const kinds = mesh.kinds.map(([name, tone, grid, names, length, stride, places, joined]) => ({
    name, tone, axes: grids[grid], names, length, stride, places, joined, world: mesh.world,
  }));
  return { mesh, grids, kinds };
}

function withStrides(axes) {
  let stride = 1;
  return axes.map(([name, size]) => {
    const axis = { name, size, stride };
    stride *= size;
    return axis;
  });
}

// Pictures shrink with the page: a text that would be too small to read is left out. The observer
// is told sizes after layout; asking for them would make the browser lay out twice.
const READABLE = 7.5; // pixels
const widths = new Map(); // of each picture: the first of a kind, the second beside it ...
const density = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    widths.set(target.dataset.place, contentRect.width);
    thin(target, contentRect.width);
  }
});
function thin(svg, width) {
  const scale = width / svg.viewBox.baseVal.width;
  const lost = (size) => size > 0 && size * scale < READABLE;
  svg.classList.toggle('no-index', lost(Number(svg.dataset.indexSize)));
  svg.classList.toggle('no-rank', lost(Number(svg.dataset.rankSize)));
  const isPanel = 'rankSize' in svg.dataset; // whose ranks stay where names of groups do not
  svg.classList.toggle('no-number', !isPanel && lost(parseFloat(svg.style.getPropertyValue('--most'))));
}

// --- The chosen GPU -------------------------------------------------------------------------------

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
    panels.forEach((panel) => lightPanel(panel, rank));
    views.forEach((view) => mark(view, rank));
    lightPlan();
    ask(rank);
    tell(rank);
    tellCosts(rank);
  });
}

const mark = (view, rank) => (isNumbered(view) ? markCells : markPixels)(view, rank);

function hover(rank, gpu = null) {
  if (rank === hovered && gpu === pointed) return;
  hovered = rank;
  pointed = gpu;
  light();
}

function pin(rank) {
  pinned = rank;
  light();
  say('pin', { rank: rank ?? '' });
}

// --- What people do -------------------------------------------------------------------------------

const viewOf = (svg) => svg && [...panels, ...views].find((one) => one.svg === svg);

function rankOf(event) {
  const view = viewOf(event.target.closest?.('svg.job, svg.overview, svg.panel'));
  return view ? rankUnder(view, event) : null;
}

function onKey(event) {
  if (event.key === 'Escape') {
    hovered = pointed = null;
    pin(null);
    return;
  }
  const view = viewOf(event.target);
  if (!view) return;
  const step = STEPS[event.key];
  if (event.key === 'Enter' || event.key === ' ') {
    const rank = active();
    pin(rank === pinned ? null : rank);
  } else if (step) {
    hover(rankBeside(view, active(), step) ?? hovered);
  } else {
    return;
  }
  event.preventDefault();
}

element.addEventListener('pointermove', (event) => {
  if (event.pointerType === 'touch') return;
  const gpu = gpuUnder(event);
  if (gpu === null) hover(rankOf(event));
  else pointAt(gpu);
});
element.addEventListener('pointerleave', () => hover(null));
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
// is none; what is no number pins none, as a link that says it.
function takeRank(event) {
  if (!event.target.closest?.('#rank')) return;
  const text = event.target.value.trim();
  if (event.type === 'input') hovered = null;
  pinned = /^[0-9]{1,12}$/.test(text) ? Number(text) : null;
  light();
}
document.addEventListener('input', takeRank);
document.addEventListener('filled', takeRank);
new MutationObserver(light).observe(document.body, { attributes: true, attributeFilter: ['class'] });
watch('value', read);
