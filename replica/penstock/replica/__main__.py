"""`python -m penstock.replica`. Imports nothing at the top: an engine's children read this, too."""

if __name__ == "__main__":
    from penstock.replica.main import main

    raise SystemExit(main())
