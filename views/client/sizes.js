// A size is a box that takes any text, so that a wrong one is refused in words and stays as it was
// typed, and a slider that stops at sizes that work with the others; the server says which. A size
// has its place on a scale of powers of two, which is the same whatever the others are.
const sizes = () => [...document.querySelectorAll('.size')];
let stops = {}; // of those that are folded away

const DOUBLINGS = { nodes: 14, gpus_per_node: 7, tp: 6, pp: 7, cp: 7, ep: 9, dp: 7, dcp: 5, moe_dp: 4 };
const doublings = (size) => DOUBLINGS[size.dataset.size] ?? 10;
const stopsFor = (field) => {
  const own = controls[field]?.props.stops;
  return own === undefined ? (stops[field] ?? []) : own.split(' ').filter(Boolean).map(Number);
};
const stopsOf = (size) => stopsFor(size.dataset.size);

function readStops() {
  const derived = document.querySelector('#derived .derived');
  if (derived) {
    stops = JSON.parse(derived.dataset.stops);
    showInputs(derived.dataset.hides.split(' '), JSON.parse(derived.dataset.names));
  }
  sizes().forEach(place);
  nameChanged();
}

// A published layout with other sizes is that one no more: its name in the closed menu says so.
function nameChanged() {
  const menu = document.getElementById('field-preset');
  for (const option of menu.querySelectorAll('option[label]')) option.removeAttribute('label');
  const changed = document.querySelector('.source[data-changed]')?.dataset.changed;
  if (changed && menu.value) menu.selectedOptions[0].label = changed;
}

// A server has sizes that training has not, and the other way round, some under another name.
function showInputs(hides, names) {
  for (const input of document.querySelectorAll('#controls [data-field]')) {
    const place = input.closest('.size, .field');
    if (place) place.hidden = hides.includes(input.dataset.field);
  }
  for (const size of sizes()) {
    const label = size.querySelector('label');
    label.dataset.plain ??= label.textContent;
    const [before, now] = [label.textContent, names[size.dataset.size] ?? label.dataset.plain];
    label.textContent = now;
    const slider = size.querySelector('input[type=range]');
    slider.ariaLabel = slider.ariaLabel.replace(before, now);
  }
}

const below = (list, value) => Math.max(0, list.findLastIndex((stop) => stop <= value));

function place(size) {
  const slider = size.querySelector('input[type=range]');
  const box = size.querySelector('input[type=text]');
  const list = stopsOf(size);
  slider.disabled = list.length < 2;
  slider.max = Math.max(1, list.length - 1);
  const value = Number(box.value);
  slider.value = list.length ? below(list, value) : 0;
  slider.setAttribute('aria-valuetext', box.value);
  const last = doublings(size);
  const share = value >= 1 ? Math.min(1, Math.log2(value) / last) : 0;
  size.style.setProperty('--share', `${(100 * share).toFixed(2)}%`);
  size.style.setProperty('--part', share.toFixed(4));
  const ticks = size.querySelector('.ticks');
  if (!ticks.childElementCount) {
    ticks.replaceChildren(...Array.from({ length: last + 1 }, () => document.createElement('i')));
  }
  [...ticks.children].forEach((tick, at) => tick.classList.toggle('no', !list.includes(2 ** at)));
}

// To the stop that is nearest to a place on the track.
function pull(size, clientX) {
  const slider = size.querySelector('input[type=range]');
  const list = stopsOf(size);
  if (slider.disabled || !list.length) return;
  const box = size.querySelector('.track').getBoundingClientRect();
  const wanted = ((clientX - box.left - 8) / (box.width - 16)) * doublings(size);
  const far = list.map((stop) => Math.abs(Math.log2(stop) - wanted));
  const nearest = far.indexOf(Math.min(...far));
  if (Number(slider.value) === nearest) return;
  slider.value = nearest;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
}

on('pointerdown', '.size .track', (track, event) => {
  track.setPointerCapture(event.pointerId);
  track.querySelector('input').focus({ preventScroll: true });
  pull(track.closest('.size'), event.clientX);
  event.preventDefault();
});
on('pointermove', '.size .track', (track, event) => {
  if (track.hasPointerCapture(event.pointerId)) pull(track.closest('.size'), event.clientX);
});
on('input', '.size input[type=range]', (slider) => {
  const size = slider.closest('.size');
  const value = stopsOf(size)[slider.value];
  if (value !== undefined) say('set', { [size.dataset.size]: String(value) });
});
document.addEventListener('drawn', readStops);
document.addEventListener('state', () => sizes().forEach(place));
