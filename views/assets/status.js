// One click on a fix: which one it is goes to the server, which works the fix out again by itself.
element.addEventListener('click', (event) => {
  const button = event.target.closest('.fix');
  if (button) trigger('fix', { number: Number(button.dataset.fix) });
});
