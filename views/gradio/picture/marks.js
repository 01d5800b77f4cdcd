// Marks a rank's groups: in panels by their cells, in the picture of the job by its cells and what
// joins them, among many cells by pixels.

function lightPanel({ svg, cells }, rank) {
  svg.classList.toggle('lit', rank !== null);
  const group = rank === null ? null : cells[rank].dataset.g;
  cells.forEach((cell, i) => {
    cell.classList.toggle('on', cell.dataset.g === group && (group !== '' || i === rank));
    cell.classList.toggle('me', i === rank);
    cell.classList.toggle('pin', i === pinned);
  });
}

// The groups of a rank that a picture marks, the largest first.
const marksOf = (view, rank) =>
  view.kinds
    .map((number, i) => ({ i, tone: kinds[number].tone, ranks: members(kinds[number], rank) }))
    .filter(({ ranks }) => ranks.length)
    .sort((a, b) => b.ranks.length - a.ranks.length);

function markCells(view, rank) {
  const { boxed, levels, pad } = view;
  const marks = marksOf(view, rank);
  const toneOf = new Map();
  for (const { tone, ranks } of marks) for (const one of ranks) toneOf.set(one, tone);
  view.cells.forEach((cell, i) => {
    const mark = i === rank ? ' me' : toneOf.has(i) ? ' m t-' + toneOf.get(i) : '';
    const name = 'j' + mark + (i === pinned ? ' pin' : '');
    if (cell.className.baseVal !== name) cell.setAttribute('class', name);
  });
  const [x, y] = spot(view, rank);
  for (const frame of view.svg.querySelectorAll('.box, .replica')) {
    const at = (name) => frame[name].baseVal.value;
    const isOn = x >= at('x') && y >= at('y') && x < at('x') + at('width') && y < at('y') + at('height');
    frame.classList.toggle('on', isOn && (frame.matches('.replica') || boxed >= 0));
  }
  const joins = marks.filter(({ i, ranks }) => i !== boxed && ranks.length > 1);
  view.svg.querySelector('.joins').innerHTML = joins
    .map(({ i, tone, ranks }) => joinsOf(view, tone, ranks, pad + 5 + 6 * levels[i]))
    .join('');
}

// A bar below each row that has several members, dots down each column of single ones.
function joinsOf(view, tone, ranks, below) {
  const at = (x, y) => `${x.toFixed(2)} ${y.toFixed(2)}`;
  const rows = new Map();
  const spots = ranks.map((rank) => spot(view, rank)).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  for (const [x, y] of spots) {
    const key = y.toFixed(2);
    if (!rows.has(key)) rows.set(key, { y, xs: [] });
    rows.get(key).xs.push(x + view.wide / 2);
  }
  let bars = '';
  let dots = '';
  const columns = new Map(); // the lowest single member so far, of each column
  for (const { y, xs } of rows.values()) {
    if (xs.length === 1) {
      const [x] = xs;
      const above = columns.get(x.toFixed(2));
      if (above !== undefined) dots += `M${at(x, above + view.tall)}L${at(x, y)}`;
      columns.set(x.toFixed(2), y);
      continue;
    }
    const bar = y + view.tall + below * view.scale;
    bars += `M${at(xs[0], bar)}L${at(xs.at(-1), bar)}`;
    for (const x of xs) bars += `M${at(x, bar)}L${at(x, y + view.tall + 2 * view.scale)}`;
  }
  const path = (d, name) => (d ? `<path class="t-${tone}${name}" d="${d}"/>` : '');
  return path(bars, '') + path(dots, ' dots');
}

function markPixels(view, rank) {
  const isJob = view.svg.matches('.job');
  const canvas = document.createElement('canvas');
  canvas.width = view.columns;
  canvas.height = view.rows;
  const context = canvas.getContext('2d');
  const style = getComputedStyle(element);
  for (const { i, tone, ranks } of marksOf(view, rank)) {
    context.fillStyle = style.getPropertyValue((isJob ? '--mark-' : '--kind-') + tone);
    const side = 2 * view.swell[i] + 1;
    for (const one of ranks) {
      const [column, row] = square(view, one);
      context.fillRect(column - view.swell[i], row - view.swell[i], side, side);
    }
  }
  if (isJob) {
    context.fillStyle = style.getPropertyValue('--gi');
    context.fillRect(...square(view, rank), 1, 1);
  }
  view.svg.querySelector('.marks').setAttribute('href', canvas.toDataURL());
  const ring = view.svg.querySelector('.chosen');
  const [x, y] = spot(view, rank);
  ring.setAttribute('cx', x + view.wide / 2);
  ring.setAttribute('cy', y + view.tall / 2);
  view.svg.querySelector('.tags').innerHTML = tagsOf(view, rank);
}

// Left and right of the band at a place; of the picture where a band has no room for what is so wide.
function bandAt({ left, columns, wide: cell, jump }, x, wide) {
  const right = left + columns * cell;
  if (!jump) return [left, right];
  const band = [left + Math.floor((x - left) / jump) * jump, right - Math.floor((right - x) / jump) * jump];
  return band[1] - band[0] < wide ? [left, right] : band;
}

// The name of each group at its end: as render/scenes/marked.py.
const TAG = { tall: 14, letter: 6.2, around: 8, again: 6 };

function tagsOf(view, rank) {
  const middle = (one) => {
    const [x, y] = spot(view, one);
    return [x + view.wide / 2, y + view.tall / 2];
  };
  const [fromX, fromY] = middle(rank);
  const grow = Number(getComputedStyle(view.svg.querySelector('.tags')).getPropertyValue('--grow')) || 1;
  const tall = TAG.tall * grow;
  const taken = [[fromX, fromY, tall]];
  let tags = '';
  for (const { i, tone, ranks } of marksOf(view, rank)) {
    const others = ranks.filter((one) => one !== rank).map(middle);
    const aligned = others.filter(([x, y]) => Math.abs(x - fromX) < 0.5 || Math.abs(y - fromY) < 0.5);
    let end = null;
    let most = -1;
    for (const one of aligned.length ? aligned : others) {
      const far = Math.round(Math.abs(one[0] - fromX) + Math.abs(one[1] - fromY));
      if (far > most) [end, most] = [one, far];
    }
    if (!end) continue;
    const { name } = kinds[view.kinds[i]];
    const own = TAG.letter * name.length + TAG.around;
    const wide = own * grow;
    const reach = view.wide * (view.swell[i] + 0.5);
    let [x, y] = end;
    const [left, right] = bandAt(view, x, wide);
    const bottom = view.top + view.rows * view.tall;
    const isInRow = Math.abs(x - fromX) >= Math.abs(y - fromY);
    const beside = reach + wide / 2;
    x += (isInRow ? x < fromX : x + beside > right - wide / 2) ? -beside : beside;
    x = Math.min(Math.max(x, left + wide / 2), right - wide / 2);
    y = Math.min(Math.max(y, view.top + tall / 2), bottom - tall / 2);
    for (let turn = 0; turn < TAG.again; turn++) {
      if (taken.every(([at, on, w]) => Math.abs(x - at) >= (wide + w) / 2 || Math.abs(y - on) >= tall)) break;
      y += y + 1.5 * tall <= bottom ? tall : (-tall * TAG.again) / 2;
    }
    taken.push([x, y, wide]);
    const box = `x="${x - own / 2}" y="${y - TAG.tall / 2}" width="${own}" height="${TAG.tall}"`;
    tags += `<g class="t-${tone}"><rect ${box} rx="4"/><text x="${x}" y="${y + 3.6}">${name}</text></g>`;
  }
  return tags;
}
