// The tour: states of the page, each with two sentences. It opens when somebody asks for it, and
// stays on the state that it was left at.
const { tour } = props.known;
const panel = element.querySelector('#tour');
let step = -1;

function paintTour() {
  panel.hidden = step < 0;
  if (step < 0) return;
  const localized = (text) => text[state.lang] ?? text.en;
  const place = localized(tour.words.place).replace('{step}', step + 1).replace('{steps}', tour.steps.length);
  panel.setAttribute('aria-label', localized(tour.words.label));
  panel.querySelector('p').textContent = localized(tour.steps[step]);
  panel.querySelector('small').textContent = place;
  for (const button of panel.querySelectorAll('button')) {
    button.textContent = localized(tour.words[button.dataset.tour]);
    if (button.dataset.tour !== 'leave') button.disabled = !(step + STEP[button.dataset.tour] in tour.steps);
  }
}

const STEP = { back: -1, next: 1 };
on('click', '[data-tour]', ({ dataset: { tour: action } }) => {
  const before = step;
  step = action === 'start' ? 0 : action === 'leave' ? -1 : step + STEP[action];
  paintTour();
  if (step < 0) document.querySelector('[data-tour=start]').focus();
  else say('open', { query: tour.steps[step].query, with: {} });
  // A button that can do no more lets go of the focus.
  if (before < 0 || document.activeElement.disabled) panel.querySelector('button:enabled').focus();
  panel.scrollIntoView({ block: 'nearest' });
});
document.addEventListener('state', paintTour);
