"""Which attention heads does a model need? Results as tables, and pruned models in transformers.

`import headcount` loads neither torch nor transformers nor pandas. Once it is imported, before transformers or after it, the Auto
classes of transformers open the folders of `headcount export-model`, without remote code.
"""
import sys
import warnings

AUTO = "transformers.models.auto.modeling_auto"


def results(folder):
    """The results in a folder such as `results/my-model`: a table for each experiment, by its name, such as `ablate-one`.

    A table is a pandas frame, or a list of dicts where there is no pandas. It is read when it is asked for.
    """
    from .tables import Results
    return Results(folder)


def segments(path):
    """What was measured of each segment of a result file, such as `results/my-model/ablate-one.csv`, as a table."""
    from .tables import read_segments
    return read_segments(path)


def __getattr__(name):
    if name == "ResultError":
        from .tables import ResultError
        return ResultError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _register():
    """Registers the class of models that lack heads."""
    try:
        from .modeling_headcount import register
        register()
    except Exception as error:  # whatever a later version of transformers does, it must stay usable
        version = getattr(sys.modules["transformers"], "__version__", "of unknown version")
        warnings.warn(f"transformers {version} cannot open models that lack heads: {type(error).__name__}: {error}")


class _Registering:
    """A finder that registers as soon as the Auto classes have been imported."""

    def find_spec(self, name, path=None, target=None):
        if name != AUTO:
            return None
        from importlib.util import find_spec
        sys.meta_path.remove(self)
        spec = find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_register(module):
            execute(module)
            _register()

        spec.loader.exec_module = execute_and_register
        return spec


if AUTO in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _Registering())
