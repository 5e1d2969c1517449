"""Commands that cannot be understood, or contradict themselves."""

from cli.bad_inputs._case import Case, piped, usage
from cli.bad_inputs.text_files import GOOD

FIT = "fit a.csv -o out "
COMMANDS = ("demo", "inspect", "fit", "apply", "compare", "report", "reproduce", "doctor")

UNKNOWN = [
    usage("unknown command", "fot", "No such command"),
    usage("a file instead of a command", "scan.csv", "No such command"),
    usage("option before the command", "--json fit a.csv -o out", "No such option"),
    *(usage(f"{name} --bogus", f"{name} --bogus", "No such option") for name in COMMANDS),
    *(usage(f"{name} alone", name, "Missing argument") for name in ("inspect", "fit", "compare")),
    usage("apply alone", "apply", "Missing argument"),
    usage("apply without a file", "apply model.npz -o out", "Missing argument"),
    usage("report alone", "report", "Missing argument"),
    usage("reproduce alone", "reproduce", "Missing argument"),
    usage("reproduce nothing known", "reproduce magic", "magic"),
    usage("doctor and a word", "doctor please", "unexpected extra argument"),
    usage("two files", "inspect a.csv b.csv", "unexpected extra argument"),
    usage("fit without a folder", "fit a.csv", "Missing option"),
    usage("apply without a folder", "apply m.npz a.csv", "Missing option"),
    usage("an option without its value", "fit a.csv -o", "requires an argument"),
]

VALUES = [
    usage("method", FIT + "--method magic", "no method 'magic'"),
    usage("method of labels", FIT + "--method pcp", "PCP labels rows and finds no subspace"),
    usage("affine", FIT + "--affine maybe", "--affine"),
    usage("codimension a word", FIT + "--codimension two", "neither auto nor a whole number"),
    usage("codimension negative", FIT + "--codimension -1", "whole number >= 0"),
    usage("codimension a fraction", FIT + "--codimension 1.5", "whole number >= 0"),
    usage("no starts", FIT + "--starts 0", "whole number >= 1"),
    usage("starts a word", FIT + "--starts many", "whole number >= 1"),
    usage("no iterations", FIT + "--max-iter 0", "whole number >= 1"),
    usage("threshold negative", FIT + "--threshold -1", "number >= 0"),
    usage("threshold NaN", FIT + "--threshold nan", "number >= 0"),
    usage("threshold infinite", FIT + "--threshold inf", "number >= 0"),
    usage("contamination above 1", FIT + "--contamination 1.5", "share of outliers"),
    usage("contamination in percent", FIT + "--contamination 30%", "share of outliers"),
    usage("contamination 1", FIT + "--contamination 1", "share of outliers"),
    usage("nan", FIT + "--nan zero", "--nan"),
    usage("seed negative", FIT + "--seed -1", "--seed"),
    usage("seed too large", FIT + "--seed 99999999999", "--seed"),
    usage("seed a word", FIT + "--seed lucky", "--seed"),
    usage("columns empty", FIT + "--columns a,,b", "empty name"),
    usage("columns twice", FIT + "--columns a,b,a", "named twice"),
    usage("memory a word", FIT + "--memory-limit lots", "such as 500MB"),
    usage("memory negative", FIT + "--memory-limit -1GB", "such as 500MB"),
    usage("memory nothing", FIT + "--memory-limit 0", "such as 500MB"),
    usage("demo seed", "demo --seed -1", "--seed"),
    usage("a flag with a value", FIT + "--force=yes", "does not take a value"),
    usage("apply threshold", "apply m.npz a.csv -o out --threshold far", "number >= 0"),
    usage("compare codimension", "compare a.csv --codimension x", "whole number"),
]


def contradiction(what: str, options: str, says: str) -> Case:
    """Options that are fine one by one; the file is good."""
    args = ("fit", "x.csv", "-o", "out", "--no-report", *options.split())
    return Case(
        f"usage: {what}",
        args,
        2,
        says,
        lambda path: path.write_text(GOOD, encoding="utf-8"),
        "x.csv",
    )


TOGETHER = [
    contradiction("two thresholds", "--threshold 1 --contamination 0.2", "Leave one of them out"),
    contradiction("no codimension", "--method RSGM", "needs the codimension"),
    contradiction("two sizes", "--codimension 1 --n-components 2", "Leave one out"),
    contradiction("codimension auto", "--method RSGM --codimension auto", "needs the codimension"),
    contradiction("starts of another", "--method DPCPIRLS --codimension 1 --starts 9", "--starts"),
    contradiction("refined", "--method RecursiveDPCP --codimension 1 --no-refine", "--no-refine"),
    usage(
        "columns a model needs", "apply m.npz a.csv -o out --nan drop-cols", "Use --nan drop-rows"
    ),
    usage("draw and compute", "reproduce theory --redraw --force", "--redraw"),
]

STDIN = [
    piped("nothing", b"", "standard input: is empty"),
    piped("a sentence", b"hello world\n", "standard input"),
    piped("a short row", b"a,b\n1,2\n3\n", "standard input: line 3"),
    piped("binary", bytes(range(256)), "standard input"),
    piped("one row", b"1,2,3\n", "standard input: has only one row"),
    piped(
        "a gap", b"a,b\n1,2\n3,\n", "standard input: 1 value is missing, NaN or infinite, in 1 row"
    ),
    piped("another format", b"a,b\n1,2\n", "standard input: does not begin", "--format", "npy"),
    piped("unknown format", b"a,b\n1,2\n", "no format 'xls'", "--format", "xls", code=2),
    piped("a path as a format", b"1,2\n", "no format '../x'", "--format", "../x", code=2),
    piped("too much", b"1,2\n" * 500, "standard input: more than", "--memory-limit", "1kB", code=5),
    piped("an archive, cut", b"PK\x03\x04" + b"\0" * 50, "standard input", "--format", "npz"),
    piped("a variable", b"1,2\n3,5\n", "Leave it out", "--variable", "a"),
]

CASES = [*UNKNOWN, *VALUES, *TOGETHER, *STDIN]
