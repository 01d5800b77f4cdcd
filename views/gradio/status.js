const say = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

// Buttons, here or in a view, for what the server does: a fix of a refusal, a text to be used.
document.addEventListener('click', (event) => {
  const button = event.target.closest?.('[data-change], [data-event]');
  if (button?.dataset.change) say('apply', { changes: JSON.parse(button.dataset.change) });
  else if (button) say(button.dataset.event);
});

// The size sliders stop where this world's sizes do.
watch('value', () => document.dispatchEvent(new Event('world')));
document.dispatchEvent(new Event('world'));

// The address says what the page shows, so that a reload or a shared link shows it again. Changes
// in quick succession are one step for the back button. Gradio's own parameters are left alone, and
// what asks the server for leave to embed the page.
const ONE_STEP = 1000; // ms
let changed = 0;

const isForeign = ([name]) => name.startsWith('__') || name === 'embed';
const foreign = () => [...new URLSearchParams(location.search)].filter(isForeign);

function linked() {
  const query = new URLSearchParams(location.search);
  foreign().forEach(([name]) => query.delete(name));
  return query.toString();
}

// A link says nothing of English, for most readers' browsers ask for it; one that asks for Chinese
// would come back in Chinese.
const READER = navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
const withLanguage = (link) =>
  READER === 'en' || /(^|&)lang=/.test(link) ? link : (link || 'v=1') + '&lang=en';

const drawnLink = () => element.querySelector('.status')?.dataset.link;

// The address that was gone back to and is not drawn yet: what is drawn until then was asked for
// before, and would stand in its place. A person who does something else meanwhile means that.
let awaited = null;
const sorted = (query) => [...new URLSearchParams(query)].map(String).sort().join('&');
for (const act of ['pointerdown', 'keydown']) {
  document.addEventListener(act, () => { awaited = null; }, true);
}

function address(link = drawnLink()) {
  if (link === undefined) return;
  if (awaited !== null && sorted(withLanguage(link)) !== awaited) return;
  awaited = null;
  const kept = new URLSearchParams(foreign()).toString();
  const query = [withLanguage(link), kept].filter(Boolean).join('&');
  const url = location.pathname + (query ? '?' + query : '') + location.hash;
  if (url === location.pathname + location.search + location.hash) return;
  const now = Date.now();
  history[now - changed < ONE_STEP ? 'replaceState' : 'pushState'](null, '', url);
  changed = now;
}

// A pin that a click set is drawn without the server; in a link it stands where views/link.py has it.
const AFTER_RANK = /^lang=/;
function withRank(link, rank) {
  const parts = link.split('&').filter((part) => part && !part.startsWith('rank='));
  if (rank === '') return parts.length > 1 ? parts.join('&') : '';
  if (!parts.length) parts.push('v=1');
  const at = parts.findIndex((part) => AFTER_RANK.test(part));
  parts.splice(at < 0 ? parts.length : at, 0, 'rank=' + rank);
  return parts.join('&');
}

watch('value', () => address());
// A bad link is told and shows the page as it starts, so that the address must say that too.
const notice = document.querySelector('#notice');
new MutationObserver(() => {
  if (!notice.querySelector('.refusal')) return;
  awaited = null;
  address();
}).observe(notice, { childList: true, subtree: true });
document.addEventListener('pin', ({ detail }) => {
  const link = drawnLink();
  if (link !== undefined) address(withRank(link, detail.rank));
});

// A link that is opened; a link to the very state that is shown does nothing. One in the page is a
// step of its own for the back button. At the start and on the way back the address is there
// already: what the answer writes belongs to it.
const open = (query) => say('link', { query });
function openAddress() {
  changed = Date.now();
  awaited = sorted(linked());
  open(linked());
}
document.addEventListener('open', ({ detail }) => {
  awaited = null;
  changed = 0;
  open(detail.query);
});
addEventListener('popstate', openAddress);
if (linked()) {
  document.addEventListener('state', openAddress, { once: true }); // once somebody listens
  say('ask');
}
