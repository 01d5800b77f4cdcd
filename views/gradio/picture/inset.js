// The chosen replica at the chosen stage and those beside it, magnified: beside a picture whose cells
// are too small for a number.

const INSET = { across: 8, side: 36, tall: 26, gap: 3, lines: 8, row: 20 };

function magnify(view, rank) {
  const place = element.querySelector('.inset');
  if (!place) return;
  const { axes } = kinds[view.kinds[0]] ?? { axes: grids[0] };
  const inner = axes.filter((_, number) => !view.outside[number]).map(({ name }) => name);
  const pipeline = axes.find(({ name }) => name === 'pp');
  const counted = axes.filter(({ name }, number) => view.outside[number] && name !== 'pp');
  const toneOf = new Map();
  for (const { tone, ranks } of marksOf(view, rank)) for (const one of ranks) toneOf.set(one, tone);
  const own = pipeline ? coordinate(pipeline, rank) : 0;
  const lines = Math.ceil(sweep(axes, inner, rank).length / INSET.across);
  const reach = lines * 3 <= INSET.lines && pipeline ? 1 : 0;
  let y = 0;
  let body = '';
  for (let stage = own - reach; stage <= own + reach; stage++) {
    if (stage < 0 || (pipeline && stage >= pipeline.size)) continue;
    const shift = (stage - own) * (pipeline?.stride ?? 0);
    body += `<text class="of-stage" x="0" y="${y + 13}">${filled(card.stage, { stage })}</text>`;
    y += INSET.row;
    const ranks = sweep(axes, inner, rank).map((one) => one + shift).sort((a, b) => a - b);
    const from = windowOf(ranks, rank + shift);
    ranks.slice(from, from + INSET.lines * INSET.across).forEach((one, number) => {
      const x = (number % INSET.across) * (INSET.side + INSET.gap);
      const top = y + Math.floor(number / INSET.across) * (INSET.tall + INSET.gap);
      const name = one === rank ? 'j me' : toneOf.has(one) ? `j m t-${toneOf.get(one)}` : 'j';
      body += `<g class="${name}" transform="translate(${x},${top})"><rect width="${INSET.side}" height="${INSET.tall}" rx="5"/>` +
        `<text x="${INSET.side / 2}" y="${INSET.tall / 2}">${one}</text></g>`;
    });
    y += Math.min(lines, INSET.lines) * (INSET.tall + INSET.gap) + 6;
  }
  const wide = INSET.across * (INSET.side + INSET.gap);
  const title = filled(card.magnified, { replica: replicaOf(counted, rank) });
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

// Of more than there is room for, the first of those that are shown: whole lines round the rank.
function windowOf(ranks, rank) {
  const most = INSET.lines * INSET.across;
  if (ranks.length <= most) return 0;
  const line = Math.floor(ranks.indexOf(rank) / INSET.across) - INSET.lines / 2;
  return Math.max(0, Math.min(line * INSET.across, ranks.length - most));
}
