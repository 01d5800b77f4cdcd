// Files of evidence, chosen or dropped: they go to the server in one request, are read there in memory,
// and come back as a digest that the page keeps in its state (views/base/files.py). A view that takes
// some has a box for pasted text beside them.
const MOST_BYTES = 32 * 1024 * 1024;
const LONGEST_LINES = 200_000; // characters of a box; what is longer goes the way of files

const filesLine = () => element.querySelector('.files');

function tellFiles(name, text) {
  const line = filesLine();
  if (line) line.querySelector('strong').textContent = text ?? JSON.parse(line.dataset.said)[name];
}

// For how long others are read first, as the server expects; too many of them at once: ten seconds.
function tellBusy(seconds) {
  tellFiles('busy', JSON.parse(filesLine().dataset.said).busy.replace('{seconds}', seconds));
}

async function sendFiles(files) {
  const list = [...files];
  if (!list.length) return;
  if (list.reduce((sum, file) => sum + file.size, 0) > MOST_BYTES) return tellFiles('large');
  tellFiles('reading');
  const { about: view, kept, box } = filesLine().dataset;
  const pasted = fields.filter(([, link]) => !link).map(([name]) => [name, '']);
  const job = { ...state, ...Object.fromEntries(pasted) };
  const head = { lang: state.lang, view, job, files: list.map((file) => [file.webkitRelativePath || file.name, file.size]) };
  const body = new Blob([JSON.stringify(head), '\n', ...list]);
  const { answer, status } = await post('evidence', body);
  if (isBusy(status)) return tellBusy(10);
  if (!answer) return tellFiles({ 413: 'large', 408: 'slow' }[status] ?? 'failed');
  if (answer.busy) return tellBusy(answer.busy);
  if (answer.digest) say('set', { [kept]: answer.digest, [box]: '', view });
  tellFiles(answer.digest ? '' : 'failed', answer.digest ? '' : answer.refused);
}

// All files of what was dropped, folders with what is in them.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files];
  const files = [];
  while (entries.length && files.length < 16384) {
    const entry = entries.shift();
    if (entry.isFile) files.push(await new Promise((go, fail) => entry.file(go, fail)));
    else {
      const reader = entry.createReader();
      const next = () => new Promise((go, fail) => reader.readEntries(go, fail));
      for (let part = await next(); part.length; part = await next()) entries.push(...part);
    }
  }
  return files;
}

on('click', '[data-files]', (button) => button.parentElement.querySelector('input').click());
on('change', '.files input', (chooser) => {
  sendFiles(chooser.files);
  chooser.value = '';
});
document.addEventListener('dragover', (event) => {
  if (!filesLine() || !event.dataTransfer?.types.includes('Files')) return;
  event.preventDefault();
  element.querySelector('.app').classList.add('dropping');
});
document.addEventListener('dragleave', (event) => {
  if (!event.relatedTarget) element.querySelector('.app').classList.remove('dropping');
});
document.addEventListener('drop', async (event) => {
  if (!filesLine() || !event.dataTransfer?.files.length) return;
  event.preventDefault();
  element.querySelector('.app').classList.remove('dropping');
  sendFiles(await filesOf(event.dataTransfer));
});
on('paste', '[data-field]', (box, event) => {
  if (box.dataset.field !== filesLine()?.dataset.box) return;
  const text = event.clipboardData?.getData('text/plain') ?? '';
  if (text.length <= LONGEST_LINES) return;
  event.preventDefault();
  sendFiles([new File([text], 'pasted')]);
});
