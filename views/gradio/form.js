// Inputs that are plain HTML (views/form.py): what is typed or chosen is told to the page's state,
// and they show what it says. A text counts after a pause, on Enter, or on leaving the box; pasted
// text counts as typed.
const TYPING_PAUSE = 350; // ms
const typing = new Map(); // boxes in which somebody is typing: what arrives meanwhile waits
let shown = null; // the state as it was last heard

const say = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
const valueOf = (box) => (box.type === 'checkbox' ? (box.checked ? '1' : '') : box.value);
const isText = (box) => box.matches('textarea, input[type=text]');

function take(box) {
  clearTimeout(typing.get(box));
  typing.delete(box);
  say('set', { [box.dataset.field]: valueOf(box) });
}

function show(box) {
  const name = box.dataset.field;
  if (typing.has(box) || !(name in shown)) return;
  const value = String(shown[name] ?? '');
  if (box.type === 'checkbox') {
    box.checked = value === '1' || value === 'true';
  } else if (box.tagName === 'SELECT') {
    if ([...box.options].some((option) => option.value === value)) box.value = value;
  } else if (box.value !== value) {
    box.value = value;
    box.dispatchEvent(new Event('filled', { bubbles: true })); // not by typing
  }
}

function showAll() {
  if (shown) document.querySelectorAll('[data-field]').forEach(show);
}

const box = (event) => event.target.closest?.('[data-field]');
document.addEventListener('input', (event) => {
  const typed = box(event);
  if (!typed || !isText(typed)) return;
  clearTimeout(typing.get(typed));
  typing.set(typed, setTimeout(take, TYPING_PAUSE, typed));
});
document.addEventListener('change', (event) => {
  const changed = box(event);
  if (changed) take(changed);
});
document.addEventListener('focusout', (event) => {
  const left = box(event);
  if (left && typing.has(left)) take(left); // a text that is again what it was does not change
});
document.addEventListener('keydown', (event) => {
  const typed = box(event);
  if (event.key === 'Enter' && typed?.matches('input[type=text]')) take(typed);
});

document.addEventListener('click', (event) => {
  const button = event.target.closest?.('[data-set]');
  if (button) say('set', JSON.parse(button.dataset.set));
  const link = event.target.closest?.('[data-query]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  say('open', { query: link.dataset.query });
});

document.addEventListener('state', ({ detail }) => {
  shown = detail;
  showAll();
});
document.addEventListener('drawn', showAll);

// The box that a refusal is about is marked, for eyes and for screen readers.
function markRefused() {
  const refusals = [...document.querySelectorAll('.refusal[data-control]')];
  const controls = new Set(refusals.map((one) => one.dataset.control));
  for (const box of document.querySelectorAll('[data-field]')) {
    if (controls.has(box.dataset.field)) box.setAttribute('aria-invalid', 'true');
    else box.removeAttribute('aria-invalid');
  }
}
for (const name of ['drawn', 'world']) document.addEventListener(name, markRefused);
