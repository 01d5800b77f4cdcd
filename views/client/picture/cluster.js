// The cluster of a plan and the mesh of each of its roles: the GPU under the pointer or the focus is
// told of in all of them without the server; a click chooses it, and the server draws its step.
let plan = null; // its words, its cluster, its roles in their turns: their GPUs, groups and pictures
let pointed = null; // the GPU that is pointed at

// shown: the layout on screen, whose pictures are lit as in every view.
function readPlan(shown) {
  pointed = null;
  const holder = [...element.querySelectorAll('.plan')].find(isAlive);
  plan = holder && { ...JSON.parse(holder.dataset.plan), holder, svg: holder.querySelector('svg.cluster') };
  if (!plan) return;
  plan.known = JSON.parse(plan.svg.dataset.known);
  plan.roles = [...holder.querySelectorAll('.plan-role')]
    .map((section) => readRole(section, shown))
    .sort((a, b) => a.turn - b.turn);
  const { world } = plan.known;
  twinIn(holder.querySelector('.plan-said')).textContent = answerOf(world - 1);
  for (const role of plan.roles) {
    twinIn(role.section.querySelector('.plan-told')).innerHTML = toldOf(role, role.world - 1);
  }
}

function readRole(section, shown) {
  const isShown = !section.dataset.mesh;
  const layout = isShown ? shown : layoutOf(section);
  const role = JSON.parse(section.dataset.role);
  const svgs = isShown ? [] : [...section.querySelectorAll('svg.job')];
  const marked = role.marks.map((number) => layout.kinds[number]);
  const { world } = layout.mesh;
  const pictures = svgs.map((svg) => readView(svg, layout));
  return { ...role, section, isShown, world, axes: layout.grids[0], marked, views: pictures };
}

// The GPU of a rank, and back: a role has runs of GPUs, each as its first and its last.
function gpuOf({ runs }, rank) {
  for (const [first, last] of runs) {
    if (first + rank <= last) return first + rank;
    rank -= last - first + 1;
  }
  return null;
}

function rankOn({ runs }, gpu) {
  let before = 0;
  for (const [first, last] of runs) {
    if (gpu >= first && gpu <= last) return before + gpu - first;
    before += last - first + 1;
  }
  return null;
}

const shownRole = () => plan.roles.find(({ isShown }) => isShown);
const gpuNow = () => pointed ?? gpuOf(shownRole(), active());
const pointAt = (gpu) => hover(rankOn(shownRole(), gpu), gpu);

// --- What is told of a GPU: as views/roles/places.py has it ----------------------------------------

const gpusIn = (role, kind, rank) => members(kind, rank).map((one) => gpuOf(role, one)).sort((a, b) => a - b);

const MOST_RUNS = 4;
function runsOf(gpus) {
  const runs = [];
  for (const gpu of gpus) {
    if (runs.length && runs.at(-1)[1] === gpu - 1) runs.at(-1)[1] = gpu;
    else runs.push([gpu, gpu]);
  }
  const written = (some) => some.map(([first, last]) => (first === last ? first : `${first}–${last}`)).join(', ');
  if (runs.length <= MOST_RUNS) return written(runs);
  return `${written(runs.slice(0, MOST_RUNS / 2))}, … ${written(runs.slice(-MOST_RUNS / 2))}`;
}

function placeOf(role, rank) {
  const { words } = plan;
  const at = (name) => role.axes.find((axis) => axis.name === name) ?? { size: 1, stride: 1 };
  const parts = [];
  if (role.engine) parts.push(filled(words.engine, { number: Math.floor(rank / role.engine) }));
  else if (at('dp').size > 1) parts.push(filled(words.replica, { number: coordinate(at('dp'), rank) }));
  if (at('pp').size > 1) parts.push(filled(words.stage, { number: coordinate(at('pp'), rank) }));
  const tensor = role.marked.find(({ name }) => ['tp', 'attention_tp'].includes(name));
  if (tensor) parts.push(`tp ${runsOf(gpusIn(role, tensor, rank))}`);
  return parts.length ? `${role.name} ${parts.join(words.comma)}` : role.name;
}

function answerOf(gpu) {
  const { words, roles } = plan;
  const having = roles.filter((role) => rankOn(role, gpu) !== null);
  if (!having.length) return filled(words.answer_none, { gpu });
  const places = having.map((role) => placeOf(role, rankOn(role, gpu))).join(words.semicolon);
  return filled(words.answer, { gpu, places });
}

