// The same GPUs and groups as a mesh, or on the nodes as they stand: of both pictures one is seen.
let way = 'mesh';

function turnTo(next) {
  way = next;
  for (const one of element.querySelectorAll('[data-way]')) one.hidden = one.dataset.way !== way;
  for (const one of element.querySelectorAll('[data-turns]')) {
    const isShown = one.dataset.turns === way;
    one.setAttribute('aria-pressed', isShown);
    one.tabIndex = isShown ? 0 : -1;
  }
}

on('click', '[data-turns]', ({ dataset }) => {
  if (dataset.turns === 'nodes') say('lens', ''); // costs are shown on the mesh
  turnTo(dataset.turns);
});
document.addEventListener('lens', () => turnTo('mesh')); // a step plays there too
watch('value', () => turnTo(way));
