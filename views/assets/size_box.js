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
let timer = 0;

function stopBelow(value) {
  let at = 0;
  props.stops.forEach((stop, i) => { if (stop <= value) at = i; });
  return at;
}

function show() {
  label.textContent = props.label;
  root.querySelector('.help').textContent = props.help;
  slider.setAttribute('aria-label', props.label);
  slider.max = props.stops.length - 1;
  const value = props.value;
  if (document.activeElement !== box || box.value.trim() !== String(value)) box.value = value;
  if (Number.isFinite(Number(value))) slider.value = stopBelow(Number(value));
  slider.setAttribute('aria-valuetext', String(value));
  const share = props.stops.length > 1 ? slider.value / (props.stops.length - 1) : 0;
  slider.style.setProperty('--share', share * 100 + '%');
}

function set(value) {
  clearTimeout(timer);
  if (String(value) === String(props.value)) return;
  props.value = value;
  show();
  trigger('input');
}

function typed() {
  const text = box.value.trim();
  set(/^[0-9]{1,12}$/.test(text) ? Number(text) : text);
}

slider.addEventListener('input', () => set(props.stops[slider.value]));
box.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(typed, TYPING_PAUSE);
});
box.addEventListener('change', typed);
box.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') typed();
});
watch(['value', 'label', 'stops', 'help'], show);
show();