// Its rank in a role, and the GPUs of its groups there.
function toldOf(role, rank) {
  const groups = role.marked
    .map((kind) => [kind, gpusIn(role, kind, rank)])
    .filter(([, gpus]) => gpus.length > 1)
    .map(([{ name, tone }, gpus]) => `<span><span class="chip t-${tone}">${name}</span> ${runsOf(gpus)}</span>`);
  return [`<span>rank ${rank}</span>`, ...groups].join(' ');
}

function lightPlan() {
  if (!plan) return;
  const gpu = gpuNow();
  const { holder, words, roles } = plan;
  holder.querySelector('h2').textContent = filled(words.question, { gpu });
  const answer = holder.querySelector('.plan-answer');
  const text = answerOf(gpu);
  if (answer.textContent !== text) answer.textContent = text;
  for (const role of roles) {
    const rank = rankOn(role, gpu);
    role.section.classList.toggle('absent', rank === null);
    const told = role.section.querySelector('.plan-told > p');
    if (rank === null) told.textContent = filled(words.not_here, { role: role.name, gpu, gpus: role.spans });
    else told.innerHTML = toldOf(role, rank);
    if (rank !== null) for (const view of role.views) mark(view, rank);
  }
  lightCluster(gpu);
}

// --- The cluster: as render/draw/cluster.py ---------------------------------------------------------

function lightCluster(gpu) {
  const { svg, known, roles } = plan;
  const [x, y] = middleOf(known, gpu);
  const [fromX, fromY] = middleOf(known, known.chosen);
  svg.querySelector('.frame').setAttribute('transform', `translate(${x - fromX},${y - fromY})`);
  svg.querySelector('.of-gpu')?.toggleAttribute('hidden', gpu !== known.chosen); // its name beside it
  for (const role of roles) {
    const rank = rankOn(role, gpu);
    const toneOf = new Map();
    const groups = rank === null ? [] : role.marked.map((kind) => [kind.tone, gpusIn(role, kind, rank)]);
    for (const [tone, gpus] of groups.sort(([, a], [, b]) => b.length - a.length)) {
      for (const one of gpus) toneOf.set(one, tone);
    }
    if (rank !== null) toneOf.set(gpu, role.marked[0]?.tone ?? 'tp');
    (known.nodes ? markBands : markLines)(role, toneOf);
  }
}

// How many roles have a GPU, and how many of them before this one.
function sharesOf(role, gpu) {
  const having = plan.roles.filter((one) => rankOn(one, gpu) !== null);
  return [having.length, having.indexOf(role)];
}

const ROUND = 1.5; // pixels round the bands of a cell

function markBands(role, toneOf) {
  const { svg, known } = plan;
  const side = known.cell - 2 * ROUND;
  const round = Math.min(4, known.cell / 10);
  let bands = '';
  for (const [gpu, tone] of toneOf) {
    const [count, place] = sharesOf(role, gpu);
    const [x, y] = middleOf(known, gpu).map((middle) => middle - side / 2);
    const deep = side / count;
    const box = `x="${x}" y="${(y + place * deep).toFixed(2)}" width="${side}" height="${(deep - 1).toFixed(2)}"`;
    bands += `<rect class="t-${tone}" ${box} rx="${round}"/>`;
  }
  svg.querySelector(`.turn${role.turn} .marked`).innerHTML = bands;
}

function markLines(role, toneOf) {
  const { svg, known } = plan;
  const { columns, rows, split, cell } = known;
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [columns, rows * split];
  const context = canvas.getContext('2d');
  const style = getComputedStyle(element);
  for (const [gpu, tone] of toneOf) {
    context.fillStyle = style.getPropertyValue('--mark-' + tone);
    const [count, place] = sharesOf(role, gpu);
    const [x, y] = middleOf(known, gpu);
    const [column, row] = [Math.floor((x - known.left) / cell), Math.floor(y / cell)];
    for (let line = 0; line < split; line++) {
      const isHere =
        count > split
          ? Math.floor((place * split) / count) === line
          : Math.floor((line * count) / split) === place;
      if (isHere) context.fillRect(column, row * split + line, 1, 1);
    }
  }
  for (const image of svg.querySelectorAll(`.turn${role.turn} .marked image`)) {
    image.setAttribute('href', canvas.toDataURL());
  }
}

