// The Memory view: the numbers of the stage under the pointer or the focus, with no request. The
// server writes those of the fullest stage below the bars; each row brings its own along.
function tell(row) {
  const box = element.querySelector('.memory-formula');
  if (!box || row.classList.contains('chosen')) return;
  box.replaceChildren(row.querySelector('template.memory-told').content.cloneNode(true));
  for (const one of element.querySelectorAll('.memory-row.chosen')) one.classList.remove('chosen');
  row.classList.add('chosen');
}

on('keydown', '.memory-row', (row, event) => {
  if (event.key === 'Enter' && event.target === row) row.querySelector('button').click();
});

for (const kind of ['pointerover', 'focusin', 'click']) on(kind, '.memory-row', tell);
