// On another layout the GPUs glide from where they were to where they are: the same numbers, so that
// one can follow a box that merges or a replica that goes. Painted over the picture, which is there
// from the start; whatever is done meanwhile ends it.
const GLIDE = 300; // ms
const FOLLOWED = 256; // GPUs

let stood = null; // where the GPUs of the last picture were
let gliding = null;

const stoodAt = (view) => ({
  of: view.svg.dataset.known,
  wide: view.wide,
  tall: view.tall,
  spots: Array.from({ length: mesh.world }, (_, rank) => spot(view, rank)),
});

function endGlide() {
  if (!gliding) return;
  cancelAnimationFrame(gliding.frame);
  gliding.canvas.remove();
  gliding.svg.classList.remove('gliding');
  gliding = null;
}

function glide() {
  endGlide();
  const jobs = views.filter((view) => view.svg.matches('.job'));
  const view = jobs.length === 1 && isNumbered(jobs[0]) && mesh.world <= FOLLOWED ? jobs[0] : null;
  const from = stood;
  stood = view && stoodAt(view);
  if (!from || !stood || from.of === stood.of) return;
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
  const to = stood;
  const canvas = document.createElement('canvas');
  canvas.className = 'glide';
  view.svg.classList.add('gliding');
  view.svg.parentNode.append(canvas);
  gliding = { svg: view.svg, canvas, frame: 0, begun: null };
  const step = (now) => {
    gliding.begun ??= now;
    const part = Math.min(1, (now - gliding.begun) / GLIDE);
    if (part === 1) return endGlide();
    paintGlide(view, from, to, part * part * (3 - 2 * part));
    gliding.frame = requestAnimationFrame(step);
  };
  gliding.frame = requestAnimationFrame(step);
}

function paintGlide({ svg }, from, to, part) {
  const { canvas } = gliding;
  // As wide as there is room: the picture before may have been wider.
  const [width, height] = [svg.parentNode.clientWidth, svg.clientHeight];
  const scale = svg.clientWidth / svg.viewBox.baseVal.width;
  if (!gliding.context) {
    const dense = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * dense, height * dense];
    Object.assign(canvas.style, {
      left: `${svg.offsetLeft ?? 0}px`, width: `${width}px`, height: `${height}px`,
      top: `${svg.getBoundingClientRect().top - svg.parentNode.getBoundingClientRect().top}px`,
    });
    gliding.context = canvas.getContext('2d');
    gliding.context.scale(dense * scale, dense * scale);
    const style = getComputedStyle(svg);
    gliding.colours = ['--cell', '--gi'].map((name) => style.getPropertyValue(name));
    gliding.font = `600 ${parseFloat(svg.style.getPropertyValue('--size'))}px ${style.fontFamily}`;
  }
  const { context, colours } = gliding;
  context.clearRect(0, 0, width / scale, height / scale);
  context.font = gliding.font;
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
