// The collectives view: plays the steps of an algorithm on the slots of its members. All states came
// with the picture; the server is not asked. A step is kept while the same algorithm is shown.
const PALETTE = 10;
const PACE = 1100; // ms a step
let algorithm = ''; // the algorithm that the step below belongs to
let step = 0;

const root = () => element.querySelector('.collectives-play');

// --- The state after some steps -------------------------------------------------------------------

function draw() {
  const play = root();
  if (!play) {
    player.stop();
    return;
  }
  const data = JSON.parse(play.dataset.states);
  const last = data.steps.length;
  step = Math.max(0, Math.min(step, last));
  const moves = step ? data.steps[step - 1].moves : [];
  const touched = new Map(moves.map((move) => [`${move[2]},${move[3]}`, move[4] ? 'adds' : 'takes']));
  const slots = data.first;
  for (const [place, slot, cell] of data.steps.slice(0, step).flatMap((one) => one.sets)) {
    slots[place][slot] = cell;
  }
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
  player.label();
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
  const size = numbersOf(svg, 'width', 'step', 'left', 'top', 'row', 'height');
  svg.querySelector('.arrows').replaceChildren(...moves.map((move) => arrow(size, move)));
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
  const at = far ? x1 + 6 : x1;
  const back = tip - (down ? 4 : -4);
  const group = svgNode('g', {}, adds ? 'arrow adds' : 'arrow');
  const head = { d: `M${at - 5} ${back}L${at} ${y1}L${at + 5} ${back}Z` };
  group.append(svgNode('path', { d: path }, 'line'), svgNode('path', head, 'head'));
  return group;
}

// --- Playing --------------------------------------------------------------------------------------

const lastStep = () => JSON.parse(root().dataset.states).steps.length;
const player = playerOf('.collectives-player', {
  begin: () => (step >= lastStep() ? 0 : step),
  at(from, time) {
    const now = from + Math.floor(time / PACE);
    if (root() && now !== step) goTo(now);
    return root() && step < lastStep();
  },
  go: (isOn) => goTo(step + (isOn ? 1 : -1)),
});

function goTo(to) {
  step = to;
  draw();
}

on('input', '.collectives-player input', (slider) => {
  player.stop();
  goTo(Number(slider.value));
});

function update() {
  const now = root()?.dataset.algorithm ?? '';
  if (now !== algorithm) {
    player.stop();
    step = 0;
    algorithm = now;
  }
  draw();
}

watch('value', update);
update();
