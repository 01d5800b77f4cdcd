// Marks a rank's groups: in panels by their cells, in the picture of the job by its cells and what
// joins them, among many cells by pixels.

// A group of a panel: its cells below the numbers; the rank itself, and the pinned one, on frames.
function lightPanel(view, rank) {
  const group = view.groups[rank];
  const ranks = [];
  view.groups.forEach((one, at) => {
    if (at === rank || at === pinned || (one === group && group >= 0)) ranks.push(at);
  });
  const names = (one) =>
    'c' + (one === rank || (view.groups[one] === group && group >= 0) ? ' on' : '') +
    (one === rank ? ' me' : '') + (one === pinned ? ' pin' : '');
  view.svg.querySelector('.marked').innerHTML = ranks.map((one) => cellOf(view, one, names(one), view.wide / 6)).join('');
}

function cellOf(view, rank, name, round) {
  const [x, y] = spot(view, rank);
  const place = `x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${view.wide}" height="${view.tall}"`;
  return `<rect class="${name}" data-r="${rank}" ${place} rx="${round.toFixed(1)}"/>`;
}

// The groups of a rank that a picture marks, the largest first.
const marksOf = (view, rank) =>
  view.kinds
    .map((kind, i) => ({ i, tone: kind.tone, ranks: members(kind, rank) }))
    .filter(({ ranks }) => ranks.length)
    .sort((a, b) => b.ranks.length - a.ranks.length);

function markCells(view, rank) {
  const { boxed, scale, svg } = view;
  const round = 6 * scale;
  const marks = marksOf(view, rank);
  const toneOf = new Map();
  for (const { tone, ranks } of marks) for (const one of ranks) toneOf.set(one, tone);
  toneOf.delete(rank);
  let cells = '';
  for (const [one, tone] of toneOf) cells += cellOf(view, one, 'j m t-' + tone, round);
  svg.querySelector('.marked').innerHTML = cells;
  const [x, y] = spot(view, rank);
  const size = parseFloat(svg.style.getPropertyValue('--size'));
  const number = `<text x="${view.wide / 2}" y="${view.tall / 2}" font-size="${size}px">${rank}</text>`;
  const kept = views.includes(view) && inside(pinned) ? pinned : null; // a rank of the layout on screen
  const frame = kept !== null && kept !== rank ? cellOf(view, kept, 'j pin', round) : '';
  svg.querySelector('.itself').innerHTML =
    `${frame}<g class="j me${rank === kept ? ' pin' : ''}" data-r="${rank}" transform="translate(${x.toFixed(2)},${y.toFixed(2)})">` +
    `<rect width="${view.wide}" height="${view.tall}" rx="${round.toFixed(1)}"/>${number}</g>`;
  place(svg.querySelector('.replica.on'), corner(view, rank, view.outside, true), view.frame.map((by) => by * scale), view);
  place(svg.querySelector('.box.on'), corner(view, rank, view.boxes), [0, 0], view);
  const joins = marks.filter(({ i, ranks }) => i !== boxed && ranks.length > 1 && ranks.length <= JOINED);
  svg.querySelector('.joins').innerHTML = joins
    .map(({ tone, ranks, i }) => joinsOf(view, tone, ranks, view.levels[i]))
    .join('');
}

const JOINED = 8; // ranks of a group that lines join: of more, cells are coloured
const MOST_ACROSS = 1024; // columns of pixels of a picture

function place(frame, [x, y], [left, top], { pad, scale }) {
  frame?.setAttribute('x', (x - left - pad * scale).toFixed(2));
  frame?.setAttribute('y', (y - top - pad * scale).toFixed(2));
}

// An outline round members that fill a rectangle above the last row of a stage or of several rows, a
// bar below each stage that has other members, dots down each column of single ones; between the
// cells, as `JobPicture.lines` in render/scenes/job.py.
function joinsOf(view, tone, ranks, level) {
  const { wide, tall, scale, pad } = view;
  const gap = (view.gap * scale) / 2;
  const line = (x0, y0, x1, y1) => `M${x0.toFixed(2)} ${y0.toFixed(2)}L${x1.toFixed(2)} ${y1.toFixed(2)}`;
  const rows = new Map();
  for (const rank of ranks) {
    const [x, y] = spot(view, rank);
    const [left, top] = corner(view, rank, view.outside);
    const foot = top + view.deep - 2 * pad * scale;
    if (!rows.has(foot.toFixed(1))) rows.set(foot.toFixed(1), []);
    rows.get(foot.toFixed(1)).push({ x, y, left, top, foot });
  }
  let bars = '';
  let dots = '';
  const columns = new Map();
  for (const row of [...rows.values()].sort(([a], [b]) => a.foot - b.foot)) {
    const [{ x, foot }] = row;
    if (row.length === 1) {
      const above = columns.get(x.toFixed(1));
      const below = row[0];
      columns.set(x.toFixed(1), below);
      if (!above) continue;
      const isNext = above.y + tall > above.foot - 0.5 && below.y < below.top + 0.5;
      dots += isNext
        ? line(x + wide / 2, above.y + tall, x + wide / 2, below.y)
        : line(x - gap, above.y + tall / 2, x - gap, below.y + tall / 2);
      continue;
    }
    const outline = outlineOf(view, row, gap);
    if (outline) {
      const [x0, y0, x1, y1] = outline;
      bars += line(x0, y0, x1, y0) + line(x1, y0, x1, y1) + line(x1, y1, x0, y1) + line(x0, y1, x0, y0);
      continue;
    }
    const bar = foot + (pad + 5 + 6 * level) * scale;
    const ends = row.map(({ x, y }) => {
      const isLast = y + tall > foot - 0.5;
      const end = x + (isLast ? wide / 2 : wide + gap);
      const start = y + (isLast ? tall + 2 * scale : tall / 2);
      bars += line(end, bar, end, start);
      return end;
    });
    bars += line(Math.min(...ends), bar, Math.max(...ends), bar);
  }
  const path = (d, name) => (d ? `<path class="t-${tone}${name}" d="${d}"/>` : '');
  return path(bars, '') + path(dots, ' dots');
}

