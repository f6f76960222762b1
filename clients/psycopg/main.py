"""The ways in which programs use psycopg 3, synchronously and not; each result must be the same
on both sides.
"""

import asyncio
import datetime
import decimal
import json
import os
import threading
import traceback
import uuid

import psycopg
import psycopg.rows
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Jsonb
from psycopg.types.range import Range
from psycopg_pool import AsyncConnectionPool, ConnectionPool


def case(name):
    def run(body):
        line = {"case": name, "status": "passed"}
        try:
            line["result"] = json.dumps(body(), indent=1, default=str)
        except Exception as error:
            traceback.print_exc()
            line.update(status="failed", message=repr(error))
        with open(os.path.join(os.environ["OUT"], "cases.jsonl"), "a") as cases:
            cases.write(json.dumps(line) + "\n")

    return run


def failure(body):
    try:
        return ["no failure", body()]
    except psycopg.Error as error:
        return [error.sqlstate, error.diag.message_primary, error.diag.constraint_name, error.diag.table_name]


connection = psycopg.connect(autocommit=True)


def rows(query, *parameters, **options):
    return connection.execute(query, parameters or None, **options).fetchall()


@case("tables")
def _():
    connection.execute(
        """CREATE TYPE colour AS ENUM ('red', 'green');
        CREATE TABLE thing (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, colour colour DEFAULT 'red',
            price numeric(10,2), at timestamptz, on_day date, span int4range, tags text[], data jsonb, raw bytea, key uuid,
            parent int REFERENCES thing ON DELETE CASCADE, twice int GENERATED ALWAYS AS (id * 2) STORED);
        CREATE INDEX ON thing (lower(name)) WHERE colour = 'green';
        CREATE INDEX ON thing (colour, price DESC) INCLUDE (name)"""
    )
    return rows("SELECT indexname, replace(indexdef, 'mot_index', 'btree') FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1")


for kind, text in (("text", "%s"), ("binary", "%b")):

    @case(f"every type, {kind}")
    def _():
        with connection.cursor(binary=kind == "binary", row_factory=psycopg.rows.dict_row) as cursor:
            cursor.execute(
                f"INSERT INTO thing (name, price, at, on_day, span, tags, data, raw, key) VALUES ({', '.join([text] * 9)}) RETURNING *",
                (f"one {kind}", decimal.Decimal("1.50"), datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), datetime.date(2026, 2, 3),
                 Range(1, 5), ["a", None], Jsonb({"a": [1]}), b"\0\1\xff", uuid.UUID(int=7)),
            )
            return cursor.fetchall()


@case("executemany, with what it returns")
def _():
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO thing (name, colour, price, parent) VALUES (%s, %s, %s, 1) RETURNING id, twice",
            [(f"Many {i}", "green" if i % 3 else "red", i) for i in range(100)],
            returning=True,
        )
        found = []
        while True:
            found.append(cursor.fetchone())
            if not cursor.nextset():
                return found


@case("prepared statements, plans of both kinds")
def _():
    found = [rows("SELECT name, price FROM thing WHERE colour = %s AND price > %s ORDER BY price DESC LIMIT 2", "green", i, prepare=True) for i in range(20)]
    return found + [rows("SELECT id FROM thing WHERE colour = 'green' AND lower(name) = %s", f"many {i}", prepare=True) for i in range(20)]


@case("a prepared statement over changes of its table")
def _():
    found = []
    for i in range(10):
        if i == 5:
            connection.execute("ALTER TABLE thing ADD COLUMN later int DEFAULT 3")
        found.append(failure(lambda: rows("SELECT * FROM thing WHERE id = %s", 3, prepare=True)))
    connection.execute("ALTER TABLE thing DROP COLUMN later")
    return found


@case("pipeline")
def _():
    with connection.pipeline() as pipeline:
        inserts = [connection.execute("INSERT INTO thing (name) VALUES (%s) RETURNING id", (f"Piped {i}",)) for i in range(30)]
        selects = [connection.execute("SELECT count(*) FROM thing WHERE name LIKE %s", ("Piped%",)) for _ in range(2)]
        pipeline.sync()
        return [cursor.fetchone() for cursor in inserts + selects]


@case("a pipeline that fails in the middle")
def _():
    def body():
        with connection.pipeline():
            connection.execute("UPDATE thing SET price = 0 WHERE id = 1")
            connection.execute("INSERT INTO thing (name) VALUES ('Many 1')")
            connection.execute("UPDATE thing SET price = 1000 WHERE id = 1")

    return [failure(body), rows("SELECT price FROM thing WHERE id = 1")]


