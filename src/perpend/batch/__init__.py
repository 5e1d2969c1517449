"""Many problems of equal shape at once: arrays in, arrays out, no estimator and no row source."""

from perpend.batch.form import BatchSolution, dpcp_batch

__all__ = ["BatchSolution", "dpcp_batch"]
