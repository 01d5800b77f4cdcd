// What belongs to no single part: sets of choices with one stop for the keyboard, menus that close,
// tips, copying, files.

// --- Arrow keys move within a set of choices ------------------------------------------------------
const FORTH = ['ArrowRight', 'ArrowDown'];
const BACK = ['ArrowLeft', 'ArrowUp'];
const SETS = '.zoom-track, .menu[open], #nav [role=group], #subs [role=group], #numbers [role=group], .orders, .ways, .tabs, [role=toolbar]';
on('keydown', SETS, (set, event) => {
  const step = FORTH.includes(event.key) ? 1 : BACK.includes(event.key) ? -1 : 0;
  if (!step) return;
  const all = [...set.querySelectorAll('button, summary, a')];
  const choices = all.filter((one) => one.checkVisibility());
  const next = choices[(choices.indexOf(event.target) + step + choices.length) % choices.length];
  for (const one of choices) one.tabIndex = one === next ? 0 : -1;
  next.focus();
  event.preventDefault();
});

// The chosen view comes into sight where the row is longer than the page; asking for sizes makes the
// browser lay out at once, so only for a view that was not the chosen one.
let chosenView;
document.addEventListener('drawn', () => {
  const row = element.querySelector('#subs');
  const here = row.querySelector('[aria-current]');
  if (!here || here.textContent === chosenView) return;
  chosenView = here.textContent;
  const end = here.offsetLeft - row.offsetLeft + here.offsetWidth + 24;
  if (end > row.clientWidth + row.scrollLeft) row.scrollLeft = end - row.clientWidth;
});

// --- Menus close behind the one who leaves them ---------------------------------------------------
const menus = () => document.querySelectorAll('details.menu[open]');
document.addEventListener('click', (event) => {
  for (const menu of menus()) {
    const isChosen = menu.contains(event.target) && event.target.closest('.items :is(button, a):not([data-copy-link])');
    if (isChosen) menu.querySelector('summary').focus();
    if (isChosen || !menu.contains(event.target)) menu.open = false;
  }
});

// --- Tips: what an input or a word means, at the pointer, the focus or a touch --------------------
const tip = element.querySelector('#tip');
let owner = null;
const tipOf = (node) => node?.closest?.('[data-tip], .size, .field');

function showTip(one) {
  if (one === owner) return;
  owner?.removeAttribute('aria-describedby');
  owner = one;
  if (one?.dataset.tip) one.setAttribute('aria-describedby', 'tip');
  const text = one?.dataset.tip ?? one?.querySelector('.help')?.textContent;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  placeTip(one);
}

function placeTip(one) {
  const box = one.getBoundingClientRect();
  const isBeside = box.right + 300 < innerWidth && one.closest('#controls');
  tip.style.left = (isBeside ? box.right + 10 : Math.max(8, Math.min(box.left, innerWidth - 300))) + 'px';
  tip.style.top = (isBeside ? box.top : box.bottom + 6) + 'px';
}

document.addEventListener('pointerover', (event) => {
  if (event.pointerType !== 'touch') showTip(tipOf(event.target));
});
document.addEventListener('focusin', (event) => {
  for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  if (event.target.matches(':focus-visible')) showTip(tipOf(event.target));
});
document.addEventListener('focusout', () => showTip(null));
document.addEventListener('input', () => showTip(null)); // what is answered stands under the box
on('click', '[data-tip]', showTip);
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const menu of menus()) {
    menu.open = false;
    menu.querySelector('summary').focus();
  }
  showTip(null);
});
// Over what is scrolled away it goes; with the focus, which may have scrolled it into sight, it comes along.
addEventListener('scroll', () => {
  if (owner?.contains(document.activeElement)) placeTip(owner);
  else showTip(null);
}, { passive: true, capture: true });
// What it is about may be gone, or say so in another language.
document.addEventListener('drawn', () => {
  const one = owner;
  showTip(null);
  if (one?.isConnected) showTip(one);
});

// --- On narrow screens the inputs of the job open over the lower half -----------------------------
const page = element.querySelector('#page');
const foot = element.querySelector('#foot');
const isChanging = () => page.classList.contains('changing');

function openSheet(isOpen) {
  page.classList.toggle('changing', isOpen);
  tellSheet();
  const picture = element.querySelector('#picture :is(svg, .memory-bars, table)');
  if (!isOpen || !picture || !foot.checkVisibility()) return;
  // What the inputs change stays in sight above them.
  const { top, bottom } = picture.getBoundingClientRect();
  const room = element.querySelector('#controls').getBoundingClientRect().top;
  if (top < 0 || bottom > room) scrollBy({ top: Math.min(top - 8, Math.max(bottom - room + 8, 0)) });
}

