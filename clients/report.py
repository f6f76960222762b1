#!/usr/bin/env python3
"""Compares the cases of programs on heap and on memory-optimized tables; README.md says what the
list of known ones means.
"""

import argparse
import collections
import difflib
import json
import pathlib
import re
import sys
import tomllib
import xml.etree.ElementTree

Case = collections.namedtuple("Case", "status message result", defaults=("", ""))


def read_json(path):
    """One object a line: case, status, message, and what the two sides must have in common."""
    for line in path.read_text().splitlines():
        found = json.loads(line)
        yield found["case"], Case(found["status"], found.get("message", ""), found.get("result", ""))


def read_junit(path):
    """JUnit's form, as pytest and Maven write it."""
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        # SQLAlchemy's plugin puts driver and version of the server into names.
        name = re.sub(r"_postgresql\+\w+?(_\d+)+(?=\.)", "", f"{case.get('classname')}.{case.get('name')}")
        for status, tags in (("failed", ("failure", "error")), ("skipped", ("skipped",))):
            parts = [part for part in case if part.tag in tags]
            if parts:
                message = "\n".join(f"{part.get('message', '')}\n{part.text or ''}" for part in parts)
                yield name, Case(status, message)
                break
        else:
            yield name, Case("passed")


def read_go(path):
    """What `go test -json` tells, an event a line."""
    output, words = collections.defaultdict(str), {"pass": "passed", "fail": "failed", "skip": "skipped"}
    for line in path.read_text().splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        # Names of subtests can hold temporary directories.
        name = re.sub(r"/tmp/\S*?/\d+/", "", f"{event.get('Package')}.{event.get('Test')}")
        if event.get("Action") == "output":
            output[name] += event["Output"]
        elif "Test" in event and event["Action"] in words:
            yield name, Case(words[event["Action"]], output[name])


READERS = {".jsonl": read_json, ".xml": read_junit, ".go": read_go}


def cases(directory):
    """All cases of one side. A case that is there twice has failed if it failed once."""
    found = {}
    for path in sorted(directory.glob("cases.*")):
        for name, case in READERS[path.suffix](path):
            if name not in found or found[name].status != "failed":
                found[name] = case
    return found


def as_on_heap(heap, mot):
    """The case on memory-optimized tables, failed if its result is not heap's."""
    if mot is None:
        return Case("missing", "the case was not run")
    if mot.status != "passed" or mot.result == heap.result:
        return mot
    lines = difflib.unified_diff(heap.result.splitlines(), mot.result.splitlines(), "heap", "mot", lineterm="", n=0)
    return Case("failed", "other results than on heap:\n" + "\n".join(lines))


class Known:
    """An entry of the list: cases of a program that fail on memory-optimized tables, for a
    reason that holds.
    """

    def __init__(self, entry):
        self.program = entry["program"]
        self.reason = entry["reason"]
        self.error = re.compile(entry["error"])
        self.cases = set(entry["cases"])

    def explains(self, program, name, case):
        return program == self.program and name in self.cases and self.error.search(case.message)


def least(program, form):
    """How many cases must pass on heap: a program that ends early is not a program that passes."""
    script = pathlib.Path(__file__).parent / program / "program.sh"
    found = re.search(rf"^least_{form}=(\d+)$", script.read_text(), re.MULTILINE)
    return int(found.group(1)) if found else 1


def compare(program, results, known):
    """The program's line of the table, and what is wrong."""
    heap, mot = (cases(results / program / side) for side in ("heap", "mot"))
    passed = {name: as_on_heap(case, mot.get(name)) for name, case in heap.items() if case.status == "passed"}
    wrong, listed = [], 0
    if len(passed) < least(program, results.name):
        wrong.append((program, Case("failed", f"only {len(passed)} cases pass on heap: see {results / program}/heap/log")))
    for name, case in passed.items():
        if case.status != "passed":
            if any(entry.explains(program, name, case) for entry in known):
                listed += 1
            else:
                wrong.append((name, case))
    for entry in known:
        if entry.program == program:
            for name in sorted(entry.cases & passed.keys()):
                if passed[name].status == "passed":
                    wrong.append((name, Case("passed", f"listed, but it passes: {entry.reason}")))
    both = sum(case.status == "passed" for case in passed.values())
    return (program, len(heap), len(passed), both, listed, len(wrong)), wrong


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--known", type=pathlib.Path, required=True)
    options.add_argument("--results", type=pathlib.Path, required=True)
    options.add_argument("programs", nargs="+")
    options = options.parse_args()
    known = [Known(entry) for entry in tomllib.loads(options.known.read_text())["difference"]]
    lines, all_wrong = [], []
    for program in options.programs:
        line, wrong = compare(program, options.results, known)
        lines.append(line)
        all_wrong += [(program, *each) for each in wrong]
    with open(options.results / "differences.txt", "w") as details:
        for program, name, case in all_wrong:
            details.write(f"=== {program}: {name}: {case.status}\n{case.message.rstrip()}\n\n")
    heading = ("program", "cases", "pass on heap", "of these on MOT", "listed", "different")
    widths = [max(len(str(line[i])) for line in [heading, *lines]) for i in range(len(heading))]
    for line in [heading, *lines]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(line, widths)).rstrip())
    for program, name, case in all_wrong[:40]:
        message = case.message.strip().splitlines() or [""]
        print(f"{program}: {name}: {case.status}: {message[-1][:160]}")
    if all_wrong:
        print(f"{len(all_wrong)} cases differ: {options.results}/differences.txt has them", file=sys.stderr)
    return 1 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
