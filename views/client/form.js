// Inputs (views/base/form.py): what is typed or chosen is told to the page's state, and they show
// what it says. A text counts after a pause, on Enter, or on leaving the box; pasted text as typed.
const TYPING_PAUSE = 350; // ms
const typing = new Map(); // boxes in which somebody is typing: what arrives meanwhile waits
const before = new Map(); // what boxes held when a link was opened: until it is read, no news
let heard = null; // the state as it was last heard

const isText = (box) => box.matches('textarea, input[type=text]');
const off = (name) => (starts[name] === '0' ? '0' : '');
// A number of the job's sentence may be a multiple of its field; with or without commas.
const plain = (box) => {
  const text = box.matches('.number[inputmode]') ? box.value.replaceAll(',', '').trim() : box.value;
  const part = text / box.dataset.times;
  return text && Number.isFinite(part) ? String(part) : text;
};
const valueOf = (box) =>
  box.type === 'checkbox' ? (box.checked ? '1' : off(box.dataset.field)) : plain(box);

// What a number of the sentence shows: what its field comes to where that is empty.
function shownIn({ dataset }, value) {
  if (!dataset.unsaid) return value;
  if (!value) return Number(dataset.unsaid).toLocaleString('en');
  const number = Number(value) * Number(dataset.times ?? 1);
  return Number.isInteger(number) ? number.toLocaleString('en') : value;
}

function forget(box) {
  clearTimeout(typing.get(box));
  typing.delete(box);
}

function take(box) {
  forget(box);
  if (before.get(box) === valueOf(box)) return;
  if (box.dataset.field === 'preset') say('preset', { name: box.value });
  else say('set', { [box.dataset.field]: valueOf(box) });
}

function fill(box) {
  const name = box.dataset.field;
  if (typing.has(box) || !(name in heard)) return;
  // A box beside a list of choices is for what is none of them.
  const value = box.dataset.besides?.split(' ').includes(heard[name]) ? '' : shownIn(box, heard[name]);
  if (box.type === 'checkbox') {
    box.checked = value === '1' || value === 'true';
  } else if (box.tagName === 'SELECT') {
    const other = box.querySelector('option[data-other]');
    if (other) {
      other.value = other.textContent = '';
      other.hidden = [...box.options].some((option) => option.value === value && option !== other);
      if (!other.hidden) other.value = other.textContent = value;
    }
    const options = [...box.options];
    const chosen = options.find((option) => option.value === value) ??
      (value ? null : options.find((option) => option.defaultSelected)); // what counts where none is said
    if (chosen) chosen.selected = true;
  } else if (box.value !== value) {
    box.value = value;
    box.dispatchEvent(new Event('filled', { bubbles: true })); // not by typing
  }
}

const boxes = () => document.querySelectorAll('[data-field]');
const fillAll = () => heard && boxes().forEach(fill);

on('input', '[data-field]', (typed) => {
  if (!isText(typed)) return;
  clearTimeout(typing.get(typed));
  typing.set(typed, setTimeout(take, TYPING_PAUSE, typed));
});
on('change', '[data-field]', take);
on('focusout', '[data-field]', (left) => {
  if (typing.has(left)) take(left); // a text that is again what it was does not change
});
on('keydown', 'input[type=text][data-field]', (typed, event) => {
  if (event.key === 'Enter') take(typed);
});

document.addEventListener('click', (event) => {
  const hit = (mark) => event.target.closest?.(`[${mark}]`);
  const button = hit('data-set');
  const lead = hit('data-leads')?.dataset.leads;
  const link = hit('data-query');
  // What leads to something in another view does so once that is drawn.
  if (lead && (button || link)) document.addEventListener('drawn', () => leadTo(lead), { once: true });
  else if (lead) leadTo(lead);
  if (button) say('set', JSON.parse(button.dataset.set));
  const preset = hit('data-preset');
  if (preset) say('preset', { name: preset.dataset.preset });
  const closed = hit('data-close')?.closest('.refusal');
  if (closed) {
    const others = [...closed.parentElement.children].filter((one) => one !== closed);
    put('notice', others.map((one) => one.outerHTML).join(''));
    keepFocus(event.target);
  }
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  say('open', { query: link.dataset.query, with: JSON.parse(link.dataset.with ?? '{}') });
});

// To an input, wherever it is folded away.
function leadTo(id) {
  const box = document.getElementById(id);
  if (!box) return;
  for (let fold = box.closest('details'); fold; fold = fold.parentElement.closest('details')) {
    fold.open = true;
  }
  say('lead', box);
  box.focus();
  box.scrollIntoView({ block: 'nearest' });
}

document.addEventListener('state', ({ detail }) => {
  const isOpened = detail.link && detail.link !== heard?.link;
  for (const box of isOpened ? boxes() : []) {
    forget(box);
    before.set(box, valueOf(box));
  }
  if (!detail.link) before.clear();
  heard = detail;
  fillAll();
});
// The box that a refusal is about is marked, for eyes and for screen readers.
document.addEventListener('drawn', () => {
  fillAll();
  const refusals = [...document.querySelectorAll('.refusal[data-control]')];
  const controls = new Set(refusals.map((one) => one.dataset.control));
  for (const box of boxes()) box.ariaInvalid = controls.has(box.dataset.field) ? 'true' : null;
});
