//! What the server sends for the rows of a statement, byte by byte: whatever runs the statement,
//! and whoever writes its rows, the client is told the same, in text and in binary form, in its own
//! encoding, and of the same errors.
//!
//! That rows went past core's receiver shows in the memory they are made in: a context of its own
//! for each statement that did so.

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::str::FromStr;
use tpcc::cluster::{Cluster, Shutdown, scratch_directory};
use tpcc::engine::Engine;

/// Every type that rows are written of without core's receiver, and some that are left to it. One
/// row is longer than what a statement keeps memory for, and one cannot be told to a client of
/// LATIN1.
const SET_UP: &str = "CREATE EXTENSION IF NOT EXISTS mot;
    CREATE DOMAIN public.small AS int CHECK (VALUE < 1000);
    CREATE FOREIGN TABLE public.sent (id int PRIMARY KEY, b bool, i2 smallint, i8 bigint, t text, v \
    varchar(20), c char(8), n numeric,
        f4 real, f8 double precision, d date, tm time, ts timestamp, tz timestamptz, u uuid, y bytea, nm name, \
        ch \"char\", o oid,
        a int[], iv interval, j jsonb, s public.small) SERVER mot;
    INSERT INTO public.sent VALUES
        (1, true, -32768, -9223372036854775808, 'plain', 'short', 'pad', 1234.50, 1.5, -0.1, '2000-01-01', \
        '23:59:59.999999',
            '1999-12-31 23:59:59', '2001-02-03 04:05:06+07', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', \
            '\\xdeadbeef', 'named', 'x', 4294967295,
            '{1,NULL,3}', '1 day 2 hours', '{\"a\": 1}', 7),
        (2, false, 32767, 9223372036854775807, 'caf\u{e9}', '', '', 'NaN', 'Infinity', 'NaN', 'infinity', \
        '00:00', '-infinity', 'infinity',
            '00000000-0000-0000-0000-000000000000', '', '', '', 0, '{}', '0', 'null', -7),
        (4, NULL, 0, 0, repeat('long \u{e9} ', 3000), 'v', 'c', -0.000, -0.0, 1e300, '0044-03-15 BC', '12:00', \
        '2000-01-01 00:00:00.000001',
            '1970-01-01 00:00:00Z', NULL, decode(repeat('00ff', 2000), 'hex'), repeat('n', 63), 'y', 1, \
            '{{1,2},{3,4}}', '-1 month', '[]', 0);
    INSERT INTO public.sent (id) VALUES (3), (-2147483648), (0);
    INSERT INTO public.sent (id, t, i2, i8) VALUES (5, 'not in Latin 1: \u{20ac}', -1, 10), (6, repeat('s', \
    126), 9, -10),
        (7, repeat('s', 127), 99, 100);
    CREATE TABLE public.elsewhere (squeezed text, outside text);
    ALTER TABLE public.elsewhere ALTER squeezed SET STORAGE MAIN, ALTER outside SET STORAGE EXTERNAL;
    INSERT INTO public.elsewhere VALUES (repeat('squeezed ', 800), repeat('outside ', 800));";

struct Statement {
    text: &'static str,
    columns: usize,
    /// Whether its rows go past core's receiver when it runs compiled.
    is_direct: bool,
}

const fn direct(text: &'static str, columns: usize) -> Statement {
    Statement {
        text,
        columns,
        is_direct: true,
    }
}

const fn received(text: &'static str, columns: usize) -> Statement {
    Statement {
        text,
        columns,
        is_direct: false,
    }
}

