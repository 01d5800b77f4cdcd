// What is told of a rank: the sentence, as request/answers/sentence.py has it, and the card.

const FEW = 4;

function listed(words, last = card.and) {
  return words.length < 2 ? words.join('') : words.slice(0, -1).join(card.comma) + last + words.at(-1);
}

function gpusOf(ranks, nodes) {
  if (ranks.length === 1) return filled(card.one, { rank: ranks[0] });
  if (ranks.length <= FEW) return filled(card.few, { ranks: listed(ranks.map(String)) });
  const count = ranks.length.toLocaleString('en');
  return filled(nodes > 1 ? card.many_nodes : card.many, { count, nodes: nodes.toLocaleString('en') });
}

const ordered = (kind, rank) => members(kind, rank).sort((a, b) => a - b);
const nodesOf = (ranks) => new Set(ranks.map((one) => Math.floor(one / mesh.gpusPerNode))).size;

function clauseOf(role, ranks, rank, nodes) {
  if (role !== 'pp') {
    return filled(card['says_' + role], { gpus: gpusOf(ranks.filter((one) => one !== rank), nodes) });
  }
  const at = ranks.indexOf(rank);
  const place = at === 0 ? 'first' : at === ranks.length - 1 ? 'last' : 'middle';
  const [before, after] = [at - 1, at + 1].map((one) => filled(card.one, { rank: ranks[one] }));
  return filled(card['says_' + place], { before, after });
}

function leavingOf(names) {
  if (!names.length) return card.says_none;
  if (names.length === 1 && mesh.spoken.length > 1) return filled(card.says_only, { name: names[0] });
  if (names.length === mesh.spoken.length) return card.says_all;
  return filled(card.says_some, { names: listed(names, card.and_names) });
}

function sentenceOf(rank) {
  const leaving = [];
  const clauses = mesh.spoken.map(([role, number]) => {
    const ranks = ordered(kinds[number], rank);
    const nodes = nodesOf(ranks);
    if (nodes > 1) leaving.push(card['name_' + role]);
    return clauseOf(role, ranks, rank, nodes).trim();
  });
  if (!clauses.length) return filled(card.says, { clauses: card.says_alone });
  const last = clauses.length === 2 ? card.last_of_two : card.last;
  const all = clauses.length < 2 ? clauses[0] : clauses.slice(0, -1).join(card.then) + last + clauses.at(-1);
  return [filled(card.says, { clauses: all }), leavingOf(leaving)].join(card.gap);
}

function ask(rank) {
  const title = element.querySelector('.question');
  if (!title) return;
  const [asks, says] = lensSays(rank) ?? [filled(card.question, { rank }), sentenceOf(rank)];
  const said = { '.question': asks, '.answer': says };
  for (const [name, text] of Object.entries(said)) {
    const place = element.querySelector(name);
    if (place.textContent !== text) place.textContent = text;
  }
}

// --- The card -------------------------------------------------------------------------------------

const MOST = 8;

const quoted = (text) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
const part = (text, kind = '', name = 'span') => `<${name} class="${kind}">${text}</${name}> `;

// Where the card does not stand beside the picture, it stands in the hint's place.
const isWide = matchMedia('(min-width: 1100px)');
const isBeside = () => Boolean(element.querySelector(`.hero:is(.two${isWide.matches ? ', .beside' : ''}) .hint`));

function tell(rank) {
  const place = element.querySelector('.told');
  if (!place) return;
  const isGone = pinned !== null && !inside(pinned);
  const gone = isGone ? `<p>${part(filled(card.norank, { rank: pinned, last: mesh.world - 1 }), '', 'b')}</p>` : '';
  mendWith(place, gone + cardOf(rank));
  element.querySelector('.hero')?.classList.toggle('one', isGone || chosen() !== null);
  const hint = element.querySelector('.hero .hint');
  if (!hint) return;
  const isKept = rank === pinned && isBeside();
  hint.textContent = touchWord(card, isKept ? 'pinned' : 'hint');
  hint.classList.toggle('kept', isKept);
}

// The longest that sentence and card come to stands unseen in the same place, so that nothing below
// them moves; measuring it would make the browser lay out once more.
const FEW_TEXTS = 3; // of them the longest is not always the tallest

