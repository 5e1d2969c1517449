"""Fitted models in a file, without pickle.

A model file is an uncompressed ``.npz`` archive. Its member ``header`` is a JSON text (as bytes):
schema, version of perpend, name of the class, parameters, learned attributes, the names of all
other members, and a sha256 over everything. The other members are plain arrays. The same model
always gives the same bytes.

A file is not trusted. The class is looked up among the methods that perpend has, never imported by
a name from the file; pickles, compressed members (which could expand without end) and members that
the header does not name are refused; sizes are compared with the file before anything is allocated;
the learned attributes must fit together. The hash detects damage, not forgery.

`archive` handles bytes, `values` converts to JSON and back, `checks` tests what was learned,
`scalers` has what comes before a model in a pipeline, and `model` has the schema.
"""

from perpend.persistence.model import load, save

__all__ = ["load", "save"]
