// The chosen replica at the chosen stage and those beside it, magnified: beside each picture whose cells
// are too small for a number. Of small replicas, those that stand in a line.

const INSET = { across: 8, side: 36, tall: 26, gap: 3, lines: 8, row: 20 };

function magnify(view, rank) {
  const jobs = views.filter(({ svg }) => svg.matches('.job'));
  const place = element.querySelectorAll('.inset')[jobs.indexOf(view)];
  if (!place) return;
  const { axes } = view.kinds[0] ?? { axes: grids[0] };
  const inner = axes.filter((_, number) => !view.outside[number]).map(({ name }) => name);
  const pipeline = axes.find(({ name }) => name === 'pp');
  const counted = axes.filter(({ name }, number) => view.outside[number] && name !== 'pp');
  const [data] = counted; // the fastest of them
  const toneOf = new Map();
  for (const { tone, ranks } of marksOf(view, rank)) for (const one of ranks) toneOf.set(one, tone);
  const replicas = besides(data, rank, Math.floor(INSET.across / sweep(axes, inner, rank).length));
  const cells = replicas.flatMap((shift) => sweep(axes, inner, rank + shift).sort((a, b) => a - b));
  const lines = Math.ceil(cells.length / INSET.across);
  const stages = besides(pipeline, rank, lines * 3 <= INSET.lines ? 3 : 1, true);
  const letters = Math.min(10.5, INSET.side / 0.64 / String(view.world - 1).length); // within the cell
  let y = 0;
  let body = '';
  for (const shift of stages) {
    const stage = pipeline ? coordinate(pipeline, rank + shift) : 0;
    body += `<text class="of-stage" x="0" y="${y + 13}">${filled(card.stage, { stage })}</text>`;
    y += INSET.row;
    const from = windowOf(cells, rank);
    cells.slice(from, from + INSET.lines * INSET.across).forEach((cell, number) => {
      const one = cell + shift;
      const x = (number % INSET.across) * (INSET.side + INSET.gap);
      const top = y + Math.floor(number / INSET.across) * (INSET.tall + INSET.gap);
      const name = one === rank ? 'j me' : toneOf.has(one) ? `j m t-${toneOf.get(one)}` : 'j';
      body += `<g class="${name}" transform="translate(${x},${top})"><rect width="${INSET.side}" height="${INSET.tall}" rx="5"/>` +
        `<text x="${INSET.side / 2}" y="${INSET.tall / 2}" style="font-size:${letters}px">${one}</text></g>`;
    });
    y += Math.min(lines, INSET.lines) * (INSET.tall + INSET.gap) + 6;
  }
  const wide = INSET.across * (INSET.side + INSET.gap);
  const [first, last] = [0, -1].map((at) => replicaOf(counted, rank + replicas.at(at)));
  const name = data?.name === 'edp' ? 'magnified_expert' : 'magnified';
  const title = filled(card[first === last ? name : `${name}_some`], { replica: first, first, last });
  place.innerHTML = `<p>${title}</p><svg viewBox="0 0 ${wide} ${y}" aria-hidden="true">${body}</svg>`;
}

// The column of the picture, which several axes may count.
function replicaOf(counted, rank) {
  let step = 1;
  let replica = 0;
  for (const axis of counted) {
    replica += coordinate(axis, rank) * step;
    step *= axis.size;
  }
  return replica;
}

// How far the ranks lie from a rank that have its neighbours' places on an axis, its own among them: as
// many as are wanted. isAround: with it in their middle; else the run of them that it is in.
function besides(axis, rank, wanted, isAround = false) {
  if (!axis || wanted < 1) return [0];
  const own = coordinate(axis, rank);
  const count = Math.min(wanted, axis.size);
  const first = isAround ? own - Math.floor(count / 2) : own - (own % count);
  const from = Math.max(0, Math.min(first, axis.size - count));
  return Array.from({ length: count }, (_, at) => (from + at - own) * axis.stride);
}

// Of more than there is room for, the first of those that are shown: whole lines round the rank.
function windowOf(ranks, rank) {
  const most = INSET.lines * INSET.across;
  if (ranks.length <= most) return 0;
  const line = Math.floor(ranks.indexOf(rank) / INSET.across) - INSET.lines / 2;
  return Math.max(0, Math.min(line * INSET.across, ranks.length - most));
}
