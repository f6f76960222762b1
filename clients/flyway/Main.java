import java.sql.Connection;
import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import org.flywaydb.core.Flyway;
import org.flywaydb.core.api.MigrationInfo;
import org.flywaydb.core.api.configuration.FluentConfiguration;

/**
 * Migrates step by step, again, cleans, migrates at once, and meets failing and changed migrations.
 */
final class Main {
    private static final String DIRECTORY = "filesystem:" + System.getenv("PROGRAM_HOME") + "/";

    private static FluentConfiguration configuration() {
        return Flyway.configure().dataSource(Cases.URL, Cases.USER, "").cleanDisabled(false)
            // An index built CONCURRENTLY would wait for a lock that a transaction of Flyway's own
            // holds.
            .configuration(Map.of("flyway.postgresql.transactional.lock", "false"))
            .locations(DIRECTORY + "migrations");
    }

    private static String info(Flyway flyway) {
        return Arrays.stream(flyway.info().all()).map(Main::line).collect(Collectors.joining("\n"));
    }

    private static String line(MigrationInfo info) {
        return info.getVersion() + " " + info.getDescription() + " " + info.getChecksum() + " " + info.getState();
    }

    private static String contents() throws Exception {
        try (Connection connection = Cases.connect()) {
            return Cases.rows(connection, "SELECT * FROM overview ORDER BY state, name")
                + Cases.rows(connection, "SELECT id, email, country, state, balance, parent, nickname, score FROM account ORDER BY id")
                + Cases.rows(connection, "SELECT * FROM line ORDER BY purchase, position")
                + Cases.rows(connection, "SELECT id, account, number, details FROM purchase ORDER BY id")
                + Cases.rows(connection, "SELECT * FROM account_log ORDER BY id")
                + Cases.rows(connection, "SELECT tableoid::regclass, * FROM event ORDER BY id");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Flyway flyway = configuration().locations(DIRECTORY + "migrations", DIRECTORY + "views").load();
        for (int i = 1; i <= 7; i++) {
            String version = Integer.toString(i);
            Cases.run("migrate to " + version, () -> configuration().target(version).load().migrate().migrationsExecuted);
            Cases.run("schema at " + version, Cases::schema);
        }
        Cases.run("migrate to the newest", () -> flyway.migrate().migrationsExecuted);
        Cases.run("info", () -> info(flyway));
        Cases.run("validate", () -> flyway.validateWithResult().validationSuccessful);
        Cases.run("contents", Main::contents);
        Cases.run("migrate again does nothing", () -> flyway.migrate().migrationsExecuted);
        Cases.run("clean", () -> {
            flyway.clean();
            return Cases.schema();
        });
        Cases.run("migrate at once", () -> flyway.migrate().migrationsExecuted);
        Cases.run("schema at once", Cases::schema);
        Cases.run("contents at once", Main::contents);
        Cases.run("grouped into one transaction", () -> {
            flyway.clean();
            return configuration().group(true).mixed(true).locations(DIRECTORY + "migrations", DIRECTORY + "views").load().migrate().migrationsExecuted;
        });
        Cases.run("contents of one transaction", Main::contents);
        Flyway failing = configuration().locations(DIRECTORY + "migrations", DIRECTORY + "views", DIRECTORY + "failing").load();
        Cases.run("a failing migration leaves nothing", () -> {
            try {
                return failing.migrate().migrationsExecuted;
            } catch (Exception e) {
                return Cases.schema() + info(flyway);
            }
        });
        Cases.run("repair", () -> {
            flyway.repair();
            return info(flyway);
        });
        Cases.run("baseline of a schema that is there", () -> {
            Flyway other = configuration().table("other_history").baselineVersion("7").load();
            other.baseline();
            return info(other);
        });
        Cases.run("clean at the end", () -> {
            flyway.clean();
            return Cases.schema();
        });
    }
}
