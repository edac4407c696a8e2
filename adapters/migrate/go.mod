module github.com/leasehold-dev/leasehold/adapters/migrate

go 1.26.0

require (
	github.com/golang-migrate/migrate/v4 v4.20.1
	github.com/leasehold-dev/leasehold v0.0.0
	go.uber.org/goleak v1.3.0
)
