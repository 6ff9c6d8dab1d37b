"""`python -m penstock.replica`. Imports nothing at the top: an engine's children read this, too."""

if __name__ == "__main__":
    import gc

    gc.disable()  # what is imported stays: no collection is to look through it, now or later
    from penstock.replica.main import main

    gc.freeze()
    gc.enable()
    raise SystemExit(main())
