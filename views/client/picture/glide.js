// On another layout, or another order of it, the GPUs glide from where they were to where they are:
// the same numbers, so that one can follow a box that merges or a replica that goes. Painted over the
// picture, which is there from the start; whatever is done meanwhile ends it.
const GLIDE = 300; // ms
const FOLLOWED = 256; // GPUs

let stood = null; // where the GPUs of the last picture were
let gliding = []; // what is painted now, one a picture
let turn = 0; // of the frames

const stoodAt = (view) => ({
  of: view.svg.dataset.known,
  wide: view.wide,
  tall: view.tall,
  spots: Array.from({ length: mesh.world }, (_, rank) => spot(view, rank)),
});

function endGlide() {
  cancelAnimationFrame(turn);
  for (const { view, canvas } of gliding) {
    canvas.remove();
    view.svg.classList.remove('gliding');
  }
  gliding = [];
}

const canGlide = (view) => isNumbered(view) && mesh.world <= FOLLOWED;

function glide() {
  endGlide();
  const jobs = views.filter((view) => view.svg.matches('.job'));
  const isSeen = !element.querySelector('.app.waiting'); // a page that is opened shows its own at once
  const view = isSeen && jobs.length === 1 && canGlide(jobs[0]) ? jobs[0] : null;
  const from = stood;
  stood = view && stoodAt(view);
  if (from && stood && from.of !== stood.of) startGlide([{ view, from, to: stood }]);
}

// ways: each picture, and where its GPUs come from and go to.
function startGlide(ways) {
  endGlide();
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  gliding = ways.map((way) => {
    const canvas = document.createElement('canvas');
    canvas.className = 'glide';
    way.view.svg.classList.add('gliding');
    way.view.svg.parentNode.append(canvas);
    return { ...way, canvas };
  });
  let begun = null;
  const step = (now) => {
    begun ??= now;
    const part = Math.min(1, (now - begun) / GLIDE);
    if (part === 1) return endGlide();
    for (const one of gliding) paintGlide(one, part * part * (3 - 2 * part));
    turn = requestAnimationFrame(step);
  };
  turn = requestAnimationFrame(step);
}

function preparedGlide(one) {
  const { canvas } = one;
  const { svg } = one.view;
  // As wide as there is room: the picture before may have been wider.
  const [width, height] = [svg.parentNode.clientWidth, svg.clientHeight];
  const scale = svg.clientWidth / svg.viewBox.baseVal.width;
  const dense = window.devicePixelRatio || 1;
  [canvas.width, canvas.height] = [width * dense, height * dense];
  Object.assign(canvas.style, {
    left: `${svg.offsetLeft ?? 0}px`, width: `${width}px`, height: `${height}px`,
    top: `${svg.getBoundingClientRect().top - svg.parentNode.getBoundingClientRect().top}px`,
  });
  const context = canvas.getContext('2d');
  context.scale(dense * scale, dense * scale);
  const style = getComputedStyle(svg);
  const colours = ['--cell', '--gi'].map((name) => style.getPropertyValue(name));
  const font = `600 ${parseFloat(svg.style.getPropertyValue('--size'))}px ${style.fontFamily}`;
  return { context, colours, font, size: [width / scale, height / scale] };
}

function paintGlide(one, part) {
  const { from, to } = one;
  one.paper ??= preparedGlide(one);
  const { context, colours, font, size } = one.paper;
  context.clearRect(0, 0, ...size);
  context.font = font;
  [context.textAlign, context.textBaseline] = ['center', 'middle'];
  const between = (a, b) => a + (b - a) * part;
  const [wide, tall] = [between(from.wide, to.wide), between(from.tall, to.tall)];
  for (let rank = 0; rank < Math.max(from.spots.length, to.spots.length); rank++) {
    const [a, b] = [from.spots[rank], to.spots[rank]];
    const [x, y] = a && b ? [between(a[0], b[0]), between(a[1], b[1])] : (a ?? b);
    context.globalAlpha = a && b ? 1 : a ? 1 - part : part;
    context.fillStyle = colours[0];
    context.beginPath();
    context.roundRect(x, y, wide, tall, Math.min(6, wide / 5));
    context.fill();
    context.fillStyle = colours[1];
    context.fillText(rank, x + wide / 2, y + tall / 2);
  }
}

for (const name of ['pointerdown', 'keydown', 'wheel', 'set']) document.addEventListener(name, endGlide, true);
watch('value', glide);