const tellSheet = () =>
  foot.querySelector('button').setAttribute('aria-expanded', isChanging());

on('click', '#foot button', () => openSheet(!isChanging()));
document.addEventListener('lead', ({ detail }) => detail.closest('#controls') && openSheet(true));
document.addEventListener('drawn', tellSheet);
document.addEventListener('keydown', ({ key, target }) => {
  if (key !== 'Escape' || !isChanging() || !foot.checkVisibility()) return;
  openSheet(false);
  if (target.closest?.('#controls')) foot.querySelector('button').focus();
});

// --- Copying --------------------------------------------------------------------------------------
// Where the clipboard is closed to the page (plain http), by selection.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const exact = (event) => {
      event.clipboardData.setData('text/plain', text);
      event.preventDefault();
    };
    document.addEventListener('copy', exact);
    document.execCommand('copy');
    document.removeEventListener('copy', exact);
  }
}

on('click', '.copy, [data-copy-link]', async (button) => {
  if (button.dataset.label) return;
  const isLink = 'copyLink' in button.dataset;
  await copy(isLink ? location.href : button.parentElement.querySelector('pre').textContent);
  button.dataset.label = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => {
    button.textContent = button.dataset.label;
    delete button.dataset.label;
  }, 1500);
});

// How tall the page is in a frame of an article's width: measured in one that is not seen, as its
// content differs by layout and by width.
const FRAME = { width: 800, height: 780, patience: 3000 };
async function framed(src) {
  const frame = document.createElement('iframe');
  Object.assign(frame.style, { position: 'fixed', left: '-9999px', width: `${FRAME.width}px`, height: '400px' });
  frame.src = src;
  document.body.append(frame);
  const late = performance.now() + FRAME.patience;
  const drawn = () => frame.contentDocument?.querySelector('.app.embed:not(.waiting):has(.card .row)');
  while (!drawn() && performance.now() < late) await new Promise((go) => setTimeout(go, 50));
  const height = drawn()?.getBoundingClientRect().height ?? FRAME.height;
  frame.remove();
  return String(Math.ceil(height) + 24);
}

// What shows picture and card of the layout on screen in another page, as ?embed=1 (below).
on('click', '[data-copy-frame]', async () => {
  const url = new URL(location.href);
  url.searchParams.set('embed', '1');
  const title = element.querySelector('h1').textContent;
  const frame = document.createElement('iframe');
  const marks = { src: url.href, title, width: '100%', height: await framed(url.href), loading: 'lazy', style: 'border:0' };
  for (const [name, value] of Object.entries(marks)) frame.setAttribute(name, value);
  await copy(frame.outerHTML);
  hint(saidIn('frame_copied'));
  setTimeout(() => hint(''), 4000);
});

// --- Files: made in memory, so that nothing of one visitor's can be fetched by another ------------
on('click', '[data-save]', async (button) => {
  const theme = document.body.classList.contains('dark') ? 'dark' : 'light';
  const form = button.dataset.save;
  const wanted = { state, form, theme, address: location.href };
  let told;
  while ((told = await withWait(ask('save', wanted))).answer?.busy || isBusy(told.status)) {
    hint(busyText(told.answer));
    await new Promise((go) => setTimeout(go, AGAIN));
  }
  const { answer: file, status } = told;
  if (status === 404 && loadAgain()) return;
  if (!file) return hint(isRefused(status) ? refusalOf(told) : saidIn('waiting'));
  hint(file.note ?? '');
  if (file.refused) put('notice', file.refused.startsWith('<') ? file.refused : boxed(file.refused));
  else saveFile(file);
});

function saveFile({ name, type, data }) {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// --- In the frame of another page: the picture alone, and a way to the whole ----------------------
if (new URLSearchParams(location.search).get('embed') === '1') {
  element.querySelector('.app').classList.add('embed');
  const whole = element.querySelector('#whole a');
  document.addEventListener('state', () => {
    const job = element.querySelector('#job .sentence')?.dataset.name;
    whole.textContent = [job, saidIn('whole') + ' \u2197'].filter(Boolean).join(' · ');
    whole.href = location.pathname + '?' + linkOf(state);
  });
}

// --- The start ------------------------------------------------------------------------------------
// What was sent first is the page's first state in English; another is drawn before it is shown.
const isAnother = kept || state.link || state.lang !== words;
if (!isAnother) element.querySelector('.app').classList.remove('waiting');
tell();
say('drawn');
if (isAnother) {
  draw();
  setTimeout(tellWork, SLOW);
}
