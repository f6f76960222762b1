module clients/gorm

go 1.24

require (
	github.com/jackc/pgx/v5 v5.12.0
	gorm.io/driver/postgres v1.6.3
	gorm.io/gorm v1.31.2
)
