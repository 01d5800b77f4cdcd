// The components of the page (components.py): what each shows is painted whenever Gradio gives it
// something, and what each says is what the page's state says.
const { known } = props;
const element = document.querySelector('#playground');
const parts = [...element.querySelectorAll('.part')].map(({ handle }) => handle).filter(Boolean);
const idOf = (part) => part.element.firstElementChild.id;
const htmlIn = ({ props }) => ('field' in props ? props.html : props.value);
const byId = Object.fromEntries(parts.map((part) => [idOf(part), part]));
let focused = null; // what had the focus before an answer was painted
function paint(part) {
  const html = htmlIn(part);
  if (typeof html !== 'string' || html === part.html) return;
  part.html = html;
  focused ??= document.activeElement;
  paintRegion(idOf(part), html);
}
// What the script itself says in a region is its value until an event gives it another.
function put(name, html) {
  byId[name].html = byId[name].props.value = html;
  paintRegion(name, html);
}
for (const part of parts) {
  paint(part);
  part.watch(['value', 'html'], () => paint(part));
}

// Those with a field of their own, by its name; all others are the settings'.
const ofField = Object.fromEntries(parts.filter(({ props }) => props.field).map((part) => [part.props.field, part]));
const { settings, ...controls } = ofField;

// What the settings say of a state: what is as it was at the start goes without saying, but beside a
// link that is not read.
function saidBySettings(state, starts) {
  const isSaid = ([name, value]) => !(name in controls) && (state.link || value !== starts[name]);
  return Object.fromEntries(Object.entries(state).filter(isSaid));
}

// Gives every component what the state says, and sets off the event of the one that changed.
function askFor(state, said, aside) {
  const before = settings.props.value;
  const changed = [];
  for (const [name, part] of Object.entries(controls)) {
    const value = state[name] ?? null;
    if (part.props.value === value) continue;
    part.props.value = value;
    changed.push(part);
  }
  const names = Object.keys({ ...said, ...before }).filter((name) => !(name in aside));
  const isSame = names.every((name) => said[name] === before[name]);
  settings.props.value = { ...said, ...aside };
  (isSame && changed.length === 1 ? changed[0] : settings).trigger('input');
}

// What stands where; the tags that a reader's program leads to.
const LANDMARKS = { head: 'banner', main: 'main', controls: 'complementary' };
for (const [id, role] of Object.entries(LANDMARKS)) document.getElementById(id).role = role;
document.getElementById('main').tabIndex = -1;
const app = element.querySelector('.app');
app.lang = 'en';
app.dataset.view = controls.view.props.value;