/// The parameter is a bound that leaves some rows.
const STATEMENTS: [Statement; 11] = [
    direct(
        "SELECT id, b, i2, i8, t, v, c, n, f4, f8, d, tm, ts, tz, u, y, nm, ch, o FROM public.sent WHERE id > $1::int",
        19,
    ),
    direct(
        "SELECT repeat(t, 3), t || '\u{e9}', -id, NULL::text, id > 2, 'x', i8 <> 0, upper(v) FROM public.sent \
         WHERE id > $1::int",
        8,
    ),
    // Compressed, and read back by the server's own functions.
    direct(
        "SELECT substr(t, 2), length(t), id::text || c, convert_to(t, 'UTF8') FROM public.sent WHERE id > $1::int",
        4,
    ),
    // Fails at a row in the middle.
    direct(
        "SELECT t, 12 / (id - 5) FROM public.sent WHERE id > $1::int",
        2,
    ),
    direct(
        "SELECT t, n FROM public.sent WHERE id > $1::int FOR UPDATE",
        2,
    ),
    direct("SELECT FROM public.sent WHERE id > $1::int", 0),
    received(
        "SELECT t, id, a, iv, j FROM public.sent WHERE id > $1::int",
        5,
    ),
    received("SELECT id, s FROM public.sent WHERE id > $1::int", 2),
    received(
        "UPDATE public.sent SET i2 = i2 WHERE id > $1::int RETURNING id, t, c, n",
        4,
    ),
    received(
        "INSERT INTO public.sent (id, t) VALUES ($1::int + 100, 'new \u{e9}') RETURNING t, id, b",
        3,
    ),
    received(
        "DELETE FROM public.sent WHERE id > $1::int RETURNING tz, i8, b",
        3,
    ),
];

/// What the client says before each round: how values look, and in which encoding it wants them.
const ROUNDS: [&str; 6] = [
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL client_encoding = 'SQL_ASCII'; SET LOCAL DateStyle = 'SQL, DMY'; SET LOCAL extra_float_digits = -3;
        SET LOCAL bytea_output = 'escape'; SET LOCAL TimeZone = 'Asia/Kolkata'",
    "SET LOCAL client_encoding = 'LATIN1'",
    "SET LOCAL DateStyle = 'German'; SET LOCAL extra_float_digits = 0; SET LOCAL TimeZone = 'America/St_Johns'",
    "SET LOCAL bytea_output = 'escape'",
    "SET LOCAL client_encoding = 'WIN1252'; SET LOCAL DateStyle = 'Postgres, MDY'",
];

/// What it says between two parts of one portal, by turns.
const BETWEEN_PARTS: [&str; 2] = [
    "SELECT set_config('DateStyle', 'German', true), set_config('extra_float_digits', '-5', true), \
     set_config('bytea_output', 'escape', true)",
    "SELECT set_config('client_encoding', 'LATIN1', true)",
];

/// By other ways than a portal of the protocol; a cursor is one by another name.
const OTHER_WAYS: [&str; 10] = [
    "SELECT id, t, ts, y FROM public.sent WHERE id > 1",
    "COPY (SELECT id, t, ts, y FROM public.sent WHERE id > 1) TO STDOUT",
    "COPY (SELECT id, t, ts, y FROM public.sent WHERE id > 1) TO STDOUT (FORMAT binary)",
    "DECLARE plain NO SCROLL CURSOR FOR SELECT id, t, tz, y FROM public.sent WHERE id > -5",
    "DECLARE bytes BINARY NO SCROLL CURSOR FOR SELECT id, t, tz, y FROM public.sent WHERE id > -5",
    "DECLARE held NO SCROLL CURSOR WITH HOLD FOR SELECT id, t, tz, y FROM public.sent WHERE id > -5",
    // With values that are compressed, or kept elsewhere, when they come to be sent.
    "DO $$ DECLARE c refcursor := 'sealed'; first text; second text; BEGIN
        SELECT squeezed, outside INTO first, second FROM public.elsewhere;
        OPEN c NO SCROLL FOR SELECT id, first, second, t FROM public.sent WHERE id > 1;
    END $$",
    "FETCH 2 plain",
    "FETCH 2 bytes",
    "FETCH 1 held",
];

