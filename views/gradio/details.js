// Copies the text after a button; where the clipboard is closed to the page (plain http), by selection.
document.querySelector('#view').addEventListener('click', async (event) => {
  const button = event.target.closest('.copy');
  if (!button) return;
  const list = button.parentElement.querySelector('pre');
  try {
    await navigator.clipboard.writeText(list.textContent);
  } catch {
    // A selection lacks the end of the last line.
    const exact = (copy) => {
      copy.clipboardData.setData('text/plain', list.textContent);
      copy.preventDefault();
    };
    getSelection().selectAllChildren(list);
    document.addEventListener('copy', exact);
    document.execCommand('copy');
    document.removeEventListener('copy', exact);
  }
  const label = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = label; }, 1500);
});
watch('value', paint);
