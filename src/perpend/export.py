r"""A fitted model as an ONNX graph, for serving without Python.

The graph is what `score_samples` and `predict` compute, row by row. For a linear subspace

.. math:: \text{distance} = \|N \hat x\| \, \|x\|, \qquad \hat x = x / \|x\|,

and the labels compare :math:`\|N \hat x\|` or the distance with the threshold, as the model does.
Rows are scaled by their largest entry before anything is squared, so that nothing over- or
underflows, and zero rows are on the subspace. An affine subspace is at
:math:`\|N (x - \text{location})\|`, in double precision as in the model: a cloud may be far from
the origin. With ``outliers="both"`` the labels compare :math:`\sqrt q` of `perpend._spread`, the
norm of a linear map of the centred rows, in double precision as well.
"""

import json
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import linalg

from perpend import __version__
from perpend._files import write
from perpend._pipelines import Scaled, opened
from perpend._spread import Spread
from perpend._typing import Array
from perpend.estimator import SubspaceEstimator
from perpend.exceptions import InputError, MissingExtraError
from perpend.rows.kinds import to_numpy
from perpend.rows.span import few_components

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

__all__ = ["to_onnx"]

OPSET, IR_VERSION = 18, 8  # of the same release; every runtime since early 2023 reads them
MAX_WEIGHT_BYTES = 2**31 - 2**20  # a protobuf message ends at 2 GiB


def to_onnx(
    model: Any,
    path: str | PathLike[str] | None = None,
    *,
    dtype: Any = None,
) -> "ModelProto":
    """Return a fitted model as an ONNX graph, and write it to a file if there is a path.

    The graph has one input, ``X`` of shape (n, n_features) with any n, and three outputs of
    shape (n,): ``label`` (int64, +1 for inliers and -1 for outliers), ``distance`` (Euclidean, in
    the data's own units) and ``score`` (`score_samples`: minus the distance that decides the
    labels).

    Parameters
    ----------
    model : a fitted method of perpend, or a pipeline of scalers and a method
        Of a pipeline the graph takes rows in the data's own units, and distances are those of the
        scaled rows, as in the pipeline. `perpend.equations` lists the scalers.
    path : str or path, optional
        The file, usually ``.onnx``. An existing file is replaced once the new one is complete.
    dtype : {float32, float64}, optional
        Of X, distance and score; by default that of the data the model was fitted on. Linear models
        compute in it, affine ones in double precision.

    Returns
    -------
    onnx.ModelProto
        Its metadata has the version of perpend, the method, codimension, confidence and threshold,
        and the names of the columns if the model has them (as JSON).

    Raises
    ------
    MissingExtraError
        If the package onnx is not installed: ``pip install 'perpend[onnx]'``.

    Notes
    -----
    The estimator refuses rows with NaN or infinite entries. A graph cannot refuse them: it labels
    them -1, with NaN as their distance.

    Examples
    --------
    >>> from perpend import DPCP
    >>> from perpend.datasets import make_subspace
    >>> from perpend.export import to_onnx
    >>> X = make_subspace(60, 40, n_features=5, codimension=2, random_state=0).X
    >>> graph = to_onnx(DPCP(random_state=1).fit(X)).graph
    >>> [output.name for output in graph.output]
    ['label', 'distance', 'score']
    """
    _onnx()
    scaled = opened(model)
    precision = np.dtype(to_numpy(scaled.model.normals_).dtype if dtype is None else dtype)
    if precision not in (np.float32, np.float64):
        raise InputError(f"dtype={dtype!r}; expected float32 or float64.")
    graph = _Graph(precision)
    if scaled.is_pipeline:
        graph.scale(scaled)
    proto = _proto(scaled.model, graph, scaled.names)
    if path is not None:
        write(path, proto.SerializeToString())
    return proto


