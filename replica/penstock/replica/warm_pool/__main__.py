"""`python -m penstock.replica.warm_pool`. Imports nothing at the top: an engine's children read
this, too."""

if __name__ == "__main__":
    from penstock.replica.warm_pool.zygote import main

    main()
