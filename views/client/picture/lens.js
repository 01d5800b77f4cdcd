// Colours the mesh by what its GPUs cost, and tells it of one GPU, from numbers that the server is
// asked for once a picture stands (views/groups/lens.py).
const SETTLED = 400; // ms without another picture until they are asked for
const STEPS_OF_SCALE = 5; // colours of the key

let known = null;
let lensed = ''; // the view whose numbers the cells have; empty: their groups
let tints = [];
let asking = 0;

const keyOf = () => element.querySelector('.lens-key');

async function askCosts() {
  const turn = ++asking;
  const { answer } = await post('component_server', questionOf('lens', state));
  if (turn !== asking) return;
  element.querySelector('.costs')?.removeAttribute('aria-busy');
  if (!answer?.lenses || !element.querySelector('.lenses')) return;
  known = answer;
  tellCosts(active());
  if (lensed) tint();
}

function settle() {
  clearTimeout(settle.timer);
  asking += 1;
  known = null;
  removeTints();
  if (!element.querySelector('.lenses')) return;
  press();
  element.querySelector('.costs').setAttribute('aria-busy', 'true');
  tellCosts(active());
  settle.timer = setTimeout(askCosts, SETTLED);
}

// --- The card ---------------------------------------------------------------------------------------

const leading = (view, said) => {
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'leads';
  button.dataset.set = JSON.stringify({ view });
  button.textContent = said;
  return button;
};

function tellCosts(rank) {
  const place = element.querySelector('.card .costs');
  if (!place) return;
  const stage = stageOf(grids[0], rank);
  const { step, lenses } = known ?? {};
  const told = ['memory', 'pipeline', 'traffic'].map((view) => [view, lenses?.[view]?.said[stage]]);
  told.splice(1, 0, ['estimate', step]);
  place.replaceChildren(...told.filter(([, said]) => said).map((one) => leading(...one)));
  place.firstChild?.classList.toggle('too-full', Boolean(lenses?.memory?.full[stage]));
}

// --- The mesh ---------------------------------------------------------------------------------------

function press() {
  for (const button of element.querySelectorAll('.lenses button')) {
    button.setAttribute('aria-pressed', String(button.dataset.lens === lensed));
  }
  keyOf().replaceChildren();
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
  if (!lensed) return;
  const lens = known?.lenses[lensed];
  const view = element.querySelector(`.lenses [data-lens=${lensed}]`).textContent;
  const open = leading(lensed, filled(card.lens_opens, { view }));
  if (!lens) return keyOf().append(card.lens_none + ' ', open);
  for (const one of views.filter(({ svg }) => svg.matches('.job'))) {
    const holder = svgNode('g', { 'aria-hidden': 'true' }, 'play tints');
    holder.append(...(lens.ranks ? roles(one, lens.ranks) : stagesOf(one, lens)));
    one.svg.classList.add('lensed');
    one.svg.append(holder);
    tints.push(holder);
  }
  if (lens.scale) keyOf().append(...scaleOf(lens.scale), ' ', open);
  else keyOf().append(open);
}

function stagesOf(view, { shares, full }) {
  const paths = areasOf(view, axesOf(view), shares.length);
  return shares.map((share, stage) => {
    const path = svgNode('path', { d: paths[stage] }, full?.[stage] ? 'tint over' : 'tint');
    path.style.setProperty('--share', share);
    return path;
  });
}

function roles(view, ranks) {
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
  if (element.querySelector('.lenses')) tint();
});
on('click', '.lenses button', (button) => say('lens', button.dataset.lens));
watch('value', settle);
