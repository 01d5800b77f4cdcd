// Where each rank is in a picture of one mesh, and which rank is at a place. A rank's cell is a sum
// over the axes, each folded once: as render/scenes/job_plan.py.

// The picture of the job, and the view of its nodes; few cells are elements, many are pixels.
function readView(svg) {
  const known = JSON.parse(svg.dataset.known);
  const [wide, tall] = known.sides;
  const view = { ...known, svg, wide, tall, cells: [...svg.querySelectorAll('.j')], rankAt: null };
  // From a band of the job to the next one beside it.
  const beside = svg.matches('.job') ? view.folds.filter(([size, period]) => size > period) : [];
  view.jump = Math.max(0, ...beside.map((fold) => fold[4]));
  const pixels = svg.querySelector('.marks');
  view.columns = Math.round(pixels?.width.baseVal.value / wide);
  view.rows = Math.round(pixels?.height.baseVal.value / tall);
  return view;
}

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
    for (let rank = 0; rank < mesh.world; rank++) {
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
  const column = Math.floor(((event.clientX - box.left) * scale - view.left) / view.wide);
  const row = Math.floor(((event.clientY - box.top) * scale - view.top) / view.tall);
  return rankAt(view, column, row);
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

// The cell of a panel beside a cell.
function neighbour(cell, step) {
  const cells = [...cell.parentNode.querySelectorAll('.c')];
  const matrixOf = (one) => one.transform.baseVal.consolidate().matrix;
  const places = cells.map(matrixOf).map(({ e, f }) => [e, f]);
  return cells[nearest(places, places[cells.indexOf(cell)], step)];
}

// The rank beside a rank; null at the edge.
function rankBeside(view, rank, step) {
  if (view.cells.length) {
    const places = view.cells.map((_, one) => spot(view, one));
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
