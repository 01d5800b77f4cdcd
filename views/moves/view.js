// The Moves view: tells what the GPU under the pointer or the arrow keys sends or receives, and plays
// through the tensors of the chosen one. How each is cut is asked of the server once, on playing.
const PACE = 900; // ms a tensor
const figure = () => element.querySelector('.moves-figure');
const bar = () => element.querySelector('.moves-player');
const label = () => element.querySelector('.moves-player .moves-step');
let at = null; // [side, rank] that is told
let reel = null; // { steps, ways }: null until it is asked for
let waited = 0; // ms of playing before it was there
let step = 0;
let turns = 0; // pages so far

// --- What is told of a GPU ----------------------------------------------------------------------------
const cellsOf = (box) => JSON.parse(box.dataset.cells);

function cellUnder(box, event) {
  const { wide, tall, at: cells } = cellsOf(box);
  const matrix = box.querySelector('svg').getScreenCTM();
  if (!matrix) return null;
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
  const found = cells.find(([, , left, top]) => x >= left && y >= top && x < left + wide && y < top + tall);
  return found ? found.slice(0, 2) : null;
}

function tell() {
  const root = figure();
  if (!root) return;
  const told = at && JSON.parse(root.dataset.told)[at[0]][at[1]];
  if (!told) at = null;
  root.querySelector('.moves-told').textContent = told ?? touchWord(JSON.parse(root.dataset.words), 'hint');
  for (const box of root.querySelectorAll('[data-cells]')) ring(box);
  dim(at && at[0] === 0 ? [at[1]] : null);
}

function ring(box) {
  const svg = box.querySelector('svg');
  const { wide, tall, at: cells } = cellsOf(box);
  const place = at && cells.find(([side, rank]) => side === at[0] && rank === at[1]);
  svg.querySelector('.moves-ring')?.remove();
  if (!place) return;
  const [, , x, y] = place;
  svg.append(svgNode('rect', { x: x - 2, y: y - 2, width: wide + 4, height: tall + 4, rx: 4 }, 'moves-ring'));
}

// All lines but those of some senders step back; of none that send, none does.
function dim(senders) {
  for (const way of element.querySelectorAll('.moves-job .way')) {
    const rank = Number(/ r(\d+)/.exec(way.getAttribute('class'))[1]);
    way.classList.toggle('off', Boolean(senders) && !senders.includes(rank));
  }
}

for (const kind of ['pointermove', 'pointerdown']) {
  on(kind, '.moves-figure [data-cells]', (box, event) => {
    const now = cellUnder(box, event);
    if (String(now) === String(at)) return;
    at = now;
    tell();
  });
}
on('pointerout', '.moves-figure [data-cells]', (box, event) => {
  if (!at || event.pointerType === 'touch' || box.contains(event.relatedTarget)) return;
  at = null;
  tell();
});
// A GPU of the target becomes the chosen one.
function choose() {
  if (at?.[0] === 1) say('set', { rank: String(at[1] - Number(figure().dataset.first)) });
}
on('click', '.moves-figure [data-cells]', (box, event) => {
  if (event.pointerType !== 'touch' && cellUnder(box, event)) choose();
});
on('keydown', '.moves-figure [data-cells]', (box, event) => {
  const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.key === 'Enter') choose();
  if (!way && event.key !== 'Escape') return;
  event.preventDefault();
  const { at: cells } = cellsOf(box);
  const place = at ? cells.findIndex(([side, rank]) => side === at[0] && rank === at[1]) : -1;
  const next = place < 0 ? 0 : (place + way + cells.length) % cells.length;
  at = event.key === 'Escape' ? null : cells[next].slice(0, 2);
  tell();
});

// --- Playing through the tensors ----------------------------------------------------------------------
async function load() {
  const turn = turns;
  const told = label(); // may leave the page before the answer
  told.textContent = JSON.parse(bar().dataset.words).wait;
  const { answer, status } = await post('component_server', questionOf('moves_reel', state));
  if (turn !== turns) return bar() && load(); // other sides have come: theirs is what is asked for
  if (answer?.steps) reel = answer;
  else if (!isBusy(status) && !answer?.busy) told.textContent = answer?.refused ?? '';
  else {
    told.textContent = saidIn('busy');
    await new Promise((go) => setTimeout(go, AGAIN));
    if (!reel && bar()) await load();
  }
}

function goTo(to) {
  const player = bar();
  if (!player || !reel) return;
  step = Math.max(0, Math.min(to, reel.steps.length - 1));
  const [name, number] = reel.steps[step];
  const { svg, senders } = reel.ways[number];
  const box = player.parentElement.querySelector('.moves-scroll.matrix');
  if (box.dataset.way !== String(number)) box.innerHTML = svg;
  box.dataset.way = number;
  player.parentElement.querySelector('.moves-name').innerHTML = '<code></code>';
  player.parentElement.querySelector('.moves-name code').textContent = name;
  slideTo(player.querySelector('input'), step);
  const words = JSON.parse(player.dataset.words);
  const count = reel.steps.length.toLocaleString('en');
  const text = filled(words.step, { number: (step + 1).toLocaleString('en'), count });
  player.querySelector('.moves-step').textContent = text;
  player.querySelector('input').setAttribute('aria-valuetext', `${text}: ${name}`);
  dim(senders);
}

const player = playerOf('.moves-player', {
  begin() {
    waited = 0;
    if (!reel) load();
    return step >= Number(bar().querySelector('input').max) ? 0 : step;
  },
  at(from, time) {
    if (!bar()) return false;
    if (!reel) {
      waited = time;
      return [JSON.parse(bar().dataset.words).wait, saidIn('busy')].includes(label().textContent);
    }
    goTo(from + Math.floor((time - waited) / PACE));
    return step < reel.steps.length - 1;
  },
  go: (isOn) => settle(() => step + (isOn ? 1 : -1)),
});

// Stay at a step, which may count from where the tensors begin: the page's state names its tensor.
async function settle(to) {
  if (!reel) await load();
  if (!reel || !bar()) return;
  goTo(typeof to === 'function' ? to() : to);
  const [name] = reel.steps[step];
  if (name !== bar().dataset.tensor) say('set', { moves_tensor: name });
}

on('input', '.moves-player input', async (slider) => {
  player.stop();
  const to = Number(slider.value);
  if (!reel) await load();
  goTo(to);
});
on('change', '.moves-player input', (slider) => settle(Number(slider.value)));
// Whoever stops stays where that is.
on('click', '.moves-player [data-play=play]', (button) => {
  if (reel && button.textContent === button.dataset.start) settle(step);
});

// What is asked of the same sides is still right when only the tensor or the cell is another one.
let key = '';
watch('value', () => {
  const now = JSON.stringify({ ...state, moves_tensor: '', moves_cell: '' });
  if (now !== key) {
    player.stop();
    [reel, at] = [null, null];
    turns += 1;
  }
  key = now;
  if (bar()) step = Number(bar().querySelector('input').value);
  const input = bar()?.querySelector('input');
  if (input) slideTo(input, input.value);
  player.label();
  tell();
});
