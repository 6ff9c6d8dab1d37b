"""Which adapters a replica has, gets and lets go of; where their bytes are from."""
