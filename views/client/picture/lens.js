// The four numbers of the job, and the mesh coloured by what its GPUs cost, from what the server is
// asked for once a picture stands (views/groups/lens.py).
const SETTLED = 150; // ms without another picture until they are asked for
const STEPS_OF_SCALE = 5; // colours of the key
const VALUE = 0.21; // font size of a value in its cell, of the cell's height
const LEAST_VALUE = 8.5; // pixels of it that can be read

let known = null;
let lensed = ''; // the view whose numbers the cells have; empty: their groups
let tints = [];
let asking = 0;

const isFilled = (box) => Boolean(state[box]?.trim());
const keyOf = () => element.querySelector('.lens-key');

async function askCosts() {
  const turn = ++asking;
  const { answer } = await post('component_server', questionOf('lens', state));
  if (turn !== asking) return;
  numbers().removeAttribute('aria-busy');
  element.querySelector('.costs')?.removeAttribute('aria-busy');
  if (!answer?.lenses) return;
  paintRegion('numbers', answer.numbers);
  numbers().classList.remove('none');
  numbers().lang = words;
  press();
  if (!keyOf()) return;
  known = answer;
  tellCosts(active());
  if (lensed) tint();
  // The step as it is before it is played.
  if (answer.strip && filmBar() && !reel) drawTrack(answer.strip.busy, answer.strip.ends);
}

const numbers = () => element.querySelector('#numbers');

function settle() {
  clearTimeout(settle.timer);
  asking += 1;
  known = null;
  removeTints();
  press();
  numbers().setAttribute('aria-busy', 'true');
  const isOther = numbers().lang && numbers().lang !== words;
  const isWaiting = element.querySelector('.app').classList.contains('waiting');
  if (isOther || isWaiting) numbers().classList.add('none');
  if (!isWaiting) settle.timer = setTimeout(askCosts, SETTLED); // else once the one asked for is there
  const costs = element.querySelector('.costs');
  if (!costs || !keyOf()) return;
  keyOf().replaceChildren();
  costs.setAttribute('aria-busy', 'true');
  tellCosts(active());
}

// --- The card ---------------------------------------------------------------------------------------

const leading = (view, said, fields = {}) => {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'leads';
  button.dataset.set = JSON.stringify({ view, ...fields });
  button.textContent = said;
  return button;
};

function tellCosts(rank) {
  tellSends(rank);
  const place = element.querySelector('.card .costs');
  if (!place) return;
  const stage = stageOf(grids[0], rank);
  const { lenses } = known ?? {};
  const told = ['memory', 'pipeline', 'traffic'].map((view) => [view, lenses?.[view]?.said[stage]]);
  const number = lenses?.hosts?.numbers[rank];
  if (lenses?.hosts) told.push(['hosts', number ? filled(card.lens_number, { number }) : card.lens_no_number]);
  place.replaceChildren(...told.filter(([, said]) => said).map((one) => leading(...one)));
  place.firstChild?.classList.toggle('too-full', Boolean(lenses?.memory?.full[stage]));
}

// What the GPU sends over each kind, on the badges beside its row in the picture.
const LETTER = { chip: 7.3, whose: 6.3, wide: 12 }; // pixels of a letter, the last of a Chinese one
function writeBadge(badge, text) {
  const [said] = badge.getElementsByTagName('text');
  const each = badge.matches('.chip') ? LETTER.chip : LETTER.whose;
  const wide = [...text].reduce((sum, one) => sum + (one > '\u2fff' ? LETTER.wide : each), badge.matches('.chip') ? 14 : 2);
  if (said.textContent !== text) said.textContent = text;
  badge.setAttribute('width', wide.toFixed(1));
}

function tellSends(rank) {
  const stage = stageOf(grids[0], rank);
  for (const view of views) {
    const { svg } = view;
    const badges = svg.parentNode.querySelector('.sends');
    if (!badges) continue;
    const [whose, ...each] = badges.querySelectorAll('svg');
    writeBadge(whose, filled(card.sends, { rank }));
    for (const badge of each) {
      const [kind, sent] = known?.sends?.[badge.dataset.sends] ?? [badge.dataset.sends];
      writeBadge(badge, sent?.[stage] ? filled(card.sends_kind, { kind, sent: sent[stage] }) : kind);
    }
    const middle = spot(view, rank)[1] + view.tall / 2;
    badges.style.setProperty('--at', (middle / svg.viewBox.baseVal.height).toFixed(4));
  }
}

// What the picture is asked, and its answer, of all GPUs or of one; none where it shows groups.
function lensSays(rank) {
  const lens = lensed && known?.lenses[lensed];
  if (!lens?.asks) return null;
  const says = lens.said?.[stageOf(grids[0], rank)];
  return [lens.asks, chosen() === null ? lens.says : filled(card.lens_gpu, { rank, says })];
}

