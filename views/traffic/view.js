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

const named = (cell, { firsts, lasts, per, node, words }) => {
  const [first, last] = [firsts[cell], lasts[cell]];
  if (per === 1) return filled(words.rank, { rank: first, node: Math.floor(first / node) });
  return filled(last - first < per ? words.cells : words.among, { first, last });
};

const sizesOf = ({ dataset }) =>
  Object.fromEntries(['n', 'cell', 'left', 'top'].map((name) => [name, Number(dataset[name])]));

const tell = () => {
  if (!data()) return;
  const { matrix, cells } = read;
  const line = figure().querySelector('.traffic-told');
  const cursor = figure().querySelector('.traffic-cursor');
  cursor.setAttribute('visibility', at ? 'visible' : 'hidden');
  if (!at) {
    line.textContent = touchWord(matrix.words, 'hint');
    return;
  }
  const { n, cell, left, top } = sizesOf(figure().querySelector('svg'));
  const [row, column] = at;
  const bytes = matrix.mixes[cells[row * n + column]];
  const ends = { from: named(row, matrix), to: named(column, matrix) };
  line.textContent = filled(matrix.words.cell, { ...ends, bytes });
  const corner = (index) => (index + 0.5) * cell - Math.max(cell, 4) / 2;
  cursor.setAttribute('x', left + corner(column));
  cursor.setAttribute('y', top + corner(row));
};

const cellAt = (svg, event) => {
  const { n, cell, left, top } = sizesOf(svg);
  const point = new DOMPoint(event.clientX, event.clientY)
    .matrixTransform(svg.getScreenCTM().inverse());
  const column = Math.floor((point.x - left) / cell);
  const row = Math.floor((point.y - top) / cell);
  return row >= 0 && column >= 0 && row < n && column < n ? [row, column] : null;
};

for (const kind of ['pointermove', 'pointerdown']) {
  on(kind, 'svg.traffic-matrix', (svg, event) => {
    if (!data()) return;
    at = cellAt(svg, event);
    tell();
  });
}
// What a cell leads to: fields of the state, with the names of its sender and receiver; a touch only
// tells of it.
const lead = () => {
  if (!at || !data()) return;
  const { firsts, names, sets } = data().matrix;
  const [from, to] = at.map((cell) => (names?.length ? names : firsts)[cell]);
  say('set', Object.fromEntries(Object.entries(sets).map(([name, text]) => [name, filled(text, { from, to })])));
};
on('click', 'svg.traffic-matrix', (svg, event) => {
  if (event.pointerType !== 'touch' && cellAt(svg, event)) lead();
});
on('keydown', 'svg.traffic-matrix', (svg, event) => {
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  if (event.key === 'Enter') lead();
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
watch('value', tell);
