"""The admin REST API under /admin/v1: FastAPI appears here and nowhere else."""
