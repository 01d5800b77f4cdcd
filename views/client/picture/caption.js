// What the film says of a moment, in one sentence about the chosen GPU: from the ops of its stage and
// the bytes of its groups, as views/groups/film.py tells them; and the part that it speaks of.
const SPOKEN = 8; // GPUs that are outlined at most

// What a stage does at a time: an op that runs, or two whose kernels overlap; gradients of weights, for
// which no micro-batch comes or goes; a micro-batch that is on its way to it, or the next one that it
// waits for.
function doingOf(stage, time) {
  const own = reel.moves.filter(([, , , at]) => at === stage);
  const running = own.filter(([, , , , , begun, ended]) => begun <= time && time < ended);
  if (running.length) return ['runs', running[0], running[1]];
  if (letterAt(stage, time) === 'W') return ['weights', null];
  const next = own.filter(([, , , , , begun]) => begun > time).sort((a, b) => a[5] - b[5])[0];
  return next ? ['waits', next] : ['done', null];
}

const letterAt = (stage, time) => {
  const text = reel.busy[stage];
  return text[Math.min(text.length - 1, Math.floor((time / WHOLE) * text.length))];
};

// The number of a micro-batch among those of all replicas, which each have samples of their own.
const numbered = (micro, rank) => micro * replicasOf() + replicaAt(rank);
const dataAxes = () => grids[0].filter(({ name }) => name === 'dp' || name === 'ep_dp');
const replicasOf = () => dataAxes().reduce((all, { size }) => all * size, 1);
function replicaAt(rank) {
  let step = 1;
  return dataAxes().reduce((sum, axis) => {
    const part = coordinate(axis, rank) * step;
    step *= axis.size;
    return sum + part;
  }, 0);
}

const gpuWord = (ranks) =>
  ranks.length === 1
    ? filled(card.one, { rank: ranks[0] })
    : ranks.length <= 4
      ? filled(card.few, { ranks: listed(ranks.map(String)) })
      : filled(card.many, { count: ranks.length.toLocaleString('en') });
const isFar = (a, b) => Math.floor(a / mesh.gpusPerNode) !== Math.floor(b / mesh.gpusPerNode);
const linkWord = (a, b) => card[isFar(a, b) ? 'film_network' : 'film_nvlink'];
const peersIn = (name, rank) => {
  const kind = kinds.find((one) => one.name === name && (name === 'ep' || one.axes === grids[0]));
  return kind ? ordered(kind, rank).filter((one) => one !== rank) : [];
};

// What data parallelism sends at a time (views/groups/replicas.py): [what, words, GPUs] of each exchange
// that the chosen GPU has a part in.
function dataAt(when, rank) {
  const stage = stageOf(grids[0], rank);
  return (reel.data?.ops[when] ?? []).flatMap(([what, operation, number, told]) => {
    const kind = reel.data.kinds[number];
    const peers = ordered(kind, rank).filter((one) => one !== rank);
    const [count, bytes] = told[stage] ?? told[0];
    if (!peers.length || bytes.startsWith('0 ')) return [];
    const words = { gpus: gpuWord(peers), count, bytes, ops: card[`film_ops_${operation}`], link: linkOfGroup([rank, ...peers]) };
    return [[what, words, peers]];
  });
}
// " (34 all-gathers, 15.1 GB over NVLink)"
const sentWord = (words) => filled(card[words.count === '1' ? 'film_data_once' : 'film_data_sent'], words);
const dataSaid = (found, spoken) =>
  found.map(([what, words, peers]) => {
    spoken.push(...peers);
    return filled(card[`film_data_${what}`], words) + sentWord(words);
  });

// [sentence, the GPUs that it speaks of]
function captionAt(now, rank) {
  const { ends } = reel;
  if (now < ends.pipeline) return pipelineCaption((now / ends.pipeline) * WHOLE, rank);
  const spoken = [rank];
  if (now < ends.dp) {
    const [first, ...others] = dataAt('dp', rank);
    if (!first) return [filled(card.film_says_rest, { rank }), spoken];
    spoken.push(...first[2]);
    const said = filled(card.film_says_dp, { ...first[1], rank }) + sentWord(first[1]);
    return [[said, ...dataSaid(others, spoken)].join('') + card.film_end, [...new Set(spoken)]];
  }
  const said = filled(card[reel.data?.whole ? 'film_says_whole' : 'film_says_optimizer'], { rank });
  const gathered = dataAt('update', rank).map(([what, ...rest]) => [what.replace('parameters', 'update'), ...rest]);
  return [[said, ...dataSaid(gathered, spoken)].join('') + card.film_end, [...new Set(spoken)]];
}

// The exchanges of an op: of the first forward those of it alone too.
function whensOf(stage, [, kind, , , , begun]) {
  if (kind) return ['backward'];
  const isFirst = !reel.moves.some(([, other, , at, , before]) => at === stage && !other && before < begun);
  return isFirst ? ['forward', 'first'] : ['forward'];
}

const linkOfGroup = (ranks) => card[nodesOf(ranks) > 1 ? 'film_network' : 'film_nvlink'];

