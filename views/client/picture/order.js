// The Orders view has everything of both orders, of which one is seen; its GPUs glide to the other.
let order = 1; // the second is the layout's own

function showOrder() {
  for (const one of element.querySelectorAll('[data-shows]')) one.hidden = Number(one.dataset.shows) !== order;
  for (const one of element.querySelectorAll('[data-order]')) {
    const isShown = Number(one.dataset.order) === order;
    one.setAttribute('aria-pressed', isShown);
    one.tabIndex = isShown ? 0 : -1;
  }
}

const jobsOf = (side) => views.filter(({ svg }) => svg.matches(`[data-shows="${side}"] .job`));

on('click', '[data-order]', ({ dataset }) => {
  if (Number(dataset.order) === order) return;
  const left = jobsOf(order);
  order = Number(dataset.order);
  showOrder();
  light(); // the card tells of it
  const ways = jobsOf(order).map((view, at) => ({ view, from: left[at], to: view }));
  startGlide(
    ways
      .filter(({ view, from }) => from && canGlide(view) && canGlide(from))
      .map(({ view, from, to }) => ({ view, from: stoodAt(from), to: stoodAt(to) })),
  );
});
watch('value', () => {
  if (!element.querySelector('[data-order]')) order = 1;
  showOrder();
});