/// The memory in which rows are made that go past core's receiver.
const CONTEXT: &str = "mot rows for a client";
/// More than such a context keeps between two executions, with what it costs itself.
const CONTEXT_BYTES_MAX: i64 = 40 << 10;

type Messages = Vec<(u8, Vec<u8>)>;

/// A connection, and what is to be sent to the server.
struct Connection {
    stream: UnixStream,
    out: BytesMut,
}

impl Connection {
    fn open(cluster: &Cluster) -> Connection {
        let config = postgres::Config::from_str(&cluster.url()).unwrap();
        let postgres::config::Host::Unix(directory) = &config.get_hosts()[0] else {
            panic!("a private server listens on a socket");
        };
        let path = directory.join(format!(".s.PGSQL.{}", config.get_ports()[0]));
        let mut connection = Connection {
            stream: UnixStream::connect(path).unwrap(),
            out: BytesMut::new(),
        };
        let parameters = [
            ("user", "postgres"),
            ("database", "postgres"),
            ("client_encoding", "UTF8"),
            ("plan_cache_mode", "force_generic_plan"),
            // Rows come in one order, however they are read.
            ("enable_seqscan", "off"),
            ("enable_bitmapscan", "off"),
        ];
        frontend::startup_message(parameters, &mut connection.out).unwrap();
        connection.exchange();
        connection
    }

    /// Sends what is queued and gives all messages up to ReadyForQuery; of errors not the place in
    /// the source that raised them.
    fn exchange(&mut self) -> Messages {
        self.stream.write_all(&self.out.split()).unwrap();
        let mut seen = Vec::new();
        loop {
            let mut head = [0; 5];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
            let mut body = vec![0; length - 4];
            self.stream.read_exact(&mut body).unwrap();
            match head[0] {
                b'Z' => {
                    seen.push((b'Z', body));
                    return seen;
                }
                b'E' => seen.push((b'E', without_source(&body))),
                kind => seen.push((kind, body)),
            }
        }
    }

    fn query(&mut self, text: &str) -> Messages {
        frontend::query(text, &mut self.out).unwrap();
        self.exchange()
    }

    /// Runs what must not fail.
    fn run(&mut self, text: &str) -> Messages {
        let seen = self.query(text);
        let failed = seen.iter().find(|message| message.0 == b'E');
        assert!(failed.is_none(), "{text}: {}", shown(failed.unwrap()));
        seen
    }

    /// How many statements of the session have sent rows past core's receiver, and how many bytes
    /// one holds for more, or for the row that was sent last, at most.
    fn direct_rows(&mut self) -> (i64, i64) {
        // From 18 on the view needs an ExprContext of its own that grows with the number of
        // contexts, and does not say whose one is.
        let seen = self.run(&format!(
            "SELECT count(*) FILTER (WHERE name = '{CONTEXT}') || ' ' || coalesce(max(total_bytes), 0)
             FROM pg_backend_memory_contexts
             WHERE name = '{CONTEXT}' OR name = 'ExprContext' AND current_setting('server_version_num')::int < 180000"
        ));
        let row = &seen.iter().find(|message| message.0 == b'D').unwrap().1;
        let (count, bytes) = std::str::from_utf8(&row[6..])
            .unwrap()
            .split_once(' ')
            .unwrap();
        (count.parse().unwrap(), bytes.parse().unwrap())
    }

    fn prepare(&mut self, name: &str, text: &str) {
        frontend::parse(name, text, [], &mut self.out).unwrap();
    }

    /// Binds `statement` to `portal`, with a number if there is one.
    fn bind(&mut self, portal: &str, statement: &str, bound: Option<i32>, formats: &[i16]) {
        let write = |value: i32, out: &mut BytesMut| {
            out.extend_from_slice(&value.to_be_bytes());
            Ok(IsNull::No)
        };
        let formats = formats.iter().copied();
        frontend::bind(portal, statement, [1], bound, write, formats, &mut self.out)
            .map_err(|_| "a message that is too long")
            .unwrap();
    }

