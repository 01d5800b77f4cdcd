// Copies the text after a button; where the clipboard is closed to the page (plain http), by selection.
document.querySelector('#view').addEventListener('click', async (event) => {
  const button = event.target.closest('.copy');
  if (!button) return;
  const list = button.parentElement.querySelector('pre');
  try {
    await navigator.clipboard.writeText(list.textContent);
  } catch {
    getSelection().selectAllChildren(list);
    document.execCommand('copy');
  }
  const label = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = label; }, 1500);
});
