// Begins once all parts are there: each is loaded by itself.
const isPart = ({ props }) => props?.elem_classes?.includes('part');
const all = window.gradio_config.components.filter(isPart).length;
const begin = () => {
  if ([...document.querySelectorAll('.part')].filter((one) => one.handle).length < all) return;
  document.removeEventListener('joined', begin);
  page();
};
document.addEventListener('joined', begin);
begin();
