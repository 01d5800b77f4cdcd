// The Memory view: the numbers of the stage under the pointer or the focus, with no request. The
// server writes those of the fullest stage below the bars; each row brings its own along.
function tell(row) {
  const box = element.querySelector('.memory-formula');
  if (!box || row.classList.contains('chosen')) return;
  box.replaceChildren(row.querySelector('template.memory-told').content.cloneNode(true));
  for (const one of element.querySelectorAll('.memory-row.chosen')) one.classList.remove('chosen');
  row.classList.add('chosen');
}

on('keydown', '.memory-row', (row, event) => {
  if (event.key === 'Enter' && event.target === row) row.querySelector('button').click();
});

for (const kind of ['pointerover', 'focusin', 'click']) on(kind, '.memory-row', tell);

// One GPU over a step: a slider over its ops, which the picture moves too; what stands at the chosen
// op is written below. The ops came with the picture: text, start, end, and parts in GiB.
const gib = (size) => (size >= 0.05 ? size.toFixed(1) : size.toFixed(3)) + ' GiB';

function inWords(text, words, pair) {
  const one = (op) => {
    const [, stage, kind, micro] = op.match(/^(\d+)([FBIW])(\d+)$/) || [];
    return kind ? words[kind].replace('{stage}', stage).replace('{micro_batch}', micro) : words[op];
  };
  return text.split('&').map(one).join(pair);
}

function showMoment(box) {
  const { ops, words, parts, join } = box.dataset;
  const [pair, told, list] = JSON.parse(join);
  const [text, start, end, sizes] = JSON.parse(ops)[box.querySelector('input').value];
  const names = Object.values(JSON.parse(parts));
  const held = names.flatMap((name, at) => (sizes[at] ? [`${name} ${gib(sizes[at])}`] : []));
  const total = gib(sizes.reduce((sum, size) => sum + size, 0));
  box.querySelector('.over-step-told').textContent = told
    .replace('{op}', inWords(text, JSON.parse(words), pair))
    .replace('{total}', total)
    .replace('{parts}', held.join(list));
  const cursor = box.querySelector('.over-step-cursor').style;
  cursor.left = `${start / 10}%`;
  cursor.width = `${(end - start) / 10}%`;
}

on('input', '.over-step input', (input) => showMoment(input.closest('.over-step')));

for (const kind of ['pointermove', 'click'])
  on(kind, '.over-step-plot', (plot, event) => {
    const box = plot.closest('.over-step');
    const { left, width } = plot.getBoundingClientRect();
    const at = (1000 * (event.clientX - left)) / width;
    const ops = JSON.parse(box.dataset.ops);
    const found = ops.findLastIndex((op) => op[1] <= at);
    const input = box.querySelector('input');
    if (found < 0 || +input.value === found) return;
    input.value = found;
    showMoment(box);
  });
