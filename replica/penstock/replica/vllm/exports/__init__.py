"""What other rooms are told of vLLM, as files that are written and committed."""
