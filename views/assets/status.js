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

function address() {
  const link = element.querySelector('.status')?.dataset.link;
  if (link === undefined) return;
  const kept = new URLSearchParams(foreign()).toString();
  const query = [link, kept].filter(Boolean).join('&');
  const url = location.pathname + (query ? '?' + query : '') + location.hash;
  if (url === location.pathname + location.search + location.hash) return;
  const now = Date.now();
  history[now - changed < ONE_STEP ? 'replaceState' : 'pushState'](null, '', url);
  changed = now;
}

watch('value', address);
addEventListener('popstate', () => {
  changed = Date.now(); // what the answer writes belongs to this step
  trigger('link', { query: linked() });
});
if (linked()) {
  changed = Date.now();
  trigger('link', { query: linked() });
}
