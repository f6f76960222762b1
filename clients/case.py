#!/usr/bin/env python3
"""case.py NAME COMMAND...: runs a command as one case; what it prints is the result that both
sides must have in common.
"""

import json
import os
import subprocess
import sys

name, command = sys.argv[1], sys.argv[2:]
try:
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600)
    status, message = ("failed" if ran.returncode else "passed"), ran.stderr + ran.stdout
except subprocess.TimeoutExpired:
    ran, status, message = None, "failed", "it takes more than 600 seconds"
line = {"case": name, "status": status, "message": message[-4000:] if status == "failed" else ""}
if status == "passed":
    line["result"] = ran.stdout
with open(os.path.join(os.environ["OUT"], "cases.jsonl"), "a") as cases:
    cases.write(json.dumps(line) + "\n")
print(f"-- {name}: {status}\n{message}")
