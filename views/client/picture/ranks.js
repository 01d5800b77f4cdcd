// Which ranks are together: as groups/grouping.py. Any rank's groups follow from the sizes of the
// mesh's axes, which are a few hundred bytes; the index of every rank would be 48 kB for 131,072.

const coordinate = (axis, rank) => Math.floor(rank / axis.stride) % axis.size;

// The members of the rank's group over the named axes, before it is cut.
function sweep(axes, names, rank) {
  let ranks = [rank];
  for (const axis of axes) {
    if (!names.includes(axis.name)) continue;
    const start = -coordinate(axis, rank) * axis.stride;
    const wider = [];
    for (let c = 0; c < axis.size; c++) {
      for (const one of ranks) wider.push(one + start + c * axis.stride);
    }
    ranks = wider;
  }
  return ranks;
}

// The rank's position over the axes that are swept, or over the others, the first fastest.
function position({ axes, names }, rank, isSwept) {
  let index = 0;
  let stride = 1;
  for (const axis of axes) {
    if (names.includes(axis.name) !== isSwept) continue;
    index += coordinate(axis, rank) * stride;
    stride *= axis.size;
  }
  return index;
}

// The index of the rank's group; null for a rank that is in no group of the kind.
function groupIndex(kind, rank) {
  const whole = position(kind, rank, false);
  if (!kind.length && !kind.places.length) return Math.floor(whole / kind.joined);
  const place = position(kind, rank, true);
  if (kind.places.length) return kind.places.includes(place) ? whole : null;
  const size = kind.axes.reduce((n, { name, size }) => (kind.names.includes(name) ? n * size : n), 1);
  const block = kind.length * kind.stride;
  const piece = Math.floor(place / block) * kind.stride + (place % kind.stride);
  return whole * Math.ceil(size / kind.length) + piece;
}

// The ranks of the same group: of a whole sweep all, else those with the same index among it, or,
// where sweeps are joined, among all ranks.
function members(kind, rank) {
  const isJoined = kind.joined > 1;
  const ranks = isJoined ? [...Array(kind.world).keys()] : sweep(kind.axes, kind.names, rank);
  if (!isJoined && !kind.length && !kind.places.length) return ranks;
  const index = groupIndex(kind, rank);
  return index === null ? [] : ranks.filter((one) => groupIndex(kind, one) === index);
}