// --- The mesh ---------------------------------------------------------------------------------------

function press() {
  const others = element.querySelector('#nav .lenses');
  if (others) others.hidden = !keyOf(); // a server has no such scale
  for (const button of element.querySelectorAll('[data-lens]')) {
    button.setAttribute('aria-pressed', String(button.dataset.lens === lensed));
  }
  keyOf()?.classList.toggle('comes', Boolean(lensed)); // its line is kept, so that nothing moves when it is there
}

function removeTints() {
  for (const holder of tints) {
    holder.parentNode?.classList.remove('lensed');
    holder.remove();
  }
  tints = [];
}

function tint() {
  removeTints();
  press();
  keyOf().replaceChildren();
  ask(active());
  reserve();
  if (!lensed) return;
  const lens = known?.lenses[lensed];
  const { box } = element.querySelector(`[data-lens=${lensed}]`)?.dataset ?? {};
  if (box && !isFilled(box)) return keyOf().append(card.lens_paste + ' ', pasting(box));
  const open = leading(lensed, filled(card.lens_opens, { view: card['lens_' + lensed] }));
  if (!lens) return keyOf().append(card.lens_none + ' ', open);
  for (const one of views.filter(({ svg }) => svg.matches('.job'))) {
    const holder = svgNode('g', { 'aria-hidden': 'true' }, 'play tints');
    const draw = lens.ranks ? roles : lens.levels ? levelsOf : stagesOf;
    holder.append(...draw(one, lens));
    const values = svgNode('g', { 'aria-hidden': 'true' }, 'play values');
    values.append(...valuesOf(one, lens));
    one.svg.classList.add('lensed');
    one.svg.append(holder, values);
    tints.push(holder, values);
  }
  const { scale, notes = [], ways = [] } = lens;
  const leads = ways.map(([what, { view, ...fields }]) => leading(view, what, fields));
  keyOf().append(...(scale ? scaleOf(scale) : []), ...notes.map((note) => ` · ${note}`));
  keyOf().append(...[...leads, open].flatMap((lead) => [' ', lead]));
}

function pasting(box) {
  const button = leading(lensed, card.lens_pastes);
  button.dataset.leads = `field-${box}`;
  return button;
}

function stagesOf(view, { shares, full }) {
  const axes = axesOf(view);
  const paths = areasOf(view, shares.length, (rank) => stageOf(axes, rank));
  return shares.map((share, stage) => {
    const path = svgNode('path', { d: paths[stage] }, full?.[stage] ? 'tint over' : 'tint');
    path.style.setProperty('--share', share);
    return path;
  });
}

// The value in each cell, below its number, where there is room for both.
function valuesOf(view, { values, numbers }) {
  if (!isNumbered(view) || !(values ?? numbers)) return [];
  const axes = axesOf(view);
  const valueOf = (rank) => numbers?.[rank] ?? values[stageOf(axes, rank)];
  const size = VALUE * view.tall;
  const longest = Math.max(...(values ?? numbers).map((text) => text.length));
  const shown = view.svg.getBoundingClientRect().width / view.svg.viewBox.baseVal.width;
  if (size * shown < LEAST_VALUE || 0.6 * size * longest > view.wide) return [];
  return Array.from({ length: mesh.world }, (_, rank) => {
    const [x, y] = spot(view, rank);
    const text = svgNode('text', { x: x + view.wide / 2, y: y + 0.92 * view.tall, 'font-size': size, 'text-anchor': 'middle' }, 'value');
    text.textContent = valueOf(rank);
    return text;
  });
}

// One path for each level that a number may have, the last for GPUs without one.
function levelsOf(view, { levels, steps }) {
  const paths = areasOf(view, steps + 1, (rank) => (levels[rank] === '-' ? steps : Number(levels[rank])));
  return paths.map((d, level) => {
    const path = svgNode('path', { d }, level === steps ? 'tint bare' : 'tint');
    path.style.setProperty('--share', level / (steps - 1));
    return path;
  });
}

function roles(view, { ranks }) {
  return Object.entries(ranks).map(([rank, role]) => {
    const [x, y] = spot(view, Number(rank));
    return svgNode('rect', { x, y, width: view.wide, height: view.tall }, 'tint role-' + role);
  });
}

function scaleOf([least, most]) {
  const steps = Array.from({ length: STEPS_OF_SCALE }, (_, i) => {
    const box = document.createElement('i');
    box.style.setProperty('--share', i / (STEPS_OF_SCALE - 1));
    return box;
  });
  return [least + ' ', ...steps, ' ' + most];
}

document.addEventListener('lens', ({ detail }) => {
  lensed = detail;
  if (keyOf()) tint();
});
on('click', '[data-lens]', (button) => say('lens', button.dataset.lens));
watch('value', settle);
