// Puts a view's HTML in place of the last one. Nodes that can stay do, and with them the focus and
// what is folded open; pictures are replaced whole. Gradio's own way compares every attribute of
// every node, which takes several times as long as the drawing.
const holder = element.querySelector('.painted');
const sources = new WeakMap(); // what each picture was made from
let painted = null;

function paint() {
  if (props.value === painted) return;
  painted = props.value;
  const fresh = document.createElement('template');
  fresh.innerHTML = painted ?? '';
  mendChildren(holder, fresh.content);
}

function mendChildren(old, fresh) {
  let here = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const after = here?.nextSibling ?? null;
    if (!here) add(old, next);
    else mend(here, next);
    here = after;
  }
  while (here) {
    const after = here.nextSibling;
    here.remove();
    here = after;
  }
}

function add(parent, node) {
  remember(node);
  parent.append(node);
}

function remember(node) {
  if (node.nodeName === 'svg') sources.set(node, node.outerHTML);
  else node.querySelectorAll?.('svg').forEach(remember);
}

// What a template holds are no children of it.
const isOther = (old, fresh) =>
  old.nodeName !== fresh.nodeName || old.id !== fresh.id || old.nodeName === 'TEMPLATE';

function mend(old, fresh) {
  if (isOther(old, fresh)) {
    remember(fresh);
    old.replaceWith(fresh);
  } else if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else if (old.nodeName === 'svg') {
    swap(old, fresh);
  } else {
    mendAttributes(old, fresh);
    mendChildren(old, fresh);
  }
}

function mendAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.attributes.length === fresh.attributes.length) return;
  for (const { name } of [...old.attributes]) {
    if (name !== 'open' && !fresh.hasAttribute(name)) old.removeAttribute(name);
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

paint();
