// The matrix of the Traffic view: names the cell under the pointer or the cursor; no request.
const figure = () => element.querySelector('.traffic-figure');
let read = null; // of which text, its data and the mix of every cell
let at = null; // row and column that are told

// Read before `at` is set: of another picture nothing is told yet.
const data = () => {
  const text = figure()?.dataset.traffic;
  if (!text) return null;
  if (read?.text !== text) {
    const matrix = JSON.parse(text);
    const cells = [];
    for (const run of matrix.cells.split(',')) {
      const [times, mix] = run.includes('*') ? run.split('*') : ['1', run];
      for (let i = 0; i < Number(times); i++) cells.push(Number(mix));
    }
    read = { text, matrix, cells };
    at = null;
  }
  return read;
};

const UNITS = [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];
const bytes = (number) => {
  const [size, unit] = UNITS.find(([least]) => number >= least) ?? [1, 'B'];
  const scaled = number / size;
  return `${scaled.toFixed(scaled >= 99.95 || size === 1 ? 0 : scaled >= 9.995 ? 1 : 2)} ${unit}`;
};

const named = (cell, { per, node, world, words }) =>
  per === 1
    ? filled(words.rank, { rank: cell, node: Math.floor(cell / node) })
    : filled(words.cells, { first: cell * per, last: Math.min(world, (cell + 1) * per) - 1 });

const tell = () => {
  const known = data();
  const line = figure()?.querySelector('.traffic-told');
  const svg = figure()?.querySelector('svg');
  const cursor = svg?.querySelector('.traffic-cursor');
  if (!known || !line || !cursor) return;
  cursor.setAttribute('visibility', at ? 'visible' : 'hidden');
  if (!at) {
    line.textContent = known.matrix.words.hint;
    return;
  }
  const n = Number(svg.dataset.n);
  const [row, column] = at;
  const mix = known.matrix.mixes[known.cells[row * n + column]];
  const sum = mix.reduce((total, [, sent]) => total + sent, 0);
  const parts = mix.map(([kind, sent]) => `${known.matrix.kinds[kind]} ${bytes(sent)}`);
  const text = filled(known.matrix.words.cell, {
    from: named(row, known.matrix),
    to: named(column, known.matrix),
    bytes: sum ? bytes(sum) : known.matrix.words.none,
  });
  line.textContent = parts.length ? `${text} (${parts.join(', ')})` : text;
  const cell = Number(svg.dataset.cell);
  const size = Math.max(cell, 4);
  const place = (index, start) => start + (index + 0.5) * cell - size / 2;
  cursor.setAttribute('x', place(column, Number(svg.dataset.left)));
  cursor.setAttribute('y', place(row, Number(svg.dataset.top)));
};

const cellAt = (event) => {
  const svg = event.target.closest?.('svg.traffic-matrix');
  if (!svg) return null;
  const point = new DOMPoint(event.clientX, event.clientY)
    .matrixTransform(svg.getScreenCTM().inverse());
  const cell = Number(svg.dataset.cell);
  const column = Math.floor((point.x - Number(svg.dataset.left)) / cell);
  const row = Math.floor((point.y - Number(svg.dataset.top)) / cell);
  const n = Number(svg.dataset.n);
  return row >= 0 && column >= 0 && row < n && column < n ? [row, column] : null;
};

for (const kind of ['pointermove', 'pointerdown']) {
  on(kind, 'svg.traffic-matrix', (_, event) => {
    if (!data()) return;
    at = cellAt(event);
    tell();
  });
}
on('keydown', 'svg.traffic-matrix', (svg, event) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (!(event.key in step || event.key === 'Escape') || !data()) return;
  event.preventDefault();
  if (event.key === 'Escape') at = null;
  else {
    const last = Number(svg.dataset.n) - 1;
    const [row, column] = at ?? [0, 0];
    const [down, right] = at ? step[event.key] : [0, 0];
    at = [row + down, column + right].map((one) => Math.min(last, Math.max(0, one)));
  }
  tell();
});
// The sender of a cell, in the picture of the job; a touch only tells of it.
const lead = () => {
  if (at && data()) say('set', { view: 'groups', rank: String(at[0] * data().matrix.per) });
};
on('click', 'svg.traffic-matrix', (_, event) => {
  if (event.pointerType !== 'touch' && cellAt(event)) lead();
});
on('keydown', 'svg.traffic-matrix', (_, event) => {
  if (event.key === 'Enter') lead();
});
watch('value', () => {
  if (figure()) tell();
});
