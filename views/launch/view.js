// A file that is dropped is pasted: a script as it is, of a profiler trace, packed or not, the part that
// says which process groups its rank is in. It stands before the events, so that the rest is not read.
const MOST_BEGINNING = 16 * 1024 * 1024;

async function beginningOf(file) {
  const packed = (await file.slice(0, 2).text()).startsWith('\x1f');
  if (!packed) return file.slice(0, MOST_BEGINNING).text();
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (text.length < MOST_BEGINNING) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
  }
  reader.cancel();
  return text;
}

// From the brace behind a key to the one that closes it; the whole text where the key is not there.
function groupsIn(text) {
  const at = text.indexOf('"distributedInfo"');
  const start = at < 0 ? -1 : text.indexOf('{', at);
  if (start < 0) return text;
  let depth = 0;
  for (let end = start; end < text.length; end++) {
    if (text[end] === '{') depth++;
    if (text[end] === '}' && !--depth) return `{"distributedInfo": ${text.slice(start, end + 1)}}`;
  }
  return text;
}

const takesFiles = (event) => state.view === 'launch' && event.dataTransfer?.types.includes('Files');
document.addEventListener('dragover', (event) => {
  if (takesFiles(event)) event.preventDefault();
});
document.addEventListener('drop', async (event) => {
  if (!takesFiles(event) || !event.dataTransfer.files.length) return;
  event.preventDefault();
  const text = await beginningOf(event.dataTransfer.files[0]).catch(() => '');
  if (text) say('set', { paste: groupsIn(text), run: '' });
});
