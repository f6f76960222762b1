"""A test runner of Django that writes one line of JSON for each case to the file $CASES."""

import json
import os
import traceback
import unittest

from django.test.runner import DiscoverRunner


class Result(unittest.TextTestResult):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.cases = open(os.environ["CASES"], "a")
        self.failed = set()

    def write(self, test, status, message=""):
        line = {"case": test.id(), "status": status, "message": message}
        self.cases.write(json.dumps(line) + "\n")
        self.cases.flush()

    def fail(self, test, error):
        self.failed.add(test.id())
        self.write(test, "failed", "".join(traceback.format_exception(*error)))

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self.failed:
            self.write(test, "passed")

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fail(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write(test, "passed", "fails as expected")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.write(test, "failed", "succeeds unexpectedly")


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result
