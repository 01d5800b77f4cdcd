// The collectives view: plays the steps of an algorithm on the slots of its members. All states came
// with the picture; the server is not asked. A step is kept while the same algorithm is shown.
const SVG = 'http://www.w3.org/2000/svg';
const PALETTE = 10;
const PACE = 1100; // ms a step
let algorithm = ''; // the algorithm that the step below belongs to
let step = 0;
let timer = 0;

const root = () => element.querySelector('.collectives-play');

// --- The state after some steps -------------------------------------------------------------------

function stateAt(data, at) {
  const slots = data.first.map((row) => row.slice());
  for (const one of data.steps.slice(0, at)) {
    for (const [place, slot, cell] of one.sets) slots[place][slot] = cell;
  }
  return slots;
}

function draw() {
  const play = root();
  if (!play) {
    stop();
    return;
  }
  const data = JSON.parse(play.dataset.states);
  const last = data.steps.length;
  step = Math.max(0, Math.min(step, last));
  const moves = step ? data.steps[step - 1].moves : [];
  const touched = new Map(moves.map((move) => [`${move[2]},${move[3]}`, move[4] ? 'adds' : 'takes']));
  const slots = stateAt(data, step);
  for (const cell of play.querySelectorAll('.slot')) {
    const [place, slot] = cell.dataset.slot.split(',').map(Number);
    fill(cell, slots[place][slot], touched.get(cell.dataset.slot) || '');
  }
  arrows(play.querySelector('.collectives-slots'), moves);
  const slider = play.querySelector('input[type=range]');
  slider.value = step;
  slider.setAttribute('aria-valuetext', data.told[step]);
  play.querySelector('.collectives-told').textContent = data.told[step];
  play.querySelector('.collectives-meter span').style.width = `${100 * data.share[step]}%`;
  for (const [name, isOver] of [['back', step === 0], ['on', step === last]]) {
    play.querySelector(`[data-play=${name}]`).disabled = isOver;
  }
  const button = play.querySelector('[data-play=play]');
  button.textContent = timer ? button.dataset.stop : button.dataset.start;
}

function fill(cell, content, touch) {
  const who = content ? content[1] : [];
  const kind = content ? (who.length === 1 ? `g${who[0] % PALETTE}` : 'sum') : 'empty';
  cell.setAttribute('class', `slot ${kind} ${touch}`.trim());
  cell.querySelector('text').textContent = content ? content[0] : '';
  cell.querySelectorAll('.strip rect').forEach((field, place) => {
    field.setAttribute('class', who.includes(place) ? 'who on' : 'who');
  });
}

// --- Arrows: from the slot that was sent to the slot that got it ----------------------------------

function arrows(svg, moves) {
  const layer = svg.querySelector('.arrows');
  layer.replaceChildren();
  const size = {};
  for (const name of ['width', 'step', 'left', 'top', 'row', 'height']) {
    size[name] = Number(svg.dataset[name]);
  }
  for (const move of moves) layer.append(arrow(size, move));
}

function arrow(size, [sender, chunk, receiver, into, adds]) {
  const down = receiver > sender;
  const x0 = size.left + chunk * size.step + size.width / 2;
  const x1 = size.left + into * size.step + size.width / 2;
  const y0 = size.top + sender * size.row + (down ? size.height : 0);
  const y1 = size.top + receiver * size.row + (down ? 0 : size.height);
  const tip = y1 + (down ? -5 : 5);
  const far = Math.abs(receiver - sender) > 1 && chunk === into;
  // Along the right edge of the column, so that it does not cross the numbers between.
  const side = far ? size.width / 2 + 10 : 0;
  const path = far
    ? `M${x0 + 6} ${y0}C${x0 + side} ${y0 + (down ? 12 : -12)} ${x0 + side} ${tip + (down ? -12 : 12)} ${x1 + 6} ${tip}`
    : `M${x0} ${y0}L${x1} ${tip}`;
  const group = document.createElementNS(SVG, 'g');
  group.setAttribute('class', adds ? 'arrow adds' : 'arrow');
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', path);
  const head = document.createElementNS(SVG, 'path');
  const at = far ? x1 + 6 : x1;
  head.setAttribute('class', 'head');
  head.setAttribute('d', `M${at - 5} ${tip - (down ? 4 : -4)}L${at} ${y1}L${at + 5} ${tip - (down ? 4 : -4)}Z`);
  group.append(line, head);
  return group;
}

// --- Playing --------------------------------------------------------------------------------------

function stop() {
  clearInterval(timer);
  timer = 0;
}

function toggle() {
  if (timer) {
    stop();
  } else {
    const last = JSON.parse(root().dataset.states).steps.length;
    if (step >= last) step = 0;
    timer = setInterval(() => {
      step += 1;
      if (step >= last) stop();
      draw();
    }, PACE);
  }
  draw();
}

function go(to) {
  stop();
  step = to;
  draw();
}

element.addEventListener('input', (event) => {
  if (event.target.matches('.collectives-player input')) go(Number(event.target.value));
});
element.addEventListener('click', (event) => {
  const button = event.target.closest('.collectives-player button');
  if (!button) return;
  if (button.dataset.play === 'play') toggle();
  else go(step + (button.dataset.play === 'on' ? 1 : -1));
});

function update() {
  const play = root();
  const now = play ? play.dataset.algorithm : '';
  if (now !== algorithm) {
    stop();
    step = 0;
    algorithm = now;
  }
  draw();
}

watch('value', update);
update();
