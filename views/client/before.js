// Runs before Gradio's own scripts. Its sign that the page loads counts seconds in every frame; once
// gone it would go on for as long as the page is open (60 frames a second, 5 % of a core), by the
// function that it takes from the window now. That one gives no more frames when the page is there;
// all others ask the window.
const ask = window.requestAnimationFrame;
let isThere = false;
window.requestAnimationFrame = (then) => (isThere ? 0 : ask(then));
document.addEventListener(
  'drawn',
  () => {
    isThere = true;
    window.requestAnimationFrame = ask;
  },
  { once: true },
);

// Around every event Gradio copies all that its components are given, word by word, with this; of what
// is no object it needs no copy. 2,500 calls for a step of a slider, and 150 errors of functions, are
// a third of what Gradio adds to it.
const copied = window.structuredClone;
window.structuredClone = (value, ...more) =>
  value !== null && typeof value === 'object' ? copied(value, ...more) : value;
