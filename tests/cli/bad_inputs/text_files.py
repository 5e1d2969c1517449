"""Text tables that are none, or not of numbers."""

from cli.bad_inputs._case import APPLY, bad

MANY = "\n".join(",".join(f"{i * j % 7 + i / j:.3f}" for j in range(1, 1201)) for i in range(4))
HEAD = "a,b,c\n"
GOOD = HEAD + "1,2,3\n4,5,6\n7,8,10\n"
WIDE = ",".join(f"c{i}" for i in range(30)) + "\n" + ",".join("1" for _ in range(30)) + "\n"

CSV = [
    bad("empty", "x.csv", b"", "the file is empty"),
    bad("blank lines", "x.csv", "\n\n\n", "x.csv"),
    bad("a byte-order mark", "x.csv", b"\xef\xbb\xbf", "x.csv"),
    bad("only a header", "x.csv", HEAD, "x.csv"),
    bad("a header and one row", "x.csv", HEAD + "1,2,3\n", "has only one row"),
    bad("words only", "x.csv", "one,two\nthree,four\nfive,six\n", "x.csv"),
    bad("a sentence", "x.csv", "This is not a table.\n", "x.csv"),
    bad("a page of HTML", "x.csv", "<html><body>404</body></html>\n", "x.csv"),
    bad("a row too short", "x.csv", GOOD + "1,2\n", "line 5"),
    bad("a row too long", "x.csv", GOOD + "1,2,3,4\n", "line 5"),
    bad("cut in a row", "x.csv", GOOD[:-6], "line 4"),
    bad("a word among numbers", "x.csv", GOOD + "1,gone,3\n", '"gone"'),
    bad("n/a", "x.csv", GOOD + "1,n/a,3\n", 'row 4, column "b"'),
    bad("a unit", "x.csv", GOOD + "1,2 km,3\n", '"2 km"'),
    bad("a hexadecimal number", "x.csv", GOOD + "1,0x1f,3\n", '"0x1f"'),
    bad("decimal commas", "x.csv", "a;b\n1,5;2,5\n3,5;4,25\n", "x.csv"),
    bad("a formula", "x.csv", GOOD + "1,=A1+1,3\n", '"=A1+1"'),
    bad("an empty cell", "x.csv", GOOD + "1,,3\n", 'row 4, column "b"'),
    bad("NaN", "x.csv", GOOD + "1,NaN,3\n", 'row 4, column "b"'),
    bad("infinity", "x.csv", GOOD + "1,-inf,3\n", 'row 4, column "b"'),
    bad("overflow", "x.csv", GOOD + "1,1e999,3\n", 'row 4, column "b"'),
    bad("zeros", "x.csv", HEAD + "0,0,0\n" * 5, "zero"),
    bad("NUL bytes", "x.csv", b"a,b\n1,2\n\x00\x00,3\n", "x.csv"),
    bad("UTF-16", "x.csv", (GOOD + "1,gone,3\n").encode("utf-16"), '"gone"'),
    bad("Latin-1", "x.csv", (GOOD + "1,größe,3\n").encode("latin-1"), '"größe"'),
    bad("an open quotation mark", "x.csv", 'a,b\n"1,2\n3,4\n', "x.csv"),
    bad("an image", "x.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "x.csv"),
    bad("a spreadsheet", "x.csv", b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)), "x.csv"),
    bad("a cell without end", "x.csv", "a,b\n1," + "9" * 300_000 + "x\n", "x.csv"),
    bad("a variable", "x.csv", GOOD, "Leave it out", "--variable", "a"),
    bad("no such column", "x.csv", GOOD, 'no column "z"', "--columns", "a,z"),
    bad("a column of words", "x.csv", "a,b,t\n1,2,x\n3,5,y\n", '"x"', "--columns", "a,t"),
    bad("columns of one name", "x.csv", "a,a\n1,2\n3,5\n", 'columns "a"', "--columns", "a"),
    bad("a terminal's escape", "x.csv", GOOD + "1,\x1b[31mred,3\n", "\\x1b[31mred"),
    bad("no room for a fit", "x.csv", MANY, "Raise it to", "--memory-limit", "1kB", code=5),
    bad("a larger codimension", "x.csv", GOOD, "larger than the number", "--codimension", "9"),
    bad("a device", "x.csv", GOOD, "torch", "--device", "cuda", code=6, without="torch"),
    bad("another format", "x.csv", GOOD, "does not begin like", "--format", "npy"),
    bad("unknown format", "x.csv", GOOD, "no format 'xls'", "--format", "xls", code=2),
    bad(
        "columns of others",
        "x.csv",
        GOOD,
        'no column "B1"',
        command=("apply", "named.npz", *APPLY[2:]),
    ),
    bad("inspected", "x.csv", GOOD + "1,2\n", "line 5", command=("inspect", "{}")),
    bad("compared", "x.csv", GOOD + "1,,3\n", "--nan drop-rows", command=("compare", "{}")),
]

TSV = [
    bad("empty", "x.tsv", b"", "the file is empty"),
    bad("a row too short", "x.tsv", "a\tb\n1\t2\n3\n", "line 3"),
    bad("a word", "x.tsv", "a\tb\n1\t2\n3\tx\n", '"x"'),
    bad("NaN", "x.tsv", "a\tb\n1\t2\nnan\t3\n", 'row 2, column "a"'),
]

PLAIN = [
    bad("empty", "x.txt", b"", "the file is empty"),
    bad("remarks only", "x.txt", "# a b\n# 1 2\n", "no rows in this table"),
    bad("a sentence", "x.txt", "This is not a table.\n", "only a header"),
    bad("a row too short", "x.txt", "a b\n1 2\n3\n", "line 3"),
    bad("cut in a row", "x.txt", "1 2 3\n4 5 6\n7 8", "line 3 has 2 cells"),
    bad("a word among numbers", "x.txt", "a b\n1 2\n3 gone\n", '"gone"'),
    bad("n/a", "x.txt", "a b\n1 2\n3 n/a\n", 'row 2, column "b"'),
    bad("NaN", "x.txt", "a b\n1 2\nnan 3\n", 'row 2, column "a"'),
    bad("decimal commas", "x.txt", "a\tb\n1,5\t2,5\n3,5\t4,25\n", "add --decimal="),
    bad("UTF-16", "x.txt", (GOOD + "1,gone,3\n").encode("utf-16"), '"gone"'),
    bad("a licence", "x.txt", "Copyright (c)\n\nAll rights are reserved.\n", "line 3 has 4 cells"),
    bad("empty", "x.xyz", b"", "the file is empty"),
    bad("two columns", "x.xyz", "1 2\n3 4\n5 6\n", "a point has x, y and z"),
    bad("a molecule", "x.xyz", "3\nwater\nO 0 0 0\nH 0 0 1\nH 0 1 0\n", "a point has x, y and z"),
    bad("one point", "x.xyz", "1 2 3\n", "has only one point"),
    bad("points that are nowhere", "x.xyz", "nan nan nan\n" * 5, "all of its 5 points"),
    bad("cut in a row", "x.xyz", "1 2 3\n4 5 6\n7 8", "line 3 has 2 cells"),
    bad("a word for a place", "x.xyz", "1 2 3\n4 5 wall\n", 'column "z": cannot read "wall"'),
    bad("no such column", "x.xyz", "1 2 3\n4 5 6\n", "has no column 4", "--columns", "x,4"),
    bad("binary", "x.xyz", bytes(range(256)), "is not text but binary"),
]

CASES = [*CSV, *TSV, *PLAIN]
