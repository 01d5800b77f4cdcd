// A size is a box that takes any text, so that a wrong one is refused in words and stays as it was
// typed, and a slider that stops at sizes that work with the others; the server says which.
const sizes = () => [...document.querySelectorAll('.size')];
let stops = {};

function readStops() {
  const derived = document.querySelector('#derived .derived');
  if (derived) stops = JSON.parse(derived.dataset.stops);
  sizes().forEach(place);
}

const below = (list, value) => Math.max(0, list.findLastIndex((stop) => stop <= value));

function place(size) {
  const slider = size.querySelector('input[type=range]');
  const box = size.querySelector('input[type=text]');
  const list = stops[size.dataset.size] ?? [];
  slider.disabled = list.length < 2;
  slider.max = Math.max(1, list.length - 1);
  const value = Number(box.value);
  slider.value = list.length ? below(list, value) : 0;
  slider.setAttribute('aria-valuetext', box.value);
  const share = list.length > 1 ? (100 * slider.value) / (list.length - 1) : 0;
  size.style.setProperty('--share', share + '%');
  const ticks = size.querySelector('.ticks');
  const count = list.length <= 16 ? list.length : 0;
  if (ticks.childElementCount !== count) {
    ticks.replaceChildren(...Array.from({ length: count }, () => document.createElement('i')));
  }
}

on('input', '.size input[type=range]', (slider) => {
  const size = slider.closest('.size');
  const value = (stops[size.dataset.size] ?? [])[slider.value];
  if (value !== undefined) say('set', { [size.dataset.size]: String(value) });
});
document.addEventListener('drawn', readStops);
document.addEventListener('state', () => sizes().forEach(place));
