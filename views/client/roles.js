// Boxes about the role on screen (views/roles/bar.py): what is typed or chosen goes as an instruction.
const wasBox = (box) => (box.tagName === 'SELECT' ? box.querySelector('[selected]')?.value : box.getAttribute('value'));
on('change', '[data-edit]', (box) => {
  if (box.value !== wasBox(box)) say('set', { role_edit: `${box.dataset.edit} ${box.value}` });
});
// Boxes keep what was typed: after an answer they say what is.
document.addEventListener('drawn', () => {
  for (const box of element.querySelectorAll('#roles [data-edit]')) {
    if (box !== document.activeElement || !state.role_edit) box.value = wasBox(box) ?? '';
  }
});
