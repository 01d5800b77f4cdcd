// A component's handle for the page's script, which may be there before or after it.
element.handle = { element, props, trigger, watch };
element.dispatchEvent(new CustomEvent('joined', { bubbles: true }));
