"""What survives a restart of the head: documents with versions, and the audit trail."""