function reserve() {
  const hero = element.querySelector('.hero');
  const box = hero?.querySelector('.card');
  if (!box) return;
  const last = mesh.world - 1;
  const texts = textsOf(last).sort((a, b) => b.length - a.length).slice(0, FEW_TEXTS);
  twinIn(hero.querySelector('.asks')).innerHTML = texts.map((text) => `<p>${text}</p>`).join('');
  twinIn(box).innerHTML = cardOf(last, !isBeside()).replaceAll('button', 'span'); // nothing in it can be pressed
}

// What may be asked and answered: of the GPUs of a small job each, and what a lens says of all and of one.
function textsOf(last) {
  const ranks = last < 64 ? [...Array(last + 1).keys()] : [0, Math.floor(last / 2), last];
  const said = ranks.map((rank) => `${filled(card.question, { rank: last })} ${sentenceOf(rank)}`);
  const lens = lensed && known?.lenses[lensed];
  if (!lens?.asks) return said;
  const ofGpu = (lens.said ?? []).map((says) => filled(card.lens_gpu, { rank: last, says }));
  return [...said, ...[lens.says, ...ofGpu].map((says) => `${lens.asks} ${says}`)];
}

function twinIn(parent) {
  const there = parent.querySelector(':scope > .twin');
  if (there) return there;
  const twin = document.createElement('div');
  twin.className = 'twin';
  twin.setAttribute('aria-hidden', 'true');
  parent.append(twin);
  return twin;
}

// Where another order is shown, its groups.
function toldKinds() {
  const { tells } = element.querySelector('[data-tells]:not([hidden])')?.dataset ?? {};
  return tells ? JSON.parse(tells).map((number) => kinds[number]) : kinds.slice(0, mesh.told);
}

function placesOf(rank) {
  const node = Math.floor(rank / mesh.gpusPerNode);
  const [{ axes }] = toldKinds();
  const pipeline = axes.find((axis) => axis.name === 'pp');
  const stage = pipeline ? coordinate(pipeline, rank) : 0;
  const parts = [filled(card.place, { node, local: rank % mesh.gpusPerNode })];
  parts.push(filled(card.stage, { stage }));
  if (mesh.layers.length) parts.push(filled(card.layers, { layers: mesh.layers[stage] }));
  const dot = '<span class="dot">· </span>'; // stands with what comes after it, never at the end of a line
  return parts.map((part, at) => `<span>${at ? dot : ''}${part}</span>`).join(' ');
}

// The members of a group, the rank itself in bold; of a large one, how many they are; where numbers are
// long, those in a row as their first and last.
const LONG_NUMBERS = 256;
function peersOf(ranks, rank) {
  if (ranks.length > MOST) return part(filled(card.of, { count: ranks.length.toLocaleString('en') }), 'peers');
  const isRun = ranks.length > 2 && ranks.at(-1) - ranks[0] === ranks.length - 1;
  if (isRun && mesh.world > LONG_NUMBERS) return part(runsOf(ranks), 'peers');
  return ranks.map((one) => part(one, 'peers', one === rank ? 'b' : 'span').trim()).join(', ') + ' ';
}

// To the view that shows what a group does: a pipeline over time, another one number by number.
function chipOf(kind, rank) {
  const there = kind.name === 'pp' ? { view: 'pipeline' } : { view: 'collectives', collective_group: kind.name };
  const leads = quoted(JSON.stringify({ ...there, rank: String(rank) }));
  return `<button class="chip t-${kind.tone}" data-set="${leads}" data-tip="${quoted(card.lead)}">${kind.name}</button> `;
}

function cardOf(rank, isKept = rank === pinned && !isBeside()) {
  const kept = isKept ? part(touchWord(card, 'pinned'), '', 'i') : '';
  const head = part(filled(card.gpu, { rank }), '', 'b') + part(placesOf(rank), 'quiet dotted') + kept;
  const groups = toldKinds().map((kind) => {
    const ranks = ordered(kind, rank);
    if (!ranks.length) return chipOf(kind, rank) + part(part(card.in_none, 'quiet'), 'with');
    const nodes = nodesOf(ranks);
    const where = nodes > 1 ? filled(card.crosses, { nodes: nodes.toLocaleString('en') }) : card.stays;
    const index = filled(card.group, { kind: '', index: groupIndex(kind, rank) }).trim();
    const members = peersOf(ranks, rank) + part(where, nodes > 1 ? 'crosses' : 'quiet');
    return chipOf(kind, rank) + part(members, 'with') + part(index, 'index');
  });
  return `<p class="gpu">${head}</p>` + groups.map((group) => `<p class="row">${group}</p>`).join('');
}
