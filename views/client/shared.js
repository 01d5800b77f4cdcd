// What the scripts of several views share.

// Whenever an event of a kind is on a node of a selector, or within one.
const on = (kind, selector, then) =>
  document.addEventListener(kind, (event) => {
    const node = event.target.closest?.(selector);
    if (node) then(node, event);
  });

const say = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
// No line ends between a number and its unit, as in what the server says (views/base/html.py).
const UNIT_SPACE = / (?<=\d )(?=(?:[kMGTP]?i?B|M|T?FLOP|Gb|[mµ]?s)\b|[个层次组步份台条项列行块段种倍维级秒])/g;
const filled = (text, facts) =>
  text.replace(/\{(\w+)\}/g, (_, name) => facts[name]).replace(UNIT_SPACE, '\u00a0');

// What is said to a finger, which cannot point and has no keys, where there are words for it.
const touchWord = (words, name) =>
  (matchMedia('(pointer: coarse)').matches && words[`${name}_touch`]) || words[name];

// The slider of a player, and its track as far as it is pulled.
function slideTo(slider, value) {
  slider.value = value;
  slider.style.setProperty('--share', `${((100 * slider.value) / (slider.max || 1)).toFixed(2)}%`);
}
on('input', '.player input[type=range]', (slider) => slideTo(slider, slider.value));

function svgNode(name, attributes, kind) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.setAttribute('class', kind);
  return node;
}

// What moves step by step, or plays by itself until it ends or is stopped; its buttons are those of
// `player_buttons` (views/base/html.py). `begin` says where playing starts, `at` goes to where it is
// after so many milliseconds and says whether more is to come, `go` goes a step on or back.
function playerOf(selector, { begin, at, go }) {
  let frame = 0;
  const label = () => {
    const button = element.querySelector(`${selector} [data-play=play]`);
    if (button) button.textContent = frame ? button.dataset.stop : button.dataset.start;
  };
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    label();
  };
  const play = () => {
    const from = begin();
    let begun = null;
    at(from, 0);
    const next = (now) => {
      begun ??= now;
      if (!at(from, now - begun)) stop();
      else if (frame) frame = requestAnimationFrame(next);
    };
    frame = requestAnimationFrame(next);
    label();
  };
  element.addEventListener('click', (event) => {
    const action = event.target.closest?.(`${selector} button`)?.dataset.play;
    if (!action) return;
    const wasPlaying = frame;
    stop();
    if (action !== 'play') go(action === 'on');
    else if (!wasPlaying) play();
  });
  return { stop, label };
}