function pipelineCaption(time, rank) {
  const axis = grids[0].find(({ name }) => name === 'pp');
  const stage = stageOf(grids[0], rank);
  const there = (other) => rank + (other - stage) * (axis?.stride ?? 0);
  if (!reel.moves.length) {
    // so many ops that none is told from another
    const name = { F: 'some_forward', ' ': 'some_wait' }[letterAt(stage, time)] ?? 'some_backward';
    const sent = name === 'some_wait' ? [] : dataAt(name.slice(5), rank);
    const spoken = [rank];
    return [[filled(card[`film_says_${name}`], { rank }), ...dataSaid(sent, spoken)].join('') + card.film_end, spoken];
  }
  const [what, move, beside] = doingOf(stage, time);
  if (what === 'weights') return [filled(card.film_says_weights, { rank }), [rank]];
  if (!move) return [filled(card.film_says_done, { rank }), [rank]];
  const [micro, kind, before] = move;
  const words = { rank, micro: numbered(micro, rank) };
  const from = before < 0 || there(before) === rank ? null : there(before);
  if (what === 'waits') {
    if (from === null) return [filled(card.film_says_idle, words), [rank]];
    const facts = { ...words, from, bytes: reel.message, link: linkWord(from, rank) };
    return [filled(card.film_says_waits, facts), [from, rank]];
  }
  const name = !kind ? 'forward' : letterAt(stage, time) === 'I' ? 'input' : 'backward';
  const said = [filled(card[`film_says_${name}`], words)];
  if (beside) said.push(filled(card[beside[1] ? 'film_says_beside_backward' : 'film_says_beside_forward'], { micro: numbered(beside[0], rank) }));
  const spoken = [rank];
  for (const [own, ways] of Object.entries(reel.shared)) {
    const [peers, bytes] = [peersIn(own, rank), ways[kind]?.[stage]];
    if (!peers.length || !bytes) continue;
    said.push(filled(card[spoken.length > 1 ? 'film_says_more' : 'film_says_shared'], { gpus: gpuWord(peers), bytes, kind: own }));
    spoken.push(...peers);
  }
  for (const when of whensOf(stage, move)) said.push(...dataSaid(dataAt(when, rank), spoken));
  // Where this micro-batch goes when the op ends.
  const next = reel.moves.find(([m, k, b, at, made]) => m === micro && k === kind && b === stage && at !== stage && made === move[6]);
  if (next) said.push(filled(card.film_says_next, { to: there(next[3]), bytes: reel.message, link: linkWord(rank, there(next[3])) }));
  return [said.join('') + card.film_end, [...new Set(spoken)]];
}

// The parts of a step are not shown in proportion, or the last ones would not be seen.
function secondsAt(now) {
  const { ends, seconds } = reel;
  if (seconds.pipeline === null) return null;
  const parts = [['pipeline', 0, ends.pipeline], ['dp', ends.pipeline, ends.dp], ['optimizer', ends.dp, 1]];
  return parts.reduce((sum, [name, from, to]) => {
    const gone = to > from ? Math.min(1, Math.max(0, (now - from) / (to - from))) : 0;
    return sum + gone * seconds[name];
  }, 0);
}

function speak() {
  const place = filmBar()?.querySelector('.film-says');
  if (!place || !reel) return;
  const rank = active();
  const [text, ranks] = captionAt(moment, rank);
  const seconds = secondsAt(moment);
  const time = seconds === null ? '' : filled(card.film_time, { seconds: seconds.toFixed(2) });
  if (place.textContent !== time + text) place.textContent = time + text;
  filmBar().querySelector('input').setAttribute('aria-valuetext', time + text);
  for (const { view, spoken } of covers) {
    const shown = isNumbered(view) ? ranks.slice(0, SPOKEN) : [];
    spoken.innerHTML = shown.map((one) => cellOf(view, one, 'part', 6 * view.scale)).join('');
  }
}

// --- Keys and the first visit -------------------------------------------------------------------------

// Arrow keys go to the next moment at which the chosen GPU does something else.
const momentsOf = (rank) => {
  const stage = stageOf(grids[0], rank);
  const own = reel.moves.filter(([, , , at]) => at === stage).flatMap(([, , , , , begun, ended]) => [begun, ended]);
  const inside = own.map((time) => (time / WHOLE) * reel.ends.pipeline);
  return [...new Set([0, ...inside, reel.ends.pipeline, reel.ends.dp])].filter((one) => one < 1).sort((a, b) => a - b);
};
on('keydown', '.film input', async (slider, event) => {
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (!way) return;
  event.preventDefault();
  player.stop();
  if (!reel) await load();
  if (!reel) return;
  begin();
  const moments = momentsOf(active());
  const near = 1e-4; // beyond the moment itself
  const next = way > 0 ? moments.find((one) => one > moment + near) : moments.findLast((one) => one < moment - near);
  goTo(Math.min((next ?? (way > 0 ? moment : 0)) + 2e-5, 0.9999));
  keepMoment(moment);
});

// It plays once by itself for who sees the page for the first time.
const SEEN = 'film-seen';
function playOnce() {
  if (matchMedia('(prefers-reduced-motion: reduce)').matches || !filmBar() || location.search) return;
  try {
    if (localStorage.getItem(SEEN)) return;
    localStorage.setItem(SEEN, '1');
  } catch {
    return; // where nothing may be kept, nobody is known to be here for the first time
  }
  filmBar().querySelector('[data-play=play]').click();
  unasked = true;
}
on('click', '.film [data-play]', () => { unasked = false; });
document.addEventListener('drawn', () => setTimeout(playOnce, 1500), { once: true });

// --- The moment in the address ------------------------------------------------------------------------

const keepMoment = (part) => say('pin', { moment: part === null ? '' : String(Math.min(9999, Math.ceil(10000 * part))) });
on('change', '.film input', () => reel && keepMoment(moment));
on('click', '.film [data-play]', () => setTimeout(() => reel && keepMoment(moment)));

// A link opens at its moment; another layout has other moments.
let isOpened = false;
document.addEventListener('open', () => (isOpened = false));
watch('value', async () => {
  if (state.link || !filmBar()) return; // a link that is not read yet
  if (isOpened) return state.moment && !reel ? keepMoment(null) : undefined;
  isOpened = true;
  const part = Number(state.moment || NaN) / 10000;
  if (!(part >= 0 && part < 1)) return;
  await load();
  if (!reel) return;
  begin();
  goTo(part);
});