// Columns and rows of cells to a GPU's number, and back; null where there is none.
function gpuAt(known, x, y) {
  const { cell } = known;
  if (known.nodes) {
    const isIn = ([left, top], size) =>
      x >= left && y >= top && x < left + known.wide * cell && y < top + Math.ceil(size / known.wide) * cell;
    const node = known.nodes.findIndex((corner) => isIn(corner, known.each));
    if (node < 0) return null;
    const [left, top] = known.nodes[node];
    const local = Math.floor((x - left) / cell) + known.wide * Math.floor((y - top) / cell);
    return local < known.each ? node * known.each + local : null;
  }
  const column = Math.floor((x - known.left) / cell);
  const row = Math.floor(y / cell);
  const [[each, wide], [nodes, across]] = known.folds;
  const tall = Math.ceil(each / wide);
  if (column < 0 || row < 0 || column >= wide * across) return null;
  const node = Math.floor(row / tall) * across + Math.floor(column / wide);
  const local = (row % tall) * wide + (column % wide);
  return node < nodes && local < each ? node * each + local : null;
}

// The middle of a GPU's cell.
function middleOf(known, gpu) {
  const { cell } = known;
  const half = cell / 2;
  if (known.nodes) {
    const [left, top] = known.nodes[Math.floor(gpu / known.each)];
    const local = gpu % known.each;
    return [left + (local % known.wide) * cell + half, top + Math.floor(local / known.wide) * cell + half];
  }
  const [[each, wide], [, across]] = known.folds;
  const node = Math.floor(gpu / each);
  const local = gpu % each;
  const column = (node % across) * wide + (local % wide);
  const row = Math.floor(node / across) * Math.ceil(each / wide) + Math.floor(local / wide);
  return [known.left + column * cell + half, row * cell + half];
}

const chooseGpu = (gpu) => gpu !== null && say('set', { role_edit: `gpu ${gpu}` });

// A picture of the plan that is not of the role on screen.
const pictureOf = (svg) => plan?.roles.flatMap(({ views: own }) => own).find((one) => one.svg === svg);
const roleOf = (view) => plan.roles.find(({ views: own }) => own.includes(view));

// The GPU under the pointer in a picture of the plan, but for that of the role on screen.
function gpuUnder(event) {
  const svg = plan && event.target.closest?.('svg');
  if (svg && svg === plan.svg) {
    const box = svg.getBoundingClientRect();
    const { x, y, width } = svg.viewBox.baseVal;
    const scale = width / box.width;
    return gpuAt(plan.known, (event.clientX - box.left) * scale + x, (event.clientY - box.top) * scale + y);
  }
  const view = pictureOf(svg);
  const rank = view ? rankUnder(view, event) : null;
  return rank === null ? null : gpuOf(roleOf(view), rank);
}

function gpuBeside(svg, step) {
  if (svg === plan.svg) return gpuBesideInCluster(step);
  const view = pictureOf(svg);
  const rank = view ? rankOn(roleOf(view), gpuNow()) : null;
  const next = rank === null ? null : rankBeside(view, rank, step);
  return next === null ? null : gpuOf(roleOf(view), next);
}

function gpuBesideInCluster([right, down]) {
  const { known } = plan;
  const [x, y] = middleOf(known, gpuNow());
  // Between nodes there is room without GPUs.
  for (let far = 1; far <= 3; far += 0.5) {
    const next = gpuAt(known, x + right * known.cell * far, y + down * known.cell * far);
    if (next !== null && next !== gpuNow()) return next;
  }
  return null;
}

element.addEventListener('click', (event) => chooseGpu(gpuUnder(event)));
on('keydown', '.plan svg', (svg, event) => {
  if (!plan || (svg !== plan.svg && !pictureOf(svg))) return;
  const step = STEPS[event.key];
  if (event.key === 'Enter' || event.key === ' ') chooseGpu(gpuNow());
  else if (step) pointAt(gpuBeside(svg, step) ?? gpuNow());
  else return;
  event.preventDefault();
});

// The strip of a step: its slider shows who has the GPUs in a phase, and what lies in them then.
function showPhase(slider) {
  const at = Number(slider.value) - 1;
  const works = JSON.parse(slider.dataset.works);
  const told = JSON.parse(slider.dataset.told)[at + 1];
  slider.setAttribute('aria-valuetext', told);
  const holder = slider.closest('.plan');
  holder.querySelector('output').textContent = told;
  holder.querySelectorAll('.cluster .band').forEach((band) => {
    const turn = Number([...band.classList].find((name) => /^turn\d/.test(name)).slice(4));
    band.classList.toggle('off', at >= 0 && !works[at].includes(turn));
  });
  holder.querySelectorAll('.step .phase').forEach((bar, number) => bar.classList.toggle('off', at >= 0 && number !== at));
}
on('input', '.plan-step input[type=range]', showPhase);
// A change of the layout leaves the moment as it was.
watch('value', () => {
  const slider = element.querySelector('.plan-step input[type=range]');
  if (!slider) return;
  slideTo(slider, slider.value);
  showPhase(slider);
});
