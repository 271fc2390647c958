"""What matplotlib, networkx, pandas, SciPy and others had when TensorFlow 1 was current.

:mod:`headrace.dropin.package_names` asks here when a program imports one of these packages. A name
``DataFrame.append`` is a member of a class. :data:`NAMES` are added if they are missing;
:data:`CALLS` stand in for a function of today, which they call.

    >>> networkx.to_numpy_matrix(graph)
    >>> matplotlib.pyplot.figure().gca(projection="3d")
    >>> yaml.load(text)
"""

from __future__ import annotations

import functools
import importlib
import pickle
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

__all__ = ["CALLS", "MOVED", "NAMES"]


def _renamed(**names: str) -> Callable[[ModuleType], dict[str, Any]]:
    """Names that a module has under other names now."""

    def find(module: ModuleType) -> dict[str, Any]:
        return {old: getattr(module, new) for old, new in names.items() if hasattr(module, new)}

    return find


def _scipy(module: ModuleType) -> dict[str, Any]:
    """SciPy had NumPy's functions until 1.12."""
    import numpy as np

    names = {n: getattr(np, n) for n in np.__all__ if not isinstance(getattr(np, n), ModuleType)}
    return {**names, "rand": np.random.rand, "randn": np.random.randn, "interp": np.interp}


def _scipy_ndimage(module: ModuleType) -> dict[str, Any]:
    from headrace.dropin import scipy_images

    return {"imread": scipy_images.imread}


def _scipy_signal(module: ModuleType) -> dict[str, Any]:
    from scipy.signal import windows

    return {name: getattr(windows, name) for name in windows.__all__}


def _skimage_measure(module: ModuleType) -> dict[str, Any]:
    metrics: Any = importlib.import_module("skimage.metrics")
    return {
        "compare_mse": metrics.mean_squared_error,
        "compare_nrmse": metrics.normalized_root_mse,
        "compare_psnr": metrics.peak_signal_noise_ratio,
        "compare_ssim": metrics.structural_similarity,
    }


def _pandas(module: ModuleType) -> dict[str, Any]:
    import numpy as np

    pd: Any = module

    def append(self: Any, other: Any, ignore_index: bool = False, **kwargs: Any) -> Any:
        if isinstance(other, dict):
            other = pd.Series(other)
        if isinstance(other, pd.Series) and self.ndim == 2:  # one row
            row = other.to_frame().T.infer_objects()
            other = row.reindex(columns=self.columns.union(other.index, sort=False))
        rest = list(other) if isinstance(other, list | tuple) else [other]
        rest = [pd.DataFrame([r]) if isinstance(r, dict) else r for r in rest]
        return pd.concat([self, *rest], ignore_index=ignore_index, **kwargs)

    def as_matrix(self: Any, columns: object = None) -> Any:
        return (self if columns is None else self[columns]).values

    names: dict[str, Any] = {"np": np}
    for kind in ("DataFrame", "Series"):
        names |= {f"{kind}.append": append, f"{kind}.as_matrix": as_matrix}
        names[f"{kind}.iteritems"] = getattr(pd, kind).items
    return names


