"""Going on with answers that another replica began, token for token; see README.md."""
