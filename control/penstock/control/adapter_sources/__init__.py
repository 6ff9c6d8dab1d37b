"""Where adapters come from: directories, what ships with Penstock, S3, a hub's cache, uploads.

Brings an adapter's two files into a directory for as long as somebody looks at them there. Judges
no content: that is the store's, which takes it in. Downloads nothing but from S3, keeps nothing.
`base_models.py` reads what adapters are made for.
"""
