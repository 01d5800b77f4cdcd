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
