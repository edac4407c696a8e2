module github.com/leasehold-dev/leasehold

go 1.26.0

require (
	github.com/yuin/gopher-lua v1.1.1
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)