class _Graph:
    """Nodes and weights as they are added; every call returns the name of its result."""

    def __init__(self, dtype: Any) -> None:
        self.onnx, self.dtype = _onnx(), np.dtype(dtype)
        self.rows = "X"  # what the model sees
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, TensorProto] = {}
        self.n_bytes = 0

    def node(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add an operation."""
        name = out or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], name, **attributes))
        return name

    def weight(self, name: str, values: Any, dtype: Any) -> str:
        """Add a constant."""
        array = np.ascontiguousarray(values, dtype=dtype)
        name = f"{name}_{array.dtype}"
        if name not in self.weights:
            self.n_bytes += array.nbytes
            if self.n_bytes > MAX_WEIGHT_BYTES:
                raise InputError(
                    f"The model has more than {MAX_WEIGHT_BYTES} bytes of numbers, too many for "
                    "one ONNX file. Export it with dtype=float32."
                )
            self.weights[name] = self.onnx.numpy_helper.from_array(array, name)
        return name

    def cast(self, values: str, dtype: Any) -> str:
        """Convert to another precision."""
        to = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", values, to=to)

    def scale(self, scaled: Scaled) -> None:
        """Let the model see (X - centre) / scale, computed in double precision."""
        centre = self.weight("centre", scaled.centre, float)
        centred = self.node("Sub", self.cast("X", float), centre)
        exact = self.node("Div", centred, self.weight("scale", scaled.scale, float))
        self.rows = self.cast(exact, self.dtype)

    def norm(self, rows: str, dtype: Any) -> tuple[str, str]:
        """Return ||r|| and r / ||r||, of shapes (n, 1) and (n, k); zero rows stay zero."""
        last = self.weight("last_axis", [1], np.int64)
        nothing, one = self.weight("zero", 0, dtype), self.weight("one", 1, dtype)

        def over(values: str, size: str) -> str:
            """Divide by the size if it is not zero."""
            safe = self.node("Where", self.node("Greater", size, nothing), size, one)
            return self.node("Div", values, safe)

        largest = self.node("ReduceMax", self.node("Abs", rows), last, keepdims=1)
        scaled = over(rows, largest)
        # onnxruntime adds up ReduceSumSquare one by one, and ReduceSum with far less rounding.
        squares = self.node("ReduceSum", self.node("Mul", scaled, scaled), last, keepdims=1)
        length = self.node("Sqrt", squares)
        return self.node("Mul", largest, length), over(scaled, length)

    def heights(self, rows: str, normals: Array, dtype: Any) -> str:
        """Add a vector for each row whose norm is its distance, by the cheaper of two ways.

        N x has a coordinate for every normal; x - U U.T x is cheaper if there are few components U.
        """
        c, D = normals.shape
        if c == D:
            return rows
        U = few_components(normals.T) if c else None
        if U is None:  # c = 0: a normal of length zero, so all distances are zero and none is empty
            N = normals.T if c else np.zeros((D, 1))
            return self.node("MatMul", rows, self.weight("normals", N, dtype))
        inside = self.node("MatMul", rows, self.weight("components", U, dtype))
        shadow = self.node("MatMul", inside, self.weight("components_T", U.T, dtype))
        return self.node("Sub", rows, shadow)

    def deviations(self, spread: Spread) -> str:
        """Add sqrt(q): the norm of (x - mean) A R^-T, joined by what is orthogonal to the axes A.

        R R^T is the scatter along the axes. Off a sure subspace it may be more: see `squares`.
        """
        double, axes = np.dtype(float), spread.axes
        own = axes @ linalg.solve_triangular(spread.root, np.eye(len(spread.root)), lower=True).T
        mean = self.weight("middle", spread.mean, double)
        centred = self.node("Sub", self.cast(self.rows, double), mean)
        parts = self.node("MatMul", centred, self.weight("deviations", own, double))
        if axes.shape[1] < len(axes):
            inside = self.node("MatMul", centred, self.weight("axes", axes, double))
            shadow = self.node("MatMul", inside, self.weight("axes_T", axes.T, double))
            rest = self.node("Sub", centred, shadow)
            rest = self.node("Div", rest, self.weight("noise", spread.noise, double))
            parts = self.node("Concat", parts, rest, axis=1)
        within = self.norm(parts, double)[0]
        if not len(spread.normals):
            return self.cast(within, self.dtype)
        rows = self.cast(self.rows, double)
        centred = self.node("Sub", rows, self.weight("location", spread.location, double))
        if spread.relative:
            centred = self.norm(rows, double)[1]
        steep = spread.normals.T * np.sqrt(spread.per_distance)
        off = self.node("MatMul", centred, self.weight("relations", steep, double))
        largest = self.node("Max", within, self.norm(off, double)[0])
        return self.cast(largest, self.dtype)


def _proto(model: SubspaceEstimator, graph: _Graph, names: Array | None) -> "ModelProto":
    onnx, helper = graph.onnx, graph.onnx.helper
    distance, deciding = _distances(model, graph)
    if (spread := model._both) is not None:
        deciding = graph.deviations(spread)
    limit = graph.weight("threshold", model.threshold_, graph.dtype)
    labels = [graph.weight(name, v, np.int64) for name, v in (("in", 1), ("out", -1))]
    last = graph.weight("last_axis", [1], np.int64)
    kind = helper.np_dtype_to_tensor_dtype(graph.dtype)
    is_near = graph.node("LessOrEqual", deciding, limit)
    outputs = {
        "label": (graph.node("Where", is_near, *labels), onnx.TensorProto.INT64),
        "distance": (distance, kind),
        "score": (graph.node("Neg", deciding), kind),
    }
    for name, (values, _) in outputs.items():
        graph.node("Squeeze", values, last, out=name)
    describe = helper.make_tensor_value_info
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            type(model).__name__,
            [describe("X", kind, ["n", model.n_features_in_])],
            [describe(name, kind, ["n"]) for name, (_, kind) in outputs.items()],
            list(graph.weights.values()),
        ),
        producer_name="perpend",
        producer_version=__version__,
        doc_string=model.summary(),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    helper.set_model_props(proto, _metadata(model, names))
    onnx.checker.check_model(proto, full_check=True)
    return proto


def _distances(model: SubspaceEstimator, graph: _Graph) -> tuple[str, str]:
    """Add the Euclidean distance, and the one that decides: relative if rows are normalised."""
    normals, double = to_numpy(model.normals_).astype(float), np.dtype(float)
    if model.affine_:  # ||N (x - location)||
        location = graph.weight("location", to_numpy(model.location_), double)
        centred = graph.node("Sub", graph.cast(graph.rows, double), location)
        exact, _ = graph.norm(graph.heights(centred, normals, double), double)
        distance = graph.cast(exact, graph.dtype)
        return distance, distance
    length, unit = graph.norm(graph.rows, graph.dtype)
    relative, _ = graph.norm(graph.heights(unit, normals, graph.dtype), graph.dtype)
    distance = graph.node("Mul", relative, length)
    return distance, relative if model.normalize else distance


def _metadata(model: SubspaceEstimator, names: Array | None) -> dict[str, str]:
    found = {
        "perpend_version": __version__,
        "method": type(model).__name__,
        "codimension": str(model.codimension_),
        "n_components": str(model.n_components_),
        "confidence": repr(float(model.confidence_)),
        "threshold": repr(float(model.threshold_)),
        "affine": json.dumps(bool(model.affine_)),
        "normalize": json.dumps(bool(model.normalize)),
        "outliers": model.outliers,
    }
    if names is not None:
        found["feature_names"] = json.dumps([str(name) for name in names])
    return found


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError(
            "Exporting a model needs onnx, which is not installed. Run: pip install 'perpend[onnx]'"
        ) from error
    return onnx
