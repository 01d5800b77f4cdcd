// One click on a fix: which one it is goes to the server, which works the fix out again by itself.
element.addEventListener('click', (event) => {
  const button = event.target.closest('.fix');
  if (button) trigger('fix', { number: Number(button.dataset.fix) });
});

// The size sliders stop where this world's sizes do.
watch('value', () => document.dispatchEvent(new Event('world')));
document.dispatchEvent(new Event('world'));
