"""What fails a run of clients: python3 clients/test_report.py."""

import json
import pathlib
import tempfile
import unittest

import report

KNOWN = {"program": "knex", "reason": "not yet", "error": "is not supported", "cases": ["b"]}


class Compare(unittest.TestCase):
    def wrong(self, heap, mot, known=(KNOWN,)):
        """Names of what is wrong, of cases given as name: (status, message, result)."""
        with tempfile.TemporaryDirectory() as directory:
            results = pathlib.Path(directory)
            for side, cases in (("heap", heap), ("mot", mot)):
                (results / "knex" / side).mkdir(parents=True)
                lines = [json.dumps({"case": name, **dict(zip(("status", "message", "result"), case))}) for name, case in cases.items()]
                (results / "knex" / side / "cases.jsonl").write_text("\n".join(lines))
            line, wrong = report.compare("knex", results, [report.Known(entry) for entry in known])
        self.assertEqual(line[-1], len(wrong))
        return [name for name, _ in wrong]

    def test_the_same(self):
        cases = {"a": ("passed", "", "1"), "c": ("failed", "on both"), "d": ("skipped", "")}
        self.assertEqual(self.wrong(cases, cases), [])

    def test_failed_skipped_missing_or_other_result(self):
        heap = {name: ("passed", "", "1") for name in "acde"}
        mot = {"a": ("failed", "x"), "c": ("skipped", ""), "d": ("passed", "", "2")}
        self.assertEqual(self.wrong(heap, mot), ["a", "c", "d", "e"])

    def test_listed_for_its_message_alone(self):
        heap = {"b": ("passed",)}
        self.assertEqual(self.wrong(heap, {"b": ("failed", "X is not supported")}), [])
        self.assertEqual(self.wrong(heap, {"b": ("failed", "server closed the connection")}), ["b"])
        self.assertEqual(self.wrong(heap, {}), ["b"])

    def test_listed_for_other_results(self):
        known = {**KNOWN, "error": r"(?m)^\+mot_index$"}
        self.assertEqual(self.wrong({"b": ("passed", "", "btree")}, {"b": ("passed", "", "mot_index")}, [known]), [])
        self.assertEqual(self.wrong({"b": ("passed", "", "btree")}, {"b": ("passed", "", "")}, [known]), ["b"])

    def test_stale(self):
        self.assertEqual(self.wrong({"b": ("passed",)}, {"b": ("passed",)}), ["b"])
        # A case that did not run tells nothing of its entry.
        self.assertEqual(self.wrong({"a": ("passed",)}, {"a": ("passed",)}), [])

    def test_a_case_that_failed_once_has_failed(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory)
            (path / "cases.jsonl").write_text('{"case": "a", "status": "failed"}\n{"case": "a", "status": "passed"}\n')
            self.assertEqual(report.cases(path)["a"].status, "failed")

    def test_ends_early(self):
        self.assertEqual(self.wrong({}, {}), ["knex"])


class Read(unittest.TestCase):
    def read(self, reader, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            return dict(reader(pathlib.Path(file.name)))

    def test_junit(self):
        found = self.read(
            report.read_junit,
            '<r><testcase classname="T_postgresql+psycopg_15_20.C" name="a"/><testcase classname="T" name="b"><failure message="m">t</failure></testcase>'
            '<testcase classname="T" name="c"><skipped message="s"/></testcase><testcase classname="T" name="d"><system-out/></testcase></r>',
        )
        self.assertEqual({name: case.status for name, case in found.items()}, {"T.C.a": "passed", "T.b": "failed", "T.c": "skipped", "T.d": "passed"})
        self.assertEqual(found["T.b"].message, "m\nt")

    def test_go(self):
        found = self.read(
            report.read_go,
            'FAIL\n{"Action":"output","Package":"p","Test":"T","Output":"why\\n"}\n{"Action":"fail","Package":"p","Test":"T"}\n'
            '{"Action":"pass","Package":"p","Test":"U//tmp/x/001/f"}\n{"Action":"pass","Package":"p"}\n',
        )
        self.assertEqual(found, {"p.T": report.Case("failed", "why\n"), "p.U/f": report.Case("passed")})


if __name__ == "__main__":
    unittest.main()
