// GORM's ways of making, changing, reading and using tables; each result must be the same on heap
// and on memory-optimized tables.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Company struct {
	ID   uint
	Name string `gorm:"size:100;uniqueIndex:company_name,expression:lower(name)"`
}

type User struct {
	gorm.Model
	Email     string  `gorm:"size:200;not null;unique"`
	Name      string  `gorm:"index:user_name_age,sort:desc"`
	Age       int     `gorm:"index:user_name_age;check:age_is_positive,age > 0"`
	Active    bool    `gorm:"default:true;index:user_active,where:active"`
	Balance   float64 `gorm:"type:numeric(12,2)"`
	CompanyID *uint
	Company   *Company `gorm:"constraint:OnDelete:SET NULL"`
	Posts     []Post   `gorm:"constraint:OnDelete:CASCADE"`
	Tags      []Tag    `gorm:"many2many:user_tags"`
	ManagerID *uint
	Manager   *User
}

type Post struct {
	ID     uint
	UserID uint           `gorm:"uniqueIndex:post_number"`
	Number int            `gorm:"uniqueIndex:post_number"`
	Title  string         `gorm:"comment:What it says"`
	Meta   map[string]int `gorm:"serializer:json;type:jsonb"`
}

type Tag struct {
	Code string `gorm:"primaryKey"`
}

// LaterPost is the post as a later version of the program has it.
type LaterPost struct {
	ID     uint
	UserID uint           `gorm:"uniqueIndex:post_number"`
	Number int64          `gorm:"uniqueIndex:post_number"`
	Title  string         `gorm:"size:500;not null;default:none;index:post_title,type:btree"`
	Meta   map[string]int `gorm:"serializer:json;type:jsonb"`
	Rating *int           `gorm:"index"`
}

func (LaterPost) TableName() string { return "posts" }

var (
	db         *gorm.DB
	statements []string
)

