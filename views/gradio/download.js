// Saves what the server computed. Nothing is written to the server's disk, so nothing of one user's
// can be fetched by another.
watch('value', () => {
  if (!props.value) return;
  const { name, type, data } = props.value;
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  props.value = null;
});
