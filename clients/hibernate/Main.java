import jakarta.persistence.LockModeType;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.UUID;
import java.util.function.Function;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/**
 * The schema tool's ways, each twice where it must do nothing the second time, and the model's use.
 */
final class Main {
    private static final Class<?>[] MODEL = {
        Model.Customer.class, Model.Account.class, Model.Purchase.class, Model.Article.class, Model.Book.class, Model.Vehicle.class, Model.Truck.class,
    };

    private static SessionFactory factory(String action, Class<?>... entities) {
        Configuration configuration = new Configuration();
        for (Class<?> entity : entities) {
            configuration.addAnnotatedClass(entity);
        }
        return configuration.setProperty("hibernate.connection.url", Cases.URL)
            .setProperty("hibernate.connection.username", Cases.USER)
            .setProperty("hibernate.connection.password", "")
            .setProperty("hibernate.hbm2ddl.auto", action)
            .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
            .setProperty("hibernate.jdbc.batch_size", "20")
            .setProperty("hibernate.order_inserts", "true")
            .buildSessionFactory();
    }

    private static void tool(String name, String action, Class<?>... entities) throws Exception {
        Cases.run(name, () -> {
            factory(action, entities).close();
            return Cases.schema();
        });
    }

    private static void session(SessionFactory factory, String name, Function<Session, Object> body) throws Exception {
        Cases.run(name, () -> factory.fromTransaction(body::apply));
    }

    private static Object fill(Session session) {
        for (int i = 0; i < 50; i++) {
            Model.Customer customer = new Model.Customer();
            customer.email = "c" + i + "@example.org";
            customer.name = "Customer " + i;
            customer.born = LocalDate.of(1950 + i, 1, 1);
            customer.address.zip = "Z" + i % 7;
            customer.phones.put("home", "1" + i);
            customer.phones.put("work", "2" + i);
            customer.account = new Model.Account();
            customer.account.id = new UUID(1, i);
            customer.account.balance = new BigDecimal(i);
            Model.Book book = new Model.Book();
            book.title = "Book " + i;
            book.pages = i;
            session.persist(book);
            for (int n = 0; n < 3; n++) {
                Model.Purchase purchase = new Model.Purchase();
                purchase.customer = customer;
                purchase.number = n;
                purchase.made = Instant.ofEpochSecond(i * 1000L + n);
                purchase.details.put("n", "" + n);
                purchase.remark = "remark " + n;
                purchase.articles.add(book);
                customer.purchases.add(purchase);
            }
            session.persist(customer);
            Model.Truck truck = new Model.Truck();
            truck.plate = "T" + i;
            truck.load = i;
            session.persist(truck);
        }
        return "";
    }

    private static Object query(Session session, String query) {
        StringBuilder rows = new StringBuilder();
        for (Object row : session.createQuery(query, Object.class).getResultList()) {
            rows.append(row instanceof Object[] columns ? java.util.Arrays.toString(columns) : row).append('\n');
        }
        return rows;
    }

    private static void use(SessionFactory factory) throws Exception {
        session(factory, "persist", Main::fill);
        session(factory, "find by natural id", session -> session.byNaturalId(Model.Customer.class).using("email", "c7@example.org").load().name);
        session(factory, "joins and groups", session -> query(session,
            "select c.address.zip, count(p), sum(c.account.balance) from Customer c join c.purchases p group by c.address.zip order by c.address.zip"));
        session(factory, "by inheritance", session -> query(session, "select v.plate, type(v) from Vehicle v order by v.plate"));
        session(factory, "by enum and range", session -> query(session,
            "select p.number, p.named from Purchase p where p.state = NEW and p.named = PAID and p.number between 1 and 2 order by p.id"));
        session(factory, "by order and limit", session -> session.createQuery("from Customer order by name desc", Model.Customer.class)
            .setMaxResults(3).getResultList().stream().map(c -> c.name + c.phones + c.purchases.size()).toList());
        session(factory, "dirty checking and orphans", session -> {
            Model.Customer customer = session.byNaturalId(Model.Customer.class).using("email", "c3@example.org").load();
            customer.name = "Changed";
            customer.purchases.remove(0);
            customer.phones.remove("home");
            customer.account.balance = new BigDecimal("99.50");
            session.flush();
            return customer.version;
        });
        session(factory, "pessimistic lock", session -> session.createQuery("from Customer where name = 'Changed'", Model.Customer.class)
            .setLockMode(LockModeType.PESSIMISTIC_WRITE).getSingleResult().purchases.size());
        session(factory, "update and delete of many", session -> session.createMutationQuery("update Customer set name = upper(name) where born < local date")
            .executeUpdate() + " " + session.createMutationQuery("update versioned Customer set name = 'x' where address.zip = 'Z1'").executeUpdate()
            + " " + session.createMutationQuery("delete Truck where load > 40").executeUpdate());
        session(factory, "upsert", session -> {
            return session.createMutationQuery("insert into Account (id, balance) values (:id, 5) on conflict (id) do update set balance = excluded.balance")
                .setParameter("id", new UUID(1, 3)).executeUpdate() + " " + query(session, "select count(a), sum(a.balance) from Account a");
        });
        session(factory, "check is kept", session -> {
            try {
                return session.createMutationQuery("update Account set balance = -1").executeUpdate();
            } catch (Exception e) {
                session.getTransaction().setRollbackOnly();
                return e.getClass();
            }
        });
        Cases.run("optimistic lock", () -> {
            Session one = factory.openSession();
            Session two = factory.openSession();
            try (one; two) {
                one.beginTransaction();
                two.beginTransaction();
                one.byNaturalId(Model.Customer.class).using("email", "c9@example.org").load().name = "one";
                two.byNaturalId(Model.Customer.class).using("email", "c9@example.org").load().name = "two";
                one.getTransaction().commit();
                try {
                    two.getTransaction().commit();
                    return "both";
                } catch (Exception e) {
                    return e.getClass();
                }
            }
        });
        Cases.run("duplicate key", () -> {
            try {
                return factory.fromTransaction(Main::fill);
            } catch (Exception e) {
                return e.getClass() + e.getMessage().replaceAll("(?s)\\[insert.*", "");
            }
        });
        session(factory, "deletes by cascade", session -> {
            Model.Customer customer = session.byNaturalId(Model.Customer.class).using("email", "c3@example.org").load();
            session.remove(customer);
            session.flush();
            return query(session, "select count(*) from Purchase") + " " + query(session, "select count(*) from Account");
        });
    }

    public static void main(String[] arguments) throws Exception {
        tool("create", "create", MODEL);
        tool("validate", "validate", MODEL);
        tool("update that finds nothing to do", "update", MODEL);
        SessionFactory factory = factory("none", MODEL);
        use(factory);
        factory.close();
        Class<?>[] later = {Model.LaterCustomer.class};
        Cases.run("a later model is not valid", () -> {
            try {
                factory("validate", later).close();
                return "valid";
            } catch (Exception e) {
                return e.getMessage();
            }
        });
        tool("update to a later model", "update", later);
        tool("validate the later model", "validate", later);
        tool("update again", "update", later);
        tool("create again over what is there", "create", MODEL);
        tool("create and drop", "create-drop", MODEL);
    }
}
