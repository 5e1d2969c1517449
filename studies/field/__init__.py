"""The field's standard experiments, every method on every one; and sweeps over the codimension."""
