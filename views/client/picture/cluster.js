// The cluster of a plan: a click or an arrow key chooses a GPU, and the server draws its roles.
const knownOf = (svg) => JSON.parse(svg.dataset.known);

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

on('click', 'svg.cluster', (svg, event) => {
  const box = svg.getBoundingClientRect();
  const { x, y, width } = svg.viewBox.baseVal;
  const scale = width / box.width;
  chooseGpu(gpuAt(knownOf(svg), (event.clientX - box.left) * scale + x, (event.clientY - box.top) * scale + y));
});

on('keydown', 'svg.cluster', (svg, event) => {
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const known = knownOf(svg);
  const [x, y] = middleOf(known, known.chosen);
  // Between nodes there is room without GPUs.
  for (let far = 1; far <= 3; far += 0.5) {
    const next = gpuAt(known, x + step[0] * known.cell * far, y + step[1] * known.cell * far);
    if (next !== null && next !== known.chosen) return chooseGpu(next);
  }
});

// The strip of a step: its slider shows who has the GPUs in a phase, and what lies in them then.
function showPhase(slider) {
  const at = Number(slider.value) - 1;
  const works = JSON.parse(slider.dataset.works);
  const told = JSON.parse(slider.dataset.told)[at + 1];
  slider.setAttribute('aria-valuetext', told);
  const plan = slider.closest('.plan');
  plan.querySelector('output').textContent = told;
  plan.querySelectorAll('.cluster .band').forEach((band) => {
    const turn = Number([...band.classList].find((name) => /^turn\d/.test(name)).slice(4));
    band.classList.toggle('off', at >= 0 && !works[at].includes(turn));
  });
  plan.querySelectorAll('.step .phase').forEach((bar, number) => bar.classList.toggle('off', at >= 0 && number !== at));
}
on('input', '.plan-step input[type=range]', showPhase);
// A change of the layout leaves the moment as it was.
watch('value', () => {
  const slider = element.querySelector('.plan-step input[type=range]');
  if (!slider) return;
  slideTo(slider, slider.value);
  showPhase(slider);
});