    fn execute(&mut self, portal: &str, rows_max: i32) {
        frontend::execute(portal, rows_max, &mut self.out).unwrap();
    }

    fn sync(&mut self) -> Messages {
        frontend::sync(&mut self.out);
        self.exchange()
    }

    /// In one go.
    fn read_whole(&mut self, bound: i32, formats: &[i16]) -> Messages {
        self.bind("", "s", Some(bound), formats);
        self.execute("", 0);
        self.sync()
    }

    /// In parts, after the last one too, with something else between them.
    fn read_in_parts(&mut self, bound: i32, formats: &[i16], between: &str) -> Messages {
        self.bind("parts", "s", Some(bound), formats);
        self.execute("parts", 1);
        self.prepare("", between);
        self.bind("", "", None, &[]);
        self.execute("", 0);
        for rows_max in [2, 0, 0] {
            self.execute("parts", rows_max);
        }
        self.sync()
    }

    /// All that the server says of a statement.
    fn read(&mut self, statement: &Statement) -> Messages {
        self.prepare("s", statement.text);
        let mut seen = self.sync();
        for (round, settings) in ROUNDS.iter().enumerate() {
            for formats in formats(statement.columns) {
                let bound = round as i32 - 2;
                self.run("BEGIN");
                seen.extend(self.run(settings));
                seen.extend(self.read_whole(bound, &formats));
                self.run("ROLLBACK");
                self.run("BEGIN");
                seen.extend(self.run(settings));
                seen.extend(self.read_in_parts(bound, &formats, BETWEEN_PARTS[round % 2]));
                self.run("ROLLBACK");
            }
        }
        self.run("DEALLOCATE s");
        seen
    }

    fn read_other_ways(&mut self) -> Messages {
        let mut seen = Vec::new();
        self.run("BEGIN");
        for text in OTHER_WAYS {
            seen.extend(self.run(text));
        }
        for rows_max in [1, 2, 0, 0] {
            for cursor in ["plain", "bytes", "held", "sealed"] {
                self.execute(cursor, rows_max);
            }
        }
        seen.extend(self.sync());
        self.run("COMMIT");
        self.execute("held", 0);
        seen.extend(self.sync());
        seen.extend(self.run("CLOSE held"));
        seen
    }
}

/// An error without file, line and function, which name whoever raised it.
fn without_source(body: &[u8]) -> Vec<u8> {
    body.split(|byte| *byte == 0)
        .filter(|field| !matches!(field.first(), Some(b'F' | b'L' | b'R')))
        .flat_map(|field| [field, &[0][..]].concat())
        .collect()
}

/// Formats to ask `columns` columns in: none said, one for all, by turns, one that there is not,
/// too many.
fn formats(columns: usize) -> Vec<Vec<i16>> {
    let each = |format: &dyn Fn(usize) -> i16| (0..columns).map(format).collect();
    let mut all = vec![vec![], vec![0], vec![1]];
    if columns > 1 {
        all.push(each(&|column| (column % 2) as i16));
        all.push(each(&|column| ((column + 1) % 2) as i16));
        all.push(each(&|column| 2 * i16::from(column + 1 == columns)));
        all.push(vec![0; columns + 1]);
    }
    all
}

fn shown(message: &(u8, Vec<u8>)) -> String {
    let head = &message.1[..message.1.len().min(300)];
    format!(
        "{} {:?} of {} bytes",
        char::from(message.0),
        String::from_utf8_lossy(head),
        message.1.len()
    )
}

fn assert_same(what: &str, expected: &Messages, seen: &Messages) {
    for (place, (one, another)) in expected.iter().zip(seen).enumerate() {
        assert!(
            one == another,
            "message {place} of {what}: {} instead of {}",
            shown(another),
            shown(one)
        );
    }
    assert_eq!(expected.len(), seen.len(), "messages of {what}");
}

