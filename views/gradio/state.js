// The one value of the page: what every control and every view's input says, as views/link.py reads
// it. Whoever changes something says `set`; everybody hears `state`; then the page is drawn anew.
let state = JSON.parse(props.value);
let held = props.value; // what this script itself wrote

const tell = () => document.dispatchEvent(new CustomEvent('state', { detail: state }));

function change(changes) {
  const isNew = ([name, value]) => String(state[name] ?? '') !== String(value ?? '');
  if (!Object.entries(changes).some(isNew)) return false;
  state = { ...state, ...changes };
  props.value = held = JSON.stringify(state);
  tell();
  return true;
}

document.addEventListener('set', ({ detail }) => {
  if (change(detail)) trigger('input');
});

// A pin lights up without the server where the picture has every rank's groups anyway.
const LIT_HERE = ['groups', 'orders', 'compare', 'nodes', 'launch'];
document.addEventListener('pin', ({ detail }) => {
  if (change(detail) && !LIT_HERE.includes(state.view)) trigger('input');
});

// What the server is to do beyond drawing: open a link, change controls. It goes with the state, not
// with the event: of events in quick succession Gradio sends the last again with the first one's data.
function wish(name, wanted) {
  props.value = held = JSON.stringify({ ...state, wish: wanted });
  trigger(name);
}
document.addEventListener('link', ({ detail }) => wish('link', detail.query));
document.addEventListener('apply', ({ detail }) => wish('apply', detail.changes));
document.addEventListener('use', () => trigger('use'));

document.addEventListener('ask', tell);

// Set by the server, together with the widgets that are Gradio's own: a preset, a fix, a link.
watch('value', () => {
  if (props.value === held) return;
  held = props.value;
  state = JSON.parse(held);
  tell();
  setTimeout(() => trigger('input'));
});
tell();
