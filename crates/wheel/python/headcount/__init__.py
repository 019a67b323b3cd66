"""Which attention heads does a model need? Results as tables, and pruned models in transformers.

Once this is imported, before transformers or after it, the Auto classes open what `headcount export-model` writes, without
remote code. The import itself loads neither torch nor transformers nor pandas.
"""
import sys
import warnings

AUTO = "transformers.models.auto.modeling_auto"


def results(folder):
    """The results in a folder such as `results/my-model`: a table for each experiment, by its name, such as `ablate-one`.

    A table is a pandas frame, or a list of dicts where there is no pandas; `headcount.columns` explains what it has. It is read
    when it is asked for; what cannot be read raises ResultError.
    """
    from .tables import Results
    return Results(folder)


def segments(path):
    """What was measured of each segment of a result file, such as `results/my-model/ablate-one.csv`, as a table."""
    from .tables import read_segments
    return read_segments(path)


def compare(frame_a, frame_b, *others, **options):
    """The verdict on two runs: is the second worse than the first, no worse, or undecided? Further runs are compared with the first too.

    A run is a pandas frame or a list of dicts with the columns `id` and `score`, or the path of a log or a table. Options are those of
    `headcount compare`: `score="acc"`, `margin=1`, `cluster="page"`, `lower_is_better=True`. Returns a table with a row for each task and
    run; `headcount.CompareError` says what is wrong with the runs.
    """
    from .runs import compare_runs
    return compare_runs([frame_a, frame_b, *others], options)


def __getattr__(name):
    if name == "CompareError":
        from .runs import CompareError
        return CompareError
    if name == "columns":
        import importlib
        return importlib.import_module(".columns", __name__)
    if name == "ResultError":
        from .tables import ResultError
        return ResultError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _register():
    """Registers the class of models that lack heads."""
    try:
        from .modeling_headcount import register
        register()
    except Exception as error:  # transformers must stay usable, whatever a later version of it changes
        version, fault = getattr(sys.modules["transformers"], "__version__", ""), f"{type(error).__name__}: {error}"
        warnings.warn(f"transformers {version} cannot open models that lack heads: {fault}")


class _Registering:
    """A finder that registers as soon as the Auto classes have been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != AUTO:
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        if spec:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (execute(module), _register())
        return spec


if AUTO in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _Registering())
