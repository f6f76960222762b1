import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.sql.Connection;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.diff.DiffResult;
import liquibase.diff.compare.CompareControl;
import liquibase.diff.output.DiffOutputControl;
import liquibase.diff.output.changelog.DiffToChangeLog;
import liquibase.diff.output.report.DiffToReport;
import liquibase.resource.DirectoryResourceAccessor;

/**
 * Updates, again, rolls back, compares databases, writes a changelog of what is there, and drops
 * all.
 */
final class Main {
    private static final Contexts NONE = new Contexts();

    interface Step {
        Object run(Liquibase liquibase) throws Exception;
    }

    private static Database database(String url) throws Exception {
        Connection connection = java.sql.DriverManager.getConnection(url, Cases.USER, "");
        return DatabaseFactory.getInstance().findCorrectDatabaseImplementation(new JdbcConnection(connection));
    }

    private static void run(String name, Step step) throws Exception {
        Cases.run(name, () -> {
            Database database = database(Cases.URL);
            try (Liquibase liquibase = new Liquibase("changelog.xml",
                    new DirectoryResourceAccessor(Path.of(System.getenv("PROGRAM_HOME"))), database)) {
                return step.run(liquibase);
            }
        });
    }

    private static String contents() throws Exception {
        try (Connection connection = Cases.connect()) {
            return Cases.rows(connection, "SELECT * FROM client ORDER BY id")
                + Cases.rows(connection, "SELECT id, customer_id, total, remark FROM invoice ORDER BY id")
                + Cases.rows(connection, "SELECT id FROM databasechangelog ORDER BY orderexecuted");
        }
    }

    private static String differences(Liquibase liquibase) throws Exception {
        Database other = database(System.getenv("OTHER_URL"));
        DiffResult result = liquibase.diff(other, liquibase.getDatabase(), CompareControl.STANDARD);
        ByteArrayOutputStream report = new ByteArrayOutputStream();
        new DiffToReport(result, new PrintStream(report)).print();
        other.close();
        return report.toString().replaceAll("(?m)^(Reference|Comparison) Database: .*$", "").replaceAll("Product Version:[^\n]*\n[^\n]*\n[^\n]*", "");
    }

    private static String changelog(Liquibase liquibase) throws Exception {
        Database other = database(System.getenv("OTHER_URL"));
        DiffResult result = liquibase.diff(liquibase.getDatabase(), other, CompareControl.STANDARD);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        new DiffToChangeLog(result, new DiffOutputControl(false, false, false, null)).print(new PrintStream(text));
        other.close();
        // Identifiers hold the time.
        return text.toString().replaceAll("id=\"\\d+-", "id=\"").replaceAll("author=\"[^\"]*\"", "");
    }

    public static void main(String[] arguments) throws Exception {
        for (String time : new String[] {"first", "second"}) {
            run(time + ": update", liquibase -> {
                liquibase.update(NONE);
                return Cases.schema();
            });
            run(time + ": contents", liquibase -> contents());
            run(time + ": update again does nothing", liquibase -> {
                liquibase.update(NONE);
                return liquibase.listUnrunChangeSets(NONE, new LabelExpression()).size() + contents();
            });
            run(time + ": differences to an empty database", Main::differences);
            run(time + ": changelog of what is there", Main::changelog);
            for (int count = 1; count <= 3; count++) {
                run(time + ": roll back " + count, liquibase -> {
                    liquibase.rollback(1, "");
                    return Cases.schema();
                });
            }
            run(time + ": update after that", liquibase -> {
                liquibase.update(NONE);
                return Cases.schema();
            });
            run(time + ": tag, roll back all", liquibase -> {
                liquibase.tag("all");
                liquibase.rollback(7, "");
                return Cases.schema();
            });
            run(time + ": update from nothing, each step tested by its rollback", liquibase -> {
                liquibase.updateTestingRollback(NONE, new LabelExpression());
                return Cases.schema();
            });
            run(time + ": drop all", liquibase -> {
                liquibase.dropAll();
                return Cases.schema();
            });
        }
    }
}
