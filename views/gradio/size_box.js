// A size as a slider with a number box. The slider stops at sizes that can work; the box takes any
// text, so that a wrong one is refused in words beside the controls and stays where it was typed.
const TYPING_PAUSE = 350; // ms after which a typed number counts; Enter or leaving the box at once
const root = element.querySelector('.size');
const slider = root.querySelector('input[type=range]');
const box = root.querySelector('input[type=text]');
const label = root.querySelector('label');
const id = 'size-' + props.name;
box.id = id;
box.setAttribute('aria-describedby', id + '-help');
root.querySelector('.help').id = id + '-help';
label.htmlFor = id;
let value = props.value;
let timer = 0;

// Up to this world size a slider stops at every number, also those that do not divide the world.
const LINEAR = 64;

function upTo(limit) {
  return Array.from({ length: limit }, (_, i) => i + 1);
}

function divisors(number) {
  const small = upTo(Math.floor(Math.sqrt(number))).filter((d) => number % d === 0);
  return [...new Set([...small, ...small.map((d) => number / d).reverse()])];
}

// All up to 8, then four to each doubling.
function doublings(limit) {
  const stops = upTo(8);
  for (let step = 2; stops.at(-1) < limit; step *= 2) {
    for (let i = 0; i < 4; i++) stops.push(stops.at(-1) + step);
  }
  return stops.filter((stop) => stop <= limit);
}

let stops = [1];

function findStops() {
  const world = Number(document.querySelector('#status .status')?.dataset.world);
  if (props.up_to === 'ranks') stops = doublings(props.most);
  else if (world) stops = world <= LINEAR ? upTo(world) : divisors(world);
}

function stopBelow(value) {
  return Math.max(0, stops.findLastIndex((stop) => stop <= value));
}

// A text that is still being typed stays, whatever arrives meanwhile.
let typing = false;

function show() {
  label.textContent = props.label;
  root.querySelector('.help').textContent = props.help;
  slider.setAttribute('aria-label', props.label);
  slider.max = stops.length - 1;
  if (!typing) box.value = value;
  if (Number.isFinite(Number(value))) slider.value = stopBelow(Number(value));
  slider.setAttribute('aria-valuetext', String(value));
  const share = stops.length > 1 ? slider.value / (stops.length - 1) : 0;
  slider.style.setProperty('--share', share * 100 + '%');
}

function set(chosen) {
  clearTimeout(timer);
  typing = false;
  value = chosen;
  document.dispatchEvent(new CustomEvent('set', { detail: { [props.name]: chosen } }));
  show();
}

function typed() {
  const text = box.value.trim();
  set(/^[0-9]{1,12}$/.test(text) ? Number(text) : text);
}

slider.addEventListener('input', () => set(stops[slider.value]));
box.addEventListener('input', () => {
  typing = true;
  clearTimeout(timer);
  timer = setTimeout(typed, TYPING_PAUSE);
});
box.addEventListener('change', typed);
box.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') typed();
});
watch(['label', 'help'], show);
document.addEventListener('state', ({ detail }) => {
  if (String(detail[props.name]) === String(value)) return;
  value = detail[props.name];
  show();
});
document.addEventListener('world', () => {
  findStops();
  show();
});
findStops();
show();
document.dispatchEvent(new Event('ask'));
