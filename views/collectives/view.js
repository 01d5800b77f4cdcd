// The collectives view: draws the slots of an algorithm's members and plays its steps on them. All
// states came with the page; the server is not asked. A step is kept while the same algorithm is shown.
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
  const slots = data.first;
  for (const [place, slot, cell] of data.steps.slice(0, step).flatMap((one) => one.sets)) {
    slots[place][slot] = cell;
  }
  paint(play.querySelector('.collectives-slots'), data, slots, moves);
  const slider = play.querySelector('input[type=range]');
  slideTo(slider, step);
  slider.setAttribute('aria-valuetext', data.told[step]);
  play.querySelector('.collectives-told').textContent = data.told[step];
  play.querySelector('.collectives-meter span').style.width = `${100 * data.share[step]}%`;
  for (const [name, isOver] of [['back', step === 0], ['on', step === last]]) {
    play.querySelector(`[data-play=${name}]`).disabled = isOver;
  }
  player.label();
}

// --- The slots: a row a rank, a column a slot, arrows between them ---------------------------------
const HEIGHT = 32; // pixels: of a slot, then from row to row, between slots, left of them and above
const ROW = 54;
const GAP = 18;
const LEFT = 78;
const TOP = 30;

function paint(svg, { ranks, heads, width }, slots, moves) {
  const touched = new Map(moves.map((move) => [`${move[2]},${move[3]}`, move[4] ? 'adds' : 'takes']));
  const leftOf = (slot) => LEFT + (width + GAP) * slot;
  const field = (width - 6) / ranks.length;
  const draw = (cell, place, slot) => {
    const [text, who] = cell ?? ['', []];
    const kind = !cell ? 'empty' : who.length === 1 ? `g${who[0] % PALETTE}` : 'sum';
    const [x, y, name] = [leftOf(slot), TOP + ROW * place, `${place},${slot}`];
    const strip = ranks.map((_, member) => {
      const box = `x="${x + 3 + member * field}" y="${y + HEIGHT - 8}" width="${field}" height="5"`;
      return `<rect class="who${who.includes(member) ? ' on' : ''}" ${box} fill="var(--g${member % PALETTE})"/>`;
    });
    return `<g class="slot ${kind} ${touched.get(name) ?? ''}" data-slot="${name}">
      <rect class="box" x="${x}" y="${y}" width="${width}" height="${HEIGHT}" rx="4"/>
      <text x="${x + width / 2}" y="${y + 18}">${text}</text><g class="strip">${strip.join('')}</g></g>`;
  };
  const rows = ranks.map((rank, place) => {
    const y = TOP + ROW * place;
    return `<g class="g${place % PALETTE}"><rect class="who" x="2" y="${y + 10}" width="12" height="12" rx="3"/></g>
      <text class="rank" x="${LEFT - 12}" y="${y + 21}">${rank}</text>
      ${slots[place].map((cell, slot) => draw(cell, place, slot)).join('')}`;
  });
  const titles = heads.map((text, at) => `<text class="head" x="${leftOf(at) + width / 2}" y="16">${text}</text>`);
  const arrows = moves.map((move) => arrow(leftOf, width, move));
  svg.innerHTML = [...titles, ...arrows, ...rows].join('');
  const [wide, tall] = [leftOf(heads.length), TOP + ROW * ranks.length];
  svg.setAttribute('viewBox', `0 0 ${wide} ${tall}`);
  svg.setAttribute('width', wide);
  svg.setAttribute('height', tall);
}

// From the slot that was sent to the slot that got it.
function arrow(leftOf, width, [sender, chunk, receiver, into, adds]) {
  const down = receiver > sender;
  const [x0, x1] = [chunk, into].map((slot) => leftOf(slot) + width / 2);
  const y0 = TOP + sender * ROW + (down ? HEIGHT : 0);
  const y1 = TOP + receiver * ROW + (down ? 0 : HEIGHT);
  const tip = y1 + (down ? -5 : 5);
  const far = Math.abs(receiver - sender) > 1 && chunk === into;
  // Along the right edge of the column, so that it does not cross the numbers between.
  const side = far ? width / 2 + 10 : 0;
  const path = far
    ? `M${x0 + 6} ${y0}C${x0 + side} ${y0 + (down ? 12 : -12)} ${x0 + side} ${tip + (down ? -12 : 12)} ${x1 + 6} ${tip}`
    : `M${x0} ${y0}L${x1} ${tip}`;
  const at = far ? x1 + 6 : x1;
  const back = tip - (down ? 4 : -4);
  const head = `M${at - 5} ${back}L${at} ${y1}L${at + 5} ${back}Z`;
  return `<g class="arrow${adds ? ' adds' : ''}"><path class="line" d="${path}"/><path class="head" d="${head}"/></g>`;
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
