"""Counts the lines of Rust and fails if they exceed `.ci/budget`: product (with doc comments and blanks), tests, benches.

Raising a number in `.ci/budget` is a commit of its own, which says for which capability. Long product files and functions, and
files that use each other in a circle, are printed only.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_FILE, LONG_FUNCTION = 400, 40
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\n(?:pub(?:\(\w+\))? )?mod (\w+);")
FUNCTION = re.compile(r"(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?fn (\w+)")


def test_files() -> set[Path]:
    """Returns the files of modules that are declared with `#[cfg(test)]`."""
    found = set()
    for path in (ROOT / "crates").rglob("*.rs"):
        folder = path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")
        found |= {folder / f"{name}.rs" for name in TEST_MODULE.findall(path.read_text(encoding="utf-8"))}
    return found


def split(path: Path) -> tuple[list[str], list[str]]:
    """Returns the lines of a source file before and from its test module on."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    is_test = path in TEST_FILES or "tests" in path.parts[len(ROOT.parts) :]
    if is_test:
        return [], lines
    start = next((n for n, line in enumerate(lines) if line == "#[cfg(test)]"), len(lines))
    follows = lines[start + 1 : start + 2]
    # `#[cfg(test)]` before a declaration or a function leaves the rest of the file product code
    return (lines[:start], lines[start:]) if follows and follows[0].startswith("mod tests {") else (lines, [])


TEST_FILES = test_files()


def long_functions(lines: list[str]) -> list[tuple[str, int]]:
    found, begin = [], None
    for number, line in enumerate(lines):
        if match := FUNCTION.match(line):
            begin = (number, *match.groups())
        elif begin and line == begin[1] + "}":
            if (length := number - begin[0] + 1) > LONG_FUNCTION:
                found.append((begin[2], length))
            begin = None
    return found


def circles(source: Path) -> list[list[str]]:
    """Returns the groups of modules of a crate that use each other, by `crate::` paths."""
    names = {path.stem: path for path in source.glob("*.rs") if path.stem not in ("lib", "main")}
    names |= {path.name: path for path in source.iterdir() if path.is_dir() and path.name != "bin"}
    uses = {}
    for name, path in names.items():
        files = [path, source / f"{name}.rs"] if path.suffix else [*path.rglob("*.rs"), source / f"{name}.rs"]
        text = "\n".join("\n".join(split(file)[0]) for file in files if file.exists())
        grouped = re.findall(r"crate::\{([^}]*)\}", text)
        used = set(re.findall(r"crate::(\w+)", text)) | {
            word for group in grouped for word in re.findall(r"(?:^|,)\s*(\w+)::", group)
        }
        uses[name] = used & names.keys() - {name}

    def reached(name: str) -> set[str]:
        seen, open_ = set(), [name]
        while open_:
            for other in uses[open_.pop()] - seen:
                seen.add(other)
                open_.append(other)
        return seen

    reach = {name: reached(name) for name in names}
    groups = {frozenset({name} | {o for o in reach[name] if name in reach[o]}) for name in names if name in reach[name]}
    return [sorted(group) for group in groups]


def main() -> int:
    counts = {"product": 0, "tests": 0, "benches": 0}
    files, functions, groups = [], [], []
    for crate in sorted((ROOT / "crates").iterdir()):
        for path in sorted(crate.rglob("*.rs")):
            product, tests = split(path)
            if "benches" in path.parts:
                counts["benches"] += len(product) + len(tests)
                continue
            if crate.name == "test-support" or "examples" in path.parts:
                product, tests = [], product + tests
            counts["product"] += len(product)
            counts["tests"] += len(tests)
            name = path.relative_to(ROOT / "crates")
            if len(product) > LONG_FILE:
                files.append((len(product), f"{name} {len(product)}"))
            functions += [(length, f"{name} {function} {length}") for function, length in long_functions(product)]
        if (crate / "src").is_dir():
            groups += [f"{crate.name}: {', '.join(group)}" for group in circles(crate / "src")]
    allowed = dict(line.split() for line in (ROOT / ".ci/budget").read_text().splitlines() if line)
    for title, found in [("product files", files), ("functions", functions)]:
        limit = LONG_FILE if title == "product files" else LONG_FUNCTION
        print(f"{len(found)} {title} of more than {limit} lines: {'; '.join(text for _, text in sorted(found)[::-1])}")
    print(f"{len(groups)} circles between files: {'; '.join(groups)}")
    over = False
    for kind, lines in counts.items():
        print(f"{kind}: {lines} lines of {allowed[kind]}")
        over |= lines > int(allowed[kind])
    print(f"all: {sum(counts.values())} lines")
    if over:
        print(".ci/budget: too many lines; raise the number in a commit that says for which capability", file=sys.stderr)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
