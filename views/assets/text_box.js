// A text as it was typed: it counts after a pause, on Enter or on leaving the box, and is refused in
// words elsewhere. Pasted text counts as typed.
const TYPING_PAUSE = 350; // ms
const root = element.querySelector('.text-box');
const box = root.querySelector('input, textarea');
const id = 'text-' + props.name;
box.id = id;
box.setAttribute('aria-describedby', id + '-help');
root.querySelector('.help').id = id + '-help';
root.querySelector('label').htmlFor = id;
let timer = 0;

// A text that is still being typed stays, whatever arrives meanwhile.
let typing = false;

function show() {
  root.querySelector('label').textContent = props.label;
  root.querySelector('.help').textContent = props.help;
  const text = String(props.value ?? '');
  if (typing || box.value === text) return;
  box.value = text;
  box.dispatchEvent(new Event('filled', { bubbles: true })); // not by typing
}

function typed() {
  clearTimeout(timer);
  typing = false;
  if (box.value === String(props.value ?? '')) return;
  props.value = box.value;
  trigger('input');
}

box.addEventListener('input', () => {
  typing = true;
  clearTimeout(timer);
  timer = setTimeout(typed, TYPING_PAUSE);
});
box.addEventListener('change', typed);
box.addEventListener('blur', typed); // a text that is again what it was does not change
box.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && box.tagName === 'INPUT') typed();
});
watch(['value', 'label', 'help'], show);
show();