// The rectangle that cells of one replica fill without others, but in the last row of its stage.
function outlineOf(view, cells, gap) {
  const [xs, ys] = [cells.map(({ x }) => x), cells.map(({ y }) => y)];
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const [{ left, foot }] = cells;
  if (y0 + view.tall > foot - 0.5 || cells.some((one) => Math.abs(one.left - left) > 0.5)) return null;
  let inside = 0;
  for (let rank = 0; rank < view.world; rank++) {
    const [x, y] = spot(view, rank);
    if (x > x0 - 0.5 && x < x1 + 0.5 && y > y0 - 0.5 && y < y1 + 0.5) inside += 1;
  }
  return inside === cells.length ? [x0 - gap, y0 - gap, x1 + view.wide + gap, y1 + view.tall + gap] : null;
}

function markPixels(view, rank) {
  const isJob = view.svg.matches('.job');
  const canvas = document.createElement('canvas');
  canvas.width = Math.min(view.columns, MOST_ACROSS);
  canvas.height = view.rows;
  const isFlat = view.wide < 1; // several GPUs in a column of pixels
  const fill = (one, swell) => {
    const [column, row] = square(view, one);
    if (isFlat) context.fillRect(Math.floor((column * canvas.width) / view.columns) - 1, row, 3, 1);
    else context.fillRect(column - swell, row - swell, 2 * swell + 1, 2 * swell + 1);
  };
  const context = canvas.getContext('2d');
  const style = getComputedStyle(element);
  for (const { i, tone, ranks } of marksOf(view, rank)) {
    context.fillStyle = style.getPropertyValue('--mark-' + tone);
    const swell = view.swell?.[i] ?? 0;
    for (const one of ranks) fill(one, swell);
  }
  if (isJob) {
    magnify(view, rank);
    context.fillStyle = style.getPropertyValue('--gi');
    fill(rank, 0);
  }
  view.svg.querySelector('.marks').setAttribute('href', canvas.toDataURL());
  const ring = view.svg.querySelector('.chosen');
  const [x, y] = spot(view, rank).map((at, i) => at + [view.wide, view.tall][i] / 2);
  if (isJob) {
    ring.setAttribute('x', (x - ring.width.baseVal.value / 2).toFixed(2));
    ring.setAttribute('y', (y - ring.height.baseVal.value / 2).toFixed(2));
  } else {
    ring.setAttribute('cx', x);
    ring.setAttribute('cy', y);
  }
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
const TAG = { tall: 14, letter: 6.4, around: 8, again: 6 };

function tagsOf(view, rank) {
  const middle = (one) => {
    const [x, y] = spot(view, one);
    return [x + view.wide / 2, y + view.tall / 2];
  };
  const [fromX, fromY] = middle(rank);
  const grow = Number(getComputedStyle(view.svg.querySelector('.tags')).getPropertyValue('--grow')) || 1;
  const tall = TAG.tall * grow;
  const ring = view.svg.querySelector('rect.chosen');
  const round = ring ? [ring.width.baseVal.value, ring.height.baseVal.value] : [tall, tall];
  const taken = [[fromX, fromY, ...round]];
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
    const { name } = view.kinds[i];
    const own = TAG.letter * name.length + TAG.around;
    const wide = own * grow;
    const reach = view.wide * ((view.swell?.[i] ?? 0) + 0.5);
    let [x, y] = end;
    const [left, right] = bandAt(view, x, wide);
    const bottom = view.top + view.rows * view.tall;
    const isInRow = Math.abs(x - fromX) >= Math.abs(y - fromY);
    const beside = reach + wide / 2;
    x += (isInRow ? x < fromX : x + beside > right - wide / 2) ? -beside : beside;
    x = Math.min(Math.max(x, left + wide / 2), right - wide / 2);
    y = Math.min(Math.max(y, view.top + tall / 2), bottom - tall / 2);
    for (let turn = 0; turn < TAG.again; turn++) {
      if (taken.every(([at, on, w, h]) => Math.abs(x - at) >= (wide + w) / 2 || Math.abs(y - on) >= (tall + h) / 2)) break;
      y += y + 1.5 * tall <= bottom ? tall : (-tall * TAG.again) / 2;
    }
    taken.push([x, y, wide, tall]);
    const box = `x="${x - own / 2}" y="${y - TAG.tall / 2}" width="${own}" height="${TAG.tall}"`;
    tags += `<g class="t-${tone}"><rect ${box} rx="4"/><text x="${x}" y="${y + 3.6}">${name}</text></g>`;
  }
  return tags;
}
