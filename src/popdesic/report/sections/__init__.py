"""Parts of the page, each from its own results; `page` joins them."""
