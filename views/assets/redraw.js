// Set by events that change several controls at once; once they stand, the page asks for the picture.
watch('value', () => setTimeout(() => trigger('input')));