fn count(messages: &Messages, kind: u8) -> usize {
    messages.iter().filter(|message| message.0 == kind).count()
}

fn start(name: &str) -> (Cluster, Connection) {
    let settings = [
        ("shared_preload_libraries", "mot"),
        ("mot.max_memory", "128MB"),
    ];
    let mut cluster = Cluster::create(&scratch_directory(name), None, &settings).unwrap();
    cluster.start_and_wait().unwrap();
    let target = cluster.target(Engine::Mot, None).unwrap();
    target.client().unwrap().batch_execute(SET_UP).unwrap();
    let connection = Connection::open(&cluster);
    (cluster, connection)
}

#[test]
fn clients_are_sent_the_same_whatever_runs_a_statement() {
    let (mut cluster, mut connection) = start("mot-rows");
    let mut read_all = |mode: &str| -> (Vec<Messages>, Messages) {
        connection.run(&format!("SET mot.compiled_statements = {mode}"));
        let each = STATEMENTS.iter().map(|statement| {
            let (before, _) = connection.direct_rows();
            let seen = connection.read(statement);
            let (after, bytes) = connection.direct_rows();
            let is_direct = statement.is_direct && mode != "off";
            assert_eq!(after > before, is_direct, "{mode}: {}", statement.text);
            assert!(
                bytes < CONTEXT_BYTES_MAX,
                "{mode}: {} keeps {bytes} bytes",
                statement.text
            );
            seen
        });
        (each.collect(), connection.read_other_ways())
    };
    let (general, other_ways) = read_all("off");
    for (statement, seen) in STATEMENTS.iter().zip(&general) {
        let (rows, parts, errors) = (count(seen, b'D'), count(seen, b's'), count(seen, b'E'));
        let shown = format!(
            "{}: {rows} rows, {parts} parts, {errors} errors",
            statement.text
        );
        assert!(rows > 20 && parts > 5, "{shown}");
        // Formats that there are not, and too many of them.
        assert!(statement.columns == 0 || errors > 10, "{shown}");
    }
    assert!(count(&other_ways, b'D') > 20 && count(&other_ways, b'd') > 4);
    for mode in ["on", "always", "always"] {
        let (seen, ways) = read_all(mode);
        for (statement, (expected, seen)) in STATEMENTS.iter().zip(general.iter().zip(&seen)) {
            assert_same(&format!("{mode}: {}", statement.text), expected, seen);
        }
        assert_same(&format!("{mode}: other ways"), &other_ways, &ways);
    }
    drop(connection);
    cluster.stop(Shutdown::Fast).unwrap();
}

#[test]
fn sending_rows_keeps_no_memory() {
    let (mut cluster, mut connection) = start("mot-rows-memory");
    connection.run("SET mot.compiled_statements = always");
    let statements = [
        STATEMENTS[0].text,
        // A long row first, then one that fails: what the long one needed is given back.
        "SELECT repeat(t, 40), 12 / (id - 5) FROM public.sent WHERE id > 3 AND id > $1::int ORDER BY id",
    ];
    for text in statements {
        connection.prepare("s", text);
        connection.sync();
        let mut send = |times: i32| {
            let seen: Vec<Messages> = (0..times)
                .map(|time| connection.read_whole(0, &[(time % 2) as i16]))
                .collect();
            assert!(seen.iter().all(|messages| count(messages, b'D') > 0));
            let rows = connection.run(
                "SELECT sum(total_bytes), sum(used_bytes), count(*) FROM pg_backend_memory_contexts WHERE name \
                 LIKE 'mot%'",
            );
            let (sent, bytes) = connection.direct_rows();
            assert!(sent > 0 && bytes < CONTEXT_BYTES_MAX, "{text}: {bytes}");
            rows
        };
        let before = send(40);
        assert_same(text, &before, &send(400));
        connection.run("DEALLOCATE s");
    }
    drop(connection);
    cluster.stop(Shutdown::Fast).unwrap();
}
