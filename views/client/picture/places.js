// Where each rank is in a picture of one mesh, and which rank is at a place. A rank's cell is a sum
// over the axes, each folded once: as render/scenes/job_plan.py.

// The picture of a job, the view of its nodes, panels of a kind; cells have numbers, or are pixels.
function readView(svg, { mesh, kinds }) {
  const known = JSON.parse(svg.dataset.known);
  const [wide, tall] = known.sides;
  const own = known.kinds?.map((number) => kinds[number]);
  const view = { ...known, svg, wide, tall, kinds: own, world: mesh.world, rankAt: null };
  // From a band of the job to the next one beside it.
  const beside = svg.matches('.job') ? view.folds.filter(([size, period]) => size > period) : [];
  view.jump = Math.max(0, ...beside.map((fold) => fold[4]));
  const pixels = svg.querySelector('.marks');
  view.columns = Math.round(pixels?.width.baseVal.value / wide);
  view.rows = Math.round(pixels?.height.baseVal.value / tall);
  return view;
}

const isNumbered = ({ svg }) => !svg.matches('.plain, .overview');

function spot(view, rank) {
  let x = view.left;
  let y = view.top;
  for (const [size, period, dx, dy, jumpX, jumpY] of view.folds) {
    const at = rank % size;
    rank = Math.floor(rank / size);
    x += (at % period) * dx + Math.floor(at / period) * jumpX;
    y += (at % period) * dy + Math.floor(at / period) * jumpY;
  }
  return [x, y];
}

// The first cell of what a rank is in: of the folds that are kept, where the rank is; of the others,
// the first. isBand: of the first stage of its band.
function corner(view, rank, kept, isBand = false) {
  let first = 0;
  let stride = 1;
  view.folds.forEach(([size, period], number) => {
    const at = Math.floor(rank / stride) % size;
    const isStage = isBand && number === view.staged;
    if (kept[number]) first += (isStage ? at - (at % period) : at) * stride;
    stride *= size;
  });
  return spot(view, first);
}

// Column and row of a rank's cell.
function square(view, rank) {
  const [x, y] = spot(view, rank);
  return [Math.round((x - view.left) / view.wide), Math.round((y - view.top) / view.tall)];
}

// Null where there is no GPU.
function rankAt(view, column, row) {
  if (column < 0 || row < 0 || column >= view.columns || row >= view.rows) return null;
  if (!view.rankAt) {
    view.rankAt = new Int32Array(view.columns * view.rows).fill(-1);
    for (let rank = 0; rank < view.world; rank++) {
      const [column, row] = square(view, rank);
      view.rankAt[row * view.columns + column] = rank;
    }
  }
  const rank = view.rankAt[row * view.columns + column];
  return rank < 0 ? null : rank;
}

function rankUnder(view, event) {
  const box = view.svg.getBoundingClientRect();
  const scale = view.svg.viewBox.baseVal.width / box.width;
  if (isNumbered(view)) return rankWithin(view, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  const column = Math.floor(((event.clientX - box.left) * scale - view.left) / view.wide);
  const row = Math.floor(((event.clientY - box.top) * scale - view.top) / view.tall);
  return rankAt(view, column, row);
}

function rankWithin(view, atX, atY) {
  for (let rank = 0; rank < view.world; rank++) {
    const [x, y] = spot(view, rank);
    if (atX >= x && atX < x + view.wide && atY >= y && atY < y + view.tall) return rank;
  }
  return null;
}

// --- The next one by an arrow key -------------------------------------------------------------------

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The place nearest in a direction: of places as [x, y], the number; -1 if there is none.
function nearest(places, [fromX, fromY], [dx, dy]) {
  let best = -1;
  let shortest = Infinity;
  places.forEach(([x, y], number) => {
    const along = (x - fromX) * dx + (y - fromY) * dy;
    const aside = Math.abs((x - fromX) * dy) + Math.abs((y - fromY) * dx);
    const distance = along + 3 * aside;
    if (along > 1 && distance < shortest) {
      best = number;
      shortest = distance;
    }
  });
  return best;
}

// The rank beside a rank; null at the edge.
function rankBeside(view, rank, step) {
  if (isNumbered(view)) {
    const places = Array.from({ length: view.world }, (_, one) => spot(view, one));
    const next = nearest(places, places[rank], step);
    return next < 0 ? null : next;
  }
  let [column, row] = square(view, rank);
  // Bands are parted by cells without a GPU.
  for (let one = 0; one < view.columns + view.rows; one++) {
    column += step[0];
    row += step[1];
    const next = rankAt(view, column, row);
    if (next !== null) return next;
  }
  return null;
}
