// Copies the list of groups; where the clipboard is closed to the page (plain http), by selection.
element.addEventListener('click', async (event) => {
  const button = event.target.closest('.copy');
  if (!button) return;
  const list = element.querySelector('.list pre');
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
