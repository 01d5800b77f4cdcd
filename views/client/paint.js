// Puts a region's HTML in place of the last one. Nodes that can stay do, and with them the focus and
// what is folded open; pictures are replaced whole, for comparing them takes longer than drawing.
const sources = new WeakMap(); // what each picture was made from
const painted = new WeakMap(); // what each region was made from

function paintRegion(name, html) {
  const holder = document.getElementById(name);
  if (!holder || painted.get(holder) === html) return;
  painted.set(holder, html);
  mendWith(holder, html);
}

function mendWith(holder, html) {
  const fresh = document.createElement('template');
  fresh.innerHTML = html;
  mendChildren(holder, fresh.content);
}

function mendChildren(old, fresh) {
  let here = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const after = here?.nextSibling ?? null;
    if (here) mend(here, next);
    else old.append(remembered(next));
    here = after;
  }
  while (here) {
    const after = here.nextSibling;
    here.remove();
    here = after;
  }
}

function remembered(node) {
  if (node.nodeName === 'svg') sources.set(node, node.outerHTML);
  else node.querySelectorAll?.('svg').forEach(remembered);
  return node;
}

// What a template holds are no children of it.
const isOther = (old, fresh) =>
  old.nodeName !== fresh.nodeName || old.id !== fresh.id || old.nodeName === 'TEMPLATE';

function mend(old, fresh) {
  if (isOther(old, fresh)) {
    old.replaceWith(remembered(fresh));
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (old.nodeName === 'svg') {
    swap(old, fresh);
  } else {
    mendAttributes(old, fresh);
    mendChildren(old, fresh);
  }
}

// Folds and menus stay as the reader left them, and inputs as they are typed.
const READERS = ['open', 'aria-invalid'];

function mendAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (!READERS.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.attributes.length === fresh.attributes.length) return;
  for (const { name } of [...old.attributes]) {
    if (!READERS.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

function swap(old, fresh) {
  const source = fresh.outerHTML;
  if (sources.get(old) === source) return;
  sources.set(fresh, source);
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(fresh);
  if (!focused) return;
  const rank = focused.dataset.r;
  const same = rank === undefined ? fresh : fresh.querySelector(`[data-r="${rank}"]`);
  same?.setAttribute('tabindex', '0');
  same?.focus({ preventScroll: true });
}
