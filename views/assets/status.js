// One click on a fix: which one it is goes to the server, which works the fix out again by itself.
element.addEventListener('click', (event) => {
  const button = event.target.closest('.fix');
  if (button) trigger('fix', { number: Number(button.dataset.fix) });
});

// The size sliders stop where this world's sizes do.
watch('value', () => document.dispatchEvent(new Event('world')));
document.dispatchEvent(new Event('world'));

// The address says what the page shows, so that a reload or a shared link shows it again. Changes
// in quick succession are one step for the back button. Gradio's own parameters are left alone.
const ONE_STEP = 1000; // ms
let changed = 0;

const foreign = () =>
  [...new URLSearchParams(location.search)].filter(([name]) => name.startsWith('__'));

function linked() {
  const query = new URLSearchParams(location.search);
  foreign().forEach(([name]) => query.delete(name));
  return query.toString();
}

const drawnLink = () => element.querySelector('.status')?.dataset.link;

function address(link = drawnLink()) {
  if (link === undefined) return;
  const kept = new URLSearchParams(foreign()).toString();
  const query = [link, kept].filter(Boolean).join('&');
  const url = location.pathname + (query ? '?' + query : '') + location.hash;
  if (url === location.pathname + location.search + location.hash) return;
  const now = Date.now();
  history[now - changed < ONE_STEP ? 'replaceState' : 'pushState'](null, '', url);
  changed = now;
}

// A pin that a click set is drawn without the server; in a link it stands where views/link.py has it.
const AFTER_RANK = /^(versus|ranks|kept|lang)=/;
function withRank(link, rank) {
  const parts = link.split('&').filter((part) => part && !part.startsWith('rank='));
  if (rank === '') return parts.length > 1 ? parts.join('&') : '';
  if (!parts.length) parts.push('v=1');
  const at = parts.findIndex((part) => AFTER_RANK.test(part));
  parts.splice(at < 0 ? parts.length : at, 0, 'rank=' + rank);
  return parts.join('&');
}

watch('value', () => address());
document.addEventListener('filled', (event) => {
  const rank = event.target.value.trim();
  const link = drawnLink();
  if (event.target.closest('#rank') && /^[0-9]*$/.test(rank) && link !== undefined) {
    address(withRank(link, rank));
  }
});
addEventListener('popstate', () => {
  changed = Date.now(); // what the answer writes belongs to this step
  trigger('link', { query: linked() });
});
if (linked()) {
  changed = Date.now();
  trigger('link', { query: linked() });
}