@case("COPY in, text and binary, and out")
def _():
    with connection.cursor() as cursor:
        with cursor.copy("COPY thing (name, colour, price) FROM STDIN") as copy:
            for i in range(2000):
                copy.write_row((f"Copied {i}", "green", i))
        with cursor.copy("COPY thing (name, price) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["text", "numeric"])
            for i in range(500):
                copy.write_row((f"Binary {i}", decimal.Decimal(i)))
        with cursor.copy("COPY (SELECT id, name, colour, price FROM thing ORDER BY id) TO STDOUT") as copy:
            return [row for row in copy.rows()]


@case("a COPY that is given up")
def _():
    def body():
        with connection.cursor() as cursor, cursor.copy("COPY thing (name) FROM STDIN") as copy:
            copy.write_row(("Given up",))
            raise RuntimeError("no more")

    try:
        body()
    except RuntimeError as error:
        return [str(error), rows("SELECT count(*) FROM thing WHERE name = 'Given up'")]


@case("errors")
def _():
    return [
        failure(lambda: connection.execute(query))
        for query in (
            "INSERT INTO thing (name) VALUES ('Many 1')",
            "INSERT INTO thing (name) VALUES (NULL)",
            "INSERT INTO thing (name, parent) VALUES ('x', 100000)",
            "UPDATE thing SET name = 'same'",
            "INSERT INTO thing (id, name) VALUES (1, 'x')",
        )
    ]


@case("server-side cursors, scrolled and held")
def _():
    with connection.transaction(), connection.cursor("named", scrollable=True) as cursor:
        cursor.execute("SELECT id FROM thing ORDER BY id")
        found = [cursor.fetchmany(5)]
        cursor.scroll(100)
        found.append(cursor.fetchmany(3))
        cursor.scroll(0, mode="absolute")
        found.append(cursor.fetchone())
    held = connection.cursor("held", withhold=True)
    with connection.transaction():
        held.execute("SELECT id FROM thing ORDER BY id DESC")
    connection.execute("DELETE FROM thing WHERE name = 'Binary 499'")
    return found + [held.fetchmany(3), held.close()]


@case("nested transactions")
def _():
    with connection.transaction():
        connection.execute("UPDATE thing SET price = price + 1 WHERE name LIKE 'Many%'")
        try:
            with connection.transaction():
                connection.execute("DELETE FROM thing")
                raise psycopg.Rollback
        except psycopg.Error:
            pass
        with connection.transaction():
            connection.execute("DELETE FROM thing WHERE name = 'Many 7'")
    return rows("SELECT count(*), sum(price) FROM thing WHERE name LIKE 'Many%'")


@case("two-phase commit")
def _():
    other = psycopg.connect()
    for number, end in (("1", "commit"), ("2", "rollback")):
        xid = other.xid(1, number, "")
        other.tpc_begin(xid)
        other.execute("UPDATE thing SET price = price + %s WHERE id = 2", (int(number) * 100,))
        other.tpc_prepare()
        getattr(other, f"tpc_{end}")()
    recovered = other.tpc_recover()
    other.close()
    return [len(recovered), rows("SELECT price FROM thing WHERE id = 2")]


@case("an enum of Python")
def _():
    import enum

    info = EnumInfo.fetch(connection, "colour")
    colour = enum.Enum("Colour", {label: label for label in info.labels})
    register_enum(info, connection, colour)
    return [str(row) for row in rows("SELECT colour, count(*) FROM thing WHERE colour = ANY (%s) GROUP BY colour ORDER BY colour", [colour.green, colour.red])]


@case("a pool of threads on one row")
def _():
    connection.execute("UPDATE thing SET price = 0 WHERE id = 3")
    with ConnectionPool(min_size=4, max_size=8) as pool:

        def work():
            for _ in range(25):
                with pool.connection() as each:
                    each.execute("UPDATE thing SET price = price + 1 WHERE id = 3")

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return rows("SELECT price FROM thing WHERE id = 3")


@case("asynchronously, serializable, repeated until it succeeds")
def _():
    async def work(pool):
        for _ in range(10):
            while True:
                try:
                    async with pool.connection() as each:
                        await each.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
                        cursor = await each.execute("SELECT sum(price) FROM thing WHERE id IN (3, 4)")
                        total = (await cursor.fetchone())[0]
                        await each.execute("UPDATE thing SET price = %s WHERE id = 4", (total - 199,))
                    break
                except psycopg.errors.SerializationFailure:
                    continue

    async def main():
        connection.execute("UPDATE thing SET price = 0 WHERE id = 4")
        async with AsyncConnectionPool(min_size=3, max_size=3, open=False) as pool:
            await asyncio.gather(*(work(pool) for _ in range(3)))
        return rows("SELECT price FROM thing WHERE id = 4")

    return asyncio.run(main())


connection.close()
