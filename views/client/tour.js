// The tour: paragraphs beside a picture that stays. The last one that begins above a line is read, and
// the picture shows what it says; Leave leads back to where the tour was opened.
const LINE = 60; // pixels below the upper edge of the paragraphs
const ABOVE = 20; // pixels above the line to which a paragraph is brought
const REST = 140; // ms without scrolling after which a paragraph is read
const tourList = () => document.querySelector('#tour ol');
let toured = null; // the address from where the tour was opened
let resting = 0;

// Before the button opens its first step.
const notePlace = ({ target }) => {
  if (target.closest?.('#tour-start')) toured = location.search.slice(1);
};
document.addEventListener('click', notePlace, true);
on('click', '#tour-leave', () => {
  if (toured !== null) say('open', { query: toured, with: { tour: '' } });
  toured = null;
});

const topOf = (list, item) => item.offsetTop - list.offsetTop - list.scrollTop;
function readNow(list) {
  return [...list.children].reduce((read, item) => (topOf(list, item) <= LINE ? item : read));
}
document.addEventListener(
  'scroll',
  ({ target }) => {
    if (target !== tourList()) return;
    clearTimeout(resting);
    resting = setTimeout(() => {
      const read = target.isConnected && readNow(target);
      if (read && !read.ariaCurrent) read.click();
    }, REST);
  },
  true,
);
// By button or link: its paragraph comes to the line where one reads.
document.addEventListener('drawn', () => {
  const list = tourList();
  const current = list?.querySelector('[aria-current]');
  if (!current || readNow(list) === current) return;
  list.scrollTop += topOf(list, current) - LINE + ABOVE;
});
