// The job's sentence (views/parts/sentence.py): its numbers are typed like every box, pulled sideways
// from stop to stop, or moved by the arrow keys; its lists have the choices of the column.
const PULL = 14; // pixels from one stop to the next

const stopsIn = ({ dataset }) => {
  const times = Number(dataset.times ?? 1);
  const own = dataset.stops ? JSON.parse(dataset.stops) : stopsFor(dataset.field);
  return own.map((stop) => stop * times);
};
const numberIn = (box) => Number(box.value.replaceAll(',', ''));

function stopBeside(box, steps) {
  const list = stopsIn(box);
  const at = list.findLastIndex((stop) => stop <= numberIn(box));
  const isOn = list[at] === numberIn(box);
  const next = list[Math.max(0, Math.min(list.length - 1, at + steps + (steps < 0 && !isOn ? 1 : 0)))];
  return next ?? numberIn(box);
}

function setNumber(box, value) {
  if (value === numberIn(box)) return;
  box.value = String(value);
  widen(box);
  take(box);
}

// As wide as what is in it; browsers that know how do it by themselves.
const widen = (box) => box.style.setProperty('--n', Math.max(1, box.value.length));

let pulled = null;
on('pointerdown', 'input.number', (box, event) => {
  if (document.activeElement === box || event.button) return;
  event.preventDefault();
  box.setPointerCapture(event.pointerId);
  pulled = { box, from: event.clientX, list: stopsIn(box), start: numberIn(box), isMoved: false };
});
on('pointermove', 'input.number', (box, { clientX }) => {
  if (pulled?.box !== box) return;
  const by = Math.trunc((clientX - pulled.from) / PULL);
  if (!by && !pulled.isMoved) return;
  pulled.isMoved = true;
  const { list, start } = pulled;
  const at = Math.max(0, list.findLastIndex((stop) => stop <= start));
  const next = list[Math.max(0, Math.min(list.length - 1, at + by))];
  if (next !== undefined) setNumber(box, next);
});
on('pointerup', 'input.number', (box) => {
  if (pulled?.box !== box) return;
  if (!pulled.isMoved) {
    box.focus();
    box.select();
  }
  pulled = null;
});
on('pointercancel', 'input.number', () => (pulled = null));
on('keydown', 'input.number', (box, event) => {
  const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
  if (event.key === 'Escape') {
    forget(box);
    fill(box);
    box.blur();
  }
  if (!by) return;
  event.preventDefault();
  setNumber(box, stopBeside(box, by));
});
on('input', 'input.number', widen);
on('filled', 'input.number', widen);

// The choices, once somebody is about to choose.
function offer(list) {
  const own = element.querySelector(`#${list.dataset.like}`);
  if (!own || list.options.length === own.options.length) return;
  const { value } = list;
  list.replaceChildren(...[...own.children].map((one) => one.cloneNode(true)));
  list.value = value;
}
on('pointerdown', 'select.number', offer);
on('focusin', 'select.number', offer);
document.addEventListener('drawn', () => {
  if (document.activeElement?.matches('select.number')) offer(document.activeElement);
});
