"""Which attention heads does a model need? Results as tables, and pruned models in transformers.

Once this is imported, before transformers or after it, the Auto classes open what `headcount export-model` writes, without
remote code. The import itself loads neither torch nor transformers nor pandas.
"""
import sys
import warnings

AUTO = "transformers.models.auto.modeling_auto"


def results(folder):
    """The results in a folder such as `results/my-model`: a table for each experiment, by its name, such as `ablate-one`.

    A table is a pandas frame, or a list of dicts if pandas is not installed; `headcount.columns` explains its columns. It is read
    on access; results that cannot be read raise ResultError.
    """
    from .tables import Results
    return Results(folder)


def segments(path):
    """The statistics of each segment of a result file, such as `results/my-model/ablate-one.csv`, as a table."""
    from .tables import read_segments
    return read_segments(path)


def check_ablation(model, context_manager, heads, tokens=None):
    """Whether a hook removes the heads that it should, or what it does instead: an AblationCheck, to be printed.

    - `model`: a model of transformers, a HookedTransformer of TransformerLens, or a LanguageModel of nnsight
    - `context_manager`: what sets the hooks, or a function that returns it; for nnsight, a function that is called inside `model.trace`
    - `heads`: names such as `self:2:4`, or pairs such as `(2, 4)`, both counted from 1
    - `tokens`: token identifiers `[rows, positions]`, at least 2 rows of 7; random ones by default

    The logits under the hook are compared with those after the true removal: head h is a term `W_h z_h` of the attention's output
    (Michel et al. 2019, section 2.3), so the columns `W_h` of the output projection are set to zero; or `z_h` is replaced by the
    constant that the hook puts there, such as its mean. Both runs read 6 tokens at once and 3 in cached decoding steps. The tolerance
    is 8 times the rounding error of the removal itself, and at least 16 machine epsilons of the logits; heads whose removal changes
    less than 4 tolerances are undecidable. Other logits are compared with those of
    known mistakes. Raises AblationError for models and heads that cannot be checked; the model is left as it was.
    """
    from .ablation import check_ablation
    return check_ablation(model, context_manager, heads, tokens)


def compare(frame_a, frame_b, *others, **options):
    """The verdict on two runs: is the second worse than the first, no worse, or undecided? Further runs are compared with the first too.

    A run is a pandas frame or a list of dicts with the columns `id` and `score`, or the path of a log or a table. Options are those of
    `headcount compare`: `score="acc"`, `margin=1`, `cluster="page"`, `lower_is_better=True`. Returns a table with a row for each task and
    run; `headcount.CompareError` says what is wrong with the runs.
    """
    from .comparison import compare_runs
    return compare_runs([frame_a, frame_b, *others], options)


def to_onnx(folder, file=None):
    """Writes a model that transformers opens, also one that `headcount export-model` wrote, as an ONNX file, and returns its path.

    By default the file is `model.onnx` in the folder. It takes inputs of any batch and length and returns logits, without a
    key-value cache. Before it is written, its logits in ONNX Runtime are compared with the model's, to 1e-4. Needs transformers,
    onnx and onnxruntime; `headcount.OnnxError` says what is wrong.
    """
    from .onnx import to_onnx as write
    return write(folder, file)


def __getattr__(name):
    if name == "OnnxError":
        from .onnx import OnnxError
        return OnnxError
    if name == "CompareError":
        from .comparison import CompareError
        return CompareError
    if name == "columns":
        import importlib
        return importlib.import_module(".columns", __name__)
    if name == "ResultError":
        from .tables import ResultError
        return ResultError
    if name == "AblationError":
        from .families import AblationError
        return AblationError
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
