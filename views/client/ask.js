// What the page asks the server, and what it is told where the server takes no question.
const LARGEST = known.largest; // bytes of a question, beside the addresses in it

async function post(path, body) {
  const root = window.gradio_config?.root ?? '';
  const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
  try {
    const told = await fetch(`${root}/gradio_api/${path}`, { method: 'POST', body, headers });
    if (told.ok) return { answer: JSON.parse(await told.json()) };
    return { status: told.status, size: sizeOf(body) };
  } catch {
    return { status: 0 }; // nobody answers, or somebody else does
  }
}

// What the functions of this script's component are asked (views/server/guard.py).
function questionOf(name, asked) {
  const { components } = window.gradio_config;
  const component = components.find((one) => one.props?.elem_id === 'page-script');
  return JSON.stringify({ component_id: component.id, fn_name: name, data: JSON.stringify(asked) });
}

const ask = (name, asked) => post('component_server', questionOf(name, asked));

// Bytes as the server counts them.
const sizeOf = (body) => new Blob([body]).size;

// Of an answer that takes long: for how many seconds the server expects to work on all that wait.
const LATE = 2000; // ms from a question to the first of these, and between two

async function withWait(promise) {
  let isOver = false;
  const told = promise.finally(() => (isOver = true));
  const look = async () => {
    if (isOver) return;
    const { answer } = await ask('wait', {});
    if (isOver) return;
    if (answer?.seconds) hint(filled(saidIn('ahead'), answer));
    setTimeout(look, LATE);
  };
  setTimeout(look, LATE);
  return told;
}

// Gradio's client takes a refusal for the end of the connection, and tells no status: the question of
// the page's event is answered with nothing in both cases, and why is kept for who waits.
let failed = null;
const { fetch: fetched } = window;
const isEvent = (where, what) => what?.method === 'POST' && String(where).includes('/gradio_api/run/');
window.fetch = async (where, what) => {
  if (!isEvent(where, what)) return fetched(where, what);
  failed = null;
  try {
    const told = await withWait(fetched(where, what));
    if (told.ok) return told;
    failed = { status: told.status, size: sizeOf(what.body) };
  } catch {
    failed = { status: 0 }; // nobody answers, or somebody else does
  }
  return Response.json({ data: [] });
};

const busyText = (answer) =>
  answer?.busy ? filled(saidIn('busy_for'), { seconds: answer.busy }) : saidIn('busy');

// Refused: the same question is refused the next time too. All else may change while one waits.
const isBusy = (status) => status === 429 || status === 503;
const isRefused = (status) => status >= 400 && status < 500 && !isBusy(status);
const REASONS = { 400: 'unread', 422: 'unread', 413: 'long', 408: 'slow' };

function refusalOf({ status, size }) {
  const count = (bytes) => bytes?.toLocaleString('en');
  return filled(saidIn(REASONS[status] ?? 'refused'), { status, size: count(size), limit: count(LARGEST) });
}

// --- A server that was started anew may not know this page any more: it is loaded again, once -------
const KEPT = 'playground'; // what is on the page, for the time of one reload

function storage(act) {
  try {
    return act(window.sessionStorage);
  } catch {
    return null; // closed to the page, or full
  }
}

const keptState = () => {
  const kept = storage((store) => JSON.parse(store.getItem(KEPT)));
  return kept?.href === location.href ? kept.state : null;
};

function loadAgain() {
  if (storage((store) => store.getItem(KEPT))) return false;
  for (const box of [...typing.keys()]) take(box);
  const kept = JSON.stringify({ href: location.href, state });
  storage((store) => store.setItem(KEPT, kept));
  if (storage((store) => store.getItem(KEPT)) !== kept) return false; // something would be lost
  location.reload();
  return true;
}

const isKnown = () => storage((store) => store.removeItem(KEPT));
