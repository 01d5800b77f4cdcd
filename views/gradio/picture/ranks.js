// Which ranks are together: as groups/grouping.py. Any rank's groups follow from the sizes of the
// mesh's axes.

function coordinates(axes, rank) {
  const at = {};
  for (const axis of axes) {
    at[axis.name] = rank % axis.size;
    rank = Math.floor(rank / axis.size);
  }
  return at;
}

// The members of the rank's group over the named axes, before it is cut.
function sweep(axes, names, rank) {
  const at = coordinates(axes, rank);
  let ranks = [rank];
  for (const axis of axes) {
    if (!names.includes(axis.name)) continue;
    const start = -at[axis.name] * axis.stride;
    const wider = [];
    for (let c = 0; c < axis.size; c++) {
      for (const one of ranks) wider.push(one + start + c * axis.stride);
    }
    ranks = wider;
  }
  return ranks;
}

// The rank's position over some axes, the first fastest.
function position(axes, rank, isCounted) {
  const at = coordinates(axes, rank);
  let index = 0;
  let stride = 1;
  for (const axis of axes) {
    if (!isCounted(axis)) continue;
    index += at[axis.name] * stride;
    stride *= axis.size;
  }
  return index;
}

const placeIn = (kind, rank) => position(kind.axes, rank, (axis) => kind.names.includes(axis.name));
const wholeIndex = (kind, rank) =>
  position(kind.axes, rank, (axis) => !kind.names.includes(axis.name));

function members(kind, rank) {
  if (kind.joined > 1) return joinedMembers(kind, rank);
  const ranks = sweep(kind.axes, kind.names, rank);
  const place = placeIn(kind, rank);
  if (kind.places.length) {
    return kind.places.includes(place) ? kind.places.map((one) => ranks[one]) : [];
  }
  if (!kind.length) return ranks;
  const block = kind.length * kind.stride;
  const first = place - (place % block) + (place % kind.stride);
  return ranks.slice(first, first + block).filter((_, i) => i % kind.stride === 0);
}

function joinedMembers(kind, rank) {
  const others = kind.axes.filter((axis) => !kind.names.includes(axis.name));
  const first = Math.floor(wholeIndex(kind, rank) / kind.joined) * kind.joined;
  const ranks = [];
  for (let index = first; index < first + kind.joined; index++) {
    let left = index;
    let start = 0;
    for (const axis of others) {
      start += (left % axis.size) * axis.stride;
      left = Math.floor(left / axis.size);
    }
    ranks.push(...sweep(kind.axes, kind.names, start));
  }
  return ranks.sort((a, b) => a - b);
}

// Null for a rank that is in no group of the kind.
function groupIndex(kind, rank) {
  const whole = wholeIndex(kind, rank);
  const place = placeIn(kind, rank);
  if (kind.places.length) return kind.places.includes(place) ? whole : null;
  if (!kind.length) return Math.floor(whole / kind.joined);
  const size = kind.axes.reduce((n, a) => (kind.names.includes(a.name) ? n * a.size : n), 1);
  const block = kind.length * kind.stride;
  const piece = Math.floor(place / block) * kind.stride + (place % kind.stride);
  return whole * Math.ceil(size / kind.length) + piece;
}