def _networkx(module: ModuleType) -> dict[str, Any]:
    import numpy as np
    from scipy import sparse

    nx: Any = module

    def to_numpy_matrix(graph: object, *args: object, **kwargs: object) -> np.ndarray[Any, Any]:
        return np.asmatrix(nx.to_numpy_array(graph, *args, **kwargs))

    def to_scipy_sparse_matrix(graph: object, *args: object, **kwargs: object) -> Any:
        return sparse.csr_matrix(nx.to_scipy_sparse_array(graph, *args, **kwargs))

    def connected_component_subgraphs(graph: Any, copy: bool = True) -> Iterator[Any]:
        for nodes in nx.connected_components(graph):
            part = graph.subgraph(nodes)
            yield part.copy() if copy else part

    def write_gpickle(graph: Any, path: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
        with open(path, "wb") as file:
            pickle.dump(graph, file, protocol)

    def read_gpickle(path: Any) -> Any:
        with open(path, "rb") as file:
            return pickle.load(file)

    return {
        "Graph.node": property(lambda graph: graph.nodes),
        "Graph.nodes_iter": lambda graph, data=False: iter(graph.nodes(data=data)),
        "Graph.edges_iter": lambda graph, *a, **k: iter(graph.edges(*a, **k)),
        "connected_component_subgraphs": connected_component_subgraphs,
        "from_numpy_matrix": nx.from_numpy_array,
        "from_scipy_sparse_matrix": nx.from_scipy_sparse_array,
        "read_gpickle": read_gpickle,
        "to_numpy_matrix": to_numpy_matrix,
        "to_scipy_sparse_matrix": to_scipy_sparse_matrix,
        "write_gpickle": write_gpickle,
    }


def _as_matrix(own: Callable[..., Any]) -> Callable[..., Any]:
    """networkx gives sparse arrays now, the ``*`` of which is another."""

    @functools.wraps(own)
    def function(*args: Any, **kwargs: Any) -> Any:
        from scipy import sparse

        return sparse.csr_matrix(own(*args, **kwargs))

    return function


def _elements(module: ModuleType) -> dict[str, Any]:
    return {
        "Element.getchildren": lambda element: list(element),
        "Element.getiterator": lambda element, tag=None: element.iter(tag),
    }


def _pyplot(module: ModuleType) -> dict[str, Any]:
    return {"hold": lambda b=None: None, "ishold": lambda: True}


def _axes(module: ModuleType) -> dict[str, Any]:
    return {
        "Axes.hold": lambda axes, b=None: None,
        "Axes.set_axis_bgcolor": lambda axes, color: axes.set_facecolor(color),
    }


def _canvas(module: ModuleType) -> dict[str, Any]:
    def tostring_rgb(self: Any) -> bytes:
        import numpy as np

        return np.asarray(self.buffer_rgba())[..., :3].tobytes()

    return {"FigureCanvasAgg.tostring_rgb": tostring_rgb}


def _color_maps(module: ModuleType) -> dict[str, Any]:
    def get_cmap(name: str | None = None, lut: int | None = None) -> Any:
        from matplotlib import pyplot

        return pyplot.get_cmap(name, lut)

    return {"get_cmap": get_cmap}


def _gca(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def gca(figure: Any, **kwargs: Any) -> Any:
        return figure.add_subplot(**kwargs) if kwargs else own(figure)

    return gca


def _use_style(own: Callable[..., Any]) -> Callable[..., Any]:
    """Seaborn's styles have a version in their names now."""

    def today(style: object) -> Any:
        if isinstance(style, list | tuple):
            return [today(s) for s in style]
        if isinstance(style, str) and style.startswith("seaborn") and "v0_8" not in style:
            return style.replace("seaborn", "seaborn-v0_8", 1)
        return style

    @functools.wraps(own)
    def use(style: object) -> None:
        own(today(style))

    return use


def _load_yaml(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def load(stream: object, Loader: object = None) -> Any:
        full: Any = importlib.import_module("yaml")
        return own(stream, full.FullLoader if Loader is None else Loader)

    return load


#: Module -> the names that it had.
NAMES: dict[str, Callable[[ModuleType], dict[str, Any]]] = {
    "matplotlib.axes": _axes,
    "matplotlib.backends.backend_agg": _canvas,
    "matplotlib.cm": _color_maps,
    "matplotlib.pyplot": _pyplot,
    "networkx": _networkx,
    "pandas": _pandas,
    "scipy": _scipy,
    "scipy.integrate": _renamed(
        cumtrapz="cumulative_trapezoid", simps="simpson", trapz="trapezoid"
    ),
    "scipy.ndimage": _scipy_ndimage,
    "scipy.signal": _scipy_signal,
    "skimage.measure": _skimage_measure,
    "xml.etree.ElementTree": _elements,
}
#: Module -> functions that take the calls of then.
CALLS: dict[str, dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "matplotlib.figure": {"Figure.gca": _gca},
    "matplotlib.style": {"use": _use_style},
    "networkx": dict.fromkeys(
        ("adjacency_matrix", "laplacian_matrix", "normalized_laplacian_matrix"), _as_matrix
    ),
    "yaml": {"load": _load_yaml},
}
#: Modules that are no more -> where their functions are.
MOVED = {
    "numpy.lib.arraypad": "numpy",
    "numpy.lib.arraysetops": "numpy",
    "numpy.lib.function_base": "numpy",
    "numpy.lib.histograms": "numpy",
    "numpy.lib.index_tricks": "numpy",
    "numpy.lib.nanfunctions": "numpy",
    "numpy.lib.polynomial": "numpy",
    "numpy.lib.shape_base": "numpy",
    "numpy.lib.twodim_base": "numpy",
    "numpy.lib.type_check": "numpy",
    "numpy.linalg.linalg": "numpy.linalg",
    "numpy.testing.utils": "numpy.testing",
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg",
    "scipy.sparse.linalg.eigen.lobpcg": "scipy.sparse.linalg",
    "sklearn.cross_validation": "sklearn.model_selection",
    "sklearn.externals.joblib": "joblib",
    "sklearn.grid_search": "sklearn.model_selection",
}