func run(name string, body func() (any, error)) {
	line := map[string]string{"case": name, "status": "passed"}
	if result, err := body(); err != nil {
		line["status"], line["message"] = "failed", err.Error()
		fmt.Println(name, err)
	} else {
		text, _ := json.MarshalIndent(result, "", " ")
		line["result"] = string(text)
	}
	file, err := os.OpenFile(filepath.Join(os.Getenv("OUT"), "cases.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	text, _ := json.Marshal(line)
	fmt.Fprintln(file, string(text))
}

// Changes are the definitions among the statements of a piece of work.
func changes(body func() error) (any, error) {
	statements = nil
	err := body()
	found := []string{}
	for _, statement := range statements {
		if strings.HasPrefix(statement, "CREATE") || strings.HasPrefix(statement, "ALTER") || strings.HasPrefix(statement, "DROP") || strings.HasPrefix(statement, "COMMENT") {
			// Constraints come out of a map, in any order.
			parts := strings.Split(strings.TrimSuffix(statement, ")"), ",")
			slices.Sort(parts)
			found = append(found, strings.Join(parts, ","))
		}
	}
	return []any{found, schema()}, err
}

func schema() any {
	found := []any{}
	for _, query := range []string{
		"SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position",
		"SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) AS def FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
		"SELECT indexname, replace(indexdef, 'USING mot_index', 'USING btree') AS def FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
	} {
		var rows []map[string]any
		db.Raw(query).Scan(&rows)
		found = append(found, rows)
	}
	return found
}

func failure(err error) string {
	if err == nil {
		return "no failure"
	}
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return err.Error()
}

func migrate() {
	models := []any{&Company{}, &Tag{}, &User{}, &Post{}}
	run("migrate", func() (any, error) { return changes(func() error { return db.AutoMigrate(models...) }) })
	run("migrate again", func() (any, error) { return changes(func() error { return db.AutoMigrate(models...) }) })
	run("columns that the migrator reads", func() (any, error) {
		found := []any{}
		for _, model := range models {
			columns, err := db.Migrator().ColumnTypes(model)
			if err != nil {
				return nil, err
			}
			for _, column := range columns {
				key, _ := column.PrimaryKey()
				unique, _ := column.Unique()
				nullable, _ := column.Nullable()
				value, _ := column.DefaultValue()
				found = append(found, []any{column.Name(), column.DatabaseTypeName(), key, unique, nullable, value})
			}
		}
		return found, nil
	})
	run("indexes that the migrator reads", func() (any, error) {
		found := []string{}
		for _, model := range models {
			indexes, err := db.Migrator().GetIndexes(model)
			if err != nil {
				return nil, err
			}
			for _, index := range indexes {
				unique, _ := index.Unique()
				key, _ := index.PrimaryKey()
				found = append(found, fmt.Sprint(index.Table(), index.Name(), index.Columns(), unique, key))
			}
		}
		slices.Sort(found)
		return []any{found, db.Migrator().HasIndex(&User{}, "user_active"), db.Migrator().HasConstraint(&User{}, "age_is_positive")}, nil
	})
}

func use() {
	run("create with associations, in batches", func() (any, error) {
		company := Company{Name: "Acme"}
		if err := db.Create(&company).Error; err != nil {
			return nil, err
		}
		users := []User{}
		for i := 0; i < 60; i++ {
			user := User{Email: fmt.Sprintf("u%d@example.org", i), Name: fmt.Sprintf("Name %d", i%7), Age: 20 + i, Active: true, Balance: float64(i), CompanyID: &company.ID}
			for n := 0; n < 3; n++ {
				user.Posts = append(user.Posts, Post{Number: n, Title: fmt.Sprintf("Title %d", n), Meta: map[string]int{"n": n}})
			}
			user.Tags = []Tag{{Code: fmt.Sprintf("T%d", i%4)}, {Code: "all"}}
			users = append(users, user)
		}
		if err := db.Session(&gorm.Session{}).Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(users, 1).Error; err != nil {
			return nil, err
		}
		var posts, tags int64
		db.Model(&Post{}).Count(&posts)
		db.Table("user_tags").Count(&tags)
		return []int64{posts, tags}, nil
	})
	run("find", func() (any, error) {
		var users []User
		err := db.Preload("Posts", func(tx *gorm.DB) *gorm.DB { return tx.Order("number DESC") }).Preload("Tags", func(tx *gorm.DB) *gorm.DB { return tx.Order("code") }).
			Joins("Company").Where("users.age BETWEEN ? AND ?", 30, 34).Order("users.age").Find(&users).Error
		found := []any{}
		for _, user := range users {
			titles := []string{}
			for _, post := range user.Posts {
				titles = append(titles, post.Title)
			}
			found = append(found, []any{user.ID, user.Email, user.Company.Name, titles, user.Tags})
		}
		var sums []map[string]any
		db.Model(&User{}).Select("name, count(*) AS n, sum(balance)::text AS total").Group("name").Having("count(*) > 8").Order("name").Find(&sums)
		var emails []string
		db.Model(&User{}).Where("active").Order("name DESC, age").Limit(5).Offset(3).Pluck("email", &emails)
		return []any{found, sums, emails}, err
	})
	run("change", func() (any, error) {
		found := []any{}
		result := db.Model(&User{}).Where("age > ?", 70).Update("balance", gorm.Expr("balance * 2"))
		found = append(found, result.RowsAffected)
		result = db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"age"})}).
			Create(&User{Email: "u1@example.org", Age: 99})
		found = append(found, result.RowsAffected, failure(result.Error))
		var returned []User
		db.Model(&returned).Clauses(clause.Returning{Columns: []clause.Column{{Name: "email"}}}).Where("age = 99").Update("active", false)
		found = append(found, len(returned), returned[0].Email)
		found = append(found, failure(db.Create(&User{Email: "u2@example.org", Age: 1}).Error), failure(db.Create(&User{Email: "new", Age: -1}).Error),
			failure(db.Create(&Post{UserID: 100000}).Error), failure(db.Create(&Company{Name: "ACME"}).Error))
		found = append(found, db.Delete(&User{}, "age = 25").RowsAffected, db.Unscoped().Where("age IN ?", []int{26, 27}).Select("Tags").Delete(&User{}).Error != nil)
		var users, all, posts int64
		db.Model(&User{}).Count(&users)
		db.Unscoped().Model(&User{}).Count(&all)
		db.Model(&Post{}).Count(&posts)
		return append(found, users, all, posts), nil
	})
	run("transactions and locks", func() (any, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			var user User
			if err := tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("age = 40").First(&user).Error; err != nil {
				return err
			}
			_ = tx.Transaction(func(inner *gorm.DB) error {
				inner.Exec("DELETE FROM posts")
				return errors.New("back")
			})
			tx.SavePoint("s")
			tx.Model(&user).Update("age", 1000)
			tx.RollbackTo("s")
			return tx.Model(&user).Update("name", "Locked").Error
		})
		var user User
		db.Where("age = 40").First(&user)
		var posts int64
		db.Model(&Post{}).Count(&posts)
		return []any{user.Name, posts}, err
	})
	run("rows in batches", func() (any, error) {
		count := 0
		var users []User
		result := db.Where("age > 0").FindInBatches(&users, 7, func(tx *gorm.DB, batch int) error { count += batch * len(users); return nil })
		return []any{count, result.RowsAffected}, result.Error
	})
}

func main() {
	var err error
	dsn := fmt.Sprintf("host=%s port=%s user=%s dbname=%s", os.Getenv("PGHOST"), os.Getenv("PGPORT"), os.Getenv("PGUSER"), os.Getenv("PGDATABASE"))
	db, err = gorm.Open(postgres.Open(dsn), &gorm.Config{NowFunc: func() time.Time { return time.Unix(1700000000, 0) }, Logger: logger.Default.LogMode(logger.Silent)})
	if err != nil {
		panic(err)
	}
	record := func(tx *gorm.DB) { statements = append(statements, tx.Statement.SQL.String()) }
	_ = db.Callback().Raw().After("gorm:raw").Register("record", record)
	migrate()
	use()
	run("migrate to a later model", func() (any, error) { return changes(func() error { return db.AutoMigrate(&LaterPost{}) }) })
	run("migrate to it again", func() (any, error) { return changes(func() error { return db.AutoMigrate(&LaterPost{}) }) })
	run("changes by the migrator", func() (any, error) {
		return changes(func() error {
			migrator := db.Migrator()
			return errors.Join(migrator.RenameColumn(&LaterPost{}, "title", "heading"), migrator.DropIndex(&LaterPost{}, "post_number"), migrator.DropColumn(&LaterPost{}, "rating"),
				migrator.RenameIndex(&User{}, "user_active", "user_alive"), migrator.DropConstraint(&User{}, "age_is_positive"), migrator.RenameTable("posts", "entries"))
		})
	})
	run("drop", func() (any, error) {
		return changes(func() error { return db.Migrator().DropTable("user_tags", "entries", &User{}, &Tag{}, &Company{}) })
	})
}
