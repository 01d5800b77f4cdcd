// The one value of the page: every field as text, by the names of request/inputs.py. Whoever changes
// something says `set`; everybody hears `state`; the address says it, and the server draws it.
const { fields, said, lit } = known;
const starts = Object.fromEntries(fields.map(([name, , start]) => [name, start]));
const isRead = (code) => navigator.language.toLowerCase().startsWith(code);
const READER = Object.keys(said.busy).find(isRead) ?? 'en';
const tell = () => say('state', state);
const saidIn = (name) => said[name][state.lang] ?? said[name].en;

// --- Links: read by the server, written by its table of the fields --------------------------------

// Gradio's own parameters are left alone, the panel that it has open among them, and what asks the
// server for leave to embed the page.
const isForeign = ([name, value]) =>
  name.startsWith('__') || name === 'embed' || (name === 'view' && /^(api|settings)$/.test(value));
const parted = (query, foreign) =>
  new URLSearchParams([...new URLSearchParams(query)].filter((pair) => isForeign(pair) === foreign));
const LONGEST = 2000;
const encoded = (text) =>
  encodeURIComponent(wellFormed(text))
    .replace(/[!']/g, (char) => '%' + char.charCodeAt(0).toString(16).toUpperCase())
    .replace(/%(3A|2C|7C|3B|40|3D)/g, decodeURIComponent);

function linkOf(state) {
  if (state.link) return state.link;
  const isOther = (name, start) => state[name] !== start || (name === 'view' && state.roles);
  const isSaid = ([name, short, start]) => short && isOther(name, start) && state[name].length <= LONGEST;
  const written = fields.filter(isSaid);
  const parts = written.map(([name, short]) => `${short}=${encoded(state[name])}`);
  // The name of a published layout alone opens all that it names (request/link.py).
  const hasLayout = written.some(([, , , isPublished]) => isPublished);
  if (state.preset && !hasLayout) parts.unshift('nodes=' + starts.nodes);
  // English goes without saying where the reader's browser asks for it too.
  if (state.lang !== 'en' || READER !== 'en') parts.push('lang=' + state.lang);
  return parts.length ? 'v=2&' + parts.join('&') : '';
}

// What no link holds stays as it is.
// An instruction about the roles is followed once.
const keeps = (name) => name !== 'role_edit' && state?.[name];
const unlinked = () =>
  Object.fromEntries(fields.filter(([, short]) => !short).map(([name]) => [name, keeps(name) || '']));

// Until the server has read it, a link is a field of the state, and counts below what is changed.
function opened(query, lang) {
  const link = parted(query, false);
  const named = link.get('lang') ?? READER;
  const language = lang ?? named;
  if (!link.size) return { ...starts, ...unlinked(), lang: language };
  if (language !== named) link.set('lang', language);
  return { ...unlinked(), lang: language, link: link.toString() };
}

// --- The address ----------------------------------------------------------------------------------

// Changes in quick succession are one step for the way back; a step back or a link ends them.
const ONE_STEP = 1000; // ms
let changed = 0;

function write({ isStep = false, isNew = true } = {}) {
  const query = [linkOf(state), parted(location.search, true).toString()].filter(Boolean).join('&');
  const url = location.pathname + (query ? '?' + query : '') + location.hash;
  const now = Date.now();
  const isOne = !isNew || (!isStep && now - changed < ONE_STEP);
  if (isNew) changed = isStep ? 0 : now;
  const isHere = url === location.pathname + location.search + location.hash;
  if (isHere && (isStep || !state.link)) return; // a change of a link not yet read is a step as well
  history[isOne ? 'replaceState' : 'pushState'](null, '', url);
}

// --- Changes --------------------------------------------------------------------------------------

let state;
state = opened(location.search);
const kept = keptState();
if (kept) state = { ...starts, ...kept };

const AROUND = 90; // bytes of what Gradio puts around the values of an event
// What no link holds goes with every question, and a question has its limit. A character is one to
// seven bytes of it: only what may be too long is written to be counted.
const sizeWith = (next) => {
  const length = fields.reduce((sum, [name, short]) => sum + (short ? 0 : next[name].length), 0);
  if (length < LARGEST / 10) return 0;
  const values = Object.keys(controls).map((name) => next[name]);
  return sizeOf(JSON.stringify([...values, { ...saidBySettings(next, starts), ...aside() }])) + AROUND;
};

// Half of a character that takes two is none: no text of it could be sent.
const wellFormed = (text) => text.toWellFormed?.() ?? text;

function change(changes, isDrawn = true) {
  const texts = Object.entries(changes).map(([name, value]) => [name, wellFormed(String(value ?? ''))]);
  if (texts.every(([name, text]) => state[name] === text)) return;
  const next = { ...state, role_edit: '', ...Object.fromEntries(texts) };
  const size = sizeWith(next);
  if (size > LARGEST) return hint(refusalOf({ status: 413, size }));
  state = next;
  tell();
  // The question leaves first: writing the address keeps the browser for some milliseconds.
  if (isDrawn) draw();
  write();
}

document.addEventListener('set', ({ detail }) => change(detail));

// A published layout is opened as a link, which says all of the job; what the views are asked stays.
document.addEventListener('preset', ({ detail }) => {
  const { name } = detail;
  if (!name) return change({ preset: name });
  if (state.link) return document.addEventListener('drawn', () => say('preset', detail), { once: true });
  const others = fields.filter(([, , , isPublished]) => !isPublished).map(([field]) => [field, state[field]]);
  open('preset=' + name, { lang: state.lang, ...Object.fromEntries(others), preset: name });
  write();
});

// A pin lights up without the server where the picture has every rank's groups anyway.
document.addEventListener('pin', ({ detail }) => change(detail, !lit.includes(state.view)));

function open(query, { lang, ...more } = {}) {
  changed = 0;
  state = { ...opened(query, lang), ...more };
  tell();
  draw();
}
// A link on the page itself is in the language that is read here, and may bring along what none holds.
document.addEventListener('open', ({ detail }) => {
  open(detail.query, detail.with && { lang: state.lang, ...detail.with });
  write({ isStep: true });
});
addEventListener('popstate', () => open(location.search));

// --- Drawing --------------------------------------------------------------------------------------

// One question at a time; what was changed meanwhile is asked as soon as it is answered, once and in
// its newest state. A question without an answer is asked again, one that is refused is not: it is said
// why, and nothing that was done is lost.
const AGAIN = 1500; // ms
let asking = null; // the state that is asked about, until it is answered
let isDue = false; // whether it is another one by now
let words = element.querySelector('.app')?.lang || 'en';
let shown = starts.view; // whose sections and files are on the page
let drawn = ''; // the link of what its picture is of
const begun = byId.picture.html; // the picture of the start

// What the settings say of the page itself.
const aside = () => ({ words, shown, drawn });

function draw() {
  isDue = true;
  if (!asking) askAgain();
}

function askAgain() {
  isDue = false;
  asking = state;
  askFor(state, saidBySettings(state, starts), aside());
}

document.addEventListener('answered', ({ detail: answer }) => {
  const [question, told] = [asking, failed ?? {}];
  if (!question) return;
  if (!failed && answer.view) {
    isKnown();
    hint('');
    show(answer, question);
  } else if (told.status === 404 && loadAgain()) {
    return; // the page goes
  } else if (!failed || isRefused(told.status)) {
    if (answer.busy && !failed) return wait('busy', busyText(answer));
    tellRefused(failed ? refusalOf(told) : answer.refused, question);
  } else {
    return isBusy(told.status) ? wait('busy', busyText()) : wait('waiting', saidIn('waiting'));
  }
  asking = null;
  if (isDue) askAgain();
});

function wait(why, text) {
  tellWait(why, text);
  setTimeout(askAgain, AGAIN);
}

// Of a first answer that takes longer it is said that it is worked out, where its title will stand.
const SLOW = 300; // ms

function tellWork() {
  const { classList } = element.querySelector('.app');
  if (!classList.contains('waiting') || classList.contains('held')) return;
  classList.add('held');
  // Where its title will stand: below a line of the job, but on the first screen.
  const view = new URLSearchParams(state.link).get('show');
  if (view) element.querySelector('.app').dataset.view = view;
  const said = `<h2>${saidIn('working')}</h2><p>${saidIn('working_why')}</p>`;
  put('picture', `<div class="picture"><div class="intro working" role="status">${said}</div></div>`);
}

const boxed = (text) => `<div class="refusal" role="alert"><p>${text}</p></div>`;

// Why there is no answer yet: where a refusal stands; in place of the picture where none is seen yet.
function tellWait(why, text) {
  const { classList } = element.querySelector('.app');
  const isFirst = classList.contains('waiting');
  if (why === 'waiting' && !isFirst) return hint(text);
  classList.toggle('held', isFirst);
  put(isFirst ? 'picture' : 'status', boxed(text));
}

// A change that is refused stays in its box. Of a page that has shown nothing yet, the start is shown.
function tellRefused(text, question) {
  const { classList } = element.querySelector('.app');
  if (!classList.contains('waiting')) return hint(text);
  put('notice', boxed(text));
  if (!question.link) {
    put('picture', begun); // "working it out" may stand there
    classList.remove('waiting', 'held');
    return say('drawn');
  }
  state = { ...starts, ...unlinked(), lang: question.lang };
  tell();
  isDue = true;
}

function show({ language, view, drawn: now, state: read }, question) {
  drawn = now;
  shown = view;
  if (language !== words) {
    words = language;
    element.querySelector('.app').lang = language;
  }
  parts.forEach(paint);
  const before = focused ?? document.activeElement;
  focused = null;
  if (read && state.link === question.link) {
    const since = Object.entries(state).filter(([name, value]) => question[name] !== value);
    state = { ...read, ...unlinked(), ...Object.fromEntries(since) };
    write({ isNew: !question.link, isStep: !question.link });
    tell();
  }
  element.querySelector('.app').dataset.view = (read ?? question).view;
  element.querySelector('.app').classList.remove('waiting', 'held');
  say('drawn');
  requestAnimationFrame(() => keepFocus(before));
}

// Who had the focus on something that is gone goes on at the view that came instead. Whether it is
// gone is asked when the page is laid out anyhow.
function keepFocus(before) {
  const isLost = before !== document.body && !before.checkVisibility();
  if (isLost && [document.body, before].includes(document.activeElement)) {
    element.querySelector('#main').focus({ preventScroll: true });
  }
}

function hint(text) {
  const box = element.querySelector('#hint');
  if (box.textContent !== text) box.textContent = text;
}
