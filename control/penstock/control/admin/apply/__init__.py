"""Documents that say what there is to be: read, planned, applied all at once, and written out."""
