import jakarta.persistence.CascadeType;
import jakarta.persistence.CollectionTable;
import jakarta.persistence.Column;
import jakarta.persistence.DiscriminatorColumn;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.Inheritance;
import jakarta.persistence.InheritanceType;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.Lob;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OneToOne;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.UniqueConstraint;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.hibernate.annotations.Check;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.annotations.NaturalId;
import org.hibernate.annotations.OnDelete;
import org.hibernate.annotations.OnDeleteAction;
import org.hibernate.type.SqlTypes;

/**
 * Entities with what a schema tool makes: sequences, identities, foreign keys, unique and other
 * indexes, join tables, inheritance.
 */
final class Model {
    private Model() {}

    enum State { NEW, PAID, SENT }

    @Embeddable
    static class Address {
        String street;
        @Column(length = 10) String zip;
    }

    @Entity(name = "Customer")
    @Table(name = "customer", indexes = {@Index(name = "customer_name", columnList = "name desc, born"), @Index(name = "customer_zip", columnList = "zip", unique = false)})
    static class Customer {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @NaturalId @Column(nullable = false, length = 100) String email;
        String name;
        LocalDate born;
        @Version int version;
        @Embedded Address address = new Address();
        @ElementCollection @CollectionTable(name = "customer_phone") Map<String, String> phones = new HashMap<>();
        @OneToMany(mappedBy = "customer", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("number") List<Purchase> purchases = new ArrayList<>();
        @OneToOne(cascade = CascadeType.ALL, fetch = FetchType.LAZY) Account account;
    }

    @Entity(name = "Account")
    static class Account {
        @Id UUID id;
        @Check(constraints = "balance >= 0") @Column(precision = 12, scale = 2, nullable = false) BigDecimal balance;
    }

    @Entity(name = "Purchase")
    @Table(name = "purchase", uniqueConstraints = @UniqueConstraint(name = "purchase_number", columnNames = {"customer_id", "number"}))
    static class Purchase {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @ManyToOne(optional = false) @JoinColumn(name = "customer_id") @OnDelete(action = OnDeleteAction.CASCADE) Customer customer;
        int number;
        @Enumerated(EnumType.STRING) State state = State.NEW;
        @Enumerated @JdbcTypeCode(SqlTypes.NAMED_ENUM) State named = State.PAID;
        Instant made;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, String> details = new HashMap<>();
        @ManyToMany Set<Article> articles = new HashSet<>();
        int[] weights = {1, 2};
        @Lob String remark;
    }

    @Entity(name = "Article")
    @Inheritance(strategy = InheritanceType.SINGLE_TABLE)
    @DiscriminatorColumn(name = "kind")
    static class Article {
        @Id @GeneratedValue Long id;
        @Column(unique = true) String title;
    }

    @Entity(name = "Book")
    static class Book extends Article {
        int pages;
    }

    @Entity(name = "Vehicle")
    @Inheritance(strategy = InheritanceType.JOINED)
    static class Vehicle {
        @Id @GeneratedValue Long id;
        String plate;
    }

    @Entity(name = "Truck")
    static class Truck extends Vehicle {
        double load;
    }

    /** The customer as a later version of the program has it. */
    @Entity(name = "Customer")
    @Table(name = "customer", indexes = {@Index(name = "customer_name", columnList = "name desc, born"), @Index(name = "customer_score", columnList = "score")})
    static class LaterCustomer {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        @NaturalId @Column(nullable = false, length = 100) String email;
        String name;
        LocalDate born;
        @Version int version;
        @Embedded Address address = new Address();
        Integer score;
        @ManyToOne @JoinColumn(name = "friend") LaterCustomer friend;
    }
}
